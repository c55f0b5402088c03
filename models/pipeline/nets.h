/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nets.h - networks that read digits, in pieces that can be put into stages.
 *
 * All stages hand (rate, x, labels) on; the last one outputs (loss, rate) for
 * training, and (logits, labels) for a test.
 */
#ifndef MODELS_PIPELINE_NETS_H
#define MODELS_PIPELINE_NETS_H

#include "pipeline/job.h"

#include <hvd_model.h>
#include <stdbool.h>

enum { NETS_MOST_STAGES = 8 };

struct nets;

/* Consecutive pieces. */
struct nets_stage {
    struct nets *nets;
    int first, count; /* pieces */
};

struct nets {
    enum net kind;
    hvd_net *net; /* borrowed: has the variables */
    int batch;
    bool trains; /* false: the last stage gives logits and labels */
    int nstages;
    struct nets_stage parts[NETS_MOST_STAGES];
    ipu_stage stages[NETS_MOST_STAGES];
    int32_t mapping[NETS_MOST_STAGES];
    int nmapping; /* 0: the device maps the stages */
};

/* Partitions a net into nstages; towers have 4, of which two are side by side.
 * PROBLEM with the text kept if there are fewer pieces. nets must not move in
 * memory. */
int nets_init(struct nets *nets, enum net kind, hvd_net *net, int nstages,
              int batch, bool trains);

/* Returns the number of stages that follow each other: the towers count as
 * one. */
int nets_positions(const struct nets *nets);

#endif
