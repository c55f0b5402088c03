/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/costs.h"

const struct hvd__costs hvd__default_costs = {
    .between = {.step = 10000, .message = 5000, .kib_moved = 1000},
    .within = {.step = 1000, .message = 500, .kib_moved = 100},
    .kib_reduced = 100,
};
