/* SPDX-License-Identifier: Apache-2.0 */
#include "core/signature.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "core/text.h"

const char *hvd_kind_name(hvd_kind kind)
{
    switch (kind) {
#define X(constant, name)                                                      \
    case constant: return name;
        HVD__KINDS(X)
#undef X
    default: return NULL;
    }
}

int hvd_kind_from_name(const char *name)
{
    if (!name)
        return hvd__fail(HVD_ERR_ARGUMENT, "the name of a kind is NULL");
#define X(constant, text)                                                      \
    if (strcmp(name, text) == 0)                                               \
        return constant;
    HVD__KINDS(X)
#undef X
    return hvd__fail(HVD_ERR_ARGUMENT, "there is no kind of request '%s'",
                     name);
}

bool hvd__signature_equal(const struct hvd__signature *a,
                          const struct hvd__signature *b)
{
    /* Scales are finite: == is equality. */
    return a->kind == b->kind && a->dtype == b->dtype && a->op == b->op &&
           a->root == b->root && a->ndim == b->ndim &&
           a->prescale == b->prescale && a->postscale == b->postscale &&
           memcmp(a->shape, b->shape, sizeof a->shape) == 0;
}

int64_t hvd__signature_count(const struct hvd__signature *signature)
{
    int64_t count = 1;

    for (int32_t i = 0; i < signature->ndim; i++)
        count *= signature->shape[i];
    return count;
}

size_t hvd__signature_bytes(const struct hvd__signature *signature)
{
    return (size_t)hvd__signature_count(signature) *
           hvd__dtype_bytes(signature->dtype);
}

const char *hvd__signature_print(const struct hvd__signature *s, char *text,
                                 size_t size)
{
    struct hvd__text out = hvd__text_at(text, size);

    hvd__text_add(&out, "%s", hvd_kind_name(s->kind));
    if (s->kind == HVD_BARRIER)
        return text;
    if (s->kind == HVD_ALLREDUCE)
        hvd__text_add(&out, " %s", hvd_op_name(s->op));
    hvd__text_add(&out, " %s [", hvd_dtype_name(s->dtype));
    for (int32_t i = 0; i < s->ndim; i++)
        hvd__text_add(&out, "%s%lld", i ? "," : "", (long long)s->shape[i]);
    hvd__text_add(&out, "]");
    if (s->kind == HVD_BROADCAST)
        hvd__text_add(&out, " from root %d", (int)s->root);
    if (s->kind == HVD_ALLREDUCE && s->prescale != 1)
        hvd__text_add(&out, " prescale %.9g", s->prescale);
    if (s->kind == HVD_ALLREDUCE && s->postscale != 1)
        hvd__text_add(&out, " postscale %.9g", s->postscale);
    return text;
}
