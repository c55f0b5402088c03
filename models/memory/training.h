/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.h - one network trained with one of the device's memory tools: what
 * it takes on the chip, and what the weights become.
 */
#ifndef MODELS_MEMORY_TRAINING_H
#define MODELS_MEMORY_TRAINING_H

#include <ipu.h>
#include <stdbool.h>

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

/* Dense layers of width with relu, that learn which of 10 random directions
 * an input is nearest to; Adam. */
struct training_settings {
    int rows, width, layers, updates;
    int parts; /* mini-batches that are accumulated, or replicas that share, or
                  chips, or stages */
    double rate;
    uint64_t seed;
    ipu_target target;
    ipu_profile *profile; /* borrowed; gets a program a tool; NULL: none */
};

struct training_result {
    int64_t tensor_bytes; /* on the fullest tile, of tensors alone */
    int64_t tile_bytes;   /* ... with code and what steps need beside: products
                             take what there is */
    int64_t remote_bytes; /* beside a chip */
    double ms;            /* of an update, on the chip */
    int64_t told_bytes; /* what the compiler tells of the plain program with */
    double told_ms;     /* this tool (ipu_remedy_try); 0: nothing */
    double loss;        /* of the last update */
    float *weights;     /* owned by the caller; of all layers */
    int64_t nweights;
};

/* "recompute", and what it does. */
const char *training_tool_name(enum tool tool);
const char *training_tool_text(enum tool tool);

/* Negative with the device's last error set. */
int training_run(const struct training_settings *settings, enum tool tool,
                 struct training_result *result);

#endif
