/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gz.h - reads files that may be compressed by gzip, whatever their names are.
 * Failures are HVD_ERR_FILE or HVD_ERR_MEMORY, with the text kept (problem.h),
 * which begins with the path.
 */
#ifndef MODELS_GZ_H
#define MODELS_GZ_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

/* An open file. A zeroed one is closed. */
struct gz {
    gzFile file;
    char path[PATH_MAX];
};

/* Opens a regular file. */
int gz_open(struct gz *gz, const char *path);
void gz_close(struct gz *gz); /* accepts closed ones */

/* Reads up to bytes of what the file holds, uncompressed, and returns how many:
 * fewer only at its end. The checksum of a compressed file is verified at its
 * end. */
int64_t gz_read(struct gz *gz, void *out, size_t bytes);

/* Returns a failure for a file that ends after got bytes of those expected,
 * and says whether it is damaged, or only too short. */
int gz_truncated(struct gz *gz, int64_t expected, int64_t got);

/* Reads a file as a whole, with a zero byte behind it. The caller frees it. */
int gz_read_file(const char *path, char **bytes, size_t *length);

#endif
