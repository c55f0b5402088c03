/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.h - copies memory and hashes it on the way, in one pass. The hash
 * depends on the bytes and their number alone, not on addresses or the
 * machine's vectors.
 */
#ifndef HVD_STATE_COPY_H
#define HVD_STATE_COPY_H

#include <stddef.h>
#include <stdint.h>

/* Copies bytes, unless to is NULL, and returns their hash. */
uint64_t hvd__copy_hashed(void *to, const void *from, size_t bytes);

#endif
