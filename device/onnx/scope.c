/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope.c - builds a graph that is an attribute of a node.
 *
 * A scope has values of its own, and copies of those around it whose names its
 * nodes, or graphs in these, use. A copy is made when the scope is opened, so
 * what is known of the value then is known within. Inputs of the model become
 * tensors before, because a graph has each of them once.
 *
 * Files may have been made to do harm: the depth of scopes is limited, and so
 * is the number of nodes that all of them have together.
 */
#include "onnx/scope.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SCOPES = 16, MOST_INNER_NODES = 1 << 20 };

/* ---------------------------------------------------------------------- names
 */

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

/* --------------------------------------------------------------------- values
 */

static void add_own(struct ipu__onnx_builder *scope, const char *name)
{
    if (*name)
        scope->values[scope->nvalues++] = (struct ipu__onnx_value){
            .name = name, .tensor = {-1}, .last = {-1}, .input = -1};
}

/* Adds the values that the graph itself names. */
static int add_all_own(struct ipu__onnx_call *call,
                       const struct ipu__onnx_graph *graph,
                       struct ipu__onnx_builder *scope)
{
    for (size_t i = 0; i < graph->initializers.count; i++)
        add_own(scope, graph->initializers.at[i].name);
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (size_t j = 0; j < graph->nodes.at[i].outputs.count; j++)
            add_own(scope, graph->nodes.at[i].outputs.at[j]);
    ipu__onnx_sort(scope);
    for (size_t i = 0; i < scope->nvalues; i++) {
        const char *name = scope->values[i].name;

        if ((i > 0 && !strcmp(scope->values[i - 1].name, name)) ||
            ipu__onnx_value(call->builder, name))
            return onnx__refuse(call,
                                "in its graph, '%.100s' is the name of "
                                "two values",
                                name);
    }
    return IPU_OK;
}

/* Adds copies of values around the graph that it uses. */
static void add_captured(struct ipu__onnx_call *call, const struct names *names,
                         struct ipu__onnx_builder *scope)
{
    size_t own = scope->nvalues, n = own;

    for (size_t i = 0; i < names->count; i++) {
        struct ipu__onnx_value *value;

        if (i > 0 && !strcmp(names->at[i - 1], names->at[i]))
            continue;
        value = ipu__onnx_value(call->builder, names->at[i]);
        if (!value)
            continue;
        if (value->input >= 0 && !onnx__known(call, value))
            onnx__tensor(call, value);
        scope->values[n++] = *value;
    }
    scope->nvalues = n;
    ipu__onnx_sort(scope);
}

static int name_values(struct ipu__onnx_call *call,
                       const struct ipu__onnx_graph *graph,
                       struct ipu__onnx_builder *scope)
{
    size_t most = graph->initializers.count + 1;
    struct names names;
    int status = list_names(graph, &names);

    for (size_t i = 0; i < graph->nodes.count; i++)
        most += graph->nodes.at[i].outputs.count;
    if (status >= 0)
        status = ipu__new_array(&scope->values, most + names.count,
                                sizeof *scope->values);
    if (status < 0)
        ipu__onnx_end(call->builder, status);
    else
        status = add_all_own(call, graph, scope);
    if (status >= 0)
        add_captured(call, &names, scope);
    free(names.at);
    return status;
}

/* -------------------------------------------------------------------- scopes
 */

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
    if (graph->inputs.count > 0)
        return onnx__refuse(call, "its graph has inputs");
    return IPU_OK;
}

int ipu__onnx_scope_build(struct ipu__onnx_call *call,
                          const struct ipu__onnx_graph *graph,
                          struct ipu__onnx_builder *scope)
{
    struct ipu__onnx_builder *b = call->builder;
    int32_t noted = b->model->nrefusals;
    int status;

    *scope = *b;
    scope->values = NULL;
    scope->nvalues = 0;
    scope->depth++;
    scope->inner_nodes += graph->nodes.count;
    IPU_TRY(check_graph(call, graph, scope));
    IPU_TRY(name_values(call, graph, scope));
    status = ipu__onnx_set_initializers(scope, &graph->initializers);
    if (status < 0)
        return ipu__onnx_end(b, status);
    for (size_t i = 0; i < graph->nodes.count; i++)
        IPU_TRY(scope->build_node(scope, &graph->nodes.at[i]));
    return b->model->nrefusals > noted ? IPU_ERR_SHAPE : IPU_OK;
}

void ipu__onnx_scope_close(struct ipu__onnx_call *call,
                           struct ipu__onnx_builder *scope)
{
    struct ipu__onnx_builder *b = call->builder;

    b->folded = scope->folded;
    b->inner_nodes = scope->inner_nodes;
    if (b->status >= 0 && scope->status < 0) {
        b->status = scope->status;
        memcpy(b->text, scope->text, sizeof b->text);
    }
    free(scope->values);
    scope->values = NULL;
}

const struct ipu__onnx_value *ipu__onnx_scope_output(
    const struct ipu__onnx_builder *scope, const struct ipu__onnx_graph *graph,
    int i)
{
    const struct ipu__onnx_value *value =
        ipu__onnx_value(scope, graph->outputs.at[i].name);

    return value && value->state == IPU__ONNX_MADE ? value : NULL;
}
