/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/serving.h"

#include "model/optimizer.h"
#include "output/problem.h"
#include "trainer/agree.h"
#include "trainer/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int serving_add(struct serving_list *list, const char *name, bool is_statistic,
                int32_t ndim, const int64_t *shape)
{
    size_t bytes = ((size_t)list->count + 1) * sizeof *list->variables;
    struct serving_variable *grown = realloc(list->variables, bytes), *v;

    if (!grown)
        return problem_set("no memory for the variables");
    list->variables = grown;
    v = &grown[list->count++];
    memset(v, 0, sizeof *v);
    snprintf(v->name, sizeof v->name, "%s", name);
    v->is_statistic = is_statistic;
    v->ndim = ndim;
    memcpy(v->shape, shape, (size_t)ndim * sizeof *shape);
    return 0;
}

void serving_list_fini(struct serving_list *list)
{
    free(list->variables);
    *list = (struct serving_list){0};
}

/* ----------------------------------------------------------------- strategy */

int serving_strategy(const struct exchange_settings *settings,
                     hvd_strategy **strategy)
{
    const struct servers_settings *servers = settings->servers;
    hvd_strategy_options options;
    int status;

    hvd_strategy_options_init(&options, sizeof options);
    if (servers || settings->on_host)
        hvd_strategy_options_set_optimizer(
            &options,
            hvd_optimizer_from_name(optimizer_names[settings->optimizer]));
    else
        options.optimizer = HVD_NO_OPTIMIZER;
    options.weight_decay = settings->weight_decay;
    options.serial = settings->serial;
    options.compression = settings->compression;
    options.check_every = settings->check_every;
    if (servers) {
        options.kind = HVD_STRATEGY_PARAMETER_SERVER;
        options.servers = servers->count;
        options.mode = servers->mode;
        options.backups = servers->backups;
        options.staleness = servers->staleness;
        options.placement = servers->placement;
        options.part_bytes = servers->part_bytes;
    }
    status = hvd_strategy_new(&options, strategy);
    return status < 0 ? agree_hvd_problem(status) : 0;
}

/* -------------------------------------------------------------- the variables
 */

static int64_t bytes_of(const struct serving_list *list)
{
    return list->count * (int64_t)sizeof *list->variables;
}

int serving_send(const struct serving_list *list)
{
    int64_t count = list->count;
    struct serving_variable *copy = malloc((size_t)bytes_of(list) + 1);
    int status;

    /* A broadcast writes to the list of the other workers, which is theirs. */
    if (copy)
        memcpy(copy, list->variables, (size_t)bytes_of(list));
    status = hvd_broadcast(&count, 1, HVD_INT64, 0);
    if (status >= 0 && copy)
        status = hvd_broadcast(copy, bytes_of(list), HVD_UINT8, 0);
    free(copy);
    if (status < 0)
        return agree_hvd_problem(status);
    return copy ? 0 : problem_set("no memory for the variables");
}

static int receive(struct serving_list *list)
{
    int64_t count = 0;
    int status = hvd_broadcast(&count, 1, HVD_INT64, 0);

    if (status < 0)
        return agree_hvd_problem(status);
    list->variables = calloc((size_t)count + 1, sizeof *list->variables);
    if (!list->variables)
        return problem_set("no memory for %lld variables", (long long)count);
    list->count = count;
    status = hvd_broadcast(list->variables, bytes_of(list), HVD_UINT8, 0);
    return status < 0 ? agree_hvd_problem(status) : 0;
}

static int64_t elements_of(const struct serving_variable *v)
{
    int64_t count = 1;

    for (int32_t i = 0; i < v->ndim; i++)
        count *= v->shape[i];
    return count;
}

/* value has the place of the mean, too: a server reads neither. */
static int add_one(hvd_strategy *strategy, const struct serving_variable *v,
                   float *value)
{
    return v->is_statistic
               ? hvd_strategy_add_statistic(strategy, v->name, value, value,
                                            v->ndim, v->shape)
               : hvd_strategy_add(strategy, v->name, value, v->ndim, v->shape);
}

/* Adds the variables of a list, in memory that the caller frees in the end.
 * Returns NULL with the text kept. */
static float *add_all(hvd_strategy *strategy, const struct serving_list *list)
{
    size_t elements = 0;
    float *values, *next;

    for (int64_t i = 0; i < list->count; i++)
        elements += (size_t)elements_of(&list->variables[i]);
    values = next = calloc(elements + 1, sizeof *values);
    if (!values)
        problem_set("no memory for %zu elements of variables", elements);
    for (int64_t i = 0; i < list->count && values; i++) {
        const struct serving_variable *v = &list->variables[i];

        if (add_one(strategy, v, next) < 0) {
            problem_set("hvd: %s", hvd_last_error());
            free(values);
            return NULL;
        }
        next += elements_of(v);
    }
    return values;
}

int serving_run(const struct exchange_settings *settings)
{
    struct serving_list list = {0};
    hvd_strategy *strategy = NULL;
    float *values = NULL;
    int status = receive(&list);

    if (status == 0)
        status = serving_strategy(settings, &strategy);
    if (status == 0 && !(values = add_all(strategy, &list)))
        status = PROBLEM;
    if (status == 0) {
        status = hvd_strategy_start(strategy);
        if (status >= 0)
            status = hvd_strategy_serve(strategy);
        status = status < 0 ? agree_hvd_problem(status) : 0;
    }
    hvd_strategy_free(strategy);
    free(values);
    serving_list_fini(&list);
    return status;
}
