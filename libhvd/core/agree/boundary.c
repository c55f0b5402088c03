/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/boundary.h"

#include <stdlib.h>

#include "base/status.h"
#include "core/agree/fuse.h"
#include "core/agree/ordered_parts.h"

void hvd__boundaries_init(struct hvd__boundaries *boundaries)
{
    *boundaries = (struct hvd__boundaries){0};
    boundaries->tail = &boundaries->agreed;
}

void hvd__boundaries_fini(struct hvd__boundaries *boundaries)
{
    free(boundaries->boundaries);
    hvd__boundaries_init(boundaries);
}

void hvd__boundaries_expect(struct hvd__boundaries *boundaries,
                            const struct hvd__signature *signature)
{
    boundaries->nexpected += signature->kind != HVD_BARRIER;
}

void hvd__boundaries_agree(struct hvd__boundaries *boundaries,
                           struct hvd__request *request, uint64_t sequence)
{
    request->state.sequence = boundaries->last_agreed = sequence;
    request->state.next = NULL;
    *boundaries->tail = request;
    boundaries->tail = &request->state.next;
}

bool hvd__boundaries_make(struct hvd__set *set, struct hvd__boundary *boundary)
{
    const struct hvd__ordered *x = &set->agreement->ordered;
    struct hvd__boundaries *boundaries = &x->log->boundaries;
    bool is_open = x->state == HVD__ORDERED_OPEN;
    bool agreed = boundaries->agreed &&
                  boundaries->last_agreed > boundaries->last_boundary;

    if (!agreed && !(is_open && boundaries->nexpected > 0))
        return false;
    if (is_open && boundaries->n >= hvd__executor_room(set))
        return false;
    *boundary = (struct hvd__boundary){
        .sequence = is_open ? hvd__sequence_of(x, x->posted - 1)
                            : boundaries->last_agreed,
        .threshold = hvd__coordinator_threshold(set->agreement->coordinator),
        .direct_max = set->agreement->direct_max};
    boundaries->last_boundary = boundary->sequence;
    boundaries->nexpected = 0;
    return true;
}

int hvd__boundaries_add(struct hvd__boundaries *boundaries,
                        const struct hvd__boundary *boundary)
{
    if (boundaries->n == boundaries->capacity) {
        int capacity = 2 * boundaries->capacity + 4;
        struct hvd__boundary *grown =
            realloc(boundaries->boundaries, (size_t)capacity * sizeof *grown);

        if (!grown)
            return hvd__fail_memory((size_t)capacity * sizeof *grown);
        boundaries->boundaries = grown;
        boundaries->capacity = capacity;
    }
    boundaries->boundaries[boundaries->n++] = *boundary;
    return HVD_OK;
}

/* ------------------------------------------------------------------- pieces
 */

/* Removes the requests up to a sequence number from the list. *n becomes their
 * number. */
static struct hvd__request *take_piece(struct hvd__boundaries *boundaries,
                                       uint64_t sequence, int *n)
{
    struct hvd__request *piece = boundaries->agreed,
                        **link = &boundaries->agreed;

    *n = 0;
    while (*link && (*link)->state.sequence <= sequence) {
        link = &(*link)->state.next;
        ++*n;
    }
    if (*n == 0)
        return NULL;
    boundaries->agreed = *link;
    *link = NULL;
    if (!boundaries->agreed)
        boundaries->tail = &boundaries->agreed;
    return piece;
}

static size_t fusion_bytes(const struct hvd__set *set,
                           const struct hvd__request *request)
{
    int64_t rows = 0;

    for (int rank = 0; request->state.carried && rank < set->team.size; rank++)
        rows += request->state.carried[rank];
    return hvd__fusion_bytes(&request->signature, set->team.size, rows);
}

/* Takes a batch out of a piece of *n requests. Returns the rest; *n becomes its
 * length. */
static struct hvd__request *take_batch(const struct hvd__set *set,
                                       struct hvd__request *piece, int *n,
                                       size_t threshold,
                                       struct hvd__fusee *fusees, bool *taken,
                                       struct hvd__request **batch)
{
    struct hvd__request *rest = NULL, **tails[2] = {&rest, batch};
    int i = 0;

    for (const struct hvd__request *request = piece; request;
         request = request->state.next)
        fusees[i++] = (struct hvd__fusee){.signature = &request->signature,
                                          .bytes = fusion_bytes(set, request)};
    *n -= hvd__fuse(fusees, *n, threshold, taken);
    for (i = 0; piece; piece = piece->state.next, i++) {
        *tails[taken[i]] = piece;
        tails[taken[i]] = &piece->state.next;
    }
    *tails[0] = *tails[1] = NULL;
    return rest;
}

static int run_piece(struct hvd__set *set, const struct hvd__boundary *boundary)
{
    int n, status = HVD_OK;
    struct hvd__request *piece = take_piece(
        &set->agreement->ordered.log->boundaries, boundary->sequence, &n);
    struct hvd__fusee *fusees = malloc((size_t)(n + 1) * sizeof *fusees);
    bool *taken = malloc((size_t)(n + 1) * sizeof *taken);

    if (!fusees || !taken)
        status = hvd__fail_memory((size_t)n * sizeof *fusees);
    while (piece && status == HVD_OK) {
        struct hvd__request *batch = NULL;

        piece = take_batch(set, piece, &n, boundary->threshold, fusees, taken,
                           &batch);
        status = hvd__execute(set, batch, NULL, boundary->direct_max);
    }
    free(fusees);
    free(taken);
    return status;
}

/* Returns true if all of a piece is agreed on here. Its boundary may come
 * before this rank has seen that its epoch is open. */
static bool is_whole(const struct hvd__ordered *x,
                     const struct hvd__boundary *boundary)
{
    if (x->state == HVD__ORDERED_CLOSED ||
        boundary->sequence >> HVD__EPOCH_SHIFT < x->epoch)
        return true;
    return x->state == HVD__ORDERED_OPEN &&
           boundary->sequence < hvd__sequence_of(x, x->decided);
}

int hvd__boundaries_run(struct hvd__set *set)
{
    struct hvd__boundaries *boundaries =
        &set->agreement->ordered.log->boundaries;
    int done = 0, status = HVD_OK;

    while (done < boundaries->n && status == HVD_OK &&
           is_whole(&set->agreement->ordered, &boundaries->boundaries[done]))
        status = run_piece(set, &boundaries->boundaries[done++]);
    boundaries->n -= done;
    for (int i = 0; i < boundaries->n; i++)
        boundaries->boundaries[i] = boundaries->boundaries[done + i];
    return status;
}
