/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straggler.c - finds ranks that are slower than the others.
 *
 * In a training all ranks wait for the slowest in each step. So the ranks take
 * the same time from one commit to the next, and what differs is how much of it
 * they are blocked in hvd_wait and the like. The rest is a rank's own, its busy
 * time. The ranks exchange their busy times as part of a commit, and all of
 * them come to the same conclusion. A rank is a straggler if its busy time, in
 * most commits of HVD_STRAGGLER_TIME and in all of them together, was longer
 * than the median of all ranks by a quarter. One slow step, a checkpoint, makes
 * none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "core/world/number.h"
#include "state/state.h"

/* A straggler is slower by this part of the median in MOST of the commits. */
#define SLOWER 0.25
#define MOST 0.75
enum { LEAST_COMMITS = 4 };

/* The commits that are looked at, with what all ranks said. */
static struct {
    int64_t world;     /* the number of the world they are of */
    int64_t begun_ns;  /* the last look, and */
    int64_t blocked;   /* how long this rank had been blocked by then */
    int64_t passed_ns; /* in all of the commits, on rank 0 */
    int ncommits, size;
    int64_t busy[HVD__MEASURED_RANKS]; /* in all of them */
    int nslow[HVD__MEASURED_RANKS];    /* commits in which each was slow */
} seen;

/* A function of hvd_on_straggler. */
struct listener {
    void (*function)(void *context, const hvd_straggler *straggler);
    void *context;
};

static struct listener *listeners; /* owned, in order */
static int nlisteners;

int hvd_on_straggler(void (*function)(void *context,
                                      const hvd_straggler *straggler),
                     void *context)
{
    struct listener *more;

    if (!function)
        return hvd__fail(HVD_ERR_ARGUMENT, "the function to call is NULL");
    more = realloc(listeners, ((size_t)nlisteners + 1) * sizeof *listeners);
    if (!more)
        return hvd__fail_memory(((size_t)nlisteners + 1) * sizeof *listeners);
    listeners = more;
    listeners[nlisteners++] = (struct listener){function, context};
    return HVD_OK;
}

int hvd_off_straggler(void (*function)(void *context,
                                       const hvd_straggler *straggler),
                      void *context)
{
    for (int i = 0; i < nlisteners; i++) {
        if (listeners[i].function != function ||
            listeners[i].context != context)
            continue;
        memmove(listeners + i, listeners + i + 1,
                (size_t)(nlisteners - i - 1) * sizeof *listeners);
        nlisteners--;
        return HVD_OK;
    }
    return hvd__fail(HVD_ERR_ARGUMENT,
                     "hvd_on_straggler was not given this function with this "
                     "context");
}

/* ---------------------------------------------------------------- measuring */

static int64_t now_ns(void)
{
    return (int64_t)(1e9 * hvd__state_seconds());
}

static int64_t blocked_ns(void)
{
    hvd_metrics metrics = {.size = sizeof metrics};

    return hvd_get_metrics(&metrics) < 0 ? 0 : metrics.blocked_ns;
}

static void begin_window(void)
{
    seen.ncommits = 0;
    seen.passed_ns = 0;
    memset(seen.busy, 0, sizeof seen.busy);
    memset(seen.nslow, 0, sizeof seen.nslow);
}

/* The first commit of a world only begins the time that is measured. */
static void begin_world(void)
{
    seen.world = hvd__world_number();
    seen.size = hvd_size();
    begin_window();
}

bool hvd__straggler_measure(int64_t *passed, int64_t *busy)
{
    const int64_t now = now_ns(), blocked = blocked_ns();
    const bool is_first = seen.world != hvd__world_number();

    if (hvd__world_straggler_ns() == 0 || hvd_size() > HVD__MEASURED_RANKS)
        return false;
    *passed = is_first ? 0 : now - seen.begun_ns;
    *busy = is_first ? 0 : *passed - (blocked - seen.blocked);
    *busy = *busy < 0 ? 0 : *busy;
    seen.begun_ns = now;
    seen.blocked = blocked;
    return true;
}

/* ------------------------------------------------------------------ judging */

static int compare_numbers(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Returns the median; of two in the middle the smaller one. */
static int64_t median_of(const int64_t *numbers)
{
    int64_t sorted[HVD__MEASURED_RANKS];

    memcpy(sorted, numbers, (size_t)seen.size * sizeof *sorted);
    qsort(sorted, (size_t)seen.size, sizeof *sorted, compare_numbers);
    return sorted[(seen.size - 1) / 2];
}

static bool is_slow(int64_t busy, int64_t median)
{
    return (double)busy > (1 + SLOWER) * (double)median;
}

/* Says who it is, on that rank, which knows its host. */
static void report(const hvd_straggler *s)
{
    char host[64] = "";

    if (s->rank != hvd_rank())
        return;
    gethostname(host, sizeof host - 1);
    hvd__log(HVD__LOG_WARNING,
             "this rank (process %d on %s) keeps the others waiting: in the "
             "last %.1f s it was busy for %.2f s between collectives, and the "
             "median rank for %.2f s",
             (int)getpid(), host, s->seconds, s->busy, s->median);
}

static void tell(const hvd_straggler *s)
{
    report(s);
    for (int i = 0; i < nlisteners; i++)
        listeners[i].function(listeners[i].context, s);
}

static void judge_window(void)
{
    const int64_t median = median_of(seen.busy);

    for (int rank = 0; rank < seen.size; rank++)
        if (is_slow(seen.busy[rank], median) &&
            seen.nslow[rank] >= MOST * seen.ncommits)
            tell(&(hvd_straggler){.size = sizeof(hvd_straggler),
                                  .rank = rank,
                                  .seconds = 1e-9 * (double)seen.passed_ns,
                                  .busy = 1e-9 * (double)seen.busy[rank],
                                  .median = 1e-9 * (double)median});
}

void hvd__straggler_judge(int64_t passed, const int64_t *busy)
{
    int64_t median;

    if (seen.world != hvd__world_number()) {
        begin_world();
        return;
    }
    median = median_of(busy);
    for (int rank = 0; rank < seen.size; rank++) {
        seen.busy[rank] += busy[rank];
        seen.nslow[rank] += is_slow(busy[rank], median);
    }
    seen.ncommits++;
    seen.passed_ns += passed;
    if (seen.passed_ns < hvd__world_straggler_ns() ||
        seen.ncommits < LEAST_COMMITS)
        return;
    judge_window();
    begin_window();
}
