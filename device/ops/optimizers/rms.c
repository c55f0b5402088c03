/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rms.c - the optimisers that divide by the root of squares of gradients.
 *
 *     RMSprop    v = rho v + (1 - rho) g^2    w -= rate g / (sqrt(v) + epsilon)
 *                centred: sqrt(v - m^2), m being the mean of g (Graves, 2013);
 *                with momentum: b = momentum b + the quotient, w -= rate b
 *     Adagrad    v += g^2                     the same (Duchi et al., 2011)
 *     Adadelta   v as of RMSprop; u = g sqrt(d + epsilon) / sqrt(v + epsilon),
 *                w -= rate u, d = rho d + (1 - rho) u^2 (Zeiler, 2012)
 */
#include "base/error.h"
#include "ops/optimizers/build.h"

static int check(const char *name, const ipu_rms_options *o)
{
    IPU_TRY(ipu__update_size(name, o->size, sizeof *o));
    IPU_TRY(ipu__update_share(name, "rho", o->rho));
    IPU_TRY(ipu__update_share(name, "momentum", o->momentum));
    IPU_TRY(ipu__update_positive(name, "epsilon", o->epsilon));
    return ipu__update_decay(name, o->weight_decay);
}

static ipu_tensor quotient(ipu_graph *g, const struct ipu__op *op, ipu_tensor a,
                           ipu_tensor v, ipu_tensor d, double epsilon)
{
    const struct ipu__attributes attributes = {.factors = {epsilon}};

    return ipu__add(g, op, (const ipu_tensor[]){a, v, d}, &attributes);
}

static ipu_tensor rmsprop(ipu_graph *g, const struct ipu__update *part,
                          ipu_tensor gradient, const ipu_rms_options *o)
{
    ipu_tensor v = ipu__update_keep(g, part, "v", &ipu__blend_square, o->rho,
                                    gradient, 1 - o->rho);

    if (o->centered)
        v = ipu__update_blend(g, &ipu__blend_square, v, 1,
                              ipu__update_keep(g, part, "m", &ipu__blend,
                                               o->rho, gradient, 1 - o->rho),
                              -1);
    gradient = quotient(g, &ipu__rms_direction, gradient, v, v, o->epsilon);
    if (o->momentum > 0)
        gradient = ipu__update_keep_by(g, part, "momentum", o->momentum,
                                       gradient, ipu__one);
    return gradient;
}

static ipu_tensor adagrad(ipu_graph *g, const struct ipu__update *part,
                          ipu_tensor gradient, const ipu_rms_options *o)
{
    ipu_tensor v =
        ipu__update_keep(g, part, "v", &ipu__blend_square, 1, gradient, 1);

    return quotient(g, &ipu__rms_direction, gradient, v, v, o->epsilon);
}

static ipu_tensor adadelta(ipu_graph *g, const struct ipu__update *part,
                           ipu_tensor gradient, const ipu_rms_options *o)
{
    ipu_tensor v = ipu__update_keep(g, part, "v", &ipu__blend_square, o->rho,
                                    gradient, 1 - o->rho);
    ipu_tensor d = ipu__update_slot(g, part, "d");
    ipu_tensor u =
        quotient(g, &ipu__adadelta_direction, gradient, v, d, o->epsilon);

    ipu_assign(
        g, d,
        ipu__update_blend(g, &ipu__blend_square, d, o->rho, u, 1 - o->rho));
    return u;
}

int ipu__rms(ipu_graph *graph, ipu_optimizer_kind kind,
             struct ipu__update *part, ipu_tensor gradient, ipu_tensor rate,
             const ipu_rms_options *options)
{
    static const struct {
        const char *name;
        ipu_tensor (*direction)(ipu_graph *, const struct ipu__update *,
                                ipu_tensor, const ipu_rms_options *);
        ipu_rms_options usual;
    } kinds[] = {
        {"rmsprop", rmsprop, {sizeof(ipu_rms_options), 0, 0.99, 0, 1e-8, 0}},
        {"adagrad", adagrad, {sizeof(ipu_rms_options), 0, 0, 0, 1e-10, 0}},
        {"adadelta", adadelta, {sizeof(ipu_rms_options), 0, 0.9, 0, 1e-6, 0}}};
    const char *name = kinds[kind - IPU_OPTIMIZER_RMSPROP].name;
    const ipu_rms_options *o =
        options ? options : &kinds[kind - IPU_OPTIMIZER_RMSPROP].usual;
    ipu_tensor u;
    int status;

    IPU_TRY(ipu__update_check(graph, name, part));
    status = check(name, o);
    if (status < 0)
        return ipu__graph_fail(graph, status);
    u = kinds[kind - IPU_OPTIMIZER_RMSPROP].direction(graph, part, gradient, o);
    return ipu__update_descend(graph, part, u, rate,
                               part->spared ? 0 : o->weight_decay);
}
