/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queues.h - the descriptions of queues in files.
 */
#ifndef IPU_FILE_QUEUES_H
#define IPU_FILE_QUEUES_H

#include "file/pack.h"
#include "streams/streams.h"

/* The least bytes that a queue takes. */
enum { IPU__LEAST_QUEUE = 12 };

void ipu__put_infeed(struct ipu__writer *writer, const ipu_infeed *infeed);
void ipu__put_outfeed(struct ipu__writer *writer, const ipu_outfeed *outfeed);

/* Reads a queue that is only a description; the caller owns one reference. */
int ipu__get_infeed(struct ipu__reader *reader, ipu_infeed **infeed);
int ipu__get_outfeed(struct ipu__reader *reader, ipu_outfeed **outfeed);

/* Fills the shape of tensor i of a queue; returns false if there is no such
 * tensor. */
bool ipu__queue_shape(const ipu_feed_tensor *tensors, int32_t count, int32_t i,
                      struct ipu__shape *shape);

/* Checks that no two queues of one kind have the same name, which would be
 * ambiguous. Either the graph or the executable is NULL. Returns IPU_ERR_DATA
 * otherwise. */
int ipu__check_queues(const struct ipu__reader *reader, const ipu_graph *graph,
                      const ipu_executable *executable);

#endif
