/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_exchange.h - where a pipeline of the device meets the strategy:
 * stages on software IPUs whose gradients are averaged over all ranks.
 *
 * Weights and gradients of the first replica lie in memory of the strategy's,
 * which all ranks of the host share, so that nothing is copied. The gradients
 * of a stage leave when it has gone backwards with the last mini-batch of the
 * update, while the stages before it still work.
 */
#ifndef MODELS_PIPELINE_EXCHANGE_H
#define MODELS_PIPELINE_EXCHANGE_H

#include <stdint.h>

struct partition_stats; /* partition.h */
struct pipeline_exchange;
struct ipu_pipeline;         /* ipu_pipeline.h */
struct ipu_pipeline_options; /* ipu_pipeline.h */

/* Make one for a pipeline that is yet to be made, and have that pipeline's
 * options give it the gradients. Not collective. PROBLEM with the text kept. */
int pipeline_exchange_new(struct ipu_pipeline_options *options,
                          struct pipeline_exchange **exchange);

/* How gradients travel, before the start: an hvd_compression; 1: only when all
 * are there, to compare with; updates between comparisons of the ranks'
 * weights, 0: none. */
void pipeline_exchange_set(struct pipeline_exchange *exchange, int compression,
                           int serial, int check_every);

/* Before the pipeline is freed, whose variables then have memory of their own
 * again; NULL is accepted. */
void pipeline_exchange_free(struct pipeline_exchange *exchange);

/*
 * Collective, once, after ipu_pipeline_new: rank 0's values of the trained
 * variables become those of all ranks and replicas. pipeline is borrowed until
 * free. On a failure all ranks fail.
 */
int pipeline_exchange_start(struct pipeline_exchange *exchange,
                            struct ipu_pipeline *pipeline);

/*
 * Collective: ipu_pipeline_run, and what became of it. A rank whose run fails
 * has told the others, whose runs fail too: PROBLEM there, PROBLEM_ELSEWHERE
 * here, and nothing is left to agree on.
 */
int pipeline_exchange_run(struct pipeline_exchange *exchange);

/* On this rank, since the start. */
struct pipeline_exchange_stats {
    int64_t averages; /* of a gradient over the ranks */
    int64_t early;    /* ... that had arrived when they were needed */
    double wait;      /* seconds of nothing but waiting for averages */
};

void pipeline_exchange_get_stats(const struct pipeline_exchange *exchange,
                                 struct pipeline_exchange_stats *stats);

/* The same and what the modelled chips make of it, after the start. */
int pipeline_exchange_account(const struct pipeline_exchange *exchange,
                              struct partition_stats *stats);

#endif
