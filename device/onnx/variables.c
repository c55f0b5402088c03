/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variables.c - initialisers that a program trains: the graph has variables of
 * their names instead of constants.
 *
 * An operator that has to know the elements of an initialiser takes them as a
 * constant, unless the graph has its variable already. An Identity of such an
 * initialiser is a variable of its own: exporters merge parameters that are
 * equal at first, and training makes them differ.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/builder.h"

/* ------------------------------------------------------------------- choice */

static bool can_train(const struct ipu__onnx_tensor *t)
{
    int64_t count = 1;

    for (size_t i = 0; i < t->dims.count; i++)
        count = t->dims.at[i] > 0 ? count : 0;
    return count > 0 && ipu_onnx_type_dtype((int32_t)t->type) >= 0 &&
           !onnx__is_whole((int32_t)t->type);
}

/* Returns the initialiser of that name; NULL: there is none. */
static const struct ipu__onnx_tensor *find_initializer(const ipu_onnx *m,
                                                       const char *name,
                                                       size_t *at)
{
    const struct ipu__onnx_tensors *all = &m->model.graph->initializers;

    for (*at = 0; *at < all->count; ++*at)
        if (!strcmp(all->at[*at].name, name))
            return &all->at[*at];
    return NULL;
}

static int train_one(ipu_onnx *m, const char *name)
{
    size_t i;
    const struct ipu__onnx_tensor *t = find_initializer(m, name, &i);

    if (!t)
        return ipu__fail(IPU_ERR_NAME, "%s: it has no initialiser '%s'",
                         m->file.path, name);
    if (!can_train(t))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s: initialiser '%s' cannot be trained: it has no "
                         "floats",
                         m->file.path, name);
    m->trained[i] = true;
    return IPU_OK;
}

int ipu_onnx_train(ipu_onnx *model, const char *name)
{
    const struct ipu__onnx_tensors *all;

    if (!model)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the model is NULL");
    if (model->built)
        return ipu__fail(IPU_ERR_STATE, "%s: it was built before",
                         model->file.path);
    if (name)
        return train_one(model, name);
    all = &model->model.graph->initializers;
    for (size_t i = 0; i < all->count; i++)
        model->trained[i] = can_train(&all->at[i]);
    return IPU_OK;
}

bool ipu__onnx_is_frozen(const ipu_onnx *model, const char *name)
{
    for (const struct ipu__onnx_pattern *p = model->frozen; p; p = p->next)
        if (fnmatch(p->text, name, 0) == 0)
            return true;
    return false;
}

/* Returns the initialiser that an Identity passes on, if it can be trained. */
static const struct ipu__onnx_tensor *passed_on(
    const ipu_onnx *m, const struct ipu__onnx_node *node, size_t *at)
{
    const struct ipu__onnx_tensor *t;

    if (strcmp(node->op, "Identity") != 0 || node->inputs.count != 1 ||
        node->outputs.count != 1)
        return NULL;
    t = find_initializer(m, node->inputs.at[0], at);
    return t && can_train(t) ? t : NULL;
}

int ipu_onnx_freeze(ipu_onnx *model, const char *pattern)
{
    struct ipu__onnx_pattern *made;
    const struct ipu__onnx_tensors *all;
    const struct ipu__onnx_nodes *nodes;
    int count = 0;
    size_t at;

    if (!model || !pattern)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the %s is NULL",
                         model ? "pattern" : "model");
    if (model->built)
        return ipu__fail(IPU_ERR_STATE, "%s: it was built before",
                         model->file.path);
    all = &model->model.graph->initializers;
    nodes = &model->model.graph->nodes;
    for (size_t i = 0; i < all->count; i++)
        count +=
            can_train(&all->at[i]) && fnmatch(pattern, all->at[i].name, 0) == 0;
    for (size_t i = 0; i < nodes->count; i++)
        count += passed_on(model, &nodes->at[i], &at) &&
                 fnmatch(pattern, nodes->at[i].outputs.at[0], 0) == 0;
    if (count == 0)
        return ipu__fail(IPU_ERR_NAME,
                         "%s: no initialiser that could be trained has a name "
                         "like '%s'",
                         model->file.path, pattern);
    made = ipu__onnx_keep(&model->file, sizeof *made + strlen(pattern) + 1);
    if (!made)
        return IPU_ERR_DATA;
    made->text = strcpy((char *)(made + 1), pattern);
    made->next = model->frozen;
    model->frozen = made;
    return count;
}

void ipu__onnx_pass_on(const ipu_onnx *model, const struct ipu__onnx_node *node,
                       struct ipu__onnx_value *value)
{
    size_t at;

    if (!passed_on(model, node, &at) || !model->trained[at])
        return;
    value->use = ipu__onnx_is_frozen(model, value->name) ? IPU__ONNX_HELD
                                                         : IPU__ONNX_TRAINED;
    value->tensor.id = -1; /* a variable, or constant, of its own */
    value->floats = NULL;
}

int ipu_onnx_no_gradients(ipu_onnx *model)
{
    if (!model)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the model is NULL");
    if (model->built)
        return ipu__fail(IPU_ERR_STATE, "%s: it was built before",
                         model->file.path);
    model->no_gradients = true;
    return IPU_OK;
}

/* ---------------------------------------------------------------- variables */

int ipu__onnx_add_variable(ipu_onnx *model, const struct ipu__onnx_value *value)
{
    size_t n = (size_t)model->nvariables + 1;
    struct ipu__onnx_value *more = realloc(model->variables, n * sizeof *more);

    if (!more)
        return ipu__fail_memory(n * sizeof *more);
    model->variables = more;
    more[model->nvariables++] = *value;
    return IPU_OK;
}

void ipu__onnx_assign_variable(ipu_onnx *model, const char *name)
{
    for (int32_t i = 0; i < model->nvariables; i++)
        if (!strcmp(model->variables[i].name, name))
            model->variables[i].assigned = true;
}

const struct ipu__onnx_value *ipu__onnx_variable(const ipu_onnx *model,
                                                 const char *name)
{
    for (int32_t i = 0; i < model->nvariables; i++)
        if (!strcmp(model->variables[i].name, name))
            return &model->variables[i];
    return NULL;
}

int ipu_onnx_variable(const ipu_onnx *model, int32_t i, ipu_onnx_value *value)
{
    const struct ipu__onnx_value *from;

    if (!model || !value)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the model or value is NULL");
    IPU_TRY(ipu__check_size("ipu_onnx_value", value->size, sizeof *value));
    if (i < 0 || i >= model->nvariables)
        return 0;
    from = &model->variables[i];
    *value = (ipu_onnx_value){.size = sizeof *value,
                              .type = from->type,
                              .name = from->name,
                              .ndim = from->ndim,
                              .assigned = from->assigned};
    memcpy(value->extents, from->extents, sizeof from->extents);
    return 1;
}

/* Writes the elements that the file has to a variable of the engine. */
static int write_variable(ipu_onnx *m, ipu_engine *engine,
                          const struct ipu__onnx_value *value)
{
    /* double is float on the device */
    int32_t type =
        value->type == IPU_ONNX_DOUBLE ? IPU_ONNX_FLOAT : value->type;
    size_t n = (size_t)onnx__size(value), each = ipu_onnx_type_bytes(type);
    struct ipu__onnx_elements e;
    void *data;
    int status;

    IPU_TRY(ipu__onnx_decode(&m->file, value->initializer, &e));
    IPU_TRY(ipu__new_array(&data, n, each));
    ipu__onnx_pack(type, (int64_t)n, e.floats, NULL, data);
    status = ipu_engine_write(engine, value->name, data, n * each);
    free(data);
    return status;
}

int ipu_onnx_write_variables(ipu_onnx *model, ipu_engine *engine)
{
    if (!model || !engine)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the model or engine is NULL");
    for (int32_t i = 0; i < model->nvariables; i++)
        IPU_TRY(write_variable(model, engine, &model->variables[i]));
    return IPU_OK;
}

int ipu_onnx_set_run(ipu_onnx *model, ipu_engine *engine, int32_t run)
{
    if (!model || !engine)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the model or engine is NULL");
    if (run < 0)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the run %d is negative",
                         (int)run);
    if (model->dropouts == 0)
        return IPU_OK;
    return ipu_engine_write(engine, ONNX__RUN, &run, sizeof run);
}
