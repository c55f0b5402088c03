/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv2d.c - the convolution of x: [n, h, w, ci] with a kernel [kh, kw, ci /
 * groups, co] -> [n, ho, wo, co].
 *
 * It is a matrix product: the patches of x under the pixels of y, a row each,
 * times the kernel as a [kh kw ci, co] matrix, or the group's columns of it
 * (im2col; Chellapilla, Puri and Simard, 2006). It goes in blocks of pixels
 * whose patches and results stay in the second-level cache.
 *
 * SAME pads as TensorFlow does: as many zeros as give ceil(h / stride) rows,
 * the odd one below and to the right.
 */
#include "ops/products/conv2d.h"

#include <cblas.h>
#include <limits.h>
#include <string.h>

#include "base/error.h"

/* Half of the second-level cache of a small server core; blocks are of whole
 * strips, of 6 or 8 pixels. */
enum { BLOCK_BYTES = 256 << 10, STRIPS = 24, LEAST_BLOCK = 3 * STRIPS };

void ipu__conv_complete(struct ipu__conv *c)
{
    int64_t widest;

    c->cig = c->ci / c->groups;
    c->cog = c->co / c->groups;
    c->depth = c->kh * c->kw * c->cig;
    c->pixels = c->n * c->ho * c->wo;
    widest = c->depth > c->co ? c->depth : c->co;
    c->block = BLOCK_BYTES / (int64_t)sizeof(float) / (widest ? widest : 1) /
               STRIPS * STRIPS;
    if (c->block < LEAST_BLOCK)
        c->block = LEAST_BLOCK;
    if (c->block > c->pixels)
        c->block = c->pixels;
}

struct ipu__conv ipu__conv_of(const struct ipu__attributes *attributes,
                              const struct ipu__shape *x,
                              const struct ipu__shape *kernel,
                              const struct ipu__shape *y)
{
    struct ipu__conv c = {
        .n = x->extents[0],
        .h = x->extents[1],
        .w = x->extents[2],
        .ci = x->extents[3],
        .kh = kernel->extents[0],
        .kw = kernel->extents[1],
        .ho = y->extents[1],
        .wo = y->extents[2],
        .co = kernel->extents[3],
        .stride = {attributes->stride[0], attributes->stride[1]},
        .dilation = {attributes->dilation[0], attributes->dilation[1]},
        .groups = attributes->groups,
        .pad = {attributes->pad[0], attributes->pad[1]},
    };

    ipu__conv_complete(&c);
    return c;
}

size_t ipu__conv_scratch(const struct ipu__conv *conv)
{
    return (size_t)(conv->block * conv->depth) * sizeof(float);
}

/* ------------------------------------------------------------------ the op */

int64_t ipu__conv_span(int64_t kernel, int64_t dilation)
{
    return (kernel - 1) * dilation + 1;
}

/* The extent of y along one side; 0 if the kernel does not fit. */
static int64_t side(int64_t extent, int64_t kernel, int64_t stride,
                    int64_t padding)
{
    int64_t room = extent + padding - kernel;

    return room < 0 ? 0 : room / stride + 1;
}

int64_t ipu__conv_same_padding(int64_t extent, int64_t kernel, int64_t stride)
{
    int64_t wanted = ((extent + stride - 1) / stride - 1) * stride + kernel;

    return wanted > extent ? wanted - extent : 0;
}

/* Checks the facts that ipu_conv2d guarantees. Paddings are so small that
 * nothing computed of them overflows. */
static int check_attributes(const struct ipu__call *call)
{
    const struct ipu__attributes *a = call->attributes;
    bool sound = a->groups >= 1;

    for (int i = 0; i < 2; i++)
        sound &= a->stride[i] >= 1 && a->dilation[i] >= 1 && a->pad[i] >= 0 &&
                 a->pad_after[i] >= 0;
    return ipu__expect_true(call, sound);
}

static int check_channels(const struct ipu__call *call)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    const struct ipu__shape *kernel = &call->inputs[1].shape;
    int64_t groups = call->attributes->groups;

    if (x->extents[3] % groups || kernel->extents[3] % groups)
        return ipu__unfit(call, 0, 1,
                          "the channels of the images and of the kernel must "
                          "divide by the groups");
    if (x->extents[3] / groups != kernel->extents[2])
        return ipu__unfit(call, 0, 1,
                          groups == 1
                              ? "the kernel's third dimension must be the last "
                                "of the images"
                              : "the kernel's third dimension must be the last "
                                "of the images, divided by the groups");
    return IPU_OK;
}

int ipu__conv_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    const struct ipu__shape *kernel = &call->inputs[1].shape;
    const struct ipu__attributes *a = call->attributes;
    bool large = false;

    IPU_TRY(check_attributes(call));
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, 4, "[n, h, w, in]"));
    IPU_TRY(ipu__expect(call, 1, IPU_FLOAT32, 4, "[h, w, in, out]"));
    IPU_TRY(check_channels(call));
    if (kernel->extents[0] == 0 || kernel->extents[1] == 0)
        return ipu__unfit(call, 0, 1, "the kernel has no height or width");
    for (int i = 0; i < 4; i++)
        large |= kernel->extents[i] > INT_MAX;
    if (large ||
        kernel->extents[0] * kernel->extents[1] * kernel->extents[2] > INT_MAX)
        return ipu__unfit(call, 0, 1,
                          "OpenBLAS takes kernels of at most 2147483647 rows "
                          "or columns");
    *output = *x;
    for (int i = 0; i < 2; i++) {
        int64_t extent = x->extents[1 + i];
        int64_t k = ipu__conv_span(kernel->extents[i], a->dilation[i]);
        int64_t padding = a->size
                              ? ipu__conv_same_padding(extent, k, a->stride[i])
                              : (int64_t)a->pad[i] + a->pad_after[i];

        output->extents[1 + i] = side(extent, k, a->stride[i], padding);
        if (output->extents[1 + i] == 0)
            return ipu__unfit(call, 0, 1,
                              "the kernel is larger than the image; smaller, "
                              "or with options.same");
    }
    output->extents[3] = kernel->extents[3];
    return IPU_OK;
}

static struct ipu__conv conv_of(const struct ipu__call *call)
{
    return ipu__conv_of(call->attributes, &call->inputs[0].shape,
                        &call->inputs[1].shape, &call->output.shape);
}

static size_t scratch(const struct ipu__call *call)
{
    struct ipu__conv c = conv_of(call);

    return ipu__conv_is_depthwise(&c) ? 0 : ipu__conv_strips_scratch(&c);
}

/* Runs the convolution; done NULL: no callback. */
static int run_in_parts(const struct ipu__call *call, ipu__done *done,
                        void *context)
{
    const struct ipu__conv c = conv_of(call);
    float *y = call->output.data;

    if (c.depth == 0)
        memset(y, 0, ipu__shape_bytes(&call->output.shape));
    if (c.depth == 0 && done)
        done(context, 0, c.pixels * c.co);
    if (c.depth == 0 || c.co == 0)
        return IPU_OK;
    if (ipu__conv_is_depthwise(&c)) {
        ipu__depthwise(&c, call->inputs[0].data, call->inputs[1].data, y, done,
                       context);
        return IPU_OK;
    }
    if (ipu__conv_strips(&c, call->inputs[0].data,
                         &(struct ipu__conv_kernel){call->inputs[1].data, false,
                                                    call->packed},
                         y, call->scratch, done, context))
        return IPU_OK;
    for (int64_t first = 0; first < c.pixels; first += c.block) {
        int64_t count = first + c.block < c.pixels ? c.block : c.pixels - first;

        for (int64_t g = 0; g < c.groups; g++) {
            const float *kernel = call->inputs[1].data;

            ipu__conv_gather(&c, call->inputs[0].data, g, first, count,
                             call->scratch);
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)count,
                        (int)c.cog, (int)c.depth, 1, call->scratch,
                        (int)c.depth, kernel + g * c.cog, (int)c.co, 0,
                        y + first * c.co + g * c.cog, (int)c.co);
        }
        if (done)
            done(context, first * c.co, count * c.co);
    }
    return IPU_OK;
}

static int run(const struct ipu__call *call)
{
    return run_in_parts(call, NULL, NULL);
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor x = ipu__input(graph, node, 0);
    ipu_tensor kernel = ipu__input(graph, node, 1);
    struct ipu__attributes attributes = node->attributes;

    if (ipu__wanted(dx[0])) {
        attributes.shape = graph->tensors[node->inputs[0]].shape;
        dx[0] = ipu__add(graph, &ipu__conv2d_input_grad,
                         (const ipu_tensor[]){dy, kernel}, &attributes);
    }
    if (ipu__wanted(dx[1])) {
        attributes.shape = graph->tensors[node->inputs[1]].shape;
        dx[1] = ipu__add(graph, &ipu__conv2d_kernel_grad,
                         (const ipu_tensor[]){x, dy}, &attributes);
    }
}

void ipu__conv_cost(const struct ipu__conv *c, int64_t in, int64_t out,
                    struct ipu__work *work)
{
    work->kind = IPU__WORK_PRODUCT;
    work->product = (ipu_product){
        .batch = c->groups,
        .m = c->pixels,
        .k = in,
        .n = out,
        .kernel = {(int32_t)c->kh, (int32_t)c->kw},
        .stride = {(int32_t)c->stride[0], (int32_t)c->stride[1]},
        .grouped = c->groups > 1,
    };
}

static void cost(const struct ipu__call *call, struct ipu__work *work)
{
    const struct ipu__conv c = conv_of(call);

    ipu__conv_cost(&c, c.cig, c.cog, work);
}

const struct ipu__op ipu__conv2d = {
    .name = "conv2d",
    .ninputs = 2,
    .product = IPU__CONVOLUTION,
    .shape = ipu__conv_shape,
    .scratch = scratch,
    .run = run,
    .run_in_parts = run_in_parts,
    .cost = cost,
    .gradient = gradient,
};
