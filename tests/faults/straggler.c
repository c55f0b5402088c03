/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straggler MODE SLOW... - a training in which some ranks of the first world
 * are slow, by their numbers (hvd_elastic.h).
 *
 *     report    nothing is done about it
 *     exclude   all ranks exclude whom hvd_on_straggler names
 *     one       the lowest rank does so alone
 *     self      the slow ranks exclude themselves in their tenth step
 *     recover   in its tenth step rank 0 excludes the slow one and recovers
 *     wrong     calls that must fail
 *
 * A rank writes "P: straggler R, X of M" whenever one is reported, with the
 * times in milliseconds, and in the end "P: rank R of N, weight W", or
 * "P: out: STATUS: TEXT".
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hvd_elastic.h"

enum { STEPS = 40, TENTH = 10 };

static int64_t step, weight; /* the state */
static int process, is_slow, has_recovered;
static const char *mode;

static int wrong(const char *what)
{
    printf("%d: wrong: %s (%s)\n", process, what, hvd_last_error());
    fflush(stdout);
    _exit(1);
}

static void note(void *context, const hvd_straggler *s)
{
    if (context != &step || s->size != sizeof *s)
        wrong("what a function is called with");
    printf("%d: straggler %d, %.0f of %.0f\n", process, s->rank, 1e3 * s->busy,
           1e3 * s->median);
    fflush(stdout);
    if (strcmp(mode, "exclude") != 0 &&
        (strcmp(mode, "one") != 0 || hvd_rank() != 0))
        return;
    /* On a machine that is busy with other things, any may be a bit slow. */
    if (s->busy > 2 * s->median && hvd_exclude(s->rank) < 0)
        wrong("hvd_exclude");
}

/* The tenth step of this process, if its mode wants something there. */
static int do_tenth(int slow)
{
    if (strcmp(mode, "self") == 0 && is_slow)
        return hvd_exclude(hvd_rank());
    if (strcmp(mode, "recover") != 0 || process != 0 || has_recovered)
        return HVD_OK;
    has_recovered = 1;
    return hvd_exclude(slow) < 0 ? wrong("hvd_exclude") : HVD_ERR_LOST;
}

static int train(void *context)
{
    while (step < STEPS) {
        int64_t sum = step + 1;
        int status = step == TENTH ? do_tenth(*(int *)context) : HVD_OK;

        usleep(is_slow ? 60000 : 15000);
        if (status == HVD_OK)
            status = hvd_allreduce(&sum, &sum, 1, HVD_INT64, HVD_SUM);
        if (status < 0)
            return status;
        weight += sum / hvd_size();
        step++;
        if (step % 2 == 0 && (status = hvd_commit()) < 0)
            return status;
    }
    return HVD_OK;
}

static void try_wrong_calls(void)
{
    if (hvd_on_straggler(NULL, NULL) != HVD_ERR_ARGUMENT ||
        hvd_off_straggler(note, NULL) != HVD_ERR_ARGUMENT ||
        hvd_exclude(-1) != HVD_ERR_ARGUMENT ||
        hvd_exclude(hvd_size()) != HVD_ERR_ARGUMENT)
        wrong("what is accepted");
}

int main(int argc, char **argv)
{
    hvd_lost_rank lost = {-1, 0};
    int slow = argc > 2 ? atoi(argv[2]) : -1, status;

    if (argc < 2 || hvd_exclude(0) != HVD_ERR_NOT_INITIALIZED || hvd_init() < 0)
        return 2;
    mode = argv[1];
    process = hvd_rank();
    for (int i = 2; i < argc; i++)
        is_slow |= atoi(argv[i]) == process;
    if (hvd_size() == 1)
        return hvd_exclude(0) != HVD_ERR_UNSUPPORTED;
    if (strcmp(mode, "wrong") == 0)
        try_wrong_calls();
    if (hvd_state_register("step", &step, sizeof step, 0) < 0 ||
        hvd_state_register("weight", &weight, sizeof weight, 0) < 0 ||
        hvd_on_straggler(note, &step) < 0)
        return 2;
    status = hvd_elastic_run(train, &slow);
    if (status < 0) {
        printf("%d: out: %d: %s\n", process, status, hvd_last_error());
        return 1;
    }
    hvd_lost_ranks(&lost, 1);
    printf("%d: rank %d of %d, weight %lld, lost %d (%d)\n", process,
           hvd_rank(), hvd_size(), (long long)weight, lost.rank, lost.reason);
    fflush(stdout);
    return hvd_off_straggler(note, &step) < 0 || hvd_shutdown() < 0;
}
