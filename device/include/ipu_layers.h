/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_layers.h - the ops that most networks consist of; ipu_ops.h has the
 * others. Each function adds one op to the graph and returns its result. ipu.h
 * includes it, and describes shapes, dtypes, errors and threads for all ops.
 */
#ifndef IPU_H
#include "ipu.h" /* ipu.h includes this file after those that it needs */
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
    int32_t same;        /* 0: use padding below; 1: SAME, as in TensorFlow */
    int32_t dilation[2]; /* spacing of the kernel's elements; 0 means 1 */
    int32_t groups;      /* independent groups of channels; 0 means 1 */
    int32_t padding[4];  /* zeros above, below, left, right; VALID has none */
} ipu_conv_options;

/* Convolution. x: [n, h, w, ci], kernel: [kh, kw, ci / groups, co] -> [n, ho,
 * wo, co]. Group g computes output channels g * co / groups to (g + 1) * co /
 * groups - 1 from the same fraction of the input channels. options NULL: stride
 * 1, VALID. */
ipu_tensor ipu_conv2d(ipu_graph *graph, ipu_tensor x, ipu_tensor kernel,
                      const ipu_conv_options *options);

/* Maximum of each window. x: [n, h, w, c] -> [n, h/size, w/size, c]. Windows
 * are size x size with stride size; incomplete ones at the edge are dropped
 * (VALID). The gradient goes to the first maximum of a window. */
ipu_tensor ipu_max_pool2d(ipu_graph *graph, ipu_tensor x, int32_t size);

/* Mean of each window, with windows like those of ipu_max_pool2d. */
ipu_tensor ipu_avg_pool2d(ipu_graph *graph, ipu_tensor x, int32_t size);

typedef struct ipu_pool_options {
    uint32_t size;         /* sizeof(ipu_pool_options) */
    int32_t window[2];     /* height, width */
    int32_t stride[2];     /* 0: the extent of the window */
    int32_t same;          /* 0: use padding below; 1: SAME, as in TensorFlow */
    int32_t padding[4];    /* above, below, left, right; each less than the
                              window; VALID has none */
    int32_t count_padding; /* 1: a mean counts padding as zeros; 0: a mean
                              ignores padding */
} ipu_pool_options;

/* Pooling with any windows, which may overlap. Padding is never the maximum.
 */
ipu_tensor ipu_max_pool2d_with(ipu_graph *graph, ipu_tensor x,
                               const ipu_pool_options *options);
ipu_tensor ipu_avg_pool2d_with(ipu_graph *graph, ipu_tensor x,
                               const ipu_pool_options *options);

/* Matrix product. x: [m, k], w: [k, n] -> [m, n]; leading dimensions are
 * treated as in ipu_batch_matmul, without transposition. */
ipu_tensor ipu_matmul(ipu_graph *graph, ipu_tensor x, ipu_tensor w);

/* Batch of matrix products. a: [..., m, k], b: [..., k, n] -> [..., m, n]. The
 * leading dimensions must be equal, or one of the two is a single matrix.
 * With transpose_a, a is [..., k, m]; with transpose_b, b is [..., n, k]. */
ipu_tensor ipu_batch_matmul(ipu_graph *graph, ipu_tensor a, ipu_tensor b,
                            int32_t transpose_a, int32_t transpose_b);

/* Self-attention. qkv: [batch, t, 3 c] holds queries, keys and values of all
 * heads, head i from column i * c / heads of each -> [batch, t, c]: for each
 * head, softmax(q k' / sqrt(c / heads)) v. causal 1: row i sees rows 0 to i
 * only. */
ipu_tensor ipu_attention(ipu_graph *graph, ipu_tensor qkv, int32_t heads,
                         int32_t causal);

/* x + bias. x: [..., n], bias: [n] -> [..., n] */
ipu_tensor ipu_bias_add(ipu_graph *graph, ipu_tensor x, ipu_tensor bias);

/* max(x, 0). NaN gives NaN; the gradient at 0 is 0. */
ipu_tensor ipu_relu(ipu_graph *graph, ipu_tensor x);

/* Returns the same elements in another shape. One extent may be -1: it is then
 * computed from the others. */
ipu_tensor ipu_reshape(ipu_graph *graph, ipu_tensor x, int32_t ndim,
                       const int64_t *shape);

/* Permutes dimensions: dimension i of the result is dimension axes[i] of x.
 * Negative axes count from the last. axes NULL reverses the dimensions. */
ipu_tensor ipu_transpose(ipu_graph *graph, ipu_tensor x, const int32_t *axes);

/* Returns the part of x with sizes[i] elements from starts[i] on in each
 * dimension i. A size of -1 stands for all elements from there on. */
ipu_tensor ipu_slice(ipu_graph *graph, ipu_tensor x, const int64_t *starts,
                     const int64_t *sizes);

/* Pads x with before[i] and after[i] elements of value in dimension i. */
ipu_tensor ipu_pad(ipu_graph *graph, ipu_tensor x, const int64_t *before,
                   const int64_t *after, double value);

/* Concatenates count tensors along an axis; their other dimensions must be
 * equal. */
ipu_tensor ipu_concat(ipu_graph *graph, int32_t count,
                      const ipu_tensor *tensors, int32_t axis);

/* Softmax over the last dimension, and its logarithm. */
ipu_tensor ipu_softmax(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_log_softmax(ipu_graph *graph, ipu_tensor x);

/* Cross entropy. logits: [..., classes] float32, labels: [...] int32 -> [...]
 * float32, the loss of each row. A label outside [0, classes) fails the run
 * with IPU_ERR_DATA, naming row and label. */
ipu_tensor ipu_softmax_cross_entropy(ipu_graph *graph, ipu_tensor logits,
                                     ipu_tensor labels);

/* Mean of the squared differences of all elements -> scalar. */
ipu_tensor ipu_mean_squared_error(ipu_graph *graph, ipu_tensor x,
                                  ipu_tensor target);

/*
 * Normalisation: (x - mean) / sqrt(variance + epsilon) * scale + offset.
 *
 * layer_norm takes the mean over the last dimensions, those that scale and
 * offset have. group_norm takes it over all dimensions but n, separately for
 * each group of channels; x: [n, ..., channels], scale, offset: [channels].
 * batch_norm takes it over all dimensions but the channels; each run updates
 * the running statistics, variables of shape [channels], to momentum * running
 * + (1 - momentum) * batch (with the unbiased estimate of the variance).
 * batch_norm_inference uses the running statistics instead of those of the
 * batch. Running statistics may be float32 where x is a half.
 * synchronised_batch_norm normalises as batch_norm of the batches of all
 * replicas together would (group_size 0), or of each group of group_size
 * replicas (ipu_replica.h).
 */
ipu_tensor ipu_layer_norm(ipu_graph *graph, ipu_tensor x, ipu_tensor scale,
                          ipu_tensor offset, double epsilon);
ipu_tensor ipu_group_norm(ipu_graph *graph, ipu_tensor x, int32_t groups,
                          ipu_tensor scale, ipu_tensor offset, double epsilon);
ipu_tensor ipu_batch_norm(ipu_graph *graph, ipu_tensor x, ipu_tensor scale,
                          ipu_tensor offset, ipu_tensor running_mean,
                          ipu_tensor running_variance, double momentum,
                          double epsilon);
ipu_tensor ipu_synchronised_batch_norm(ipu_graph *graph, ipu_tensor x,
                                       ipu_tensor scale, ipu_tensor offset,
                                       ipu_tensor running_mean,
                                       ipu_tensor running_variance,
                                       double momentum, double epsilon,
                                       int32_t group_size);
ipu_tensor ipu_batch_norm_inference(ipu_graph *graph, ipu_tensor x,
                                    ipu_tensor scale, ipu_tensor offset,
                                    ipu_tensor running_mean,
                                    ipu_tensor running_variance,
                                    double epsilon);

/*
 * gather selects elements of x along an axis by index. indices is an int32
 * tensor, whose dimensions replace the axis. embedding selects rows of a table
 * (axis 0). scatter_add returns x with updates added to the elements that the
 * indices select, once for each time that an index occurs; updates has the
 * shape that gather would return. scatter replaces these elements by updates
 * instead, of any dtype; of equal indices the last update stays, but
 * derivatives are right only if all differ. dynamic_update returns x with one
 * element of the axis replaced by update; index is an int32 scalar, such as the
 * number of a loop's iteration. An index out of range fails the run with
 * IPU_ERR_DATA.
 */
ipu_tensor ipu_gather(ipu_graph *graph, ipu_tensor x, ipu_tensor indices,
                      int32_t axis);
ipu_tensor ipu_embedding(ipu_graph *graph, ipu_tensor table,
                         ipu_tensor indices);
ipu_tensor ipu_scatter_add(ipu_graph *graph, ipu_tensor x, ipu_tensor indices,
                           ipu_tensor updates, int32_t axis);
ipu_tensor ipu_scatter(ipu_graph *graph, ipu_tensor x, ipu_tensor indices,
                       ipu_tensor updates, int32_t axis);
ipu_tensor ipu_dynamic_update(ipu_graph *graph, ipu_tensor x, ipu_tensor index,
                              ipu_tensor update, int32_t axis);

/* Index of the maximum along an axis, int32: of the first NaN if there is one,
 * else of the first of equal maxima. */
ipu_tensor ipu_argmax(ipu_graph *graph, ipu_tensor x, int32_t axis);

/* x: [...] int32 -> [..., depth] float32, 1 at the index, 0 elsewhere. An index
 * out of range gives zeros. */
ipu_tensor ipu_one_hot(ipu_graph *graph, ipu_tensor x, int32_t depth);

/* Converts x to another dtype. A conversion to int32 rounds towards 0,
 * saturates values out of range, and turns NaN into 0. */
ipu_tensor ipu_cast(ipu_graph *graph, ipu_tensor x, ipu_dtype dtype);

/* Adds a constant tensor with these elements, which are copied. */
ipu_tensor ipu_constant(ipu_graph *graph, ipu_dtype dtype, int32_t ndim,
                        const int64_t *shape, const void *data);

/* Adds a tensor whose elements all have one value. */
ipu_tensor ipu_fill(ipu_graph *graph, ipu_dtype dtype, int32_t ndim,
                    const int64_t *shape, double value);

/* Adds a variable, an int32 scalar, that counts runs: 0 in the first run unless
 * the host writes it, and one more in each that follows. */
ipu_tensor ipu_counter(ipu_graph *graph, const char *name);

/*
 * Random numbers, which are a function of seed and step (an int32 scalar:
 * ipu_counter, or an input); ops with the same seed draw the same numbers.
 * dropout replaces elements by 0 with the probability rate, and divides the
 * others by 1 - rate; its derivative drops the same elements.
 */
ipu_tensor ipu_dropout(ipu_graph *graph, ipu_tensor x, double rate,
                       uint64_t seed, ipu_tensor step);
ipu_tensor ipu_random_uniform(ipu_graph *graph, int32_t ndim,
                              const int64_t *shape, double low, double high,
                              uint64_t seed, ipu_tensor step);
ipu_tensor ipu_random_normal(ipu_graph *graph, int32_t ndim,
                             const int64_t *shape, double mean,
                             double deviation, uint64_t seed, ipu_tensor step);

/* Sum of all elements, times scale -> scalar (ndim 0). */
ipu_tensor ipu_reduce_sum(ipu_graph *graph, ipu_tensor x, double scale);

/*
 * Elementwise ops on two tensors: a + b, a - b, a * b, a / b, the larger, the
 * smaller, a to the power of b. Both are float32, or both int32 (which wraps
 * around, and which divide and power do not take). Shapes are broadcast as in
 * NumPy: dimensions are aligned at the last, and one that is 1 or missing is
 * repeated. If two elements are equal, the derivative of maximum and minimum
 * goes to a. A NaN in either gives NaN.
 */
ipu_tensor ipu_add(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_subtract(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_multiply(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_divide(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_maximum(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_minimum(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_power(ipu_graph *graph, ipu_tensor a, ipu_tensor b);

/* Comparisons, broadcast like ipu_add -> int32, 1 where it holds, else 0. */
ipu_tensor ipu_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_not_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_less(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_less_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_greater(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_greater_equal(ipu_graph *graph, ipu_tensor a, ipu_tensor b);

/* Returns a where condition (int32) is not 0, and b elsewhere; all three are
 * broadcast like ipu_add. */
ipu_tensor ipu_select(ipu_graph *graph, ipu_tensor condition, ipu_tensor a,
                      ipu_tensor b);

/* Broadcasts x to a shape, like ipu_add. */
ipu_tensor ipu_broadcast(ipu_graph *graph, ipu_tensor x, int32_t ndim,
                         const int64_t *shape);

/* Elementwise functions. The derivative of abs at 0 is 0. */
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

/* Activations. gelu uses the normal distribution function, gelu_tanh its usual
 * approximation by tanh. */
ipu_tensor ipu_tanh(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_sigmoid(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_gelu(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_gelu_tanh(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_silu(ipu_graph *graph, ipu_tensor x);

/*
 * Sum, mean and maximum over naxes axes; negative axes count from the last;
 * with no axes the result is x. keepdims 0 drops the axes, 1 keeps them with an
 * extent of 1. Equal maxima share the derivative of max.
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
