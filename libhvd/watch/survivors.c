/* SPDX-License-Identifier: Apache-2.0 */
/*
 * survivors.c - the members of a job on several hosts agree on who is left:
 * how they do that, and the stages of a member.
 *
 * A member leads if it is the lowest that it does not know or suspect to be
 * lost. Everyone sends all that it knows to its leader, again and again, and
 * the leader to everyone, so that the number of letters grows with that of the
 * members. When all that are left are ready, and nothing new was heard for a
 * while, the leader proposes a round, higher than any that it has heard of,
 * with the list of those who are left:
 *
 *     leader                   each of the others in the list
 *       PROPOSED 7: {0 2 3} ->
 *                           <- CONFIRMED 7
 *       DECIDED 7           ->     all start a world of {0 2 3}
 *
 * Who has confirmed a list has lost all others for ever. A member confirms one
 * list a round, in ascending rounds, and only those of its own leader: it has
 * to suspect all that are lower. A leader confirms its own list last, when all
 * others have, and may drop it before that. If one more is lost, or the leader,
 * there is a proposal with a higher number.
 *
 * A leader that sees too few ends, and so do the others of its host. Members of
 * other hosts, who may reach more of them, then have another leader.
 *
 * Hosts that do not reach each other, and both reach the leader. Each member
 * says whom it suspects, and the leader leaves out as few as it can so that no
 * two hosts of the list miss each other (survivors_parted.c). Before that it
 * waits, while those who suspect somebody ask him, for the suspicion may be
 * old; and a member confirms no list with one that it suspects. Nobody writes
 * to all to find such a cut beforehand. It is found while a world starts: then
 * one member of each host writes to one of each other host, and a host that is
 * silent for long ends the start. A cut that a watch has found costs no start.
 *
 * Losses are of two kinds. A loss for ever is passed on, and everyone believes
 * it: the kernel of its host has reported the end of the process, processes of
 * its host have given it up in the register that they share, it has said so
 * itself, or somebody has confirmed a list without it. A suspicion, which is
 * silence, is each member's own, and ends when the suspected is heard; else a
 * network that comes back would make all of both sides lost.
 *
 * Why there are no two worlds. A world starts only if all in its list meet, and
 * whoever is in a world refuses proposals of those whose base is another. So of
 * two worlds of one base, which both started, no member is in both. But two
 * lists that suffice (hvd__survivors_suffice) have a common member: say S and T
 * are disjoint, and C and D are the base less those proven to have ended by the
 * one and the other. Nobody in S or T has ended, so both are parts of C, and of
 * D: |S| + |T| <= |C|. From |S| >= |C|/2 follows |S| >= |T|, likewise the other
 * way round, hence |S| = |T| and C = D = S and T together, of which only one
 * has the lowest. If a member that was in a world has ended after its start,
 * its hosts' others that are not in that world were given up in their register
 * before, and report nothing more.
 *
 * That holds for lists of one base. Of a world in which others have joined,
 * some may go on from its list, and some, whose start has failed, from the list
 * before. So until all are known to have started, a list must suffice in both:
 * among those of the base, and among its elders, who were in the one before.
 *
 * A member may believe that a world has started when others have failed in it.
 * Then it has a higher base than these. They take it over, since they are in
 * its list, and so do not reckon with the older base any more. Who is not in
 * the list of a higher base has been given up.
 *
 * Spares. A spare is in no base. It writes to the leader of the last world, as
 * far as it knows it, from time to time, so that both know of the other; and if
 * that one is silent, to all of that world. A leader's list may have spares in
 * the place of those who are lost, always such with higher numbers than the
 * base has, so that the lowest of a world has been in the one before. Spares
 * confirm a list as others do, and make no difference to whether it suffices.
 * One that a list has passed over, because it was suspected, is lost for ever
 * as soon as somebody has confirmed that. A spare that was called, and whose
 * start has failed, is a spare as before, unless it hears that others have
 * started: then it is in their base. It ends when nobody of the last world is
 * left that it could hear, in good order if one of them has said that the job
 * has ended.
 *
 * A letter may be lost, doubled, late, or overtaken: each says all that its
 * sender knows, and nothing that it says stops being true, but for the stage,
 * whose numbers say which round they are about.
 */
#include "watch/survivors_state.h"

#include <string.h>

enum hvd__survivors_stage hvd__survivors_idle_stage(
    const struct hvd__survivors *s)
{
    return hvd__survivors_is_apart(s) ? HVD__STAGE_STANDBY
                                      : HVD__STAGE_AGREEING;
}

void hvd__survivors_lose_all(struct hvd__survivors *s,
                             const struct hvd__member_set *members, int reason)
{
    struct hvd__member_set news = *members, lost = hvd__survivors_all_lost(s);

    /* A proof counts even if the member is lost already. */
    hvd__member_set_subtract(&news, reason == ENDED ? &s->lost[ENDED] : &lost);
    if (hvd__member_set_lowest(&news) < 0)
        return;
    hvd__member_set_unite(&s->lost[reason], &news);
    for (int r = ENDED + 1; r < HVD__NREASONS && reason == ENDED; r++)
        hvd__member_set_subtract(&s->lost[r], &news);
    hvd__survivors_unsettle(s);
    if (hvd__member_set_has(&news, s->self)) {
        hvd__survivors_end(s, HVD__STAGE_OUT);
        return;
    }
    if (s->stage != HVD__STAGE_WORKING)
        hvd__survivors_tell(s);
    else if (s->leader != s->self && hvd__member_set_highest(&news) >
                                         hvd__member_set_highest(&s->base_list))
        hvd__member_set_add(&s->due, s->leader); /* it looks after spares */
    hvd__survivors_choose_leader(s);
}

void hvd__survivors_lose(struct hvd__survivors *s, int member, int reason)
{
    struct hvd__member_set one = {{0}};

    hvd__member_set_add(&one, member);
    hvd__survivors_lose_all(s, &one, reason - 1);
}

void hvd__survivors_suspect(struct hvd__survivors *s, int member)
{
    if (member == s->self || hvd__survivors_has_ended(s) ||
        !hvd__survivors_is_live(s, member))
        return;
    hvd__member_set_add(&s->suspected, member);
    /* Its host may be cut off: then the others of that host are silent, too,
     * and are waited for less long. */
    for (int i = 0; i < s->n; i++)
        if (s->host[i] == s->host[member])
            s->patience_ns[i] = s->times.silence_ns / HURRY;
    hvd__survivors_unsettle(s);
    hvd__survivors_choose_leader(s);
}

void hvd__survivors_init(struct hvd__survivors *s, int n, int self,
                         const struct hvd__survivors_times *times)
{
    memset(s, 0, sizeof *s);
    s->n = s->size = n;
    s->self = self;
    s->times = *times;
    for (int i = 0; i < n; i++) {
        hvd__member_set_add(&s->base_list, i);
        s->patience_ns[i] = times->silence_ns;
        s->host[i] = (int16_t)i;
    }
}

void hvd__survivors_reserve(struct hvd__survivors *s, int size)
{
    s->size = size;
    for (int i = size; i < s->n; i++)
        hvd__member_set_drop(&s->base_list, i);
    if (s->self >= size)
        s->stage = HVD__STAGE_STANDBY;
}

void hvd__survivors_join(struct hvd__survivors *s, int nelders)
{
    for (int i = 0; i < nelders && nelders < s->n; i++)
        hvd__member_set_add(&s->elders, i);
}

void hvd__survivors_dismiss(struct hvd__survivors *s)
{
    s->is_dismissed = true;
    if (s->leader != s->self)
        hvd__member_set_add(&s->due, s->leader);
}

void hvd__survivors_withdraw(struct hvd__survivors *s)
{
    /* An elder may be in a world of those that it comes from. */
    if (!hvd__survivors_is_complete(s) &&
        !hvd__member_set_has(&s->elders, s->self))
        hvd__member_set_add(&s->withdrawn, s->self);
    hvd__survivors_lose(s, s->self, ABSENT + 1);
}

void hvd__survivors_leave(struct hvd__survivors *s)
{
    hvd__member_set_add(&s->left, s->self);
    s->agreed = (struct hvd__member_set){{0}};
    hvd__survivors_end(s, HVD__STAGE_OVER);
}

bool hvd__survivors_has_told(const struct hvd__survivors *s)
{
    for (int i = 0; i < s->n; i++)
        if (hvd__survivors_is_spare(s, i) && hvd__survivors_is_live(s, i) &&
            !hvd__member_set_has(&s->agreed, i))
            return false;
    return true;
}

void hvd__survivors_enter(struct hvd__survivors *s)
{
    if (s->stage == HVD__STAGE_DECIDED)
        s->failed = s->round;
    else if (s->stage != HVD__STAGE_WORKING)
        return;
    s->stage = hvd__survivors_idle_stage(s);
    s->is_broken = false;
    s->recalled_ns = 0;
    s->waited_ns = 0;
    hvd__survivors_unsettle(s);
    memset(s->silent_ns, 0, (size_t)s->n * sizeof *s->silent_ns);
    hvd__survivors_choose_leader(s);
    hvd__survivors_tell(s);
}

void hvd__survivors_be_ready(struct hvd__survivors *s)
{
    if (!hvd__survivors_is_agreeing(s) ||
        hvd__member_set_has(&s->ready, s->self))
        return;
    hvd__member_set_add(&s->ready, s->self);
    hvd__survivors_tell(s);
}

void hvd__survivors_start(struct hvd__survivors *s)
{
    if (s->stage != HVD__STAGE_DECIDED)
        return;
    s->stage = HVD__STAGE_WORKING;
    s->elders = (struct hvd__member_set){{0}};
    if (!hvd__member_set_is_part(&s->list, &s->base_list)) {
        s->elders = s->list;
        hvd__member_set_intersect(&s->elders, &s->base_list);
    }
    s->base = s->round;
    s->base_list = s->list;
    if (s->founded == 0 && s->size < s->n)
        s->founded = s->base;
    s->ready = (struct hvd__member_set){{0}};
    hvd__member_set_subtract(&s->suspected, &s->list);
    hvd__survivors_forget_missed(s);
    s->recalled_ns = 0;
    for (int i = 0; i < s->n; i++)
        s->patience_ns[i] = s->times.silence_ns;
}

void hvd__survivors_complete(struct hvd__survivors *s)
{
    if (s->stage == HVD__STAGE_WORKING)
        s->elders = (struct hvd__member_set){{0}};
}

int hvd__survivors_settle(struct hvd__survivors *s, uint32_t round)
{
    if (s->base == round) {
        if (hvd__survivors_is_agreeing(s))
            s->stage = HVD__STAGE_WORKING;
        return 1;
    }
    return hvd__survivors_is_agreeing(s) ? 0 : -1;
}
