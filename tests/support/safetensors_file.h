/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_file.h - writes safetensors files that need not be right.
 */
#ifndef HVD_TESTS_SAFETENSORS_FILE_H
#define HVD_TESTS_SAFETENSORS_FILE_H

#include <stdint.h>
#include <string.h>

#include "folder.h"

/* Writes a file that says that its header has this length, with this header and
 * so many zero bytes behind it. */
static inline void safetensors_write(const char *path, uint64_t length,
                                     const char *header, size_t bytes)
{
    char whole[4096] = {0};
    const size_t size = sizeof length + strlen(header) + bytes;

    ck_assert_uint_le(size, sizeof whole);
    memcpy(whole, &length, sizeof length);
    memcpy(whole + sizeof length, header, strlen(header));
    file_write(path, whole, size);
}

#endif
