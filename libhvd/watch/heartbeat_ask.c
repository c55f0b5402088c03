/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heartbeat_ask.c - how a rank whose requests have waited for long finds out
 * which ranks of other hosts lack them, and what these do instead.
 *
 * Nothing is sent while requests do not wait for long. A rank that is about to
 * report a stall asks its neighbours first, which do not pass the question on.
 * A host on which a lower rank waits for the same requests says so: then that
 * rank reports them. Only a rank that is the lowest among its neighbours goes
 * on and asks all hosts: each passes a question on to its neighbours once,
 * except a host on which lower ranks wait for all of it. A host answers,
 * straight to the rank that asked, for those of its ranks that lack something,
 * and for its neighbours that are silent. So a stall of all ranks takes a few
 * letters of each host, and not n questions to n hosts.
 *
 * A question has up to HVD__DATAGRAM_KEYS requests, so several may be needed.
 * Letters get lost: all hosts are asked twice. A rank of which nothing comes
 * back has the requests, or its host cannot be reached.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "watch/neighbours.h"

/* MOST_DESCRIBED is how many ranks of a host are described with requests. */
enum { MOST_DESCRIBED = 4 };

/* The parts of the number of a question. */
static uint64_t round_of(uint64_t number)
{
    return number >> 8;
}

static uint64_t cycle_of(uint64_t number)
{
    return number >> 16;
}

static int slot_of(uint64_t number)
{
    return (int)(number & 0xff);
}

int hvd__heartbeat_ask_open(struct hvd__heartbeat *b)
{
    struct hvd__inquiry *q = &b->inquiry;
    size_t n = (size_t)b->places->nranks;

    q->lacks = calloc(HVD__QUESTIONS * n, sizeof *q->lacks);
    q->heard = calloc(n, sizeof *q->heard);
    return q->lacks && q->heard
               ? HVD_OK
               : hvd__fail_memory(HVD__QUESTIONS * n * sizeof *q->lacks);
}

void hvd__heartbeat_ask_close(struct hvd__heartbeat *b)
{
    free(b->inquiry.lacks);
    free(b->inquiry.heard);
}

/* ------------------------------------------------------------------- asking */

void hvd__heartbeat_ask_begin(struct hvd__heartbeat *b)
{
    b->inquiry.is_under_way = false;
    b->inquiry.n = b->inquiry.ndetails = 0;
}

void hvd__heartbeat_ask_about(struct hvd__heartbeat *b, uint64_t key,
                              int32_t set)
{
    struct hvd__inquiry *q = &b->inquiry;

    if (q->n == HVD__PAGE_KEYS)
        return;
    q->keys[q->n] = key;
    q->sets[q->n] = set;
    q->is_told[q->n++] = false;
}

static void begin_cycle(struct hvd__heartbeat *b)
{
    struct hvd__inquiry *q = &b->inquiry;
    size_t slots = (size_t)(q->n + HVD__DATAGRAM_KEYS - 1) / HVD__DATAGRAM_KEYS;

    q->is_under_way = true;
    q->number = (cycle_of(q->number) + 1) << 16;
    memset(q->lacks, 0, slots * (size_t)b->places->nranks * sizeof *q->lacks);
}

void hvd__heartbeat_ask(struct hvd__heartbeat *b)
{
    struct hvd__inquiry *q = &b->inquiry;
    int32_t steps = q->is_under_way ? HVD__DATAGRAM_STEPS : 0;

    if (!q->is_under_way)
        begin_cycle(b);
    else
        q->number += 1 << 8;
    for (int first = 0; first < q->n; first += HVD__DATAGRAM_KEYS) {
        struct hvd__datagram_item item = {.kind = HVD__ITEM_ASK,
                                          .rank = b->places->rank};
        bool is_told = true;

        item.ask.number = q->number | (unsigned)(first / HVD__DATAGRAM_KEYS);
        item.ask.steps = steps;
        for (int i = first; i < q->n && i - first < HVD__DATAGRAM_KEYS; i++) {
            item.ask.keys[i - first] = q->keys[i];
            item.ask.sets[i - first] = q->sets[i];
            item.ask.count++;
            is_told &= q->is_told[i];
        }
        if (is_told)
            continue;
        hvd__heartbeat_begin_datagram(b);
        hvd__heartbeat_write_item(b, &item, hvd__now_ns());
        hvd__heartbeat_send_datagram(b);
    }
}

/* ---------------------------------------------------------------- answering */

static bool has(const struct hvd__in_flight *flight, uint64_t key)
{
    for (int32_t i = 0; i < flight->nkeys; i++)
        if (flight->keys[i] == key)
            return true;
    return false;
}

/* Returns the bits of a question for the requests of whose sets a rank is a
 * member and which it has, or lacks, in b->flight. */
static uint64_t bits_of(const struct hvd__heartbeat *b,
                        const struct hvd__datagram_item *question, int rank,
                        bool it_has)
{
    uint64_t bits = 0;

    for (int32_t i = 0; i < question->ask.count; i++)
        if (b->subject->is_member(b->subject->context, question->ask.sets[i],
                                  rank) &&
            has(&b->flight, question->ask.keys[i]) == it_has)
            bits |= UINT64_C(1) << i;
    return bits;
}

static void read_flight(struct hvd__heartbeat *b, int rank)
{
    if (atomic_load(&hvd__heartbeat_line_of(b, rank)->in_flight) > 0)
        hvd__page_read_flight(
            hvd__page_flight(b->page, b->places->line_of[rank]), &b->flight);
    else
        b->flight.nkeys = b->flight.nrequests = 0;
}

/* Says for which requests a lower rank of this host waits, which can report
 * them. Returns their bits. */
static uint64_t write_have(struct hvd__heartbeat *b,
                           const struct hvd__datagram_item *question,
                           int64_t now)
{
    const struct hvd__places *p = b->places;
    struct hvd__datagram_item item = {.kind = HVD__ITEM_HAVE, .rank = p->rank};

    item.have.number = question->ask.number;
    for (int rank = p->first[p->host]; rank >= 0 && rank < question->rank;
         rank = p->next[rank]) {
        if (atomic_load(&hvd__heartbeat_line_of(b, rank)->silent_ns) >
            b->silent_limit_ns)
            continue;
        read_flight(b, rank);
        item.have.bits |= bits_of(b, question, rank, true);
    }
    if (item.have.bits)
        hvd__heartbeat_write_item(b, &item, now);
    return item.have.bits;
}

static void write_lack(struct hvd__heartbeat *b,
                       const struct hvd__datagram_item *question, int rank,
                       uint64_t bits, int64_t silent_ns, int64_t now)
{
    struct hvd__datagram_item item = {.kind = HVD__ITEM_LACK, .rank = rank};

    item.lack.number = question->ask.number;
    item.lack.bits = bits;
    item.lack.has_left = hvd__heartbeat_has_left(b, rank);
    item.lack.silent_ns =
        silent_ns + atomic_load(&hvd__heartbeat_line_of(b, rank)->silent_ns);
    hvd__page_read_doing(hvd__heartbeat_line_of(b, rank), &item.lack.doing);
    hvd__heartbeat_write_item(b, &item, now);
}

/* Writes requests that a rank has in flight and that the question does not
 * know: what it does instead. */
static void write_requests(struct hvd__heartbeat *b,
                           const struct hvd__datagram_item *question, int rank,
                           int64_t now)
{
    struct hvd__datagram_item item = {.kind = HVD__ITEM_REQUEST, .rank = rank};

    item.request.total = HVD__DETAIL_REQUESTS;
    for (int32_t i = 0;
         i < b->flight.nrequests && item.request.index < HVD__DETAIL_REQUESTS;
         i++) {
        bool is_known = b->flight.requests[i].decided;

        for (int32_t k = 0; k < question->ask.count; k++)
            is_known |= question->ask.keys[k] == b->flight.requests[i].key;
        if (is_known)
            continue;
        item.request.is = b->flight.requests[i];
        hvd__heartbeat_write_item(b, &item, now);
        item.request.index++;
    }
}

static void write_answer(struct hvd__heartbeat *b,
                         const struct hvd__datagram_item *question, int64_t now)
{
    const struct hvd__places *p = b->places;
    int ndescribed = 0;

    for (int rank = p->first[p->host]; rank >= 0; rank = p->next[rank]) {
        uint64_t bits;

        read_flight(b, rank);
        bits = bits_of(b, question, rank, false);
        if (bits == 0)
            continue;
        write_lack(b, question, rank, bits, 0, now);
        if (ndescribed++ < MOST_DESCRIBED)
            write_requests(b, question, rank, now);
    }
    b->flight.nkeys = 0; /* what a silent host has is not known */
    for (int i = 0; i < b->nnear; i++)
        if (hvd__heartbeat_is_silent(b, &b->near[i]))
            for (int rank = p->first[b->near[i].host]; rank >= 0;
                 rank = p->next[rank])
                write_lack(b, question, rank, bits_of(b, question, rank, false),
                           b->near[i].silent_ns, now);
}

/* Returns whether a question has not come on another way before. */
static bool is_new(struct hvd__heartbeat *b,
                   const struct hvd__datagram_item *question)
{
    struct hvd__heard *heard = &b->inquiry.heard[question->rank];
    uint64_t round = round_of(question->ask.number);
    uint32_t slot = 1u << slot_of(question->ask.number);

    if (round < heard->round ||
        (round == heard->round && (heard->slots & slot)))
        return false;
    heard->slots = round == heard->round ? heard->slots | slot : slot;
    heard->round = round;
    return true;
}

void hvd__heartbeat_answer(struct hvd__heartbeat *b,
                           struct hvd__datagram_item *question)
{
    int64_t now = hvd__now_ns();
    uint64_t all = question->ask.count == 64
                       ? UINT64_MAX
                       : (UINT64_C(1) << question->ask.count) - 1;
    uint64_t have;

    if (hvd__places_is_ours(b->places, question->rank) ||
        slot_of(question->ask.number) >= HVD__QUESTIONS || !is_new(b, question))
        return;
    b->answers_to = question->rank;
    hvd__heartbeat_begin_datagram(b);
    have = write_have(b, question, now);
    write_answer(b, question, now);
    hvd__heartbeat_send_datagram(b);
    b->answers_to = -1;
    if (question->ask.steps == 0 || have == all)
        return;
    question->ask.steps--;
    hvd__heartbeat_begin_datagram(b);
    hvd__heartbeat_write_item(b, question, now);
    hvd__heartbeat_send_datagram(b);
}

/* ------------------------------------------------------------------ hearing */

static struct hvd__detail *find_detail(struct hvd__inquiry *q, int rank)
{
    for (int i = 0; i < q->ndetails; i++)
        if (q->details[i].rank == rank)
            return &q->details[i];
    return NULL;
}

/* Returns the place for the details of a rank; if there is no room, a lower
 * rank replaces the highest. */
static struct hvd__detail *place_detail(struct hvd__inquiry *q, int rank)
{
    struct hvd__detail *d = find_detail(q, rank);

    if (d)
        return d;
    if (q->ndetails < HVD__DETAILS) {
        d = &q->details[q->ndetails++];
    } else {
        d = q->details;
        for (int i = 1; i < HVD__DETAILS; i++)
            if (q->details[i].rank > d->rank)
                d = &q->details[i];
        if (d->rank < rank)
            return NULL;
    }
    d->rank = rank;
    d->nrequests = 0;
    return d;
}

/* Returns the number of the first key that an answer is about; -1: it answers
 * no question of now. */
static int first_key(const struct hvd__inquiry *q, uint64_t number)
{
    int first = slot_of(number) * HVD__DATAGRAM_KEYS;

    return q->is_under_way && cycle_of(number) == cycle_of(q->number) &&
                   first < q->n
               ? first
               : -1;
}

static void take_lack(struct hvd__heartbeat *b,
                      const struct hvd__datagram_item *item)
{
    struct hvd__inquiry *q = &b->inquiry;
    int first = first_key(q, item->lack.number);
    struct hvd__detail *d;

    if (first < 0)
        return;
    q->lacks[(size_t)(first / HVD__DATAGRAM_KEYS) * (size_t)b->places->nranks +
             (size_t)item->rank] |= item->lack.bits;
    d = place_detail(q, item->rank);
    if (!d)
        return;
    d->state = item->lack.has_left                         ? HVD__VIEW_LEFT
               : item->lack.silent_ns > b->silent_limit_ns ? HVD__VIEW_SILENT
                                                           : HVD__VIEW_ALIVE;
    d->silent_ns = item->lack.silent_ns;
    d->doing = item->lack.doing;
}

static void take_have(struct hvd__heartbeat *b,
                      const struct hvd__datagram_item *item)
{
    struct hvd__inquiry *q = &b->inquiry;
    int first = first_key(q, item->have.number);

    for (int i = 0; first >= 0 && i < HVD__DATAGRAM_KEYS && first + i < q->n;
         i++)
        q->is_told[first + i] |= (item->have.bits >> i & 1) != 0;
}

void hvd__heartbeat_take_answer(struct hvd__heartbeat *b,
                                const struct hvd__datagram_item *item)
{
    struct hvd__detail *d;

    switch (item->kind) {
    case HVD__ITEM_LACK: take_lack(b, item); break;
    case HVD__ITEM_HAVE: take_have(b, item); break;
    case HVD__ITEM_REQUEST:
        d = find_detail(&b->inquiry, item->rank);
        if (!d || item->request.index >= HVD__DETAIL_REQUESTS)
            break;
        d->requests[item->request.index] = item->request.is;
        if (d->nrequests == item->request.index)
            d->nrequests++;
        break;
    default: break;
    }
}

/* ------------------------------------------------------------------ knowing */

/* Returns the number of a key among those that were asked about; -1: it was
 * not. Keys are looked up rank by rank, so the last one is tried first. */
static int find_key(struct hvd__inquiry *q, uint64_t key)
{
    if (q->found < q->n && q->keys[q->found] == key)
        return q->found;
    for (q->found = 0; q->found < q->n; q->found++)
        if (q->keys[q->found] == key)
            return q->found;
    return -1;
}

bool hvd__heartbeat_is_told(struct hvd__heartbeat *b, uint64_t key)
{
    int i = find_key(&b->inquiry, key);

    return i < 0 || b->inquiry.is_told[i];
}

bool hvd__heartbeat_waits(struct hvd__heartbeat *b, int rank, uint64_t key)
{
    const struct hvd__neighbour *near = hvd__heartbeat_neighbour_of(b, rank);
    int i = find_key(&b->inquiry, key);

    if (!b->hosts[b->places->host_of[rank]].is_linked ||
        (near && (!near->was_heard || hvd__heartbeat_is_silent(b, near))))
        return false;
    return i < 0 || !(b->inquiry.lacks[(size_t)(i / HVD__DATAGRAM_KEYS) *
                                           (size_t)b->places->nranks +
                                       (size_t)rank] >>
                          i % HVD__DATAGRAM_KEYS &
                      1);
}

static void look_at_line(const struct hvd__heartbeat *b,
                         const struct hvd__neighbour *near, int rank,
                         struct hvd__view *view)
{
    struct hvd__line *line = hvd__heartbeat_line_of(b, rank);
    int32_t state = atomic_load(&line->state);

    if (state == HVD__LINE_EMPTY)
        return;
    view->silent_ns = atomic_load(&line->silent_ns) + near->silent_ns;
    view->state = state == HVD__LINE_LEFT                ? HVD__VIEW_LEFT
                  : view->silent_ns > b->silent_limit_ns ? HVD__VIEW_SILENT
                                                         : HVD__VIEW_ALIVE;
    hvd__page_read_doing(line, &view->doing);
}

void hvd__heartbeat_look(struct hvd__heartbeat *b, int rank,
                         struct hvd__view *view)
{
    const struct hvd__neighbour *near = hvd__heartbeat_neighbour_of(b, rank);
    const struct hvd__detail *d = find_detail(&b->inquiry, rank);

    *view = (struct hvd__view){.state = HVD__VIEW_ELSEWHERE};
    if (d)
        *view = (struct hvd__view){.state = d->state,
                                   .silent_ns = d->silent_ns,
                                   .doing = d->doing,
                                   .requests = d->requests,
                                   .nrequests = d->nrequests};
    if (near)
        look_at_line(b, near, rank, view);
}
