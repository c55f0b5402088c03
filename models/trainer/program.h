/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - a model (model.h) as programs of the device: a step of training,
 * and an evaluation. Both have the model's variables by the same names.
 */
#ifndef MODELS_PROGRAM_H
#define MODELS_PROGRAM_H

#include "model/model.h"
#include "model/optimizer.h"
#include "output/progress.h"

/*
 * What a step does with gradients: that of variable i leaves by a host call of
 * its stream to ready(contexts[i]) as soon as it is computed, and comes back
 * from average(contexts[i]) before the optimiser takes it. NULL instead of it:
 * nobody else has gradients, and none leaves.
 */
struct program_exchange {
    ipu_host_fn ready;
    ipu_host_fn average;
    void *const *contexts; /* [variables] */
};

/*
 * Inputs as the model's, and "rate", a float32 scalar; output "loss", the mean
 * of the rows'; afterwards the variables are updated. seed: of what is random.
 * proportion: as compiling_run. progress (may be NULL): of the compilation.
 * PROBLEM with the text kept.
 */
int program_training(const struct model *model,
                     const struct optimizer_settings *optimizer, uint64_t seed,
                     const struct program_exchange *exchange, double proportion,
                     struct progress *progress, ipu_executable **executable);

/* Inputs as the model's, outputs "losses" [rows] and "logits" [rows,
 * classes]; on so many chips. */
int program_evaluation(const struct model *model, int chips, double proportion,
                       struct progress *progress, ipu_executable **executable);

/* The device's last failure as a problem. */
int program_device_problem(void);

#endif
