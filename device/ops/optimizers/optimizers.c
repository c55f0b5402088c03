/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizers.c - the builders of optimisers: the state that each keeps, and the
 * new value of the variable. The state is variables named after it, so that
 * they can be saved with it.
 *
 *     SGD     v = momentum v + g            w -= rate v, or with Nesterov's
 *             w -= rate (g + momentum v)
 *     Adam    m, v: means of g and g^2      w -= rate m' / (sqrt(v') + epsilon)
 *     AdamW   ... + decay w, beside the moments (Loshchilov and Hutter, 2019)
 *     LAMB    the same, times |w| / |u|, u being what follows rate (You et
 *             al., 2020)
 */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "ops/optimizers/optimizers.h"
#include "ops/optimizers/update.h"

/* The variable's index; a failure, kept in the graph, if it is none. */
static int32_t variable_of(ipu_graph *g, const char *name, ipu_tensor variable)
{
    int32_t index;

    if (!g) {
        ipu__fail(IPU_ERR_ARGUMENT, "%s: the graph is NULL", name);
        return IPU_ERR_ARGUMENT;
    }
    if (g->status < 0)
        return ipu__graph_status(g);
    index = ipu__index(g, variable);
    if (index < 0)
        return ipu__graph_fail(g, ipu__fail(index, "%s: the variable: %s", name,
                                            ipu_last_error()));
    if (g->tensors[index].kind != IPU__VARIABLE)
        return ipu__graph_fail(g, ipu__fail(IPU_ERR_ARGUMENT,
                                            "%s: %s is not a variable", name,
                                            g->tensors[index].name));
    return index;
}

/* A variable that is kept beside another, for what is updated of it, on its
 * chip. */
static ipu_tensor slot(ipu_graph *g, const struct ipu__update *part,
                       const char *what)
{
    int32_t variable = ipu__index(g, part->variable);
    const char *of = g->tensors[variable].name;
    int32_t value = ipu__index(g, part->value), shard = g->shard;
    struct ipu__shape shape;
    ipu_tensor made;
    char name[256];
    int length = snprintf(name, sizeof name, "%s/%s", of, what);

    if (value < 0)
        return part->value;
    shape = g->tensors[value].shape;
    if (length >= (int)sizeof name)
        return ipu__invalid(g, ipu__fail(IPU_ERR_NAME,
                                         "the name of %.64s... is too long for "
                                         "an optimiser: at most %d bytes",
                                         name, (int)sizeof name - 16));
    g->shard = g->tensors[variable].shard;
    made = ipu_variable(g, name, shape.dtype, shape.ndim, shape.extents);
    g->shard = shard;
    if (part->value.id != part->variable.id)
        ipu__variable_own(g, made, IPU__OWN_PART);
    return made;
}

static ipu_tensor blended(ipu_graph *g, const struct ipu__op *op, ipu_tensor a,
                          double fa, ipu_tensor b, double fb)
{
    const struct ipu__attributes attributes = {.factors = {fa, fb}};

    return ipu__add(g, op, (const ipu_tensor[]){a, b}, &attributes);
}

static bool within(double x, double low, double below)
{
    return x >= low && x < below;
}

static int check_size(const char *name, uint32_t size, size_t wanted)
{
    if (size >= wanted)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "%s: the options' size is %u, not %zu: set it", name,
                     (unsigned)size, wanted);
}

/* ---------------------------------------------------------------------- SGD */

static int check_sgd(const ipu_sgd_options *o)
{
    IPU_TRY(check_size("sgd", o->size, sizeof *o));
    if (!within(o->momentum, 0, 1))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "sgd: momentum is %g, it must be 0 or more and less "
                         "than 1",
                         o->momentum);
    if (!within(o->weight_decay, 0, HUGE_VAL))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "sgd: the weight decay is %g, it must be 0 or more",
                         o->weight_decay);
    if (o->nesterov && o->momentum == 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "sgd: Nesterov's way takes a momentum above 0");
    return IPU_OK;
}

int ipu__sgd(ipu_graph *graph, struct ipu__update *part, ipu_tensor gradient,
             ipu_tensor rate, const ipu_sgd_options *options)
{
    const ipu_sgd_options plain = {.size = sizeof plain};
    const ipu_sgd_options *o = options ? options : &plain;
    ipu_tensor u = gradient, kept;
    int status;

    IPU_TRY(variable_of(graph, "sgd", part->variable));
    status = check_sgd(o);
    if (status < 0)
        return ipu__graph_fail(graph, status);
    if (o->weight_decay > 0)
        u = blended(graph, &ipu__blend, gradient, 1, part->value,
                    o->weight_decay);
    if (o->momentum > 0) {
        ipu_tensor g = u;

        kept = slot(graph, part, "momentum");
        u = blended(graph, &ipu__blend, kept, o->momentum, g, 1);
        ipu_assign(graph, kept, u);
        if (o->nesterov)
            u = blended(graph, &ipu__blend, g, 1, u, o->momentum);
    }
    part->result = ipu__add(graph, &ipu__descend,
                            (const ipu_tensor[]){part->value, u, rate}, NULL);
    return graph->status;
}

/* ------------------------------------------------- Adam and what grew of it */

static int check_adam(const char *name, const ipu_adam_options *o)
{
    IPU_TRY(check_size(name, o->size, sizeof *o));
    if (!within(o->beta1, 0, 1) || !within(o->beta2, 0, 1))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s: the betas are %g and %g, they must be 0 or more "
                         "and less than 1",
                         name, o->beta1, o->beta2);
    if (!(o->epsilon > 0 && o->epsilon < HUGE_VAL))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s: epsilon is %g, it must be more than 0", name,
                         o->epsilon);
    if (!within(o->weight_decay, 0, HUGE_VAL))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s: the weight decay is %g, it must be 0 or more",
                         name, o->weight_decay);
    return IPU_OK;
}

/* Builds the moments that the three optimisers share; moments gets the new m
 * and v. */
static int keep_moments(ipu_graph *g, const char *name,
                        const struct ipu__update *part, ipu_tensor gradient,
                        const ipu_adam_options *o, ipu_tensor *moments)
{
    ipu_tensor m, v;
    int status;

    IPU_TRY(variable_of(g, name, part->variable));
    status = check_adam(name, o);
    if (status < 0)
        return ipu__graph_fail(g, status);
    m = slot(g, part, "m");
    v = slot(g, part, "v");
    moments[0] = blended(g, &ipu__blend, m, o->beta1, gradient, 1 - o->beta1);
    moments[1] =
        blended(g, &ipu__blend_square, v, o->beta2, gradient, 1 - o->beta2);
    IPU_TRY(ipu_assign(g, m, moments[0]));
    return ipu_assign(g, v, moments[1]);
}

static const ipu_adam_options usual = {sizeof usual, 0, 0.9, 0.999, 1e-8, 0};

static int adam(ipu_graph *g, const char *name, struct ipu__update *part,
                ipu_tensor gradient, ipu_tensor rate, ipu_tensor step,
                const ipu_adam_options *o, double decay)
{
    const struct ipu__attributes attributes = {
        .factors = {o->beta1, o->beta2, o->epsilon, decay}};
    ipu_tensor moments[2];

    IPU_TRY(keep_moments(g, name, part, gradient, o, moments));
    part->result = ipu__add(
        g, &ipu__adam_update,
        (const ipu_tensor[]){part->value, moments[0], moments[1], step, rate},
        &attributes);
    return g->status;
}

int ipu__adam(ipu_graph *graph, struct ipu__update *part, ipu_tensor gradient,
              ipu_tensor rate, ipu_tensor step, const ipu_adam_options *options)
{
    const ipu_adam_options *o = options ? options : &usual;

    if (graph && o->size >= sizeof *o && o->weight_decay > 0)
        gradient = blended(graph, &ipu__blend, gradient, 1, part->value,
                           o->weight_decay);
    return adam(graph, "adam", part, gradient, rate, step, o, 0);
}

int ipu__adamw(ipu_graph *graph, struct ipu__update *part, ipu_tensor gradient,
               ipu_tensor rate, ipu_tensor step,
               const ipu_adam_options *options)
{
    const ipu_adam_options *o = options ? options : &usual;

    return adam(graph, "adamw", part, gradient, rate, step, o, o->weight_decay);
}

/* The square root of the sum of the squares, of all parts, in float32. */
static ipu_tensor length_of(ipu_graph *g, const struct ipu__update *part,
                            const char *what, ipu_tensor x)
{
    ipu_tensor wide = ipu_cast(g, x, IPU_FLOAT32);
    ipu_tensor sum = ipu_reduce_sum(g, ipu_square(g, wide), 1);
    char name[256];

    if (part->sum && g->status >= 0) {
        snprintf(name, sizeof name, "%.200s/%s",
                 g->tensors[ipu__index(g, part->variable)].name, what);
        sum = part->sum(g, part->context, name, sum);
    }
    return ipu_sqrt(g, sum);
}

/* |w| / |u|, and 1 if one of them is 0. */
static ipu_tensor trust(ipu_graph *g, const struct ipu__update *part,
                        ipu_tensor u)
{
    ipu_tensor zero = ipu_fill(g, IPU_FLOAT32, 0, NULL, 0);
    ipu_tensor one = ipu_fill(g, IPU_FLOAT32, 0, NULL, 1);
    ipu_tensor lw = length_of(g, part, "length", part->value);
    ipu_tensor lu = length_of(g, part, "length of u", u);
    ipu_tensor product = ipu_multiply(g, lw, lu);

    return ipu_select(g, ipu_equal(g, product, zero), one,
                      ipu_divide(g, lw, lu));
}

int ipu__lamb(ipu_graph *graph, struct ipu__update *part, ipu_tensor gradient,
              ipu_tensor rate, ipu_tensor step, const ipu_adam_options *options)
{
    const ipu_adam_options *o = options ? options : &usual;
    const struct ipu__attributes attributes = {
        .factors = {o->beta1, o->beta2, o->epsilon, o->weight_decay}};
    ipu_tensor moments[2], u;

    IPU_TRY(keep_moments(graph, "lamb", part, gradient, o, moments));
    u = ipu__add(
        graph, &ipu__adam_direction,
        (const ipu_tensor[]){part->value, moments[0], moments[1], step},
        &attributes);
    rate = ipu_multiply(graph, ipu_cast(graph, rate, IPU_FLOAT32),
                        trust(graph, part, u));
    part->result = ipu__add(graph, &ipu__descend,
                            (const ipu_tensor[]){part->value, u, rate}, NULL);
    return graph->status;
}

/* ------------------------------------------------------- the whole variable */

/* Assigned if it was made. */
static int assign_result(ipu_graph *g, int status,
                         const struct ipu__update *whole)
{
    IPU_TRY(status);
    return ipu_assign(g, whole->variable, whole->result);
}

int ipu_sgd(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
            ipu_tensor rate, const ipu_sgd_options *options)
{
    struct ipu__update all = {.variable = variable, .value = variable};

    return assign_result(graph, ipu__sgd(graph, &all, gradient, rate, options),
                         &all);
}

int ipu_adam(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
             ipu_tensor rate, ipu_tensor step, const ipu_adam_options *options)
{
    struct ipu__update all = {.variable = variable, .value = variable};

    return assign_result(
        graph, ipu__adam(graph, &all, gradient, rate, step, options), &all);
}

int ipu_adamw(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
              ipu_tensor rate, ipu_tensor step, const ipu_adam_options *options)
{
    struct ipu__update all = {.variable = variable, .value = variable};

    return assign_result(
        graph, ipu__adamw(graph, &all, gradient, rate, step, options), &all);
}

int ipu_lamb(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
             ipu_tensor rate, ipu_tensor step, const ipu_adam_options *options)
{
    struct ipu__update all = {.variable = variable, .value = variable};

    return assign_result(
        graph, ipu__lamb(graph, &all, gradient, rate, step, options), &all);
}
