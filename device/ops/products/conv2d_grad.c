/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv2d_grad.c - the derivatives of the convolution, from the same patches:
 *
 *     dkernel = patches' dy           added up over the blocks
 *     dx     += scatter(dy kernel')   block by block
 */
#include <cblas.h>
#include <string.h>

#include "base/error.h"
#include "ops/products/conv2d.h"

/* The attributes' shape; the convolution of x and kernel, one of which is of
 * that shape, makes one like dy. */
static int check_shapes(const struct ipu__call *call,
                        const struct ipu__shape *x,
                        const struct ipu__shape *kernel,
                        const struct ipu__shape *dy, struct ipu__shape *output)
{
    struct ipu__call forward = *call;
    struct ipu__shape y;

    forward.inputs[0].shape = *x;
    forward.inputs[1].shape = *kernel;
    *output = call->attributes->shape;
    output->dtype = IPU_FLOAT32;
    IPU_TRY(ipu__conv_shape(&forward, &y));
    return ipu__expect_true(call, ipu__shape_equal(&y, dy));
}

static int input_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    struct ipu__shape x = call->attributes->shape;

    x.dtype = IPU_FLOAT32;
    return check_shapes(call, &x, &call->inputs[1].shape,
                        &call->inputs[0].shape, output);
}

static int kernel_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    struct ipu__shape kernel = call->attributes->shape;

    kernel.dtype = IPU_FLOAT32;
    return check_shapes(call, &call->inputs[0].shape, &kernel,
                        &call->inputs[1].shape, output);
}

/* dy, kernel -> dx */
static struct ipu__conv input_conv(const struct ipu__call *call)
{
    return ipu__conv_of(call->attributes, &call->attributes->shape,
                        &call->inputs[1].shape, &call->inputs[0].shape);
}

static size_t input_scratch(const struct ipu__call *call)
{
    struct ipu__conv c = input_conv(call), m;
    size_t bytes = ipu__conv_scratch(&c), strips;

    if (ipu__conv_is_depthwise(&c))
        return 0;
    if (!ipu__conv_mirror(&c, &m))
        return bytes;
    strips = ipu__conv_strips_scratch(&m);
    return strips > bytes ? strips : bytes;
}

static int64_t block_at(const struct ipu__conv *c, int64_t first)
{
    return first + c->block < c->pixels ? c->block : c->pixels - first;
}

/* Block by block, by OpenBLAS. */
static void scatter_products(const struct ipu__conv *c, const float *dy,
                             const float *kernel, float *dx, float *patches)
{
    for (int64_t first = 0; first < c->pixels; first += c->block) {
        int64_t count = block_at(c, first);

        for (int64_t g = 0; g < c->groups; g++) {
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)count,
                        (int)c->depth, (int)c->cog, 1,
                        dy + first * c->co + g * c->cog, (int)c->co,
                        kernel + g * c->cog, (int)c->co, 0, patches,
                        (int)c->depth);
            ipu__conv_scatter(c, dx, g, first, count, patches);
        }
    }
}

/* Makes dx; done NULL: no callback. Patches that are scattered overlap, so then
 * it is complete as a whole. */
static int run_input_in_parts(const struct ipu__call *call, ipu__done *done,
                              void *context)
{
    const struct ipu__conv c = input_conv(call);
    const float *dy = call->inputs[0].data, *kernel = call->inputs[1].data;
    float *dx = call->output.data;
    bool some = c.depth > 0 && c.co > 0;
    struct ipu__conv m;

    if (some && ipu__conv_is_depthwise(&c)) {
        ipu__depthwise_input_grad(&c, dy, kernel, dx, done, context);
        return IPU_OK;
    }
    if (some && ipu__conv_mirror(&c, &m) &&
        ipu__conv_strips(&m, dy,
                         &(struct ipu__conv_kernel){kernel, true, call->packed},
                         dx, call->scratch, done, context))
        return IPU_OK;
    memset(dx, 0, ipu__shape_bytes(&call->output.shape));
    if (some)
        scatter_products(&c, dy, kernel, dx, call->scratch);
    if (done)
        done(context, 0, ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

static int run_input(const struct ipu__call *call)
{
    return run_input_in_parts(call, NULL, NULL);
}

static void input_cost(const struct ipu__call *call, struct ipu__work *work)
{
    const struct ipu__conv c = input_conv(call);

    ipu__conv_cost(&c, c.cog, c.cig, work);
}

/* Both derivatives are linear in each input, and each other's and the
 * convolution's derivatives: so all have derivatives of any order. */
static void input_gradient(ipu_graph *graph, const struct ipu__node *node,
                           ipu_tensor g, ipu_tensor *dx)
{
    struct ipu__attributes attributes = node->attributes;
    ipu_tensor dy = ipu__input(graph, node, 0);
    ipu_tensor kernel = ipu__input(graph, node, 1);

    attributes.shape = (struct ipu__shape){0};
    if (ipu__wanted(dx[0]))
        dx[0] = ipu__add(graph, &ipu__conv2d, (const ipu_tensor[]){g, kernel},
                         &attributes);
    attributes.shape = graph->tensors[node->inputs[1]].shape;
    if (ipu__wanted(dx[1]))
        dx[1] = ipu__add(graph, &ipu__conv2d_kernel_grad,
                         (const ipu_tensor[]){g, dy}, &attributes);
}

static void kernel_gradient(ipu_graph *graph, const struct ipu__node *node,
                            ipu_tensor g, ipu_tensor *dx)
{
    struct ipu__attributes attributes = node->attributes;
    ipu_tensor x = ipu__input(graph, node, 0);
    ipu_tensor dy = ipu__input(graph, node, 1);

    attributes.shape = graph->tensors[node->inputs[0]].shape;
    if (ipu__wanted(dx[0]))
        dx[0] = ipu__add(graph, &ipu__conv2d_input_grad,
                         (const ipu_tensor[]){dy, g}, &attributes);
    attributes.shape = (struct ipu__shape){0};
    if (ipu__wanted(dx[1]))
        dx[1] = ipu__add(graph, &ipu__conv2d, (const ipu_tensor[]){x, g},
                         &attributes);
}

const struct ipu__op ipu__conv2d_input_grad = {
    .name = "conv2d_input_grad",
    .ninputs = 2,
    .product = IPU__CONVOLUTION,
    .shape = input_shape,
    .scratch = input_scratch,
    .run = run_input,
    .run_in_parts = run_input_in_parts,
    .cost = input_cost,
    .gradient = input_gradient,
};

/* x, dy -> dkernel */
static struct ipu__conv kernel_conv(const struct ipu__call *call)
{
    return ipu__conv_of(call->attributes, &call->inputs[0].shape,
                        &call->attributes->shape, &call->inputs[1].shape);
}

static size_t kernel_scratch(const struct ipu__call *call)
{
    struct ipu__conv c = kernel_conv(call);

    return ipu__conv_is_depthwise(&c) ? 0 : ipu__conv_strips_grad_scratch(&c);
}

static int run_kernel(const struct ipu__call *call)
{
    const struct ipu__conv c = kernel_conv(call);
    const float *dy = call->inputs[1].data;
    float *dkernel = call->output.data;

    memset(call->output.data, 0, ipu__shape_bytes(&call->output.shape));
    if (c.depth == 0 || c.co == 0)
        return IPU_OK;
    if (ipu__conv_is_depthwise(&c)) {
        ipu__depthwise_kernel_grad(&c, call->inputs[0].data, dy, dkernel);
        return IPU_OK;
    }
    if (ipu__conv_strips_grad(&c, call->inputs[0].data, dy, dkernel,
                              call->scratch))
        return IPU_OK;
    for (int64_t first = 0; first < c.pixels; first += c.block) {
        int64_t count = block_at(&c, first);

        for (int64_t g = 0; g < c.groups; g++) {
            ipu__conv_gather(&c, call->inputs[0].data, g, first, count,
                             call->scratch);
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)c.depth,
                        (int)c.cog, (int)count, 1, call->scratch, (int)c.depth,
                        dy + first * c.co + g * c.cog, (int)c.co, 1,
                        dkernel + g * c.cog, (int)c.co);
        }
    }
    return IPU_OK;
}

static void kernel_cost(const struct ipu__call *call, struct ipu__work *work)
{
    const struct ipu__conv c = kernel_conv(call);

    ipu__conv_cost(&c, c.cig, c.cog, work);
    work->product.m = c.cig;
    work->product.k = c.pixels;
    work->product.of_kernel = 1;
}

const struct ipu__op ipu__conv2d_kernel_grad = {
    .name = "conv2d_kernel_grad",
    .ninputs = 2,
    .product = IPU__CONVOLUTION,
    .shape = kernel_shape,
    .scratch = kernel_scratch,
    .run = run_kernel,
    .cost = kernel_cost,
    .gradient = kernel_gradient,
};
