/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sets STEPS VICTIM - a training on process sets, of four ranks, in which one
 * dies in step 7, and spares take places if there are any (docs/ELASTIC.md).
 *
 * There are the sets 0 1, 2 3, 1 2 and 3 from the start, and 0 2 from step 6
 * on, which is behind the commit of step 5. In each step each rank sums ones on
 * each set that it is a member of, and the sum must be the set's size. Each
 * process writes in the end
 *
 *     process P ended: ID of N: P...; ...
 *
 * the sets that it knows, and those of their processes that are members, by
 * their ranks at the start; 9 if the set is gone.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hvd_elastic.h"

enum { NSETS = 5, MOST = 8 };

static int64_t step, nsets = 0;
static int32_t sets[NSETS];
static int process, steps, victim;

static void say(const char *text)
{
    printf("process %d: wrong: %s at step %lld (%s)\n", process, text,
           (long long)step, hvd_last_error());
    fflush(stdout);
    _exit(1);
}

static void add(const int32_t *ranks, int32_t n)
{
    sets[nsets] = hvd_add_process_set(ranks, n);
    if (sets[nsets++] < 0)
        say("a set cannot be added");
}

static int sum_on(int32_t set)
{
    int32_t one = 1;
    const int64_t shape = 1;
    hvd_request request;
    hvd_handle handle;
    int status;

    hvd_request_init(&request, sizeof request);
    request.dtype = HVD_INT32;
    request.op = HVD_SUM;
    request.ndim = 1;
    request.shape = &shape;
    request.input = request.output = &one;
    request.process_set = set;
    status = hvd_submit(&request, &handle);
    if (status == 0)
        status = hvd_wait(handle);
    if (status == 0 && one != hvd_process_set_size(set))
        say("a sum");
    return status;
}

/* Sums on the sets that this rank is in. */
static int make_step(void)
{
    for (int i = 0; i < nsets; i++) {
        const int included = hvd_process_set_included(sets[i]);
        int status = 0;

        if (included == HVD_ERR_PROCESS_SET &&
            !strstr(hvd_last_error(), "hvd_restore has not made it again"))
            say("a set that is gone");
        if (included == 1)
            status = sum_on(sets[i]);
        if (status < 0)
            return status;
    }
    return 0;
}

static int train(void *unused)
{
    (void)unused;
    while (step < steps) {
        int32_t more[] = {0, 2};
        int status;

        if (step == 6)
            add(more, 2);
        if (step == 7 && process == victim)
            raise(SIGKILL);
        status = make_step();
        if (status == 0)
            status = hvd_barrier();
        step++;
        if (status == 0 && step % 5 == 0)
            status = hvd_commit();
        if (status < 0)
            return status;
    }
    return 0;
}

/* Writes the sets, by the processes that their ranks were at the start. */
static void tell(void)
{
    int32_t all[MOST];
    char text[256];
    int at = 0;

    if (hvd_allgather(&process, all, 1, HVD_INT32) < 0)
        say("a gather");
    for (int i = 0; i < nsets; i++) {
        int32_t ranks[MOST];
        const int n = hvd_process_set_ranks(sets[i], ranks, MOST);

        at += snprintf(text + at, sizeof text - (size_t)at,
                       " %d of %d:", (int)sets[i], n < 0 ? 9 : n);
        for (int k = 0; k < n; k++)
            at += snprintf(text + at, sizeof text - (size_t)at, " %d",
                           (int)all[ranks[k]]);
        at += snprintf(text + at, sizeof text - (size_t)at, ";");
    }
    printf("process %d ended:%s\n", process, text);
}

int main(int argc, char **argv)
{
    const int32_t sizes[] = {2, 2, 2, 1}, ranks[] = {0, 1, 2, 3, 1, 2, 3};
    hvd_options options;
    hvd_recovery how;

    if (argc != 3)
        return 2;
    steps = atoi(argv[1]);
    victim = atoi(argv[2]);
    process = atoi(getenv("OMPI_COMM_WORLD_RANK"));
    hvd_options_init(&options, sizeof options);
    options.nprocess_sets = 4;
    options.process_set_sizes = sizes;
    options.process_set_ranks = ranks;
    if (hvd_init_with(&options) < 0)
        return 3; /* a spare that was not needed */
    hvd_last_recovery(&how, sizeof how);
    for (int i = 0; i < 4 && how.generation == 0; i++)
        sets[nsets++] = i + 1;
    if (hvd_state_register("step", &step, sizeof step, 0) < 0 ||
        hvd_state_register("sets", sets, sizeof sets, 0) < 0 ||
        hvd_state_register("nsets", &nsets, sizeof nsets, 0) < 0 ||
        hvd_elastic_run(train, NULL) < 0)
        say("the training");
    tell();
    hvd_shutdown();
    return 0;
}
