/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refuse.h - the calls that core offers to the rooms above it beyond hvd.h.
 */
#ifndef HVD_CORE_REFUSE_H
#define HVD_CORE_REFUSE_H

#include <stdbool.h>

#include "hvd.h"

/* Tells the other ranks that this rank will not submit a request of that name,
 * for the reason of the calling thread's last error, whose status is given:
 * those that do fail with HVD_ERR_PEER instead of waiting. Any thread; best
 * effort. */
void hvd__refuse(const char *name, int status);

/* Submits a gradient. It fails on all ranks if one has joined by hvd_join, and
 * does without ranks that have joined by hvd__join_strategies, after which the
 * strategies' variables go to all from rank *last. */
int hvd__submit_gradient(const hvd_request *request, hvd_handle *handle);
int hvd__join_strategies(int *last);

/* Returns true if HVD_CONSISTENCY_CHECK is set, on rank 0. */
bool hvd__checks_consistency(void);

#endif
