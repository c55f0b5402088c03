/* SPDX-License-Identifier: Apache-2.0 */
/* announce.c - says what this rank submits (hear.c passes it on, or decides on
 * it). */
#include <stdlib.h>

#include "base/status.h"
#include "core/agree/by_name.h"

static int announce(struct hvd__set *set,
                    const struct hvd__submission *submission, bool refused)
{
    const int n = refused ? 0 : submission->state.nrequests;
    size_t bytes =
        (size_t)n * (sizeof(struct hvd__signature) + sizeof(int64_t));
    struct hvd__signature *signatures = malloc(bytes);
    int64_t *numbers = (int64_t *)(signatures + n);
    struct hvd__announcement a = {
        .key = submission->key,
        .priority = submission->priority,
        .what = {.fingerprint = refused ? 0 : submission->fingerprint,
                 .status = submission->state.status,
                 .text = submission->state.message,
                 .signatures = signatures,
                 .nsignatures = n},
        .who = &(int){0},
        .nwho = 1,
        .numbers = numbers};
    int status;

    if (!signatures && n > 0)
        return hvd__fail_memory(bytes);
    for (int i = 0; i < n; i++) {
        signatures[i] = submission->requests[i].signature;
        if (hvd__signature_carries(&signatures[i]))
            numbers[a.what.nnumbers++] = submission->requests[i].rows;
    }
    status = hvd__hear_announcement(set, &a);
    free(signatures);
    return status;
}

int hvd__announce(struct hvd__set *set, struct hvd__submission *submission)
{
    const struct hvd__signature *s = &submission->requests[0].signature;
    const bool refused = submission->state.status < 0;
    int status;

    submission->state.next = NULL;
    hvd__sampling_announce(submission);
    set->agreement->ordered.nannounced++;
    if (s->kind == HVD_JOIN && !refused)
        return hvd__hear_gone(set, 0,
                              s->flags & HVD__OF_STRATEGY ? HVD__GONE_RESTORES
                                                          : HVD__GONE_JOINED);
    status = announce(set, submission, refused);
    if (refused)
        hvd__submission_free(submission);
    return status;
}

int hvd__announce_leave(struct hvd__set *set)
{
    if (set->agreement->said_leave)
        return HVD_OK;
    set->agreement->said_leave = true;
    set->agreement->ordered.nannounced++;
    return hvd__hear_gone(set, 0, HVD__GONE_LEFT);
}
