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
 */
#ifndef IPU_H
#define IPU_H

#include <stddef.h>
#include <stdint.h>

#include "ipu_target.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t ipu_dtype;
enum { IPU_FLOAT32 = 0, IPU_INT32 = 1, IPU_NUM_DTYPES = 2 };

enum {
    IPU_OK = 0,
    IPU_ERR_ARGUMENT = -1, /* an argument is out of its range */
    IPU_ERR_SHAPE = -2,    /* shapes or dtypes do not fit the op */
    IPU_ERR_NAME = -3,     /* a name is unknown, or taken */
    IPU_ERR_STATE = -4,    /* not now: stream not connected, ... */
    IPU_ERR_MEMORY = -5,   /* host memory ran out */
    IPU_ERR_CALLBACK = -6, /* a host call returned a failure */
    IPU_ERR_DATA = -7      /* a value is out of range: a label, an index */
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

/* A tensor that the host streams in before each run. */
ipu_tensor ipu_input(ipu_graph *graph, const char *name, ipu_dtype dtype,
                     int32_t ndim, const int64_t *shape);

/* A tensor that lives on the device from run to run; zero until written. */
ipu_tensor ipu_variable(ipu_graph *graph, const char *name, ipu_dtype dtype,
                        int32_t ndim, const int64_t *shape);

/* ------------------------------------------------------------------- ops */

typedef struct ipu_conv_options {
    uint32_t size;     /* sizeof(ipu_conv_options) */
    int32_t stride[2]; /* height, width; 1, 1 */
    int32_t same;      /* 0: VALID, no padding; 1: SAME, as TensorFlow pads */
} ipu_conv_options;

/* x: [n, h, w, ci], kernel: [kh, kw, ci, co] -> [n, ho, wo, co]. options
 * NULL: stride 1, VALID. */
ipu_tensor ipu_conv2d(ipu_graph *graph, ipu_tensor x, ipu_tensor kernel,
                      const ipu_conv_options *options);

/* x: [n, h, w, c] -> [n, h/size, w/size, c]; windows of size x size, stride
 * size, incomplete windows at the edge dropped (VALID). The gradient goes to
 * the first maximum of a window. */
ipu_tensor ipu_max_pool2d(ipu_graph *graph, ipu_tensor x, int32_t size);

/* x: [m, k], w: [k, n] -> [m, n] */
ipu_tensor ipu_matmul(ipu_graph *graph, ipu_tensor x, ipu_tensor w);

/* x: [..., n], bias: [n] -> [..., n] */
ipu_tensor ipu_bias_add(ipu_graph *graph, ipu_tensor x, ipu_tensor bias);

/* max(x, 0); the gradient at 0 is 0 */
ipu_tensor ipu_relu(ipu_graph *graph, ipu_tensor x);

/* The same elements in another shape. One extent may be -1. */
ipu_tensor ipu_reshape(ipu_graph *graph, ipu_tensor x, int32_t ndim,
                       const int64_t *shape);

/* logits: [n, classes] float32, labels: [n] int32 -> [n] float32, the loss
 * of each row. A label outside [0, classes) fails the run: IPU_ERR_DATA,
 * naming row and label. */
ipu_tensor ipu_softmax_cross_entropy(ipu_graph *graph, ipu_tensor logits,
                                     ipu_tensor labels);

/* Sum of all elements times scale -> scalar (ndim 0). */
ipu_tensor ipu_reduce_sum(ipu_graph *graph, ipu_tensor x, double scale);

/* a + b, a * b: same shapes */
ipu_tensor ipu_add(ipu_graph *graph, ipu_tensor a, ipu_tensor b);
ipu_tensor ipu_multiply(ipu_graph *graph, ipu_tensor a, ipu_tensor b);

/* ---------------------------------------------------------- derivatives */

/*
 * Reverse-mode differentiation: gradients[i] = d loss / d wrt[i], with the
 * shape and dtype of wrt[i]. loss must be a float32 scalar. A wrt that loss
 * does not depend on gets a tensor of zeros.
 */
int ipu_gradients(ipu_graph *graph, ipu_tensor loss, int32_t count,
                  const ipu_tensor *wrt, ipu_tensor *gradients);

/* --------------------------------------------------------------- results */

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

/* --------------------------------------------------------------- compile */

/*
 * Compile: orders the ops so that each host call comes as early as it can
 * (gradients leave while the backward pass still runs), drops what no
 * output, host call or variable needs, plans which tensors share memory and
 * places them. target NULL: a Mk2. The graph may be freed afterwards. Does
 * not change the graph; the same graph gives the same executable.
 */
int ipu_compile(const ipu_graph *graph, const ipu_target *target,
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
    int64_t bytes_on_fullest_tile;
} ipu_memory_info;

int ipu_executable_memory(const ipu_executable *executable,
                          ipu_memory_info *info);

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

/* Write or read a whole variable, by name. Copies. */
int ipu_engine_write(ipu_engine *engine, const char *name, const void *data,
                     size_t bytes);
int ipu_engine_read(ipu_engine *engine, const char *name, void *data,
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

#endif
