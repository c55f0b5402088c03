/* SPDX-License-Identifier: Apache-2.0 */
/*
 * role.c - what this rank is in a strategy, and what it may therefore call.
 */
#include "base/status.h"
#include "strategy/strategy.h"

int hvd__strategy_check_started(const struct hvd_strategy *s)
{
    if (!s)
        return hvd__fail(HVD_ERR_ARGUMENT, "the strategy is NULL");
    if (!s->started)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "hvd_strategy_start has not been called");
    return HVD_OK;
}

int hvd__strategy_check_worker(const struct hvd_strategy *s)
{
    HVD_TRY(hvd__strategy_check_started(s));
    if (hvd_strategy_is_server(s))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "rank %d is a parameter server: it calls "
                         "hvd_strategy_serve, and nothing else until that "
                         "returns",
                         hvd_rank());
    return HVD_OK;
}

bool hvd__strategy_is_alike(const struct hvd_strategy *s)
{
    return !s->servers || (s->options.mode == HVD_SERVER_SYNCHRONOUS &&
                           s->options.backups == 0 &&
                           !(s->options.flags & HVD_ROWS_ON_REQUEST));
}

int hvd_strategy_is_server(const hvd_strategy *strategy)
{
    return strategy &&
           strategy->options.kind == HVD_STRATEGY_PARAMETER_SERVER &&
           hvd_rank() >= hvd_size() - strategy->options.servers;
}

int hvd_strategy_workers(const hvd_strategy *strategy)
{
    HVD_TRY(hvd__strategy_check_started(strategy));
    return strategy->group;
}

int hvd__strategy_check_idle(const struct hvd_strategy *s, const char *rule)
{
    for (int32_t i = 0; i < s->nvariables; i++)
        if (atomic_load(&s->variables[i].ready))
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "the gradient of '%s' is under way: %s between "
                             "two steps",
                             s->variables[i].name, rule);
    return HVD_OK;
}

int64_t hvd__variable_width(const struct hvd__variable *v)
{
    return v->shape[1];
}

const struct hvd__variable *hvd__variable_sparse(const struct hvd_strategy *s)
{
    for (int32_t i = 0; i < s->nvariables; i++)
        if (s->variables[i].is_sparse)
            return &s->variables[i];
    return NULL;
}

int hvd__variable_check(const struct hvd_strategy *s, int32_t variable)
{
    HVD_TRY(hvd__strategy_check_started(s));
    if (variable < 0 || variable >= s->nvariables)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "there is no variable %d: %d were added",
                         (int)variable, (int)s->nvariables);
    return HVD_OK;
}
