/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate.c - accumulates the gradients of several mini-batches.
 *
 *     SUM            acc = acc + g
 *     MEAN           acc = acc + g / count
 *     RUNNING_MEAN   acc = acc n / (n + 1) + g / (n + 1)
 *
 * n is the number of mini-batches since the last update, which the graph
 * counts. With n = 0 the accumulator's old content is not read: it needs no
 * zeroing after an update, and a NaN in it does not outlive an update.
 *
 * There are two nodes. "accumulate" runs each time and writes the accumulator;
 * "accumulated", of the update region, is the same memory under another name:
 * its readers are in the region, too.
 */
#include <stdio.h>
#include <strings.h>

#include "base/error.h"
#include "graph/graph.h"
#include "ops/op.h"
#include "training/training.h"

/* ----------------------------------------------------------- reductions */

static const char *const reductions[] = {
    [IPU_REDUCTION_SUM] = "SUM",
    [IPU_REDUCTION_MEAN] = "MEAN",
    [IPU_REDUCTION_RUNNING_MEAN] = "RUNNING_MEAN",
};
enum { REDUCTIONS = sizeof reductions / sizeof reductions[0] };

const char *ipu_reduction_name(ipu_reduction reduction)
{
    return reduction >= 0 && reduction < REDUCTIONS ? reductions[reduction]
                                                    : NULL;
}

int ipu_reduction_parse(const char *name, ipu_reduction *reduction)
{
    if (!reduction)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "the place for the reduction is NULL");
    for (int i = 0; name && i < REDUCTIONS; i++)
        if (strcasecmp(name, reductions[i]) == 0) {
            *reduction = i;
            return IPU_OK;
        }
    return ipu__fail(IPU_ERR_NAME,
                     "'%.60s' cannot be parsed as the reduction of accumulated "
                     "gradients: valid are SUM, MEAN, RUNNING_MEAN",
                     name ? name : "");
}

/* ------------------------------------------------------------- the builder */

static const ipu_accumulation_options usual = {.size = sizeof usual};

static int check_gradient(const ipu_graph *g, int32_t variable,
                          int32_t gradient, const ipu_accumulation_options *o)
{
    const struct ipu__tensor *v = &g->tensors[variable];
    const struct ipu__tensor *d = &g->tensors[gradient];
    struct ipu__shape as = d->shape;

    if (o->size < sizeof *o)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "accumulate: the options' size is %u, not %zu: set it",
                         (unsigned)o->size, sizeof *o);
    if (!ipu_reduction_name(o->reduction))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "accumulate: the reduction is %d; there are SUM, MEAN "
                         "and RUNNING_MEAN",
                         (int)o->reduction);
    if (v->kind != IPU__VARIABLE)
        return ipu__fail(IPU_ERR_ARGUMENT, "accumulate: %s is not a variable",
                         v->name);
    as.dtype = v->shape.dtype;
    if (v->shape.dtype == IPU_INT32 || d->shape.dtype == IPU_INT32 ||
        !ipu__shape_equal(&v->shape, &as))
        return ipu__fail(IPU_ERR_SHAPE,
                         "accumulate: %s is %s and the gradient %s is %s: the "
                         "same floats are wanted",
                         v->name, ipu__shape_print(&v->shape).text, d->name,
                         ipu__shape_print(&d->shape).text);
    if (ipu__tensor_region(g, gradient) >= 0)
        return ipu__fail(IPU_ERR_STATE,
                         "accumulate: the gradient %s is not computed in each "
                         "run: it has been accumulated already",
                         d->name);
    return IPU_OK;
}

/* Chooses the accumulator's dtype. */
static int choose_dtype(const ipu_graph *g, int32_t variable,
                        const ipu_accumulation_options *o, ipu_dtype *dtype)
{
    const struct ipu__tensor *v = &g->tensors[variable];

    *dtype = v->shape.dtype;
    if (o->choose)
        *dtype = o->choose(o->context, v->name, v->shape.dtype);
    else if (o->dtype)
        *dtype = *o->dtype;
    if (!ipu__dtype_name(*dtype) || *dtype == IPU_INT32)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "accumulate: dtype %d for the accumulator of %s: it "
                         "must be float32, float16 or bfloat16",
                         (int)*dtype, v->name);
    return IPU_OK;
}

static ipu_tensor cast_to(ipu_graph *g, ipu_tensor x, ipu_dtype dtype)
{
    int32_t index = ipu__index(g, x);

    return index < 0 || g->tensors[index].shape.dtype == dtype
               ? x
               : ipu_cast(g, x, dtype);
}

static ipu_tensor add_accumulator(ipu_graph *g, int32_t variable,
                                  ipu_dtype dtype)
{
    const struct ipu__shape shape = g->tensors[variable].shape;
    char name[256];
    int n = snprintf(name, sizeof name, "%s/accumulator",
                     g->tensors[variable].name);

    if (n >= (int)sizeof name)
        return ipu__invalid(g, ipu__fail(IPU_ERR_NAME,
                                         "the name of %.64s... is too long for "
                                         "an accumulator: at most %d bytes",
                                         name, (int)sizeof name - 16));
    return ipu_variable(g, name, dtype, shape.ndim, shape.extents);
}

/* Returns true if the gradient is the same in all replicas: a sum over them,
 * scaled or cast. */
static bool is_of_all(const ipu_graph *g, ipu_tensor gradient)
{
    int32_t t = ipu__index(g, gradient);

    while (t >= 0 && g->tensors[t].node >= 0) {
        const struct ipu__node *node = &g->nodes[g->tensors[t].node];

        if (node->op->collective || node->op->ninputs != 1)
            return node->op->collective && node->attributes.size == 0;
        t = node->inputs[0];
    }
    return false;
}

static ipu_tensor accumulate(ipu_graph *g, int32_t variable,
                             ipu_tensor gradient, int32_t region,
                             const ipu_accumulation_options *o)
{
    const struct ipu__region r = g->regions[region];
    const ipu_dtype own = g->tensors[variable].shape.dtype;
    const bool mean = o->reduction == IPU_REDUCTION_MEAN;
    const struct ipu__attributes attributes = {
        .factors = {mean ? 1.0 / r.count : 1}, .order = {o->reduction}};
    ipu_tensor acc, sum, n;
    ipu_dtype dtype;
    int status = choose_dtype(g, variable, o, &dtype);

    if (status < 0)
        return ipu__invalid(g, status);
    g->region = IPU__NONE; /* the node runs each time */
    gradient = cast_to(g, gradient, dtype);
    sum = gradient;
    if (r.due >= 0) {
        n = ipu__handle(g, r.counter);
        acc = add_accumulator(g, variable, dtype);
        if (!is_of_all(g, gradient))
            ipu__variable_own(g, acc, IPU__OWN_SUMS);
        if (o->offload != IPU_OFFLOAD_AUTO)
            ipu_offload_variable(g, acc, o->offload);
        sum = ipu__add(g, &ipu__accumulate, (ipu_tensor[]){acc, gradient, n},
                       &attributes);
        ipu_assign(g, acc, sum);
    }
    g->region = region;
    sum = ipu__add(g, &ipu__accumulated, &sum, NULL);
    return o->cast ? cast_to(g, sum, own) : sum;
}

ipu_tensor ipu_accumulate(ipu_graph *graph, ipu_tensor variable,
                          ipu_tensor gradient, int32_t count,
                          const ipu_accumulation_options *options)
{
    const ipu_accumulation_options *o = options ? options : &usual;
    int32_t of, from, region, scope;
    int status;

    of = ipu__index_of(graph, &ipu__accumulate, variable);
    if (of < 0)
        return (ipu_tensor){-1};
    from = ipu__index_of(graph, &ipu__accumulate, gradient);
    if (from < 0)
        return (ipu_tensor){-1};
    status = check_gradient(graph, of, from, o);
    if (status < 0)
        return ipu__invalid(graph, status);
    region = ipu__region_of(graph, count);
    if (region < 0)
        return (ipu_tensor){-1};
    scope = graph->region;
    gradient = accumulate(graph, of, gradient, region, o);
    graph->region = scope;
    return gradient;
}
