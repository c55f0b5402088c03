/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - owns the variables of a model and the memory of their values. The
 * program makes a model once, adds its variables, and does not change it any
 * more. First values depend on the seed and on the number of the variable
 * alone.
 */
#include "model/model.h"

#include "data/random.h"
#include "output/problem.h"

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

int model_add(struct model *model, const char *name, enum model_start start,
              double spread, int32_t ndim, const int64_t *shape)
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

double model_glorot(int64_t fan_in, int64_t fan_out)
{
    return sqrt(6 / (double)(fan_in + fan_out));
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
    if (model)
        free(model->variables);
    free(model);
}

ipu_tensor model_forward(const struct model *model, ipu_graph *graph,
                         const ipu_tensor *variables, ipu_tensor input,
                         const struct model_pass *pass)
{
    ipu_tensor x = input;

    for (int i = 0; i < model->pieces; i++)
        x = model->piece(model, graph, i, variables, x, pass);
    return x;
}

int64_t model_parameters(const struct model *model)
{
    int64_t sum = 0;

    for (int i = 0; i < model->nvariables; i++)
        sum += model->variables[i].count;
    return sum;
}

int64_t model_input_count(const struct model *model)
{
    int64_t count = 1;

    for (int32_t i = 0; i < model->input_ndim; i++)
        count *= model->input_shape[i];
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

static float draw_value(struct random *r, const struct model_variable *v)
{
    switch (v->start) {
    case MODEL_ONES: return 1;
    case MODEL_EVEN: return (float)random_range(r, -v->spread, v->spread);
    case MODEL_NORMAL: return (float)(v->spread * random_bell(r));
    default: return 0;
    }
}

void model_initialize(const struct model *model, uint64_t seed,
                      float *const *values)
{
    for (int i = 0; i < model->nvariables; i++) {
        const struct model_variable *v = &model->variables[i];
        struct random r;

        random_seed(&r, seed, (uint64_t)i);
        for (int64_t k = 0; k < v->count; k++)
            values[i][k] = draw_value(&r, v);
    }
}
