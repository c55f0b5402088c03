/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_file.h - graphs, executables and variables in files. ipu.h includes it.
 *
 * A file begins with what it is, the version of its format, the byte order of
 * the machine that wrote it and a checksum. It is written beside its place and
 * renamed when it is complete: under its name there is the old file or the new
 * one, never half of it. The same contents give the same bytes.
 *
 * A load changes nothing unless all of the file is good; a file that is cut
 * off, damaged, of another kind, byte order or a later version is IPU_ERR_DATA,
 * which names the file and says what is wrong with it. So is one that cannot
 * be read or written, with the system's reason. Files of earlier versions are
 * read.
 *
 * The checksum finds damage, not intent: what a file says is checked so that
 * it cannot harm the program that loads it, but who can write the file decides
 * what is computed.
 *
 * All of these functions block until the disk has answered. Threads are as in
 * ipu.h.
 */
#ifndef IPU_FILE_H
#define IPU_FILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ipu_graph;
struct ipu_executable;
struct ipu_engine;

/*
 * The graph as it was built: ops, constants with their elements, inputs,
 * variables (without elements: those are an engine's), outputs, host calls,
 * assignments, and the lines of the program they come from. A graph with a
 * failure is refused with that.
 *
 * Of a host call there is only the name, since functions cannot be saved:
 * ipu_engine_connect_call gives it one. ipu_graph_find gives the tensors of a
 * loaded graph by their names. Loops, queues and remote buffers are not kept: a
 * graph that has one is refused, with IPU_ERR_STATE.
 */
int ipu_graph_save(const struct ipu_graph *graph, const char *path);

/* A new graph, which the caller frees. */
int ipu_graph_load(const char *path, struct ipu_graph **graph);

/*
 * The compiled program, with its target, its places in memory and what it
 * costs: loading it takes no compilation. It needs the ops that it was
 * compiled of; a library that has not all of them refuses it, naming the op.
 */
int ipu_executable_save(const struct ipu_executable *executable,
                        const char *path);

/* A new executable, which the caller frees. */
int ipu_executable_load(const char *path, struct ipu_executable **executable);

/* All variables of an engine, by name, with dtype, shape and elements: a
 * checkpoint. Not while it runs: IPU_ERR_STATE. */
int ipu_engine_save_variables(struct ipu_engine *engine, const char *path);

enum {
    IPU_LOAD_MISSING = 1, /* variables that the file has not keep what they
                             hold */
    IPU_LOAD_EXTRA = 2    /* variables of the file that the engine has not are
                             left out */
};

/*
 * Read them back. Unless flags, a sum of the above, allow it, the file and the
 * engine must have the same variables: IPU_ERR_NAME lists those that are
 * missing in the file and those that it has too many. One of another dtype or
 * shape is IPU_ERR_SHAPE. Nothing is changed on failure.
 */
int ipu_engine_load_variables(struct ipu_engine *engine, const char *path,
                              int32_t flags);

#ifdef __cplusplus
}
#endif

#endif
