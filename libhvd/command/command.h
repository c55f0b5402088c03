/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - what the command lines of all subcommands share.
 */
#ifndef COMMAND_COMMAND_H
#define COMMAND_COMMAND_H

#include <argp.h>
#include <stdint.h>
#include <stdio.h>

enum { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION, OPTIONS_ERROR = -1 };

/* The first member of the options of every subcommand. */
struct command_line {
    int outcome;     /* OPTIONS_* */
    char error[256]; /* one line, when parsing failed */
};

/* The last rows of a list of options. */
#define COMMAND_FLAGS                                                          \
    {"help", 'h', NULL, 0, "show this", -1},                                   \
        {"version", 'V', NULL, 0, "show the version", -1},                     \
    {                                                                          \
        0, 0, 0, 0, 0, 0                                                       \
    }

/* Note one line of what is wrong; EINVAL, for the parser to return. */
__attribute__((format(printf, 2, 3))) error_t command_refuse(
    struct command_line *line, const char *format, ...);

/* Read text whole or refuse it, naming the flag. */
error_t command_bytes(struct command_line *line, const char *flag,
                      const char *text, int64_t *bytes);
error_t command_number(struct command_line *line, const char *flag,
                       const char *text, int least, int most, int *number);
/* A finite number of 0 or more. */
error_t command_real(struct command_line *line, const char *flag,
                     const char *text, double *number);
/* The place of text among names, which NULL ends. */
error_t command_choice(struct command_line *line, const char *flag,
                       const char *text, const char *const *names, int *chosen);

/* For the keys that mean the same everywhere; ARGP_ERR_UNKNOWN for others. */
error_t command_key(struct command_line *line, const struct argp_option *flags,
                    int key, const struct argp_state *state);

/* Parse by argp, in silence. options begins with a struct command_line.
 * OPTIONS_*; with OPTIONS_ERROR its error tells. */
int command_parse(const struct argp *parser, int argc, char **argv,
                  void *options);

/* What --help prints. */
void command_help(const struct argp *parser, const char *name, FILE *out);

/* Digits, and K, M or G (powers of 1024) with or without B. -1: malformed, or
 * beyond 64 bits. */
int64_t command_parse_bytes(const char *text);

#endif
