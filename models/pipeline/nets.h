/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nets.h - networks that read digits, in pieces that can be put into stages.
 *
 * All stages hand (rate, x, labels) on; the last gives (loss, rate) to train,
 * and (logits, labels) to look at.
 */
#ifndef MODELS_PIPELINE_NETS_H
#define MODELS_PIPELINE_NETS_H

#include <ipu.h>

enum net {
    NET_MLP,    /* 784-256-128-64-10 */
    NET_CNN,    /* mnist's: a convolution, a pooling, two dense layers */
    NET_RESNET, /* of CIFAR's kind: 3 groups of 2 blocks of 2 convolutions */
    NET_TOWERS  /* two towers of convolutions side by side, then one head */
};

extern const char net_names[];
/* -1 if there is none. */
int net_from_name(const char *name);
const char *net_name(enum net net);

enum { NETS_MOST_STAGES = 8, NETS_MOST_WEIGHTS = 64 };

/* A variable, with what its first values need. */
struct nets_weight {
    char name[40];
    int64_t count;
    int64_t fan_in; /* 0: a bias, 0; -1: a scale, 1 */
};

struct nets;

/* Some of the pieces. */
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
    int nmapping; /* 0: as near as can be */
};

/* Cut into nstages; towers come in 4, of which two are side by side. PROBLEM
 * with the text kept if there are fewer pieces. nets must stay where it is. */
int nets_init(struct nets *nets, enum net net, int nstages, int batch,
              int trains);

/* Stages one after the other. */
int nets_positions(const struct nets *nets);

#endif
