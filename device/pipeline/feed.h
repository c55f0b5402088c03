/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - what comes in and goes out while a pipeline runs.
 */
#ifndef IPU_PIPELINE_FEED_H
#define IPU_PIPELINE_FEED_H

#include "pipeline/pipeline.h"

/* The elements of a mini-batch, for all replicas. */
int ipu__feed_in(struct ipu_pipeline *pipeline, int64_t repeat, int64_t slot,
                 int64_t mini_batch);

/* What the last stage made of a mini-batch. */
int ipu__feed_out(struct ipu_pipeline *pipeline, int64_t repeat,
                  int64_t mini_batch);

/* Begin to add up anew what goes out. */
void ipu__feed_forget(struct ipu_pipeline *pipeline);

#endif
