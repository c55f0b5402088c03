/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process sets are made, used, mixed, misused and removed.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

enum { MOST = 8 };

/* Every n-th rank from first on. */
static int32_t choose(int32_t *ranks, int first, int step)
{
    int32_t n = 0;

    for (int rank = first; rank < ranks_size(); rank += step)
        ranks[n++] = rank;
    return n;
}

static int sum_on(int set, const char *name, double *value)
{
    hvd_request request = ranks_sum(HVD_FLOAT64, value, value, NULL);

    request.name = name;
    request.process_set = set;
    return ranks_run(&request);
}

TEST(the_world_is_set_0)
{
    int32_t ids[4] = {-1, -1}, ranks[MOST];

    ck_assert_int_eq(hvd_number_of_process_sets(), 1);
    ck_assert_int_eq(hvd_process_set_ids(ids, 4), 1);
    ck_assert_int_eq(ids[0], 0);
    ck_assert_int_eq(hvd_process_set_rank(0), ranks_rank());
    ck_assert_int_eq(hvd_process_set_size(0), ranks_size());
    ck_assert_int_eq(hvd_process_set_included(0), 1);
    ck_assert_int_eq(hvd_process_set_ranks(0, ranks, MOST), ranks_size());
    for (int rank = 0; rank < ranks_size(); rank++)
        ck_assert_int_eq(ranks[rank], rank);
}

TEST(a_set_is_a_world_of_its_own)
{
    int32_t ranks[MOST], got[MOST];
    int32_t n = choose(ranks, 0, 2);
    int id, member = ranks_rank() % 2 == 0;
    double value = ranks_rank() + 1, want = 0;

    if (ranks_size() < 3)
        return; /* this set would be the world's, or empty */
    /* Backwards: the order does not matter. */
    for (int i = 0; i < n / 2; i++) {
        int32_t t = ranks[i];
        ranks[i] = ranks[n - 1 - i];
        ranks[n - 1 - i] = t;
    }
    id = hvd_add_process_set(ranks, n);
    ck_hvd(id);
    ck_assert_int_gt(id, 0);
    ck_assert_int_eq(hvd_process_set_size(id), n);
    ck_assert_int_eq(hvd_process_set_included(id), member);
    ck_assert_int_eq(hvd_process_set_ranks(id, got, MOST), n);
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(got[i], 2 * i);
    for (int rank = 0; rank < ranks_size(); rank += 2)
        want += rank + 1;
    if (member) {
        ck_assert_int_eq(hvd_process_set_rank(id), ranks_rank() / 2);
        ck_hvd(sum_on(id, "x", &value));
        ck_assert(value == want);
    } else {
        ck_hvd_fails(hvd_process_set_rank(id), HVD_ERR_PROCESS_SET);
        ck_hvd_fails(sum_on(id, "x", &value), HVD_ERR_PROCESS_SET);
        ck_error_says("not a member of process set");
    }
    ck_hvd(hvd_remove_process_set(id));
    ck_assert_int_eq(hvd_number_of_process_sets(), 1);
}

/* The sets are {0,1}, {1,2}, ..., {n-1,0}, so each rank waits for one that
 * waits for another. */
TEST(a_ring_of_overlapping_sets_never_locks)
{
    enum { ROUNDS = 40 };
    int n = ranks_size(), ids[MOST];
    hvd_handle handles[2 * ROUNDS];
    double values[2 * ROUNDS];

    if (n < 3)
        return;
    for (int i = 0; i < n; i++) {
        int32_t pair[2] = {i, (i + 1) % n};
        ids[i] = hvd_add_process_set(pair, 2);
        ck_hvd(ids[i]);
    }
    for (int round = 0; round < ROUNDS; round++)
        for (int side = 0; side < 2; side++) {
            /* The order alternates between the right set first and the left set
             * first. */
            int which = (side + round + ranks_rank()) % 2;
            int set = ids[(ranks_rank() + n - which) % n], k = 2 * round + side;
            char name[32];
            hvd_request request;

            values[k] = ranks_rank() + 1;
            snprintf(name, sizeof name, "same/%d", round);
            request = ranks_sum(HVD_FLOAT64, &values[k], &values[k], NULL);
            request.name = name;
            request.process_set = set;
            ck_hvd(hvd_submit(&request, &handles[k]));
        }
    for (int k = 2 * ROUNDS - 1; k >= 0; k--) {
        int which = (k % 2 + k / 2 + ranks_rank()) % 2;
        int first = (ranks_rank() + n - which) % n;

        ck_hvd(hvd_wait(handles[k]));
        ck_assert(values[k] == first + 1 + (first + 1) % n + 1);
    }
    for (int i = 0; i < n; i++)
        ck_hvd(hvd_remove_process_set(ids[i]));
}

TEST(one_set_goes_on_while_another_waits)
{
    int32_t ranks[MOST], n = choose(ranks, 0, 1);
    int pair, last = ranks_size() - 1;
    double held = 1, value = 1;
    hvd_request request;
    hvd_handle handle = 0;

    if (ranks_size() < 3)
        return;
    ck_hvd(pair = hvd_add_process_set(ranks, n - 1)); /* all but the last */
    request = ranks_sum(HVD_FLOAT64, &held, &held, NULL);
    request.name = "held";
    if (ranks_rank() != last) {
        ck_hvd(hvd_submit(&request, &handle)); /* on the world: not yet */
        for (int i = 0; i < 20; i++) {
            value = 1;
            ck_hvd(sum_on(pair, NULL, &value));
            ck_assert(value == last);
        }
        ck_assert_int_eq(hvd_poll(handle), 0);
    }
    ck_hvd(hvd_barrier());
    if (ranks_rank() == last)
        ck_hvd(hvd_submit(&request, &handle));
    ck_hvd(hvd_wait(handle));
    ck_assert(held == ranks_size());
    ck_hvd(hvd_remove_process_set(pair));
}

TEST(every_kind_works_on_a_set)
{
    int32_t ranks[MOST], n = choose(ranks, 1, 1);
    int set, me;
    int64_t shape[1] = {2}, counts[MOST];
    float in[2 * MOST], out[2 * MOST];
    hvd_request request;
    hvd_handle handle;
    hvd_tensor tensor = {.size = sizeof tensor};

    if (ranks_size() < 3)
        return;
    ck_hvd(set = hvd_add_process_set(ranks, n));
    if (!hvd_process_set_included(set)) {
        ck_hvd(hvd_remove_process_set(set));
        return;
    }
    me = hvd_process_set_rank(set);
    in[0] = (float)ranks_rank();
    in[1] = 5;
    request = ranks_sum(HVD_FLOAT32, in, out, shape);
    request.process_set = set;

    request.kind = HVD_BROADCAST;
    request.root = 2; /* a rank of the world */
    out[0] = (float)(100 + ranks_rank());
    out[1] = 0;
    ck_hvd(ranks_run(&request));
    ck_assert(out[0] == 102);

    request.kind = HVD_ALLGATHER;
    request.root = 0;
    request.output = NULL;
    request.counts = counts;
    ck_hvd(hvd_submit(&request, &handle));
    ck_hvd(hvd_wait_output(handle, &tensor));
    ck_assert_int_eq(tensor.shape[0], 2 * n);
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(counts[i], 2);
        ck_assert(((float *)tensor.data)[2 * i] == (float)(i + 1));
    }
    hvd_free(tensor.data);

    request.kind = HVD_REDUCE;
    request.output = out;
    request.counts = NULL;
    request.op = HVD_MAX;
    request.root = 1;
    ck_hvd(ranks_run(&request));
    ck_assert(me != 0 || out[0] == (float)(ranks_size() - 1));

    request.kind = HVD_ALLTOALL;
    request.root = 0;
    shape[0] = n;
    for (int i = 0; i < n; i++)
        in[i] = (float)(10 * me + i);
    ck_hvd(ranks_run(&request));
    for (int i = 0; i < n; i++)
        ck_assert(out[i] == (float)(10 * i + me));

    request.kind = HVD_REDUCESCATTER;
    request.op = HVD_AVERAGE;
    ck_hvd(ranks_run(&request));
    ck_assert(out[0] == 10 * (float)(n - 1) / 2 + (float)me);

    request.kind = HVD_BARRIER;
    ck_hvd(ranks_run(&request));
    /* Rank 0 is in the world, not in the set. */
    request.kind = HVD_BROADCAST;
    request.root = 0;
    ck_hvd_fails(hvd_submit(&request, &handle), HVD_ERR_ARGUMENT);
    ck_error_says("root 0 is not a rank of process set");
    ck_hvd(hvd_remove_process_set(set));
}

TEST(mistakes_are_everybodys)
{
    int32_t ranks[MOST] = {0}, n = choose(ranks, 0, 1), twice[2] = {0, 0};
    int32_t far[1] = {ranks_size()}, mine[1] = {0};
    int last = ranks_size() - 1;

    ck_hvd_fails(hvd_add_process_set(ranks, n), HVD_ERR_ARGUMENT);
    ck_error_says("process set 0 consists of these ranks already");
    ck_hvd_fails(hvd_add_process_set(twice, 2), HVD_ERR_ARGUMENT);
    ck_error_says("rank 0 is twice");
    ck_hvd_fails(hvd_add_process_set(far, 1), HVD_ERR_ARGUMENT);
    ck_error_says("is not one of the");
    ck_hvd_fails(hvd_add_process_set(NULL, 3), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_add_process_set(ranks, -1), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_remove_process_set(0), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_remove_process_set(77), HVD_ERR_PROCESS_SET);
    ck_hvd_fails(hvd_remove_process_set(-1), HVD_ERR_PROCESS_SET);
    ck_hvd_fails(hvd_process_set_size(77), HVD_ERR_PROCESS_SET);
    ck_hvd_fails(hvd_process_set_included(-3), HVD_ERR_PROCESS_SET);
    ck_hvd_fails(hvd_process_set_ranks(5, ranks, 1), HVD_ERR_PROCESS_SET);
    ck_hvd_fails(hvd_process_set_ids(NULL, 3), HVD_ERR_ARGUMENT);
    if (last == 0)
        return;
    /* One rank makes a mistake, or ranks want different sets. */
    ck_hvd_fails(hvd_add_process_set(ranks_rank() == last ? twice : mine,
                                     ranks_rank() == last ? 2 : 1),
                 HVD_ERR_ARGUMENT);
    mine[0] = ranks_rank() == last;
    ck_hvd_fails(hvd_add_process_set(mine, 1), HVD_ERR_MISMATCH);
    ck_error_says("rank 0: add ranks 0; rank");
    ck_error_says("add ranks 1");
    ck_hvd_fails(ranks_rank() == last ? hvd_remove_process_set(0)
                                      : hvd_add_process_set(mine, 1),
                 HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_number_of_process_sets(), 1);
}

TEST(removal_fails_what_cannot_complete)
{
    int32_t ranks[MOST], n = choose(ranks, 0, 1);
    int set, next;
    double value = 1;
    hvd_request request;
    hvd_handle handle = 0;

    if (ranks_size() < 3)
        return;
    ck_hvd(set = hvd_add_process_set(ranks, n - 1));
    request = ranks_sum(HVD_FLOAT64, &value, &value, NULL);
    request.name = "lonely";
    request.process_set = set;
    if (ranks_rank() == 0)
        ck_hvd(hvd_submit(&request, &handle));
    ck_hvd(hvd_remove_process_set(set));
    if (ranks_rank() == 0) {
        ck_hvd_fails(hvd_wait(handle), HVD_ERR_SHUTDOWN);
        ck_error_says("'lonely' cannot complete");
    }
    ck_hvd_fails(hvd_submit(&request, &handle), HVD_ERR_PROCESS_SET);
    ck_hvd_fails(hvd_process_set_size(set), HVD_ERR_PROCESS_SET);
    /* An id is never used again. */
    ck_hvd(next = hvd_add_process_set(ranks, n - 1));
    ck_assert_int_gt(next, set);
    ck_hvd(hvd_remove_process_set(next));
}

TEST(many_come_and_go)
{
    int32_t one[1];
    double value;

    for (int i = 0; i < 300; i++) {
        int set;

        one[0] = i % ranks_size();
        if (ranks_size() == 1)
            return;
        ck_hvd(set = hvd_add_process_set(one, 1));
        value = 4;
        if (hvd_process_set_included(set))
            ck_hvd(sum_on(set, "alone", &value));
        ck_assert(value == 4);
        ck_hvd(hvd_remove_process_set(set));
    }
}

/* Returns the bytes of malloc's memory that are in use. */
static size_t in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* Two ranks make a set, add up tensors on it, small and large, compressed, and
 * once more, and wait for one handle only when the set is gone. Then every
 * request on the set is refused. */
static int come_and_go(double *value, float *large, int before)
{
    const int32_t pair[] = {0, 1};
    int id = hvd_add_process_set(pair, 2), member = ranks_rank() < 2;
    hvd_request request;
    hvd_handle late = 0;

    ck_hvd(id);
    ck_assert_int_gt(id, before);
    request = ranks_sum(HVD_FLOAT32, large, large, (const int64_t[]){1000});
    request.name = "large";
    request.process_set = id;
    request.compression = HVD_COMPRESSION_TOPK;
    for (int i = 0; i < 2 && member; i++) {
        *value = 1;
        ck_hvd(sum_on(id, "x", value));
        ck_assert(*value == 2);
        ck_hvd(ranks_run(&request));
    }
    if (member)
        ck_hvd(hvd_submit(&request, &late));
    ck_hvd(hvd_remove_process_set(id));
    if (member) {
        ck_hvd(hvd_wait(late));
        ck_hvd_fails(sum_on(id, "x", value), HVD_ERR_PROCESS_SET);
        ck_hvd_fails(ranks_run(&request), HVD_ERR_PROCESS_SET);
    }
    ck_hvd_fails(hvd_process_set_size(id), HVD_ERR_PROCESS_SET);
    return id;
}

/* A thread asks for the newest sets, whether they exist or not. */
static _Atomic int newest;
static atomic_bool enough;

static void *ask_for_sets(void *context)
{
    double value = 0;

    (void)context;
    while (!atomic_load(&enough)) {
        int id = atomic_load(&newest) + 1;

        if (hvd_process_set_included(id) == 1 && hvd_process_set_rank(id) < 0)
            hvd_process_set_ranks(id, NULL, 0);
        /* Nobody else submits it: it fails when the set goes, or before. */
        if (sum_on(id, "alone", &value) == HVD_OK)
            return &newest;
    }
    return NULL;
}

/* MPI's own buffers grow now and then and stay. A leak of sets would show after
 * every round. */
TEST(sets_that_are_gone_leave_nothing)
{
    enum { ROUNDS = 5, SETS = 50 };
    static float large[1000];
    double value;
    int64_t least = INT64_MAX;
    int id = 0;

    if (ranks_size() < 3)
        return; /* two are the world */
    for (int round = 0; round < ROUNDS; round++) {
        int64_t before = (int64_t)in_use(), left;

        for (int i = 0; i < SETS; i++)
            id = come_and_go(&value, large, id);
        left = (int64_t)in_use() - before;
        least = left < least ? left : least;
    }
    ck_assert_msg(least < 64 * SETS,
                  "rank %d: %d process sets leave at least %lld bytes",
                  ranks_rank(), SETS, (long long)least);
    ck_assert_int_eq(hvd_number_of_process_sets(), 1);
}

TEST(threads_may_ask_for_sets_that_go)
{
    const int32_t pair[] = {0, 1};
    pthread_t thread;
    void *mistaken = NULL;
    int id;

    if (ranks_size() < 3)
        return;
    atomic_store(&enough, false);
    id = hvd_add_process_set(pair, 2);
    ck_hvd(hvd_remove_process_set(id));
    atomic_store(&newest, id);
    if (ranks_rank() == 0)
        ck_assert(pthread_create(&thread, NULL, ask_for_sets, NULL) == 0);
    for (int i = 0; i < 40; i++) {
        id = hvd_add_process_set(pair, 2);
        ck_hvd(id);
        ck_hvd(hvd_remove_process_set(id));
        atomic_store(&newest, id);
    }
    atomic_store(&enough, true);
    if (ranks_rank() == 0)
        pthread_join(thread, &mistaken);
    ck_assert(mistaken == NULL);
}

TEST(sets_from_the_beginning)
{
    int n = ranks_size();
    int32_t sizes[2] = {1, n > 2 ? n - 1 : 1}, ranks[MOST];
    hvd_options options;
    double value = ranks_rank() + 1;

    if (n < 2)
        return;
    ranks[0] = n - 1;
    for (int i = 0; i < n - 1; i++)
        ranks[1 + i] = i;
    hvd_options_init(&options, sizeof options);
    options.nprocess_sets = 2;
    options.process_set_sizes = sizes;
    options.process_set_ranks = ranks;
    ck_hvd_fails(hvd_init_with(&options), HVD_ERR_ARGUMENT);
    ck_error_says("initialised already");
    ck_hvd(hvd_shutdown());
    ck_hvd(hvd_init_with(&options));
    ck_assert_int_eq(hvd_number_of_process_sets(), 3);
    ck_assert_int_eq(hvd_process_set_included(1), ranks_rank() == n - 1);
    if (hvd_process_set_included(2)) {
        ck_hvd(sum_on(2, NULL, &value));
        ck_assert(value == (n > 2 ? n * (n - 1) / 2 : 1));
    }
    ck_hvd(hvd_shutdown());
    /* A wrong set is an error, and the library stays uninitialised. */
    options.nprocess_sets = ranks_rank() == 0 ? 1 : 2;
    ck_hvd_fails(hvd_init_with(&options), HVD_ERR_MISMATCH);
    ck_assert_int_eq(hvd_is_initialized(), 0);
    options.nprocess_sets = 1;
    ranks[0] = 99;
    ck_hvd_fails(hvd_init_with(&options), HVD_ERR_ARGUMENT);
    ck_error_says("99");
    ck_hvd_fails(hvd_init_with(NULL), HVD_ERR_ARGUMENT);
    ck_hvd(hvd_init());
}

/* Metrics count only what the program asked for, not what the library needs for
 * starting and for sets. The program's first request has the number 0. */
TEST(the_librarys_own_are_not_counted)
{
    const int32_t sizes[] = {1}, ranks[] = {0};
    int32_t first = 0;
    float value = 1;
    int set;
    hvd_options options;
    hvd_metrics metrics = {.size = sizeof metrics};

    ck_hvd(hvd_shutdown());
    hvd_options_init(&options, sizeof options);
    if (ranks_size() > 1) {
        options.nprocess_sets = 1;
        options.process_set_sizes = sizes;
        options.process_set_ranks = ranks;
    }
    ck_hvd(hvd_init_with(&options));
    if (ranks_size() > 2) {
        const int32_t two[] = {0, 1};

        ck_hvd(set = hvd_add_process_set(two, 2));
        ck_hvd(hvd_remove_process_set(set));
    }
    ck_hvd(hvd_get_metrics(&metrics));
    for (int kind = 0; kind < HVD_NUM_KINDS; kind++) {
        ck_assert_int_eq(metrics.kinds[kind].submitted, 0);
        ck_assert_int_eq(metrics.kinds[kind].completed, 0);
        ck_assert_int_eq(metrics.kinds[kind].latency_ns, 0);
    }
    ck_assert_int_eq(metrics.batches + metrics.batched, 0);
    ck_hvd_fails(hvd_broadcast(&first, 1, HVD_INT32, ranks_rank() ? 0 : -1),
                 ranks_rank() ? HVD_ERR_PEER : HVD_ERR_ARGUMENT);
    ck_assert(ranks_rank() == 0 ||
              strstr(hvd_last_error(), "unnamed operation 0 "));
    ck_hvd(hvd_allreduce(&value, &value, 1, HVD_FLOAT32, HVD_SUM));
    ck_hvd(hvd_get_metrics(&metrics));
    ck_assert_int_eq(metrics.kinds[HVD_ALLREDUCE].completed, 1);
    ck_hvd(hvd_shutdown());
    /* A rank whose sets differ from the others' gets an error. */
    if (ranks_size() > 1) {
        options.nprocess_sets = ranks_rank() == 0;
        ck_hvd_fails(hvd_init_with(&options), HVD_ERR_MISMATCH);
        ck_error_says("others with 0 to 1");
    }
    ck_hvd(hvd_init());
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_process_sets")
