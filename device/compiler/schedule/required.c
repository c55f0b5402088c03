/* SPDX-License-Identifier: Apache-2.0 */
/*
 * required.c - the nodes that must still run for a tensor.
 *
 * A search goes from a tensor to its maker, to the maker's inputs, and so on,
 * until it meets nodes that are scheduled. Where a loop or a store changes
 * something in place, readers of the old state have to run first, too: a search
 * then goes over nodes from the last to the first, and effects.c returns the
 * earlier nodes that each of them adds. schedule.c asks many times for the
 * candidate that needs the fewest nodes, so results about a candidate are kept
 * from one search to the next.
 */
#include "compiler/schedule/required.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static void want_maker(struct ipu__required *s, int32_t tensor)
{
    int32_t maker = s->graph->tensors[tensor].node;

    if (maker < 0 || s->scheduled[maker] || s->looked[maker] == s->look)
        return;
    s->looked[maker] = s->look;
    s->nodes[s->count++] = maker;
}

static void want_needs(struct ipu__required *s, int32_t n)
{
    const struct ipu__node *node = &s->graph->nodes[n];
    int32_t needs[IPU__MAX_NEEDS], t;
    int nneeds = ipu__node_needs(s->graph, node, needs);

    for (int i = 0; i < nneeds; i++)
        want_maker(s, needs[i]);
    for (int32_t i = 0; (t = ipu__loop_need(s->graph, node, i)) >= 0; i++)
        want_maker(s, t);
}

/* Searches for nodes until more than limit are found. */
static void look_up(struct ipu__required *s, const int32_t *tensors,
                    int32_t count, int32_t limit)
{
    s->look++;
    s->count = 0;
    for (int32_t i = 0; i < count; i++)
        want_maker(s, tensors[i]);
    for (int32_t i = 0; i < s->count && s->count <= limit; i++)
        want_needs(s, s->nodes[i]);
}

static void mark_wanted(struct ipu__required *s, int32_t tensor)
{
    int32_t maker = s->graph->tensors[tensor].node;

    if (maker >= 0 && !s->scheduled[maker])
        s->wanted[maker] = true;
}

/* Does the same for a graph that changes tensors in place: visits all nodes,
 * the last first. */
static void look_with_effects(struct ipu__required *s, const int32_t *tensors,
                              int32_t count)
{
    const ipu_graph *g = s->graph;

    s->look++;
    s->count = 0;
    memset(s->wanted, 0, (size_t)g->nnodes * sizeof *s->wanted);
    for (int32_t i = 0; i < count; i++)
        mark_wanted(s, tensors[i]);
    for (int32_t n = g->nnodes - 1; n >= 0; n--) {
        int32_t needs[IPU__MAX_NEEDS];
        int nneeds;

        if (!s->wanted[n])
            continue;
        s->looked[n] = s->look;
        s->nodes[s->count++] = n;
        nneeds = ipu__node_needs(g, &g->nodes[n], needs);
        for (int i = 0; i < nneeds; i++)
            mark_wanted(s, needs[i]);
        ipu__effects_want(&s->effects, n, s->scheduled, s->wanted);
    }
}

static int by_number(const void *first, const void *second)
{
    int32_t a = *(const int32_t *)first, b = *(const int32_t *)second;

    return a < b ? -1 : a > b;
}

int32_t ipu__required_find(struct ipu__required *s, const int32_t *tensors,
                           int32_t count)
{
    if (s->effects.live)
        look_with_effects(s, tensors, count);
    else
        look_up(s, tensors, count, INT32_MAX);
    qsort(s->nodes, (size_t)s->count, sizeof *s->nodes, by_number);
    return s->count;
}

bool ipu__required_has(const struct ipu__required *s, int32_t node)
{
    return s->looked[node] == s->look;
}

/* Counts the nodes that a tensor needs; returns more than limit if there are
 * more. */
static int32_t count_needed(struct ipu__required *s, int32_t tensor,
                            int32_t limit, struct ipu__required_known *known)
{
    if (s->effects.live)
        look_with_effects(s, &tensor, 1);
    else
        look_up(s, &tensor, 1, limit);
    known->needed = s->count;
    known->nwatched =
        s->count < IPU__MOST_WATCHED ? s->count : IPU__MOST_WATCHED;
    memcpy(known->watched, s->nodes,
           (size_t)known->nwatched * sizeof *known->watched);
    return s->count;
}

/* Returns whether the nodes that a candidate needed before are enough to show
 * that it needs more than limit now: those that are not scheduled are still
 * needed. */
static bool needs_more(const struct ipu__required *s, int32_t limit,
                       const struct ipu__required_known *known)
{
    int32_t count = 0;

    for (int32_t i = 0; i < known->nwatched && count <= limit; i++)
        count += !s->scheduled[known->watched[i]];
    return count > limit;
}

/* Counts first the candidate that seemed to need the fewest nodes; of several
 * the last, as later layers need fewer. Its count limits that of all others. */
int32_t ipu__required_fewest(struct ipu__required *s, const int32_t *candidates,
                             int32_t count, struct ipu__required_known *known)
{
    int32_t best = -1, fewest = INT32_MAX - 1;

    for (int32_t i = 0; i < count; i++)
        if (candidates[i] >= 0 &&
            (best < 0 || known[i].needed <= known[best].needed))
            best = i;
    if (best >= 0)
        fewest = count_needed(s, candidates[best], fewest, &known[best]);
    for (int32_t i = 0; i < count; i++) {
        int32_t needed;

        if (candidates[i] < 0 || i == best)
            continue;
        if (needs_more(s, fewest, &known[i])) {
            known[i].needed = fewest + 1;
            continue;
        }
        needed = count_needed(s, candidates[i], fewest, &known[i]);
        if (needed < fewest || (needed == fewest && i < best)) {
            fewest = needed;
            best = i;
        }
    }
    return best;
}

/* ------------------------------------------------------------------ readers */

/* Adds the variables that a node reads through a tensor, each once. */
static void add_read(const ipu_graph *g, int32_t tensor, int32_t *reads,
                     int32_t *count)
{
    int32_t variable = ipu__origin(g, tensor);

    if (g->tensors[variable].kind != IPU__VARIABLE)
        return;
    for (int32_t i = 0; i < *count; i++)
        if (reads[i] == variable)
            return;
    reads[(*count)++] = variable;
}

/* Lists the variables that a node reads; reads has room for all. */
static int32_t find_reads(const ipu_graph *g, int32_t n, int32_t *reads)
{
    const struct ipu__node *node = &g->nodes[n];
    int32_t count = 0, t;

    for (int i = 0; i < node->op->ninputs; i++)
        add_read(g, node->inputs[i], reads, &count);
    for (int32_t i = 0; (t = ipu__loop_need(g, node, i)) >= 0; i++)
        add_read(g, t, reads, &count);
    return count;
}

static int32_t most_reads(const ipu_graph *g)
{
    int32_t most = IPU__MAX_INPUTS;

    for (int32_t n = 0; n < g->nnodes; n++) {
        int32_t count = 0;

        while (ipu__loop_need(g, &g->nodes[n], count) >= 0)
            count++;
        most = most < count + IPU__MAX_INPUTS ? count + IPU__MAX_INPUTS : most;
    }
    return most;
}

/* Lists the readers of each variable: counts them, then fills them in. */
static int find_readers(struct ipu__required *s)
{
    const ipu_graph *g = s->graph;
    int32_t *reads;
    int32_t total = 0;

    IPU_TRY(ipu__new_array(&reads, (size_t)most_reads(g), sizeof *reads));
    for (int32_t n = 0; n < g->nnodes; n++) {
        int32_t count = find_reads(g, n, reads);

        total += count;
        for (int32_t i = 0; i < count; i++)
            s->first[reads[i] + 1]++;
    }
    for (int32_t t = 0; t < g->ntensors; t++)
        s->first[t + 1] += s->first[t];
    s->readers = calloc((size_t)total + 1, sizeof *s->readers);
    for (int32_t n = g->nnodes - 1; s->readers && n >= 0; n--) {
        int32_t count = find_reads(g, n, reads);

        for (int32_t i = 0; i < count; i++)
            s->readers[--s->first[reads[i] + 1]] = n;
    }
    free(reads);
    if (!s->readers)
        return ipu__fail_memory((size_t)total * sizeof *s->readers);
    /* Entry t + 1 of first is the start of the range of tensor t: move all by
     * one. */
    memmove(s->first, s->first + 1, (size_t)g->ntensors * sizeof *s->first);
    s->first[g->ntensors] = total;
    return IPU_OK;
}

int ipu__required_init(struct ipu__required *s, const ipu_graph *g)
{
    size_t nnodes = (size_t)g->nnodes + 1, ntensors = (size_t)g->ntensors + 2;

    *s = (struct ipu__required){
        .graph = g,
        .scheduled = calloc(nnodes, sizeof *s->scheduled),
        .wanted = calloc(nnodes, sizeof *s->wanted),
        .looked = calloc(nnodes, sizeof *s->looked),
        .nodes = calloc(nnodes, sizeof *s->nodes),
        .first = calloc(ntensors, sizeof *s->first),
    };
    if (!s->scheduled || !s->wanted || !s->looked || !s->nodes || !s->first)
        return ipu__fail_memory(nnodes * sizeof *s->nodes);
    IPU_TRY(ipu__effects_init(&s->effects, g));
    return find_readers(s);
}

void ipu__required_fini(struct ipu__required *s)
{
    ipu__effects_fini(&s->effects);
    free(s->scheduled);
    free(s->wanted);
    free(s->looked);
    free(s->nodes);
    free(s->first);
    free(s->readers);
}
