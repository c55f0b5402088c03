/* SPDX-License-Identifier: Apache-2.0 */
/* A second graph like the first, on which remedies are tried: with the bodies
 * of its loops, which are copied too, and the same queues, of which it has a
 * share. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "streams/streams.h"

static int copy_into(const ipu_graph *graph, ipu_graph *parent,
                     ipu_graph **copy);

static void *copy_array(const void *array, int32_t count, size_t size)
{
    void *copy = calloc((size_t)count + 1, size);

    if (copy && count > 0)
        memcpy(copy, array, (size_t)count * size);
    return copy;
}

static int32_t *copy_indices(const int32_t *indices, int32_t count)
{
    return copy_array(indices, indices ? count : 0, sizeof *indices);
}

/* --------------------------------------------------- parts of every graph */

/* Copies the tensors with their names and elements. Returns false without
 * memory. */
static bool copy_tensors(const ipu_graph *from, ipu_graph *to)
{
    to->tensors =
        copy_array(from->tensors, from->ntensors, sizeof *to->tensors);
    if (!to->tensors)
        return false;
    to->ntensors = to->tensor_capacity = from->ntensors;
    for (int32_t i = 0; i < to->ntensors; i++)
        to->tensors[i].name = to->tensors[i].data = NULL;
    for (int32_t i = 0; i < to->ntensors; i++) {
        struct ipu__tensor *t = &to->tensors[i];
        const void *data = from->tensors[i].data;
        size_t bytes = ipu__shape_bytes(&t->shape);

        t->name = strdup(from->tensors[i].name);
        if (data)
            t->data = malloc(bytes ? bytes : 1);
        if (!t->name || (data && !t->data))
            return false;
        if (data)
            memcpy(t->data, data, bytes);
    }
    return true;
}

static bool copy_sinks(const ipu_graph *from, ipu_graph *to)
{
    to->sinks = copy_array(from->sinks, from->nsinks, sizeof *to->sinks);
    if (!to->sinks)
        return false;
    to->nsinks = to->sink_capacity = from->nsinks;
    for (int32_t i = 0; i < to->nsinks; i++)
        to->sinks[i].name = strdup(from->sinks[i].name);
    for (int32_t i = 0; i < to->nsinks; i++)
        if (!to->sinks[i].name)
            return false;
    return true;
}

static bool copy_plain(const ipu_graph *from, ipu_graph *to)
{
    to->nodes = copy_array(from->nodes, from->nnodes, sizeof *to->nodes);
    to->assigns =
        copy_array(from->assigns, from->nassigns, sizeof *to->assigns);
    to->regions =
        copy_array(from->regions, from->nregions, sizeof *to->regions);
    to->imports =
        copy_array(from->imports, from->nimports, sizeof *to->imports);
    to->nnodes = to->node_capacity = from->nnodes;
    to->nassigns = to->assign_capacity = from->nassigns;
    to->nregions = to->region_capacity = from->nregions;
    to->nimports = to->import_capacity = from->nimports;
    return to->nodes && to->assigns && to->regions && to->imports;
}

/* ------------------------------------------------------------------- queues */

static bool copy_feeds(const ipu_graph *from, ipu_graph *to)
{
    to->feeds = copy_array(from->feeds, from->nfeeds, sizeof *to->feeds);
    to->enqueues = calloc((size_t)from->nenqueues + 1, sizeof *to->enqueues);
    if (!to->feeds || !to->enqueues)
        return false;
    to->nfeeds = to->feed_capacity = from->nfeeds;
    to->enqueue_capacity = from->nenqueues;
    for (int32_t i = 0; i < to->nfeeds; i++)
        ipu__infeed_retain(to->feeds[i].infeed);
    for (int32_t i = 0; i < from->nenqueues; i++) {
        struct ipu__enqueue *e = &to->enqueues[i];

        *e = from->enqueues[i];
        e->tensors = copy_indices(e->tensors, e->count);
        if (!e->tensors)
            return false;
        ipu__outfeed_retain(e->outfeed);
        to->nenqueues++;
    }
    return true;
}

/* -------------------------------------------------------------------- loops */

static int copy_block(const struct ipu__block_graph *from, int32_t ncarried,
                      ipu_graph *parent, struct ipu__block_graph *to)
{
    if (!from->graph)
        return IPU_OK;
    to->carried = copy_indices(from->carried, ncarried);
    if (!to->carried)
        return ipu__fail_memory((size_t)ncarried * sizeof *to->carried);
    return copy_into(from->graph, parent, &to->graph);
}

static int copy_loop(const struct ipu__loop *from, ipu_graph *parent,
                     struct ipu__loop *to)
{
    to->count = from->count;
    to->ncarried = from->ncarried;
    to->nwritten = from->nwritten;
    to->initial = copy_indices(from->initial, from->ncarried);
    to->outputs = copy_indices(from->outputs, from->ncarried);
    to->written = copy_indices(from->written, from->nwritten);
    to->renewed = copy_indices(from->renewed, from->nwritten);
    if (!to->initial || !to->outputs || !to->written || !to->renewed)
        return ipu__fail_memory((size_t)from->ncarried * sizeof *to->initial);
    IPU_TRY(copy_block(&from->body, from->ncarried, parent, &to->body));
    return copy_block(&from->condition, from->ncarried, parent, &to->condition);
}

static int copy_loops(const ipu_graph *from, ipu_graph *to)
{
    IPU_TRY(
        ipu__new_array(&to->loops, (size_t)from->nloops, sizeof *to->loops));
    to->loop_capacity = from->nloops;
    for (int32_t i = 0; i < from->nloops; i++) {
        to->nloops++;
        IPU_TRY(copy_loop(&from->loops[i], to, &to->loops[i]));
    }
    return IPU_OK;
}

/* ---------------------------------------------------------------------- all */

static int copy_into(const ipu_graph *graph, ipu_graph *parent,
                     ipu_graph **copy)
{
    ipu_graph *g;
    int status;

    IPU_TRY(ipu__graph_alloc(&g));
    *copy = g; /* the caller frees it, also after a failure */
    g->tag = graph->tag;
    g->parent = parent;
    g->recompute = graph->recompute;
    g->source = graph->source;
    g->rounding = graph->rounding;
    /* Files are those of the first, which tensors borrow. */
    status =
        copy_tensors(graph, g) && copy_sinks(graph, g) &&
                copy_plain(graph, g) && copy_feeds(graph, g)
            ? IPU_OK
            : ipu__fail_memory((size_t)graph->ntensors * sizeof *g->tensors);
    return status < 0 ? status : copy_loops(graph, g);
}

int ipu__graph_copy(const ipu_graph *graph, ipu_graph **copy)
{
    ipu_graph *g = NULL;
    int status;

    IPU_TRY(ipu__check_closed(graph, "copy"));
    status = copy_into(graph, NULL, &g);
    if (status < 0) {
        ipu_graph_free(g);
        return status;
    }
    *copy = g;
    return IPU_OK;
}
