/* SPDX-License-Identifier: Apache-2.0 */
/* The state while a graph is built: values by name, refusals, and the failure
 * that ends it. */
#include "onnx/builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ipu__onnx_add_refusal(ipu_onnx *model, const char *text)
{
    char **more =
        realloc(model->refusals, ((size_t)model->nrefusals + 1) * sizeof *more);

    if (!more)
        return ipu__fail_memory(sizeof *more);
    model->refusals = more;
    more[model->nrefusals] = strdup(text);
    if (!more[model->nrefusals])
        return ipu__fail_memory(strlen(text));
    model->nrefusals++;
    return IPU_ERR_SHAPE;
}

void ipu__onnx_forget_refusals(ipu_onnx *model, int32_t count)
{
    while (model->nrefusals > count)
        free(model->refusals[--model->nrefusals]);
}

void ipu__onnx_describe(const struct ipu__onnx_node *node, char *text,
                        size_t bytes)
{
    const char *name = node->name;

    /* Exporters may leave out names; outputs have some. */
    if (!*name && node->outputs.count > 0)
        name = node->outputs.at[0];
    snprintf(text, bytes, "node '%.100s' (%s%s%.60s)", name, node->domain,
             *node->domain ? "." : "", node->op);
}

static int compare_values(const void *a, const void *b)
{
    const struct ipu__onnx_value *x = a, *y = b;

    return strcmp(x->name, y->name);
}

struct ipu__onnx_value *ipu__onnx_value(const struct ipu__onnx_builder *b,
                                        const char *name)
{
    struct ipu__onnx_value wanted = {.name = name};

    return b->nvalues == 0 ? NULL
                           : bsearch(&wanted, b->values, b->nvalues,
                                     sizeof wanted, compare_values);
}

void ipu__onnx_add_name(struct ipu__onnx_builder *b, const char *name)
{
    if (*name)
        b->values[b->nvalues++] = (struct ipu__onnx_value){
            .name = name, .tensor = {-1}, .last = {-1}, .input = -1};
}

size_t ipu__onnx_count_names(const struct ipu__onnx_graph *graph)
{
    size_t n = graph->initializers.count;

    for (size_t i = 0; i < graph->nodes.count; i++)
        n += graph->nodes.at[i].outputs.count;
    return n;
}

void ipu__onnx_add_names(struct ipu__onnx_builder *b,
                         const struct ipu__onnx_graph *graph)
{
    for (size_t i = 0; i < graph->initializers.count; i++)
        ipu__onnx_add_name(b, graph->initializers.at[i].name);
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (size_t j = 0; j < graph->nodes.at[i].outputs.count; j++)
            ipu__onnx_add_name(b, graph->nodes.at[i].outputs.at[j]);
}

const char *ipu__onnx_named_twice(const struct ipu__onnx_builder *b)
{
    for (size_t i = 1; i < b->nvalues; i++)
        if (!strcmp(b->values[i - 1].name, b->values[i].name))
            return b->values[i].name;
    return NULL;
}

void ipu__onnx_sort(struct ipu__onnx_builder *b)
{
    qsort(b->values, b->nvalues, sizeof *b->values, compare_values);
}

int ipu__onnx_set_initializers(struct ipu__onnx_builder *b,
                               const struct ipu__onnx_tensors *all)
{
    const ipu_onnx *m = b->model;

    for (size_t i = 0; i < all->count; i++) {
        const struct ipu__onnx_tensor *t = &all->at[i];
        struct ipu__onnx_value *value = ipu__onnx_value(b, t->name);
        struct ipu__onnx_elements shape;
        char what[512];

        if (!value)
            return ipu__fail(IPU_ERR_DATA, "%s: an initialiser has no name",
                             m->file.path);
        snprintf(what, sizeof what, "%s: tensor '%s'", m->file.path, t->name);
        IPU_TRY(ipu__onnx_set_shape(what, t->dims.count, t->dims.at, &shape));
        value->type = ipu__onnx_kind(t->type)->name ? (int32_t)t->type : 0;
        value->ndim = shape.ndim;
        memcpy(value->extents, shape.extents, sizeof shape.extents);
        value->initializer = t;
        value->state = IPU__ONNX_MADE;
    }
    return IPU_OK;
}

int ipu__onnx_end(struct ipu__onnx_builder *b, int status)
{
    if (b->status < 0)
        return b->status;
    snprintf(b->text, sizeof b->text, "%s", ipu_last_error());
    return b->status = status;
}
