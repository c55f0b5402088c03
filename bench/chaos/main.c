/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - hvd-chaos: runs a command that starts ranks, kills, stops, slows and
 * cuts off ranks at random moments that come from a seed, and says at the end
 * what was survived.
 *
 *   job.c      the processes of the command, and which are ranks
 *   inflict.c  when which rank is hurt, and how
 *   harm.c     doing that, and taking it back
 *   run.c      the command, to the last of its processes and files
 *   report.c   what was done, and how it ended
 */
#include "chaos/report.h"
#include "command/command.h"

#include <errno.h>
#include <hvd.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { STATUS_USAGE = 64 };

struct options {
    struct command_line line;
    struct chaos_settings settings;
    const char *json; /* a file, "-" or NULL */
    char **words;     /* the command, in argv; NULL: none */
};

enum {
    KEY_SEED = 256,
    KEY_EVERY,
    KEY_DURATION,
    KEY_AFTER,
    KEY_KILL,
    KEY_STOP,
    KEY_SLOW,
    KEY_SLOW_TIME,
    KEY_CUT,
    KEY_DEAD,
    KEY_LEFT,
    KEY_TOGETHER,
    KEY_RANKS,
    KEY_SPARE,
    KEY_LIMIT,
    KEY_JSON,
};

static const struct argp_option flags[] = {
    {"seed", KEY_SEED, "N", 0, "draw the faults from N (a random number)", 0},
    {"every", KEY_EVERY, "SECONDS", 0,
     "hurt a rank every SECONDS on average (2)", 0},
    {"after", KEY_AFTER, "SECONDS", 0,
     "leave the ranks alone for SECONDS first (0)", 0},
    {"duration", KEY_DURATION, "SECONDS", 0,
     "begin no fault after SECONDS (until the command ends)", 0},
    {"kill", KEY_KILL, 0, 0, "kill ranks (the default)", 0},
    {"stop", KEY_STOP, "SECONDS", 0, "stop ranks for SECONDS; 0: for ever", 0},
    {"slow", KEY_SLOW, "PERCENT", 0, "let ranks run PERCENT of the time only",
     0},
    {"slow-time", KEY_SLOW_TIME, "SECONDS", 0, "for SECONDS (5); 0: for ever",
     0},
    {"cut", KEY_CUT, "SECONDS", 0,
     "cut the links of ranks in network namespaces of their own for SECONDS; "
     "0: for ever",
     0},
    {"max-dead", KEY_DEAD, "N", 0, "kill N ranks at most (any number)", 0},
    {"min-left", KEY_LEFT, "N", 0, "leave N ranks unhurt at least (1)", 0},
    {"together", KEY_TOGETHER, "N", 0,
     "kill N ranks at a time, within 5 ms (1)", 0},
    {"spare-rank0", KEY_SPARE, 0, 0, "never hurt rank 0", 0},
    {"ranks", KEY_RANKS, "N", 0,
     "begin when there are N ranks (when no more come for a second)", 0},
    {"limit", KEY_LIMIT, "SECONDS", 0,
     "end the command after SECONDS: it hangs (no limit)", 0},
    {"json", KEY_JSON, "FILE", 0,
     "write the report as JSON, too; -: to standard output", 0},
    {"quiet", 'q', 0, 0, "print no line for each fault", 0},
    COMMAND_FLAGS,
};

/* ------------------------------------------------------------------ options */

/* Reads seconds above 0. */
static error_t seconds_above(struct command_line *line, const char *flag,
                             const char *text, double *seconds)
{
    error_t error = command_real(line, flag, text, seconds);

    return error || *seconds > 0
               ? error
               : command_refuse(line, "%s: '%s' is not above 0", flag, text);
}

/* Reads how long faults of a kind last, and asks for them. */
static error_t want(struct options *o, enum chaos_kind kind, const char *flag,
                    const char *text)
{
    o->settings.wanted[kind] = true;
    return command_real(&o->line, flag, text, &o->settings.lasts[kind]);
}

static error_t slow(struct options *o, const char *text)
{
    int percent = 0;
    error_t error = command_number(&o->line, "--slow", text, 1, 99, &percent);

    o->settings.wanted[CHAOS_SLOW] = true;
    o->settings.slow_share = percent / 100.0;
    return error;
}

static error_t parse_time(struct options *o, int key, const char *text)
{
    struct chaos_settings *s = &o->settings;

    switch (key) {
    case KEY_EVERY: return seconds_above(&o->line, "--every", text, &s->every);
    case KEY_AFTER: return command_real(&o->line, "--after", text, &s->after);
    case KEY_DURATION:
        return seconds_above(&o->line, "--duration", text, &s->duration);
    case KEY_LIMIT: return seconds_above(&o->line, "--limit", text, &s->limit);
    case KEY_STOP: return want(o, CHAOS_STOP, "--stop", text);
    case KEY_CUT: return want(o, CHAOS_CUT, "--cut", text);
    case KEY_SLOW_TIME:
        return command_real(&o->line, "--slow-time", text,
                            &s->lasts[CHAOS_SLOW]);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_count(struct options *o, int key, const char *text)
{
    struct chaos_settings *s = &o->settings;
    struct command_line *line = &o->line;
    int seed = 0;
    error_t error;

    switch (key) {
    case KEY_SEED:
        error = command_number(line, "--seed", text, 0, INT_MAX, &seed);
        s->seed = (uint64_t)seed;
        return error;
    case KEY_DEAD:
        return command_number(line, "--max-dead", text, 0, INT_MAX,
                              &s->most_dead);
    case KEY_LEFT:
        return command_number(line, "--min-left", text, 0, INT_MAX,
                              &s->least_left);
    case KEY_TOGETHER:
        return command_number(line, "--together", text, 1, 64, &s->together);
    case KEY_RANKS:
        return command_number(line, "--ranks", text, 1, INT_MAX, &s->nranks);
    case KEY_SLOW: return slow(o, text);
    default: return parse_time(o, key, text);
    }
}

static error_t finish_options(struct options *o)
{
    struct chaos_settings *s = &o->settings;
    bool any = false;

    if (o->line.outcome != OPTIONS_RUN)
        return 0;
    if (!o->words)
        return command_refuse(&o->line, "which command? see --help");
    for (int kind = 0; kind < CHAOS_KINDS; kind++)
        any |= s->wanted[kind];
    s->wanted[CHAOS_KILL] |= !any;
    return 0;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct options *o = state->input;
    error_t error;

    switch (key) {
    case KEY_KILL: o->settings.wanted[CHAOS_KILL] = true; return 0;
    case KEY_SPARE: o->settings.spare_rank0 = true; return 0;
    case KEY_JSON: o->json = text; return 0;
    case 'q': o->settings.quiet = true; return 0;
    case ARGP_KEY_ARG:
        /* The words that follow are the command's. */
        o->words = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END: return finish_options(o);
    default: break;
    }
    error = parse_count(o, key, text);
    return error == ARGP_ERR_UNKNOWN ? command_key(&o->line, flags, key, state)
                                     : error;
}

static const struct argp parser = {
    .options = flags,
    .parser = parse_option,
    .args_doc = "[--] COMMAND [ARGUMENT...]",
    .doc =
        "Run COMMAND, which starts ranks in any way, hurt ranks at random, and "
        "say at the end what was survived.\v"
        "The exit status is 0 if the command ended with 0 after at least one "
        "fault and left nothing behind; the command's status if that is not 0; "
        "1 if something was left behind; 69 if there was nothing to hurt; 124 "
        "if the command took longer than --limit; 64 for a wrong command "
        "line.\n\n"
        "Examples:\n"
        "  hvd-chaos --seed 7 --every 2 -- mpi-launch.sh --elastic -np 6 "
        "./program\n"
        "  hvd-chaos --stop 15 --slow 20 --spare-rank0 --limit 300 -- hvd-run "
        "-n 4 ./program",
};

/* --------------------------------------------------------------------- main */

static int run(struct options *o, FILE *json)
{
    struct run_result result;
    int status;

    if (run_command(&o->settings, o->words, &result) < 0)
        return 1;
    report_text(&o->settings, &result);
    status = report_status(&result);
    if (json && report_json(&o->settings, o->words, &result, json) < 0) {
        chaos_say("%s: %s", o->json, strerror(errno));
        status = status ? status : 1;
    }
    run_result_fini(&result);
    return status;
}

/* Opens the report before anything is run or hurt: a path that cannot be
 * written should not cost a run. */
static int run_reported(struct options *o)
{
    FILE *json = NULL;

    if (o->json)
        json = strcmp(o->json, "-") == 0 ? stdout : fopen(o->json, "we");
    if (o->json && !json) {
        chaos_say("%s: %s", o->json, strerror(errno));
        return 1;
    }
    return run(o, json);
}

int main(int argc, char **argv)
{
    unsigned drawn = 1;
    struct options o = {.settings = {.every = 2,
                                     .lasts = {[CHAOS_SLOW] = 5},
                                     .most_dead = -1,
                                     .least_left = 1,
                                     .together = 1}};

    if (getrandom(&drawn, sizeof drawn, 0) == (ssize_t)sizeof drawn)
        o.settings.seed = drawn % 1000000;
    switch (command_parse_before(&parser, argc, argv, &o)) {
    case OPTIONS_ERROR: chaos_say("%s", o.line.error); return STATUS_USAGE;
    case OPTIONS_HELP: command_help(&parser, "hvd-chaos", stdout); return 0;
    case OPTIONS_VERSION: printf("hvd-chaos %s\n", hvd_version()); return 0;
    default: return run_reported(&o);
    }
}
