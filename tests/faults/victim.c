/* SPDX-License-Identifier: Apache-2.0 */
/*
 * victim WHAT HOW RANK - one rank fails, and the others report it.
 *
 *     WHAT  loop    all are in the middle of allreduces
 *           heap    the same, of 64 MiB each, in memory of hvd_malloc
 *           blocks  the same in ordinary memory: most probably the rank
 *                   fails within an allreduce
 *           wait    the others wait for an allreduce that never comes
 *           idle    nobody uses the library
 *           ask     nobody uses it, but the others ask whether the world stands
 *           push    the last rank is a parameter server, and the others train
 *           backups, async, stale: the same in another mode
 *           bye     the others are in hvd_shutdown
 *           late    the others wait for 3 s, and all ends well
 *     HOW   kill segv exit0 exit1 stop, or none: it only sleeps
 *
 * Each rank writes "rank R runs" to stdout when its first allreduces are done.
 * A survivor writes the status and text of its failure to stdout, and exits
 * with status 3.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hvd_strategy.h"

enum { SMALL = 1 << 16, LARGE = 1 << 24 };

static float *data;
static int64_t count = SMALL;
static const char *how;

static void pass(double seconds)
{
    nanosleep(
        &(struct timespec){.tv_sec = (time_t)seconds,
                           .tv_nsec = (long)((seconds - (long)seconds) * 1e9)},
        NULL);
}

static void meet_end(void)
{
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    else if (strcmp(how, "segv") == 0)
        raise(SIGSEGV);
    else if (strcmp(how, "stop") == 0)
        raise(SIGSTOP);
    else if (strcmp(how, "exit0") == 0)
        _exit(0);
    else if (strcmp(how, "exit1") == 0)
        exit(1);
    pass(30);
}

/* The signal interrupts the rank in the middle of an operation. */
static void on_alarm(int signal)
{
    (void)signal;
    meet_end();
}

static int reduce(const char *name, int64_t n)
{
    hvd_handle handle;
    int status =
        hvd_allreduce_async(name, data, data, n, HVD_FLOAT32, HVD_SUM, &handle);

    return status < 0 ? status : hvd_wait(handle);
}

/* Returns true, and sets the mode, if WHAT is to train with a server. */
static int is_training(const char *what, hvd_strategy_options *options)
{
    if (strcmp(what, "backups") == 0)
        options->backups = 1;
    else if (strcmp(what, "async") == 0)
        options->mode = HVD_SERVER_ASYNCHRONOUS;
    else if (strcmp(what, "stale") == 0)
        options->mode = HVD_SERVER_BOUNDED;
    else
        return strcmp(what, "push") == 0;
    return 1;
}

/* Makes steps with a parameter server, or serves as it, until that fails. */
static int train(const hvd_strategy_options *mode)
{
    static const int64_t shape[] = {SMALL};
    hvd_strategy_options options = *mode;
    hvd_strategy *strategy;
    int status;

    options.kind = HVD_STRATEGY_PARAMETER_SERVER;
    options.servers = 1;
    status = hvd_strategy_new(&options, &strategy);
    if (status >= 0)
        status = hvd_strategy_add(strategy, "weights", data, 1, shape);
    if (status >= 0)
        status = hvd_strategy_start(strategy);
    if (status >= 0 && hvd_strategy_is_server(strategy))
        return hvd_strategy_serve(strategy);
    while (status >= 0) {
        status = hvd_strategy_ready(strategy, 0);
        if (status >= 0)
            status = hvd_strategy_step(strategy);
    }
    return status;
}

static int survive(const char *what)
{
    hvd_strategy_options mode;
    int status = HVD_OK;

    hvd_strategy_options_init(&mode, sizeof mode);
    if (is_training(what, &mode))
        return train(&mode);
    if (strcmp(what, "bye") == 0)
        return hvd_shutdown();
    if (strcmp(what, "wait") == 0)
        return reduce("never", 10);
    for (int i = 0; i < 200 && strcmp(what, "idle") == 0; i++)
        pass(0.1); /* the watchdog ends this process */
    for (int i = 0; i < 3000 && strcmp(what, "ask") == 0; i++) {
        status = hvd_check();
        if (status < 0)
            return status;
        pass(0.01);
    }
    while (status == HVD_OK)
        status = reduce("gradient", count);
    return status;
}

int main(int argc, char **argv)
{
    const char *what = argc > 3 ? argv[1] : "";
    int victim = argc > 3 ? atoi(argv[3]) : 0, rank, status;
    hvd_strategy_options mode;

    if (hvd_init() < 0) {
        fprintf(stderr, "%s\n", hvd_last_error());
        return 2;
    }
    how = argc > 3 ? argv[2] : "";
    if (strcmp(what, "heap") == 0 || strcmp(what, "blocks") == 0)
        count = LARGE;
    data = strcmp(what, "heap") == 0 ? hvd_malloc(LARGE * sizeof *data)
                                     : calloc((size_t)count, sizeof *data);
    if (!data)
        return 2;
    for (int i = 0; i < 20 && count == SMALL; i++)
        reduce("gradient", count);
    rank = hvd_rank();
    printf("rank %d runs\n", rank);
    fflush(stdout);
    if (rank == victim && count == LARGE) {
        signal(SIGALRM, on_alarm);
        ualarm(200000, 0);
        survive(what);
    }
    hvd_strategy_options_init(&mode, sizeof mode);
    if (rank == victim && is_training(what, &mode)) {
        signal(SIGALRM, on_alarm);
        ualarm(500000, 0);
        train(&mode);
    }
    if (rank == victim) {
        for (int i = 0; i < 50 && strcmp(what, "loop") == 0; i++)
            reduce("gradient", count);
        pass(strcmp(what, "late") == 0 ? 3 : 0.3);
        if (strcmp(what, "late") == 0)
            return reduce("never", 10) < 0 || hvd_shutdown() < 0;
        meet_end();
        return 0;
    }
    if (strcmp(what, "late") == 0)
        return reduce("never", 10) < 0 || hvd_shutdown() < 0;
    status = survive(what);
    printf("rank %d: %d: %s\n", rank, status, hvd_last_error());
    fflush(stdout);
    /* When the first rank ends, mpirun ends the others, which may not have
     * written their texts yet. */
    if (strcmp(how, "stop") == 0)
        pass(1);
    return 3;
}
