/* SPDX-License-Identifier: Apache-2.0 */
/* announce.c - says what this rank submits (hear.c passes it on, or decides on
 * it). */
#include <stdlib.h>

#include "base/status.h"
#include "core/agree/by_name.h"

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

static int announce_submission(struct hvd__set *set,
                               const struct hvd__submission *submission)
{
    struct hvd__announcement a = {.key = submission->key,
                                  .fingerprint = submission->fingerprint,
                                  .priority = submission->priority,
                                  .who = &(int){0},
                                  .nwho = 1,
                                  .requests = submission->requests,
                                  .nrequests = submission->state.nrequests};
    int64_t *numbers;
    int status;

    HVD_TRY(collect_numbers(submission, &numbers, &a.nnumbers));
    a.numbers = numbers;
    status = hvd__hear_announcement(set, &a);
    free(numbers);
    return status;
}

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
