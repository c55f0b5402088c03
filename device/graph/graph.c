/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - building: tensors, nodes, streams, and the first failure.
 *
 * A builder is written without checks: a failing op returns an invalid
 * tensor, ops on invalid tensors return invalid ones, and ipu_compile reports
 * what went wrong first. So the first failure is kept in the graph.
 *
 * The id of a tensor holds a tag of its graph above its index, so that a
 * tensor of another graph is noticed.
 */
#include "graph/graph.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/op.h"
#include "streams/streams.h"

enum { INDEX_BITS = 20, MOST_TENSORS = 1 << INDEX_BITS, TAGS = 2047 };

int ipu__graph_alloc(ipu_graph **graph)
{
    IPU_TRY(ipu__new(graph, sizeof **graph));
    (*graph)->region = (*graph)->derived = (*graph)->beside = (*graph)->shard =
        IPU__NONE;
    return IPU_OK;
}

int ipu_graph_new(ipu_graph **graph)
{
    static atomic_uint ngraphs; /* counted here alone; publishes nothing */
    struct ipu_graph *g;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "the place for a graph is NULL");
    IPU_TRY(ipu__graph_alloc(&g));
    g->tag = (int32_t)(atomic_fetch_add(&ngraphs, 1) % TAGS);
    *graph = g;
    return IPU_OK;
}

static void free_feeds(ipu_graph *g)
{
    for (int32_t i = 0; i < g->nfeeds; i++)
        ipu__infeed_release(g->feeds[i].infeed);
    for (int32_t i = 0; i < g->nenqueues; i++) {
        ipu__outfeed_release(g->enqueues[i].outfeed);
        free(g->enqueues[i].tensors);
    }
    free(g->feeds);
    free(g->enqueues);
}

void ipu_graph_free(ipu_graph *graph)
{
    if (!graph)
        return;
    for (int32_t i = 0; i < graph->ntensors; i++) {
        free(graph->tensors[i].name);
        free(graph->tensors[i].data);
    }
    for (int32_t i = 0; i < graph->nsinks; i++)
        free(graph->sinks[i].name);
    free(graph->tensors);
    free(graph->nodes);
    free(graph->sinks);
    free(graph->assigns);
    free(graph->regions);
    ipu__loops_free(graph);
    free_feeds(graph);
    free(graph->message);
    for (int32_t i = 0; i < graph->ntexts; i++)
        free(graph->texts[i]);
    free(graph->texts);
    free(graph);
}

ipu_graph *ipu_at(ipu_graph *graph, const char *file, int32_t line)
{
    if (graph) {
        graph->source.file = file;
        graph->source.line = line;
    }
    return graph;
}

/* Returns a copy of a text that lives as long as the outermost graph, or
 * NULL. */
static const char *keep_text(ipu_graph *graph, const char *text)
{
    char **texts;

    while (graph->parent)
        graph = graph->parent;
    texts = realloc(graph->texts,
                    ((size_t)graph->ntexts + 1) * sizeof *graph->texts);
    if (!texts)
        return NULL;
    graph->texts = texts;
    texts[graph->ntexts] = strdup(text);
    return texts[graph->ntexts] ? texts[graph->ntexts++] : NULL;
}

ipu_graph *ipu_module(ipu_graph *graph, const char *module)
{
    const char *now = graph ? graph->source.module : NULL;

    if (!graph || (now && module && strcmp(now, module) == 0))
        return graph;
    graph->source.module = module ? keep_text(graph, module) : NULL;
    if (module && !graph->source.module)
        ipu__graph_fail(graph, ipu__fail_memory(strlen(module) + 1));
    return graph;
}

int ipu__graph_fail(ipu_graph *graph, int status)
{
    if (graph->status == IPU_OK) {
        if (graph->source.file)
            ipu__fail(status, "%s:%d: %s", graph->source.file,
                      (int)graph->source.line, ipu_last_error());
        graph->status = status;
        graph->message = strdup(ipu_last_error());
    }
    return status;
}

int ipu__graph_status(const ipu_graph *graph)
{
    if (graph->status == IPU_OK)
        return IPU_OK;
    /* The text is missing if there was no memory for it. */
    return ipu__fail(graph->status, "%s",
                     graph->message ? graph->message
                                    : ipu_strerror(graph->status));
}

ipu_tensor ipu__invalid(ipu_graph *graph, int status)
{
    if (graph)
        ipu__graph_fail(graph, status);
    return (ipu_tensor){-1};
}

ipu_tensor ipu__handle(const ipu_graph *graph, int32_t index)
{
    return (ipu_tensor){graph->tag << INDEX_BITS | index};
}

/* Importing adds a tensor to a graph that the caller has as const: every graph
 * is made writable, so the cast is legal. */
static int32_t import_tensor(const ipu_graph *graph, ipu_tensor tensor)
{
    ipu_graph *body;

    memcpy(&body, &graph, sizeof body);
    return ipu__import(body, tensor);
}

int32_t ipu__index(const ipu_graph *graph, ipu_tensor tensor)
{
    int32_t index = tensor.id & (MOST_TENSORS - 1);

    if (tensor.id < 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "the tensor is invalid: what made it failed");
    if (tensor.id >> INDEX_BITS != graph->tag && graph->parent)
        return import_tensor(graph, tensor);
    if (tensor.id >> INDEX_BITS != graph->tag || index >= graph->ntensors)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "tensor %d belongs to another graph, or to the body "
                         "of a loop, which has to carry it or enqueue it",
                         (int)tensor.id);
    return graph->tensors[index].renewed >= 0 ? graph->tensors[index].renewed
                                              : index;
}

int ipu__reserve(void **array, int32_t count, int32_t *capacity, size_t size)
{
    int32_t more = *capacity ? 2 * *capacity : 32;
    void *grown;

    if (count < *capacity)
        return IPU_OK;
    grown = realloc(*array, (size_t)more * size);
    if (!grown)
        return ipu__fail_memory((size_t)more * size);
    *array = grown;
    *capacity = more;
    return IPU_OK;
}

void ipu__tensor_init(struct ipu__tensor *tensor, char *name,
                      const struct ipu__shape *shape,
                      enum ipu__tensor_kind kind)
{
    *tensor = (struct ipu__tensor){.name = name,
                                   .shape = *shape,
                                   .kind = kind,
                                   .node = IPU__NONE,
                                   .renews = IPU__NONE,
                                   .renewed = IPU__NONE};
}

int ipu__tensor_add(ipu_graph *g, char *name, const struct ipu__shape *shape,
                    enum ipu__tensor_kind kind)
{
    struct ipu__tensor *t;
    int status = name ? IPU_OK : ipu__fail_memory(1);

    if (status == IPU_OK && g->ntensors == MOST_TENSORS)
        status = ipu__fail(IPU_ERR_ARGUMENT, "a graph has at most %d tensors",
                           MOST_TENSORS);
    if (status == IPU_OK)
        status = ipu__reserve((void **)&g->tensors, g->ntensors,
                              &g->tensor_capacity, sizeof *g->tensors);
    if (status < 0) {
        free(name);
        return status;
    }
    t = &g->tensors[g->ntensors];
    ipu__tensor_init(t, name, shape, kind);
    t->shard = g->shard >= 0 ? g->shard : 0;
    t->source = g->source;
    return g->ntensors++;
}

/* ---------------------------------------------------- inputs and variables */

static ipu_tensor add_source(ipu_graph *g, const char *what,
                             enum ipu__tensor_kind kind, const char *name,
                             ipu_dtype dtype, int32_t ndim,
                             const int64_t *extents)
{
    struct ipu__shape shape;
    char text[128];
    int status;

    if (!g) {
        ipu__fail(IPU_ERR_ARGUMENT, "%s: the graph is NULL", what);
        return (ipu_tensor){-1};
    }
    if (g->status < 0)
        return (ipu_tensor){-1};
    if (g->parent) {
        /* Inputs and variables belong to the whole program, not to a body. */
        ipu_tensor outer;

        ipu_at(g->parent, g->source.file, g->source.line);
        outer = add_source(g->parent, what, kind, name, dtype, ndim, extents);
        if (outer.id < 0) {
            g->source.file = NULL; /* the failure has it */
            return ipu__invalid(g, ipu__graph_status(g->parent));
        }
        status = ipu__index(g, outer);
        return status < 0 ? ipu__invalid(g, status) : ipu__handle(g, status);
    }
    if (!name)
        name = ""; /* refused as such */
    status = ipu__check_name(g, what, name);
    snprintf(text, sizeof text, "%s '%.100s'", what, name);
    if (status == IPU_OK)
        status = ipu__shape_make(text, dtype, ndim, extents, &shape);
    if (status == IPU_OK)
        status = ipu__tensor_add(g, strdup(name), &shape, kind);
    return status < 0 ? ipu__invalid(g, status) : ipu__handle(g, status);
}

ipu_tensor ipu_input(ipu_graph *graph, const char *name, ipu_dtype dtype,
                     int32_t ndim, const int64_t *shape)
{
    return add_source(graph, "input", IPU__INPUT, name, dtype, ndim, shape);
}

ipu_tensor ipu_variable(ipu_graph *graph, const char *name, ipu_dtype dtype,
                        int32_t ndim, const int64_t *shape)
{
    return add_source(graph, "variable", IPU__VARIABLE, name, dtype, ndim,
                      shape);
}

/* -------------------------------------------------------------------- nodes */

/* Describes what the op works on, without memory yet. */
static int describe_call(const ipu_graph *g, const struct ipu__node *node,
                         struct ipu__call *call)
{
    *call = (struct ipu__call){.op = node->op, .attributes = &node->attributes};
    for (int i = 0; i < node->op->ninputs; i++) {
        const struct ipu__tensor *t = &g->tensors[node->inputs[i]];
        call->inputs[i].name = t->name;
        call->inputs[i].shape = t->shape;
    }
    call->output.name = node->op->name;
    return ipu__call_shape(call);
}

int ipu__node_shape(const ipu_graph *graph, const struct ipu__node *node,
                    struct ipu__shape *output)
{
    struct ipu__call call;

    IPU_TRY(describe_call(graph, node, &call));
    *output = call.output.shape;
    return IPU_OK;
}

/* Returns the chip of a new node: the one being built on, or that of its first
 * input that a node or the host's writing has made. */
static int32_t shard_of(const ipu_graph *g, const struct ipu__node *node)
{
    if (g->shard >= 0)
        return g->shard;
    for (int i = 0; i < node->op->ninputs; i++) {
        const struct ipu__tensor *t = &g->tensors[node->inputs[i]];

        if (t->kind == IPU__RESULT || t->kind == IPU__VARIABLE)
            return t->shard;
    }
    return 0;
}

void ipu__node_init(struct ipu__node *node, const struct ipu__op *op)
{
    *node = (struct ipu__node){.op = op,
                               .region = IPU__NONE,
                               .derived = IPU__NONE,
                               .beside = IPU__NONE,
                               .after = IPU__NONE,
                               .loop = IPU__NONE};
}

int32_t ipu__add_node(ipu_graph *g, const struct ipu__op *op,
                      const ipu_tensor *inputs,
                      const struct ipu__attributes *attributes)
{
    struct ipu__node node;
    struct ipu__call call;
    char name[64];

    IPU_TRY(ipu__check_closed(g, op->name));
    ipu__node_init(&node, op);
    node.derived = g->derived;
    node.beside = g->beside;
    if (attributes)
        node.attributes = *attributes;
    if (op->product && node.attributes.proportion == 0)
        node.attributes.proportion = g->proportion;
    for (int i = 0; i < op->ninputs; i++) {
        node.inputs[i] = ipu__index(g, inputs[i]);
        if (node.inputs[i] < 0)
            return ipu__fail(node.inputs[i], "%s: input %d: %s", op->name, i,
                             ipu_last_error());
    }
    IPU_TRY(ipu__region_join(g, &node));
    IPU_TRY(describe_call(g, &node, &call));
    IPU_TRY(ipu__reserve((void **)&g->nodes, g->nnodes, &g->node_capacity,
                         sizeof *g->nodes));
    snprintf(name, sizeof name, "%s:%d", op->name, (int)g->nnodes);
    node.output =
        ipu__tensor_add(g, strdup(name), &call.output.shape, IPU__RESULT);
    IPU_TRY(node.output);
    g->tensors[node.output].shard = shard_of(g, &node);
    g->tensors[node.output].node = g->nnodes;
    g->nodes[g->nnodes++] = node;
    return node.output;
}

int ipu_tensor_info(const ipu_graph *graph, ipu_tensor tensor, ipu_dtype *dtype,
                    int64_t *shape, const char **name)
{
    const struct ipu__tensor *t;
    int32_t index;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "the graph is NULL");
    index = ipu__index(graph, tensor);
    IPU_TRY(index);
    t = &graph->tensors[index];
    if (dtype)
        *dtype = t->shape.dtype;
    if (shape)
        memcpy(shape, t->shape.extents, sizeof t->shape.extents);
    if (name)
        *name = t->name;
    return t->shape.ndim;
}

/* Finds a tensor by name. If a result and a named output share the name, the
 * output wins. */
static int32_t index_by_name(const ipu_graph *g, const char *name)
{
    int32_t found = -1;

    for (int32_t i = 0; i < g->nsinks; i++)
        if (strcmp(g->sinks[i].name, name) == 0)
            return g->sinks[i].tensor;
    for (int32_t i = 0; i < g->ntensors; i++) {
        const struct ipu__tensor *t = &g->tensors[i];

        if (strcmp(t->name, name) != 0)
            continue;
        if (t->kind == IPU__INPUT || t->kind == IPU__VARIABLE)
            return i;
        found = i;
    }
    return found;
}

int ipu_graph_find(const ipu_graph *graph, const char *name, ipu_tensor *tensor)
{
    int32_t index;

    if (!graph || !name || !tensor)
        return ipu__fail(IPU_ERR_ARGUMENT, "find: %s is NULL",
                         !graph  ? "the graph"
                         : !name ? "the name"
                                 : "the place for a tensor");
    index = index_by_name(graph, name);
    if (index < 0)
        return ipu__fail(IPU_ERR_NAME, "the graph has no tensor '%s'", name);
    *tensor = ipu__handle(graph, index);
    return IPU_OK;
}

/* -------------------------------------------------------------------- sinks */

static int add_sink(ipu_graph *g, const char *what, const char *name,
                    ipu_tensor tensor, ipu_host_fn fn, void *context)
{
    struct ipu__sink sink = {.fn = fn, .context = context};

    IPU_TRY(ipu__check_closed(g, what));
    IPU_TRY(ipu__check_name(g, what, name));
    sink.tensor = ipu__index(g, tensor);
    if (sink.tensor < 0)
        return ipu__fail(sink.tensor, "%s '%s': %s", what, name,
                         ipu_last_error());
    IPU_TRY(ipu__reserve((void **)&g->sinks, g->nsinks, &g->sink_capacity,
                         sizeof *g->sinks));
    sink.name = strdup(name);
    if (!sink.name)
        return ipu__fail_memory(strlen(name) + 1);
    g->sinks[g->nsinks++] = sink;
    return IPU_OK;
}

int ipu_output(ipu_graph *graph, const char *name, ipu_tensor tensor)
{
    int status;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "output: the graph is NULL");
    if (graph->status < 0)
        return ipu__graph_status(graph);
    status = graph->parent
                 ? ipu__fail(IPU_ERR_STATE,
                             "output '%s': not in the body of a loop: carry "
                             "the tensor, or enqueue it",
                             name ? name : "")
                 : add_sink(graph, "output", name, tensor, NULL, NULL);
    return status < 0 ? ipu__graph_fail(graph, status) : IPU_OK;
}

int ipu__no_call(void *context, const char *name, void *data, int64_t count)
{
    (void)context, (void)name, (void)data, (void)count;
    return IPU_ERR_STATE;
}

int ipu_host_call(ipu_graph *graph, const char *name, ipu_tensor tensor,
                  ipu_host_fn fn, void *context)
{
    int status;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "host call: the graph is NULL");
    if (graph->status < 0)
        return ipu__graph_status(graph);
    status =
        fn ? add_sink(graph, "host call", name, tensor, fn, context)
           : ipu__fail(IPU_ERR_ARGUMENT, "host call '%s': the function is NULL",
                       name ? name : "");
    return status < 0 ? ipu__graph_fail(graph, status) : IPU_OK;
}
