/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.h - the world holds this process's state of the job from hvd_init to
 * hvd_shutdown. It is the only global of libhvd. This is the door of the room
 * core/world.
 *
 * The room starts and ends the world (world.c, meet.c, prepare.c), chooses the
 * thread that drives (progress.h) and steps all sets (engine.c). core/api calls
 * it. The rooms below get the engine, which is a part of the world, and never
 * the world.
 *
 * The locks are, outermost first, as follows. Only the first two may be held
 * across a callback, an MPI call or anything that blocks.
 *
 *     life (world.c)             hvd_init and hvd_shutdown, one at a time
 *     changing (process_sets.c)  changes of process sets, one at a time
 *     progress.lock              who drives, who waits
 *     table.lock                 the request table and its list of sets
 *
 * "Driver only" and "driver's" mark functions and fields that only the thread
 * with the role of the driver (progress.h) may use; they need no lock. A thread
 * takes the role under the lock of the request table, and a thread that holds
 * this lock while nobody has the role counts as the driver too. The watchdog
 * stores abort_status after abort_text (meet.c), and the driver stores broken
 * after break_status and break_message (engine.c). A thread that finds
 * abort_status or broken set may read the others.
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

struct hvd__elastic;

struct hvd__world {
    struct hvd__engine engine;
    struct hvd__topology topology; /* fixed once the world has started */
    int *host_of;        /* owned, [size]: the first rank of each rank's host */
    uint64_t *processes; /* owned, [size]: a number of each rank's process,
                            which it has in all worlds */
    struct hvd__heap *heap; /* owned; shared memory of this host; NULL: none */
    struct hvd__submission
        *quick; /* owned; driver's; reused for quick requests */
    struct hvd__progress progress;
    int32_t last_id; /* highest set id ever used; belongs to process_sets.c */
    int32_t old_id;  /* the highest of the worlds before; fixed at the start */
    struct hvd__watch *watch;         /* owned; NULL: nobody is watched */
    char abort_text[HVD__ABORT_TEXT]; /* fixed once abort_status is set */
    char *break_message;              /* owned; fixed once broken is set */
    int break_status;                 /* the reason; fixed once broken is set */
    atomic_int abort_status; /* negative: the watchdog has asked the driver to
                                break the world with this status */
    struct hvd__guard
        *guard; /* owned; watches hvd_init; NULL: not watched, or over */
    struct hvd__elastic *elastic; /* owned; NULL: there is no recovering */
    struct hvd__lobby *lobby;     /* owned; NULL: elastic has it, or there is
                                     none */
    struct hvd__elastic *parent;  /* borrowed, while it starts: of the world of
                                     which this one grows; NULL: there is none */
    const struct hvd__admission *admission; /* borrowed, while it starts: its
                                               ranks; NULL: it has no guests */
    int64_t connected_ns;  /* if it has guests: when all were connected */
    hvd_recovery recovery; /* how this process came to it; fixed once it has
                              started */
    atomic_int excluded;   /* 1 + the rank that hvd_exclude was called with; 0:
                              none */
    bool keeps_memory; /* MPI may still use that of requests: it is not freed */
    bool has_met;      /* all ranks have exchanged identity and host */
    int njoined;       /* ranks from the first on that has been in no world yet;
                          0: none of them has */
    atomic_bool closed; /* all ranks have left, nothing is under way */
    atomic_bool broken; /* after an error nothing moves again */
};

/* Sets *world. If there is none, returns HVD_ERR_SHUTDOWN after hvd_shutdown,
 * else HVD_ERR_NOT_INITIALIZED. */
int hvd__world_get(struct hvd__world **world);

struct hvd__tcp_options;

/* The ranks of which hvd_init makes a world. */
struct hvd__origin {
    const struct hvd__tcp_options *tcp; /* borrowed: ranks that meet without
                                           MPI, at their addresses; NULL: */
    const void *comm; /* borrowed MPI_Comm; NULL: MPI_COMM_WORLD, or */
    const int *ranks; /* these ranks of it: borrowed, [nranks], ascending */
    int nranks;
    struct hvd__elastic *elastic; /* borrowed: the ranks are those that survive,
                                     by their ranks in the first world */
    /* borrowed: the ranks of an elastic cluster that are let in, which have
     * these tickets, or that have been let in, with a lobby, which becomes the
     * world's, also on failure */
    const struct hvd__admission *admission;
    const int64_t *tickets;
    struct hvd__lobby *lobby;
};

int hvd__world_init(const struct hvd__origin *origin);

/* Starts a world. The caller has the lock of hvd_init. */
int hvd__world_create(const struct hvd__origin *origin,
                      struct hvd__world **created);
/* Frees a world, without waiting for others. */
void hvd__world_destroy(struct hvd__world *world);
/* Decides what happens when MPI ends after this world; a world of one rank
 * changes nothing. status is the reason why the world ended or failed to start.
 */
void hvd__world_end_of(const struct hvd__world *world, int status);

/* Replaces the world that stands by another one: of those who are left, and of
 * those who have tickets, if tickets is not NULL. recovery is as in
 * hvd_recover.
 */
int hvd__world_replace(const int64_t *tickets, hvd_recovery *recovery,
                       size_t size);

/* Collective over the ranks of an origin: makes a communicator of them.
 * hvd__group_free frees it. */
int hvd__group_make(const struct hvd__origin *origin, const void **comm);
void hvd__group_free(const void *comm);

/* Collective, while the world starts. Returns the first failure of all ranks,
 * on every rank. */
int hvd__world_meet(struct hvd__world *world, int status);

/* Returns what ends a wait for other ranks while the world starts. */
struct hvd__asked hvd__world_asked(struct hvd__world *world);

/* Collective, while the world starts, after the first meeting. Opens the
 * transport that the settings ask for on the one that is there. Returns the
 * same on every rank, unless a rank was lost. */
int hvd__world_choose_transport(struct hvd__world *world);

/* Collective, while the world starts, when the transport has been chosen. Sets
 * the costs that rank 0's settings ask for. Returns the same on every rank,
 * unless a rank was lost. */
int hvd__world_find_costs(struct hvd__world *world);

/* Makes the engine move the set from the next step on. This rank must be a
 * member. */
void hvd__world_move_set(struct hvd__world *world, struct hvd__set *set);

/* Allocates what the engine needs for a set of which this rank is a member.
 * Fails with HVD_ERR_MEMORY. */
int hvd__set_prepare(struct hvd__world *world, struct hvd__set *set);
/* Frees what hvd__set_prepare allocated. Nothing may move on the set any more.
 */
void hvd__set_retire(struct hvd__set *set);

/* Collective, while the world starts. Begins the timeline and the metrics that
 * the settings ask for. */
int hvd__world_start_traces(struct hvd__world *world);
/* A meeting of all ranks that sets *stamp to rank 0's value. */
typedef int hvd__stamp_meeting(struct hvd__world *world, int64_t *stamp);
/* Collective. Finds the *offset that is added to this rank's clock to get rank
 * 0's. */
int hvd__world_clock_offset(struct hvd__world *world, hvd__stamp_meeting *meet,
                            int64_t *offset);

/* Driver only. Steps everything once. Returns true if anything happened. */
bool hvd__world_step(struct hvd__world *world);

/* Driver only. Posts the queue where other ranks see it, and does nothing else.
 */
void hvd__world_post(struct hvd__world *world);
/* Posts a submission that was entered, if may_post is true and it can be posted
 * at once; otherwise queues it. Returns whether it posted. The caller holds the
 * table's lock, after whose release the submission may be over. If may_post is
 * true, no thread may be driving. */
bool hvd__world_pass(struct hvd__world *world,
                     struct hvd__submission *submission, bool may_post);

/* Driver only. Breaks the world: every request in flight fails, every later one
 * is refused, and the other ranks are informed. */
void hvd__world_break(struct hvd__world *world, int status, const char *text);

#endif
