/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - owns the variables of a model and the memory of their values. The
 * program makes a model once, adds its variables, and does not change it any
 * more. First values depend on the seed and on the number of the variable
 * alone.
 */
#include "model/model.h"

#include "data/random.h"
#include "model/orthogonal.h"
#include "output/problem.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int reserve_variable(struct model *model)
{
    int capacity = model->capacity ? 2 * model->capacity : 16;
    struct model_variable *grown;

    if (model->nvariables < model->capacity)
        return 0;
    grown = realloc(model->variables, (size_t)capacity * sizeof *grown);
    if (!grown)
        return problem_set("no memory for the network's variables");
    model->variables = grown;
    model->capacity = capacity;
    return 0;
}

static int add_variable(struct model *model, const char *name,
                        enum model_start start, double spread, int32_t ndim,
                        const int64_t *shape)
{
    if (reserve_variable(model) < 0)
        return PROBLEM;
    struct model_variable *v = &model->variables[model->nvariables];
    *v = (struct model_variable){
        .ndim = ndim, .count = 1, .start = start, .spread = spread};
    snprintf(v->name, sizeof v->name, "%s", name);
    snprintf(v->stream, sizeof v->stream, "gradient/%s", v->name);
    for (int32_t i = 0; i < ndim; i++) {
        v->shape[i] = shape[i];
        v->count *= shape[i];
    }
    return model->nvariables++;
}

int model_add(struct model *model, const char *name, enum model_start start,
              double spread, int32_t ndim, const int64_t *shape)
{
    int added;

    assert(model->trained == model->nvariables);
    added = add_variable(model, name, start, spread, ndim, shape);
    model->trained = model->nvariables;
    return added;
}

int model_add_statistic(struct model *model, const char *name,
                        enum model_start start, double spread, int32_t ndim,
                        const int64_t *shape)
{
    return add_variable(model, name, start, spread, ndim, shape);
}

int model_statistics(const struct model *model)
{
    return model->nvariables - model->trained;
}

struct model *model_new(const struct model *model)
{
    struct model *fresh = malloc(sizeof *fresh);

    if (!fresh) {
        problem_set("no memory for the network");
        return NULL;
    }
    *fresh = *model;
    return fresh;
}

void model_free(struct model *model)
{
    if (!model)
        return;
    if (model->free_own)
        model->free_own(model->own);
    free(model->variables);
    free(model);
}

ipu_tensor model_losses(const struct model *model, ipu_graph *graph,
                        ipu_tensor y, const struct model_pass *pass)
{
    ipu_module(graph, "losses");
    return model->losses ? model->losses(model, graph, y, pass)
                         : ipu_softmax_cross_entropy(graph, y, pass->inputs[1]);
}

ipu_tensor model_forward(const struct model *model, ipu_graph *graph,
                         const ipu_tensor *variables,
                         const struct model_pass *pass)
{
    ipu_tensor x = pass->inputs[0];

    for (int i = 0; i < model->pieces; i++)
        x = model->piece(model, graph, i, variables, x, pass);
    return x;
}

int64_t model_parameters(const struct model *model)
{
    int64_t sum = 0;

    for (int i = 0; i < model->trained; i++)
        sum += model->variables[i].count;
    return sum;
}

int64_t model_tensor_count(const struct model_tensor *tensor)
{
    int64_t count = 1;

    for (int32_t i = 0; i < tensor->ndim; i++)
        count *= tensor->shape[i];
    return count;
}

void *model_memory(size_t bytes)
{
    size_t rounded = (bytes + 63) / 64 * 64 + 64;
    void *memory = aligned_alloc(64, rounded);

    if (memory)
        memset(memory, 0, rounded);
    return memory;
}

float **model_values(const struct model *model)
{
    float **values = calloc((size_t)model->nvariables + 1, sizeof *values);
    bool missing = !values;

    for (int i = 0; i < model->nvariables && !missing; i++) {
        values[i] =
            model_memory((size_t)model->variables[i].count * sizeof(float));
        missing = !values[i];
    }
    if (!missing)
        return values;
    model_values_free(model, values);
    problem_set("no memory for the network's weights");
    return NULL;
}

void model_values_free(const struct model *model, float **values)
{
    for (int i = 0; values && i < model->nvariables; i++)
        free(values[i]);
    free(values);
}

static double draw_truncated(struct random *r)
{
    double value = random_bell(r);

    while (value < -2 || value > 2)
        value = random_bell(r);
    return value;
}

static float draw_value(struct random *r, const struct model_variable *v)
{
    switch (v->start) {
    case MODEL_ONES: return 1;
    case MODEL_EVEN: return (float)random_range(r, -v->spread, v->spread);
    case MODEL_NORMAL: return (float)(v->spread * random_bell(r));
    case MODEL_TRUNCATED: return (float)(v->spread * draw_truncated(r));
    case MODEL_CONSTANT: return (float)v->spread;
    default: return 0;
    }
}

void model_draw(const struct model_variable *v, uint64_t seed, int number,
                float *values)
{
    struct random r;

    random_seed(&r, seed, (uint64_t)number);
    if (v->start == MODEL_ORTHOGONAL)
        orthogonal_draw(&r, v->count / v->shape[v->ndim - 1],
                        v->shape[v->ndim - 1], v->spread, values);
    else if (v->start == MODEL_FORGET)
        for (int64_t k = 0; k < v->count; k++)
            values[k] = k >= v->count / 4 && k < v->count / 2 ? 1 : 0;
    else
        for (int64_t k = 0; k < v->count; k++)
            values[k] = draw_value(&r, v);
}

void model_initialize(const struct model *model, uint64_t seed,
                      float *const *values)
{
    for (int i = 0; i < model->nvariables; i++)
        model_draw(&model->variables[i], seed, i, values[i]);
}
