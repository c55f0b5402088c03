/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - whole networks for a modelled chip: the functions that build them,
 * and the figures that the model computes.
 */
#ifndef BENCH_IPU_NET_H
#define BENCH_IPU_NET_H

#include <ipu.h>
#include <stdbool.h>

enum { NET_MAX_VARIABLES = 512 };

/* A graph under construction. The graph remembers failures. */
struct net {
    ipu_graph *graph;
    bool training;
    int count; /* number of variables, all trained */
    ipu_tensor variables[NET_MAX_VARIABLES];
    int64_t parameters;
    ipu_tensor step;  /* step of dropout, in networks with dropout */
    int drawn;        /* dropout seeds so far */
    bool offload;     /* optimiser state in streaming memory */
    int32_t stage;    /* pipeline stage to build, from 0 */
    int64_t boundary; /* elements sent to the next stage */
};

/* Adds a float16 weight of this shape. */
ipu_tensor net_weight(struct net *net, int32_t ndim, const int64_t *shape);

/* Adds the optimiser after the loss: it accumulates gradients over so many
 * mini-batches, then updates. gradients: one per variable. */
int net_train(struct net *net, const ipu_tensor *gradients,
              int32_t mini_batches, ipu_optimizer_kind kind);

struct net_size;

/* Ends a stage: y goes to the next stage, which sends back its derivative, and
 * that of received goes to the previous stage; NULL: there is none. */
int net_send_on(struct net *net, const ipu_tensor *received, ipu_tensor y,
                int32_t ndim, const int64_t *shape, int32_t mini_batches,
                ipu_optimizer_kind kind);

/* Returns the logits of images [batch, h, w, channels]: a dense layer for the
 * mean of the pixels. */
ipu_tensor net_logits(struct net *net, const struct net_size *size,
                      ipu_tensor x, int64_t channels);

/* Ends a network that classifies, with the loss of logits [batch, classes] or
 * with their softmax. received is that of net_send_on. */
int net_classify(struct net *net, const struct net_size *size,
                 const ipu_tensor *received, ipu_tensor logits,
                 int32_t mini_batches);

/* The size of a network, and how it runs. */
struct net_size {
    int32_t layers;  /* layers of a stage */
    int32_t batch;   /* samples of a mini-batch */
    int32_t tokens;  /* tokens of a sequence; or the side of an image */
    int32_t width;   /* elements of a token */
    int32_t heads;   /* heads of attention */
    bool causal;     /* attention sees earlier tokens only */
    int32_t classes; /* outputs of the last layer */
    bool differ; /* true: stages differ, so each is built and the slowest shown;
                    false: one is built for all */
};

/* Builds one mini-batch: forward only, or with derivatives and update. */
typedef int net_build(struct net *net, const struct net_size *size,
                      int32_t mini_batches);

/* ResNet-50, version 1.5: strides in the 3 x 3 convolutions. */
net_build net_resnet50;
/* ResNeXt-101, 32 groups of 4 channels, with group norm, in two stages. */
net_build net_resnext101;
/* EfficientNet-B4 with groups of 16 channels and group norm, in two stages. */
net_build net_efficientnet;
/* A stage of encoder or decoder layers. Its activations are computed again. */
net_build net_transformer;
/* Layers of 784, width and classes units with relu, float32. */
net_build net_mlp;

struct net_case {
    const char *name, *task; /* "ResNet-50", "training" */
    const char *system;
    const char *chip; /* NULL: the system's */
    net_build *build;
    struct net_size size;
    bool training;
    bool offload;             /* optimiser state in streaming memory */
    int32_t replicas, stages; /* the network has replicas * stages IPUs */
    int32_t mini_batches;     /* mini-batches per update */
    int32_t io_tiles;         /* tiles per chip that only serve the host */
    double published;         /* samples per second of the system; 0: none */
};

/* The cases; ends with a NULL name. */
extern const struct net_case net_cases[];

/* The model's figures. Shares are of the time of a mini-batch in a stage, with
 * its share of an update, and add up to 1. */
struct net_result {
    int32_t ipus;
    int32_t stage;      /* slowest stage, if each was built */
    int64_t parameters; /* parameters of that stage */
    int64_t boundary;   /* elements sent to the next stage */
    int64_t cycles;
    double samples_per_second; /* rate of the system */
    double tflops;             /* rate of one IPU */
    double utilisation;        /* tflops / peak */
    /* Shares of the time: the mean tile computes; it waits for the busiest
     * tile; outside: host, DRAM, links. */
    double compute, waiting, exchange, sync, outside;
    double estimated;   /* share of the steps' cycles that are estimates */
    int64_t tile_bytes; /* peak of the fullest tile */
    bool fits;
};

/* Models a case. Returns a negative status if it fails; ipu_last_error() says
 * why. */
int net_model(const struct net_case *net, struct net_result *result);

#endif
