/* SPDX-License-Identifier: Apache-2.0 */
#include "files/protobuf.h"

#include <string.h>

int protobuf_varint(struct protobuf *message, uint64_t *value)
{
    uint64_t x = 0;

    for (int shift = 0; shift < 64 && message->at < message->end; shift += 7) {
        unsigned char byte = *message->at++;

        x |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = x;
            return 0;
        }
    }
    return -1;
}

/* Reads a number of fixed size. */
static int read_fixed(struct protobuf *message, size_t size, uint64_t *value)
{
    if ((size_t)(message->end - message->at) < size)
        return -1;
    *value = 0;
    memcpy(value, message->at, size);
    message->at += size;
    return 1;
}

int protobuf_next(struct protobuf *message, struct protobuf_field *field)
{
    uint64_t key, length;

    if (message->at == message->end)
        return 0;
    if (protobuf_varint(message, &key) < 0 || key >> 3 == 0 ||
        key >> 3 > (1 << 29) - 1)
        return -1;
    field->number = (uint32_t)(key >> 3);
    field->type = (int)(key & 7);
    switch (field->type) {
    case PROTOBUF_VARINT:
        return protobuf_varint(message, &field->value) < 0 ? -1 : 1;
    case PROTOBUF_FIXED64: return read_fixed(message, 8, &field->value);
    case PROTOBUF_FIXED32: return read_fixed(message, 4, &field->value);
    case PROTOBUF_BYTES: break;
    default: return -1;
    }
    if (protobuf_varint(message, &length) < 0 ||
        length > (uint64_t)(message->end - message->at))
        return -1;
    field->bytes = (struct protobuf){message->at, message->at + length};
    message->at += length;
    return 1;
}

static void add_varint(struct bytes *message, uint64_t value)
{
    unsigned char text[10];
    size_t count = 0;

    for (; value >= 0x80; value >>= 7)
        text[count++] = (unsigned char)(value | 0x80);
    text[count++] = (unsigned char)value;
    bytes_add(message, text, count);
}

static void add_key(struct bytes *message, uint32_t number, int type)
{
    add_varint(message, (uint64_t)number << 3 | (unsigned)type);
}

void protobuf_add_varint(struct bytes *message, uint32_t number, uint64_t value)
{
    add_key(message, number, PROTOBUF_VARINT);
    add_varint(message, value);
}

void protobuf_add_float(struct bytes *message, uint32_t number, float value)
{
    add_key(message, number, PROTOBUF_FIXED32);
    bytes_add(message, &value, sizeof value);
}

void protobuf_add_double(struct bytes *message, uint32_t number, double value)
{
    add_key(message, number, PROTOBUF_FIXED64);
    bytes_add(message, &value, sizeof value);
}

void protobuf_add_bytes(struct bytes *message, uint32_t number,
                        const void *data, size_t count)
{
    add_key(message, number, PROTOBUF_BYTES);
    add_varint(message, count);
    bytes_add(message, data, count);
}

void protobuf_add_text(struct bytes *message, uint32_t number, const char *text)
{
    protobuf_add_bytes(message, number, text, strlen(text));
}

void protobuf_add_message(struct bytes *message, uint32_t number,
                          struct bytes *part)
{
    protobuf_add_bytes(message, number, part->data, part->count);
    message->failed |= part->failed;
    bytes_fini(part);
}
