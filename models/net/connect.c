/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connect.c - has a strategy of libhvd update the variables of a network that a
 * program builds and runs by itself.
 *
 *     engine, one run                          strategy
 *     backward pass computes gradient v
 *     host call "gradient/v"         ------>   hvd_strategy_ready(v)
 *     ... backward pass continues              averaged meanwhile
 *     the run ends                             hvd_strategy_step: updates v,
 *                                              where the engine has it
 *
 * Variables are added backwards, about as the backward pass completes their
 * gradients, so that neighbours are reduced together.
 */
#include "model/model.h"
#include "net/net.h"
#include "output/device_problem.h"
#include "output/problem.h"

#include <hvd_strategy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the name of the stream of a gradient. */
static const char *stream_of(const struct net_variable *v, char *name,
                             size_t size)
{
    snprintf(name, size, "gradient/%s", v->name);
    return name;
}

static size_t bytes_of(const hvd_net *net, int i)
{
    return (size_t)net->told[i].count * sizeof(float);
}

/* ---------------------------------------------------------------- gradients */

/* Stands for the strategy, which is not known yet. */
static int refuse_call(void *context, const char *name, void *data,
                       int64_t count)
{
    (void)context, (void)data, (void)count;
    return problem_set("%s: the network is not connected to a strategy: call "
                       "hvd_net_connect",
                       name);
}

static int build_calls(hvd_net *net, ipu_tensor loss, ipu_tensor *tensors)
{
    ipu_tensor *gradients = tensors + net->nvariables;
    int32_t count = 0;
    int status;

    for (int i = net->nvariables - 1; i >= 0; i--)
        if (net->variables[i].trained && net->made[i].id >= 0)
            tensors[count++] = net->made[i];
    status = ipu_gradients(net->graph, loss, count, tensors, gradients);
    for (int i = net->nvariables - 1, k = 0; i >= 0 && status >= 0; i--) {
        char name[72];

        if (net->variables[i].trained && net->made[i].id >= 0)
            status = ipu_host_call(
                net->graph, stream_of(&net->variables[i], name, sizeof name),
                gradients[k++], refuse_call, NULL);
    }
    return device_status(status);
}

int hvd_net_gradients(hvd_net *net, ipu_tensor loss)
{
    ipu_tensor *tensors;
    int status;

    if (!net->graph || net->mode != HVD_MODE_TRAIN)
        return problem_set("hvd_net_gradients: call it while a graph for "
                           "training is being built");
    if (net->status < 0)
        return problem_set("network: %s", net->text);
    tensors = calloc(2 * (size_t)net->nvariables + 1, sizeof *tensors);
    if (!tensors)
        return problem_set("no memory for the network's gradients");
    status = build_calls(net, loss, tensors);
    free(tensors);
    return status;
}

/* ------------------------------------------------------------------ places */

static int make_place(hvd_net *net, int i)
{
    struct net_place *p = &net->places[i];

    net->nplaces = i + 1;
    *p = (struct net_place){.value = model_memory(bytes_of(net, i))};
    if (!net->variables[i].trained)
        p->mean = model_memory(bytes_of(net, i));
    if (!p->value || (!net->variables[i].trained && !p->mean))
        return problem_set("no memory for variable '%s'",
                           net->variables[i].name);
    net->told[i].value = p->value;
    net->told[i].mean = p->mean;
    hvd_net_draw(net, i, p->value);
    if (p->mean)
        memcpy(p->mean, p->value, bytes_of(net, i));
    return 0;
}

/* Gives all variables that have none a place, with their first values. */
static int make_places(hvd_net *net)
{
    const size_t count = (size_t)net->nvariables + 1;
    void *places = realloc(net->places, count * sizeof *net->places);
    int status = 0;

    if (!places)
        return problem_set("no memory for the network's variables");
    net->places = places;
    for (int i = net->nplaces; i < net->nvariables && status == 0; i++)
        status = make_place(net, i);
    return status;
}

/* -------------------------------------------------------------- a strategy */

static int add_variable(hvd_net *net, int i, struct hvd_strategy *strategy)
{
    const hvd_variable *v = &net->told[i];
    struct net_place *p = &net->places[i];

    p->strategy = strategy;
    p->number =
        v->trained
            ? hvd_strategy_add(strategy, v->name, v->value, v->ndim, v->shape)
            : hvd_strategy_add_statistic(strategy, v->name, v->value, v->mean,
                                         v->ndim, v->shape);
    return p->number < 0 ? p->number : 0;
}

static int give_gradient(void *context, const char *name, void *data,
                         int64_t count)
{
    const struct net_place *p = context;

    (void)name, (void)data, (void)count;
    return hvd_strategy_ready(p->strategy, p->number);
}

/* Has an engine give a gradient to the strategy, in the strategy's memory. */
static int connect_gradient(hvd_net *net, int i, ipu_engine *engine)
{
    struct net_place *p = &net->places[i];
    char name[72];
    int status;

    stream_of(&net->variables[i], name, sizeof name);
    status = ipu_engine_connect(engine, name,
                                hvd_strategy_gradient(p->strategy, p->number),
                                bytes_of(net, i));
    if (status >= 0)
        status = ipu_engine_connect_call(engine, name, give_gradient, p);
    return device_status(status);
}

/* Has an engine work on a variable, if its program has it. */
static int place_variable(hvd_net *net, int i, bool trains, ipu_engine *engine)
{
    const struct net_place *p = &net->places[i];
    int status = ipu_engine_place(engine, net->variables[i].name,
                                  trains || !p->mean ? p->value : p->mean,
                                  bytes_of(net, i));

    return status == IPU_ERR_NAME && !trains ? 0 : device_status(status);
}

static int connect_engine(hvd_net *net, bool trains, ipu_engine *engine)
{
    int status = 0;

    for (int i = 0; i < net->nvariables && status == 0; i++) {
        status = place_variable(net, i, trains, engine);
        if (status == 0 && trains && net->variables[i].trained)
            status = connect_gradient(net, i, engine);
    }
    return status;
}

int hvd_net_connect(hvd_net *net, struct hvd_strategy *strategy,
                    ipu_engine *engine)
{
    int status;

    if (!net->told || (!strategy && !engine))
        return problem_set("hvd_net_connect: there must be a network that has "
                           "been built, and a strategy or an engine");
    status = make_places(net);
    for (int i = net->nvariables - 1; strategy && i >= 0 && status == 0; i--)
        status = add_variable(net, i, strategy);
    if (status == 0 && strategy)
        status = hvd_strategy_start(strategy);
    return status >= 0 && engine ? connect_engine(net, strategy != NULL, engine)
                                 : status;
}
