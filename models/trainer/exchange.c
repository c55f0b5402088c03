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

#include <stdlib.h>

struct strategy_exchange {
    struct exchange base;
    hvd_strategy *strategy;
    bool has_servers;
    struct serving_list list; /* of variables, if it updates, as the next */
    float **values;           /* [variables] of the list; owned, they are not */
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
static int remember(struct strategy_exchange *x, const char *name, float *value,
                    bool is_statistic, int32_t ndim, const int64_t *shape)
{
    size_t count = (size_t)x->list.count;
    float **values = realloc(x->values, (count + 1) * sizeof *values);

    if (!values)
        return problem_set("no memory for the variables");
    x->values = values;
    values[count] = value;
    return serving_add(&x->list, name, is_statistic, ndim, shape);
}

static int add_variable(struct exchange *exchange, const char *name,
                        float *value, int32_t ndim, const int64_t *shape)
{
    int status =
        hvd_strategy_add(strategy_of(exchange), name, value, ndim, shape);

    if (status < 0)
        return agree_hvd_problem(status);
    return exchange->updates ? remember((struct strategy_exchange *)exchange,
                                        name, value, false, ndim, shape)
                             : 0;
}

static int add_statistic(struct exchange *exchange, const char *name,
                         float *value, float *mean, int32_t ndim,
                         const int64_t *shape)
{
    int status = hvd_strategy_add_statistic(strategy_of(exchange), name, value,
                                            mean, ndim, shape);

    if (status < 0)
        return agree_hvd_problem(status);
    return exchange->updates ? remember((struct strategy_exchange *)exchange,
                                        name, value, true, ndim, shape)
                             : 0;
}

static int start_strategy(struct exchange *exchange)
{
    int status = 0;

    if (own(exchange)->has_servers)
        status = serving_send(&own(exchange)->list);
    if (status < 0)
        return status;
    status = hvd_strategy_start(strategy_of(exchange));

    return status < 0 ? agree_hvd_problem(status) : 0;
}

static float *gradient_of(const struct exchange *exchange, int32_t variable)
{
    return hvd_strategy_gradient(strategy_of(exchange), variable);
}

static int gradient_ready(struct exchange *exchange, int32_t variable)
{
    int status = 0;

    /* The rate travels with the first gradient of a step. */
    if (exchange->updates)
        status = hvd_strategy_set_learning_rate(strategy_of(exchange),
                                                exchange->rate);
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
    return own(exchange)->values[variable];
}

static int settle_values(struct exchange *exchange)
{
    int status = own(exchange)->has_servers
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
    free(own(exchange)->values);
    free(exchange);
}

static const struct exchange_functions functions = {
    .add = add_variable,
    .add_statistic = add_statistic,
    .start = start_strategy,
    .gradient = gradient_of,
    .ready = gradient_ready,
    .wait = wait_for_averages,
    .abandon = abandon_update,
    .agree = agree_on,
    .get_stats = get_stats,
    .free = free_strategy,
    .read_statistics = read_statistics,
};

static const struct exchange_functions updating_functions = {
    .add = add_variable,
    .add_statistic = add_statistic,
    .start = start_strategy,
    .gradient = gradient_of,
    .ready = gradient_ready,
    .wait = wait_for_averages,
    .abandon = abandon_update,
    .agree = agree_on,
    .get_stats = get_stats,
    .free = free_strategy,
    .read_statistics = read_statistics,
    .result = value_of,
    .settle = settle_values,
};

int exchange_new(const struct exchange_settings *settings,
                 struct exchange **made)
{
    struct strategy_exchange *exchange = calloc(1, sizeof *exchange);
    int status;

    if (!exchange)
        return problem_set("no memory for the exchange of gradients");
    exchange->has_servers = settings->servers != NULL;
    exchange->base.updates = exchange->has_servers || settings->on_host;
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
