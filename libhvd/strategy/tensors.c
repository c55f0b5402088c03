/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors.c - the optimiser's state as named tensors: a list of them, and their
 * elements, read and written by a program that keeps its own checkpoints.
 * checkpoint.c, the library's form, stands on the same functions.
 *
 *                    hvd_strategy_save             hvd_strategy_load
 *                    hvd_strategy_read_state       hvd_strategy_write_state
 *                              |                             |
 *                     hvd__state_borrow              hvd__state_replace
 *                     hvd__state_return                      |
 *                              |                             |
 *     all-reduce:       it is here, alike         rank 0 has it: broadcasts
 *     servers:          fetched (state.c)         sent to them (state.c), from
 *                                                 where all get the values
 *
 * The tensors are numbered variable by variable: its arrays, in the order of
 * the optimiser's table, and then its number of updates.
 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "strategy/optimizer.h"
#include "strategy/servers.h"

static const char rule[] = "the optimizer's state is read and written";

/* ----------------------------------------------------------------- the list */

/* A number of the list, taken apart. */
struct entry {
    struct hvd__variable *variable;
    int slot; /* an array of the optimiser; -1: the number of updates */
};

/* Returns how many tensors each variable has. */
static int32_t count_each(const struct hvd_strategy *s)
{
    return s->options.optimizer == HVD_NO_OPTIMIZER
               ? 0
               : hvd__optimizer_states(&s->options) + 1;
}

static int32_t count_tensors(const struct hvd_strategy *s)
{
    return s->nvariables * count_each(s);
}

static struct entry entry_of(const struct hvd_strategy *s, int32_t number)
{
    const int32_t each = count_each(s);

    if (each == 0) /* the list is empty */
        return (struct entry){NULL, -1};
    return (struct entry){&s->variables[number / each],
                          number % each == each - 1 ? -1 : number % each};
}

static const char *slot_name(const struct hvd_strategy *s, struct entry e)
{
    return e.slot < 0 ? "updates" : hvd__optimizer_slot(&s->options, e.slot);
}

int hvd_strategy_state_count(const hvd_strategy *strategy)
{
    HVD_TRY(hvd__strategy_check_started(strategy));
    return count_tensors(strategy);
}

int hvd_strategy_state_info(const hvd_strategy *strategy, int32_t number,
                            hvd_strategy_tensor *info)
{
    struct entry e;
    uint32_t size;

    HVD_TRY(hvd__strategy_check_started(strategy));
    if (!info || info->size < sizeof *info)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the place for a tensor is %s: its size is that of "
                         "version %s, %zu",
                         info ? "too small" : "NULL", HVD_VERSION_STRING,
                         sizeof *info);
    if (number < 0 || number >= count_tensors(strategy))
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "there is no tensor %d of the optimizer's state: it "
                         "has %d",
                         (int)number, (int)count_tensors(strategy));
    e = entry_of(strategy, number);
    size = info->size;
    *info = (hvd_strategy_tensor){
        .size = size,
        .variable = (int32_t)(e.variable - strategy->variables),
        .dtype = e.slot < 0 ? HVD_INT64 : HVD_FLOAT32,
        .ndim = e.slot < 0 ? 0 : e.variable->ndim,
        .count = e.slot < 0 ? 1 : e.variable->count,
    };
    memcpy(info->shape, e.variable->shape,
           (size_t)info->ndim * sizeof *info->shape);
    snprintf(info->name, sizeof info->name, "%s/%s", e.variable->name,
             slot_name(strategy, e));
    return HVD_OK;
}

/* ------------------------------------------------------------------ reading */

int hvd__state_borrow(struct hvd_strategy *s)
{
    return s->servers ? hvd__fetch_state(s) : HVD_OK;
}

void hvd__state_return(struct hvd_strategy *s)
{
    if (s->servers)
        hvd__state_free(s);
}

static size_t array_bytes(struct entry e)
{
    return (size_t)e.variable->count * sizeof(float);
}

static void copy_out(const struct hvd_strategy *s, void *const *data)
{
    for (int32_t i = 0; i < count_tensors(s); i++) {
        struct entry e = entry_of(s, i);

        if (data[i] && e.slot < 0)
            memcpy(data[i], &e.variable->steps, sizeof e.variable->steps);
        else if (data[i])
            memcpy(data[i], e.variable->states[e.slot], array_bytes(e));
    }
}

int hvd_strategy_read_state(hvd_strategy *strategy, void *const *data)
{
    int status;

    HVD_TRY(hvd__strategy_check_worker(strategy));
    HVD_TRY(hvd__strategy_check_idle(strategy, rule));
    if (!data && count_tensors(strategy) > 0)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the places for the optimizer's state are NULL");
    status = hvd__state_borrow(strategy);
    if (status >= 0)
        copy_out(strategy, data);
    hvd__state_return(strategy);
    return status;
}

/* ------------------------------------------------------------------ writing */

/* Has the optimiser of this rank begin anew. */
static void clear(struct hvd_strategy *s)
{
    int nstates = hvd__optimizer_states(&s->options);

    for (int32_t i = 0; i < s->nvariables; i++) {
        struct hvd__variable *v = &s->variables[i];

        v->steps = 0;
        for (int k = 0; k < nstates; k++)
            memset(v->states[k], 0, (size_t)v->count * sizeof(float));
    }
}

/* Does rank 0's part: fills its variables and state, and sends them to the
 * servers, if there are any. */
static int replace_here(struct hvd_strategy *s, hvd__state_source *source,
                        const void *context)
{
    int has_state;

    if (s->servers)
        HVD_TRY(hvd__state_new(s));
    HVD_TRY(has_state = source(s, context));
    if (!has_state)
        clear(s);
    if (!s->servers)
        return has_state;
    HVD_TRY(hvd__send_state(s));
    /* The servers answer when they have all of the state, and from then on
     * other workers may ask for it. */
    HVD_TRY(hvd__fetch_values(s));
    return has_state;
}

/* Gives the other ranks what rank 0 has, or has sent to the servers. */
static int share(struct hvd_strategy *s)
{
    if (s->servers)
        return hvd_rank() == 0 ? HVD_OK : hvd__fetch_values(s);
    HVD_TRY(hvd__broadcast_values(s, 0));
    return hvd__broadcast_state(s, 0);
}

int hvd__state_replace(struct hvd_strategy *s, const char *when,
                       hvd__state_source *source, const void *context)
{
    int32_t has_state;
    int status = HVD_OK;

    HVD_TRY(hvd__strategy_check_worker(s));
    HVD_TRY(hvd__agree(s->group, hvd__strategy_check_idle(s, when)));
    /* The barrier comes before anything changes: it fails if a rank has joined.
     */
    if (!s->servers)
        HVD_TRY(hvd_barrier());
    if (hvd_rank() == 0) {
        status = replace_here(s, source, context);
        hvd__state_return(s);
    }
    has_state = status > 0;
    HVD_TRY(hvd__agree(s->group, status));
    HVD_TRY(hvd__allreduce_on(s->group, &has_state, 1, HVD_INT32, HVD_MAX));
    HVD_TRY(share(s));
    HVD_TRY(hvd__statistics_share(s, s->group));
    return has_state;
}

static int check_given(const struct hvd_strategy *s, const void *const *data)
{
    for (int32_t i = 0; i < count_tensors(s); i++) {
        struct entry e = entry_of(s, i);
        const char *name = e.variable->name, *slot = slot_name(s, e);
        int64_t updates;

        if (!data[i] && (e.slot < 0 || e.variable->count > 0))
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "tensor '%s/%s' of the optimizer's state is NULL",
                             name, slot);
        if (e.slot >= 0)
            continue;
        memcpy(&updates, data[i], sizeof updates);
        if (updates < 0)
            return hvd__fail(HVD_ERR_ARGUMENT,
                             "'%s/%s' is %lld: give a number of updates, 0 or "
                             "more",
                             name, slot, (long long)updates);
    }
    return HVD_OK;
}

/* A source: context is the data that the program has given. */
static int copy_in(struct hvd_strategy *s, const void *context)
{
    const void *const *data = context;

    if (!data)
        return 0;
    HVD_TRY(check_given(s, data));
    for (int32_t i = 0; i < count_tensors(s); i++) {
        struct entry e = entry_of(s, i);

        if (e.slot < 0)
            memcpy(&e.variable->steps, data[i], sizeof e.variable->steps);
        else if (e.variable->count > 0)
            memcpy(e.variable->states[e.slot], data[i], array_bytes(e));
    }
    return 1;
}

int hvd_strategy_write_state(hvd_strategy *strategy, const void *const *data)
{
    int status = hvd__state_replace(strategy, rule, copy_in, data);

    return status < 0 ? status : HVD_OK;
}
