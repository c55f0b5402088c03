/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - models as programs see them: loading, inputs, outputs, what is
 * offered, and the conversions of elements.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/builder.h"

/* ------------------------------------------------------------------ loading */

static bool is_own_domain(const char *domain)
{
    return !*domain || !strcmp(domain, "ai.onnx");
}

static int find_version(ipu_onnx *m)
{
    for (size_t i = 0; i < m->model.opsets.count; i++) {
        const struct ipu__onnx_opset *set = &m->model.opsets.at[i];

        if (!is_own_domain(set->domain))
            continue;
        if (set->version < IPU_ONNX_OPSET_MIN ||
            set->version > IPU_ONNX_OPSET_MAX)
            return ipu__fail(IPU_ERR_DATA,
                             "%s: it uses version %" PRId64
                             " of the operators (opset); this program knows %d "
                             "to %d: export it for one of them",
                             m->file.path, set->version, IPU_ONNX_OPSET_MIN,
                             IPU_ONNX_OPSET_MAX);
        m->version = (int)set->version;
    }
    /* Nodes of other sets are refused one by one. */
    if (m->version == 0 && m->model.opsets.count > 0)
        m->version = IPU_ONNX_OPSET_MAX;
    if (m->version == 0)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: this is no ONNX model, or it does not say which "
                         "version of the operators (opset) it uses",
                         m->file.path);
    return IPU_OK;
}

static int check_model(ipu_onnx *m)
{
    if (!m->model.graph)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: this is no ONNX model: it has no graph",
                         m->file.path);
    IPU_TRY(find_version(m));
    if (m->model.functions.at)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: it defines functions, which are not supported: "
                         "export it with them inlined",
                         m->file.path);
    if (m->model.graph->sparse.at)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: it has sparse initialisers, which are not "
                         "supported",
                         m->file.path);
    return IPU_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Returns the names of all initialisers, sorted; in the file's memory. */
static const char **initializer_names(ipu_onnx *m)
{
    const struct ipu__onnx_tensors *all = &m->model.graph->initializers;
    const char **names = ipu__onnx_keep(&m->file, all->count * sizeof *names);

    for (size_t i = 0; names && i < all->count; i++)
        names[i] = all->at[i].name;
    if (names)
        qsort(names, all->count, sizeof *names, compare_names);
    return names;
}

/* Finds the inputs that nobody gives a value. */
static int find_inputs(ipu_onnx *m)
{
    const struct ipu__onnx_value_infos *all = &m->model.graph->inputs;
    size_t n = m->model.graph->initializers.count;
    const char **names = initializer_names(m);

    m->inputs = ipu__onnx_keep(&m->file, all->count * sizeof *m->inputs);
    m->offered = ipu__onnx_keep(&m->file, all->count * sizeof *m->offered);
    m->bound = ipu__onnx_keep(&m->file, all->count * sizeof *m->bound);
    m->trained = ipu__onnx_keep(&m->file, n * sizeof *m->trained);
    if (!names || !m->inputs || !m->offered || !m->bound || !m->trained)
        return IPU_ERR_DATA;
    for (size_t i = 0; i < all->count; i++)
        if (!bsearch(&all->at[i].name, names, n, sizeof *names, compare_names))
            m->inputs[m->ninputs++] = &all->at[i];
    return IPU_OK;
}

static int load(ipu_onnx *m, const char *path)
{
    IPU_TRY(ipu__onnx_file_open(&m->file, path));
    IPU_TRY(ipu__onnx_read_model(&m->file, &m->model));
    IPU_TRY(check_model(m));
    return find_inputs(m);
}

int ipu_onnx_load(const char *path, ipu_onnx **model)
{
    int status;

    if (!path || !model)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the path or model is NULL");
    IPU_TRY(ipu__new(model, sizeof **model));
    status = load(*model, path);
    if (status < 0) {
        ipu_onnx_free(*model);
        *model = NULL;
    }
    return status;
}

void ipu_onnx_free(ipu_onnx *model)
{
    if (!model)
        return;
    for (int32_t i = 0; i < model->nrefusals; i++)
        free(model->refusals[i]);
    for (int32_t i = 0; i < model->ngiven; i++)
        free(model->given[i].symbol);
    free(model->variables);
    free(model->refusals);
    free(model->given);
    if (model->built)
        free(model->built->values);
    free(model->built);
    ipu__onnx_file_close(&model->file);
    free(model);
}

/* ------------------------------------------------------- inputs and outputs */

static int check_value(const ipu_onnx *model, const ipu_onnx_value *value)
{
    if (!model || !value)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the model or value is NULL");
    return ipu__check_size("ipu_onnx_value", value->size, sizeof *value);
}

/* Describes a value as the file does. */
static void describe_value(const struct ipu__onnx_value_info *info,
                           ipu_onnx_value *value)
{
    const struct ipu__onnx_tensor_type *type =
        info->type ? info->type->tensor : NULL;
    const struct ipu__onnx_dims *dims =
        type && type->shape ? &type->shape->dims : NULL;

    *value = (ipu_onnx_value){.size = sizeof *value, .name = info->name};
    value->type =
        type && ipu__onnx_kind(type->type)->name ? (int32_t)type->type : 0;
    value->ndim =
        dims && dims->count <= IPU_MAX_DIMS ? (int32_t)dims->count : -1;
    for (int32_t i = 0; i < value->ndim; i++) {
        const char *symbol = dims->at[i].symbol;

        value->extents[i] = dims->at[i].extent < 0 ? -1 : dims->at[i].extent;
        value->symbols[i] = symbol && *symbol ? symbol : NULL;
    }
}

/* Sets the open extents that the program has given. A name counts more than the
 * place. */
static void apply_given(const ipu_onnx *m, ipu_onnx_value *value)
{
    for (int32_t d = 0; d < value->ndim; d++) {
        const char *symbol = value->symbols[d];

        if (value->extents[d] >= 0)
            continue;
        for (int32_t i = 0; i < m->ngiven; i++) {
            const struct ipu__onnx_given *given = &m->given[i];

            if (given->symbol && symbol && !strcmp(given->symbol, symbol)) {
                value->extents[d] = given->extent;
                break;
            }
            if (!given->symbol && d == 0)
                value->extents[d] = given->extent;
        }
    }
}

int ipu_onnx_input(const ipu_onnx *model, int32_t i, ipu_onnx_value *value)
{
    const struct ipu__onnx_elements *offered;

    IPU_TRY(check_value(model, value));
    if (i < 0 || i >= model->ninputs)
        return 0;
    describe_value(model->inputs[i], value);
    value->bound = model->bound[i];
    offered = &model->offered[i];
    if (offered->type) {
        value->type = offered->type;
        value->ndim = offered->ndim;
        memcpy(value->extents, offered->extents, sizeof offered->extents);
    } else {
        apply_given(model, value);
    }
    return 1;
}

int ipu_onnx_output(const ipu_onnx *model, int32_t i, ipu_onnx_value *value)
{
    const struct ipu__onnx_value *built;

    IPU_TRY(check_value(model, value));
    if (i < 0 || (size_t)i >= model->model.graph->outputs.count)
        return 0;
    describe_value(&model->model.graph->outputs.at[i], value);
    built = model->built ? ipu__onnx_value(model->built, value->name) : NULL;
    if (built && built->state == IPU__ONNX_MADE) {
        value->type = built->type;
        value->ndim = built->ndim;
        memcpy(value->extents, built->extents, sizeof built->extents);
    }
    return 1;
}

static int add_given(ipu_onnx *m, const char *symbol, int64_t extent)
{
    struct ipu__onnx_given *given =
        realloc(m->given, ((size_t)m->ngiven + 1) * sizeof *given);
    char *copy = symbol ? strdup(symbol) : NULL;

    if (given)
        m->given = given;
    if (!given || (symbol && !copy)) {
        free(copy);
        return ipu__fail_memory(sizeof *given);
    }
    m->given[m->ngiven++] = (struct ipu__onnx_given){copy, extent};
    return IPU_OK;
}

int ipu_onnx_set_dim(ipu_onnx *model, const char *symbol, int64_t extent)
{
    bool found = false;
    ipu_onnx_value value;

    if (!model || extent < 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "onnx: the model is NULL, or an extent is negative");
    for (int32_t i = 0; i < model->ninputs; i++) {
        describe_value(model->inputs[i], &value);
        for (int32_t d = 0; d < value.ndim; d++)
            found |=
                value.extents[d] < 0 &&
                (symbol ? value.symbols[d] && !strcmp(value.symbols[d], symbol)
                        : d == 0);
    }
    if (!found)
        return ipu__fail(IPU_ERR_NAME, "%s: no input has %s%s%s",
                         model->file.path,
                         symbol ? "an open dimension of the name '"
                                : "an open "
                                  "first "
                                  "dimension",
                         symbol ? symbol : "", symbol ? "'" : "");
    return add_given(model, symbol, extent);
}

/* ----------------------------------------------------------------- offering */

static int find_input(const ipu_onnx *m, const char *name)
{
    for (int32_t i = 0; i < m->ninputs; i++)
        if (!strcmp(m->inputs[i]->name, name))
            return i;
    return ipu__fail(IPU_ERR_NAME, "%s: it has no input '%s'", m->file.path,
                     name);
}

/* Checks that what is offered is what the model declares. */
static int check_offer(const ipu_onnx *m, int32_t i,
                       const struct ipu__onnx_elements *e)
{
    ipu_onnx_value wanted;
    bool fits;

    describe_value(m->inputs[i], &wanted);
    if (wanted.type && wanted.type != e->type)
        return ipu__fail(IPU_ERR_SHAPE, "%s: input '%s' is of %s, not %s",
                         m->file.path, wanted.name,
                         ipu_onnx_type_name(wanted.type),
                         ipu_onnx_type_name(e->type));
    fits = wanted.ndim < 0 || wanted.ndim == e->ndim;
    for (int32_t d = 0; fits && d < wanted.ndim; d++)
        fits = wanted.extents[d] < 0 || wanted.extents[d] == e->extents[d];
    if (!fits)
        return ipu__fail(
            IPU_ERR_SHAPE,
            "%s: input '%s' does not have the shape that the model "
            "declares",
            m->file.path, wanted.name);
    return IPU_OK;
}

static int keep_elements(ipu_onnx *m, struct ipu__onnx_elements *e,
                         const void *data)
{
    int64_t n = ipu__onnx_count(e->ndim, e->extents);
    size_t room = (size_t)(n > 0 ? n : 1) * sizeof(int64_t);
    void *to = ipu__onnx_keep_outside(&m->file, room);

    if (!to)
        return IPU_ERR_MEMORY;
    ipu__onnx_unpack(e->type, n, data, to, to);
    if (onnx__is_whole(e->type))
        e->wholes = to;
    else
        e->floats = to;
    return IPU_OK;
}

int ipu_onnx_offer(ipu_onnx *model, const char *name, int32_t type,
                   int32_t ndim, const int64_t *extents, const void *data)
{
    struct ipu__onnx_elements e = {.type = type};
    int i;

    if (!model || !name || ndim < 0 || ipu_onnx_type_dtype(type) < 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "onnx: an argument is NULL, or no type or shape");
    i = find_input(model, name);
    if (i < 0)
        return i;
    IPU_TRY(ipu__onnx_set_shape(name, (size_t)ndim, extents, &e));
    IPU_TRY(check_offer(model, i, &e));
    IPU_TRY(keep_elements(model, &e, data));
    model->offered[i] = e;
    return IPU_OK;
}

/* ------------------------------------------------------------------ tensors */

static int copy_elements(const struct ipu__onnx_elements *e,
                         ipu_onnx_tensor *tensor)
{
    int64_t n = ipu__onnx_count(e->ndim, e->extents);

    tensor->type = e->type;
    tensor->ndim = e->ndim;
    memcpy(tensor->extents, e->extents, sizeof e->extents);
    IPU_TRY(
        ipu__new_array(&tensor->data, (size_t)n, ipu_onnx_type_bytes(e->type)));
    ipu__onnx_pack(e->type, n, e->floats, e->wholes, tensor->data);
    return IPU_OK;
}

int ipu_onnx_read_tensor(const char *path, ipu_onnx_tensor *tensor)
{
    struct ipu__onnx_tensor read;
    struct ipu__onnx_elements e;
    struct ipu__onnx_file file;
    int status;

    if (!path || !tensor)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the path or tensor is NULL");
    IPU_TRY(ipu__check_size("ipu_onnx_tensor", tensor->size, sizeof *tensor));
    tensor->data = NULL;
    status = ipu__onnx_file_open(&file, path);
    if (status >= 0)
        status = ipu__onnx_read_tensor(&file, &read);
    if (status >= 0)
        status = ipu__onnx_decode(&file, &read, &e);
    if (status >= 0)
        status = copy_elements(&e, tensor);
    ipu__onnx_file_close(&file);
    return status;
}
