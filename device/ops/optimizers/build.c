/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - checks, state, lengths and the last step of all optimisers. */
#include "ops/optimizers/build.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"

int ipu__update_check(ipu_graph *g, const char *name,
                      const struct ipu__update *part)
{
    int32_t index;

    if (!g) {
        ipu__fail(IPU_ERR_ARGUMENT, "%s: the graph is NULL", name);
        return IPU_ERR_ARGUMENT;
    }
    if (g->status < 0)
        return ipu__graph_status(g);
    index = ipu__index(g, part->variable);
    if (index < 0)
        return ipu__graph_fail(g, ipu__fail(index, "%s: the variable: %s", name,
                                            ipu_last_error()));
    if (g->tensors[index].kind != IPU__VARIABLE)
        return ipu__graph_fail(g, ipu__fail(IPU_ERR_ARGUMENT,
                                            "%s: %s is not a variable", name,
                                            g->tensors[index].name));
    return IPU_OK;
}

int ipu__update_size(const char *name, uint32_t size, size_t wanted)
{
    if (size >= wanted)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "%s: the options' size is %u, not %zu: set it", name,
                     (unsigned)size, wanted);
}

int ipu__update_share(const char *name, const char *what, double value)
{
    if (value >= 0 && value < 1)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "%s: %s is %g, it must be 0 or more and less than 1", name,
                     what, value);
}

int ipu__update_positive(const char *name, const char *what, double value)
{
    if (value > 0 && value < HUGE_VAL)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT, "%s: %s is %g, it must be more than 0",
                     name, what, value);
}

int ipu__update_decay(const char *name, double value)
{
    if (value >= 0 && value < HUGE_VAL)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "%s: the weight decay is %g, it must be 0 or more", name,
                     value);
}

ipu_tensor ipu__update_slot(ipu_graph *g, const struct ipu__update *part,
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

ipu_tensor ipu__update_blend(ipu_graph *g, const struct ipu__op *op,
                             ipu_tensor a, double fa, ipu_tensor b, double fb)
{
    const struct ipu__attributes attributes = {.factors = {fa, fb}};

    return ipu__add(g, op, (const ipu_tensor[]){a, b}, &attributes);
}

ipu_tensor ipu__update_carry(ipu_graph *g, const struct ipu__update *part,
                             double momentum, ipu_tensor a,
                             struct ipu__factor fa, ipu_tensor b,
                             struct ipu__factor fb)
{
    const struct ipu__attributes attributes = {
        .factors = {fa.constant, fa.slope, fb.constant, fb.slope}};

    if (!part->momentum)
        return ipu__update_blend(g, &ipu__blend, a,
                                 fa.constant + fa.slope * momentum, b,
                                 fb.constant + fb.slope * momentum);
    return ipu__add(g, &ipu__blend_by,
                    (const ipu_tensor[]){a, b, *part->momentum}, &attributes);
}

ipu_tensor ipu__update_keep_by(ipu_graph *g, const struct ipu__update *part,
                               const char *what, double momentum, ipu_tensor x,
                               struct ipu__factor fx)
{
    ipu_tensor kept = ipu__update_slot(g, part, what);
    ipu_tensor now =
        ipu__update_carry(g, part, momentum, kept, ipu__share, x, fx);

    ipu_assign(g, kept, now);
    return now;
}

ipu_tensor ipu__update_keep(ipu_graph *g, const struct ipu__update *part,
                            const char *what, const struct ipu__op *op,
                            double fa, ipu_tensor x, double fb)
{
    ipu_tensor kept = ipu__update_slot(g, part, what);
    ipu_tensor now = ipu__update_blend(g, op, kept, fa, x, fb);

    ipu_assign(g, kept, now);
    return now;
}

int ipu__update_descend(ipu_graph *g, struct ipu__update *part, ipu_tensor u,
                        ipu_tensor rate, double decay)
{
    if (decay > 0)
        u = ipu__update_blend(g, &ipu__blend, u, 1, part->value, decay);
    part->result = ipu__add(g, &ipu__descend,
                            (const ipu_tensor[]){part->value, u, rate}, NULL);
    return g->status;
}

ipu_tensor ipu__update_length(ipu_graph *g, const struct ipu__update *part,
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

ipu_tensor ipu__update_ratio(ipu_graph *g, ipu_tensor a, ipu_tensor b,
                             ipu_tensor p, ipu_tensor q)
{
    ipu_tensor zero = ipu_fill(g, IPU_FLOAT32, 0, NULL, 0);
    ipu_tensor one = ipu_fill(g, IPU_FLOAT32, 0, NULL, 1);
    ipu_tensor product = ipu_multiply(g, p, q);

    return ipu_select(g, ipu_equal(g, product, zero), one, ipu_divide(g, a, b));
}
