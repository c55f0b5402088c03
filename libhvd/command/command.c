/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.c - parses command lines with argp.
 *
 * Every rank parses the same arguments, and argp would print its messages and
 * end the process on each of them. So argp is told to be silent, this file
 * defines the options for help and version, and explain_word says why a word
 * cannot be placed. A number is refused unless the whole word is a number in
 * range.
 */
#include "command/command.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

error_t command_refuse(struct command_line *line, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line->error, sizeof line->error, format, arguments);
    va_end(arguments);
    /* The word that was given may contain anything, and the error is one
     * line. */
    for (char *c = line->error; *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = '?';
    return EINVAL;
}

/* ------------------------------------------------------------------ numbers */

static int64_t unit_of(const char *text)
{
    static const char units[] = "KMG";
    const char *unit;

    if (!*text || strcasecmp(text, "B") == 0)
        return 1;
    unit = strchr(units, toupper((unsigned char)*text));
    if (!unit || (text[1] && strcasecmp(text + 1, "B") != 0))
        return -1;
    return INT64_C(1) << (10 * (unit - units + 1));
}

int64_t command_parse_bytes(const char *text)
{
    char *end;
    long long value;
    int64_t unit, bytes;

    if (!isdigit((unsigned char)text[0]))
        return -1;
    errno = 0;
    value = strtoll(text, &end, 10);
    unit = unit_of(end);
    if (errno || unit < 0 || __builtin_mul_overflow(value, unit, &bytes))
        return -1;
    return bytes;
}

error_t command_bytes(struct command_line *line, const char *flag,
                      const char *text, int64_t *bytes)
{
    int64_t parsed = command_parse_bytes(text);

    if (parsed <= 0)
        return command_refuse(
            line,
            "%s: '%s' is not a number of bytes above 0 (like 512, "
            "64K, 8M, 1G)",
            flag, text);
    *bytes = parsed;
    return 0;
}

error_t command_number(struct command_line *line, const char *flag,
                       const char *text, int least, int most, int *number)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (errno || !isdigit((unsigned char)*text) || *end || value < least ||
        value > most)
        return command_refuse(line,
                              "%s: '%s' is not a whole number from %d to %d",
                              flag, text, least, most);
    *number = (int)value;
    return 0;
}

error_t command_real(struct command_line *line, const char *flag,
                     const char *text, double *number)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !isfinite(value) || value < 0)
        return command_refuse(line, "%s: '%s' is not a number of 0 or more",
                              flag, text);
    *number = value;
    return 0;
}

error_t command_choice(struct command_line *line, const char *flag,
                       const char *text, const char *const *names, int *chosen)
{
    char list[160] = "";

    for (int i = 0; names[i]; i++) {
        size_t used = strlen(list);

        if (strcmp(text, names[i]) == 0) {
            *chosen = i;
            return 0;
        }
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                 names[i]);
    }
    return command_refuse(line, "%s: '%s' is none of %s", flag, text, list);
}

/* ------------------------------------------------------------------ parsing */

/* Explains argv[next - 1], which argp could not place. */
static error_t explain_word(struct command_line *line,
                            const struct argp_option *flags,
                            const struct argp_state *state)
{
    const char *word = state->argv[state->next - 1];
    size_t length = strcspn(word, "=");

    if (length > 2 && strncmp(word, "--", 2) == 0)
        for (const struct argp_option *f = flags; f->name || f->doc; f++)
            if (f->name && strlen(f->name) == length - 2 &&
                strncmp(f->name, word + 2, length - 2) == 0)
                return f->arg
                           ? command_refuse(line, "--%s needs a value, --%s %s",
                                            f->name, f->name, f->arg)
                           : command_refuse(line, "--%s takes no value",
                                            f->name);
    return command_refuse(
        line, "'%s' is not an option, or lacks its value; see --help", word);
}

error_t command_key(struct command_line *line, const struct argp_option *flags,
                    int key, const struct argp_state *state)
{
    switch (key) {
    case 'h': line->outcome = OPTIONS_HELP; return 0;
    case 'V': line->outcome = OPTIONS_VERSION; return 0;
    case ARGP_KEY_ARG:
        return command_refuse(line, "'%s' is one word too many; see --help",
                              state->argv[state->next - 1]);
    case ARGP_KEY_ERROR:
        return *line->error ? 0 : explain_word(line, flags, state);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int parse(const struct argp *parser, int argc, char **argv,
                 unsigned order, void *options)
{
    struct command_line *line = options;
    error_t failed = argp_parse(
        parser, argc, argv, order | ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT,
        NULL, options);

    if (failed && !*line->error)
        command_refuse(line, "%s", strerror(failed));
    return failed ? OPTIONS_ERROR : line->outcome;
}

int command_parse(const struct argp *parser, int argc, char **argv,
                  void *options)
{
    return parse(parser, argc, argv, 0, options);
}

int command_parse_before(const struct argp *parser, int argc, char **argv,
                         void *options)
{
    return parse(parser, argc, argv, ARGP_IN_ORDER, options);
}

void command_help(const struct argp *parser, const char *name, FILE *out)
{
    char copy[64];

    snprintf(copy, sizeof copy, "%s", name);
    argp_help(parser, out, ARGP_HELP_STD_HELP, copy);
}

int command_main(const struct argp *parser, const char *name, int argc,
                 char **argv, void *options, int (*run)(const void *options))
{
    const struct command_line *line = options;

    switch (command_parse(parser, argc, argv, options)) {
    case OPTIONS_HELP: command_help(parser, name, stdout); return 0;
    case OPTIONS_VERSION: printf("%s %s\n", name, HVD_VERSION_STRING); return 0;
    case OPTIONS_ERROR:
        fprintf(stderr, "%s: %s\n", name, line->error);
        return 2;
    default: return run(options);
    }
}
