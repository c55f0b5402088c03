/* SPDX-License-Identifier: Apache-2.0 */
#include "net/make.h"

#include "net/net.h"
#include "output/problem.h"

#include <string.h>

int net_make(const struct hvd_model *of, int count,
             const struct net_component *components, struct model **model)
{
    struct model_tensor inputs[MODEL_MOST_INPUTS];

    if (count > MODEL_MOST_INPUTS)
        return problem_set("the data has %d components, a model takes up to %d",
                           count, MODEL_MOST_INPUTS);
    for (int i = 0; i < count; i++) {
        const struct net_component *c = &components[i];

        if (strlen(c->name) >= sizeof inputs[i].name)
            return problem_set("component '%s': its name is too long", c->name);
        inputs[i].dtype = c->is_int ? IPU_INT32 : IPU_FLOAT32;
        inputs[i].ndim = c->ndim;
        strcpy(inputs[i].name, c->name);
        memcpy(inputs[i].shape, c->shape, sizeof c->shape);
    }
    return net_model(of, count, inputs, model);
}

int64_t net_capacity(const struct model *model)
{
    return model->inputs[0].shape[0];
}

int64_t net_losses(const struct model *model)
{
    return model->rows;
}

int net_outputs(const struct model *model)
{
    return model->noutputs;
}

const char *net_output(const struct model *model, int i)
{
    return model->outputs[i].name;
}

int64_t net_output_elements(const struct model *model, int i, bool *is_int)
{
    *is_int = model->outputs[i].dtype == IPU_INT32;
    return model_tensor_count(&model->outputs[i]);
}

bool net_input(const struct model *model, int i, const char **name,
               bool *is_int, int64_t *row, bool *is_needed)
{
    if (i >= model->ninputs)
        return false;
    *name = model->inputs[i].name;
    *is_int = model->inputs[i].dtype == IPU_INT32;
    *row = model_tensor_count(&model->inputs[i]) / model->inputs[i].shape[0];
    *is_needed = model_predicts_from(model, i);
    return true;
}

int64_t net_classes(const struct model *model)
{
    const struct model_tensor *y = &model->outputs[0];
    const struct model_tensor *labels = &model->inputs[1];

    return model->ninputs > 1 && y->ndim == 2 && y->shape[1] > 1 &&
                   y->dtype == IPU_FLOAT32 && labels->dtype == IPU_INT32 &&
                   model_tensor_count(labels) == y->shape[0] &&
                   model->rows == y->shape[0]
               ? y->shape[1]
               : 0;
}

int net_trained(const struct model *model)
{
    return model->trained;
}

const char *net_variable(const struct model *model, int i, int32_t *ndim,
                         const int64_t **shape, int64_t *count)
{
    if (i >= model->nvariables)
        return NULL;
    *ndim = model->variables[i].ndim;
    *shape = model->variables[i].shape;
    *count = model->variables[i].count;
    return model->variables[i].name;
}
