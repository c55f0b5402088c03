/* SPDX-License-Identifier: Apache-2.0 */
#include "model/optimizer.h"

#include <stddef.h>
#include <string.h>

static const char *const names[] = {
    [OPTIMIZER_SGD] = "sgd",   [OPTIMIZER_MOMENTUM] = "momentum",
    [OPTIMIZER_ADAM] = "adam", [OPTIMIZER_ADAMW] = "adamw",
    [OPTIMIZER_LAMB] = "lamb",
};

const char optimizer_names[] = "sgd, momentum, adam, adamw, lamb";

const char *optimizer_name(enum optimizer optimizer)
{
    return names[optimizer];
}

int optimizer_from_name(const char *name)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}
