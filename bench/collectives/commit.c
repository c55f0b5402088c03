/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit.c - hvd-bench commit: what it costs to keep a training's state.
 *
 * The state is a model's parameters and what an optimiser keeps beside each. In
 * each round everything has its turn: a copy of as many bytes by memcpy, which
 * is the limit; hvd_commit, which blocks; computing for the time of a step; and
 * the same computing between hvd_commit_start and hvd_commit_wait. What the
 * last takes more than the computing alone is what a commit adds to a step. The
 * slowest rank's time counts.
 */
#include "collectives/subcommands.h"

#include "collectives/agree.h"
#include "collectives/busy.h"
#include "collectives/models.h"
#include "collectives/session.h"
#include "hvd_elastic.h"
#include "tables/stats.h"
#include "tables/table.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UPS = 2, CALIBRATION = 1000 };

struct commit_options {
    struct command_line line;
    int model;
    int slots;
    int step_ms;
    int rounds;
    int format;
};

enum turn { COPY, COMMIT, STEP, BOTH, TURNS };

struct commit_run {
    struct session *session;
    const struct commit_options *options;
    struct tensor_list list;
    int64_t count;       /* floats of the state */
    float *state, *copy; /* owned */
    int64_t units;       /* of computing, in a step */
    double *times;       /* [TURNS][rounds] */
};

/* -------------------------------------------------------------------- turns */

static void compute_step(const struct commit_run *r)
{
    for (int64_t u = 0; u < r->units; u++)
        busy_unit();
}

static int commit_beside(const struct commit_run *r)
{
    int status = hvd_commit_start();

    if (status < 0)
        return status;
    compute_step(r);
    return hvd_commit_wait();
}

/* Returns 0 or a negative status. */
static int take_turn(const struct commit_run *r, enum turn turn)
{
    switch (turn) {
    case COPY:
        memcpy(r->copy, r->state, (size_t)r->count * sizeof *r->copy);
        return 0;
    case COMMIT: return hvd_commit();
    case STEP: compute_step(r); return 0;
    default: return commit_beside(r);
    }
}

/* Times a turn; seconds becomes the slowest rank's time. Returns 0 or a status.
 * Collective. */
static int time_turn(const struct commit_run *r, enum turn turn,
                     double *seconds)
{
    double elapsed;
    int failed = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    elapsed = MPI_Wtime();
    if (take_turn(r, turn) < 0)
        failed = session_note_hvd(r->session);
    elapsed = MPI_Wtime() - elapsed;
    if (!agree_well(!failed))
        return session_fail(r->session);
    MPI_Allreduce(&elapsed, seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return 0;
}

static int run_rounds(struct commit_run *r, double *medians)
{
    const int rounds = r->options->rounds;
    double ignored;
    int status = 0;

    for (int i = 0; i < WARM_UPS * TURNS && !status; i++)
        status = time_turn(r, (enum turn)(i % TURNS), &ignored);
    for (int i = 0; i < rounds * TURNS && !status; i++) {
        int round = i / TURNS, turn = (round + i) % TURNS;

        status =
            time_turn(r, (enum turn)turn, &r->times[turn * rounds + round]);
    }
    for (int turn = 0; turn < TURNS && !status; turn++)
        medians[turn] = stats_median(r->times + turn * rounds, (size_t)rounds);
    return status;
}

/* Finds how much computing a step is, the same for all ranks. Collective. */
static void calibrate(struct commit_run *r)
{
    double seconds;

    MPI_Barrier(MPI_COMM_WORLD);
    seconds = MPI_Wtime();
    for (int u = 0; u < CALIBRATION; u++)
        busy_unit();
    seconds = (MPI_Wtime() - seconds) / CALIBRATION;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
    r->units = (int64_t)(1e-3 * r->options->step_ms / seconds);
}

/* -------------------------------------------------------------------- state */

/* Registers each tensor, with what the optimiser keeps for it, as a piece. */
static int register_pieces(struct commit_run *r)
{
    const int64_t copies = 1 + r->options->slots;
    float *at = r->state;
    char name[32];

    for (int i = 0; i < r->list.n; i++) {
        int64_t count = r->list.counts[i] * copies;

        snprintf(name, sizeof name, "tensor %d", i);
        if (hvd_state_register(name, at, (size_t)count * sizeof *at, 0) < 0)
            return session_note_hvd(r->session);
        at += count;
    }
    return 0;
}

static void unregister_pieces(const struct commit_run *r)
{
    char name[32];

    for (int i = 0; i < r->list.n; i++) {
        snprintf(name, sizeof name, "tensor %d", i);
        hvd_state_unregister(name);
    }
}

static void fill_state(const struct commit_run *r)
{
    for (int64_t i = 0; i < r->count; i++)
        r->state[i] = (float)(i % 251);
}

/* Returns 0, or -1 with this rank's error noted. */
static int prepare(struct commit_run *r, struct session *session,
                   const struct commit_options *o)
{
    r->session = session;
    r->options = o;
    if (model_list(o->model, &r->list) == 0) {
        r->count = tensor_list_total(&r->list) * (1 + o->slots);
        r->state = calloc((size_t)r->count, sizeof *r->state);
        r->copy = calloc((size_t)r->count, sizeof *r->copy);
        r->times = calloc((size_t)TURNS * (size_t)o->rounds, sizeof(double));
    }
    if (!r->state || !r->copy || !r->times) {
        snprintf(session->error, sizeof session->error,
                 "there is no memory for a state of that size and its copies: "
                 "choose a smaller -m or --slots");
        return -1;
    }
    fill_state(r);
    return register_pieces(r);
}

static void clean_up(struct commit_run *r)
{
    unregister_pieces(r);
    tensor_list_fini(&r->list);
    free(r->state);
    free(r->copy);
    free(r->times);
}

/* ------------------------------------------------------------------- report */

static void print_row(const struct commit_run *r, const double *medians)
{
    static const struct table_column columns[] = {
        {"state_mb", 9, 1},      {"copy_ms", 9, 2}, {"commit_ms", 10, 2},
        {"step_ms", 9, 2},       {"both_ms", 9, 2}, {"added_ms", 9, 2},
        {"added_percent", 14, 2}};
    const struct commit_options *o = r->options;
    double added = medians[BOTH] - medians[STEP];
    struct table table = {0};
    char title[160];

    snprintf(title, sizeof title,
             "commits of %s with %d slot%s of an optimiser, %d ranks",
             model_names[o->model], o->slots, o->slots == 1 ? "" : "s",
             r->session->nranks);
    table_begin(&table, stdout, (enum table_format)o->format, title, columns,
                sizeof columns / sizeof *columns);
    table_number(&table, 1e-6 * (double)r->count * sizeof(float));
    for (int turn = 0; turn < TURNS; turn++)
        table_number(&table, 1e3 * medians[turn]);
    table_number(&table, 1e3 * added);
    table_number(&table, 100 * added / medians[STEP]);
    table_note(&table, "copy_ms: memcpy of as many bytes; both_ms: the step "
                       "between hvd_commit_start and hvd_commit_wait; added: "
                       "both_ms - step_ms");
    table_end(&table);
}

static int run_commit(struct session *session, void *options)
{
    struct commit_run r = {0};
    double medians[TURNS];
    int failed = prepare(&r, session, options);
    int status = agree_well(!failed) ? 0 : session_fail(session);

    if (!status) {
        calibrate(&r);
        status = run_rounds(&r, medians);
    }
    if (!status && session->rank == 0)
        print_row(&r, medians);
    clean_up(&r);
    return status ? status : session_flush(session);
}

/* ------------------------------------------------------------------ options */

enum { KEY_FORMAT = 256, KEY_SLOTS, KEY_STEP, KEY_ROUNDS };

static const struct argp_option flags[] = {
    {"model", 'm', "MODEL", 0, "whose parameters the state has (resnet50)", 0},
    {"slots", KEY_SLOTS, "N", 0,
     "numbers that an optimiser keeps for each parameter: 1 with momentum, 2 "
     "with Adam (1)",
     0},
    {"step", KEY_STEP, "MS", 0, "computing of a step, in milliseconds (200)",
     0},
    {"rounds", KEY_ROUNDS, "N", 0,
     "rounds, in each of which everything has its turn (11)", 0},
    {"format", KEY_FORMAT, "FORMAT", 0, "text, csv or json (text)", 0},
    COMMAND_FLAGS,
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct commit_options *o = state->input;
    struct command_line *line = &o->line;

    switch (key) {
    case 'm':
        return command_choice(line, "--model", text, model_names, &o->model);
    case KEY_SLOTS:
        return command_number(line, "--slots", text, 0, 16, &o->slots);
    case KEY_STEP:
        return command_number(line, "--step", text, 1, 100000, &o->step_ms);
    case KEY_ROUNDS:
        return command_number(line, "--rounds", text, 1, 1000000, &o->rounds);
    case KEY_FORMAT:
        return command_choice(line, "--format", text, table_formats,
                              &o->format);
    default: return command_key(line, flags, key, state);
    }
}

int commit_main(int argc, char **argv)
{
    static const struct argp parser = {
        .options = flags,
        .parser = parse_option,
        .doc = "Commit the state of a training, as an elastic one does, and "
               "measure what that takes by itself and what it adds to a step "
               "that computes meanwhile, beside a copy of as many bytes.",
    };
    struct commit_options options = {.slots = 1, .step_ms = 200, .rounds = 11};

    return session_main(argc, argv, "hvd-bench commit", &parser, &options,
                        run_commit);
}
