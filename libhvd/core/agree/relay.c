/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/relay.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/agree/agreement.h"
#include "trace/metrics.h"

/* The most children of a speaker on other hosts: a message to each takes less
 * time than one more level of the tree. */
enum { RADIX = 8 };

/* ----------------------------------------------------------------- the tree */

static void add_child(struct hvd__relay *relay, int member, int first, int end)
{
    relay->children[relay->nchildren++] =
        (struct hvd__relay_child){.member = member, .first = first, .end = end};
}

/* Hosts at to end-1 are split into left parts: returns the end of the first. */
static int end_of_part(int at, int end, int left)
{
    return at + (end - at + left - 1) / left;
}

/* Finds the parent of a speaker, and its children on other hosts. Each speaker
 * speaks for a range of hosts that begins with its own; the rest of the range
 * is split among its children. */
static void plan_speakers(struct hvd__relay *relay,
                          const struct hvd__hosts *hosts)
{
    int first = 0, end = hosts->n;

    while (first != hosts->own) {
        int at = first + 1, left = RADIX, to;

        relay->parent = hvd__hosts_carrier(hosts, first, 0);
        while ((to = end_of_part(at, end, left--)) <= hosts->own)
            at = to;
        first = at;
        end = to;
    }
    relay->first = hosts->first[first];
    relay->n = hosts->first[end] - relay->first;
    for (int at = first + 1, to, left = RADIX; at < end; at = to) {
        to = end_of_part(at, end, left--);
        add_child(relay, hvd__hosts_carrier(hosts, at, 0), hosts->first[at],
                  hosts->first[to]);
    }
}

static void plan(struct hvd__relay *relay, const struct hvd__set *set)
{
    const struct hvd__hosts *hosts = set->hosts;
    int rank = set->team.rank, local = rank, nlocals = set->team.size;

    relay->parent = -1;
    relay->n = set->team.size;
    if (hosts) {
        nlocals = hvd__hosts_size(hosts, hosts->own);
        local = hvd__hosts_local(hosts, rank);
        relay->first = hosts->first[hosts->own];
    }
    if (local > 0) {
        relay->parent = hosts ? hvd__hosts_carrier(hosts, hosts->own, 0) : 0;
        relay->first += local;
        relay->n = 1;
        return;
    }
    if (hosts)
        plan_speakers(relay, hosts);
    for (int place = relay->first + 1; place < relay->first + nlocals; place++)
        add_child(relay, hosts ? hosts->members[place] : place, place,
                  place + 1);
}

struct hvd__relay_child *hvd__relay_child(const struct hvd__relay *relay,
                                          int member)
{
    for (int i = 0; i < relay->nchildren; i++)
        if (relay->children[i].member == member)
            return &relay->children[i];
    return NULL;
}

int hvd__relay_number(const struct hvd__relay *relay, int place)
{
    if (relay->parent < 0 && relay->hosts)
        return relay->hosts->members[place];
    return place - relay->first;
}

/* ----------------------------------------------------------- to the parent */

/* Sends records to a member. */
static int send(struct hvd__set *set, int member,
                const struct hvd__writer *records)
{
    struct hvd__transport *t = set->team.transport;
    struct hvd__writer message = {.failed = records->failed};

    hvd__write_long(&message, set->id);
    hvd__write_bytes(&message, records->data, records->bytes);
    if (message.failed) {
        hvd__writer_fini(&message);
        return hvd__fail(HVD_ERR_MEMORY, "out of memory for the negotiation");
    }
    hvd__count_alone(&set->engine->metrics.messages, 1);
    hvd__count_alone(&set->engine->metrics.message_bytes,
                     (int64_t)message.bytes);
    return t->post(t, set->team.world[member], message.data, message.bytes);
}

/* Writes what the members say who have a flag in held.some: one of the variants
 * of a proposal. */
static void write_announcement(struct hvd__relay *relay,
                               const struct hvd__proposal *p,
                               const struct hvd__variant *v)
{
    const int *some = relay->held.some;
    struct hvd__writer *out = &relay->out;

    hvd__write_type(out, HVD__ANNOUNCE);
    hvd__write_ranks(out, some, relay->n);
    hvd__write_long(out, (int64_t)p->key);
    hvd__write_long(out, p->priority);
    hvd__write_bytes(out, v->what, (size_t)v->what->bytes);
    for (int i = 0; i < relay->n; i++)
        if (some[i])
            hvd__write_bytes(out, v->numbers + i * v->what->nnumbers,
                             (size_t)v->what->nnumbers * sizeof *v->numbers);
}

/* Sends what members have said of a proposal since it was last sent. */
static void pass_on(struct hvd__relay *relay, struct hvd__proposal *p)
{
    for (int number = 1; number <= p->nvariants; number++) {
        bool any = false;

        for (int i = 0; i < relay->n; i++) {
            relay->held.some[i] = p->of[i] == number;
            any |= p->of[i] == number;
            if (p->of[i] == number)
                p->of[i] = HVD__ANSWERED;
        }
        if (any)
            write_announcement(relay, p, &p->variants[number - 1]);
    }
}

/* Sends a proposal that is complete or, if all is true, any. */
static int pass(void *owner, struct hvd__proposal *p, bool all)
{
    struct hvd__relay *relay = owner;
    bool complete = hvd__proposal_is_complete(&relay->held, p);

    if (all || complete)
        pass_on(relay, p);
    return complete ? hvd__proposal_remove(&relay->held, p) : HVD_OK;
}

int hvd__relay_init(struct hvd__relay *relay, struct hvd__set *set)
{
    int most = set->hosts ? RADIX + hvd__hosts_size(set->hosts, set->hosts->own)
                          : set->team.size;

    *relay = (struct hvd__relay){.hosts = set->hosts};
    HVD_TRY(
        hvd__allocate(&relay->children, (size_t)most, sizeof *relay->children));
    plan(relay, set);
    return relay->parent < 0
               ? HVD_OK
               : hvd__proposals_init(&relay->held, relay->n, pass, relay);
}

void hvd__relay_fini(struct hvd__relay *relay)
{
    hvd__proposals_fini(&relay->held);
    hvd__writer_fini(&relay->out);
    free(relay->children);
}

int hvd__relay_gone(struct hvd__set *set, int number, enum hvd__gone how)
{
    struct hvd__relay *relay = &set->agreement->relay;

    HVD_TRY(hvd__proposals_gone(&relay->held, number, how));
    relay->held_since_ns = 0;
    hvd__write_type(&relay->out, HVD__GONE);
    hvd__write_long(&relay->out, relay->first + number);
    hvd__write_long(&relay->out, (int32_t)how);
    return HVD_OK;
}

int hvd__relay_step(struct hvd__set *set)
{
    struct hvd__relay *relay = &set->agreement->relay;

    if (relay->held_since_ns > 0 &&
        hvd__now_ns() - relay->held_since_ns >= HVD__HOLD_NS) {
        relay->held_since_ns = 0;
        HVD_TRY(hvd__proposals_judge(&relay->held));
    }
    if (relay->out.bytes == 0 && !relay->out.failed)
        return HVD_OK;
    HVD_TRY(send(set, relay->parent, &relay->out));
    relay->out.bytes = 0;
    relay->nsent++;
    return HVD_OK;
}

bool hvd__relay_is_heard(const struct hvd__relay *relay, int64_t nheard)
{
    return nheard == relay->nsent && relay->out.bytes == 0 &&
           !relay->held.table;
}

/* --------------------------------------------------------- to the children */

int hvd__relay_tell(struct hvd__set *set, const void *records, size_t bytes)
{
    const struct hvd__relay *relay = &set->agreement->relay;
    struct hvd__writer out = {0};
    int status = HVD_OK;

    hvd__write_bytes(&out, records, bytes);
    for (int i = 0; status == HVD_OK && i < relay->nchildren; i++)
        status = send(set, relay->children[i].member, &out);
    hvd__writer_fini(&out);
    return status;
}

int hvd__relay_open(struct hvd__set *set, uint32_t epoch, bool refused)
{
    const struct hvd__relay *relay = &set->agreement->relay;
    struct hvd__writer out = {0};
    int status = HVD_OK;

    for (int i = 0; status == HVD_OK && i < relay->nchildren; i++) {
        out.bytes = 0;
        hvd__write_type(&out, HVD__OPEN);
        hvd__write_long(&out, (int32_t)epoch);
        hvd__write_long(&out, refused ? -1 : relay->children[i].nheard);
        status = send(set, relay->children[i].member, &out);
    }
    hvd__writer_fini(&out);
    return status;
}

void hvd__relay_break(struct hvd__set *set, int status, const char *text)
{
    const struct hvd__relay *relay = &set->agreement->relay;
    struct hvd__writer out = {0};

    hvd__write_type(&out, HVD__BREAK);
    hvd__write_long(&out, status);
    hvd__write_text(&out, text);
    if (relay->parent >= 0)
        send(set, relay->parent, &out);
    if (!out.failed)
        hvd__relay_tell(set, out.data, out.bytes);
    hvd__writer_fini(&out);
}
