/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - parses the command lines of programs: the options that all share,
 * errors of one line, and numbers that are read whole or refused. Programs of
 * bench and device/tools link it; no library does.
 */
#ifndef COMMAND_COMMAND_H
#define COMMAND_COMMAND_H

#include <argp.h>
#include <stdint.h>
#include <stdio.h>

enum { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_ERROR = -1 };

/* The parser's state: the first member of the options of every program. */
struct command_line {
    int outcome;     /* one of OPTIONS_* */
    char error[256]; /* one line, if parsing failed */
};

/* The last rows of a list of options. */
#define COMMAND_FLAGS                                                          \
    {"help", 'h', NULL, 0, "show this", -1},                                   \
        {"version", 'V', NULL, 0, "show the version", -1},                     \
    {                                                                          \
        0, 0, 0, 0, 0, 0                                                       \
    }

/* Notes one line that says what is wrong. Returns EINVAL, for the parser to
 * return. */
__attribute__((format(printf, 2, 3))) error_t command_refuse(
    struct command_line *line, const char *format, ...);

/* Read the whole text as a number, or refuse it with an error that names the
 * flag. */
error_t command_bytes(struct command_line *line, const char *flag,
                      const char *text, int64_t *bytes);
error_t command_number(struct command_line *line, const char *flag,
                       const char *text, int least, int most, int *number);
/* Reads a finite number of 0 or more. */
error_t command_real(struct command_line *line, const char *flag,
                     const char *text, double *number);
/* Finds text among names, which NULL ends, and writes its index to chosen. */
error_t command_choice(struct command_line *line, const char *flag,
                       const char *text, const char *const *names, int *chosen);

/* Handles the keys that mean the same in every program; returns
 * ARGP_ERR_UNKNOWN for all others. */
error_t command_key(struct command_line *line, const struct argp_option *flags,
                    int key, const struct argp_state *state);

/* Parses without printing. options begins with a struct command_line. Returns
 * one of OPTIONS_*; after OPTIONS_ERROR, error says why. */
int command_parse(const struct argp *parser, int argc, char **argv,
                  void *options);

/* Does the same, but looks at the words in their order: when the parser gets
 * ARGP_KEY_ARG, it can take all that follow, options too, by setting
 * state->next to state->argc. */
int command_parse_before(const struct argp *parser, int argc, char **argv,
                         void *options);

/* Does what main does: parses, prints help, the version or the error, or else
 * calls run with the options. Returns the exit status: of run, or 2 for a wrong
 * command line. */
int command_main(const struct argp *parser, const char *name, int argc,
                 char **argv, void *options, int (*run)(const void *options));

/* Prints the text of --help. */
void command_help(const struct argp *parser, const char *name, FILE *out);

/* Parses digits, then K, M or G (powers of 1024), with or without B. Returns -1
 * if text is malformed or beyond 64 bits. */
int64_t command_parse_bytes(const char *text);

#endif
