/* SPDX-License-Identifier: Apache-2.0 */
/* update.h - optimisers on the device: what the graph of a step ends with. */
#ifndef MODELS_UPDATE_H
#define MODELS_UPDATE_H

#include "model/optimizer.h"

#include <ipu.h>

/*
 * Assign to each variable what the optimiser makes of it and of its gradient.
 * rate: a float32 scalar; step: an int32 scalar, 0 in the first run. A status
 * of the device.
 */
int update_build(ipu_graph *graph, const struct optimizer_settings *settings,
                 int count, const ipu_tensor *variables,
                 const ipu_tensor *gradients, ipu_tensor rate, ipu_tensor step);

#endif
