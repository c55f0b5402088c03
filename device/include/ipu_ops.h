/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_ops.h - ops that networks need less often than those of ipu_layers.h.
 * ipu.h includes it, and describes shapes, dtypes, errors and threads for all
 * ops.
 */
#ifndef IPU_H
#include "ipu.h" /* ipu.h includes this file after those that it needs */
#elif !defined(IPU_OPS_H)
#define IPU_OPS_H

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- rounding */

/*
 * Converts x (float32) to float16 or bfloat16 with stochastic rounding: it
 * chooses at random between the two nearest numbers of the dtype, with
 * probabilities that make the expected value x. seed and step (an int32 scalar)
 * are those of ipu_dropout.
 */
ipu_tensor ipu_stochastic_cast(ipu_graph *graph, ipu_tensor x, ipu_dtype dtype,
                               uint64_t seed, ipu_tensor step);

/*
 * Turns stochastic rounding on (1) or off (0, the initial state) for every
 * float16 that ops and casts built from here on make, derivatives and
 * optimisers included; each op draws its own random numbers. The same graph,
 * seed and step give the same bits on every target. The body of a loop inherits
 * the state unless it sets one. A saved graph keeps the state for ops that are
 * built after it is loaded.
 */
int ipu_stochastic_rounding(ipu_graph *graph, int32_t on, uint64_t seed,
                            ipu_tensor step);

/* -------------------------------------------------------- of each element */

/* Round down, up, or to the nearest integer (half to even), and the sign: -1, 0
 * or 1. Their derivatives are 0. */
ipu_tensor ipu_floor(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_ceil(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_round(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_sign(ipu_graph *graph, ipu_tensor x);

ipu_tensor ipu_sin(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_cos(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_atan(ipu_graph *graph, ipu_tensor x);     /* inverse tangent */
ipu_tensor ipu_log1p(ipu_graph *graph, ipu_tensor x);    /* log(1 + x) */
ipu_tensor ipu_expm1(ipu_graph *graph, ipu_tensor x);    /* exp(x) - 1 */
ipu_tensor ipu_erf(ipu_graph *graph, ipu_tensor x);      /* error function */
ipu_tensor ipu_softplus(ipu_graph *graph, ipu_tensor x); /* log(1 + exp(x)) */

/* Both return x above 0; below, leaky_relu returns slope * x, and elu returns
 * alpha * (exp(x) - 1). */
ipu_tensor ipu_leaky_relu(ipu_graph *graph, ipu_tensor x, double slope);
ipu_tensor ipu_elu(ipu_graph *graph, ipu_tensor x, double alpha);

/* Limits each element to [low, high]; NaN stays. The derivative is 1 from low
 * to high, both included, and 0 elsewhere. */
ipu_tensor ipu_clip(ipu_graph *graph, ipu_tensor x, double low, double high);

/* ----------------------------------------------------------- along an axis */

/* Minimum and product over axes, like ipu_max. The product of no elements is 1;
 * the product has no second derivative. */
ipu_tensor ipu_min(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                   const int32_t *axes, int32_t keepdims);
ipu_tensor ipu_prod(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                    const int32_t *axes, int32_t keepdims);

/* Index of the minimum along an axis, like ipu_argmax. */
ipu_tensor ipu_argmin(ipu_graph *graph, ipu_tensor x, int32_t axis);

/* Sum of each element and all before it along an axis. exclusive 1 leaves the
 * element out; reverse 1 adds the elements after it instead. */
ipu_tensor ipu_cumulative_sum(ipu_graph *graph, ipu_tensor x, int32_t axis,
                              int32_t exclusive, int32_t reverse);

/* Softmax over any axis, and its logarithm. */
ipu_tensor ipu_softmax_axis(ipu_graph *graph, ipu_tensor x, int32_t axis);
ipu_tensor ipu_log_softmax_axis(ipu_graph *graph, ipu_tensor x, int32_t axis);

/* x: [..., n] -> [..., k], the k largest elements of each row in descending
 * order, and their indices, int32. NaN comes first, and of equal elements the
 * first. indices may be NULL. */
ipu_tensor ipu_top_k(ipu_graph *graph, ipu_tensor x, int32_t k,
                     ipu_tensor *indices);

/* x: [..., n], indices: [..., k] int32 -> [..., k]: selects elements of each
 * row by index. An index out of range fails the run with IPU_ERR_DATA. */
ipu_tensor ipu_take(ipu_graph *graph, ipu_tensor x, ipu_tensor indices);

/* x: [..., rows, columns]. Replaces the elements whose column number is at
 * least the row number + offset by value. Offset 1 keeps the diagonal: with
 * value -1e9 before a softmax, a row sees no later position. */
ipu_tensor ipu_causal_mask(ipu_graph *graph, ipu_tensor x, int32_t offset,
                           double value);

/* ------------------------------------------------------------------- moves */

/* Returns the vector first, first + step, ..., of count elements. */
ipu_tensor ipu_range(ipu_graph *graph, ipu_dtype dtype, int64_t count,
                     double first, double step);

/* Adds or removes an axis of one element. A negative axis counts from the last
 * of the larger tensor. */
ipu_tensor ipu_expand_dims(ipu_graph *graph, ipu_tensor x, int32_t axis);
ipu_tensor ipu_squeeze(ipu_graph *graph, ipu_tensor x, int32_t axis);

/* Stacks count tensors of one shape along a new axis. */
ipu_tensor ipu_stack(ipu_graph *graph, int32_t count, const ipu_tensor *tensors,
                     int32_t axis);

/* Splits x into count parts along an axis, of these sizes, or of equal size if
 * sizes is NULL. parts must have room for count. */
int ipu_split(ipu_graph *graph, ipu_tensor x, int32_t axis, int32_t count,
              const int64_t *sizes, ipu_tensor *parts);

/* Repeats x times[i] times along axis i. */
ipu_tensor ipu_tile(ipu_graph *graph, ipu_tensor x, const int32_t *times);

/* x: [n, h, w, c] -> [n, h factor, w factor, c]: each pixel becomes a square of
 * factor x factor pixels. */
ipu_tensor ipu_upsample2d(ipu_graph *graph, ipu_tensor x, int32_t factor);

/* Reverses the order of the elements along these axes. */
ipu_tensor ipu_reverse(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                       const int32_t *axes);

/* ------------------------------------------------------------ convolutions */

/*
 * Transposed convolution, the derivative of ipu_conv2d with these options with
 * respect to its input. x: [n, h, w, in], kernel: [kh, kw, out / groups, in] ->
 * [n, height, width, out]. height and width are those of an image that the
 * convolution would turn into one of the size of x; 0 stands for the smallest
 * (with SAME: h, w times the stride).
 */
ipu_tensor ipu_conv2d_transpose(ipu_graph *graph, ipu_tensor x,
                                ipu_tensor kernel, int32_t height,
                                int32_t width, const ipu_conv_options *options);

/* Convolution of each channel by itself. x: [n, h, w, c], kernel: [kh, kw, c,
 * multiplier] -> [n, ho, wo, c * multiplier]. options are those of ipu_conv2d,
 * without groups. */
ipu_tensor ipu_depthwise_conv2d(ipu_graph *graph, ipu_tensor x,
                                ipu_tensor kernel,
                                const ipu_conv_options *options);

/* ------------------------------------------------------------------ losses */

/* Elementwise cross entropy of sigmoid(logit), or of a probability p, with a
 * target in [0, 1]. Logits are more precise: of probabilities, p and 1 - p are
 * taken to be at least epsilon, so that their logarithms are finite. */
ipu_tensor ipu_sigmoid_cross_entropy(ipu_graph *graph, ipu_tensor logits,
                                     ipu_tensor targets);
ipu_tensor ipu_binary_cross_entropy(ipu_graph *graph, ipu_tensor probabilities,
                                    ipu_tensor targets, double epsilon);

/* Cross entropy of each row of logits, [..., classes] -> [...] float32: with
 * targets, [..., classes], which are the probabilities of the classes; or with
 * labels, [...] int32, of which the share smoothing, in [0, 1], is given to all
 * classes alike: that of the label is 1 - smoothing + smoothing / classes. */
ipu_tensor ipu_categorical_cross_entropy(ipu_graph *graph, ipu_tensor logits,
                                         ipu_tensor targets);
ipu_tensor ipu_sparse_cross_entropy(ipu_graph *graph, ipu_tensor logits,
                                    ipu_tensor labels, double smoothing);

/* Gives the share smoothing, in [0, 1], of targets to all classes alike, for
 * ipu_categorical_cross_entropy, and with 2 classes for
 * ipu_sigmoid_cross_entropy: y becomes y (1 - smoothing) + smoothing / classes.
 */
ipu_tensor ipu_smooth_targets(ipu_graph *graph, ipu_tensor targets,
                              int64_t classes, double smoothing);

/* Elementwise: (x - target)^2, |x - target|, and huber_loss's. */
ipu_tensor ipu_squared_error(ipu_graph *graph, ipu_tensor x, ipu_tensor target);
ipu_tensor ipu_absolute_error(ipu_graph *graph, ipu_tensor x,
                              ipu_tensor target);
ipu_tensor ipu_huber_error(ipu_graph *graph, ipu_tensor x, ipu_tensor target,
                           double delta);

/* Elementwise: max(0, 1 - x target). Targets are -1 and 1: ipu_scale(graph, t,
 * 2, -1) makes them of 0 and 1. */
ipu_tensor ipu_hinge_loss(ipu_graph *graph, ipu_tensor x, ipu_tensor target);

/* The Kullback-Leibler divergence of each row, [..., n] -> [...]: the sum of
 * target log(target / x), both of which are taken to be in [epsilon, 1].
 * epsilon is in (0, 1); Keras has 1e-7. */
ipu_tensor ipu_kl_divergence(ipu_graph *graph, ipu_tensor x, ipu_tensor target,
                             double epsilon);

/* Losses that return a scalar: half the sum of squares; the mean of the
 * absolute differences; and the mean of d^2 / 2 where the difference |d| is at
 * most delta, and delta (|d| - delta / 2) elsewhere. */
ipu_tensor ipu_l2_loss(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_mean_absolute_error(ipu_graph *graph, ipu_tensor x,
                                   ipu_tensor target);
ipu_tensor ipu_huber_loss(ipu_graph *graph, ipu_tensor x, ipu_tensor target,
                          double delta);

#ifdef __cplusplus
}
#endif

/* Each builder records the source line of its caller, unless IPU_NO_SOURCES is
 * defined. */
#ifndef IPU_NO_SOURCES
#define ipu_stochastic_cast(graph, ...)                                        \
    ipu_stochastic_cast(IPU_HERE(graph), __VA_ARGS__)
#define ipu_stochastic_rounding(graph, ...)                                    \
    ipu_stochastic_rounding(IPU_HERE(graph), __VA_ARGS__)
#define ipu_floor(graph, ...) ipu_floor(IPU_HERE(graph), __VA_ARGS__)
#define ipu_ceil(graph, ...) ipu_ceil(IPU_HERE(graph), __VA_ARGS__)
#define ipu_round(graph, ...) ipu_round(IPU_HERE(graph), __VA_ARGS__)
#define ipu_sign(graph, ...) ipu_sign(IPU_HERE(graph), __VA_ARGS__)
#define ipu_sin(graph, ...) ipu_sin(IPU_HERE(graph), __VA_ARGS__)
#define ipu_cos(graph, ...) ipu_cos(IPU_HERE(graph), __VA_ARGS__)
#define ipu_atan(graph, ...) ipu_atan(IPU_HERE(graph), __VA_ARGS__)
#define ipu_log1p(graph, ...) ipu_log1p(IPU_HERE(graph), __VA_ARGS__)
#define ipu_expm1(graph, ...) ipu_expm1(IPU_HERE(graph), __VA_ARGS__)
#define ipu_erf(graph, ...) ipu_erf(IPU_HERE(graph), __VA_ARGS__)
#define ipu_softplus(graph, ...) ipu_softplus(IPU_HERE(graph), __VA_ARGS__)
#define ipu_leaky_relu(graph, ...) ipu_leaky_relu(IPU_HERE(graph), __VA_ARGS__)
#define ipu_elu(graph, ...) ipu_elu(IPU_HERE(graph), __VA_ARGS__)
#define ipu_clip(graph, ...) ipu_clip(IPU_HERE(graph), __VA_ARGS__)
#define ipu_min(graph, ...) ipu_min(IPU_HERE(graph), __VA_ARGS__)
#define ipu_prod(graph, ...) ipu_prod(IPU_HERE(graph), __VA_ARGS__)
#define ipu_argmin(graph, ...) ipu_argmin(IPU_HERE(graph), __VA_ARGS__)
#define ipu_cumulative_sum(graph, ...)                                         \
    ipu_cumulative_sum(IPU_HERE(graph), __VA_ARGS__)
#define ipu_softmax_axis(graph, ...)                                           \
    ipu_softmax_axis(IPU_HERE(graph), __VA_ARGS__)
#define ipu_log_softmax_axis(graph, ...)                                       \
    ipu_log_softmax_axis(IPU_HERE(graph), __VA_ARGS__)
#define ipu_top_k(graph, ...) ipu_top_k(IPU_HERE(graph), __VA_ARGS__)
#define ipu_take(graph, ...) ipu_take(IPU_HERE(graph), __VA_ARGS__)
#define ipu_causal_mask(graph, ...)                                            \
    ipu_causal_mask(IPU_HERE(graph), __VA_ARGS__)
#define ipu_range(graph, ...) ipu_range(IPU_HERE(graph), __VA_ARGS__)
#define ipu_expand_dims(graph, ...)                                            \
    ipu_expand_dims(IPU_HERE(graph), __VA_ARGS__)
#define ipu_squeeze(graph, ...) ipu_squeeze(IPU_HERE(graph), __VA_ARGS__)
#define ipu_stack(graph, ...) ipu_stack(IPU_HERE(graph), __VA_ARGS__)
#define ipu_split(graph, ...) ipu_split(IPU_HERE(graph), __VA_ARGS__)
#define ipu_tile(graph, ...) ipu_tile(IPU_HERE(graph), __VA_ARGS__)
#define ipu_upsample2d(graph, ...) ipu_upsample2d(IPU_HERE(graph), __VA_ARGS__)
#define ipu_reverse(graph, ...) ipu_reverse(IPU_HERE(graph), __VA_ARGS__)
#define ipu_conv2d_transpose(graph, ...)                                       \
    ipu_conv2d_transpose(IPU_HERE(graph), __VA_ARGS__)
#define ipu_depthwise_conv2d(graph, ...)                                       \
    ipu_depthwise_conv2d(IPU_HERE(graph), __VA_ARGS__)
#define ipu_sigmoid_cross_entropy(graph, ...)                                  \
    ipu_sigmoid_cross_entropy(IPU_HERE(graph), __VA_ARGS__)
#define ipu_binary_cross_entropy(graph, ...)                                   \
    ipu_binary_cross_entropy(IPU_HERE(graph), __VA_ARGS__)
#define ipu_categorical_cross_entropy(graph, ...)                              \
    ipu_categorical_cross_entropy(IPU_HERE(graph), __VA_ARGS__)
#define ipu_sparse_cross_entropy(graph, ...)                                   \
    ipu_sparse_cross_entropy(IPU_HERE(graph), __VA_ARGS__)
#define ipu_smooth_targets(graph, ...)                                         \
    ipu_smooth_targets(IPU_HERE(graph), __VA_ARGS__)
#define ipu_squared_error(graph, ...)                                          \
    ipu_squared_error(IPU_HERE(graph), __VA_ARGS__)
#define ipu_absolute_error(graph, ...)                                         \
    ipu_absolute_error(IPU_HERE(graph), __VA_ARGS__)
#define ipu_huber_error(graph, ...)                                            \
    ipu_huber_error(IPU_HERE(graph), __VA_ARGS__)
#define ipu_hinge_loss(graph, ...) ipu_hinge_loss(IPU_HERE(graph), __VA_ARGS__)
#define ipu_kl_divergence(graph, ...)                                          \
    ipu_kl_divergence(IPU_HERE(graph), __VA_ARGS__)
#define ipu_l2_loss(graph, ...) ipu_l2_loss(IPU_HERE(graph), __VA_ARGS__)
#define ipu_mean_absolute_error(graph, ...)                                    \
    ipu_mean_absolute_error(IPU_HERE(graph), __VA_ARGS__)
#define ipu_huber_loss(graph, ...) ipu_huber_loss(IPU_HERE(graph), __VA_ARGS__)
#endif

#endif
