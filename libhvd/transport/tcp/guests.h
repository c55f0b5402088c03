/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guests.h - the guests of a process: others that wait here until a world lets
 * them in. These functions decide, and call nothing: lobby.c has the
 * connections, and closes that of a guest that has gone from the list. The
 * simulator runs the same functions in virtual time (tests/sim/recovery).
 */
#ifndef HVD_TRANSPORT_TCP_GUESTS_H
#define HVD_TRANSPORT_TCP_GUESTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "transport/tcp/handshake.h"

struct hvd__guest {
    int64_t ticket; /* its own, which no other guest has; 0: there is none */
    int nmissed;    /* pings in a row that it has not answered */
    bool has_answered, is_admitted;
};

/* Ranks are those of the cluster. */
struct hvd__guests {
    int size;
    int most;                /* ranks that any world has at most */
    int nmembers;            /* ranks that are in the world */
    bool is_open;            /* guests may come */
    bool *is_member;         /* borrowed, [size]: it is in the world */
    struct hvd__guest *list; /* borrowed, [size] */
    atomic_int count;        /* of guests; for threads that do not drive */
};

/* Returns the answer to a process that calls and wants to be a guest. */
enum hvd__answer hvd__guests_judge(const struct hvd__guests *guests, int rank);
/* Takes such a process as a guest, in place of an earlier one of this rank. */
void hvd__guests_take(struct hvd__guests *guests, int rank, int64_t ticket);
/* Forgets the guest of a rank, if there is one. */
void hvd__guests_drop(struct hvd__guests *guests, int rank);
/* Sets the ranks that are in the world; others may come. */
void hvd__guests_members(struct hvd__guests *guests, const int *ranks, int n);
/* Forgets all guests; no others may come. */
void hvd__guests_shut(struct hvd__guests *guests);
/* Returns how many more ranks the world may have. */
int hvd__guests_room(const struct hvd__guests *guests);

/* A list is made of the guests that answer a ping. */

/* Begins the list: all guests are to be pinged now. */
void hvd__guests_ping(struct hvd__guests *guests);
/* Notes that a guest has sent something. */
void hvd__guests_hear(struct hvd__guests *guests, int rank);
/* Returns how many guests have not answered. */
int hvd__guests_awaited(const struct hvd__guests *guests);
/* Ends the list: writes the tickets of those that have answered, and 0 for
 * other ranks, [size]; forgets one that has not answered thrice. Returns how
 * many have. */
int hvd__guests_list(struct hvd__guests *guests, int64_t *tickets);

/* Admits the guest of a rank of the next world, if it is the one with this
 * ticket. Returns whether it is, and so is to be told. */
bool hvd__guests_admit(struct hvd__guests *guests, int rank, int64_t ticket);
/* Forgets the guests that were admitted, when all are in a world, or will not
 * be. */
void hvd__guests_settle(struct hvd__guests *guests);

#endif
