/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizer.c - applies an optimiser, given by a description, to all variables
 * of a model.
 *
 * ipu_optimize adds the ops of a step in each run. ipu_accumulating_optimizer
 * accumulates the gradients, and adds the optimiser to an update region. Both
 * check all arguments first; later failures stay in the graph.
 */
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"
#include "graph/graph.h"
#include "ops/optimizers/optimizers.h"
#include "training/training.h"

static const ipu_update_options usual = {.size = sizeof usual};
static const ipu_accumulation_options sums = {.size = sizeof sums};

int ipu__check_optimizer(const ipu_graph *g, const ipu_optimizer *o,
                         int32_t count, const ipu_tensor *variables,
                         const ipu_tensor *gradients)
{
    if (!g)
        return ipu__fail(IPU_ERR_ARGUMENT, "optimizer: the graph is NULL");
    IPU_TRY(ipu__graph_status(g));
    if (!o)
        return ipu__fail(IPU_ERR_ARGUMENT, "optimizer: it is NULL");
    if (o->size < offsetof(ipu_optimizer, rms) ||
        (o->kind > IPU_OPTIMIZER_LAMB &&
         o->size < offsetof(ipu_optimizer, momentum)))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "optimizer: its size is %u, not %zu: set it",
                         (unsigned)o->size, sizeof *o);
    if (o->kind < IPU_OPTIMIZER_SGD || o->kind > IPU_OPTIMIZER_LARS)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "optimizer: the kind %d is none: 0 (SGD) to %d (LARS)",
                         (int)o->kind, IPU_OPTIMIZER_LARS);
    IPU_TRY(ipu__optimizer_check_momentum(o));
    if (count < 0 || (count > 0 && (!variables || !gradients)))
        return ipu__fail(IPU_ERR_ARGUMENT, "optimizer: %s",
                         count < 0 ? "the count is less than 0"
                                   : "an array is NULL");
    return IPU_OK;
}

int ipu__check_update_options(const ipu_update_options *o)
{
    if (o->size >= sizeof *o)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "optimizer: the update options' size is %u, not %zu: set "
                     "it",
                     (unsigned)o->size, sizeof *o);
}

static int apply(ipu_graph *g, const ipu_optimizer *o, ipu_tensor variable,
                 ipu_tensor gradient, ipu_tensor step)
{
    struct ipu__update all = {.variable = variable,
                              .value = variable,
                              .spared = ipu__optimizer_spares(g, variable)};

    IPU_TRY(ipu__optimize(g, o, &all, gradient, step));
    return ipu_assign(g, variable, all.result);
}

int ipu_optimize_variable(ipu_graph *graph, const ipu_optimizer *optimizer,
                          ipu_tensor variable, ipu_tensor gradient,
                          ipu_tensor step)
{
    int status =
        ipu__check_optimizer(graph, optimizer, 1, &variable, &gradient);

    if (status < 0)
        return graph ? ipu__graph_fail(graph, status) : status;
    return apply(graph, optimizer, variable, gradient, step);
}

static int apply_all(ipu_graph *g, const ipu_optimizer *o, int32_t count,
                     const ipu_tensor *variables, const ipu_tensor *gradients,
                     int32_t mini_batches,
                     const ipu_accumulation_options *accumulation)
{
    ipu_tensor step = {-1};

    if (ipu__optimizer_counts(o->kind))
        step = ipu_counter(g, o->step ? o->step : "optimizer/step");
    for (int32_t i = 0; i < count; i++) {
        ipu_tensor gradient = gradients[i];

        if (accumulation)
            gradient = ipu_accumulate(g, variables[i], gradient, mini_batches,
                                      accumulation);
        IPU_TRY(apply(g, o, variables[i], gradient, step));
    }
    return ipu__graph_status(g);
}

int ipu_optimize(ipu_graph *graph, const ipu_optimizer *optimizer,
                 int32_t nvariables, const ipu_tensor *variables,
                 const ipu_tensor *gradients)
{
    int status = ipu__check_optimizer(graph, optimizer, nvariables, variables,
                                      gradients);

    if (status < 0)
        return graph ? ipu__graph_fail(graph, status) : status;
    return apply_all(graph, optimizer, nvariables, variables, gradients, 1,
                     NULL);
}

/* Returns whether the condition has held in all mini-batches since the last
 * update, this one included. */
static ipu_tensor has_held(ipu_graph *g, int32_t mini_batches,
                           ipu_tensor condition)
{
    int32_t region = ipu__region_of(g, mini_batches);
    ipu_tensor all, zero, counter;
    char name[48];

    if (region < 0 || mini_batches == 1)
        return condition;
    counter = ipu__handle(g, g->regions[region].counter);
    snprintf(name, sizeof name, "update/%d/held", (int)mini_batches);
    all = ipu_variable(g, name, IPU_INT32, 0, NULL);
    ipu__variable_own(g, all, IPU__OWN_SUMS);
    zero = ipu_fill(g, IPU_INT32, 0, NULL, 0);
    condition = ipu_not_equal(g, condition, zero);
    condition = ipu_select(g, ipu_equal(g, counter, zero), condition,
                           ipu_multiply(g, all, condition));
    ipu_assign(g, all, condition);
    return condition;
}

int ipu__offload_weights(ipu_graph *g, int32_t count,
                         const ipu_tensor *variables,
                         const ipu_update_options *o)
{
    for (int32_t i = 0; i < count && o->offload_weights != IPU_OFFLOAD_AUTO;
         i++)
        IPU_TRY(ipu_offload_variable(g, variables[i], o->offload_weights));
    return IPU_OK;
}

int ipu__update_begin(ipu_graph *g, int32_t mini_batches,
                      const ipu_update_options *o)
{
    if (!o->conditional)
        return ipu_update_begin(g, mini_batches);
    return ipu_update_begin_if(g, mini_batches,
                               has_held(g, mini_batches, o->condition));
}

int ipu_accumulating_optimizer(ipu_graph *graph, const ipu_optimizer *optimizer,
                               int32_t nvariables, const ipu_tensor *variables,
                               const ipu_tensor *gradients,
                               int32_t mini_batches,
                               const ipu_update_options *options)
{
    const ipu_update_options *o = options ? options : &usual;
    int status = ipu__check_optimizer(graph, optimizer, nvariables, variables,
                                      gradients);

    if (status >= 0)
        status = ipu__check_update_options(o);
    if (status < 0)
        return graph ? ipu__graph_fail(graph, status) : status;
    IPU_TRY(ipu_update_offload(graph, mini_batches, o->offload,
                               o->minimum_remote_bytes));
    IPU_TRY(ipu__offload_weights(graph, nvariables, variables, o));
    IPU_TRY(ipu__update_begin(graph, mini_batches, o));
    status = apply_all(graph, optimizer, nvariables, variables, gradients,
                       mini_batches,
                       o->accumulation.size ? &o->accumulation : &sums);
    graph->region = IPU__NONE;
    return status;
}

int ipu_accumulating_optimizer_v1(
    ipu_graph *graph, const ipu_optimizer *optimizer, int32_t nvariables,
    const ipu_tensor *variables, const ipu_tensor *gradients,
    int32_t mini_batches, const ipu_update_options *options)
{
    int status = ipu__check_optimizer(graph, optimizer, nvariables, variables,
                                      gradients);

    if (status >= 0 && optimizer->kind != IPU_OPTIMIZER_SGD)
        status = ipu__fail(IPU_ERR_ARGUMENT,
                           "optimizer: accumulation of the first version "
                           "takes SGD and momentum only: others need "
                           "ipu_accumulating_optimizer");
    if (status < 0)
        return graph ? ipu__graph_fail(graph, status) : status;
    if (mini_batches == 1)
        return ipu_optimize(graph, optimizer, nvariables, variables, gradients);
    return ipu_accumulating_optimizer(graph, optimizer, nvariables, variables,
                                      gradients, mini_batches, options);
}
