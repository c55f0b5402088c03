/* SPDX-License-Identifier: Apache-2.0 */
#include "model/optimizer.h"

#include <stddef.h>

const char *const optimizer_names[] = {
    [OPTIMIZER_SGD] = "sgd",   [OPTIMIZER_MOMENTUM] = "momentum",
    [OPTIMIZER_ADAM] = "adam", [OPTIMIZER_ADAMW] = "adamw",
    [OPTIMIZER_LAMB] = "lamb", NULL,
};
