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

/* Half of the second-level cache of a small server core. */
enum { BLOCK_BYTES = 256 << 10, LEAST_BLOCK = 64 };

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
    int64_t widest;

    c.cig = c.ci / c.groups;
    c.cog = c.co / c.groups;
    c.depth = c.kh * c.kw * c.cig;
    c.pixels = c.n * c.ho * c.wo;
    widest = c.depth > c.co ? c.depth : c.co;
    c.block = BLOCK_BYTES / (int64_t)sizeof(float) / (widest ? widest : 1);
    if (c.block < LEAST_BLOCK)
        c.block = LEAST_BLOCK;
    if (c.block > c.pixels)
        c.block = c.pixels;
    return c;
}

size_t ipu__conv_scratch(const struct ipu__conv *conv)
{
    return (size_t)(conv->block * conv->depth) * sizeof(float);
}

/* A pixel of y, and where its patch starts in x, which may be outside. */
struct place {
    int64_t image, row, column;
    int64_t top, left;
};

static void find_patch(const struct ipu__conv *c, struct place *p)
{
    p->top = p->row * c->stride[0] - c->pad[0];
    p->left = p->column * c->stride[1] - c->pad[1];
}

static struct place place_of(const struct ipu__conv *c, int64_t pixel)
{
    struct place p = {
        .image = pixel / c->wo / c->ho,
        .row = pixel / c->wo % c->ho,
        .column = pixel % c->wo,
    };

    find_patch(c, &p);
    return p;
}

/* Goes to the next pixel: a division for each would take as long as its
 * patch. */
static void next_pixel(const struct ipu__conv *c, struct place *p)
{
    if (++p->column == c->wo) {
        p->column = 0;
        if (++p->row == c->ho) {
            p->row = 0;
            p->image++;
        }
    }
    find_patch(c, p);
}

/* Steps that go at least so far. Dividing takes longer than a patch's row does
 * to copy, and nearly all steps are 1. */
static inline int64_t steps_over(int64_t distance, int64_t step)
{
    return step == 1 ? distance : (distance + step - 1) / step;
}

/* Sets [from, to) to the columns of the kernel that are inside x in row ky of a
 * patch; none: from == to. Returns the row of x, from the patch's first column
 * on. */
static inline const float *inside(const struct ipu__conv *c, const float *x,
                                  const struct place *p, int64_t ky,
                                  int64_t *from, int64_t *to)
{
    int64_t y = p->top + ky * c->dilation[0], step = c->dilation[1];
    int64_t room = c->w - p->left; /* columns from the first on */

    *from = p->left < 0 ? steps_over(-p->left, step) : 0;
    *to = room < 1 ? 0 : steps_over(room, step);
    if (*to > c->kw)
        *to = c->kw;
    if (y < 0 || y >= c->h || *to < *from)
        *from = *to = 0;
    return x + ((p->image * c->h + y) * c->w + p->left) * c->ci;
}

/* Gathers one row of a patch whose elements lie one after the other in x. */
static void gather_dense(float *patch, const float *row, int64_t from,
                         int64_t to, int64_t width)
{
    for (int64_t k = 0; k < from; k++)
        patch[k] = 0;
    for (int64_t k = from; k < to; k++)
        patch[k] = row[k];
    for (int64_t k = to; k < width; k++)
        patch[k] = 0;
}

/* Gathers a patch that has only some channels of some columns. */
static void gather_sparse(const struct ipu__conv *c, float *patch,
                          const float *row, int64_t from, int64_t to)
{
    for (int64_t kx = 0; kx < c->kw; kx++, patch += c->cig)
        if (kx >= from && kx < to)
            memcpy(patch, row + kx * c->dilation[1] * c->ci,
                   (size_t)c->cig * sizeof *patch);
        else
            memset(patch, 0, (size_t)c->cig * sizeof *patch);
}

static bool is_dense(const struct ipu__conv *c)
{
    return c->groups == 1 && c->dilation[1] == 1;
}

/* Returns whether no patch reaches over an edge. */
static bool is_inside(const struct ipu__conv *c)
{
    return c->pad[0] == 0 && c->pad[1] == 0 &&
           (c->ho - 1) * c->stride[0] + (c->kh - 1) * c->dilation[0] < c->h &&
           (c->wo - 1) * c->stride[1] + (c->kw - 1) * c->dilation[1] < c->w;
}

/* Rows of patches that are dense and inside: nothing to find out for each.
 * width is 3 in the first layer of most networks of grey images. */
static void gather_inside(const struct ipu__conv *c, const float *x,
                          int64_t first, int64_t count, float *patches)
{
    int64_t width = c->kw * c->ci, pitch = c->dilation[0] * c->w * c->ci;
    struct place p = place_of(c, first);

    for (int64_t i = 0; i < count; i++, next_pixel(c, &p)) {
        const float *row =
            x + ((p.image * c->h + p.top) * c->w + p.left) * c->ci;

        for (int64_t ky = 0; ky < c->kh; ky++, patches += width, row += pitch)
            if (width == 3) {
                patches[0] = row[0];
                patches[1] = row[1];
                patches[2] = row[2];
            } else {
                memcpy(patches, row, (size_t)width * sizeof *patches);
            }
    }
}

void ipu__conv_gather(const struct ipu__conv *c, const float *x, int64_t group,
                      int64_t first, int64_t count, float *patches)
{
    int64_t width = c->kw * c->cig;
    struct place p = place_of(c, first);

    if (is_dense(c) && is_inside(c)) {
        gather_inside(c, x, first, count, patches);
        return;
    }
    for (int64_t i = 0; i < count; i++, next_pixel(c, &p)) {
        for (int64_t ky = 0; ky < c->kh; ky++, patches += width) {
            int64_t from, to;
            const float *row = inside(c, x, &p, ky, &from, &to);

            if (is_dense(c))
                gather_dense(patches, row, from * c->ci, to * c->ci, width);
            else
                gather_sparse(c, patches, row + group * c->cig, from, to);
        }
    }
}

void ipu__conv_scatter(const struct ipu__conv *c, float *x, int64_t group,
                       int64_t first, int64_t count, const float *patches)
{
    struct place p = place_of(c, first);

    for (int64_t i = 0; i < count; i++, next_pixel(c, &p)) {
        for (int64_t ky = 0; ky < c->kh; ky++, patches += c->kw * c->cig) {
            int64_t from, to;
            float *row = x + (inside(c, x, &p, ky, &from, &to) - x);

            if (is_dense(c)) {
                for (int64_t k = from * c->ci; k < to * c->ci; k++)
                    row[k] += patches[k];
                continue;
            }
            row += group * c->cig;
            for (int64_t kx = from; kx < to; kx++)
                for (int64_t k = 0; k < c->cig; k++)
                    row[kx * c->dilation[1] * c->ci + k] +=
                        patches[kx * c->cig + k];
        }
    }
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

    return ipu__conv_scratch(&c);
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
