/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_rows.h - the options of mnist and char_gpt: their help, and where
 * their values go.
 */
#ifndef MODELS_OPTIONS_ROWS_H
#define MODELS_OPTIONS_ROWS_H

#include "options/options.h"

/* Returns the options of a program for argp. For one thread at a time: the next
 * call writes to the same memory. */
const struct argp_option *options_table(enum options_program program);

/* Reads the value of an option into a struct options: line.h's take. */
int options_take(void *options, int key, const char *value);

#endif
