/* SPDX-License-Identifier: Apache-2.0 */
/* announce.c - says what this rank submits (hear.c passes it on, or decides on
 * it). */
#include <stdlib.h>

#include "base/status.h"
#include "core/agree/by_name.h"

static int announce_refusal(struct hvd__set *set,
                            const struct hvd__submission *submission)
{
    const struct hvd__announcement a = {.key = submission->key,
                                        .status = submission->state.status,
                                        .text = submission->state.message,
                                        .who = &(int){0},
                                        .nwho = 1};

    return hvd__hear_announcement(set, &a);
}

static int announce_submission(struct hvd__set *set,
                               const struct hvd__submission *submission)
{
    const int n = submission->state.nrequests;
    struct hvd__signature one, *signatures = &one;
    int64_t number, *numbers = &number;
    struct hvd__announcement a = {.key = submission->key,
                                  .fingerprint = submission->fingerprint,
                                  .priority = submission->priority,
                                  .who = &(int){0},
                                  .nwho = 1,
                                  .nsignatures = n};
    int status;

    if (n > 1) {
        signatures = malloc((size_t)n * (sizeof *signatures + sizeof *numbers));
        if (!signatures)
            return hvd__fail_memory((size_t)n * sizeof *signatures);
        numbers = (int64_t *)(signatures + n);
    }
    a.signatures = signatures;
    a.numbers = numbers;
    for (int i = 0; i < n; i++) {
        signatures[i] = submission->requests[i].signature;
        if (hvd__signature_carries(&signatures[i]))
            numbers[a.nnumbers++] = submission->requests[i].rows;
    }
    status = hvd__hear_announcement(set, &a);
    if (n > 1)
        free(signatures);
    return status;
}

int hvd__announce(struct hvd__set *set, struct hvd__submission *submission)
{
    const struct hvd__signature *s = &submission->requests[0].signature;
    int status;

    submission->state.next = NULL;
    hvd__sampling_announce(submission);
    set->agreement->ordered.nannounced++;
    if (submission->state.status < 0) {
        status = announce_refusal(set, submission);
        hvd__submission_free(submission);
        return status;
    }
    return s->kind == HVD_JOIN
               ? hvd__hear_gone(set, 0,
                                s->flags & HVD__OF_STRATEGY ? HVD__GONE_RESTORES
                                                            : HVD__GONE_JOINED)
               : announce_submission(set, submission);
}

int hvd__announce_leave(struct hvd__set *set)
{
    if (set->agreement->said_leave)
        return HVD_OK;
    set->agreement->said_leave = true;
    set->agreement->ordered.nannounced++;
    return hvd__hear_gone(set, 0, HVD__GONE_LEFT);
}
