/* SPDX-License-Identifier: Apache-2.0 */
#include "core/api/quick.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/agree/agree.h"
#include "core/api/check.h"
#include "core/request/sampling.h"
#include "core/run/complete.h"

/* Returns true if a request of this kind may go the shortest way. */
static bool may_be_quick(const hvd_request *given)
{
    switch (given->kind) {
    case HVD_BARRIER:
    case HVD_BROADCAST:
    case HVD_ALLGATHER: return given->capacity == 0;
    case HVD_GATHER: return given->output && given->capacity == 0;
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

/* Frees what the check allocated, because the request cannot go the shortest
 * way. */
static void forget_memory(struct hvd__request *request)
{
    free(request->scratch);
    request->scratch = NULL;
}

/* Makes the submission one of the given request. A loop makes the same call
 * again and again: if the request equals the last one, what was found out about
 * that one holds again. Returns false if the request is wrong. */
static bool prepare(struct hvd__submission *submission, struct hvd__set *set,
                    const hvd_request *given)
{
    struct hvd__request *request = &submission->requests[0];

    /* No other set gets the number of one that was removed. */
    if (submission->may_recur && submission->set == set &&
        hvd__submission_is_like(submission, given, "")) {
        hvd__submission_renew(submission, given);
        return true;
    }
    hvd__submission_reset(submission);
    submission->set = set;
    submission->priority = given->priority;
    if (hvd__request_check(given, set, request) < 0)
        return false;
    submission->fingerprint =
        hvd__signature_fingerprint(0, &request->signature);
    hvd__submission_remember(submission, given, 0);
    return true;
}

/* Enters the submission into the request table, from where it goes the usual
 * way. If memory runs out here, the world is broken. */
static void adopt_submission(struct hvd__world *world,
                             struct hvd__submission *submission,
                             uint64_t number, bool posted, hvd_handle *handle)
{
    int status =
        hvd__table_adopt(&world->engine.table, submission, number, handle);

    world->quick = NULL;
    submission->may_recur = false;
    if (status < 0) {
        hvd__world_break(world, status, hvd_last_error());
        *handle = -1; /* refers to no request, so waiting for it is an error */
        return;
    }
    if (!posted)
        hvd__quick_queue(submission);
}

/* Runs a request. The caller has the role of the driver. */
static bool run_request(struct hvd__world *world, struct hvd__set *set,
                        const hvd_request *given, hvd_handle *handle)
{
    struct hvd__submission *submission = world->quick;
    struct hvd__request *request;
    struct hvd__quick quick;
    uint64_t number;
    enum hvd__quick_result done;

    if (!hvd__quick_is_possible(set))
        return false;
    if (!submission)
        submission = world->quick = hvd__table_reuse(&world->engine.table);
    if (!submission)
        return false;
    request = &submission->requests[0];
    /* A wrong request gets its error on the usual way. */
    if (!prepare(submission, set, given) ||
        !hvd__table_number(&world->engine.table, submission, &number)) {
        forget_memory(request);
        return false;
    }
    quick = hvd__quick_begin(submission, world->progress.may_spin);
    hvd__watch_quick(world->watch, given->kind, number,
                     submission->state.submitted_ns);
    done = hvd__quick_post(submission, &quick);
    if (quick.since_ns > 0)
        hvd__count(&world->engine.metrics.blocked_ns,
                   hvd__now_ns() - quick.since_ns);
    if (done == HVD__QUICK_DONE) {
        hvd__complete_quick(&world->engine, request,
                            hvd__quick_end(submission, &quick));
        forget_memory(request);
    } else {
        hvd__sampling_go_on(submission, quick.since_ns);
        adopt_submission(world, submission, number, done == HVD__QUICK_POSTED,
                         handle);
    }
    return true;
}

/* set is NULL if there is no such set. */
static bool run_if_free(struct hvd__world *world, struct hvd__set *set,
                        const hvd_request *given, hvd_handle *handle)
{
    bool ran;

    if (!set || !hvd__set_has_us(set) || !hvd__progress_take(world))
        return false;
    ran = run_request(world, set, given, handle);
    hvd__progress_give(world);
    return ran;
}

bool hvd__quick_run(struct hvd__world *world, const hvd_request *given,
                    hvd_handle *handle)
{
    struct hvd__set *set;
    bool ran;

    *handle = 0;
    /* A timeline needs more times than this path measures. */
    if (!may_be_quick(given) || atomic_load(&world->broken) ||
        atomic_load(&world->abort_status) < 0 ||
        hvd__trace_writer_listens(&world->engine.writer))
        return false;
    set = hvd__table_find_set(&world->engine.table, given->process_set);
    ran = run_if_free(world, set, given, handle);
    hvd__set_put(set);
    return ran;
}
