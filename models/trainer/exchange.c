/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - an exchange by libhvd's strategy. It usually has no optimiser:
 * the devices update their variables themselves. With parameter servers, or an
 * optimiser on the host, what comes back are new values.
 */
#include "trainer/exchange.h"

#include "output/problem.h"
#include "trainer/agree.h"
#include "trainer/serving.h"
#include "trainer/strategy.h"
#include "trainer/trainer.h"

#include <stdlib.h>
#include <string.h>

/* Where a variable is. */
struct place {
    float *value, *mean; /* borrowed; mean: of a statistic, else NULL */
};

struct strategy_exchange {
    struct exchange base;
    hvd_strategy *strategy; /* NULL: stopped */
    struct exchange_settings settings;
    struct servers_settings servers; /* to which the settings point */
    struct serving_list list; /* of variables, if it updates, as the next */
    struct place *places;     /* owned, [variables] of the list */
    /* Of the optimiser, if it updates; since the first start. */
    hvd_strategy_tensor *state; /* owned, [nstate] */
    int nstate;
    void **saved; /* owned, [nstate], each owned: on rank 0, while stopped */
};

static const struct strategy_exchange *own(const struct exchange *exchange)
{
    return (const struct strategy_exchange *)exchange;
}

static hvd_strategy *strategy_of(const struct exchange *exchange)
{
    return own(exchange)->strategy;
}

/* Keeps the first failure: libhvd reports those that follow differently. */
static int keep_problem(struct exchange *exchange, int status)
{
    if (status < 0 && exchange->problem == 0)
        exchange->problem = agree_hvd_problem(status);
    return status;
}

/* Keeps where a variable is, and what parameter servers must know of it. */
static int remember(struct strategy_exchange *x, const char *name,
                    struct place place, int32_t ndim, const int64_t *shape)
{
    size_t count = (size_t)x->list.count;
    struct place *places = realloc(x->places, (count + 1) * sizeof *places);

    if (!places)
        return problem_set("no memory for the variables");
    x->places = places;
    places[count] = place;
    return serving_add(&x->list, name, place.mean != NULL, ndim, shape);
}

static int add_to_strategy(hvd_strategy *strategy, const char *name,
                           struct place place, int32_t ndim,
                           const int64_t *shape)
{
    int status =
        place.mean ? hvd_strategy_add_statistic(strategy, name, place.value,
                                                place.mean, ndim, shape)
                   : hvd_strategy_add(strategy, name, place.value, ndim, shape);

    return status < 0 ? agree_hvd_problem(status) : 0;
}

static int add(struct exchange *exchange, const char *name, struct place place,
               int32_t ndim, const int64_t *shape)
{
    int status =
        add_to_strategy(strategy_of(exchange), name, place, ndim, shape);

    return status == 0 && exchange->updates
               ? remember((struct strategy_exchange *)exchange, name, place,
                          ndim, shape)
               : status;
}

static int add_variable(struct exchange *exchange, const char *name,
                        float *value, int32_t ndim, const int64_t *shape)
{
    return add(exchange, name, (struct place){value, NULL}, ndim, shape);
}

static int add_statistic(struct exchange *exchange, const char *name,
                         float *value, float *mean, int32_t ndim,
                         const int64_t *shape)
{
    return add(exchange, name, (struct place){value, mean}, ndim, shape);
}

/* ----------------------------------------------- what the optimiser keeps */

/* Makes the list of its tensors. */
static int list_state(struct strategy_exchange *x)
{
    int count = hvd_strategy_state_count(x->strategy), status = count;

    if (count < 0)
        return agree_hvd_problem(count);
    x->state = calloc((size_t)count + 1, sizeof *x->state);
    if (!x->state)
        return problem_set("no memory for the variables");
    for (int i = 0; i < count && status >= 0; i++) {
        x->state[i].size = sizeof x->state[i];
        status = hvd_strategy_state_info(x->strategy, i, &x->state[i]);
    }
    x->nstate = count;
    return status < 0 ? agree_hvd_problem(status) : 0;
}

static bool describe_state(const struct exchange *exchange, int i,
                           struct trainer_state *state)
{
    const struct strategy_exchange *x = own(exchange);
    const hvd_strategy_tensor *tensor;

    if (i >= x->nstate)
        return false;
    tensor = &x->state[i];
    *state = (struct trainer_state){
        .name = tensor->name,
        .dtype = tensor->dtype == HVD_INT64 ? TRAINER_INT64 : TRAINER_FLOAT32,
        .ndim = tensor->ndim,
        .count = tensor->count,
        .on_host = true};
    memcpy(state->shape, tensor->shape,
           (size_t)tensor->ndim * sizeof *state->shape);
    return true;
}

static size_t bytes_of(const hvd_strategy_tensor *tensor)
{
    return (size_t)tensor->count * (size_t)hvd_dtype_size(tensor->dtype);
}

static int read_state(const struct exchange *exchange, void *const *data)
{
    const struct strategy_exchange *x = own(exchange);
    int status;

    for (int i = 0; x->saved && i < x->nstate; i++)
        memcpy(data[i], x->saved[i], bytes_of(&x->state[i]));
    if (x->saved)
        return 0;
    status = hvd_strategy_read_state(x->strategy, data);
    return status < 0 ? agree_hvd_problem(status) : 0;
}

static int write_state(const struct exchange *exchange, const void *const *data)
{
    int status = hvd_strategy_write_state(strategy_of(exchange), data);

    return status < 0 ? agree_hvd_problem(status) : 0;
}

static void forget_state(struct strategy_exchange *x)
{
    for (int i = 0; x->saved && i < x->nstate; i++)
        free(x->saved[i]);
    free(x->saved);
    x->saved = NULL;
}

/* Keeps what the servers have, of which nothing is left if that fails. */
static void save_state(struct strategy_exchange *x)
{
    void **saved = calloc((size_t)x->nstate + 1, sizeof *saved);
    bool whole = saved != NULL;

    for (int i = 0; whole && i < x->nstate; i++) {
        saved[i] = malloc(bytes_of(&x->state[i]) + 1);
        whole = saved[i] != NULL;
    }
    whole = whole && read_state(&x->base, saved) == 0;
    x->saved = saved;
    if (!whole)
        forget_state(x);
}

/* ------------------------------------------------------- starting, stopping */

/* Makes the strategy again, after a stop. */
static int renew(struct strategy_exchange *x)
{
    int status = hvd_rank() == 0 && !x->saved
                     ? problem_set("the state of the optimizer was not kept "
                                   "when the parameter servers ended")
                     : serving_strategy(&x->settings, &x->strategy);

    for (int64_t i = 0; i < x->list.count && status == 0; i++) {
        const struct serving_variable *v = &x->list.variables[i];

        status = add_to_strategy(x->strategy, v->name, x->places[i], v->ndim,
                                 v->shape);
    }
    return status;
}

static int start_strategy(struct exchange *exchange)
{
    struct strategy_exchange *x = (struct strategy_exchange *)exchange;
    const bool again = !x->strategy;
    int status = again ? agree(renew(x)) : 0;

    if (status == 0 && x->settings.servers)
        status = serving_send(&x->list);
    if (status < 0)
        return status;
    status = hvd_strategy_start(x->strategy);
    if (status < 0)
        return agree_hvd_problem(status);
    if (!again)
        return exchange->updates ? list_state(x) : 0;
    status = write_state(exchange, (const void *const *)x->saved);
    forget_state(x);
    return status;
}

static void stop_strategy(struct exchange *exchange)
{
    struct strategy_exchange *x = (struct strategy_exchange *)exchange;

    if (!x->settings.servers)
        return;
    if (hvd_rank() == 0)
        save_state(x);
    hvd_strategy_free(x->strategy);
    x->strategy = NULL;
}

static float *gradient_of(const struct exchange *exchange, int32_t variable)
{
    return hvd_strategy_gradient(strategy_of(exchange), variable);
}

static int gradient_ready(struct exchange *exchange, int32_t variable)
{
    int status = 0;

    /* Both travel with the first gradient of a step. */
    if (exchange->updates)
        status = hvd_strategy_set_learning_rate(strategy_of(exchange),
                                                exchange->rate);
    if (status >= 0 && exchange->updates && exchange->momentum >= 0)
        status = hvd_strategy_set_momentum(strategy_of(exchange),
                                           exchange->momentum);
    if (status >= 0)
        status = hvd_strategy_ready(strategy_of(exchange), variable);
    return keep_problem(exchange, status);
}

static int wait_for_averages(struct exchange *exchange)
{
    return keep_problem(exchange, hvd_strategy_step(strategy_of(exchange)));
}

static const float *value_of(const struct exchange *exchange, int32_t variable)
{
    return own(exchange)->places[variable].value;
}

static int settle_values(struct exchange *exchange)
{
    int status = own(exchange)->settings.servers
                     ? hvd_strategy_join(strategy_of(exchange), NULL)
                     : 0;

    return status < 0 ? agree_hvd_problem(status) : 0;
}

static int read_statistics(struct exchange *exchange)
{
    int status = hvd_strategy_read_statistics(strategy_of(exchange));

    return status < 0 ? agree_hvd_problem(status) : 0;
}

static int abandon_update(struct exchange *exchange, const char *why)
{
    return hvd_strategy_abandon(strategy_of(exchange), why);
}

static int agree_on(struct exchange *exchange, int status)
{
    (void)exchange;
    return agree(status);
}

static void get_stats(const struct exchange *exchange,
                      struct exchange_stats *stats)
{
    hvd_strategy_stats s = {.size = sizeof s};

    if (hvd_strategy_get_stats(strategy_of(exchange), &s) < 0)
        s = (hvd_strategy_stats){0};
    *stats = (struct exchange_stats){
        .averages = s.gradients, .early = s.early, .wait = s.wait_seconds};
}

static void free_strategy(struct exchange *exchange)
{
    hvd_strategy_free(strategy_of(exchange));
    serving_list_fini(&((struct strategy_exchange *)exchange)->list);
    free(own(exchange)->places);
    forget_state((struct strategy_exchange *)exchange);
    free(own(exchange)->state);
    free(exchange);
}

#define FUNCTIONS                                                              \
    .add = add_variable, .add_statistic = add_statistic,                       \
    .start = start_strategy, .gradient = gradient_of, .ready = gradient_ready, \
    .wait = wait_for_averages, .abandon = abandon_update, .agree = agree_on,   \
    .get_stats = get_stats, .free = free_strategy,                             \
    .read_statistics = read_statistics

static const struct exchange_functions functions = {FUNCTIONS};

static const struct exchange_functions updating_functions = {
    FUNCTIONS,
    .result = value_of,
    .settle = settle_values,
    .stop = stop_strategy,
    .state = describe_state,
    .read_state = read_state,
    .write_state = write_state,
};

int exchange_new(const struct exchange_settings *settings,
                 struct exchange **made)
{
    struct strategy_exchange *exchange = calloc(1, sizeof *exchange);
    int status;

    if (!exchange)
        return problem_set("no memory for the exchange of gradients");
    exchange->settings = *settings;
    if (settings->servers) {
        exchange->servers = *settings->servers;
        exchange->settings.servers = &exchange->servers;
    }
    exchange->base.updates = settings->servers || settings->on_host;
    exchange->base.momentum = -1;
    exchange->base.functions =
        exchange->base.updates ? &updating_functions : &functions;
    /* Compression changes a gradient, even if there is only one rank. */
    exchange->base.alone = hvd_size() == 1 && !exchange->base.updates &&
                           !settings->keeps &&
                           settings->compression == HVD_COMPRESSION_NONE;
    status = serving_strategy(settings, &exchange->strategy);
    if (status < 0) {
        free(exchange);
        return status;
    }
    *made = &exchange->base;
    return 0;
}
