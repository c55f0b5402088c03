/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ten thousand tensors are in flight, in another order on every rank, from four
 * threads. Names come back with other shapes and kinds; requests recur, and
 * then differ; priorities count; and nothing costs anything when nothing
 * happens.
 */
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ranks.h"

enum { TENSORS = 10000, THREADS = 4 };

struct tensor {
    char name[32];
    int32_t values[3];
    int64_t count;
    hvd_handle handle;
    int status;
};

static struct tensor tensors[TENSORS];
static int order[TENSORS];

static void shuffle(uint64_t seed)
{
    for (int i = 0; i < TENSORS; i++)
        order[i] = i;
    for (int i = TENSORS - 1; i > 0; i--) {
        int k = (int)(ranks_random(&seed) % (uint64_t)(i + 1)), t = order[i];
        order[i] = order[k];
        order[k] = t;
    }
}

static int submit_one(struct tensor *t)
{
    return hvd_allreduce_async(t->name, t->values, t->values, t->count,
                               HVD_INT32, HVD_SUM, &t->handle);
}

static void *submit_some(void *argument)
{
    int first = *(int *)argument;

    for (int i = first; i < TENSORS; i += THREADS) {
        struct tensor *t = &tensors[order[i]];

        t->status = submit_one(t);
    }
    for (int i = first; i < TENSORS; i += THREADS) {
        struct tensor *t = &tensors[order[i]];

        if (t->status == HVD_OK)
            t->status = hvd_wait(t->handle);
    }
    return NULL;
}

static void run_round(int round)
{
    pthread_t threads[THREADS];
    int firsts[THREADS], n = ranks_size();

    shuffle(4711 + (uint64_t)(round * 100 + ranks_rank()));
    for (int i = 0; i < TENSORS; i++) {
        struct tensor *t = &tensors[i];

        snprintf(t->name, sizeof t->name, "layer%d/weight", i);
        t->count = 1 + (i + round) % 3; /* another shape each round */
        for (int k = 0; k < t->count; k++)
            t->values[k] = i + k * ranks_rank();
    }
    for (int k = 0; k < THREADS; k++) {
        firsts[k] = k;
        ck_assert_int_eq(
            pthread_create(&threads[k], NULL, submit_some, &firsts[k]), 0);
    }
    for (int k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
    for (int i = 0; i < TENSORS; i++)
        for (int k = 0; k < tensors[i].count; k++)
            if (tensors[i].status != HVD_OK ||
                tensors[i].values[k] != n * i + k * n * (n - 1) / 2)
                ck_abort_msg("tensor %d of round %d: status %d, %d", i, round,
                             tensors[i].status, tensors[i].values[k]);
}

TEST(ten_thousand_from_four_threads)
{
    for (int round = 0; round < 3; round++)
        run_round(round);
}

/* The name is free once the operation is over, for anything. */
TEST(names_come_back_as_something_else)
{
    int n = ranks_size();

    for (int i = 0; i < 50; i++) {
        float value = (float)ranks_rank(), gathered[64];
        hvd_handle handle;
        hvd_tensor out = {.size = sizeof out};

        ck_hvd(hvd_allreduce_async("x", &value, &value, 1, HVD_FLOAT32, HVD_MAX,
                                   &handle));
        ck_hvd(hvd_wait(handle));
        ck_assert(value == (float)(n - 1));
        ck_hvd(hvd_allgather_async("x", &value, 1, HVD_FLOAT32, &handle));
        ck_hvd(hvd_wait_output(handle, &out));
        ck_assert_int_eq(out.shape[0], n);
        hvd_free(out.data);
        ck_hvd(hvd_broadcast_async("x", gathered, 64, HVD_FLOAT32, 0, &handle));
        ck_hvd(hvd_wait(handle));
        ck_hvd(hvd_reducescatter_async("x", gathered, n, HVD_FLOAT32, HVD_SUM,
                                       &handle));
        ck_hvd(hvd_wait(handle));
    }
}

enum { RECURRING = 60, LENGTH = 5, SETS = 2 };

static float recurring[SETS][RECURRING][LENGTH];
static int callbacks[RECURRING];

static void count_callback(void *context, int status)
{
    ck_assert_int_eq(status, HVD_OK);
    ++*(int *)context;
}

static float value_of(int rank, int round, int tensor, int64_t k)
{
    return (float)(rank + 1) * (float)(round + 3 * tensor + (int)k);
}

/* Makes the i-th request of a round. It is the same in all rounds, except every
 * fifth, which is smaller, or has another operation, by turns. */
static hvd_request recurring_request(int round, int i, const char *name)
{
    static const int64_t counts[] = {LENGTH, LENGTH - 1};
    float *x = recurring[round % SETS][i];
    hvd_request request =
        ranks_sum(HVD_FLOAT32, x, x, &counts[i % 5 == 0 && round % 3 == 1]);

    request.name = i % 7 == 0 ? NULL : name;
    request.op = i % 5 == 0 && round % 3 == 2 ? HVD_MAX : HVD_SUM;
    request.callback = i % 2 ? count_callback : NULL;
    request.callback_context = &callbacks[i];
    return request;
}

static void check_recurring(int round, int i, const hvd_request *request)
{
    int n = ranks_size();

    for (int64_t k = 0; k < LENGTH; k++) {
        float each = value_of(0, round, i, k), sum = 0, want;

        for (int rank = 0; rank < n; rank++)
            sum += value_of(rank, round, i, k);
        want = k >= request->shape[0]   ? value_of(ranks_rank(), round, i, k)
               : request->op == HVD_MAX ? (float)n * each
                                        : sum;
        if (recurring[round % SETS][i][k] < want ||
            recurring[round % SETS][i][k] > want)
            ck_abort_msg("round %d, tensor %d, element %d: %g, not %g", round,
                         i, (int)k, (double)recurring[round % SETS][i][k],
                         (double)want);
    }
}

static void run_recurring(int round)
{
    hvd_request requests[RECURRING];
    hvd_handle handles[RECURRING];
    char names[RECURRING][32];

    for (int i = 0; i < RECURRING; i++) {
        for (int64_t k = 0; k < LENGTH; k++)
            recurring[round % SETS][i][k] = value_of(ranks_rank(), round, i, k);
        snprintf(names[i], sizeof names[i], "again %d", i);
        requests[i] = recurring_request(round, i, names[i]);
    }
    for (int i = 0; i < RECURRING; i++) {
        int at = round % 4 == 3 ? RECURRING - 1 - i : i;

        ck_hvd(hvd_submit(&requests[at], &handles[at]));
    }
    for (int i = 0; i < RECURRING; i++)
        ck_hvd(hvd_wait(handles[round % 5 == 4 ? RECURRING - 1 - i : i]));
    for (int i = 0; i < RECURRING; i++)
        check_recurring(round, i, &requests[i]);
}

/* A request that recurs gives the result of this time's data. */
TEST(requests_that_recur)
{
    enum { ROUNDS = 30 };

    memset(callbacks, 0, sizeof callbacks);
    for (int round = 0; round < ROUNDS; round++)
        run_recurring(round);
    ck_hvd(hvd_barrier());
    for (int i = 0; i < RECURRING; i++)
        ck_assert_int_eq(callbacks[i], i % 2 ? ROUNDS : 0);
}

/* After a request has recurred many times, a second one in flight is still
 * refused, and ranks that differ still get an error. */
TEST(requests_that_recur_and_are_wrong)
{
    float values[4] = {0}, others[4] = {0};
    hvd_handle handle, again;
    int wrong = ranks_rank() == ranks_size() - 1;

    for (int i = 0; i < 4; i++) {
        ck_hvd(hvd_allreduce_async("twice", values, values, 4, HVD_FLOAT32,
                                   HVD_SUM, &handle));
        ck_hvd(hvd_wait(handle));
        ck_assert_int_eq(hvd_wait(handle), HVD_ERR_HANDLE);
        ck_hvd(hvd_allreduce_async("twice", others, others, 4, HVD_FLOAT32,
                                   HVD_SUM, &handle));
        ck_hvd(hvd_wait(handle));
    }
    if (ranks_size() == 1)
        return; /* with one rank, a request is complete when it has been
                   submitted */
    for (int i = 0; i < 4; i++) {
        ck_hvd(hvd_allreduce_async("twice", values, values, 4 - wrong,
                                   HVD_FLOAT32, HVD_SUM, &handle));
        ck_hvd_fails(hvd_wait(handle), HVD_ERR_MISMATCH);
        ck_assert(strstr(hvd_last_error(), "'twice'"));
        ck_hvd(hvd_allreduce_async("twice", values, values, 4, HVD_FLOAT32,
                                   HVD_SUM, &handle));
        ck_hvd(hvd_wait(handle));
    }
    /* The last rank is late, so what the others have is in flight. */
    if (wrong)
        ck_hvd(hvd_barrier());
    ck_hvd(hvd_allreduce_async("twice", values, values, 4, HVD_FLOAT32, HVD_SUM,
                               &handle));
    if (wrong)
        ck_hvd(hvd_wait(handle));
    ck_assert_int_eq(hvd_allreduce_async("twice", others, others, 4,
                                         HVD_FLOAT32, HVD_SUM, &again),
                     wrong ? HVD_OK : HVD_ERR_DUPLICATE);
    if (wrong) {
        ck_hvd_fails(hvd_wait(again), HVD_ERR_PEER);
        return;
    }
    ck_hvd(hvd_barrier());
    ck_hvd(hvd_wait(handle));
}

static int completed[8], ncompleted;

static void note(void *context, int status)
{
    ck_assert_int_eq(status, HVD_OK);
    completed[ncompleted++] = *(int *)context;
}

/* Requests that wait behind two large ones run by their priority. */
TEST(urgent_ones_overtake)
{
    enum { LARGE = 4 << 20 };
    static float large[2][LARGE];
    static int numbers[6] = {0, 1, 2, 3, 4, 5};
    float values[6] = {0};
    hvd_handle handles[8];
    int64_t count = LARGE, one = 1;
    hvd_request request;

    ranks_restart_with("HVD_FUSION_THRESHOLD", "0");
    ncompleted = 0;
    for (int i = 0; i < 8; i++) {
        char name[16];
        float *x = i < 2 ? large[i] : &values[i - 2];

        snprintf(name, sizeof name, "p/%d", i);
        request = ranks_sum(HVD_FLOAT32, x, x, i < 2 ? &count : &one);
        request.name = name;
        request.priority = i < 2 ? 0 : i;
        if (i >= 2) {
            request.callback = note;
            request.callback_context = &numbers[i - 2];
        }
        ck_hvd(hvd_submit(&request, &handles[i]));
    }
    for (int i = 0; i < 8; i++)
        ck_hvd(hvd_wait(handles[i]));
    ck_assert_int_eq(ncompleted, 6);
    /* All were there long before the large ones were done. */
    if (ranks_size() > 1)
        ck_assert_msg(completed[0] >= 3, "number %d was the first",
                      completed[0]);
    ranks_restart_with("HVD_FUSION_THRESHOLD", NULL);
}

TEST(an_event_loop_hears_of_completions)
{
    int fd = hvd_completion_fd();
    float value = 1;
    uint64_t n = 0;
    hvd_handle handle;
    struct pollfd p = {.fd = fd, .events = POLLIN};

    ck_hvd(fd);
    ck_assert_int_eq(hvd_completion_fd(), fd);
    ck_hvd(hvd_allreduce_async("e", &value, &value, 1, HVD_FLOAT32, HVD_SUM,
                               &handle));
    if (ranks_size() == 1)
        ck_hvd(hvd_poll(handle)); /* nobody else moves it */
    ck_assert_int_eq(poll(&p, 1, 10000), 1);
    ck_assert_int_eq(read(fd, &n, sizeof n), sizeof n);
    ck_assert_uint_ge(n, 1);
    ck_assert_int_eq(hvd_poll(handle), 1);
    ck_hvd(hvd_wait(handle));
}

/* Runs a request and waits for it, if it is not complete at once. */
static void run_at_once(const hvd_request *request)
{
    hvd_handle handle = -1;

    ck_hvd(hvd_run(request, &handle));
    if (handle != 0)
        ck_hvd(hvd_wait(handle));
}

/* Runs of all kinds mix with requests in flight, and some are done at once. */
TEST(what_runs_at_once_needs_no_handle)
{
    const int64_t shape[] = {3}, one[] = {1};
    hvd_request request;

    for (int i = 0; i < 300; i++) {
        float values[3] = {1, 2, 3}, mine = (float)ranks_rank();
        hvd_handle other;

        hvd_request_init(&request, sizeof request);
        request.dtype = HVD_FLOAT32;
        request.op = HVD_SUM;
        request.ndim = 1;
        request.shape = shape;
        request.input = request.output = values;
        request.name = i % 3 == 0 ? "named" : NULL;
        request.prescale = i % 2 ? 2 : 1;
        ck_hvd(hvd_allreduce_async("beside", &mine, &mine, 1, HVD_FLOAT32,
                                   HVD_MAX, &other));
        if (i % 5 == 0)
            ck_hvd(hvd_wait(other));
        run_at_once(&request);
        ck_assert(values[2] ==
                  (float)(3 * ranks_size() * (int)request.prescale));
        if (i % 5 != 0)
            ck_hvd(hvd_wait(other));
        ck_assert(mine == (float)(ranks_size() - 1));
    }
    hvd_request_init(&request, sizeof request);
    request.kind = HVD_BARRIER;
    for (int i = 0; i < 300; i++)
        run_at_once(&request);
    ck_hvd_fails(hvd_run(&request, NULL), HVD_ERR_ARGUMENT);
    hvd_request_init(&request, sizeof request);
    request.dtype = HVD_FLOAT32;
    request.ndim = 1;
    request.shape = one;
    ck_hvd_fails(hvd_run(&request, &(hvd_handle){0}), HVD_ERR_ARGUMENT);
    ck_hvd(hvd_barrier());
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The last rank submits after all others have waited in vain. */
TEST(a_wait_may_end_before_the_request)
{
    const int64_t limit_ns = 3000000;
    bool late = ranks_size() > 1 && ranks_rank() == ranks_size() - 1;
    float value = 1;
    hvd_handle handle = 0;
    int done;

    if (late)
        ck_hvd(hvd_barrier());
    ck_hvd(hvd_allreduce_async("late", &value, &value, 1, HVD_FLOAT32, HVD_SUM,
                               &handle));
    if (ranks_size() > 1 && !late) {
        int64_t since = now_ns();

        ck_assert_int_eq(hvd_wait_for(handle, 0), 0);
        ck_assert_int_eq(hvd_wait_for(handle, -1), 0);
        ck_assert_int_eq(hvd_wait_for(handle, limit_ns), 0);
        ck_assert_int_ge(now_ns() - since, limit_ns);
        ck_hvd(hvd_barrier());
    }
    while ((done = hvd_wait_for(handle, limit_ns)) == 0)
        continue;
    ck_assert_int_eq(done, 1);
    ck_assert_int_eq(hvd_wait_for(handle, limit_ns), 1);
    ck_hvd(hvd_wait(handle));
    ck_assert(value == (float)ranks_size());
    ck_hvd_fails(hvd_wait_for(handle, limit_ns), HVD_ERR_HANDLE);
}

/* This does not measure speed: it finds threads that run when they should
 * sleep, which takes a tenth of a core at least. What a thread uses to look up
 * now and then counts several times as much on a virtual machine whose cores
 * are wanted elsewhere. */
TEST(nothing_to_do_costs_nothing)
{
    struct timespec before, after;
    double used;

    ck_hvd(hvd_barrier());
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    used = (double)(after.tv_sec - before.tv_sec) +
           1e-9 * (double)(after.tv_nsec - before.tv_nsec);
    ck_assert_msg(used < 0.1, "%.1f %% of a core", used / 2 * 100);
}

static int64_t seconds_ns(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The library does not read the clock for every small request, yet it reports
 * the time that they wait: much of it if the last rank is always late, and no
 * more than there was. */
TEST(waiting_of_small_ones_is_told)
{
    enum { ROUNDS = 40 };
    const int64_t late = 50000000; /* more than a busy machine delays others */
    int n = ranks_size();
    float value = 1;
    hvd_metrics before = {.size = sizeof before},
                after = {.size = sizeof after};
    struct timespec first, last;
    int64_t waited;
    double most;
    hvd_handle handle;

    ck_hvd(hvd_barrier());
    ck_hvd(hvd_get_metrics(&before));
    clock_gettime(CLOCK_MONOTONIC, &first);
    for (int i = 0; i < ROUNDS; i++) {
        if (ranks_rank() == n - 1)
            nanosleep(&(struct timespec){.tv_nsec = late}, NULL);
        ck_hvd(hvd_allreduce_async("small", &value, &value, 1, HVD_FLOAT32,
                                   HVD_MAX, &handle));
        ck_hvd(hvd_wait(handle));
    }
    clock_gettime(CLOCK_MONOTONIC, &last);
    ck_hvd(hvd_get_metrics(&after));
    waited = after.kinds[HVD_ALLREDUCE].waiting_ns -
             before.kinds[HVD_ALLREDUCE].waiting_ns;
    /* On a busy machine another rank may be late, too, but not all are. */
    ck_assert_int_ge(waited, ranks_rank() == n - 1 ? 0 : 1);
    most = (double)waited;
    ck_hvd(hvd_allreduce(&most, &most, 1, HVD_FLOAT64, HVD_MAX));
    ck_assert_double_ge(most, n == 1 ? 0 : (double)(ROUNDS * late) / 4);
    ck_assert_int_le(waited, ROUNDS * (seconds_ns(last) - seconds_ns(first)));
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_many")
