/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moments.c - the optimisers that keep a mean of the gradients.
 *
 *     Adam    m, v: means of g and g^2      w -= rate m' / (sqrt(v') + epsilon)
 *     AdamW   ... + decay w, beside the moments (Loshchilov and Hutter, 2019)
 *     LAMB    the same, times |w| / |u|, u being what follows rate (You et
 *             al., 2020)
 *     Lion    w -= rate (sign(beta1 m + (1 - beta1) g) + decay w), then
 *             m = beta2 m + (1 - beta2) g (Chen et al., 2023)
 */
#include "base/error.h"
#include "ops/optimizers/build.h"

static int check(const char *name, const ipu_adam_options *o)
{
    IPU_TRY(ipu__update_size(name, o->size, sizeof *o));
    IPU_TRY(ipu__update_share(name, "beta1", o->beta1));
    IPU_TRY(ipu__update_share(name, "beta2", o->beta2));
    IPU_TRY(ipu__update_positive(name, "epsilon", o->epsilon));
    return ipu__update_decay(name, o->weight_decay);
}

static int lion(ipu_graph *g, struct ipu__update *part, ipu_tensor gradient,
                ipu_tensor rate, const ipu_adam_options *o, double decay)
{
    ipu_tensor m = ipu__update_slot(g, part, "m");
    ipu_tensor u = ipu__update_carry(g, part, o->beta1, m, ipu__share, gradient,
                                     ipu__rest);

    ipu_assign(
        g, m,
        ipu__update_blend(g, &ipu__blend, m, o->beta2, gradient, 1 - o->beta2));
    return ipu__update_descend(g, part, ipu_sign(g, u), rate, decay);
}

/* Scales the rate by |w| / |u|. */
static ipu_tensor lamb_rate(ipu_graph *g, const struct ipu__update *part,
                            ipu_tensor u, ipu_tensor rate)
{
    ipu_tensor lw = ipu__update_length(g, part, "length", part->value);
    ipu_tensor lu = ipu__update_length(g, part, "length of u", u);

    return ipu_multiply(g, ipu_cast(g, rate, IPU_FLOAT32),
                        ipu__update_ratio(g, lw, lu, lw, lu));
}

static int adam(ipu_graph *g, ipu_optimizer_kind kind, struct ipu__update *part,
                ipu_tensor gradient, ipu_tensor rate, ipu_tensor step,
                const ipu_adam_options *o, double decay)
{
    const struct ipu__attributes attributes = {
        .factors = {o->beta1, o->beta2, o->epsilon,
                    kind == IPU_OPTIMIZER_ADAM ? 0 : decay}};
    ipu_tensor m, v, u;

    if (kind == IPU_OPTIMIZER_ADAM && decay > 0)
        gradient =
            ipu__update_blend(g, &ipu__blend, gradient, 1, part->value, decay);
    m = ipu__update_keep_by(g, part, "m", o->beta1, gradient, ipu__rest);
    v = ipu__update_keep(g, part, "v", &ipu__blend_square, o->beta2, gradient,
                         1 - o->beta2);
    IPU_TRY(g->status);
    if (kind != IPU_OPTIMIZER_LAMB && !part->momentum) {
        part->result = ipu__add(
            g, &ipu__adam_update,
            (const ipu_tensor[]){part->value, m, v, step, rate}, &attributes);
        return g->status;
    }
    u = ipu__add(
        g, part->momentum ? &ipu__adam_direction_by : &ipu__adam_direction,
        (const ipu_tensor[]){part->value, m, v, step,
                             part->momentum ? *part->momentum : step},
        &attributes);
    if (kind == IPU_OPTIMIZER_LAMB)
        rate = lamb_rate(g, part, u, rate);
    return ipu__update_descend(g, part, u, rate, 0);
}

int ipu__moments(ipu_graph *graph, ipu_optimizer_kind kind,
                 struct ipu__update *part, ipu_tensor gradient, ipu_tensor rate,
                 ipu_tensor step, const ipu_adam_options *options)
{
    static const char *const names[] = {[IPU_OPTIMIZER_ADAM] = "adam",
                                        [IPU_OPTIMIZER_ADAMW] = "adamw",
                                        [IPU_OPTIMIZER_LAMB] = "lamb",
                                        [IPU_OPTIMIZER_LION] = "lion"};
    const ipu_adam_options usual = {
        sizeof usual, 0, 0.9, kind == IPU_OPTIMIZER_LION ? 0.99 : 0.999,
        1e-8,         0};
    const ipu_adam_options *o = options ? options : &usual;
    double decay;
    int status;

    IPU_TRY(ipu__update_check(graph, names[kind], part));
    status = check(names[kind], o);
    if (status < 0)
        return ipu__graph_fail(graph, status);
    decay = part->spared ? 0 : o->weight_decay;
    if (kind == IPU_OPTIMIZER_LION)
        return lion(graph, part, gradient, rate, o, decay);
    return adam(graph, kind, part, gradient, rate, step, o, decay);
}
