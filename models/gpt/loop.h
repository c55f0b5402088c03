/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - the loop of char_gpt: steps, and evaluations between them.
 */
#ifndef MODELS_GPT_LOOP_H
#define MODELS_GPT_LOOP_H

#include "data/pieces.h"
#include "gpt/gpt_summary.h"
#include "output/progress.h"

/* Everything is borrowed. */
struct gpt_loop {
    const struct options *options;
    struct pieces *pieces;
    struct trainer *trainer;
    struct progress *progress;
    struct gpt_summary *summary;
};

/*
 * Collective: trains as the options say, evaluates, and fills in the summary. A
 * loss that is no longer a number ends it with PROBLEM_EVERYWHERE.
 */
int gpt_loop_run(struct gpt_loop *loop);

/* Returns the rate of step number step (from 0) of steps: it rises evenly for
 * warmup steps, then falls along a cosine, to a tenth in the last. */
double gpt_rate(double rate, int64_t step, int64_t steps, int64_t warmup);

#endif
