/* SPDX-License-Identifier: Apache-2.0 */
/* survivors_time.c - what comes of it that time passes: who is silent, who is
 * late, and what is said again. */
#include "watch/survivors_state.h"

/* A standing world that another member has left for so long has ended. */
#define RECALL_NS INT64_C(1000000000)
/* A spare that is called has this part of the time to answer. */
enum { CALL = 4 };

static void count_silence_of(struct hvd__survivors *s, int member,
                             int64_t passed_ns, int64_t patience_ns)
{
    s->silent_ns[member] += passed_ns;
    if (patience_ns > 0 && s->silent_ns[member] >= patience_ns)
        hvd__survivors_suspect(s, member);
}

/* Returns whether a world starts, and this member listens for its host. */
static bool speaks_at_start(const struct hvd__survivors *s)
{
    return s->stage == HVD__STAGE_DECIDED && hvd__survivors_speaks(s, s->self);
}

void hvd__survivors_suspect_silent(struct hvd__survivors *s)
{
    if (!speaks_at_start(s))
        return;
    for (int i = 0; i < s->n; i++)
        if (s->silent_ns[i] >= s->patience_ns[i] / HURRY)
            hvd__survivors_suspect(s, i);
}

/* A leader listens to all, and to the spares that it has called, the others to
 * their leader; and while a world starts, one of each host to one of each other
 * host. When that one misses a host, it suspects the silent ones, too. */
static void count_silence(struct hvd__survivors *s, int64_t passed_ns)
{
    const bool has_list = s->stage == HVD__STAGE_PROPOSED ||
                          s->stage == HVD__STAGE_DECIDED,
               speaks = speaks_at_start(s);
    bool has_missed = false;

    for (int i = 0; i < s->n; i++) {
        const bool is_old = hvd__member_set_has(&s->base_list, i),
                   is_called = has_list && hvd__member_set_has(&s->list, i);

        if (i == s->self || (s->leader != s->self && i != s->leader &&
                             !(speaks && hvd__survivors_speaks(s, i))))
            continue;
        if (!hvd__survivors_is_live(s, i) || (!is_old && !is_called) ||
            (s->stage == HVD__STAGE_DECIDED && !is_called))
            continue;
        count_silence_of(s, i, passed_ns,
                         s->patience_ns[i] / (is_old ? 1 : CALL));
        has_missed |= !hvd__survivors_is_live(s, i);
    }
    if (has_missed)
        hvd__survivors_suspect_silent(s);
}

/* The leader of a standing world looks after the spares, which write to it. */
static void look_after_spares(struct hvd__survivors *s, int64_t passed_ns)
{
    if (s->leader != s->self || s->size == s->n)
        return;
    s->sent_ns += passed_ns;
    for (int i = s->size; i < s->n; i++) {
        if (!hvd__survivors_is_spare(s, i) || !hvd__survivors_is_live(s, i))
            continue;
        count_silence_of(s, i, passed_ns, s->patience_ns[i]);
        if (s->silent_ns[i] > MISSED_PINGS * s->times.ping_ns &&
            s->sent_ns >= s->times.ping_ns)
            hvd__member_set_add(&s->due, i);
    }
    if (s->sent_ns >= s->times.ping_ns)
        s->sent_ns = 0;
}

/* A spare writes to the leader, and to all if that one seems to be gone. */
static void stand_by(struct hvd__survivors *s, int64_t passed_ns)
{
    struct hvd__member_set live = hvd__survivors_all_live(s);
    bool is_due;

    s->alone_ns += passed_ns;
    s->sent_ns += passed_ns;
    is_due = s->sent_ns >= s->times.ping_ns;
    for (int i = 0; i < s->n; i++) {
        if (!hvd__member_set_has(&live, i) ||
            (i != s->leader && s->alone_ns <= MISSED_PINGS * s->times.ping_ns))
            continue;
        if (is_due)
            hvd__member_set_add(&s->due, i);
        count_silence_of(s, i, passed_ns, s->patience_ns[i]);
    }
    if (is_due) { /* those that it suspects may answer */
        struct hvd__member_set asked = s->base_list,
                               lost = hvd__survivors_all_lost(s);

        hvd__member_set_intersect(&asked, &s->suspected);
        hvd__member_set_subtract(&asked, &lost);
        hvd__member_set_unite(&s->due, &asked);
    }
    if (is_due)
        s->sent_ns = 0;
}

/* Members that do not come in time are lost. A leader knows which, also of
 * spares that it has called; the others know it of their leader. */
static void look_at_limit(struct hvd__survivors *s)
{
    struct hvd__member_set late = hvd__survivors_all_live(s);

    if (s->times.limit_ns <= 0 || s->waited_ns < s->times.limit_ns ||
        !hvd__member_set_has(&s->ready, s->self))
        return;
    hvd__member_set_subtract(&late, &s->ready);
    if (s->stage == HVD__STAGE_PROPOSED) {
        struct hvd__member_set called = s->list;

        hvd__member_set_subtract(&called, &s->base_list);
        hvd__member_set_subtract(&called, &s->agreed);
        hvd__member_set_unite(&late, &called);
    }
    for (int i = 0; i < s->n && s->leader != s->self; i++)
        if (i != s->leader)
            hvd__member_set_drop(&late, i);
    if (hvd__member_set_lowest(&late) < 0)
        return;
    s->waited_ns = 0;
    hvd__survivors_lose_all(s, &late, ABSENT);
}

void hvd__survivors_pass(struct hvd__survivors *s, int64_t passed_ns)
{
    if (s->stage == HVD__STAGE_WORKING && s->recalled_ns > 0) {
        s->recalled_ns += passed_ns;
        s->is_broken |= s->recalled_ns > RECALL_NS;
    }
    if (s->stage == HVD__STAGE_WORKING)
        look_after_spares(s, passed_ns);
    if (s->stage == HVD__STAGE_STANDBY)
        stand_by(s, passed_ns);
    if (s->stage == HVD__STAGE_WORKING || s->stage == HVD__STAGE_STANDBY ||
        hvd__survivors_has_ended(s))
        return;
    s->settled_ns += passed_ns;
    s->waited_ns += passed_ns;
    s->sent_ns += passed_ns;
    count_silence(s, passed_ns);
    if (hvd__survivors_is_agreeing(s))
        look_at_limit(s);
    if (s->sent_ns >= s->times.resend_ns)
        hvd__survivors_tell(s);
    hvd__survivors_step(s);
}
