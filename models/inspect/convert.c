/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c - makes files of tensors out of others. What is written is no
 * checkpoint that a training goes on from: it has the texts of the first file's
 * metadata, without the checksum.
 */
#include "inspect/inspect.h"

#include "files/elements.h"
#include "output/problem.h"

#include <hvd.h>
#include <stdlib.h>
#include <string.h>

/* Tensors of which some have data of their own. */
struct result {
    int count;
    struct safetensors_tensor *tensors; /* [count], owned */
    void **owned;                       /* [count]: data, or NULL */
};

static int result_init(struct result *r, const struct source *s)
{
    r->count = s->count;
    r->tensors = calloc((size_t)s->count + 1, sizeof *r->tensors);
    r->owned = calloc((size_t)s->count + 1, sizeof *r->owned);
    if (!r->tensors || !r->owned)
        return problem_fail(HVD_ERR_MEMORY, "out of memory");
    if (s->count > 0)
        memcpy(r->tensors, s->tensors, (size_t)s->count * sizeof *r->tensors);
    return 0;
}

static void result_fini(struct result *r)
{
    for (int i = 0; r->owned && i < r->count; i++)
        free(r->owned[i]);
    free(r->owned);
    free(r->tensors);
}

static int result_write(struct result *r, const struct source *like,
                        const char *out)
{
    json_t *metadata =
        like->file ? json_copy(like->file->metadata) : json_object();
    int status;

    json_object_del(metadata, "crc32");
    json_object_del(metadata, "checkpoint");
    status = safetensors_order(r->tensors, r->count);
    if (status == 0)
        status = inspect_write(out, r->tensors, r->count, metadata);
    json_decref(metadata);
    return status;
}

/* Gives tensor i another dtype. */
static int change(struct result *r, int i, enum safetensors_dtype dtype)
{
    struct safetensors_tensor *t = &r->tensors[i];
    const struct safetensors_tensor from = *t;

    t->dtype = dtype;
    if (safetensors_measure(t) < 0)
        return HVD_ERR_ARGUMENT;
    r->owned[i] = malloc(t->bytes + 1);
    if (!r->owned[i])
        return problem_fail(HVD_ERR_MEMORY, "'%.80s': out of memory", t->name);
    elements_convert(dtype, r->owned[i], from.dtype, from.data, from.count);
    t->data = r->owned[i];
    return 0;
}

/* Returns the dtype of a tensor in the result. numpy has no float8 and no
 * bfloat16; float32 holds them exactly. */
static enum safetensors_dtype dtype_of(const struct safetensors_tensor *t,
                                       const char *out, int dtype)
{
    const size_t n = strlen(out);
    enum safetensors_dtype to = t->dtype;

    if (dtype >= 0 && element_is_float(t->dtype))
        to = (enum safetensors_dtype)dtype;
    if ((to == SAFETENSORS_BF16 || to == SAFETENSORS_F8_E5M2) && n >= 4 &&
        strcmp(out + n - 4, ".npz") == 0)
        to = SAFETENSORS_F32;
    return to;
}

int inspect_convert(const struct inspect_request *request)
{
    const char *out = request->paths[1];
    struct source s;
    struct result r = {.count = 0};
    int status = source_open(&s, request->paths[0]);

    if (status == 0)
        status = result_init(&r, &s);
    for (int i = 0; status == 0 && i < r.count; i++) {
        const enum safetensors_dtype to =
            dtype_of(&r.tensors[i], out, request->dtype);

        if (to != r.tensors[i].dtype)
            status = change(&r, i, to);
    }
    if (status == 0)
        status = result_write(&r, &s, out);
    result_fini(&r);
    source_close(&s);
    return status;
}

/* ------------------------------------------------------------------ average */

/* Returns a file's tensor that is like the first file's; NULL with the text
 * kept. */
static const struct safetensors_tensor *counterpart(
    const struct source *s, const struct safetensors_tensor *first)
{
    const struct safetensors_tensor *t = source_find(s, first->name);

    if (t && t->dtype == first->dtype && t->ndim == first->ndim &&
        (t->ndim == 0 || memcmp(t->shape, first->shape,
                                (size_t)t->ndim * sizeof *t->shape) == 0))
        return t;
    problem_fail(HVD_ERR_ARGUMENT,
                 "%s: it has no '%.80s', or one of another dtype or shape than "
                 "the first file",
                 s->path, first->name);
    return NULL;
}

/* sources: [count] */
static int average_tensor(struct result *r, int i, const struct source *sources,
                          int count)
{
    struct safetensors_tensor *t = &r->tensors[i];
    const struct safetensors_tensor *last = t;
    double *sums = element_is_float(t->dtype)
                       ? calloc((size_t)t->count + 1, sizeof *sums)
                       : NULL;
    int status = 0;

    for (int k = 0; status == 0 && k < count; k++) {
        last = counterpart(&sources[k], t);
        if (!last)
            status = HVD_ERR_ARGUMENT;
        for (int64_t e = 0; sums && last && e < t->count; e++)
            sums[e] += element_get(t->dtype, last->data, e);
    }
    if (status == 0 && !sums) {
        t->data = last->data;
    } else if (status == 0) {
        r->owned[i] = malloc(t->bytes + 1);
        if (!r->owned[i])
            status =
                problem_fail(HVD_ERR_MEMORY, "'%.80s': out of memory", t->name);
        for (int64_t e = 0; status == 0 && e < t->count; e++)
            element_put(t->dtype, r->owned[i], e, sums[e] / count);
        t->data = r->owned[i];
    }
    free(sums);
    return status;
}

int inspect_average(const struct inspect_request *request)
{
    const char *const *paths = request->paths;
    const int count = request->count;
    struct source *sources = calloc((size_t)count, sizeof *sources);
    struct result r = {.count = 0};
    int status = 0;

    if (!sources)
        return problem_fail(HVD_ERR_MEMORY, "out of memory");

    for (int k = 0; status == 0 && k < count; k++) {
        status = source_open(&sources[k], paths[k]);
        if (status == 0 && sources[k].count != sources[0].count)
            status = problem_fail(HVD_ERR_ARGUMENT,
                                  "%s: it has %d tensors, and the first file "
                                  "%d",
                                  paths[k], sources[k].count, sources[0].count);
    }
    if (status == 0)
        status = result_init(&r, &sources[0]);
    for (int i = 0; status == 0 && i < r.count; i++)
        status = average_tensor(&r, i, sources, count);
    if (status == 0)
        status = result_write(&r, &sources[0], request->output);
    result_fini(&r);
    for (int k = 0; k < count; k++)
        source_close(&sources[k]);
    free(sources);
    return status;
}
