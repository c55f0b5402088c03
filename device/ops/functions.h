/* SPDX-License-Identifier: Apache-2.0 */
/*
 * functions.h - exp, log, tanh and similar functions in float32, without a
 * branch or a call, so that loops over them become vector code.
 *
 * Each reduces its argument to a short interval and evaluates a polynomial that
 * was fitted there (least largest relative error). Results are within 3 units
 * in the last place, 1e-6 relative for the tails of ipu__normal_cdf;
 * infinities, NaN and subnormals give the same as in the standard library.
 */
#ifndef IPU_OPS_FUNCTIONS_H
#define IPU_OPS_FUNCTIONS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ops/wide.h"

IPU__INLINE uint32_t ipu__bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

IPU__INLINE float ipu__float(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The larger, NaN if one is. Not by || or &&, which are branches. */
IPU__INLINE float ipu__larger(float a, float b)
{
    float most = a >= b ? a : b;

    return a != a ? a : most;
}

IPU__INLINE float ipu__smaller(float a, float b)
{
    float least = a <= b ? a : b;

    return a != a ? a : least;
}

/* Returns whether x is y, the largest of several. || would be a branch. */
IPU__INLINE int ipu__is_largest(float x, float y)
{
    return (x == y) | ((x != x) & (y != y));
}

/* Computes exp(x) = 2^n exp(r), |r| <= log(2) / 2. The power of 2 is applied in
 * two halves: it may be too large or too small for one float. */
IPU__INLINE float ipu__exp(float x)
{
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds */
    float low = x < -104.0f ? -104.0f : x;
    float y = low > 89.0f ? 89.0f : low;
    float shifted = y * 1.44269504f + shift, n = shifted - shift;
    uint32_t power = ipu__bits(shifted) - ipu__bits(shift);
    /* Halves of a signed number, in arithmetic that may wrap. */
    uint32_t half = ((power + 1024) >> 1) - 512;
    float r = (y - n * 0.693145752f) - n * 1.42860677e-6f;
    float p = 0.00139017809f;

    p = p * r + 0.00836434529f;
    p = p * r + 0.0416668688f;
    p = p * r + 0.1666657f;
    p = p * r + 0.499999995f;
    p = p * r * r + r + 1;
    return p * ipu__float((half + 127) << 23) *
           ipu__float((power - half + 127) << 23);
}

/* Computes log(x) = n log(2) + log(1 + f), 1 + f in [sqrt(1/2), sqrt(2)). */
IPU__INLINE float ipu__log(float x)
{
    const uint32_t root = 0x3f3504f3; /* of 1/2 */
    int subnormal = x < 1.17549435e-38f;
    uint32_t bits = ipu__bits(subnormal ? x * 8388608.0f : x) - root;
    float n = (float)((int32_t)bits >> 23) - (subnormal ? 23.0f : 0.0f);
    float f = ipu__float((bits & 0x7fffff) + root) - 1, p = 0.0703758331f, y;

    p = p * f - 0.115145624f;
    p = p * f + 0.116770142f;
    p = p * f - 0.124201487f;
    p = p * f + 0.14249322f;
    p = p * f - 0.166680573f;
    p = p * f + 0.200007148f;
    p = p * f - 0.24999994f;
    p = p * f + 0.333333312f;
    y = p * f * f * f + n * 1.42860677e-6f - 0.5f * f * f + f +
        n * 0.693145752f;
    y = x < INFINITY ? y : x; /* infinity and NaN stay */
    y = x == 0 ? -INFINITY : y;
    return x < 0 ? NAN : y;
}

/* Computes log(1 + exp(-|x|)), which is softplus(x) less the larger of x and 0.
 * The sum 1 + u is rounded; the lost part is added again, as log has the slope
 * 1 / (1 + u) there. */
IPU__INLINE float ipu__softplus_rest(float x)
{
    float u = ipu__exp(-fabsf(x)), sum = 1 + u;

    return ipu__log(sum) + (u - (sum - 1)) / sum;
}

IPU__INLINE float ipu__sigmoid(float x)
{
    return 1 / (1 + ipu__exp(-x));
}

IPU__INLINE float ipu__tanh(float x)
{
    float size = fabsf(x), u = x * x, p = 0.00221473766f;
    float far = copysignf(1 - 2 / (ipu__exp(2 * size) + 1), x);

    p = p * u - 0.00827225434f;
    p = p * u + 0.0217460959f;
    p = p * u - 0.0539563312f;
    p = p * u + 0.133332906f;
    p = p * u - 0.333333331f;
    return size < 0.65f ? p * u * x + x : far;
}

/* Computes erf(x): x and what the polynomial adds to it, or 1 - erfc(|x|), for
 * the logarithm of which there is another. Beyond 4 it is 1. */
IPU__INLINE float ipu__erf(float x)
{
    float size = fabsf(x), t = ipu__smaller(size, 4.0f), u = x * x;
    float p = 8.51311633e-05f, q = 2.08285419e-05f;

    p = p * u - 0.000817564258f;
    p = p * u + 0.00520385941f;
    p = p * u - 0.0268605091f;
    p = p * u + 0.112837151f;
    p = p * u - 0.376126349f;
    p = p * u + 0.128379226f;
    q = q * t - 0.00043139272f;
    q = q * t + 0.00415625097f;
    q = q * t - 0.0250806063f;
    q = q * t + 0.108220369f;
    q = q * t + 0.633400857f;
    q = q * t + 1.12948835f;
    q = q * t - 0.000169204097f;
    return size < 0.9f ? p * x + x : copysignf(1 - ipu__exp(-q), x);
}

/* Computes atan(x) of t, |t| <= tan(pi / 8): |x| is t, or (1 + t) / (1 - t),
 * whose angle is pi / 4 larger, or -1 / t, whose angle is pi / 2 larger. */
IPU__INLINE float ipu__atan(float x)
{
    float size = fabsf(x), p = 0.0805127919f, t, u;
    int middle = size > 0.414213562f, far = size > 2.41421356f;
    float above = middle ? size - 1 : size, below = middle ? size + 1 : 1;
    float base = middle ? 0.785398163f : 0;

    above = far ? -1 : above;
    below = far ? size : below;
    base = far ? 1.57079633f : base;
    t = above / below;
    u = t * t;
    p = p * u - 0.138769746f;
    p = p * u + 0.1997765f;
    p = p * u - 0.333329469f;
    return copysignf(base + (p * u * t + t), x);
}

/* The standard normal distribution's integral up to x; precise in its lower
 * tail too. exp(-z^2) times a polynomial of 1 / (1 + z / 2), z = |x| / sqrt(2).
 */
IPU__INLINE float ipu__normal_cdf(float x)
{
    float z = fabsf(x) * 0.707106781f, t = 1 / (1 + 0.5f * z);
    float p = 0.0345301811f, tail;

    p = p * t - 0.183667253f;
    p = p * t + 0.362183639f;
    p = p * t - 0.260646589f;
    p = p * t - 0.0496899602f;
    p = p * t + 0.0530350964f;
    p = p * t + 0.0473643004f;
    p = p * t + 0.18770953f;
    p = p * t + 0.244803958f;
    p = p * t + 0.282290222f;
    p = p * t + 0.282086878f;
    tail = 0.5f * t * p * ipu__exp(-0.5f * x * x);
    return x < 0 ? tail : 1 - tail;
}

/* Computes the derivative of the normal distribution. */
IPU__INLINE float ipu__normal_density(float x)
{
    return 0.398942280f * ipu__exp(-0.5f * x * x);
}

#endif
