/* SPDX-License-Identifier: Apache-2.0 */
/* device.h - turns failures of the device into problems (problem.h). */
#ifndef MODELS_DEVICE_H
#define MODELS_DEVICE_H

#include "output/problem.h"

#include <ipu.h>

/* Keeps the text of the device's last error. Returns PROBLEM. */
static inline int device_problem(void)
{
    return problem_set("%s", ipu_last_error());
}

/* Turns the status of a function of the device into 0 or PROBLEM. */
static inline int device_status(int status)
{
    return status < 0 ? device_problem() : 0;
}

#endif
