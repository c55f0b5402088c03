/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds begin and end again and again. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hvd_strategy.h"
#include "ranks.h"

static int last(void)
{
    return ranks_size() - 1;
}

static void check_sum(void)
{
    int32_t value = ranks_rank(), n = ranks_size();

    ck_hvd(hvd_allreduce(&value, &value, 1, HVD_INT32, HVD_SUM));
    ck_assert_int_eq(value, n * (n - 1) / 2);
}

TEST(everyone_knows_who_is_who)
{
    ck_assert_int_eq(hvd_is_initialized(), 1);
    ck_hvd(hvd_check());
    ck_assert_int_eq(hvd_rank(), ranks_rank());
    ck_assert_int_eq(hvd_size(), ranks_size());
    /* All tests run on one host. */
    ck_assert_int_eq(hvd_local_rank(), ranks_rank());
    ck_assert_int_eq(hvd_local_size(), ranks_size());
    ck_assert_int_eq(hvd_cross_rank(), 0);
    ck_assert_int_eq(hvd_cross_size(), 1);
    ck_assert_str_eq(hvd_version(), "0.1.0");
}

TEST(a_second_init_does_nothing)
{
    ck_hvd(hvd_init());
    ck_hvd(hvd_init());
    check_sum();
}

/* A call that needs a world says so before it looks at its arguments, and names
 * itself, not another function that it calls. */
static void check_call(int line, int status, int want)
{
    ck_assert_msg(status == want, "line %d: %d, not %d", line, status, want);
    ck_assert_msg(
        want != HVD_ERR_SHUTDOWN ||
            strncmp(hvd_last_error(), "hvd_shutdown has been called", 28) == 0,
        "line %d: %s", line, hvd_last_error());
}

#define NEEDS_A_WORLD(call) check_call(__LINE__, call, submitting)

static void check_blocking_calls(int submitting)
{
    float x[16] = {0};
    int64_t splits[16] = {0}, counts[16];

    NEEDS_A_WORLD(hvd_allreduce(x, x, 1, HVD_FLOAT32, HVD_SUM));
    NEEDS_A_WORLD(hvd_broadcast(x, 1, HVD_FLOAT32, 0));
    NEEDS_A_WORLD(hvd_allgather(x, NULL, 1, HVD_FLOAT32));
    NEEDS_A_WORLD(hvd_allgatherv(x, 1, NULL, 1, counts, HVD_FLOAT32));
    NEEDS_A_WORLD(hvd_gather(x, NULL, 1, HVD_FLOAT32, 0));
    NEEDS_A_WORLD(hvd_reduce(x, x, 1, HVD_FLOAT32, HVD_SUM, 0));
    NEEDS_A_WORLD(hvd_reducescatter(x, NULL, 1, HVD_FLOAT32, HVD_SUM));
    NEEDS_A_WORLD(hvd_alltoall(x, NULL, 1, HVD_FLOAT32));
    NEEDS_A_WORLD(hvd_alltoallv(x, splits, x, 1, counts, HVD_FLOAT32));
    NEEDS_A_WORLD(hvd_alltoallv(x, NULL, x, 1, counts, HVD_FLOAT32));
    NEEDS_A_WORLD(hvd_barrier());
    NEEDS_A_WORLD(hvd_check());
    NEEDS_A_WORLD(hvd_join(NULL));
    NEEDS_A_WORLD(hvd_process_set_size(0));
    NEEDS_A_WORLD(hvd_add_process_set(NULL, 0));
}

static void check_nothing_works(int submitting)
{
    float x = 1;
    hvd_handle handle = 0;
    int (*const numbers[])(void) = {hvd_rank,       hvd_size,
                                    hvd_local_rank, hvd_local_size,
                                    hvd_cross_rank, hvd_cross_size};

    ck_assert_int_eq(hvd_is_initialized(), 0);
    for (int i = 0; i < 6; i++)
        ck_hvd_fails(numbers[i](), HVD_ERR_NOT_INITIALIZED);
    ck_error_says("hvd_init");
    check_blocking_calls(submitting);
    ck_hvd_fails(
        hvd_allreduce_async("x", &x, &x, 1, HVD_FLOAT32, HVD_SUM, &handle),
        submitting);
    ck_hvd_fails(hvd_wait(1), submitting);
    ck_hvd_fails(hvd_poll(1), submitting);
    ck_hvd_fails(hvd_wait_for(1, 1), submitting);
    ck_assert_int_eq(handle, 0);
}

TEST(nothing_works_after_shutdown)
{
    ck_hvd(hvd_shutdown());
    check_nothing_works(HVD_ERR_SHUTDOWN);
    ck_hvd(hvd_shutdown()); /* does nothing */
    ck_hvd(hvd_init());
    check_sum();
}

TEST(worlds_come_and_go)
{
    for (int i = 0; i < 30; i++) {
        ck_hvd(hvd_shutdown());
        ck_hvd(hvd_init());
        check_sum();
    }
}

/* Requests that all ranks have submitted complete before the world ends. */
TEST(shutdown_completes_what_all_submitted)
{
    enum { N = 40, COUNT = 10007 };
    static float values[N][COUNT];
    char name[32];

    for (int k = 0; k < N; k++) {
        int number = ranks_rank() % 2 ? N - 1 - k : k;

        for (int i = 0; i < COUNT; i++)
            values[number][i] = (float)(number + i % 10 + ranks_rank());
        sprintf(name, "p%d", number);
        ck_hvd(hvd_allreduce_async(name, values[number], values[number], COUNT,
                                   HVD_FLOAT32, HVD_SUM, NULL));
    }
    ck_hvd(hvd_shutdown());
    for (int k = 0; k < N; k++)
        for (int i = 0; i < COUNT; i++)
            ck_assert(values[k][i] ==
                      (float)(ranks_size() * (k + i % 10) +
                              ranks_size() * (ranks_size() - 1) / 2));
    ck_hvd(hvd_init());
}

static void keep_status(void *context, int status)
{
    *(int *)context = status;
}

/* A request that one rank has not submitted fails on the others. */
TEST(shutdown_fails_what_is_missing)
{
    float x = 1;
    int status = 77;
    hvd_request request = ranks_sum(HVD_FLOAT32, &x, &x, NULL);

    request.name = "orphan";
    request.callback = keep_status;
    request.callback_context = &status;
    if (ranks_rank() != last())
        ck_hvd(hvd_submit(&request, NULL));
    ck_hvd(hvd_shutdown());
    if (ranks_rank() != last())
        ck_assert_int_eq(status, HVD_ERR_SHUTDOWN);
    ck_assert(x == 1);
    ck_hvd(hvd_init());
    check_sum();
}

/* After one rank has left, the error of those that still wait for it names that
 * rank. */
TEST(a_rank_that_left_is_named)
{
    float x = 1;
    char who[32];

    sprintf(who, "rank %d", last());
    if (ranks_rank() != last()) {
        for (int i = 0; i < 3; i++) {
            ck_hvd_fails(hvd_allreduce(&x, &x, 1, HVD_FLOAT32, HVD_SUM),
                         HVD_ERR_SHUTDOWN);
            ck_error_says(who);
        }
    } else if (last() > 0) {
        usleep(20000);
    }
    ck_hvd(hvd_shutdown());
    ck_hvd(hvd_init());
    check_sum();
}

/* Handles that nobody waited for end with the world. */
TEST(unwaited_handles_are_gone)
{
    hvd_handle handles[100];
    float x[100] = {0};
    char name[32];

    for (int k = 0; k < 100; k++) {
        sprintf(name, "h%d", k);
        ck_hvd(hvd_allreduce_async(name, &x[k], &x[k], 1, HVD_FLOAT32, HVD_SUM,
                                   &handles[k]));
    }
    ck_hvd(hvd_shutdown());
    ck_hvd(hvd_init());
    for (int k = 0; k < 100; k++)
        ck_hvd_fails(hvd_wait(handles[k]), HVD_ERR_HANDLE);
    check_sum();
}

/* A malformed variable on one rank is an error of all, and can be mended. */
TEST(a_bad_setting_on_one_rank)
{
    ck_hvd(hvd_shutdown());
    if (ranks_rank() == last())
        setenv("HVD_FUSION_THRESHOLD", "banana", 1);
    ck_hvd_fails(hvd_init(), HVD_ERR_CONFIG);
    ck_error_says("HVD_FUSION_THRESHOLD");
    ck_error_says("banana");
    if (last() > 0) {
        char who[32];
        sprintf(who, "rank %d", last());
        ck_error_says(who);
    }
    check_nothing_works(HVD_ERR_SHUTDOWN);
    unsetenv("HVD_FUSION_THRESHOLD");
    setenv("HVD_LOG", "loud", 1);
    ck_hvd_fails(hvd_init(), HVD_ERR_CONFIG);
    ck_error_says("HVD_LOG");
    unsetenv("HVD_LOG");
    ck_hvd(hvd_init());
    check_sum();
}

/* The child of a fork is no rank, and its end does not end the parent's world.
 */
TEST(a_forked_child_is_told_so)
{
    float x = 1;
    int status;
    pid_t child = fork();

    if (child == 0) {
        int good = hvd_rank() == HVD_ERR_NOT_INITIALIZED &&
                   strstr(hvd_last_error(), "forked") &&
                   hvd_allreduce(&x, &x, 1, HVD_FLOAT32, HVD_SUM) ==
                       HVD_ERR_NOT_INITIALIZED &&
                   hvd_init() == HVD_ERR_NOT_INITIALIZED &&
                   hvd_shutdown() == HVD_OK && !hvd_is_initialized();
        exit(good ? 17 : 18); /* with all handlers */
    }
    ck_assert(child > 0);
    ck_assert(waitpid(child, &status, 0) == child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 17);
    check_sum();
}

enum { FLOATS = 300000 };

static void fill(float *data, float value)
{
    for (int i = 0; i < FLOATS; i++)
        data[i] = value;
}

static bool all_are(const float *data, float value)
{
    for (int i = 0; i < FLOATS; i++)
        if (data[i] != value)
            return false;
    return true;
}

/* Runs in the child. The data that it has written stays as it is, whatever the
 * parent writes once it knows, and the child may free the memory. */
static int write_in_child(float *data, float *gradient, int said, int heard)
{
    char word = 'w';

    if (!all_are(data, 1) || !all_are(gradient, 2))
        return 18;
    fill(data, -1);
    fill(gradient, -2);
    if (write(said, &word, 1) != 1 || read(heard, &word, 1) != 1)
        return 19;
    if (!all_are(data, -1) || !all_are(gradient, -2))
        return 20;
    hvd_free(data);
    return 17;
}

/* Parent and child do not see what the other writes to memory that ranks share,
 * and a sum of that memory is right as if there were no children. */
TEST(what_a_forked_child_writes_is_its_own)
{
    static const int64_t shape[] = {FLOATS};
    static float first[FLOATS];
    hvd_strategy_options options;
    hvd_strategy *strategy;
    float *data = hvd_malloc(FLOATS * sizeof *data), *gradient;
    int to_parent[2], to_child[2], status;
    char word = 'w';
    pid_t child;

    hvd_strategy_options_init(&options, sizeof options);
    ck_hvd(hvd_strategy_new(&options, &strategy));
    ck_assert(data && pipe(to_parent) == 0 && pipe(to_child) == 0);
    ck_hvd(hvd_strategy_add(strategy, "w", first, 1, shape));
    ck_hvd(hvd_strategy_start(strategy));
    gradient = hvd_strategy_gradient(strategy, 0);
    fill(data, 1);
    fill(gradient, 2);
    child = fork();
    if (child == 0)
        _exit(write_in_child(data, gradient, to_parent[1], to_child[0]));
    ck_assert(child > 0 && read(to_parent[0], &word, 1) == 1);
    ck_assert(all_are(data, 1) && all_are(gradient, 2));
    ck_hvd(hvd_allreduce(data, data, FLOATS, HVD_FLOAT32, HVD_SUM));
    ck_assert(all_are(data, (float)ranks_size()));
    fill(gradient, 3);
    ck_assert(write(to_child[1], &word, 1) == 1);
    ck_assert(waitpid(child, &status, 0) == child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 17);
    ck_assert(all_are(data, (float)ranks_size()) && all_are(gradient, 3));
    for (int end = 0; end < 2; end++) {
        close(to_parent[end]);
        close(to_child[end]);
    }
    hvd_strategy_free(strategy);
    hvd_free(data);
}

TEST(memory_is_aligned_zeroed_and_bounded)
{
    ck_assert(hvd_malloc(SIZE_MAX) == NULL);
    ck_error_says("bytes");
    for (size_t bytes = 0; bytes < 300; bytes += 7) {
        unsigned char *memory = hvd_malloc(bytes);

        ck_assert(memory != NULL);
        ck_assert_int_eq((intptr_t)memory % 64, 0);
        for (size_t i = 0; i < bytes; i++)
            ck_assert_int_eq(memory[i], 0);
        memset(memory, 1, bytes);
        hvd_free(memory);
    }
}

/* The signals that a thread has blocked, number n as bit n - 1. */
static unsigned long long blocked_in(int thread)
{
    char path[64], line[256];
    unsigned long long mask = 0;
    FILE *file;

    snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
    file = fopen(path, "r");
    ck_assert(file != NULL);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "SigBlk: %llx", &mask) == 1)
            break;
    fclose(file);
    return mask;
}

/* A handler of the program's never runs on a thread of the library's. */
TEST(signals_are_for_the_program)
{
    static const char *const names[] = {"hvd-progress", "hvd-watchdog"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int thread = ranks_thread(names[i]);

        if (ranks_size() == 1) {
            ck_assert_int_eq(thread, 0);
            continue;
        }
        ck_assert_int_gt(thread, 0);
        for (int n = 1; n < 32; n++)
            if (n != SIGKILL && n != SIGSTOP)
                ck_assert_msg(blocked_in(thread) >> (n - 1) & 1,
                              "signal %d is not blocked in %s", n, names[i]);
    }
}

RANKS_TEST_MAIN(PROGRAM_STARTS_MPI, "mpi_lifecycle")
