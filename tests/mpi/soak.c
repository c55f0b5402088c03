/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All kinds of requests run at once, at random: each rank submits rounds of
 * named requests in an order of its own, from two threads, with blocking calls
 * in between. Some are spoiled on one rank (another shape, a bad argument, a
 * duplicate name). The results are known beforehand from a random sequence that
 * all ranks share; the order comes from one that they do not.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ranks.h"

enum { ROUNDS = 60, NREQUESTS = 60, LARGEST = 30000, NTHREADS = 2 };

enum fate { GOOD, OTHER_SHAPE, REFUSED };

struct plan {
    char name[32];
    hvd_kind kind;
    hvd_dtype dtype;
    hvd_op op;
    int root;
    int64_t count;
    enum fate fate;
    int culprit; /* the rank that spoils it */
    int seed;
    void *in, *out;
    hvd_handle handle;
    int submitted; /* status */
};

static struct plan plans[NREQUESTS];

static double given(const struct plan *p, int rank, int64_t i)
{
    return (double)((i + p->seed * 3 + rank * 5) % 7);
}

static double expected(const struct plan *p, int64_t i)
{
    double value = given(p, 0, i);

    if (p->kind == HVD_BROADCAST)
        return given(p, p->root, i);
    for (int rank = 1; rank < ranks_size(); rank++) {
        double other = given(p, rank, i);

        value = p->op == HVD_SUM   ? value + other
                : p->op == HVD_MIN ? (value < other ? value : other)
                                   : (value > other ? value : other);
    }
    return value;
}

static void make_plan(struct plan *p, int number, int round, uint64_t *shared)
{
    static const hvd_dtype dtypes[] = {HVD_FLOAT32, HVD_INT32, HVD_FLOAT64,
                                       HVD_FLOAT16, HVD_UINT8, HVD_BFLOAT16};
    static const hvd_op ops[] = {HVD_SUM, HVD_SUM, HVD_SUM, HVD_MIN, HVD_MAX};
    uint64_t r = ranks_random(shared);

    memset(p, 0, sizeof *p);
    /* Names come back round after round, with other shapes. */
    sprintf(p->name, "tensor %d", number);
    p->kind = r % 10 == 0 ? HVD_BARRIER : r % 10 < 3 ? HVD_BROADCAST : 0;
    p->dtype = dtypes[r / 10 % 6];
    p->op = ops[r / 100 % 5];
    p->root = (int)(r / 1000 % (unsigned)ranks_size());
    p->count = (int64_t)(r / 10000 % (r % 13 == 0 ? LARGEST : 300));
    p->seed = number + round;
    p->culprit = (int)(r / 100000 % (unsigned)ranks_size());
    if (ranks_size() > 1 && p->kind != HVD_BARRIER && p->count > 0)
        p->fate = r / 1000000 % 12 == 0   ? OTHER_SHAPE
                  : r / 1000000 % 12 == 1 ? REFUSED
                                          : GOOD;
}

static void fill(struct plan *p)
{
    size_t bytes = (size_t)((p->count + 1) * hvd_dtype_size(p->dtype));

    p->in = ranks_memory(bytes);
    p->out = p->seed % 3 ? ranks_memory(bytes) : p->in;
    for (int64_t i = 0; i < p->count; i++)
        element_put(p->dtype, p->kind == HVD_BROADCAST ? p->out : p->in, i,
                    given(p, ranks_rank(), i));
}

static void submit(struct plan *p)
{
    int64_t shape[2] = {p->count, 1};
    int mine = ranks_rank() == p->culprit;
    hvd_request request = ranks_sum(
        p->dtype, p->in, p->fate == REFUSED && mine ? NULL : p->out, shape);

    request.name = p->name;
    request.kind = p->kind;
    request.op = p->op;
    request.root = ranks_rooted(p->kind, p->root);
    request.ndim = p->fate == OTHER_SHAPE && mine ? 2 : 1;
    p->submitted = hvd_submit(&request, &p->handle);
}

static int wanted_status(const struct plan *p)
{
    switch (p->fate) {
    case GOOD: return HVD_OK;
    case OTHER_SHAPE: return HVD_ERR_MISMATCH;
    default:
        return ranks_rank() == p->culprit ? HVD_ERR_ARGUMENT : HVD_ERR_PEER;
    }
}

static void check(const struct plan *p, int status)
{
    if (status != wanted_status(p))
        ck_abort_msg("rank %d: '%s' gave %d, not %d: %s", ranks_rank(), p->name,
                     status, wanted_status(p), hvd_last_error());
    if (p->fate != GOOD || p->kind == HVD_BARRIER)
        return;
    for (int64_t i = 0; i < p->count; i++)
        if (element_get(p->dtype, p->out, i) != expected(p, i))
            ck_abort_msg("rank %d: '%s' [%lld] is %g, not %g", ranks_rank(),
                         p->name, (long long)i,
                         element_get(p->dtype, p->out, i), expected(p, i));
}

/* Runs one thread's share, in an order of its own. */
struct share {
    int first;
    uint64_t state;
    int order[NREQUESTS];
    int n;
};

static void *submit_share(void *argument)
{
    struct share *s = argument;

    for (int i = 0; i < s->n; i++) {
        submit(&plans[s->order[i]]);
        if (ranks_random(&s->state) % 17 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 30000}, NULL);
    }
    return NULL;
}

static void deal(struct share *s, int first, uint64_t seed)
{
    *s = (struct share){.first = first, .state = seed};
    for (int k = first; k < NREQUESTS; k += NTHREADS)
        s->order[s->n++] = k;
    for (int i = s->n - 1; i > 0; i--) {
        int j = (int)(ranks_random(&s->state) % (uint64_t)(i + 1));
        int kept = s->order[i];

        s->order[i] = s->order[j];
        s->order[j] = kept;
    }
}

static void run_round(int round, uint64_t *shared, uint64_t *own)
{
    pthread_t threads[NTHREADS];
    struct share shares[NTHREADS];

    for (int k = 0; k < NREQUESTS; k++) {
        make_plan(&plans[k], k, round, shared);
        fill(&plans[k]);
    }
    for (int t = 0; t < NTHREADS; t++) {
        deal(&shares[t], t, ranks_random(own));
        ck_assert(pthread_create(&threads[t], NULL, submit_share, &shares[t]) ==
                  0);
    }
    for (int i = 0; i < 5; i++) {
        int32_t number = ranks_rank() + i;

        ck_hvd(hvd_allreduce(&number, &number, 1, HVD_INT32, HVD_MAX));
        ck_assert_int_eq(number, ranks_size() - 1 + i);
    }
    for (int t = 0; t < NTHREADS; t++)
        pthread_join(threads[t], NULL);
    for (int k = 0; k < NREQUESTS; k++) {
        struct plan *p = &plans[k];

        check(p, p->submitted < 0 ? p->submitted : hvd_wait(p->handle));
        if (p->out != p->in)
            hvd_free(p->out);
        hvd_free(p->in);
    }
}

TEST(everything_at_random)
{
    uint64_t shared = 20240607, own = 99 + 31 * (uint64_t)ranks_rank();

    for (int round = 0; round < ROUNDS; round++)
        run_round(round, &shared, &own);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_soak")
