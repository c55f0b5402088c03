/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packs.c - gradients that cross the device's network together.
 *
 * The backward pass has the gradients of the last variables first, so packs are
 * made from the last on: the first pack leaves while the rest is computed. A
 * pack is the elements of its gradients, one after the other; its mean is cut
 * up again in the same way. One gradient by itself needs neither.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "graph/graph.h"

struct packing {
    ipu_graph *graph;
    const ipu_network *network;
    const ipu_tensor *gradients;
    ipu_tensor *averaged;
    ipu_tensor *flat; /* owned, [count] */
    int32_t packs;    /* so far */
};

static const struct ipu__shape *shape_of(const struct packing *p, int32_t i)
{
    return &p->graph->tensors[ipu__index(p->graph, p->gradients[i])].shape;
}

/* Returns the first gradient of the pack whose last is number last. */
static int32_t first_of_pack(const struct packing *p, int32_t last)
{
    const ipu_dtype dtype = shape_of(p, last)->dtype;
    const size_t most = (size_t)p->network->pack_bytes;
    size_t bytes = ipu__shape_bytes(shape_of(p, last));
    int32_t i = last;

    while (i > 0 && shape_of(p, i - 1)->dtype == dtype) {
        bytes += ipu__shape_bytes(shape_of(p, i - 1));
        if (most > 0 && bytes > most)
            break;
        i--;
    }
    return i;
}

/* Cuts the mean of a pack into those of its gradients. */
static void cut_up(struct packing *p, ipu_tensor mean, int32_t first,
                   int32_t last)
{
    int64_t start = 0;

    for (int32_t i = first; i <= last; i++) {
        const struct ipu__shape shape = *shape_of(p, i);
        const int64_t count = ipu__shape_count(&shape);
        ipu_tensor part = ipu_slice(p->graph, mean, &start, &count);

        p->averaged[i] = ipu_reshape(p->graph, part, shape.ndim, shape.extents);
        start += count;
    }
}

static void add_pack(struct packing *p, int32_t first, int32_t last)
{
    char name[32];
    ipu_tensor mean;

    snprintf(name, sizeof name, "gradients/%d", (int)p->packs++);
    if (first == last) {
        p->averaged[first] = ipu_collective_mean(p->graph, p->network, name,
                                                 p->gradients[first]);
        return;
    }
    for (int32_t i = first; i <= last; i++) {
        const int64_t count = ipu__shape_count(shape_of(p, i));

        p->flat[i] = ipu_reshape(p->graph, p->gradients[i], 1, &count);
    }
    mean = ipu_collective_mean(
        p->graph, p->network, name,
        ipu_concat(p->graph, last - first + 1, p->flat + first, 0));
    if (mean.id >= 0)
        cut_up(p, mean, first, last);
}

static int check_gradients(const struct packing *p, int32_t count)
{
    if (!p->network)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "collective gradients: the network is NULL");
    if (count < 0 || (count > 0 && (!p->gradients || !p->averaged)))
        return ipu__fail(IPU_ERR_ARGUMENT, "collective gradients: %s",
                         count < 0 ? "the count is less than 0"
                                   : "an array is NULL");
    for (int32_t i = 0; i < count; i++)
        if (ipu__index(p->graph, p->gradients[i]) < 0)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "collective gradients: gradient %d: %s", (int)i,
                             ipu_last_error());
    return IPU_OK;
}

int ipu_collective_gradients(ipu_graph *graph, const ipu_network *network,
                             int32_t count, const ipu_tensor *gradients,
                             ipu_tensor *averaged)
{
    struct packing p = {.graph = graph,
                        .network = network,
                        .gradients = gradients,
                        .averaged = averaged};
    int status;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "collective gradients: the graph is NULL");
    IPU_TRY(ipu__graph_status(graph));
    status = check_gradients(&p, count);
    if (status >= 0)
        status = ipu__new_array(&p.flat, (size_t)count, sizeof *p.flat);
    if (status < 0)
        return ipu__graph_fail(graph, status);
    for (int32_t last = count - 1, first; last >= 0; last = first - 1) {
        first = first_of_pack(&p, last);
        add_pack(&p, first, last);
        if (ipu__graph_status(graph) < 0)
            break;
    }
    free(p.flat);
    return ipu__graph_status(graph);
}
