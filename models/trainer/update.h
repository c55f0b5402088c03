/* SPDX-License-Identifier: Apache-2.0 */
/* update.h - builds the optimiser, with which the graph of a step ends. */
#ifndef MODELS_UPDATE_H
#define MODELS_UPDATE_H

#include "model/optimizer.h"

#include <ipu.h>

/* The scalars of an update. */
struct update_inputs {
    ipu_tensor rate;     /* float32 */
    ipu_tensor momentum; /* float32, if settings->cycled; else not looked at */
    ipu_tensor step;     /* int32, 0 in the first run */
};

/* Assigns to each variable its value after an update by its gradient. Returns a
 * status of the device. */
int update_build(ipu_graph *graph, const struct optimizer_settings *settings,
                 int count, const ipu_tensor *variables,
                 const ipu_tensor *gradients,
                 const struct update_inputs *inputs);

#endif
