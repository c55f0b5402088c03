/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refuse.h - what the rooms above need of core beyond hvd.h.
 */
#ifndef HVD_CORE_REFUSE_H
#define HVD_CORE_REFUSE_H

#include <stdbool.h>

#include "hvd.h"

/* This rank will not submit a request of that name, for the reason of the
 * calling thread's last error, whose status is given: the other ranks that
 * do fail with HVD_ERR_PEER instead of waiting. Any thread; best effort. */
void hvd__refuse(const char *name, int status);

/* hvd_submit of a gradient: it fails on all ranks if one has joined by
 * hvd_join, and does without those that have joined by the second, after which
 * the strategies' variables go to all from rank *last. */
int hvd__submit_gradient(const hvd_request *request, hvd_handle *handle);
int hvd__join_strategies(int *last);

/* Whether HVD_CONSISTENCY_CHECK is set, on rank 0. */
bool hvd__checks_consistency(void);

#endif
