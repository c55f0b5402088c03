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
 * of its first 10 inputs is the largest. */
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

/* "recompute", and a text about it. */
struct training_tool {
    const char *name, *text;
};

extern const struct training_tool training_tools[TOOLS];

/* Trains with one tool. PROBLEM with the text kept. */
int training_run(const struct training_settings *settings, enum tool tool,
                 struct training_result *result);

/* Print the head of the table; train with a tool, and print its row. *plain is
 * the result of TOOL_PLAIN, once it has run: weights are compared with its. */
void training_show_head(void);
int training_show(const struct training_settings *settings, enum tool tool,
                  struct training_result *plain);

#endif
