/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crc64.h - the checksum of files: ECMA-182, as in xz. It detects every change
 * of up to 64 bits in a row, and all but one in 2^64 of the others.
 */
#ifndef IPU_FILE_CRC64_H
#define IPU_FILE_CRC64_H

#include <stddef.h>
#include <stdint.h>

/* Returns the checksum of the bytes that crc is the checksum of, followed by
 * these bytes; begin with 0. */
uint64_t ipu__crc64(uint64_t crc, const void *data, size_t bytes);

#endif
