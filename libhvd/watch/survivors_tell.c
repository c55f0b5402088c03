/* SPDX-License-Identifier: Apache-2.0 */
/* survivors_tell.c - whom a member follows, to whom it writes, and what. */
#include "watch/survivors_state.h"

#include <string.h>

/* Returns whether a member, which does not lead, may write to another one: to
 * its leader; to those that it suspects, who might hear it, and answer; and
 * while a world starts, from host to host. */
static bool may_write(const struct hvd__survivors *s, int to, bool speaks)
{
    return to == s->leader || hvd__member_set_has(&s->suspected, to) ||
           (s->stage == HVD__STAGE_DECIDED && speaks &&
            hvd__survivors_speaks(s, to));
}

/* A leader writes to all who may go on; who has ended, to spares, too. So does
 * a leader that sees too few: they may know of others that have ended. */
static struct hvd__member_set all_partners(struct hvd__survivors *s)
{
    struct hvd__member_set partners = s->base_list,
                           lost = hvd__survivors_all_lost(s),
                           joined = hvd__survivors_all_joined(s);
    const bool asks = hvd__survivors_has_ended(s) ||
                      (hvd__survivors_is_agreeing(s) && s->leader == s->self &&
                       !hvd__survivors_suffice(s, &joined)),
               speaks = hvd__survivors_speaks(s, s->self);

    if (s->stage == HVD__STAGE_WORKING)
        return (struct hvd__member_set){{0}};
    if (s->stage == HVD__STAGE_DECIDED)
        partners = s->list;
    if (s->stage == HVD__STAGE_PROPOSED)
        hvd__member_set_unite(&partners, &s->list);
    for (int i = s->size; i < s->n && asks; i++)
        hvd__member_set_add(&partners, i);
    if (hvd__survivors_has_ended(s))
        hvd__member_set_subtract(&partners, &s->lost[ENDED]);
    else
        hvd__member_set_subtract(&partners, &lost);
    for (int i = 0; i < s->n; i++)
        if (s->leader != s->self && !hvd__survivors_has_ended(s) &&
            !may_write(s, i, speaks))
            hvd__member_set_drop(&partners, i);
    hvd__member_set_drop(&partners, s->self);
    return partners;
}

void hvd__survivors_tell(struct hvd__survivors *s)
{
    struct hvd__member_set partners = all_partners(s);

    hvd__member_set_unite(&s->due, &partners);
    s->sent_ns = 0;
}

void hvd__survivors_repeat(struct hvd__survivors *s)
{
    hvd__survivors_tell(s);
}

void hvd__survivors_unsettle(struct hvd__survivors *s)
{
    s->settled_ns = 0;
}

void hvd__survivors_end(struct hvd__survivors *s,
                        enum hvd__survivors_stage stage)
{
    if (hvd__survivors_has_ended(s))
        return;
    s->stage = stage;
    hvd__survivors_tell(s);
}

/* A spare hears nobody who could call it any more. A job that has dismissed its
 * spares has not needed them, however it ended. */
static void end_waiting(struct hvd__survivors *s)
{
    hvd__survivors_end(s,
                       hvd__member_set_lowest(&s->left) >= 0 || s->is_dismissed
                           ? HVD__STAGE_OVER
                           : HVD__STAGE_FORSAKEN);
}

void hvd__survivors_choose_leader(struct hvd__survivors *s)
{
    struct hvd__member_set live = hvd__survivors_all_live(s);
    int before = s->leader;

    /* While a world starts, those in it are all that count. */
    if (s->stage == HVD__STAGE_DECIDED)
        hvd__member_set_intersect(&live, &s->list);
    s->leader = hvd__member_set_lowest(&live);
    if (s->leader < 0) {
        s->leader = s->self;
        if (hvd__survivors_is_apart(s))
            end_waiting(s);
    }
    if (s->leader == before)
        return;
    memset(s->silent_ns, 0, (size_t)s->n * sizeof *s->silent_ns);
    hvd__survivors_unsettle(s);
    hvd__survivors_tell(s);
}

int hvd__survivors_next(struct hvd__survivors *s, struct hvd__letter *letter)
{
    int to = hvd__member_set_lowest(&s->due);

    *letter = (struct hvd__letter){
        .from = s->self,
        .is_answer = to < 0,
        .is_dismissed = s->is_dismissed,
        .stage = (uint8_t)s->stage,
        .base = s->base,
        .round = s->round,
        .failed = s->failed,
        .seen = s->seen,
        .founded = s->founded,
        .few = s->few,
        .of = s->of,
        .base_list = s->base_list,
        .elders = s->elders,
        .list = s->list,
        .ready = s->ready,
        .suspected = s->suspected,
        .left = s->left,
        .withdrawn = s->withdrawn,
    };
    memcpy(letter->lost, s->lost, sizeof letter->lost);
    if (to < 0)
        to = hvd__member_set_lowest(&s->answers);
    if (to < 0)
        return -1;
    hvd__member_set_drop(&s->due, to);
    hvd__member_set_drop(&s->answers, to);
    return to;
}
