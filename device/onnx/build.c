/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - adds a model to a graph: names all values, sets inputs and
 * initialisers, builds one node after the other, and sets outputs.
 *
 * A node that cannot be built is noted, and so is every later one that cannot;
 * nodes that need its outputs are left out. So the program hears of all of them
 * at once.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/builder.h"

/* ----------------------------------------------------------------- refusals */

/* A refusal keeps so many bytes free for "; and N more" at its end. */
enum { MORE = 32 };

/* Refuses the model, with all that was noted, as far as there is room. */
static int fail_refused(const ipu_onnx *m)
{
    char text[IPU__EXPLANATION_MAX];
    size_t at = (size_t)snprintf(
        text, sizeof text, "%.1000s: %d node%s not supported: ", m->file.path,
        (int)m->nrefusals, m->nrefusals == 1 ? " is" : "s are");

    for (int32_t i = 0; i < m->nrefusals; i++) {
        if (at + strlen(m->refusals[i]) + MORE > sizeof text) {
            snprintf(text + at, sizeof text - at, "; and %d more",
                     (int)(m->nrefusals - i));
            break;
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s",
                               i > 0 ? "; " : "", m->refusals[i]);
    }
    return ipu__fail_explained(IPU_ERR_SHAPE, text);
}

/* ------------------------------------------------------------------- values */

/* Makes the values. Each name is given once. */
static int name_values(struct ipu__onnx_builder *b)
{
    const ipu_onnx *m = b->model;
    const struct ipu__onnx_graph *graph = m->model.graph;
    size_t n = (size_t)m->ninputs + ipu__onnx_count_names(graph);
    const char *twice;

    IPU_TRY(ipu__new_array(&b->values, n, sizeof *b->values));
    for (int32_t i = 0; i < m->ninputs; i++)
        ipu__onnx_add_name(b, m->inputs[i]->name);
    ipu__onnx_add_names(b, graph);
    ipu__onnx_sort(b);
    twice = ipu__onnx_named_twice(b);
    return twice ? ipu__fail(IPU_ERR_DATA, "%s: '%s' is the name of two values",
                             m->file.path, twice)
                 : IPU_OK;
}

/* Marks the initialisers that the program trains. */
static void mark_trained(struct ipu__onnx_builder *b)
{
    const struct ipu__onnx_tensors *all = &b->model->model.graph->initializers;

    for (size_t i = 0; i < all->count; i++)
        if (b->model->trained[i] &&
            !ipu__onnx_is_frozen(b->model, all->at[i].name))
            ipu__onnx_value(b, all->at[i].name)->use = IPU__ONNX_TRAINED;
}

/* Marks the initialisers that a Gradient names, if they are not trained. */
static void mark_differentiated(struct ipu__onnx_builder *b,
                                const struct ipu__onnx_node *node)
{
    if (strcmp(node->op, "Gradient") != 0)
        return;
    b->model->no_gradients = false;
    for (size_t i = 0; i < node->inputs.count; i++) {
        struct ipu__onnx_value *value = ipu__onnx_value(b, node->inputs.at[i]);

        if (value && value->initializer && value->use == IPU__ONNX_FREE &&
            !onnx__is_whole(value->type))
            value->use = IPU__ONNX_HELD;
    }
}

/* ------------------------------------------------------------------- inputs */

static int check_input(const ipu_onnx *m, const ipu_onnx_value *input)
{
    if (ipu_onnx_type_dtype(input->type) < 0)
        return ipu__fail(IPU_ERR_SHAPE,
                         "%s: input '%s' is no tensor, or of a type that this "
                         "device does not have (%s)",
                         m->file.path, input->name,
                         input->type ? ipu_onnx_type_name(input->type)
                                     : "not a tensor");
    if (input->ndim < 0)
        return ipu__fail(IPU_ERR_SHAPE,
                         "%s: input '%s' has no known number of dimensions, or "
                         "more than %d: give its elements",
                         m->file.path, input->name, IPU_MAX_DIMS);
    for (int32_t d = 0; d < input->ndim; d++)
        if (input->extents[d] < 0)
            return ipu__fail(IPU_ERR_SHAPE,
                             "%s: input '%s' leaves dimension %d open%s%s%s: "
                             "give its extent",
                             m->file.path, input->name, (int)d,
                             input->symbols[d] ? " ('" : "",
                             input->symbols[d] ? input->symbols[d] : "",
                             input->symbols[d] ? "')" : "");
    return IPU_OK;
}

int ipu__onnx_set_input(struct ipu__onnx_builder *b,
                        struct ipu__onnx_value *value, int32_t number)
{
    ipu_onnx_value input = {.size = sizeof input};
    struct ipu__onnx_elements shape;

    IPU_TRY(ipu_onnx_input(b->model, number, &input));
    IPU_TRY(check_input(b->model, &input));
    IPU_TRY(ipu__onnx_set_shape(input.name, (size_t)input.ndim, input.extents,
                                &shape));
    value->type = input.type;
    value->ndim = shape.ndim;
    memcpy(value->extents, shape.extents, sizeof shape.extents);
    value->input = number;
    value->state = IPU__ONNX_MADE;
    return IPU_OK;
}

static int set_inputs(struct ipu__onnx_builder *b)
{
    for (int32_t i = 0; i < b->model->ninputs; i++) {
        struct ipu__onnx_value *value =
            ipu__onnx_value(b, b->model->inputs[i]->name);

        if (!value)
            return ipu__fail(IPU_ERR_DATA, "%s: input %d has no name",
                             b->model->file.path, (int)i);
        IPU_TRY(ipu__onnx_set_input(b, value, i));
    }
    return IPU_OK;
}

/* ------------------------------------------------------------------ outputs */

/* Adds an output of the graph. A graph does not give two names to one of its
 * tensors, so an input cannot be an output, too. */
static int set_output(struct ipu__onnx_builder *b, const char *name)
{
    struct ipu__onnx_value *value = ipu__onnx_value(b, name);
    struct ipu__onnx_call call = {.builder = b, .graph = b->graph};

    if (!value)
        return ipu__fail(IPU_ERR_DATA, "%s: nothing makes its output '%s'",
                         b->model->file.path, name);
    if (value->state == IPU__ONNX_REFUSED)
        return IPU_OK; /* which has been noted */
    if (value->input >= 0)
        return ipu__fail(IPU_ERR_SHAPE,
                         "%s: output '%s' is one of its inputs, which is not "
                         "supported",
                         b->model->file.path, name);
    if (onnx__tensor(&call, value).id < 0 && b->status < 0)
        return b->status;
    return ipu_output(b->graph, name, onnx__tensor(&call, value));
}

static int set_outputs(struct ipu__onnx_builder *b)
{
    const struct ipu__onnx_value_infos *all = &b->model->model.graph->outputs;

    if (all->count == 0)
        return ipu__fail(IPU_ERR_DATA, "%s: it has no outputs",
                         b->model->file.path);
    for (size_t i = 0; i < all->count; i++)
        IPU_TRY(set_output(b, all->at[i].name));
    return IPU_OK;
}

/* ----------------------------------------------------------------- building */

static int build(struct ipu__onnx_builder *b)
{
    const struct ipu__onnx_nodes *nodes = &b->model->model.graph->nodes;

    IPU_TRY(name_values(b));
    IPU_TRY(
        ipu__onnx_set_initializers(b, &b->model->model.graph->initializers));
    IPU_TRY(set_inputs(b));
    mark_trained(b);
    for (size_t i = 0; i < nodes->count; i++)
        mark_differentiated(b, &nodes->at[i]);
    for (size_t i = 0; i < nodes->count; i++)
        IPU_TRY(ipu__onnx_build_node(b, &nodes->at[i]));
    ipu_module(b->graph, NULL);
    if (b->model->nrefusals > 0)
        return fail_refused(b->model);
    return set_outputs(b);
}

int ipu_onnx_build(ipu_onnx *model, ipu_graph *graph)
{
    int status;

    if (!model || !graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the model or graph is NULL");
    if (model->built)
        return ipu__fail(IPU_ERR_STATE, "%s: it was built before",
                         model->file.path);
    IPU_TRY(ipu__new(&model->built, sizeof *model->built));
    model->built->model = model;
    model->built->graph = graph;
    model->built->build_node = ipu__onnx_build_node;
    status = build(model->built);
    return model->built->status < 0
               ? ipu__fail_explained(model->built->status, model->built->text)
               : status;
}

const char *ipu_onnx_refusal(const ipu_onnx *model, int32_t i)
{
    return model && i >= 0 && i < model->nrefusals ? model->refusals[i] : NULL;
}
