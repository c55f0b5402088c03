/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nets.h - networks that read digits, in pieces that can be put into stages.
 *
 * All stages hand (rate, x, labels) on; the last one outputs (loss, rate) for
 * training, and (logits, labels) for a test.
 */
#ifndef MODELS_PIPELINE_NETS_H
#define MODELS_PIPELINE_NETS_H

#include <ipu.h>

enum net {
    NET_MLP,    /* 784-256-128-64-10 */
    NET_CNN,    /* mnist's: a convolution, a pooling, two dense layers */
    NET_RESNET, /* the net for CIFAR: 3 groups of 2 blocks of 2 convolutions */
    NET_TOWERS  /* two towers of convolutions side by side, then one head */
};

enum { NETS_MOST_STAGES = 8, NETS_MOST_WEIGHTS = 64 };

/* A variable, with the figures that its first values need. */
struct nets_weight {
    char name[40];
    int64_t count;
    int64_t fan_in; /* 0: a bias, 0; -1: a scale, 1 */
};

struct nets;

/* Consecutive pieces. */
struct nets_stage {
    struct nets *nets;
    int first, count; /* pieces */
};

struct nets {
    enum net net;
    int batch;
    int trains; /* 0: the last stage gives logits and labels */
    int nweights;
    struct nets_weight weights[NETS_MOST_WEIGHTS];
    int nstages;
    struct nets_stage parts[NETS_MOST_STAGES];
    ipu_stage stages[NETS_MOST_STAGES];
    int32_t mapping[NETS_MOST_STAGES];
    int nmapping; /* 0: the device maps the stages */
};

/* Partitions a net into nstages; towers have 4, of which two are side by side.
 * PROBLEM with the text kept if there are fewer pieces. nets must not move in
 * memory. */
int nets_init(struct nets *nets, enum net net, int nstages, int batch,
              int trains);

/* Returns the number of stages that follow each other: the towers count as
 * one. */
int nets_positions(const struct nets *nets);

#endif
