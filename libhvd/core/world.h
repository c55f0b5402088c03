/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - the ranks that work together, as this process sees them: the one
 * global of libhvd, from hvd_init to hvd_shutdown.
 *
 * Locks, outermost first. None is held across a callback, an MPI call or
 * anything that blocks, but for the first.
 *
 *     life (world.c)     hvd_init and hvd_shutdown, one at a time
 *     progress.lock      who drives, who waits
 *     ledger.lock        the books of requests
 *
 * What is marked "driver's" below belongs, without a lock, to the one thread
 * that has the role of the driver (progress.h).
 */
#ifndef HVD_CORE_WORLD_H
#define HVD_CORE_WORLD_H

#include "core/coordinator.h"
#include "core/env.h"
#include "core/execute.h"
#include "core/ledger.h"
#include "core/progress.h"
#include "core/topology.h"
#include "transport/transport.h"

struct hvd__world {
    struct hvd__settings settings;    /* fixed once the world has started */
    struct hvd__topology topology;    /* likewise */
    struct hvd__transport *transport; /* owned; driver's, but rank and size */
    struct hvd__ledger ledger;
    struct hvd__progress progress;
    struct hvd__coordinator *coordinator; /* owned; rank 0's; driver's */
    struct hvd__executor executor;        /* driver's */
    atomic_bool leaving;                  /* hvd_shutdown was called: say so */
    bool said_leave;                      /* driver's */
    bool heard_close;                     /* driver's: every rank has left */
    atomic_bool closed; /* ... and nothing is under way any more */
    atomic_bool broken; /* an error of MPI or of ours: nothing moves again */
};

/* The world, or NULL with HVD_ERR_NOT_INITIALIZED, or HVD_ERR_SHUTDOWN after
 * hvd_shutdown, as the last error and in *status. */
struct hvd__world *hvd__world_get(int *status);

/* hvd_init, on a communicator (a pointer to an MPI_Comm, NULL: the world's).
 */
int hvd__world_init(const void *comm);

/* Driver's: nothing can move any more. Every request in flight fails, every
 * later one is refused, the other ranks are told. */
void hvd__world_break(struct hvd__world *world, int status, const char *text);

#endif
