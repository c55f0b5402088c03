/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_elastic.h - the state of a training that survives the loss of ranks.
 *
 * A program registers the memory that makes up its state: variables, what the
 * optimiser keeps, a random number generator, the position in the data. From
 * time to time all ranks commit: each copies its state, and they agree on the
 * number of the copy. When a rank is lost (hvd_recover), the others restore the
 * newest commit that all of them can have, and go on from there:
 *
 *     static int train(void *context)
 *     {
 *         while (step < steps) {
 *             HVD_TRY(make_step());            calls hvd_allreduce and others
 *             step++;
 *             if (step % 10 == 0)
 *                 HVD_TRY(hvd_commit());
 *         }
 *         return HVD_OK;
 *     }
 *
 *     hvd_init();
 *     hvd_state_register("weights", weights, sizeof weights, 0);
 *     hvd_state_register("step", &step, sizeof step, 0);
 *     status = hvd_elastic_run(train, NULL);
 *
 * (HVD_TRY stands for: return a negative status.) There is one state in each
 * process. What is promised:
 *
 *     - Whatever rank dies, and whenever, also within hvd_commit: all survivors
 *       restore the same commit, the newest that any of them has seen complete,
 *       or a newer one that all of them have. No update before it is lost, and
 *       none is applied twice.
 *     - Pieces that are the same on all ranks are compared at each commit; a
 *       difference is an error, which names the piece.
 *
 * A commit takes no disk. Two copies of the state are kept in memory.
 *
 * Threads: one thread calls these functions. Functions return 0 (HVD_OK) or
 * more, or a negative HVD_ERR_*, whose text hvd_last_error() has. A failure of
 * one rank is a failure of all ranks of a collective call. docs/ELASTIC.md
 * explains the protocol.
 */
#ifndef HVD_ELASTIC_H
#define HVD_ELASTIC_H

#include <stddef.h>

#include "hvd.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* ------------------------------------------------------------------ pieces */

/* The bits of flags. */
enum {
    HVD_STATE_PER_RANK = 1 /* each rank has values of its own: they are not
                              compared, and those of a lost rank are gone. A
                              process that joins gets those of the lowest rank
                              that has the commit */
};

/*
 * Adds a piece to the state. name is copied, unique, and of up to 223 bytes;
 * memory, of bytes bytes, is borrowed until hvd_state_unregister, and written
 * by hvd_restore and hvd_state_sync. All ranks register the same pieces in the
 * same order. May be called before hvd_init; not collective, never blocks,
 * unless a commit is being copied, for which it waits. A commit that has begun
 * is forgotten: hvd_commit_wait then returns 0. A restore of a commit that is
 * older than the piece leaves its memory as it is. HVD_ERR_ARGUMENT:
 * name is empty, too long, or taken, memory is NULL, or a flag is unknown.
 */
int hvd_state_register(const char *name, void *memory, size_t bytes,
                       uint32_t flags);

/* Removes a piece and frees its copies. Its memory stays the caller's. With the
 * last piece all commits go, too, and with any piece one that has begun. Not
 * collective. HVD_ERR_ARGUMENT: there is no piece of this name. */
int hvd_state_unregister(const char *name);

/* ------------------------------------------------------------------ commits */

/*
 * Commits: copies all pieces, and returns when the ranks have agreed that all
 * have done so. Collective, blocking. If processes wait to join the job
 * (hvd_joiners), they are let in then (hvd_grow) and given the commit,
 * functions of hvd_on_reset are called, and 1 is returned. A process that has
 * joined gets it by its own hvd_restore, or by hvd_elastic_run. If it has
 * registered other pieces, that fails with HVD_ERR_MISMATCH there, and the
 * others go on without it; so they do if it is lost meanwhile.
 *
 * After a failure the commit before is the newest. HVD_ERR_INCONSISTENT: a
 * piece that should be the same on all ranks is not; HVD_ERR_MISMATCH: the
 * ranks have registered different pieces; HVD_ERR_MEMORY: there is no room for
 * the copy. Each names the piece, and the rank. HVD_ERR_LOST: call hvd_recover,
 * then hvd_restore.
 */
int hvd_commit(void);

/*
 * Begins a commit: a thread of the library copies the pieces, and this one goes
 * on. Until hvd_commit_wait has returned, or after a loss hvd_restore, the
 * memory of no piece may change. All ranks call it, and it waits for none.
 * HVD_ERR_ARGUMENT: a commit has begun and has not been waited for.
 */
int hvd_commit_start(void);

/* Ends what hvd_commit_start has begun, as hvd_commit ends, but lets nobody
 * in; collective, blocking. Returns 0 at once if nothing was begun. */
int hvd_commit_wait(void);

/*
 * Goes back to the newest commit: all ranks agree which one that is, and each
 * copies it to the memory of its pieces. A rank that does not have it gets it
 * from the lowest that does. In a new world, behind hvd_recover or hvd_grow, it
 * also makes the process sets of the commit again, and calls the functions of
 * hvd_on_reset. A set keeps its id; it has those of its ranks that are left,
 * and if there are none, requests on it fail with HVD_ERR_PROCESS_SET. A rank
 * that has joined is in none. Collective, blocking. Returns 1; or 0 if no rank
 * has committed anything: then memory stays as it is. May be called in an
 * intact world, too, between two steps.
 */
int hvd_restore(void);

/* Gives all ranks what rank root has in its pieces, but for those of
 * HVD_STATE_PER_RANK. Commits stay as they are, but for one that has begun,
 * which is forgotten. If it fails, call hvd_restore: pieces may have some of
 * what root had. If there is no commit yet, that gives them what they had
 * before. Collective, blocking. */
int hvd_state_sync(int root);

/* What is known of the state, on this rank. */
typedef struct hvd_state_info {
    uint32_t size;       /* sizeof, set by the caller */
    int32_t pieces;      /* registered ones */
    int64_t bytes;       /* of all pieces */
    int64_t commit;      /* number of the newest commit, from 1; 0: none. The
                            same on all ranks */
    int64_t commits;     /* made by this process */
    int64_t restores;    /* made by this process */
    double copy_seconds; /* of the last commit: copying, */
    double wait_seconds; /* and the time that the calls have blocked */
} hvd_state_info;

/* Not collective, never blocks. HVD_ERR_ARGUMENT: info is NULL, or its size too
 * small. */
int hvd_state_get_info(hvd_state_info *info);

/* ------------------------------------------------------------- a new world */

/* How the world has changed since this process last called the functions. */
typedef struct hvd_reset {
    uint32_t size;    /* of the struct */
    int32_t old_rank; /* of this process; -1: it has joined */
    int32_t old_size; /* ranks of the world before; 0: it has joined */
    int32_t rank;     /* now */
    int32_t new_size;
    int32_t restored; /* 1: the memory of the pieces is that of the newest
                         commit; 0: there is none */
    int64_t commit;   /* its number */
} hvd_reset;

/*
 * Has a function be called whenever the world is new, behind those that were
 * given before. It adapts what depends on the ranks and their number: a
 * learning rate, shares of the data. hvd_restore calls it on all ranks, when
 * the pieces have their values; it may call collective functions. A negative
 * status that it returns is that of hvd_restore, on all ranks. context is
 * borrowed until hvd_off_reset. Not collective.
 */
int hvd_on_reset(int (*function)(void *context, const hvd_reset *reset),
                 void *context);

/* Takes it back. HVD_ERR_ARGUMENT: there is none with this context. */
int hvd_off_reset(int (*function)(void *context, const hvd_reset *reset),
                  void *context);

/*
 * Trains through losses: calls train until it does not fail by one. Before the
 * first call the pieces of rank 0 go to all ranks and are committed, unless
 * there is a commit already. When train returns
 * HVD_ERR_LOST or HVD_ERR_STALLED, or HVD_ERR_SHUTDOWN because another rank has
 * exited, or a commit here does, it recovers, restores, and calls train again,
 * which goes on from the state that it finds.
 * When train returns 0 or more, that state is committed, too, so that all ranks
 * end together: a rank that has ended may be asked again, and has nothing left
 * to do then. Collective, blocking. Returns what train has returned last, or
 * the failure of what was called here. HVD_ERR_UNSUPPORTED: a rank is lost, and
 * HVD_ELASTIC is not set.
 */
int hvd_elastic_run(int (*train)(void *context), void *context);

/* --------------------------------------------------------------- stragglers */

/* A rank that keeps the others waiting: in most commits of a while it was busy
 * longer than the median rank by a quarter or more. Busy is the time in which
 * no thread of it is blocked in hvd_wait or another blocking call. */
typedef struct hvd_straggler {
    uint32_t size; /* of the struct */
    int32_t rank;
    double seconds; /* that were looked at: HVD_STRAGGLER_TIME, or more, */
    double busy;    /* of which it was busy so long, */
    double median;  /* and the median of all ranks so long */
} hvd_straggler;

/*
 * Has a function be called in hvd_commit or hvd_commit_wait, at most once in
 * HVD_STRAGGLER_TIME for each straggler, behind those that were given before.
 * All ranks that have given one see the same, in the same commit, and the
 * straggler warns on stderr. The function must not call collective functions;
 * it may call hvd_exclude. context is borrowed until hvd_off_straggler. Not
 * collective.
 */
int hvd_on_straggler(void (*function)(void *context,
                                      const hvd_straggler *straggler),
                     void *context);

/* Takes it back. HVD_ERR_ARGUMENT: there is none with this context. */
int hvd_off_straggler(void (*function)(void *context,
                                       const hvd_straggler *straggler),
                      void *context);

/*
 * Asks for a rank of this world, perhaps this one, to be left out of the next.
 * The next hvd_commit or hvd_commit_wait is made by all, and then fails on all
 * ranks with HVD_ERR_LOST, as after a loss; what follows is the same, too:
 * hvd_recover, in which a spare comes in its place if one waits, and
 * hvd_restore, which goes back to this commit. On the excluded rank hvd_recover
 * fails with HVD_ERR_LOST. If ranks have named several, the lowest is excluded.
 * An hvd_recover before the next commit leaves out whom this rank has named. A
 * new world forgets the wishes of the one before.
 *
 * Not collective, never blocks: one rank that asks is enough. HVD_ERR_ARGUMENT:
 * there is no such rank. HVD_ERR_UNSUPPORTED: it is the only one, or the world
 * cannot be recovered from.
 */
int hvd_exclude(int rank);

/*
 * Says that the job needs its spares (HVD_SPARES) no more: from now on a world
 * that loses ranks is smaller, and those that wait in hvd_init stay there until
 * the job ends. For what a program does behind its training, where a process
 * that begins the program would have no part. A spare that was called before is
 * a rank as any other. Call it before a step in which all ranks agree, such as
 * the last commit: then no rank that has seen it complete meets a spare. Not
 * collective, never blocks: one rank that calls it is enough. Does nothing if
 * there are no spares; processes of a cluster come in by hvd_commit and
 * hvd_grow as before.
 */
int hvd_dismiss_spares(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
