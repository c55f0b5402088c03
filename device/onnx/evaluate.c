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
#include <stdio.h>
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

/* Output i of the node, as an output of the graph. */
struct output_name {
    char text[16];
};

static struct output_name name_of(int i)
{
    struct output_name name;

    snprintf(name.text, sizeof name.text, "y%d", i);
    return name;
}

/* Adds the outputs of the node, which has been built, to the graph. */
static int add_outputs(struct ipu__onnx_call *call,
                       struct ipu__onnx_builder *inner)
{
    struct ipu__onnx_call made = {.builder = inner, .graph = inner->graph};

    for (int i = 0; i < call->noutputs; i++) {
        struct ipu__onnx_value *y =
            call->outputs[i] ? ipu__onnx_value(inner, call->outputs[i]->name)
                             : NULL;
        ipu_tensor t;

        if (!y)
            continue;
        if (y->state != IPU__ONNX_MADE)
            return IPU_ERR_SHAPE;
        t = onnx__tensor(&made, y);
        if (!onnx__is_whole(y->type))
            t = ipu_cast(made.graph, t, IPU_FLOAT32);
        IPU_TRY(ipu_output(made.graph, name_of(i).text, t));
    }
    return IPU_OK;
}

/* Runs the graph, and gives its outputs to the node. bits: [outputs,
 * MOST_ELEMENTS]. */
static int run_graph(struct ipu__onnx_call *call, const ipu_graph *graph,
                     int32_t (*bits)[MOST_ELEMENTS])
{
    const ipu_compile_options options = {
        .size = sizeof options, .allow_out_of_memory = 1, .brief = 1};
    ipu_executable *executable = NULL;
    ipu_engine *engine = NULL;
    int status = ipu_compile_with(graph, &options, &executable);

    if (status >= 0)
        status = ipu_engine_new(executable, &engine);
    for (int i = 0; i < call->noutputs && status >= 0; i++)
        if (call->outputs[i])
            status = ipu_engine_connect(engine, name_of(i).text, bits[i],
                                        (size_t)onnx__size(call->outputs[i]) *
                                            sizeof bits[i][0]);
    if (status >= 0)
        status = ipu_engine_run(engine);
    for (int i = 0; i < call->noutputs && status >= 0; i++)
        if (call->outputs[i])
            give_elements(call, i, bits[i]);
    ipu_engine_free(engine);
    ipu_executable_free(executable);
    return status;
}

/* Builds the node into a graph of its own, and computes its outputs. */
static int evaluate(struct ipu__onnx_call *call,
                    struct ipu__onnx_builder *inner)
{
    int32_t(*bits)[MOST_ELEMENTS];
    int status;

    set_values(call, inner);
    IPU_TRY(ipu_graph_new(&inner->graph));
    if (inner->build_node(inner, call->node) < 0 || inner->status < 0)
        return IPU_ERR_SHAPE;
    IPU_TRY(add_outputs(call, inner));
    IPU_TRY(ipu__new_array(&bits, (size_t)call->noutputs, sizeof *bits));
    status = run_graph(call, inner->graph, bits);
    free(bits);
    return status;
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
    inner.graph = NULL;
    inner.nvalues = 0;
    evaluate(call, &inner);
    ipu_graph_free(inner.graph);
    ipu__onnx_forget_refusals(b->model, noted);
    free(inner.values);
}
