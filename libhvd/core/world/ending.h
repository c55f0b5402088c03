/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ending.h - decides what happens when MPI ends, which it does after the world.
 * Callers hold the lock of hvd_init.
 */
#ifndef HVD_CORE_ENDING_H
#define HVD_CORE_ENDING_H

#include "core/settings/settings.h"
#include "watch/guard.h"

/* Returns the time limits for the guard. */
struct hvd__guard_options hvd__ending_options(
    const struct hvd__settings *settings);

/* Prepares for the end of a world of several ranks: MPI_Finalize will be
 * watched with these settings. */
void hvd__ending_expect(const struct hvd__settings *settings);

/* Stores how the world ended or failed to start. If is_broken is true, MPI must
 * not be finalised, because it would wait for ranks that may be gone; why says
 * which, or is "" if that is not known. */
void hvd__ending_set(bool is_broken, const char *why);

/* Call this when there is no world any more. When MPI then ends, the last
 * hvd__ending_set applies. */
void hvd__ending_resume(void);

#endif
