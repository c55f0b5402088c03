/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profiled.h - one program and its profile, for tests that make both as they
 * need them. Both are freed after each test.
 */
#ifndef HVD_TESTS_PROFILED_H
#define HVD_TESTS_PROFILED_H

#include "report.h"

static struct device d;
static ipu_profile *profile;

static inline void set_up(void)
{
    d = device_new();
    profile = NULL;
}

static inline void tear_down(void)
{
    ipu_profile_free(profile);
    device_free(&d);
}

/* The network of report.h, ready to run. */
static inline void network(int64_t batch)
{
    report_network(&d, batch, device_no_call);
    device_load(&d);
    report_connect(&d, batch);
}

#endif
