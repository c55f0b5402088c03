/* SPDX-License-Identifier: Apache-2.0 */
/* leaving.c - refuses derivatives that would have to leave the body of a loop
 * in which they are asked for, rather than taking them for zero. gradients.c
 * calls these functions. */
#include <stdlib.h>

#include "base/error.h"
#include "training/training.h"

/* Marks what the graph around the body has computed from one of wrt: reached,
 * [its tensors]. */
static int mark_reached(const ipu_graph *body, int32_t count,
                        const int32_t *wrt, bool *reached)
{
    const ipu_graph *around = body->parent;

    for (int32_t k = 0; k < count; k++)
        for (int32_t i = 0; i < body->nimports; i++)
            if (body->imports[i].inner == wrt[k])
                reached[body->imports[i].outer] = true;
    return ipu__mark_dependents(around, around->nnodes, reached);
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
    int status;

    if (!body->parent)
        return IPU_OK;
    IPU_TRY(ipu__new_array(&reached, (size_t)body->parent->ntensors,
                           sizeof *reached));
    status = mark_reached(body, count, wrt, reached);
    for (int32_t i = 0; i < body->nimports && status == IPU_OK; i++)
        if (reached[body->imports[i].outer] &&
            body->tensors[body->imports[i].inner].shape.dtype != IPU_INT32)
            needed[body->imports[i].inner] = true;
    free(reached);
    return status;
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
