/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares.c - replicas of a pipeline that share the optimiser's state.
 *
 * A variable of n elements is cut into as many shares of ceil(n / R) elements
 * as there are replicas, padded with zeros at the end. Replica r updates only
 * share r, and keeps the state of that share:
 *
 *     step        data                                        elements
 *     gradients   all mini-batches, averaged over replicas    n
 *     update      share r of the variable, of its gradient
 *                 and of its state, as vectors                ceil(n / R)
 *     variable    each replica's share copied to all          n
 *
 * On the chips the first step is a reduce-scatter and the last an all-gather,
 * each half of a ring (tally.c). An optimiser that works element by element
 * makes the same bits from a share as from the whole. One that reads several
 * elements of a variable at once, for its length, would see only those of a
 * share, so this file follows the optimiser's graph from the shares on and
 * refuses any op that does not work element by element. A variable that the
 * graph assigns from shares is shared state, too. Each replica keeps any other
 * assigned variable, such as a counter of steps, as a whole.
 *
 * All replicas keep variables of less than 128 bytes per replica as a whole:
 * sharing them saves too little.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op.h"
#include "pipeline/pipeline.h"

enum { LEAST_BYTES = 128 };

int64_t ipu__share_elements(const struct ipu_pipeline *p,
                            const struct ipu__shape *shape)
{
    int32_t replicas = p->options.replicas;

    if (!p->options.replicated_optimizer_state_sharding || replicas < 2 ||
        (int64_t)ipu__shape_bytes(shape) < (int64_t)LEAST_BYTES * replicas)
        return 0;
    return ipu_shard_elements(ipu__shape_count(shape), replicas);
}

void ipu__share_name(const char *variable, char *name)
{
    snprintf(name, IPU__NAME_MAX, "%.480s/gradient", variable);
}

/* ----------------------------------------------- results of the optimizer */

struct follow {
    const ipu_graph *graph;
    int32_t count;
    const ipu_tensor *variables;
    const int64_t *shares;
    int32_t *of; /* owned, [tensors]: index of the variable of which it is a
                    share; -1: no share */
};

static const char *name_of(const struct follow *f, int32_t of)
{
    int32_t t = ipu__index(f->graph, f->variables[of]);

    return f->graph->tensors[t].name;
}

static int refuse(const struct follow *f, int32_t of, const char *op)
{
    return ipu__fail(
        IPU_ERR_ARGUMENT,
        "replicas share the optimizer's state, each with its part of '%s', and "
        "%s looks at more of it than one element at a time, as LAMB and "
        "clipping by a length do: without "
        "replicated_optimizer_state_sharding each has all of it",
        name_of(f, of), op);
}

/* Follows a node: it makes a share of one variable, or of none. */
static int follow_node(const struct follow *f, const struct ipu__node *node)
{
    const struct ipu__op *op = node->op;
    int32_t of = IPU__NONE;

    for (int i = 0; i < op->ninputs; i++)
        if (f->of[node->inputs[i]] >= 0)
            of = f->of[node->inputs[i]];
    for (int32_t i = 0, t; (t = ipu__loop_need(f->graph, node, i)) >= 0; i++)
        if (f->of[t] >= 0)
            return refuse(f, f->of[t], "a loop");
    if (of < 0)
        return IPU_OK;
    if (!op->by_element ||
        ipu__shape_count(&f->graph->tensors[node->output].shape) !=
            f->shares[of])
        return refuse(f, of, op->name);
    f->of[node->output] = of;
    return IPU_OK;
}

static int note_state(struct ipu__chip *chip, const char *name, const char *of)
{
    struct ipu__state state;

    IPU_TRY(ipu__reserve((void **)&chip->states, chip->nstates,
                         &chip->state_capacity, sizeof *chip->states));
    state = (struct ipu__state){strdup(name), strdup(of)};
    chip->states[chip->nstates++] = state;
    return state.name && state.of ? IPU_OK : ipu__fail_memory(strlen(name));
}

static int follow_all(const struct follow *f, struct ipu__chip *chip)
{
    const ipu_graph *g = f->graph;
    char gradient[IPU__NAME_MAX];

    for (int32_t i = 0; i < f->count; i++) {
        ipu_tensor input;

        if (f->shares[i] == 0)
            continue;
        f->of[ipu__index(g, f->variables[i])] = i;
        ipu__share_name(name_of(f, i), gradient);
        IPU_TRY(ipu_graph_find(g, gradient, &input));
        f->of[ipu__index(g, input)] = i;
    }
    for (int32_t n = 0; n < g->nnodes; n++)
        IPU_TRY(follow_node(f, &g->nodes[n]));
    for (int32_t i = 0; i < g->nsinks; i++)
        if (f->of[g->sinks[i].tensor] >= 0)
            return refuse(f, f->of[g->sinks[i].tensor], "the host");
    for (int32_t i = 0; i < g->nassigns; i++) {
        int32_t to = g->assigns[i].variable, of = f->of[g->assigns[i].value];

        if (of >= 0 && f->of[to] < 0)
            IPU_TRY(note_state(chip, g->tensors[to].name, name_of(f, of)));
    }
    return IPU_OK;
}

int ipu__shares_check(const ipu_graph *graph, int32_t count,
                      const ipu_tensor *variables, const int64_t *shares,
                      struct ipu__chip *chip)
{
    struct follow f = {graph, count, variables, shares, NULL};
    int status;

    IPU_TRY(ipu__new_array(&f.of, (size_t)graph->ntensors, sizeof *f.of));
    memset(f.of, -1, (size_t)graph->ntensors * sizeof *f.of);
    status = follow_all(&f, chip);
    free(f.of);
    return status;
}

/* ------------------------------------------------------------- their memory */

void *ipu__share_value(const struct ipu_pipeline *p,
                       const struct ipu__copy *copy, int32_t chip,
                       const char *name)
{
    for (int32_t i = 0; i < p->ngradients; i++)
        if (p->gradients[i].chip == chip && p->gradients[i].share > 0 &&
            strcmp(p->gradients[i].name, name) == 0)
            return copy->shares[i].value;
    return NULL;
}

/* Returns the trained variable of a gradient. */
static const struct ipu__variable *variable_of(const struct ipu_pipeline *p,
                                               const struct ipu__gradient *g)
{
    return &p->chips[g->chip].variables[g->variable];
}

static const struct ipu__variable *sum_of(const struct ipu_pipeline *p,
                                          const struct ipu__gradient *g)
{
    return &p->chips[g->chip].variables[g->sum];
}

static size_t share_bytes(const struct ipu__gradient *g,
                          const struct ipu__variable *v)
{
    return (size_t)g->share * ipu__dtype_bytes(v->shape.dtype);
}

int ipu__shares_new(const struct ipu_pipeline *p, struct ipu__copy *copy)
{
    IPU_TRY(ipu__new_array(&copy->shares, (size_t)p->ngradients,
                           sizeof *copy->shares));
    for (int32_t i = 0; i < p->ngradients; i++) {
        const struct ipu__gradient *g = &p->gradients[i];
        struct ipu__share *share = &copy->shares[i];

        if (g->share == 0)
            continue;
        share->value =
            ipu__pipeline_allocate(share_bytes(g, variable_of(p, g)));
        share->gradient = ipu__pipeline_allocate(share_bytes(g, sum_of(p, g)));
        if (!share->value || !share->gradient)
            return ipu__fail_memory(share_bytes(g, variable_of(p, g)));
    }
    return IPU_OK;
}

void ipu__shares_free(const struct ipu_pipeline *p, struct ipu__copy *copy)
{
    for (int32_t i = 0; copy->shares && i < p->ngradients; i++) {
        free(copy->shares[i].value);
        free(copy->shares[i].gradient);
    }
    free(copy->shares);
}

/* ------------------------------------------------------------------ updates */

/* Returns how many bytes of share number r exist: the last share may be
 * shorter, or empty. */
static size_t bytes_there(const struct ipu__gradient *g,
                          const struct ipu__variable *v, int32_t r)
{
    size_t bytes = share_bytes(g, v), first = (size_t)r * bytes;

    if (first >= v->bytes)
        return 0;
    return v->bytes - first < bytes ? v->bytes - first : bytes;
}

static void take_share(const struct ipu__gradient *g,
                       const struct ipu__variable *v, int32_t r,
                       const unsigned char *whole, unsigned char *share)
{
    size_t bytes = share_bytes(g, v), there = bytes_there(g, v, r);

    if (there > 0)
        memcpy(share, whole + (size_t)r * bytes, there);
    memset(share + there, 0, bytes - there);
}

void ipu__shares_take(struct ipu_pipeline *p)
{
    for (int32_t i = 0; i < p->ngradients; i++) {
        const struct ipu__gradient *g = &p->gradients[i];

        for (int32_t r = 0; g->share > 0 && r < p->options.replicas; r++) {
            struct ipu__copy *copy = &p->copies[r];

            take_share(g, variable_of(p, g), r,
                       ipu__copy_variable(copy, g->chip, g->variable),
                       copy->shares[i].value);
            take_share(g, sum_of(p, g), r,
                       ipu__copy_variable(copy, g->chip, g->sum),
                       copy->shares[i].gradient);
        }
    }
}

void ipu__shares_gather(struct ipu_pipeline *p)
{
    for (int32_t i = 0; i < p->ngradients; i++) {
        const struct ipu__gradient *g = &p->gradients[i];
        const struct ipu__variable *v = variable_of(p, g);

        for (int32_t r = 0; g->share > 0 && r < p->options.replicas; r++) {
            size_t first = (size_t)r * share_bytes(g, v);
            size_t there = bytes_there(g, v, r);

            for (int32_t to = 0; there > 0 && to < p->options.replicas; to++) {
                unsigned char *whole =
                    ipu__copy_variable(&p->copies[to], g->chip, g->variable);

                memcpy(whole + first, p->copies[r].shares[i].value, there);
            }
        }
    }
}
