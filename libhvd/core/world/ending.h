/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ending.h - what happens when MPI ends, which it does after the world. One
 * thread at a time uses it, with the lock of hvd_init.
 */
#ifndef HVD_CORE_ENDING_H
#define HVD_CORE_ENDING_H

#include "core/settings/settings.h"
#include "watch/guard.h"

/* The time limits for the guard. */
struct hvd__guard_options hvd__ending_options(
    const struct hvd__settings *settings);

/* A world of several ranks begins: MPI_Finalize will be watched with its
 * settings. */
void hvd__ending_expect(const struct hvd__settings *settings);

/* The world is over, or did not come to be, with this status; if it is
 * negative, with the last error. is_broken: MPI must not be finalised, for it
 * would wait for ranks that may be gone. */
void hvd__ending_set(bool is_broken, int status);

/* There is no world any more: when MPI ends, the last hvd__ending_set counts.
 */
void hvd__ending_resume(void);

#endif
