/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prey LOG START PHASE HOW RANK DELAY - runs as one rank of a case of
 * tests/faults/matrix.
 *
 *     LOG    a file in which each rank notes how far it is: "RANK PID WORD
 *            STATUS SECONDS", a line a word: begin, loop, bye, end, fault
 *     START  init    hvd_init starts MPI
 *            single  the program has started it, for one thread
 *            ranks   hvd_init_ranks
 *     PHASE  init    DELAY counts from the beginning of the program, or from
 *                    when it has started MPI
 *            call    from when hvd_init has begun, and
 *            meet    from between its two meetings: when it makes a thread,
 *                    which takes PAUSE_US here
 *            loop    from the return of hvd_init
 *            bye     from the call of hvd_shutdown
 *            gone    from its return, which takes as long
 *     HOW    kill, stop, pause (stop, and go on PAUSE_US later), exit, _exit,
 *            abort, none; or late: it calls hvd_init DELAY later
 *     RANK   the rank that fails
 *     DELAY  in microseconds
 *
 * Variables of the environment: PREY_WORDS is a file for stdout and stderr,
 * which a hanging mpirun does not pass on; PREY_SAVE is a path to which rank 0
 * saves a checkpoint; PREY_SETS is how many process sets are added and removed.
 *
 * Signals come from a child, which was forked before anything began; exits
 * from a thread. All ranks reduce, gather and broadcast for LOOP_NS, then shut
 * down. The status is 0 if all went well, 3 if the library said that it did
 * not, and 4 for wrong results.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "hvd_strategy.h"

enum { SMALL = 1000, LARGE = 300000, PAUSE_US = 700000 };
#define LOOP_NS INT64_C(600000000)

static int rank, nranks, log_file;
static const char *phase, *how;
static long delay_us;
static int begins[2]; /* a pipe: the delay begins */

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void record(const char *word, int status)
{
    char line[120];
    int n = snprintf(line, sizeof line, "%d %d %s %d %.6f\n", rank,
                     (int)getpid(), word, status, (double)now_ns() * 1e-9);

    if (write(log_file, line, (size_t)n) != n)
        _exit(9);
}

static void pass_us(long us)
{
    nanosleep(&(struct timespec){.tv_sec = us / 1000000,
                                 .tv_nsec = us % 1000000 * 1000},
              NULL);
}

/* -------------------------------------------------------------- the fault */

static void await(void)
{
    char byte;

    if (read(begins[0], &byte, 1) != 1)
        _exit(0); /* it ended before */
    pass_us(delay_us);
}

static void signal_parent(void)
{
    pid_t parent = getppid();

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = 0; fd < 3; fd++) /* mpirun waits until these are closed */
        close(fd);
    close(begins[1]);
    await();
    record("fault", 0);
    kill(parent, strcmp(how, "kill") == 0 ? SIGKILL : SIGSTOP);
    if (strcmp(how, "pause") == 0) {
        pass_us(PAUSE_US);
        kill(parent, SIGCONT);
    }
    _exit(0);
}

static void *leave(void *unused)
{
    (void)unused;
    await();
    record("fault", 0);
    if (strcmp(how, "exit") == 0)
        exit(5);
    else if (strcmp(how, "_exit") == 0)
        _exit(6);
    abort();
}

static void prepare_fault(void)
{
    static const char *const signals[] = {"kill", "stop", "pause"};
    pthread_t thread;

    if (pipe2(begins, O_CLOEXEC) != 0)
        exit(9);
    for (int i = 0; i < 3; i++)
        if (strcmp(how, signals[i]) == 0) {
            if (fork() == 0)
                signal_parent();
            return;
        }
    if (strcmp(how, "none") != 0 && strcmp(how, "late") != 0)
        pthread_create(&thread, NULL, leave, NULL);
}

/* --------------------------------------------------------------- the work */

static float values[LARGE], everyone[16 * SMALL];

static int fill(float value)
{
    for (int i = 0; i < LARGE; i++)
        values[i] = value;
    return HVD_OK;
}

static int expect(const float *found, int n, float value)
{
    for (int i = 0; i < n; i++)
        if (found[i] != value)
            exit(4);
    return HVD_OK;
}

#define TRY(expr)                                                              \
    do {                                                                       \
        int status_ = (expr);                                                  \
        if (status_ < 0)                                                       \
            return status_;                                                    \
    } while (0)

static int work_once(float *shared)
{
    int sum = nranks * (nranks + 1) / 2;

    fill((float)(rank + 1));
    TRY(hvd_allgather(values, everyone, SMALL, HVD_FLOAT32));
    for (int r = 0; r < nranks; r++)
        expect(everyone + r * SMALL, SMALL, (float)(r + 1));
    TRY(hvd_allreduce(values, values, SMALL, HVD_FLOAT32, HVD_SUM));
    expect(values, SMALL, (float)sum);
    fill((float)(rank + 1));
    TRY(hvd_allreduce(values, values, LARGE, HVD_FLOAT32, HVD_SUM));
    expect(values, LARGE, (float)sum);
    for (int i = 0; i < LARGE; i++)
        shared[i] = (float)(rank + 1);
    TRY(hvd_allreduce(shared, shared, LARGE, HVD_FLOAT32, HVD_MAX));
    expect(shared, LARGE, (float)nranks);
    fill((float)rank);
    TRY(hvd_broadcast(values, SMALL, HVD_FLOAT32, nranks - 1));
    expect(values, SMALL, (float)(nranks - 1));
    return hvd_barrier();
}

/* Runs operations until rank 0 finds that it is time, which all learn at the
 * same point. */
static int work(void)
{
    int64_t start = now_ns();
    float *shared = hvd_malloc(LARGE * sizeof *shared), over = 0;

    if (!shared)
        return HVD_ERR_MEMORY;
    while (over == 0) {
        TRY(work_once(shared));
        over = now_ns() - start > LOOP_NS;
        TRY(hvd_broadcast(&over, 1, HVD_FLOAT32, 0));
    }
    hvd_free(shared);
    return HVD_OK;
}

/* Saves a checkpoint. A failure is reported, and does not end the program. */
static int save(const char *path)
{
    const int64_t shape = SMALL;
    hvd_strategy_options options;
    hvd_strategy *strategy;

    hvd_strategy_options_init(&options, sizeof options);
    TRY(hvd_strategy_new(&options, &strategy));
    TRY(hvd_strategy_add(strategy, "x", values, 1, &shape));
    TRY(hvd_strategy_start(strategy));
    if (rank == 0 && hvd_strategy_save(strategy, path) < 0)
        printf("rank 0: %s\n", hvd_last_error());
    hvd_strategy_free(strategy);
    return HVD_OK;
}

static int change_sets(int n)
{
    for (int i = 0; i < n; i++) {
        /* One rank, or two of several: all of them are a set already. */
        int32_t ranks[2] = {i % nranks, (i + 1) % nranks};
        int id = hvd_add_process_set(ranks, nranks > 2 && i % 2 ? 2 : 1);

        TRY(id);
        TRY(hvd_remove_process_set(id));
    }
    return hvd_number_of_process_sets() == 1 ? HVD_OK : HVD_ERR_INTERNAL;
}

static int work_more(void)
{
    const char *path = getenv("PREY_SAVE"), *sets = getenv("PREY_SETS");

    if (path)
        TRY(save(path));
    return sets ? change_sets(atoi(sets)) : HVD_OK;
}

static void write_apart(void)
{
    const char *path = getenv("PREY_WORDS");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;

    if (path && (dup2(fd, 1) < 0 || dup2(fd, 2) < 0))
        exit(9);
}

/* The delay begins, if it counts from here. */
static void begin_if(const char *where)
{
    static bool has_begun;

    if (has_begun || strcmp(phase, where) != 0)
        return;
    has_begun = true;
    if (write(begins[1], "", 1) != 1)
        exit(9);
    if (strcmp(where, "call") == 0 || strcmp(where, "meet") == 0 ||
        strcmp(where, "gone") == 0)
        pass_us(PAUSE_US);
}

/* The library's call ends here. */
int pthread_setname_np(pthread_t thread, const char *name)
{
    (void)thread;
    if (strcmp(name, "hvd-guard") == 0)
        begin_if("call");
    if (strcmp(name, "hvd-progress") == 0)
        begin_if("meet");
    return 0;
}

static int start(const char *way)
{
    int32_t ranks[16];
    int argc = 0;
    char **argv = NULL;

    for (int i = 0; i < nranks; i++)
        ranks[i] = i;
    if (strcmp(way, "ranks") == 0)
        return hvd_init_ranks(ranks, nranks);
    if (strcmp(way, "single") == 0)
        MPI_Init(&argc, &argv);
    if (strcmp(way, "single") == 0)
        begin_if("init");
    return hvd_init();
}

static int live(const char *way)
{
    TRY(start(way));
    record("loop", 0);
    begin_if("loop");
    TRY(work());
    TRY(work_more());
    record("bye", 0);
    begin_if("bye");
    TRY(hvd_shutdown());
    begin_if("gone");
    return HVD_OK;
}

int main(int argc, char **argv)
{
    const char *rank_is = getenv("OMPI_COMM_WORLD_RANK"),
               *size_is = getenv("OMPI_COMM_WORLD_SIZE");
    int status;

    if (argc != 7 || !rank_is || !size_is)
        return 9;
    rank = atoi(rank_is);
    nranks = atoi(size_is);
    how = rank == atoi(argv[5]) ? argv[4] : "none";
    phase = argv[3];
    delay_us = atol(argv[6]);
    log_file = open(argv[1], O_WRONLY | O_APPEND | O_CLOEXEC);
    write_apart();
    record("begin", 0);
    prepare_fault();
    if (strcmp(argv[2], "single") != 0)
        begin_if("init");
    if (strcmp(how, "late") == 0)
        pass_us(delay_us);
    status = live(argv[2]);
    record("end", status);
    if (status < 0)
        printf("rank %d: %d: %s\n", rank, status, hvd_last_error());
    fflush(stdout);
    if (status == 0 && strcmp(argv[2], "single") == 0)
        MPI_Finalize();
    return status < 0 ? 3 : 0;
}
