/* SPDX-License-Identifier: Apache-2.0 */
/* hear.c - takes in what this rank and those that it speaks for say. The
 * coordinator decides on it; any other rank passes it on (relay.h). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/agree/agreement.h"

/* Take in what members say, who are given by their numbers (relay.h); that of
 * this rank is 0. */
static int take_announcement(struct hvd__set *set,
                             const struct hvd__announcement *a)
{
    struct hvd__relay *relay = &set->agreement->relay;

    HVD_TRY(hvd__proposals_add(set->agreement->heard, a));
    if (!relay->held.table)
        relay->held_since_ns = 0;
    else if (relay->held_since_ns == 0)
        relay->held_since_ns = hvd__now_ns();
    return HVD_OK;
}

static int take_gone(struct hvd__set *set, int number, enum hvd__gone how)
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

/* ------------------------------------------------------ what this rank says */

static int announce(struct hvd__set *set,
                    const struct hvd__submission *submission, bool refused)
{
    const char *text =
        refused && submission->state.message ? submission->state.message : "";
    size_t n = refused ? 0 : (size_t)submission->state.nrequests;
    struct hvd__statement *what;
    size_t bytes =
        sizeof *what + (refused ? strnlen(text, HVD__MESSAGE_MAX - 1) + 1
                                : n * sizeof *what->signatures);
    int64_t *numbers;
    int status;

    HVD_TRY(hvd__allocate(&what, 1, bytes + n * sizeof *numbers));
    numbers = (int64_t *)(void *)((char *)what + bytes);
    *what = (struct hvd__statement){.fingerprint =
                                        refused ? 0 : submission->fingerprint,
                                    .bytes = (int32_t)bytes,
                                    .status = submission->state.status,
                                    .nsignatures = (int32_t)n};
    if (refused)
        memcpy(what->signatures, text, bytes - sizeof *what - 1);
    for (size_t i = 0; i < n; i++) {
        what->signatures[i] = submission->requests[i].signature;
        if (hvd__signature_carries(&what->signatures[i]))
            numbers[what->nnumbers++] = submission->requests[i].rows;
    }
    status = take_announcement(
        set, &(struct hvd__announcement){.key = submission->key,
                                         .priority = submission->priority,
                                         .what = what,
                                         .who = &(int){0},
                                         .nwho = 1,
                                         .numbers = numbers});
    free(what);
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
        return take_gone(set, 0,
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
    return take_gone(set, 0, HVD__GONE_LEFT);
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

static int hear_announcement(struct hvd__set *set,
                             const struct hvd__relay_child *child,
                             struct hvd__reader *in)
{
    int *who = set->agreement->scratch;
    struct hvd__announcement a = {.who = who};
    struct hvd__statement *what;
    int64_t *numbers = NULL;
    int status;

    a.nwho = read_who(&set->agreement->relay, child, in, who);
    a.key = (uint64_t)hvd__read_long(in);
    a.priority = hvd__read_int(in);
    status = hvd__read_statement(in, &what);
    if (what)
        status = hvd__read_numbers(in, (size_t)a.nwho * (size_t)what->nnumbers,
                                   &numbers);
    a.what = what;
    a.numbers = numbers;
    if (status == HVD_OK && !in->failed)
        status = take_announcement(set, &a);
    free(what);
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
    return take_gone(set, hvd__relay_number(&set->agreement->relay, place),
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
