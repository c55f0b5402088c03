/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.h - makes a world of the survivors of another one. world.c calls it,
 * with the lock of hvd_init.
 */
#ifndef HVD_CORE_WORLD_RECOVER_H
#define HVD_CORE_WORLD_RECOVER_H

#include "core/world/elastic.h"
#include "core/world/world.h"

/* Ends the world, which is freed in any case, and starts another one of the
 * survivors, which knows how it came about (recovery). Collective over these.
 * tickets, which may be NULL, are those of guests that are to join it; if that
 * fails, it is of those alone that are left. */
int hvd__world_recover(struct hvd__world *old, const int64_t *tickets,
                       struct hvd__world **made);

/* Makes the first world of those who have met and are no spares, or, in a
 * spare, one in which it replaces a lost rank. Frees elastic on failure:
 * HVD_ERR_SHUTDOWN if the job has ended without this spare. */
int hvd__world_found(struct hvd__elastic *elastic, struct hvd__world **made);

#endif
