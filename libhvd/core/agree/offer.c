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

#include <string.h>

#include "kernels/kernels.h"
#include "transport/pattern.h"

struct head {
    uint32_t bytes; /* of the whole message */
    uint32_t epoch;
    uint64_t round;
    uint64_t threshold;
    uint64_t direct_max;
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

static bool is_exchange(enum hvd__way way)
{
    return way == HVD__WAY_EACH || way == HVD__WAY_SPLITS;
}

size_t hvd__way_bytes(enum hvd__way way, const struct hvd__request *request,
                      int nranks)
{
    size_t n = (size_t)nranks;

    switch (way) {
    case HVD__WAY_SUM:
    case HVD__WAY_ROOT: return request->bytes;
    case HVD__WAY_EACH:
    case HVD__WAY_ALL: return request->bytes * n;
    case HVD__WAY_ROWS: return sizeof request->rows * n;
    case HVD__WAY_SPLITS: return sizeof *request->splits * n * n;
    default: return 0;
    }
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

    if (!is_exchange(way))
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

    return is_exchange(way)
               ? bytes / n * (size_t)hvd__hosts_size(hosts, hosts->own)
               : bytes;
}

void hvd__offer_begin(struct hvd__offer *offer, const struct hvd__hosts *hosts,
                      uint64_t round, uint32_t epoch)
{
    offer->hosts = hosts;
    offer->round = round;
    offer->epoch = epoch;
    offer->flags = 0;
    offer->first = hosts->own;
    offer->end = hosts->own + 1;
    offer->threshold = offer->direct_max = 0;
    offer->n = 0;
    offer->data_bytes = offer->message_bytes = 0;
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
    return true;
}

/* Bytes of data that a message has for a slot that is no exchange. */
struct part {
    size_t at; /* offset in the offer's data */
    size_t bytes;
};

/* Returns the part of a slot's data that the hosts first to end-1 have. */
static struct part part_of(const struct hvd__offer *offer,
                           const struct hvd__offer_slot *slot, int first,
                           int end)
{
    const struct hvd__hosts *hosts = offer->hosts;
    size_t from, to;

    switch (slot->way) {
    case HVD__WAY_NONE: return (struct part){slot->at, 0};
    case HVD__WAY_SUM: return (struct part){slot->at, slot->bytes};
    case HVD__WAY_ROOT:
        return (struct part){slot->at, first <= slot->root && slot->root < end
                                           ? slot->bytes
                                           : 0};
    default:
        from = hvd__offer_member(slot, hosts, hosts->first[first]);
        to = hvd__offer_member(slot, hosts, hosts->first[end]);
        return (struct part){from, to - from};
    }
}

/* ---------------------------------------------------------------- exchanges */

/* Returns the number of a host in the doubling: that of the next if it is
 * folded into that. */
static int number_of(const struct hvd__hosts *hosts, int host)
{
    int extra = hvd__pairing_of(host, hosts->n).extra;

    return host < 2 * extra ? host / 2 : host - extra;
}

static bool is_aimed_at(const struct hvd__hosts *hosts,
                        struct hvd__offer_aim aim, int host)
{
    if (aim.modulus == 0)
        return host == aim.receiver;
    return (number_of(hosts, host) - number_of(hosts, aim.receiver)) %
               aim.modulus ==
           0;
}

/* Members of a host that follow each other in the order of the set. */
struct run {
    int host, place, n;
};

/* Finds the next run of members aimed at. The first is found from zeros.
 * Returns false if there is none. */
static bool next_run(const struct hvd__hosts *hosts, struct hvd__offer_aim aim,
                     struct run *run)
{
    const int *members = hosts->members;

    run->place += run->n;
    while (run->host < hosts->n && (run->place == hosts->first[run->host + 1] ||
                                    !is_aimed_at(hosts, aim, run->host)))
        run->place = hosts->first[++run->host];
    if (run->host == hosts->n)
        return false;
    for (run->n = 1;
         run->place + run->n < hosts->first[run->host + 1] &&
         members[run->place + run->n] == members[run->place] + run->n;)
        run->n++;
    return true;
}

/* Returns the bytes of a block from one member to another. */
static size_t block_bytes(const struct hvd__hosts *hosts,
                          const struct hvd__offer_slot *slot)
{
    size_t n = (size_t)hosts->first[hosts->n];

    return slot->bytes / (n * n);
}

/* Returns the bytes of a slot's blocks that the hosts first to end-1 have. */
static size_t exchanged_bytes(const struct hvd__hosts *hosts,
                              const struct hvd__offer_slot *slot, int first,
                              int end, struct hvd__offer_aim aim)
{
    size_t rows = (size_t)(hosts->first[end] - hosts->first[first]);
    size_t members = 0;

    for (struct run run = {0}; next_run(hosts, aim, &run);)
        members += (size_t)run.n;
    return block_bytes(hosts, slot) * rows * members;
}

/* Copies these blocks from an offer's data to a message. */
static void gather_blocks(const struct hvd__hosts *hosts,
                          const struct hvd__offer_slot *slot,
                          const unsigned char *data, int first, int end,
                          struct hvd__offer_aim aim, unsigned char *to)
{
    size_t block = block_bytes(hosts, slot);

    for (int i = hosts->first[first]; i < hosts->first[end]; i++)
        for (struct run run = {0}; next_run(hosts, aim, &run);) {
            size_t bytes = (size_t)run.n * block;

            memcpy(to,
                   data + hvd__offer_member(slot, hosts, i) +
                       (size_t)hosts->members[run.place] * block,
                   bytes);
            to += bytes;
        }
}

/* Copies them from a message to an offer's data. */
static void spread_blocks(const struct hvd__hosts *hosts,
                          const struct hvd__offer_slot *slot,
                          const unsigned char *from, int first, int end,
                          struct hvd__offer_aim aim, unsigned char *data)
{
    size_t block = block_bytes(hosts, slot);

    for (int i = hosts->first[first]; i < hosts->first[end]; i++)
        for (struct run run = {0}; next_run(hosts, aim, &run);) {
            size_t bytes = (size_t)run.n * block;

            memcpy(data + hvd__offer_member(slot, hosts, i) +
                       (size_t)hosts->members[run.place] * block,
                   from, bytes);
            from += bytes;
        }
}

void hvd__offer_result(const struct hvd__offer *offer,
                       const struct hvd__offer_slot *slot, unsigned char *to)
{
    const struct hvd__hosts *hosts = offer->hosts;
    const struct hvd__offer_aim here = {.receiver = hosts->own};

    if (is_exchange(slot->way))
        gather_blocks(hosts, slot, offer->data, 0, hosts->n, here, to);
    else if (slot->bytes > 0)
        memcpy(to, offer->data + slot->at, slot->bytes);
}

/* ----------------------------------------------------------------- messages */

/* Writes a slot's data. Returns its bytes. */
static size_t write_data(const struct hvd__offer *offer,
                         const struct hvd__offer_slot *slot,
                         struct hvd__offer_aim aim, unsigned char *to)
{
    struct part part;

    if (is_exchange(slot->way)) {
        gather_blocks(offer->hosts, slot, offer->data, offer->first, offer->end,
                      aim, to);
        return exchanged_bytes(offer->hosts, slot, offer->first, offer->end,
                               aim);
    }
    part = part_of(offer, slot, offer->first, offer->end);
    if (part.bytes > 0)
        memcpy(to, offer->data + part.at, part.bytes);
    return part.bytes;
}

size_t hvd__offer_write(const struct hvd__offer *offer,
                        struct hvd__offer_aim aim, unsigned char *message)
{
    unsigned char *to = message + sizeof(struct head);
    struct head head = {.epoch = offer->epoch,
                        .round = offer->round,
                        .threshold = offer->threshold,
                        .direct_max = offer->direct_max,
                        .flags = offer->flags,
                        .nslots = (uint32_t)offer->n};

    for (int i = 0; i < offer->n; i++) {
        const struct entry entry = {offer->slots[i].key,
                                    offer->slots[i].fingerprint};

        memcpy(to, &entry, sizeof entry);
        to += sizeof entry;
    }
    for (int i = 0; i < offer->n; i++)
        to += write_data(offer, &offer->slots[i], aim, to);
    head.bytes = (uint32_t)(to - message);
    memcpy(message, &head, sizeof head);
    return head.bytes;
}

/* Reads the head. Returns false if it does not belong to this round. */
static bool read_head(const struct hvd__offer *offer,
                      const unsigned char *message, struct head *head)
{
    memcpy(head, message, sizeof *head);
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
    if (theirs < offer->n)
        offer->flags =
            (offer->flags & ~(uint32_t)HVD__OFFER_CONFLICT) | head->flags;
    else if (theirs == offer->n)
        offer->flags |= head->flags;
    else
        offer->flags |= head->flags & ~(uint32_t)HVD__OFFER_CONFLICT;
    offer->n = i;
}

/* Reduces the message's data into the sum of a slot. The data of the lower
 * hosts comes first. */
static void add_sum(struct hvd__offer *offer,
                    const struct hvd__offer_slot *slot,
                    const unsigned char *theirs, bool theirs_first)
{
    const struct hvd__signature *s = &slot->request->signature;
    const struct hvd__reduction reduction = {
        .dtype = s->dtype,
        .op = s->op == HVD_AVERAGE ? HVD_SUM : s->op,
        .prescale = 1,
        .postscale = 1,
    };
    unsigned char *ours = offer->data + slot->at;
    const void *sources[2] = {theirs_first ? theirs : ours,
                              theirs_first ? ours : theirs};

    if (slot->request->count > 0)
        hvd__reduce(&reduction, ours, sources, 2, slot->request->count);
}

/* What a message of other hosts has. */
struct cover {
    int first, end; /* the hosts it comes from */
    struct hvd__offer_aim aim;
    bool replaces; /* it has what all hosts have agreed on */
};

/* Takes in a slot's data. Returns its bytes, or SIZE_MAX if there are more than
 * bytes. */
static size_t take_slot(struct hvd__offer *offer,
                        const struct hvd__offer_slot *slot,
                        const unsigned char *data, size_t bytes,
                        const struct cover *cover)
{
    bool is_each = is_exchange(slot->way);
    struct part part = {0};

    if (is_each)
        part.bytes = exchanged_bytes(offer->hosts, slot, cover->first,
                                     cover->end, cover->aim);
    else
        part = part_of(offer, slot, cover->first, cover->end);
    if (part.bytes > bytes)
        return SIZE_MAX;
    if (is_each)
        spread_blocks(offer->hosts, slot, data, cover->first, cover->end,
                      cover->aim, offer->data);
    else if (slot->way == HVD__WAY_SUM && !cover->replaces)
        add_sum(offer, slot, data, cover->first < offer->first);
    else if (part.bytes > 0)
        memcpy(offer->data + part.at, data, part.bytes);
    return part.bytes;
}

static bool take(struct hvd__offer *offer, const unsigned char *message,
                 const struct cover *cover)
{
    struct head head;
    const unsigned char *entries = message + sizeof head, *data;
    size_t left;

    if (!read_head(offer, message, &head))
        return false;
    if (cover
            ->replaces) { /* the result of all hosts is a prefix of any offer */
        if ((int)head.nslots > offer->n)
            return false;
        offer->flags = head.flags;
        offer->n = (int)head.nslots;
    }
    cut_to_common(offer, &head, entries);
    if (cover->replaces && offer->n < (int)head.nslots)
        return false;
    data = entries + head.nslots * sizeof(struct entry);
    left = head.bytes - (size_t)(data - message);
    for (int i = 0; i < offer->n; i++) {
        size_t bytes = take_slot(offer, &offer->slots[i], data, left, cover);

        if (bytes > left)
            return false;
        data += bytes;
        left -= bytes;
    }
    if (cover->first < offer->first || cover->replaces) {
        offer->threshold = head.threshold;
        offer->direct_max = head.direct_max;
    }
    if (cover->first < offer->first)
        offer->first = cover->first;
    if (cover->end > offer->end)
        offer->end = cover->end;
    return true;
}

bool hvd__offer_combine(struct hvd__offer *offer, const unsigned char *message,
                        int first, int end, int modulus)
{
    const struct cover cover = {
        .first = first, .end = end, .aim = {offer->hosts->own, modulus}};

    return take(offer, message, &cover);
}

bool hvd__offer_replace(struct hvd__offer *offer, const unsigned char *message)
{
    const struct cover cover = {.end = offer->hosts->n,
                                .aim = {.receiver = offer->hosts->own},
                                .replaces = true};

    return take(offer, message, &cover);
}
