/* SPDX-License-Identifier: Apache-2.0 */
/* variables.c - the variables that building functions ask for. */
#include "net/net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A truncated normal distribution of deviation 1 has that deviation left. */
static const double truncated = 0.87962566103423978;

enum model_start net_start(const hvd_initializer *initializer, int32_t ndim,
                           const int64_t *shape, double *spread)
{
    double out = ndim > 0 ? (double)shape[ndim - 1] : 1;
    double in = ndim > 1 ? (double)shape[ndim - 2] : out;

    for (int32_t i = 0; i < ndim - 2; i++) {
        in *= (double)shape[i];
        out *= (double)shape[i];
    }
    *spread = initializer->value;
    switch (initializer->kind) {
    case HVD_INIT_ONES: return MODEL_ONES;
    case HVD_INIT_CONSTANT: return MODEL_CONSTANT;
    case HVD_INIT_UNIFORM: return MODEL_EVEN;
    case HVD_INIT_NORMAL: return MODEL_NORMAL;
    case HVD_INIT_TRUNCATED_NORMAL: return MODEL_TRUNCATED;
    case HVD_INIT_GLOROT_UNIFORM:
        *spread = sqrt(6 / (in + out));
        return MODEL_EVEN;
    case HVD_INIT_GLOROT_NORMAL:
        *spread = sqrt(2 / (in + out)) / truncated;
        return MODEL_TRUNCATED;
    case HVD_INIT_HE_UNIFORM: *spread = sqrt(6 / in); return MODEL_EVEN;
    case HVD_INIT_HE_NORMAL:
        *spread = sqrt(2 / in) / truncated;
        return MODEL_TRUNCATED;
    case HVD_INIT_LECUN_UNIFORM: *spread = sqrt(3 / in); return MODEL_EVEN;
    case HVD_INIT_LECUN_NORMAL:
        *spread = sqrt(1 / in) / truncated;
        return MODEL_TRUNCATED;
    case HVD_INIT_ORTHOGONAL: return MODEL_ORTHOGONAL;
    case HVD_INIT_FORGET_GATE: return MODEL_FORGET;
    default: return MODEL_ZEROS;
    }
}

static int find(const hvd_net *net, const char *name)
{
    int i = 0;

    while (i < net->nvariables && strcmp(net->variables[i].name, name) != 0)
        i++;
    return i;
}

static int reserve(hvd_net *net)
{
    int capacity = net->capacity ? 2 * net->capacity : 16;
    struct net_variable *variables;
    ipu_tensor *made;

    if (net->nvariables < net->capacity)
        return 0;
    variables = realloc(net->variables, (size_t)capacity * sizeof *variables);
    if (variables)
        net->variables = variables;
    made = realloc(net->made, (size_t)capacity * sizeof *made);
    if (made)
        net->made = made;
    if (!variables || !made)
        return -1;
    net->capacity = capacity;
    return 0;
}

static bool is_possible(const struct net_variable *v, int32_t ndim,
                        const int64_t *shape)
{
    bool possible = ndim >= 0 && ndim <= 4;

    for (int32_t i = 0; i < ndim && possible; i++)
        possible = shape[i] > 0;
    return possible && v->initializer.kind >= HVD_INIT_ZEROS &&
           v->initializer.kind <= HVD_INIT_FORGET_GATE &&
           (v->initializer.kind != HVD_INIT_ORTHOGONAL || ndim > 1);
}

/* Adds a variable to the list. */
static int add(hvd_net *net, const char *name, hvd_initializer initializer,
               bool trained, int32_t ndim, const int64_t *shape)
{
    struct net_variable v = {.initializer = initializer,
                             .trained = trained,
                             .ndim = ndim,
                             .number = -1};

    if (strlen(name) == 0 || strlen(name) >= sizeof v.name) {
        net_fail(net, "variable '%s': a name has 1 to %zu bytes", name,
                 sizeof v.name - 1);
        return -1;
    }
    if (!is_possible(&v, ndim, shape)) {
        net_fail(net,
                 "variable '%s': a variable has up to 4 dimensions of 1 or "
                 "more, and first values of a kind that there is (orthogonal "
                 "ones need 2 dimensions)",
                 name);
        return -1;
    }
    if (net->mode != HVD_MODE_TRAIN || net->model) {
        net_fail(net,
                 "variable '%s' was not asked for when the network was built "
                 "for training",
                 name);
        return -1;
    }
    if (reserve(net) < 0) {
        net_fail(net, "no memory for the variables");
        return -1;
    }
    strcpy(v.name, name);
    memcpy(v.shape, shape, (size_t)ndim * sizeof *shape);
    net->made[net->nvariables] = (ipu_tensor){-1};
    net->variables[net->nvariables] = v;
    return net->nvariables++;
}

static bool is_same(const struct net_variable *v, bool trained, int32_t ndim,
                    const int64_t *shape)
{
    return v->trained == trained && v->ndim == ndim &&
           memcmp(v->shape, shape, (size_t)ndim * sizeof *shape) == 0;
}

static ipu_tensor take(hvd_net *net, const char *name,
                       hvd_initializer initializer, bool trained, int32_t ndim,
                       const int64_t *shape)
{
    int i = find(net, name);
    struct net_variable *v;

    if (net->status < 0)
        return (ipu_tensor){-1};
    if (i == net->nvariables)
        i = add(net, name, initializer, trained, ndim, shape);
    if (i < 0)
        return (ipu_tensor){-1};
    v = &net->variables[i];
    if (!is_same(v, trained, ndim, shape))
        return net_fail(net,
                        "variable '%s' was asked for twice, with different "
                        "shapes: layers need names of their own",
                        name);
    if (net->model && !net->is_spare)
        return net->given[v->number];
    if (!net->model && net->mode == HVD_MODE_TRAIN)
        v->pieces[net->piece] = true;
    if (net->made[i].id < 0)
        net->made[i] = ipu_variable(net->graph, name, IPU_FLOAT32, ndim, shape);
    return net->made[i];
}

ipu_tensor hvd_net_variable(hvd_net *net, const char *name,
                            hvd_initializer initializer, int32_t ndim,
                            const int64_t *shape)
{
    return take(net, name, initializer, true, ndim, shape);
}

ipu_tensor hvd_net_statistic(hvd_net *net, const char *name,
                             hvd_initializer initializer, int32_t ndim,
                             const int64_t *shape)
{
    return take(net, name, initializer, false, ndim, shape);
}
