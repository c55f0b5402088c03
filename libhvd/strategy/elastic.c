/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic.c - strategies that go on in other worlds (options.elastic).
 *
 * All that a strategy has is in memory of its own or of the program, which does
 * not change its place: so it is registered as pieces of the state
 * (hvd_elastic.h), and hvd_restore writes it there. What else a step leaves
 * behind, handles of the old world and marks of gradients that were ready, is
 * forgotten when the world is new. A process that has joined registers the same
 * pieces without a message, and gets them by its first restore.
 *
 * Names of collectives must be the same on all ranks, whenever they came: an
 * elastic strategy is known by its place among those of its process.
 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "strategy/optimizer.h"
#include "strategy/strategy.h"

enum { MOST = 64, MOST_TEXT = 150 };

/* The places that are taken, a bit for each. One thread starts and frees
 * strategies. */
static uint64_t places;

/* Does something with a piece. */
typedef int piece_fn(const char *name, void *memory, size_t bytes,
                     uint32_t flags);

struct visit {
    struct hvd_strategy *strategy;
    piece_fn *function;
    int status; /* the first failure */
};

static void visit(struct visit *v, const char *of, const char *part,
                  void *memory, size_t bytes, uint32_t flags)
{
    char name[HVD_MAX_NAME];
    int status;

    snprintf(name, sizeof name, "strategy %d/%.*s%s%s", v->strategy->place,
             MOST_TEXT, of, *of ? "/" : "", part);
    status = v->function(name, memory, bytes, flags);
    if (status < 0 && v->status == HVD_OK)
        v->status = status;
}

static void visit_variable(struct visit *v, int32_t i)
{
    struct hvd_strategy *s = v->strategy;
    struct hvd__variable *var = &s->variables[i];
    const size_t bytes = (size_t)var->count * sizeof(float);
    char of[HVD_MAX_NAME];

    /* The number tells long names apart. */
    snprintf(of, sizeof of, "%d %.*s", (int)i, MOST_TEXT - 16, var->name);
    visit(v, of, "value", var->value, bytes, 0);
    visit(v, of, "updates", &var->steps, sizeof var->steps, 0);
    for (int k = 0; k < hvd__optimizer_states(&s->options); k++)
        visit(v, of, hvd__optimizer_slot(&s->options, k), var->states[k], bytes,
              0);
}

static void visit_statistic(struct visit *v, int32_t i)
{
    struct hvd__variable *var = &v->strategy->statistics[i];
    const size_t bytes = (size_t)var->count * sizeof(float);
    char of[HVD_MAX_NAME];

    snprintf(of, sizeof of, "s%d %.*s", (int)i, MOST_TEXT - 16, var->name);
    visit(v, of, "own", var->value, bytes, HVD_STATE_PER_RANK);
    visit(v, of, "mean", var->mean, bytes, 0);
}

/* Calls a function for all pieces, in one order. Returns the first failure. */
static int visit_all(struct hvd_strategy *s, piece_fn *function)
{
    struct visit v = {s, function, HVD_OK};
    double *momentum = hvd__optimizer_momentum(&s->options);

    visit(&v, "", "number", &s->id, sizeof s->id, 0);
    visit(&v, "", "calls", &s->ncalls, sizeof s->ncalls, 0);
    visit(&v, "", "learning_rate", &s->options.learning_rate,
          sizeof s->options.learning_rate, 0);
    if (momentum)
        visit(&v, "", "momentum", momentum, sizeof *momentum, 0);
    for (int32_t i = 0; i < s->nvariables; i++)
        visit_variable(&v, i);
    for (int32_t i = 0; i < s->nstatistics; i++)
        visit_statistic(&v, i);
    return v.status;
}

static int forget(const char *name, void *memory, size_t bytes, uint32_t flags)
{
    (void)memory, (void)bytes, (void)flags;
    return hvd_state_unregister(name);
}

/* --------------------------------------------------------------- new worlds */

/* Forgets the step that the old world did not complete. */
static void forget_step(struct hvd_strategy *s)
{
    for (int32_t i = 0; i < s->nvariables; i++) {
        struct hvd__variable *v = &s->variables[i];

        v->handle = v->values_handle = 0;
        v->status = HVD_OK;
        hvd__sparse_forget(v);
        atomic_store(&v->ready, false);
    }
}

/* A function of hvd_on_reset. The program may have a copy of the values on a
 * device. */
static int reset(void *context, const hvd_reset *r)
{
    struct hvd_strategy *s = context;

    (void)r;
    forget_step(s);
    /* One that has joined knows its number from now on. */
    hvd__strategy_strike(s);
    hvd__strategy_enlist(s);
    for (int32_t i = 0; i < s->nvariables && s->options.updated; i++)
        HVD_TRY(s->options.updated(s->options.context, i));
    return HVD_OK;
}

int hvd__elastic_strategy_check(const hvd_strategy_options *options)
{
    if (options->elastic != 0 && options->elastic != 1)
        return hvd__fail(HVD_ERR_ARGUMENT, "elastic %d is neither 0 nor 1",
                         (int)options->elastic);
    return options->elastic && options->kind == HVD_STRATEGY_PARAMETER_SERVER
               ? hvd__fail(HVD_ERR_UNSUPPORTED,
                           "a strategy with parameter servers is not elastic: "
                           "what they hold is lost with them")
               : HVD_OK;
}

bool hvd__elastic_strategy_joins(const struct hvd_strategy *s)
{
    hvd_recovery how;

    return s->options.elastic && hvd_last_recovery(&how, sizeof how) == 0 &&
           how.generation > 0 && how.old_rank < 0;
}

int hvd__elastic_strategy_name(struct hvd_strategy *s)
{
    int place = 0;

    while (place < MOST && (places >> place & 1))
        place++;
    if (place == MOST)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "there are %d elastic strategies, as many as may be",
                         MOST);
    places |= UINT64_C(1) << place;
    s->place = place;
    s->placed = true;
    return HVD_OK;
}

int hvd__elastic_strategy_start(struct hvd_strategy *s)
{
    HVD_TRY(visit_all(s, hvd_state_register));
    return hvd_on_reset(reset, s);
}

void hvd__elastic_strategy_end(struct hvd_strategy *s)
{
    if (!s->placed)
        return;
    visit_all(s, forget);
    hvd_off_reset(reset, s);
    places &= ~(UINT64_C(1) << s->place);
    s->placed = false;
}
