/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_build.c - decides how a loop is built, and builds the iterations of one
 * that the device does not run as a loop.
 *
 * The body is first built into a graph that is thrown away, with carried values
 * and the number of the iteration as inputs. That shows which shapes it makes,
 * and whether it goes on for ever. Then
 *
 *     a known number of iterations of constant shapes    ipu_repeat
 *     a condition that depends on data                   ipu_while
 *     all else                                           the iterations, one
 *                                                        after the other
 *
 * The last is for bodies that need the number of the iteration, or a carried
 * value, for a shape, or change the shape of a carried value, and for
 * conditions that can be computed while the graph is built. The number of nodes
 * of all iterations is limited. An ipu_while has no derivatives and makes no
 * rows, because their number is not known.
 */
#include <string.h>

#include "onnx/operators/loops.h"

const int64_t onnx__loop_holds = 1;

void *onnx__loop_keep(struct onnx__loop *loop, size_t count, size_t each)
{
    return ipu__onnx_keep_outside(&loop->call->builder->model->file,
                                  (count + 1) * each);
}

int onnx__loop_new(struct onnx__loop *loop)
{
    size_t inputs =
        (size_t)(onnx__loop_first_input(loop) + loop->ncarried + loop->ntaken);
    size_t outputs =
        (size_t)(onnx__loop_first_output(loop) + loop->ncarried + loop->nmade);

    if (loop->body->inputs.count != inputs ||
        loop->body->outputs.count != outputs)
        return onnx__refuse(loop->call,
                            "its body has %zu inputs and %zu outputs instead "
                            "of %zu and %zu",
                            loop->body->inputs.count, loop->body->outputs.count,
                            inputs, outputs);
    loop->limit.id = loop->begins.id = -1;
    loop->carried =
        onnx__loop_keep(loop, (size_t)loop->ncarried, sizeof *loop->carried);
    loop->taken =
        onnx__loop_keep(loop, (size_t)loop->ntaken, sizeof *loop->taken);
    loop->made = onnx__loop_keep(loop, (size_t)loop->nmade, sizeof *loop->made);
    loop->inputs = onnx__loop_keep(loop, inputs, sizeof *loop->inputs);
    loop->outputs = onnx__loop_keep(loop, outputs, sizeof *loop->outputs);
    if (!loop->carried || !loop->taken || !loop->made || !loop->inputs ||
        !loop->outputs)
        return ipu__onnx_end(loop->call->builder, IPU_ERR_MEMORY);
    return IPU_OK;
}

struct ipu__onnx_value onnx__loop_value(struct ipu__onnx_call *call,
                                        struct ipu__onnx_value *value)
{
    if (!onnx__known(call, value))
        onnx__tensor(call, value);
    return *value;
}

int onnx__loop_give(struct ipu__onnx_call *call, int i,
                    struct ipu__onnx_value *value)
{
    if (onnx__known(call, value))
        return onnx__give_same(call, i, value);
    return onnx__give(call, i, value->type, onnx__tensor(call, value));
}

/* --------------------------------------------------------------------- body */

int onnx__loop_body(struct onnx__loop *loop, ipu_graph *g)
{
    const struct ipu__onnx_graph *body = loop->body;

    loop->scope.graph = g;
    for (size_t i = 0; i < body->inputs.count; i++)
        ipu__onnx_scope_set(&loop->scope, body, i, &loop->inputs[i]);
    IPU_TRY(ipu__onnx_scope_build(loop->call, body, &loop->scope));
    for (size_t i = 0; i < body->outputs.count; i++) {
        const struct ipu__onnx_value *value =
            ipu__onnx_scope_output(&loop->scope, body, i);

        if (!value)
            return onnx__refuse(loop->call,
                                "nothing in its body makes its output "
                                "'%.100s'",
                                body->outputs.at[i].name);
        loop->outputs[i] = *value;
    }
    return IPU_OK;
}

struct ipu__onnx_value onnx__loop_row(const struct ipu__onnx_value *all)
{
    struct ipu__onnx_value row = *all;

    row.ndim--;
    memmove(row.extents, all->extents + 1,
            (size_t)row.ndim * sizeof *row.extents);
    row.floats = NULL;
    row.wholes = NULL;
    row.initializer = NULL;
    row.tensor.id = row.last.id = row.input = -1;
    return row;
}

/* Builds the body once into a graph of its own, of which only shapes are left.
 */
static int build_trial(struct onnx__loop *loop, ipu_graph *scratch)
{
    const struct ipu__onnx_value number =
        onnx__loop_number(IPU_ONNX_INT64, NULL);
    struct ipu__onnx_value *inputs = loop->inputs;
    size_t n = 0;

    if (loop->numbered) {
        inputs[n++] = ipu__onnx_placeholder(loop->call, scratch, &number);
        inputs[n++] = onnx__loop_number(IPU_ONNX_BOOL, &onnx__loop_holds);
    }
    for (int i = 0; i < loop->ncarried; i++)
        inputs[n++] =
            ipu__onnx_placeholder(loop->call, scratch, &loop->carried[i]);
    for (int i = 0; i < loop->ntaken; i++) {
        const struct ipu__onnx_value row =
            onnx__loop_row(&loop->taken[i].value);

        inputs[n++] = ipu__onnx_placeholder(loop->call, scratch, &row);
    }
    return onnx__loop_body(loop, scratch);
}

int onnx__loop_condition(struct onnx__loop *loop, bool *goes_on)
{
    struct ipu__onnx_value *condition = &loop->outputs[0];

    if (!loop->numbered)
        return IPU_OK;
    if (!onnx__is_whole(condition->type) || onnx__size(condition) != 1)
        return onnx__refuse(loop->call,
                            "the condition that its body makes is not one "
                            "bool");
    loop->ends = !onnx__known(loop->call, condition);
    *goes_on = loop->ends || condition->wholes[0] != 0;
    return IPU_OK;
}

/* ------------------------------------------------------------------- choice */

/* Calls a function with a graph that is thrown away. */
static int try_in_scratch(struct onnx__loop *loop,
                          int (*fn)(struct onnx__loop *, ipu_graph *))
{
    ipu_graph *scratch = NULL;
    int status = ipu_graph_new(&scratch);

    if (status < 0)
        return ipu__onnx_end(loop->call->builder, status);
    status = fn(loop, scratch);
    ipu_graph_free(scratch);
    return status;
}

/* Builds the body once, to see what it makes. */
static int try_body(struct onnx__loop *loop, ipu_graph *scratch)
{
    int status =
        ipu__onnx_scope_open(loop->call, loop->body, scratch, &loop->scope);
    bool goes_on = true;

    if (status >= 0)
        status = build_trial(loop, scratch);
    ipu__onnx_scope_close(loop->call, &loop->scope, true);
    IPU_TRY(status);
    IPU_TRY(onnx__loop_condition(loop, &goes_on));
    if (!goes_on && loop->trips != 0)
        loop->trips = 1;
    for (size_t i = 0; i < loop->body->outputs.count; i++)
        loop->outputs[i].tensor.id = loop->outputs[i].last.id = -1;
    return IPU_OK;
}

/* Returns whether carried values keep their types and shapes. */
static bool is_steady(const struct onnx__loop *loop)
{
    int first = onnx__loop_first_output(loop);

    for (int i = 0; i < loop->ncarried; i++)
        if (!onnx__same_shape(&loop->carried[i], &loop->outputs[first + i]))
            return false;
    return true;
}

/* Refuses the node, if nothing has been noted about it: an op has failed. */
static int refuse_once(struct onnx__loop *loop, int32_t noted)
{
    struct ipu__onnx_builder *b = loop->call->builder;

    if (b->status < 0 || b->model->nrefusals > noted)
        return IPU_ERR_SHAPE;
    return onnx__refuse(loop->call, "its body: %.300s", ipu_last_error());
}

/* Builds a loop that ends when a condition, or a number, says that depends on
 * data. */
static int run_while(struct onnx__loop *loop)
{
    if (loop->nmade > 0)
        return onnx__refuse(loop->call,
                            "how often it iterates depends on data, and so "
                            "does the shape of its scan outputs");
    loop->ends = true;
    return onnx__loop_iterate(loop);
}

int onnx__loop_run(struct onnx__loop *loop)
{
    struct ipu__onnx_builder *b = loop->call->builder;
    int32_t noted = b->model->nrefusals;
    bool fixed = loop->limit.id < 0 && loop->begins.id < 0;
    bool tried = try_in_scratch(loop, try_body) >= 0, steady, ends = loop->ends;

    if (b->status < 0)
        return b->status;
    steady = tried && is_steady(loop);
    if (!fixed)
        return steady ? run_while(loop)
               : tried
                   ? onnx__refuse(loop->call,
                                  "how often it iterates depends on data, and "
                                  "a carried value changes its shape")
                   : refuse_once(loop, noted);
    if (steady && !ends && loop->trips > 1)
        return onnx__loop_iterate(loop);
    if (tried && !ends && loop->trips < 0)
        return onnx__refuse(loop->call, "it never ends: it has no number of "
                                        "iterations, and its condition "
                                        "always holds");
    if (!tried && (loop->trips == 0 || loop->trips > onnx__loop_most(loop)))
        return refuse_once(loop, noted);
    if (steady && loop->trips != 0 && loop->trips != 1 &&
        try_in_scratch(loop, onnx__loop_unroll) < 0) {
        ipu__onnx_forget_refusals(b->model, noted);
        IPU_TRY(try_in_scratch(loop, try_body));
        return run_while(loop);
    }
    ipu__onnx_forget_refusals(b->model, noted);
    if (onnx__loop_unroll(loop, NULL) < 0)
        return refuse_once(loop, noted);
    return IPU_OK;
}
