/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.c - values with an exact reduction.
 *
 * Inputs are small integers that depend on rank and element through a hash, so
 * that a result that is shifted, stale, or lacks a rank does not compare equal
 * by chance over a whole buffer. They are so small that every partial result is
 * represented exactly in the type, in whatever order the ranks are combined:
 *
 *   sum, average   |value| * ranks <= the largest exact integer (256 for
 *                  bfloat16, 2048 for half, 127 for int8)
 *   product        six ranks contribute 1 or 2 (-1, 1 or 2 where there is a
 *                  sign), the others 1: at most 64
 *   min, max, copy any exact integer, up to 1000
 *   bool           0 or 1
 *
 * Therefore the comparison is exact, for every type and any algorithm, with one
 * exception: an average over a number of ranks that is not a power of two. The
 * exact quotient has to be rounded (half an epsilon of the type), and an
 * implementation may multiply by 1/n, itself rounded (another half), before it
 * rounds the product. With one more rounding for implementations that scale in
 * a narrower type, a relative error of 2 epsilon is allowed there.
 *
 * With more ranks than the largest exact integer, sums use the ranks up to that
 * number and the others contribute 0.
 */
#include "collectives/pattern.h"

#include "collectives/half.h"

#include <math.h>

enum { MULTIPLIERS = 6, LARGEST = 1000 };

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

void pattern_init(struct pattern *p, const struct bench_dtype *type,
                  const struct bench_op *op, int nranks, int root)
{
    int64_t limit = at_most(type->exact, LARGEST);
    int sums = op != NULL && (op->id == HVD_SUM || op->id == HVD_AVERAGE);
    int has_sign = type->class == BENCH_SIGNED || type->class == BENCH_FLOATING;

    if (sums && type->class != BENCH_BOOLEAN) {
        limit = at_most(type->exact / nranks, LARGEST);
        limit = limit < 1 ? 1 : limit;
    }
    p->type = type;
    p->op = op;
    p->kind = op ? HVD_ALLREDUCE : HVD_BROADCAST;
    p->nranks = nranks;
    p->root = root;
    p->rank = 0;
    p->share = 1;
    p->low = has_sign ? -limit : 0;
    p->span = (uint32_t)(has_sign ? 2 * limit + 1 : limit + 1);
}

void pattern_init_call(struct pattern *p, const struct call *call)
{
    pattern_init(p, call->type, call->op, call->nranks, call->root);
    p->kind = call->kind;
    p->rank = call->rank;
    p->share = call->share > 0 ? call->share : 1;
}

/* Mixes rank and element. The bits of the result are independent enough that
 * neighbours in either differ. */
static uint32_t hash_element(int rank, int64_t i)
{
    uint32_t h = (uint32_t)i * 0x9E3779B1u + (uint32_t)(i >> 32) +
                 (uint32_t)(rank + 1) * 0x85EBCA77u;

    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    return h ^ h >> 13;
}

static int64_t multiplier(const struct pattern *p, int rank, uint32_t h)
{
    if (rank >= MULTIPLIERS) {
        return 1;
    }
    if (p->low == 0) {
        return 1 + (int64_t)(h >> 31);
    }
    return (h >> 30) == 0 ? -1 : 1 + (int64_t)((h >> 30) & 1u);
}

int64_t pattern_value(const struct pattern *p, int rank, int64_t i)
{
    uint32_t h = hash_element(rank, i);

    if (p->op != NULL && p->type->class != BENCH_BOOLEAN) {
        if (p->op->id == HVD_PRODUCT) {
            return multiplier(p, rank, h);
        }
        if (rank >= p->type->exact &&
            (p->op->id == HVD_SUM || p->op->id == HVD_AVERAGE)) {
            return 0;
        }
    }
    return p->low + (int64_t)(((uint64_t)h * p->span) >> 32);
}

static int64_t combine_values(hvd_op op, int64_t a, int64_t b)
{
    switch (op) {
    case HVD_PRODUCT: return a * b;
    case HVD_MIN: return a < b ? a : b;
    case HVD_MAX: return a > b ? a : b;
    default: return a + b;
    }
}

/* Returns element i of the output of a call that reduces nothing. */
static int64_t moved(const struct pattern *p, int64_t i)
{
    int from = (int)(i / p->share);

    switch (p->kind) {
    case HVD_ALLGATHER:
    case HVD_GATHER: return pattern_value(p, from, i % p->share);
    case HVD_ALLTOALL:
        return pattern_value(p, from, p->rank * p->share + i % p->share);
    default: return pattern_value(p, p->root, i);
    }
}

static double reduced(const struct pattern *p, int64_t i)
{
    int64_t value = pattern_value(p, 0, i);

    for (int rank = 1; rank < p->nranks; rank++) {
        value = combine_values(p->op->id, value, pattern_value(p, rank, i));
    }
    if (p->type->class == BENCH_BOOLEAN) {
        return value != 0 ? 1.0 : 0.0;
    }
    if (p->op->id == HVD_AVERAGE && p->type->class == BENCH_FLOATING)
        return (double)value / p->nranks;
    if (p->op->id == HVD_AVERAGE)
        value /= p->nranks; /* truncates toward zero */
    return (double)value;
}

double pattern_result(const struct pattern *p, int64_t i)
{
    if (p->op == NULL)
        return (double)moved(p, i);
    return reduced(p,
                   p->kind == HVD_REDUCESCATTER ? p->rank * p->share + i : i);
}

/* Returns the relative tolerance: 0 but for averages that need rounding. */
static double tolerance(const struct pattern *p)
{
    int power_of_two = (p->nranks & (p->nranks - 1)) == 0;

    if (p->op == NULL || p->op->id != HVD_AVERAGE || power_of_two) {
        return 0.0;
    }
    return 2.0 * p->type->epsilon;
}

/* Compares. A NaN is wrong, because every comparison with it is false. */
static int is_close(double got, double want, double relative)
{
    return fabs(got - want) <= relative * fabs(want);
}

static double load_element(hvd_dtype type, const void *buffer, int64_t i)
{
    switch (type) {
    case HVD_UINT8:
    case HVD_BOOL: return ((const uint8_t *)buffer)[i];
    case HVD_INT8: return ((const int8_t *)buffer)[i];
    case HVD_UINT16: return ((const uint16_t *)buffer)[i];
    case HVD_INT16: return ((const int16_t *)buffer)[i];
    case HVD_INT32: return ((const int32_t *)buffer)[i];
    case HVD_INT64: return (double)((const int64_t *)buffer)[i];
    case HVD_FLOAT16: return half_to_float(((const uint16_t *)buffer)[i]);
    case HVD_BFLOAT16: return bfloat16_to_float(((const uint16_t *)buffer)[i]);
    case HVD_FLOAT32: return ((const float *)buffer)[i];
    case HVD_FLOAT64: return ((const double *)buffer)[i];
    default: return NAN;
    }
}

static void store_element(hvd_dtype type, void *buffer, int64_t i,
                          int64_t value)
{
    switch (type) {
    case HVD_UINT8:
    case HVD_BOOL: ((uint8_t *)buffer)[i] = (uint8_t)value; break;
    case HVD_INT8: ((int8_t *)buffer)[i] = (int8_t)value; break;
    case HVD_UINT16: ((uint16_t *)buffer)[i] = (uint16_t)value; break;
    case HVD_INT16: ((int16_t *)buffer)[i] = (int16_t)value; break;
    case HVD_INT32: ((int32_t *)buffer)[i] = (int32_t)value; break;
    case HVD_INT64: ((int64_t *)buffer)[i] = value; break;
    case HVD_FLOAT16:
        ((uint16_t *)buffer)[i] = half_from_float((float)value);
        break;
    case HVD_BFLOAT16:
        ((uint16_t *)buffer)[i] = bfloat16_from_float((float)value);
        break;
    case HVD_FLOAT32: ((float *)buffer)[i] = (float)value; break;
    case HVD_FLOAT64: ((double *)buffer)[i] = (double)value; break;
    default: break;
    }
}

void pattern_fill(const struct pattern *p, int rank, void *buffer,
                  int64_t count)
{
    hvd_dtype type = p->type->id;

    for (int64_t i = 0; i < count; i++) {
        store_element(type, buffer, i, pattern_value(p, rank, i));
    }
}

int64_t pattern_check_result(const struct pattern *p, const void *buffer,
                             int64_t count)
{
    hvd_dtype type = p->type->id;
    double relative = tolerance(p);
    int64_t nwrong = 0;

    for (int64_t i = 0; i < count; i++) {
        double got = load_element(type, buffer, i);

        nwrong += !is_close(got, pattern_result(p, i), relative);
    }
    return nwrong;
}

int64_t pattern_check_input(const struct pattern *p, int rank,
                            const void *buffer, int64_t count)
{
    hvd_dtype type = p->type->id;
    int64_t nwrong = 0;

    for (int64_t i = 0; i < count; i++) {
        double got = load_element(type, buffer, i);

        nwrong += !is_close(got, (double)pattern_value(p, rank, i), 0.0);
    }
    return nwrong;
}
