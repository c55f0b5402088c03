/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ours.h - the same call by libhvd, blocking.
 */
#ifndef BENCH_OURS_H
#define BENCH_OURS_H

#include "tables/call.h"

/* The status of libhvd. A broadcast has one buffer, out. */
int ours_run(const struct call *call, const void *in, void *out);

#endif
