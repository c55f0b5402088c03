/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.c - computes a node on the host whose inputs are all known, and
 * whose row only makes ops of the device.
 *
 * The node is built into a graph of its own, of constants, which is compiled
 * and run once. So what models compute of shapes is known, whatever operators
 * they do it with, and not only those whose rows compute on the host. It is
 * done for few elements: larger results are left to the device, whose compiler
 * folds constants, too.
 *
 * A node that cannot be evaluated so is no mistake: it stays as it was built.
 */
#include <stdlib.h>
#include <string.h>

#include "onnx/builder.h"

enum { MOST_ELEMENTS = 4096 };

/* Operators that do more than compute their outputs: they keep variables, or
 * have graphs, whose nodes are evaluated by themselves, or draw. */
static const char *const others[] = {"BatchNormalization",
                                     "Bernoulli",
                                     "Dropout",
                                     "Gradient",
                                     "If",
                                     "Loop",
                                     "RandomNormalLike",
                                     "RandomUniformLike",
                                     "Scan",
                                     NULL};

static bool is_small(const struct ipu__onnx_value *value)
{
    return onnx__size(value) <= MOST_ELEMENTS;
}

/* Returns whether the node's inputs are known and its outputs are not. */
static bool can_be(struct ipu__onnx_call *call)
{
    bool unknown = false;

    for (int i = 0; others[i]; i++)
        if (!strcmp(call->node->op, others[i]))
            return false;
    for (int i = 0; i < call->ninputs; i++)
        if (call->inputs[i] && !is_small(call->inputs[i]))
            return false;
    for (int i = 0; i < call->noutputs; i++) {
        const struct ipu__onnx_value *y = call->outputs[i];

        if (y && (y->state != IPU__ONNX_MADE || !is_small(y)))
            return false;
        unknown |= y && !y->floats && !y->wholes;
    }
    return unknown && call->ninputs > 0 && onnx__all_known(call);
}

/* Sets the values of the inner builder: the inputs, with their elements alone,
 * and the outputs, which nothing has made. */
static void set_values(struct ipu__onnx_call *call,
                       struct ipu__onnx_builder *inner)
{
    for (int i = 0; i < call->ninputs; i++) {
        const struct ipu__onnx_value *x = call->inputs[i];
        struct ipu__onnx_value *to = &inner->values[inner->nvalues];
        bool twice = false;

        for (int j = 0; j < i; j++)
            twice |= call->inputs[j] == x;
        if (!x || twice)
            continue;
        *to = *x;
        to->initializer = NULL;
        to->tensor.id = to->last.id = -1;
        to->is_turned = false;
        to->input = -1;
        inner->nvalues++;
    }
    for (int i = 0; i < call->noutputs; i++)
        if (call->outputs[i])
            ipu__onnx_add_name(inner, call->outputs[i]->name);
    ipu__onnx_sort(inner);
}

/* Takes the elements that the device has computed, of float32 or int32. */
static void give_elements(struct ipu__onnx_call *call, int i,
                          const int32_t *bits)
{
    struct ipu__onnx_value *y = call->outputs[i], was = *y;
    int64_t *wholes, n = onnx__size(y);
    float *floats;

    if (!onnx__room(call, i, y->type, y->ndim, was.extents, &floats, &wholes))
        return;
    if (floats)
        memcpy(floats, bits, (size_t)n * sizeof *floats);
    for (int64_t k = 0; wholes && k < n; k++)
        wholes[k] = bits[k];
}

/* Computes output i of the node, which has been built into the graph. */
static int compute_output(struct ipu__onnx_call *call, int i,
                          const ipu_graph *graph)
{
    const ipu_compile_options options = {
        .size = sizeof options, .allow_out_of_memory = 1, .brief = 1};
    int32_t bits[MOST_ELEMENTS];
    size_t n = (size_t)onnx__size(call->outputs[i]);
    ipu_executable *executable = NULL;
    ipu_engine *engine = NULL;
    int status = ipu_compile_with(graph, &options, &executable);

    if (status >= 0)
        status = ipu_engine_new(executable, &engine);
    if (status >= 0)
        status = ipu_engine_connect(engine, "y", bits, n * sizeof *bits);
    if (status >= 0)
        status = ipu_engine_run(engine);
    if (status >= 0)
        give_elements(call, i, bits);
    ipu_engine_free(engine);
    ipu_executable_free(executable);
    return status;
}

/* Builds the node into a graph whose output is output i, and computes it. */
static int evaluate_output(struct ipu__onnx_call *call, int i,
                           struct ipu__onnx_builder *inner)
{
    struct ipu__onnx_call made = {.builder = inner};
    struct ipu__onnx_value *y;
    ipu_tensor t;

    inner->nvalues = 0;
    set_values(call, inner);
    IPU_TRY(ipu_graph_new(&inner->graph));
    made.graph = inner->graph;
    if (inner->build_node(inner, call->node) < 0 || inner->status < 0)
        return IPU_ERR_SHAPE;
    y = ipu__onnx_value(inner, call->outputs[i]->name);
    if (y->state != IPU__ONNX_MADE)
        return IPU_ERR_SHAPE;
    t = onnx__tensor(&made, y);
    if (!onnx__is_whole(y->type))
        t = ipu_cast(made.graph, t, IPU_FLOAT32);
    IPU_TRY(ipu_output(made.graph, "y", t));
    return compute_output(call, i, made.graph);
}

void ipu__onnx_evaluate(struct ipu__onnx_call *call)
{
    struct ipu__onnx_builder *b = call->builder, inner = *b;
    int32_t noted = b->model->nrefusals;

    if (b->as_ops || !can_be(call))
        return;
    if (ipu__new_array(&inner.values,
                       (size_t)call->ninputs + (size_t)call->noutputs + 1,
                       sizeof *inner.values) < 0)
        return;
    inner.as_ops = true;
    for (int i = 0; i < call->noutputs; i++)
        if (call->outputs[i]) {
            inner.graph = NULL;
            if (evaluate_output(call, i, &inner) < 0)
                i = call->noutputs;
            ipu_graph_free(inner.graph);
        }
    ipu__onnx_forget_refusals(b->model, noted);
    free(inner.values);
}
