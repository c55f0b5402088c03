/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - the reduction of n buffers into one or more, and its meaning for
 * each dtype. The algorithms of transport/algo and core/agree call it.
 *
 * integers   SUM and PRODUCT wrap modulo 2^bits, as they would in C with
 *              unsigned types. Averages and scaled values are computed wider
 *              (wide.c).
 * float16,   combined in float32 and rounded once, at the end. bfloat16 bool
 * 0 or not 0. SUM and MAX are or, PRODUCT and MIN are and.
 *
 * AVERAGE divides instead of multiplying by 1/n: the division rounds correctly.
 * A factor after it is applied in float64, which is exact enough to round a
 * float32 once.
 *
 * Outs are stored to as usual, never past the caches: where an out is a source,
 * which has just been read, that would be up to three times slower. Elsewhere
 * it would be faster by a third, but only for an out that is larger than the
 * caches and is not read soon, and only a caller that reduces block by block
 * knows that.
 */
#include <float.h>
#include <math.h>
#include <stdbool.h>

#include "kernels/kernels.h"
#include "kernels/variant.h"
#include "kernels/wide.h"

/* Returns whether a float32 times value is the same as in float64, rounded to
 * float32: the longer product is exact if the factor is a float32. */
static bool is_float32(double value)
{
    return fabs(value) >= (double)FLT_MIN && fabs(value) <= (double)FLT_MAX &&
           (double)(float)value == value;
}

/* Chooses the cheapest way to get what a division and a multiplication in
 * float64 would give, rounded to the type in which values are combined. */
static void choose_finish(struct hvd__pass *pass, hvd_dtype dtype, int divisor,
                          double postscale)
{
    /* The reciprocal is exact, and so is its product, unless that becomes too
     * small. */
    bool is_power_of_2 = (divisor & (divisor - 1)) == 0;
    double factor;

    pass->divisor = divisor;
    pass->factor = postscale;
    pass->finish = HVD__SCALE;
    if (divisor == 1 && postscale == 1)
        return; /* nearly always: a division takes longer than some sums */
    factor = postscale / divisor;
    pass->finish = HVD__EXACTLY;
    if (dtype == HVD_FLOAT64) {
        if (divisor == 1 || (is_power_of_2 && postscale == 1)) {
            pass->factor = factor;
            pass->finish = HVD__SCALE;
        } else if (postscale == 1)
            pass->finish = HVD__DIVIDE;
    } else if (is_power_of_2 && is_float32(factor)) {
        pass->factor = factor;
        pass->finish = HVD__SCALE;
    } else if (postscale == 1 && divisor <= 1 << FLT_MANT_DIG)
        /* A quotient of two float32s, rounded to float64 first, is so far
         * from the middle between two of them that it is rounded the same. */
        pass->finish = HVD__DIVIDE;
}

/* Returns whether the only source is already the result, in its place: one
 * rank's sum or average. A bool that is neither 0 nor 1 becomes 1. */
static bool is_done(const struct hvd__pass *pass, hvd_dtype dtype)
{
    return pass->nsources == 1 && pass->nouts == 1 &&
           pass->sources[0] == pass->outs[0] && dtype != HVD_BOOL &&
           pass->prescale == 1 && pass->finish == HVD__SCALE &&
           pass->factor == 1;
}

void hvd__reduce_to(const struct hvd__reduction *reduction, void *const *outs,
                    int nouts, const void *const *sources, int nsources,
                    int64_t count)
{
    bool average = reduction->op == HVD_AVERAGE;
    int divisor = !average             ? 1
                  : reduction->divisor ? reduction->divisor
                                       : nsources;
    struct hvd__pass pass = {
        .op = average ? HVD_SUM : reduction->op,
        .nouts = nouts,
        .nsources = nsources,
        .outs = outs,
        .sources = sources,
        .count = count,
        .prescale = reduction->prescale,
        .finish = HVD__SCALE,
        .factor = 1,
        .divisor = 1,
    };

    if (hvd__dtype_is_float(reduction->dtype))
        choose_finish(&pass, reduction->dtype, divisor, reduction->postscale);
    else if (average || reduction->prescale != 1 || reduction->postscale != 1) {
        hvd__reduce_wide(&pass, reduction->dtype, divisor,
                         reduction->postscale);
        return;
    }
    if (!is_done(&pass, reduction->dtype))
        hvd__kernel_variant()->reduce[reduction->dtype](&pass);
}

void hvd__reduce(const struct hvd__reduction *reduction, void *out,
                 const void *const *sources, int nsources, int64_t count)
{
    hvd__reduce_to(reduction, &out, 1, sources, nsources, count);
}
