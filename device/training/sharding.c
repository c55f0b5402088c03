/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharding.c - replicas that share the optimiser's state.
 *
 * R replicas have the same weights; without sharding each would keep the same
 * state and make the same update. Instead each keeps one R-th of the state: a
 * variable of n elements is padded with zeros to R rows of ceil(n / R), and
 * replica r has row r.
 *
 *     gradients        summed over the replicas        [R, ceil(n / R)]
 *       its row        the optimiser, on this part     [ceil(n / R)]
 *     new weights      own row, zeros elsewhere, summed: all rows
 *
 * The two sums are cross-replica ops, or functions of the caller: over
 * processes, for example. On chips they are a reduce-scatter and an all-gather,
 * each half of a ring; ipu_replicas_stats and ipu_sharding_cost count them so.
 * Adding zeros changes no bit but the sign of a zero, and an optimiser works
 * element by element: the weights equal those of replicas that keep the whole
 * state. LAMB and LARS need lengths, which are summed over the parts: they are
 * equal up to rounding.
 *
 * Small variables are not divided: if a row would have less than
 * minimum_remote_bytes, all replicas keep and update the variable.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "graph/graph.h"
#include "ops/op.h"
#include "ops/optimizers/optimizers.h"
#include "target/cost.h"
#include "target/target.h"
#include "training/training.h"

enum { MOST_REPLICAS = 4096, USUAL_BYTES = 128 };

int64_t ipu_shard_elements(int64_t elements, int32_t replicas)
{
    if (elements < 0 || replicas < 1)
        return 0;
    return elements / replicas + (elements % replicas != 0);
}

int ipu_sharding_cost_get(const ipu_system *system, int32_t replicas,
                          int32_t apart, int64_t elements, ipu_dtype dtype,
                          ipu_sharding_cost *info)
{
    int64_t rows, sent = 0, cycles;
    uint32_t size;

    if (!system || !info)
        return ipu__fail(IPU_ERR_ARGUMENT, "shard: %s is NULL",
                         system ? "the place for the info" : "the system");
    IPU_TRY(ipu__check_size("shard info", info->size, sizeof *info));
    if (replicas < 1 || replicas > MOST_REPLICAS || apart < 1 || elements < 0 ||
        elements > INT64_C(1) << 40 || !ipu__dtype_name(dtype))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "shard: %" PRId64 " elements of dtype %d over %d "
                         "replicas of %d IPUs",
                         elements, (int)dtype, (int)replicas, (int)apart);
    rows = ipu_shard_elements(elements, replicas);
    IPU_TRY(ipu__ring_cycles(system, replicas, apart,
                             rows * replicas * (int64_t)ipu__dtype_bytes(dtype),
                             &sent, &cycles));
    size = info->size;
    *info = (ipu_sharding_cost){
        .elements = rows,
        .padding = rows * replicas - elements,
        .bytes = rows * (int64_t)ipu__dtype_bytes(dtype),
        .sent_bytes = sent / 2,
        .scatter_cycles = cycles / 2,
        .gather_cycles = cycles - cycles / 2,
    };
    info->size = size;
    return IPU_OK;
}

/* ------------------------------------------------------------ rows of parts */

struct sharding {
    ipu_graph *graph;
    const ipu_optimizer *optimizer;
    const ipu_replication *replication;
    int64_t least; /* bytes of a row */
    ipu_tensor step;
};

static const struct ipu__shape *shape_of(const ipu_graph *g, ipu_tensor x)
{
    return &g->tensors[ipu__index(g, x)].shape;
}

/* Returns the rows: [R, ceil(n / R)]. */
static ipu_tensor rows_of(const struct sharding *s, ipu_tensor x)
{
    const int32_t replicas = s->replication->replicas;
    const int64_t zero = 0, all = -1;
    int64_t n, rows, after;

    if (s->graph->status < 0)
        return (ipu_tensor){-1};
    n = ipu__shape_count(shape_of(s->graph, x));
    rows = ipu_shard_elements(n, replicas);
    after = rows * replicas - n;
    x = ipu_reshape(s->graph, x, 1, &all);
    if (after > 0)
        x = ipu_pad(s->graph, x, &zero, &after, 0);
    return ipu_reshape(s->graph, x, 2, (const int64_t[]){replicas, rows});
}

/* Returns this replica's row. */
static ipu_tensor own_row(const struct sharding *s, ipu_tensor rows)
{
    return ipu_gather(s->graph, rows, s->replication->index, 0);
}

static ipu_tensor over_replicas(ipu_graph *graph, void *context,
                                const char *name, ipu_tensor x)
{
    (void)context, (void)name;
    return ipu_cross_replica_sum(graph, x, 0);
}

/* Sums over the replicas, by the caller's function if there is one. kind: the
 * part of the sum that is needed. */
static ipu_tensor sum_of(const struct sharding *s, ipu_tensor variable,
                         const char *what, enum ipu__collective kind,
                         ipu_tensor x)
{
    char name[256];

    if (s->graph->status < 0)
        return (ipu_tensor){-1};
    if (s->replication->sum == over_replicas)
        return ipu__cross_replica_sum_as(s->graph, x, kind);
    snprintf(name, sizeof name, "%.200s/%s",
             s->graph->tensors[ipu__index(s->graph, variable)].name, what);
    return s->replication->sum(s->graph, s->replication->context, name, x);
}

/* Returns the sum of all replicas' rows, each with zeros elsewhere, in the
 * variable's shape. */
static ipu_tensor gathered(const struct sharding *s, ipu_tensor variable,
                           ipu_tensor row)
{
    const struct ipu__shape shape = *shape_of(s->graph, variable);
    const int64_t n = ipu__shape_count(&shape), zero = 0, all = -1;
    const int32_t replicas = s->replication->replicas;
    const int64_t extents[] = {replicas, ipu_shard_elements(n, replicas)};
    ipu_tensor x = ipu_fill(s->graph, shape.dtype, 2, extents, 0);

    x = ipu_scatter_add(s->graph, x, s->replication->index, row, 0);
    x = sum_of(s, variable, "gathered", IPU__ALL_GATHER, x);
    x = ipu_reshape(s->graph, x, 1, &all);
    if (n < extents[0] * extents[1])
        x = ipu_slice(s->graph, x, &zero, &n);
    return ipu_reshape(s->graph, x, shape.ndim, shape.extents);
}

/* ------------------------------------------------------------ the optimiser */

static ipu_tensor added_up(const struct sharding *s, ipu_tensor variable,
                           enum ipu__collective kind, ipu_tensor gradient)
{
    gradient = sum_of(s, variable, "gradient", kind, gradient);
    if (s->replication->mean)
        gradient =
            ipu_scale(s->graph, gradient, 1.0 / s->replication->replicas, 0);
    return gradient;
}

static bool is_worth_it(const struct sharding *s, ipu_tensor variable)
{
    const struct ipu__shape *shape = shape_of(s->graph, variable);
    int64_t bytes = (int64_t)ipu__shape_bytes(shape);

    return s->replication->replicas > 1 &&
           bytes >= s->least * s->replication->replicas;
}

static int update_variable(const struct sharding *s, ipu_tensor variable,
                           ipu_tensor gradient)
{
    struct ipu__update part = {.variable = variable,
                               .value = variable,
                               .spared =
                                   ipu__optimizer_spares(s->graph, variable)};

    IPU_TRY(s->graph->status);
    if (!is_worth_it(s, variable)) {
        gradient = added_up(s, variable, IPU__ALL_REDUCE, gradient);
        IPU_TRY(
            ipu__optimize(s->graph, s->optimizer, &part, gradient, s->step));
        return ipu_assign(s->graph, variable, part.result);
    }
    gradient = added_up(s, variable, IPU__REDUCE_SCATTER, rows_of(s, gradient));
    part.value = own_row(s, rows_of(s, variable));
    part.sum = s->replication->sum;
    part.context = s->replication->context;
    IPU_TRY(ipu__optimize(s->graph, s->optimizer, &part, own_row(s, gradient),
                          s->step));
    return ipu_assign(s->graph, variable, gathered(s, variable, part.result));
}

static int check_options(const ipu_update_options *options,
                         const ipu_replication *r)
{
    if (!r)
        return ipu__fail(IPU_ERR_ARGUMENT, "shard: the replication is NULL");
    if (r->size < sizeof *r)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "shard: the replication's size is %u, not %zu: set it",
                         (unsigned)r->size, sizeof *r);
    if (r->replicas < 1 || r->replicas > MOST_REPLICAS)
        return ipu__fail(IPU_ERR_ARGUMENT, "shard: over %d replicas; 1 to %d",
                         (int)r->replicas, MOST_REPLICAS);
    IPU_TRY(ipu__check_update_options(options));
    if (options->offload == IPU_OFFLOAD_OFF)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "shard: an optimiser's state that replicas share must "
                         "be offloaded: IPU_OFFLOAD_ON, or AUTO");
    return IPU_OK;
}

static int update_all(struct sharding *s, int32_t nvariables,
                      const ipu_tensor *variables, const ipu_tensor *gradients,
                      int32_t mini_batches, const ipu_update_options *o)
{
    static const ipu_accumulation_options sums = {.size = sizeof sums};
    const ipu_optimizer *of = s->optimizer;

    if (ipu__optimizer_counts(of->kind))
        s->step = ipu_counter(s->graph, of->step ? of->step : "optimizer/step");
    for (int32_t i = 0; i < nvariables; i++) {
        ipu_tensor gradient =
            ipu_accumulate(s->graph, variables[i], gradients[i], mini_batches,
                           o->accumulation.size ? &o->accumulation : &sums);

        IPU_TRY(update_variable(s, variables[i], gradient));
    }
    return ipu__graph_status(s->graph);
}

int ipu_sharded_optimizer(ipu_graph *graph, const ipu_optimizer *optimizer,
                          int32_t nvariables, const ipu_tensor *variables,
                          const ipu_tensor *gradients, int32_t mini_batches,
                          const ipu_update_options *options,
                          const ipu_replication *replication)
{
    static const ipu_update_options usual = {.size = sizeof usual};
    const ipu_update_options *o = options ? options : &usual;
    struct sharding s = {.graph = graph,
                         .optimizer = optimizer,
                         .least = o->minimum_remote_bytes,
                         .step = {-1}};
    int status = ipu__check_optimizer(graph, optimizer, nvariables, variables,
                                      gradients);
    ipu_replication over;

    if (status >= 0)
        status = check_options(o, replication);
    if (status < 0)
        return graph ? ipu__graph_fail(graph, status) : status;
    if (s.least == 0)
        s.least = USUAL_BYTES;
    over = *replication;
    if (!over.sum) {
        over.sum = over_replicas;
        over.index = ipu_replica_index(graph);
    }
    s.replication = &over;
    IPU_TRY(ipu_update_offload(graph, mini_batches, o->offload,
                               o->minimum_remote_bytes));
    IPU_TRY(ipu__offload_weights(graph, nvariables, variables, o));
    IPU_TRY(ipu__update_begin(graph, mini_batches, o));
    status = update_all(&s, nvariables, variables, gradients, mini_batches, o);
    graph->region = IPU__NONE;
    return status;
}
