/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - train-bench: measures the training programs against the speed of the
 * processor, on two ranks against one, or against PyTorch.
 *
 * Other users can only slow a shared machine down, and only now and then. So
 * everything is repeated in turn (sgemm, program, sgemm, ...), and the fastest
 * repeat counts; the median is printed next to it. With --scaling a turn is one
 * process, two unrelated processes, two ranks: the pair shows what the machine
 * gives to two processes that do not communicate. With --peer a turn is hvd,
 * then PyTorch, and the median of the ratios of the turns counts.
 */
#include "command/command.h"
#include "tables/table.h"
#include "train/instructions.h"
#include "train/peer.h"
#include "train/run.h"
#include "train/series.h"

#include <string.h>

enum { MOST_NETWORKS = 8, MOST_WAYS = 3 };

struct train_options {
    struct command_line line;
    int repeats;
    int steps; /* 0: about a second's worth */
    int scaling;
    int peer;         /* compare with PyTorch instead */
    int instructions; /* index into train_instructions; -1: the processor's best
                       */
    int ops;          /* rows of the table of ops */
    int format;
    const char *data, *text;
    unsigned networks; /* one bit per named network; 0: all */
};

enum {
    KEY_FORMAT = 256,
    KEY_SCALING,
    KEY_PEER,
    KEY_INSTRUCTIONS,
    KEY_OPS,
    KEY_DATA,
    KEY_TEXT
};

static const char *const peers[] = {"torch", NULL};

static const struct argp_option flags[] = {
    {"scaling", KEY_SCALING, 0, 0,
     "compare two ranks with two processes and with one, instead", 0},
    {"peer", KEY_PEER, "torch", 0, "compare the programs with PyTorch, instead",
     0},
    {"instructions", KEY_INSTRUCTIONS, "SET", 0,
     "generic, avx2 or avx512, for all that is measured (the processor's)", 0},
    {"repeats", 'r', "N", 0, "measure everything N times, in turn (5)", 0},
    {"steps", 's', "N", 0, "steps of each run (about a second's worth)", 0},
    {"ops", KEY_OPS, "N", 0, "list the N ops that take most time (10)", 0},
    {"data", KEY_DATA, "DIR", 0, "MNIST files (drawn digits)", 0},
    {"text", KEY_TEXT, "FILE", 0, "text for gpt (documentation)", 0},
    {"format", KEY_FORMAT, "FORMAT", 0, "text, csv or json (text)", 0},
    COMMAND_FLAGS,
};

static error_t choose_network(struct train_options *o, const char *name)
{
    for (int i = 0; train_networks[i].name; i++)
        if (strcmp(train_networks[i].name, name) == 0) {
            o->networks |= 1u << i;
            return 0;
        }
    return command_refuse(&o->line, "'%s' is no network: cnn, mlp or gpt",
                          name);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct train_options *o = state->input;

    switch (key) {
    case 'r':
        return command_number(&o->line, "--repeats", text, 1, SERIES_MOST,
                              &o->repeats);
    case 's':
        return command_number(&o->line, "--steps", text, 1, 100000000,
                              &o->steps);
    case KEY_SCALING: o->scaling = 1; return 0;
    case KEY_PEER:
        o->peer = 1;
        return command_choice(&o->line, "--peer", text, peers, &(int){0});
    case KEY_INSTRUCTIONS:
        return command_choice(&o->line, "--instructions", text,
                              train_instructions, &o->instructions);
    case KEY_OPS:
        return command_number(&o->line, "--ops", text, 0, TRAIN_MOST_OPS,
                              &o->ops);
    case KEY_DATA: o->data = text; return 0;
    case KEY_TEXT: o->text = text; return 0;
    case KEY_FORMAT:
        return command_choice(&o->line, "--format", text, table_formats,
                              &o->format);
    case ARGP_KEY_ARG: return choose_network(o, text);
    default: return command_key(&o->line, flags, key, state);
    }
}

static const struct argp parser = {
    .options = flags,
    .parser = parse_option,
    .args_doc = "[NETWORK...]",
    .doc = "Measure the training programs, on one core each.\v"
           "Networks: cnn, mlp, gpt; all, if none is named.",
};

/* ------------------------------------------------------------- measurements */

static int is_chosen(const struct train_options *o, int i)
{
    return o->networks == 0 || (o->networks & 1u << i);
}

/* ---------------------------------------------------------------- one core */

static const struct table_column speed_columns[] = {
    {"network", -8, 0},       {"unit", -7, 0},           {"per_s", 9, 0},
    {"median", 9, 0},         {"gflop_per_step", 15, 3}, {"gflop_s", 8, 1},
    {"sgemm_gflop_s", 14, 1}, {"share_%", 8, 1},         {"device_%", 9, 1},
};

static const struct table_column op_columns[] = {
    {"network", -8, 0}, {"op", -28, 0},    {"us_per_step", 12, 1},
    {"share_%", 8, 1},  {"gflop_s", 9, 1},
};

/* The repeats of one network. */
struct speed {
    struct series rate, sgemm;
    struct train_profile profile;
};

static int measure_speed(const struct train_options *o,
                         const struct train_place *place,
                         const struct train_network *n, struct speed *speed)
{
    speed->rate.count = speed->sgemm.count = 0;
    if (train_profile(place, n, &speed->profile) < 0)
        return -1;
    for (int i = 0; i < o->repeats; i++) {
        double flops = speed->profile.product_flops * train_steps(place, n);

        if (train_sgemm(flops, &speed->sgemm.values[i]) < 0 ||
            train_run(place, n, TRAIN_ALONE, &speed->rate.values[i]) < 0)
            return -1;
        speed->rate.count = speed->sgemm.count = i + 1;
    }
    series_sort(&speed->rate);
    series_sort(&speed->sgemm);
    return 0;
}

static void print_speed(struct table *table, const struct train_network *n,
                        const struct speed *s)
{
    double rate = series_most(&s->rate), sgemm = series_most(&s->sgemm);
    double flops = s->profile.product_flops;
    double reached = flops * rate / n->batch;

    table_text(table, n->name);
    table_text(table, n->unit);
    table_number(table, rate);
    table_number(table, series_middle(&s->rate));
    table_number(table, flops * 1e-9);
    table_number(table, reached * 1e-9);
    table_number(table, sgemm * 1e-9);
    table_number(table, 100 * reached / sgemm);
    table_number(table, 100 * s->profile.fastest * rate / n->batch);
}

static void print_ops(struct table *table, const struct train_network *n,
                      const struct train_profile *p, int most)
{
    for (int i = 0; i < p->count && i < most; i++) {
        const struct train_op *op = &p->ops[i];

        table_text(table, n->name);
        table_text(table, op->name);
        table_number(table, op->seconds * 1e6);
        table_number(table, 100 * op->seconds / p->seconds);
        table_number_if(table, op->flops > 0, op->flops / op->seconds * 1e-9);
    }
}

static void note_speeds(struct table *table)
{
    char kernels[128];

    snprintf(kernels, sizeof kernels,
             "OpenBLAS's kernels: %s. sgemm: 512 x 512, as many flops in turn",
             train_kernels());
    table_note(table, kernels);
    table_note(table, "per_s, sgemm_gflop_s: the fastest of all repeats");
    table_note(table, "gflop_per_step: of products, causal attention counted "
                      "in full; share_%: of sgemm's speed");
}

static int run_speeds(const struct train_options *o,
                      const struct train_place *place)
{
    static struct speed speeds[MOST_NETWORKS];
    struct table table;

    for (int i = 0; train_networks[i].name; i++)
        if (is_chosen(o, i) &&
            measure_speed(o, place, &train_networks[i], &speeds[i]) < 0)
            return -1;
    table_begin(&table, stdout, (enum table_format)o->format,
                "training on one core", speed_columns,
                sizeof speed_columns / sizeof *speed_columns);
    for (int i = 0; train_networks[i].name; i++)
        if (is_chosen(o, i))
            print_speed(&table, &train_networks[i], &speeds[i]);
    note_speeds(&table);
    table_end(&table);
    if (o->ops == 0)
        return 0;
    table_begin(&table, stdout, (enum table_format)o->format,
                "where a step's time goes, in a run of its own", op_columns,
                sizeof op_columns / sizeof *op_columns);
    for (int i = 0; train_networks[i].name; i++)
        if (is_chosen(o, i))
            print_ops(&table, &train_networks[i], &speeds[i].profile, o->ops);
    table_end(&table);
    return 0;
}

/* ----------------------------------------------------------------- scaling */

static const struct table_column scaling_columns[] = {
    {"network", -8, 0}, {"unit", -7, 0},      {"one", 10, 0},
    {"pair", 10, 0},    {"ranks", 10, 0},     {"pair_%", 8, 1},
    {"ranks_%", 8, 1},  {"of_pair_%", 10, 1},
};

static int measure_ways(const struct train_options *o,
                        const struct train_place *place,
                        const struct train_network *n, struct series *ways)
{
    for (int way = 0; way < MOST_WAYS; way++)
        ways[way].count = 0;
    for (int i = 0; i < o->repeats; i++)
        for (int way = 0; way < MOST_WAYS; way++) {
            if (train_run(place, n, (enum train_way)way, &ways[way].values[i]) <
                0)
                return -1;
            ways[way].count = i + 1;
        }
    for (int way = 0; way < MOST_WAYS; way++)
        series_sort(&ways[way]);
    return 0;
}

static int run_scaling(const struct train_options *o,
                       const struct train_place *place)
{
    static struct series ways[MOST_NETWORKS][MOST_WAYS];
    struct table table;

    for (int i = 0; train_networks[i].name; i++)
        if (is_chosen(o, i) &&
            measure_ways(o, place, &train_networks[i], ways[i]) < 0)
            return -1;
    table_begin(&table, stdout, (enum table_format)o->format,
                "training on two ranks", scaling_columns,
                sizeof scaling_columns / sizeof *scaling_columns);
    for (int i = 0; train_networks[i].name; i++) {
        double one, pair, ranks;

        if (!is_chosen(o, i))
            continue;
        one = series_most(&ways[i][TRAIN_ALONE]);
        pair = series_most(&ways[i][TRAIN_PAIR]);
        ranks = series_most(&ways[i][TRAIN_RANKS]);
        table_text(&table, train_networks[i].name);
        table_text(&table, train_networks[i].unit);
        table_number(&table, one);
        table_number(&table, pair);
        table_number(&table, ranks);
        table_number(&table, 100 * pair / (2 * one));
        table_number(&table, 100 * ranks / (2 * one));
        table_number(&table, 100 * ranks / pair);
    }
    table_note(&table, "units a second: of one process, of two that know "
                       "nothing of each other, of two ranks with the same "
                       "batch each");
    table_note(&table, "pair_%, ranks_%: of twice one; of_pair_%: ranks of "
                       "pair, which share the machine alike");
    table_end(&table);
    return 0;
}

/* -------------------------------------------------------------------- peer */

static const struct table_column peer_columns[] = {
    {"network", -8, 0}, {"unit", -7, 0}, {"parameters", 11, 0}, {"hvd", 10, 0},
    {"torch", 10, 0},   {"ratio", 7, 2}, {"least", 7, 2},       {"most", 7, 2},
};

static void print_peer(struct table *table, const struct train_network *n,
                       const struct train_peer *p)
{
    table_text(table, n->name);
    table_text(table, n->unit);
    table_number(table, p->parameters);
    table_number(table, series_middle(&p->ours));
    table_number(table, series_middle(&p->theirs));
    table_number(table, series_middle(&p->ratios));
    table_number(table, series_least(&p->ratios));
    table_number(table, series_most(&p->ratios));
}

static int run_peer(const struct train_options *o,
                    const struct train_place *place)
{
    static struct train_peer peers_of[MOST_NETWORKS];
    const struct train_peer *last = NULL;
    struct table table;
    char note[256];

    for (int i = 0; train_networks[i].name; i++) {
        if (!is_chosen(o, i))
            continue;
        if (train_peer_measure(place, &train_networks[i], o->repeats,
                               &peers_of[i]) < 0)
            return -1;
        last = &peers_of[i];
    }
    table_begin(&table, stdout, (enum table_format)o->format,
                "training on one core, beside PyTorch", peer_columns,
                sizeof peer_columns / sizeof *peer_columns);
    for (int i = 0; train_networks[i].name; i++)
        if (is_chosen(o, i))
            print_peer(&table, &train_networks[i], &peers_of[i]);
    snprintf(note, sizeof note,
             "PyTorch %s, with the BLAS %s; instructions: %s", last->version,
             last->blas,
             o->instructions < 0 ? "the best that each finds"
                                 : train_instructions[o->instructions]);
    table_note(&table, note);
    table_note(&table, "hvd, torch: units a second, medians; ratio: the median "
                       "of hvd / torch of runs that follow each other, the "
                       "least and the most");
    table_end(&table);
    return 0;
}

static int run_benchmark(const struct train_options *o,
                         const struct train_place *place)
{
    if (o->peer)
        return run_peer(o, place);
    return o->scaling ? run_scaling(o, place) : run_speeds(o, place);
}

int main(int argc, char **argv)
{
    static struct train_options o = {
        .repeats = 5, .ops = 10, .instructions = -1};
    static struct train_place place;
    int status;

    switch (command_parse(&parser, argc, argv, &o)) {
    case OPTIONS_HELP: command_help(&parser, "train-bench", stdout); return 0;
    case OPTIONS_VERSION: puts("train-bench " HVD_VERSION_STRING); return 0;
    case OPTIONS_ERROR:
        fprintf(stderr, "train-bench: %s\n", o.line.error);
        return 64;
    default: break;
    }
    if (o.instructions >= 0 && train_instruct(o.instructions, argv) < 0)
        return 1;
    place.data = o.data;
    place.text = o.text;
    place.steps = o.steps;
    status = train_place_init(&place);
    if (status == 0)
        status = run_benchmark(&o, &place);
    train_place_fini(&place);
    if (status == 0 && fflush(stdout) != 0) {
        perror("train-bench: standard output");
        status = -1;
    }
    return status < 0;
}
