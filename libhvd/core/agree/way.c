/* SPDX-License-Identifier: Apache-2.0 */
/*
 * way.c - chooses how the data of a request goes in ordered mode: with its
 * slot, or not at all, so that it is reduced in place or goes to the lanes.
 *
 * On one host all ranks read the data next to the slots of all. Where the
 * output of an allreduce lies in a heap, each could reduce a share instead, so
 * less data goes with the slot. That depends on the rank: all ranks must have
 * data with the slot, or none uses it.
 *
 * Between hosts the data travels with the rounds. Where a sum could travel
 * instead of all data, the last message, with half of the data, still fits into
 * one packet of Ethernet: a second packet takes longer than one more addition.
 * Where all members need all data, it takes no shorter way than this. Where
 * that costs less than to pass on all of it, or to wait for a lane, a sum goes
 * in halves, and may then be twice as large; the shares of a reducescatter go
 * as halves do, and need not come back. The blocks of an alltoall pass through
 * other hosts, until that costs more than messages of their own, which then go
 * beside the round if each host has one member; of several, only one could send
 * while the round is under way. All data of a gather comes to each host once,
 * as by any other way, but a fold sends it back in one message: on 2^k hosts,
 * where there is none, it may be larger. In lanes it would go along a ring, in
 * as many steps as there are hosts; so if it is too large for a round, it goes
 * straight, too, where it can, as do shares of a reducescatter. The data of a
 * broadcast leaves its root's host once in every step of a round, in few steps;
 * along a chain of hosts it leaves each once, in many. So of many broadcasts in
 * a round only the first go with it.
 */
#include "core/agree/agreement.h"
#include "kernels/kernels.h"
#include "transport/algo/algo.h"

/* The most bytes of all members' data that go with a slot between hosts, of a
 * message's data, of a result on a host, and of one member's data or of a sum,
 * whatever HVD_SHM_SMALL says: several must fit into the ring of payload, and a
 * result wherever in the ring it begins. Longer messages stall at times over
 * TCP, so that blocks which can go straight to their receivers rather do so
 * than pass through other hosts in messages of more than PASSED_BYTES. */
enum {
    NESTING_BYTES = 2 << 10,
    ALL_BYTES = 4 << 10,
    MESSAGE_BYTES = 64 << 10,
    RESULT_BYTES = HVD__PAYLOAD_BYTES / 2,
    SHARED_BYTES = 32 << 10,
    SENT_BYTES = HVD__PAYLOAD_BYTES / 8,
    PASSED_BYTES = 48 << 10,
    SHORT_BYTES = 32 << 10
};
_Static_assert((int)MESSAGE_BYTES <= (int)HVD__OFFER_RESULTS,
               "a gather or an alltoall fits");

/* The lanes handle shares whose sizes differ between ranks, and shares that
 * need more than moving or reducing. */
bool hvd__ordered_may_move(const struct hvd__request *request)
{
    const struct hvd__signature *s = &request->signature;

    switch (s->kind) {
    case HVD_ALLREDUCE:
        return s->op != HVD_ADASUM && s->compression == HVD_COMPRESSION_NONE;
    case HVD_ALLGATHER:
    case HVD_GATHER:
    case HVD_ALLTOALL:
    case HVD_REDUCESCATTER:
    case HVD_REDUCE:
        return !hvd__signature_varies(s) && !request->splits && s->flags == 0 &&
               s->op != HVD_ADASUM;
    default: return false;
    }
}

/* Returns true if each host may reduce its members' data first. Elements of 16
 * bits would be rounded too often, and on one host sums are always made in the
 * order of the ranks. */
static bool may_nest(const struct hvd__set *set, const struct hvd__signature *s)
{
    const struct hvd__reduction reduction = {.dtype = s->dtype,
                                             .op = s->op,
                                             .prescale = s->prescale,
                                             .postscale = s->postscale};

    return set->hosts && hvd__kind_has(s->kind, HVD__HAS_OP) &&
           s->dtype != HVD_FLOAT16 && s->dtype != HVD_BFLOAT16 &&
           hvd__reduction_nests(&reduction,
                                set->engine->settings.deterministic ||
                                    set->hosts->is_one);
}

/* Returns the most bytes of one member's data, or of a sum. */
static size_t most_of_one(const struct hvd__set *set)
{
    size_t most = set->engine->settings.shm_small * (set->hosts ? 2 : 1);

    return most < SENT_BYTES ? most : SENT_BYTES;
}

/* Returns the most bytes of all members' data. */
static size_t most_of_all(const struct hvd__set *set,
                          const struct hvd__request *request, bool nests)
{
    hvd_kind kind = request->signature.kind;
    size_t most = 2 * most_of_one(set);

    if (!set->hosts)
        return kind == HVD_ALLREDUCE &&
                       hvd__heap_place(set->shm->heap, request->output,
                                       request->bytes)
                   ? most / 8
                   : most;
    if (nests)
        return NESTING_BYTES;
    if (kind != HVD_ALLGATHER && kind != HVD_GATHER)
        return ALL_BYTES;
    return hvd__way_message_bytes(HVD__WAY_ALL, request, set->hosts) <=
                   MESSAGE_BYTES
               ? RESULT_BYTES
               : 0;
}

/* Several hosts only. Returns the most bytes of one member's blocks. Members
 * that are alone on their hosts keep none in the ring, but their results. */
static size_t most_of_blocks(const struct hvd__set *set)
{
    return most_of_one(set) * (set->hosts->widest == 1 ? 4 : 1);
}

/* Returns true if the blocks of a request, one from each member to each, may go
 * straight to their receivers. Every member has a block for every other: a host
 * receives what others send although it may know nothing of the request. Of
 * more bytes only short messages go, as they do in a lane. */
static bool goes_straight(const struct hvd__set *set,
                          const struct hvd__request *request)
{
    int n = set->team.size;
    hvd_kind kind = request->signature.kind;
    size_t most = HVD__STRAIGHT_BYTES / SENT_BYTES * most_of_one(set);
    size_t block = hvd__way_block(request, 0, n).bytes;

    if (!set->hosts || !hvd__blocks_may_go_straight(set->hosts) ||
        (kind != HVD_ALLTOALL && kind != HVD_ALLGATHER &&
         (kind != HVD_REDUCESCATTER || request->rows < n)))
        return false;
    return block <= MESSAGE_BYTES &&
           block * (size_t)n <= (block <= SHORT_BYTES ? most : most / 2);
}

/* Several hosts only. Returns the way of the blocks of an alltoall, or of its
 * splits, if they fit into a round, and several results into the ring. */
static enum hvd__way way_of_blocks(const struct hvd__set *set,
                                   const struct hvd__request *request)
{
    bool varies = hvd__signature_varies(&request->signature);
    enum hvd__way way = varies ? HVD__WAY_SPLITS : HVD__WAY_EACH;
    size_t n = (size_t)set->team.size;
    size_t all = hvd__way_bytes(way, request, set->team.size);
    size_t most = !varies && hvd__blocks_may_go_straight(set->hosts)
                      ? PASSED_BYTES
                      : MESSAGE_BYTES;

    if (!varies && !hvd__ordered_may_move(request))
        return HVD__WAY_NONE;
    if (hvd__way_message_bytes(way, request, set->hosts) <= most &&
        all <= HVD__OFFER_DATA &&
        all / n * (size_t)set->hosts->widest <= RESULT_BYTES &&
        (varies || (request->bytes <= most_of_blocks(set) &&
                    hvd__exchange_goes_along(&set->team, set->hosts,
                                             (int64_t)(request->bytes / n)))))
        return way;
    return !varies && goes_straight(set, request) ? HVD__WAY_STRAIGHT
                                                  : HVD__WAY_NONE;
}

/* Several hosts only. Returns true if a round has far fewer messages than there
 * are hosts, none of which takes part for another, and if members keep no data
 * in the ring. */
static bool sends_few(const struct hvd__set *set)
{
    enum { MANY_HOSTS = 8 };

    return set->hosts->widest == 1 && set->hosts->n > MANY_HOSTS &&
           hvd__pairing_of(0, set->hosts->n).extra == 0;
}

/* Several hosts only. Returns the way of a sum that each host makes of its
 * members' data first. */
static enum hvd__way way_of_sum(const struct hvd__set *set,
                                const struct hvd__request *request)
{
    hvd_kind kind = request->signature.kind;
    size_t most = most_of_one(set), twice = sends_few(set) ? 2 : 1;

    if (kind == HVD_REDUCESCATTER && request->bytes <= 2 * twice * most &&
        hvd__way_message_bytes(HVD__WAY_SHARES, request, set->hosts) <=
            twice * SHARED_BYTES)
        return HVD__WAY_SHARES;
    if (kind == HVD_ALLREDUCE && request->bytes <= 2 * most &&
        hvd__sum_halves(&set->team, set->hosts, (int64_t)request->bytes,
                        request->bytes <= most))
        return HVD__WAY_HALVES;
    if (kind == HVD_REDUCESCATTER || request->bytes > most ||
        (kind == HVD_ALLREDUCE &&
         hvd__sum_waits(&set->team, set->hosts, (int64_t)request->bytes)))
        return HVD__WAY_NONE;
    return HVD__WAY_SUM;
}

enum hvd__way hvd__way_in_round(const struct hvd__hosts *hosts,
                                const struct hvd__request *request,
                                size_t *broadcast_bytes)
{
    if (request->way != HVD__WAY_ROOT || hosts->n == 2)
        return (enum hvd__way)request->way;
    *broadcast_bytes += request->bytes;
    return *broadcast_bytes <= MESSAGE_BYTES ? HVD__WAY_ROOT : HVD__WAY_NONE;
}

enum hvd__way hvd__way_of(const struct hvd__set *set,
                          const struct hvd__request *request)
{
    const struct hvd__signature *s = &request->signature;
    size_t most = most_of_one(set);
    enum hvd__way way = HVD__WAY_NONE;
    bool nests;

    if (hvd__signature_carries(s))
        return HVD__WAY_ROWS;
    if (s->kind == HVD_BARRIER || set->engine->settings.consistency_check)
        return HVD__WAY_NONE;
    if (s->kind == HVD_ALLTOALL && set->hosts)
        return way_of_blocks(set, request);
    if (s->kind == HVD_BROADCAST)
        return request->bytes <= most ? HVD__WAY_ROOT : HVD__WAY_NONE;
    if (!hvd__ordered_may_move(request))
        return HVD__WAY_NONE;
    nests = may_nest(set, s);
    if (request->bytes <= most && request->bytes * (size_t)set->team.size <=
                                      most_of_all(set, request, nests))
        return HVD__WAY_ALL;
    if (nests)
        way = way_of_sum(set, request);
    return way == HVD__WAY_NONE && goes_straight(set, request)
               ? HVD__WAY_STRAIGHT
               : way;
}
