/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conditions.c - If. A branch whose condition is known is built alone, as if
 * its nodes stood in place of the If. Otherwise there are two ways:
 *
 *     derivatives may be taken    both branches are computed, and the device
 *                                 selects between their outputs; what fails a
 *                                 run, such as an index out of range, does so
 *                                 in the branch that is not selected, too
 *     none are                    each branch is a loop of the device of at
 *                                 most one iteration, so that the one alone
 *                                 runs that the condition chooses; such loops
 *                                 have no derivatives
 */
#include <string.h>

#include "onnx/operators/rows.h"
#include "onnx/scope.h"

/* A branch, and its outputs, of which the node has as many. */
struct branch {
    struct ipu__onnx_call *call;
    const char *which;
    const struct ipu__onnx_graph *graph;
    struct ipu__onnx_builder scope; /* while it is built */
    struct ipu__onnx_value *values;
};

static int check_branch(struct ipu__onnx_call *call, struct branch *b,
                        const char *which, struct ipu__onnx_value *values)
{
    *b = (struct branch){.call = call,
                         .which = which,
                         .graph = onnx__attribute_graph(call, which),
                         .values = values};
    if (!b->graph)
        return onnx__refuse(call, "%s is missing", which);
    if (b->graph->outputs.count != (size_t)call->noutputs)
        return onnx__refuse(call, "%s has %zu outputs instead of %d", which,
                            b->graph->outputs.count, call->noutputs);
    if (b->graph->inputs.count > 0)
        return onnx__refuse(call, "%s has inputs", which);
    return IPU_OK;
}

/* Builds the nodes in the scope, which is open, and takes the outputs. */
static int build_nodes(struct branch *b)
{
    IPU_TRY(ipu__onnx_scope_build(b->call, b->graph, &b->scope));
    for (size_t i = 0; i < b->graph->outputs.count; i++) {
        const struct ipu__onnx_value *value =
            ipu__onnx_scope_output(&b->scope, b->graph, i);

        if (!value)
            return onnx__refuse(b->call,
                                "nothing in %s makes its output '%.100s'",
                                b->which, b->graph->outputs.at[i].name);
        b->values[i] = *value;
    }
    return IPU_OK;
}

/* Builds a branch into the graph of the node, or into one of its own. */
static int build_branch(struct branch *b, ipu_graph *scratch)
{
    int status = ipu__onnx_scope_open(b->call, b->graph, scratch, &b->scope);

    if (status >= 0)
        status = build_nodes(b);
    ipu__onnx_scope_close(b->call, &b->scope, scratch != NULL);
    return status;
}

static int check_alike(struct ipu__onnx_call *call, const struct branch *both)
{
    for (int i = 0; i < call->noutputs; i++)
        if (!onnx__same_shape(&both[0].values[i], &both[1].values[i]))
            return onnx__refuse(
                call,
                "its branches make output %d of different types or shapes, and "
                "its condition is not known before it runs",
                i);
    return IPU_OK;
}

/* -------------------------------------------------------- both are computed */

static int select_values(struct ipu__onnx_call *call, ipu_tensor condition,
                         struct branch *both)
{
    IPU_TRY(build_branch(&both[0], NULL));
    IPU_TRY(build_branch(&both[1], NULL));
    IPU_TRY(check_alike(call, both));
    for (int i = 0; i < call->noutputs; i++)
        IPU_TRY(onnx__give(call, i, both[0].values[i].type,
                           ipu_select(call->graph, condition,
                                      onnx__tensor(call, &both[0].values[i]),
                                      onnx__tensor(call, &both[1].values[i]))));
    return IPU_OK;
}

/* ----------------------------------------------------------------- one runs */

/* Builds both branches into a graph that is thrown away, for their shapes. */
static int try_branches(struct ipu__onnx_call *call, struct branch *both)
{
    int32_t noted = call->builder->model->nrefusals;
    ipu_graph *scratch[2] = {NULL, NULL};
    int status = IPU_OK;

    for (int i = 0; i < 2 && status >= 0; i++) {
        status = ipu_graph_new(&scratch[i]);
        if (status >= 0)
            status = build_branch(&both[i], scratch[i]);
    }
    ipu_graph_free(scratch[0]);
    ipu_graph_free(scratch[1]);
    if (status < 0 && call->builder->model->nrefusals == noted)
        return onnx__refuse(call, "%.300s", ipu_last_error());
    return status < 0 ? status : check_alike(call, both);
}

static int goes_on(ipu_graph *g, void *context, int32_t ninputs,
                   const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)g, (void)context, (void)ninputs, (void)noutputs;
    out[0] = in[0];
    return IPU_OK;
}

static int run_branch(ipu_graph *g, void *context, int32_t ninputs,
                      const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    struct branch *b = context;
    struct ipu__onnx_call inner = *b->call;

    (void)ninputs, (void)noutputs, (void)in;
    b->scope.graph = inner.graph = g;
    IPU_TRY(build_nodes(b));
    inner.builder = &b->scope;
    out[0] = ipu_fill(g, IPU_INT32, 0, NULL, 0);
    for (int i = 0; i < inner.noutputs; i++)
        out[1 + i] = onnx__tensor(&inner, &b->values[i]);
    return b->scope.status;
}

/* v: the condition of the branch, and the outputs. */
static int add_branch(struct branch *b, ipu_tensor *v)
{
    int status = ipu__onnx_scope_open(b->call, b->graph, NULL, &b->scope);

    if (status >= 0)
        ipu_while(b->call->graph, 1, goes_on, run_branch, b,
                  1 + b->call->noutputs, v, NULL, v);
    ipu__onnx_scope_close(b->call, &b->scope, false);
    return status;
}

static int run_one(struct ipu__onnx_call *call, ipu_tensor condition,
                   struct branch *both)
{
    ipu_graph *g = call->graph;
    ipu_tensor none = ipu_fill(g, IPU_INT32, 0, NULL, 0);
    ipu_tensor *v = ipu__onnx_keep_outside(
        &call->builder->model->file, ((size_t)call->noutputs + 1) * sizeof *v);

    if (!v)
        return ipu__onnx_end(call->builder, IPU_ERR_MEMORY);
    IPU_TRY(try_branches(call, both));
    for (int i = 0; i < call->noutputs; i++)
        v[1 + i] =
            ipu_fill(g, ipu__onnx_kind(both[0].values[i].type)->dtype,
                     both[0].values[i].ndim, both[0].values[i].extents, 0);
    v[0] = ipu_not_equal(g, condition, none);
    IPU_TRY(add_branch(&both[0], v));
    v[0] = ipu_equal(g, condition, none);
    IPU_TRY(add_branch(&both[1], v));
    for (int i = 0; i < call->noutputs; i++)
        IPU_TRY(onnx__give(call, i, both[0].values[i].type, v[1 + i]));
    return IPU_OK;
}

/* ------------------------------------------------------------------- choice */

static int build_known(struct ipu__onnx_call *call, struct branch *both)
{
    const struct ipu__onnx_value *condition = call->inputs[0];
    struct branch *b =
        &both[condition->wholes && condition->wholes[0] != 0 ? 0 : 1];

    IPU_TRY(build_branch(b, NULL));
    for (int i = 0; i < call->noutputs; i++)
        if (onnx__wants(call, i))
            onnx__copy_value(call->outputs[i], &b->values[i]);
    return IPU_OK;
}

static int build_if(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *values, *condition = call->inputs[0];
    size_t n = (size_t)call->noutputs;
    struct branch both[2];
    ipu_tensor chosen;

    if (!onnx__is_whole(condition->type) || onnx__size(condition) != 1)
        return onnx__refuse(call, "its condition is not one bool");
    values = ipu__onnx_keep_outside(&call->builder->model->file,
                                    (2 * n + 1) * sizeof *values);
    if (!values)
        return ipu__onnx_end(call->builder, IPU_ERR_MEMORY);
    IPU_TRY(check_branch(call, &both[0], "then_branch", values));
    IPU_TRY(check_branch(call, &both[1], "else_branch", values + n));
    if (onnx__known(call, condition))
        return build_known(call, both);
    chosen = ipu_reshape(call->graph, onnx__tensor(call, condition), 0, NULL);
    return call->builder->model->no_gradients
               ? run_one(call, chosen, both)
               : select_values(call, chosen, both);
}

const struct ipu__onnx_operator onnx__condition_rows[] = {
    {"If", 1, "then_branch else_branch", 1, 1, build_if, NULL,
     "if the condition depends on data, the outputs of both branches must have "
     "one shape, and both are computed where derivatives may be taken"},
    {.name = NULL},
};
