/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradients.c - hvd-bench gradients: sums a model's gradients in several ways,
 * in turn.
 *
 * In each round, each way first writes the tensors anew, as a backward pass
 * would; after a barrier it is timed from the first submission to the end of
 * the last wait, and the slowest rank's time counts. Just before, it has run
 * untimed: otherwise its code and data would not be in any cache, while those
 * of MPI, which ran the barrier, would be. Each round begins with another way.
 * Before the rounds, every way runs once on known data, and every element of
 * the result is compared.
 */
#include "collectives/subcommands.h"

#include "collectives/agree.h"
#include "collectives/machine.h"
#include "collectives/ways.h"
#include "tables/stats.h"
#include "tables/table.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_MODELS = -1, FIRST_RUNS = 2, FEW_ROUNDS = 11, MANY_ROUNDS = 101 };

struct gradients_options {
    struct command_line line;
    int model;  /* index into model_names, or ALL_MODELS */
    int rounds; /* 0: chosen for the model */
    int warm_ups;
    int check;
    int format;
};

struct model_run {
    const struct gradients_options *options;
    struct gradients gradients;
    struct way ways[MOST_WAYS];
    int nways;
    double *times; /* [nways][rounds] */
    int64_t nwrong[MOST_WAYS];
    int rounds;
};

/* --------------------------------------------------------------------- data */

enum { PERIOD = 61 };

/* Returns a small integer, so that sums are exact in any order. */
static int value_of(int rank, int tensor, int64_t i)
{
    return (int)((i * 7 + tensor * 31 + rank * 13) % PERIOD) - PERIOD / 2;
}

static void fill_tensors(const struct gradients *g, float *const *tensors)
{
    for (int t = 0; t < g->list.n; t++)
        for (int64_t i = 0; i < g->list.counts[t]; i++)
            tensors[t][i] = (float)value_of(g->session->rank, t, i);
}

static int64_t count_wrong(const struct gradients *g, float *const *tensors)
{
    int64_t nwrong = 0;

    for (int t = 0; t < g->list.n; t++) {
        float want[PERIOD] = {0};

        for (int rank = 0; rank < g->session->nranks; rank++)
            for (int i = 0; i < PERIOD; i++)
                want[i] += (float)value_of(rank, t, i);
        for (int64_t i = 0; i < g->list.counts[t]; i++)
            /* This form also counts a NaN as wrong. */
            nwrong += !(tensors[t][i] >= want[i % PERIOD] &&
                        tensors[t][i] <= want[i % PERIOD]);
    }
    return nwrong;
}

/* ------------------------------------------------------------------- rounds */

/* Runs one way once; seconds becomes the slowest rank's time. Returns 0 or a
 * status. Collective. */
static int run_way(struct model_run *m, int number, double *seconds)
{
    struct gradients *g = &m->gradients;
    const struct way *way = &m->ways[number];
    double elapsed;
    int failed;

    fill_tensors(g, way_tensors(g, way));
    if (way_begin(g, way))
        return STATUS_ERROR;
    MPI_Barrier(MPI_COMM_WORLD);
    elapsed = MPI_Wtime();
    failed = way_run(g, way);
    elapsed = MPI_Wtime() - elapsed;
    way_end(g, way);
    if (!agree_well(!failed))
        return session_fail(g->session);
    MPI_Allreduce(&elapsed, seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return 0;
}

static int run_rounds(struct model_run *m)
{
    int rounds = m->rounds;
    double ignored;
    int status = 0;

    for (int w = 0; w < m->nways && !status; w++)
        for (int i = 0; i < FIRST_RUNS && !status; i++)
            status = run_way(m, w, &ignored);
    for (int r = 0; r < rounds && !status; r++)
        for (int turn = 0; turn < m->nways && !status; turn++) {
            int w = (r + turn) % m->nways;

            for (int i = 0; i < m->options->warm_ups && !status; i++)
                status = run_way(m, w, &ignored);
            if (!status)
                status = run_way(m, w, &m->times[w * rounds + r]);
        }
    return status;
}

static int check_ways(struct model_run *m)
{
    const struct gradients *g = &m->gradients;
    int status = 0;
    double ignored;

    for (int w = 0; w < m->nways && !status; w++) {
        int64_t mine;

        m->nwrong[w] = -1;
        if (!m->options->check)
            continue;
        status = run_way(m, w, &ignored);
        mine = status ? 0 : count_wrong(g, way_tensors(g, &m->ways[w]));
        MPI_Allreduce(&mine, &m->nwrong[w], 1, MPI_INT64_T, MPI_SUM,
                      MPI_COMM_WORLD);
    }
    return status;
}

/* ------------------------------------------------------------------- output */

static const struct table_column columns[] = {{"model", -10, 0},
                                              {"tensors", 7, 0},
                                              {"MB", 7, 1},
                                              {"way", -16, 0},
                                              {"memory", -6, 0},
                                              {"median_ms", 9, 3},
                                              {"min_ms", 9, 3},
                                              {"max_ms", 9, 3},
                                              {"GB/s", 7, 2},
                                              {"each_over_it", 12, 2},
                                              {"best_mpi_over_it", 16, 2},
                                              {"wrong", 5, 0}};

static bool is_mpi(const struct way *way)
{
    return way->kind == WAY_EACH || way->kind == WAY_PACKED ||
           way->kind == WAY_FLAT;
}

static void print_way(struct table *table, const struct model_run *m,
                      int number, const struct stats_spread *spread,
                      double each, double best)
{
    const struct gradients *g = &m->gradients;
    const struct way *way = &m->ways[number];
    double bytes = (double)tensor_list_total(&g->list) * sizeof(float);
    char name[40];

    way_name(way, name, sizeof name);
    table_text(table, model_names[m->options->model]);
    table_number(table, g->list.n);
    table_number(table, bytes / 1e6);
    table_text(table, name);
    table_text(table, way->arena ? "hvd" : "malloc");
    table_number(table, 1e3 * spread->median);
    table_number(table, 1e3 * spread->least);
    table_number(table, 1e3 * spread->most);
    table_number(table, bytes / spread->median / 1e9);
    table_number(table, each / spread->median);
    table_number(table, best / spread->median);
    table_number_if(table, m->nwrong[number] >= 0, (double)m->nwrong[number]);
}

static void print_model(struct table *table, const struct model_run *m)
{
    struct stats_spread spreads[MOST_WAYS];
    double best = 0, each = 0;

    for (int w = 0; w < m->nways; w++) {
        stats_spread_of(m->times + w * m->rounds, (size_t)m->rounds,
                        &spreads[w]);
        if (is_mpi(&m->ways[w]) && (best <= 0 || spreads[w].median < best))
            best = spreads[w].median;
        if (m->ways[w].kind == WAY_EACH)
            each = spreads[w].median;
    }
    for (int w = 0; w < m->nways; w++)
        print_way(table, m, w, &spreads[w], each, best);
}

/* ------------------------------------------------------------------ running */

/* Checks that the host has memory for the gradients (twice), the buffers, and
 * the needs of MPI. */
static int check_memory(struct session *s, int model)
{
    struct tensor_list list;
    int well = model_list(model, &list) == 0;
    int64_t need = 3 * tensor_list_total(&list) * (int64_t)sizeof(float) +
                   3 * (INT64_C(128) << 20);
    int64_t have = machine_memory();
    char text[200];

    snprintf(text, sizeof text,
             "--model %s: %lld bytes on each of %d ranks do not fit into the "
             "%lld bytes of memory this host has left",
             model_names[model], (long long)need, hvd_local_size(),
             (long long)have);
    tensor_list_fini(&list);
    return session_settle(
        s, well && (have < 0 || need <= have / hvd_local_size()), text);
}

/* Chooses more rounds for small models, because their short times are easily
 * disturbed. */
static int choose_rounds(const struct gradients_options *options,
                         const struct tensor_list *list)
{
    if (options->rounds > 0)
        return options->rounds;
    return tensor_list_total(list) < 1 << 20 ? MANY_ROUNDS : FEW_ROUNDS;
}

/* Measures one model, options->model, and adds its wrong elements to
 * *nwrong. */
static int run_model(struct session *s, const struct gradients_options *options,
                     struct table *table, int64_t *nwrong)
{
    struct model_run m = {.options = options};
    int well, status;

    if (check_memory(s, options->model))
        return STATUS_ERROR;
    well = gradients_init(&m.gradients, s, options->model) == 0;
    m.rounds = choose_rounds(options, &m.gradients.list);
    m.times = calloc((size_t)MOST_WAYS * (size_t)m.rounds, sizeof *m.times);
    status = session_settle(s, well && m.times, "out of memory");
    m.nways = status ? 0 : ways_of(&m.gradients, m.ways);
    if (!status)
        status = check_ways(&m);
    if (!status)
        status = run_rounds(&m);
    for (int w = 0; w < m.nways; w++)
        *nwrong += m.nwrong[w] > 0 ? m.nwrong[w] : 0;
    if (!status && s->rank == 0)
        print_model(table, &m);
    gradients_fini(&m.gradients);
    free(m.times);
    return status;
}

static int run_gradients(struct session *s, void *given)
{
    struct gradients_options options = *(struct gradients_options *)given;
    int all = options.model == ALL_MODELS;
    struct table table = {0};
    int64_t nwrong = 0;
    int status = 0;

    if (s->rank == 0)
        table_begin(&table, stdout, (enum table_format)options.format,
                    "gradients in backward order, float32 sums in place, time "
                    "from the first submission to the last wait",
                    columns, sizeof columns / sizeof *columns);
    for (int i = all ? 0 : options.model;
         model_names[i] && (all || i == options.model) && !status; i++) {
        options.model = i;
        status = run_model(s, &options, &table, &nwrong);
    }
    if (s->rank == 0) {
        table_note(&table, "each_over_it: the median of MPI each over this "
                           "one's");
        table_note(&table, "best_mpi_over_it: the least median of MPI each, "
                           "packed and flat, over this one's");
        table_end(&table);
    }
    if (!status)
        status = session_flush(s);
    return !status && nwrong > 0 ? STATUS_WRONG : status;
}

/* ------------------------------------------------------------------ options */

enum { KEY_FORMAT = 256, KEY_ROUNDS };

static const struct argp_option flags[] = {
    {"model", 'm', "MODEL", 0,
     "resnet50, vgg16, bert-base, gpt2-small, mnist, small161 (161 tensors of "
     "64 values) or all (resnet50)",
     0},
    {"rounds", KEY_ROUNDS, "N", 0,
     "rounds, in each of which every way has its turn (11; 101 for less "
     "than 4M)",
     0},
    {"warm-up", 'w', "N", 0,
     "untimed runs of a way before each timed one (1); 0: its code and data "
     "are in no cache",
     0},
    {"check", 'c', "0|1", 0, "compare every element of the sums (1)", 0},
    {"format", KEY_FORMAT, "FORMAT", 0, "text, csv or json (text)", 0},
    COMMAND_FLAGS,
};

static error_t set_model(struct gradients_options *o, const char *text)
{
    if (strcmp(text, "all") == 0) {
        o->model = ALL_MODELS;
        return 0;
    }
    return command_choice(&o->line, "--model", text, model_names, &o->model);
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct gradients_options *o = state->input;
    struct command_line *line = &o->line;

    switch (key) {
    case 'm': return set_model(o, text);
    case 'c': return command_number(line, "-c", text, 0, 1, &o->check);
    case 'w': return command_number(line, "-w", text, 0, 1000, &o->warm_ups);
    case KEY_ROUNDS:
        return command_number(line, "--rounds", text, 1, 1000000, &o->rounds);
    case KEY_FORMAT:
        return command_choice(line, "--format", text, table_formats,
                              &o->format);
    default: return command_key(line, flags, key, state);
    }
}

int gradients_main(int argc, char **argv)
{
    static const struct argp parser = {
        .options = flags,
        .parser = parse_option,
        .doc = "Sum the gradients of a model over all ranks: by hvd, in "
               "hvd_malloc memory and in ordinary memory, and in turn with it "
               "by one MPI_Allreduce each, by packing them into buffers of "
               "several sizes, as one flat buffer, and by a thread that polls "
               "each millisecond as Horovod's does.",
    };
    struct gradients_options options = {.check = 1, .warm_ups = 1};

    return session_main(argc, argv, "hvd-bench gradients", &parser, &options,
                        run_gradients);
}
