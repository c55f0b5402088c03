/* SPDX-License-Identifier: Apache-2.0 */
/* hear.c - takes in what this rank and those that it speaks for say. The
 * coordinator decides on it; any other rank passes it on (relay.h). */
#include <stdlib.h>

#include "base/status.h"
#include "core/agree/by_name.h"

int hvd__message_garbled(int rank)
{
    return hvd__fail(HVD_ERR_INTERNAL,
                     "rank %d sent a message that makes no sense", rank);
}

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

int hvd__hear_break(struct hvd__engine *engine, int rank,
                    struct hvd__reader *in)
{
    char text[HVD__MESSAGE_MAX];
    int32_t status = hvd__read_int(in);

    hvd__read_text(in, text, sizeof text);
    if (in->failed || status >= 0 || !text[0])
        return hvd__message_garbled(rank);
    engine->is_told = true;
    return hvd__fail_text(status, text);
}

/* ---------------------------------------------------------- what others say */

/* Reads for which members a child speaks, as this rank's numbers. Returns how
 * many they are. */
static int read_who(const struct hvd__relay *relay,
                    const struct hvd__relay_child *child,
                    struct hvd__reader *in, int *who)
{
    int n = 0;

    hvd__read_ranks(in, child->end - child->first, who);
    for (int i = 0; i < child->end - child->first; i++)
        if (who[i])
            who[n++] = hvd__relay_number(relay, child->first + i);
    in->failed |= n == 0;
    return n;
}

/* Reads the n numbers of each of the members. */
static int read_numbers(struct hvd__reader *in, struct hvd__announcement *a,
                        int64_t **numbers)
{
    size_t n;

    a->nnumbers = hvd__read_count(in, (size_t)a->nwho * sizeof **numbers);
    n = (size_t)a->nwho * (size_t)a->nnumbers;
    if (n == 0)
        return HVD_OK;
    a->numbers = *numbers = malloc(n * sizeof **numbers);
    if (!*numbers)
        return hvd__fail_memory(n * sizeof **numbers);
    for (size_t i = 0; i < n; i++) {
        (*numbers)[i] = hvd__read_long(in);
        in->failed |= (*numbers)[i] < 0;
    }
    return HVD_OK;
}

static int hear_announcement(struct hvd__set *set,
                             const struct hvd__relay_child *child,
                             struct hvd__reader *in, bool refused)
{
    struct hvd__agreement *agreement = set->agreement;
    struct hvd__announcement a = {.who = agreement->scratch};
    char text[HVD__MESSAGE_MAX];
    int64_t *numbers = NULL;
    int status;

    a.nwho = read_who(&agreement->relay, child, in, agreement->scratch);
    a.key = hvd__read_key(in);
    if (refused) {
        a.status = hvd__read_int(in);
        hvd__read_text(in, text, sizeof text);
        a.text = text;
        in->failed |= a.status >= 0;
    } else {
        a.fingerprint = hvd__read_key(in);
        a.priority = hvd__read_int(in);
        if (!in->failed)
            HVD_TRY(read_numbers(in, &a, &numbers));
    }
    status = in->failed ? hvd__message_garbled(set->team.world[child->member])
                        : hvd__hear_announcement(set, &a);
    free(numbers);
    return status;
}

static int hear_detail(struct hvd__set *set,
                       const struct hvd__relay_child *child, int number,
                       struct hvd__reader *in)
{
    struct hvd__coordinator *c = set->agreement->coordinator;
    uint64_t key = hvd__read_key(in);
    int n = hvd__read_count(in, 1), status = HVD_OK;
    struct hvd__signature *signatures =
        malloc(((size_t)n + 1) * sizeof *signatures);
    struct hvd__writer *out = NULL;

    if (!signatures)
        return hvd__fail_memory(((size_t)n + 1) * sizeof *signatures);
    for (int i = 0; i < n; i++)
        hvd__read_signature(in, &signatures[i]);
    if (in->failed)
        status = hvd__message_garbled(set->team.world[child->member]);
    else if (c)
        status = hvd__coordinator_detail(c, number, key, signatures, n);
    else
        out = hvd__relay_detail(set, number, key, n);
    for (int i = 0; out && i < n; i++)
        hvd__write_signature(out, &signatures[i]);
    free(signatures);
    return status;
}

/* Handles a record that a child passes on for one member. */
static int hear_member(struct hvd__set *set,
                       const struct hvd__relay_child *child,
                       struct hvd__reader *in, enum hvd__record_type type)
{
    int32_t place = hvd__read_int(in), restores = 0;
    int number;

    if (type == HVD__JOIN)
        restores = hvd__read_int(in);
    if (in->failed || place < child->first || place >= child->end ||
        restores < 0 || restores > 1)
        return hvd__message_garbled(set->team.world[child->member]);
    number = hvd__relay_number(&set->agreement->relay, place);
    switch (type) {
    case HVD__JOIN:
        return hvd__hear_gone(set, number,
                              restores ? HVD__GONE_RESTORES : HVD__GONE_JOINED);
    case HVD__LEAVE: return hvd__hear_gone(set, number, HVD__GONE_LEFT);
    default: return hear_detail(set, child, number, in);
    }
}

int hvd__hear(struct hvd__engine *engine, struct hvd__set *set,
              struct hvd__relay_child *child, struct hvd__reader *in)
{
    child->nheard++;
    while (hvd__reader_more(in)) {
        enum hvd__record_type type = hvd__read_type(in);

        switch (type) {
        case HVD__ANNOUNCE:
        case HVD__REFUSE:
            HVD_TRY(hear_announcement(set, child, in, type == HVD__REFUSE));
            break;
        case HVD__DETAIL:
        case HVD__JOIN:
        case HVD__LEAVE: HVD_TRY(hear_member(set, child, in, type)); break;
        case HVD__BREAK:
            return hvd__hear_break(engine, set->team.world[child->member], in);
        default: return hvd__message_garbled(set->team.world[child->member]);
        }
    }
    return in->failed ? hvd__message_garbled(set->team.world[child->member])
                      : HVD_OK;
}
