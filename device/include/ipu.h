/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu.h - a software IPU: build a graph, compile it for a target, run it.
 *
 *   ipu_graph       describes a computation: tensors with dtype and shape, ops
 *                   on them, their gradients, streams to and from the host
 *   ipu_executable  is a compiled graph: a program of steps, and a place in
 *                   device memory for every tensor
 *   ipu_engine      is a device with an executable loaded: it holds variables,
 *                   connects streams to host memory, and runs the program
 *
 * The device computes on the CPU: matrix products go through OpenBLAS, on
 * one thread unless ipu_set_threads says otherwise. It knows nothing of
 * ranks or MPI.
 *
 * Errors. Functions that return int return 0 (IPU_OK) or more on success and
 * a negative IPU_ERR_*; functions that return ipu_tensor return an invalid
 * tensor (id < 0) on failure, and every op given an invalid tensor returns
 * one too, so that a builder may check once, at ipu_compile, which then
 * reports the first failure. ipu_last_error() returns the full text of the
 * calling thread's last failure: op, tensor names, shapes, what to do.
 *
 * Threads. One thread at a time may use one graph, executable or engine;
 * different objects may be used at the same time by different threads.
 *
 * Shapes are row-major, extents in elements; images are [batch, height,
 * width, channels] (NHWC), convolution kernels [height, width, in, out], as
 * in TensorFlow. An extent may be 0 (an empty batch); ops then do nothing, and
 * sums are 0. Images must not be smaller than a kernel or window.
 *
 * Wherever these headers say float32, float16 and bfloat16 are accepted too, if
 * all floats of an op have the same dtype. Values are stored in that dtype,
 * computed with in float32, and rounded once, to the nearest.
 */
#ifndef IPU_H
#define IPU_H

/* Headers that need no other: files, the cost model, targets, types. */
#include "ipu_file.h"
#include "ipu_model.h"
#include "ipu_target.h"
#include "ipu_types.h"

/* Headers for building a graph. */
#include "ipu_graph.h"
#include "ipu_layers.h"
#include "ipu_ops.h"
#include "ipu_optimizers.h"
#include "ipu_training.h"

/* Headers for compiling and running a graph. */
#include "ipu_compile.h"
#include "ipu_engine.h"

/* Headers for feeding programs, for several chips, and for reports. */
#include "ipu_streams.h"

#include "ipu_network.h"
#include "ipu_onnx.h"
#include "ipu_pipeline.h"
#include "ipu_remedy.h"
#include "ipu_replica.h"
#include "ipu_report.h"

/* This one is last because its macros have the names of functions. */
#ifndef IPU_NO_SOURCES
#include "ipu_sources.h"
#endif

#endif
