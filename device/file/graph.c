/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - a graph in a file.
 *
 *     files      of the program's sources, each once
 *     tensors    struct, name, file (-1: none); of constants, the elements
 *     regions    struct
 *     nodes      op's name, struct, attributes
 *     sinks      struct, name, whether it is a host call
 *     assigns    struct
 *
 * each after how many there are; before regions, whether activations are
 * computed again. What is read is believed only after a check:
 * a node's inputs must have been made before it, and its op, asked again, must
 * make of them the shape that its output has. So a loaded graph is one that
 * the builders could have made.
 */
#include <stdlib.h>

#include "file/container.h"
#include "file/members.h"
#include "file/shared.h"
#include "graph/error.h"
#include "graph/graph.h"
#include "ops/op.h"

/* Bytes that one of each takes at least. */
enum {
    LEAST_TENSOR = IPU__LEAST_STRUCT + IPU__LEAST_TEXT + 4,
    LEAST_NODE = IPU__LEAST_TEXT + 2 * IPU__LEAST_STRUCT,
    LEAST_SINK = IPU__LEAST_STRUCT + IPU__LEAST_TEXT + 4
};

/* ------------------------------------------------------------------ writing */

static void put_files(struct ipu__writer *w, const ipu_graph *g,
                      struct ipu__texts *files)
{
    for (int32_t i = 0; i < g->ntensors; i++)
        if (ipu__text_number(files, g->tensors[i].source.file) < -1)
            w->failed = true;
    ipu__put_texts(w, files);
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
    ipu__put_int(w, g->nregions);
    for (int32_t i = 0; i < g->nregions; i++)
        ipu__put_struct(w, &ipu__region_layout, &g->regions[i]);
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
    ipu__put_int(w, g->nassigns);
    for (int32_t i = 0; i < g->nassigns; i++)
        ipu__put_struct(w, &ipu__assign_layout, &g->assigns[i]);
}

/* What shares objects of the host, or is a graph within the graph. */
static const char *what_no_file_holds(const ipu_graph *g)
{
    if (g->nloops > 0 || g->parent)
        return "a loop";
    if (g->nfeeds > 0 || g->nenqueues > 0)
        return "a queue";
    for (int32_t i = 0; i < g->ntensors; i++)
        if (g->tensors[i].remote || g->tensors[i].renews)
            return "a remote buffer";
    for (int32_t i = 0; i < g->nnodes; i++)
        if (g->nodes[i].effect || g->nodes[i].loop)
            return "an effect on the host";
    return NULL;
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
    if (what_no_file_holds(graph))
        return ipu__fail(IPU_ERR_STATE,
                         "save %s: the graph has %s, which files do not hold: "
                         "build it again instead",
                         path, what_no_file_holds(graph));
    ipu__file_begin(&w);
    put_files(&w, graph, &files);
    put_tensors(&w, graph, &files);
    put_regions(&w, graph);
    status = put_nodes(&w, graph);
    put_ends(&w, graph);
    if (status == IPU_OK)
        status = ipu__file_write(path, IPU__FILE_GRAPH, NULL, &w);
    free(files.texts);
    ipu__writer_fini(&w);
    return status;
}

/* ------------------------------------------------------------------ reading */

static int get_tensor(struct ipu__reader *r, ipu_graph *g)
{
    struct ipu__tensor t = {.node = -1};
    char *name;
    int32_t file;
    int index;

    IPU_TRY(ipu__get_struct(r, &ipu__tensor_layout, &t));
    if ((int32_t)t.kind < IPU__INPUT || t.kind > IPU__RESULT)
        return ipu__damaged(r, "no kind of tensors is %d", (int)t.kind);
    IPU_TRY(ipu__check_shape(r, "a tensor", &t.shape));
    IPU_TRY(ipu__get_text(r, "a tensor's name", false, &name));
    index = ipu__tensor_add(g, name, &t.shape, t.kind);
    IPU_TRY(index);
    g->tensors[index].checkpoint = t.checkpoint;
    if (t.shard < 0 || t.shard >= IPU_MAX_IPUS)
        return ipu__damaged(r, "%.60s is on chip %d", g->tensors[index].name,
                            (int)t.shard);
    g->tensors[index].shard = t.shard;
    if (t.offload < IPU_OFFLOAD_AUTO || t.offload > IPU_OFFLOAD_OFF)
        return ipu__damaged(r, "%.60s is nowhere", g->tensors[index].name);
    g->tensors[index].offload = t.offload;
    if (t.map.first < 0 || t.map.tiles < 0)
        return ipu__damaged(r, "a tensor is mapped to no tiles");
    g->tensors[index].map = t.map;
    IPU_TRY(ipu__get_index(r, "a tensor's file", -1, g->nfiles - 1, &file));
    g->tensors[index].source =
        (struct ipu__source){file < 0 ? NULL : g->files[file], t.source.line};
    if (t.kind != IPU__CONSTANT)
        return IPU_OK;
    return ipu__get_block(r, "a constant", ipu__shape_bytes(&t.shape),
                          &g->tensors[index].data);
}

static int get_tensors(struct ipu__reader *r, ipu_graph *g)
{
    int32_t count;

    IPU_TRY(ipu__get_count(r, "tensors", LEAST_TENSOR, &count));
    while (g->ntensors < count)
        IPU_TRY(get_tensor(r, g));
    return IPU_OK;
}

/* The tensor is an int32 scalar. */
static bool is_number(const ipu_graph *g, int32_t tensor)
{
    const struct ipu__shape *shape;

    if (tensor < 0 || tensor >= g->ntensors)
        return false;
    shape = &g->tensors[tensor].shape;
    return shape->dtype == IPU_INT32 && shape->ndim == 0;
}

static int get_regions(struct ipu__reader *r, ipu_graph *g)
{
    int32_t count, recompute;

    IPU_TRY(ipu__get_index(r, "recomputation", 0, 1, &recompute));
    g->recompute = recompute != 0;
    IPU_TRY(ipu__get_count(r, "regions", IPU__LEAST_STRUCT, &count));
    while (g->nregions < count) {
        struct ipu__region region = {0};

        IPU_TRY(ipu__get_struct(r, &ipu__region_layout, &region));
        if (region.count < 1 || region.offload < IPU_OFFLOAD_AUTO ||
            region.offload > IPU_OFFLOAD_OFF || region.minimum_bytes < 0 ||
            region.within < 0 || region.within > g->nregions ||
            (region.count > 1 && !is_number(g, region.counter)) ||
            (region.due != -1 && !is_number(g, region.due)))
            return ipu__damaged(r, "an update region that never runs");
        IPU_TRY(ipu__reserve((void **)&g->regions, g->nregions,
                             &g->region_capacity, sizeof *g->regions));
        g->regions[g->nregions++] = region;
    }
    return IPU_OK;
}

/* Made before node n? */
static bool is_there(const ipu_graph *g, int32_t tensor)
{
    return tensor >= 0 && tensor < g->ntensors &&
           (g->tensors[tensor].kind != IPU__RESULT ||
            g->tensors[tensor].node >= 0);
}

/* What orders the node beside its inputs is there, and its region is that of
 * its inputs. */
static bool is_in_order(const ipu_graph *g, const struct ipu__node *node)
{
    struct ipu__node alike = *node;
    int32_t needs[IPU__MAX_NEEDS];
    int count;

    if (node->region < 0 || node->region > g->nregions || node->derived < 0 ||
        node->derived > g->ntensors || node->after < 0 ||
        node->after > g->ntensors || node->beside < 0 ||
        node->beside > g->ntensors)
        return false;
    if (ipu__region_join(g, &alike) < 0 ||
        (alike.region && alike.region != node->region))
        return false;
    count = ipu__node_needs(g, node, needs);
    for (int i = 0; i < count; i++)
        if (!is_there(g, needs[i]))
            return false;
    return true;
}

static int check_node(struct ipu__reader *r, const ipu_graph *g,
                      const struct ipu__node *node)
{
    const struct ipu__tensor *output;
    struct ipu__shape shape;

    for (int i = 0; i < node->op->ninputs; i++)
        if (!is_there(g, node->inputs[i]))
            return ipu__damaged(r,
                                "input %d of node %d, %s, is not made "
                                "before it",
                                i, (int)g->nnodes, node->op->name);
    for (int i = node->op->ninputs; i < IPU__MAX_INPUTS; i++)
        if (node->inputs[i])
            return ipu__damaged(r, "node %d, %s, has an input too many",
                                (int)g->nnodes, node->op->name);
    if (!is_in_order(g, node))
        return ipu__damaged(r, "node %d, %s, comes before what it waits for",
                            (int)g->nnodes, node->op->name);
    if (node->output < 0 || node->output >= g->ntensors)
        return ipu__damaged(r, "node %d, %s, makes no tensor", (int)g->nnodes,
                            node->op->name);
    output = &g->tensors[node->output];
    if (output->kind != IPU__RESULT || output->node >= 0)
        return ipu__damaged(r, "what node %d, %s, makes is made already",
                            (int)g->nnodes, node->op->name);
    if (ipu__node_shape(g, node, &shape) < 0)
        return ipu__damaged(r, "node %d: %s", (int)g->nnodes, ipu_last_error());
    if (!ipu__shape_equal(&shape, &output->shape))
        return ipu__damaged(r, "node %d, %s, makes another shape",
                            (int)g->nnodes, node->op->name);
    return IPU_OK;
}

static int get_nodes(struct ipu__reader *r, ipu_graph *g)
{
    int32_t count;

    IPU_TRY(ipu__get_count(r, "nodes", LEAST_NODE, &count));
    while (g->nnodes < count) {
        struct ipu__node node = {0};

        IPU_TRY(ipu__get_op(r, &node.op));
        if (node.op == &ipu__assign_step || node.op == &ipu__remote_load ||
            node.op == &ipu__remote_store || node.op == &ipu__row_load ||
            node.op == &ipu__row_store)
            return ipu__damaged(r, "%s is no node", node.op->name);
        IPU_TRY(ipu__get_struct(r, &ipu__node_layout, &node));
        IPU_TRY(ipu__get_attributes(r, &node.attributes));
        IPU_TRY(check_node(r, g, &node));
        IPU_TRY(ipu__reserve((void **)&g->nodes, g->nnodes, &g->node_capacity,
                             sizeof *g->nodes));
        g->tensors[node.output].node = g->nnodes;
        g->nodes[g->nnodes++] = node;
    }
    for (int32_t i = 0; i < g->ntensors; i++)
        if (!is_there(g, i))
            return ipu__damaged(r, "nothing makes %.60s", g->tensors[i].name);
    return IPU_OK;
}

static int get_sinks(struct ipu__reader *r, ipu_graph *g)
{
    int32_t count, is_call;

    IPU_TRY(ipu__get_count(r, "outputs", LEAST_SINK, &count));
    while (g->nsinks < count) {
        struct ipu__sink sink = {0};

        IPU_TRY(ipu__get_struct(r, &ipu__sink_layout, &sink));
        if (sink.tensor < 0 || sink.tensor >= g->ntensors)
            return ipu__damaged(r, "an output is of no tensor");
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
    int32_t count;

    IPU_TRY(ipu__get_count(r, "assignments", IPU__LEAST_STRUCT, &count));
    for (int32_t i = 0; i < count; i++) {
        struct ipu__assign a = {0};

        IPU_TRY(ipu__get_struct(r, &ipu__assign_layout, &a));
        if (a.variable < 0 || a.variable >= g->ntensors || a.value < 0 ||
            a.value >= g->ntensors)
            return ipu__damaged(r, "an assignment is of no tensor");
        if (ipu_assign(g, ipu__handle(g, a.variable), ipu__handle(g, a.value)) <
            0)
            return ipu__damaged(r, "%s", ipu_last_error());
    }
    return IPU_OK;
}

static int get_graph(struct ipu__reader *r, ipu_graph *g)
{
    IPU_TRY(ipu__get_texts(r, "files", &g->files, &g->nfiles));
    IPU_TRY(get_tensors(r, g));
    IPU_TRY(get_regions(r, g));
    IPU_TRY(get_nodes(r, g));
    IPU_TRY(get_sinks(r, g));
    IPU_TRY(get_assigns(r, g));
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
        status = get_graph(&reader, g);
    free(memory);
    if (status < 0) {
        ipu_graph_free(g);
        return status;
    }
    *graph = g;
    return IPU_OK;
}
