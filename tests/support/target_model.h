/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_model.h - chips and systems by name, and the comparison with a
 * published figure, for the tests of the model.
 */
#ifndef HVD_TESTS_TARGET_MODEL_H
#define HVD_TESTS_TARGET_MODEL_H

#include <math.h>

#include "device.h"
#include "ipu_model.h"

#define WITHIN(value, figure)                                                  \
    ck_assert_msg(fabs((double)(value) / (figure)-1) <= 0.1,                   \
                  "%s is %g, published as %g", #value, (double)(value),        \
                  (double)(figure))

static ipu_cycles c; /* of the last call */

static inline void set_up(void)
{
    c = (ipu_cycles){.size = sizeof c};
}

static inline ipu_target chip(const char *name)
{
    ipu_target target = {.size = sizeof target};

    MUST(ipu_target_find(name, &target));
    return target;
}

static inline ipu_system system_of(const char *name)
{
    ipu_system system = {.size = sizeof system};

    MUST(ipu_system_find(name, &system));
    return system;
}

#endif
