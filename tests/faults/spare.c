/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spare STEPS [DEATH...] - a training in which ranks die and spares replace
 * them (docs/ELASTIC.md).
 *
 * A death is RANK@STEP: that process, by its number at the start, kills itself
 * in that step of the training. RANK@commit: when the first commit is agreed;
 * RANK@last: when all steps are done; RANK@wait: process 1 kills that one, a
 * spare, in its step 2. SPARE_FOLDER is a folder for that.
 *
 * The result of each step is the same however many ranks there are, and is
 * checked. A process writes "process P trains" when its first commit is done,
 * and a spare that has replaced a rank writes "process P has come in". A
 * process writes, when it has ended,
 *
 *     process P ended as rank R of N: joined G, weight W, sizes S...
 *
 * G is the generation of its first world, W is right if it is the sum of 1 to
 * STEPS, and the sizes are those that the world has had. A spare that was not
 * needed writes "process P was not needed: STATUS: TEXT", and "it used C of T
 * ms", of the processor and of time.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hvd_elastic.h"

enum { MOST_SIZES = 16 };

static int64_t step, weight, sizes[MOST_SIZES], nsizes; /* the state */
static int process, steps;
static char **deaths;

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void say(const char *text)
{
    printf("process %d: wrong: %s at step %lld (%s)\n", process, text,
           (long long)step, hvd_last_error());
    fflush(stdout);
    _exit(1);
}

/* Returns whether this process is to die then. */
static int is_doomed(const char *when)
{
    char text[64];

    snprintf(text, sizeof text, "%d@%s", process, when);
    for (char **death = deaths; *death; death++)
        if (strcmp(*death, text) == 0)
            return 1;
    return 0;
}

static void die_at(const char *when)
{
    if (is_doomed(when))
        raise(SIGKILL);
}

/* Writes where others find this process. */
static void show_oneself(void)
{
    const char *folder = getenv("SPARE_FOLDER");
    char path[256];
    FILE *file;

    if (!folder)
        return;
    snprintf(path, sizeof path, "%s/%d", folder, process);
    file = fopen(path, "w");
    if (!file || fprintf(file, "%d", (int)getpid()) < 0 || fclose(file) != 0)
        say("a file");
}

/* Kills processes that are to die while they wait: process 1 does it, for they
 * are in hvd_init. The training then stands for a moment, so that the watchdog
 * of rank 0 looks at them before it is over. */
static void kill_spares(void)
{
    const char *folder = getenv("SPARE_FOLDER");
    char path[256];
    int pid;

    for (char **death = deaths; folder && *death; death++) {
        FILE *file;

        if (!strstr(*death, "@wait"))
            continue;
        snprintf(path, sizeof path, "%s/%d", folder, atoi(*death));
        file = fopen(path, "r");
        if (!file || fscanf(file, "%d", &pid) != 1)
            say("a file");
        fclose(file);
        kill(pid, SIGKILL);
        sleep(2);
    }
}

static int train(void *unused)
{
    (void)unused;
    while (step < steps) {
        int64_t sum = step + 1;
        char now[32];
        int status;

        snprintf(now, sizeof now, "%lld", (long long)step);
        die_at(now);
        if (process == 1 && step == 2)
            kill_spares();
        status = hvd_allreduce(&sum, &sum, 1, HVD_INT64, HVD_SUM);
        if (status < 0)
            return status;
        if (sum != hvd_size() * (step + 1))
            say("a sum");
        if (nsizes == 0 || sizes[nsizes - 1] != hvd_size())
            sizes[nsizes++] = hvd_size();
        weight += sum / hvd_size();
        step++;
        usleep(2000);
        status = step % 5 == 0 ? hvd_commit() : 0;
        if (status < 0)
            return status;
        if (step == 5) {
            die_at("commit");
            printf("process %d trains\n", process);
            fflush(stdout);
        }
    }
    die_at("last");
    return HVD_OK;
}

/* What a process learns of its world agrees with what the others do. */
static int check_reset(void *unused, const hvd_reset *r)
{
    hvd_recovery how;
    int32_t least[2];

    (void)unused;
    if (hvd_last_recovery(&how, sizeof how) < 0)
        say("hvd_last_recovery");
    least[0] = how.generation;
    least[1] = -how.generation;
    if (hvd_allreduce(least, least, 2, HVD_INT32, HVD_MIN) < 0)
        return HVD_ERR_LOST;
    if (least[0] != -least[1])
        say("the generation");
    if ((how.old_rank < 0) != (hvd_rank() >= hvd_size() - how.njoined))
        say("who has joined");
    if (r->new_size != hvd_size() || how.generation < 1)
        say("a reset");
    if (how.old_rank < 0)
        printf("process %d has come in\n", process);
    fflush(stdout);
    return HVD_OK;
}

/* Returns the number of this process: MPI's, or that of the cluster's worker.
 */
static int find_number(void)
{
    const char *number = getenv("OMPI_COMM_WORLD_RANK");
    const char *task = getenv("TF_CONFIG");
    const char *index = task ? strstr(task, "\"index\":") : NULL;

    if (number)
        return atoi(number);
    return index ? atoi(index + strlen("\"index\":")) : 0;
}

int main(int argc, char **argv)
{
    const int64_t begun_ns = now_ns();
    hvd_recovery how;
    int status;

    if (argc < 2)
        return 2;
    process = find_number();
    steps = atoi(argv[1]);
    deaths = argv + 2;
    show_oneself();
    status = hvd_init();
    if (status < 0) {
        printf("process %d was not needed: %d: %s\n", process, status,
               hvd_last_error());
        printf("it used %d of %d ms\n", (int)(1000 * clock() / CLOCKS_PER_SEC),
               (int)((now_ns() - begun_ns) / 1000000));
        return status != HVD_ERR_SHUTDOWN;
    }
    if (hvd_last_recovery(&how, sizeof how) < 0 ||
        hvd_state_register("step", &step, sizeof step, 0) < 0 ||
        hvd_state_register("weight", &weight, sizeof weight, 0) < 0 ||
        hvd_state_register("sizes", sizes, sizeof sizes, 0) < 0 ||
        hvd_state_register("nsizes", &nsizes, sizeof nsizes, 0) < 0 ||
        hvd_on_reset(check_reset, NULL) < 0)
        return 2;
    if (hvd_elastic_run(train, NULL) < 0 || step != steps)
        say("the end");
    printf("process %d ended as rank %d of %d: joined %d, weight %lld, sizes",
           process, hvd_rank(), hvd_size(), (int)how.generation,
           (long long)weight);
    for (int64_t i = 0; i < nsizes; i++)
        printf(" %lld", (long long)sizes[i]);
    printf("\n");
    fflush(stdout);
    return hvd_shutdown() < 0;
}
