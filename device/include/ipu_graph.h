/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_graph.h - building a graph: tensors that the host gives and takes,
 * variables and what becomes of them, derivatives. ipu.h includes it, and says
 * what holds for all builders.
 */
#ifndef IPU_H
#include "ipu.h" /* which comes back here once it has said what this needs */
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
 * reports name it. The macros of ipu_sources.h do so; who wraps ops in
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

/*
 * Products (matmul, attention, convolutions) that are built from here on may
 * take this part of a tile's memory for what they fetch and add up in between:
 * more than 0, at most 1; 0, as at first: as ipu_compile_options says.
 * Derivatives have the proportion of the product that they are of. Less of it
 * is less temporary memory and more cycles, and changes no bit of a result.
 */
int ipu_available_memory_proportion(ipu_graph *graph, double proportion);

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

#ifdef __cplusplus
}
#endif

#endif
