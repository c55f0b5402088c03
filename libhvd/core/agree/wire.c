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

void hvd__write_long(struct hvd__writer *writer, int64_t value)
{
    hvd__write_bytes(writer, &value, sizeof value);
}

void hvd__write_text(struct hvd__writer *writer, const char *text)
{
    size_t bytes = strnlen(text, UINT16_MAX);

    hvd__write_bytes(writer, &(uint16_t){(uint16_t)bytes}, sizeof(uint16_t));
    hvd__write_bytes(writer, text, bytes);
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

int64_t hvd__read_long(struct hvd__reader *reader)
{
    int64_t value;

    hvd__read_bytes(reader, &value, sizeof value);
    return value;
}

int32_t hvd__read_int(struct hvd__reader *reader)
{
    int64_t value = hvd__read_long(reader);

    reader->failed |= value != (int32_t)value;
    return reader->failed ? 0 : (int32_t)value;
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
static bool is_sane(const struct hvd__signature *s)
{
    uint64_t count = 1;
    bool is_empty = false, overflows = false;

    if (!hvd_kind_name(s->kind) || !hvd_dtype_name(s->dtype) ||
        !hvd_op_name(s->op) || s->root < 0 || s->unused != 0 || s->ndim < 0 ||
        s->ndim > HVD_MAX_DIMS)
        return false;
    for (int32_t i = hvd__signature_varies(s); i < HVD_MAX_DIMS; i++) {
        if (s->shape[i] < 0 || (i >= s->ndim && s->shape[i] != 0))
            return false;
        if (i >= s->ndim)
            continue;
        is_empty |= s->shape[i] == 0;
        overflows |=
            __builtin_mul_overflow(count, (uint64_t)s->shape[i], &count) ||
            count > (uint64_t)PTRDIFF_MAX / hvd__dtype_bytes(s->dtype);
    }
    return is_empty || !overflows;
}

/* Returns false for a statement that no correct rank makes: a refusal has a
 * reason, and anything else has requests. */
static bool makes_sense(const struct hvd__statement *s)
{
    size_t rest = (size_t)s->bytes - sizeof *s;
    int nnumbers = 0;

    if (s->status < 0)
        return s->nsignatures == 0 && s->nnumbers == 0 && rest > 0 &&
               rest <= HVD__MESSAGE_MAX &&
               strnlen(hvd__statement_text(s), rest) == rest - 1;
    if (s->status > 0 || s->nsignatures <= 0 ||
        rest != (size_t)s->nsignatures * sizeof *s->signatures)
        return false;
    for (int i = 0; i < s->nsignatures; i++) {
        if (!is_sane(&s->signatures[i]))
            return false;
        nnumbers += hvd__signature_carries(&s->signatures[i]);
    }
    return s->nnumbers == nnumbers;
}

int hvd__read_statement(struct hvd__reader *reader,
                        struct hvd__statement **statement)
{
    struct hvd__statement head;

    *statement = NULL;
    hvd__read_bytes(reader, &head, sizeof head);
    if (head.bytes < (int32_t)sizeof head ||
        (size_t)head.bytes - sizeof head > reader->bytes - reader->at)
        return hvd__reader_fail(reader);
    HVD_TRY(hvd__allocate(statement, 1, (size_t)head.bytes));
    **statement = head;
    hvd__read_bytes(reader, (*statement)->signatures,
                    (size_t)head.bytes - sizeof head);
    if (makes_sense(*statement))
        return HVD_OK;
    free(*statement);
    *statement = NULL;
    return hvd__reader_fail(reader);
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
