/* SPDX-License-Identifier: Apache-2.0 */
/*
 * letter.h - encodes and decodes the letters of survivors.h as datagrams with a
 * MAC. The functions do no I/O.
 */
#ifndef HVD_WATCH_LETTER_H
#define HVD_WATCH_LETTER_H

#include <stddef.h>

#include "watch/survivors.h"

/* The most bytes of a letter; it fits below any network's limit. */
enum { HVD__LETTER_BYTES = 832 };

/* All letters of version 4 begin with "hvs4". */
#define HVD__LETTER_MAGIC UINT32_C(0x34737668)

/* Writes a letter between n members. world is a number that all letters of a
 * job have in bytes 4 to 7. Returns the number of bytes. */
size_t hvd__letter_write(const struct hvd__letter *letter, int n,
                         uint32_t world, const uint64_t key[2],
                         unsigned char bytes[HVD__LETTER_BYTES]);

/* Reads a letter. Returns false if it was not written with this key and for so
 * many members. Nothing in the letter is beyond its type, and its sets are of
 * members; its sender is one. */
bool hvd__letter_read(struct hvd__letter *letter, int n, uint32_t world,
                      const uint64_t key[2], const unsigned char *bytes,
                      size_t size);

#endif
