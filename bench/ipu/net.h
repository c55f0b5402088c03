/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - whole networks for a modelled chip: what builds them, and what
 * the model makes of them.
 */
#ifndef BENCH_IPU_NET_H
#define BENCH_IPU_NET_H

#include <ipu.h>
#include <stdbool.h>

enum { NET_MAX_VARIABLES = 512 };

/* A graph under construction. Failures stay in the graph. */
struct net {
    ipu_graph *graph;
    bool training;
    int count; /* of variables, which are trained */
    ipu_tensor variables[NET_MAX_VARIABLES];
    int64_t parameters;
    ipu_tensor step;  /* for dropout; of a network that has some */
    int drawn;        /* seeds so far */
    bool offload;     /* the optimiser's state lies beside the chip */
    int32_t stage;    /* of the pipeline, from 0, that is built */
    int64_t boundary; /* elements that pass between this stage and another; 0:
                         as many as a layer of a transformer makes */
};

/* A weight of these extents, float16. */
ipu_tensor net_weight(struct net *net, int32_t ndim, const int64_t *shape);

/* The optimiser behind the loss: gradients accumulated over so many
 * mini-batches, then an update. gradients: of the variables. */
int net_train(struct net *net, const ipu_tensor *gradients,
              int32_t mini_batches, ipu_optimizer_kind kind);

/* The end of a stage whose output the next one gets, and which gets its
 * derivative from there. */
struct net_size;

int net_send_on(struct net *net, ipu_tensor y, int32_t ndim,
                const int64_t *shape, int32_t mini_batches);

/* The end of a network that classifies: the loss of logits [batch, classes], or
 * their softmax. received: what the stage before has sent, which gets its
 * derivative; of no graph, if there is none. */
int net_classify(struct net *net, const struct net_size *size,
                 ipu_tensor received, ipu_tensor logits, int32_t mini_batches);

/* How big a network is, and how it is run. */
struct net_size {
    int32_t layers;  /* of a stage */
    int32_t batch;   /* of a mini-batch */
    int32_t tokens;  /* of a sequence; side of an image */
    int32_t width;   /* of a token */
    int32_t heads;   /* of attention */
    bool causal;     /* it sees only what comes before */
    int32_t classes; /* of the last layer */
    bool differ; /* stages do: each is built, and the slowest shown; else all
                    are taken to be like the one that is built */
};

/* Build one mini-batch: forward only, or with derivatives and update. */
typedef int net_build(struct net *net, const struct net_size *size,
                      int32_t mini_batches);

/* ResNet-50, version 1.5: strides in the 3 x 3 convolutions. */
net_build net_resnet50;
/* ResNeXt-101, 32 groups of 4 channels, with group norm, in two stages. */
net_build net_resnext101;
/* EfficientNet-B4 with groups of 16 channels and group norm, in two stages. */
net_build net_efficientnet;
/* A stage of encoder or decoder layers, activations of each computed again. */
net_build net_transformer;
/* 784-width-classes with relu, float32. */
net_build net_mlp;

struct net_case {
    const char *name, *task; /* "ResNet-50", "training" */
    const char *system;
    const char *chip; /* NULL: the system's */
    net_build *build;
    struct net_size size;
    bool training;
    bool offload;             /* the optimiser's state, beside the chip */
    int32_t replicas, stages; /* IPUs are their product */
    int32_t mini_batches;     /* of an update */
    int32_t io_tiles;         /* of each chip, that only serve the host */
    double published;         /* samples a second of the system; 0: none */
};

/* Ended by a NULL name. */
extern const struct net_case net_cases[];

/* What the model says. Shares are of the time of a mini-batch in a stage, with
 * its part of an update, and add up to 1. */
struct net_result {
    int32_t ipus;
    int32_t stage;      /* the slowest, if each was built */
    int64_t parameters; /* of it */
    int64_t boundary;   /* elements between it and another */
    int64_t cycles;
    double samples_per_second; /* of the system */
    double tflops;             /* of an IPU */
    double utilisation;        /* ... of its peak */
    /* Shares: the mean tile computes, waits for the busiest; outside: host,
     * DRAM, links. */
    double compute, waiting, exchange, sync, outside;
    double estimated;   /* of the steps' cycles, those marked as estimates */
    int64_t tile_bytes; /* on the fullest tile */
    bool fits;
};

/* A negative status; ipu_last_error() tells. */
int net_model(const struct net_case *net, struct net_result *result);

#endif
