/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conditions.c - If. A branch whose condition is known is built alone, as if
 * its nodes stood in place of the If. Otherwise both are, and the device
 * selects between their outputs, so that derivatives pass both. Branches have
 * no other effects; but what fails a run, such as an index out of range, does
 * so in the branch that is not selected, too.
 */
#include <string.h>

#include "onnx/operators/rows.h"
#include "onnx/scope.h"

/* Builds a branch, and sets values to its outputs, of which the node has as
 * many. */
static int build_branch(struct ipu__onnx_call *call, const char *which,
                        struct ipu__onnx_value *values)
{
    const struct ipu__onnx_graph *graph = onnx__attribute_graph(call, which);
    struct ipu__onnx_builder scope = {.status = 0};
    int status;

    if (!graph)
        return onnx__refuse(call, "%s is missing", which);
    if (graph->outputs.count != (size_t)call->noutputs)
        return onnx__refuse(call, "%s has %zu outputs instead of %d", which,
                            graph->outputs.count, call->noutputs);
    if (graph->inputs.count > 0)
        return onnx__refuse(call, "%s has inputs", which);
    status = ipu__onnx_scope_open(call, graph, NULL, &scope);
    if (status >= 0)
        status = ipu__onnx_scope_build(call, graph, &scope);
    for (int i = 0; i < call->noutputs && status >= 0; i++) {
        const struct ipu__onnx_value *value =
            ipu__onnx_scope_output(&scope, graph, (size_t)i);

        if (value)
            values[i] = *value;
        else
            status = onnx__refuse(call,
                                  "nothing in %s makes its output "
                                  "'%.100s'",
                                  which, graph->outputs.at[i].name);
    }
    ipu__onnx_scope_close(call, &scope, false);
    return status;
}

/* Selects between the outputs of both branches. */
static int select_values(struct ipu__onnx_call *call,
                         struct ipu__onnx_value *then,
                         struct ipu__onnx_value *other)
{
    ipu_graph *g = call->graph;
    ipu_tensor condition =
        ipu_reshape(g, onnx__tensor(call, call->inputs[0]), 0, NULL);

    for (int i = 0; i < call->noutputs; i++) {
        if (!onnx__same_shape(&then[i], &other[i]))
            return onnx__refuse(
                call,
                "its branches make output %d of different types or shapes, and "
                "its condition is not known before it runs",
                i);
        IPU_TRY(
            onnx__give(call, i, then[i].type,
                       ipu_select(g, condition, onnx__tensor(call, &then[i]),
                                  onnx__tensor(call, &other[i]))));
    }
    return IPU_OK;
}

static int build_known(struct ipu__onnx_call *call,
                       struct ipu__onnx_value *values)
{
    const struct ipu__onnx_value *condition = call->inputs[0];
    bool holds = condition->wholes && condition->wholes[0] != 0;

    IPU_TRY(build_branch(call, holds ? "then_branch" : "else_branch", values));
    for (int i = 0; i < call->noutputs; i++)
        if (onnx__wants(call, i))
            onnx__copy_value(call->outputs[i], &values[i]);
    return IPU_OK;
}

static int build_if(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *values, *condition = call->inputs[0];
    size_t n = (size_t)call->noutputs;

    if (!onnx__is_whole(condition->type) || onnx__size(condition) != 1)
        return onnx__refuse(call, "its condition is not one bool");
    values = ipu__onnx_keep_outside(&call->builder->model->file,
                                    (2 * n + 1) * sizeof *values);
    if (!values)
        return ipu__onnx_end(call->builder, IPU_ERR_MEMORY);
    if (onnx__known(call, condition))
        return build_known(call, values);
    IPU_TRY(build_branch(call, "then_branch", values));
    IPU_TRY(build_branch(call, "else_branch", values + n));
    return select_values(call, values, values + n);
}

const struct ipu__onnx_operator onnx__condition_rows[] = {
    {"If", 1, "then_branch else_branch", 1, 1, build_if, NULL,
     "both branches are computed if the condition depends on data; their "
     "outputs must then have one shape"},
    {.name = NULL},
};
