/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - everything measured, for programs.
 */
#ifndef BENCH_JSON_H
#define BENCH_JSON_H

#include "measure.h"

/* 0, or -1 with a line on stderr: whether FILE can be written, before hours
 * of measuring. */
int json_check(const char *path);

/* Write the file in one piece: there is never half of one. */
int json_write(const char *path, const struct bench *bench,
               const struct result *results, int n);

#endif
