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

#include <hvd_progress.h>
#include <stdbool.h>

/*
 * The host's side of the exchange of gradients: that of variable i leaves by a
 * host call of its stream to ready(contexts[i]) as soon as it is computed, and
 * its average comes from average(contexts[i]) before the optimiser needs it.
 * Without this struct no gradient leaves.
 */
struct program_exchange {
    ipu_host_fn ready;
    ipu_host_fn average;
    void *const *contexts; /* [variables]; NULL: each is NULL */
};

struct program_settings {
    const struct optimizer_settings *optimizer;
    uint64_t seed; /* of what is random */
    int replicas;  /* devices of this process; if there are more than 1,
                      gradients are averaged over them before they leave, and
                      each draws other random numbers */
    const struct program_exchange *exchange; /* may be NULL */
    bool assigns; /* what comes back is no average but the variable's new value,
                     and there is no optimiser */
    /* The devices' own network, which averages gradients if there is no
     * exchange; may be NULL. */
    const ipu_network *network;
    /* Normalisations are by the batches of all replicas, and of all devices of
     * the network; one of the two is one. */
    bool synchronised;
};

/*
 * Compiles a step. Its inputs are those of the model and "rate", a float32
 * scalar, and likewise "scale" if the loss is scaled, and "momentum" if the
 * optimiser is cycled; its output "loss" is the mean over the rows; a run
 * updates the variables. A guarded one has the outputs "nonfinite" and
 * "nonfinite_here", int32 scalars, where it would update: the first variable
 * whose average, and whose own gradient, is not finite, or -1. proportion and
 * progress are those of compiling_run. PROBLEM with the text kept.
 */
int program_training(const struct model *model,
                     const struct program_settings *settings, double proportion,
                     hvd_progress *progress, ipu_executable **executable);

/* Compiles an evaluation for that many chips, or for the host if chips is 0.
 * Its inputs and outputs are those of the model; another output is "losses"
 * [rows]. If it predicts, there are no losses, and of the inputs only those
 * that a prediction needs (model.h). */
int program_evaluation(const struct model *model, int chips, bool predicts,
                       double proportion, hvd_progress *progress,
                       ipu_executable **executable);

/*
 * Write the graphs of a step and of an evaluation into a folder, as the files
 * of a network that is trained elsewhere: a model whose member graphs names the
 * folder gets its programs from these files, and not from its pieces. The host
 * calls and receives of an exchange are in the graph of a step if exchanges is
 * true; ipu_engine_connect_call gives them their functions. PROBLEM with the
 * text kept.
 */
int program_save_training(const struct model *model,
                          const struct optimizer_settings *optimizer,
                          uint64_t seed, bool exchanges, const char *folder);
int program_save_evaluation(const struct model *model, const char *folder);

/* The name of the file of weights in that folder: the network's variables, and
 * their first values (weights.h). */
#define PROGRAM_WEIGHTS "weights"

/* Writes the name of what the host gives back for a variable's gradient. */
void program_average_name(const struct model_variable *variable, char *name,
                          size_t size);

/* Keeps "device: " and the text of the device's last error. Returns PROBLEM. */
int program_device_problem(void);

#endif
