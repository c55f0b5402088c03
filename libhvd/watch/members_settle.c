/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members_settle.c - whether a world that takes in others has started.
 *
 * The ranks of the old world and those that join have a register, and letters,
 * of their own. Some ranks may have started the new world, and the start of
 * others may fail. On one host the first to say anything decides for all, by
 * one compare-and-swap.
 *
 * If the old world is on several hosts, the new one counts as the world of its
 * last round. A rank that has started it says so to the members of the old
 * world, for as long as some may not know it. A rank that has not looks for the
 * next world among them, as after any failed start (survivors.c). It finds
 * either that the new world has started, and then belongs to it, though the
 * world is broken for it; or a next one, which those who have started will
 * never enter. The elders of the new world see to it that these two do not go
 * on side by side: it takes enough of the old one's members until all have
 * started.
 *
 * A guest has started when it knows that all have. If it does not come to know
 * that, it is lost for the new world, and may join again.
 */
#include "watch/members_state.h"

#include <stddef.h>

/* A member that withdraws tells the others so many times, since letters may be
 * lost and nobody answers for it afterwards. */
enum { FAREWELLS = 3 };

bool hvd__members_share_host(const struct hvd__members *m)
{
    return !m->net;
}

/* ------------------------------------------------------------- on one host */

bool hvd__members_settle(struct hvd__members *m, bool has_started)
{
    uint64_t was = atomic_load(&m->page->settled);

    if (hvd__members_settled(m) == 0)
        atomic_compare_exchange_strong(&m->page->settled, &was,
                                       (uint64_t)m->round << 2 |
                                           (has_started ? 1 : 2));
    return hvd__members_settled(m) == 1;
}

int hvd__members_settled(const struct hvd__members *m)
{
    const uint64_t settled = atomic_load(&m->page->settled);

    if (settled >> 2 != m->round || settled == 0)
        return 0;
    return (settled & 3) == 1 ? 1 : -1;
}

/* ------------------------------------------------------- on several hosts */

static int judge(struct hvd__members *m)
{
    int found;

    hvd__mutex_lock(&m->lock);
    found = hvd__survivors_settle(hvd__members_net_state(m->net), m->round);
    hvd__mutex_unlock(&m->lock);
    return found;
}

/* Looks for the next world, or finds that the last one has started. */
static bool find_out(struct hvd__members *m, struct hvd__members *made)
{
    struct hvd__survivors *s = hvd__members_net_state(m->net);
    int found = 0;

    hvd__mutex_lock(&m->lock);
    hvd__survivors_enter(s);
    hvd__survivors_be_ready(s);
    m->made = made; /* whoever is given up there is given up here */
    hvd__mutex_unlock(&m->lock);
    for (int naps = 0; found == 0; naps++) {
        m->looked_ns = made->looked_ns = 0;
        hvd__members_look_at_all(m);
        hvd__members_look_at_all(made);
        found = judge(m);
        if (found == 0)
            hvd__members_rest(m, naps);
    }
    hvd__mutex_lock(&m->lock);
    m->made = NULL;
    hvd__mutex_unlock(&m->lock);
    return found > 0;
}

bool hvd__members_settle_in_letters(struct hvd__members *m,
                                    struct hvd__members *made, bool has_started)
{
    if (!has_started)
        return find_out(m, made);
    hvd__members_start(m);
    return true;
}

void hvd__members_withdraw(struct hvd__members *m, const char *text)
{
    struct hvd__survivors *s = hvd__members_net_state(m->net);

    hvd__members_write_fate(m, m->self, HVD_LOST_ABSENT, text);
    hvd__mutex_lock(&m->lock);
    hvd__survivors_withdraw(s);
    /* Nobody answers for this member when it has closed its socket. */
    for (int i = 0; i < FAREWELLS; i++) {
        hvd__survivors_repeat(s);
        hvd__members_drive(m);
    }
    hvd__mutex_unlock(&m->lock);
}

void hvd__members_follow(struct hvd__members *m, struct hvd__members *before)
{
    if (!before->net) { /* they have found it in their register */
        hvd__members_close(before);
        return;
    }
    hvd__mutex_lock(&m->lock);
    m->before = before;
    hvd__mutex_unlock(&m->lock);
}

void hvd__members_drive_before(struct hvd__members *m)
{
    struct hvd__members *before;

    if (!m->net)
        return;
    hvd__mutex_lock(&m->lock);
    before = m->before;
    hvd__mutex_unlock(&m->lock);
    if (!before)
        return;
    atomic_fetch_add(&hvd__members_own_line(before)->beats, 1);
    hvd__mutex_lock(&before->lock);
    hvd__members_drive(before);
    hvd__mutex_unlock(&before->lock);
    hvd__members_drive_before(before);
}
