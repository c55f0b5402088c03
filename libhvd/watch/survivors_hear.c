/* SPDX-License-Identifier: Apache-2.0 */
/* survivors_hear.c - what a member learns from a letter. */
#include "watch/survivors_state.h"

/* Takes over a base in which this member is, or which this spare waits for. */
static void take_over(struct hvd__survivors *s,
                      const struct hvd__letter *letter)
{
    s->base = letter->base;
    s->base_list = letter->base_list;
    s->elders = letter->elders;
    s->founded = letter->founded;
    s->stage = hvd__survivors_idle_stage(s);
    s->waited_ns = 0;
    hvd__survivors_forget_missed(s);
    for (int i = 0; i < s->n; i++)
        if (i != s->self)
            hvd__member_set_drop(&s->ready, i);
    hvd__survivors_unsettle(s);
    hvd__survivors_choose_leader(s);
    hvd__survivors_tell(s);
}

/* A suspected member is there after all. */
static void notice(struct hvd__survivors *s, int member)
{
    s->silent_ns[member] = 0;
    if (!hvd__member_set_has(&s->suspected, member))
        return;
    hvd__member_set_drop(&s->suspected, member);
    s->patience_ns[member] = s->times.silence_ns;
    hvd__survivors_unsettle(s);
    if (hvd__survivors_is_agreeing(s))
        hvd__member_set_add(&s->due, s->leader);
    hvd__survivors_choose_leader(s);
}

/* Returns whether one of the list has used the round, or a higher one, for
 * another list. */
static bool is_outbidding(const struct hvd__survivors *s,
                          const struct hvd__letter *letter)
{
    return s->stage == HVD__STAGE_PROPOSED && !s->is_outbid &&
           hvd__member_set_has(&s->list, letter->from) &&
           (letter->round > s->round ||
            (letter->round == s->round &&
             !hvd__member_set_equal(&letter->list, &s->list)));
}

static void hear_of_withdrawal(struct hvd__survivors *s,
                               const struct hvd__letter *letter)
{
    if (letter->base != s->base ||
        hvd__member_set_is_part(&letter->withdrawn, &s->withdrawn))
        return;
    hvd__member_set_unite(&s->withdrawn, &letter->withdrawn);
    hvd__survivors_unsettle(s);
}

/* Takes what a letter of the same base says. */
static void hear_of_base(struct hvd__survivors *s,
                         const struct hvd__letter *letter)
{
    struct hvd__member_set ready = letter->ready;

    for (int reason = 0; reason < HVD__NREASONS; reason++)
        hvd__survivors_lose_all(s, &letter->lost[reason], reason);
    hvd__survivors_hear_of_missed(s, letter);
    if (hvd__member_set_lowest(&letter->elders) < 0)
        s->elders = letter->elders; /* all have started */
    hvd__member_set_intersect(&ready, &s->base_list);
    if (letter->stage != HVD__STAGE_WORKING &&
        !hvd__member_set_is_part(&ready, &s->ready) &&
        hvd__survivors_is_agreeing(s)) {
        hvd__member_set_unite(&s->ready, &ready);
        if (s->leader == s->self)
            hvd__survivors_tell(s);
    }
    if (is_outbidding(s, letter)) {
        s->is_outbid = true;
        hvd__survivors_unsettle(s);
    }
    if (s->stage == HVD__STAGE_DECIDED && letter->failed >= s->round &&
        hvd__member_set_has(&s->list, letter->from)) {
        s->is_broken = true;
        hvd__survivors_suspect_silent(s);
    }
    if (!hvd__survivors_has_ended(s) &&
        hvd__survivors_fate(s, letter->from) == 0)
        hvd__survivors_hear_of_round(s, letter);
}

void hvd__survivors_hear(struct hvd__survivors *s,
                         const struct hvd__letter *letter)
{
    int from = letter->from;
    bool is_in;

    if (from < 0 || from >= s->n || from == s->self)
        return;
    is_in = hvd__member_set_has(&letter->base_list, s->self);
    if (!letter->is_answer)
        hvd__member_set_add(&s->answers, from);
    if (s->stage == HVD__STAGE_OVER &&
        hvd__member_set_has(&letter->left, s->self))
        hvd__member_set_add(&s->agreed, from);
    if (letter->base > s->base && !is_in && !hvd__survivors_is_apart(s) &&
        !hvd__survivors_has_ended(s)) {
        hvd__survivors_lose(s, s->self, CUT_OFF + 1);
        return;
    }
    if (hvd__survivors_has_ended(s))
        return;
    hear_of_withdrawal(s, letter);
    if (hvd__survivors_fate(s, from) != 0)
        return;
    notice(s, from);
    s->is_dismissed |= letter->is_dismissed;
    if (hvd__member_set_has(&s->base_list, from))
        s->alone_ns = 0;
    if (letter->seen > s->seen)
        s->seen = letter->seen;
    if (letter->base > s->base &&
        (hvd__survivors_is_agreeing(s) || s->stage == HVD__STAGE_STANDBY))
        take_over(s, letter);
    else if (letter->base > s->base && hvd__survivors_is_apart(s))
        s->is_broken = true; /* they have gone on without this start */
    if (letter->base == s->base)
        hear_of_base(s, letter);
    /* The sender has started the world that this member starts, and has left
     * it, because it knows of a loss that this one may never hear of. */
    if (s->stage == HVD__STAGE_DECIDED && letter->base == s->round &&
        letter->stage != HVD__STAGE_WORKING)
        s->is_broken = true;
    /* The sender has left the world that this member is still in. */
    if (s->stage == HVD__STAGE_WORKING && letter->base == s->base &&
        letter->stage != HVD__STAGE_WORKING &&
        hvd__member_set_has(&s->base_list, from) && s->recalled_ns == 0)
        s->recalled_ns = 1;
    hvd__survivors_step(s);
}
