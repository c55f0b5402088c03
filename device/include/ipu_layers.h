/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_layers.h - the ops that networks are made of. More of them are in
 * ipu_ops.h. ipu.h includes it, and says what holds for all of them: shapes,
 * dtypes, failures, threads.
 */
#ifndef IPU_H
#include "ipu.h" /* which comes back here once it has said what this needs */
#elif !defined(IPU_LAYERS_H)
#define IPU_LAYERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------- ops */

typedef struct ipu_conv_options {
    uint32_t size;       /* sizeof(ipu_conv_options) */
    int32_t stride[2];   /* height, width; 1, 1 */
    int32_t same;        /* 0: padding as below; 1: SAME, as TensorFlow pads */
    int32_t dilation[2]; /* between the kernel's elements; 0 is 1: none */
    int32_t groups;      /* of channels, each by itself; 0 is 1 */
    int32_t padding[4];  /* zeros above, below, left, right; VALID has none */
} ipu_conv_options;

/* x: [n, h, w, ci], kernel: [kh, kw, ci / groups, co] -> [n, ho, wo, co].
 * Group g makes co / groups of the output's channels, from number g * co /
 * groups on, of ci / groups of the input's. options NULL: stride 1, VALID. */
ipu_tensor ipu_conv2d(ipu_graph *graph, ipu_tensor x, ipu_tensor kernel,
                      const ipu_conv_options *options);

/* x: [n, h, w, c] -> [n, h/size, w/size, c]; windows of size x size, stride
 * size, incomplete windows at the edge dropped (VALID). The gradient goes to
 * the first maximum of a window. */
ipu_tensor ipu_max_pool2d(ipu_graph *graph, ipu_tensor x, int32_t size);

/* The same with the mean of each window. */
ipu_tensor ipu_avg_pool2d(ipu_graph *graph, ipu_tensor x, int32_t size);

typedef struct ipu_pool_options {
    uint32_t size;      /* sizeof(ipu_pool_options) */
    int32_t window[2];  /* height, width */
    int32_t stride[2];  /* 0: as the window */
    int32_t same;       /* 0: padding as below; 1: SAME, as TensorFlow pads */
    int32_t padding[4]; /* above, below, left, right; each less than the
                           window; VALID has none */
    int32_t count_padding; /* of a mean: 1: padding counts as zeros; 0: only
                              what there is counts */
} ipu_pool_options;

/* The same of any windows, which may overlap. Padding is never the largest. */
ipu_tensor ipu_max_pool2d_with(ipu_graph *graph, ipu_tensor x,
                               const ipu_pool_options *options);
ipu_tensor ipu_avg_pool2d_with(ipu_graph *graph, ipu_tensor x,
                               const ipu_pool_options *options);

/* x: [m, k], w: [k, n] -> [m, n]; and as ipu_batch_matmul, not transposed */
ipu_tensor ipu_matmul(ipu_graph *graph, ipu_tensor x, ipu_tensor w);

/* a: [..., m, k], b: [..., k, n] -> [..., m, n]: a product for each of the
 * leading dimensions, which must be equal, or one of the two is a single
 * matrix. transpose: a is [..., k, m], b is [..., n, k]. */
ipu_tensor ipu_batch_matmul(ipu_graph *graph, ipu_tensor a, ipu_tensor b,
                            int32_t transpose_a, int32_t transpose_b);

/* qkv: [batch, t, 3 c], the queries, keys and values of all heads, those of
 * head i in columns i * c / heads of each -> [batch, t, c]: for each head,
 * softmax(q k' / sqrt(c / heads)) v. causal: row i sees rows 0 to i only. */
ipu_tensor ipu_attention(ipu_graph *graph, ipu_tensor qkv, int32_t heads,
                         int32_t causal);

/* x: [..., n], bias: [n] -> [..., n] */
ipu_tensor ipu_bias_add(ipu_graph *graph, ipu_tensor x, ipu_tensor bias);

/* max(x, 0), of NaN NaN; the gradient at 0 is 0 */
ipu_tensor ipu_relu(ipu_graph *graph, ipu_tensor x);

/* The same elements in another shape. One extent may be -1. */
ipu_tensor ipu_reshape(ipu_graph *graph, ipu_tensor x, int32_t ndim,
                       const int64_t *shape);

/* Dimension i of the result is dimension axes[i] of x; negative ones count from
 * the last. axes NULL: the last first. */
ipu_tensor ipu_transpose(ipu_graph *graph, ipu_tensor x, const int32_t *axes);

/* The part of x that has sizes[i] elements from number starts[i] on, in each
 * dimension i; a size of -1 is all that follow. */
ipu_tensor ipu_slice(ipu_graph *graph, ipu_tensor x, const int64_t *starts,
                     const int64_t *sizes);

/* x with before[i] and after[i] elements of value added in dimension i. */
ipu_tensor ipu_pad(ipu_graph *graph, ipu_tensor x, const int64_t *before,
                   const int64_t *after, double value);

/* count tensors one after the other along an axis; their other dimensions are
 * the same. */
ipu_tensor ipu_concat(ipu_graph *graph, int32_t count,
                      const ipu_tensor *tensors, int32_t axis);

/* exp(x) over its sum in each row of the last dimension, and its logarithm. */
ipu_tensor ipu_softmax(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_log_softmax(ipu_graph *graph, ipu_tensor x);

/* logits: [..., classes] float32, labels: [...] int32 -> [...] float32, the
 * loss of each row. A label outside [0, classes) fails the run: IPU_ERR_DATA,
 * naming row and label. */
ipu_tensor ipu_softmax_cross_entropy(ipu_graph *graph, ipu_tensor logits,
                                     ipu_tensor labels);

/* The mean of the squares of all differences -> scalar. */
ipu_tensor ipu_mean_squared_error(ipu_graph *graph, ipu_tensor x,
                                  ipu_tensor target);

/*
 * (x - mean) / sqrt(variance + epsilon) * scale + offset.
 *
 * layer_norm: the mean is over the last dimensions, those of scale and offset.
 * group_norm: x: [n, ..., channels], scale, offset: [channels]; over all but n,
 * for each of the groups of channels by itself. batch_norm: over all but the
 * channels; with each run the running statistics, variables of [channels],
 * become momentum * themselves + (1 - momentum) * those of the batch (of the
 * variance, the estimate without bias). The inference takes them instead. They
 * may be float32 where x is of halves.
 */
ipu_tensor ipu_layer_norm(ipu_graph *graph, ipu_tensor x, ipu_tensor scale,
                          ipu_tensor offset, double epsilon);
ipu_tensor ipu_group_norm(ipu_graph *graph, ipu_tensor x, int32_t groups,
                          ipu_tensor scale, ipu_tensor offset, double epsilon);
ipu_tensor ipu_batch_norm(ipu_graph *graph, ipu_tensor x, ipu_tensor scale,
                          ipu_tensor offset, ipu_tensor running_mean,
                          ipu_tensor running_variance, double momentum,
                          double epsilon);
ipu_tensor ipu_batch_norm_inference(ipu_graph *graph, ipu_tensor x,
                                    ipu_tensor scale, ipu_tensor offset,
                                    ipu_tensor running_mean,
                                    ipu_tensor running_variance,
                                    double epsilon);

/*
 * gather: elements of x along an axis by their numbers, an int32 tensor whose
 * dimensions take the place of the axis; embedding: rows of a table, axis 0.
 * scatter_add: x, with updates added to the elements that the numbers name
 * (several times, if they are named several times); updates are as gather
 * would give. A number out of range fails the run: IPU_ERR_DATA.
 */
ipu_tensor ipu_gather(ipu_graph *graph, ipu_tensor x, ipu_tensor indices,
                      int32_t axis);
ipu_tensor ipu_embedding(ipu_graph *graph, ipu_tensor table,
                         ipu_tensor indices);
ipu_tensor ipu_scatter_add(ipu_graph *graph, ipu_tensor x, ipu_tensor indices,
                           ipu_tensor updates, int32_t axis);

/* The number of the largest along an axis, int32; the first of several; of a
 * NaN, if there is one. */
ipu_tensor ipu_argmax(ipu_graph *graph, ipu_tensor x, int32_t axis);

/* x: [...] int32 -> [..., depth] float32, 1 at the number, 0 elsewhere; a
 * number out of range gives zeros only. */
ipu_tensor ipu_one_hot(ipu_graph *graph, ipu_tensor x, int32_t depth);

/* To another dtype. To int32: towards 0; what is out of range becomes the
 * nearest that is not, NaN becomes 0. */
ipu_tensor ipu_cast(ipu_graph *graph, ipu_tensor x, ipu_dtype dtype);

/* A tensor of these elements, which are copied. */
ipu_tensor ipu_constant(ipu_graph *graph, ipu_dtype dtype, int32_t ndim,
                        const int64_t *shape, const void *data);

/* A tensor of one value. */
ipu_tensor ipu_fill(ipu_graph *graph, ipu_dtype dtype, int32_t ndim,
                    const int64_t *shape, double value);

/* An int32 scalar that counts runs: a variable, 0 in the first run unless the
 * host writes it, and one more in each that follows. */
ipu_tensor ipu_counter(ipu_graph *graph, const char *name);

/*
 * Random, but the same for the same seed and step (an int32 scalar:
 * ipu_counter, or an input). dropout replaces elements by 0 with the
 * probability rate, and divides the others by 1 - rate; its derivative drops
 * the same. Ops with the same seed draw the same.
 */
ipu_tensor ipu_dropout(ipu_graph *graph, ipu_tensor x, double rate,
                       uint64_t seed, ipu_tensor step);
ipu_tensor ipu_random_uniform(ipu_graph *graph, int32_t ndim,
                              const int64_t *shape, double low, double high,
                              uint64_t seed, ipu_tensor step);
ipu_tensor ipu_random_normal(ipu_graph *graph, int32_t ndim,
                             const int64_t *shape, double mean,
                             double deviation, uint64_t seed, ipu_tensor step);

/* Sum of all elements times scale -> scalar (ndim 0). */
ipu_tensor ipu_reduce_sum(ipu_graph *graph, ipu_tensor x, double scale);

/*
 * Of two elements each: a + b, a - b, a * b, a / b, the larger, the smaller,
 * a to the power of b. Both float32, or both int32 (which wraps around; not
 * divide and power). Shapes are broadcast as in NumPy: dimensions are aligned
 * at the last, and one that is 1 or missing is repeated. Of equal elements the
 * derivative of maximum and minimum goes to a; NaN in either gives NaN.
 */
ipu_tensor ipu_add(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_subtract(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_multiply(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_divide(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_maximum(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_minimum(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_power(ipu_graph *graph, ipu_tensor a, ipu_tensor b);

/* Comparison, broadcast like the above -> int32, 1 where it holds, else 0. */
ipu_tensor ipu_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_not_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_less(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_less_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_greater(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_greater_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b);

/* a where condition (int32) is not 0, b elsewhere; all three broadcast. */
ipu_tensor ipu_select(ipu_graph *graph, ipu_tensor condition, ipu_tensor a,
                      ipu_tensor b);

/* x repeated to a shape, as the above repeat it. */
ipu_tensor ipu_broadcast(ipu_graph *graph, ipu_tensor x, int32_t ndim,
                         const int64_t *shape);

/* Of each element. The derivative of abs at 0 is 0. */
ipu_tensor ipu_negate(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_abs(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_square(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_exp(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_log(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_sqrt(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_rsqrt(ipu_graph *graph, ipu_tensor x); /* 1 / sqrt(x) */

/* x * factor + offset */
ipu_tensor ipu_scale(ipu_graph *graph, ipu_tensor x, double factor,
                     double offset);

/* Activations; gelu by the normal distribution's integral, gelu_tanh by its
 * usual approximation. */
ipu_tensor ipu_tanh(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_sigmoid(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_gelu(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_gelu_tanh(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_silu(ipu_graph *graph, ipu_tensor x);

/*
 * Sum, mean, and largest element over naxes axes, of which negative ones count
 * from the last; none: x itself. keepdims 0 drops the axes, 1 keeps them with
 * an extent of 1. Elements that are equally large share the derivative of max.
 */
ipu_tensor ipu_sum(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                   const int32_t *axes, int32_t keepdims);
ipu_tensor ipu_mean(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                    const int32_t *axes, int32_t keepdims);
ipu_tensor ipu_max(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                   const int32_t *axes, int32_t keepdims);

#ifdef __cplusplus
}
#endif

#endif
