/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offer.c - writes offers as messages and combines them (offer.h). round.c
 * calls it.
 *
 * A message is a head, an entry for each slot, and the slots' data one after
 * another. It has only the data of the hosts that it covers, so the receiver,
 * who has the same requests in the same slots, knows the length of each.
 */
#include "core/agree/offer.h"

#include <string.h>

#include "kernels/kernels.h"

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

size_t hvd__way_bytes(enum hvd__way way, const struct hvd__request *request,
                      int nranks)
{
    switch (way) {
    case HVD__WAY_SUM:
    case HVD__WAY_ROOT: return request->bytes;
    case HVD__WAY_ALL: return request->bytes * (size_t)nranks;
    case HVD__WAY_ROWS: return sizeof request->rows * (size_t)nranks;
    default: return 0;
    }
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
    offer->data_bytes = 0;
}

bool hvd__offer_add(struct hvd__offer *offer,
                    const struct hvd__request *request, enum hvd__way way,
                    int root)
{
    const struct hvd__hosts *hosts = offer->hosts;
    size_t bytes = hvd__way_bytes(way, request, hosts->first[hosts->n]);

    if (offer->n == HVD__OFFER_SLOTS ||
        bytes > HVD__OFFER_RESULTS - offer->data_bytes)
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
    offer->data_bytes += (bytes + 63) / 64 * 64;
    return true;
}

/* Bytes of data that a message has for a slot. */
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

size_t hvd__offer_write(const struct hvd__offer *offer, unsigned char *message)
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
    for (int i = 0; i < offer->n; i++) {
        struct part part =
            part_of(offer, &offer->slots[i], offer->first, offer->end);

        if (part.bytes > 0)
            memcpy(to, offer->data + part.at, part.bytes);
        to += part.bytes;
    }
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

/* Takes in the data of the slots in common. Returns false if the message is too
 * short. */
static bool take_data(struct hvd__offer *offer, const unsigned char *data,
                      size_t bytes, int first, int end, bool replace)
{
    for (int i = 0; i < offer->n; i++) {
        const struct hvd__offer_slot *slot = &offer->slots[i];
        struct part part = part_of(offer, slot, first, end);

        if (part.bytes > bytes)
            return false;
        if (slot->way == HVD__WAY_SUM && !replace)
            add_sum(offer, slot, data, first < offer->first);
        else if (part.bytes > 0)
            memcpy(offer->data + part.at, data, part.bytes);
        data += part.bytes;
        bytes -= part.bytes;
    }
    return true;
}

static bool take(struct hvd__offer *offer, const unsigned char *message,
                 int first, int end, bool replace)
{
    struct head head;
    const unsigned char *entries = message + sizeof head;
    size_t before;

    if (!read_head(offer, message, &head))
        return false;
    before = sizeof head + head.nslots * sizeof(struct entry);
    if (replace) { /* the result of all hosts is a prefix of any offer */
        if ((int)head.nslots > offer->n)
            return false;
        offer->flags = head.flags;
        offer->n = (int)head.nslots;
    }
    cut_to_common(offer, &head, entries);
    if (replace && offer->n < (int)head.nslots)
        return false;
    if (!take_data(offer, message + before, head.bytes - before, first, end,
                   replace))
        return false;
    if (first < offer->first || replace) {
        offer->threshold = head.threshold;
        offer->direct_max = head.direct_max;
    }
    offer->first = first < offer->first ? first : offer->first;
    offer->end = end > offer->end ? end : offer->end;
    return true;
}

bool hvd__offer_combine(struct hvd__offer *offer, const unsigned char *message,
                        int first, int end)
{
    return take(offer, message, first, end, false);
}

bool hvd__offer_replace(struct hvd__offer *offer, const unsigned char *message)
{
    return take(offer, message, 0, offer->hosts->n, true);
}
