/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_report.c - ipu-report: shows a profile, or compares two of them.
 *
 * The library reads the profiles and makes the texts; this program only chooses
 * among them. The report goes to standard output and, with --html, to a page.
 * Growth is reported on standard error, so that the report stays readable by
 * programs.
 */
#include "command/command.h"
#include "disk/disk.h"

#include <ipu.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct report_options {
    struct command_line line;
    const char *paths[2];
    int npaths;
    int format;
    const char *html; /* file of the page; NULL: none */
    bool limited;
    double limit; /* percent */
};

enum { KEY_FORMAT = 256, KEY_HTML, KEY_LIMIT };

static const char *const formats[] = {"text", "json", NULL};

static const struct argp_option flags[] = {
    {"format", KEY_FORMAT, "FORMAT", 0, "text or json (text)", 0},
    {"html", KEY_HTML, "FILE", 0, "write a page to FILE, too", 0},
    {"fail-if-over", KEY_LIMIT, "PERCENT", 0,
     "exit with 1 if cycles, or memory of the fullest tile, grew by more", 0},
    COMMAND_FLAGS,
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct report_options *o = state->input;

    switch (key) {
    case KEY_FORMAT:
        return command_choice(&o->line, "--format", text, formats, &o->format);
    case KEY_HTML: o->html = text; return 0;
    case KEY_LIMIT:
        o->limited = true;
        return command_real(&o->line, "--fail-if-over", text, &o->limit);
    case ARGP_KEY_ARG:
        if (o->npaths == 2)
            return command_key(&o->line, flags, key, state);
        o->paths[o->npaths++] = text;
        return 0;
    case ARGP_KEY_END:
        if (o->line.outcome != OPTIONS_RUN)
            return 0; /* help needs no profile */
        if (o->npaths == 0)
            return command_refuse(&o->line, "which profile? Give a "
                                            "profile.json, or its directory");
        if (o->npaths == 1 && o->limited)
            return command_refuse(&o->line, "--fail-if-over compares: give a "
                                            "second profile");
        return 0;
    default: return command_key(&o->line, flags, key, state);
    }
}

static const struct argp parser = {
    .options = flags,
    .parser = parse_option,
    .args_doc = "PROFILE [PROFILE]",
    .doc = "Show a profile of the software IPU, or compare the second with "
           "the first.\v"
           "A profile is a profile.json, or the directory that a program has "
           "written with --profile. Exit status: 0; 1 for a profile that "
           "cannot be read, or one that grew by more than --fail-if-over; 2 "
           "for a wrong command line.",
};

static int complain(const char *text)
{
    fprintf(stderr, "ipu-report: %s\n", text);
    return 1;
}

/* ------------------------------------------------------------------- output */

/* Makes the report of one profile, or the comparison of two. */
static int print_profiles(ipu_profile *const profiles[2],
                          ipu_profile_format format, char **text)
{
    return profiles[1] ? ipu_profile_compare_print(profiles[0], profiles[1],
                                                   format, text)
                       : ipu_profile_print(profiles[0], format, text);
}

/* Writes the page. The file holds the whole page, or is not written at all. */
static int write_page(const char *path, const char *text)
{
    int status = disk__replace(path, text, strlen(text),
                               DISK__DIRECT | DISK__SYNC | DISK__SWEEP);

    if (status >= 0)
        return 0;
    fprintf(stderr, "ipu-report: --html %s: cannot be written: %s\n", path,
            disk__text(status));
    return 1;
}

static int put_page(const struct report_options *o,
                    ipu_profile *const profiles[2])
{
    char *text = NULL;
    int status;

    if (print_profiles(profiles, IPU_PROFILE_HTML, &text) < 0)
        return complain(ipu_last_error());
    status = write_page(o->html, text);
    free(text);
    return status;
}

static int put_text(const struct report_options *o,
                    ipu_profile *const profiles[2])
{
    char *text = NULL;

    if (print_profiles(profiles,
                       o->format ? IPU_PROFILE_JSON : IPU_PROFILE_TEXT,
                       &text) < 0)
        return complain(ipu_last_error());
    fputs(text, stdout);
    free(text);
    if (fflush(stdout) != 0 || ferror(stdout))
        return complain("the report could not be written");
    return 0;
}

/* Reports growth beyond the limit on standard error; returns 1 then. */
static int check_growth(const struct report_options *o,
                        ipu_profile *const profiles[2])
{
    ipu_profile_change change = {.size = sizeof change};

    if (ipu_profile_compare(profiles[0], profiles[1], &change) < 0)
        return complain(ipu_last_error());
    if (change.cycles_percent <= o->limit && change.memory_percent <= o->limit)
        return 0;
    fprintf(stderr,
            "ipu-report: grew by more than %g %%: cycles by %.2f %%, memory of "
            "the fullest tile by %.2f %%\n",
            o->limit, change.cycles_percent, change.memory_percent);
    return 1;
}

/* ------------------------------------------------------------------ program */

static int run_report(const void *options)
{
    const struct report_options *o = options;
    ipu_profile *profiles[2] = {NULL, NULL};
    int status = 0;

    for (int i = 0; i < o->npaths && !status; i++)
        if (ipu_profile_read(o->paths[i], &profiles[i]) < 0)
            status = complain(ipu_last_error());
    if (!status && o->html)
        status = put_page(o, profiles);
    if (!status)
        status = put_text(o, profiles);
    if (!status && o->limited)
        status = check_growth(o, profiles);
    ipu_profile_free(profiles[0]);
    ipu_profile_free(profiles[1]);
    return status;
}

int main(int argc, char **argv)
{
    struct report_options options = {.npaths = 0};

    return command_main(&parser, "ipu-report", argc, argv, &options,
                        run_report);
}
