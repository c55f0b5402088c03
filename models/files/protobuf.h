/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf.h - reads and writes the fields of a message in the wire format of
 * protocol buffers, one after the other. */
#ifndef MODELS_PROTOBUF_H
#define MODELS_PROTOBUF_H

#include "files/bytes.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PROTOBUF_VARINT = 0,
    PROTOBUF_FIXED64 = 1,
    PROTOBUF_BYTES = 2, /* texts, messages, packed numbers */
    PROTOBUF_FIXED32 = 5
};

/* A message, or a part of one. */
struct protobuf {
    const unsigned char *at, *end; /* borrowed */
};

struct protobuf_field {
    uint32_t number;
    int type;
    uint64_t value;        /* of all types but bytes */
    struct protobuf bytes; /* of that type */
};

/* Reads a number as long as it takes, and moves at behind it: 0, or -1 if the
 * message ends within it. */
int protobuf_varint(struct protobuf *message, uint64_t *value);

/* Reads the next field: 1, 0 at the end, or -1 if the bytes are no message. */
int protobuf_next(struct protobuf *message, struct protobuf_field *field);

/* Add a field to a message; of the bytes' failure see there. */
void protobuf_add_varint(struct bytes *message, uint32_t number,
                         uint64_t value);
void protobuf_add_float(struct bytes *message, uint32_t number, float value);
void protobuf_add_double(struct bytes *message, uint32_t number, double value);
void protobuf_add_bytes(struct bytes *message, uint32_t number,
                        const void *data, size_t count);
void protobuf_add_text(struct bytes *message, uint32_t number,
                       const char *text);

/* Adds a message as a field, and frees it. */
void protobuf_add_message(struct bytes *message, uint32_t number,
                          struct bytes *part);

#endif
