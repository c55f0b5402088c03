/* SPDX-License-Identifier: Apache-2.0 */
/* own.c - networks that a program builds on graphs of its own: without a model,
 * a network takes variables from the graph that is being built. */
#include "net/net.h"
#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

int hvd_net_new(uint64_t seed, hvd_net **net)
{
    hvd_net *fresh = calloc(1, sizeof *fresh);

    if (!fresh)
        return problem_set("no memory for the network");
    fresh->pass = &fresh->own;
    fresh->seed = fresh->own.seed = seed;
    *net = fresh;
    return 0;
}

static void free_places(hvd_net *net)
{
    for (int i = 0; i < net->nplaces; i++) {
        free(net->places[i].value);
        free(net->places[i].mean);
    }
    free(net->places);
}

void hvd_net_free(hvd_net *net)
{
    if (!net)
        return;
    free(net->variables);
    free(net->made);
    free(net->told);
    free_places(net);
    free(net);
}

int hvd_net_begin(hvd_net *net, ipu_graph *graph, hvd_mode mode)
{
    if (!graph || mode < HVD_MODE_TRAIN || mode > HVD_MODE_PREDICT)
        return problem_set("hvd_net_begin: there must be a graph, and a mode "
                           "of hvd_mode, not %d",
                           (int)mode);
    net->graph = graph;
    net->mode = mode;
    net->own.training = mode == HVD_MODE_TRAIN;
    net->own.predicts = mode == HVD_MODE_PREDICT;
    net->own.step.id = -1;
    net->drops = 0;
    net->status = 0;
    for (int i = 0; i < net->nvariables; i++)
        net->made[i].id = -1;
    return 0;
}

static int64_t count_of(const struct net_variable *v)
{
    int64_t count = 1;

    for (int32_t i = 0; i < v->ndim; i++)
        count *= v->shape[i];
    return count;
}

int32_t hvd_net_end(hvd_net *net, const hvd_variable **variables)
{
    hvd_variable *told;

    if (net->status < 0)
        return problem_set("network: %s", net->text);
    told = realloc(net->told, ((size_t)net->nvariables + 1) * sizeof *told);
    if (!told)
        return problem_set("no memory for the network's variables");
    for (int i = 0; i < net->nvariables; i++) {
        const struct net_variable *v = &net->variables[i];

        told[i] = (hvd_variable){.name = v->name,
                                 .trained = v->trained,
                                 .ndim = v->ndim,
                                 .shape = v->shape,
                                 .count = count_of(v),
                                 .tensor = net->made[i]};
        if (i < net->nplaces) {
            told[i].value = net->places[i].value;
            told[i].mean = net->places[i].mean;
        }
    }
    net->told = told;
    *variables = told;
    return net->nvariables;
}

int hvd_net_draw(const hvd_net *net, int32_t i, float *values)
{
    struct model_variable like = {.ndim = 0};
    const struct net_variable *v;

    if (i < 0 || i >= net->nvariables)
        return problem_set("hvd_net_draw: there is no variable %d, but %d", i,
                           net->nvariables);
    v = &net->variables[i];
    like.ndim = v->ndim;
    like.count = count_of(v);
    memcpy(like.shape, v->shape, sizeof v->shape);
    like.start = net_start(&v->initializer, v->ndim, v->shape, &like.spread);
    model_draw(&like, net->seed, i, values);
    return 0;
}
