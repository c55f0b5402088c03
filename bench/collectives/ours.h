/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ours.h - runs a call by libhvd, blocking.
 */
#ifndef BENCH_OURS_H
#define BENCH_OURS_H

#include "tables/call.h"

/* Returns the status of libhvd. A broadcast has one buffer, out. */
int ours_run(const struct call *call, const void *in, void *out);

#endif
