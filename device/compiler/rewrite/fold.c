/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold.c - the pass that computes values made of constants during compilation.
 * The ops themselves compute them, so the bits are the same.
 *
 * A tensor may be known in two ways: all of its elements, if it is small; or
 * the one value that all of them have, whatever its size. The first becomes a
 * constant, which is on the device from then on; the second becomes a fill,
 * made when it is needed. An op that fails on such data is left alone: it fails
 * when it runs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/rewrite/draft.h"
#include "kernels/subnormals.h"
#include "ops/half.h"

/* The largest constant that the pass makes: it takes memory, and saves a step.
 */
enum { MOST_BYTES = 64 << 10 };

struct folder {
    struct ipu__draft *draft;
    /* [tensors]: all elements, owned by the draft or its graph; or one element,
     * of which all others are copies */
    void **whole, **same;
};

static void *allocate_data(struct ipu__draft *draft, size_t bytes)
{
    return ipu__draft_keep(
        draft, aligned_alloc(IPU__ALIGNMENT, ipu__aligned(bytes ? bytes : 1)));
}

/* Runs a call whose inputs have data. Returns 0, or 1 if it fails on them. */
static int evaluate_call(struct folder *f, struct ipu__call *call,
                         void **result)
{
    size_t scratch = ipu__wide_scratch(call);
    unsigned mode;
    int status;

    if (scratch == 0 && call->op->scratch)
        scratch = call->op->scratch(call);
    *result = allocate_data(f->draft, ipu__shape_bytes(&call->output.shape));
    call->scratch =
        aligned_alloc(IPU__ALIGNMENT, ipu__aligned(scratch ? scratch : 1));
    if (!*result || !call->scratch) {
        free(call->scratch);
        return ipu__fail_memory(scratch);
    }
    call->output.data = *result;
    mode = hvd__subnormals_flush(); /* as the engine does */
    status = ipu__run_wide(call);
    hvd__subnormals_restore(mode);
    free(call->scratch);
    return status < 0;
}

static bool can_fold(const struct ipu__node *node)
{
    return !node->op->effects && !node->op->checks && node->op->run &&
           node->region < 0 && node->after < 0 && node->loop < 0 &&
           !node->effect;
}

/* Finds all elements of a tensor; *data NULL: not known, or too many. */
static int whole_of(struct folder *f, int32_t t, void **data)
{
    const struct ipu__shape *shape = &f->draft->graph.tensors[t].shape;
    size_t bytes = ipu__shape_bytes(shape);
    size_t each = ipu__dtype_bytes(shape->dtype);
    char *all;

    *data = f->whole[t];
    if (*data || !f->same[t] || bytes > MOST_BYTES)
        return IPU_OK;
    all = allocate_data(f->draft, bytes);
    if (!all)
        return ipu__fail_memory(bytes);
    for (size_t i = 0; i < bytes; i += each)
        memcpy(all + i, f->same[t], each);
    f->whole[t] = *data = all;
    return IPU_OK;
}

/* Folds a node if all elements of all inputs are known. */
static int fold_whole(struct folder *f, const struct ipu__node *node)
{
    struct ipu__tensor *y = &f->draft->graph.tensors[node->output];
    struct ipu__call call;
    void *result;
    int status;

    if (ipu__shape_bytes(&y->shape) > MOST_BYTES)
        return IPU_OK;
    ipu__node_call(&f->draft->graph, node, &call);
    for (int i = 0; i < node->op->ninputs; i++) {
        void *data;

        IPU_TRY(whole_of(f, node->inputs[i], &data));
        if (!data)
            return IPU_OK;
        call.inputs[i].data = data;
    }
    status = evaluate_call(f, &call, &result);
    if (status != IPU_OK)
        return status < 0 ? status : IPU_OK;
    f->whole[node->output] = result;
    return IPU_OK;
}

/* Makes an operand a view of its one element. */
static void show_one(struct ipu__operand *operand)
{
    for (int32_t i = 0; i < operand->shape.ndim; i++)
        operand->shape.extents[i] = 1;
}

/* Folds a node whose op works by element if all elements of each input are
 * equal. */
static int fold_same(struct folder *f, const struct ipu__node *node)
{
    struct ipu__call call;
    void *result;
    int status;

    ipu__node_call(&f->draft->graph, node, &call);
    for (int i = 0; i < node->op->ninputs; i++) {
        call.inputs[i].data = f->same[node->inputs[i]];
        if (!call.inputs[i].data)
            return IPU_OK;
        show_one(&call.inputs[i]);
    }
    show_one(&call.output);
    status = evaluate_call(f, &call, &result);
    if (status != IPU_OK)
        return status < 0 ? status : IPU_OK;
    f->same[node->output] = result;
    return IPU_OK;
}

static bool depends_on_place(const struct ipu__op *op)
{
    return op == &ipu__dropout || op == &ipu__random_uniform ||
           op == &ipu__random_normal;
}

/* Notes the known elements of a tensor that is not computed. */
static void look_at_tensor(struct folder *f, int32_t t)
{
    const struct ipu__tensor *tensor = &f->draft->graph.tensors[t];

    if (tensor->kind != IPU__CONSTANT)
        return;
    f->whole[t] = tensor->data;
    if (ipu__shape_count(&tensor->shape) == 1)
        f->same[t] = tensor->data;
}

static int fold_node(struct folder *f, const struct ipu__node *node)
{
    bool by_element = node->op->by_element || node->op->alias;
    int64_t count =
        ipu__shape_count(&f->draft->graph.tensors[node->output].shape);

    if (!can_fold(node) || count == 0)
        return IPU_OK;
    if (by_element && (count == 1 || !depends_on_place(node->op)))
        IPU_TRY(fold_same(f, node));
    if (count == 1)
        f->whole[node->output] = f->same[node->output];
    if (f->whole[node->output] || (f->same[node->output] && count > 1))
        return IPU_OK;
    return fold_whole(f, node);
}

/* Converts an element to the number of a fill. Returns whether the fill makes
 * the same bits. */
static bool as_double(const void *element, ipu_dtype dtype, double *value)
{
    float x;
    int32_t n;

    if (dtype == IPU_INT32) {
        memcpy(&n, element, sizeof n);
        *value = n;
        return true;
    }
    if (ipu__is_half(dtype))
        ipu__widen(dtype, &x, element, 1);
    else
        memcpy(&x, element, sizeof x);
    *value = (double)x;
    return x == x;
}

/* Replaces a node with a known output by a fill, or removes it. */
static void replace_node(struct folder *f, struct ipu__node *node)
{
    struct ipu__tensor *y = &f->draft->graph.tensors[node->output];
    const void *same = f->same[node->output];
    void *whole =
        same && ipu__shape_count(&y->shape) > 1 ? NULL : f->whole[node->output];
    double value;

    if (node->op == &ipu__fill && !(whole && ipu__shape_count(&y->shape) == 1))
        return; /* a fill is as good, and takes no memory until it is needed */
    if (whole) {
        y->kind = IPU__CONSTANT;
        y->data = whole;
        y->node = -1;
    } else if (same && as_double(same, y->shape.dtype, &value)) {
        int32_t output = node->output;

        ipu__node_init(node, &ipu__fill);
        node->output = output;
        node->attributes.shape = y->shape;
        node->attributes.scale = value;
    }
}

static int fold_all(struct folder *f)
{
    ipu_graph *g = &f->draft->graph;

    for (int32_t t = 0; t < g->ntensors; t++)
        look_at_tensor(f, t);
    for (int32_t n = 0; n < g->nnodes; n++)
        IPU_TRY(fold_node(f, &g->nodes[n]));
    for (int32_t n = 0; n < g->nnodes; n++)
        replace_node(f, &g->nodes[n]);
    return IPU_OK;
}

int ipu__fold(struct ipu__draft *draft)
{
    size_t n = (size_t)draft->graph.ntensors + 1;
    struct folder f = {.draft = draft,
                       .whole = calloc(n, sizeof *f.whole),
                       .same = calloc(n, sizeof *f.same)};
    int status = f.whole && f.same ? fold_all(&f)
                                   : ipu__fail_memory(n * sizeof *f.whole);

    free(f.whole);
    free(f.same);
    return status;
}
