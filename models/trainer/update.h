/* SPDX-License-Identifier: Apache-2.0 */
/* update.h - builds the optimiser, with which the graph of a step ends. */
#ifndef MODELS_UPDATE_H
#define MODELS_UPDATE_H

#include "model/optimizer.h"

#include <ipu.h>

/*
 * Assigns to each variable its value after an update by its gradient. rate: a
 * float32 scalar; step: an int32 scalar, 0 in the first run. Returns a status
 * of the device.
 */
int update_build(ipu_graph *graph, const struct optimizer_settings *settings,
                 int count, const ipu_tensor *variables,
                 const ipu_tensor *gradients, ipu_tensor rate, ipu_tensor step);

#endif
