/* SPDX-License-Identifier: Apache-2.0 */
/*
 * one_device.h - the device of a program whose tests have one each, and the
 * fixtures that make and free it.
 */
#ifndef HVD_TESTS_ONE_DEVICE_H
#define HVD_TESTS_ONE_DEVICE_H

#include "device.h"

static struct device d;

static inline void one_device_new(void)
{
    d = device_new();
}

static inline void one_device_free(void)
{
    device_free(&d);
}

#endif
