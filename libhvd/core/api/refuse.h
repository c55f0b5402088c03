/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refuse.h - the calls that core offers to the rooms above it beyond hvd.h.
 */
#ifndef HVD_CORE_REFUSE_H
#define HVD_CORE_REFUSE_H

#include <stdbool.h>

#include "hvd.h"

/* Informs the other members of a process set, on a best-effort basis, that this
 * rank will not submit a request of that name. The reason is the calling
 * thread's last error, whose status is given. Their requests fail with
 * HVD_ERR_PEER instead of waiting. Any thread may call it. */
void hvd__refuse(int32_t process_set, const char *name, int status);

/* Blocks, moving requests as hvd_wait does, until done(context) returns true.
 * done is called often and without a lock. */
int hvd__drive(bool (*done)(const void *context), const void *context);

/* Submits a gradient. It fails on all ranks if one has joined by hvd_join. It
 * runs without ranks that have joined by hvd__join_strategies; after that call
 * the strategies' variables of rank *last are sent to all. */
int hvd__submit_gradient(const hvd_request *request, hvd_handle *handle);
int hvd__join_strategies(int *last);

/* Returns true if HVD_CONSISTENCY_CHECK is set on rank 0. */
bool hvd__checks_consistency(void);

#endif
