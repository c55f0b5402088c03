/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.h - writes files that appear whole or not at all.
 */
#ifndef IPU_REPORT_FILE_H
#define IPU_REPORT_FILE_H

#include <stddef.h>

/* Makes the directory if only its last part is missing, and checks that files
 * can be made in it. Returns IPU_ERR_DATA with the directory and the reason. */
int ipu__directory_check(const char *directory);

/* Writes data to directory/name. Returns IPU_ERR_DATA with the path and the
 * reason; the file then keeps its old content. */
int ipu__report_file_write(const char *directory, const char *name,
                           const char *data, size_t bytes);

#endif
