/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spares.h - units of one entry that are over, kept for the next requests: to
 * have them from malloc, and cleared, takes a tenth of the time of a small
 * request, once more than a few are in flight.
 *
 * Any thread may take and give. One that meets another in there goes to
 * malloc instead of waiting.
 */
#ifndef HVD_CORE_SPARES_H
#define HVD_CORE_SPARES_H

#include <stdatomic.h>

#include "core/request.h"

/* As many as a step of training may have in flight at once. */
enum { HVD__SPARES_MOST = 512 };

struct hvd__spares {
    atomic_flag taken;      /* guards the list */
    struct hvd__unit *list; /* owned */
    int n;
};

/* Zeroed is none. */
void hvd__spares_fini(struct hvd__spares *spares);
/* A unit of one empty entry; NULL: out of memory. */
struct hvd__unit *hvd__spares_take(struct hvd__spares *spares);
/* As hvd__entry_free. */
void hvd__spares_give(struct hvd__spares *spares, struct hvd__entry *entry);

#endif
