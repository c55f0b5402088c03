/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_graph.h - building a graph: inputs, outputs and host calls, variables and
 * their assignments, derivatives. ipu.h includes it, and describes errors,
 * threads and shapes for all builders.
 */
#ifndef IPU_H
#include "ipu.h" /* ipu.h includes this file after those that it needs */
#elif !defined(IPU_GRAPH_H)
#define IPU_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------------------- graph */

int ipu_graph_new(ipu_graph **graph);
void ipu_graph_free(ipu_graph *graph); /* NULL is accepted */

/* Returns a tensor's number of dimensions, and its dtype, shape and name. shape
 * must have room for IPU_MAX_DIMS. Any of the outputs may be NULL. */
int ipu_tensor_info(const ipu_graph *graph, ipu_tensor tensor, ipu_dtype *dtype,
                    int64_t *shape, const char **name);

/*
 * Finds the input, variable, output or host call of that name; or, if there is
 * none, the last result of that name, which an op forms from its own name and a
 * number. Returns IPU_ERR_NAME if there is neither.
 */
int ipu_graph_find(const ipu_graph *graph, const char *name,
                   ipu_tensor *tensor);

/*
 * Sets the source line that the ops that follow come from; failures and reports
 * name it. The macros of ipu_sources.h call it for each op. Call it yourself if
 * you wrap ops in functions or call them from another language. file is
 * borrowed as long as the graph lives. Returns the graph.
 */
ipu_graph *ipu_at(ipu_graph *graph, const char *file, int32_t line);

/*
 * Sets the module of the model that the ops that follow belong to, as a path:
 * "encoder/layer.0/attention". Reports add up by it. Derivatives belong to the
 * module of their op, and so do ops that are computed again. NULL: to none. The
 * path is copied. Returns the graph, NULL if it is NULL.
 */
ipu_graph *ipu_module(ipu_graph *graph, const char *module);

/* Adds an input: a tensor that the host streams in before each run. */
ipu_tensor ipu_input(ipu_graph *graph, const char *name, ipu_dtype dtype,
                     int32_t ndim, const int64_t *shape);

/* Adds a variable: a tensor that lives on the device from run to run. It is
 * zero until it is written. */
ipu_tensor ipu_variable(ipu_graph *graph, const char *name, ipu_dtype dtype,
                        int32_t ndim, const int64_t *shape);

/*
 * Maps a tensor to `tiles` tiles from number first_tile on, in runs of 8 bytes,
 * as evenly as possible. The compiler maps all other tensors. An elementwise
 * step computes where its output lies, so the mapping also decides which tiles
 * work and which operands they have to fetch. A view of another tensor
 * (reshape) cannot be mapped. ipu_compile fails with IPU_ERR_ARGUMENT, naming
 * the tensor, if the target has no such tiles.
 */
int ipu_map(ipu_graph *graph, ipu_tensor tensor, int32_t first_tile,
            int32_t tiles);

/*
 * Sets the fraction of a tile's memory that products (matmul, attention,
 * convolutions) built from here on may use for fetched operands and partial
 * sums: more than 0, at most 1. The initial value 0 leaves it to
 * ipu_compile_options. Derivatives use the proportion of their product. A
 * smaller proportion takes less temporary memory and more cycles, and changes
 * no bit of a result.
 */
int ipu_available_memory_proportion(ipu_graph *graph, double proportion);

/* ---------------------------------------------------------- derivatives */

/*
 * Adds the derivatives of a loss in reverse mode: gradients[i] = d loss / d
 * wrt[i], with the shape and dtype of wrt[i]. loss must be a float32 scalar
 * (ipu_cast converts halves). If loss does not depend on wrt[i], gradients[i]
 * is a tensor of zeros.
 */
int ipu_gradients(ipu_graph *graph, ipu_tensor loss, int32_t count,
                  const ipu_tensor *wrt, ipu_tensor *gradients);

/* --------------------------------------------------------------- results */

/*
 * Assigns the value, of the same shape and dtype, to the variable in each run.
 * All ops and host calls see the variable as it was when the run began; an
 * ipu_output of the variable itself, and ipu_engine_read after the run, return
 * the new value. A run makes all assignments, or, if it fails, none. A variable
 * can be assigned once.
 */
int ipu_assign(ipu_graph *graph, ipu_tensor variable, ipu_tensor value);

/* Adds an output: the tensor is streamed to the host at the end of each run. */
int ipu_output(ipu_graph *graph, const char *name, ipu_tensor tensor);

/*
 * A host call, like that of Graphcore's IPUEstimatorSpec. The engine calls it
 * on its own thread as soon as the tensor has been computed, while the rest of
 * the program has yet to run. data, count elements, is the host buffer
 * connected to the stream (ipu_engine_connect), already filled; without one, it
 * is the device's own memory, valid during the call only. A negative return
 * ends the run with IPU_ERR_CALLBACK; ipu_engine_callback_status() returns it.
 */
typedef int (*ipu_host_fn)(void *context, const char *name, void *data,
                           int64_t count);

/* Adds a host call of a tensor. context is borrowed as long as the graph and
 * its executables and engines live. */
int ipu_host_call(ipu_graph *graph, const char *name, ipu_tensor tensor,
                  ipu_host_fn fn, void *context);

/*
 * Adds a tensor like x that the host provides when the program comes to it:
 * after x has been computed, and after all host calls. fn fills data, of count
 * elements. The previous contents of data are undefined, but where possible
 * data is the memory of x (and therefore, after ipu_engine_place of x's host
 * call, memory of the host). Together with a host call of x, the host works on
 * x while the program goes on, and returns the result here: the average of all
 * ranks, for example.
 *
 * A negative return of fn ends the run before any variable is written, like
 * that of a host call. The name is passed to fn and appears in reports. The op
 * has no derivative.
 */
ipu_tensor ipu_host_receive(ipu_graph *graph, const char *name, ipu_tensor x,
                            ipu_host_fn fn, void *context);

#ifdef __cplusplus
}
#endif

#endif
