/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queues.h - queues in files: their descriptions.
 */
#ifndef IPU_FILE_QUEUES_H
#define IPU_FILE_QUEUES_H

#include "file/pack.h"
#include "streams/streams.h"

/* Bytes that a queue takes at least. */
enum { IPU__LEAST_QUEUE = 12 };

void ipu__put_infeed(struct ipu__writer *writer, const ipu_infeed *infeed);
void ipu__put_outfeed(struct ipu__writer *writer, const ipu_outfeed *outfeed);

/* A queue that is only its description; the caller has the share. */
int ipu__get_infeed(struct ipu__reader *reader, ipu_infeed **infeed);
int ipu__get_outfeed(struct ipu__reader *reader, ipu_outfeed **outfeed);

/* What the file says of tensor i of a queue, as a shape; false: there is no
 * such tensor. */
bool ipu__queue_shape(const ipu_feed_tensor *tensors, int32_t count, int32_t i,
                      struct ipu__shape *shape);

/* IPU_ERR_DATA if two queues of one kind have one name: they could not be told
 * apart. The graph or the executable is NULL. */
int ipu__check_queues(const struct ipu__reader *reader, const ipu_graph *graph,
                      const ipu_executable *executable);

#endif
