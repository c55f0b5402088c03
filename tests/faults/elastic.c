/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic WHAT VICTIM [heap] - a rank is lost in a certain way, and the others
 * go on.
 *
 *     WHAT  die     VICTIM kills itself in the middle of allreduces
 *           all     so do VICTIM and the next rank
 *           exit    it exits there without hvd_shutdown
 *           stop    it is stopped there, and goes on when the others have
 *           late    it kills itself, and the next rank comes to hvd_recover
 *                   only when the others have waited for too long
 *           revoke  it calls hvd_recover though all is well
 *           none    nothing, here: each rank writes "runs" at that point
 *           cut     VICTIM runs the command CUT as soon as it can, which
 * unplugs its host heap  the memory is of hvd_malloc
 *
 * A rank that goes on writes "old R of N went on as R of N: lost R (REASON)
 * ...", one that cannot "old R: hvd_recover: STATUS: TEXT"; and a line with
 * "wrong" if a result is, or memory was changed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hvd.h"

enum { COUNT = 1 << 20, MOST = 16, STEPS = 20 };

static float *data;
static int first_rank;

static void pass(double seconds)
{
    nanosleep(
        &(struct timespec){.tv_sec = (time_t)seconds,
                           .tv_nsec = (long)((seconds - (long)seconds) * 1e9)},
        NULL);
}

/* Sums what depends on the ranks. Returns the status of the allreduce. */
static int reduce(void)
{
    float expected = 0;
    int status;

    for (int i = 0; i < COUNT; i++)
        data[i] = (float)(hvd_rank() + 1 + i % 7);
    for (int rank = 0; rank < hvd_size(); rank++)
        expected += (float)(rank + 1);
    status = hvd_allreduce(data, data, COUNT, HVD_FLOAT32, HVD_SUM);
    for (int i = 0; i < COUNT && status == HVD_OK; i += 1009)
        if (data[i] != expected + (float)(hvd_size() * (i % 7))) {
            printf("wrong: element %d is %g\n", i, (double)data[i]);
            break;
        }
    return status;
}

/* Runs the command of an environment variable. */
static int run_command(const char *variable)
{
    const char *command = getenv(variable);

    return command ? system(command) : -1;
}

static void stop_oneself(int signal)
{
    (void)signal;
    raise(SIGSTOP);
}

/* Meets the victim's end after some steps. */
static void fail(const char *what, int step)
{
    if (step < STEPS)
        return;
    if (strcmp(what, "exit") == 0)
        exit(3);
    if (strcmp(what, "die") == 0 || strcmp(what, "late") == 0 ||
        strcmp(what, "all") == 0)
        raise(SIGKILL);
    if (strcmp(what, "stop") == 0 && step == STEPS) {
        signal(SIGALRM, stop_oneself);
        ualarm(20000, 0);
    }
}

/* The victim goes on, and must change nothing here. */
static void wake(pid_t victim)
{
    for (int i = 0; i < COUNT; i++)
        data[i] = (float)i;
    kill(victim, SIGCONT);
    pass(1);
    for (int i = 0; i < COUNT; i++)
        if (data[i] != (float)i) {
            printf("wrong: element %d has become %g\n", i, (double)data[i]);
            return;
        }
}

static void print_lost(const char *before)
{
    hvd_lost_rank lost[MOST];
    char line[200];
    int n = hvd_lost_ranks(lost, MOST), at = 0;

    line[0] = '\0';
    for (int i = 0; i < n && i < MOST; i++)
        at += snprintf(line + at, sizeof line - (size_t)at, " %d (%d)",
                       (int)lost[i].rank, (int)lost[i].reason);
    printf("%s%s\n", before, line);
    fflush(stdout);
}

/* The set of the old world has ended with it, and its id means no other one. */
static void check_sets(int32_t old)
{
    const int32_t first = 0;
    int32_t made;

    if (hvd_process_set_size(old) != HVD_ERR_PROCESS_SET ||
        !strstr(hvd_last_error(), "was of an earlier world"))
        printf("wrong: set %d: %s\n", (int)old, hvd_last_error());
    made = hvd_size() > 1 ? hvd_add_process_set(&first, 1) : old + 1;
    if (made <= old)
        printf("wrong: the new set is %d: %s\n", (int)made, hvd_last_error());
}

/* Returns 0 if this rank has a new world. */
static int go_on(void)
{
    hvd_recovery recovery;
    char line[100];
    int status = hvd_recover(&recovery, sizeof recovery);

    if (status < 0) {
        printf("old %d: hvd_recover: %d: %s\n", first_rank, status,
               hvd_last_error());
        if (hvd_is_initialized())
            print_lost("lost ranks:");
        fflush(stdout);
        return 1;
    }
    snprintf(line, sizeof line, "old %d of %d went on as %d of %d: lost",
             (int)recovery.old_rank, (int)recovery.old_size, hvd_rank(),
             hvd_size());
    print_lost(line);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    int victim = argc > 2 ? atoi(argv[2]) : 0, status = HVD_OK;
    int32_t pid = (int32_t)getpid(), pids[MOST], set;
    const int32_t first = 0;

    if (hvd_init() < 0 || hvd_size() > MOST)
        return 2;
    first_rank = hvd_rank();
    data = argc > 3 && strcmp(argv[3], "heap") == 0
               ? hvd_malloc(COUNT * sizeof *data)
               : malloc(COUNT * sizeof *data);
    if (!data || hvd_allgather(&pid, pids, 1, HVD_INT32) < 0)
        return 2;
    set = hvd_size() > 1 ? hvd_add_process_set(&first, 1) : 0;
    if (set < 0 || (strcmp(what, "cut") == 0 && first_rank == victim &&
                    run_command("CUT") != 0))
        return 2;
    for (int step = 0; status == HVD_OK && hvd_size() > 1; step++) {
        if (strcmp(what, "none") == 0 && step == STEPS) {
            puts("runs");
            fflush(stdout);
        } else if (strcmp(what, "all") == 0 && first_rank == victim + 1) {
            fail(what, step);
        } else if (first_rank == victim && strcmp(what, "revoke") != 0) {
            fail(what, step);
        }
        if (first_rank == victim && step == STEPS &&
            strcmp(what, "revoke") == 0)
            break;
        status = reduce();
    }
    if (strcmp(what, "late") == 0 && first_rank == victim + 1)
        pass(6);
    if (go_on())
        return hvd_size() == 1 ? 0 : 4;
    check_sets(set);
    if (strcmp(what, "stop") == 0)
        wake(pids[victim]);
    for (int i = 0; i < STEPS; i++)
        if (reduce() < 0)
            printf("wrong: %s\n", hvd_last_error());
    return hvd_shutdown() < 0;
}
