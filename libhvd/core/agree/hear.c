/* SPDX-License-Identifier: Apache-2.0 */
/* hear.c - takes in what this rank and those that it speaks for say. The
 * coordinator decides on it; any other rank passes it on (relay.h). */
#include <stdlib.h>

#include "base/status.h"
#include "core/agree/agreement.h"

int hvd__hear_announcement(struct hvd__set *set,
                           const struct hvd__announcement *announcement)
{
    struct hvd__coordinator *c = set->agreement->coordinator;

    return c ? hvd__coordinator_announce(c, announcement)
             : hvd__relay_announce(set, announcement);
}

int hvd__hear_gone(struct hvd__set *set, int number, enum hvd__gone how)
{
    struct hvd__coordinator *c = set->agreement->coordinator;

    return c ? hvd__coordinator_gone(c, number, how)
             : hvd__relay_gone(set, number, how);
}

int hvd__hear_break(struct hvd__engine *engine, struct hvd__reader *in)
{
    char text[HVD__MESSAGE_MAX];
    int32_t status = hvd__read_int(in);

    hvd__read_text(in, text, sizeof text);
    if (in->failed || status >= 0 || !text[0])
        return hvd__reader_fail(in);
    engine->is_told = true;
    return hvd__fail_text(status, text);
}

/* ------------------------------------------------------- what this rank says
 */

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

/* ---------------------------------------------------------- what others say */

/* Reads for which members a child speaks, as this rank's numbers. Returns how
 * many they are. */
static int read_who(const struct hvd__relay *relay,
                    const struct hvd__relay_child *child,
                    struct hvd__reader *in, int *who)
{
    int n = 0;

    if (hvd__read_ranks(in, child->end - child->first, who) == 0)
        in->failed = true;
    for (int i = 0; i < child->end - child->first; i++)
        if (who[i])
            who[n++] = hvd__relay_number(relay, child->first + i);
    return n;
}

/* Reads the signatures and numbers of a submission. The caller frees both, also
 * on failure. */
static int read_submission(struct hvd__reader *in, struct hvd__announcement *a,
                           int64_t **numbers)
{
    struct hvd__statement *what = &a->what;
    size_t bytes;

    what->nsignatures = hvd__read_count(in, HVD__SIGNATURE_BYTES);
    bytes = (size_t)what->nsignatures * sizeof *what->signatures;
    what->signatures = malloc(bytes);
    if (!what->signatures && bytes > 0)
        return hvd__fail_memory(bytes);
    for (int i = 0; i < what->nsignatures; i++) {
        hvd__read_signature(in, &what->signatures[i]);
        what->nnumbers += hvd__signature_carries(&what->signatures[i]);
    }
    HVD_TRY(hvd__read_numbers(in, (size_t)a->nwho * (size_t)what->nnumbers,
                              numbers));
    a->numbers = *numbers;
    return HVD_OK;
}

static int hear_announcement(struct hvd__set *set,
                             const struct hvd__relay_child *child,
                             struct hvd__reader *in)
{
    struct hvd__agreement *agreement = set->agreement;
    struct hvd__announcement a = {.who = agreement->scratch};
    char text[HVD__MESSAGE_MAX];
    int64_t *numbers = NULL;
    int status;

    a.nwho = read_who(&agreement->relay, child, in, agreement->scratch);
    a.key = hvd__read_key(in);
    a.what.status = hvd__read_int(in);
    hvd__read_text(in, text, sizeof text);
    a.what.text = a.what.status < 0 ? text : NULL;
    a.what.fingerprint = hvd__read_key(in);
    a.priority = hvd__read_int(in);
    status = read_submission(in, &a, &numbers);
    /* A refusal has a reason, and anything else has requests. */
    in->failed |=
        a.what.status > 0 || (a.what.status < 0) != (a.what.nsignatures == 0);
    if (status == HVD_OK && !in->failed)
        status = hvd__hear_announcement(set, &a);
    free(a.what.signatures);
    free(numbers);
    return status;
}

static int hear_gone(struct hvd__set *set, const struct hvd__relay_child *child,
                     struct hvd__reader *in)
{
    int32_t place = hvd__read_int(in), how = hvd__read_int(in);

    if (in->failed || place < child->first || place >= child->end ||
        how < HVD__GONE_JOINED || how > HVD__GONE_LEFT)
        return hvd__reader_fail(in);
    return hvd__hear_gone(set, hvd__relay_number(&set->agreement->relay, place),
                          (enum hvd__gone)how);
}

int hvd__hear(struct hvd__set *set, struct hvd__relay_child *child,
              struct hvd__reader *in)
{
    child->nheard++;
    while (hvd__reader_more(in))
        switch (hvd__read_type(in)) {
        case HVD__ANNOUNCE: HVD_TRY(hear_announcement(set, child, in)); break;
        case HVD__GONE: HVD_TRY(hear_gone(set, child, in)); break;
        case HVD__BREAK: return hvd__hear_break(set->engine, in);
        default: return hvd__reader_fail(in);
        }
    return HVD_OK;
}
