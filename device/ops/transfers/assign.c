/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assign.c - assignments: the new values of variables.
 *
 * An assignment is no node: ops see a variable as it was when the run began,
 * wherever in the program they and the assignment stand, so there is nothing
 * that could come before or after it. The compiler puts the step where nobody
 * needs the old elements any more.
 *
 * The step "assign" gives a variable its new elements; if they were computed in
 * its place, nothing is left to do. "remote_load" and "remote_store" do the
 * same for a variable that lies beside the chip. "identity" copies a tensor,
 * for values that must outlive the tensor they come from.
 */
#include "base/error.h"
#include "ops/copy.h"
#include "ops/op.h"

const struct ipu__op ipu__assign_step = {
    .name = "assign",
    .ninputs = 1,
    .raw = true,
    .by_element = true,
    .slots = -1,
    .shape = ipu__same_shape,
    .run = ipu__pass_on,
};

/* ------------------------------------------ variables beside the chip */

static void stream(const struct ipu__call *call, struct ipu__work *work)
{
    (void)call;
    work->kind = IPU__WORK_STREAMING;
}

const struct ipu__op ipu__remote_load = {
    .name = "remote_load",
    .ninputs = 1,
    .raw = true,
    .effects = true,
    .shape = ipu__same_shape,
    .run = ipu__pass_on,
    .cost = stream,
};

const struct ipu__op ipu__remote_store = {
    .name = "remote_store",
    .ninputs = 1,
    .raw = true,
    .effects = true,
    .shape = ipu__same_shape,
    .run = ipu__pass_on,
    .cost = stream,
};

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    (void)graph, (void)node;
    dx[0] = dy;
}

const struct ipu__op ipu__identity = {
    .name = "identity",
    .ninputs = 1,
    .raw = true,
    .by_element = true,
    .slots = -1,
    .shape = ipu__same_shape,
    .run = ipu__pass_on,
    .gradient = gradient,
};

/* ---------------------------------------------------------------- builders */

/* The variable whose memory the tensor would show; -1: none. */
static int32_t variable_behind(const ipu_graph *g, int32_t index)
{
    while (g->tensors[index].kind == IPU__RESULT) {
        const struct ipu__node *node = &g->nodes[g->tensors[index].node];

        if (!node->op->alias)
            return -1;
        index = node->inputs[ipu__in_place(node->op)];
    }
    return g->tensors[index].kind == IPU__VARIABLE ? index : -1;
}

int32_t ipu__index_kept(ipu_graph *g, ipu_tensor tensor)
{
    int32_t index = ipu__index(g, tensor);

    IPU_TRY(index);
    if (g->tensors[index].kind != IPU__VARIABLE)
        return index;
    tensor = ipu__add(g, &ipu__identity, &tensor, NULL);
    return tensor.id < 0 ? ipu__graph_status(g) : ipu__index(g, tensor);
}

static int check_assignment(const ipu_graph *g, int32_t variable, int32_t value)
{
    const struct ipu__tensor *to = &g->tensors[variable];
    const struct ipu__tensor *from = &g->tensors[value];

    if (to->kind != IPU__VARIABLE || to->fixed || to->remote)
        return ipu__fail(IPU_ERR_ARGUMENT, "assign: %s is not a variable",
                         to->name);
    if (!ipu__shape_equal(&to->shape, &from->shape))
        return ipu__fail(IPU_ERR_SHAPE,
                         "assign: %s is %s and %s is %s: they must be the same",
                         to->name, ipu__shape_print(&to->shape).text,
                         from->name, ipu__shape_print(&from->shape).text);
    for (int32_t i = 0; i < g->nassigns; i++)
        if (g->assigns[i].variable == variable)
            return ipu__fail(IPU_ERR_STATE,
                             "assign: %s already becomes %s: a variable is "
                             "assigned once",
                             to->name, g->tensors[g->assigns[i].value].name);
    return IPU_OK;
}

static int add_assignment(ipu_graph *g, ipu_tensor variable, ipu_tensor value)
{
    struct ipu__assign a = {.variable = ipu__index(g, variable)};

    IPU_TRY(ipu__check_closed(g, "assign"));
    if (a.variable < 0)
        return ipu__fail(a.variable, "assign: the variable: %s",
                         ipu_last_error());
    a.value = ipu__index(g, value);
    if (a.value < 0)
        return ipu__fail(a.value, "assign: the value of %s: %s",
                         g->tensors[a.variable].name, ipu_last_error());
    a.variable = ipu__origin(g, a.variable);
    IPU_TRY(check_assignment(g, a.variable, a.value));
    /* Two variables may become each other; and what is built in a region
     * happens there. */
    if (variable_behind(g, a.value) >= 0 ||
        (g->region >= 0 && ipu__tensor_region(g, a.value) != g->region)) {
        value = ipu__add(g, &ipu__identity, &value, NULL);
        if (value.id < 0)
            return g->status;
        a.value = ipu__index(g, value);
    }
    IPU_TRY(ipu__reserve((void **)&g->assigns, g->nassigns, &g->assign_capacity,
                         sizeof *g->assigns));
    g->assigns[g->nassigns++] = a;
    return IPU_OK;
}

int ipu_assign(ipu_graph *graph, ipu_tensor variable, ipu_tensor value)
{
    int status;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "assign: the graph is NULL");
    if (graph->status < 0)
        return ipu__graph_status(graph);
    status = add_assignment(graph, variable, value);
    return status < 0 ? ipu__graph_fail(graph, status) : IPU_OK;
}

ipu_tensor ipu_counter(ipu_graph *graph, const char *name)
{
    ipu_tensor count = ipu_variable(graph, name, IPU_INT32, 0, NULL);
    ipu_tensor one = ipu_fill(graph, IPU_INT32, 0, NULL, 1);

    if (ipu_assign(graph, count, ipu_add(graph, count, one)) < 0)
        return (ipu_tensor){-1};
    return count;
}
