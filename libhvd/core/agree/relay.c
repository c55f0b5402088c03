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

/* ------------------------------------------------------------------ the tree
 */

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
        while ((to = end_of_part(at, end, left)) <= hosts->own) {
            at = to;
            left--;
        }
        first = at;
        end = to;
    }
    relay->first = hosts->first[first];
    relay->n = hosts->first[end] - relay->first;
    for (int at = first + 1, left = RADIX; at < end; left--) {
        int to = end_of_part(at, end, left);

        add_child(relay, hvd__hosts_carrier(hosts, at, 0), hosts->first[at],
                  hosts->first[to]);
        at = to;
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
        hvd__hosts_find(hosts, rank, &local);
        plan_speakers(relay, hosts);
    }
    for (int i = 1; i < nlocals && local == 0; i++) {
        int place = relay->first + i;

        add_child(relay, hosts ? hosts->members[place] : place, place,
                  place + 1);
    }
    if (local == 0)
        return;
    relay->parent = hosts ? hvd__hosts_carrier(hosts, hosts->own, 0) : 0;
    relay->first += local;
    relay->n = 1;
    relay->nchildren = 0;
}

int hvd__relay_init(struct hvd__relay *relay, const struct hvd__set *set)
{
    size_t most = (size_t)set->team.size - 1;

    if (set->hosts)
        most = RADIX + (size_t)hvd__hosts_size(set->hosts, set->hosts->own);
    *relay = (struct hvd__relay){.hosts = set->hosts};
    relay->children = calloc(most + 1, sizeof *relay->children);
    if (!relay->children)
        return hvd__fail_memory(most * sizeof *relay->children);
    plan(relay, set);
    if (relay->parent < 0)
        return HVD_OK;
    relay->gone = calloc((size_t)relay->n, sizeof *relay->gone);
    relay->some = calloc((size_t)relay->n, sizeof *relay->some);
    return relay->gone && relay->some
               ? HVD_OK
               : hvd__fail_memory((size_t)relay->n * sizeof *relay->gone);
}

void hvd__relay_fini(struct hvd__relay *relay)
{
    hvd__proposals_free(&relay->held);
    hvd__writer_fini(&relay->out);
    free(relay->children);
    free(relay->gone);
    free(relay->some);
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

/* Begins a record, in a message that begins with the id of the set. */
static struct hvd__writer *begin_in(const struct hvd__set *set,
                                    struct hvd__writer *out,
                                    enum hvd__record_type type)
{
    if (out->bytes == 0)
        hvd__write_int(out, set->id);
    hvd__write_type(out, type);
    return out;
}

static struct hvd__writer *begin(struct hvd__set *set,
                                 enum hvd__record_type type)
{
    return begin_in(set, &set->agreement->relay.out, type);
}

/* Sends what is in out to a member and empties out. */
static int post(struct hvd__set *set, int member, struct hvd__writer *out)
{
    struct hvd__transport *t = set->team.transport;
    struct hvd__writer message = *out;

    *out = (struct hvd__writer){0};
    if (message.failed) {
        hvd__writer_fini(&message);
        return hvd__fail(HVD_ERR_MEMORY, "out of memory for the negotiation");
    }
    hvd__count_alone(&set->metrics->messages, 1);
    hvd__count_alone(&set->metrics->message_bytes, (int64_t)message.bytes);
    return t->post(t, set->team.world[member], message.data, message.bytes);
}

/* Writes what the members say who have a flag in relay->some. numbers are those
 * of all members. */
static void write_announcement(struct hvd__set *set,
                               const struct hvd__announcement *a)
{
    const struct hvd__relay *relay = &set->agreement->relay;
    struct hvd__writer *out = begin(set, HVD__ANNOUNCE);

    hvd__write_ranks(out, relay->some, relay->n);
    hvd__write_key(out, a->key);
    hvd__write_int(out, a->status);
    hvd__write_text(out, a->status < 0 ? a->text : "");
    hvd__write_key(out, a->fingerprint);
    hvd__write_int(out, a->priority);
    hvd__write_int(out, a->nsignatures);
    for (int i = 0; i < a->nsignatures; i++)
        hvd__write_signature(out, &a->signatures[i]);
    for (int i = 0; i < relay->n; i++)
        for (int k = 0; relay->some[i] && k < a->nnumbers; k++)
            hvd__write_long(out, a->numbers[i * a->nnumbers + k]);
}

/* Sends what members have said of a proposal since it was last sent. */
static void pass_on(struct hvd__set *set, struct hvd__proposal *p)
{
    struct hvd__relay *relay = &set->agreement->relay;

    for (int number = 0; number < p->nvariants; number++) {
        const struct hvd__variant *v = &p->variants[number];
        const struct hvd__announcement a = {.key = p->key,
                                            .fingerprint = v->fingerprint,
                                            .status = v->status,
                                            .text = v->text,
                                            .priority = p->priority,
                                            .signatures = v->signatures,
                                            .nsignatures = v->nsignatures,
                                            .numbers = v->numbers,
                                            .nnumbers = v->nnumbers};
        int n = 0;

        for (int i = 0; i < relay->n; i++) {
            relay->some[i] = p->of[i] == number + 1;
            n += relay->some[i];
            if (relay->some[i])
                p->of[i] = HVD__ANSWERED;
        }
        if (n > 0)
            write_announcement(set, &a);
    }
}

/* Returns true if all members have announced it who can. */
static bool is_complete(const struct hvd__relay *relay,
                        const struct hvd__proposal *p)
{
    if (p->nannounced + relay->ngone < relay->n)
        return false;
    for (int i = 0; i < relay->n; i++)
        if (p->of[i] == 0 && !relay->gone[i])
            return false;
    return true;
}

/* Sends the proposals of a key that are complete or, if all is true, all. */
static int pass_key(struct hvd__set *set, struct hvd__proposal *p, bool all)
{
    struct hvd__relay *relay = &set->agreement->relay;

    while (p) {
        struct hvd__proposal *later = p->later;
        bool complete = is_complete(relay, p);

        if (all || complete)
            pass_on(set, p);
        if (complete)
            HVD_TRY(hvd__proposal_remove(&relay->held, p));
        p = later;
    }
    return HVD_OK;
}

static int pass_all(struct hvd__set *set)
{
    struct hvd__relay *relay = &set->agreement->relay;
    struct hvd__proposal *p, *following;

    relay->held_since_ns = 0;
    HASH_ITER (hh, relay->held, p, following)
        HVD_TRY(pass_key(set, p, true));
    return HVD_OK;
}

int hvd__relay_announce(struct hvd__set *set, const struct hvd__announcement *a)
{
    struct hvd__relay *relay = &set->agreement->relay;
    struct hvd__proposal *oldest = NULL;

    if (relay->n == 1) {
        relay->some[0] = 1;
        write_announcement(set, a);
        return HVD_OK;
    }
    HVD_TRY(hvd__proposals_add(&relay->held, relay->n, a, &oldest));
    HVD_TRY(pass_key(set, oldest, false));
    if (!relay->held)
        relay->held_since_ns = 0;
    else if (relay->held_since_ns == 0)
        relay->held_since_ns = hvd__now_ns();
    return HVD_OK;
}

int hvd__relay_gone(struct hvd__set *set, int number, enum hvd__gone how)
{
    struct hvd__relay *relay = &set->agreement->relay;
    struct hvd__writer *out;

    relay->ngone += relay->gone[number] == 0;
    relay->gone[number] = (int)how;
    HVD_TRY(pass_all(set));
    out = begin(set, HVD__GONE);
    hvd__write_int(out, relay->first + number);
    hvd__write_int(out, (int32_t)how);
    return HVD_OK;
}

void hvd__relay_rejoin(struct hvd__relay *relay)
{
    relay->ngone = 0;
    for (int i = 0; relay->gone && i < relay->n; i++)
        if (relay->gone[i] == HVD__GONE_LEFT)
            relay->ngone++;
        else
            relay->gone[i] = 0;
}

int hvd__relay_step(struct hvd__set *set)
{
    struct hvd__relay *relay = &set->agreement->relay;

    if (relay->held_since_ns > 0 &&
        hvd__now_ns() - relay->held_since_ns >= HVD__HOLD_NS)
        HVD_TRY(pass_all(set));
    if (relay->out.bytes == 0)
        return HVD_OK;
    relay->nsent++;
    return post(set, relay->parent, &relay->out);
}

bool hvd__relay_is_heard(const struct hvd__relay *relay, int64_t nheard)
{
    return nheard == relay->nsent && relay->out.bytes == 0 && !relay->held;
}

/* --------------------------------------------------------- to the children */

int hvd__relay_tell(struct hvd__set *set, const void *records, size_t bytes)
{
    const struct hvd__relay *relay = &set->agreement->relay;

    for (int i = 0; i < relay->nchildren; i++) {
        struct hvd__writer copy = {0};

        hvd__write_int(&copy, set->id);
        hvd__write_bytes(&copy, records, bytes);
        HVD_TRY(post(set, relay->children[i].member, &copy));
    }
    return HVD_OK;
}

int hvd__relay_open(struct hvd__set *set, uint32_t epoch, bool refused)
{
    const struct hvd__relay *relay = &set->agreement->relay;

    for (int i = 0; i < relay->nchildren; i++) {
        struct hvd__writer out = {0};

        begin_in(set, &out, HVD__OPEN);
        hvd__write_int(&out, (int32_t)epoch);
        hvd__write_long(&out, refused ? -1 : relay->children[i].nheard);
        HVD_TRY(post(set, relay->children[i].member, &out));
    }
    return HVD_OK;
}

void hvd__relay_break(struct hvd__set *set, int status, const char *text)
{
    const struct hvd__relay *relay = &set->agreement->relay;
    struct hvd__writer out = {0};

    begin_in(set, &out, HVD__BREAK);
    hvd__write_int(&out, status);
    hvd__write_text(&out, text);
    if (!out.failed)
        hvd__relay_tell(set, out.data + sizeof set->id,
                        out.bytes - sizeof set->id);
    if (relay->parent >= 0)
        post(set, relay->parent, &out);
    hvd__writer_fini(&out);
}
