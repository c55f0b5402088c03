/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survivors_state.h - what the files of survivors.h know of each other:
 * survivors.c has the stages of a member, survivors_left.c who is left,
 * survivors_parted.c who of them can be in one world,
 * survivors_tell.c whom it writes to, survivors_round.c how a list is proposed
 * and confirmed, survivors_hear.c what letters say, survivors_time.c what comes
 * of silence.
 */
#ifndef HVD_WATCH_SURVIVORS_STATE_H
#define HVD_WATCH_SURVIVORS_STATE_H

#include "watch/survivors.h"

/* hvd_lost_reason less 1 */
enum { ENDED, FROZEN, CUT_OFF, ABSENT };

/* The other members of a suspected member's host get this part of the time, and
 * so do other hosts when one is missed. */
enum { HURRY = 2 };

/* Who has not been heard for so many pings is asked for. */
enum { MISSED_PINGS = 4 };

/* survivors_left.c */

struct hvd__member_set hvd__survivors_all_lost(const struct hvd__survivors *s);
/* Returns the members of the base that are neither lost nor suspected, nor have
 * left for good. */
struct hvd__member_set hvd__survivors_all_live(const struct hvd__survivors *s);
/* Returns the list that a leader proposes: those who are left and can be in one
 * world, and the lowest spares that can, until they are enough. */
struct hvd__member_set hvd__survivors_all_wanted(struct hvd__survivors *s);
/* Returns the members of the base that are not proven to have ended, or to have
 * withdrawn. */
struct hvd__member_set hvd__survivors_all_counted(
    const struct hvd__survivors *s);
/* Returns whether this member is in no world yet. */
bool hvd__survivors_is_apart(const struct hvd__survivors *s);
bool hvd__survivors_is_agreeing(const struct hvd__survivors *s);
bool hvd__survivors_has_ended(const struct hvd__survivors *s);

/* survivors_parted.c */

/* Returns the most of those who are left that all reach each other, as far as
 * they have said, and of whom this member is one. */
struct hvd__member_set hvd__survivors_all_joined(struct hvd__survivors *s);
/* Returns whether a spare and all of a list reach each other, as far as they
 * have said. */
bool hvd__survivors_may_join(const struct hvd__survivors *s, int member,
                             const struct hvd__member_set *list);
/* Takes what a letter of the same base says about who is missed. */
void hvd__survivors_hear_of_missed(struct hvd__survivors *s,
                                   const struct hvd__letter *letter);
/* There is another base, whose members have said nothing yet. */
void hvd__survivors_forget_missed(struct hvd__survivors *s);
/* Returns whether a member is the lowest of its host in the list. */
bool hvd__survivors_speaks(const struct hvd__survivors *s, int member);

/* survivors_time.c */

/* The start of a world fails. One member of each host suspects the others that
 * were silent for half of the time in which they are missed, and asks them all:
 * so hosts that were parted at about the same time are known together. */
void hvd__survivors_suspect_silent(struct hvd__survivors *s);

/* survivors_tell.c */

/* Something has changed that the others have to know. */
void hvd__survivors_tell(struct hvd__survivors *s);
/* Something has changed that a proposal depends on. */
void hvd__survivors_unsettle(struct hvd__survivors *s);
/* This member takes part in nothing any more, unless it does not already. */
void hvd__survivors_end(struct hvd__survivors *s,
                        enum hvd__survivors_stage stage);
void hvd__survivors_choose_leader(struct hvd__survivors *s);

/* survivors.c */

/* Returns the stage of a member that has confirmed nothing that still counts.
 */
enum hvd__survivors_stage hvd__survivors_idle_stage(
    const struct hvd__survivors *s);
/* Notes for ever what is in a set. reason is a hvd_lost_reason less 1. */
void hvd__survivors_lose_all(struct hvd__survivors *s,
                             const struct hvd__member_set *members, int reason);

/* survivors_round.c */

/* Does what can be done, after something has happened. */
void hvd__survivors_step(struct hvd__survivors *s);
/* Takes what a letter says about a round. */
void hvd__survivors_hear_of_round(struct hvd__survivors *s,
                                  const struct hvd__letter *letter);

#endif
