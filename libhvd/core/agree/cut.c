/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/cut.h"

#include <stdlib.h>

#include "base/status.h"
#include "core/agree/fuse.h"
#include "core/agree/ordered_parts.h"

void hvd__cuts_init(struct hvd__cuts *cuts)
{
    *cuts = (struct hvd__cuts){0};
    cuts->tail = &cuts->agreed;
}

void hvd__cuts_fini(struct hvd__cuts *cuts)
{
    free(cuts->cuts);
    hvd__cuts_init(cuts);
}

void hvd__cuts_expect(struct hvd__cuts *cuts,
                      const struct hvd__signature *signature)
{
    cuts->nexpected += signature->kind != HVD_BARRIER;
}

void hvd__cuts_agree(struct hvd__cuts *cuts, struct hvd__entry *entry,
                     uint64_t mark)
{
    entry->mark = cuts->last_agreed = mark;
    entry->next = NULL;
    *cuts->tail = entry;
    cuts->tail = &entry->next;
}

bool hvd__cuts_make(struct hvd__set *set, struct hvd__cut *cut)
{
    const struct hvd__ordered *x = &set->ordered;
    struct hvd__cuts *cuts = &x->log->cuts;
    bool is_open = x->state == HVD__ORDERED_OPEN;
    bool agreed = cuts->agreed && cuts->last_agreed > cuts->last_cut;

    if (!agreed && !(is_open && cuts->nexpected > 0))
        return false;
    if (is_open && set->executor.nunfinished + cuts->n >= HVD__LANES)
        return false;
    *cut = (struct hvd__cut){
        .mark = is_open ? hvd__mark_of(x, x->posted - 1) : cuts->last_agreed,
        .threshold = hvd__coordinator_threshold(set->coordinator),
        .direct_max = set->direct_max};
    cuts->last_cut = cut->mark;
    cuts->nexpected = 0;
    return true;
}

int hvd__cuts_add(struct hvd__cuts *cuts, const struct hvd__cut *cut)
{
    if (cuts->n == cuts->capacity) {
        int capacity = 2 * cuts->capacity + 4;
        struct hvd__cut *grown =
            realloc(cuts->cuts, (size_t)capacity * sizeof *grown);

        if (!grown)
            return hvd__fail_memory((size_t)capacity * sizeof *grown);
        cuts->cuts = grown;
        cuts->capacity = capacity;
    }
    cuts->cuts[cuts->n++] = *cut;
    return HVD_OK;
}

/* ------------------------------------------------------------------- pieces
 */

/* The requests up to a mark, taken off; *n of them. */
static struct hvd__entry *take_piece(struct hvd__cuts *cuts, uint64_t mark,
                                     int *n)
{
    struct hvd__entry *piece = cuts->agreed, **link = &cuts->agreed;

    *n = 0;
    while (*link && (*link)->mark <= mark) {
        link = &(*link)->next;
        ++*n;
    }
    if (*n == 0)
        return NULL;
    cuts->agreed = *link;
    *link = NULL;
    if (!cuts->agreed)
        cuts->tail = &cuts->agreed;
    return piece;
}

static size_t fusion_bytes(const struct hvd__set *set,
                           const struct hvd__entry *entry)
{
    int64_t rows = 0;

    for (int rank = 0; entry->carried && rank < set->team.size; rank++)
        rows += entry->carried[rank];
    return hvd__fusion_bytes(&entry->signature, set->team.size, rows);
}

/* Take a batch out of a piece of n requests: the rest of it, *n of them. */
static struct hvd__entry *take_batch(const struct hvd__set *set,
                                     struct hvd__entry *piece, int *n,
                                     size_t threshold,
                                     struct hvd__fusee *fusees, bool *taken,
                                     struct hvd__entry **batch)
{
    struct hvd__entry *rest = NULL, **tails[2] = {&rest, batch};
    int i = 0;

    for (const struct hvd__entry *entry = piece; entry; entry = entry->next)
        fusees[i++] = (struct hvd__fusee){.signature = &entry->signature,
                                          .bytes = fusion_bytes(set, entry)};
    *n -= hvd__fuse(fusees, *n, threshold, taken);
    for (i = 0; piece; piece = piece->next, i++) {
        *tails[taken[i]] = piece;
        tails[taken[i]] = &piece->next;
    }
    *tails[0] = *tails[1] = NULL;
    return rest;
}

static int run_piece(struct hvd__set *set, const struct hvd__cut *cut)
{
    int n, status = HVD_OK;
    struct hvd__entry *piece =
        take_piece(&set->ordered.log->cuts, cut->mark, &n);
    struct hvd__fusee *fusees = malloc((size_t)(n + 1) * sizeof *fusees);
    bool *taken = malloc((size_t)(n + 1) * sizeof *taken);

    if (!fusees || !taken)
        status = hvd__fail_memory((size_t)n * sizeof *fusees);
    while (piece && status == HVD_OK) {
        struct hvd__entry *batch = NULL;

        piece =
            take_batch(set, piece, &n, cut->threshold, fusees, taken, &batch);
        status = hvd__execute(set, batch, NULL, cut->direct_max);
    }
    free(fusees);
    free(taken);
    return status;
}

/* All that belongs to it is agreed on here. It may have come before this rank
 * has seen that its epoch is open. */
static bool is_whole(const struct hvd__ordered *x, const struct hvd__cut *cut)
{
    if (x->state == HVD__ORDERED_CLOSED ||
        cut->mark >> HVD__EPOCH_SHIFT < x->epoch)
        return true;
    return x->state == HVD__ORDERED_OPEN &&
           cut->mark < hvd__mark_of(x, x->decided);
}

int hvd__cuts_run(struct hvd__set *set)
{
    struct hvd__cuts *cuts = &set->ordered.log->cuts;
    int done = 0, status = HVD_OK;

    while (done < cuts->n && status == HVD_OK &&
           is_whole(&set->ordered, &cuts->cuts[done]))
        status = run_piece(set, &cuts->cuts[done++]);
    cuts->n -= done;
    for (int i = 0; i < cuts->n; i++)
        cuts->cuts[i] = cuts->cuts[done + i];
    return status;
}
