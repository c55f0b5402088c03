/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategies.c - a strategy in the program of a simulated rank (script.h):
 * first values from rank 0, steps whose gradients become ready in an order of
 * the rank's own, and a join, after which all ranks hold what the rank with the
 * most steps has. Gradients are small integers that follow from the seed; so
 * are the first values, which differ between ranks. It also stands for the list
 * of libhvd/strategy/started.c, which is one of a process.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hvd_strategy.h"
#include "script.h"
#include "strategy/strategy.h"

static const double rate = 0.125;

/* A strategy while a rank uses it. */
struct training {
    const struct script_phase *phase;
    int number; /* of the phase */
    hvd_strategy *strategy;
    float *values[SCRIPT_VARIABLES]; /* owned */
};

/* --------------------------------------------------- in place of started.c */

void hvd__strategy_enlist(struct hvd_strategy *strategy)
{
    struct hvd_strategy **place = &sim.self->strategies;

    while (*place && (*place)->id < strategy->id)
        place = &(*place)->next;
    strategy->next = *place;
    *place = strategy;
}

void hvd__strategy_strike(struct hvd_strategy *strategy)
{
    struct hvd_strategy **place = &sim.self->strategies;

    while (*place && *place != strategy)
        place = &(*place)->next;
    if (*place)
        *place = strategy->next;
}

int32_t hvd__strategy_number(void)
{
    return sim.self->nstrategies++;
}

struct hvd_strategy *hvd__strategy_first(void)
{
    return sim.self->strategies;
}

/* ------------------------------------------------------------------ values */

static uint64_t salt_of(const struct training *t, int variable)
{
    return sim.seed * 1000003 + (uint64_t)(t->number * 8 + variable);
}

/* Fills in a gradient, or for step -1 the first values. */
static void draw(const struct training *t, int variable, int rank, int step,
                 float *elements)
{
    uint32_t root =
        (uint32_t)sim_mix(salt_of(t, variable) * 64 + (uint64_t)(step + 1) +
                          (uint64_t)rank * 7919);

    for (int64_t i = 0; i < t->phase->ops[variable].count; i++)
        elements[i] =
            (float)(((root + (uint32_t)i * 0x9e3779b9u) >> 8) % 9) - 4;
}

static int most_steps(const struct training *t)
{
    int most = 0;

    for (int rank = 0; rank < script.nranks; rank++)
        if (t->phase->njoined[rank] > most)
            most = t->phase->njoined[rank];
    return most;
}

/* What a variable must hold after each step, worked out once for all ranks. */
static struct expected {
    uint64_t salt;
    int nsteps;     /* worked out so far */
    double *values; /* owned, [most_steps + 1, count] */
    float *drawn;   /* owned, [count] */
} expected[SCRIPT_VARIABLES];

static void begin_expected(const struct training *t, int variable)
{
    struct expected *e = &expected[variable];
    size_t count = (size_t)t->phase->ops[variable].count;

    free(e->values);
    free(e->drawn);
    e->salt = salt_of(t, variable);
    e->nsteps = 0;
    e->values = malloc(((size_t)most_steps(t) + 1) * count * sizeof *e->values);
    e->drawn = malloc(count * sizeof *e->drawn);
    if (!e->values || !e->drawn)
        abort();
    draw(t, variable, 0, -1, e->drawn);
    for (size_t i = 0; i < count; i++)
        e->values[i] = (double)e->drawn[i];
}

/* Gradients of ranks that have joined count as zeros. */
static void add_step(const struct training *t, int variable)
{
    struct expected *e = &expected[variable];
    int64_t count = t->phase->ops[variable].count;
    double *values = e->values + (e->nsteps + 1) * count;

    memcpy(values, values - count, (size_t)count * sizeof *values);
    for (int rank = 0; rank < script.nranks; rank++) {
        if (e->nsteps >= t->phase->njoined[rank])
            continue;
        draw(t, variable, rank, e->nsteps, e->drawn);
        for (int64_t i = 0; i < count; i++)
            values[i] -= rate * (double)e->drawn[i] / script.nranks;
    }
    e->nsteps++;
}

/* Returns what a variable must hold after so many steps. */
static const double *expected_values(const struct training *t, int variable,
                                     int nsteps)
{
    struct expected *e = &expected[variable];

    if (!e->values || e->salt != salt_of(t, variable))
        begin_expected(t, variable);
    while (e->nsteps < nsteps)
        add_step(t, variable);
    return e->values + nsteps * t->phase->ops[variable].count;
}

static void check_values(const struct training *t, int nsteps)
{
    for (int v = 0; v < t->phase->nops; v++) {
        const double *want = expected_values(t, v, nsteps);

        for (int64_t i = 0; i < t->phase->ops[v].count; i++) {
            double got = (double)t->values[v][i];

            if (fabs(got - want[i]) <= 1e-4)
                continue;
            sim_fail("phase %d on rank %d after %d steps: element %lld of "
                     "variable %d is %g, not %g",
                     t->number, sim.self->rank, nsteps, (long long)i, v, got,
                     want[i]);
            return;
        }
    }
}

/* ------------------------------------------------------------------- calls */

/* Returns true if a call went well. */
static bool went_well(const struct training *t, const char *call, int status)
{
    sim_note((uint64_t)status);
    sim_say("phase %d %s: %d", t->number, call, status);
    if (status >= 0)
        return true;
    if (status != HVD_ERR_LOST || script.victim < 0)
        sim_fail("phase %d on rank %d: %s: %s", t->number, sim.self->rank, call,
                 hvd_last_error());
    return false;
}

static bool make(struct training *t)
{
    hvd_strategy_options options;

    hvd_strategy_options_init(&options, sizeof options);
    options.optimizer = HVD_SGD;
    options.learning_rate = rate;
    options.serial = t->phase->is_serial;
    options.check_every = t->phase->check_every;
    if (!went_well(t, "new", hvd_strategy_new(&options, &t->strategy)))
        return false;
    for (int v = 0; v < t->phase->nops; v++) {
        int64_t count = t->phase->ops[v].count;
        char name[16];

        t->values[v] = malloc((size_t)count * sizeof(float));
        if (!t->values[v])
            abort();
        draw(t, v, sim.self->rank, -1, t->values[v]);
        snprintf(name, sizeof name, "v%d", v);
        if (!went_well(
                t, "add",
                hvd_strategy_add(t->strategy, name, t->values[v], 1, &count)))
            return false;
    }
    return went_well(t, "start", hvd_strategy_start(t->strategy));
}

/* Makes the gradients of a step, in any order. */
static bool give_gradients(const struct training *t, int step)
{
    int order[SCRIPT_VARIABLES] = {0};

    for (int i = 0; i < t->phase->nops; i++) {
        int j =
            script_has(WITH_ORDERS) ? sim_below(&sim.self->random, i + 1) : i;

        order[i] = order[j];
        order[j] = i;
    }
    for (int k = 0; k < t->phase->nops; k++) {
        int v = order[k];

        draw(t, v, sim.self->rank, step, hvd_strategy_gradient(t->strategy, v));
        if (!went_well(t, "ready", hvd_strategy_ready(t->strategy, v)))
            return false;
        script_pause();
    }
    return true;
}

/* All ranks must hear that the same one joined last. */
static bool join(const struct training *t)
{
    int last = -1;

    if (!went_well(t, "join", hvd_strategy_join(t->strategy, &last)))
        return false;
    if (last < 0 || last >= script.nranks ||
        t->phase->njoined[last] != most_steps(t))
        sim_fail("phase %d on rank %d: rank %d joined last", t->number,
                 sim.self->rank, last);
    return true;
}

static void train(struct training *t)
{
    if (!make(t))
        return;
    check_values(t, 0);
    for (int step = 0; step < t->phase->njoined[sim.self->rank]; step++) {
        if (!give_gradients(t, step) ||
            !went_well(t, "step", hvd_strategy_step(t->strategy)))
            return;
        check_values(t, step + 1);
    }
    if (join(t))
        check_values(t, most_steps(t));
}

void script_run_strategy(int number)
{
    struct training t = {.phase = &script.phases[number], .number = number};

    train(&t);
    hvd_strategy_free(t.strategy);
    for (int v = 0; v < SCRIPT_VARIABLES; v++)
        free(t.values[v]);
}
