/* SPDX-License-Identifier: Apache-2.0 */
/* survivors_left.c - who is left, as far as a member knows, and whether they
 * are enough to go on. */
#include "watch/survivors_state.h"

int hvd__survivors_fate(const struct hvd__survivors *s, int member)
{
    for (int reason = 0; reason < HVD__NREASONS; reason++)
        if (hvd__member_set_has(&s->lost[reason], member))
            return reason + 1;
    return 0;
}

struct hvd__member_set hvd__survivors_all_lost(const struct hvd__survivors *s)
{
    struct hvd__member_set all = s->lost[0];

    for (int reason = 1; reason < HVD__NREASONS; reason++)
        hvd__member_set_unite(&all, &s->lost[reason]);
    return all;
}

struct hvd__member_set hvd__survivors_all_live(const struct hvd__survivors *s)
{
    struct hvd__member_set live = s->base_list,
                           lost = hvd__survivors_all_lost(s);

    hvd__member_set_subtract(&live, &lost);
    hvd__member_set_subtract(&live, &s->suspected);
    hvd__member_set_subtract(&live, &s->left);
    return live;
}

bool hvd__survivors_is_spare(const struct hvd__survivors *s, int member)
{
    return s->size < s->n && member > hvd__member_set_highest(&s->base_list);
}

bool hvd__survivors_is_apart(const struct hvd__survivors *s)
{
    return !hvd__member_set_has(&s->base_list, s->self);
}

bool hvd__survivors_is_live(const struct hvd__survivors *s, int member)
{
    return (hvd__member_set_has(&s->base_list, member) ||
            hvd__survivors_is_spare(s, member)) &&
           !hvd__member_set_has(&s->suspected, member) &&
           hvd__survivors_fate(s, member) == 0;
}

struct hvd__member_set hvd__survivors_all_wanted(struct hvd__survivors *s)
{
    struct hvd__member_set wanted = hvd__survivors_all_joined(s);
    int n = hvd__member_set_count(&wanted);

    for (int i = hvd__member_set_highest(&s->base_list) + 1;
         i < s->n && n < s->size && !s->is_dismissed; i++)
        if (hvd__survivors_is_live(s, i) &&
            hvd__survivors_may_join(s, i, &wanted)) {
            hvd__member_set_add(&wanted, i);
            n++;
        }
    return wanted;
}

bool hvd__survivors_is_doubted(const struct hvd__survivors *s, int member)
{
    return !hvd__survivors_is_live(s, member) ||
           (s->leader != s->self &&
            hvd__member_set_has(&s->missed[s->leader], member));
}

struct hvd__member_set hvd__survivors_all_counted(
    const struct hvd__survivors *s)
{
    struct hvd__member_set counted = s->base_list;

    hvd__member_set_subtract(&counted, &s->lost[ENDED]);
    hvd__member_set_subtract(&counted, &s->withdrawn);
    return counted;
}

/* Returns whether a list has enough of some members. */
static bool has_enough(const struct hvd__survivors *s,
                       const struct hvd__member_set *list,
                       const struct hvd__member_set *members)
{
    struct hvd__member_set counted = *members, ours = *list;
    int n, all;

    hvd__member_set_subtract(&counted, &s->lost[ENDED]);
    hvd__member_set_subtract(&counted, &s->withdrawn);
    hvd__member_set_intersect(&ours, members);
    all = hvd__member_set_count(&counted);
    n = 2 * hvd__member_set_count(&ours);
    return n > all ||
           (n == all && all > 0 &&
            hvd__member_set_has(list, hvd__member_set_lowest(&counted)));
}

bool hvd__survivors_is_complete(const struct hvd__survivors *s)
{
    return hvd__member_set_lowest(&s->elders) < 0;
}

bool hvd__survivors_suffice(const struct hvd__survivors *s,
                            const struct hvd__member_set *list)
{
    return has_enough(s, list, &s->base_list) &&
           (hvd__survivors_is_complete(s) || has_enough(s, list, &s->elders));
}

bool hvd__survivors_is_agreeing(const struct hvd__survivors *s)
{
    return s->stage == HVD__STAGE_AGREEING || s->stage == HVD__STAGE_PROPOSED ||
           s->stage == HVD__STAGE_CONFIRMED;
}

bool hvd__survivors_has_ended(const struct hvd__survivors *s)
{
    return s->stage == HVD__STAGE_OUT || s->stage == HVD__STAGE_TOO_FEW ||
           s->stage == HVD__STAGE_OVER || s->stage == HVD__STAGE_FORSAKEN;
}
