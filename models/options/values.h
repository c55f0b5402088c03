/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.h - the values of options. Numbers are read whole and in range or not
 * at all: "10x", "", " 5" and "1e3" for a count are errors. All return 0, or
 * PROBLEM with a text that names the option, what was given and what is
 * accepted.
 */
#ifndef MODELS_VALUES_H
#define MODELS_VALUES_H

#include <stdint.h>

/* A whole number in [low, high], digits only. */
int value_whole(const char *option, const char *value, int64_t low,
                int64_t high, int64_t *number);

/* A decimal number above 0, or if zero is set, of 0 or more; at most high. No
 * hexadecimal, no "inf", no "nan". */
/* The same, of a smaller type. */
int value_int(const char *option, const char *value, int low, int high,
              int *number);

int value_real(const char *option, const char *value, int zero, double high,
               double *number);

/* What find makes of it, 0 or more; names says what there is. */
int value_name(const char *option, const char *value,
               int (*find)(const char *name), const char *names, int *number);

int value_path(const char *option, const char *value, const char **path);

#endif
