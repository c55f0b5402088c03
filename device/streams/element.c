/* SPDX-License-Identifier: Apache-2.0 */
/*
 * element.c - the description of an element of a queue: its tensors, and their
 * places in one piece of memory.
 *
 * A description is checked once, when a queue is made or a program enqueues; it
 * does not change after that. Names are copied. The other files of the room
 * call it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "streams/streams.h"

/* Refuses errors that are special to feeds, before the shape is checked as any
 * tensor's. */
static int check_tensor(const char *what, int32_t i, const ipu_feed_tensor *t)
{
    if (t->dtype == IPU_INT64 || t->dtype == IPU_FLOAT64)
        return ipu__fail(IPU_ERR_SHAPE,
                         "%s: unsupported datatype %s on index %d of the feed: "
                         "cast it to %s",
                         what, t->dtype == IPU_INT64 ? "int64" : "float64",
                         (int)i, t->dtype == IPU_INT64 ? "int32" : "float32");
    if (t->ndim < 0 || t->ndim > IPU_MAX_DIMS)
        return ipu__fail(IPU_ERR_SHAPE,
                         "%s: tensor '%s' has %d dimensions, one has 0 to %d",
                         what, t->name, (int)t->ndim, IPU_MAX_DIMS);
    for (int32_t k = 0; k < t->ndim; k++) {
        if (t->shape[k] < 0)
            return ipu__fail(IPU_ERR_SHAPE,
                             "%s: the shape of tensor '%s' is not fully "
                             "defined: dimension %d is %" PRId64
                             "; batches must all be of one size (drop the "
                             "remainder)",
                             what, t->name, (int)k, t->shape[k]);
        if (t->shape[k] == 0)
            return ipu__fail(IPU_ERR_SHAPE,
                             "%s: tensor '%s' has a dimension of size 0 "
                             "(number %d)",
                             what, t->name, (int)k);
    }
    return IPU_OK;
}

static int check_name(const char *what, const ipu_feed_tensor *tensors,
                      int32_t i)
{
    const char *name = tensors[i].name;

    if (!name || !name[0])
        return ipu__fail(IPU_ERR_NAME, "%s: tensor %d has no name", what,
                         (int)i);
    for (int32_t k = 0; k < i; k++)
        if (strcmp(tensors[k].name, name) == 0)
            return ipu__fail(IPU_ERR_NAME, "%s: two tensors are called '%s'",
                             what, name);
    return IPU_OK;
}

static int add_tensor(struct ipu__element *element, const char *what,
                      const ipu_feed_tensor *tensor)
{
    int32_t i = element->ntensors;
    struct ipu__shape shape;
    char text[160];

    IPU_TRY(check_tensor(what, i, tensor));
    snprintf(text, sizeof text, "%.60s: tensor '%.60s'", what, tensor->name);
    IPU_TRY(ipu__shape_make(text, tensor->dtype, tensor->ndim, tensor->shape,
                            &shape));
    element->tensors[i] = *tensor;
    element->tensors[i].name = element->names[i] = strdup(tensor->name);
    if (!element->names[i])
        return ipu__fail_memory(strlen(tensor->name) + 1);
    element->bytes[i] = ipu__shape_bytes(&shape);
    element->total += element->bytes[i];
    element->ntensors++;
    if (element->total > PTRDIFF_MAX / 1024)
        return ipu__fail(IPU_ERR_SHAPE,
                         "%s: an element is more bytes than memory can hold",
                         what);
    return IPU_OK;
}

int ipu__element_init(struct ipu__element *element, const char *what,
                      int32_t count, const ipu_feed_tensor *tensors)
{
    *element = (struct ipu__element){0};
    if (count < 1 || count > IPU_MAX_FEED_TENSORS)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s: %d tensors, an element has 1 to %d", what,
                         (int)count, IPU_MAX_FEED_TENSORS);
    if (!tensors)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: the tensors are NULL", what);
    for (int32_t i = 0; i < count; i++) {
        int status = check_name(what, tensors, i);

        if (status == IPU_OK)
            status = add_tensor(element, what, &tensors[i]);
        if (status < 0) {
            ipu__element_fini(element);
            return status;
        }
    }
    return IPU_OK;
}

void ipu__element_fini(struct ipu__element *element)
{
    for (int32_t i = 0; i < element->ntensors; i++)
        free(element->names[i]);
    *element = (struct ipu__element){0};
}

bool ipu__element_equal(const struct ipu__element *a,
                        const struct ipu__element *b)
{
    if (a->ntensors != b->ntensors)
        return false;
    for (int32_t i = 0; i < a->ntensors; i++) {
        const ipu_feed_tensor *x = &a->tensors[i], *y = &b->tensors[i];

        if (strcmp(x->name, y->name) != 0 || x->dtype != y->dtype ||
            x->ndim != y->ndim ||
            memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof *x->shape) != 0)
            return false;
    }
    return true;
}

size_t ipu__element_offset(const struct ipu__element *element, int32_t i)
{
    size_t offset = 0;

    for (int32_t k = 0; k < i; k++)
        offset += (element->bytes[k] + IPU__FEED_ALIGNMENT - 1) /
                  IPU__FEED_ALIGNMENT * IPU__FEED_ALIGNMENT;
    return offset;
}
