/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/piece.h"

#include <stdlib.h>

#include "base/status.h"
#include "core/agree/fuse.h"
#include "core/run/execute.h"
#include "core/table/set.h"

void hvd__piece_init(struct hvd__piece *piece)
{
    *piece = (struct hvd__piece){0};
    piece->tail = &piece->requests;
}

void hvd__piece_add(struct hvd__piece *piece, struct hvd__request *request)
{
    request->state.next = NULL;
    *piece->tail = request;
    piece->tail = &request->state.next;
    piece->n++;
}

static size_t fusion_bytes(const struct hvd__set *set,
                           const struct hvd__request *request)
{
    int64_t rows = 0;

    for (int rank = 0; request->state.carried && rank < set->team.size; rank++)
        rows += request->state.carried[rank];
    return hvd__fusion_bytes(&request->signature, set->team.size, rows);
}

/* Takes a batch out of the piece; the rest remains in it. */
static struct hvd__request *take_batch(const struct hvd__set *set,
                                       struct hvd__piece *piece,
                                       size_t threshold,
                                       struct hvd__fusee *fusees, bool *taken)
{
    struct hvd__request *request = piece->requests, *batch = NULL;
    struct hvd__request **tail = &batch;
    int n = piece->n, i = 0;

    for (const struct hvd__request *r = request; r; r = r->state.next)
        fusees[i++] = (struct hvd__fusee){.signature = &r->signature,
                                          .bytes = fusion_bytes(set, r)};
    hvd__fuse(fusees, n, threshold, taken);
    hvd__piece_init(piece);
    for (i = 0; i < n; i++) {
        struct hvd__request *next = request->state.next;

        if (taken[i]) {
            *tail = request;
            tail = &request->state.next;
        } else {
            hvd__piece_add(piece, request);
        }
        request = next;
    }
    *tail = NULL;
    return batch;
}

int hvd__piece_run(struct hvd__set *set, struct hvd__piece *piece,
                   const struct hvd__piece_values *values)
{
    struct hvd__fusee *fusees;
    bool *taken;
    int n = piece->n, status = HVD_OK;

    if (n == 0)
        return HVD_OK;
    fusees = malloc((size_t)n * sizeof *fusees);
    taken = malloc((size_t)n * sizeof *taken);
    if (!fusees || !taken)
        status = hvd__fail_memory((size_t)n * sizeof *fusees);
    while (piece->n > 0 && status == HVD_OK)
        status = hvd__execute(
            set, take_batch(set, piece, values->threshold, fusees, taken), NULL,
            values->direct_max);
    free(fusees);
    free(taken);
    return status;
}
