/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold.c - values that turn out to have to be known after their nodes were
 * built: a shape that a model computes from its inputs, for example.
 *
 * Inputs that the program has offered are taken as constants only where a node
 * has to know them, for others should stay inputs. So a node may have been
 * built of inputs that could be known. It is built again when its result has to
 * be: first what it depends on is bound or folded, then the row of its operator
 * computes on the host, as it does wherever all is known.
 */
#include <string.h>

#include "onnx/builder.h"

/* Nodes from an input to what has to be known; the stack is limited. */
enum { MOST_DEPTH = 64 };

static const struct ipu__onnx_node *find_producer(
    const struct ipu__onnx_builder *b, const char *name)
{
    const struct ipu__onnx_nodes *nodes = &b->model->model.graph->nodes;

    for (size_t i = 0; i < nodes->count; i++)
        for (size_t j = 0; j < nodes->at[i].outputs.count; j++)
            if (!strcmp(nodes->at[i].outputs.at[j], name))
                return &nodes->at[i];
    return NULL;
}

static bool fold_value(struct ipu__onnx_call *call,
                       struct ipu__onnx_value *value, int depth)
{
    struct ipu__onnx_builder *b = call->builder;
    const struct ipu__onnx_node *node;

    if (value->state != IPU__ONNX_MADE || depth == MOST_DEPTH)
        return false;
    if (value->initializer && value->tensor.id < 0)
        value->use = IPU__ONNX_FREE; /* no op uses it as a variable */
    if (onnx__known(call, value) || onnx__bind(call, value))
        return true;
    node = value->input < 0 ? find_producer(b, value->name) : NULL;
    if (!node)
        return false;
    for (size_t i = 0; i < node->inputs.count; i++) {
        const char *name = node->inputs.at[i];
        struct ipu__onnx_value *input = *name ? ipu__onnx_value(b, name) : NULL;

        if (*name && (!input || !fold_value(call, input, depth + 1)))
            return false;
    }
    return b->build_node(b, node) >= 0 && onnx__known(call, value);
}

bool onnx__fold(struct ipu__onnx_call *call, struct ipu__onnx_value *value)
{
    struct ipu__onnx_builder *b = call->builder;
    bool was = b->as_ops, known;

    b->as_ops = true;
    known = fold_value(call, value, 0);
    b->as_ops = was;
    return known;
}

bool onnx__fold_all(struct ipu__onnx_call *call, struct ipu__onnx_value *value)
{
    return fold_value(call, value, 0);
}
