/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halve.c - changes a graph of float32 to float16. remedy.c calls it.
 *
 * Scalars stay as they are. So do statistics of halves, which are float32, and
 * tensors made of them.
 */
#include <stdlib.h>
#include <string.h>

#include "advice/remedy.h"
#include "base/error.h"
#include "ops/half.h"

static int halve_constant(struct ipu__tensor *t)
{
    int64_t count = ipu__shape_count(&t->shape);
    void *halves = malloc((size_t)count * 2 + 1);

    if (!halves)
        return ipu__fail_memory((size_t)count * 2);
    ipu__narrow(IPU_FLOAT16, halves, t->data, count);
    free(t->data);
    t->data = halves;
    return IPU_OK;
}

static bool is_scalar(const struct ipu__shape *shape)
{
    return shape->ndim == 0;
}

/* Tensors that stay float32 where the rest becomes float16: statistics, and
 * tensors made of them by ops whose operands must have one type. */
struct wide {
    ipu_graph *g;
    bool *tensors; /* owned, [ntensors] */
    bool spreads;  /* some tensor is wide that is no statistic */
};

static bool may_be_wide(const ipu_graph *g, int32_t t)
{
    const struct ipu__shape *shape = &g->tensors[t].shape;

    return shape->dtype == IPU_FLOAT32 && !is_scalar(shape);
}

/* Makes all tensors wide if one is. Returns whether that changed any. */
static bool make_alike(struct wide *wide, const int32_t *tensors, int n)
{
    bool any = false, news = false;

    for (int i = 0; i < n; i++)
        any |= may_be_wide(wide->g, tensors[i]) && wide->tensors[tensors[i]];
    for (int i = 0; any && i < n; i++)
        if (may_be_wide(wide->g, tensors[i]) && !wide->tensors[tensors[i]])
            wide->tensors[tensors[i]] = wide->spreads = news = true;
    return news;
}

static bool spread_node(struct wide *wide, const struct ipu__node *node)
{
    int n = node->op->ninputs - node->op->last_wide;
    int32_t alike[IPU__MAX_INPUTS + 1];

    if (node->loop >= 0 || node->op->makes_wide || node->op == &ipu__cast)
        return false;
    memcpy(alike, node->inputs, (size_t)n * sizeof *alike);
    alike[n] = node->output;
    return make_alike(wide, alike, n + 1);
}

static bool spread_wide(struct wide *wide)
{
    const ipu_graph *g = wide->g;
    bool news = false;

    for (int32_t n = 0; n < g->nnodes; n++)
        news |= spread_node(wide, &g->nodes[n]);
    for (int32_t i = 0; i < g->nassigns; i++)
        news |= make_alike(
            wide, (int32_t[]){g->assigns[i].variable, g->assigns[i].value}, 2);
    for (int32_t t = 0; t < g->ntensors; t++)
        if (g->tensors[t].renews >= 0)
            news |= make_alike(wide, (int32_t[]){t, g->tensors[t].renews}, 2);
    return news;
}

static int find_wide(struct wide *wide)
{
    const ipu_graph *g = wide->g;

    IPU_TRY(ipu__new_array(&wide->tensors, (size_t)g->ntensors,
                           sizeof *wide->tensors));
    for (int32_t n = 0; n < g->nnodes; n++)
        if (g->nodes[n].op->makes_wide)
            wide->tensors[g->nodes[n].output] = true;
    while (spread_wide(wide))
        continue;
    if (wide->spreads && (g->parent || g->nloops > 0))
        return ipu__fail(IPU_ERR_STATE,
                         "statistics stay float32, and what is made of them "
                         "goes into loops, or out");
    return IPU_OK;
}

static int halve_tensors(const struct wide *wide)
{
    ipu_graph *g = wide->g;
    int changed = 0;

    for (int32_t i = 0; i < g->ntensors; i++) {
        struct ipu__tensor *t = &g->tensors[i];

        if (!may_be_wide(g, i) || wide->tensors[i])
            continue;
        if (t->data)
            IPU_TRY(halve_constant(t));
        t->shape.dtype = IPU_FLOAT16;
        changed = 1;
    }
    for (int32_t n = 0; n < g->nnodes; n++) {
        struct ipu__shape *told = &g->nodes[n].attributes.shape;

        if (told->dtype == IPU_FLOAT32 && !is_scalar(told) &&
            !wide->tensors[g->nodes[n].output])
            told->dtype = IPU_FLOAT16;
    }
    return changed;
}

int ipu__halve(ipu_graph *g)
{
    struct wide wide = {.g = g};
    int status = find_wide(&wide);

    if (status >= 0)
        status = halve_tensors(&wide);
    free(wide.tensors);
    return status;
}
