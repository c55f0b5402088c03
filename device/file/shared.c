/* SPDX-License-Identifier: Apache-2.0 */
#include "file/shared.h"

#include <stdlib.h>
#include <string.h>

#include "file/members.h"
#include "graph/error.h"
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

/* ------------------------------------------------------------------- texts */

/* Equal ones mostly follow each other: the last ones first. */
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
    IPU_TRY(ipu__get_count(reader, what, IPU__LEAST_TEXT, &wanted));
    *texts = calloc((size_t)wanted + 1, sizeof **texts);
    if (!*texts)
        return ipu__fail_memory((size_t)wanted * sizeof **texts);
    while (*count < wanted) {
        IPU_TRY(ipu__get_text(reader, what, false, &(*texts)[*count]));
        ++*count;
    }
    return IPU_OK;
}
