/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feeds.c - queues at the ends of a program, or of each iteration of a body:
 * dequeued before it begins, and enqueued when it is done.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/op.h"
#include "streams/streams.h"

static const ipu_graph *outermost(const ipu_graph *g)
{
    while (g->parent)
        g = g->parent;
    return g;
}

/* ------------------------------------------------------------------ infeeds */

static int check_feeds(const ipu_graph *g, const ipu_infeed *infeed);

static int check_feeds_of_bodies(const ipu_graph *g, const ipu_infeed *infeed)
{
    for (int32_t i = 0; i < g->nloops; i++)
        IPU_TRY(check_feeds(g->loops[i].body.graph, infeed));
    return g->open ? check_feeds(g->open, infeed) : IPU_OK;
}

/* A queue has one place in a program, and its name. */
static int check_feeds(const ipu_graph *g, const ipu_infeed *infeed)
{
    const char *name = ipu__infeed_name(infeed);

    for (int32_t i = 0; i < g->nfeeds; i++) {
        const ipu_infeed *other = g->feeds[i].infeed;

        if (other == infeed)
            return ipu__fail(IPU_ERR_STATE,
                             "infeed '%s' is dequeued at another place of "
                             "this program: an infeed is dequeued once",
                             name);
        if (strcmp(ipu__infeed_name(other), name) != 0)
            continue;
        if (ipu__infeed_replicas(other) != ipu__infeed_replicas(infeed))
            return ipu__fail(IPU_ERR_STATE,
                             "infeed '%s' is in this program with replication "
                             "factor %d, not %d",
                             name, (int)ipu__infeed_replicas(other),
                             (int)ipu__infeed_replicas(infeed));
        return ipu__fail(IPU_ERR_NAME,
                         "infeed '%s': another infeed of this program has "
                         "that name",
                         name);
    }
    return check_feeds_of_bodies(g, infeed);
}

static int32_t add_fed(ipu_graph *g, const ipu_infeed *infeed,
                       const ipu_feed_tensor *tensor)
{
    struct ipu__shape shape;
    char name[160];
    int32_t added;

    snprintf(name, sizeof name, "%.70s/%.70s", ipu__infeed_name(infeed),
             tensor->name);
    IPU_TRY(ipu__shape_make(name, tensor->dtype, tensor->ndim, tensor->shape,
                            &shape));
    added = ipu__tensor_add(g, strdup(name), &shape, IPU__INPUT);
    IPU_TRY(added);
    g->tensors[added].fed = true;
    g->tensors[added].imported = true; /* its name is the queue's */
    return added;
}

static int add_dequeue(ipu_graph *g, ipu_infeed *infeed, ipu_tensor *outputs)
{
    const ipu_feed_tensor *tensors;
    struct ipu__feed feed = {.infeed = infeed, .first = g->ntensors};

    if (!infeed || !outputs)
        return ipu__fail(IPU_ERR_ARGUMENT, "dequeue: %s is NULL",
                         infeed ? "the place for tensors" : "the infeed");
    IPU_TRY(ipu__check_closed(g, "dequeue"));
    IPU_TRY(check_feeds(outermost(g), infeed));
    feed.count = ipu_infeed_tensors(infeed, &tensors);
    IPU_TRY(ipu__reserve((void **)&g->feeds, g->nfeeds, &g->feed_capacity,
                         sizeof *g->feeds));
    for (int32_t i = 0; i < feed.count; i++) {
        int32_t added = add_fed(g, infeed, &tensors[i]);

        IPU_TRY(added);
        outputs[i] = ipu__handle(g, added);
    }
    ipu__infeed_retain(infeed);
    g->feeds[g->nfeeds++] = feed;
    return IPU_OK;
}

int ipu_infeed_dequeue(ipu_graph *graph, ipu_infeed *infeed,
                       ipu_tensor *outputs)
{
    int status;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "dequeue: the graph is NULL");
    if (graph->status < 0)
        return ipu__graph_status(graph);
    status = add_dequeue(graph, infeed, outputs);
    return status < 0 ? ipu__graph_fail(graph, status) : IPU_OK;
}

/* ----------------------------------------------------------------- outfeeds */

static int check_enqueues(const ipu_graph *g, const ipu_outfeed *outfeed)
{
    const char *name = ipu__outfeed_name(outfeed);

    for (int32_t i = 0; i < g->nenqueues; i++) {
        const ipu_outfeed *other = g->enqueues[i].outfeed;

        if (other == outfeed)
            return ipu__fail(IPU_ERR_STATE,
                             "outfeed '%s': an outfeed can be enqueued only "
                             "once in a program",
                             name);
        if (strcmp(ipu__outfeed_name(other), name) == 0)
            return ipu__fail(IPU_ERR_NAME,
                             "outfeed '%s': another outfeed of this program "
                             "has that name",
                             name);
    }
    for (int32_t i = 0; i < g->nloops; i++)
        IPU_TRY(check_enqueues(g->loops[i].body.graph, outfeed));
    return g->open ? check_enqueues(g->open, outfeed) : IPU_OK;
}

/* Describes the tensors to the queue. */
static int describe_element(const ipu_graph *g, ipu_outfeed *outfeed,
                            int32_t count, const char *const *names,
                            const int32_t *indices)
{
    ipu_feed_tensor *tensors;
    char numbers[IPU_MAX_FEED_TENSORS][4];
    int status;

    IPU_TRY(ipu__new_array(&tensors, (size_t)count, sizeof *tensors));
    for (int32_t i = 0; i < count; i++) {
        const struct ipu__shape *shape = &g->tensors[indices[i]].shape;

        snprintf(numbers[i], sizeof numbers[i], "%d", (int)i % 100);
        tensors[i].name = names ? names[i] : numbers[i];
        tensors[i].dtype = shape->dtype;
        tensors[i].ndim = shape->ndim;
        memcpy(tensors[i].shape, shape->extents, sizeof shape->extents);
    }
    status = ipu__outfeed_describe(outfeed, count, tensors);
    free(tensors);
    return status;
}

static int find_tensors(ipu_graph *g, const ipu_outfeed *outfeed, int32_t count,
                        const ipu_tensor *tensors, int32_t *indices)
{
    for (int32_t i = 0; i < count; i++) {
        indices[i] = ipu__index_kept(g, tensors[i]);
        if (indices[i] < 0)
            return ipu__fail(indices[i], "outfeed '%s': tensor %d: %s",
                             ipu__outfeed_name(outfeed), (int)i,
                             ipu_last_error());
    }
    return IPU_OK;
}

static int add_enqueue(ipu_graph *g, ipu_outfeed *outfeed, int32_t count,
                       const char *const *names, const ipu_tensor *tensors)
{
    struct ipu__enqueue e = {.outfeed = outfeed, .count = count};
    int status;

    if (!outfeed || !tensors)
        return ipu__fail(IPU_ERR_ARGUMENT, "enqueue: %s is NULL",
                         outfeed ? "the array of tensors" : "the outfeed");
    if (count < 1 || count > IPU_MAX_FEED_TENSORS)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "outfeed '%s': %d tensors, an element has 1 to %d",
                         ipu__outfeed_name(outfeed), (int)count,
                         IPU_MAX_FEED_TENSORS);
    IPU_TRY(ipu__check_closed(g, "enqueue"));
    IPU_TRY(check_enqueues(outermost(g), outfeed));
    IPU_TRY(ipu__reserve((void **)&g->enqueues, g->nenqueues,
                         &g->enqueue_capacity, sizeof *g->enqueues));
    IPU_TRY(ipu__new_array(&e.tensors, (size_t)count, sizeof *e.tensors));
    status = find_tensors(g, outfeed, count, tensors, e.tensors);
    if (status == IPU_OK)
        status = describe_element(g, outfeed, count, names, e.tensors);
    if (status < 0) {
        free(e.tensors);
        return status;
    }
    ipu__outfeed_retain(outfeed);
    g->enqueues[g->nenqueues++] = e;
    return IPU_OK;
}

int ipu_outfeed_enqueue(ipu_graph *graph, ipu_outfeed *outfeed, int32_t count,
                        const char *const *names, const ipu_tensor *tensors)
{
    int status;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "enqueue: the graph is NULL");
    if (graph->status < 0)
        return ipu__graph_status(graph);
    status = add_enqueue(graph, outfeed, count, names, tensors);
    return status < 0 ? ipu__graph_fail(graph, status) : IPU_OK;
}
