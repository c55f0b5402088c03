/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/batch.h"

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

bool hvd__fuse(struct hvd__fusion *f, const struct hvd__signature *signature,
               size_t bytes)
{
    if (!f->first)
        f->first = signature;
    else if (f->bytes > f->threshold || bytes > f->threshold - f->bytes ||
             !hvd__fusible(f->first, signature))
        return false;
    f->bytes += bytes;
    return true;
}
