/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.h - the processes of a job, from its first world to its last: which
 * are lost, and who makes up the next world. A world and its watch end with the
 * first loss; this does not.
 *
 * The processes of a host share a page of memory, the register, with a line for
 * each of them. A member is a line's number: its rank in the first world.
 * Whoever finds a member lost writes that into its line, once and for ever. A
 * process that finds its own line so marked has been given up by the others,
 * and stays out. If there are several hosts, their members write to each other
 * (survivors.h, members_net.h).
 *
 * The last members may be spares: they are in no world until others are lost,
 * on whatever host.
 *
 * No thread belongs to it. While a world stands, its watchdog calls
 * hvd__members_tend. A thread that recovers calls hvd__members_look.
 */
#ifndef HVD_WATCH_MEMBERS_H
#define HVD_WATCH_MEMBERS_H

#include <stdbool.h>
#include <stddef.h>

#include "transport/transport.h"

struct hvd__members;

struct hvd__members_options {
    int64_t heartbeat_ns; /* silence after which a member is lost; 0: never */
    int64_t limit_ns;     /* time that others get to come to a round; 0: any */
    int64_t report_ns;    /* time between reports of who is missing; 0: none */
    struct hvd__ip address; /* of this rank, as in hvd__watch_options */
    int nspares;            /* so many members, the last, are spares */
    int nelders; /* so many, the first, come from a world that the others join;
                    0: it is new, or nobody joins */
};

/* Opens the register. Collective over the transport. host(context, rank)
 * returns the name of a rank's host. *members is NULL, on all ranks, if one of
 * them cannot; then a warning says why. Fails only if the transport fails. */
int hvd__members_open(struct hvd__members **members,
                      struct hvd__transport *transport,
                      const char *(*host)(const void *context, int rank),
                      const void *context,
                      const struct hvd__members_options *options);
/* Accepts NULL. */
void hvd__members_close(struct hvd__members *members);

/* Shows the others that this process is alive, and answers those of other
 * hosts. Any thread; it does not block. Returns true, with words for why, if
 * the world that stands has ended, because one of it has left it. */
bool hvd__members_tend(struct hvd__members *members, char *text, size_t size);
/* Returns a descriptor that is readable when there is something to answer; -1:
 * there is none. */
int hvd__members_fd(const struct hvd__members *members);

/* Records that a member is lost, unless it is recorded already. text says how,
 * in words that begin with a verb: "was killed by signal 9". A member of
 * another host that is cut off, or frozen, is suspected only: it may answer
 * yet. */
void hvd__members_lose(struct hvd__members *members, int member,
                       hvd_lost_reason reason, const char *text);

/* Returns 0 or the reason for which a member is lost. */
hvd_lost_reason hvd__members_fate(const struct hvd__members *members,
                                  int member);

/* Returns whether there is nothing to wait for from a member: it is lost, or
 * seems to be. */
bool hvd__members_is_doubted(struct hvd__members *members, int member);

/* The members of the world that the last round has decided: [*n], ascending;
 * in the beginning all but the spares. The list is valid until the next round.
 */
const int *hvd__members_list(const struct hvd__members *members, int *n);
/* Returns the number of the last round; 0 in the beginning. */
int hvd__members_round(const struct hvd__members *members);

/* Returns the number of the round whose world was the first; 0: all members
 * were in it, or there was none yet. */
int hvd__members_founded(const struct hvd__members *members);
/* Returns how many members the world before the list had. */
int hvd__members_old_size(const struct hvd__members *members);

/* Returns whether this member is a spare that no world has needed yet. */
bool hvd__members_is_spare(const struct hvd__members *members);
/* Blocks until a round has decided that this spare is in the next world.
 * Returns HVD_ERR_SHUTDOWN if the job has ended without it, HVD_ERR_LOST if all
 * of the last world are lost, or this spare is. */
int hvd__members_stand_by(struct hvd__members *members);
/* Has no round that is proposed from now on take a spare. Those that wait go on
 * waiting for the end of the job. */
void hvd__members_dismiss_spares(struct hvd__members *members);
/* Tells the spares that this member has left its world for good. */
void hvd__members_leave(struct hvd__members *members, bool in_good_order);
/* Returns whether a member is lost, or was left out. */
bool hvd__members_has_lost(const struct hvd__members *members);

/* Returns whether all are on one host. */
bool hvd__members_share_host(const struct hvd__members *members);

/* A world that those of the last round make together with others is theirs if
 * all have started it, or nobody's. On one host, whoever says first that he
 * has, or cannot, decides that, in the register of those before, or in the new
 * one. Returns true if it is theirs. */
bool hvd__members_settle(struct hvd__members *members, bool has_started);
/* Returns 1 if that was decided so, -1 if not, 0 if nobody has said anything.
 */
int hvd__members_settled(const struct hvd__members *members);
/* The same if those of the last round are on several hosts. made has the
 * members of the world that was to be. Blocks until this is known, if this one
 * has not started; then another round may have been decided. */
bool hvd__members_settle_in_letters(struct hvd__members *members,
                                    struct hvd__members *made,
                                    bool has_started);
/* Has the members of a world that has grown answer for those before it: some
 * of these may not know yet that it has started. Takes ownership of before. */
void hvd__members_follow(struct hvd__members *members,
                         struct hvd__members *before);

/* Looks whether the listed members are still alive, and shows that this one is.
 * Returns HVD_ERR_LOST, with the last error set, if one of them, perhaps this
 * one, is lost. It may be called as often as one likes. */
int hvd__members_look(struct hvd__members *members);

/* This member could not start the world in which its register was made, and
 * takes part in nothing more of it. There are several hosts, which it tells. */
void hvd__members_withdraw(struct hvd__members *members, const char *text);

/* Records that the world that the last round has decided has started here. */
void hvd__members_start(struct hvd__members *members);
/* Returns whether it need not be found out whether all of the list have: nobody
 * has joined, or all are on one host. */
bool hvd__members_is_complete(struct hvd__members *members);
/* Records that all have. Those who have joined then count as the others do. */
void hvd__members_complete(struct hvd__members *members);

/*
 * Blocks until all listed members that are not lost have called it, and agrees
 * with them on who is left: the list becomes shorter, or stays, or has spares
 * in the place of the lost, and the round is one more. work(context) is called
 * while this waits, until it returns more than 0, which must come before the
 * round ends; its errors end the wait. Members that do not come within the
 * limit are lost. Returns HVD_ERR_LOST if the others have given up this member,
 * or if this one and those that it sees are too few to go on.
 */
int hvd__members_agree(struct hvd__members *members, int (*work)(void *context),
                       void *context);

#endif
