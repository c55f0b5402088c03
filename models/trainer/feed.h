/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - the source of the mini-batches that a backend (backend.h) trains on.
 */
#ifndef MODELS_FEED_H
#define MODELS_FEED_H

#include "model/model.h"
#include "trainer/trainer.h"

#include <ipu.h>

enum { FEED_MOST_TENSORS = MODEL_MOST_INPUTS + 1 };

/* next fills one buffer for each tensor, or replaces it by memory that stays as
 * it is until the next call, and returns 1; a negative status ends the update.
 * A pipeline calls it on a separate thread, within the update. Elements have
 * four bytes: float32 or int32. */
struct feed {
    int ntensors;
    ipu_feed_tensor tensors[FEED_MOST_TENSORS];
    int (*next)(void *context, void **buffers);
    void *context; /* borrowed until the backend's fini */
};

/* Returns the bytes of one tensor in a mini-batch. */
size_t feed_tensor_bytes(const struct feed *feed, int tensor);

/* Has next fill the buffers, also if it has memory of its own. */
int feed_fill(const struct feed *feed, void *const *buffers);

/* Allocates a buffer of count mini-batches for each tensor. PROBLEM with the
 * text kept; feed_free_buffers accepts that. */
int feed_allocate(const struct feed *feed, int count, void **buffers);
void feed_free_buffers(void **buffers);

/* The mini-batches of a model: its inputs and, if a pipeline has to hand it on
 * from stage to stage, the number. */
struct model_feed {
    fill_batch_fn *fill;
    void *context; /* borrowed */
    bool numbered;
    int ninputs;  /* set by model_feed_of */
    int64_t next; /* mini-batch; of the thread that calls the feed */
};

/* Returns the feed, which has *source for its context. */
struct feed model_feed_of(const struct model *model, struct model_feed *source);

#endif
