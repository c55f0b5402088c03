/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offer.c - writes offers as messages and combines them (offer.h). round.c
 * calls it.
 *
 * A message is a head, an entry for each slot, and the slots' data one after
 * another. It has only the data of the hosts that it covers, so the receiver,
 * who has the same requests in the same slots, knows the length of each.
 *
 * Blocks from each member to each travel like the digits of a number are
 * corrected: the message to the host at distance d has, of the hosts that its
 * sender has heard of, the blocks for the hosts whose numbers are that of the
 * receiver modulo 2d. So half as many blocks as there are hosts travel in each
 * step, where all members' data would be all that is known.
 */
#include "core/agree/offer.h"

#include <stddef.h>
#include <string.h>

#include "base/dtype.h"
#include "kernels/kernels.h"
#include "transport/pattern.h"

struct head {
    uint32_t bytes; /* of the whole message */
    uint32_t epoch;
    uint64_t round;
    struct hvd__piece_values values;
    uint64_t straight;
    uint32_t flags;
    uint32_t nslots;
};

struct entry {
    uint64_t key;
    uint64_t fingerprint;
};

/* Every message fits: the entries are few, and so is the data. */
_Static_assert(sizeof(struct head) + HVD__OFFER_SLOTS * sizeof(struct entry) <=
                   HVD__OFFER_BYTES - HVD__OFFER_RESULTS,
               "head and entries leave room for the data");

/* Returns where a member's share begins in the rows of all; that of the number
 * behind the last is their end. */
static size_t start_of_share(const struct hvd__request *request, int member,
                             int nranks)
{
    int64_t row = hvd__slice_of(request->rows, member, nranks).start;

    return row > 0 ? request->bytes / (size_t)request->rows * (size_t)row : 0;
}

struct hvd__way_block hvd__way_block(const struct hvd__request *request,
                                     int member, int nranks)
{
    hvd_kind kind = request->signature.kind;
    size_t all = request->bytes, m = (size_t)member, start;

    if (kind == HVD_ALLGATHER)
        return (struct hvd__way_block){0, all};
    if (kind != HVD_REDUCESCATTER)
        return (struct hvd__way_block){all / (size_t)nranks * m,
                                       all / (size_t)nranks};
    start = start_of_share(request, member, nranks);
    return (struct hvd__way_block){
        start, start_of_share(request, member + 1, nranks) - start};
}

size_t hvd__way_bytes(enum hvd__way way, const struct hvd__request *request,
                      int nranks)
{
    size_t n = (size_t)nranks;

    switch (way) {
    case HVD__WAY_SUM:
    case HVD__WAY_HALVES:
    case HVD__WAY_SHARES:
    case HVD__WAY_ROOT: return request->bytes;
    case HVD__WAY_STRAIGHT: return hvd__way_block(request, 0, nranks).bytes * n;
    case HVD__WAY_EACH:
    case HVD__WAY_ALL: return request->bytes * n;
    case HVD__WAY_ROWS: return sizeof request->rows * n;
    case HVD__WAY_SPLITS: return sizeof *request->splits * n * n;
    default: return 0;
    }
}

size_t hvd__way_share_at(const struct hvd__request *request,
                         const struct hvd__hosts *hosts, int local)
{
    const int *members = hosts->members + hosts->first[hosts->own];
    int n = hosts->first[hosts->n];
    size_t at = 0;

    for (int i = 0; i < local; i++)
        at += start_of_share(request, members[i] + 1, n) -
              start_of_share(request, members[i], n);
    return at;
}

/* A message covers 2^i hosts and aims at 2^(k-1-i), each of which may stand for
 * two; the messages of hosts beyond 2^k cover one and aim at all, or the other
 * way round. */
size_t hvd__way_message_bytes(enum hvd__way way,
                              const struct hvd__request *request,
                              const struct hvd__hosts *hosts)
{
    struct hvd__pairing p = hvd__pairing_of(hosts->own, hosts->n);
    size_t n = (size_t)hosts->first[hosts->n], w = (size_t)hosts->widest;
    size_t bytes = hvd__way_bytes(way, request, (int)n), blocks;

    if (way == HVD__WAY_STRAIGHT)
        return bytes / n;
    if (way == HVD__WAY_HALVES)
        return bytes / 2 + hvd__dtype_bytes(request->signature.dtype);
    if ((way == HVD__WAY_SHARES || way == HVD__WAY_ALL) && p.extra == 0 &&
        p.steps > 0) {
        size_t one = way == HVD__WAY_SHARES ? start_of_share(request, 1, (int)n)
                                            : bytes / n;

        blocks = one * w << (p.steps - 1);
        return blocks < bytes ? blocks : bytes;
    }
    if (!hvd__way_is_exchange(way))
        return bytes;
    blocks = (w * w << p.steps) * (p.extra > 0 ? 4 : 1) / 2;
    return bytes / (n * n) * (blocks < n * n ? blocks : n * n);
}

size_t hvd__way_result_bytes(enum hvd__way way,
                             const struct hvd__request *request,
                             const struct hvd__hosts *hosts)
{
    size_t n = (size_t)hosts->first[hosts->n];
    size_t bytes = hvd__way_bytes(way, request, (int)n);

    if (way == HVD__WAY_STRAIGHT) /* it does not pass through the slot */
        return 0;
    if (way == HVD__WAY_SHARES)
        return hvd__way_share_at(request, hosts,
                                 hvd__hosts_size(hosts, hosts->own));
    return hvd__way_is_exchange(way)
               ? bytes / n * (size_t)hvd__hosts_size(hosts, hosts->own)
               : bytes;
}

void hvd__offer_begin(struct hvd__offer *offer, const struct hvd__hosts *hosts,
                      uint64_t round, uint32_t epoch)
{
    memset(offer, 0, offsetof(struct hvd__offer, slots));
    offer->hosts = hosts;
    offer->round = round;
    offer->epoch = epoch;
    offer->first = hosts->own;
    offer->end = hosts->own + 1;
}

static size_t round_up(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

bool hvd__offer_add(struct hvd__offer *offer,
                    const struct hvd__request *request, enum hvd__way way,
                    int root)
{
    const struct hvd__hosts *hosts = offer->hosts;
    size_t bytes = hvd__way_bytes(way, request, hosts->first[hosts->n]);
    size_t sent = hvd__way_message_bytes(way, request, hosts);

    if (offer->n == HVD__OFFER_SLOTS ||
        (way == HVD__WAY_STRAIGHT && offer->straight) ||
        sent > HVD__OFFER_RESULTS - offer->message_bytes ||
        bytes > HVD__OFFER_DATA - offer->data_bytes)
        return false;
    offer->slots[offer->n++] = (struct hvd__offer_slot){
        .key = request->submission->key,
        .fingerprint = request->submission->fingerprint,
        .request = request,
        .way = way,
        .root = root,
        .bytes = bytes,
        .at = offer->data_bytes,
    };
    offer->data_bytes += round_up(bytes);
    offer->message_bytes += round_up(sent);
    if (way == HVD__WAY_STRAIGHT)
        offer->straight = UINT64_C(1) << hosts->own;
    return true;
}

const struct hvd__offer_slot *hvd__offer_straight(
    const struct hvd__offer *offer)
{
    for (int i = 0; offer->straight && i < offer->n; i++)
        if (offer->slots[i].way == HVD__WAY_STRAIGHT)
            return &offer->slots[i];
    return NULL;
}

/* ----------------------------------------------- a slot's data in a message */

/* The data of a slot in a message is a sequence of pieces of the offer's data.
 * Whoever writes, reads or checks it goes through these pieces. */

/* A message has the data of some hosts, and one host gets it. */
struct cover {
    int first, end; /* the hosts that it comes from */
    int receiver;   /* a host */
    int partner;    /* the host that the message goes to, or comes from */
    int modulus;
};

struct piece {
    size_t at; /* offset in the offer's data */
    size_t bytes;
    int row;         /* exchanges: which of the members that the data is from */
    int host, place; /* and, as of shares, behind the member that it is for */
};

/* Returns the number of a host in the doubling: that of the next if it is
 * folded into that. */
static int number_of(const struct hvd__hosts *hosts, int host)
{
    int extra = hvd__pairing_of(host, hosts->n).extra;

    return host < 2 * extra ? host / 2 : host - extra;
}

static bool is_aimed_at(const struct hvd__hosts *hosts,
                        const struct cover *cover, int host)
{
    if (cover->modulus == 0)
        return host == cover->receiver;
    return (number_of(hosts, host) - number_of(hosts, cover->receiver)) %
               cover->modulus ==
           0;
}

/* Finds the next member aimed at. The first is found from zeros. Returns -1 if
 * there is none. */
static int next_member(const struct hvd__hosts *hosts,
                       const struct cover *cover, struct piece *piece)
{
    while (piece->host < hosts->n &&
           (piece->place == hosts->first[piece->host + 1] ||
            !is_aimed_at(hosts, cover, piece->host)))
        piece->place = hosts->first[++piece->host];
    return piece->host < hosts->n ? hosts->members[piece->place++] : -1;
}

/* Returns where a member's block begins in a row of an exchange, or its share
 * in a sum. */
static size_t start_of_block(const struct hvd__offer_slot *slot, int member,
                             int nranks)
{
    size_t n = (size_t)nranks;

    return slot->way == HVD__WAY_SHARES
               ? start_of_share(slot->request, member, nranks)
               : slot->bytes / (n * n) * (size_t)member;
}

/* Finds the next piece of an exchange, or of a sum in shares: a block in one
 * row. A sum has one row. */
static bool next_block(const struct hvd__hosts *hosts,
                       const struct hvd__offer_slot *slot,
                       const struct cover *cover, struct piece *piece)
{
    const bool sums = slot->way == HVD__WAY_SHARES;
    int n = hosts->first[hosts->n], first = hosts->first[cover->first], member;
    int nrows = sums ? 1 : hosts->first[cover->end] - first;

    for (; piece->row < nrows; *piece = (struct piece){.row = piece->row + 1})
        while ((member = next_member(hosts, cover, piece)) >= 0) {
            size_t start = start_of_block(slot, member, n);

            piece->at = start + (sums ? slot->at
                                      : hvd__offer_member(slot, hosts,
                                                          first + piece->row));
            piece->bytes = start_of_block(slot, member + 1, n) - start;
            if (piece->bytes > 0)
                return true;
        }
    return false;
}

/* Finds the part of a sum in halves that a message has, or all of it. */
static void find_part(const struct hvd__offer_slot *slot,
                      const struct cover *cover, struct piece *piece)
{
    size_t element = hvd__dtype_bytes(slot->request->signature.dtype);
    struct hvd__slice part = {0, (int64_t)(slot->bytes / element)};
    int steps = 0;

    while (2 << steps <= cover->modulus)
        steps++;
    part = hvd__pairing_part(part, cover->receiver, steps);
    piece->at = slot->at + (size_t)part.start * element;
    piece->bytes = (size_t)part.count * element;
}

/* Finds the next piece of a slot's data that a message has, the first from
 * zeros. Returns false if there is none. */
static bool next_piece(const struct hvd__offer *offer,
                       const struct hvd__offer_slot *slot,
                       const struct cover *cover, struct piece *piece)
{
    const struct hvd__hosts *hosts = offer->hosts;

    if (hvd__way_is_exchange(slot->way) || slot->way == HVD__WAY_SHARES)
        return next_block(hosts, slot, cover, piece);
    if (piece->row++ > 0)
        return false;
    piece->at = slot->at;
    switch (slot->way) {
    case HVD__WAY_NONE: break;
    case HVD__WAY_STRAIGHT:
        if (cover->modulus < 2) /* no exchange */
            break;
        piece->at = hvd__offer_member(slot, hosts, cover->partner);
        piece->bytes = slot->bytes / (size_t)hosts->n;
        break;
    case HVD__WAY_SUM: piece->bytes = slot->bytes; break;
    case HVD__WAY_HALVES: find_part(slot, cover, piece); break;
    case HVD__WAY_ROOT:
        if (cover->first <= slot->root && slot->root < cover->end)
            piece->bytes = slot->bytes;
        break;
    default:
        piece->at = hvd__offer_member(slot, hosts, hosts->first[cover->first]);
        piece->bytes =
            hvd__offer_member(slot, hosts, hosts->first[cover->end]) -
            piece->at;
    }
    return piece->bytes > 0;
}

/* Copies a slot's data to a message. Returns where it ends there. */
static unsigned char *write_slot(const struct hvd__offer *offer,
                                 const struct hvd__offer_slot *slot,
                                 const struct cover *cover, unsigned char *to)
{
    for (struct piece p = {0}; next_piece(offer, slot, cover, &p);
         to += p.bytes)
        memcpy(to, offer->data + p.at, p.bytes);
    return to;
}

void hvd__offer_result(const struct hvd__offer *offer,
                       const struct hvd__offer_slot *slot, unsigned char *to)
{
    const struct cover all = {.end = offer->hosts->n,
                              .receiver = offer->hosts->own};

    write_slot(offer, slot, &all, to);
}

/* ----------------------------------------------------------------- messages */

bool hvd__offer_comes_back(const struct hvd__offer *offer)
{
    for (int i = 0; i < offer->n && !offer->is_back; i++)
        if (offer->slots[i].way == HVD__WAY_HALVES)
            return true;
    return false;
}

/* On the way back, messages have nothing but the parts of sums in halves that
 * their senders have kept. */
static bool is_in_message(const struct hvd__offer *offer, int i)
{
    return !offer->is_back || offer->slots[i].way == HVD__WAY_HALVES;
}

size_t hvd__offer_write(const struct hvd__offer *offer,
                        const struct hvd__offer_peer *to,
                        unsigned char *message)
{
    const struct cover cover = {offer->first, offer->end,
                                offer->is_back ? offer->hosts->own : to->host,
                                to->host, to->modulus};
    unsigned char *at = message + sizeof(struct head);
    struct head head = {.epoch = offer->epoch,
                        .round = offer->round,
                        .values = offer->values,
                        .straight = offer->straight,
                        .flags = offer->flags,
                        .nslots = offer->is_back ? 0 : (uint32_t)offer->n};

    for (uint32_t i = 0; i < head.nslots; i++) {
        const struct entry entry = {offer->slots[i].key,
                                    offer->slots[i].fingerprint};

        memcpy(at, &entry, sizeof entry);
        at += sizeof entry;
    }
    for (int i = 0; i < offer->n; i++)
        if (is_in_message(offer, i))
            at = write_slot(offer, &offer->slots[i], &cover, at);
    head.bytes = (uint32_t)(at - message);
    memcpy(message, &head, sizeof head);
    return head.bytes;
}

/* Returns bits for the hosts whose offers a message covers. */
static uint64_t bits_of(const struct hvd__offer_peer *from)
{
    uint64_t all = from->end < 64 ? (UINT64_C(1) << from->end) - 1 : UINT64_MAX;

    return from->first < 64 ? all >> from->first << from->first : 0;
}

/* Reads the head. Returns false if it does not belong to this round. */
static bool read_head(const struct hvd__offer *offer,
                      const unsigned char *message,
                      const struct hvd__offer_peer *from, struct head *head)
{
    memcpy(head, message, sizeof *head);
    if (head->straight &&
        (!hvd__blocks_may_go_straight(offer->hosts) ||
         head->flags & HVD__OFFER_OPENS ||
         (!offer->is_back && head->straight & ~bits_of(from))))
        return false;
    return head->round == offer->round && head->epoch == offer->epoch &&
           head->bytes <= HVD__OFFER_BYTES && head->flags <= HVD__OFFER_ALL &&
           (head->flags & HVD__OFFER_OPENS) ==
               (offer->flags & HVD__OFFER_OPENS) &&
           head->nslots <= HVD__OFFER_SLOTS &&
           head->bytes >= sizeof *head + head->nslots * sizeof(struct entry) &&
           ((head->flags & HVD__OFFER_OPENS) == 0 || head->nslots == 0);
}

/* Cuts the offer to what it has in common with the message's entries. */
static void cut_to_common(struct hvd__offer *offer, const struct head *head,
                          const unsigned char *entries)
{
    int theirs = (int)head->nslots, i = 0;

    for (; i < offer->n && i < theirs; i++) {
        struct entry entry;

        memcpy(&entry, entries + (size_t)i * sizeof entry, sizeof entry);
        if (entry.key != offer->slots[i].key ||
            entry.fingerprint != offer->slots[i].fingerprint) {
            offer->n = i;
            offer->flags |= HVD__OFFER_CONFLICT;
            return;
        }
    }
    /* A conflict counts behind the shorter of the two. */
    if (theirs < offer->n)
        offer->flags &= ~(uint32_t)HVD__OFFER_CONFLICT;
    offer->flags |= theirs > offer->n
                        ? head->flags & ~(uint32_t)HVD__OFFER_CONFLICT
                        : head->flags;
    offer->n = i;
}

/* Reduces sources into a piece of the sum of a slot. */
static void add_up(struct hvd__offer *offer, const struct hvd__offer_slot *slot,
                   struct piece piece, double prescale,
                   const void *const *sources, int n)
{
    const struct hvd__signature *s = &slot->request->signature;
    const struct hvd__reduction reduction = {
        .dtype = s->dtype,
        .op = s->op == HVD_AVERAGE ? HVD_SUM : s->op,
        .prescale = prescale,
        .postscale = 1,
    };

    hvd__reduce(&reduction, offer->data + piece.at, sources, n,
                (int64_t)(piece.bytes / hvd__dtype_bytes(s->dtype)));
}

void hvd__offer_add_up(struct hvd__offer *offer,
                       const struct hvd__offer_slot *slot, double prescale,
                       const void *const *sources, int n)
{
    const struct piece all = {.at = slot->at, .bytes = slot->bytes};

    if (slot->bytes > 0)
        add_up(offer, slot, all, prescale, sources, n);
}

/* Takes in a slot's data, which ends before end. Returns where it ends; NULL:
 * not before end. */
static const unsigned char *take_slot(struct hvd__offer *offer,
                                      const struct hvd__offer_slot *slot,
                                      const struct cover *cover, bool adds,
                                      const unsigned char *data,
                                      const unsigned char *end)
{
    for (struct piece p = {0}; next_piece(offer, slot, cover, &p);
         data += p.bytes) {
        /* The data of the lower hosts comes first. */
        const bool first = cover->first < offer->first;
        const void *ours = offer->data + p.at;
        const void *sources[2] = {first ? data : ours, first ? ours : data};

        if (p.bytes > (size_t)(end - data))
            return NULL;
        if (adds && hvd__way_sums(slot->way))
            add_up(offer, slot, p, 1, sources, 2);
        else
            memcpy(offer->data + p.at, data, p.bytes);
    }
    return data;
}

/* Takes in what a message says besides data. Returns false if it is no result
 * of all hosts although it should be. */
static bool take_entries(struct hvd__offer *offer, const struct head *head,
                         const unsigned char *entries,
                         const struct hvd__offer_peer *from)
{
    const int theirs = (int)head->nslots;
    const bool is_result = from->modulus == 0;

    if (is_result) { /* a prefix of any offer */
        if (theirs > offer->n)
            return false;
        offer->flags = head->flags;
        offer->n = theirs;
    }
    if (is_result || from->first < offer->first)
        offer->values = head->values;
    cut_to_common(offer, head, entries);
    return !is_result || offer->n == theirs;
}

bool hvd__offer_take(struct hvd__offer *offer, const unsigned char *message,
                     const struct hvd__offer_peer *from)
{
    const bool back = offer->is_back, adds = !back && from->modulus != 0;
    const struct cover cover = {from->first, from->end,
                                back ? from->host : offer->hosts->own,
                                from->host, from->modulus};
    const unsigned char *data = message + sizeof(struct head), *end;
    struct head head;

    if (!read_head(offer, message, from, &head) ||
        !(back ? head.nslots == 0 : take_entries(offer, &head, data, from)))
        return false;
    offer->straight |= head.straight;
    end = message + head.bytes;
    data += head.nslots * sizeof(struct entry);
    for (int i = 0; data && i < offer->n; i++)
        if (is_in_message(offer, i))
            data = take_slot(offer, &offer->slots[i], &cover, adds, data, end);
    offer->first = from->first < offer->first ? from->first : offer->first;
    offer->end = from->end > offer->end ? from->end : offer->end;
    return data && (!back || data == end);
}
