/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - makes programs of the device from a model (model.h): a step of
 * training, and an evaluation. Both have the model's variables by the same
 * names.
 */
#ifndef MODELS_PROGRAM_H
#define MODELS_PROGRAM_H

#include "model/model.h"
#include "model/optimizer.h"
#include "output/progress.h"

/*
 * The host's side of the exchange of gradients: that of variable i leaves by a
 * host call of its stream to ready(contexts[i]) as soon as it is computed, and
 * its average comes from average(contexts[i]) before the optimiser needs it.
 * Without this struct no gradient leaves.
 */
struct program_exchange {
    ipu_host_fn ready;
    ipu_host_fn average;
    void *const *contexts; /* [variables] */
};

/*
 * Compiles a step. Its inputs are those of the model and "rate", a float32
 * scalar; its output "loss" is the mean over the rows; a run updates the
 * variables. seed is for what is random; exchange may be NULL; proportion and
 * progress are those of compiling_run. PROBLEM with the text kept.
 */
int program_training(const struct model *model,
                     const struct optimizer_settings *optimizer, uint64_t seed,
                     const struct program_exchange *exchange, double proportion,
                     struct progress *progress, ipu_executable **executable);

/* Compiles an evaluation for that many chips. Its inputs are those of the
 * model, its outputs "losses" [rows] and "logits" [rows, classes]. */
int program_evaluation(const struct model *model, int chips, double proportion,
                       struct progress *progress, ipu_executable **executable);

/* Keeps "device: " and the text of the device's last error. Returns PROBLEM. */
int program_device_problem(void);

#endif
