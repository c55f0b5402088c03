/* SPDX-License-Identifier: Apache-2.0 */
/*
 * momentum.c - the optimisers that keep a velocity.
 *
 *     SGD     v = momentum v + g            w -= rate v, or with Nesterov's
 *             w -= rate (g + momentum v)
 *     LARS    v = momentum v + ratio (g + decay w)   w -= rate v, with
 *             ratio = trust |w| / (|g| + decay |w| + epsilon) (You et al.,
 *             2017)
 */
#include "base/error.h"
#include "ops/optimizers/build.h"

static int check_sgd(const ipu_sgd_options *o)
{
    IPU_TRY(ipu__update_size("sgd", o->size, sizeof *o));
    IPU_TRY(ipu__update_share("sgd", "momentum", o->momentum));
    IPU_TRY(ipu__update_decay("sgd", o->weight_decay));
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
    ipu_tensor u = gradient;
    int status;

    IPU_TRY(ipu__update_check(graph, "sgd", part));
    status = check_sgd(o);
    if (status < 0)
        return ipu__graph_fail(graph, status);
    if (o->weight_decay > 0 && !part->spared)
        u = ipu__update_blend(graph, &ipu__blend, gradient, 1, part->value,
                              o->weight_decay);
    if (o->momentum > 0) {
        ipu_tensor g = u;

        u = ipu__update_keep_by(graph, part, "momentum", o->momentum, g,
                                ipu__one);
        if (o->nesterov)
            u = ipu__update_carry(graph, part, o->momentum, g, ipu__one, u,
                                  ipu__share);
    }
    return ipu__update_descend(graph, part, u, rate, 0);
}

static int check_lars(const ipu_lars_options *o)
{
    IPU_TRY(ipu__update_size("lars", o->size, sizeof *o));
    IPU_TRY(ipu__update_share("lars", "momentum", o->momentum));
    if (o->trust != 0)
        IPU_TRY(ipu__update_positive("lars", "trust", o->trust));
    IPU_TRY(ipu__update_positive("lars", "epsilon", o->epsilon));
    return ipu__update_decay("lars", o->weight_decay);
}

/* Returns minus the ratio. */
static ipu_tensor minus_ratio(ipu_graph *g, const struct ipu__update *part,
                              ipu_tensor gradient, const ipu_lars_options *o)
{
    ipu_tensor lw = ipu__update_length(g, part, "length", part->value);
    ipu_tensor lg = ipu__update_length(g, part, "length of g", gradient);
    ipu_tensor below =
        ipu_add(g, lg, ipu_scale(g, lw, o->weight_decay, o->epsilon));

    return ipu_negate(
        g, ipu__update_ratio(g, ipu_scale(g, lw, o->trust, 0), below, lw, lg));
}

/* Returns the velocity times the momentum. */
static ipu_tensor shrink(ipu_graph *g, const struct ipu__update *part,
                         ipu_tensor kept, double momentum)
{
    ipu_dtype dtype = IPU_FLOAT32;

    if (!part->momentum)
        return ipu_scale(g, kept, momentum, 0);
    ipu_tensor_info(g, kept, &dtype, NULL, NULL);
    return ipu_multiply(g, kept, ipu_cast(g, *part->momentum, dtype));
}

int ipu__lars(ipu_graph *graph, struct ipu__update *part, ipu_tensor gradient,
              ipu_tensor rate, const ipu_lars_options *options)
{
    const ipu_lars_options usual = {sizeof usual, 0, 0.9, 0.001, 1e-8, 0};
    const ipu_lars_options *o = options ? options : &usual;
    ipu_tensor u = gradient, minus, kept;
    int status;

    IPU_TRY(ipu__update_check(graph, "lars", part));
    status = check_lars(o);
    if (status < 0)
        return ipu__graph_fail(graph, status);
    minus = part->spared || o->trust == 0
                ? ipu_fill(graph, IPU_FLOAT32, 0, NULL, -1)
                : minus_ratio(graph, part, gradient, o);
    if (o->weight_decay > 0 && !part->spared)
        u = ipu__update_blend(graph, &ipu__blend, gradient, 1, part->value,
                              o->weight_decay);
    kept = ipu__update_slot(graph, part, "momentum");
    u = ipu__add(
        graph, &ipu__descend,
        (const ipu_tensor[]){shrink(graph, part, kept, o->momentum), u, minus},
        NULL);
    ipu_assign(graph, kept, u);
    return ipu__update_descend(graph, part, u, rate, 0);
}
