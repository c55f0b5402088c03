/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - files that appear whole or not at all.
 */
#ifndef IPU_REPORT_FILE_H
#define IPU_REPORT_FILE_H

#include <stddef.h>

/* Make the directory, if only it is missing, and see that files can be made
 * in it. IPU_ERR_DATA names it and why not. */
int ipu__directory_check(const char *directory);

/* directory/name becomes data. IPU_ERR_DATA names the path and why not; what
 * was there before stays then. */
int ipu__report_file_write(const char *directory, const char *name,
                           const char *data, size_t bytes);

#endif
