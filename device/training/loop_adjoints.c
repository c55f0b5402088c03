/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop_adjoints.c - finds the derivatives that the backward loop carries: with
 * respect to carried values that need one and have one, and to what the body
 * uses from around it. Both sets grow until they no longer change, since values
 * become each other.
 */
#include "training/loop.h"

#include <stdlib.h>

#include "base/error.h"
#include "ops/op.h"
#include "training/training.h"

/* Marks what a needed derivative reaches from the node's output. */
static void flow_back(struct ipu__loop_back *b, const struct ipu__node *node)
{
    const struct ipu__loop *loop =
        node->loop >= 0 ? &b->body->loops[node->loop] : NULL;
    bool flows = b->flows[node->output];
    int32_t t;

    for (int32_t i = 0; loop && i < loop->ncarried; i++)
        flows |= b->flows[loop->outputs[i]];
    for (int i = 0; flows && i < node->op->ninputs; i++)
        b->flows[node->inputs[i]] |= b->needed[node->inputs[i]];
    for (int32_t i = 0; flows && (t = ipu__loop_need(b->body, node, i)) >= 0;
         i++)
        b->flows[t] |= b->needed[t];
}

/* Finds the tensors of the body that have a derivative: active, [carried], are
 * carried values that have one after the loop, and then all that get one. */
static void find_flows(struct ipu__loop_back *b, const struct ipu__loop *loop,
                       bool *active)
{
    bool changes = true;

    while (changes) {
        for (int32_t i = 0; i < loop->ncarried; i++)
            if (active[i])
                b->flows[ipu__next_of(b->body, loop->body.carried[i])] = true;
        for (int32_t n = b->body->nnodes - 1; n >= 0; n--)
            flow_back(b, &b->body->nodes[n]);
        changes = false;
        for (int32_t i = 0; i < loop->ncarried; i++) {
            if (active[i] || !b->flows[loop->body.carried[i]] ||
                !b->needed[loop->body.carried[i]])
                continue;
            active[i] = true;
            changes = true;
        }
    }
}

static void add_adjoint(struct ipu__loop_back *b, int32_t number,
                        bool is_import)
{
    b->adjoints[b->nadjoints++] = (struct ipu__adjoint){
        .number = number, .is_import = is_import, .result = {-1}};
}

static int add_adjoints(struct ipu__loop_back *b, const ipu_tensor *derivatives)
{
    const struct ipu__loop *loop = &b->graph->loops[b->loop];
    const ipu_graph *body = b->body;
    bool *active;

    IPU_TRY(
        ipu__new_array(&active, (size_t)loop->ncarried + 1, sizeof *active));
    for (int32_t i = 0; i < loop->ncarried; i++)
        active[i] = b->needed[loop->body.carried[i]] &&
                    derivatives[loop->outputs[i]].id >= 0;
    find_flows(b, loop, active);
    for (int32_t i = 0; i < loop->ncarried; i++)
        if (active[i])
            add_adjoint(b, i, false);
    free(active);
    for (int32_t i = 0; i < body->nimports; i++) {
        int32_t inner = body->imports[i].inner;

        if (!b->needed[inner] || !b->flows[inner])
            continue;
        if (body->imports[i].written)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "gradients: the loss depends on %s as each "
                             "iteration of a loop finds it, and the loop "
                             "changes it: carry it instead",
                             body->tensors[inner].name);
        add_adjoint(b, i, true);
    }
    return IPU_OK;
}

int ipu__find_adjoints(struct ipu__loop_back *b, const bool *needed,
                       const ipu_tensor *derivatives)
{
    const struct ipu__loop *loop = &b->graph->loops[b->loop];
    size_t ntensors = (size_t)b->ntensors;

    IPU_TRY(ipu__new_array(&b->needed, ntensors, sizeof *b->needed));
    IPU_TRY(ipu__new_array(&b->flows, ntensors, sizeof *b->flows));
    IPU_TRY(ipu__new_array(&b->adjoints,
                           (size_t)loop->ncarried + (size_t)b->body->nimports,
                           sizeof *b->adjoints));
    IPU_TRY(ipu__mark_body(loop, needed, b->needed));
    for (int32_t t = 0; t < b->ntensors; t++)
        b->needed[t] &= b->body->tensors[t].shape.dtype != IPU_INT32;
    return add_adjoints(b, derivatives);
}
