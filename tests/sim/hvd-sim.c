/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd-sim - runs libhvd's core, algorithms and public calls in simulated worlds
 * of many ranks, in one process and in virtual time (docs/SIMULATOR.md). It
 * explores random scripts, or measures one request with --hosts.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/kind.h"
#include "command/command.h"
#include "core/settings/settings.h"
#include "explore.h"
#include "seeds.h"

struct options {
    struct command_line line;
    struct sim_seeds seeds;
    int twice_each, without;
    bool measures;
    struct measure_options measure;
};

enum {
    KEY_WITHOUT = 256,
    KEY_TWICE,
    KEY_LOCAL,
    KEY_OVERHEAD,
    KEY_EVERY,
    KEY_CSV
};

static const struct argp_option flags[] = {
    {0, 0, 0, 0, "Exploring:", 1},
    SIM_SEEDS_FLAGS("20000"),
    {"twice", KEY_TWICE, "N", 0,
     "run each N-th seed twice and compare the runs (64; 0: none)", 0},
    {"without", KEY_WITHOUT, "MASK", 0,
     "leave these features out of every seed", 0},
    {0, 0, 0, 0, "Measuring:", 2},
    {"hosts", 'H', "N", 0, "measure on so many hosts", 0},
    {"ranks", 'r', "N", 0, "ranks on each host (8)", 0},
    {"bytes", 'b', "SIZE", 0, "bytes of a tensor (4)", 0},
    {"kind", 'k', "NAME", 0, "the request (allreduce)", 0},
    {"requests", 'q', "N", 0, "requests one after another (1)", 0},
    {"alpha", 'a', "TIME", 0, "latency between hosts (10us)", 0},
    {"local", KEY_LOCAL, "TIME", 0, "latency within a host (1us)", 0},
    {"overhead", KEY_OVERHEAD, "TIME", 0,
     "time on a core for a message, at each end (0)", 0},
    {"bandwidth", 'B', "GBS", 0, "GB a second of a host's link (0: no limit)",
     0},
    {"every", KEY_EVERY, "TIME", 0,
     "instead, --requests times, this long after one another: a sum of 4 bytes "
     "and one of --bytes, as a backward pass makes them without waiting",
     0},
    {"by-name", 'N', 0, 0, "agree by name, not by order", 0},
    {"csv", KEY_CSV, 0, 0, "print CSV", 0},
    COMMAND_FLAGS};

static error_t parse_time(struct options *options, const char *flag,
                          const char *text, int64_t *ns)
{
    if (hvd__parse_duration(text, ns) == HVD_OK)
        return 0;
    return command_refuse(&options->line, "%s: '%s' is not a time", flag, text);
}

static error_t parse_measure(struct options *options, int key, char *text)
{
    struct measure_options *m = &options->measure;
    double bandwidth = 0;
    error_t error = 0;

    switch (key) {
    case 'H':
        options->measures = true;
        return command_number(&options->line, "--hosts", text, 1, 65536,
                              &m->nhosts);
    case 'r':
        return command_number(&options->line, "--ranks", text, 1, 1024,
                              &m->nlocals);
    case 'b': return command_bytes(&options->line, "--bytes", text, &m->bytes);
    case 'k':
        m->kind = hvd_kind_from_name(text);
        if (m->kind < 0 || m->kind == HVD_JOIN)
            error = command_refuse(&options->line,
                                   "--kind: there is no request '%s'", text);
        return error;
    case 'q':
        return command_number(&options->line, "--requests", text, 1, 1000000,
                              &m->nrequests);
    case 'a': return parse_time(options, "--alpha", text, &m->costs.alpha_ns);
    case KEY_LOCAL:
        return parse_time(options, "--local", text, &m->costs.local_ns);
    case KEY_OVERHEAD:
        return parse_time(options, "--overhead", text, &m->costs.overhead_ns);
    case KEY_EVERY: return parse_time(options, "--every", text, &m->every_ns);
    case 'B':
        error = command_real(&options->line, "--bandwidth", text, &bandwidth);
        m->costs.beta_ns = bandwidth > 0 ? 1 / bandwidth : 0;
        return error;
    case 'N': m->by_name = true; return 0;
    case KEY_CSV: m->is_csv = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_flag(int key, char *text, struct argp_state *state)
{
    struct options *options = state->input;
    struct command_line *line = &options->line;

    switch (key) {
    case KEY_TWICE:
        return command_number(line, "--twice", text, 0, INT32_MAX,
                              &options->twice_each);
    case KEY_WITHOUT:
        return command_number(line, "--without", text, 0, INT32_MAX,
                              &options->without);
    default: break;
    }
    error_t error = sim_seeds_key(line, &options->seeds, key, text);

    if (error == ARGP_ERR_UNKNOWN)
        error = parse_measure(options, key, text);
    return error == ARGP_ERR_UNKNOWN ? command_key(line, flags, key, state)
                                     : error;
}

static const struct argp parser = {
    .options = flags,
    .parser = parse_flag,
    .doc = "Run libhvd in simulated worlds. A seed that fails is printed with "
           "the command that runs it again.",
};

/* --------------------------------------------------------------- exploring */

static volatile uint64_t running;

/* A crash is a failure with a seed too. */
static void report_crash(int signal)
{
    char text[96];
    int n = snprintf(text, sizeof text,
                     "seed %llu: signal %d\n  hvd-sim --seed %llu --verbose\n",
                     (unsigned long long)running, signal,
                     (unsigned long long)running);

    if (write(STDERR_FILENO, text, (size_t)n) < 0)
        _exit(1);
    _exit(1);
}

static void catch_crashes(void)
{
    static char stack[64 << 10];
    const stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = report_crash,
                               .sa_flags = SA_ONSTACK};

    sigaltstack(&other, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGABRT, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
}

static int run_seed(const struct options *options, uint64_t seed)
{
    unsigned mask = ~(unsigned)options->without;
    bool twice =
        options->twice_each > 0 && seed % (unsigned)options->twice_each == 0;
    uint64_t hash;

    running = seed;
    alarm(60);
    if (!explore_seed(seed, mask, options->seeds.verbose)) {
        printf("seed %llu: %s\n  hvd-sim --seed %llu --verbose\n",
               (unsigned long long)seed, sim.why, (unsigned long long)seed);
        return 1;
    }
    hash = sim.hash;
    if (twice && (!explore_seed(seed, mask, false) || sim.hash != hash)) {
        printf("seed %llu: two runs differ\n", (unsigned long long)seed);
        return 1;
    }
    return 0;
}

static int explore(const struct options *options)
{
    uint64_t first = (unsigned)options->seeds.first;

    catch_crashes();
    for (uint64_t seed = first; seed < first + (unsigned)options->seeds.n;
         seed++)
        if (run_seed(options, seed) != 0) {
            printf("found by %llu seeds\n",
                   (unsigned long long)(seed - first + 1));
            return 1;
        }
    alarm(0);
    printf("%d seeds, all well\n", options->seeds.n);
    return 0;
}

int main(int argc, char **argv)
{
    struct options options = {
        .seeds = {.first = 1, .n = 20000},
        .twice_each = 64,
        .measure = {.nlocals = 8,
                    .bytes = 4,
                    .nrequests = 1,
                    .costs = {.alpha_ns = 10000,
                              .local_ns = 1000,
                              .eager = (size_t)1 << 40}},
    };

    switch (command_parse(&parser, argc, argv, &options)) {
    case OPTIONS_HELP: command_help(&parser, "hvd-sim", stdout); return 0;
    case OPTIONS_VERSION: printf("hvd-sim %s\n", HVD_VERSION_STRING); return 0;
    case OPTIONS_ERROR:
        fprintf(stderr, "hvd-sim: %s\n", options.line.error);
        return 1;
    default: break;
    }
    if (!options.measures)
        return explore(&options);
    measure_head(options.measure.is_csv, stdout);
    return measure(&options.measure, stdout) ? 0 : 1;
}
