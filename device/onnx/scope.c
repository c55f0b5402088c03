/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope.c - builds a graph that is an attribute of a node.
 *
 * A scope has values of its own, and copies of those around it whose names its
 * nodes, or graphs in these, use. A copy is made when the scope is opened, so
 * what is known of the value then is known within. What is not known, or is
 * large, becomes a tensor before: a graph has each input of the model once, and
 * the iterations of a loop share their constants.
 *
 * Files may have been made to do harm: the depth of scopes is limited, and so
 * is the number of nodes that all of them have together.
 */
#include "onnx/scope.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_SCOPES = 16,
    MOST_INNER_NODES = 1 << 20,
    MOST_COPIED = 1024 /* elements of a constant of each graph */
};

/* -------------------------------------------------------------------- names */

/* The names that a graph uses, of its own values or others. */
struct names {
    const char **at; /* owned; NULL: they are counted only */
    size_t count;
};

static void add_used(struct names *names, const char *name)
{
    if (*name && names->at)
        names->at[names->count] = name;
    names->count += *name != 0;
}

/* Graphs in graphs are as deep as the reader of files allows at most. */
static void add_names(struct names *names, const struct ipu__onnx_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++) {
        const struct ipu__onnx_node *node = &graph->nodes.at[i];

        for (size_t j = 0; j < node->inputs.count; j++)
            add_used(names, node->inputs.at[j]);
        for (size_t j = 0; j < node->attributes.count; j++)
            if (node->attributes.at[j].g)
                add_names(names, node->attributes.at[j].g);
    }
    for (size_t i = 0; i < graph->outputs.count; i++)
        add_used(names, graph->outputs.at[i].name);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lists the names, sorted. */
static int list_names(const struct ipu__onnx_graph *graph, struct names *names)
{
    *names = (struct names){NULL, 0};
    add_names(names, graph);
    IPU_TRY(ipu__new_array(&names->at, names->count + 1, sizeof *names->at));
    names->count = 0;
    add_names(names, graph);
    qsort(names->at, names->count, sizeof *names->at, compare_names);
    return IPU_OK;
}

/* ------------------------------------------------------------------- values */

/* Adds the values that the graph itself names. */
static int add_own(struct ipu__onnx_call *call,
                   const struct ipu__onnx_graph *graph,
                   struct ipu__onnx_builder *scope)
{
    const char *twice;

    for (size_t i = 0; i < graph->inputs.count; i++)
        ipu__onnx_add_name(scope, graph->inputs.at[i].name);
    ipu__onnx_add_names(scope, graph);
    ipu__onnx_sort(scope);
    twice = ipu__onnx_named_twice(scope);
    for (size_t i = 0; i < scope->nvalues && !twice; i++)
        if (ipu__onnx_value(call->builder, scope->values[i].name))
            twice = scope->values[i].name;
    return twice ? onnx__refuse(call,
                                "in its graph, '%.100s' is the name of two "
                                "values",
                                twice)
                 : IPU_OK;
}

/* Makes the tensor of a value for all graphs that capture it, unless it is
 * small and known: then each of them has a constant of its own. */
static void make_outside(struct ipu__onnx_call *call,
                         struct ipu__onnx_value *value)
{
    bool known = onnx__known(call, value);

    if (value->tensor.id < 0 && value->last.id < 0 &&
        (!known || onnx__size(value) > MOST_COPIED))
        onnx__tensor(call, value);
}

struct ipu__onnx_value ipu__onnx_placeholder(struct ipu__onnx_call *call,
                                             ipu_graph *scratch,
                                             const struct ipu__onnx_value *like)
{
    struct ipu__onnx_value made = *like;
    char name[32];

    made.floats = NULL;
    made.wholes = NULL;
    made.initializer = NULL;
    made.use = IPU__ONNX_FREE;
    made.last.id = -1;
    made.is_turned = false;
    made.input = -1;
    snprintf(name, sizeof name, "%" PRId64,
             call->builder->model->placeholders++);
    made.tensor = ipu_input(scratch, name, ipu__onnx_kind(like->type)->dtype,
                            like->ndim, like->extents);
    return made;
}

struct ipu__onnx_value ipu__onnx_in_scratch(struct ipu__onnx_call *call,
                                            ipu_graph *scratch,
                                            struct ipu__onnx_value *value)
{
    struct ipu__onnx_value made = *value;

    if (value->state != IPU__ONNX_MADE)
        return made;
    if (!onnx__known(call, value))
        return ipu__onnx_placeholder(call, scratch, value);
    made = *value;
    made.tensor.id = made.last.id = -1; /* which the graph has, not scratch */
    made.is_turned = false;
    return made;
}

/* Returns the copy of a value around the graph. */
static struct ipu__onnx_value capture(struct ipu__onnx_call *call,
                                      struct ipu__onnx_value *value,
                                      ipu_graph *scratch)
{
    if (scratch)
        return ipu__onnx_in_scratch(call, scratch, value);
    make_outside(call, value);
    return *value;
}

/* Adds copies of values around the graph that it uses. */
static void add_captured(struct ipu__onnx_call *call, const struct names *names,
                         ipu_graph *scratch, struct ipu__onnx_builder *scope)
{
    size_t own = scope->nvalues, n = own;

    for (size_t i = 0; i < names->count; i++) {
        struct ipu__onnx_value *value;

        if (i > 0 && !strcmp(names->at[i - 1], names->at[i]))
            continue;
        value = ipu__onnx_value(call->builder, names->at[i]);
        if (value)
            scope->values[n++] = capture(call, value, scratch);
    }
    scope->nvalues = n;
    ipu__onnx_sort(scope);
}

static int name_values(struct ipu__onnx_call *call,
                       const struct ipu__onnx_graph *graph, ipu_graph *scratch,
                       struct ipu__onnx_builder *scope)
{
    size_t most = ipu__onnx_count_names(graph) + graph->inputs.count + 1;
    struct names names;
    int status = list_names(graph, &names);

    if (status >= 0)
        status = ipu__new_array(&scope->values, most + names.count,
                                sizeof *scope->values);
    if (status < 0)
        ipu__onnx_end(call->builder, status);
    else
        status = add_own(call, graph, scope);
    if (status >= 0)
        add_captured(call, &names, scratch, scope);
    free(names.at);
    return status;
}

/* ------------------------------------------------------------------- scopes */

static int check_graph(struct ipu__onnx_call *call,
                       const struct ipu__onnx_graph *graph,
                       const struct ipu__onnx_builder *scope)
{
    if (scope->depth > MOST_SCOPES)
        return onnx__refuse(call, "graphs are nested more than %d deep",
                            MOST_SCOPES);
    if (scope->inner_nodes > MOST_INNER_NODES)
        return onnx__refuse(call, "the graphs in nodes have more than %d nodes",
                            MOST_INNER_NODES);
    if (graph->sparse.at)
        return onnx__refuse(call, "its graph has sparse initialisers, which "
                                  "are not supported");
    return IPU_OK;
}

int ipu__onnx_scope_open(struct ipu__onnx_call *call,
                         const struct ipu__onnx_graph *graph,
                         ipu_graph *scratch, struct ipu__onnx_builder *scope)
{
    *scope = *call->builder;
    scope->values = NULL;
    scope->nvalues = 0;
    scope->depth++;
    scope->inner_nodes += graph->nodes.count;
    if (scratch)
        scope->graph = scratch;
    IPU_TRY(check_graph(call, graph, scope));
    return name_values(call, graph, scratch, scope);
}

void ipu__onnx_scope_set(struct ipu__onnx_builder *scope,
                         const struct ipu__onnx_graph *graph, size_t i,
                         const struct ipu__onnx_value *value)
{
    struct ipu__onnx_value *to =
        ipu__onnx_value(scope, graph->inputs.at[i].name);

    if (to)
        onnx__copy_value(to, value);
}

int ipu__onnx_scope_build(struct ipu__onnx_call *call,
                          const struct ipu__onnx_graph *graph,
                          struct ipu__onnx_builder *scope)
{
    int32_t noted = call->builder->model->nrefusals;
    int status = ipu__onnx_set_initializers(scope, &graph->initializers);

    if (status < 0)
        return ipu__onnx_end(scope, status);
    for (size_t i = 0; i < graph->nodes.count; i++)
        IPU_TRY(scope->build_node(scope, &graph->nodes.at[i]));
    return scope->model->nrefusals > noted ? IPU_ERR_SHAPE : IPU_OK;
}

void ipu__onnx_scope_close(struct ipu__onnx_call *call,
                           struct ipu__onnx_builder *scope, bool trial)
{
    struct ipu__onnx_builder *b = call->builder;

    b->folded = scope->folded;
    b->inner_nodes = scope->inner_nodes;
    if (b->status >= 0 && scope->status < 0 && !trial) {
        b->status = scope->status;
        memcpy(b->text, scope->text, sizeof b->text);
    }
    free(scope->values);
    scope->values = NULL;
}

const struct ipu__onnx_value *ipu__onnx_scope_output(
    const struct ipu__onnx_builder *scope, const struct ipu__onnx_graph *graph,
    size_t i)
{
    const struct ipu__onnx_value *value =
        ipu__onnx_value(scope, graph->outputs.at[i].name);

    return value && value->state == IPU__ONNX_MADE ? value : NULL;
}
