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
 * Where these headers say float32, float16 and bfloat16 will do too, if all
 * floats of an op are of the same dtype: they are stored so, computed with in
 * float32, and rounded once, to the nearest.
 */
#ifndef IPU_H
#define IPU_H

/* What stands by itself: files, what a model costs, chips, dtypes and errors.
 */
#include "ipu_file.h"
#include "ipu_model.h"
#include "ipu_target.h"
#include "ipu_types.h"

/* Building a graph. */
#include "ipu_graph.h"
#include "ipu_layers.h"
#include "ipu_ops.h"
#include "ipu_optimizers.h"
#include "ipu_training.h"

/* What becomes of it. */
#include "ipu_compile.h"
#include "ipu_engine.h"

/* Data while it runs, several chips, and what it all comes to. */
#include "ipu_streams.h"

#include "ipu_pipeline.h"
#include "ipu_remedy.h"
#include "ipu_replica.h"
#include "ipu_report.h"

/* Last, since its macros have the names of functions. */
#ifndef IPU_NO_SOURCES
#include "ipu_sources.h"
#endif

#endif
