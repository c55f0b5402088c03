/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_engine.h - running a program: an engine is a chip with an executable
 * loaded. It connects streams to host memory, holds variables, and makes runs.
 * ipu.h includes it.
 */
#ifndef IPU_H
#include "ipu.h" /* ipu.h includes this file after those that it needs */
#elif !defined(IPU_ENGINE_H)
#define IPU_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- engine */

/* Loads an executable, which must outlive the engine. */
int ipu_engine_new(const ipu_executable *executable, ipu_engine **engine);
void ipu_engine_free(ipu_engine *engine);

/*
 * Returns the bytes of memory of the host, beside that of the program, in which
 * the engine keeps constants as the processor multiplies them: weights of
 * convolutions and of matrix products, packed by the first run that uses them.
 * They are freed with the engine. 0 if engine is NULL.
 */
int64_t ipu_engine_packed_bytes(const ipu_engine *engine);

/*
 * Connects a stream (input, output or host call, by name) to host memory of
 * exactly `bytes` bytes, which runs read or write. The memory is borrowed until
 * the stream is connected elsewhere or the engine is freed. NULL disconnects.
 */
int ipu_engine_connect(ipu_engine *engine, const char *name, void *data,
                       size_t bytes);

/*
 * Replaces the function of a host call or ipu_host_receive, by name. In an
 * executable loaded from a file they have no function until then, and a run
 * fails with IPU_ERR_STATE. fn NULL restores the graph's function. context is
 * borrowed until another function is connected or the engine is freed. Do not
 * call it while the engine runs.
 */
int ipu_engine_connect_call(ipu_engine *engine, const char *name,
                            ipu_host_fn fn, void *context);

/* Copy a whole variable, by name, to or from the device. */
int ipu_engine_write(ipu_engine *engine, const char *name, const void *data,
                     size_t bytes);
int ipu_engine_read(ipu_engine *engine, const char *name, void *data,
                    size_t bytes);

/*
 * Places the tensor of a stream, or a variable, in this memory of the host, of
 * exactly `bytes` bytes, so that it is never copied between host and device.
 * Several engines may share a variable that way, if one at a time runs.
 *
 * data is borrowed until the engine is freed or the name is placed elsewhere;
 * NULL moves the tensor back to the device's own memory. A stream is also
 * connected to data. A variable takes the elements that data already holds, and
 * keeps its elements when it moves back. While the tensor is not needed, its
 * memory may hold other tensors of the same size: runs may write to data at any
 * time, except between a host call and the step that next needs its tensor.
 *
 * Returns IPU_ERR_STATE for a stream whose tensor lives in the place of a
 * variable.
 */
int ipu_engine_place(ipu_engine *engine, const char *name, void *data,
                     size_t bytes);

/*
 * Runs the program once, on the calling thread, and blocks until it has ended.
 * Returns IPU_ERR_STATE, naming the stream, if an input that the program needs
 * is not connected. After a failure all variables are as before the run, and
 * the engine can run again.
 *
 * Arithmetic takes float32 numbers below 2^-126 for zero and gives zero instead
 * of one, for they make a processor slow; host calls run in the thread's own
 * mode.
 */
int ipu_engine_run(ipu_engine *engine);

/* Returns what the host call that ended the last run returned; 0 if none did.
 */
int ipu_engine_callback_status(const ipu_engine *engine);

/* Sets the number of threads that OpenBLAS may use in this process, at first
 * 1. */
int ipu_set_threads(int32_t threads);

#ifdef __cplusplus
}
#endif

#endif
