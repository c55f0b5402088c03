/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outcome.c - the elements of requests, and the results that must come
 * (outcome.h). Reductions are kept, one for each number of a request, since all
 * ranks compare with the same one.
 */
#include "outcome.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hvd.h"

uint64_t outcome_salt(const struct context *c)
{
    return sim.seed * 1000003 +
           (uint64_t)(c->phase * 10000 + c->repeat * 100 + c->number);
}

int script_members(const struct script_op *op)
{
    return op->set < 0 ? script.nranks : script.sets[op->set].n;
}

int script_member(const struct script_op *op, int i)
{
    return op->set < 0 ? i : script.sets[op->set].ranks[i];
}

bool script_has_rank(int set, int rank)
{
    return set < 0 || script.sets[set].has[rank];
}

int script_place(const struct script_op *op, int rank)
{
    int i = 0;

    while (script_member(op, i) != rank)
        i++;
    return i;
}

uint32_t outcome_root(uint64_t salt, int rank)
{
    return (uint32_t)sim_mix(salt + (uint64_t)rank * 7919);
}

/* Returns 0 <= x < n. It has neither a division nor a long product, so that
 * the compiler makes vector code of the loops that call it. */
static inline int draw_below(uint32_t root, uint32_t i, unsigned n)
{
    uint32_t x = root + i * 0x9e3779b9u;

    return (int)(((x >> 16 ^ (x & 0xffff)) * n) >> 16);
}

void outcome_elements(const struct script_op *op, uint32_t root, int rank,
                      int64_t first, int n, int *values)
{
    bool is_unsigned = op->dtype == HVD_UINT8 || op->dtype == HVD_UINT16;
    int least = is_unsigned ? 0 : -3;
    uint32_t start = (uint32_t)first;

    if (op->op == HVD_PRODUCT)
        for (int i = 0; i < n; i++)
            values[i] = 1 + ((draw_below(root, start + (uint32_t)i, 8) == 0) &
                             (rank < 5));
    else
        for (int i = 0; i < n; i++)
            values[i] = draw_below(root, start + (uint32_t)i, 7) + least;
}

/* Both halves hold small integers. */
static uint16_t half_of(hvd_dtype dtype, int value)
{
    float f = (float)value;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    if (dtype == HVD_BFLOAT16)
        return (uint16_t)(bits >> 16);
    if (value == 0)
        return 0;
    return (uint16_t)((bits >> 16 & 0x8000) |
                      (((bits >> 23 & 0xff) - 112) << 10) |
                      (bits >> 13 & 0x3ff));
}

/* A float whose exponent is 112 too low is the half's value over 2^112, for a
 * half that is not normal too. */
static double get_half(uint16_t half)
{
    uint32_t bits = (uint32_t)(half & 0x8000) << 16 | (uint32_t)(half & 0x7fff)
                                                          << 13;
    float f;

    memcpy(&f, &bits, sizeof f);
    return (double)(f * 0x1p112f);
}

static double get_bfloat16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float f;

    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

#define PUT(type)                                                              \
    for (int i = 0; i < n; i++)                                                \
        ((type *)data)[first + i] = (type)values[i];                           \
    break
#define GET(type)                                                              \
    for (int i = 0; i < n; i++)                                                \
        values[i] = (double)((const type *)data)[first + i];                   \
    break

void outcome_put(hvd_dtype dtype, void *data, int64_t first, int n,
                 const int *values)
{
    switch (dtype) {
    case HVD_UINT8: PUT(uint8_t);
    case HVD_INT8: PUT(int8_t);
    case HVD_UINT16: PUT(uint16_t);
    case HVD_INT32: PUT(int32_t);
    case HVD_INT64: PUT(int64_t);
    case HVD_FLOAT32: PUT(float);
    case HVD_FLOAT64: PUT(double);
    default:
        for (int i = 0; i < n; i++)
            ((uint16_t *)data)[first + i] = half_of(dtype, values[i]);
    }
}

void outcome_get(hvd_dtype dtype, const void *data, int64_t first, int n,
                 double *values)
{
    const uint16_t *halves = (const uint16_t *)data + first;

    switch (dtype) {
    case HVD_UINT8: GET(uint8_t);
    case HVD_INT8: GET(int8_t);
    case HVD_UINT16: GET(uint16_t);
    case HVD_INT32: GET(int32_t);
    case HVD_INT64: GET(int64_t);
    case HVD_FLOAT32: GET(float);
    case HVD_FLOAT64: GET(double);
    default:
        for (int i = 0; i < n; i++)
            values[i] = dtype == HVD_FLOAT16 ? get_half(halves[i])
                                             : get_bfloat16(halves[i]);
    }
}

/* Returns how far a result may be from the exact one. */
double outcome_tolerance(hvd_dtype dtype, double value)
{
    switch (dtype) {
    case HVD_FLOAT16: return fabs(value) / 512;
    case HVD_BFLOAT16: return fabs(value) / 64;
    case HVD_FLOAT32: return fabs(value) * 1e-6;
    case HVD_FLOAT64: return fabs(value) * 1e-13;
    default: return 0;
    }
}

/* The reduction of a request, which is worked out once for all ranks. */
static struct {
    uint64_t what;
    double *values; /* owned */
    int64_t capacity;
} reductions[SCRIPT_OPS];

#define ADD(expression)                                                        \
    for (int i = 0; i < n; i++) {                                              \
        double x = elements[i] * op->prescale, old = values[i];                \
                                                                               \
        values[i] = (expression);                                              \
    }                                                                          \
    break

/* Reduces n elements of a rank into those of the ranks before it. The first has
 * none before it. */
static void add(const struct script_op *op, const int *elements, int n,
                bool is_first, double *values)
{
    if (is_first)
        memset(values, 0, (size_t)n * sizeof *values);
    switch (is_first ? HVD_SUM : op->op) {
    case HVD_PRODUCT: ADD(old * x);
    case HVD_MIN: ADD(x < old ? x : old);
    case HVD_MAX: ADD(x > old ? x : old);
    default: ADD(old + x);
    }
}

/* Ranks that have joined before contribute nothing. */
static void work_out(const struct context *c, uint64_t salt, double *values)
{
    const struct script_op *op = c->op;
    const struct script_phase *phase = &script.phases[c->phase];
    bool is_float = op->dtype == HVD_FLOAT16 || op->dtype == HVD_FLOAT32 ||
                    op->dtype == HVD_FLOAT64 || op->dtype == HVD_BFLOAT16;
    int n = script_members(op), nreduced = 0;

    for (int k = 0; k < n; k++) {
        int rank = script_member(op, k);
        uint32_t root = outcome_root(salt, rank);

        if (phase->kind == PHASE_JOIN && phase->njoined[rank] <= c->number)
            continue;
        for (int64_t first = 0; first < op->count; first += OUTCOME_BLOCK) {
            int elements[OUTCOME_BLOCK],
                count = outcome_block(op->count - first);

            outcome_elements(op, root, rank, first, count, elements);
            add(op, elements, count, nreduced == 0, &values[first]);
        }
        nreduced++;
    }
    for (int64_t i = 0; i < op->count; i++) {
        values[i] *= op->postscale;
        if (op->op == HVD_AVERAGE)
            values[i] = is_float ? values[i] / n : trunc(values[i] / n);
    }
}

const double *outcome_reduction(const struct context *c, uint64_t salt)
{
    int64_t count = c->op->count;
    int i = c->number;

    if (reductions[i].what == salt && reductions[i].values)
        return reductions[i].values;
    if (!reductions[i].values || reductions[i].capacity < count) {
        free(reductions[i].values);
        reductions[i].capacity = count + 64;
        reductions[i].values =
            calloc((size_t)reductions[i].capacity, sizeof(double));
        if (!reductions[i].values)
            abort();
    }
    reductions[i].what = salt;
    work_out(c, salt, reductions[i].values);
    return reductions[i].values;
}

int64_t outcome_rows(const struct script_op *op, int rank)
{
    return op->has_rows ? op->rows[rank] : op->count;
}

/* Returns the number of elements of the output, or of the input. */
int64_t outcome_count(const struct script_op *op, int rank)
{
    int n = script_members(op), own = script_place(op, rank);
    int64_t sum = 0;

    switch (op->kind) {
    case HVD_BARRIER: return 0;
    case HVD_GATHER:
    case HVD_REDUCE:
        if (rank != op->root)
            return 0;
        if (op->kind == HVD_REDUCE)
            return op->count;
        /* fall through */
    case HVD_ALLGATHER:
        for (int i = 0; i < n; i++)
            sum += outcome_rows(op, script_member(op, i));
        return sum;
    case HVD_ALLTOALL:
        if (!op->has_rows)
            return op->count;
        for (int i = 0; i < n; i++)
            sum += op->splits[script_member(op, i)][own];
        return sum;
    case HVD_REDUCESCATTER: return op->count / n + (own < op->count % n);
    default: return op->count;
    }
}
