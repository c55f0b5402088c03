/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gradients.c - a step: gradients are averaged as they become ready, and
 * updates are applied.
 *
 * hvd_strategy_ready submits the variable's gradient at once, in place, and
 * returns; libhvd fuses gradients that are ready at the same time. It copies
 * none of them, as they lie in one arena. hvd_strategy_step waits in the order
 * in which the variables were added, which is the order in which they become
 * ready if the program follows the advice, and updates each while the next
 * averages are still under way.
 *
 * A rank that was not given a gradient tells the others (hvd__refuse), so that
 * they fail too instead of waiting for it. A rank that gives the step up does
 * the same, with the program's reason. After a failed step nothing is in
 * flight, and the next may succeed.
 *
 * An average arrives on all ranks or on none. Whatever else fails, a rank that
 * has an average updates its variable: so variables stay equal on all ranks.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/status.h"
#include "core/api/refuse.h"
#include "strategy/optimizer.h"
#include "strategy/server.h"

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int hvd__gradient_submit(struct hvd_strategy *s, struct hvd__variable *v)
{
    const hvd_strategy_options *options = &s->options;
    hvd_request request;

    if (s->servers)
        return hvd__push(s, v);
    if (v->is_sparse)
        return hvd__sparse_submit(s, v);
    hvd_request_init(&request, sizeof request);
    request.name = v->key;
    request.dtype = HVD_FLOAT32;
    request.op = options->op;
    request.ndim = 1;
    request.shape = &v->count;
    request.input = request.output = v->gradient;
    request.compression = options->compression;
    request.flags = options->flags;
    v->status = hvd__submit_gradient(&request, &v->handle);
    return v->status;
}

void hvd__gradient_refuse(struct hvd_strategy *s, struct hvd__variable *v)
{
    if (s->servers)
        hvd__push_refuse(s, v, v->status);
    else
        hvd__refuse(0, v->key, v->status);
}

int hvd_strategy_ready(hvd_strategy *strategy, int32_t variable)
{
    struct hvd__variable *v;

    HVD_TRY(hvd__variable_check(strategy, variable));
    HVD_TRY(hvd__strategy_check_worker(strategy));
    v = &strategy->variables[variable];
    if (v->is_sparse)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "variable '%s' is sparse: hand over its rows by "
                         "hvd_strategy_ready_rows",
                         v->name);
    if (atomic_exchange(&v->ready, true))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the gradient of '%s' was ready before in this step",
                         v->name);
    return strategy->options.serial ? HVD_OK
                                    : hvd__gradient_submit(strategy, v);
}

/* Submits the gradients that the option serial has kept back, and refuses the
 * missing ones. The reason of the first failure is written to reason. */
static int complete_submissions(struct hvd_strategy *s,
                                char reason[HVD__MESSAGE_MAX])
{
    int status = HVD_OK;

    for (int32_t i = 0; i < s->nvariables; i++) {
        struct hvd__variable *v = &s->variables[i];

        if (!atomic_load(&v->ready)) {
            v->status = hvd__fail(HVD_ERR_ARGUMENT,
                                  "the gradient of '%s' was not ready when "
                                  "the step was made",
                                  v->name);
            hvd__gradient_refuse(s, v);
        } else if (s->options.serial && v->status >= 0) {
            hvd__gradient_submit(s, v);
        }
        if (v->status < 0 && status == HVD_OK) {
            status = v->status;
            snprintf(reason, HVD__MESSAGE_MAX, "%s",
                     v->refusal ? v->refusal : hvd_last_error());
        }
    }
    if (s->servers)
        hvd__pull(s);
    return status;
}

static bool has_arrived(struct hvd_strategy *s, const struct hvd__variable *v)
{
    if (s->servers)
        return hvd__push_done(s, v);
    return hvd_poll(v->handle) == 1 &&
           (!v->values_handle || hvd_poll(v->values_handle) == 1);
}

/* Waits for the average of one variable; under parameter servers, for its new
 * value. */
static int collect(struct hvd_strategy *s, struct hvd__variable *v)
{
    double start;
    int status;

    if (v->status < 0 && !s->servers) {
        v->handle = 0;
        return v->status;
    }
    if (v->status >= 0 && has_arrived(s, v))
        s->nearly++;
    start = now();
    status = s->servers     ? hvd__pull_wait(s, v)
             : v->is_sparse ? hvd__sparse_wait(v)
                            : hvd_wait(v->handle);
    s->wait_seconds += now() - start;
    v->handle = 0;
    if (status < 0)
        return status;
    s->ngradients++;
    s->nbytes +=
        v->is_sparse ? v->bytes : v->count * (int64_t)sizeof *v->gradient;
    return HVD_OK;
}

static void update(struct hvd_strategy *s, struct hvd__variable *v)
{
    double start = now();

    if (s->servers)
        return;
    v->steps++;
    if (v->is_sparse)
        hvd__sparse_update(s, v);
    else
        hvd__optimizer_apply(&s->options, v->steps,
                             hvd__optimizer_spares(v->ndim), v->value,
                             v->gradient, v->states, v->count);
    s->update_seconds += now() - start;
}

/* Resets a variable when nothing of the step is under way any more. */
static void end_of(struct hvd__variable *v)
{
    hvd__sparse_forget(v);
    v->status = HVD_OK;
    atomic_store(&v->ready, false);
}

static int make_step(struct hvd_strategy *strategy)
{
    char reason[HVD__MESSAGE_MAX];
    bool stopped = false; /* by the program's callback */
    int status;

    status = complete_submissions(strategy, reason);
    for (int32_t i = 0; i < strategy->nvariables; i++) {
        struct hvd__variable *v = &strategy->variables[i];
        int one = collect(strategy, v);

        if (one >= 0) {
            update(strategy, v);
            if (strategy->options.updated && !stopped)
                one = strategy->options.updated(strategy->options.context, i);
            stopped |= one < 0;
        }
        end_of(v);
        if (one < 0 && status >= 0) {
            status = one;
            snprintf(reason, sizeof reason, "%s", hvd_last_error());
        }
    }
    if (strategy->servers) {
        int one = hvd__push_end(strategy);

        if (one < 0 && status >= 0)
            return one;
    }
    if (status < 0)
        return stopped ? status : hvd__fail_text(status, reason);
    strategy->nsteps++;
    return HVD_OK;
}

/* ncalls counts calls, because a step that fails on one rank is still a call on
 * all ranks. */
static bool is_check_due(struct hvd_strategy *s)
{
    int32_t every = s->options.check_every;

    s->ncalls++;
    if (!hvd__strategy_is_alike(s))
        return false;
    if (every == 0)
        return hvd__checks_consistency();
    return s->ncalls % every == 0;
}

int hvd_strategy_step(hvd_strategy *strategy)
{
    char reason[HVD__MESSAGE_MAX];
    bool due;
    int status;

    HVD_TRY(hvd__strategy_check_worker(strategy));
    due = is_check_due(strategy);
    status = make_step(strategy);
    if (!due)
        return status;
    if (status >= 0)
        return hvd_strategy_check(strategy);
    /* The other ranks wait for this rank's part of the check. */
    snprintf(reason, sizeof reason, "%s", hvd_last_error());
    hvd_strategy_check(strategy);
    return hvd__fail_text(status, reason);
}

/* Refuses the gradients that are not in flight, and updates the variables of
 * the others, as the other ranks do. Returns whether it refused any; if not,
 * the other ranks' step has not noticed. */
bool hvd__strategy_give_up(struct hvd_strategy *s, const char *reason)
{
    bool told = false;

    for (int32_t i = 0; i < s->nvariables; i++) {
        struct hvd__variable *v = &s->variables[i];

        if (!atomic_load(&v->ready) || (s->options.serial && v->status >= 0)) {
            v->status = hvd__fail(HVD_ERR_ARGUMENT,
                                  "the gradient of '%s' will not come: %s",
                                  v->name, reason);
            hvd__gradient_refuse(s, v);
        }
        told |= v->status < 0;
    }
    if (s->servers)
        hvd__pull(s);
    for (int32_t i = 0; i < s->nvariables; i++) {
        if (collect(s, &s->variables[i]) >= 0)
            update(s, &s->variables[i]);
        end_of(&s->variables[i]);
    }
    if (s->servers)
        hvd__push_end(s);
    return told;
}

int hvd_strategy_abandon(hvd_strategy *strategy, const char *reason)
{
    bool told = false;

    HVD_TRY(hvd__strategy_check_worker(strategy));
    /* If nothing was missing, the others' step succeeds, and their next step
     * fails. */
    for (int i = 0; i < 2 && !told && strategy->nvariables > 0; i++) {
        bool due = is_check_due(strategy);

        told = hvd__strategy_give_up(strategy,
                                     reason ? reason : "the program gave up");
        if (due) /* the other ranks wait for this rank's part of the check */
            hvd_strategy_check(strategy);
    }
    return HVD_OK;
}

int hvd_strategy_set_learning_rate(hvd_strategy *strategy, double rate)
{
    if (!strategy)
        return hvd__fail(HVD_ERR_ARGUMENT, "the strategy is NULL");
    HVD_TRY(hvd__optimizer_check_rate(rate));
    strategy->options.learning_rate = rate;
    return HVD_OK;
}

int hvd_strategy_set_momentum(hvd_strategy *strategy, double momentum)
{
    if (!strategy)
        return hvd__fail(HVD_ERR_ARGUMENT, "the strategy is NULL");
    return hvd__optimizer_set_momentum(&strategy->options, momentum);
}

/* Fills in what a server counts. */
static void add_server(const struct hvd__server *server,
                       hvd_strategy_stats *stats)
{
    stats->gradients = server->gradients;
    stats->bytes = server->bytes;
    stats->dropped = server->dropped;
    stats->updates = server->updates;
    stats->ahead = server->ahead;
}

int hvd_strategy_get_stats(const hvd_strategy *strategy,
                           hvd_strategy_stats *stats)
{
    hvd_strategy_stats whole;
    uint32_t size;

    if (!strategy || !stats)
        return hvd__fail(HVD_ERR_ARGUMENT, "%s is NULL",
                         strategy ? "the place for statistics"
                                  : "the strategy");
    size = stats->size;
    if (size < offsetof(hvd_strategy_stats, dropped))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the statistics' size is %u, of version %s it is %zu",
                         (unsigned)size, HVD_VERSION_STRING, sizeof *stats);
    whole = (hvd_strategy_stats){
        .size = size,
        .variables = strategy->nvariables,
        .steps = strategy->nsteps,
        .gradients = strategy->ngradients,
        .bytes = strategy->nbytes,
        .wait_seconds = strategy->wait_seconds,
        .update_seconds = strategy->update_seconds,
        .early = strategy->nearly,
    };
    if (hvd_strategy_is_server(strategy))
        add_server(strategy->servers->server, &whole);
    memcpy(stats, &whole, size < sizeof whole ? size : sizeof whole);
    return HVD_OK;
}
