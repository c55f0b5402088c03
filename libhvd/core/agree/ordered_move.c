/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small gathers, exchanges and their like: what each rank brings lies beside
 * its slot, all of it, and each rank takes from there what is its own.
 */
#include <string.h>

#include "core/agree/ordered_parts.h"

/* Shares whose sizes are not the same on all ranks are for the lanes, and so
 * is what is done to them beside moving or reducing. */
bool hvd__ordered_may_move(const struct hvd__request *request)
{
    const struct hvd__signature *s = &request->signature;

    switch (s->kind) {
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

static bool is_root(const struct hvd__set *set,
                    const struct hvd__request *request)
{
    return request->signature.root == set->team.world[set->team.rank];
}

static void tell_counts(const struct hvd__set *set,
                        struct hvd__request *request, int64_t each)
{
    for (int rank = 0; request->counts && rank < set->team.size; rank++)
        request->counts[rank] = each;
}

/* bytes of all ranks, from an offset in what each brings, one after the
 * other. */
static void collect(const struct hvd__set *set, struct hvd__request *request,
                    uint64_t slot, size_t offset, size_t bytes)
{
    unsigned char *to = request->output;

    if (bytes == 0)
        return; /* there may be no output */
    for (int rank = 0; rank < set->team.size; rank++)
        memcpy(
            to + (size_t)rank * bytes,
            hvd__ordered_data(set->ordered.areas[rank], slot, request->bytes) +
                offset,
            bytes);
}

/* count elements of all ranks, from a start in what each brings. */
static void reduce(struct hvd__set *set, struct hvd__request *request,
                   uint64_t slot, int64_t start, int64_t count)
{
    const struct hvd__reduction reduction =
        hvd__ordered_reduction(set, request);
    size_t offset = (size_t)start * hvd__dtype_bytes(request->signature.dtype);
    const void **sources = set->ordered.sources;

    for (int rank = 0; rank < set->team.size; rank++)
        sources[rank] =
            hvd__ordered_data(set->ordered.areas[rank], slot, request->bytes) +
            offset;
    if (count > 0)
        hvd__reduce(&reduction, request->output, sources, set->team.size,
                    count);
}

void hvd__ordered_move(struct hvd__set *set, struct hvd__request *request,
                       uint64_t slot)
{
    const int n = set->team.size, us = set->team.rank;
    size_t part = request->bytes / (size_t)n;
    struct hvd__slice rows;
    int64_t row;

    switch (request->signature.kind) {
    case HVD_GATHER:
    case HVD_ALLGATHER:
        tell_counts(set, request, request->rows);
        if (request->signature.kind == HVD_GATHER && !is_root(set, request))
            return;
        request->out_rows = request->rows * n;
        collect(set, request, slot, 0, request->bytes);
        return;
    case HVD_ALLTOALL:
        tell_counts(set, request, request->rows / n);
        request->out_rows = request->rows;
        collect(set, request, slot, (size_t)us * part, part);
        return;
    case HVD_REDUCESCATTER:
        rows = hvd__slice_of(request->rows, us, n);
        row = request->rows > 0 ? request->count / request->rows : 0;
        request->out_rows = rows.count;
        reduce(set, request, slot, rows.start * row, rows.count * row);
        return;
    default:
        if (is_root(set, request))
            reduce(set, request, slot, 0, request->count);
    }
}
