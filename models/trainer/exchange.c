/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - an exchange by libhvd's strategy without an optimiser: the
 * devices update their variables themselves.
 */
#include "trainer/exchange.h"

#include "output/problem.h"
#include "trainer/agree.h"

#include <hvd_strategy.h>
#include <stdlib.h>

struct strategy_exchange {
    struct exchange base;
    hvd_strategy *strategy;
};

static hvd_strategy *strategy_of(const struct exchange *exchange)
{
    return ((const struct strategy_exchange *)exchange)->strategy;
}

/* Keeps the first failure: libhvd reports those that follow differently. */
static int keep_problem(struct exchange *exchange, int status)
{
    if (status < 0 && exchange->problem == 0)
        exchange->problem = agree_hvd_problem(status);
    return status;
}

static int add_variable(struct exchange *exchange, const char *name,
                        float *value, int32_t ndim, const int64_t *shape)
{
    int status =
        hvd_strategy_add(strategy_of(exchange), name, value, ndim, shape);

    return status < 0 ? agree_hvd_problem(status) : 0;
}

static int start_strategy(struct exchange *exchange)
{
    int status = hvd_strategy_start(strategy_of(exchange));

    return status < 0 ? agree_hvd_problem(status) : 0;
}

static float *gradient_of(const struct exchange *exchange, int32_t variable)
{
    return hvd_strategy_gradient(strategy_of(exchange), variable);
}

static int gradient_ready(struct exchange *exchange, int32_t variable)
{
    return keep_problem(exchange,
                        hvd_strategy_ready(strategy_of(exchange), variable));
}

static int wait_for_averages(struct exchange *exchange)
{
    return keep_problem(exchange, hvd_strategy_step(strategy_of(exchange)));
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
    free(exchange);
}

static const struct exchange_functions functions = {
    .add = add_variable,
    .start = start_strategy,
    .gradient = gradient_of,
    .ready = gradient_ready,
    .wait = wait_for_averages,
    .abandon = abandon_update,
    .agree = agree_on,
    .get_stats = get_stats,
    .free = free_strategy,
};

int exchange_new(const struct exchange_settings *settings,
                 struct exchange **made)
{
    struct strategy_exchange *exchange = calloc(1, sizeof *exchange);
    hvd_strategy_options options;
    int status;

    if (!exchange)
        return problem_set("no memory for the exchange of gradients");
    exchange->base.functions = &functions;
    /* Compression changes a gradient, even if there is only one rank. */
    exchange->base.alone =
        hvd_size() == 1 && settings->compression == HVD_COMPRESSION_NONE;
    hvd_strategy_options_init(&options, sizeof options);
    options.optimizer = HVD_NO_OPTIMIZER;
    options.serial = settings->serial;
    options.compression = settings->compression;
    options.check_every = settings->check_every;
    status = hvd_strategy_new(&options, &exchange->strategy);
    if (status < 0) {
        free(exchange);
        return agree_hvd_problem(status);
    }
    *made = &exchange->base;
    return 0;
}
