/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adaptive sums of simulated ranks: hosts change no bit of them, and send as
 * little as they can.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "simulated_run.h"
#include "suite.h"

static const int uneven[] = {3, 1, 2}, pairs[] = {2}, fours[] = {4},
                 mixed[] = {4, 2, 1, 6};
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

        give(m, bytes, bytes, i % 2 == 0);
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

TEST_MAIN("transport_adasum", .set_up = keep_memory, .set_up_once = make_data,
          .seconds = 200)
