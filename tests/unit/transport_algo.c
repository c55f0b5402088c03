/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every algorithm that moves data between ranks gives the right results, for
 * many numbers of ranks and sizes, whatever is late. The ranks are simulated
 * (simulated.h), and step in an order that a seed gives.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "simulated_run.h"
#include "suite.h"

static bool is_even(int rank)
{
    return rank % 2 == 0;
}

/* -------------------------------------------------------------- reductions */

static const struct hvd__algorithm *const reductions[] = {
    &hvd__reduce_hosts,         &hvd__reduce_hosts_doubling,
    &hvd__reduce_hosts_halving, &hvd__reduce_hosts_chain,
    &hvd__reduce_direct,        &hvd__reduce_doubling,
    &hvd__reduce_halving,       &hvd__reduce_scatter,
    &hvd__scatter_hosts,        NULL};
enum { REDUCTIONS = sizeof reductions / sizeof *reductions };

struct sum {
    enum hvd__motion motion;
    hvd_dtype dtype; /* HVD_INT32 or HVD_FLOAT32 */
    int size;
    const int *widths;
    int nwidths;
    int64_t count;
    int root;
};

static void put(hvd_dtype dtype, void *data, int64_t i, int value)
{
    if (dtype == HVD_INT32)
        ((int32_t *)data)[i] = value;
    else
        ((float *)data)[i] = (float)value;
}

static int get(hvd_dtype dtype, const void *data, int64_t i)
{
    return dtype == HVD_INT32 ? ((const int32_t *)data)[i]
                              : (int)((const float *)data)[i];
}

static void check_sum(const struct sum *sum, const struct member *m, int rank)
{
    struct hvd__slice part = {0, sum->count};

    if (sum->motion == HVD__REDUCE_TO_ROOT && rank != sum->root)
        return;
    if (sum->motion == HVD__REDUCE_TO_SHARES)
        part = hvd__slice_of(sum->count, rank, sum->size);
    for (int64_t i = 0; i < part.count; i++)
        SIMULATED_ASSERT(get(sum->dtype, m->output, i) ==
                         sum_of(sum->size, part.start + i));
}

/* Reduces with one algorithm, if it applies. Every second rank works in
 * place. */
static void reduce(const struct sum *sum,
                   const struct hvd__algorithm *algorithm)
{
    struct run run = run_begin(sum->size, sum->widths, sum->nwidths,
                               (int)sum->count + sum->size);
    size_t bytes = (size_t)sum->count * 4;
    bool applies = true;

    for (int i = 0; i < sum->size; i++) {
        struct member *m = &run.members[i];
        struct hvd__collective *c = &m->collective;

        give(m, bytes, bytes,
             is_even(i) && sum->motion != HVD__REDUCE_TO_SHARES);
        c->motion = sum->motion;
        c->reduction.dtype = sum->dtype;
        c->reduction.op = HVD_SUM;
        c->count = sum->count;
        c->root = sum->root;
        applies = !algorithm || algorithm->applies(c);
    }
    if (applies) {
        for (int i = 0; i < sum->size; i++)
            for (int64_t k = 0; k < sum->count; k++)
                put(sum->dtype, run.members[i].input, k, given(i, k));
        run_all(&run, algorithm);
        for (int i = 0; i < sum->size; i++)
            check_sum(sum, &run.members[i], i);
    }
    run_end(&run);
}

static const enum hvd__motion motions[] = {
    HVD__REDUCE_TO_ALL, HVD__REDUCE_TO_ROOT, HVD__REDUCE_TO_SHARES};

/* Of all numbers of ranks. */
LOOP_TEST(reductions_are_right, 0, REDUCTIONS)
{
    static const int64_t counts[] = {1, 2, 33, 1001};

    for (int n = 2; n <= MOST_RANKS; n += n > 9 && n % 8 == 1 ? 6 : 1)
        for (int m = 0; m < 3; m++)
            for (int k = 0; k < 4; k++)
                reduce(&(struct sum){.motion = motions[m],
                                     .dtype = m ? HVD_FLOAT32 : HVD_INT32,
                                     .size = n,
                                     .count = counts[k],
                                     .root = (int)(counts[k] % n)},
                       reductions[_i]);
}

/* Of several segments. */
LOOP_TEST(large_reductions_are_right, 0, REDUCTIONS)
{
    static const int sizes[] = {2, 3, 4, 7};

    for (int k = 0; k < 4; k++)
        for (int m = 0; m < 3; m++)
            reduce(&(struct sum){.motion = motions[m],
                                 .dtype = HVD_FLOAT32,
                                 .size = sizes[k],
                                 .count = 1500007,
                                 .root = sizes[k] - 1},
                   reductions[_i]);
}

/* With a few partners at a time, in many segments. Children of a broadcast
 * need more transfers. */
LOOP_TEST(reductions_with_little_memory_are_right, 0, REDUCTIONS)
{
    has_little = true;
    for (int n = 2; n <= MOST_RANKS; n += n > 9 && n % 8 == 1 ? 6 : 3)
        for (int m = 0; m < 3; m++)
            reduce(&(struct sum){.motion = motions[m],
                                 .dtype = HVD_INT32,
                                 .size = n,
                                 .count = 10007,
                                 .root = n - 1},
                   reductions[_i]);
}

LOOP_TEST(reductions_over_hosts_are_right, 0, REDUCTIONS *LAYOUTS)
{
    static const int64_t counts[] = {1, 33, 1001, 70001};
    int l = _i / REDUCTIONS;

    for (int n = 2; n <= 13; n = after(n))
        for (int m = 0; m < 3; m++)
            for (int k = 0; k < 4; k++)
                reduce(&(struct sum){.motion = motions[m],
                                     .dtype = HVD_INT32,
                                     .size = n,
                                     .widths = layouts[l].widths,
                                     .nwidths = layouts[l].n,
                                     .count = counts[k],
                                     .root = n / 2},
                       reductions[_i % REDUCTIONS]);
}

static const int pairs[] = {2};

/* Two hosts of two ranks tell each other their sums, once. */
TEST(sums_of_hosts_cross_a_link_once)
{
    static const int64_t counts[] = {5000, 16384, 100000};

    for (int k = 0; k < 3; k++) {
        struct run run = run_begin(4, pairs, 1, k);
        size_t bytes = (size_t)counts[k] * sizeof(float);
        int64_t sent = 0;

        for (int i = 0; i < 4; i++) {
            struct hvd__collective *c = &run.members[i].collective;

            c->motion = HVD__REDUCE_TO_ALL;
            c->count = counts[k];
            c->reduction.dtype = HVD_FLOAT32;
            c->reduction.op = HVD_SUM;
            give(&run.members[i], bytes, bytes, false);
            memset(run.members[i].input, 0, bytes);
        }
        run_all(&run, NULL);
        for (int i = 0; i < 4; i++)
            sent += simulated_sent(run.simulated, i, true).bytes;
        ck_assert_int_eq(sent, 2 * (int64_t)bytes);
        run_end(&run);
    }
}

/* ----------------------------------------------------------- adaptive sums */

static const int uneven[] = {3, 1, 2}, fours[] = {4}, mixed[] = {4, 2, 1, 6};
static const struct {
    const int *widths;
    int n;
} groups[] = {{pairs, 1}, {fours, 1}, {uneven, 3}, {mixed, 4}};
enum { GROUPS = sizeof groups / sizeof *groups };

/* Sums of hosts are of floats that have no exact sums, so that another order of
 * additions shows. Returns the result of all ranks, which have the same, in
 * memory that the caller frees. *sent becomes the bytes between hosts. */
static unsigned char *adasum(int size, int layout, hvd_dtype dtype,
                             int64_t count,
                             const struct hvd__algorithm *algorithm,
                             int64_t *sent)
{
    struct run run =
        run_begin(size, groups[layout].widths, groups[layout].n, size);
    size_t bytes = (size_t)count * hvd__dtype_bytes(dtype);
    const struct hvd__hosts *hosts = simulated_team(run.simulated, 0)->hosts;
    unsigned char *result = malloc(bytes + 1);

    for (int i = 0; i < size; i++) {
        struct member *m = &run.members[i];
        struct hvd__collective *c = &m->collective;

        give(m, bytes, bytes, is_even(i));
        for (int64_t k = 0; k < count; k++) {
            float value = 1 / (float)(1 + given(i, k));

            hvd__convert(dtype, m->input + (size_t)k * hvd__dtype_bytes(dtype),
                         HVD_FLOAT32, &value, 1, 1);
        }
        c->motion = HVD__REDUCE_TO_ALL;
        c->reduction.dtype = dtype;
        c->reduction.op = HVD_ADASUM;
        c->reduction.postscale = 3;
        c->count = count;
        c->scratch = malloc(
            hvd__adasum_scratch(dtype, count, size, hosts ? hosts->widest : 1));
    }
    if (!run.members[0].collective.team->hosts ||
        !algorithm->applies(&run.members[0].collective))
        algorithm = &hvd__reduce_adasum;
    run_all(&run, algorithm);
    *sent = 0;
    for (int i = 0; i < size; i++) {
        SIMULATED_ASSERT(
            memcmp(run.members[i].output, run.members[0].output, bytes) == 0);
        *sent += simulated_sent(run.simulated, i, true).bytes;
        free(run.members[i].collective.scratch);
    }
    memcpy(result, run.members[0].output, bytes);
    run_end(&run);
    return result;
}

LOOP_TEST(adaptive_sums_of_hosts_have_the_same_bits, 0, GROUPS * 3)
{
    static const hvd_dtype dtypes[] = {HVD_FLOAT32, HVD_FLOAT64, HVD_FLOAT16};
    static const int64_t counts[] = {1, 5, 17, 1001, 30011};
    hvd_dtype dtype = dtypes[_i / GROUPS];

    for (int n = 2; n <= 21; n = after(n))
        for (int k = 0; k < 5; k++) {
            int64_t sent, few;
            unsigned char *flat = adasum(n, _i % GROUPS, dtype, counts[k],
                                         &hvd__reduce_adasum, &sent);
            unsigned char *hosts = adasum(n, _i % GROUPS, dtype, counts[k],
                                          &hvd__reduce_adasum_hosts, &few);

            if (memcmp(flat, hosts,
                       (size_t)counts[k] * hvd__dtype_bytes(dtype)) != 0)
                ck_abort_msg("%d ranks, layout %d, %s, %d elements: other bits",
                             n, _i % GROUPS, hvd_dtype_name(dtype),
                             (int)counts[k]);
            SIMULATED_ASSERT(counts[k] < 1000 || dtype == HVD_FLOAT16 ||
                             few <= sent);
            free(flat);
            free(hosts);
        }
}

/* A vector for each host crosses a link once in each direction, and dot
 * products. */
TEST(adaptive_sums_cross_a_link_once)
{
    enum { COUNT = 30000, RANKS = 8, HOSTS = 4, DOTS = RANKS * RANKS * 24 * 4 };
    int64_t sent, vectors = (int64_t)COUNT * sizeof(float);

    free(
        adasum(RANKS, 0, HVD_FLOAT32, COUNT, &hvd__reduce_adasum_hosts, &sent));
    ck_assert_int_ge(sent, 2 * vectors * (HOSTS - 1));
    ck_assert_int_lt(sent, 2 * vectors * (HOSTS - 1) + DOTS);
}

/* -------------------------------------------------------------- broadcasts */

static const struct hvd__algorithm *const broadcasts[] = {
    &hvd__broadcast_binomial, &hvd__broadcast_hosts, NULL};
enum { BROADCASTS = sizeof broadcasts / sizeof *broadcasts };

static void broadcast(int size, int layout, int64_t count, int root,
                      const struct hvd__algorithm *algorithm)
{
    struct run run = layout < 0 ? run_begin(size, NULL, 0, size)
                                : run_begin(size, layouts[layout].widths,
                                            layouts[layout].n, size);
    bool applies = true;

    for (int i = 0; i < size; i++) {
        struct member *m = &run.members[i];
        struct hvd__collective *c = &m->collective;

        give(m, 0, (size_t)count, true);
        for (int64_t k = 0; i == root && k < count; k++)
            m->output[k] = (unsigned char)given(root, k);
        c->motion = HVD__SEND_FROM_ROOT;
        c->reduction = (struct hvd__reduction){.dtype = HVD_UINT8};
        c->count = count;
        c->root = root;
        applies = !algorithm || algorithm->applies(c);
    }
    if (applies)
        run_all(&run, algorithm);
    for (int i = 0; applies && i < size; i++)
        for (int64_t k = 0; k < count; k++)
            SIMULATED_ASSERT(run.members[i].output[k] == given(root, k));
    run_end(&run);
}

LOOP_TEST(broadcasts_are_right, 0, BROADCASTS *(LAYOUTS + 1))
{
    static const int64_t counts[] = {1, 31, 10007, 300001};

    for (int n = 2; n <= 17; n = after(n))
        for (int k = 0; k < (n < 9 ? 4 : 3); k++)
            for (int root = 0; root < n; root += k < 2 ? 1 : n / 2)
                broadcast(n, _i / BROADCASTS - 1, counts[k], root,
                          broadcasts[_i % BROADCASTS]);
}

LOOP_TEST(large_broadcasts_are_right, 0, BROADCASTS *(LAYOUTS + 1))
{
    for (int n = 2; n <= 5; n++)
        broadcast(n, _i / BROADCASTS - 1, 4500001, n - 1,
                  broadcasts[_i % BROADCASTS]);
}

TEST_MAIN("transport_algo", .set_up = keep_memory, .set_up_once = make_data,
          .seconds = 200)
