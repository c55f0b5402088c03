/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/fuse.h"

#include "base/dtype.h"
#include "core/request/compress.h"

bool hvd__fusible(const struct hvd__signature *a,
                  const struct hvd__signature *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case HVD_BROADCAST: return a->root == b->root;
    case HVD_ALLGATHER: return true;
    case HVD_ALLREDUCE:
    case HVD_REDUCE:
    case HVD_REDUCESCATTER:
        return a->dtype == b->dtype && a->op == b->op && a->root == b->root &&
               a->flags == b->flags && a->compression == b->compression &&
               a->prescale == b->prescale && a->postscale == b->postscale &&
               a->op != HVD_ADASUM && !hvd__compression_encodes(a->compression);
    default: return false;
    }
}

size_t hvd__fusion_bytes(const struct hvd__signature *s, int nranks,
                         int64_t rows)
{
    switch (s->kind) {
    case HVD_ALLGATHER:
        return hvd__signature_varies(s)
                   ? (size_t)rows * hvd__signature_row_bytes(s)
                   : hvd__signature_bytes(s) * (size_t)nranks;
    /* The result lies behind the input. */
    case HVD_REDUCESCATTER: return 2 * hvd__signature_bytes(s);
    default:
        return (size_t)hvd__signature_count(s) *
               hvd__dtype_bytes(
                   hvd__compression_wire(s->compression, s->dtype));
    }
}

int hvd__fuse(const struct hvd__fusee *ready, int n, size_t threshold,
              bool *taken)
{
    size_t total = n > 0 ? ready[0].bytes : 0;
    int ntaken = n > 0;

    for (int i = 0; i < n; i++) {
        taken[i] = i == 0;
        if (i == 0 || total > threshold || ready[i].bytes > threshold - total ||
            !hvd__fusible(ready[0].signature, ready[i].signature))
            continue;
        taken[i] = true;
        total += ready[i].bytes;
        ntaken++;
    }
    return ntaken;
}
