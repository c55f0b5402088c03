/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ending.h - what is to happen when MPI ends, which it does after the world.
 * One thread at a time, with the lock of hvd_init.
 */
#ifndef HVD_CORE_ENDING_H
#define HVD_CORE_ENDING_H

#include "core/settings/settings.h"
#include "watch/guard.h"

/* How long each may take, for the guard. */
struct hvd__guard_options hvd__ending_options(
    const struct hvd__settings *settings);

/* A world of several ranks begins: MPI_Finalize will be watched with its
 * settings. */
void hvd__ending_expect(const struct hvd__settings *settings);

/* It is over, or did not come to be, with this status, and if that is negative
 * the last error. is_broken: MPI must not be finalised, which would wait for
 * ranks that may be gone. */
void hvd__ending_set(bool is_broken, int status);

/* There is no world: what was set last is what happens. */
void hvd__ending_resume(void);

#endif
