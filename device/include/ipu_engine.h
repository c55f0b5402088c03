/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_engine.h - a chip with a program loaded: streams connected to the host's
 * memory, variables, runs. ipu.h includes it.
 */
#ifndef IPU_H
#include "ipu.h" /* which comes back here once it has said what this needs */
#elif !defined(IPU_ENGINE_H)
#define IPU_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#endif
