/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.h - trains a network with one of the device's memory tools, and
 * reports what that takes on the chip and what the weights become.
 */
#ifndef MODELS_MEMORY_TRAINING_H
#define MODELS_MEMORY_TRAINING_H

#include <ipu.h>

enum tool {
    TOOL_PLAIN,
    TOOL_RECOMPUTE,
    TOOL_ACCUMULATE,
    TOOL_OFFLOAD,
    TOOL_OFFLOAD_ALL,
    TOOL_CHIPS,
    TOOL_PIPELINE,
    TOOL_SHARD,
    TOOL_HALF,
    TOOLS
};

/* The network has dense layers of one width with relu, and learns by Adam which
 * of 10 random directions an input is nearest to. */
struct training_settings {
    int rows, width, layers, updates;
    int parts; /* mini-batches that are accumulated, replicas that share the
                  state, chips, or stages */
    double rate;
    uint64_t seed;
    ipu_target target;
    ipu_profile
        *profile; /* borrowed; gets a program for each tool; NULL: none */
};

struct training_result {
    int64_t tensor_bytes; /* bytes of tensors on the fullest tile */
    int64_t tile_bytes;   /* the same with code and temporary memory: products
                             take all that is free */
    int64_t remote_bytes; /* bytes in a chip's streaming memory */
    double ms;            /* time of an update on the chip */
    int64_t told_bytes;   /* bytes and time of the plain program with this */
    double told_ms;       /* tool by ipu_remedy_try; 0: not known */
    double loss;          /* loss of the last update */
    float *weights;       /* weights of all layers, owned by the caller */
    int64_t nweights;
};

/* Return "recompute", and a text about it. */
const char *training_tool_name(enum tool tool);
const char *training_tool_text(enum tool tool);

/* Trains with one tool. Returns a negative status with the device's last error
 * set. */
int training_run(const struct training_settings *settings, enum tool tool,
                 struct training_result *result);

#endif
