/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refuse.h - what the rooms above need of core beyond hvd.h.
 */
#ifndef HVD_CORE_REFUSE_H
#define HVD_CORE_REFUSE_H

#include <stdbool.h>

/* This rank will not submit a request of that name, for the reason of the
 * calling thread's last error, whose status is given: the other ranks that
 * do fail with HVD_ERR_PEER instead of waiting. Any thread; best effort. */
void hvd__refuse(const char *name, int status);

/* Whether HVD_CONSISTENCY_CHECK is set, on rank 0. */
bool hvd__checks_consistency(void);

#endif
