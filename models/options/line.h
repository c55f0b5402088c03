/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.h - a program's command line, and how it ends. Options are argp's, read
 * in silence: what is wrong is one line, which names the option, what was given
 * and what is accepted; who prints it is up to the program.
 */
#ifndef MODELS_LINE_H
#define MODELS_LINE_H

#include <argp.h>
#include <stdio.h>

/* What a wrong command line exits with: sysexits.h's EX_USAGE, as argp. */
enum { LINE_EXIT_USAGE = 64 };

enum { LINE_RUN = 0, LINE_HELP = 1, LINE_VERSION = 2 };

/* Rows that every table has. */
#define LINE_ROWS                                                              \
    {"help", 'h', 0, 0, "print this text", -1},                                \
    {                                                                          \
        "version", 'V', 0, 0, "print the version", -1                          \
    }

/* ... and those of most. */
#define LINE_PROFILE_ROW(key)                                                  \
    {                                                                          \
        "profile", key, "DIR", 0,                                              \
            "write what the device's memory and time go to into DIR "          \
            "(report.html, "                                                   \
            "profile.json), or print it: --profile text",                      \
            0                                                                  \
    }

struct line {
    const char *program;             /* "mnist" */
    const char *doc;                 /* argp's: before the options \v after */
    const struct argp_option *table; /* with LINE_ROWS */
    /* Take an option; value NULL: it has none. 0, or PROBLEM with the text
     * kept. */
    int (*take)(void *context, int key, const char *value);
    void *context;
    const char *words; /* what comes beside options, for the help: take gets
                          each, with key 0; NULL: nothing may */
};

/* LINE_*, or PROBLEM with the text kept. Prints nothing. */
int line_parse(const struct line *line, int argc, char **argv);

/* What --help prints. */
void line_help(const struct line *line, FILE *out);

/* For programs of one process: carry out what line_parse returned if it is not
 * LINE_RUN. Returns the exit status. */
int line_settle(const struct line *line, int outcome);

/* ... and the end: one line on stderr if status, or what was printed, failed.
 * Returns the exit status. */
int line_end(const struct line *line, int status);

#endif
