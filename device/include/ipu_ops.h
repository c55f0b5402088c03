/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_ops.h - more ops: what networks need now and then. ipu.h includes it,
 * and says what holds for all of them: shapes, dtypes, failures, threads.
 */
#ifndef IPU_H
#include "ipu.h" /* which comes back here once it has said what a graph is */
#elif !defined(IPU_OPS_H)
#define IPU_OPS_H

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- rounding */

/*
 * To float16 or bfloat16, up or down at random: of the two nearest numbers of
 * the dtype, the upper with the probability that the mean of many draws is x.
 * seed and step (an int32 scalar) as those of ipu_dropout. x: float32.
 */
ipu_tensor ipu_stochastic_cast(ipu_graph *graph, ipu_tensor x, ipu_dtype dtype,
                               uint64_t seed, ipu_tensor step);

/*
 * on 1: from here on every float16 that an op or a cast makes is rounded like
 * that, each by random numbers of its own: derivatives and optimisers too. on
 * 0: to the nearest again, as it is until told otherwise. Files keep it, for
 * what is built on a loaded graph. The same graph, seed and step give the same
 * bits, whatever the target. In the body of a loop it is as around it, if the
 * body says nothing.
 */
int ipu_stochastic_rounding(ipu_graph *graph, int32_t on, uint64_t seed,
                            ipu_tensor step);

/* -------------------------------------------------------- of each element */

/* The whole number below, above, or nearest (of two as near, the even one), and
 * the sign: -1, 0 or 1. Their derivatives are 0. */
ipu_tensor ipu_floor(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_ceil(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_round(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_sign(ipu_graph *graph, ipu_tensor x);

ipu_tensor ipu_sin(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_cos(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_log1p(ipu_graph *graph, ipu_tensor x);    /* log(1 + x) */
ipu_tensor ipu_expm1(ipu_graph *graph, ipu_tensor x);    /* exp(x) - 1 */
ipu_tensor ipu_erf(ipu_graph *graph, ipu_tensor x);      /* error function */
ipu_tensor ipu_softplus(ipu_graph *graph, ipu_tensor x); /* log(1 + exp(x)) */

/* x above 0; slope * x, or alpha * (exp(x) - 1), below. */
ipu_tensor ipu_leaky_relu(ipu_graph *graph, ipu_tensor x, double slope);
ipu_tensor ipu_elu(ipu_graph *graph, ipu_tensor x, double alpha);

/* What is less than low becomes low, more than high, high; NaN stays. The
 * derivative is 1 from low to high, both included. */
ipu_tensor ipu_clip(ipu_graph *graph, ipu_tensor x, double low, double high);

/* ----------------------------------------------------------- along an axis */

/* Smallest element and product, as ipu_max is the largest. The product of none
 * is 1; it has no second derivative. */
ipu_tensor ipu_min(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                   const int32_t *axes, int32_t keepdims);
ipu_tensor ipu_prod(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                    const int32_t *axes, int32_t keepdims);

/* The number of the smallest, as ipu_argmax is of the largest. */
ipu_tensor ipu_argmin(ipu_graph *graph, ipu_tensor x, int32_t axis);

/* Each element and all before it. exclusive 1: without itself; reverse 1: with
 * all after it instead. */
ipu_tensor ipu_cumulative_sum(ipu_graph *graph, ipu_tensor x, int32_t axis,
                              int32_t exclusive, int32_t reverse);

/* ipu_softmax and ipu_log_softmax, of any axis. */
ipu_tensor ipu_softmax_axis(ipu_graph *graph, ipu_tensor x, int32_t axis);
ipu_tensor ipu_log_softmax_axis(ipu_graph *graph, ipu_tensor x, int32_t axis);

/* x: [..., n] -> [..., k], the largest of each row, in falling order, and their
 * numbers, int32; of equal ones the first first, NaN before all. indices may be
 * NULL. */
ipu_tensor ipu_top_k(ipu_graph *graph, ipu_tensor x, int32_t k,
                     ipu_tensor *indices);

/* x: [..., n], indices: [..., k] int32 -> [..., k]: of each row, the elements
 * of these numbers. One out of range fails the run: IPU_ERR_DATA. */
ipu_tensor ipu_take(ipu_graph *graph, ipu_tensor x, ipu_tensor indices);

/* x: [..., rows, columns], with value in each column whose number is more than
 * the row's by offset or more. 1 keeps the diagonal: with value -1e9 before a
 * softmax, a row sees nothing that comes later. */
ipu_tensor ipu_causal_mask(ipu_graph *graph, ipu_tensor x, int32_t offset,
                           double value);

/* ------------------------------------------------------------------- moves */

/* [count]: first, first + step, ... */
ipu_tensor ipu_range(ipu_graph *graph, ipu_dtype dtype, int64_t count,
                     double first, double step);

/* An axis of one element more, or less. Negative ones count from the last of
 * the larger tensor. */
ipu_tensor ipu_expand_dims(ipu_graph *graph, ipu_tensor x, int32_t axis);
ipu_tensor ipu_squeeze(ipu_graph *graph, ipu_tensor x, int32_t axis);

/* count tensors of one shape, along a new axis. */
ipu_tensor ipu_stack(ipu_graph *graph, int32_t count, const ipu_tensor *tensors,
                     int32_t axis);

/* count parts along an axis, of these sizes, or equal ones if sizes is NULL.
 * parts must have room for count. */
int ipu_split(ipu_graph *graph, ipu_tensor x, int32_t axis, int32_t count,
              const int64_t *sizes, ipu_tensor *parts);

/* All of x times[i] times along axis i. */
ipu_tensor ipu_tile(ipu_graph *graph, ipu_tensor x, const int32_t *times);

/* x: [n, h, w, c] -> [n, h factor, w factor, c]: each pixel becomes a square.
 */
ipu_tensor ipu_upsample2d(ipu_graph *graph, ipu_tensor x, int32_t factor);

/* The elements along these axes in the opposite order. */
ipu_tensor ipu_reverse(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                       const int32_t *axes);

/* ------------------------------------------------------------ convolutions */

/*
 * x: [n, h, w, in], kernel: [kh, kw, out / groups, in] -> [n, height, width,
 * out]: what the derivative of ipu_conv2d with these options makes of x. height
 * and width are those of an image of which the convolution makes one like x; 0:
 * the smallest (SAME: h, w times the stride).
 */
ipu_tensor ipu_conv2d_transpose(ipu_graph *graph, ipu_tensor x,
                                ipu_tensor kernel, int32_t height,
                                int32_t width, const ipu_conv_options *options);

/* x: [n, h, w, c], kernel: [kh, kw, c, multiplier] -> [n, ho, wo, c *
 * multiplier]: each channel by itself. options as those of ipu_conv2d, without
 * groups. */
ipu_tensor ipu_depthwise_conv2d(ipu_graph *graph, ipu_tensor x,
                                ipu_tensor kernel,
                                const ipu_conv_options *options);

/* ------------------------------------------------------------------ losses */

/* Of each element: the cross entropy of sigmoid(logit), or of a probability,
 * with a target in [0, 1]. Logits are more precise. What a logarithm is taken
 * of, a probability or what it lacks to 1, counts as at least epsilon. */
ipu_tensor ipu_sigmoid_cross_entropy(ipu_graph *graph, ipu_tensor logits,
                                     ipu_tensor targets);
ipu_tensor ipu_binary_cross_entropy(ipu_graph *graph, ipu_tensor probabilities,
                                    ipu_tensor targets, double epsilon);

/* Scalars: half the sum of squares; the mean of all absolute differences; the
 * mean of d^2 / 2 up to delta, and of delta (|d| - delta / 2) beyond. */
ipu_tensor ipu_l2_loss(ipu_graph *graph, ipu_tensor x);
ipu_tensor ipu_mean_absolute_error(ipu_graph *graph, ipu_tensor x,
                                   ipu_tensor target);
ipu_tensor ipu_huber_loss(ipu_graph *graph, ipu_tensor x, ipu_tensor target,
                          double delta);

#ifdef __cplusplus
}
#endif

/* Each builder tells where it is called. Not with IPU_NO_SOURCES. */
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
#define ipu_l2_loss(graph, ...) ipu_l2_loss(IPU_HERE(graph), __VA_ARGS__)
#define ipu_mean_absolute_error(graph, ...)                                    \
    ipu_mean_absolute_error(IPU_HERE(graph), __VA_ARGS__)
#define ipu_huber_loss(graph, ...) ipu_huber_loss(IPU_HERE(graph), __VA_ARGS__)
#endif

#endif
