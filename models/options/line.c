/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line.c - argp would print its own messages and exit, on every rank. So it
 * runs silently (ARGP_NO_ERRS), help and version are options of this file, and
 * explain_option says why argp does not accept an option.
 */
#include "options/line.h"

#include "output/problem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Keys from here on are argp's own, such as ARGP_KEY_END. */
enum { FIRST_OF_ARGP = 0x1000000 };

/* Keys of rows without a letter. */
enum { FIRST_OF_ROWS = 256 };

/* The input that argp hands to parse_option. */
struct parsing {
    const struct line *line;
    int outcome; /* LINE_* */
};

/* Sets the problem of argv[next - 1], an option that argp does not accept. */
static int explain_option(const struct argp_state *state,
                          const struct argp_option *table)
{
    const char *word = state->argv[state->next - 1];
    size_t length = strcspn(word, "=");
    const struct argp_option *match = NULL;
    int matches = 0;

    if (length <= 2 || strncmp(word, "--", 2) != 0)
        return problem_set("'%s' is not an option, or lacks its value; see "
                           "--help",
                           word);
    for (const struct argp_option *o = table; o->name || o->doc; o++) {
        if (!o->name || strncmp(o->name, word + 2, length - 2) != 0)
            continue;
        match = o;
        matches++;
        if (strlen(o->name) == length - 2) {
            matches = 1;
            break;
        }
    }
    if (matches == 0)
        return problem_set("there is no option %s; see --help", word);
    if (matches > 1)
        return problem_set("%s may be more than one option; write it in full",
                           word);
    const struct argp_option *of = match; /* the option that an alias means */
    while (of->flags & OPTION_ALIAS)
        of--;
    if (of->arg)
        return problem_set("--%s needs a value, --%s %s", match->name,
                           match->name, of->arg);
    return problem_set("--%s takes no value, but %s was given", match->name,
                       word);
}

static int key_of(const struct line *line, const struct line_row *row)
{
    return row->letter ? row->letter : FIRST_OF_ROWS + (int)(row - line->rows);
}

/* Returns the options for argp: of rows, in memory that the next call writes
 * to. */
static const struct argp_option *table_of(const struct line *line)
{
    static const struct argp_option ends[] = {LINE_ROWS, {0}};
    static struct argp_option
        table[LINE_MOST_ROWS + sizeof ends / sizeof *ends];
    int n = 0;

    if (!line->rows)
        return line->table;
    for (const struct line_row *r = line->rows; r->name; r++)
        table[n++] = (struct argp_option){.name = r->name,
                                          .key = key_of(line, r),
                                          .arg = r->argument,
                                          .flags = r->to ? 0 : OPTION_ALIAS,
                                          .doc = r->help};
    memcpy(&table[n], ends, sizeof ends);
    return table;
}

static int take_option(const struct line *line, int key, const char *value)
{
    if (!line->rows)
        return line->take(line->context, key, value);
    for (const struct line_row *r = line->rows; r->name; r++)
        if (r->to && key_of(line, r) == key)
            return value_take(&r->form, r->name, value, r->to);
    return problem_set("this option is not read"); /* argp has no other */
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct parsing *parsing = state->input;
    const struct line *line = parsing->line;
    int status = 0;

    switch (key) {
    case 'h': parsing->outcome = LINE_HELP; break;
    case 'V': parsing->outcome = LINE_VERSION; break;
    case ARGP_KEY_ARG:
        status = line->words
                     ? line->take(line->context, 0, value)
                     : problem_set("'%s' is not an option; see --help", value);
        break;
    case ARGP_KEY_ERROR:
        if (*problem_text() == '\0')
            explain_option(state, table_of(line));
        break;
    default:
        if (key >= FIRST_OF_ARGP)
            return ARGP_ERR_UNKNOWN;
        status = take_option(line, key, value);
    }
    return status < 0 ? EINVAL : 0;
}

static struct argp parser_of(const struct line *line)
{
    return (struct argp){.options = table_of(line),
                         .parser = parse_option,
                         .args_doc = line->words,
                         .doc = line->doc};
}

int line_parse(const struct line *line, int argc, char **argv)
{
    const struct argp parser = parser_of(line);
    struct parsing parsing = {line, LINE_RUN};

    problem_set("%s", "");
    error_t failed =
        argp_parse(&parser, argc, argv,
                   ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT, NULL, &parsing);
    if (failed == ENOMEM)
        return problem_set("out of memory");
    return failed ? PROBLEM : parsing.outcome;
}

void line_help(const struct line *line, FILE *out)
{
    const struct argp parser = parser_of(line);
    char *name = strdup(line->program);

    argp_help(&parser, out, ARGP_HELP_STD_HELP, name);
    free(name);
}

int line_settle(const struct line *line, int outcome)
{
    if (outcome < 0) {
        fprintf(stderr, "%s: %s\n", line->program, problem_text());
        return LINE_EXIT_USAGE;
    }
    if (outcome == LINE_HELP)
        line_help(line, stdout);
    else
        printf("%s %s\n", line->program, HVD_VERSION_STRING);
    return line_end(line, 0);
}

int line_end(const struct line *line, int status)
{
    if (status >= 0 && (fflush(stdout) != 0 || ferror(stdout)))
        status = problem_set("standard output: %s", strerror(errno));
    if (status < 0)
        problem_print(stderr, line->program);
    return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
