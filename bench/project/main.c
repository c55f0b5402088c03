/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - hvd-bench project: says what a training step takes on other hosts.
 * hvd-bench runs this program, which is linked with libhvd's insides to ask
 * them (library.h).
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "disk/disk.h"
#include "project/report.h"

/* The exit status for wrong usage, as of the other subcommands. */
enum { STATUS_USAGE = 64 };

enum { MOST_WORLDS = 32, MOST_RANKS = 1 << 20 };

enum { STEPS, BATCHES, ALLREDUCE };

static const char *const table_names[] = {"steps", "batches", "allreduce",
                                          NULL};
static const char *const cost_names[] = {"hvd", "network", NULL};
static const char *const rule_names[] = {"hvd", "ring", NULL};

struct project_options {
    struct command_line line;
    int hosts[MOST_WORLDS];
    int nworlds;
    int nranks;
    struct network network;
    const char *network_name;
    int64_t threshold;
    int costs, rules, table, format;
    double cycle_ms;
    double times[3]; /* forward, backward, update in ms; negative: the file's */
    double speed;
    double jitter;  /* in percent; negative: the file's */
    bool attention; /* it is given; else it is the file's */
    int rank;
    int64_t least, most;
    int factor;
    const char *plot;
    const char *file;
};

enum {
    KEY_NETWORK = 256,
    KEY_LATENCY,
    KEY_OVERHEAD,
    KEY_BANDWIDTH,
    KEY_STREAM,
    KEY_BURST,
    KEY_HANDLING,
    KEY_LOCAL,
    KEY_COPYING,
    KEY_REDUCING,
    KEY_SWITCHING,
    KEY_ATTENTION,
    KEY_CORES,
    KEY_THRESHOLD,
    KEY_COSTS,
    KEY_RULES,
    KEY_CYCLE,
    KEY_FORWARD,
    KEY_BACKWARD,
    KEY_UPDATE,
    KEY_SPEED,
    KEY_RANK,
    KEY_JITTER,
    KEY_TABLE,
    KEY_PLOT,
    KEY_FORMAT
};

static const struct argp_option flags[] = {
    {0, 0, 0, 0, "World:", 1},
    {"hosts", 'H', "N,N...", 0, "hosts, one or several numbers (1,2,4,8,16)",
     1},
    {"ranks", 'n', "N", 0, "ranks on each host (1)", 1},
    {"threshold", KEY_THRESHOLD, "BYTES", 0, "HVD_FUSION_THRESHOLD (64M)", 1},
    {"costs", KEY_COSTS, "hvd|network", 0,
     "choose algorithms by the constants that hvd has for all networks, or by "
     "those below (hvd)",
     1},
    {"rules", KEY_RULES, "hvd|ring", 0,
     "hvd's own rules and algorithms, or a flat ring over all ranks and "
     "batches of what is ready in a cycle, as Horovod has them (hvd)",
     1},
    {"cycle", KEY_CYCLE, "MS", 0, "with --rules=ring: a cycle (5)", 1},
    {0, 0, 0, 0, "Network:", 2},
    {"network", KEY_NETWORK, "NAME", 0,
     "tcp-1g, tcp-10g, tcp-25g, tcp-100g, roce-25g, roce-100g, ib-200g, or the "
     "path of a file that hvd-info --topology --measure --output has written; "
     "what follows changes its constants (tcp-10g)",
     2},
    {"latency", KEY_LATENCY, "US", 0,
     "of a message between hosts, without its overheads", 2},
    {"overhead", KEY_OVERHEAD, "US", 0, "of a message on a core, at each end",
     2},
    {"bandwidth", KEY_BANDWIDTH, "GB/S", 0,
     "of a host's link, in each direction", 2},
    {"stream", KEY_STREAM, "GB/S", 0, "what one rank gets of it; 0: all", 2},
    {"burst", KEY_BURST, "KB", 0,
     "what passes the link at once, if tc's token bucket limits it (0)", 2},
    {"handling", KEY_HANDLING, "NS", 0, "of a byte on a core, at each end", 2},
    {"local", KEY_LOCAL, "US", 0, "a step between ranks of a host", 2},
    {"copying", KEY_COPYING, "NS", 0, "of a byte in memory", 2},
    {"reducing", KEY_REDUCING, "NS", 0, "of a byte added to others", 2},
    {"attention", KEY_ATTENTION, "US", 0,
     "until hvd's thread looks while its rank computes (the file's, or 0)", 2},
    {"switching", KEY_SWITCHING, "US", 0,
     "with --cores: of a core from one rank to another (0)", 2},
    {"cores", KEY_CORES, "N", 0,
     "cores that all ranks share, as hosts made of network namespaces do; 0: "
     "each rank has one (0)",
     2},
    {0, 0, 0, 0, "Training:", 3},
    {"forward", KEY_FORWARD, "MS", 0, "forward pass (the file's)", 3},
    {"backward", KEY_BACKWARD, "MS", 0,
     "backward pass; gradients become ready in proportion (the file's)", 3},
    {"update", KEY_UPDATE, "MS", 0, "update of the weights (the file's)", 3},
    {"speed", KEY_SPEED, "X", 0, "compute X times as fast (1)", 3},
    {"jitter", KEY_JITTER, "PERCENT", 0,
     "deviation of a rank's computing in a step from that of the others, all "
     "of "
     "which wait for the slowest (a timeline's; 0 for a table)",
     3},
    {"rank", KEY_RANK, "R", 0, "read only this rank of a timeline (all)", 3},
    {0, 0, 0, 0, "Output:", 4},
    {"table", KEY_TABLE, "NAME", 0,
     "steps, batches (of the last number of hosts) or allreduce (the time of "
     "one, over sizes; needs no file) (steps)",
     4},
    {"minbytes", 'b', "BYTES", 0, "first size of --table=allreduce (4)", 4},
    {"maxbytes", 'e', "BYTES", 0, "last size (64M)", 4},
    {"stepfactor", 'f', "N", 0, "each size is N times the last (4)", 4},
    {"plot", KEY_PLOT, "FILE", 0, "draw an SVG", 4},
    {"format", KEY_FORMAT, "FORMAT", 0, "text, csv or json (text)", 4},
    COMMAND_FLAGS,
};

/* ------------------------------------------------------------------ options */

static error_t parse_hosts(struct project_options *o, const char *text)
{
    const char *at = text;

    o->nworlds = 0;
    do {
        char *end;
        long n = strtol(at, &end, 10);

        if (end == at || (*end && *end != ',') || n < 1 || n > MOST_RANKS)
            return command_refuse(&o->line,
                                  "-H: '%s' is not a list of whole numbers "
                                  "from 1 to %d",
                                  text, MOST_RANKS);
        if (o->nworlds == MOST_WORLDS)
            return command_refuse(&o->line, "-H: more than %d numbers",
                                  MOST_WORLDS);
        o->hosts[o->nworlds++] = (int)n;
        at = end + (*end == ',');
        if (!*end)
            return 0;
    } while (true);
}

static error_t parse_network(struct project_options *o, const char *text)
{
    const struct network_preset *preset = network_find(text);
    char why[240];

    if (!preset && strchr(text, '/')) {
        o->network_name = text;
        return library_read_network(text, &o->network, why, sizeof why) < 0
                   ? command_refuse(&o->line, "--network: %s", why)
                   : 0;
    }
    if (!preset)
        return command_refuse(&o->line,
                              "--network: '%s' is none of tcp-1g, tcp-10g, "
                              "tcp-25g, tcp-100g, roce-25g, roce-100g, ib-200g "
                              "and has no / of a file",
                              text);
    o->network = preset->network;
    o->network_name = preset->name;
    return 0;
}

/* Returns the place of a constant, and the unit of its option; NULL: the key is
 * none's. */
static double *constant_of(struct network *n, int key, double *unit)
{
    *unit = 1e-6;
    switch (key) {
    case KEY_LATENCY: return &n->latency;
    case KEY_OVERHEAD: return &n->overhead;
    case KEY_LOCAL: return &n->local;
    case KEY_ATTENTION: return &n->attention;
    case KEY_SWITCHING: return &n->switching;
    default: break;
    }
    *unit = 1e9;
    if (key == KEY_BANDWIDTH)
        return &n->bandwidth;
    if (key == KEY_STREAM)
        return &n->stream;
    *unit = 1e3;
    if (key == KEY_BURST)
        return &n->burst;
    *unit = 1e-9;
    switch (key) {
    case KEY_HANDLING: return &n->handling;
    case KEY_COPYING: return &n->copying;
    case KEY_REDUCING: return &n->reducing;
    default: return NULL;
    }
}

static const char *flag_of(int key)
{
    for (const struct argp_option *f = flags; f->name || f->doc; f++)
        if (f->key == key && f->name)
            return f->name;
    return "";
}

static error_t parse_constant(struct project_options *o, int key,
                              const char *text)
{
    double unit, *constant = constant_of(&o->network, key, &unit);
    char flag[32];

    if (!constant)
        return ARGP_ERR_UNKNOWN;
    snprintf(flag, sizeof flag, "--%s", flag_of(key));
    if (command_real(&o->line, flag, text, constant) != 0)
        return EINVAL;
    *constant *= unit;
    o->attention |= key == KEY_ATTENTION;
    if (key == KEY_BANDWIDTH && *constant <= 0)
        return command_refuse(&o->line, "--bandwidth must be more than 0");
    return 0;
}

static error_t parse_output(struct project_options *o, int key,
                            const char *text)
{
    struct command_line *line = &o->line;

    switch (key) {
    case KEY_TABLE:
        return command_choice(line, "--table", text, table_names, &o->table);
    case KEY_FORMAT:
        return command_choice(line, "--format", text, table_formats,
                              &o->format);
    case KEY_PLOT: o->plot = text; return 0;
    case 'b': return command_bytes(line, "-b", text, &o->least);
    case 'e': return command_bytes(line, "-e", text, &o->most);
    case 'f': return command_number(line, "-f", text, 2, 1024, &o->factor);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_end(struct project_options *o)
{
    if (o->line.outcome != OPTIONS_RUN)
        return 0;
    if (!o->file && o->table != ALLREDUCE)
        return command_refuse(&o->line,
                              "which training? A table or a timeline is "
                              "missing; see --help");
    if (o->plot && o->table == ALLREDUCE)
        return command_refuse(&o->line, "--plot draws steps, and "
                                        "--table=allreduce has none");
    if (o->speed <= 0)
        return command_refuse(&o->line, "--speed must be more than 0");
    if (o->least < 4 || o->most < o->least || o->most > INT64_C(1) << 40)
        return command_refuse(&o->line,
                              "-b and -e: from 4 bytes to 1 TiB, and -b is "
                              "not more than -e");
    for (int i = 0; i < o->nworlds; i++)
        if ((int64_t)o->hosts[i] * o->nranks > MOST_RANKS)
            return command_refuse(&o->line,
                                  "%d hosts of %d ranks are more "
                                  "than %d ranks",
                                  o->hosts[i], o->nranks, MOST_RANKS);
    return 0;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct project_options *o = state->input;
    struct command_line *line = &o->line;
    error_t status;

    switch (key) {
    case 'H': return parse_hosts(o, text);
    case 'n': return command_number(line, "-n", text, 1, 4096, &o->nranks);
    case KEY_NETWORK: return parse_network(o, text);
    case KEY_CORES:
        return command_number(line, "--cores", text, 0, 1 << 20,
                              &o->network.cores);
    case KEY_THRESHOLD:
        return command_bytes(line, "--threshold", text, &o->threshold);
    case KEY_COSTS:
        return command_choice(line, "--costs", text, cost_names, &o->costs);
    case KEY_RULES:
        return command_choice(line, "--rules", text, rule_names, &o->rules);
    case KEY_CYCLE: return command_real(line, "--cycle", text, &o->cycle_ms);
    case KEY_FORWARD:
        return command_real(line, "--forward", text, &o->times[0]);
    case KEY_BACKWARD:
        return command_real(line, "--backward", text, &o->times[1]);
    case KEY_UPDATE: return command_real(line, "--update", text, &o->times[2]);
    case KEY_JITTER: return command_real(line, "--jitter", text, &o->jitter);
    case KEY_SPEED: return command_real(line, "--speed", text, &o->speed);
    case KEY_RANK:
        return command_number(line, "--rank", text, 0, INT_MAX, &o->rank);
    case ARGP_KEY_ARG:
        if (o->file)
            return command_key(line, flags, key, state);
        o->file = text;
        return 0;
    case ARGP_KEY_END: return parse_end(o);
    default: break;
    }
    status = parse_constant(o, key, text);
    if (status == ARGP_ERR_UNKNOWN)
        status = parse_output(o, key, text);
    return status == ARGP_ERR_UNKNOWN ? command_key(line, flags, key, state)
                                      : status;
}

static const struct argp parser = {
    .options = flags,
    .parser = parse_option,
    .args_doc = "FILE",
    .doc = "Say what a training step takes on N hosts, what of its "
           "communication the backward pass hides, what it does not, and "
           "why. FILE is a timeline that HVD_TIMELINE has recorded, or a CSV "
           "table: lines forward_ms,X and backward_ms,X and update_ms,X, then "
           "the columns tensor,bytes,ready_ms.",
};

/* --------------------------------------------------------------- projecting */

static int fail(const char *why, int status)
{
    fprintf(stderr, "hvd-bench: project: %s\n", why);
    return status;
}

/* Changes the times of a workload as the options say. */
static void change_times(const struct project_options *o, struct workload *w)
{
    double *times[] = {&w->forward, &w->backward, &w->update};
    double before = w->backward;

    for (int i = 0; i < 3; i++)
        *times[i] =
            (o->times[i] >= 0 ? o->times[i] / 1e3 : *times[i]) / o->speed;
    if (o->jitter >= 0)
        w->deviation = o->jitter / 100;
    for (int i = 0; i < w->n; i++)
        w->tensors[i].ready =
            before > 0 ? w->tensors[i].ready / before * w->backward : 0;
}

static int draw(const struct project_options *o, const char *title,
                const struct projected *rows)
{
    struct disk__output output = {0};
    int status = disk__output_open(&output, o->plot, DISK__DIRECT);
    FILE *out = status < 0 ? NULL : disk__output_stream(&output);
    char text[512];

    if (out) {
        plot_steps(out, title, rows, o->nworlds);
        fclose(out);
        status = disk__output_commit(&output);
    }
    disk__output_close(&output);
    if (status >= 0 && out)
        return 0;
    snprintf(text, sizeof text, "--plot: %.400s: %s", o->plot,
             disk__text(status));
    return fail(text, 1);
}

static void make_title(const struct project_options *o, char *title,
                       size_t size)
{
    const struct network *n = &o->network;
    const char *name = o->file ? strrchr(o->file, '/') : NULL;

    name = !o->file ? "an allreduce" : name ? name + 1 : o->file;
    snprintf(title, size,
             "%.80s, %d ranks a host, %s: latency %g us, overhead %g us, %g "
             "GB/s%s%s",
             name, o->nranks, o->network_name, 1e6 * n->latency,
             1e6 * n->overhead, n->bandwidth / 1e9,
             n->cores ? ", shared cores" : "",
             o->rules == STEP_RING ? "; a flat ring" : "");
}

static void print_tables(const struct project_options *o, const char *title,
                         const struct projected *rows)
{
    if (o->table == BATCHES)
        report_batches(stdout, (enum table_format)o->format, title,
                       &rows[o->nworlds - 1]);
    else
        report_steps(stdout, (enum table_format)o->format, title, rows,
                     o->nworlds);
}

static int project(const struct project_options *o,
                   const struct step_task *tasks, const char *title)
{
    struct step_result results[MOST_WORLDS] = {{0}};
    struct projected rows[MOST_WORLDS];
    int status = 0;

    for (int i = 0; i < o->nworlds && status == 0; i++) {
        rows[i] = (struct projected){&tasks[i], &results[i]};
        if (step_run(&tasks[i], &results[i]) < 0)
            status = fail("out of memory", 1);
    }
    if (status == 0)
        print_tables(o, title, rows);
    if (status == 0 && o->plot)
        status = draw(o, title, rows);
    for (int i = 0; i < o->nworlds; i++)
        step_result_fini(&results[i]);
    return status;
}

static int run(const struct project_options *o)
{
    struct workload workload = {0};
    struct step_task tasks[MOST_WORLDS];
    struct network network = o->network;
    char text[512];
    int status = 0;

    if (o->file &&
        workload_read(&workload, o->file, o->rank, text, sizeof text) < 0)
        return fail(text, 1);
    change_times(o, &workload);
    if (!o->attention)
        network.attention = workload.attention;
    for (int i = 0; i < o->nworlds; i++)
        tasks[i] = (struct step_task){
            .workload = &workload,
            .network = network,
            .shape = {o->hosts[i], o->nranks, o->threshold, o->costs != 0},
            .rules = (enum step_rules)o->rules,
            .cycle = o->cycle_ms / 1e3};
    make_title(o, text, sizeof text);
    if (o->table != ALLREDUCE)
        status = project(o, tasks, text);
    else if (report_allreduces(stdout, (enum table_format)o->format, text,
                               tasks, o->nworlds, o->least, o->most,
                               o->factor) < 0)
        status = fail("out of memory", 1);
    workload_fini(&workload);
    if (status == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        return fail("the table could not be written", 1);
    return status;
}

int main(int argc, char **argv)
{
    struct project_options options = {.hosts = {1, 2, 4, 8, 16},
                                      .nworlds = 5,
                                      .nranks = 1,
                                      .threshold = 64 << 20,
                                      .cycle_ms = 5,
                                      .times = {-1, -1, -1},
                                      .speed = 1,
                                      .jitter = -1,
                                      .rank = -1,
                                      .least = 4,
                                      .most = 64 << 20,
                                      .factor = 4};

    parse_network(&options, "tcp-10g");
    switch (command_parse(&parser, argc, argv, &options)) {
    case OPTIONS_HELP:
        command_help(&parser, "hvd-bench project", stdout);
        return 0;
    case OPTIONS_VERSION:
        printf("hvd-bench %s\n", HVD_VERSION_STRING);
        return 0;
    case OPTIONS_ERROR: return fail(options.line.error, STATUS_USAGE);
    default: return run(&options);
    }
}
