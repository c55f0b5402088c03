/* SPDX-License-Identifier: Apache-2.0 */
/* batches.h - the data that memory_tools trains on: random inputs, and which of
 * the first CLASSES of a row is the largest. */
#ifndef MODELS_MEMORY_BATCHES_H
#define MODELS_MEMORY_BATCHES_H

#include <stdint.h>

enum { CLASSES = 10 };

struct hvd_iterator;

/* Makes mini-batches without end, the same for the same seed: "labels", int32
 * [rows], and "x", float32 [rows, width]. Returns a status of hvd.h. */
int batches_open(int rows, int width, uint64_t seed,
                 struct hvd_iterator **iterator);
void batches_close(struct hvd_iterator *iterator); /* NULL is accepted */

/* Fills both with the next mini-batch of the iterator; returns 1 (feed.h). */
int batches_next(void *iterator, void **buffers);

#endif
