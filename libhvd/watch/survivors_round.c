/* SPDX-License-Identifier: Apache-2.0 */
/* survivors_round.c - a round: its leader proposes a list, and the others
 * confirm it (survivors.c). */
#include "watch/survivors_state.h"

#include <string.h>

/* A leader that sees too few waits for this part of the time for answers. */
enum { ASK = 4 };

/* Everyone in the list has confirmed it, this member, too: the others are lost
 * for ever. */
static void bind(struct hvd__survivors *s, enum hvd__survivors_stage stage)
{
    struct hvd__member_set others = s->base_list;

    for (int i = hvd__member_set_highest(&others) + 1;
         i < hvd__member_set_highest(&s->list); i++)
        hvd__member_set_add(&others, i); /* spares that were passed over */
    hvd__member_set_subtract(&others, &s->list);
    if (hvd__survivors_is_apart(s)) /* a spare listens to its leader only */
        hvd__member_set_subtract(&s->suspected, &s->list);
    if (stage == HVD__STAGE_DECIDED)
        memset(s->silent_ns, 0, (size_t)s->n * sizeof *s->silent_ns);
    s->stage = stage;
    hvd__survivors_lose_all(s, &others, CUT_OFF);
    hvd__survivors_choose_leader(s);
    hvd__survivors_tell(s);
}

static void propose(struct hvd__survivors *s,
                    const struct hvd__member_set *list)
{
    s->round = ++s->seen;
    s->list = *list;
    s->waited_ns = 0;
    s->is_outbid = false;
    s->agreed = (struct hvd__member_set){{0}};
    hvd__member_set_add(&s->agreed, s->self);
    s->stage = HVD__STAGE_PROPOSED;
    hvd__survivors_tell(s);
}

/* Returns whether this member may see enough though its leader, which has given
 * up, does not. A member of another host may reach hosts that the leader does
 * not; if it does not either, it finds that out as the next leader, or from
 * that one. So the sides of a cut end host by host. */
static bool may_see_more(const struct hvd__survivors *s, int leader)
{
    struct hvd__member_set live = hvd__survivors_all_live(s);

    for (int i = 0; i < s->n; i++)
        if (s->host[i] == s->host[leader])
            hvd__member_set_drop(&live, i);
    return s->host[s->self] != s->host[leader] &&
           hvd__survivors_suffice(s, &live);
}

static void give_up(struct hvd__survivors *s, int few, int of)
{
    s->few = few;
    s->of = of;
    hvd__survivors_end(s, HVD__STAGE_TOO_FEW);
}

/* Returns how long a leader waits that sees too few, or would leave out some
 * who are left because others miss them, while those who miss somebody ask: for
 * what spares know, and for answers of those who are only suspected. Others may
 * have said that these are silent, a moment ago, when a cable was unplugged for
 * a moment. */
static int64_t patience_of(const struct hvd__survivors *s,
                           const struct hvd__member_set *joined)
{
    struct hvd__member_set silent = hvd__survivors_all_counted(s);
    int64_t patience = s->times.settle_ns;

    hvd__member_set_intersect(&silent, &s->suspected);
    if (hvd__member_set_lowest(&silent) >= 0 ||
        !hvd__member_set_equal(joined, &s->joined_of))
        patience += s->times.silence_ns / ASK;
    for (int i = s->size; i < s->n; i++)
        if (hvd__survivors_is_spare(s, i) && hvd__survivors_is_live(s, i))
            return patience + MISSED_PINGS * s->times.ping_ns;
    return patience;
}

static void lead(struct hvd__survivors *s)
{
    struct hvd__member_set live = hvd__survivors_all_live(s),
                           joined = hvd__survivors_all_joined(s),
                           wanted = hvd__survivors_all_wanted(s),
                           counted = hvd__survivors_all_counted(s);
    const bool is_enough = hvd__survivors_suffice(s, &joined),
               is_whole = hvd__member_set_equal(&joined, &live);

    if (s->stage == HVD__STAGE_CONFIRMED)
        s->stage = HVD__STAGE_AGREEING;
    if (s->stage == HVD__STAGE_PROPOSED &&
        hvd__member_set_equal(&s->list, &wanted) &&
        hvd__member_set_is_part(&s->list, &s->agreed) && is_enough) {
        bind(s, HVD__STAGE_DECIDED);
        return;
    }
    if (s->settled_ns < s->times.settle_ns ||
        (!(is_enough && is_whole) && s->settled_ns < patience_of(s, &joined)))
        return;
    if (!is_enough)
        give_up(s, hvd__member_set_count(&joined),
                hvd__member_set_count(&counted));
    else if (hvd__member_set_is_part(&joined, &s->ready) &&
             (s->stage != HVD__STAGE_PROPOSED || s->is_outbid ||
              !hvd__member_set_equal(&s->list, &wanted)))
        propose(s, &wanted);
}

void hvd__survivors_step(struct hvd__survivors *s)
{
    if (s->stage == HVD__STAGE_DECIDED) {
        for (int i = 0; i < s->n; i++)
            s->is_broken |= hvd__member_set_has(&s->list, i) &&
                            !hvd__survivors_is_live(s, i);
        return;
    }
    if (hvd__survivors_is_apart(s)) {
        if (s->stage == HVD__STAGE_CONFIRMED &&
            hvd__member_set_lowest(&s->list) != s->leader)
            s->stage = HVD__STAGE_STANDBY;
        return;
    }
    if (!hvd__survivors_is_agreeing(s) ||
        !hvd__member_set_has(&s->ready, s->self))
        return;
    if (s->leader == s->self)
        lead(s);
    else if (s->stage == HVD__STAGE_PROPOSED ||
             (s->stage == HVD__STAGE_CONFIRMED &&
              hvd__member_set_lowest(&s->list) != s->leader))
        s->stage = HVD__STAGE_AGREEING;
    /* A sole leader has nobody to wait for. */
    if (s->stage == HVD__STAGE_PROPOSED && hvd__member_set_count(&s->list) == 1)
        lead(s);
}

static bool may_confirm(const struct hvd__survivors *s,
                        const struct hvd__letter *letter)
{
    struct hvd__member_set lost = hvd__survivors_all_lost(s),
                           common = letter->list;

    if (!hvd__survivors_is_apart(s))
        hvd__member_set_unite(&lost, &s->suspected);
    hvd__member_set_intersect(&common, &lost);
    return letter->from == s->leader &&
           hvd__member_set_lowest(&letter->list) == letter->from &&
           hvd__member_set_has(&letter->list, s->self) &&
           letter->round > s->round && hvd__member_set_lowest(&common) < 0 &&
           (hvd__survivors_is_apart(s) ||
            hvd__member_set_has(&s->ready, s->self)) &&
           hvd__survivors_suffice(s, &letter->list);
}

void hvd__survivors_hear_of_round(struct hvd__survivors *s,
                                  const struct hvd__letter *letter)
{
    /* Two members that both lead, for a moment, may use one number. */
    bool is_same = letter->round == s->round && letter->round != 0 &&
                   hvd__member_set_equal(&letter->list, &s->list),
         is_in = hvd__member_set_has(&letter->list, s->self);

    switch (letter->stage) {
    case HVD__STAGE_PROPOSED:
        if ((hvd__survivors_is_agreeing(s) || s->stage == HVD__STAGE_STANDBY) &&
            may_confirm(s, letter)) {
            s->round = letter->round;
            s->list = letter->list;
            bind(s, HVD__STAGE_CONFIRMED);
        } else if (s->stage == hvd__survivors_idle_stage(s) && is_same &&
                   letter->from == s->leader) {
            /* The list is still confirmed: this member had suspected its leader
             * for a moment only. */
            bind(s, HVD__STAGE_CONFIRMED);
        }
        /* Is the one that this spare follows still there? */
        if (s->stage == HVD__STAGE_STANDBY && letter->from != s->leader)
            hvd__member_set_add(&s->due, s->leader);
        hvd__member_set_add(&s->answers, letter->from);
        break;
    case HVD__STAGE_CONFIRMED:
        if (s->stage == HVD__STAGE_PROPOSED && is_same)
            hvd__member_set_add(&s->agreed, letter->from);
        else if (s->stage == HVD__STAGE_DECIDED && is_same)
            hvd__member_set_add(&s->answers, letter->from);
        break;
    case HVD__STAGE_DECIDED:
        /* One that suspected its leader for a moment has confirmed it, too. */
        if ((s->stage == HVD__STAGE_CONFIRMED ||
             s->stage == hvd__survivors_idle_stage(s)) &&
            is_same && s->failed < s->round)
            bind(s, HVD__STAGE_DECIDED);
        else if (hvd__survivors_is_agreeing(s) && hvd__survivors_is_apart(s) &&
                 !is_in)
            s->stage = HVD__STAGE_STANDBY;
        else if (hvd__survivors_is_agreeing(s) && !is_in)
            hvd__survivors_lose(s, s->self, CUT_OFF + 1);
        break;
    case HVD__STAGE_TOO_FEW:
        if (hvd__survivors_is_agreeing(s) && letter->from == s->leader &&
            !hvd__survivors_is_apart(s) && !may_see_more(s, letter->from))
            give_up(s, letter->few, letter->of);
        else
            hvd__survivors_lose(s, letter->from, ABSENT + 1);
        break;
    case HVD__STAGE_FORSAKEN:
    case HVD__STAGE_OUT:
        hvd__survivors_lose(s, letter->from, ABSENT + 1);
        break;
    case HVD__STAGE_OVER:
        if (!hvd__survivors_is_apart(s))
            break;
        hvd__member_set_unite(&s->left, &letter->left);
        hvd__survivors_choose_leader(s);
        break;
    default: break;
    }
}
