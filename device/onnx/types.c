/* SPDX-License-Identifier: Apache-2.0 */
/* Types of elements, and conversions between the host's and the device's. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "onnx/elements.h"

const char *ipu_onnx_type_name(int32_t type)
{
    return ipu__onnx_kind(type)->name;
}

size_t ipu_onnx_type_bytes(int32_t type)
{
    return ipu__onnx_kind(type)->bytes;
}

ipu_dtype ipu_onnx_type_dtype(int32_t type)
{
    const struct ipu__onnx_kind *kind = ipu__onnx_kind(type);

    return kind->bytes ? kind->dtype : -1;
}

enum { BLOCK = 256 }; /* elements that are converted at once */

static int check_convert(int32_t type, int64_t count, const void *from,
                         const void *to)
{
    if (ipu_onnx_type_dtype(type) < 0)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the device has no type %d",
                         (int)type);
    if (count < 0 || (count > 0 && (!from || !to)))
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: there are no elements");
    return IPU_OK;
}

static int refuse_number(int64_t i, int64_t number, const char *type)
{
    return ipu__fail(IPU_ERR_DATA,
                     "element %" PRId64 " is %" PRId64 ", which %s cannot hold",
                     i, number, type);
}

static int whole_to_device(int32_t type, int64_t count, const char *from,
                           int32_t *to)
{
    size_t each = ipu_onnx_type_bytes(type);
    int64_t wholes[BLOCK];

    for (int64_t i = 0; i < count; i++) {
        if (i % BLOCK == 0)
            ipu__onnx_unpack(type, count - i < BLOCK ? count - i : BLOCK,
                             from + (size_t)i * each, NULL, wholes);
        if (wholes[i % BLOCK] < INT32_MIN || wholes[i % BLOCK] > INT32_MAX)
            return refuse_number(i, wholes[i % BLOCK], "int32 of the device");
        to[i] = (int32_t)wholes[i % BLOCK];
    }
    return IPU_OK;
}

int ipu_onnx_to_device(int32_t type, int64_t count, const void *from, void *to)
{
    IPU_TRY(check_convert(type, count, from, to));
    if (ipu__onnx_kind(type)->whole)
        return whole_to_device(type, count, from, to);
    if (type == IPU_ONNX_DOUBLE)
        ipu__onnx_unpack(type, count, from, to, NULL);
    else if (count > 0)
        memcpy(to, from, (size_t)count * ipu_onnx_type_bytes(type));
    return IPU_OK;
}

static int whole_from_device(int32_t type, int64_t count, const int32_t *from,
                             char *to)
{
    size_t each = ipu_onnx_type_bytes(type);
    int64_t wholes[BLOCK];

    for (int64_t i = 0; i < count; i += BLOCK) {
        int64_t n = count - i < BLOCK ? count - i : BLOCK, wrong;

        for (int64_t j = 0; j < n; j++)
            wholes[j] = from[i + j];
        wrong = ipu__onnx_pack(type, n, NULL, wholes, to + (size_t)i * each);
        if (wrong >= 0)
            return refuse_number(i + wrong, wholes[wrong],
                                 ipu_onnx_type_name(type));
    }
    return IPU_OK;
}

int ipu_onnx_from_device(int32_t type, int64_t count, const void *from,
                         void *to)
{
    IPU_TRY(check_convert(type, count, from, to));
    if (ipu__onnx_kind(type)->whole)
        return whole_from_device(type, count, from, to);
    if (type == IPU_ONNX_DOUBLE)
        ipu__onnx_pack(type, count, from, NULL, to);
    else if (count > 0)
        memcpy(to, from, (size_t)count * ipu_onnx_type_bytes(type));
    return IPU_OK;
}
