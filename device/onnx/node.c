/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.c - builds one node: finds the row of its operator, checks all that rows
 * have in common, and calls the row.
 */
#include <limits.h>
#include <string.h>

#include "onnx/builder.h"

/* Finds the values of names. Returns an array, in the file's memory. */
static struct ipu__onnx_value **find_values(struct ipu__onnx_builder *b,
                                            const struct ipu__onnx_texts *names)
{
    struct ipu__onnx_value **values = ipu__onnx_keep_outside(
        &b->model->file, (names->count + 1) * sizeof *values);

    for (size_t i = 0; values && i < names->count; i++)
        values[i] = *names->at[i] ? ipu__onnx_value(b, names->at[i]) : NULL;
    return values;
}

static bool is_in_list(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = list; n && (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

static int check_attributes(struct ipu__onnx_call *call)
{
    for (size_t i = 0; i < call->node->attributes.count; i++) {
        const struct ipu__onnx_attribute *a = &call->node->attributes.at[i];

        if (a->referenced)
            return onnx__refuse(call, "attribute '%s' refers to a function",
                                a->name);
        if (!is_in_list(call->op->attributes, a->name))
            return onnx__refuse(call, "attribute '%s' is not supported",
                                a->name);
    }
    return IPU_OK;
}

/* Returns whether the nodes of a graph take something of a node around it that
 * was refused. */
static bool uses_refused(const struct ipu__onnx_builder *b,
                         const struct ipu__onnx_graph *graph);

static bool is_refused(const struct ipu__onnx_builder *b, const char *name)
{
    const struct ipu__onnx_value *value = ipu__onnx_value(b, name);

    return value && value->state == IPU__ONNX_REFUSED;
}

static bool takes_refused(const struct ipu__onnx_builder *b,
                          const struct ipu__onnx_node *node)
{
    const struct ipu__onnx_attributes *all = &node->attributes;

    for (size_t i = 0; i < node->inputs.count; i++)
        if (is_refused(b, node->inputs.at[i]))
            return true;
    for (size_t i = 0; i < all->count; i++)
        if (all->at[i].g && uses_refused(b, all->at[i].g))
            return true;
    return false;
}

static bool uses_refused(const struct ipu__onnx_builder *b,
                         const struct ipu__onnx_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.count; i++)
        if (takes_refused(b, &graph->nodes.at[i]))
            return true;
    for (size_t i = 0; i < graph->outputs.count; i++)
        if (is_refused(b, graph->outputs.at[i].name))
            return true;
    return false;
}

/* Checks inputs. Returns 1 if one, or what a graph of the node takes, is of a
 * node that was refused. */
static int check_inputs(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_texts *names = &call->node->inputs;

    for (size_t i = 0; i < names->count; i++) {
        const struct ipu__onnx_value *value = call->inputs[i];

        if (!*names->at[i])
            continue;
        if (!value || value->state == IPU__ONNX_ABSENT)
            return onnx__refuse(call,
                                "nothing before it makes its input '%.100s'",
                                names->at[i]);
    }
    return takes_refused(call->builder, call->node);
}

static int check_types(struct ipu__onnx_call *call)
{
    for (int i = 0; i < call->ninputs; i++)
        if (call->inputs[i] && ipu_onnx_type_dtype(call->inputs[i]->type) < 0)
            return onnx__refuse(call,
                                "input '%.100s' is of %s, which this "
                                "device does not have",
                                call->inputs[i]->name,
                                call->inputs[i]->type
                                    ? ipu_onnx_type_name(call->inputs[i]->type)
                                    : "an unknown type");
    return IPU_OK;
}

/* Finds the row. */
static int find_operator(struct ipu__onnx_call *call)
{
    const char *name = call->node->op, *domain = call->node->domain;
    bool training = !strcmp(domain, IPU__ONNX_TRAINING);
    bool own = !*domain || !strcmp(domain, "ai.onnx");
    const char *reason = ipu__onnx_reason(name);

    if (!own && !training)
        return onnx__refuse(
            call,
            "operators of other sets than ONNX's own and " IPU__ONNX_TRAINING
            " are not supported");
    call->op = ipu__onnx_find(name, training);
    if (!call->op)
        return onnx__refuse(call, "%s",
                            reason ? reason : "there is no such operator");
    if (call->version < call->op->first)
        return onnx__refuse(call,
                            "it is supported from version %d of the operators "
                            "(opset) on, and the model uses %d",
                            call->op->first, call->version);
    return IPU_OK;
}

/* Notes each node in the graphs of one that is left out whose operator there
 * is not. */
static void find_inner_operators(const struct ipu__onnx_call *call)
{
    const struct ipu__onnx_attributes *all = &call->node->attributes;

    for (size_t i = 0; i < all->count; i++)
        for (size_t j = 0; all->at[i].g && j < all->at[i].g->nodes.count; j++) {
            struct ipu__onnx_call inner = *call;

            inner.node = &all->at[i].g->nodes.at[j];
            if (find_operator(&inner) >= 0)
                find_inner_operators(&inner);
        }
}

static int check_count(struct ipu__onnx_call *call)
{
    int given = call->ninputs;

    /* Inputs that are left out at the end need not be there. */
    while (given > 0 && !call->inputs[given - 1])
        given--;
    if (given < call->op->least || call->ninputs > call->op->most)
        return onnx__refuse(call, "it has %d inputs", call->ninputs);
    for (int i = 0; i < call->op->least; i++)
        if (!call->inputs[i])
            return onnx__refuse(call, "its input %d is missing", i);
    return IPU_OK;
}

static int check_outputs(struct ipu__onnx_call *call)
{
    for (int i = 0; i < call->noutputs; i++)
        if (call->outputs[i] && call->outputs[i]->state != IPU__ONNX_MADE)
            return onnx__refuse(call, "its output '%.100s' is not supported",
                                call->outputs[i]->name);
    return IPU_OK;
}

/* Returns what reports call the node: its name, or that of its first output. */
static const char *module_of(const struct ipu__onnx_node *node)
{
    if (*node->name || node->outputs.count == 0)
        return node->name;
    return node->outputs.at[0];
}

/* Builds the node; a refusal is noted and returned. An operator that there is
 * not is noted even if a node before this one was refused. */
static int run_call(struct ipu__onnx_call *call)
{
    int status;

    IPU_TRY(find_operator(call));
    status = check_inputs(call);
    if (status > 0)
        find_inner_operators(call);
    if (status != 0)
        return status;
    IPU_TRY(check_count(call));
    IPU_TRY(check_types(call));
    IPU_TRY(check_attributes(call));
    status = call->op->build(call);
    if (call->builder->status < 0)
        return call->builder->status;
    if (status >= 0 && call->wrong_attribute)
        return onnx__refuse(call, "an attribute has another type");
    IPU_TRY(status);
    IPU_TRY(check_outputs(call));
    ipu__onnx_evaluate(call);
    return status;
}

int ipu__onnx_build_node(struct ipu__onnx_builder *b,
                         const struct ipu__onnx_node *node)
{
    struct ipu__onnx_call call = {.builder = b,
                                  .graph = b->graph,
                                  .node = node,
                                  .version = b->model->version};
    int32_t noted = b->model->nrefusals;
    int status;

    if (node->inputs.count > INT_MAX / 2 || node->outputs.count > INT_MAX / 2)
        return ipu__fail(IPU_ERR_DATA, "%s: a node is too large",
                         b->model->file.path);
    call.inputs = find_values(b, &node->inputs);
    call.outputs = find_values(b, &node->outputs);
    if (!call.inputs || !call.outputs)
        return IPU_ERR_MEMORY;
    call.ninputs = (int)node->inputs.count;
    call.noutputs = (int)node->outputs.count;
    ipu_module(b->graph, module_of(node));
    status = run_call(&call);
    if (status != 0)
        for (int i = 0; i < call.noutputs; i++)
            if (call.outputs[i])
                call.outputs[i]->state = IPU__ONNX_REFUSED;
    if (b->status < 0)
        return b->status;
    return status < 0 && b->model->nrefusals == noted ? status : IPU_OK;
}
