/* SPDX-License-Identifier: Apache-2.0 */
/* keep.h - decides which checkpoints of a folder stay. */
#ifndef MODELS_CHECKPOINT_KEEP_H
#define MODELS_CHECKPOINT_KEEP_H

#include <hvd_checkpoint.h>
#include <stdbool.h>

/* A checkpoint; [count] of them are in ascending order of step. */
struct checkpoint_entry {
    int64_t step;
    double time;   /* seconds since 1970 */
    double metric; /* NaN: none */
    bool stays;    /* the decision */
};

/* Sets stays of all entries, by what the options say. newest: the step that was
 * written last, which stays. */
void checkpoint_decide(struct checkpoint_entry *entries, int count,
                       const hvd_checkpoint_options *options, int64_t newest);

#endif
