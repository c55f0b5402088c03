/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - moves data into and out of a running pipeline.
 */
#ifndef IPU_PIPELINE_FEED_H
#define IPU_PIPELINE_FEED_H

#include "pipeline/pipeline.h"

/* Takes the elements of a mini-batch, for all replicas. */
int ipu__feed_in(struct ipu_pipeline *pipeline, int64_t repeat, int64_t slot,
                 int64_t mini_batch);

/* Gives away the last stage's outputs of a mini-batch. */
int ipu__feed_out(struct ipu_pipeline *pipeline, int64_t repeat,
                  int64_t mini_batch);

/* Sets the sums of the outputs back to zero. */
void ipu__feed_forget(struct ipu_pipeline *pipeline);

#endif
