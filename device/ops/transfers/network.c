/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c - collectives on the device's network.
 *
 * Each is two nodes, so that the steps between them overlap it:
 *
 *     network_start    takes x over, and sends it off
 *     network_finish   has the result of a reduction or broadcast, in the
 *                      same place
 *     network_gather   has the result of a gather, which is larger
 *
 * The engine calls the network at both; the rows below only pass tensors on,
 * as for a network of one. A collective has the name of its start's tensor.
 *
 * The derivative of a sum over processes, which goes to all of them, is summed
 * over all of them in turn, and that of a mean is averaged: by a collective of
 * the same kind, "NAME/gradient".
 */
#include "ops/transfers/network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/copy.h"
#include "ops/transfers/recipe.h"
#include "target/network.h"

/* Sets of dtypes have a bit for each dtype. */
#define BIT(dtype) (1u << (dtype))

/* The dtypes of the tensors that a collective of each kind can send. */
static const struct rule {
    const char *name;
    unsigned plain; /* without a recipe */
    unsigned asked; /* also, if a recipe lists the collective */
    const char *accepted;
} rules[] = {
    [IPU_COLLECTIVE_REDUCE] = {"reduce", BIT(IPU_FLOAT32) | BIT(IPU_BFLOAT16),
                               0, "float32 and bfloat16"},
    [IPU_COLLECTIVE_BROADCAST] = {"broadcast",
                                  BIT(IPU_FLOAT32) | BIT(IPU_INT32),
                                  BIT(IPU_BFLOAT16),
                                  "float32 and int32, and bfloat16 by a recipe "
                                  "that lists CollectiveBcastSend"},
    [IPU_COLLECTIVE_GATHER] =
        {"gather", BIT(IPU_FLOAT32) | BIT(IPU_FLOAT16) | BIT(IPU_INT32),
         BIT(IPU_BFLOAT16),
         "float32, float16 and int32, and bfloat16 by a recipe that lists "
         "CollectiveGather"},
};

/* ---------------------------------------------------------------- the rows */

/* size: processes; order[0]: kind; order[1]: root; keep: it is a mean;
 * factors[0]: seconds; factors[1]: bytes that a device sends. */
static int check_attributes(const struct ipu__call *call)
{
    const struct ipu__attributes *a = call->attributes;
    const int32_t kind = a->order[0], root = a->order[1];

    IPU_TRY(
        ipu__expect_true(call, a->size >= 1 && a->size <= IPU__MAX_PROCESSES));
    IPU_TRY(ipu__expect_true(call, kind >= IPU_COLLECTIVE_REDUCE &&
                                       kind <= IPU_COLLECTIVE_GATHER));
    IPU_TRY(ipu__expect_true(call, root >= 0 && root < a->size));
    IPU_TRY(ipu__expect_true(call, a->factors[0] >= 0 && a->factors[0] < 1e9));
    IPU_TRY(ipu__expect_true(call, a->factors[1] >= 0 && a->factors[1] < 1e15));
    return ipu__expect_true(call, (rules[kind].plain | rules[kind].asked) &
                                      BIT(call->inputs[0].shape.dtype));
}

static int same_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(check_attributes(call));
    *output = call->inputs[0].shape;
    return IPU_OK;
}

static int finish_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(same_shape(call, output));
    return ipu__expect_true(call, call->attributes->order[0] !=
                                      IPU_COLLECTIVE_GATHER);
}

static int gather_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    int64_t extents[IPU_MAX_DIMS] = {1};

    IPU_TRY(check_attributes(call));
    IPU_TRY(ipu__expect_true(call, call->attributes->order[0] ==
                                       IPU_COLLECTIVE_GATHER));
    memcpy(extents, x->extents, (size_t)x->ndim * sizeof *extents);
    if (__builtin_mul_overflow(extents[0], call->attributes->size, &extents[0]))
        return ipu__fail(IPU_ERR_SHAPE, "%s: %s of %d processes is too large",
                         call->op->name, call->inputs[0].name,
                         (int)call->attributes->size);
    return ipu__shape_make(call->op->name, x->dtype, x->ndim ? x->ndim : 1,
                           extents, output);
}

static bool is_taken(const ipu_graph *graph, const char *name);
static ipu_tensor name_start(ipu_graph *graph, ipu_tensor started,
                             const char *name);

/* Writes a name for the derivative of a collective that no other has, also if
 * there are several derivatives. */
static void name_derivative(const ipu_graph *graph, const char *of, char *name,
                            size_t size)
{
    snprintf(name, size, "%s/gradient", of);
    for (int i = 2; is_taken(graph, name); i++)
        snprintf(name, size, "%s/gradient %d", of, i);
}

static void finish_gradient(ipu_graph *graph, const struct ipu__node *node,
                            ipu_tensor dy, ipu_tensor *dx)
{
    const char *of = graph->tensors[node->inputs[0]].name;
    char *name;
    size_t size = strlen(of) + 24;

    if (node->attributes.order[0] != IPU_COLLECTIVE_REDUCE) {
        dx[0] = ipu__invalid(
            graph, ipu__fail(IPU_ERR_ARGUMENT,
                             "collective %s '%s' has no derivative: only sums "
                             "and means have one",
                             rules[node->attributes.order[0]].name, of));
        return;
    }
    name = malloc(size);
    if (!name) {
        dx[0] = ipu__invalid(graph, ipu__fail_memory(size));
        return;
    }
    name_derivative(graph, of, name, size);
    dy = name_start(
        graph, ipu__add(graph, &ipu__network_start, &dy, &node->attributes),
        name);
    dx[0] = ipu__add(graph, &ipu__network_finish, &dy, &node->attributes);
    free(name);
}

/* The op that finishes a collective has computed the derivative. The op that
 * started it passes this on to its input. */
static void start_gradient(ipu_graph *graph, const struct ipu__node *node,
                           ipu_tensor dy, ipu_tensor *dx)
{
    (void)graph, (void)node;
    dx[0] = dy;
}

/* A network of one: the only part is the whole. */
static int gather_alone(const struct ipu__call *call)
{
    memcpy(call->output.data, call->inputs[0].data,
           ipu__shape_bytes(&call->inputs[0].shape));
    return IPU_OK;
}

/* The network reads and writes tensors where they are. */
static void no_work(const struct ipu__call *call, struct ipu__work *work)
{
    (void)call;
    work->kind = IPU__WORK_NONE;
}

const struct ipu__op ipu__network_start = {
    .name = "network_start",
    .ninputs = 1,
    .in_place = IPU__FIRST,
    .raw = true,
    .checks = true,
    .effects = true,
    .network = IPU__DEPARTS,
    .shape = same_shape,
    .run = ipu__pass_on,
    .cost = no_work,
    .gradient = start_gradient,
};

const struct ipu__op ipu__network_finish = {
    .name = "network_finish",
    .ninputs = 1,
    .in_place = IPU__FIRST,
    .raw = true,
    .checks = true,
    .effects = true,
    .network = IPU__ARRIVES,
    .shape = finish_shape,
    .run = ipu__pass_on,
    .cost = no_work,
    .gradient = finish_gradient,
};

const struct ipu__op ipu__network_gather = {
    .name = "network_gather",
    .ninputs = 1,
    .raw = true,
    .checks = true,
    .effects = true,
    .network = IPU__ARRIVES,
    .shape = gather_shape,
    .run = gather_alone,
    .cost = no_work,
};

ipu_collective ipu__network_collective(const struct ipu__call *call)
{
    const struct ipu__attributes *a = call->attributes;
    const bool departs = call->op->network == IPU__DEPARTS;

    return (ipu_collective){
        .name = departs ? call->output.name : call->inputs[0].name,
        .kind = a->order[0],
        .dtype = call->inputs[0].shape.dtype,
        .mean = a->keep,
        .root = a->order[1],
        .count = ipu__shape_count(&call->inputs[0].shape),
    };
}

/* ----------------------------------------------------------------- building */

/* A collective to build. */
struct collective {
    const ipu_network *network;
    const char *name;
    ipu_collective_kind kind;
    int32_t root;
    bool mean;
};

static bool is_taken(const ipu_graph *graph, const char *name)
{
    for (; graph; graph = graph->parent)
        for (int32_t n = 0; n < graph->nnodes; n++)
            if (graph->nodes[n].op->network == IPU__DEPARTS &&
                strcmp(graph->tensors[graph->nodes[n].output].name, name) == 0)
                return true;
    return false;
}

static int check_collective(const ipu_graph *graph, const struct collective *c)
{
    const char *what = rules[c->kind].name;

    IPU_TRY(ipu__network_check(c->network));
    if (!c->name || !c->name[0])
        return ipu__fail(IPU_ERR_ARGUMENT, "collective %s: the name is %s",
                         what, c->name ? "empty" : "NULL");
    if (c->root < 0 || c->root >= c->network->processes)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "collective %s '%s': there is no process %d: there "
                         "are 0 to %d",
                         what, c->name, (int)c->root,
                         (int)c->network->processes - 1);
    if (is_taken(graph, c->name))
        return ipu__fail(IPU_ERR_NAME,
                         "collective %s '%s': another collective of this "
                         "program has that name",
                         what, c->name);
    return IPU_OK;
}

/* Returns whether a tensor of that dtype may go as it is. */
static int check_dtype(const struct collective *c, const struct ipu__tensor *x)
{
    const struct rule *rule = &rules[c->kind];
    const unsigned bit = BIT(x->shape.dtype);
    const bool half = (rule->asked & bit) != 0;

    if ((rule->plain & bit) ||
        (half && ipu__recipe_takes(c->network->recipe, c->kind, c->name)))
        return IPU_OK;
    return ipu__fail(IPU_ERR_SHAPE,
                     "collective %s '%s': %s is of %s: the network takes %s; "
                     "%s",
                     rule->name, c->name, x->name,
                     ipu__dtype_name(x->shape.dtype), rule->accepted,
                     half ? "give the network a recipe (ipu_bf16_recipe_new), "
                            "or cast it to float32"
                          : "cast it first (ipu_cast)");
}

/* Gives a start the name of its collective. */
static ipu_tensor name_start(ipu_graph *graph, ipu_tensor started,
                             const char *name)
{
    char *copy;

    if (started.id < 0)
        return started;
    copy = strdup(name);
    if (!copy)
        return ipu__invalid(graph, ipu__fail_memory(strlen(name) + 1));
    free(graph->tensors[ipu__index(graph, started)].name);
    graph->tensors[ipu__index(graph, started)].name = copy;
    return started;
}

static ipu_tensor start_and_finish(ipu_graph *graph, const struct collective *c,
                                   ipu_tensor x)
{
    const struct ipu__shape *shape =
        &graph->tensors[ipu__index(graph, x)].shape;
    struct ipu__attributes attributes = {.size = c->network->processes,
                                         .order = {c->kind, c->root},
                                         .keep = c->mean};
    int64_t sent;
    ipu_tensor started;
    int status = ipu_model_collective(c->network, c->kind,
                                      (int64_t)ipu__shape_bytes(shape),
                                      &attributes.factors[0], &sent);

    if (status < 0)
        return ipu__invalid(graph, status);
    attributes.factors[1] = (double)sent;
    started = name_start(
        graph, ipu__add(graph, &ipu__network_start, &x, &attributes), c->name);
    return ipu__add(graph,
                    c->kind == IPU_COLLECTIVE_GATHER ? &ipu__network_gather
                                                     : &ipu__network_finish,
                    &started, &attributes);
}

static ipu_tensor build(ipu_graph *graph, const struct collective *c,
                        ipu_tensor x)
{
    int32_t index;
    int status;
    ipu_tensor y;

    if (ipu__index_of(graph, &ipu__network_start, x) < 0)
        return (ipu_tensor){-1};
    status = check_collective(graph, c);
    if (status < 0)
        return ipu__invalid(graph, status);
    index = ipu__index(graph, x);
    if (graph->tensors[index].shape.dtype == IPU_FLOAT32 &&
        ipu__recipe_converts(c->network->recipe, c->kind, c->name)) {
        x = ipu_cast(graph, x, IPU_BFLOAT16);
        y = x.id < 0 ? x : start_and_finish(graph, c, x);
        return ipu_cast(graph, y, IPU_FLOAT32);
    }
    status = check_dtype(c, &graph->tensors[index]);
    if (status < 0)
        return ipu__invalid(graph, status);
    return start_and_finish(graph, c, x);
}

ipu_tensor ipu_collective_mean(ipu_graph *graph, const ipu_network *network,
                               const char *name, ipu_tensor x)
{
    return build(graph,
                 &(struct collective){network, name, IPU_COLLECTIVE_REDUCE,
                                      .mean = true},
                 x);
}

ipu_tensor ipu_collective_sum(ipu_graph *graph, const ipu_network *network,
                              const char *name, ipu_tensor x)
{
    return build(
        graph,
        &(struct collective){network, name, .kind = IPU_COLLECTIVE_REDUCE}, x);
}

ipu_tensor ipu_collective_broadcast(ipu_graph *graph,
                                    const ipu_network *network,
                                    const char *name, ipu_tensor x,
                                    int32_t root)
{
    return build(graph,
                 &(struct collective){network, name, IPU_COLLECTIVE_BROADCAST,
                                      .root = root},
                 x);
}

ipu_tensor ipu_collective_gather(ipu_graph *graph, const ipu_network *network,
                                 const char *name, ipu_tensor x)
{
    return build(
        graph,
        &(struct collective){network, name, .kind = IPU_COLLECTIVE_GATHER}, x);
}

ipu_tensor ipu_collective_all_to_all(ipu_graph *graph,
                                     const ipu_network *network,
                                     const char *name, ipu_tensor x)
{
    (void)network, (void)x;
    return ipu__invalid(
        graph, ipu__fail(IPU_ERR_ARGUMENT,
                         "collective all-to-all '%s': the device's network has "
                         "none: gather the tensor and slice it, or exchange it "
                         "on the host (ipu_host_call, ipu_host_receive)",
                         name ? name : ""));
}
