/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.h - reads a program's command line, and ends the program. Options are
 * argp's. Reading prints nothing: a mistake becomes a problem (problem.h) of
 * one line, which names the option, the given value and the accepted ones.
 */
#ifndef MODELS_LINE_H
#define MODELS_LINE_H

#include "options/values.h"

#include <argp.h>
#include <stdio.h>

/* The exit status of a wrong command line: EX_USAGE of sysexits.h, as argp has
 * it. */
enum { LINE_EXIT_USAGE = 64 };

enum { LINE_RUN = 0, LINE_HELP = 1, LINE_VERSION = 2 };

/* The rows that every table has. */
#define LINE_ROWS                                                              \
    {"help", 'h', 0, 0, "print this text", -1},                                \
    {                                                                          \
        "version", 'V', 0, 0, "print the version", -1                          \
    }

/* The row that most tables have. */
#define LINE_PROFILE_HELP                                                      \
    "write what the device's memory and time go to into DIR (report.html, "    \
    "profile.json), or print it: --profile text"
#define LINE_QUIET_HELP                                                        \
    "print nothing but failures, and what other options ask for"
#define LINE_PROFILE_ROW(key)                                                  \
    {                                                                          \
        "profile", key, "DIR", 0, LINE_PROFILE_HELP, 0                         \
    }

/* An option that goes into a variable. */
struct line_row {
    const char *name;
    int letter;           /* 0: there is none */
    const char *argument; /* of the help; NULL: it takes no value */
    const char *help;
    struct value_form form;
    void *to; /* NULL: another name of the option before */
};

/* The last two members of a row. */
#define LINE_FLAG(variable) {.kind = VALUE_FLAG}, &(variable)
#define LINE_PATH(variable) {.kind = VALUE_PATH}, &(variable)
#define LINE_TEXT(variable) {.kind = VALUE_TEXT}, &(variable)
#define LINE_WHOLE(variable, l, h)                                             \
    {.kind = VALUE_WHOLE, .bytes = sizeof(variable), .low = l, .high = h},     \
        &(variable)
#define LINE_REAL(variable, m) {.kind = VALUE_REAL, .most = m}, &(variable)
#define LINE_NAME(variable, n) {.kind = VALUE_NAME, .names = n}, &(variable)
#define LINE_PROFILE(variable)                                                 \
    {                                                                          \
        "profile", 0, "DIR", LINE_PROFILE_HELP, LINE_PATH(variable)            \
    }

enum { LINE_MOST_ROWS = 32 };

struct line {
    const char *program; /* "mnist" */
    const char *doc;     /* argp's text: before the options \v after them */
    const struct argp_option *table; /* ends with LINE_ROWS */
    /* Takes an option of the table; value is NULL if it has none. Returns 0, or
     * PROBLEM with the text kept. */
    int (*take)(void *context, int key, const char *value);
    void *context;
    const char *words; /* name of the words that are not options, for the help:
                          take gets each with key 0; NULL: there may be none */
    /* These stand in place of a table, and of the options for take: {0} ends
     * them. */
    const struct line_row *rows;
};

/* Returns LINE_*, or PROBLEM with the text kept. Prints nothing. */
int line_parse(const struct line *line, int argc, char **argv);

/* Prints the text of --help. */
void line_help(const struct line *line, FILE *out);

/* Handles an outcome of line_parse that is not LINE_RUN, in a program of one
 * process. Returns the exit status. */
int line_settle(const struct line *line, int outcome);

/* Ends a program of one process: prints a problem on stderr if status is one,
 * or if standard output failed. Returns the exit status. */
int line_end(const struct line *line, int status);

#endif
