/* SPDX-License-Identifier: Apache-2.0 */
/*
 * committer WORKER WORKERS [PIECE] - a task of an elastic cluster that trains,
 * commits (hvd_elastic.h), and lets others in at its commits. grow_commit.bats
 * compiles it, starts it, and kills it. PIECE is the name of a piece of the
 * state that others do not have.
 *
 * The training is that of tests/support/replayed.h, whose sums are allreduces
 * and whose members are workers. It goes on until there is a file "end" and all
 * workers are here, and then for a few steps more. It writes
 *
 *     commit K world G step S weights HASH
 *     restore K world G step S weights HASH rank R of N old O of P
 *     end K step S weights HASH ranks N
 *
 * Each line is one write, so that a death leaves no half of one. It dies if
 * there is a file "die.WORKER", which says where, and has a number:
 *
 *     before 0    when it is about to let others in
 *     within N    while it does so, after N microseconds
 *     after 0     when they are in, but have no state yet
 *     restore N   in the Nth allreduce of hvd_restore behind that; one that
 *                 joins does so, too
 *
 * For that it defines functions which libhvd's commit calls. In the end it
 * replays the whole training on one thread, from the list of who was there in
 * which step, which is part of the state, and writes "wrong: ..." if a bit
 * differs or a step is missing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hvd_elastic.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replayed.h"

enum { LAST_STEPS = 20, EVERY = 4 };

/* The state, with weights and members. */
static int64_t step, last;  /* last: the number of all steps; 0: not known */
static char large[1 << 20]; /* so that copying takes a while */
static int64_t own;         /* of each rank: the worker that it is */

static int worker, nworkers;
static int64_t joined_at = -1; /* the commit with which this one came */
static bool enters = true;     /* in a world that has grown */
static int nallreduces;        /* since then */

static void wrong(const char *what)
{
    dprintf(1, "wrong: %s at step %" PRId64 " (%s)\n", what, step,
            hvd_last_error());
    _exit(1);
}

static int64_t newest_commit(void)
{
    hvd_state_info info = {.size = sizeof info};

    if (hvd_state_get_info(&info) < 0)
        wrong("the info");
    return info.commit;
}

static int64_t generation(void)
{
    hvd_recovery recovery;

    if (hvd_last_recovery(&recovery, sizeof recovery) < 0)
        wrong("the last recovery");
    return recovery.generation;
}

/* ------------------------------------------------------------------ deaths */

/* Returns whether this one is to die in such a place, and the number. */
static bool is_doomed(const char *where, int *number)
{
    char name[32], text[16] = "";
    FILE *file;
    bool read;

    snprintf(name, sizeof name, "die.%d", worker);
    file = fopen(name, "r");
    read = file && fscanf(file, "%15s %d", text, number) == 2;
    if (file)
        fclose(file);
    return read && strcmp(text, where) == 0;
}

static void *die_later(void *us)
{
    usleep((useconds_t) * (int *)us);
    raise(SIGKILL);
    return NULL;
}

int hvd_grow(hvd_recovery *recovery, size_t size)
{
    static int (*real)(hvd_recovery *, size_t);
    static int number;
    pthread_t thread;
    int status;

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "hvd_grow");
    if (is_doomed("before", &number))
        raise(SIGKILL);
    if (is_doomed("within", &number))
        pthread_create(&thread, NULL, die_later, &number);
    status = real(recovery, size);
    if (is_doomed("after", &number))
        raise(SIGKILL);
    enters = status == 1;
    nallreduces = 0;
    return status;
}

int hvd_allreduce(const void *in, void *out, int64_t count, hvd_dtype dtype,
                  hvd_op op)
{
    static int (*real)(const void *, void *, int64_t, hvd_dtype, hvd_op);
    int number = 0;

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "hvd_allreduce");
    if (enters && is_doomed("restore", &number) && ++nallreduces == number)
        raise(SIGKILL);
    return real(in, out, count, dtype, op);
}

/* ------------------------------------------------------------- the training */

static int commit(void)
{
    int status;

    if (step % (2 * EVERY) == 0) {
        status = hvd_commit();
    } else {
        status = hvd_commit_start();
        if (status == HVD_OK)
            status = hvd_commit_wait();
    }
    enters = false;
    if (status >= 0)
        dprintf(1,
                "commit %" PRId64 " world %" PRId64 " step %" PRId64
                " weights %016" PRIx64 "\n",
                newest_commit(), generation(), step, replayed_hash());
    return status;
}

static int make_step(void)
{
    static double sum[COUNT];
    int64_t both[2] = {INT64_C(1) << worker, access("end", F_OK) == 0};
    int status;

    for (int i = 0; i < COUNT; i++)
        sum[i] = replayed_given(worker, i, step);
    status = hvd_allreduce(both, both, 2, HVD_INT64, HVD_SUM);
    if (status == HVD_OK)
        status = hvd_allreduce(sum, sum, COUNT, HVD_FLOAT64, HVD_SUM);
    if (status < 0)
        return status;
    if (step == MOST_STEPS || members[step] != 0)
        wrong("a step was made before, or is one too many");
    members[step] = (uint16_t)both[0];
    replayed_update(sum, hvd_size());
    step++;
    if (last == 0 && both[1] > 0 && hvd_size() == nworkers)
        last = step + LAST_STEPS;
    return HVD_OK;
}

static int train(void *context)
{
    (void)context;
    while (last == 0 || step < last) {
        int status = make_step();

        usleep(500);
        if (status == HVD_OK && step % EVERY == 0)
            status = commit();
        if (status < 0)
            return status;
    }
    return HVD_OK;
}

/* One that has joined has what is another one's until the next commit. Whose it
 * is depends on the deaths since the last one. */
static void check_own(const hvd_reset *r)
{
    if (own < 0 || own >= nworkers)
        wrong("one that has joined has not got what is another one's own");
    if (r->old_rank < 0)
        joined_at = r->commit;
    else if (r->commit > joined_at && own != worker)
        wrong("what was this rank's own");
    own = worker;
}

/* A function of hvd_on_reset, which may make collective calls. */
static int reset(void *context, const hvd_reset *r)
{
    int64_t size = 1;
    int status = hvd_allreduce(&size, &size, 1, HVD_INT64, HVD_SUM);

    (void)context;
    if (status < 0)
        return status;
    if (size != hvd_size() || r->rank != hvd_rank() ||
        r->new_size != hvd_size() || !r->restored)
        wrong("what a reset says");
    dprintf(1,
            "restore %" PRId64 " world %" PRId64 " step %" PRId64
            " weights %016" PRIx64 " rank %d of %d old %d of %d\n",
            r->commit, generation(), step, replayed_hash(), r->rank,
            r->new_size, r->old_rank, r->old_size);
    check_own(r);
    return HVD_OK;
}

static int register_state(char *piece)
{
    if (hvd_state_register("weights", weights, sizeof weights, 0) < 0 ||
        hvd_state_register("large", large, sizeof large, 0) < 0 ||
        hvd_state_register("step", &step, sizeof step, 0) < 0 ||
        hvd_state_register("last", &last, sizeof last, 0) < 0 ||
        hvd_state_register("members", members, sizeof members, 0) < 0 ||
        hvd_state_register("own", &own, sizeof own, HVD_STATE_PER_RANK) < 0)
        return -1;
    return piece ? hvd_state_register(piece, piece, strlen(piece), 0) : 0;
}

int main(int argc, char **argv)
{
    const char *problem;
    int status;

    if (argc < 3)
        return 2;
    worker = atoi(argv[1]);
    nworkers = atoi(argv[2]);
    status = hvd_init();
    own = status == HVD_OK && generation() > 0 ? -1 : worker;
    if (status == HVD_OK)
        status = register_state(argv[3]);
    if (status == HVD_OK)
        status = hvd_on_reset(reset, NULL);
    if (status == HVD_OK)
        status = hvd_elastic_run(train, NULL);
    if (status < 0) {
        fprintf(stderr, "%d: %s\n", status, hvd_last_error());
        return 1;
    }
    if (step != last)
        wrong("the end");
    dprintf(
        1, "end %" PRId64 " step %" PRId64 " weights %016" PRIx64 " ranks %d\n",
        newest_commit(), step, replayed_hash(), hvd_size());
    problem = replayed_compare(last);
    if (problem)
        wrong(problem);
    return hvd_shutdown() < 0;
}
