/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simplify.c - the pass that drops ops without an effect, and joins two ops
 * into one.
 *
 * It does so only where the result has the same bits for all numbers,
 * infinities and zeros of either sign (which bits a NaN carries is not
 * promised):
 *
 *     x * 1, x / 1, x - 0, x + -0             x
 *     x + 0, scale(x, 1, 0)                   x, if x is never -0
 *     scale(scale(x, a, 0), -1, 0)            scale(x, -a, 0)
 *     -(-x), |-x|, relu(relu(x)), ||x||       x, |x|, relu(x), |x|
 *     a reshape, transpose or broadcast of    one of them, or none
 *     one, or to what it is already
 *     a cast to float32 and on                a cast
 *
 * scale(scale(x, a, 0), b, 0) is not scale(x, a b, 0): it may overflow, or
 * round, in between.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/rewrite/draft.h"
#include "ops/half.h"

struct simplifier {
    struct ipu__draft *draft;
    int32_t *by; /* [tensors]: the tensor that takes its place */
};

/* Returns whether all elements of a tensor are this number, and it is 1 or 0.
 */
static bool is_all(const ipu_graph *g, int32_t t, double value)
{
    const struct ipu__tensor *tensor = &g->tensors[t];
    const struct ipu__node *node = ipu__maker(g, t);
    float x;
    int32_t n;

    if (node && node->op == &ipu__fill)
        return node->attributes.scale == value &&
               !signbit(node->attributes.scale) == !signbit(value);
    if (tensor->kind != IPU__CONSTANT || ipu__shape_count(&tensor->shape) != 1)
        return false;
    if (tensor->shape.dtype == IPU_INT32) {
        memcpy(&n, tensor->data, sizeof n);
        return n == (int32_t)value;
    }
    if (ipu__is_half(tensor->shape.dtype))
        ipu__widen(tensor->shape.dtype, &x, tensor->data, 1);
    else
        memcpy(&x, tensor->data, sizeof x);
    return (double)x == value && !signbit(x) == !signbit(value);
}

/* Returns whether a tensor has no -0. A sum with +0 has none, unless it is
 * rounded afterwards, as halves are. */
static bool no_minus_zero(const ipu_graph *g, int32_t t)
{
    const struct ipu__node *node = ipu__maker(g, t);

    if (g->tensors[t].shape.dtype == IPU_INT32)
        return true;
    if (!node)
        return false;
    if (node->op->alias)
        return no_minus_zero(g, node->inputs[ipu__in_place(node->op)]);
    return node->op == &ipu__relu || node->op == &ipu__unary_abs ||
           node->op == &ipu__square || node->op == &ipu__unary_exp ||
           node->op == &ipu__softmax || node->op == &ipu__activation_sigmoid ||
           (node->op == &ipu__scale && !signbit(node->attributes.offset) &&
            g->tensors[t].shape.dtype == IPU_FLOAT32);
}

/* Returns the input that takes the place of a node's output; -1: none does. */
static int32_t neutral_input(const ipu_graph *g, const struct ipu__node *node)
{
    const struct ipu__op *op = node->op;
    int32_t a = node->inputs[0], b = node->inputs[1];

    if (op == &ipu__binary_multiply)
        return is_all(g, b, 1) ? a : is_all(g, a, 1) ? b : -1;
    if (op == &ipu__binary_divide)
        return is_all(g, b, 1) ? a : -1;
    if (op == &ipu__binary_subtract)
        return is_all(g, b, 0) ? a : -1;
    if (op == &ipu__binary_add) {
        if (is_all(g, b, -0.0) || (is_all(g, b, 0) && no_minus_zero(g, a)))
            return a;
        if (is_all(g, a, -0.0) || (is_all(g, a, 0) && no_minus_zero(g, b)))
            return b;
    }
    return -1;
}

static bool is_scale(const struct ipu__node *node, double factor)
{
    return node->op == &ipu__scale && node->attributes.scale == factor &&
           node->attributes.offset == 0;
}

static int32_t of_one(const ipu_graph *g, struct ipu__node *node)
{
    int32_t x = node->inputs[0];
    const struct ipu__node *maker = ipu__maker(g, x);

    if (is_scale(node, 1) &&
        (signbit(node->attributes.offset) || no_minus_zero(g, x)))
        return x;
    if (!maker)
        return -1;
    if (node->op == &ipu__negate && maker->op == &ipu__negate)
        return maker->inputs[0];
    if ((node->op == &ipu__relu || node->op == &ipu__unary_abs) &&
        maker->op == node->op)
        return x;
    if (node->op == &ipu__unary_abs && maker->op == &ipu__negate)
        node->inputs[0] = maker->inputs[0];
    if (is_scale(node, -1) && !signbit(node->attributes.offset) &&
        g->tensors[x].shape.dtype == IPU_FLOAT32 && maker->op == &ipu__scale &&
        maker->attributes.offset == 0 && !signbit(maker->attributes.offset)) {
        node->attributes.scale = -maker->attributes.scale;
        node->inputs[0] = maker->inputs[0];
    }
    return -1;
}

/* -------------------------------------------------------------------- moves */

static bool is_identity(const ipu_graph *g, const struct ipu__node *node)
{
    int32_t ndim = g->tensors[node->output].shape.ndim;

    for (int32_t i = 0; i < ndim; i++)
        if (node->attributes.order[i] != i)
            return false;
    return true;
}

static void join_transposes(struct ipu__node *node,
                            const struct ipu__node *first, int32_t ndim)
{
    int32_t order[IPU_MAX_DIMS] = {0};

    for (int32_t i = 0; i < ndim; i++)
        order[i] = first->attributes.order[node->attributes.order[i]];
    memcpy(node->attributes.order, order, sizeof order);
    node->inputs[0] = first->inputs[0];
}

static int32_t of_moves(const ipu_graph *g, struct ipu__node *node)
{
    const struct ipu__node *maker = ipu__maker(g, node->inputs[0]);
    const struct ipu__shape *y = &g->tensors[node->output].shape;
    bool again = maker && maker->op == node->op;

    if (node->op != &ipu__reshape && node->op != &ipu__transpose &&
        node->op != &ipu__broadcast)
        return -1;
    if (again && node->op == &ipu__transpose)
        join_transposes(node, maker, y->ndim);
    else if (again)
        node->inputs[0] = maker->inputs[0];
    if (node->op == &ipu__transpose)
        return is_identity(g, node) ? node->inputs[0] : -1;
    return ipu__shape_equal(&g->tensors[node->inputs[0]].shape, y)
               ? node->inputs[0]
               : -1;
}

/* -------------------------------------------------------------------- casts */

/* Joins two casts: all casts go through float32. */
static int32_t of_casts(const ipu_graph *g, struct ipu__node *node)
{
    const struct ipu__node *maker = ipu__maker(g, node->inputs[0]);
    ipu_dtype to = g->tensors[node->output].shape.dtype;

    if (node->op != &ipu__cast)
        return -1;
    if (maker && maker->op == &ipu__cast &&
        g->tensors[node->inputs[0]].shape.dtype == IPU_FLOAT32 &&
        g->tensors[maker->inputs[0]].shape.dtype != IPU_INT32)
        node->inputs[0] = maker->inputs[0];
    return g->tensors[node->inputs[0]].shape.dtype == to ? node->inputs[0] : -1;
}

static int32_t simpler_tensor(const ipu_graph *g, struct ipu__node *node)
{
    int32_t by = -1;

    if (node->op->ninputs == 2)
        by = neutral_input(g, node);
    if (node->op->ninputs == 1)
        by = of_one(g, node);
    if (by < 0 && node->op->ninputs == 1)
        by = of_moves(g, node);
    if (by < 0 && node->op->ninputs == 1)
        by = of_casts(g, node);
    /* The input may have been broadcast. */
    if (by >= 0 && !ipu__shape_equal(&g->tensors[by].shape,
                                     &g->tensors[node->output].shape))
        return -1;
    return by;
}

int ipu__simplify(struct ipu__draft *draft)
{
    ipu_graph *g = &draft->graph;
    size_t ntensors = (size_t)g->ntensors + 1;
    int32_t *by;

    IPU_TRY(ipu__new_array(&by, ntensors, sizeof *by));
    for (size_t t = 0; t < ntensors; t++)
        by[t] = (int32_t)t;
    for (int32_t n = 0; n < g->nnodes; n++) {
        struct ipu__node *node = &g->nodes[n];
        int32_t simple;

        for (int i = 0; i < node->op->ninputs; i++)
            node->inputs[i] = by[node->inputs[i]];
        if (g->tensors[node->output].node != n || node->op->effects ||
            node->effect || node->loop >= 0)
            continue;
        simple = simpler_tensor(g, node);
        if (simple >= 0 && ipu__may_replace(g, node->output, simple))
            by[node->output] = simple;
    }
    ipu__draft_replace(draft, by);
    free(by);
    return IPU_OK;
}
