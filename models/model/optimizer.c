/* SPDX-License-Identifier: Apache-2.0 */
#include "model/optimizer.h"

#include <stdbool.h>
#include <stddef.h>

const char *const optimizer_names[] = {
    [OPTIMIZER_SGD] = "sgd",           [OPTIMIZER_MOMENTUM] = "momentum",
    [OPTIMIZER_ADAM] = "adam",         [OPTIMIZER_ADAMW] = "adamw",
    [OPTIMIZER_LAMB] = "lamb",         [OPTIMIZER_NESTEROV] = "nesterov",
    [OPTIMIZER_RMSPROP] = "rmsprop",   [OPTIMIZER_ADAGRAD] = "adagrad",
    [OPTIMIZER_ADADELTA] = "adadelta", [OPTIMIZER_LION] = "lion",
    [OPTIMIZER_LARS] = "lars",         NULL,
};

bool optimizer_has_momentum(enum optimizer optimizer)
{
    return optimizer != OPTIMIZER_SGD && optimizer != OPTIMIZER_RMSPROP &&
           optimizer != OPTIMIZER_ADAGRAD && optimizer != OPTIMIZER_ADADELTA;
}

double optimizer_usual_decay(enum optimizer optimizer)
{
    bool decays = optimizer == OPTIMIZER_ADAMW || optimizer == OPTIMIZER_LAMB ||
                  optimizer == OPTIMIZER_LION;

    return decays ? 0.01 : optimizer == OPTIMIZER_LARS ? 0.0001 : 0;
}
