/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.h - what an op is: the door of this room. Each op is one file that ends
 * with its table row.
 */
#ifndef IPU_OPS_OP_H
#define IPU_OPS_OP_H

#include "graph/graph.h"
#include "target/work.h"

/* A tensor as an op sees it. */
struct ipu__operand {
    const char *name;
    struct ipu__shape shape; /* of halves, as if they were float32 */
    ipu_dtype dtype;         /* as stored */
    void *data;              /* while running; 64-byte aligned */
};

struct ipu__call {
    const struct ipu__op *op;
    const struct ipu__attributes *attributes;
    struct ipu__operand inputs[IPU__MAX_INPUTS];
    struct ipu__operand output;
    void *scratch; /* while running: what the op's scratch function asked */
};

struct ipu__op {
    const char *name;
    int ninputs;
    /* The input whose memory the output may take, if nobody else needs it
     * any more; -1: none. run must work with and without. */
    int in_place;
    /* That input is the output, unchanged: they share memory also while the
     * input is needed. */
    bool alias;
    /* It takes elements as they are stored, of all dtypes. */
    bool raw;
    /* run may fail: it looks at the data. */
    bool checks;
    /* The output's shape; IPU_ERR_SHAPE says what does not fit. */
    int (*shape)(const struct ipu__call *call, struct ipu__shape *output);
    /* Bytes of scratch that run needs; NULL: none. */
    size_t (*scratch)(const struct ipu__call *call);
    /* Compute. Only data can be wrong by now: IPU_ERR_DATA. */
    int (*run)(const struct ipu__call *call);
    /* What it asks of the chip: kind, and what that needs. NULL: nothing, if
     * it is an alias; sums, if the output is smaller than an input; else one
     * instruction for each vector of the output. */
    void (*cost)(const struct ipu__call *call, struct ipu__work *work);
    /* From dy, the derivative of the loss with respect to the output, make
     * those with respect to the inputs that are needed (by tensor); the
     * others may stay invalid. Failures stay in the graph. NULL: the op has
     * no derivative. */
    void (*gradient)(ipu_graph *graph, const struct ipu__node *node,
                     const bool *needed, ipu_tensor dy, ipu_tensor *dx);
};

extern const struct ipu__op ipu__conv2d;
extern const struct ipu__op ipu__conv2d_input_grad;
extern const struct ipu__op ipu__conv2d_kernel_grad;
extern const struct ipu__op ipu__max_pool2d;
extern const struct ipu__op ipu__max_pool2d_grad;
extern const struct ipu__op ipu__matmul;
extern const struct ipu__op ipu__bias_add;
extern const struct ipu__op ipu__bias_add_grad;
extern const struct ipu__op ipu__relu;
extern const struct ipu__op ipu__relu_grad;
extern const struct ipu__op ipu__reshape;
extern const struct ipu__op ipu__softmax_cross_entropy;
extern const struct ipu__op ipu__softmax_cross_entropy_grad;
extern const struct ipu__op ipu__reduce_sum;
extern const struct ipu__op ipu__spread;
extern const struct ipu__op ipu__binary_add;
extern const struct ipu__op ipu__binary_multiply;
extern const struct ipu__op ipu__fill;

extern const struct ipu__op ipu__binary_subtract;
extern const struct ipu__op ipu__binary_divide;
extern const struct ipu__op ipu__binary_maximum;
extern const struct ipu__op ipu__binary_minimum;
extern const struct ipu__op ipu__binary_power;
extern const struct ipu__op ipu__equal;
extern const struct ipu__op ipu__not_equal;
extern const struct ipu__op ipu__less;
extern const struct ipu__op ipu__less_equal;
extern const struct ipu__op ipu__select;
extern const struct ipu__op ipu__broadcast;
extern const struct ipu__op ipu__negate;
extern const struct ipu__op ipu__unary_abs;
extern const struct ipu__op ipu__square;
extern const struct ipu__op ipu__unary_exp;
extern const struct ipu__op ipu__unary_log;
extern const struct ipu__op ipu__sqrt;
extern const struct ipu__op ipu__rsqrt;
extern const struct ipu__op ipu__scale;
extern const struct ipu__op ipu__activation_tanh;
extern const struct ipu__op ipu__activation_sigmoid;
extern const struct ipu__op ipu__gelu;
extern const struct ipu__op ipu__gelu_tanh;
extern const struct ipu__op ipu__silu;
extern const struct ipu__op ipu__sum;
extern const struct ipu__op ipu__mean;
extern const struct ipu__op ipu__max;
extern const struct ipu__op ipu__avg_pool2d;
extern const struct ipu__op ipu__avg_pool2d_grad;
extern const struct ipu__op ipu__identity;
extern const struct ipu__op ipu__gather;
extern const struct ipu__op ipu__scatter_add;
extern const struct ipu__op ipu__argmax;
extern const struct ipu__op ipu__one_hot;
extern const struct ipu__op ipu__cast;
extern const struct ipu__op ipu__norm_statistics;
extern const struct ipu__op ipu__layer_norm;
extern const struct ipu__op ipu__group_norm;
extern const struct ipu__op ipu__batch_norm;
extern const struct ipu__op ipu__norm_grad;
extern const struct ipu__op ipu__norm_scale_grad;
extern const struct ipu__op ipu__dropout;
extern const struct ipu__op ipu__random_uniform;
extern const struct ipu__op ipu__random_normal;
extern const struct ipu__op ipu__softmax;
extern const struct ipu__op ipu__log_softmax;
extern const struct ipu__op ipu__transpose;
extern const struct ipu__op ipu__slice;
extern const struct ipu__op ipu__pad;
extern const struct ipu__op ipu__concat;

/* No node of a graph: the compiler's. */
extern const struct ipu__op ipu__assign_step;

/* ---------------------------------------- what shape functions have in common
 */

/* IPU_ERR_SHAPE unless input i has that dtype and, if ndim >= 0, as many
 * dimensions. form says in words what is expected: "[n, h, w, c]". */
int ipu__expect(const struct ipu__call *call, int i, ipu_dtype dtype,
                int32_t ndim, const char *form);

/* The output is like input 0, which is of floats. */
int ipu__same_floats(const struct ipu__call *call, struct ipu__shape *output);

/* A scalar of the tensor's dtype. */
ipu_tensor ipu__scalar_like(ipu_graph *graph, ipu_tensor tensor, double value);

/* IPU_ERR_SHAPE with both inputs' names and shapes, and why. */
int ipu__unfit(const struct ipu__call *call, int i, int j, const char *why);

/* For builders that look at a tensor before they add the op's node: its index,
 * or what ipu__add would fail with, kept in the graph. */
int32_t ipu__index_of(ipu_graph *graph, const struct ipu__op *op,
                      ipu_tensor tensor);

/* Of the tensor's axes, that which axis names (negative: from the last); or as
 * ipu__index_of fails, or because there is none. */
int ipu__find_axis(ipu_graph *graph, const struct ipu__op *op,
                   ipu_tensor tensor, int32_t axis, int32_t *found);

/* Loops that gain from wide vectors are compiled for several of them, and
 * the processor's is chosen when the program starts. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) &&                   \
    !defined(__SANITIZE_THREAD__)
#define IPU__WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define IPU__WIDE
#endif

/* Before a loop whose element i depends on nothing but elements i, in place or
 * not. */
#ifdef __clang__
#define IPU__BY_ELEMENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define IPU__BY_ELEMENT _Pragma("GCC ivdep")
#endif

#endif
