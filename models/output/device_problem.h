/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - the device's failures as problems (problem.h). */
#ifndef MODELS_DEVICE_H
#define MODELS_DEVICE_H

#include "output/problem.h"

#include <ipu.h>

/* What the device said last. Returns PROBLEM. */
static inline int device_problem(void)
{
    return problem_set("%s", ipu_last_error());
}

/* Of what a function of the device returned: 0 or PROBLEM. */
static inline int device_status(int status)
{
    return status < 0 ? device_problem() : 0;
}

#endif
