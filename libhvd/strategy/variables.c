/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variables.c - creates a strategy: options, variables, the arena of gradients,
 * the optimiser's state; and broadcasts the first values from rank 0.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/request/names.h"
#include "strategy/optimizer.h"
#include "strategy/servers.h"

/* MOST_NAME leaves room in a tensor's name for the library's part. */
enum { MOST_NAME = HVD_MAX_NAME - 32 };

void hvd_strategy_options_init(hvd_strategy_options *options, size_t size)
{
    if (!options)
        return;
    memset(options, 0, size);
    options->size = (uint32_t)size;
    hvd_strategy_options_set_optimizer(options, HVD_ADAM);
}

/* Programs that were compiled before there were flags give none. */
static int copy_options(const hvd_strategy_options *given,
                        hvd_strategy_options *options)
{
    if (!given)
        return hvd__fail(HVD_ERR_ARGUMENT, "the options are NULL");
    if (given->size < offsetof(hvd_strategy_options, flags))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the options' size is %u, of version %s it is %zu: "
                         "fill them with hvd_strategy_options_init first",
                         (unsigned)given->size, HVD_VERSION_STRING,
                         sizeof *options);
    memcpy(options, given,
           given->size < sizeof *options ? given->size : sizeof *options);
    return HVD_OK;
}

static int check_options(const hvd_strategy_options *options)
{
    if (options->check_every < 0)
        return hvd__fail(HVD_ERR_ARGUMENT, "check_every %d is less than 0",
                         (int)options->check_every);
    if (options->op != HVD_AVERAGE && options->op != HVD_SUM &&
        options->op != HVD_ADASUM)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "op %d, %s: gradients are reduced by average, sum or "
                         "adasum",
                         (int)options->op,
                         hvd_op_name(options->op) ? hvd_op_name(options->op)
                                                  : "which is none");
    if (options->flags & ~(HVD_AVERAGE_CONTRIBUTORS | HVD_ROWS_ON_REQUEST))
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "flags 0x%x are none that strategies of version %s "
                         "know",
                         (unsigned)options->flags, HVD_VERSION_STRING);
    if (options->flags & HVD_ROWS_ON_REQUEST &&
        options->kind != HVD_STRATEGY_PARAMETER_SERVER)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "HVD_ROWS_ON_REQUEST is for parameter servers, and "
                         "the kind is not HVD_STRATEGY_PARAMETER_SERVER");
    if (options->flags & HVD_AVERAGE_CONTRIBUTORS && options->op != HVD_AVERAGE)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "HVD_AVERAGE_CONTRIBUTORS is for averages, and "
                         "gradients are reduced by %s",
                         hvd_op_name(options->op));
    if (!hvd_compression_name(options->compression))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "compression %d is neither one of the library's nor "
                         "registered",
                         (int)options->compression);
    if (options->compression != HVD_COMPRESSION_NONE &&
        options->op == HVD_ADASUM)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "gradients that are compressed can be reduced by "
                         "average or sum, not by adasum");
    HVD_TRY(hvd__elastic_strategy_check(options));
    return hvd__optimizer_check(options);
}

int hvd_strategy_new(const hvd_strategy_options *options,
                     hvd_strategy **strategy)
{
    hvd_strategy_options copy = {0};
    struct hvd_strategy *s;

    if (!strategy)
        return hvd__fail(HVD_ERR_ARGUMENT, "the place for a strategy is NULL");
    HVD_TRY(copy_options(options, &copy));
    HVD_TRY(check_options(&copy));
    if (!hvd_is_initialized())
        return hvd__fail(HVD_ERR_NOT_INITIALIZED,
                         "a strategy needs hvd_init first");
    HVD_TRY(hvd__servers_check(&copy, hvd_size()));
    s = calloc(1, sizeof *s);
    if (!s)
        return hvd__fail_memory(sizeof *s);
    s->options = copy;
    *strategy = s;
    return HVD_OK;
}

void hvd_strategy_free(hvd_strategy *strategy)
{
    if (!strategy)
        return;
    hvd__elastic_strategy_end(strategy);
    hvd__strategy_strike(strategy);
    if (strategy->started && strategy->servers &&
        !hvd_strategy_is_server(strategy) && hvd_is_initialized()) {
        if (strategy->servers->announced)
            hvd__strategy_give_up(strategy, "the strategy was freed");
        hvd__command(strategy, HVD__COMMAND_END);
    }
    hvd__servers_free(strategy);
    for (int32_t i = 0; i < strategy->nvariables; i++) {
        struct hvd__variable *v = &strategy->variables[i];

        if (v->handle)
            hvd_wait(v->handle);
        if (v->values_handle)
            hvd_wait(v->values_handle);
        hvd__sparse_forget(v);
        for (int k = 0; k < HVD__MOST_STATES; k++)
            free(v->states[k]);
        free(v->name);
        free(v->key);
    }
    hvd__statistics_free(strategy);
    hvd_free(strategy->arena);
    free(strategy->variables);
    free(strategy);
}

/* ------------------------------------------------------------------- adding */

static int check_name(const struct hvd_strategy *s, const char *name)
{
    if (!name || !name[0])
        return hvd__fail(HVD_ERR_ARGUMENT, "variable %d has no name",
                         (int)s->nvariables);
    if (strlen(name) > MOST_NAME)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the name of variable %d, '%.32s...', is longer than "
                         "%d bytes",
                         (int)s->nvariables, name, MOST_NAME);
    HVD_TRY(hvd__name_check(name));
    for (int32_t i = 0; i < s->nvariables; i++)
        if (strcmp(s->variables[i].name, name) == 0)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "variable '%s' was added before, as number %d",
                             name, (int)i);
    for (int32_t i = 0; i < s->nstatistics; i++)
        if (strcmp(s->statistics[i].name, name) == 0)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "variable '%s' was added before, as statistic %d",
                             name, (int)i);
    return HVD_OK;
}

static int fill(struct hvd__variable *v, const char *name, float *value,
                int32_t ndim, const int64_t *shape)
{
    size_t bytes = sizeof(float);

    if (ndim < 0 || ndim > HVD_MAX_DIMS)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "variable '%s' has %d dimensions, not 0 to %d", name,
                         (int)ndim, HVD_MAX_DIMS);
    if (ndim > 0 && !shape)
        return hvd__fail(HVD_ERR_ARGUMENT, "the shape of variable '%s' is NULL",
                         name);
    for (int32_t i = 0; i < ndim; i++) {
        if (shape[i] < 0 ||
            __builtin_mul_overflow(bytes, (size_t)shape[i], &bytes) ||
            bytes > PTRDIFF_MAX / 2)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "dimension %d of variable '%s' is %lld", (int)i,
                             name, (long long)shape[i]);
        v->shape[i] = shape[i];
    }
    v->count = (int64_t)(bytes / sizeof(float));
    if (v->count > 0 && !value)
        return hvd__fail(HVD_ERR_ARGUMENT, "the value of variable '%s' is NULL",
                         name);
    v->ndim = ndim;
    v->value = value;
    return HVD_OK;
}

static int reserve(struct hvd_strategy *s)
{
    int32_t capacity = s->capacity ? 2 * s->capacity : 16;
    struct hvd__variable *grown;

    if (s->nvariables < s->capacity)
        return HVD_OK;
    grown = realloc(s->variables, (size_t)capacity * sizeof *grown);
    if (!grown)
        return hvd__fail_memory((size_t)capacity * sizeof *grown);
    s->variables = grown;
    s->capacity = capacity;
    return HVD_OK;
}

int hvd__variable_init(const struct hvd_strategy *strategy, const char *name,
                       float *value, int32_t ndim, const int64_t *shape,
                       struct hvd__variable *v)
{
    if (!strategy)
        return hvd__fail(HVD_ERR_ARGUMENT, "the strategy is NULL");
    if (strategy->started)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "variables are added before hvd_strategy_start");
    HVD_TRY(check_name(strategy, name));
    HVD_TRY(fill(v, name, value, ndim, shape));
    v->name = strdup(name);
    return v->name ? HVD_OK : hvd__fail_memory(strlen(name) + 1);
}

/* Takes over a variable, or frees its name. */
static int append(struct hvd_strategy *s, struct hvd__variable *v)
{
    int status = reserve(s);

    if (status < 0) {
        free(v->name);
        return status;
    }
    s->variables[s->nvariables] = *v;
    return s->nvariables++;
}

int hvd_strategy_add(hvd_strategy *strategy, const char *name, float *value,
                     int32_t ndim, const int64_t *shape)
{
    struct hvd__variable v = {0};

    HVD_TRY(hvd__variable_init(strategy, name, value, ndim, shape, &v));
    return append(strategy, &v);
}

int hvd_strategy_add_sparse(hvd_strategy *strategy, const char *name,
                            float *value, int64_t rows, int64_t width)
{
    const int64_t shape[2] = {rows, width};
    struct hvd__variable v = {.is_sparse = true};
    const hvd_strategy_options *o;

    HVD_TRY(hvd__variable_init(strategy, name, value, 2, shape, &v));
    o = &strategy->options;
    if (hvd__optimizer_takes_rows(o->optimizer) && o->op != HVD_ADASUM)
        return append(strategy, &v);
    free(v.name);
    if (o->op == HVD_ADASUM)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "gradients of the sparse variable '%s' can be reduced "
                         "by average or sum, not by adasum",
                         name);
    return hvd__fail(HVD_ERR_UNSUPPORTED,
                     "optimizer %s cannot update variable '%s' by rows: %s",
                     hvd_optimizer_name(o->optimizer), name,
                     o->optimizer == HVD_NO_OPTIMIZER
                         ? "it leaves gradients in buffers of the whole"
                         : "it needs the length of the whole variable");
}

float *hvd_strategy_gradient(hvd_strategy *strategy, int32_t variable)
{
    if (hvd__variable_check(strategy, variable) < 0)
        return NULL;
    return strategy->variables[variable].gradient;
}

/* ----------------------------------------------------------------- starting */

/* Names the collectives of a variable. */
static int name_key(const struct hvd_strategy *s, struct hvd__variable *v)
{
    const int length =
        s->placed ? asprintf(&v->key, "strategy e%d: %s", s->place, v->name)
                  : asprintf(&v->key, "strategy %d: %s", (int)s->id, v->name);

    if (length >= 0)
        return HVD_OK;
    v->key = NULL;
    return hvd__fail_memory(MOST_NAME);
}

/* Makes gradients, and state where the optimiser works; a server has its own.
 */
static int allocate(struct hvd_strategy *s)
{
    int nstates = s->servers ? 0 : hvd__optimizer_states(&s->options);
    bool serves = hvd_strategy_is_server(s);
    size_t total = 0;
    float *gradient;

    if (serves)
        HVD_TRY(hvd__server_new(s));
    HVD_TRY(hvd__statistics_allocate(s));
    for (int32_t i = 0; i < s->nvariables; i++)
        total += serves || s->variables[i].is_sparse
                     ? 0
                     : (size_t)s->variables[i].count;
    s->arena = gradient = hvd_malloc(total * sizeof *gradient);
    if (!gradient)
        return HVD_ERR_MEMORY;
    for (int32_t i = 0; i < s->nvariables; i++) {
        struct hvd__variable *v = &s->variables[i];
        size_t count = v->count ? (size_t)v->count : 1;

        HVD_TRY(name_key(s, v));
        if (!serves && !v->is_sparse) {
            v->gradient = gradient;
            gradient += v->count;
        }
        for (int k = 0; k < nstates; k++)
            if (!(v->states[k] = calloc(count, sizeof(float))))
                return hvd__fail_memory(count * sizeof(float));
    }
    return HVD_OK;
}

/* All broadcasts are in flight at once; their handles are kept where a step's
 * are. */
int hvd__broadcast_values(struct hvd_strategy *s, int root)
{
    int status = HVD_OK;

    for (int32_t i = 0; i < s->nvariables; i++) {
        struct hvd__variable *v = &s->variables[i];

        v->status = hvd_broadcast_async(v->key, v->value, v->count, HVD_FLOAT32,
                                        root, &v->handle);
        if (v->status < 0 && status == HVD_OK)
            status = v->status;
    }
    for (int32_t i = 0; i < s->nvariables; i++) {
        struct hvd__variable *v = &s->variables[i];
        int one = v->status < 0 ? HVD_OK : hvd_wait(v->handle);

        v->handle = 0;
        if (one < 0 && status == HVD_OK)
            status = one;
    }
    return status;
}

int hvd__broadcast_state(struct hvd_strategy *s, int root)
{
    int nstates = hvd__optimizer_states(&s->options);

    for (int32_t i = 0; i < s->nvariables; i++) {
        struct hvd__variable *v = &s->variables[i];

        HVD_TRY(hvd_broadcast(&v->steps, 1, HVD_INT64, root));
        for (int k = 0; k < nstates; k++)
            HVD_TRY(hvd_broadcast(v->states[k], v->count, HVD_FLOAT32, root));
    }
    return HVD_OK;
}

/* Starts the strategy of a process whose others have it already. */
static int start_alone(struct hvd_strategy *s)
{
    HVD_TRY(hvd__elastic_strategy_name(s));
    HVD_TRY(allocate(s));
    HVD_TRY(hvd__elastic_strategy_start(s));
    s->started = true;
    hvd__strategy_enlist(s);
    return HVD_OK;
}

/* Makes what this rank has of it. */
static int prepare(struct hvd_strategy *s)
{
    if (s->options.elastic)
        HVD_TRY(hvd__elastic_strategy_name(s));
    HVD_TRY(allocate(s));
    return s->options.elastic ? hvd__elastic_strategy_start(s) : HVD_OK;
}

int hvd_strategy_start(hvd_strategy *strategy)
{
    int32_t id = hvd__strategy_number();

    if (!strategy)
        return hvd__fail(HVD_ERR_ARGUMENT, "the strategy is NULL");
    if (strategy->started)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "hvd_strategy_start was called before");
    if (hvd__elastic_strategy_joins(strategy)) {
        strategy->id = id;
        return start_alone(strategy);
    }
    HVD_TRY(hvd__strategy_compare(strategy));
    /* Ranks may have started different numbers of strategies before. */
    HVD_TRY(hvd_broadcast(&id, 1, HVD_INT32, 0));
    strategy->id = id;
    if (strategy->options.kind == HVD_STRATEGY_PARAMETER_SERVER)
        HVD_TRY(hvd__servers_new(strategy));
    HVD_TRY(hvd__agree(0, prepare(strategy)));
    HVD_TRY(hvd__broadcast_values(strategy, 0));
    HVD_TRY(hvd__statistics_share(strategy, 0));
    strategy->started = true;
    if (strategy->servers)
        strategy->group = strategy->servers->workers;
    else
        hvd__strategy_enlist(strategy);
    return HVD_OK;
}
