/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv2d.h - shared by the convolution and its two derivatives.
 */
#ifndef IPU_OPS_CONV2D_H
#define IPU_OPS_CONV2D_H

#include "ops/op.h"

struct ipu__conv {
    int64_t n, h, w, ci; /* x */
    int64_t kh, kw;      /* kernel */
    int64_t ho, wo, co;  /* y */
    int64_t stride[2];
    int64_t dilation[2];
    int64_t pad[2]; /* above, to the left */
    int64_t groups;
    int64_t cig, cog; /* channels of x and of y in a group */
    int64_t depth;    /* elements of one patch: kh * kw * cig */
    int64_t pixels;   /* of y, over all images */
    int64_t block;    /* pixels worked on at a time */
};

/* Rows or columns that a kernel spans. */
int64_t ipu__conv_span(int64_t kernel, int64_t dilation);
/* Returns all zeros of a SAME convolution along one side; span is the
 * kernel's. */
int64_t ipu__conv_same_padding(int64_t extent, int64_t span, int64_t stride);

/* x, kernel -> y */
int ipu__conv_shape(const struct ipu__call *call, struct ipu__shape *output);

struct ipu__conv ipu__conv_of(const struct ipu__attributes *attributes,
                              const struct ipu__shape *x,
                              const struct ipu__shape *kernel,
                              const struct ipu__shape *y);

/* Sets what follows from the extents: from cig on. */
void ipu__conv_complete(struct ipu__conv *conv);

/* Bytes of the patches of one block. */
size_t ipu__conv_scratch(const struct ipu__conv *conv);

/* patches: [count, depth], those of a group of x's channels under the pixels
 * from first on. */
void ipu__conv_gather(const struct ipu__conv *conv, const float *x,
                      int64_t group, int64_t first, int64_t count,
                      float *patches);
/* The inverse, added to x. */
void ipu__conv_scatter(const struct ipu__conv *conv, float *x, int64_t group,
                       int64_t first, int64_t count, const float *patches);

/* A patch in memory: its first row, and the number of elements from the start
 * of one row to that of the next. */
struct ipu__conv_patch {
    const float *data;
    int64_t pitch;
};

/* Returns whether the elements of one row of a patch lie one after the other in
 * x. If not, all patches have to be gathered. */
bool ipu__conv_is_segmented(const struct ipu__conv *conv);

/* Finds the patches of a group under count pixels. Those that lie in x as a
 * segment for each row stay there; the others are gathered. patches: [count,
 * depth]. */
void ipu__conv_find(const struct ipu__conv *conv, const float *x, int64_t group,
                    int64_t first, int64_t count, float *patches,
                    struct ipu__conv_patch *found);

/* ---------------------------------------------------------------- in strips */

/* Sets *mirrored to the convolution of dy that makes dx, with the kernel
 * mirrored and transposed. Returns false if there is none: the stride is not 1,
 * or a padding exceeds the kernel. */
bool ipu__conv_mirror(const struct ipu__conv *conv, struct ipu__conv *mirrored);

/* Bytes of scratch of the next function. */
size_t ipu__conv_strips_scratch(const struct ipu__conv *conv);

struct ipu__conv_kernel {
    const float *data;
    bool mirrored; /* the convolution is what ipu__conv_mirror made, and the
                      kernel that of the original */
    struct ipu__packed *packed; /* where it may be kept in panels; NULL: nowhere
                                 */
};

/* Computes y with the strips of the set in use. done NULL: no callback. Returns
 * false if this set has no strips: nothing is done. */
bool ipu__conv_strips(const struct ipu__conv *conv, const float *x,
                      const struct ipu__conv_kernel *kernel, float *y,
                      void *scratch, ipu__done *done, void *context);

/* The same for dkernel: the patches of x, transposed, times dy. Returns false,
 * and does nothing, too if a row of a patch has too few elements. */
size_t ipu__conv_strips_grad_scratch(const struct ipu__conv *conv);
bool ipu__conv_strips_grad(const struct ipu__conv *conv, const float *x,
                           const float *dy, float *dkernel, void *scratch);

/* ---------------------------------------------------------------- depthwise */

/* Returns whether each channel of y is made of one of x, and the other way
 * round. */
static inline bool ipu__conv_is_depthwise(const struct ipu__conv *conv)
{
    return conv->cig == 1 && conv->cog == 1 && conv->groups > 1;
}

/* Compute y and both derivatives of a depthwise convolution. done NULL: no
 * callback. */
void ipu__depthwise(const struct ipu__conv *conv, const float *x,
                    const float *kernel, float *y, ipu__done *done,
                    void *context);
void ipu__depthwise_input_grad(const struct ipu__conv *conv, const float *dy,
                               const float *kernel, float *dx, ipu__done *done,
                               void *context);
void ipu__depthwise_kernel_grad(const struct ipu__conv *conv, const float *x,
                                const float *dy, float *dkernel);

/* Sets as many products as the convolution has, from in channels of a group to
 * out. */
void ipu__conv_cost(const struct ipu__conv *conv, int64_t in, int64_t out,
                    struct ipu__work *work);

#endif
