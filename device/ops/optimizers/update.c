/* SPDX-License-Identifier: Apache-2.0 */
/*
 * update.c - the loops and rows of the optimisers' ops (update.h).
 *
 * Moments and weights are float32 in the loops. Terms that are the same for all
 * elements are computed once for each call, in double.
 */
#include "ops/optimizers/update.h"
#include "ops/costs.h"

#include <math.h>

#include "base/error.h"

static float scalar(const struct ipu__call *call, int i)
{
    return *(const float *)call->inputs[i].data;
}

/* -------------------------------------------------------------------- blend */

IPU__WIDE(static, void, blend,
          (float *y, const float *a, const float *b, float fa, float fb,
           int64_t count),
          (y, a, b, fa, fb, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = a[i] * fa + b[i] * fb;
}

IPU__WIDE(static, void, blend_square,
          (float *y, const float *a, const float *b, float fa, float fb,
           int64_t count),
          (y, a, b, fa, fb, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = a[i] * fa + b[i] * b[i] * fb;
}

static int run_blend(const struct ipu__call *call)
{
    (call->op == &ipu__blend ? blend : blend_square)(
        call->output.data, call->inputs[0].data, call->inputs[1].data,
        (float)call->attributes->factors[0],
        (float)call->attributes->factors[1],
        ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

const struct ipu__op ipu__blend = {
    .name = "blend",
    IPU__OF_TWO,
    .slots = 2,
    .run = run_blend,
};

const struct ipu__op ipu__blend_square = {
    .name = "blend_square",
    IPU__OF_TWO,
    .slots = 3,
    .run = run_blend,
};

static int blend_by_shape(const struct ipu__call *call,
                          struct ipu__shape *output)
{
    IPU_TRY(ipu__two_floats(call, output));
    return ipu__expect(call, 2, IPU_FLOAT32, 0, "the momentum, a scalar");
}

static int run_blend_by(const struct ipu__call *call)
{
    const double *f = call->attributes->factors, s = (double)scalar(call, 2);

    blend(call->output.data, call->inputs[0].data, call->inputs[1].data,
          (float)(f[0] + f[1] * s), (float)(f[2] + f[3] * s),
          ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

const struct ipu__op ipu__blend_by = {
    .name = "blend_by",
    .ninputs = 3,
    .last_wide = true,
    .in_place = IPU__FIRST,
    .by_element = true,
    .slots = 2,
    .shape = blend_by_shape,
    .run = run_blend_by,
};

/* ------------------------------------------------------------------ descend */

static int descend_shape(const struct ipu__call *call,
                         struct ipu__shape *output)
{
    IPU_TRY(ipu__two_floats(call, output));
    return ipu__expect(call, 2, IPU_FLOAT32, 0, "the learning rate, a scalar");
}

static int run_descend(const struct ipu__call *call)
{
    blend(call->output.data, call->inputs[0].data, call->inputs[1].data, 1,
          -scalar(call, 2), ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

const struct ipu__op ipu__descend = {
    .name = "descend",
    .ninputs = 3,
    .last_wide = true,
    .in_place = IPU__FIRST,
    .by_element = true,
    .slots = 2,
    .shape = descend_shape,
    .run = run_descend,
};

/* --------------------------------------------------------------------- Adam */

static int direction_shape(const struct ipu__call *call,
                           struct ipu__shape *output)
{
    IPU_TRY(ipu__two_floats(call, output));
    IPU_TRY(ipu__expect_same(call, 0, 2));
    return ipu__expect(call, 3, IPU_INT32, 0, "the step, a scalar");
}

static int update_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(direction_shape(call, output));
    return ipu__expect(call, 4, IPU_FLOAT32, 0, "the learning rate, a scalar");
}

static int direction_by_shape(const struct ipu__call *call,
                              struct ipu__shape *output)
{
    IPU_TRY(direction_shape(call, output));
    return ipu__expect(call, 4, IPU_FLOAT32, 0, "beta1, a scalar");
}

/* The terms of u that are the same for all elements. */
struct terms {
    float m, v; /* factors that remove the bias */
    float epsilon, decay;
};

static struct terms terms_of(const struct ipu__call *call)
{
    const double *factors = call->attributes->factors;
    double t = (double)*(const int32_t *)call->inputs[3].data + 1;
    double beta1 = call->op == &ipu__adam_direction_by ? (double)scalar(call, 4)
                                                       : factors[0];

    return (struct terms){
        .m = (float)(1 / (1 - pow(beta1, t))),
        .v = (float)(1 / (1 - pow(factors[1], t))),
        .epsilon = (float)factors[2],
        .decay = (float)factors[3],
    };
}

static inline float direction(float w, float m, float v, struct terms t)
{
    return m * t.m / (__builtin_sqrtf(v * t.v) + t.epsilon) + t.decay * w;
}

IPU__WIDE(static, void, update_each,
          (float *y, const float *w, const float *m, const float *v,
           struct terms t, float rate, int64_t count),
          (y, w, m, v, t, rate, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = w[i] - rate * direction(w[i], m[i], v[i], t);
}

IPU__WIDE(static, void, direct_each,
          (float *y, const float *w, const float *m, const float *v,
           struct terms t, int64_t count),
          (y, w, m, v, t, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = direction(w[i], m[i], v[i], t);
}

static int run_update(const struct ipu__call *call)
{
    update_each(call->output.data, call->inputs[0].data, call->inputs[1].data,
                call->inputs[2].data, terms_of(call), scalar(call, 4),
                ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

const struct ipu__op ipu__adam_update = {
    .name = "adam_update",
    .ninputs = 5,
    .last_wide = true,
    .in_place = IPU__FIRST,
    .by_element = true,
    .functions = {IPU__SQRT, IPU__DIVIDE},
    .slots = 9,
    .shape = update_shape,
    .run = run_update,
};

static int run_direction(const struct ipu__call *call)
{
    direct_each(call->output.data, call->inputs[0].data, call->inputs[1].data,
                call->inputs[2].data, terms_of(call),
                ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

const struct ipu__op ipu__adam_direction = {
    .name = "adam_direction",
    .ninputs = 4,
    .in_place = IPU__FIRST,
    .by_element = true,
    .functions = {IPU__SQRT, IPU__DIVIDE},
    .slots = 7,
    .shape = direction_shape,
    .run = run_direction,
};

const struct ipu__op ipu__adam_direction_by = {
    .name = "adam_direction_by",
    .ninputs = 5,
    .last_wide = true,
    .in_place = IPU__FIRST,
    .by_element = true,
    .functions = {IPU__SQRT, IPU__DIVIDE},
    .slots = 7,
    .shape = direction_by_shape,
    .run = run_direction,
};

/* --------------------------------------------------------- roots of squares */

static int three_floats(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__two_floats(call, output));
    return ipu__expect_same(call, 0, 2);
}

/* A NaN stays. */
IPU__INLINE float root(float x)
{
    return __builtin_sqrtf(x < 0 ? 0 : x);
}

IPU__WIDE(static, void, rms_each,
          (float *y, const float *g, const float *v, float epsilon,
           int64_t count),
          (y, g, v, epsilon, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = g[i] / (root(v[i]) + epsilon);
}

IPU__WIDE(static, void, adadelta_each,
          (float *y, const float *g, const float *v, const float *d,
           float epsilon, int64_t count),
          (y, g, v, d, epsilon, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = g[i] * __builtin_sqrtf((d[i] + epsilon) / (v[i] + epsilon));
}

static int run_rms(const struct ipu__call *call)
{
    rms_each(call->output.data, call->inputs[0].data, call->inputs[1].data,
             (float)call->attributes->factors[0],
             ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

const struct ipu__op ipu__rms_direction = {
    .name = "rms_direction",
    IPU__OF_TWO,
    .functions = {IPU__SQRT, IPU__DIVIDE},
    .slots = 3,
    .run = run_rms,
};

static int run_adadelta(const struct ipu__call *call)
{
    adadelta_each(call->output.data, call->inputs[0].data, call->inputs[1].data,
                  call->inputs[2].data, (float)call->attributes->factors[0],
                  ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

const struct ipu__op ipu__adadelta_direction = {
    .name = "adadelta_direction",
    .ninputs = 3,
    .in_place = IPU__FIRST,
    .by_element = true,
    .functions = {IPU__SQRT, IPU__DIVIDE},
    .slots = 3,
    .shape = three_floats,
    .run = run_adadelta,
};
