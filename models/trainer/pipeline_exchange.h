/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_exchange.h - connects a pipeline of the device to an exchange: its
 * gradients are averaged over all ranks.
 *
 * Variables and gradients of the first replica are in memory that all ranks of
 * the host share, so that nothing is copied. The gradients of a stage are
 * submitted when it has finished the backward pass of the update's last
 * mini-batch, while the stages before it still work.
 */
#ifndef MODELS_PIPELINE_EXCHANGE_H
#define MODELS_PIPELINE_EXCHANGE_H

#include "trainer/exchange.h"

struct pipeline_exchange;
struct ipu_pipeline;         /* ipu_pipeline.h */
struct ipu_pipeline_options; /* ipu_pipeline.h */

/* Makes one for a pipeline that is yet to be made, and has that pipeline's
 * options hand over its gradients. Takes the exchange over, also on failure.
 * Not collective. PROBLEM with the text kept. */
int pipeline_exchange_new(struct ipu_pipeline_options *options,
                          struct exchange *exchange,
                          struct pipeline_exchange **made);

/* Ends the exchange, before the pipeline is freed: its variables move back to
 * the pipeline's memory. NULL is accepted. */
void pipeline_exchange_free(struct pipeline_exchange *p);

/*
 * Collective, once, after ipu_pipeline_new: rank 0's values of the trained
 * variables become those of all ranks and replicas. pipeline is borrowed until
 * free. On a failure all ranks fail.
 */
int pipeline_exchange_start(struct pipeline_exchange *p,
                            struct ipu_pipeline *pipeline);

/*
 * Collective: runs the pipeline. If the run fails on one rank, it ends on the
 * others: the failed rank returns PROBLEM, the others PROBLEM_ELSEWHERE, and no
 * further agreement is needed.
 */
int pipeline_exchange_run(struct pipeline_exchange *p);

#endif
