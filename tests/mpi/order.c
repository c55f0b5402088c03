/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named requests are submitted in a different order on every rank, from several
 * threads, with callbacks, fused or not, and every result is right.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ranks.h"

enum { NTENSORS = 150 };

/* Tensors of many sizes and three dtypes, so that batches are mixed. */
struct tensor {
    char name[32];
    hvd_dtype dtype;
    int64_t count;
    void *in;
    void *out; /* == in for every third */
    hvd_handle handle;
    atomic_int called; /* by its callback, this often */
};

static struct tensor tensors[NTENSORS];

static double given(int number, int rank, int64_t i)
{
    return (double)((number * 3 + rank * 7 + i) % 13 - 6);
}

static void prepare(void)
{
    static const hvd_dtype dtypes[] = {HVD_FLOAT32, HVD_INT32, HVD_FLOAT64};

    for (int k = 0; k < NTENSORS; k++) {
        struct tensor *t = &tensors[k];

        sprintf(t->name, "layer%d/weight", k);
        t->dtype = dtypes[k % 5 < 3 ? 0 : k % 5 - 2];
        t->count =
            k % 17 == 0 ? 0 : (int64_t)(k % 10 == 0 ? 30011 : 1 + 37 * k);
        t->in = ranks_memory((size_t)(t->count * hvd_dtype_size(t->dtype)));
        t->out =
            k % 3 == 0
                ? t->in
                : ranks_memory((size_t)(t->count * hvd_dtype_size(t->dtype)));
        ck_assert(t->in && t->out);
        for (int64_t i = 0; i < t->count; i++)
            element_put(t->dtype, t->in, i, given(k, ranks_rank(), i));
        t->handle = 0;
        atomic_store(&t->called, 0);
    }
}

static void check_and_free(void)
{
    for (int k = 0; k < NTENSORS; k++) {
        struct tensor *t = &tensors[k];

        for (int64_t i = 0; i < t->count; i++) {
            double want = 0, got = element_get(t->dtype, t->out, i);

            for (int rank = 0; rank < ranks_size(); rank++)
                want += given(k, rank, i);
            if (got != want)
                ck_abort_msg("rank %d: %s[%lld] is %g, not %g", ranks_rank(),
                             t->name, (long long)i, got, want);
        }
        if (t->out != t->in)
            hvd_free(t->out);
        hvd_free(t->in);
    }
}

/* Makes a permutation that differs between ranks and rounds. */
static void shuffle(int *order, int n, uint64_t seed)
{
    uint64_t state = seed * 2654435761u + (uint64_t)ranks_rank() * 97 + 1;

    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(ranks_random(&state) % (uint64_t)(i + 1));
        int kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
}

static int submit(struct tensor *t)
{
    return hvd_allreduce_async(t->name, t->in, t->out, t->count, t->dtype,
                               HVD_SUM, &t->handle);
}

static void shuffled_round(uint64_t seed)
{
    int order[NTENSORS];

    prepare();
    shuffle(order, NTENSORS, seed);
    for (int i = 0; i < NTENSORS; i++)
        ck_hvd(submit(&tensors[order[i]]));
    shuffle(order, NTENSORS, seed + 1000);
    for (int i = 0; i < NTENSORS; i++)
        ck_hvd(hvd_wait(tensors[order[i]].handle));
    check_and_free();
}

TEST(any_order_gives_the_same)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        shuffled_round(seed);
}

TEST(any_fusion_threshold_gives_the_same)
{
    static const char *const thresholds[] = {"0", "1", "4KB", "1MB"};

    for (int i = 0; i < 4; i++) {
        ranks_restart_with("HVD_FUSION_THRESHOLD", thresholds[i]);
        shuffled_round((uint64_t)(10 + i));
    }
    /* Rank 0's counts: a smaller buffer elsewhere must not matter. */
    ranks_restart_with("HVD_FUSION_THRESHOLD",
                       ranks_rank() == 0 ? "1MB" : "16");
    shuffled_round(20);
    ranks_restart_with("HVD_FUSION_THRESHOLD", NULL);
}

/* Sums of floats have the same bits in every order of submission, fused and
 * alone. */
TEST(fusion_does_not_change_bits)
{
    enum { N = 40, COUNT = 1001 };
    static float in[N][COUNT], fused[N][COUNT], alone[COUNT];
    hvd_handle handles[N];
    uint64_t state = 4711 + (uint64_t)ranks_rank();
    int order[N];
    char name[32];

    for (int k = 0; k < N; k++)
        for (int i = 0; i < COUNT; i++)
            in[k][i] = (float)((double)ranks_random(&state) * 0x1p-64 - 0.5);
    shuffle(order, N, 3);
    for (int i = 0; i < N; i++) {
        int k = order[i];
        sprintf(name, "t%d", k);
        ck_hvd(hvd_allreduce_async(name, in[k], fused[k], COUNT, HVD_FLOAT32,
                                   HVD_AVERAGE, &handles[k]));
    }
    for (int k = 0; k < N; k++)
        ck_hvd(hvd_wait(handles[k]));
    for (int k = 0; k < N; k++) {
        ck_hvd(hvd_allreduce(in[k], alone, COUNT, HVD_FLOAT32, HVD_AVERAGE));
        ck_assert_mem_eq(alone, fused[k], sizeof alone);
    }
}

/* ---------------------------------------------------------------- callbacks */

/* Waits until *value is not 0, without a call of the library. */
static void await(const atomic_int *value)
{
    while (atomic_load(value) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static void count_call(void *context, int status)
{
    struct tensor *t = context;

    atomic_fetch_add(&t->called, status == HVD_OK ? 1 : 1000);
}

static int submit_with_callback(struct tensor *t, hvd_handle *handle)
{
    hvd_request request = ranks_sum(t->dtype, t->in, t->out, &t->count);

    request.name = t->name;
    request.callback = count_call;
    request.callback_context = t;
    return hvd_submit(&request, handle);
}

TEST(callbacks_come_once_and_first)
{
    int order[NTENSORS];

    prepare();
    shuffle(order, NTENSORS, 77);
    for (int i = 0; i < NTENSORS; i++)
        ck_hvd(submit_with_callback(&tensors[order[i]],
                                    &tensors[order[i]].handle));
    for (int k = 0; k < NTENSORS; k++) {
        ck_hvd(hvd_wait(tensors[k].handle));
        ck_assert_int_eq(atomic_load(&tensors[k].called), 1);
    }
    check_and_free();
}

TEST(a_callback_is_enough_without_a_handle)
{
    prepare();
    for (int k = 0; k < NTENSORS; k++)
        ck_hvd(submit_with_callback(&tensors[k], NULL));
    /* No thread waits in the library, so the library's own thread does the
     * work. */
    for (int k = 0; k < NTENSORS; k++)
        await(&tensors[k].called);
    check_and_free();
}

struct chain {
    float value;
    int left;
    atomic_int done;
    int forbidden[3]; /* statuses of waiting, blocking and shutting down in a
                         callback */
};

static void go_on(void *context, int status);

static int submit_next(struct chain *chain)
{
    hvd_request request =
        ranks_sum(HVD_FLOAT32, &chain->value, &chain->value, NULL);

    /* The name is free again when the callback is called. */
    request.name = "chain";
    request.callback = go_on;
    request.callback_context = chain;
    return hvd_submit(&request, NULL);
}

static void go_on(void *context, int status)
{
    struct chain *chain = context;

    chain->forbidden[0] = hvd_wait(12345);
    chain->forbidden[1] = hvd_barrier();
    chain->forbidden[2] = hvd_shutdown();
    if (status < 0 || --chain->left == 0 || submit_next(chain) < 0)
        atomic_store(&chain->done, 1);
}

TEST(a_callback_may_submit_but_not_wait)
{
    struct chain chain = {.value = 1, .left = 5};
    float want = 1;

    ck_hvd(submit_next(&chain));
    await(&chain.done);
    for (int i = 0; i < 5; i++)
        want *= (float)ranks_size();
    ck_assert_int_eq(chain.left, 0);
    ck_assert(chain.value == want);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(chain.forbidden[i], HVD_ERR_ARGUMENT);
}

/* ------------------------------------------------------------------ threads */

struct share {
    int first; /* every fourth tensor from here */
    int failed;
};

static void *submit_share(void *argument)
{
    struct share *share = argument;

    for (int k = share->first; k < NTENSORS; k += 4)
        if (submit(&tensors[k]) < 0)
            share->failed = 1;
    for (int k = share->first; k < NTENSORS; k += 4)
        if (hvd_wait(tensors[k].handle) < 0)
            share->failed = 1;
    return NULL;
}

TEST(threads_may_submit_and_wait)
{
    pthread_t threads[4];
    struct share shares[4];

    for (int round = 0; round < 3; round++) {
        prepare();
        for (int i = 0; i < 4; i++) {
            shares[i] = (struct share){.first = (i + ranks_rank()) % 4};
            ck_assert(pthread_create(&threads[i], NULL, submit_share,
                                     &shares[i]) == 0);
        }
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            ck_assert_int_eq(shares[i].failed, 0);
        }
        check_and_free();
    }
}

/* Named requests in flight must not disturb unnamed ones, which are matched by
 * order. */
TEST(named_and_unnamed_mix)
{
    int order[NTENSORS];

    prepare();
    shuffle(order, NTENSORS, 5);
    for (int i = 0; i < NTENSORS; i++) {
        int32_t number = i;

        ck_hvd(submit(&tensors[order[i]]));
        if (i % 10 == 0) {
            ck_hvd(hvd_allreduce(&number, &number, 1, HVD_INT32, HVD_SUM));
            ck_assert_int_eq(number, i * ranks_size());
        }
    }
    for (int k = 0; k < NTENSORS; k++) {
        int done;

        while ((done = hvd_poll(tensors[k].handle)) == 0)
            continue;
        ck_assert_int_eq(done, 1);
        ck_hvd(hvd_wait(tensors[k].handle));
    }
    check_and_free();
}

/* What a rank gives in step i of the next test, at j. */
static int32_t step_value(int rank, int i, int64_t j)
{
    return (int32_t)((rank + 3) * (i + 1) + j);
}

/* Makes a call in the given buffers, and compares. Two calls in three equal the
 * one before; the others differ from it. */
static void call_and_check(int32_t *in, int32_t *out, int i)
{
    static const hvd_op ops[] = {HVD_SUM, HVD_MIN, HVD_MAX};
    int kind = i / 18 % 3, n = ranks_size(), rank = ranks_rank();
    int root = kind == 0 ? 0 : i / 9 % n;
    int64_t count = i % 9 < 6 ? 5 : 24;
    hvd_op op = ops[i / 3 % 3];

    for (int64_t j = 0; j < count; j++)
        in[j] = step_value(rank, i, j);
    if (kind == 2)
        memcpy(out, in, (size_t)count * sizeof *in);
    if (kind == 0)
        ck_hvd(hvd_allreduce(in, out, count, HVD_INT32, op));
    else if (kind == 1)
        ck_hvd(hvd_reduce(in, out, count, HVD_INT32, op, root));
    else
        ck_hvd(hvd_broadcast(out, count, HVD_INT32, root));
    for (int64_t j = 0; j < count && (kind != 1 || rank == root); j++) {
        int32_t want =
            op == HVD_MAX ? step_value(n - 1, i, j) : step_value(0, i, j);

        for (int other = 1; op == HVD_SUM && other < n; other++)
            want += step_value(other, i, j);
        if (kind == 2)
            want = step_value(root, i, j);
        ck_assert_int_eq(out[j], want);
    }
}

/* What is remembered of the call before serves none that differs from it. */
TEST(calls_repeat_and_differ)
{
    int32_t in[24], a[24], b[24], one = 1;

    for (int i = 0; i < 162; i++) {
        call_and_check(in, i % 27 < 20 ? a : b, i);
        if (i % 10 == 9)
            ck_hvd_fails(hvd_allreduce(in, NULL, 5, HVD_INT32, HVD_SUM),
                         HVD_ERR_ARGUMENT);
        if (i % 10 == 4)
            ck_hvd_fails(hvd_broadcast(a, 5, HVD_INT32, ranks_size()),
                         HVD_ERR_ARGUMENT);
        if (i % 50 == 25) {
            ck_hvd(hvd_allreduce(&one, &one, 1, HVD_INT32, HVD_MAX));
            ck_hvd(hvd_join(NULL));
        }
    }
}

/* Tensors that are neighbours in memory are reduced in place. */
TEST(neighbours_are_reduced_in_place)
{
    enum { N = 30, COUNT = 777 };
    float *arena = hvd_malloc(N * COUNT * sizeof *arena);
    hvd_handle handles[N];
    char name[32];

    ck_assert(arena != NULL);
    ck_assert_int_eq((intptr_t)arena % 64, 0);
    for (int i = 0; i < N * COUNT; i++) {
        ck_assert(arena[i] == 0);
        arena[i] = (float)(i % 100 + ranks_rank());
    }
    for (int k = 0; k < N; k++) {
        sprintf(name, "g%d", k);
        ck_hvd(hvd_allreduce_async(name, arena + k * COUNT, arena + k * COUNT,
                                   COUNT, HVD_FLOAT32, HVD_SUM, &handles[k]));
    }
    for (int k = 0; k < N; k++)
        ck_hvd(hvd_wait(handles[k]));
    for (int i = 0; i < N * COUNT; i++)
        ck_assert(arena[i] == (float)(i % 100 * ranks_size() +
                                      ranks_size() * (ranks_size() - 1) / 2));
    hvd_free(arena);
    hvd_free(NULL);
}

RANKS_TEST_MAIN(PROGRAM_STARTS_MPI, "mpi_order")
