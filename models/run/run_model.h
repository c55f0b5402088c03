/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_model.h - a model of ipu-run, from its file to its outputs.
 *
 *     run_open, ipu_onnx_set_dim, run_offer (for each input), run_build,
 *     run_once, and then outputs
 *
 * Texts of what is wrong are left to ipu_last_error; the functions return the
 * library's statuses.
 */
#ifndef MODELS_RUN_MODEL_H
#define MODELS_RUN_MODEL_H

#include <ipu.h>
#include <stdbool.h>

struct run_model {
    ipu_onnx *model;
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_engine *engine;
    int32_t ninputs, noutputs;
    ipu_onnx_tensor *inputs;  /* owned, with their data; data NULL: not given */
    ipu_onnx_tensor *outputs; /* the same, after run_once */
    void **device;            /* the streams of both, owned */
    bool trains;              /* its program is a training step */
    void *labels;             /* of training: as the device has them, owned */
    float loss;               /* of the last step */
};

int run_open(struct run_model *run, const char *path);
void run_close(struct run_model *run); /* accepts zeroes */

/* Gives input number i a tensor, whose data the model then owns. */
int run_offer(struct run_model *run, int32_t i, const ipu_onnx_tensor *tensor);

/* Builds and compiles the model for so many chips, whether it fits them or not.
 * The target is borrowed during the call; NULL: a Mk2. */
int run_build(struct run_model *run, const ipu_target *target, int chips);

/* Writes the profile of the model that was built to a directory. */
int run_write_profile(const struct run_model *run, const char *directory);

/* Makes the engine of a model that was compiled, and connects its streams. */
int run_connect(struct run_model *run);

/* Converts the outputs of the last run. */
int run_take_outputs(struct run_model *run);

/* Connects it, runs it, and takes its outputs. */
int run_once(struct run_model *run);

#endif
