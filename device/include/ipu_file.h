/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_file.h - graphs, executables and variables in files. ipu.h includes it.
 *
 * A file begins with its kind, the version of its format, the byte order of the
 * machine that wrote it and a checksum. It is written to a temporary file and
 * renamed when it is complete, so its name always refers to the old file or the
 * new one, never to half of it. Temporary files of writers that were killed are
 * removed. A symbolic link to a file is followed; anything but a regular file
 * is refused. The same contents give the same bytes.
 *
 * A load changes nothing unless the whole file is good. A file that is
 * truncated, damaged, of another kind, byte order or a later version returns
 * IPU_ERR_DATA, with a text that names the file and says what is wrong. A file
 * that cannot be read or written returns it too, with the system's reason.
 * Files of earlier versions can be read.
 *
 * The checksum finds damage, not intent. The contents are checked so that they
 * cannot harm the program that loads them, but whoever can write the file
 * decides what is computed.
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
struct ipu_infeed;
struct ipu_outfeed;
struct ipu_feed_tensor;

/*
 * Saves the graph as it was built: ops, loops with their bodies, constants with
 * their elements, inputs, variables and remote buffers (without elements, which
 * belong to an engine), outputs, host calls, queues, assignments, the IPU of
 * each tensor, and the source lines that all of them come from. A graph with a
 * failure is refused with that failure. A graph whose loops are nested more
 * than 64 deep, or that is still building the body of one, is refused with
 * IPU_ERR_STATE.
 *
 * A host call is saved by name only, since functions cannot be saved;
 * ipu_engine_connect_call gives it a function again. A queue is saved as a
 * description; ipu_graph_connect_infeed and its relatives connect one again.
 * ipu_graph_find finds the tensors of a loaded graph by their names.
 */
int ipu_graph_save(const struct ipu_graph *graph, const char *path);

/* Loads a graph. The caller owns the new graph and frees it. */
int ipu_graph_load(const char *path, struct ipu_graph **graph);

/*
 * Saves a compiled program: its loops, target, memory layout and cycles.
 * Loading it takes no compilation. The library that loads it must have all ops
 * of the program; otherwise it refuses the file and names the op.
 */
int ipu_executable_save(const struct ipu_executable *executable,
                        const char *path);

/* Loads an executable. The caller owns the new executable and frees it. */
int ipu_executable_load(const char *path, struct ipu_executable **executable);

/* ---------------------------------------------- queues of a loaded program */

typedef int32_t ipu_queue_kind;
enum { IPU_QUEUE_INFEED = 0, IPU_QUEUE_OUTFEED = 1 };

typedef struct ipu_queue_info {
    uint32_t size; /* sizeof(ipu_queue_info), set by the caller */
    ipu_queue_kind kind;
    const char *name; /* like tensors, borrowed until another queue is connected
                         or the program is freed */
    int32_t replicas;
    int32_t ntensors;
    const struct ipu_feed_tensor *tensors; /* one element of one replica */
    int32_t connected; /* 1: a queue; 0: only the description of one */
    int32_t reserved;
} ipu_queue_info;

/*
 * Describe the program's queues, numbered from 0 on, including those in bodies
 * of loops. Return 1, or 0 if there is no queue of this number. The description
 * has all that is needed to make a queue for an unknown program: name,
 * replicas, and the tensors of an infeed.
 */
int ipu_graph_queue(const struct ipu_graph *graph, int32_t number,
                    ipu_queue_info *info);
int ipu_executable_queue(const struct ipu_executable *executable,
                         int32_t number, ipu_queue_info *info);

/*
 * Connect a queue to a loaded program, in place of the description of the same
 * name. The program keeps a reference to the queue, as a program does that was
 * built with it. An executable has the queues of the graph that it was compiled
 * from; queues that were not connected then can be connected to the executable.
 * Until all are connected, ipu_engine_new and ipu_replicas_new return
 * IPU_ERR_STATE. Do not call these while another thread uses the program.
 *
 * Return IPU_ERR_NAME if the program has no such queue (the text lists its
 * queues), IPU_ERR_SHAPE if the infeed's tensors differ in name, dtype or
 * shape, IPU_ERR_STATE if the number of replicas differs, a queue is connected
 * already, or another program enqueues other tensors into the outfeed.
 */
int ipu_graph_connect_infeed(struct ipu_graph *graph,
                             struct ipu_infeed *infeed);
int ipu_graph_connect_outfeed(struct ipu_graph *graph,
                              struct ipu_outfeed *outfeed);
int ipu_executable_connect_infeed(struct ipu_executable *executable,
                                  struct ipu_infeed *infeed);
int ipu_executable_connect_outfeed(struct ipu_executable *executable,
                                   struct ipu_outfeed *outfeed);

/* --------------------------------------------------------------- variables */

/* Saves all variables of an engine, by name, with dtype, shape and elements: a
 * checkpoint. Returns IPU_ERR_STATE while the engine runs. */
int ipu_engine_save_variables(struct ipu_engine *engine, const char *path);

enum {
    IPU_LOAD_MISSING = 1, /* variables that are not in the file stay as they
                             are */
    IPU_LOAD_EXTRA = 2    /* variables in the file that the engine does not
                             have are ignored */
};

/*
 * Loads variables from a file. The file and the engine must have the same
 * variables, unless flags, a sum of the constants above, allow a difference;
 * otherwise the text of IPU_ERR_NAME lists the missing and the extra ones. A
 * variable of another dtype or shape is IPU_ERR_SHAPE. Nothing changes on
 * failure.
 */
int ipu_engine_load_variables(struct ipu_engine *engine, const char *path,
                              int32_t flags);

#ifdef __cplusplus
}
#endif

#endif
