/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_file.h - graphs, executables and variables in files. ipu.h includes it.
 *
 * A file begins with what it is, the version of its format, the byte order of
 * the machine that wrote it and a checksum. It is written beside its place and
 * renamed when it is complete: under its name there is the old file or the new
 * one, never half of it. What writers that were killed have left beside it is
 * removed. A symbolic link to a file is followed; what is no regular file is
 * refused. The same contents give the same bytes.
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
struct ipu_infeed;
struct ipu_outfeed;
struct ipu_feed_tensor;

/*
 * The graph as it was built: ops, loops with their bodies, constants with their
 * elements, inputs, variables and remote buffers (without elements: those are
 * an engine's), outputs, host calls, queues, assignments, on which IPU a tensor
 * is, and the lines of the program all that comes from. A graph with a failure
 * is refused with that; one whose loops are nested more than 64 deep, or that
 * is still building the body of one, with IPU_ERR_STATE.
 *
 * Of a host call there is only the name, since functions cannot be saved:
 * ipu_engine_connect_call gives it one. Of a queue there is what the program
 * knows of it; ipu_graph_connect_infeed and its relatives give it one.
 * ipu_graph_find gives the tensors of a loaded graph by their names.
 */
int ipu_graph_save(const struct ipu_graph *graph, const char *path);

/* A new graph, which the caller frees. */
int ipu_graph_load(const char *path, struct ipu_graph **graph);

/*
 * The compiled program, loops with it, with its target, its places in memory
 * and what it costs: loading it takes no compilation. It needs the ops that it
 * was compiled of; a library that has not all of them refuses it, naming the
 * op.
 */
int ipu_executable_save(const struct ipu_executable *executable,
                        const char *path);

/* A new executable, which the caller frees. */
int ipu_executable_load(const char *path, struct ipu_executable **executable);

/* ---------------------------------------------- queues of a loaded program */

typedef int32_t ipu_queue_kind;
enum { IPU_QUEUE_INFEED = 0, IPU_QUEUE_OUTFEED = 1 };

typedef struct ipu_queue_info {
    uint32_t size; /* sizeof(ipu_queue_info), set by the caller */
    ipu_queue_kind kind;
    const char *name; /* borrowed, as tensors, until the queue of the program
                         changes or goes */
    int32_t replicas;
    int32_t ntensors;
    const struct ipu_feed_tensor *tensors; /* of an element of one replica */
    int32_t connected; /* 1: it is one; 0: it is only described */
    int32_t reserved;
} ipu_queue_info;

/*
 * The program's queues, those in bodies of loops too, numbered from 0 on: 1,
 * and info says what that one is; 0: there is none of this number. With it a
 * queue can be made for a program that is not known: name, replicas and, of an
 * infeed, tensors.
 */
int ipu_graph_queue(const struct ipu_graph *graph, int32_t number,
                    ipu_queue_info *info);
int ipu_executable_queue(const struct ipu_executable *executable,
                         int32_t number, ipu_queue_info *info);

/*
 * Give a loaded program a queue in the place of the description that bears its
 * name. The program takes a share of the queue, as those do that are built with
 * it. An executable that is compiled of a graph has that graph's queues; those
 * that were not connected by then are connected to the executable. Without them
 * engines and replicas are not made (IPU_ERR_STATE). Not while another thread
 * uses the program.
 *
 * IPU_ERR_NAME: the program has no such queue, the text says which it has;
 * IPU_ERR_SHAPE: the infeed's tensors are others, by name, dtype or shape;
 * IPU_ERR_STATE: another number of replicas, a queue is connected already, or
 * another program enqueues other tensors into the outfeed.
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
