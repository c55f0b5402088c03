/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replace.h - a file that appears whole or not at all: it is written beside its
 * place, under another name, and renamed when it is on the disk.
 */
#ifndef IPU_FILE_REPLACE_H
#define IPU_FILE_REPLACE_H

#include <stddef.h>

/* 0, or -1 with errno; then what was there is still there. */
int ipu__file_replace(const char *path, const void *data, size_t bytes);

#endif
