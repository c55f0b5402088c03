/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bodies.c - graphs within graphs, and tensors that are changed in place.
 *
 * The body of a loop is a separate graph. When it uses a tensor of the outer
 * graph, that tensor is imported: the body gets a variable which the compiler
 * binds to the outer tensor's memory, so that nothing is copied and nothing in
 * the body overwrites it. Variables and inputs are made in the outermost graph,
 * which the host has access to, and are imported, too; the body may assign to
 * those. Small constants are copied, so that the compiler can compute with
 * them.
 *
 * A loop that assigns to a variable, or a store into a remote buffer, changes a
 * tensor in place. Nodes that are built later see another tensor, made by that
 * node, in the same memory. So a reader of the new state depends on the node
 * like on any input; the compiler makes sure that a reader of the old state
 * runs before the node.
 *
 * The builders of loops (ops/control), graph.c and the compiler call it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"
#include "graph/op.h"

enum { COPIED_BYTES = 4096 };

/* ------------------------------------------------------------------- states */

int32_t ipu__origin(const ipu_graph *g, int32_t tensor)
{
    while (g->tensors[tensor].renews >= 0)
        tensor = g->tensors[tensor].renews;
    return tensor;
}

int32_t ipu__renew(ipu_graph *g, int32_t tensor, int32_t node)
{
    const struct ipu__tensor old = g->tensors[tensor];
    int32_t added =
        ipu__tensor_add(g, strdup(old.name), &old.shape, IPU__VARIABLE);

    IPU_TRY(added);
    ipu__renew_as(g, added, tensor, node);
    return added;
}

void ipu__renew_as(ipu_graph *g, int32_t state, int32_t tensor, int32_t node)
{
    const struct ipu__tensor *old = &g->tensors[tensor];
    struct ipu__tensor *new = &g->tensors[state];
    int32_t origin = ipu__origin(g, tensor);

    new->node = node;
    new->imported = old->imported;
    new->fixed = old->fixed;
    new->remote = old->remote;
    new->renews = tensor;
    for (int32_t t = state; t != origin; t = g->tensors[t].renews)
        g->tensors[g->tensors[t].renews].renewed = state;
}

/* ------------------------------------------------------------------ imports */

static int copy_constant(ipu_graph *g, int32_t tensor, const void *data)
{
    size_t bytes = ipu__shape_bytes(&g->tensors[tensor].shape);

    g->tensors[tensor].data = malloc(bytes ? bytes : 1);
    if (!g->tensors[tensor].data)
        return ipu__fail_memory(bytes);
    memcpy(g->tensors[tensor].data, data, bytes);
    return IPU_OK;
}

static int32_t add_import(ipu_graph *body, int32_t outer)
{
    const struct ipu__tensor *from = &body->parent->tensors[outer];
    bool copied = from->kind == IPU__CONSTANT &&
                  ipu__shape_bytes(&from->shape) <= COPIED_BYTES;
    int32_t inner;

    IPU_TRY(ipu__reserve((void **)&body->imports, body->nimports,
                         &body->import_capacity, sizeof *body->imports));
    inner = ipu__tensor_add(body, strdup(from->name), &from->shape,
                            copied ? IPU__CONSTANT : IPU__VARIABLE);
    IPU_TRY(inner);
    if (copied)
        IPU_TRY(copy_constant(body, inner, from->data));
    body->tensors[inner].imported = true;
    body->tensors[inner].fixed =
        from->kind != IPU__VARIABLE || from->fixed || copied;
    body->tensors[inner].remote = from->remote;
    body->tensors[inner].source = from->source;
    body->imports[body->nimports++] = (struct ipu__import){outer, inner, false};
    return inner;
}

int32_t ipu__import(ipu_graph *body, ipu_tensor tensor)
{
    int32_t outer = ipu__index(body->parent, tensor), inner = -1;

    IPU_TRY(outer);
    for (int32_t i = 0; i < body->nimports && inner < 0; i++)
        if (body->imports[i].outer == outer)
            inner = body->imports[i].inner;
    if (inner < 0)
        inner = add_import(body, outer);
    IPU_TRY(inner);
    return body->tensors[inner].renewed >= 0 ? body->tensors[inner].renewed
                                             : inner;
}

int ipu__check_closed(const ipu_graph *g, const char *what)
{
    if (!g->open)
        return IPU_OK;
    return ipu__fail(IPU_ERR_STATE,
                     "%s: the body of a loop of this graph is being built: use "
                     "the graph that the body was called with",
                     what);
}

/* -------------------------------------------------------------------- names */

static int check_within(const ipu_graph *g, const char *what, const char *name);

static int check_bodies(const ipu_graph *g, const char *what, const char *name)
{
    for (int32_t i = 0; i < g->nloops; i++) {
        if (g->loops[i].body.graph)
            IPU_TRY(check_within(g->loops[i].body.graph, what, name));
        if (g->loops[i].condition.graph)
            IPU_TRY(check_within(g->loops[i].condition.graph, what, name));
    }
    return g->open ? check_within(g->open, what, name) : IPU_OK;
}

static int check_within(const ipu_graph *g, const char *what, const char *name)
{
    for (int32_t i = 0; i < g->ntensors; i++) {
        const struct ipu__tensor *t = &g->tensors[i];

        if ((t->kind == IPU__INPUT || t->kind == IPU__VARIABLE) &&
            !t->imported && strcmp(t->name, name) == 0)
            return ipu__fail(IPU_ERR_NAME,
                             "%s '%s': an input or variable has that name",
                             what, name);
    }
    for (int32_t i = 0; i < g->nsinks; i++)
        if (strcmp(g->sinks[i].name, name) == 0)
            return ipu__fail(IPU_ERR_NAME,
                             "%s '%s': an output or host call has that name",
                             what, name);
    return check_bodies(g, what, name);
}

int ipu__check_name(const ipu_graph *g, const char *what, const char *name)
{
    if (!name || !name[0])
        return ipu__fail(IPU_ERR_NAME, "%s has no name", what);
    while (g->parent)
        g = g->parent;
    return check_within(g, what, name);
}

/* --------------------------------------------------------- a loop as a node */

/* Returns number i of the imports of the body and the condition. */
static int32_t import_need(const struct ipu__loop *loop, int32_t i)
{
    const ipu_graph *graphs[2] = {loop->body.graph, loop->condition.graph};

    for (int k = 0; k < 2; k++) {
        if (!graphs[k])
            continue;
        if (i < graphs[k]->nimports)
            return graphs[k]->imports[i].outer;
        i -= graphs[k]->nimports;
    }
    return -1;
}

int32_t ipu__loop_need(const ipu_graph *g, const struct ipu__node *node,
                       int32_t i)
{
    const struct ipu__loop *loop;

    if (node->loop < 0)
        return -1;
    loop = &g->loops[node->loop];
    return i < loop->ncarried ? loop->initial[i]
                              : import_need(loop, i - loop->ncarried);
}

bool ipu__node_writes(const ipu_graph *g, const struct ipu__node *node,
                      int32_t tensor)
{
    const struct ipu__loop *loop;

    if (node->loop < 0)
        return node->op->writes && node->inputs[0] == tensor;
    loop = &g->loops[node->loop];
    for (int32_t i = 0; i < loop->nwritten; i++)
        if (loop->written[i] == tensor)
            return true;
    return false;
}

bool ipu__node_reads(const ipu_graph *g, const struct ipu__node *node,
                     int32_t tensor)
{
    int32_t needed;

    for (int i = 0; i < node->op->ninputs; i++)
        if (node->inputs[i] == tensor)
            return true;
    for (int32_t i = 0; (needed = ipu__loop_need(g, node, i)) >= 0; i++)
        if (needed == tensor)
            return true;
    return false;
}

bool ipu__has_effects(const ipu_graph *body)
{
    for (int32_t i = 0; i < body->nimports; i++)
        if (body->imports[i].written)
            return true;
    for (int32_t n = 0; n < body->nnodes; n++)
        if (body->nodes[n].effect)
            return true;
    return body->nsinks || body->nfeeds || body->nenqueues;
}

void ipu__find_written(ipu_graph *body)
{
    for (int32_t i = 0; i < body->nimports; i++) {
        struct ipu__import *import = &body->imports[i];

        import->written = body->tensors[import->inner].renewed >= 0;
        for (int32_t k = 0; k < body->nassigns; k++)
            import->written |= body->assigns[k].variable == import->inner;
    }
}

static void free_block(struct ipu__block_graph *block)
{
    ipu_graph_free(block->graph);
    free(block->carried);
}

void ipu__loop_fini(struct ipu__loop *loop)
{
    free_block(&loop->body);
    free_block(&loop->condition);
    free(loop->initial);
    free(loop->outputs);
    free(loop->written);
    free(loop->renewed);
}

void ipu__loops_free(ipu_graph *g)
{
    for (int32_t i = 0; i < g->nloops; i++)
        ipu__loop_fini(&g->loops[i]);
    free(g->loops);
    free(g->imports);
}
