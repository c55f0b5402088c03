/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spares.h - units of one entry that are over, kept for the next requests: to
 * have them from malloc, and cleared, takes a tenth of the time of a small
 * request, once more than a few are in flight.
 *
 * A step of training asks for what the one before asked for. So a unit whose
 * request may come again is found by the address of its result, and if the
 * request that comes is the same, it is that one again: its name, sizes and
 * addresses were found to be good, its fingerprints are made.
 *
 * Any thread may take and give, and stays in there for a moment only.
 */
#ifndef HVD_CORE_SPARES_H
#define HVD_CORE_SPARES_H

#include <stdatomic.h>

#include "core/request.h"

/* As many as a step of training may have in flight at once; places where to
 * look for them, a power of two. */
enum { HVD__SPARES_MOST = 512, HVD__SPARES_PLACES = 2 * HVD__SPARES_MOST };

struct hvd__spares {
    atomic_flag taken;      /* guards the rest */
    struct hvd__unit *list; /* owned, by later: the last given first */
    int n;                  /* in it */
    /* Borrowed, spare or in use: where they are found again. */
    struct hvd__unit *places[HVD__SPARES_PLACES];
};

/* Zeroed is none. */
void hvd__spares_fini(struct hvd__spares *spares);
/* A unit of one empty entry; NULL: out of memory. */
struct hvd__unit *hvd__spares_take(struct hvd__spares *spares);
/* The unit that was such a request before, and is one again, as it was
 * checked then; NULL: take one, and check it. */
struct hvd__unit *hvd__spares_recall(struct hvd__spares *spares,
                                     const hvd_request *request,
                                     const char *name);
/* The request that the unit is of was checked, and may come again. bytes: of
 * its name. */
void hvd__spares_remember(struct hvd__spares *spares, struct hvd__unit *unit,
                          const hvd_request *request, size_t bytes);
/* It is not to be found again: it will be freed. */
void hvd__spares_forget(struct hvd__spares *spares, struct hvd__unit *unit);
/* As hvd__entry_free. */
void hvd__spares_give(struct hvd__spares *spares, struct hvd__entry *entry);

#endif
