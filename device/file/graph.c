/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - writes a graph to a file, and reads it.
 *
 *     files      of the program's sources, each once
 *     graph
 *     rounding   of float16: a flag, and seed and step if stochastic
 *     modules    of tensors (modules.h)
 *
 * The layout of a graph, and also of the body of a loop:
 *
 *     tensors    struct, name, file (-1: none); for constants, the elements
 *     regions    struct; before them, whether activations are computed again
 *     nodes      op's name, struct, attributes
 *     sinks      struct, name, whether it is a host call
 *     assigns    struct
 *     feeds      queue, its first tensor
 *     enqueues   queue, tensors
 *     imports    outer tensor, tensor
 *     loops      iterations; tensors: initial, outputs, renewed; the body; a
 *                condition or none. Both consist of carried tensors and a graph
 *
 * Each list begins with its count. Files of version 1 have neither rounding nor
 * the lists after the assigns. The file leaves out data that follow from the
 * rest. Nothing that is read here is trusted: verify_graph.c checks the whole
 * graph.
 */
#include <stdlib.h>

#include "base/error.h"
#include "file/container.h"
#include "file/members.h"
#include "file/modules.h"
#include "file/queues.h"
#include "file/shared.h"
#include "file/verify.h"
#include "graph/graph.h"

/* The least bytes that an item of each list takes. */
enum {
    LEAST_TENSOR = IPU__LEAST_STRUCT + IPU__LEAST_TEXT + 4,
    LEAST_NODE = IPU__LEAST_TEXT + 2 * IPU__LEAST_STRUCT,
    LEAST_SINK = IPU__LEAST_STRUCT + IPU__LEAST_TEXT + 4,
    LEAST_FEED = IPU__LEAST_QUEUE + 4,
    LEAST_IMPORT = 8,
    LEAST_LOOP = 8 + 4 * 4
};

/* ------------------------------------------------------------------ writing */

static void find_files(struct ipu__writer *w, const ipu_graph *g,
                       struct ipu__texts *files)
{
    if (!g)
        return;
    for (int32_t i = 0; i < g->ntensors; i++)
        if (ipu__text_number(files, g->tensors[i].source.file) < -1)
            w->failed = true;
    for (int32_t i = 0; i < g->nloops; i++) {
        find_files(w, g->loops[i].body.graph, files);
        find_files(w, g->loops[i].condition.graph, files);
    }
}

static void put_tensors(struct ipu__writer *w, const ipu_graph *g,
                        struct ipu__texts *files)
{
    ipu__put_int(w, g->ntensors);
    for (int32_t i = 0; i < g->ntensors; i++) {
        const struct ipu__tensor *t = &g->tensors[i];

        ipu__put_struct(w, &ipu__tensor_layout, t);
        ipu__put_text(w, t->name);
        ipu__put_int(w, ipu__text_number(files, t->source.file));
        if (t->kind == IPU__CONSTANT)
            ipu__put_block(w, t->data, ipu__shape_bytes(&t->shape));
    }
}

static void put_regions(struct ipu__writer *w, const ipu_graph *g)
{
    ipu__put_int(w, g->recompute);
    ipu__put_structs(w, &ipu__region_layout, g->regions, g->nregions);
}

static int put_nodes(struct ipu__writer *w, const ipu_graph *g)
{
    ipu__put_int(w, g->nnodes);
    for (int32_t i = 0; i < g->nnodes; i++) {
        const struct ipu__node *node = &g->nodes[i];

        IPU_TRY(ipu__put_op(w, node->op));
        ipu__put_struct(w, &ipu__node_layout, node);
        ipu__put_struct(w, &ipu__attributes_layout, &node->attributes);
    }
    return IPU_OK;
}

static void put_ends(struct ipu__writer *w, const ipu_graph *g)
{
    ipu__put_int(w, g->nsinks);
    for (int32_t i = 0; i < g->nsinks; i++) {
        ipu__put_struct(w, &ipu__sink_layout, &g->sinks[i]);
        ipu__put_text(w, g->sinks[i].name);
        ipu__put_int(w, g->sinks[i].fn != NULL);
    }
    ipu__put_structs(w, &ipu__assign_layout, g->assigns, g->nassigns);
}

static void put_queues(struct ipu__writer *w, const ipu_graph *g)
{
    ipu__put_int(w, g->nfeeds);
    for (int32_t i = 0; i < g->nfeeds; i++) {
        ipu__put_infeed(w, g->feeds[i].infeed);
        ipu__put_int(w, g->feeds[i].first);
    }
    ipu__put_int(w, g->nenqueues);
    for (int32_t i = 0; i < g->nenqueues; i++) {
        ipu__put_outfeed(w, g->enqueues[i].outfeed);
        ipu__put_ints(w, g->enqueues[i].tensors, g->enqueues[i].count);
    }
}

static void put_imports(struct ipu__writer *w, const ipu_graph *g)
{
    ipu__put_int(w, g->nimports);
    for (int32_t i = 0; i < g->nimports; i++) {
        ipu__put_int(w, g->imports[i].outer);
        ipu__put_int(w, g->imports[i].inner);
    }
}

static int put_graph(struct ipu__writer *w, const ipu_graph *g,
                     struct ipu__texts *files, int depth);

static int put_block(struct ipu__writer *w, const struct ipu__loop *loop,
                     const struct ipu__block_graph *block,
                     struct ipu__texts *files, int depth)
{
    ipu__put_ints(w, block->carried, loop->ncarried);
    return put_graph(w, block->graph, files, depth + 1);
}

static int put_loops(struct ipu__writer *w, const ipu_graph *g,
                     struct ipu__texts *files, int depth)
{
    ipu__put_int(w, g->nloops);
    for (int32_t i = 0; i < g->nloops; i++) {
        const struct ipu__loop *loop = &g->loops[i];

        ipu__put_loop(w, loop->count, loop->initial, loop->outputs,
                      loop->ncarried);
        ipu__put_ints(w, loop->renewed, loop->nwritten);
        IPU_TRY(put_block(w, loop, &loop->body, files, depth));
        ipu__put_int(w, loop->condition.graph != NULL);
        if (loop->condition.graph)
            IPU_TRY(put_block(w, loop, &loop->condition, files, depth));
    }
    return IPU_OK;
}

static int put_graph(struct ipu__writer *w, const ipu_graph *g,
                     struct ipu__texts *files, int depth)
{
    IPU_TRY(ipu__put_depth(depth));
    put_tensors(w, g, files);
    put_regions(w, g);
    IPU_TRY(put_nodes(w, g));
    put_ends(w, g);
    put_queues(w, g);
    put_imports(w, g);
    return put_loops(w, g, files, depth);
}

/* Writes how float16 is rounded. The step is a tensor of this graph. */
static void put_rounding(struct ipu__writer *w, const ipu_graph *g)
{
    const struct ipu__rounding *r = &g->rounding;

    ipu__put_int(w, r->on);
    ipu__put_long(w, r->on ? (int64_t)r->seed : 0);
    ipu__put_int(w, r->on ? ipu__index(g, r->step) : 0);
}

int ipu_graph_save(const ipu_graph *graph, const char *path)
{
    struct ipu__writer w = {0};
    struct ipu__texts files = {0};
    int status;

    if (!graph || !path)
        return ipu__fail(IPU_ERR_ARGUMENT, "save: %s is NULL",
                         graph ? "the file's name" : "the graph");
    IPU_TRY(ipu__graph_status(graph));
    IPU_TRY(ipu__check_closed(graph, "save"));
    if (graph->parent)
        return ipu__fail(IPU_ERR_STATE,
                         "save %s: this is the body of a loop: save the graph "
                         "around it",
                         path);
    ipu__file_begin(&w);
    find_files(&w, graph, &files);
    ipu__put_texts(&w, &files);
    status = put_graph(&w, graph, &files, 0);
    put_rounding(&w, graph);
    ipu__put_graph_modules(&w, graph);
    if (status == IPU_OK)
        status = ipu__file_write(path, IPU__FILE_GRAPH, NULL, &w);
    free(files.texts);
    ipu__writer_fini(&w);
    return status;
}

/* ------------------------------------------------------------------ reading */

/* Reads a tensor. root: the outermost graph, which has the files. */
static int get_tensor(struct ipu__reader *r, ipu_graph *g,
                      const ipu_graph *root)
{
    struct ipu__tensor t;
    char *name;
    int32_t file;
    int index;

    ipu__tensor_init(&t, NULL, &(struct ipu__shape){0}, IPU__INPUT);
    IPU_TRY(ipu__get_struct(r, &ipu__tensor_layout, &t));
    if ((int32_t)t.kind < IPU__INPUT || t.kind > IPU__RESULT)
        return ipu__damaged(r, "no kind of tensors is %d", (int)t.kind);
    IPU_TRY(ipu__check_shape(r, "a tensor", &t.shape));
    IPU_TRY(ipu__get_text(r, "a tensor's name", false, &name));
    index = ipu__tensor_add(g, name, &t.shape, t.kind);
    IPU_TRY(index);
    IPU_TRY(ipu__get_index(r, "a tensor's file", -1, root->ntexts - 1, &file));
    t.source.file = file < 0 ? NULL : root->texts[file];
    t.name = name;
    g->tensors[index] = t;
    if (t.kind != IPU__CONSTANT)
        return IPU_OK;
    return ipu__get_block(r, "a constant", ipu__shape_bytes(&t.shape),
                          &g->tensors[index].data);
}

static int get_tensors(struct ipu__reader *r, ipu_graph *g,
                       const ipu_graph *root)
{
    int32_t count;

    IPU_TRY(ipu__get_count(r, "tensors", LEAST_TENSOR, &count));
    while (g->ntensors < count)
        IPU_TRY(get_tensor(r, g, root));
    return IPU_OK;
}

static int get_regions(struct ipu__reader *r, ipu_graph *g)
{
    int32_t recompute;

    IPU_TRY(ipu__get_index(r, "recomputation", 0, 1, &recompute));
    g->recompute = recompute != 0;
    IPU_TRY(ipu__get_structs(r, "regions", &ipu__region_layout, &g->regions,
                             &g->nregions));
    g->region_capacity = g->nregions;
    return IPU_OK;
}

static int get_nodes(struct ipu__reader *r, ipu_graph *g)
{
    int32_t count;

    IPU_TRY(ipu__get_count(r, "nodes", LEAST_NODE, &count));
    while (g->nnodes < count) {
        struct ipu__node node;

        ipu__node_init(&node, NULL);
        IPU_TRY(ipu__get_op(r, &node.op));
        IPU_TRY(ipu__get_struct(r, &ipu__node_layout, &node));
        IPU_TRY(ipu__get_attributes(r, &node.attributes));
        IPU_TRY(ipu__reserve((void **)&g->nodes, g->nnodes, &g->node_capacity,
                             sizeof *g->nodes));
        g->nodes[g->nnodes++] = node;
    }
    return IPU_OK;
}

static int get_sinks(struct ipu__reader *r, ipu_graph *g)
{
    int32_t count, is_call;

    IPU_TRY(ipu__get_count(r, "outputs", LEAST_SINK, &count));
    while (g->nsinks < count) {
        struct ipu__sink sink = {0};

        IPU_TRY(ipu__get_struct(r, &ipu__sink_layout, &sink));
        IPU_TRY(ipu__reserve((void **)&g->sinks, g->nsinks, &g->sink_capacity,
                             sizeof *g->sinks));
        IPU_TRY(ipu__get_text(r, "an output's name", false, &sink.name));
        g->sinks[g->nsinks++] = sink;
        IPU_TRY(ipu__get_index(r, "an output's kind", 0, 1, &is_call));
        if (is_call)
            g->sinks[g->nsinks - 1].fn = ipu__no_call;
    }
    return IPU_OK;
}

static int get_assigns(struct ipu__reader *r, ipu_graph *g)
{
    IPU_TRY(ipu__get_structs(r, "assignments", &ipu__assign_layout, &g->assigns,
                             &g->nassigns));
    g->assign_capacity = g->nassigns;
    return IPU_OK;
}

static int get_feeds(struct ipu__reader *r, ipu_graph *g)
{
    int32_t count;

    IPU_TRY(ipu__get_count(r, "infeeds", LEAST_FEED, &count));
    while (g->nfeeds < count) {
        struct ipu__feed *feed;

        IPU_TRY(ipu__reserve((void **)&g->feeds, g->nfeeds, &g->feed_capacity,
                             sizeof *g->feeds));
        feed = &g->feeds[g->nfeeds];
        *feed = (struct ipu__feed){0};
        IPU_TRY(ipu__get_infeed(r, &feed->infeed));
        g->nfeeds++;
        feed->count = ipu_infeed_tensors(feed->infeed, NULL);
        IPU_TRY(ipu__get_int(r, &feed->first));
    }
    return IPU_OK;
}

static int get_enqueues(struct ipu__reader *r, ipu_graph *g)
{
    int32_t count;

    IPU_TRY(ipu__get_count(r, "outfeeds", LEAST_FEED, &count));
    while (g->nenqueues < count) {
        struct ipu__enqueue *e;

        IPU_TRY(ipu__reserve((void **)&g->enqueues, g->nenqueues,
                             &g->enqueue_capacity, sizeof *g->enqueues));
        e = &g->enqueues[g->nenqueues];
        *e = (struct ipu__enqueue){0};
        IPU_TRY(ipu__get_outfeed(r, &e->outfeed));
        g->nenqueues++;
        IPU_TRY(ipu__get_ints(r, "enqueued tensors", &e->tensors, &e->count));
    }
    return IPU_OK;
}

static int get_imports(struct ipu__reader *r, ipu_graph *g)
{
    int32_t count;

    IPU_TRY(ipu__get_count(r, "imports", LEAST_IMPORT, &count));
    while (g->nimports < count) {
        struct ipu__import import = {0};

        IPU_TRY(ipu__get_int(r, &import.outer));
        IPU_TRY(ipu__get_int(r, &import.inner));
        IPU_TRY(ipu__reserve((void **)&g->imports, g->nimports,
                             &g->import_capacity, sizeof *g->imports));
        g->imports[g->nimports++] = import;
    }
    return IPU_OK;
}

static int get_graph(struct ipu__reader *r, ipu_graph *g, const ipu_graph *root,
                     int depth);

static int get_block(struct ipu__reader *r, ipu_graph *g, const ipu_graph *root,
                     const struct ipu__loop *loop,
                     struct ipu__block_graph *block, int depth)
{
    int32_t count;

    IPU_TRY(ipu__get_depth(r, depth + 1));
    IPU_TRY(ipu__get_ints(r, "carried tensors", &block->carried, &count));
    if (count != loop->ncarried)
        return ipu__damaged(r, "a body carries %d values, its loop %d",
                            (int)count, (int)loop->ncarried);
    IPU_TRY(ipu_graph_new(&block->graph));
    block->graph->parent = g;
    return get_graph(r, block->graph, root, depth + 1);
}

static int get_loop(struct ipu__reader *r, ipu_graph *g, const ipu_graph *root,
                    struct ipu__loop *loop, int depth)
{
    int32_t conditional;

    IPU_TRY(ipu__get_loop(r, &loop->count, &loop->initial, &loop->outputs,
                          &loop->ncarried));
    IPU_TRY(
        ipu__get_ints(r, "renewed tensors", &loop->renewed, &loop->nwritten));
    IPU_TRY(get_block(r, g, root, loop, &loop->body, depth));
    IPU_TRY(ipu__get_index(r, "a condition", 0, 1, &conditional));
    return conditional ? get_block(r, g, root, loop, &loop->condition, depth)
                       : IPU_OK;
}

static int get_loops(struct ipu__reader *r, ipu_graph *g, const ipu_graph *root,
                     int depth)
{
    int32_t count;

    IPU_TRY(ipu__get_count(r, "loops", LEAST_LOOP, &count));
    while (g->nloops < count) {
        IPU_TRY(ipu__reserve((void **)&g->loops, g->nloops, &g->loop_capacity,
                             sizeof *g->loops));
        g->loops[g->nloops] = (struct ipu__loop){0};
        IPU_TRY(get_loop(r, g, root, &g->loops[g->nloops++], depth));
    }
    return IPU_OK;
}

static int get_graph(struct ipu__reader *r, ipu_graph *g, const ipu_graph *root,
                     int depth)
{
    IPU_TRY(get_tensors(r, g, root));
    IPU_TRY(get_regions(r, g));
    IPU_TRY(get_nodes(r, g));
    IPU_TRY(get_sinks(r, g));
    IPU_TRY(get_assigns(r, g));
    if (r->version < 2)
        return IPU_OK;
    IPU_TRY(get_feeds(r, g));
    IPU_TRY(get_enqueues(r, g));
    IPU_TRY(get_imports(r, g));
    return get_loops(r, g, root, depth);
}

static int get_rounding(struct ipu__reader *r, ipu_graph *g)
{
    int32_t on, step;
    int64_t seed;

    if (r->version < 2)
        return IPU_OK;
    IPU_TRY(ipu__get_index(r, "rounding", 0, 1, &on));
    IPU_TRY(ipu__get_long(r, &seed));
    IPU_TRY(ipu__get_int(r, &step));
    if (!on)
        return seed || step
                   ? ipu__damaged(r, "rounding has numbers, and is off")
                   : IPU_OK;
    if (step < 0 || step >= g->ntensors)
        return ipu__damaged(r, "rounding has no step");
    return ipu_stochastic_rounding(g, 1, (uint64_t)seed, ipu__handle(g, step)) <
                   0
               ? ipu__damaged(r, "%s", ipu_last_error())
               : IPU_OK;
}

static int get_all(struct ipu__reader *r, ipu_graph *g)
{
    IPU_TRY(ipu__get_texts(r, "files", &g->texts, &g->ntexts));
    IPU_TRY(get_graph(r, g, g, 0));
    IPU_TRY(ipu__verify_graph(r, g));
    IPU_TRY(get_rounding(r, g));
    if (r->version >= 3)
        IPU_TRY(ipu__get_graph_modules(r, g));
    return ipu__get_end(r);
}

int ipu_graph_load(const char *path, ipu_graph **graph)
{
    struct ipu__reader reader;
    unsigned char *memory;
    ipu_graph *g = NULL;
    int status;

    if (!path || !graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "load: %s is NULL",
                         path ? "the place for a graph" : "the file's name");
    IPU_TRY(ipu__file_read(path, IPU__FILE_GRAPH, &reader, &memory));
    status = ipu_graph_new(&g);
    if (status == IPU_OK)
        status = get_all(&reader, g);
    free(memory);
    if (status < 0) {
        ipu_graph_free(g);
        return status;
    }
    *graph = g;
    return IPU_OK;
}
