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
 * All ranks of the host see what the speaker stores in its area (shm.h). The
 * results in its slots and the boundaries are written before agreed is stored.
 */
#include <string.h>

#include "base/status.h"
#include "core/agree/agreement.h"
#include "kernels/kernels.h"

/* ----------------------------------------------------------------- an epoch */

int hvd__speaker_open(struct hvd__ordered *x, bool wanted, bool possible,
                      bool *moved)
{
    struct hvd__offer *offer = &x->round->offer;
    bool refused = false;
    int done;

    if (!x->round->is_under_way) {
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
    if (done <= 0)
        return done;
    x->agreed = x->scanned = 0;
    /* The epoch is that of the round: if it was refused, the coordinator may
     * have opened the next one before the last message came to this rank. */
    hvd__word_set(&x->own->opened,
                  (uint64_t)offer->epoch << 2 |
                      (uint64_t)((offer->flags & HVD__OFFER_REFUSED) != 0) |
                      (uint64_t)((offer->flags & HVD__OFFER_IMPOSSIBLE) != 0)
                          << 1);
    return HVD_OK;
}

/* ----------------------------------------------------------------- an offer */

/* Returns the data that a rank of this host has with a slot. */
static const void *data_of(const struct hvd__ordered *x, int local,
                           const struct hvd__request *request, uint64_t number)
{
    if (request->way == HVD__WAY_ROWS)
        return &hvd__slot_at(x->areas[local], number)->rows;
    return x->areas[local] == x->own && request->way != HVD__WAY_SPLITS
               ? request->input
               : hvd__slot_data(x->areas[local], number);
}

/* Writes the data of this host with a slot: the sum over its ranks, the data of
 * all of them, or that of the root, which has a number on its host. */
static void write_data(struct hvd__ordered *x, struct hvd__offer *offer,
                       const struct hvd__offer_slot *slot, int root,
                       uint64_t number)
{
    const struct hvd__hosts *hosts = x->hosts;
    size_t bytes = slot->bytes;

    for (int i = 0; i < x->nareas; i++)
        x->sources[i] = data_of(x, i, slot->request, number);
    if (slot->way == HVD__WAY_STRAIGHT) {
        hvd__straight_fill(&x->round->straight, offer, slot);
    } else if (hvd__way_sums(slot->way)) {
        hvd__offer_add_up(offer, slot, slot->request->signature.prescale,
                          x->sources, x->nareas);
    } else if (slot->way == HVD__WAY_ROOT) {
        if (slot->root == hosts->own && bytes > 0)
            memcpy(offer->data + slot->at, x->sources[root], bytes);
    } else if (bytes > 0) {
        bytes /= (size_t)hosts->first[hosts->n];
        for (int i = 0; i < x->nareas; i++)
            memcpy(offer->data + hvd__offer_member(
                                     slot, hosts, hosts->first[hosts->own] + i),
                   x->sources[i], bytes);
    }
}

/* Adds a slot on which all ranks of this host agree. Returns false if the offer
 * is full. */
static bool offer_slot(struct hvd__ordered *x, struct hvd__offer *offer,
                       uint64_t number)
{
    const struct hvd__request *request =
        x->pending[number % HVD__LOG_SLOTS].request;
    enum hvd__way way =
        hvd__way_in_round(x->hosts, request, &offer->broadcast_bytes);
    int root = -1, local = 0;

    if (way == HVD__WAY_ROOT)
        root = hvd__hosts_find(
            x->hosts, hvd__set_find(x->set, request->signature.root), &local);
    if (!hvd__offer_add(offer, request, way, root))
        return false;
    write_data(x, offer, &offer->slots[offer->n - 1], local, number);
    return true;
}

/* Returns the end of the slots that may be offered now: without room for
 * batches, those before the first that needs a lane. A host that has room
 * offers more than others, which changes nothing: all agree on what all offer.
 */
static uint64_t end_of_offer(const struct hvd__ordered *x)
{
    uint64_t number = x->agreed;
    size_t broadcast_bytes = 0;

    if (hvd__executor_room(x->set) > 0)
        return x->scanned;
    for (; number < x->scanned; number++) {
        const struct hvd__request *request =
            x->pending[number % HVD__LOG_SLOTS].request;

        if (hvd__way_needs_lane(request, hvd__way_in_round(x->hosts, request,
                                                           &broadcast_bytes)))
            break;
    }
    return number;
}

/* Fills the offer of the next round. Returns false if there is nothing to
 * offer now, or if the epoch has ended, which this rank may not have acted on
 * yet. */
static bool fill_offer(struct hvd__ordered *x)
{
    struct hvd__offer *offer = &x->round->offer;
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
        hvd__word_set(&x->own->agreed, hvd__sequence_of(x, last));
    }
    if (result->flags & HVD__OFFER_CONFLICT)
        hvd__word_set(&x->own->ended, x->epoch);
}

int hvd__speaker_step(struct hvd__ordered *x, bool *moved)
{
    int done;

    if (!x->round->is_under_way) {
        if (!fill_offer(x))
            return HVD_OK;
        HVD_TRY(hvd__round_start(x->round));
        *moved = true;
    }
    done = hvd__round_step(x->round, moved);
    if (done > 0)
        publish_slots(x, &x->round->offer);
    return done < 0 ? done : HVD_OK;
}
