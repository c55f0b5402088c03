/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece.c - requests that were agreed on in one round and need a batch, for a
 * process set on several hosts.
 *
 * All ranks agree on the same requests in the same order, but not at the same
 * time. Which of them are fused into one collective must not depend on how far
 * a rank has come. All ranks know which slots a round has decided: they fuse
 * the requests of that piece, and none of different pieces, all in the same
 * way.
 */
#include "base/status.h"
#include "core/agree/fuse.h"
#include "core/agree/ordered_parts.h"

static size_t fusion_bytes(const struct hvd__set *set,
                           const struct hvd__request *request)
{
    bool carries = hvd__signature_carries(&request->signature);
    int64_t rows = 0;

    for (int rank = 0; carries && rank < set->team.size; rank++)
        rows += request->state.carried[rank];
    return hvd__fusion_bytes(&request->signature, set->team.size, rows);
}

/* Takes a batch out of the piece; the rest remains in it. */
static struct hvd__request *take_batch(const struct hvd__set *set,
                                       struct hvd__request_list *piece,
                                       size_t threshold)
{
    struct hvd__fusion fusion = {.threshold = threshold};
    struct hvd__request_list batch = {0}, rest = {0};
    struct hvd__request *next;

    for (struct hvd__request *r = piece->first; r; r = next) {
        bool taken = hvd__fuse(&fusion, &r->signature, fusion_bytes(set, r));

        next = r->state.next;
        hvd__request_list_add(taken ? &batch : &rest, r);
    }
    *piece = rest;
    return batch.first;
}

int hvd__ordered_end_piece(struct hvd__set *set, uint64_t slot)
{
    struct hvd__ordered *x = &set->agreement->ordered;
    const struct hvd__piece_values *values =
        &x->areas[0]->pieces[slot % HVD__LOG_SLOTS];

    if (!(hvd__slot_at(x->areas[0], slot)->flags & HVD__SLOT_BOUNDARY))
        return HVD_OK;
    while (x->piece.first)
        HVD_TRY(hvd__execute(set, take_batch(set, &x->piece, values->threshold),
                             NULL, values->direct_max));
    return HVD_OK;
}
