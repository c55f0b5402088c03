/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - the rows of the table of operators, by family, and what several
 * families share. A row without a name ends each array.
 */
#ifndef IPU_ONNX_OPERATORS_ROWS_H
#define IPU_ONNX_OPERATORS_ROWS_H

#include "onnx/build.h"

extern const struct ipu__onnx_operator onnx__unary_rows[];
extern const struct ipu__onnx_operator onnx__binary_rows[];
extern const struct ipu__onnx_operator onnx__power_rows[];
extern const struct ipu__onnx_operator onnx__activation_rows[];
extern const struct ipu__onnx_operator onnx__shape_rows[];
extern const struct ipu__onnx_operator onnx__move_rows[];
extern const struct ipu__onnx_operator onnx__index_rows[];
extern const struct ipu__onnx_operator onnx__scatter_rows[];
extern const struct ipu__onnx_operator onnx__reduction_rows[];
extern const struct ipu__onnx_operator onnx__product_rows[];
extern const struct ipu__onnx_operator onnx__einsum_rows[];
extern const struct ipu__onnx_operator onnx__convolution_rows[];
extern const struct ipu__onnx_operator onnx__pool_rows[];
extern const struct ipu__onnx_operator onnx__max_pool_rows[];
extern const struct ipu__onnx_operator onnx__norm_rows[];
extern const struct ipu__onnx_operator onnx__loss_rows[];
extern const struct ipu__onnx_operator onnx__resize_rows[];
extern const struct ipu__onnx_operator onnx__sampling_rows[];
extern const struct ipu__onnx_operator onnx__quantized_rows[];
extern const struct ipu__onnx_operator onnx__signal_rows[];
extern const struct ipu__onnx_operator onnx__recurrent_rows[];
extern const struct ipu__onnx_operator onnx__condition_rows[];
extern const struct ipu__onnx_operator onnx__loop_rows[];
extern const struct ipu__onnx_operator onnx__optimizer_rows[];
extern const struct ipu__onnx_operator onnx__gradient_rows[];
extern const struct ipu__onnx_operator onnx__roi_pool_rows[];
extern const struct ipu__onnx_operator onnx__scan_rows[];
extern const struct ipu__onnx_operator onnx__random_rows[];

enum { MOST_AXES = IPU_MAX_DIMS };

/* Returns the operand that an op by element takes, and whether it has its
 * channels last. */
ipu_tensor onnx__operand(struct ipu__onnx_call *call,
                         struct ipu__onnx_value *value, bool *last);

/* Gives output 0 in the order that its operands had. */
int onnx__give_as(struct ipu__onnx_call *call, int32_t type, ipu_tensor tensor,
                  bool last);

/* Sets operands to n values that are broadcast together, in one order. */
void onnx__operands(struct ipu__onnx_call *call, int n,
                    struct ipu__onnx_value *const *values, ipu_tensor *operands,
                    bool *last);

/* Sets room to x with dimensions of 1 after its own, of ndim. */
void onnx__extend(struct ipu__onnx_call *call, struct ipu__onnx_value *x,
                  int32_t ndim, struct ipu__onnx_value *room);

/*
 * Before version 7, an input was broadcast to the first only if the attribute
 * broadcast said so, and its dimensions were those from axis on. Sets *pair to
 * input 1 as numpy broadcasts it: the input itself, or *room with dimensions of
 * 1 after its own.
 */
int onnx__old_broadcast(struct ipu__onnx_call *call,
                        struct ipu__onnx_value *room,
                        struct ipu__onnx_value **pair);

/* Refuses the node unless input i is of floats. */
int onnx__want_floats(struct ipu__onnx_call *call, int i);

/* Reads axes from an attribute, or from input i if the operators have it there,
 * as truths for each dimension. Without any, all are meant, and given is false.
 */
int onnx__axes(struct ipu__onnx_call *call, const char *attribute, int i,
               int32_t ndim, bool *axes, bool *given);

/* Returns the numbers of a type with fewer than 32 bits that are congruent to
 * those of x, int32. */
ipu_tensor onnx__wrap(struct ipu__onnx_call *call, int32_t type, ipu_tensor x);

/* Element-wise quotient of int32 tensors rounded towards 0, and the remainder
 * with the sign of the divisor, or (of_dividend) of the dividend. */
ipu_tensor onnx__quotient(ipu_graph *g, ipu_tensor a, ipu_tensor b);
ipu_tensor onnx__remainder(ipu_graph *g, ipu_tensor a, ipu_tensor b,
                           bool of_dividend);

/* Sets *y to the product of inputs 0 and 1, as MatMul makes it. */
int onnx__multiply_matrices(struct ipu__onnx_call *call, ipu_tensor *y);

/* Returns a value with its dimensions in another order; weights that are known
 * are put into it on the host. */
ipu_tensor onnx__permuted(struct ipu__onnx_call *call,
                          struct ipu__onnx_value *x, const int32_t *order);

/* Returns x with one axis at the end, or back from there. */
ipu_tensor onnx__axis_last(ipu_graph *g, ipu_tensor x, int32_t axis);
ipu_tensor onnx__axis_back(ipu_graph *g, ipu_tensor x, int32_t axis);

/* Returns indices into n elements, from 0 on: negative ones count from the end.
 */
ipu_tensor onnx__indices(struct ipu__onnx_call *call,
                         struct ipu__onnx_value *indices, int64_t n);
/* Refuses the node unless they are integers and, if they are known, some of n
 * elements. */
int onnx__check_indices(struct ipu__onnx_call *call,
                        struct ipu__onnx_value *indices, int64_t n);

/* Returns x with elements of a value before and after in each dimension; of
 * integers, too, which the device's op does not pad. */
ipu_tensor onnx__pad(ipu_graph *g, ipu_tensor x, const int64_t *before,
                     const int64_t *after, double value);

/* x, of floats, without its fraction. */
ipu_tensor onnx__truncate(ipu_graph *g, ipu_tensor x);

#endif
