/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd-run - starts any program that uses libhvd as several workers, on this
 * host or on others, without MPI (launch.h).
 */
#include "command/command.h"
#include "launch/launch.h"
#include "launch/remote.h"

#include <errno.h>
#include <hvd.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct run_options {
    struct command_line line;
    struct launch launch;
    int most;     /* of --elastic; 0: not given */
    char **words; /* the program and its arguments, in argv; NULL: none */
};

enum {
    KEY_PS = 256,
    KEY_EVALUATOR,
    KEY_PORT,
    KEY_ELASTIC,
    KEY_RESTARTS,
    KEY_SCRIPT,
    KEY_SPARE,
    KEY_RSH,
};

static const struct argp_option flags[] = {
    {"workers", 'n', "N", 0, "start N workers (1)", 0},
    {"ps", KEY_PS, "N", 0, "start N parameter servers, too", 0},
    {"evaluator", KEY_EVALUATOR, 0, 0, "start an evaluator, too", 0},
    {"base-port", KEY_PORT, "N", 0,
     "have the tasks listen on the ports from N on (ports that are free)", 0},
    {"elastic", KEY_ELASTIC, "MIN:MAX", 0,
     "start MAX workers, of which all but MIN may be lost", 0},
    {"spare", KEY_SPARE, "N", 0,
     "with --elastic, start N workers more, which replace lost ones (0)", 0},
    {"restarts", KEY_RESTARTS, "N", 0,
     "start a worker that has failed again, at most N times each (0)", 0},
    {"host-discovery-script", KEY_SCRIPT, "COMMAND", 0,
     "ask COMMAND once a second how many workers may run: it prints "
     "localhost:N",
     0},
    {"rsh", KEY_RSH, "COMMAND", 0,
     "start workers on all hosts that the script prints, as host:N, by COMMAND "
     "HOST (ssh, for instance)",
     0},
    COMMAND_FLAGS,
};

/* Reads MIN:MAX. */
static error_t parse_range(struct run_options *o, const char *text)
{
    const char *colon = strchr(text, ':');
    char least[16] = "";

    if (!colon || (size_t)(colon - text) >= sizeof least)
        return command_refuse(&o->line, "--elastic: '%s' is not MIN:MAX", text);
    memcpy(least, text, (size_t)(colon - text));
    if (command_number(&o->line, "--elastic", least, 1, LAUNCH_MOST_TASKS,
                       &o->launch.least) != 0)
        return EINVAL;
    return command_number(&o->line, "--elastic", colon + 1, o->launch.least,
                          LAUNCH_MOST_TASKS, &o->most);
}

/* Looks at what options say together. */
static error_t check_options(struct run_options *o)
{
    struct launch *l = &o->launch;

    if (o->line.outcome != OPTIONS_RUN)
        return 0;
    if (!o->words)
        return command_refuse(&o->line, "which program? see --help");
    if (o->most > 0 && l->workers > 0)
        return command_refuse(&o->line,
                              "-n and the MAX of --elastic say the same: give "
                              "one of them");
    if (l->rsh && (!l->script || o->most == 0))
        return command_refuse(&o->line, "--rsh needs --elastic and "
                                        "--host-discovery-script");
    if (l->rsh && (l->servers > 0 || l->evaluator))
        return command_refuse(&o->line, "--rsh starts workers only: leave --ps "
                                        "and --evaluator out");
    if (l->spares > 0 && o->most == 0)
        return command_refuse(&o->line, "--spare needs --elastic");
    if (l->script && o->most == 0)
        return command_refuse(&o->line,
                              "--host-discovery-script needs --elastic");
    if (l->workers == 0)
        l->workers = o->most > 0 ? o->most + l->spares : 1;
    return 0;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct run_options *o = state->input;
    struct launch *l = &o->launch;

    switch (key) {
    case 'n':
        return command_number(&o->line, "--workers", text, 1, LAUNCH_MOST_TASKS,
                              &l->workers);
    case KEY_PS:
        return command_number(&o->line, "--ps", text, 1, LAUNCH_MOST_TASKS,
                              &l->servers);
    case KEY_EVALUATOR: l->evaluator = true; return 0;
    case KEY_PORT:
        return command_number(&o->line, "--base-port", text, LAUNCH_LEAST_PORT,
                              LAUNCH_MOST_PORT, &l->base_port);
    case KEY_ELASTIC: return parse_range(o, text);
    case KEY_RESTARTS:
        return command_number(&o->line, "--restarts", text, 0, INT_MAX,
                              &l->restarts);
    case KEY_SPARE:
        return command_number(&o->line, "--spare", text, 0, LAUNCH_MOST_TASKS,
                              &l->spares);
    case KEY_SCRIPT: l->script = text; return 0;
    case KEY_RSH: l->rsh = text; return 0;
    case ARGP_KEY_ARG:
        /* The words that follow are the program's. */
        o->words = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END: return check_options(o);
    default: return command_key(&o->line, flags, key, state);
    }
}

static const struct argp parser = {
    .options = flags,
    .parser = parse_option,
    .args_doc = "PROGRAM [ARGUMENT...]",
    .doc = "Start PROGRAM as several workers on this host, or with --rsh on "
           "others, which train together without MPI.\v"
           "The exit status is that of the task that failed first; 128 + N if "
           "signal N ended it; 126 or 127 if the program cannot be run or "
           "found; 64 for a wrong command line. With --elastic it is 0 if MIN "
           "workers end with 0, and none fails after that.\n\n"
           "Examples:\n"
           "  hvd-run -n 4 mnist --epochs 1\n"
           "  hvd-run -n 2 python3 train.py\n"
           "  hvd-run --elastic 2:4 --restarts 10 ./program",
};

enum { WRONG_LINE = 64, CANNOT_RUN = 126, NOT_FOUND = 127 };

/* Becomes the program. */
static int become(void *context)
{
    char **words = context;

    execvp(words[0], words);
    int error = errno;
    fprintf(stderr, "hvd-run: %s: %s\n", words[0], strerror(error));
    return error == ENOENT ? NOT_FOUND : CANNOT_RUN;
}

int main(int argc, char **argv)
{
    struct run_options o = {.launch = {.program = "hvd-run", .start = become}};

    if (argc == 2 && strcmp(argv[1], LAUNCH__AGENT) == 0)
        return launch_agent(become);
    switch (command_parse_before(&parser, argc, argv, &o)) {
    case OPTIONS_ERROR:
        fprintf(stderr, "hvd-run: %s\n", o.line.error);
        return WRONG_LINE;
    case OPTIONS_HELP: command_help(&parser, "hvd-run", stdout); return 0;
    case OPTIONS_VERSION: printf("hvd-run %s\n", hvd_version()); return 0;
    default: o.launch.context = o.words; return launch_run(&o.launch);
    }
}
