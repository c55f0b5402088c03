/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu.h - a software IPU: build a graph, compile it for a target, run it.
 *
 *   ipu_graph       what is wanted: tensors with dtype and shape, ops on
 *                   them, their gradients, streams to and from the host
 *   ipu_executable  a compiled graph: a program of steps, every tensor with
 *                   its place in device memory
 *   ipu_engine      a device with an executable loaded: variables, streams
 *                   connected to host memory, runs
 *
 * The device computes on the CPU: matrix products go through OpenBLAS, on
 * one thread unless ipu_set_threads says otherwise. It knows nothing of
 * ranks or MPI.
 *
 * Errors. Functions that return int return 0 (IPU_OK) or more on success and
 * a negative IPU_ERR_*; functions that return ipu_tensor return an invalid
 * tensor (id < 0) on failure, and every op given an invalid tensor returns
 * one too, so that a builder may check once, at ipu_compile, which then
 * reports the first failure. ipu_last_error() tells the calling thread's
 * last failure in full: op, tensor names, shapes, what to do.
 *
 * Threads. One thread at a time may use one graph, executable or engine;
 * different objects may be used at the same time by different threads.
 *
 * Shapes are row-major, extents in elements; images are [batch, height,
 * width, channels] (NHWC), convolution kernels [height, width, in, out], as
 * in TensorFlow. An extent may be 0 (an empty batch); ops then do nothing, and
 * sums are 0. Images must not be smaller than a kernel or window.
 *
 * Where float32 is written below, float16 and bfloat16 will do too, if all
 * floats of an op are of the same dtype: they are stored so, computed with in
 * float32, and rounded once, to the nearest.
 */
#ifndef IPU_H
#define IPU_H

#include <stddef.h>
#include <stdint.h>

#include "ipu_file.h"
#include "ipu_model.h"
#include "ipu_target.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t ipu_dtype;
enum {
    IPU_FLOAT32 = 0,
    IPU_INT32 = 1,
    IPU_FLOAT16 = 2,
    IPU_BFLOAT16 = 3,
    IPU_NUM_DTYPES = 4
};

enum {
    IPU_OK = 0,
    IPU_ERR_ARGUMENT = -1, /* an argument is out of its range */
    IPU_ERR_SHAPE = -2,    /* shapes or dtypes do not fit the op */
    IPU_ERR_NAME = -3,     /* a name is unknown, or taken */
    IPU_ERR_STATE = -4,    /* not now: stream not connected, ... */
    IPU_ERR_MEMORY = -5,   /* host memory ran out */
    IPU_ERR_CALLBACK = -6, /* a host call returned a failure */
    IPU_ERR_DATA = -7,     /* a value is out of range: a label, an index; a
                              file cannot be read, or holds something else */
    IPU_ERR_FULL = -8,     /* it does not fit into the chip's memory */
    IPU_ERR_END = -9       /* the data of an infeed has ended */
};

const char *ipu_strerror(int status);
const char *ipu_last_error(void);

typedef struct ipu_graph ipu_graph;
typedef struct ipu_executable ipu_executable;
typedef struct ipu_engine ipu_engine;

/* A tensor of one graph; id < 0 is invalid. Passed by value on purpose: it
 * is one number. */
typedef struct ipu_tensor {
    int32_t id;
} ipu_tensor;

enum { IPU_MAX_DIMS = 8 };

/* ----------------------------------------------------------------- graph */

int ipu_graph_new(ipu_graph **graph);
void ipu_graph_free(ipu_graph *graph); /* NULL is accepted */

/* What a tensor is. shape must have room for IPU_MAX_DIMS. Any of the
 * outputs may be NULL. Returns the number of dimensions. */
int ipu_tensor_info(const ipu_graph *graph, ipu_tensor tensor, ipu_dtype *dtype,
                    int64_t *shape, const char **name);

/*
 * The input, variable, output or host call of that name; or, if there is none,
 * the last result of that name, which ops make up of theirs and a number.
 * IPU_ERR_NAME.
 */
int ipu_graph_find(const ipu_graph *graph, const char *name,
                   ipu_tensor *tensor);

/*
 * Say where in the program the ops that follow are asked for: failures and
 * reports name it. The macros at the end of this file do so; who wraps ops in
 * functions, or calls them from another language, does it himself. file is
 * borrowed as long as the graph lives. Returns the graph.
 */
ipu_graph *ipu_at(ipu_graph *graph, const char *file, int32_t line);

/* A tensor that the host streams in before each run. */
ipu_tensor ipu_input(ipu_graph *graph, const char *name, ipu_dtype dtype,
                     int32_t ndim, const int64_t *shape);

/* A tensor that lives on the device from run to run; zero until written. */
ipu_tensor ipu_variable(ipu_graph *graph, const char *name, ipu_dtype dtype,
                        int32_t ndim, const int64_t *shape);

/*
 * Have a tensor lie on tiles tiles from number first_tile on, in runs of 8
 * bytes, as evenly as can be; otherwise the compiler chooses. A step by element
 * computes where its output lies, so this says where work is done, too, and
 * what has to be moved for it. A tensor that is another view of one (reshape)
 * cannot be mapped by itself. ipu_compile fails with IPU_ERR_ARGUMENT, naming
 * the tensor, if the target has no such tiles.
 */
int ipu_map(ipu_graph *graph, ipu_tensor tensor, int32_t first_tile,
            int32_t tiles);

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

/* max(x, 0); the gradient at 0 is 0 */
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
 * variance, the estimate without bias). The inference takes them instead.
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

/* ---------------------------------------------------------- derivatives */

/*
 * Reverse-mode differentiation: gradients[i] = d loss / d wrt[i], with the
 * shape and dtype of wrt[i]. loss must be a float32 scalar (ipu_cast halves). A
 * wrt that loss does not depend on gets a tensor of zeros.
 */
int ipu_gradients(ipu_graph *graph, ipu_tensor loss, int32_t count,
                  const ipu_tensor *wrt, ipu_tensor *gradients);

/* --------------------------------------------------------------- results */

/*
 * The variable becomes the value, of the same shape and dtype, in each run.
 * Ops and host calls see the variable as it was when the run began, wherever
 * they stand; an ipu_output of the variable itself, and ipu_engine_read
 * afterwards, give what it has become. All assignments happen, or, if the run
 * fails, none. A variable is assigned once.
 */
int ipu_assign(ipu_graph *graph, ipu_tensor variable, ipu_tensor value);

/* Stream a tensor to the host at the end of each run. */
int ipu_output(ipu_graph *graph, const char *name, ipu_tensor tensor);

/*
 * Called on the engine's thread as soon as the tensor has been computed,
 * while the rest of the program has yet to run: the host call of Graphcore's
 * IPUEstimatorSpec. data, count elements, is the host buffer connected to
 * the stream (ipu_engine_connect), already filled; without one, the device's
 * own memory, valid during the call only. A negative return ends the run
 * with IPU_ERR_CALLBACK; ipu_engine_callback_status() gives it back.
 */
typedef int (*ipu_host_fn)(void *context, const char *name, void *data,
                           int64_t count);

int ipu_host_call(ipu_graph *graph, const char *name, ipu_tensor tensor,
                  ipu_host_fn fn, void *context);

/*
 * A tensor like x, which the host gives when the program comes to it: after x
 * has been computed, and after all host calls. fn fills data, of count
 * elements; what data holds before is undefined, but where it can be it is the
 * memory of x (and so, after ipu_engine_place of x's host call, that of the
 * host). With a host call of x, the program has the host work on x while it
 * goes on, and here takes what became of it: the average of all ranks.
 *
 * A negative return of fn ends the run, before any variable is written, as
 * that of a host call. The name is for fn and reports. No derivative.
 */
ipu_tensor ipu_host_receive(ipu_graph *graph, const char *name, ipu_tensor x,
                            ipu_host_fn fn, void *context);

/* ------------------------------------------------------------- optimisers */

typedef struct ipu_sgd_options {
    uint32_t size;       /* sizeof(ipu_sgd_options) */
    int32_t nesterov;    /* 1: Nesterov's momentum */
    double momentum;     /* in [0, 1) */
    double weight_decay; /* times the variable, added to the gradient */
} ipu_sgd_options;

typedef struct ipu_adam_options {
    uint32_t size; /* sizeof(ipu_adam_options) */
    int32_t reserved;
    double beta1, beta2; /* 0.9, 0.999 */
    double epsilon;      /* 1e-8 */
    double weight_decay; /* 0 */
} ipu_adam_options;

/*
 * Assign to the variable what the optimiser makes of it and of the gradient,
 * with each run. rate: a float32 scalar, an input or a constant; step: an int32
 * scalar, 0 in the first run (ipu_counter). What they keep are variables: the
 * name with "/momentum", or with "/m" and "/v". Weight decay is added to the
 * gradient by adam, and beside the moments by adamw and lamb. options NULL: as
 * above, without momentum.
 */
int ipu_sgd(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
            ipu_tensor rate, const ipu_sgd_options *options);
int ipu_adam(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
             ipu_tensor rate, ipu_tensor step, const ipu_adam_options *options);
int ipu_adamw(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
              ipu_tensor rate, ipu_tensor step,
              const ipu_adam_options *options);
int ipu_lamb(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
             ipu_tensor rate, ipu_tensor step, const ipu_adam_options *options);

#include "ipu_ops.h"

#include "ipu_training.h"

/* --------------------------------------------------------------- compile */

/*
 * Compile: orders the ops so that each host call comes as early as it can
 * (gradients leave while the backward pass still runs), drops what no
 * output, host call or assignment needs, plans which tensors share memory and
 * places them. target NULL: a Mk2. The graph may be freed afterwards. Does
 * not change the graph; the same graph gives the same executable.
 *
 * IPU_ERR_FULL if a tile would hold more than it has memory: which tile, at
 * which step, how many bytes over, what lies there, and what would change
 * that, each with the bytes and the time that it would make of it.
 */
int ipu_compile(const ipu_graph *graph, const ipu_target *target,
                ipu_executable **executable);

/*
 * Told during a compilation: when each phase begins, and when a hundredth more
 * of it is done; phases and totals are not known before. On the compiling
 * thread. Not 0 stops the compilation: IPU_ERR_CALLBACK, and nothing is left of
 * it.
 */
typedef int (*ipu_progress_fn)(void *context, const char *phase, int64_t done,
                               int64_t total);

/* Passes that make a program smaller and faster. None changes a bit of any
 * result, payloads of NaN aside. */
enum {
    IPU_PASS_FOLD = 1,     /* what constants make is computed when compiling */
    IPU_PASS_SIMPLIFY = 2, /* x * 1, a reshape of a reshape, ... */
    IPU_PASS_MERGE = 4,    /* what is computed twice is computed once */
    IPU_PASS_FUSE = 8      /* ops by element that follow each other are one */
};

typedef struct ipu_compile_options {
    uint32_t size;               /* sizeof(ipu_compile_options) */
    const ipu_target *target;    /* borrowed during the call; NULL: a Mk2 */
    int32_t allow_out_of_memory; /* 1: compile what does not fit, too; the
                                    engine runs it all the same */
    ipu_progress_fn progress;    /* NULL: nobody asks */
    void *progress_context;      /* borrowed during the call */
    uint32_t without;            /* IPU_PASS_* that are left out; 0: none */
    int32_t brief;               /* 1: IPU_ERR_FULL says what does not fit, but
                                    not what would change that, for which the
                                    program is compiled with each remedy */
    int32_t reserved;
} ipu_compile_options;

/* The same, with options. */
int ipu_compile_with(const ipu_graph *graph, const ipu_compile_options *options,
                     ipu_executable **executable);
void ipu_executable_free(ipu_executable *executable);

typedef struct ipu_memory_info {
    uint32_t size;             /* sizeof(ipu_memory_info), set by the caller */
    int32_t steps;             /* ops in the program */
    int64_t always_live_bytes; /* variables */
    int64_t peak_bytes;        /* always live, and the most of the rest alive
                                  at one step */
    int64_t planned_bytes;     /* what the engine allocates for tensors */
    int64_t unshared_bytes;    /* ... if no two tensors shared memory */
    int64_t bytes_on_fullest_tile; /* of tensors alone */
    /* With code and what steps need for themselves: */
    int64_t code_bytes_per_tile;
    int64_t bytes_per_tile; /* that there are */
    int64_t fullest_tile_bytes;
    int32_t fullest_tile;
    int32_t fullest_step; /* when it is */
    int64_t remote_bytes; /* of variables in the DRAM beside the chip, which
                             none of the above but planned_bytes has */
} ipu_memory_info;

int ipu_executable_memory(const ipu_executable *executable,
                          ipu_memory_info *info);

/* One step on the chip. Texts are borrowed until the executable is freed. */
typedef struct ipu_step_info {
    uint32_t size;          /* sizeof(ipu_step_info), set by the caller */
    const char *op;         /* "matmul", "host_call" */
    const char *tensor;     /* what it makes, or what the host gets */
    int64_t compute_cycles; /* of the busiest tile, as those below */
    int64_t exchange_cycles;
    int64_t sync_cycles;
    int64_t total_cycles;
    int64_t exchange_bytes;  /* into it */
    int64_t temporary_bytes; /* that the step itself needs, on each tile */
    double flops;
    int32_t busy_tiles; /* that compute */
    int32_t fullest_tile;
    int64_t fullest_tile_bytes; /* all that is on it during the step */
    const char *estimate; /* why the cycles are only an estimate, or NULL */
    int32_t update_count; /* it runs every so many runs; 1: in each */
    int32_t again;        /* 1: it computes an activation again */
    const char *parts;    /* of a "fused" step: "conv2d, bias_add"; else NULL */
} ipu_step_info;

int ipu_executable_step(const ipu_executable *executable, int32_t step,
                        ipu_step_info *info);

/* Memory of one tile. */
typedef struct ipu_tile_info {
    uint32_t size; /* sizeof(ipu_tile_info), set by the caller */
    int64_t code_bytes;
    int64_t always_live_bytes;     /* variables */
    int64_t not_always_live_bytes; /* the rest, when the tile is fullest */
    int64_t peak_bytes;            /* all three */
    int32_t peak_step;
    /* Of these, code: */
    int64_t exchange_code_bytes;
    int64_t state_bytes; /* of vertices; the rest is vertex code */
    /* always live: */
    int64_t constant_bytes; /* the rest are variables */
    /* not always live: */
    int64_t tensor_bytes;    /* activations, gradients, streams */
    int64_t exchange_bytes;  /* received since tensors lie as they do */
    int64_t partial_bytes;   /* sums that are not complete */
    int64_t temporary_bytes; /* these two, and what the step fetches by plan */
} ipu_tile_info;

int ipu_executable_tile(const ipu_executable *executable, int32_t tile,
                        ipu_tile_info *info);

/* One step as one tile sees it: a tile without work waits (sync) while others
 * compute. cycles->size must be set. */
int ipu_executable_tile_cycles(const ipu_executable *executable, int32_t step,
                               int32_t tile, ipu_cycles *cycles);

/* A whole run on the chip. */
typedef struct ipu_program_cycles {
    uint32_t size; /* sizeof(ipu_program_cycles), set by the caller */
    int64_t compute;
    int64_t exchange;
    int64_t sync;
    int64_t host;  /* inputs, outputs and host calls */
    int64_t total; /* with I/O tiles, host goes on beside the rest */
    double seconds;
    double flops;
    int32_t estimates; /* steps whose cycles are only estimates */
    /* The above are of a run with an update (ipu_training.h). */
    int64_t update;          /* of total: what does not run each time */
    int64_t mean_total;      /* of a run, over all runs */
    int64_t streaming;       /* of exchange: to and from the DRAM beside */
    int64_t streaming_bytes; /* that go there or come from there */
    int64_t again;           /* of total: activations computed again */
} ipu_program_cycles;

int ipu_executable_cycles(const ipu_executable *executable,
                          ipu_program_cycles *info);

/* The program as text, a line a step: op, inputs, shape, place (@offset), and
 * how many bytes are alive.
 * Writes at most size bytes with the NUL, returns the length it needs. */
int64_t ipu_executable_print(const ipu_executable *executable, char *text,
                             int64_t size);

/* ---------------------------------------------------------------- engine */

/* Load an executable, which must outlive the engine. */
int ipu_engine_new(const ipu_executable *executable, ipu_engine **engine);
void ipu_engine_free(ipu_engine *engine);

/*
 * Connect a stream (input, output or host call, by name) to host memory of
 * exactly bytes bytes, borrowed until connected elsewhere or the engine is
 * freed; the run reads or writes it. NULL disconnects.
 */
int ipu_engine_connect(ipu_engine *engine, const char *name, void *data,
                       size_t bytes);

/*
 * Give a host call or ipu_host_receive, by name, another function than the
 * graph did; a loaded
 * one has none until then, and a run fails with IPU_ERR_STATE. fn NULL: back
 * to the graph's. context is borrowed until connected elsewhere or the engine
 * is freed. Not while the engine runs.
 */
int ipu_engine_connect_call(ipu_engine *engine, const char *name,
                            ipu_host_fn fn, void *context);

/* Write or read a whole variable, by name. Copies. */
int ipu_engine_write(ipu_engine *engine, const char *name, const void *data,
                     size_t bytes);
int ipu_engine_read(ipu_engine *engine, const char *name, void *data,
                    size_t bytes);

/*
 * From now on the tensor of a stream, or a variable, lives in this memory of
 * the host, of exactly bytes bytes, and is not copied between the two: where
 * both are one memory, as here, a copy is only time. Several engines may share
 * a variable that way, if one at a time runs.
 *
 * data is borrowed until the engine is freed or the name is placed elsewhere;
 * NULL: in the device's own memory. A stream is connected to it besides. A
 * variable has the elements that are there already, and takes them with it
 * when it returns. A tensor's memory may hold others, of the same size, while
 * the tensor is not needed: runs may write to it at any time, but between a
 * host call and the step that next needs its tensor, they do not.
 *
 * IPU_ERR_STATE for a stream whose tensor lives in the place of a variable.
 */
int ipu_engine_place(ipu_engine *engine, const char *name, void *data,
                     size_t bytes);

/*
 * Run the program once, on the calling thread. An input that the program
 * needs and that is not connected is IPU_ERR_STATE, naming the stream. After a
 * failure variables are as they were, and the engine can run again.
 */
int ipu_engine_run(ipu_engine *engine);

/* What the host call that ended the last run returned; 0 if none did. */
int ipu_engine_callback_status(const ipu_engine *engine);

/* Threads OpenBLAS may use in this process; 1 until set. */
int ipu_set_threads(int32_t threads);

#ifdef __cplusplus
}
#endif

#include "ipu_streams.h"
/* What needs the types above. */
#include "ipu_report.h"

#include "ipu_pipeline.h"
#include "ipu_replica.h"

#include "ipu_remedy.h"

/* Each builder tells where it is called. Not with IPU_NO_SOURCES. */
#ifndef IPU_NO_SOURCES
#define IPU_HERE(graph) ipu_at(graph, __FILE__, __LINE__)
#define ipu_map(graph, ...) ipu_map(IPU_HERE(graph), __VA_ARGS__)
#define ipu_input(graph, ...) ipu_input(IPU_HERE(graph), __VA_ARGS__)
#define ipu_variable(graph, ...) ipu_variable(IPU_HERE(graph), __VA_ARGS__)
#define ipu_conv2d(graph, ...) ipu_conv2d(IPU_HERE(graph), __VA_ARGS__)
#define ipu_max_pool2d(graph, ...) ipu_max_pool2d(IPU_HERE(graph), __VA_ARGS__)
#define ipu_avg_pool2d(graph, ...) ipu_avg_pool2d(IPU_HERE(graph), __VA_ARGS__)
#define ipu_max_pool2d_with(graph, ...)                                        \
    ipu_max_pool2d_with(IPU_HERE(graph), __VA_ARGS__)
#define ipu_avg_pool2d_with(graph, ...)                                        \
    ipu_avg_pool2d_with(IPU_HERE(graph), __VA_ARGS__)
#define ipu_matmul(graph, ...) ipu_matmul(IPU_HERE(graph), __VA_ARGS__)
#define ipu_batch_matmul(graph, ...)                                           \
    ipu_batch_matmul(IPU_HERE(graph), __VA_ARGS__)
#define ipu_attention(graph, ...) ipu_attention(IPU_HERE(graph), __VA_ARGS__)
#define ipu_bias_add(graph, ...) ipu_bias_add(IPU_HERE(graph), __VA_ARGS__)
#define ipu_relu(graph, ...) ipu_relu(IPU_HERE(graph), __VA_ARGS__)
#define ipu_reshape(graph, ...) ipu_reshape(IPU_HERE(graph), __VA_ARGS__)
#define ipu_transpose(graph, ...) ipu_transpose(IPU_HERE(graph), __VA_ARGS__)
#define ipu_slice(graph, ...) ipu_slice(IPU_HERE(graph), __VA_ARGS__)
#define ipu_pad(graph, ...) ipu_pad(IPU_HERE(graph), __VA_ARGS__)
#define ipu_concat(graph, ...) ipu_concat(IPU_HERE(graph), __VA_ARGS__)
#define ipu_softmax(graph, ...) ipu_softmax(IPU_HERE(graph), __VA_ARGS__)
#define ipu_log_softmax(graph, ...)                                            \
    ipu_log_softmax(IPU_HERE(graph), __VA_ARGS__)
#define ipu_softmax_cross_entropy(graph, ...)                                  \
    ipu_softmax_cross_entropy(IPU_HERE(graph), __VA_ARGS__)
#define ipu_mean_squared_error(graph, ...)                                     \
    ipu_mean_squared_error(IPU_HERE(graph), __VA_ARGS__)
#define ipu_layer_norm(graph, ...) ipu_layer_norm(IPU_HERE(graph), __VA_ARGS__)
#define ipu_group_norm(graph, ...) ipu_group_norm(IPU_HERE(graph), __VA_ARGS__)
#define ipu_batch_norm(graph, ...) ipu_batch_norm(IPU_HERE(graph), __VA_ARGS__)
#define ipu_batch_norm_inference(graph, ...)                                   \
    ipu_batch_norm_inference(IPU_HERE(graph), __VA_ARGS__)
#define ipu_gather(graph, ...) ipu_gather(IPU_HERE(graph), __VA_ARGS__)
#define ipu_embedding(graph, ...) ipu_embedding(IPU_HERE(graph), __VA_ARGS__)
#define ipu_scatter_add(graph, ...)                                            \
    ipu_scatter_add(IPU_HERE(graph), __VA_ARGS__)
#define ipu_argmax(graph, ...) ipu_argmax(IPU_HERE(graph), __VA_ARGS__)
#define ipu_one_hot(graph, ...) ipu_one_hot(IPU_HERE(graph), __VA_ARGS__)
#define ipu_cast(graph, ...) ipu_cast(IPU_HERE(graph), __VA_ARGS__)
#define ipu_constant(graph, ...) ipu_constant(IPU_HERE(graph), __VA_ARGS__)
#define ipu_fill(graph, ...) ipu_fill(IPU_HERE(graph), __VA_ARGS__)
#define ipu_counter(graph, ...) ipu_counter(IPU_HERE(graph), __VA_ARGS__)
#define ipu_dropout(graph, ...) ipu_dropout(IPU_HERE(graph), __VA_ARGS__)
#define ipu_random_uniform(graph, ...)                                         \
    ipu_random_uniform(IPU_HERE(graph), __VA_ARGS__)
#define ipu_random_normal(graph, ...)                                          \
    ipu_random_normal(IPU_HERE(graph), __VA_ARGS__)
#define ipu_reduce_sum(graph, ...) ipu_reduce_sum(IPU_HERE(graph), __VA_ARGS__)
#define ipu_add(graph, ...) ipu_add(IPU_HERE(graph), __VA_ARGS__)
#define ipu_subtract(graph, ...) ipu_subtract(IPU_HERE(graph), __VA_ARGS__)
#define ipu_multiply(graph, ...) ipu_multiply(IPU_HERE(graph), __VA_ARGS__)
#define ipu_divide(graph, ...) ipu_divide(IPU_HERE(graph), __VA_ARGS__)
#define ipu_maximum(graph, ...) ipu_maximum(IPU_HERE(graph), __VA_ARGS__)
#define ipu_minimum(graph, ...) ipu_minimum(IPU_HERE(graph), __VA_ARGS__)
#define ipu_power(graph, ...) ipu_power(IPU_HERE(graph), __VA_ARGS__)
#define ipu_equal(graph, ...) ipu_equal(IPU_HERE(graph), __VA_ARGS__)
#define ipu_not_equal(graph, ...) ipu_not_equal(IPU_HERE(graph), __VA_ARGS__)
#define ipu_less(graph, ...) ipu_less(IPU_HERE(graph), __VA_ARGS__)
#define ipu_less_equal(graph, ...) ipu_less_equal(IPU_HERE(graph), __VA_ARGS__)
#define ipu_greater(graph, ...) ipu_greater(IPU_HERE(graph), __VA_ARGS__)
#define ipu_greater_equal(graph, ...)                                          \
    ipu_greater_equal(IPU_HERE(graph), __VA_ARGS__)
#define ipu_select(graph, ...) ipu_select(IPU_HERE(graph), __VA_ARGS__)
#define ipu_broadcast(graph, ...) ipu_broadcast(IPU_HERE(graph), __VA_ARGS__)
#define ipu_negate(graph, ...) ipu_negate(IPU_HERE(graph), __VA_ARGS__)
#define ipu_abs(graph, ...) ipu_abs(IPU_HERE(graph), __VA_ARGS__)
#define ipu_square(graph, ...) ipu_square(IPU_HERE(graph), __VA_ARGS__)
#define ipu_exp(graph, ...) ipu_exp(IPU_HERE(graph), __VA_ARGS__)
#define ipu_log(graph, ...) ipu_log(IPU_HERE(graph), __VA_ARGS__)
#define ipu_sqrt(graph, ...) ipu_sqrt(IPU_HERE(graph), __VA_ARGS__)
#define ipu_rsqrt(graph, ...) ipu_rsqrt(IPU_HERE(graph), __VA_ARGS__)
#define ipu_scale(graph, ...) ipu_scale(IPU_HERE(graph), __VA_ARGS__)
#define ipu_tanh(graph, ...) ipu_tanh(IPU_HERE(graph), __VA_ARGS__)
#define ipu_sigmoid(graph, ...) ipu_sigmoid(IPU_HERE(graph), __VA_ARGS__)
#define ipu_gelu(graph, ...) ipu_gelu(IPU_HERE(graph), __VA_ARGS__)
#define ipu_gelu_tanh(graph, ...) ipu_gelu_tanh(IPU_HERE(graph), __VA_ARGS__)
#define ipu_silu(graph, ...) ipu_silu(IPU_HERE(graph), __VA_ARGS__)
#define ipu_sum(graph, ...) ipu_sum(IPU_HERE(graph), __VA_ARGS__)
#define ipu_mean(graph, ...) ipu_mean(IPU_HERE(graph), __VA_ARGS__)
#define ipu_max(graph, ...) ipu_max(IPU_HERE(graph), __VA_ARGS__)
#define ipu_gradients(graph, ...) ipu_gradients(IPU_HERE(graph), __VA_ARGS__)
#define ipu_assign(graph, ...) ipu_assign(IPU_HERE(graph), __VA_ARGS__)
#define ipu_output(graph, ...) ipu_output(IPU_HERE(graph), __VA_ARGS__)
#define ipu_host_call(graph, ...) ipu_host_call(IPU_HERE(graph), __VA_ARGS__)
#define ipu_infeed_dequeue(graph, ...)                                         \
    ipu_infeed_dequeue(IPU_HERE(graph), __VA_ARGS__)
#define ipu_outfeed_enqueue(graph, ...)                                        \
    ipu_outfeed_enqueue(IPU_HERE(graph), __VA_ARGS__)
#define ipu_repeat(graph, ...) ipu_repeat(IPU_HERE(graph), __VA_ARGS__)
#define ipu_while(graph, ...) ipu_while(IPU_HERE(graph), __VA_ARGS__)
#define ipu_remote_buffer_new(graph, ...)                                      \
    ipu_remote_buffer_new(IPU_HERE(graph), __VA_ARGS__)
#define ipu_remote_load(graph, ...)                                            \
    ipu_remote_load(IPU_HERE(graph), __VA_ARGS__)
#define ipu_remote_store(graph, ...)                                           \
    ipu_remote_store(IPU_HERE(graph), __VA_ARGS__)
#define ipu_host_receive(graph, ...)                                           \
    ipu_host_receive(IPU_HERE(graph), __VA_ARGS__)
#define ipu_sgd(graph, ...) ipu_sgd(IPU_HERE(graph), __VA_ARGS__)
#define ipu_adam(graph, ...) ipu_adam(IPU_HERE(graph), __VA_ARGS__)
#define ipu_adamw(graph, ...) ipu_adamw(IPU_HERE(graph), __VA_ARGS__)
#define ipu_cross_replica_sum(graph, ...)                                      \
    ipu_cross_replica_sum(IPU_HERE(graph), __VA_ARGS__)
#define ipu_cross_replica_mean(graph, ...)                                     \
    ipu_cross_replica_mean(IPU_HERE(graph), __VA_ARGS__)
#define ipu_cross_replica_gradients(graph, ...)                                \
    ipu_cross_replica_gradients(IPU_HERE(graph), __VA_ARGS__)
#define ipu_replica_index(graph) ipu_replica_index(IPU_HERE(graph))
#define ipu_lamb(graph, ...) ipu_lamb(IPU_HERE(graph), __VA_ARGS__)
#endif

#endif
