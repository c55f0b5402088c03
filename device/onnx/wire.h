/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - the fields of protobuf messages, one after the other, where they
 * lie.
 *
 * The library protobuf-c is not used: it follows messages in messages without a
 * limit, so that a file of a few megabytes overflows its stack, and it copies
 * all weights. ONNX needs four kinds of fields, which are read here.
 */
#ifndef IPU_ONNX_WIRE_H
#define IPU_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that are still to be read; borrowed. */
struct ipu__wire {
    const unsigned char *at, *end;
};

enum ipu__wire_type {
    IPU__WIRE_VARINT = 0,
    IPU__WIRE_FIXED64 = 1,
    IPU__WIRE_BYTES = 2,
    IPU__WIRE_FIXED32 = 5
};

struct ipu__wire_field {
    uint32_t number;
    enum ipu__wire_type type;
    uint64_t value;         /* of a number, its bits */
    struct ipu__wire bytes; /* of bytes, texts, messages and packed numbers */
};

static inline size_t ipu__wire_left(const struct ipu__wire *w)
{
    return (size_t)(w->end - w->at);
}

/* Reads the next field. Returns 1, 0 at the end, and -1 if the bytes are no
 * field. */
int ipu__wire_next(struct ipu__wire *w, struct ipu__wire_field *field);

/* Reads one number from packed ones: a varint, or little-endian bytes. Returns
 * false if there is none. */
bool ipu__wire_varint(struct ipu__wire *w, uint64_t *value);
bool ipu__wire_fixed(struct ipu__wire *w, size_t bytes, uint64_t *value);

#endif
