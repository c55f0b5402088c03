/* SPDX-License-Identifier: Apache-2.0 */
#include "core/api/quick.h"

#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fingerprint.h"
#include "base/status.h"
#include "core/agree/ordered_parts.h"
#include "core/api/check.h"
#include "core/run/complete.h"

/* How far it got. */
enum quick { NOT_POSTED, POSTED, DONE };

/*
 * Looking for the others: first some ten microseconds without giving up the
 * core, for whoever else wants it may keep it for milliseconds; then giving
 * way, for that may be the one waited for. If it was, as among ranks that
 * share a core against all expectation, looking is a waste of its time, and is
 * done less from then on; at length only now and then.
 */
enum { LOOKS = 1000, LOOKS_YIELDING = 100, TRY_AGAIN = 256 };
#define SHORT_NS INT64_C(50000)

/* A request on its way. */
struct trip {
    int pauses; /* that are left */
    int yields;
    int64_t since_ns; /* of the first yield; 0: none yet */
};

static struct trip begin(const struct hvd__world *world, struct hvd__ordered *x)
{
    struct trip trip = {.yields = LOOKS_YIELDING};

    if (x->nquick % TRY_AGAIN == 0)
        x->pauses = LOOKS;
    if (world->progress.may_spin)
        trip.pauses = x->pauses;
    return trip;
}

/* Between two looks; false: no more. */
static bool pause_between(struct trip *trip)
{
    if (trip->pauses > 0) {
        trip->pauses--;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#else
        atomic_signal_fence(memory_order_seq_cst);
#endif
        return true;
    }
    if (trip->since_ns == 0)
        trip->since_ns = hvd__now_ns();
    sched_yield();
    return trip->yields-- > 0;
}

/* It is over: what it took. Were the others there soon after this rank had
 * given way? */
static void end(struct hvd__ordered *x, const struct trip *trip,
                const struct hvd__request *request)
{
    int64_t yielded_ns = 0;

    if (trip->since_ns > 0)
        yielded_ns = hvd__now_ns() - trip->since_ns;
    if (trip->since_ns > 0 && yielded_ns < SHORT_NS)
        x->pauses /= 4;
    hvd__sampling_end(&x->sampling, request->submission, yielded_ns);
}

static enum quick quick_in_place(struct hvd__set *set,
                                 struct hvd__request *request,
                                 struct trip *trip)
{
    struct hvd__ordered *x = &set->agreement->ordered;

    hvd__ordered_begin_share(set, request, x->decided++);
    while (!hvd__ordered_reduce_share(set))
        continue;
    hvd__ordered_consume(set);
    while (hvd__ordered_least_reduced(set) < request->sequence)
        if (!pause_between(trip))
            return POSTED;
    x->unfinished = NULL;
    x->unfinished_tail = &x->unfinished;
    return DONE;
}

static enum quick post_and_look(struct hvd__world *world, struct hvd__set *set,
                                struct hvd__submission *submission,
                                struct trip *trip)
{
    struct hvd__ordered *x = &set->agreement->ordered;
    struct hvd__request *request = &submission->requests[0];
    enum hvd__verdict verdict;

    if (!hvd__ordered_post_submission(&world->engine, set, submission))
        return NOT_POSTED;
    while ((verdict = hvd__ordered_compare(set)) == HVD__UNKNOWN &&
           pause_between(trip))
        continue;
    if (verdict != HVD__AGREED)
        return POSTED;
    if (hvd__ordered_run_here(&world->engine, set, request, x->decided)) {
        x->decided++;
        hvd__ordered_consume(set);
        return DONE;
    }
    if (!hvd__ordered_goes_in_place(&world->engine, set, request, x->decided))
        return POSTED;
    return quick_in_place(set, request, trip);
}

/* Whether there is a chance, by what the request is. */
static bool may_be_quick(const hvd_request *given)
{
    switch (given->kind) {
    case HVD_BARRIER:
    case HVD_BROADCAST:
    case HVD_ALLGATHER:
    case HVD_GATHER: return given->capacity == 0;
    case HVD_ALLREDUCE:
    case HVD_REDUCE:
        return given->op != HVD_ADASUM &&
               given->compression == HVD_COMPRESSION_NONE;
    case HVD_ALLTOALL:
    case HVD_REDUCESCATTER:
        return given->output && !given->splits && given->capacity == 0;
    default: return false;
    }
}

/* What the check has allocated, for a way that was not taken. */
static void forget(struct hvd__request *request)
{
    free(request->own_input);
    free(request->scratch);
    request->own_input = request->scratch = NULL;
}

/* The request is on its way; since when, exactly if that matters. */
static void depart(struct hvd__world *world, struct hvd__submission *submission,
                   uint64_t number)
{
    const struct hvd__request *request = &submission->requests[0];

    hvd__sampling_start(submission, false,
                        submission->set->agreement->ordered.nquick++);
    submission->fingerprint = hvd__signature_fingerprint(
        submission->fingerprint, &request->signature);
    hvd__watch_quick(world->watch, request->signature.kind, number,
                     submission->submitted_ns);
}

/* The submission is given to the request table; its request goes the usual way
 * from here. Without memory for that nothing can go on. */
static void adopt(struct hvd__world *world, struct hvd__submission *submission,
                  uint64_t number, bool posted, hvd_handle *handle)
{
    int status =
        hvd__table_adopt(&world->engine.table, submission, number, handle);

    world->quick = NULL;
    if (status < 0) {
        hvd__world_break(world, status, hvd_last_error());
        *handle = -1; /* of nothing: to wait for it is an error */
        return;
    }
    if (!posted)
        hvd__ordered_submit(&submission->set->agreement->ordered, submission);
}

/* With the role of the driver. */
static bool run(struct hvd__world *world, struct hvd__set *set,
                const hvd_request *given, hvd_handle *handle)
{
    struct hvd__submission *submission = world->quick;
    struct hvd__request *request;
    struct trip trip;
    uint64_t number;
    enum quick done;

    if (!hvd__ordered_is_free(&set->agreement->ordered))
        return false;
    if (!submission)
        submission = world->quick = hvd__table_reuse(&world->engine.table);
    if (!submission)
        return false;
    hvd__submission_reset(submission);
    submission->set = set;
    submission->priority = given->priority;
    request = &submission->requests[0];
    /* What is wrong will be said on the usual way. */
    if (hvd__request_check(given, set, request) < 0) {
        forget(request);
        return false;
    }
    if (!hvd__table_number(&world->engine.table, submission, &number)) {
        forget(request);
        return false;
    }
    trip = begin(world, &set->agreement->ordered);
    depart(world, submission, number);
    done = post_and_look(world, set, submission, &trip);
    if (done == DONE) {
        end(&set->agreement->ordered, &trip, request);
        hvd__complete_quick(&world->engine, request,
                            set->agreement->ordered.sampling.quick_ns);
        forget(request);
    } else {
        hvd__sampling_go_on(submission, trip.since_ns);
        adopt(world, submission, number, done == POSTED, handle);
    }
    return true;
}

/* set: NULL: there is no such set. */
static bool run_if_free(struct hvd__world *world, struct hvd__set *set,
                        const hvd_request *given, hvd_handle *handle)
{
    bool ran;

    if (!set || !hvd__set_has_us(set) || !hvd__progress_take(world))
        return false;
    ran = run(world, set, given, handle);
    hvd__progress_give(world);
    return ran;
}

bool hvd__quick_run(struct hvd__world *world, const hvd_request *given,
                    hvd_handle *handle)
{
    struct hvd__set *set;
    bool ran;

    *handle = 0;
    /* A timeline wants to know more than there is time for. */
    if (!may_be_quick(given) || atomic_load(&world->broken) ||
        atomic_load(&world->abort_status) < 0 ||
        hvd__trace_writer_listens(&world->engine.writer))
        return false;
    set = hvd__table_find_set(&world->engine.table, given->process_set);
    ran = run_if_free(world, set, given, handle);
    hvd__set_put(set);
    return ran;
}
