/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.h - reads the values of options. A number must be whole and in range:
 * "10x", "", " 5" and "1e3" for a count are errors. All functions return 0, or
 * PROBLEM with a text that names the option, the given value and the accepted
 * ones.
 */
#ifndef MODELS_VALUES_H
#define MODELS_VALUES_H

#include <stddef.h>
#include <stdint.h>

/* Reads a whole number in [low, high], digits only. */
int value_whole(const char *option, const char *value, int64_t low,
                int64_t high, int64_t *number);

/* Reads an int in [low, high], digits only. */
int value_int(const char *option, const char *value, int low, int high,
              int *number);

/* Reads a decimal number above 0, or if zero is set, of 0 or more; at most
 * high. No hexadecimal, no "inf", no "nan". */
int value_real(const char *option, const char *value, int zero, double high,
               double *number);

/* Reads one of the names, which NULL ends, as its place among them. */
int value_name(const char *option, const char *value, const char *const *names,
               int *number);

int value_path(const char *option, const char *value, const char **path);

/* A form says how an option's value is read, and what it is kept in. */
struct value_form {
    enum {
        VALUE_FLAG, /* a bool, which becomes true */
        VALUE_TEXT, /* a const char *; so is a path, but not empty */
        VALUE_PATH,
        VALUE_WHOLE, /* an integer of 4 or 8 bytes, from low to high */
        VALUE_REAL,  /* a double above 0, or from 0 if zero is set, to most */
        VALUE_NAME   /* an int, its place in names */
    } kind;
    size_t bytes; /* of what it is kept in */
    int64_t low, high;
    int zero;
    double most;
    const char *const *names;
};

/* Reads the value of the option --NAME as its form says. */
int value_take(const struct value_form *form, const char *name,
               const char *value, void *to);

#endif
