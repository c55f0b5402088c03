/* SPDX-License-Identifier: Apache-2.0 */
/* announce.c - announces this rank's submissions to the coordinator by a
 * message, or, on the coordinator's own rank, by a call. */
#include <stdlib.h>

#include "base/status.h"
#include "core/agree/by_name.h"

static int announce_own(struct hvd__set *set,
                        const struct hvd__submission *submission,
                        const int64_t *numbers, int nnumbers)
{
    const struct hvd__signature **signatures =
        malloc((size_t)submission->state.nrequests * sizeof *signatures);
    struct hvd__announcement announcement = {
        .key = submission->key,
        .fingerprint = submission->fingerprint,
        .priority = submission->priority,
        .numbers = numbers,
        .nnumbers = nnumbers,
        .signatures = signatures,
        .nsignatures = submission->state.nrequests,
    };
    int status;

    if (!signatures)
        return hvd__fail_memory((size_t)submission->state.nrequests *
                                sizeof *signatures);
    for (int i = 0; i < submission->state.nrequests; i++)
        signatures[i] = &submission->requests[i].signature;
    status = hvd__coordinator_announce(set->agreement->coordinator, 0,
                                       &announcement);
    free(signatures);
    return status;
}

static void announce_other(struct hvd__set *set,
                           const struct hvd__submission *submission,
                           const int64_t *numbers, int nnumbers)
{
    hvd__write_type(&set->agreement->out, HVD__ANNOUNCE);
    hvd__write_key(&set->agreement->out, submission->key);
    hvd__write_key(&set->agreement->out, submission->fingerprint);
    hvd__write_int(&set->agreement->out, submission->priority);
    hvd__write_int(&set->agreement->out, nnumbers);
    for (int i = 0; i < nnumbers; i++)
        hvd__write_long(&set->agreement->out, numbers[i]);
}

/* Collects the numbers that a submission's requests carry, in their order. *n
 * becomes how many there are. */
static int collect_numbers(const struct hvd__submission *submission,
                           int64_t **numbers, int *n)
{
    *n = 0;
    *numbers = NULL;
    for (int i = 0; i < submission->state.nrequests; i++)
        *n += hvd__signature_carries(&submission->requests[i].signature);
    if (*n == 0)
        return HVD_OK;
    *numbers = malloc((size_t)*n * sizeof **numbers);
    if (!*numbers)
        return hvd__fail_memory((size_t)*n * sizeof **numbers);
    for (int i = 0, k = 0; i < submission->state.nrequests; i++)
        if (hvd__signature_carries(&submission->requests[i].signature))
            (*numbers)[k++] = submission->requests[i].rows;
    return HVD_OK;
}

static int announce_refusal(struct hvd__set *set,
                            const struct hvd__submission *submission)
{
    if (set->agreement->coordinator)
        return hvd__coordinator_refuse(
            set->agreement->coordinator, 0, submission->key,
            submission->state.status, submission->state.message);
    hvd__write_type(&set->agreement->out, HVD__REFUSE);
    hvd__write_key(&set->agreement->out, submission->key);
    hvd__write_int(&set->agreement->out, submission->state.status);
    hvd__write_text(&set->agreement->out, submission->state.message);
    return HVD_OK;
}

static int announce_join(struct hvd__set *set,
                         const struct hvd__submission *submission)
{
    bool restores = submission->requests[0].signature.flags & HVD__OF_STRATEGY;

    if (set->agreement->coordinator)
        return hvd__coordinator_join(set->agreement->coordinator, 0, restores);
    hvd__write_type(&set->agreement->out, HVD__JOIN);
    hvd__write_int(&set->agreement->out, restores);
    return HVD_OK;
}

static int announce_submission(struct hvd__set *set,
                               const struct hvd__submission *submission)
{
    int64_t *numbers;
    int nnumbers, status = HVD_OK;

    if (!set->agreement->coordinator)
        hvd__message_begin(set, &set->agreement->out);
    if (submission->state.status < 0)
        return announce_refusal(set, submission);
    if (submission->requests[0].signature.kind == HVD_JOIN)
        return announce_join(set, submission);
    HVD_TRY(collect_numbers(submission, &numbers, &nnumbers));
    if (set->agreement->coordinator)
        status = announce_own(set, submission, numbers, nnumbers);
    else
        announce_other(set, submission, numbers, nnumbers);
    free(numbers);
    return status;
}

int hvd__announce(struct hvd__set *set, struct hvd__submission *submission)
{
    int status;

    submission->state.next = NULL;
    hvd__sampling_announce(submission);
    set->agreement->ordered.nannounced++;
    status = announce_submission(set, submission);
    if (submission->state.status < 0)
        hvd__submission_free(submission);
    return status;
}

int hvd__announce_leave(struct hvd__set *set)
{
    if (set->agreement->said_leave)
        return HVD_OK;
    set->agreement->said_leave = true;
    set->agreement->ordered.nannounced++;
    if (set->agreement->coordinator)
        return hvd__coordinator_leave(set->agreement->coordinator, 0);
    hvd__message_begin(set, &set->agreement->out);
    hvd__write_type(&set->agreement->out, HVD__LEAVE);
    return HVD_OK;
}
