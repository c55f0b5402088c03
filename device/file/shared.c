/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared.c - the parts of files that graphs and executables have in common.
 *
 * The put functions cannot fail before the writer is checked at the end; the
 * get functions check every count and index against the file, and leave the
 * caller to free what was read before a failure.
 */
#include "file/shared.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/op.h"

int ipu__put_op(struct ipu__writer *writer, const struct ipu__op *op)
{
    if (ipu__op_find(op->name) != op)
        return ipu__fail(IPU_ERR_STATE,
                         "save: op '%s' is not in the list of ops: a file "
                         "cannot name it",
                         op->name);
    ipu__put_text(writer, op->name);
    return IPU_OK;
}

int ipu__get_op(struct ipu__reader *reader, const struct ipu__op **op)
{
    char *name;
    int status;

    IPU_TRY(ipu__get_text(reader, "an op's name", false, &name));
    *op = ipu__op_find(name);
    status = *op ? IPU_OK
                 : ipu__damaged(reader, "this library has no op '%.60s'", name);
    free(name);
    return status;
}

int ipu__get_attributes(struct ipu__reader *reader, struct ipu__attributes *a)
{
    IPU_TRY(ipu__get_struct(reader, &ipu__attributes_layout, a));
    return ipu__check_shape(reader, "what an op is told", &a->shape);
}

int ipu__check_shape(struct ipu__reader *reader, const char *what,
                     const struct ipu__shape *shape)
{
    struct ipu__shape made;

    if (ipu__shape_make(what, shape->dtype, shape->ndim, shape->extents,
                        &made) < 0)
        return ipu__damaged(reader, "its shape: %s", ipu_last_error());
    if (memcmp(made.extents, shape->extents, sizeof made.extents) != 0)
        return ipu__damaged(reader, "%s has more extents than dimensions",
                            what);
    return IPU_OK;
}

/* ------------------------------------------------------------------- arrays */

int ipu__get_array(struct ipu__reader *reader, const char *what, size_t least,
                   size_t size, void *array, int32_t *count)
{
    IPU_TRY(ipu__get_count(reader, what, least, count));
    return ipu__new_array(array, (size_t)*count, size);
}

void ipu__put_structs(struct ipu__writer *writer,
                      const struct ipu__layout *layout, const void *array,
                      int32_t count)
{
    const char *at = array;

    ipu__put_int(writer, count);
    for (int32_t i = 0; i < count; i++, at += layout->bytes)
        ipu__put_struct(writer, layout, at);
}

int ipu__get_structs(struct ipu__reader *reader, const char *what,
                     const struct ipu__layout *layout, void *array,
                     int32_t *count)
{
    char *at;

    IPU_TRY(ipu__get_array(reader, what, IPU__LEAST_STRUCT, layout->bytes,
                           array, count));
    memcpy(&at, array, sizeof at);
    for (int32_t i = 0; i < *count; i++, at += layout->bytes)
        IPU_TRY(ipu__get_struct(reader, layout, at));
    return IPU_OK;
}

/* -------------------------------------------------------------------- loops */

void ipu__put_loop(struct ipu__writer *writer, int64_t iterations,
                   const int32_t *initial, const int32_t *outputs,
                   int32_t ncarried)
{
    ipu__put_long(writer, iterations);
    ipu__put_ints(writer, initial, ncarried);
    ipu__put_ints(writer, outputs, ncarried);
}

int ipu__get_loop(struct ipu__reader *reader, int64_t *iterations,
                  int32_t **initial, int32_t **outputs, int32_t *ncarried)
{
    int32_t count;

    IPU_TRY(ipu__get_long(reader, iterations));
    IPU_TRY(ipu__get_ints(reader, "initial values", initial, ncarried));
    IPU_TRY(ipu__get_ints(reader, "outputs of a loop", outputs, &count));
    if (count != *ncarried)
        return ipu__damaged(reader, "a loop of %d values has %d outputs",
                            (int)*ncarried, (int)count);
    return IPU_OK;
}

int ipu__put_depth(int depth)
{
    return depth <= IPU__MOST_NESTING
               ? IPU_OK
               : ipu__fail(IPU_ERR_STATE,
                           "save: loops are nested more than %d deep",
                           IPU__MOST_NESTING);
}

int ipu__get_depth(const struct ipu__reader *reader, int depth)
{
    return depth <= IPU__MOST_NESTING
               ? IPU_OK
               : ipu__damaged(reader, "loops are nested more than %d deep",
                              IPU__MOST_NESTING);
}

/* ------------------------------------------------------------------- texts */

/* Equal texts mostly follow each other, so the search begins with the last. */
int ipu__text_number(struct ipu__texts *texts, const char *text)
{
    if (!text)
        return -1;
    for (int32_t i = texts->count - 1; i >= 0; i--)
        if (strcmp(texts->texts[i], text) == 0)
            return i;
    IPU_TRY(ipu__reserve((void **)&texts->texts, texts->count, &texts->capacity,
                         sizeof *texts->texts));
    texts->texts[texts->count] = text;
    return texts->count++;
}

void ipu__put_texts(struct ipu__writer *writer, const struct ipu__texts *texts)
{
    ipu__put_int(writer, texts->count);
    for (int32_t i = 0; i < texts->count; i++)
        ipu__put_text(writer, texts->texts[i]);
}

int ipu__get_texts(struct ipu__reader *reader, const char *what, char ***texts,
                   int32_t *count)
{
    int32_t wanted;

    *count = 0;
    IPU_TRY(ipu__get_array(reader, what, IPU__LEAST_TEXT, sizeof **texts, texts,
                           &wanted));
    while (*count < wanted) {
        IPU_TRY(ipu__get_text(reader, what, false, &(*texts)[*count]));
        ++*count;
    }
    return IPU_OK;
}
