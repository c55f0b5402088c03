/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reset.c - notices that the world is another one, tells those who want to
 * know, and has a program train through losses.
 *
 * A process counts its worlds (hvd__world_number). It has come to terms with
 * one when a commit or a restore in it has succeeded. So a restore that fails
 * because one more rank was lost tells nobody, and the next one compares with
 * the last world in which the program ran.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/world/number.h"
#include "state/state.h"

struct listener {
    hvd_reset_fn *function;
    void *context; /* borrowed until it is taken back */
};

static struct listener *listeners; /* owned, [nlisteners] */
static int nlisteners;

/* The world that this process has come to terms with; number 0: none. */
static struct {
    int64_t number;
    int32_t rank, size;
} known;

/* ------------------------------------------------------------------- lists */

int hvd_on_reset(hvd_reset_fn *function, void *context)
{
    struct listener *grown;

    if (!function)
        return hvd__fail(HVD_ERR_ARGUMENT, "the function is NULL");
    grown = realloc(listeners, ((size_t)nlisteners + 1) * sizeof *grown);
    if (!grown)
        return hvd__fail_memory(((size_t)nlisteners + 1) * sizeof *grown);
    listeners = grown;
    listeners[nlisteners++] = (struct listener){function, context};
    return HVD_OK;
}

int hvd_off_reset(hvd_reset_fn *function, void *context)
{
    for (int i = 0; i < nlisteners; i++) {
        if (listeners[i].function != function ||
            listeners[i].context != context)
            continue;
        nlisteners--;
        for (; i < nlisteners; i++)
            listeners[i] = listeners[i + 1];
        return HVD_OK;
    }
    return hvd__fail(HVD_ERR_ARGUMENT,
                     "this function was not given to hvd_on_reset with this "
                     "context");
}

/* --------------------------------------------------------------- the world */

bool hvd__world_is_new(void)
{
    return known.number != hvd__world_number();
}

bool hvd__world_was_known(void)
{
    return known.number != 0;
}

void hvd__world_settle(void)
{
    known.number = hvd__world_number();
    known.rank = hvd_rank();
    known.size = hvd_size();
}

/* Returns what the function returns. If that is a failure of its own, the last
 * error is still that of the loss, and says so instead. */
static int call_listener(const struct listener *listener,
                         const hvd_reset *reset)
{
    char before[HVD__MESSAGE_MAX];
    int status;

    snprintf(before, sizeof before, "%s", hvd_last_error());
    status = listener->function(listener->context, reset);
    return status < 0 && strcmp(before, hvd_last_error()) == 0
               ? hvd__fail(status, "a function of hvd_on_reset has returned %d",
                           status)
               : status;
}

static int call_listeners(const hvd_reset *reset)
{
    for (int i = 0; i < nlisteners; i++)
        HVD_TRY(call_listener(&listeners[i], reset));
    return HVD_OK;
}

int hvd__world_announce(bool is_new, bool restored)
{
    const bool joined = known.number == 0;
    const hvd_reset reset = {.size = sizeof reset,
                             .old_rank = joined ? -1 : known.rank,
                             .old_size = joined ? 0 : known.size,
                             .rank = hvd_rank(),
                             .new_size = hvd_size(),
                             .restored = restored,
                             .commit = hvd__state.last};
    int32_t is_first = joined;

    if (!is_new)
        return HVD_OK;
    /* In the first world of a job nothing has changed for anybody. */
    HVD_TRY(hvd_allreduce(&is_first, &is_first, 1, HVD_INT32, HVD_MIN));
    if (!is_first)
        HVD_TRY(hvd__agree(0, call_listeners(&reset)));
    hvd__world_settle();
    return HVD_OK;
}

/* ----------------------------------------------------------------- the loop */

/* A rank that exits, or shuts down, while the others train is lost to them as
 * one that is killed: all ranks of a training end together. */
static bool is_loss(int status)
{
    return status == HVD_ERR_LOST || status == HVD_ERR_STALLED ||
           status == HVD_ERR_SHUTDOWN;
}

/* Makes a new world. Fails as train has, where a rank has left a world that
 * cannot be recovered from: nobody else says so. */
static int recover_from(int failure)
{
    char text[HVD__MESSAGE_MAX];
    int status;

    snprintf(text, sizeof text, "%s", hvd_last_error());
    status = hvd_recover(NULL, 0);
    return status == HVD_ERR_UNSUPPORTED && failure == HVD_ERR_SHUTDOWN
               ? hvd__fail_text(failure, text)
               : status;
}

/* Makes a new world, in which the state is that of the newest commit. Returns 0
 * if there is none. */
static int come_back(int failure)
{
    int status = failure;

    do {
        HVD_TRY(recover_from(status));
        status = hvd_restore();
    } while (is_loss(status));
    return status;
}

/* Makes what rank 0 has the first commit. Returns 1. */
static int commit_first(void)
{
    HVD_TRY(hvd_state_sync(0));
    HVD_TRY(hvd_commit());
    return 1;
}

int hvd_elastic_run(int (*train)(void *context), void *context)
{
    int status, trained = HVD_OK;

    if (!train)
        return hvd__fail(HVD_ERR_ARGUMENT, "the function to train is NULL");
    /* The commit may be that of a job that this process has joined. A loss
     * before the first commit, too, finds all ranks here, behind hvd_restore.
     */
    status = hvd_restore();
    for (;;) {
        if (status == 0)
            status = commit_first();
        if (status >= 0) {
            status = trained = train(context);
            if (status >= 0)
                status = hvd_commit_wait();
            if (status >= 0)
                status = hvd_commit();
            if (status == HVD_OK)
                return trained;
            if (status == 1) /* who has just joined trains, too */
                continue;
        }
        if (!is_loss(status))
            return status;
        HVD_TRY(status = come_back(status));
    }
}
