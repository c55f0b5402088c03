/* SPDX-License-Identifier: Apache-2.0 */
/*
 * servers.c - makes what a strategy needs to talk to parameter servers: the
 * parts of its variables, and the process sets.
 */
#include "strategy/servers.h"
#include "strategy/optimizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* ------------------------------------------------------------------ options */

static int check_none(const hvd_strategy_options *o)
{
    if (o->servers || o->mode || o->backups || o->staleness || o->placement ||
        o->part_bytes)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the options are about parameter servers (%d servers, "
                         "mode %d, %d backups, staleness %d, placement %d, "
                         "%lld bytes a part), and the kind is not "
                         "HVD_STRATEGY_PARAMETER_SERVER",
                         (int)o->servers, (int)o->mode, (int)o->backups,
                         (int)o->staleness, (int)o->placement,
                         (long long)o->part_bytes);
    return HVD_OK;
}

static int check_mode(const hvd_strategy_options *o, int workers)
{
    if (o->mode < HVD_SERVER_SYNCHRONOUS || o->mode > HVD_SERVER_BOUNDED)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "mode %d is none: synchronous is 0, asynchronous 1, "
                         "bounded 2",
                         (int)o->mode);
    if (o->backups < 0 || o->backups >= workers)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%d backups of %d workers: a step waits for one at "
                         "least",
                         (int)o->backups, workers);
    if (o->backups > 0 && o->mode != HVD_SERVER_SYNCHRONOUS)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "backups are of the synchronous mode, and this one "
                         "waits for no worker");
    if (o->staleness < 0)
        return hvd__fail(HVD_ERR_ARGUMENT, "staleness %d is less than 0",
                         (int)o->staleness);
    if (o->staleness > 0 && o->mode != HVD_SERVER_BOUNDED)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "staleness %d is for the mode HVD_SERVER_BOUNDED "
                         "alone",
                         (int)o->staleness);
    return HVD_OK;
}

static int check_gradients(const hvd_strategy_options *o)
{
    if (o->optimizer == HVD_NO_OPTIMIZER)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "parameter servers need an optimizer, since updates "
                         "are made there");
    if (o->part_bytes > 0 && hvd__optimizer_needs_length(o->optimizer))
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "optimizer %s needs the length of whole variables, "
                         "and servers have parts of %lld bytes: set part_bytes "
                         "to 0",
                         hvd_optimizer_name(o->optimizer),
                         (long long)o->part_bytes);
    if (o->op == HVD_ADASUM)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "parameter servers reduce gradients by average or "
                         "sum, not by adasum");
    if (o->compression != HVD_COMPRESSION_NONE)
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "gradients on their way to parameter servers are not "
                         "compressed: leave out compression '%s'",
                         hvd_compression_name(o->compression));
    return HVD_OK;
}

int hvd__servers_check(const hvd_strategy_options *o, int size)
{
    if (o->kind == HVD_STRATEGY_ALL_REDUCE)
        return check_none(o);
    if (o->kind != HVD_STRATEGY_PARAMETER_SERVER)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "kind %d is none: all-reduce is 0, parameter server "
                         "1",
                         (int)o->kind);
    if (o->servers < 1 || o->servers >= size)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "%d parameter servers of %d ranks: there must be one "
                         "server and one worker at least",
                         (int)o->servers, size);
    HVD_TRY(check_mode(o, size - o->servers));
    if (o->placement != HVD_PLACE_ROUND_ROBIN &&
        o->placement != HVD_PLACE_BY_BYTES)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "placement %d is none: round robin is 0, by bytes 1",
                         (int)o->placement);
    if (o->part_bytes < 0)
        return hvd__fail(HVD_ERR_ARGUMENT, "part_bytes %lld is less than 0",
                         (long long)o->part_bytes);
    return check_gradients(o);
}

/* -------------------------------------------------------------------- parts */

/* Counts the parts, of which parts later get numbers of 32 bits. */
static int count_parts(const struct hvd_strategy *s, int64_t *total)
{
    *total = 0;
    for (int32_t i = 0; i < s->nvariables; i++)
        *total += hvd__parts_of(s->variables[i].ndim, s->variables[i].shape,
                                s->options.part_bytes);
    if (*total > 1 << 24)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "part_bytes %lld splits the variables into %lld "
                         "parts, which is more than %d",
                         (long long)s->options.part_bytes, (long long)*total,
                         1 << 24);
    return HVD_OK;
}

static int make_parts(struct hvd_strategy *s)
{
    struct hvd__servers *servers = s->servers;
    int64_t total, *loads = calloc((size_t)servers->n, sizeof *loads);
    int status = loads ? count_parts(s, &total)
                       : hvd__fail_memory((size_t)servers->n * sizeof *loads);

    if (status < 0 || !loads) {
        free(loads);
        return status;
    }
    servers->parts = calloc((size_t)total + 1, sizeof *servers->parts);
    servers->first = calloc((size_t)s->nvariables + 1, sizeof *servers->first);
    servers->commands = calloc((size_t)servers->n, sizeof *servers->commands);
    servers->pushes = calloc((size_t)total + 1, sizeof *servers->pushes);
    servers->pulls = calloc((size_t)total + 1, sizeof *servers->pulls);
    if (hvd__variable_sparse(s))
        servers->rows = calloc((size_t)total + 1, sizeof *servers->rows);
    if (!servers->parts || !servers->first || !servers->commands ||
        !servers->pushes || !servers->pulls ||
        (!servers->rows && hvd__variable_sparse(s))) {
        free(loads);
        return hvd__fail_memory((size_t)total * sizeof *servers->parts);
    }
    for (int32_t i = 0; i < s->nvariables; i++) {
        const struct hvd__variable *v = &s->variables[i];
        int64_t n = hvd__parts_of(v->ndim, v->shape, s->options.part_bytes);

        hvd__parts_split(i, v->ndim, v->shape, n,
                         servers->parts + servers->nparts);
        servers->nparts += (int32_t)n;
        servers->first[i + 1] = servers->nparts;
    }
    hvd__parts_place(servers->parts, total, servers->n, s->options.placement,
                     loads);
    free(loads);
    return HVD_OK;
}

/* ------------------------------------------------------------- process sets */

/* Returns the set of these ranks, ascending, or a negative status if there is
 * none. all: scratch for the ids of all sets, and the ranks of one. */
static int find_set(const int32_t *ranks, int n, int32_t *all, int nall)
{
    int32_t *members = all + nall;

    nall = hvd_process_set_ids(all, nall);
    for (int i = 0; i < nall; i++)
        if (hvd_process_set_ranks(all[i], members, hvd_size()) == n &&
            memcmp(members, ranks, (size_t)n * sizeof *ranks) == 0)
            return all[i];
    return HVD_ERR_PROCESS_SET;
}

/* Collective over all ranks, which have made the same sets before. Returns the
 * set of these ranks, ascending. */
static int get_set(const int32_t *ranks, int n)
{
    int nall = hvd_number_of_process_sets();
    int32_t *all = calloc((size_t)nall + (size_t)hvd_size(), sizeof *all);
    int id = all ? find_set(ranks, n, all, nall) : HVD_ERR_PROCESS_SET;

    free(all);
    /* If a rank lacked the memory, adding says that the set exists. */
    return id >= 0 ? id : hvd_add_process_set(ranks, n);
}

static int make_sets(struct hvd__servers *servers)
{
    const size_t bytes = (size_t)servers->nworkers * sizeof(int32_t);
    int32_t *ranks = malloc(bytes);
    int32_t pair[2];
    int id = hvd__agree(0, ranks ? HVD_OK : hvd__fail_memory(bytes));

    if (id >= 0) {
        for (int32_t w = 0; w < servers->nworkers; w++)
            ranks[w] = w;
        servers->workers = id = get_set(ranks, servers->nworkers);
    }
    free(ranks);
    HVD_TRY(id);
    for (int32_t w = 0; w < servers->nworkers; w++)
        for (int32_t k = 0; k < servers->n; k++) {
            pair[0] = w;
            pair[1] = servers->nworkers + k;
            HVD_TRY(id = get_set(pair, 2));
            servers->pairs[w * servers->n + k] = id;
        }
    return HVD_OK;
}

/* --------------------------------------------------------- from new to free */

static int allocate(struct hvd_strategy *s)
{
    struct hvd__servers *servers = calloc(1, sizeof *servers);
    size_t n;

    if (!servers)
        return hvd__fail_memory(sizeof *servers);
    s->servers = servers;
    pthread_mutex_init(&servers->lock, NULL);
    servers->n = s->options.servers;
    servers->nworkers = hvd_size() - servers->n;
    n = (size_t)servers->n * (size_t)servers->nworkers;
    servers->pairs = calloc(n, sizeof *servers->pairs);
    if (!servers->pairs)
        return hvd__fail_memory(n * sizeof *servers->pairs);
    return make_parts(s);
}

int hvd__servers_new(struct hvd_strategy *s)
{
    HVD_TRY(hvd__agree(0, allocate(s)));
    return make_sets(s->servers);
}

void hvd__servers_free(struct hvd_strategy *s)
{
    struct hvd__servers *servers = s->servers;

    if (!servers)
        return;
    hvd__server_free(s);
    pthread_mutex_destroy(&servers->lock);
    free(servers->pairs);
    free(servers->parts);
    free(servers->first);
    free(servers->commands);
    free(servers->pushes);
    free(servers->pulls);
    free(servers->rows);
    free(servers);
    s->servers = NULL;
}
