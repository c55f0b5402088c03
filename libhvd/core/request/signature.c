/* SPDX-License-Identifier: Apache-2.0 */
#include "core/request/signature.h"

#include <string.h>

#include "base/dtype.h"
#include "base/fingerprint.h"
#include "base/text.h"
#include "core/request/compress.h"

bool hvd__signature_varies(const struct hvd__signature *s)
{
    return s->ndim > 0 && s->shape[0] == HVD__VARIES;
}

bool hvd__signature_carries(const struct hvd__signature *s)
{
    return (hvd__signature_varies(s) && s->kind != HVD_ALLTOALL) ||
           hvd__compression_encodes(s->compression);
}

bool hvd__signature_equal(const struct hvd__signature *a,
                          const struct hvd__signature *b)
{
    /* Scales are finite, so == is equality. */
    return a->kind == b->kind && a->dtype == b->dtype && a->op == b->op &&
           a->root == b->root && a->flags == b->flags &&
           a->compression == b->compression && a->ndim == b->ndim &&
           a->prescale == b->prescale && a->postscale == b->postscale &&
           memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

uint64_t hvd__signature_fingerprint(uint64_t before,
                                    const struct hvd__signature *s)
{
    /* Kinds, dtypes, ops and dimensions are small, so that a few words hold
     * them. Adding 0.0 turns -0.0 into 0.0. */
    const double scales[] = {s->prescale + 0.0, s->postscale + 0.0};
    const bool scaled = scales[0] != 1 || scales[1] != 1;
    uint64_t words[2 + HVD_MAX_DIMS] = {
        (uint64_t)((uint32_t)s->kind | (uint32_t)s->dtype << 8 |
                   (uint32_t)s->op << 16 | (uint32_t)s->ndim << 24)
                << 32 |
            (uint32_t)s->root,
        (uint64_t)(uint32_t)s->flags << 32 |
            ((uint32_t)s->compression << 1 | scaled)};

    if (hvd__compression_encodes(s->compression)) {
        const char *name = hvd_compression_name(s->compression);
        before =
            hvd__fingerprint(before, name ? name : "", name ? strlen(name) : 0);
    }
    if (scaled)
        before = hvd__fingerprint(before, scales, sizeof scales);
    for (int32_t i = 0; i < s->ndim; i++)
        words[2 + i] = (uint64_t)s->shape[i];
    return hvd__fingerprint(before, words,
                            (size_t)(2 + s->ndim) * sizeof *words);
}

int64_t hvd__signature_count(const struct hvd__signature *s)
{
    uint64_t count = 1; /* may wrap before a factor 0 */

    for (int32_t i = hvd__signature_varies(s) ? 1 : 0; i < s->ndim; i++)
        count *= (uint64_t)s->shape[i];
    return (int64_t)count;
}

size_t hvd__signature_bytes(const struct hvd__signature *s)
{
    if (!hvd__kind_has(s->kind, HVD__HAS_TENSOR))
        return 0;
    return (size_t)hvd__signature_count(s) * hvd__dtype_bytes(s->dtype);
}

size_t hvd__signature_row_bytes(const struct hvd__signature *s)
{
    size_t bytes = hvd__dtype_bytes(s->dtype);

    for (int32_t i = 1; i < s->ndim; i++)
        bytes *= (size_t)s->shape[i];
    return bytes;
}

/* Another rank may have other schemes or other names for them, so a registered
 * scheme is described by its number and by its name on this rank. */
static void add_compression(struct hvd__text *out, hvd_compression compression)
{
    const char *name = hvd_compression_name(compression);

    if (compression >= HVD_COMPRESSION_REGISTERED || !name)
        hvd__text_add(out, " compressed by scheme %d (%s%s)", (int)compression,
                      name ? "here " : "not registered here", name ? name : "");
    else if (compression != HVD_COMPRESSION_NONE)
        hvd__text_add(out, " compressed by %s", name);
}

const char *hvd__signature_print(const struct hvd__signature *s, char *text,
                                 size_t size)
{
    struct hvd__text out = hvd__text_at(text, size);

    hvd__text_add(&out, "%s", hvd_kind_name(s->kind));
    if (!hvd__kind_has(s->kind, HVD__HAS_TENSOR))
        return text;
    if (hvd__kind_has(s->kind, HVD__HAS_OP))
        hvd__text_add(&out, " %s", hvd_op_name(s->op));
    hvd__text_add(&out, " %s [", hvd_dtype_name(s->dtype));
    for (int32_t i = 0; i < s->ndim; i++) {
        hvd__text_add(&out, i ? "," : "");
        if (s->shape[i] == HVD__VARIES)
            hvd__text_add(&out, "*");
        else
            hvd__text_add(&out, "%lld", (long long)s->shape[i]);
    }
    hvd__text_add(&out, "]");
    if (hvd__kind_has(s->kind, HVD__HAS_ROOT))
        hvd__text_add(
            &out, s->kind == HVD_BROADCAST ? " from root %d" : " to root %d",
            (int)s->root);
    if (hvd__kind_has(s->kind, HVD__HAS_OP) && s->prescale != 1)
        hvd__text_add(&out, " prescale %.9g", s->prescale);
    if (hvd__kind_has(s->kind, HVD__HAS_OP) && s->postscale != 1)
        hvd__text_add(&out, " postscale %.9g", s->postscale);
    add_compression(&out, s->compression);
    if (s->flags & HVD_AVERAGE_CONTRIBUTORS)
        hvd__text_add(&out, " over contributors");
    return text;
}
