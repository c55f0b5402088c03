/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit SEED STEPS [WHERE] - a training in which ranks die, and the others go
 * back to the last commit and go on (hvd_elastic.h).
 *
 * The training is that of tests/support/replayed.h, whose sums are allreduces.
 * Commits are made every few steps, by hvd_commit or hvd_commit_start. WHERE
 * says when ranks die, by turns any of them, rank 0 too, until one is left:
 *
 *     random   at random moments (the default)
 *     exit     between two steps, by exit, without hvd_shutdown
 *     sync     rank 0, while it gives all its first state, and then at random
 *     copy     while a commit copies
 *     before   with a copy that is made, before the ranks agree
 *     within   while they agree
 *     after    when they have agreed, before hvd_commit returns
 *     restore  at random, and two at once, so that one dies in hvd_restore
 *     early    one, before there is a commit: "rank R: the first commit: 0"
 *     reset    as exit, and a function of hvd_on_reset fails then, which ends
 *              the training: "refused: ..." with the last error
 *
 * All of it happens in the library's own calls: the program defines
 * hvd_allreduce itself, and libhvd's commit calls that.
 *
 * Each survivor replays the whole training in the end, on one thread, from the
 * list of who was there in which step, which is part of the state. It writes
 * "rank R ended with N of M ranks: weights HASH, K losses, J commits", and
 * "wrong: ..." if a bit differs, or a step is missing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "hvd_elastic.h"
#include "replayed.h"

enum { LARGE = 1 << 20, REFUSED = -77 };

/* The state, with weights and members: these are ranks of the first world. */
static int64_t step;
static char large[LARGE]; /* so that copying takes a while */
static int64_t own[2];    /* of each rank: itself, and its steps */
static int64_t origin[2]; /* whose first state it was, in two pieces */

static int first_rank, first_size, steps, nresets;
static uint64_t seed;
static const char *where = "random";
static bool committing, dying;
static int64_t doomed_step = -1;

static void wrong(const char *what)
{
    printf("rank %d of the first world: wrong: %s at step %lld (%s)\n",
           first_rank, what, (long long)step, hvd_last_error());
    fflush(stdout);
    _exit(1);
}

/* The same on all ranks (splitmix64). */
static uint64_t draw(uint64_t number)
{
    uint64_t z = seed + number * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void die(void)
{
    raise(SIGKILL);
}

/* ------------------------------------------------------------------ deaths */

/* Any rank's death, by the number of the ranks that are left: the same on all
 * ranks, without a message. Returns whether this one is to die. */
static bool is_doomed(void)
{
    const uint64_t chosen = draw(1000 + (uint64_t)hvd_size());
    bool two = strcmp(where, "restore") == 0 && hvd_size() > 2;

    return hvd_size() > 1 &&
           (hvd_rank() == (int)(chosen % (uint64_t)hvd_size()) ||
            (two && hvd_rank() == (int)((chosen + 1) % (uint64_t)hvd_size())));
}

static void *die_later(void *argument)
{
    const uint64_t us = draw(2000 + (uint64_t)hvd_size()) % 20000;

    (void)argument;
    usleep((useconds_t)us);
    die();
    return NULL;
}

static void start_dying(void)
{
    pthread_t thread;

    dying = true;
    if (pthread_create(&thread, NULL, die_later, NULL) != 0)
        die();
}

int hvd_allreduce(const void *in, void *out, int64_t count, hvd_dtype dtype,
                  hvd_op op)
{
    static int (*real)(const void *, void *, int64_t, hvd_dtype, hvd_op);
    int status;

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "hvd_allreduce");
    if (committing && step >= doomed_step && is_doomed()) {
        if (strcmp(where, "before") == 0)
            die();
        if (strcmp(where, "within") == 0)
            start_dying();
    }
    status = real(in, out, count, dtype, op);
    if (committing && step >= doomed_step && is_doomed() &&
        strcmp(where, "after") == 0)
        die();
    return status;
}

int hvd_broadcast(void *buffer, int64_t count, hvd_dtype dtype, int root)
{
    static int (*real)(void *, int64_t, hvd_dtype, int);

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "hvd_broadcast");
    if (strcmp(where, "sync") == 0 && buffer == &origin[1] && first_rank == 0) {
        usleep(200000); /* the others have the first piece by now */
        die();
    }
    return real(buffer, count, dtype, root);
}

/* Has the next death be in a while. */
static void plan_death(void)
{
    doomed_step = step + 3 +
                  (int64_t)(draw(3000 + (uint64_t)hvd_size()) %
                            (uint64_t)(steps / (first_size + 1)));
}

static int commit(void)
{
    const bool dies = step >= doomed_step && is_doomed();
    int status;

    committing = true;
    if (dies && strcmp(where, "copy") == 0)
        start_dying();
    if (step % 2) {
        status = hvd_commit_start();
        if (status == HVD_OK)
            status = hvd_commit_wait();
    } else {
        status = hvd_commit();
    }
    committing = false;
    return status;
}

static int train(void *context)
{
    static double sum[COUNT];

    (void)context;
    if (origin[0] != origin[1])
        wrong("the state is one rank's and another one's");
    plan_death();
    while (step < steps) {
        uint16_t bits = (uint16_t)(1U << first_rank), all = 0;
        int32_t mine = bits, together = 0;
        int status;

        for (int i = 0; i < COUNT; i++)
            sum[i] = replayed_given(first_rank, i, step);
        if (step == doomed_step && is_doomed() &&
            (strcmp(where, "exit") == 0 || strcmp(where, "reset") == 0))
            exit(3);
        if (step == doomed_step && is_doomed() &&
            (strcmp(where, "random") == 0 || strcmp(where, "sync") == 0 ||
             strcmp(where, "restore") == 0))
            start_dying();
        /* On a fast machine all steps might be made before. */
        while (dying && step == steps - 1)
            pause();
        status = hvd_allreduce(&mine, &together, 1, HVD_INT32, HVD_SUM);
        if (status == HVD_OK)
            status = hvd_allreduce(sum, sum, COUNT, HVD_FLOAT64, HVD_SUM);
        if (status < 0)
            return status;
        all = (uint16_t)together;
        if (members[step] != 0)
            wrong("a step was made before");
        members[step] = all;
        replayed_update(sum, hvd_size());
        own[1]++;
        step++;
        if (step % 5 == 0 && (status = commit()) < 0)
            return status;
    }
    return HVD_OK;
}

static int reset(void *context, const hvd_reset *r)
{
    int32_t size = 1;

    (void)context;
    nresets++;
    if (r->rank != hvd_rank() || r->new_size != hvd_size() ||
        r->old_size <= r->new_size ||
        (!r->restored && strcmp(where, "sync") != 0))
        wrong("what a reset says");
    if (hvd_allreduce(&size, &size, 1, HVD_INT32, HVD_SUM) < 0)
        return HVD_ERR_LOST;
    if (size != hvd_size())
        wrong("a sum within a reset");
    if (own[0] != first_rank || own[1] != step)
        wrong("what was this rank's own");
    return strcmp(where, "reset") == 0 && r->rank == 1 ? REFUSED : HVD_OK;
}

/* All have found that there is no commit when one dies. The others make the
 * first one in a world that they have not restored: there is nothing to lose. */
static int commit_early(void)
{
    int32_t sum = 0;

    origin[0] = origin[1] = 0; /* all have the same */
    if (hvd_restore() != 0)
        wrong("a commit that nobody has made");
    if (first_rank == 1)
        die();
    if (hvd_allreduce(&sum, &sum, 1, HVD_INT32, HVD_SUM) != HVD_ERR_LOST ||
        hvd_recover(NULL, 0) < 0)
        wrong("the loss");
    printf("rank %d: the first commit: %d %s\n", first_rank, hvd_commit(),
           hvd_last_error());
    fflush(stdout);
    return hvd_shutdown() < 0;
}

int main(int argc, char **argv)
{
    hvd_state_info info = {.size = sizeof info};
    const char *problem;
    int status;

    if (argc < 3 || hvd_init() < 0 || hvd_size() > MOST_MEMBERS)
        return 2;
    seed = strtoull(argv[1], NULL, 10);
    steps = atoi(argv[2]);
    where = argc > 3 ? argv[3] : where;
    first_rank = hvd_rank();
    first_size = hvd_size();
    own[0] = origin[0] = origin[1] = first_rank;
    if (steps > MOST_STEPS ||
        hvd_state_register("weights", weights, sizeof weights, 0) < 0 ||
        hvd_state_register("large", large, sizeof large, 0) < 0 ||
        hvd_state_register("step", &step, sizeof step, 0) < 0 ||
        hvd_state_register("members", members, sizeof members, 0) < 0 ||
        hvd_state_register("own", own, sizeof own, HVD_STATE_PER_RANK) < 0 ||
        hvd_state_register("origin", &origin[0], sizeof *origin, 0) < 0 ||
        hvd_state_register("origin too", &origin[1], sizeof *origin, 0) < 0 ||
        hvd_on_reset(reset, NULL) < 0)
        return 2;
    if (strcmp(where, "early") == 0)
        return commit_early();
    status = hvd_elastic_run(train, NULL);
    if (status == REFUSED) {
        printf("refused: %s\n", hvd_last_error());
        fflush(stdout);
        return hvd_shutdown() < 0;
    }
    if (status < 0 || step != steps)
        wrong("the end");
    if (hvd_state_get_info(&info) < 0)
        wrong("the info");
    printf("rank %d ended with %d of %d ranks: weights %016llx, %d losses, "
           "%lld commits\n",
           first_rank, hvd_size(), first_size,
           (unsigned long long)replayed_hash(), nresets,
           (long long)info.commits);
    problem = replayed_compare(steps);
    if (problem)
        wrong(problem);
    fflush(stdout);
    return hvd_shutdown() < 0;
}
