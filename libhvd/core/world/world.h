/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - the world: the ranks that work together, as this process sees them,
 * from hvd_init to hvd_shutdown; the one global of libhvd, and the door of the
 * room core/world.
 *
 * The room owns the life of the world (world.c, meet.c, prepare.c), the thread
 * that drives (progress.h) and the step of all sets (engine.c). core/api calls
 * it; the rooms below get the engine, which is a part of the world, and never
 * the world.
 *
 * Locks, outermost first. None is held across a callback, an MPI call or
 * anything that blocks, but for the first two.
 *
 *     life (world.c)             hvd_init and hvd_shutdown, one at a time
 *     changing (process_sets.c)  changes of process sets, one at a time
 *     progress.lock              who drives, who waits
 *     table.lock                 the request table and its list of sets
 *
 * "Driver's" marks what belongs, without a lock, to the one thread that has the
 * role of the driver (progress.h). abort_status is stored by the watchdog after
 * abort_text (meet.c), broken by the driver after break_status and
 * break_message (engine.c): whoever loads them set may read the others.
 */
#ifndef HVD_CORE_WORLD_H
#define HVD_CORE_WORLD_H

#include "core/run/engine.h"
#include "core/table/set.h"
#include "core/world/progress.h"
#include "core/world/topology.h"
#include "watch/guard.h"
#include "watch/watch.h"

enum { HVD__ABORT_TEXT = 1024 };

struct hvd__world {
    struct hvd__engine engine;
    struct hvd__topology topology; /* fixed once the world has started */
    int *host_of; /* owned, [size]: the first rank of each rank's host */
    struct hvd__heap *heap;        /* owned; NULL: no memory is shared */
    struct hvd__submission *quick; /* owned; driver's: for quick requests */
    struct hvd__progress progress;
    int32_t last_id; /* of all sets that were ever made; process_sets.c's */
    struct hvd__watch *watch;         /* owned; NULL: nobody is watched */
    char abort_text[HVD__ABORT_TEXT]; /* fixed once abort_status is set */
    char *break_message;              /* owned; fixed once broken is set */
    int break_status;                 /* likewise: why */
    atomic_int abort_status; /* the watchdog says so, with this status: break */
    struct hvd__guard *guard; /* owned; NULL: nobody watches hvd_init, or it
                                 has ended */
    bool has_met;             /* all ranks know who and where they are */
    atomic_bool closed; /* all have left, and nothing is under way any more */
    atomic_bool broken; /* an error of MPI or of ours: nothing moves again */
};

/* The world, or NULL with HVD_ERR_NOT_INITIALIZED, or HVD_ERR_SHUTDOWN after
 * hvd_shutdown, as the last error and in *status. */
struct hvd__world *hvd__world_get(int *status);

/* The ranks of which hvd_init makes a world. */
struct hvd__origin {
    const void *comm; /* borrowed: an MPI_Comm; NULL: MPI's world, or */
    const int *ranks; /* borrowed: of that these, [nranks], ascending */
    int nranks;
};

int hvd__world_init(const struct hvd__origin *origin);

/* Makes a communicator of the ranks of an origin, on all of them;
 * hvd__group_free frees it. */
int hvd__group_make(const struct hvd__origin *origin, const void **comm);
void hvd__group_free(const void *comm);

/* Collective, while the world starts: the first failure of all ranks, on
 * every rank. */
int hvd__world_meet(struct hvd__world *world, int status);

/* The engine moves the set from the next step on. We are a member. */
void hvd__world_move_set(struct hvd__world *world, struct hvd__set *set);

/* Makes what the engine needs of a set of which we are a member. heap: of this
 * host; NULL. HVD_ERR_MEMORY. */
int hvd__set_prepare(struct hvd__set *set, const struct hvd__settings *settings,
                     struct hvd__heap *heap);
/* Gives back what the engine needed: nothing moves on the set any more. */
void hvd__set_retire(struct hvd__set *set);

/* Collective, while the world starts: begins the timeline and the metrics that
 * the settings ask for. */
int hvd__world_start_traces(struct hvd__world *world);
/* A meeting of all ranks, in which *stamp becomes rank 0's. */
typedef int hvd__stamp_meeting(struct hvd__world *world, int64_t *stamp);
/* Collective: what to add to this rank's clock to get rank 0's. */
int hvd__world_clock_offset(struct hvd__world *world, hvd__stamp_meeting *meet,
                            int64_t *offset);

/* Driver's: one step of everything; whether anything happened. */
bool hvd__world_step(struct hvd__world *world);

/* Driver's: what has been submitted (submission, or if NULL all that is queued)
 * is put where others see it, no more. */
void hvd__world_post(struct hvd__world *world,
                     struct hvd__submission *submission);

/* Driver's: nothing can move any more. Every request in flight fails, every
 * later one is refused, the other ranks are told. */
void hvd__world_break(struct hvd__world *world, int status, const char *text);

#endif
