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

/* ------------------------------------------------------------ the variables */

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
    list->count = count;
    if (count < 0)
        return 0;
    list->variables = calloc((size_t)count + 1, sizeof *list->variables);
    if (!list->variables)
        return problem_set("no memory for %lld variables", (long long)count);
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

    if (status == 0 && list.count < 0)
        return 0;
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
    return status < 0 ? status : 1;
}

int serving_end(void)
{
    int64_t none = -1;
    int status = hvd_broadcast(&none, 1, HVD_INT64, 0);

    return status < 0 ? agree_hvd_problem(status) : 0;
}

/* -------------------------------------------------------------- the workers */

/* Returns the process set of n ranks, or less than 0 if there is none yet. sets
 * has room for all there are, and members for n. */
static int find_set(const int32_t *ranks, int n, int32_t *sets,
                    int32_t *members)
{
    int nsets = hvd_process_set_ids(sets, hvd_number_of_process_sets());

    for (int i = 0; i < nsets; i++)
        if (hvd_process_set_ranks(sets[i], members, n) == n &&
            memcmp(ranks, members, (size_t)n * sizeof *ranks) == 0)
            return sets[i];
    return -1;
}

/* Returns the process set of the first n ranks, which may exist, or a problem.
 */
static int make_set(int n)
{
    const size_t nsets = (size_t)hvd_number_of_process_sets();
    int32_t *ranks = calloc(2 * (size_t)n + nsets, sizeof *ranks);
    int status = agree(ranks ? 0 : problem_set("no memory for %d ranks", n)),
        set;

    if (status < 0 || !ranks) {
        free(ranks);
        return status;
    }
    for (int i = 0; i < n; i++)
        ranks[i] = i;
    set = find_set(ranks, n, ranks + 2 * n, ranks + n);
    if (set < 0)
        set = hvd_add_process_set(ranks, n);
    free(ranks);
    return set < 0 ? agree_hvd_problem(set) : set;
}

int serving_divide(int servers)
{
    const int workers = hvd_size() - servers;
    int set;

    if (workers < 1) {
        problem_set("%d servers of %d ranks leave no worker: start more "
                    "processes",
                    servers, hvd_size());
        return PROBLEM_EVERYWHERE;
    }
    set = make_set(workers);
    if (set < 0)
        return set;
    if (hvd_rank() < workers)
        agree_among(set);
    return 0;
}
