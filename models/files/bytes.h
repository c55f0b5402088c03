/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.h - bytes in memory that grow while something is written. */
#ifndef MODELS_BYTES_H
#define MODELS_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: there are none yet. */
struct bytes {
    char *data; /* [count], owned */
    size_t count, room;
    bool failed; /* there was no memory, and something is missing */
};

void bytes_add(struct bytes *bytes, const void *data, size_t count);

/* Adds a text, without its NUL. */
__attribute__((format(printf, 2, 3))) void bytes_print(struct bytes *bytes,
                                                       const char *format, ...);

void bytes_fini(struct bytes *bytes);

#endif
