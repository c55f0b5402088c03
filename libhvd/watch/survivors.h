/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survivors.h - how members of a job on several hosts agree on who is left: the
 * protocol alone, without network, clock or thread. members.c and
 * members_net.c give it what happens and send what it wants to be sent;
 * tests/sim/recovery does the same in virtual time.
 *
 * A member is a number from 0 to n - 1. A round is a number that is proposed
 * with a list of members, at most once by each. The world that a member was in
 * last is its base: the round and the list of that world.
 *
 *     WORKING    the base's world stands, or has not been left
 *     AGREEING   this member looks for the next world
 *     PROPOSED   ... and has proposed a round's list, which others confirm
 *     CONFIRMED  ... and has confirmed the list that another has proposed
 *     DECIDED    the list is known to be confirmed by all in it: they start
 *     OUT        this member is lost; it takes part in nothing any more
 *     TOO_FEW    it does not see enough members to go on
 *     STANDBY    this member is a spare that no world has needed yet
 *     OVER       it has left its last world in good order; or it is a spare,
 *                and the job has ended without it
 *     FORSAKEN   this spare hears nobody of the last world any more
 */
#ifndef HVD_WATCH_SURVIVORS_H
#define HVD_WATCH_SURVIVORS_H

#include "watch/member_set.h"

enum hvd__survivors_stage {
    HVD__STAGE_WORKING,
    HVD__STAGE_AGREEING,
    HVD__STAGE_PROPOSED,
    HVD__STAGE_CONFIRMED,
    HVD__STAGE_DECIDED,
    HVD__STAGE_OUT,
    HVD__STAGE_TOO_FEW,
    HVD__STAGE_STANDBY,
    HVD__STAGE_OVER,
    HVD__STAGE_FORSAKEN,
    HVD__NSURVIVOR_STAGES
};

/* The reasons for which a member is lost for ever, as hvd_lost_reason less 1.
 * Only ENDED is proven: the kernel of its host has reported its end. */
enum { HVD__NREASONS = 5 };

/* All that a member says. */
struct hvd__letter {
    int32_t from;
    bool is_answer;    /* it needs none */
    bool is_dismissed; /* no spare is called any more */
    uint8_t stage;
    uint32_t base, round; /* round: the last proposed or confirmed */
    uint32_t failed;      /* the last that was decided and did not start */
    uint32_t seen;        /* the highest that it knows of */
    uint32_t founded;     /* the base that was the first, if there are spares */
    int32_t few, of;      /* of TOO_FEW */
    struct hvd__member_set base_list, elders, list, ready, suspected, left,
        withdrawn, lost[HVD__NREASONS];
};

struct hvd__survivors_times {
    int64_t silence_ns; /* after which a member is suspected; 0: never */
    int64_t limit_ns;   /* that others get to be ready; 0: any */
    int64_t settle_ns;  /* without news, before a proposal */
    int64_t resend_ns;  /* between letters that say the same */
    int64_t ping_ns;    /* between letters of a spare that waits */
};

struct hvd__survivors {
    int n, self;
    int size; /* members that a world is to have; n: there are no spares */
    struct hvd__survivors_times times;
    enum hvd__survivors_stage stage;
    uint32_t base, round, failed, seen;
    uint32_t founded;  /* the base that was the first; 0: none has started */
    bool is_dismissed; /* no spare is called any more */
    struct hvd__member_set base_list;
    struct hvd__member_set elders; /* those of the base that were in the one
                                      before, if others have joined, until all
                                      are known to have started; else none */
    struct hvd__member_set list;   /* of round */
    struct hvd__member_set
        ready; /* have left the base's world, as far as known */
    struct hvd__member_set lost[HVD__NREASONS];
    struct hvd__member_set withdrawn; /* joined, and have left before they had
                                         started: they are in no world */
    struct hvd__member_set suspected; /* silent; it may be heard again */
    struct hvd__member_set
        missed[HVD__SURVIVORS_MOST]; /* suspected by each, as it says */
    struct hvd__member_set joined;   /* of joined_of, the most that can be in
                                        one world */
    struct hvd__member_set joined_of;
    bool is_parted_anew; /* missed has changed since joined was found */
    struct hvd__member_set agreed; /* have confirmed the proposal of this one;
                                      OVER: spares that know it */
    struct hvd__member_set left; /* have left their last world in good order, as
                                    far as spares know */
    bool is_outbid; /* one of its list can confirm only a higher round */
    struct hvd__member_set due;     /* get a letter as soon as possible */
    struct hvd__member_set answers; /* get an answer */
    bool is_broken; /* what was decided cannot start any more, or has ended */
    int leader;     /* the lowest that is neither lost nor suspected */
    int few, of;    /* of TOO_FEW */
    int64_t settled_ns, waited_ns, sent_ns;
    int64_t recalled_ns; /* time since another has left the standing world */
    int64_t alone_ns;    /* time since a spare has heard a member of the base */
    int64_t silent_ns[HVD__SURVIVORS_MOST];
    int64_t patience_ns[HVD__SURVIVORS_MOST]; /* with each one's silence */
    int16_t host[HVD__SURVIVORS_MOST]; /* a number that its members share */
};

/* All members are in the base, round 0; each on a host of its own, until the
 * caller says otherwise in host. */
void hvd__survivors_init(struct hvd__survivors *s, int n, int self,
                         const struct hvd__survivors_times *times);

/* Right after that: a world has this size as long as there are spares. The
 * other members, the highest, are these, and not in the base. */
void hvd__survivors_reserve(struct hvd__survivors *s, int size);

/* Or: the first nelders are those of a world that the others join. */
void hvd__survivors_join(struct hvd__survivors *s, int nelders);

/* The next functions tell the protocol what happens. Here a member is lost for
 * ever, for a hvd_lost_reason. */
void hvd__survivors_lose(struct hvd__survivors *s, int member, int reason);
/* A member seems to be cut off; it may prove to be there. */
void hvd__survivors_suspect(struct hvd__survivors *s, int member);
/* This member looks for the next world: the last one has ended, or did not
 * start. */
void hvd__survivors_enter(struct hvd__survivors *s);
/* This member has left the last world for good. */
void hvd__survivors_be_ready(struct hvd__survivors *s);
/* The world of the list that was decided has started. */
void hvd__survivors_start(struct hvd__survivors *s);
/* This member could not start a round's world in which others join, and looks
 * for the next one. Returns 1 if that world has started elsewhere: then it
 * counts for this member as if it had started here, too. Returns -1 if it never
 * will, 0 if neither is known. */
int hvd__survivors_settle(struct hvd__survivors *s, uint32_t round);
/* All in the base have started its world. */
void hvd__survivors_complete(struct hvd__survivors *s);
/* No spare is to be called any more. */
void hvd__survivors_dismiss(struct hvd__survivors *s);
/* This member has left its last world in good order. */
void hvd__survivors_leave(struct hvd__survivors *s);
/* Returns whether all spares that can be reached know that. */
bool hvd__survivors_has_told(const struct hvd__survivors *s);
/* This member could not start the world of the first base, and takes part in
 * nothing any more. If it has joined those of another one, it does not count
 * from now on: it has confirmed no list, and so no other world can have it. */
void hvd__survivors_withdraw(struct hvd__survivors *s);
/* Says to all, once more, what this member has said last. */
void hvd__survivors_repeat(struct hvd__survivors *s);
/* A letter has come, which was checked by its MAC. */
void hvd__survivors_hear(struct hvd__survivors *s,
                         const struct hvd__letter *letter);
/* Time has passed, in which this member could hear the others. */
void hvd__survivors_pass(struct hvd__survivors *s, int64_t passed_ns);

/* Writes the next letter that is to be sent. Returns the member that gets it,
 * or -1: there is none. */
int hvd__survivors_next(struct hvd__survivors *s, struct hvd__letter *letter);

/* Returns 0, or the reason for which a member is lost for ever. */
int hvd__survivors_fate(const struct hvd__survivors *s, int member);
/* Returns whether a member of the base, or a spare, is neither lost nor
 * suspected. */
bool hvd__survivors_is_live(const struct hvd__survivors *s, int member);
/* Returns whether this member should not wait for one of the base: it is lost,
 * or suspected by this one or the leader. */
bool hvd__survivors_is_doubted(const struct hvd__survivors *s, int member);
/* Returns whether all in the base are known to have started its world. It is
 * asked if others have joined it. */
bool hvd__survivors_is_complete(const struct hvd__survivors *s);
/* Returns whether a list may go on: it has more than half of those of the base
 * who are not proven to have ended or to have withdrawn, or half with the
 * lowest of them; and of those of the base before, as long as some may not have
 * started the last one. Spares do not count. */
bool hvd__survivors_suffice(const struct hvd__survivors *s,
                            const struct hvd__member_set *list);

/* Returns whether a member is a spare that may still be called, unless it is
 * lost. */
bool hvd__survivors_is_spare(const struct hvd__survivors *s, int member);

#endif
