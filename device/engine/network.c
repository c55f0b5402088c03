/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c - hands collectives of a run to the functions that an engine has
 * been connected to.
 *
 * The engine of a program has the network; those of its loops share it. A
 * program of one process does not use it: each op passes its tensor on.
 */
#include "engine/network.h"

#include <string.h>

#include "base/error.h"
#include "engine/state.h"
#include "ops/transfers/network.h"

/* Calls found for each collective of a program; stops if that fails. */
typedef int found_fn(void *context, const ipu_executable *executable,
                     const struct ipu__step *step);

static int for_each(const ipu_executable *e, found_fn *found, void *context)
{
    for (int32_t i = 0; e && i < e->nsteps; i++)
        if (e->steps[i].kind == IPU__COMPUTE &&
            e->steps[i].op->network == IPU__DEPARTS)
            IPU_TRY(found(context, e, &e->steps[i]));
    for (int32_t i = 0; e && i < e->nloops; i++) {
        IPU_TRY(for_each(e->loops[i].body.program, found, context));
        IPU_TRY(for_each(e->loops[i].condition.program, found, context));
    }
    return IPU_OK;
}

static int refuse_several(void *context, const ipu_executable *e,
                          const struct ipu__step *step)
{
    const int32_t processes = ipu__network_processes(&step->attributes);

    (void)context;
    if (processes == 1)
        return IPU_OK;
    return ipu__fail(IPU_ERR_STATE,
                     "collective '%s' is of %d processes, and the engine has "
                     "no network: give it one first, by ipu_engine_network or "
                     "ipu_replicas_network; pipelines have none",
                     e->values[step->output].name, (int)processes);
}

static int refuse_other(void *context, const ipu_executable *e,
                        const struct ipu__step *step)
{
    const int32_t processes = ipu__network_processes(&step->attributes);
    const int32_t network = *(const int32_t *)context;

    if (processes == network)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "collective '%s' is of %d processes, and the network has "
                     "%d: compile the program for this network",
                     e->values[step->output].name, (int)processes,
                     (int)network);
}

int ipu__network_check_run(const struct ipu__network *network,
                           const ipu_executable *executable)
{
    if (network && network->processes > 0)
        return IPU_OK;
    return for_each(executable, refuse_several, NULL);
}

static int check_functions(const ipu_network_functions *f, int32_t processes)
{
    IPU_TRY(ipu__check_size("network functions", f->size, sizeof *f));
    if (!f->start || !f->finish || !f->abandon)
        return ipu__fail(IPU_ERR_ARGUMENT, "engine's network: %s is NULL",
                         !f->start    ? "start"
                         : !f->finish ? "finish"
                                      : "abandon");
    if (processes < 1)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "engine's network: %d processes: 1 or more",
                         (int)processes);
    return IPU_OK;
}

/* The engines of loops borrow the network. */
static void share(ipu_engine *engine, struct ipu__network *network)
{
    if (!engine)
        return;
    engine->network = network;
    for (int32_t i = 0; i < engine->executable->nloops; i++) {
        share(engine->loops[i].body, network);
        share(engine->loops[i].condition, network);
    }
}

int ipu_engine_network(ipu_engine *engine,
                       const ipu_network_functions *functions, void *context,
                       int32_t processes)
{
    if (!engine)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "engine's network: the engine is NULL");
    if (engine->running)
        return ipu__fail(IPU_ERR_STATE,
                         "the engine is running: a host call cannot change "
                         "its network");
    if (functions) {
        IPU_TRY(check_functions(functions, processes));
        IPU_TRY(for_each(engine->executable, refuse_other, &processes));
    }
    engine->own_network = (struct ipu__network){
        .context = context, .processes = functions ? processes : 0};
    if (functions)
        engine->own_network.functions = *functions;
    share(engine, &engine->own_network);
    return IPU_OK;
}

static int report(const struct ipu__network *n, const struct ipu__call *call,
                  const ipu_collective *c, int status)
{
    const char *text = n->functions.text ? n->functions.text(n->context) : NULL;

    *call->callback_status = status;
    return ipu__fail(
        IPU_ERR_CALLBACK, "collective '%s': %s returned %d%s%s", c->name,
        call->op->network == IPU__DEPARTS ? "its start" : "its end", status,
        text ? ": " : "", text ? text : "");
}

static int start(struct ipu__network *n, const struct ipu__call *call,
                 const ipu_collective *c)
{
    int status;

    IPU_TRY(call->op->run(call)); /* its place, if it is another */
    status = n->functions.start(n->context, c, call->output.data);
    if (status < 0)
        return report(n, call, c, status);
    n->under_way++;
    return IPU_OK;
}

static int finish(struct ipu__network *n, const struct ipu__call *call,
                  const ipu_collective *c)
{
    const bool gathers = c->kind == IPU_COLLECTIVE_GATHER;
    int status = n->functions.finish(
        n->context, c, gathers ? call->output.data : call->inputs[0].data);

    n->under_way--;
    if (status < 0)
        return report(n, call, c, status);
    return gathers ? IPU_OK : call->op->run(call);
}

int ipu__network_run(struct ipu__network *network, const struct ipu__call *call)
{
    const ipu_collective collective = ipu__network_collective(call);

    if (!network || network->processes <= 1)
        return call->op->run(call);
    return call->op->network == IPU__DEPARTS
               ? start(network, call, &collective)
               : finish(network, call, &collective);
}

void ipu__network_abandon(struct ipu__network *network)
{
    if (network && network->under_way > 0)
        network->functions.abandon(network->context);
    if (network)
        network->under_way = 0;
}
