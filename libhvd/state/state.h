/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - the door of this room, and what its files share: the pieces of the
 * state (pieces.c), their copies (copy.h), commits (commit.c), restores
 * (restore.c), and who is told of a new world (reset.c).
 *
 * There are two slots. Each piece has memory for both. A slot is complete when
 * all pieces have been copied to it, and agreed when this rank knows that it is
 * complete on all ranks:
 *
 *     slot 0   number 6, agreed           the newest commit: "current"
 *     slot 1   number 7, being copied     the spare
 *
 *     prepare: copy to the spare   ->  complete 7
 *     agree:   one allreduce       ->  agreed 7, and current; slot 0 is spare
 *
 * If one rank has 7 agreed, then all had it complete, because each of them took
 * part in the allreduce. So what survivors have differs by one number at most,
 * and the least of their newest complete numbers is one that all of them have.
 */
#ifndef HVD_STATE_STATE_H
#define HVD_STATE_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/api/kept_sets.h"
#include "hvd_elastic.h"

struct hvd__piece {
    char *name;   /* owned */
    void *memory; /* borrowed until it is unregistered */
    size_t bytes;
    uint32_t flags;
    void *copies[2];    /* owned; NULL: none yet */
    uint64_t hashes[2]; /* of the copies */
    int64_t numbers[2]; /* whose copies they are; 0: none */
};

struct hvd__commit_slot {
    int64_t number; /* 0: not complete */
    bool agreed;
    struct hvd__kept_sets sets; /* owned: the process sets at that commit */
};

struct hvd__state {
    struct hvd__piece *pieces; /* owned, in the order of registration */
    int32_t npieces, capacity;
    struct hvd__commit_slot slots[2];
    int current;  /* the slot of the newest agreed commit, if there is one */
    int64_t last; /* the highest number that a slot has had, or was told of */
    bool started; /* hvd_commit_start was called, and not waited for */
    bool copying; /* the thread has not been joined */
    pthread_t copier; /* while it copies */
    int copy_status;  /* of the copy to the spare; the copier writes it before
                         it is joined */
    bool awaited;     /* processes waited to join at the last commit */
    bool kept; /* a sync before the first commit has failed; the spare has what
                  the pieces were before it, and belongs to no commit */
    int64_t commits, restores;
    double copier_seconds; /* of the copy, written with copy_status */
    double copy_seconds, wait_seconds;
};

/* The state of this process. */
extern struct hvd__state hvd__state;

/* Returns seconds of a clock that never goes back. */
double hvd__state_seconds(void);
/* Returns the bytes of all pieces. */
int64_t hvd__state_bytes(void);

/* -------------------------------------------------------------- pieces.c */

/* Makes the memory for a slot of all pieces, as far as it is missing. */
int hvd__pieces_allocate(int slot);
/* Makes it for one piece. */
int hvd__piece_allocate(struct hvd__piece *piece, int slot);
/* Returns the hash of those copies of a slot that are the same on all ranks. */
uint64_t hvd__pieces_hash(int slot);
/* Returns a hash of names, sizes and flags. */
uint64_t hvd__pieces_list_hash(void);
/* Collective. Fails on all ranks if a piece is not registered alike, with the
 * first one of the lowest rank that differs from rank 0: *odd. */
int hvd__pieces_compare(int *odd);

/* -------------------------------------------------------------- commit.c */

/* Waits until nothing is being copied, and forgets that a commit was begun. The
 * spare is complete then if all was copied. */
void hvd__commit_settle(void);
/* Makes a slot one that holds nothing. */
void hvd__slot_clear(int slot);

/* ----------------------------------------------------------- straggler.c */

/* In worlds of more ranks nothing is measured. */
enum { HVD__MEASURED_RANKS = 1024 };

/* Writes the time since the last commit of this world, and how much of it this
 * rank was not blocked; 0 at the first. Returns false if nobody wants to know,
 * on all ranks. */
bool hvd__straggler_measure(int64_t *passed, int64_t *busy);
/* Takes what all ranks have measured: busy, [hvd_size()], and passed of rank 0.
 * Calls the functions of hvd_on_straggler, if it is time. */
void hvd__straggler_judge(int64_t passed, const int64_t *busy);

/* --------------------------------------------------------------- reset.c */

/* A function of hvd_on_reset. */
typedef int hvd_reset_fn(void *context, const hvd_reset *reset);

/* Returns whether this process has not come to terms with its world yet; and
 * whether it had with an earlier one, or with this. */
bool hvd__world_is_new(void);
bool hvd__world_was_known(void);
/* Says that this is a world that is known. */
void hvd__world_settle(void);
/* Collective. Calls the functions of hvd_on_reset if the world was new, and
 * settles. */
int hvd__world_announce(bool is_new, bool restored);

/* --------------------------------------------------------------- agree.c */

/* Collective over a process set. Turns a failure of any rank into one of all;
 * the last error says whose it was. */
int hvd__agree(int32_t process_set, int status);
/* Does the same as hvd_allreduce, in place, on a process set. */
int hvd__allreduce_on(int32_t process_set, void *data, int64_t count,
                      hvd_dtype dtype, hvd_op op);

#endif
