/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv2d.c - the convolution of x: [n, h, w, ci] with a kernel
 * [kh, kw, ci, co] -> [n, ho, wo, co].
 *
 * As a matrix product: the patches of x under the pixels of y, a row each,
 * times the kernel as a [kh kw ci, co] matrix (im2col; Chellapilla, Puri and
 * Simard, 2006). Not of all pixels at once: in blocks whose patches and
 * results stay in the second-level cache.
 *
 * SAME pads as TensorFlow does: as many zeros as give ceil(h / stride) rows,
 * the odd one below and to the right.
 */
#include "ops/conv2d.h"

#include <cblas.h>
#include <limits.h>
#include <string.h>

#include "graph/error.h"

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
        .pad = {attributes->pad[0], attributes->pad[1]},
    };
    int64_t widest;

    c.depth = c.kh * c.kw * c.ci;
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

/* To the next pixel: a division for each would take as long as its patch. */
static void advance(const struct ipu__conv *c, struct place *p)
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

/* Of row y of a patch, which columns [from, to) are inside x; none: from ==
 * to. */
static const float *inside(const struct ipu__conv *c, const float *x,
                           const struct place *p, int64_t ky, int64_t *from,
                           int64_t *to)
{
    int64_t y = p->top + ky;

    *from = p->left < 0 ? -p->left : 0;
    *to = p->left + c->kw > c->w ? c->w - p->left : c->kw;
    if (y < 0 || y >= c->h || *to < *from)
        *from = *to = 0;
    return x + ((p->image * c->h + y) * c->w + p->left) * c->ci;
}

void ipu__conv_gather(const struct ipu__conv *c, const float *x, int64_t first,
                      int64_t count, float *patches)
{
    int64_t width = c->kw * c->ci;
    struct place p = place_of(c, first);

    for (int64_t i = 0; i < count; i++, advance(c, &p)) {
        for (int64_t ky = 0; ky < c->kh; ky++, patches += width) {
            int64_t from, to;
            const float *row = inside(c, x, &p, ky, &from, &to);

            from *= c->ci;
            to *= c->ci;
            for (int64_t k = 0; k < from; k++)
                patches[k] = 0;
            for (int64_t k = from; k < to; k++)
                patches[k] = row[k];
            for (int64_t k = to; k < width; k++)
                patches[k] = 0;
        }
    }
}

void ipu__conv_scatter(const struct ipu__conv *c, float *x, int64_t first,
                       int64_t count, const float *patches)
{
    struct place p = place_of(c, first);

    for (int64_t i = 0; i < count; i++, advance(c, &p)) {
        for (int64_t ky = 0; ky < c->kh; ky++, patches += c->kw * c->ci) {
            int64_t from, to;
            float *row = x + (inside(c, x, &p, ky, &from, &to) - x);

            for (int64_t k = from * c->ci; k < to * c->ci; k++)
                row[k] += patches[k];
        }
    }
}

/* ------------------------------------------------------------------ the op */

/* The extent of y along one side; 0 if the kernel does not fit. */
static int64_t side(int64_t extent, int64_t kernel, int64_t stride,
                    int64_t padding)
{
    int64_t room = extent + padding - kernel;

    return room < 0 ? 0 : room / stride + 1;
}

/* All zeros of a SAME convolution along one side. */
static int64_t same_padding(int64_t extent, int64_t kernel, int64_t stride)
{
    int64_t wanted = ((extent + stride - 1) / stride - 1) * stride + kernel;

    return wanted > extent ? wanted - extent : 0;
}

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    const struct ipu__shape *kernel = &call->inputs[1].shape;
    const struct ipu__attributes *a = call->attributes;

    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, 4, "[n, h, w, in]"));
    IPU_TRY(ipu__expect(call, 1, IPU_FLOAT32, 4, "[h, w, in, out]"));
    if (x->extents[3] != kernel->extents[2])
        return ipu__unfit(call, 0, 1,
                          "the kernel's third dimension must be the last of "
                          "the images");
    if (kernel->extents[0] == 0 || kernel->extents[1] == 0)
        return ipu__unfit(call, 0, 1, "the kernel has no height or width");
    if (kernel->extents[3] > INT_MAX ||
        kernel->extents[0] * kernel->extents[1] * kernel->extents[2] > INT_MAX)
        return ipu__unfit(call, 0, 1,
                          "OpenBLAS takes kernels of at most 2147483647 rows "
                          "or columns");
    *output = *x;
    for (int i = 0; i < 2; i++) {
        int64_t extent = x->extents[1 + i], k = kernel->extents[i];
        int64_t padding = a->size ? same_padding(extent, k, a->stride[i]) : 0;

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

static int run(const struct ipu__call *call)
{
    const struct ipu__conv c = conv_of(call);
    float *y = call->output.data;

    if (c.depth == 0)
        memset(y, 0, ipu__shape_bytes(&call->output.shape));
    if (c.depth == 0 || c.co == 0)
        return IPU_OK;
    for (int64_t first = 0; first < c.pixels; first += c.block) {
        int64_t count = first + c.block < c.pixels ? c.block : c.pixels - first;

        ipu__conv_gather(&c, call->inputs[0].data, first, count, call->scratch);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)count,
                    (int)c.co, (int)c.depth, 1, call->scratch, (int)c.depth,
                    call->inputs[1].data, (int)c.co, 0, y + first * c.co,
                    (int)c.co);
    }
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     const bool *needed, ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor x = ipu__handle(graph, node->inputs[0]);
    ipu_tensor kernel = ipu__handle(graph, node->inputs[1]);
    struct ipu__attributes attributes = node->attributes;

    if (needed[node->inputs[0]]) {
        attributes.shape = graph->tensors[node->inputs[0]].shape;
        dx[0] = ipu__add(graph, &ipu__conv2d_input_grad,
                         (const ipu_tensor[]){dy, kernel}, &attributes);
    }
    if (needed[node->inputs[1]]) {
        attributes.shape = graph->tensors[node->inputs[1]].shape;
        dx[1] = ipu__add(graph, &ipu__conv2d_kernel_grad,
                         (const ipu_tensor[]){x, dy}, &attributes);
    }
}

const struct ipu__op ipu__conv2d = {
    .name = "conv2d",
    .ninputs = 2,
    .in_place = -1,
    .shape = shape,
    .scratch = scratch,
    .run = run,
    .gradient = gradient,
};

static int check_options(const ipu_conv_options *options)
{
    if (options->size < sizeof *options)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "conv2d: the options' size is %u, not %zu: set it",
                         (unsigned)options->size, sizeof *options);
    for (int i = 0; i < 2; i++)
        if (options->stride[i] < 1)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "conv2d: stride %d, it must be at least 1",
                             (int)options->stride[i]);
    return IPU_OK;
}

ipu_tensor ipu_conv2d(ipu_graph *graph, ipu_tensor x, ipu_tensor kernel,
                      const ipu_conv_options *options)
{
    const ipu_conv_options plain = {.size = sizeof plain, .stride = {1, 1}};
    const ipu_conv_options *o = options ? options : &plain;
    struct ipu__attributes attributes = {.size = o->same};
    int status = check_options(o);
    int32_t ix, ik;

    if (status < 0)
        return ipu__invalid(graph, status);
    for (int i = 0; i < 2; i++)
        attributes.stride[i] = o->stride[i];
    if (o->same && graph && graph->status == IPU_OK) {
        ix = ipu__index(graph, x);
        ik = ipu__index(graph, kernel);
        for (int i = 0; i < 2 && ix >= 0 && ik >= 0; i++)
            attributes.pad[i] =
                (int32_t)(same_padding(graph->tensors[ix].shape.extents[1 + i],
                                       graph->tensors[ik].shape.extents[i],
                                       o->stride[i]) /
                          2);
    }
    return ipu__add(graph, &ipu__conv2d, (const ipu_tensor[]){x, kernel},
                    &attributes);
}
