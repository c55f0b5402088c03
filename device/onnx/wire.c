/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/wire.h"

bool ipu__wire_varint(struct ipu__wire *w, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        unsigned char byte = *w->at++;

        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

bool ipu__wire_fixed(struct ipu__wire *w, size_t bytes, uint64_t *value)
{
    *value = 0;
    if (ipu__wire_left(w) < bytes)
        return false;
    for (size_t i = 0; i < bytes; i++)
        *value |= (uint64_t)*w->at++ << 8 * i;
    return true;
}

static bool read_bytes(struct ipu__wire *w, struct ipu__wire *bytes)
{
    uint64_t length;

    if (!ipu__wire_varint(w, &length) || length > ipu__wire_left(w))
        return false;
    bytes->at = w->at;
    bytes->end = w->at += length;
    return true;
}

int ipu__wire_next(struct ipu__wire *w, struct ipu__wire_field *field)
{
    uint64_t tag;
    bool good;

    if (w->at == w->end)
        return 0;
    if (!ipu__wire_varint(w, &tag) || tag > UINT32_MAX || tag < 8)
        return -1;
    field->number = (uint32_t)(tag >> 3);
    field->type = (enum ipu__wire_type)(tag & 7);
    switch (tag & 7) {
    case IPU__WIRE_VARINT: good = ipu__wire_varint(w, &field->value); break;
    case IPU__WIRE_FIXED64: good = ipu__wire_fixed(w, 8, &field->value); break;
    case IPU__WIRE_FIXED32: good = ipu__wire_fixed(w, 4, &field->value); break;
    case IPU__WIRE_BYTES: good = read_bytes(w, &field->bytes); break;
    default: good = false; /* groups, which ONNX does not have */
    }
    return good ? 1 : -1;
}
