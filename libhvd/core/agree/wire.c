/* SPDX-License-Identifier: Apache-2.0 */
#include "core/agree/wire.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"

void hvd__write_bytes(struct hvd__writer *writer, const void *data,
                      size_t bytes)
{
    if (writer->failed)
        return;
    if (writer->capacity - writer->bytes < bytes) {
        size_t capacity = 2 * (writer->bytes + bytes) + 256;
        unsigned char *grown = realloc(writer->data, capacity);

        if (!grown) {
            writer->failed = true;
            return;
        }
        writer->data = grown;
        writer->capacity = capacity;
    }
    if (bytes > 0)
        memcpy(writer->data + writer->bytes, data, bytes);
    writer->bytes += bytes;
}

void hvd__write_type(struct hvd__writer *writer, enum hvd__record_type type)
{
    hvd__write_bytes(writer, &(uint8_t){(uint8_t)type}, 1);
}

void hvd__write_int(struct hvd__writer *writer, int32_t value)
{
    hvd__write_bytes(writer, &value, sizeof value);
}

void hvd__write_long(struct hvd__writer *writer, int64_t value)
{
    hvd__write_bytes(writer, &value, sizeof value);
}

void hvd__write_key(struct hvd__writer *writer, uint64_t key)
{
    hvd__write_bytes(writer, &key, sizeof key);
}

void hvd__write_text(struct hvd__writer *writer, const char *text)
{
    size_t bytes = strnlen(text, UINT16_MAX);

    hvd__write_bytes(writer, &(uint16_t){(uint16_t)bytes}, sizeof(uint16_t));
    hvd__write_bytes(writer, text, bytes);
}

void hvd__write_signature(struct hvd__writer *writer,
                          const struct hvd__signature *s)
{
    hvd__write_bytes(writer, s,
                     HVD__SIGNATURE_BYTES + (size_t)s->ndim * sizeof *s->shape);
}

void hvd__write_ranks(struct hvd__writer *writer, const int *of, int nranks)
{
    uint8_t all = 1;

    for (int rank = 0; rank < nranks; rank++)
        all &= of[rank] != 0;
    hvd__write_bytes(writer, &all, 1);
    if (all)
        return;
    for (int first = 0; first < nranks; first += 8) {
        uint8_t bits = 0;

        for (int i = 0; i < 8 && first + i < nranks; i++)
            if (of[first + i])
                bits |= (uint8_t)(1u << i);
        hvd__write_bytes(writer, &bits, 1);
    }
}

void hvd__writer_fini(struct hvd__writer *writer)
{
    free(writer->data);
    *writer = (struct hvd__writer){0};
}

void hvd__read_bytes(struct hvd__reader *reader, void *data, size_t bytes)
{
    if (reader->bytes - reader->at < bytes)
        reader->failed = true;
    if (reader->failed) {
        memset(data, 0, bytes);
        return;
    }
    memcpy(data, reader->data + reader->at, bytes);
    reader->at += bytes;
}

int hvd__reader_fail(struct hvd__reader *reader)
{
    reader->failed = true;
    return HVD_OK;
}

bool hvd__reader_more(const struct hvd__reader *reader)
{
    return !reader->failed && reader->at < reader->bytes;
}

enum hvd__record_type hvd__read_type(struct hvd__reader *reader)
{
    uint8_t type;

    hvd__read_bytes(reader, &type, 1);
    if (type < HVD__ANNOUNCE || type > HVD__OPEN)
        reader->failed = true;
    return (enum hvd__record_type)type;
}

int32_t hvd__read_int(struct hvd__reader *reader)
{
    int32_t value;

    hvd__read_bytes(reader, &value, sizeof value);
    return value;
}

int64_t hvd__read_long(struct hvd__reader *reader)
{
    int64_t value;

    hvd__read_bytes(reader, &value, sizeof value);
    return value;
}

uint64_t hvd__read_key(struct hvd__reader *reader)
{
    uint64_t key;

    hvd__read_bytes(reader, &key, sizeof key);
    return key;
}

int32_t hvd__read_count(struct hvd__reader *reader, size_t each)
{
    int32_t count = hvd__read_int(reader);

    if (count < 0 || (size_t)count > (reader->bytes - reader->at) / each)
        reader->failed = true;
    return reader->failed ? 0 : count;
}

int hvd__read_numbers(struct hvd__reader *reader, size_t n, int64_t **numbers)
{
    *numbers = NULL;
    if (n > (reader->bytes - reader->at) / sizeof **numbers)
        reader->failed = true;
    if (reader->failed || n == 0)
        return HVD_OK;
    HVD_TRY(hvd__allocate(numbers, n, sizeof **numbers));
    for (size_t i = 0; i < n; i++) {
        (*numbers)[i] = hvd__read_long(reader);
        reader->failed |= (*numbers)[i] < 0;
    }
    return HVD_OK;
}

void hvd__read_text(struct hvd__reader *reader, char *text, size_t size)
{
    uint16_t bytes;

    text[0] = '\0';
    hvd__read_bytes(reader, &bytes, sizeof bytes);
    if (bytes >= size)
        reader->failed = true;
    if (reader->failed)
        return;
    hvd__read_bytes(reader, text, bytes);
    if (memchr(text, '\0', bytes))
        reader->failed = true;
    text[reader->failed ? 0 : bytes] = '\0';
}

/* Returns false for a signature that no correct rank sends. */
static bool sane(const struct hvd__signature *s)
{
    int32_t first = hvd__signature_varies(s) ? 1 : 0;
    uint64_t count = 1;

    if (!hvd_kind_name(s->kind) || !hvd_dtype_name(s->dtype) ||
        !hvd_op_name(s->op) || s->root < 0 || s->unused != 0)
        return false;
    for (int32_t i = first; i < s->ndim; i++)
        if (s->shape[i] < 0)
            return false;
    for (int32_t i = first; i < s->ndim; i++)
        if (s->shape[i] == 0)
            return true;
    for (int32_t i = first; i < s->ndim; i++)
        if (__builtin_mul_overflow(count, (uint64_t)s->shape[i], &count) ||
            count > (uint64_t)PTRDIFF_MAX / hvd__dtype_bytes(s->dtype))
            return false;
    return true;
}

void hvd__read_signature(struct hvd__reader *reader, struct hvd__signature *s)
{
    *s = (struct hvd__signature){0};
    hvd__read_bytes(reader, s, HVD__SIGNATURE_BYTES);
    if (s->ndim < 0 || s->ndim > HVD_MAX_DIMS)
        reader->failed = true;
    else
        hvd__read_bytes(reader, s->shape, (size_t)s->ndim * sizeof *s->shape);
    if (reader->failed || !sane(s)) {
        reader->failed = true;
        *s = (struct hvd__signature){0};
    }
}

int hvd__read_ranks(struct hvd__reader *reader, int nranks, int *of)
{
    uint8_t all, bits = 0;
    int n = 0;

    hvd__read_bytes(reader, &all, 1);
    for (int rank = 0; rank < nranks; rank++) {
        if (all != 1 && rank % 8 == 0)
            hvd__read_bytes(reader, &bits, 1);
        of[rank] = all == 1 ? 1 : bits & 1;
        n += of[rank];
        bits >>= 1;
    }
    if (all > 1 || bits != 0 || (all == 0 && n == nranks))
        reader->failed = true;
    return n;
}
