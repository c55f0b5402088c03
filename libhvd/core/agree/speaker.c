/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speaker.c - ordered mode between hosts. On each host the first member of the
 * set, the speaker, compares the slots of the members of its host and offers
 * the other hosts, in rounds (round.h), what they agree on. It publishes the
 * result of each round in its area, and all members of the host act on it.
 *
 * A round opens an epoch, or agrees on slots: the longest common prefix of what
 * the hosts offer. The data of small tensors travels with the slots; when a
 * round is over, the speaker's slots have the results. A round starts when a
 * host has something to offer and ends when all have joined it, so a small
 * request costs as many messages as an allreduce of a few bytes.
 *
 * Requests that wait for a lane wait here, before they are agreed on: requests
 * that come meanwhile join the same round, and can be fused with them.
 *
 * The speaker stores opened, agreed and ended in its area with release order,
 * and all ranks of the host load them with acquire order (ordered.c). The
 * results in its slots and the boundaries are written before agreed is stored.
 */
#include <string.h>

#include "base/status.h"
#include "core/agree/ordered_parts.h"
#include "kernels/kernels.h"

/* ----------------------------------------------------------------- an epoch */

/* Publishes the result of opening an epoch: that of the round. If the epoch was
 * refused, the coordinator may have opened the next one before the last message
 * of the round came to this rank. */
static void publish_opening(struct hvd__ordered *x,
                            const struct hvd__offer *result)
{
    uint64_t how = (uint64_t)((result->flags & HVD__OFFER_REFUSED) != 0) |
                   (uint64_t)((result->flags & HVD__OFFER_IMPOSSIBLE) != 0)
                       << 1;

    x->agreed = x->scanned = 0;
    atomic_store_explicit(&x->own->opened, (uint64_t)result->epoch << 2 | how,
                          memory_order_release);
}

int hvd__speaker_open(struct hvd__ordered *x, bool wanted, bool possible,
                      bool *moved)
{
    struct hvd__offer *offer = hvd__round_offer(x->round);
    bool refused = false;
    int done;

    if (!hvd__round_is_under_way(x->round)) {
        hvd__round_begin(x->round, x->epoch);
        offer->flags = HVD__OFFER_OPENS;
        if (!possible)
            offer->flags |= HVD__OFFER_IMPOSSIBLE;
        else if (!hvd__ordered_hear_accepted(x, &refused))
            return HVD_OK;
        /* What is in flight here was passed on, but a rank on its way to the
         * coordinator may hold it, and refuse the epoch: then all must come to
         * this round, or those who want something wait for this rank. */
        if (!wanted && !refused && hvd__table_busy(&x->set->engine->table) == 0)
            return HVD_OK;
        if (refused || !x->set->engine->settings.ordered)
            offer->flags |= HVD__OFFER_REFUSED;
        HVD_TRY(hvd__round_start(x->round));
    }
    done = hvd__round_step(x->round, moved);
    if (done > 0)
        publish_opening(x, offer);
    return done < 0 ? done : HVD_OK;
}

/* ----------------------------------------------------------------- an offer */

/* Returns the data that a rank of this host has with a slot. */
static const void *data_of(const struct hvd__ordered *x, int local,
                           const struct hvd__request *request, uint64_t slot)
{
    return x->areas[local] == x->own ? request->input
                                     : hvd__slot_data(x->areas[local], slot);
}

/* Writes the sum over the ranks of this host. */
static void write_sum(struct hvd__ordered *x, struct hvd__offer *offer,
                      const struct hvd__offer_slot *slot, uint64_t number)
{
    for (int i = 0; i < x->nareas; i++)
        x->sources[i] = data_of(x, i, slot->request, number);
    hvd__offer_add_up(offer, slot, slot->request->signature.prescale,
                      x->sources, x->nareas);
}

/* Writes the data of all ranks of this host, or their numbers. */
static void write_all(const struct hvd__ordered *x, struct hvd__offer *offer,
                      const struct hvd__offer_slot *slot, uint64_t number)
{
    size_t bytes = slot->bytes / (size_t)x->hosts->first[x->hosts->n];

    for (int i = 0; i < x->nareas; i++) {
        unsigned char *to =
            offer->data + hvd__offer_member(slot, x->hosts,
                                            x->hosts->first[x->hosts->own] + i);
        const int64_t *rows = &hvd__slot_at(x->areas[i], number)->rows;

        if (slot->way == HVD__WAY_ROWS)
            memcpy(to, rows, sizeof *rows);
        else if (slot->way == HVD__WAY_SPLITS && x->areas[i] == x->own)
            hvd__request_write_splits(slot->request,
                                      x->hosts->first[x->hosts->n], to);
        else if (bytes > 0)
            memcpy(to, data_of(x, i, slot->request, number), bytes);
    }
}

/* Adds a slot on which all ranks of this host agree. Returns false if the offer
 * is full. */
static bool offer_slot(struct hvd__ordered *x, struct hvd__offer *offer,
                       uint64_t number)
{
    const struct hvd__request *request =
        x->pending[number % HVD__LOG_SLOTS].request;
    enum hvd__way way = (enum hvd__way)request->way;
    int root = -1, local = 0;
    const struct hvd__offer_slot *slot;

    if (way == HVD__WAY_ROOT)
        root = hvd__hosts_find(
            x->hosts, hvd__set_find(x->set, request->signature.root), &local);
    if (!hvd__offer_add(offer, request, way, root))
        return false;
    slot = &offer->slots[offer->n - 1];
    if (hvd__way_sums(way))
        write_sum(x, offer, slot, number);
    else if (way != HVD__WAY_NONE && way != HVD__WAY_ROOT)
        write_all(x, offer, slot, number);
    else if (root == x->hosts->own && request->bytes > 0)
        memcpy(offer->data + slot->at, data_of(x, local, request, number),
               request->bytes);
    return true;
}

static bool needs_lane(const struct hvd__request *request)
{
    return hvd__way_needs_lane((enum hvd__way)request->way) &&
           request->signature.kind != HVD_BARRIER;
}

/* Returns the end of the slots that may be offered now: without room for
 * batches, those before the first that needs a lane. A host that has room
 * offers more than others, which changes nothing: all agree on what all offer.
 */
static uint64_t end_of_offer(const struct hvd__ordered *x)
{
    uint64_t number = x->agreed;

    if (hvd__executor_room(x->set) > 0)
        return x->scanned;
    while (number < x->scanned &&
           !needs_lane(x->pending[number % HVD__LOG_SLOTS].request))
        number++;
    return number;
}

/* Fills the offer of the next round. Returns false if there is nothing to
 * offer now, or if the epoch has ended, which this rank may not have acted on
 * yet. */
static bool fill_offer(struct hvd__ordered *x)
{
    struct hvd__offer *offer = hvd__round_offer(x->round);
    const struct hvd__knobs *knobs = &x->set->agreement->tune.now;
    enum hvd__verdict verdict = HVD__UNKNOWN;
    uint64_t number = x->agreed, end;

    if (atomic_load_explicit(&x->own->ended, memory_order_relaxed) == x->epoch)
        return false;
    while (x->scanned < x->posted &&
           (verdict = hvd__ordered_compare(x, x->scanned)) == HVD__AGREED)
        x->scanned++;
    end = end_of_offer(x);
    if (end == number && (end < x->scanned || verdict != HVD__DIFFERENT))
        return false;
    hvd__round_begin(x->round, x->epoch);
    if (x->set->agreement->coordinator)
        offer->values = (struct hvd__piece_values){knobs->fusion_threshold,
                                                   knobs->direct_max};
    while (number < end && offer_slot(x, offer, number))
        number++;
    if (number == x->scanned && verdict == HVD__DIFFERENT)
        offer->flags |= HVD__OFFER_CONFLICT;
    return true;
}

/* ----------------------------------------------------------------- a result */

/* Publishes the slots that all hosts have agreed on, with their results. */
static void publish_slots(struct hvd__ordered *x,
                          const struct hvd__offer *result)
{
    for (int i = 0; i < result->n; i++)
        hvd__offer_result(result, &result->slots[i],
                          hvd__slot_data(x->own, x->agreed + (uint64_t)i));
    if (result->n > 0) {
        uint64_t last = x->agreed + (uint64_t)result->n - 1;

        x->own->pieces[last % HVD__LOG_SLOTS] = result->values;
        hvd__slot_at(x->own, last)->flags |= HVD__SLOT_BOUNDARY;
        x->agreed = last + 1;
        atomic_store_explicit(&x->own->agreed, hvd__sequence_of(x, last),
                              memory_order_release);
    }
    if (result->flags & HVD__OFFER_CONFLICT)
        atomic_store_explicit(&x->own->ended, x->epoch, memory_order_release);
}

int hvd__speaker_step(struct hvd__ordered *x, bool *moved)
{
    int done;

    if (!hvd__round_is_under_way(x->round)) {
        if (!fill_offer(x))
            return HVD_OK;
        HVD_TRY(hvd__round_start(x->round));
        *moved = true;
    }
    done = hvd__round_step(x->round, moved);
    if (done > 0)
        publish_slots(x, hvd__round_offer(x->round));
    return done < 0 ? done : HVD_OK;
}
