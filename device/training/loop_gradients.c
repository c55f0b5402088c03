/* SPDX-License-Identifier: Apache-2.0 */
/* loop_gradients.c - refuses derivatives that would have to pass a loop or
 * leave its body, rather than taking them for zero. gradients.c calls these
 * functions while it differentiates. */
#include <stdlib.h>

#include "base/error.h"
#include "ops/op.h"
#include "training/training.h"

void ipu__mark_loop(const ipu_graph *g, const struct ipu__node *node,
                    bool *needed)
{
    const struct ipu__loop *loop;
    bool any = false;
    int32_t t;

    if (node->loop < 0)
        return;
    for (int32_t i = 0; (t = ipu__loop_need(g, node, i)) >= 0; i++)
        any |= needed[t];
    loop = &g->loops[node->loop];
    for (int32_t i = 0; i < loop->ncarried && any; i++)
        needed[loop->outputs[i]] = true;
}

int ipu__refuse_loop(ipu_graph *g, const struct ipu__node *node,
                     const bool *needed, const ipu_tensor *derivatives)
{
    const struct ipu__loop *loop = &g->loops[node->loop];

    for (int32_t i = 0; i < loop->ncarried; i++)
        if (needed[loop->outputs[i]] && derivatives[loop->outputs[i]].id >= 0)
            return ipu__graph_fail(
                g, ipu__fail(IPU_ERR_ARGUMENT,
                             "gradients: the loss depends on %s: there are no "
                             "gradients through a loop; call ipu_gradients in "
                             "its body",
                             g->tensors[loop->outputs[i]].name));
    return IPU_OK;
}

/* Marks what the graph around the body has computed from one of wrt: reached,
 * [its tensors]. */
static void mark_reached(const ipu_graph *body, int32_t count,
                         const int32_t *wrt, bool *reached)
{
    const ipu_graph *around = body->parent;

    for (int32_t k = 0; k < count; k++)
        for (int32_t i = 0; i < body->nimports; i++)
            if (body->imports[i].inner == wrt[k])
                reached[body->imports[i].outer] = true;
    for (int32_t n = 0; n < around->nnodes; n++) {
        const struct ipu__node *node = &around->nodes[n];

        for (int i = 0; i < node->op->ninputs; i++)
            reached[node->output] |= reached[node->inputs[i]];
        ipu__mark_loop(around, node, reached);
    }
}

static bool is_wrt(int32_t count, const int32_t *wrt, int32_t tensor)
{
    for (int32_t k = 0; k < count; k++)
        if (wrt[k] == tensor)
            return true;
    return false;
}

int ipu__mark_imports(const ipu_graph *body, int32_t count, const int32_t *wrt,
                      bool *needed)
{
    bool *reached;

    if (!body->parent)
        return IPU_OK;
    IPU_TRY(ipu__new_array(&reached, (size_t)body->parent->ntensors,
                           sizeof *reached));
    mark_reached(body, count, wrt, reached);
    for (int32_t i = 0; i < body->nimports; i++)
        if (reached[body->imports[i].outer] &&
            body->tensors[body->imports[i].inner].shape.dtype != IPU_INT32)
            needed[body->imports[i].inner] = true;
    free(reached);
    return IPU_OK;
}

int ipu__refuse_imports(ipu_graph *body, int32_t count, const int32_t *wrt,
                        int32_t nderivatives, const ipu_tensor *derivatives)
{
    for (int32_t i = 0; i < body->nimports; i++) {
        int32_t inner = body->imports[i].inner;

        if (inner < nderivatives && derivatives[inner].id >= 0 &&
            !is_wrt(count, wrt, inner))
            return ipu__graph_fail(
                body,
                ipu__fail(IPU_ERR_ARGUMENT,
                          "gradients: the loss depends on %s, which is "
                          "computed outside of the loop from what it is to be "
                          "differentiated by: compute it in the body",
                          body->tensors[inner].name));
    }
    return IPU_OK;
}
