/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.c - which processes of a job are lost: the register of a host's
 * processes, and what other hosts say.
 *
 * A member is alive as long as the kernel does not report the end of its
 * process (pidfd), and its beats go on. A process that was stopped, and that
 * the others have given up, finds that in its own line when it goes on.
 *
 * With several hosts each has a register, whose lines for its own members
 * count, and a round is one of survivors.c. What that knows for ever of members
 * of this host goes into the register, before a letter says so, and the other
 * way round. A process that has written there that another one is lost looks at
 * its own line before it says anything. So of two members of a host that shut
 * out each other, at least one finds out before others can count on it.
 */
#include "watch/members_state.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "watch/process.h"
#include "watch/watch.h"

/* A look at all members is due after LOOK_NS. */
#define LOOK_NS INT64_C(500000)

/* ------------------------------------------------------------- the register */

hvd_lost_reason hvd__members_fate(const struct hvd__members *m, int member)
{
    return hvd__members_is_ours(m, member)
               ? atomic_load(&m->page->lines[member].fate)
               : atomic_load(&m->others[member].fate);
}

void hvd__members_write_fate(struct hvd__members *m, int member,
                             hvd_lost_reason reason, const char *text)
{
    struct hvd__members_line *line = &m->page->lines[member];
    int32_t alive = 0;

    if (!atomic_compare_exchange_strong(&line->fate, &alive, reason))
        return;
    snprintf(line->text, sizeof line->text, "%s", text);
    atomic_store(&line->has_text, true);
}

/* --------------------------------------------------------- several hosts */

/* The words for each hvd_lost_reason begin with a verb. */
static const char *const reports[] = {
    "is silent",
    "has ended, as its host has found",
    "is frozen, as its host has found",
    "is silent, as its host may be, and was left out",
    "did not come to hvd_recover, or failed there",
    "was excluded by hvd_exclude"};

/* Makes the register and the protocol know the same, and this process first
 * what others of its host have written about it. The caller has the lock. */
static void compare_notes(struct hvd__members *m)
{
    struct hvd__survivors *s = hvd__members_net_state(m->net);
    hvd_lost_reason own;

    for (int i = 0; i < m->n; i++) {
        int fate = hvd__survivors_fate(s, i);

        if (fate != 0 && hvd__members_is_ours(m, i))
            hvd__members_write_fate(
                m, i, fate,
                i == m->self ? "was left out: they went on without it"
                             : reports[fate]);
        else if (fate != 0)
            atomic_store(&m->others[i].fate, fate);
    }
    own = atomic_load(&hvd__members_own_line(m)->fate);
    if (own == 0 && m->made)
        own = atomic_load(&hvd__members_own_line(m->made)->fate);
    if (own != 0)
        hvd__survivors_lose(s, m->self, own);
    for (int i = 0; i < m->n; i++)
        if (hvd__members_is_ours(m, i) &&
            atomic_load(&m->page->lines[i].fate) != 0)
            hvd__survivors_lose(s, i, atomic_load(&m->page->lines[i].fate));
}

/* The caller has the lock. */
void hvd__members_drive(struct hvd__members *m)
{
    hvd__members_net_receive(m->net);
    compare_notes(m);
    hvd__members_net_send(m->net);
}

bool hvd__members_tend(struct hvd__members *m, char *text, size_t size)
{
    const struct hvd__survivors *s;
    bool has_ended;

    atomic_fetch_add(&hvd__members_own_line(m)->beats, 1);
    hvd__members_look_at_spares(m);
    hvd__members_drive_before(m);
    if (!m->net || !hvd__mutex_try(&m->lock))
        return false;
    hvd__members_drive(m);
    s = hvd__members_net_state(m->net);
    has_ended = s->stage == HVD__STAGE_WORKING && s->is_broken;
    hvd__members_report_spares(m);
    hvd__mutex_unlock(&m->lock);
    if (has_ended)
        snprintf(text, size,
                 "a rank has left this world, to go on without "
                 "those that are lost");
    return has_ended;
}

int hvd__members_fd(const struct hvd__members *m)
{
    return m->net ? hvd__members_net_fd(m->net) : -1;
}

static void lose_other(struct hvd__members *m, int member,
                       hvd_lost_reason reason, const char *text)
{
    struct hvd__survivors *s = hvd__members_net_state(m->net);

    hvd__mutex_lock(&m->lock);
    if (hvd__survivors_fate(s, member) == 0)
        snprintf(m->others[member].text, HVD__FATE_TEXT, "%s", text);
    if (reason == HVD_LOST_CUT_OFF || reason == HVD_LOST_FROZEN)
        hvd__survivors_suspect(s, member);
    else
        hvd__survivors_lose(s, member, reason);
    hvd__members_drive(m);
    hvd__mutex_unlock(&m->lock);
}

void hvd__members_lose(struct hvd__members *m, int member,
                       hvd_lost_reason reason, const char *text)
{
    if (!hvd__members_is_ours(m, member)) {
        lose_other(m, member, reason, text);
        return;
    }
    hvd__members_write_fate(m, member, reason, text);
    if (!m->net)
        return;
    hvd__mutex_lock(&m->lock);
    hvd__members_drive(m);
    hvd__mutex_unlock(&m->lock);
}

bool hvd__members_is_doubted(struct hvd__members *m, int member)
{
    bool is;

    if (!m->net)
        return hvd__members_is_lost(m, member);
    hvd__mutex_lock(&m->lock);
    is = hvd__survivors_is_doubted(hvd__members_net_state(m->net), member);
    hvd__mutex_unlock(&m->lock);
    return is;
}

void hvd__members_start(struct hvd__members *m)
{
    uint32_t none = 0;

    if (m->size < m->n && !m->net)
        atomic_compare_exchange_strong(&m->page->founded, &none, m->round);
    memcpy(m->standing, m->list, (size_t)m->nlisted * sizeof *m->list);
    m->nstanding = m->nlisted;
    if (!m->net)
        return;
    hvd__mutex_lock(&m->lock);
    hvd__survivors_start(hvd__members_net_state(m->net));
    hvd__mutex_unlock(&m->lock);
}

bool hvd__members_is_complete(struct hvd__members *m)
{
    bool is;

    if (!m->net)
        return true;
    hvd__mutex_lock(&m->lock);
    is = hvd__survivors_is_complete(hvd__members_net_state(m->net));
    hvd__mutex_unlock(&m->lock);
    return is;
}

void hvd__members_complete(struct hvd__members *m)
{
    if (!m->net)
        return;
    hvd__mutex_lock(&m->lock);
    hvd__survivors_complete(hvd__members_net_state(m->net));
    hvd__mutex_unlock(&m->lock);
}

const int *hvd__members_list(const struct hvd__members *m, int *n)
{
    *n = m->nlisted;
    return m->list;
}

int hvd__members_round(const struct hvd__members *m)
{
    return (int)m->round;
}

int hvd__members_founded(const struct hvd__members *m)
{
    return (int)(m->net ? hvd__members_net_state(m->net)->founded
                        : atomic_load(&m->page->founded));
}

int hvd__members_old_size(const struct hvd__members *m)
{
    return m->old_size;
}

bool hvd__members_has_lost(const struct hvd__members *m)
{
    /* Who has left a broken world may know of a loss that nobody wrote down. */
    for (int i = 0; i < m->n; i++)
        if (hvd__members_is_lost(m, i) ||
            (i != m->self &&
             atomic_load(&m->page->lines[i].left) == HVD__LEFT_BROKEN))
            return true;
    return (int)m->round > hvd__members_founded(m);
}

/* ------------------------------------------------------- who is alive */

bool hvd__members_is_gone(const struct hvd__members *m, int member)
{
    const struct hvd__member *other = &m->others[member];
    struct pollfd poll_it = {.fd = other->pidfd, .events = POLLIN};

    if (other->pidfd >= 0)
        return poll(&poll_it, 1, 0) == 1;
    return hvd__process_start_time(other->pid, NULL) != other->start;
}

void hvd__members_look_at(struct hvd__members *m, int member, int64_t passed)
{
    struct hvd__member *other = &m->others[member];
    uint64_t beats = atomic_load(&m->page->lines[member].beats);
    char text[HVD__FATE_TEXT];

    if (hvd__members_is_gone(m, member)) {
        hvd__members_lose(m, member, HVD_LOST_ENDED,
                          hvd__process_fate(other->pid, text, sizeof text));
        return;
    }
    other->silent_ns = beats == other->beats ? other->silent_ns + passed : 0;
    other->beats = beats;
    if (m->options.heartbeat_ns == 0 ||
        other->silent_ns < m->options.heartbeat_ns)
        return;
    snprintf(text, sizeof text, "is frozen: no heartbeat for %.1f s",
             (double)other->silent_ns * 1e-9);
    hvd__members_lose(m, member, HVD_LOST_FROZEN, text);
}

int hvd__members_fail_lost(const struct hvd__members *m, int member)
{
    const struct hvd__members_line *line = &m->page->lines[member];
    const struct hvd__member *other = &m->others[member];
    const char *text = atomic_load(&line->has_text) ? line->text : "is lost";

    if (!hvd__members_is_ours(m, member))
        text = other->text[0] ? other->text
                              : reports[hvd__members_fate(m, member)];
    return hvd__fail(HVD_ERR_LOST, "%srank %d (process %d) %s",
                     member == m->self ? HVD__GIVEN_UP : "", member, other->pid,
                     text);
}

void hvd__members_look_at_all(struct hvd__members *m)
{
    int64_t now = hvd__now_ns(), passed;

    atomic_fetch_add(&hvd__members_own_line(m)->beats, 1);
    if (now - m->looked_ns < LOOK_NS)
        return;
    hvd__members_drive_before(m);
    m->looked_ns = now;
    passed = hvd__own_time_pass(&m->time, now, HVD__MEMBERS_GAP_NS);
    for (int i = 0; i < m->nlisted; i++)
        if (m->list[i] != m->self && hvd__members_is_ours(m, m->list[i]) &&
            !hvd__members_is_lost(m, m->list[i]))
            hvd__members_look_at(m, m->list[i], passed);
    if (!m->net)
        return;
    hvd__mutex_lock(&m->lock);
    hvd__members_drive(m);
    hvd__mutex_unlock(&m->lock);
}

/* Returns HVD_ERR_LOST if what was decided cannot start any more. */
static int judge_start(struct hvd__members *m)
{
    const struct hvd__survivors *s = hvd__members_net_state(m->net);
    int member = -1;
    bool is_broken;

    hvd__mutex_lock(&m->lock);
    is_broken = s->stage == HVD__STAGE_DECIDED && s->is_broken;
    for (int i = 0; i < m->nlisted && member < 0; i++)
        if (!hvd__survivors_is_live(s, m->list[i]))
            member = m->list[i];
    hvd__mutex_unlock(&m->lock);
    if (!is_broken)
        return HVD_OK;
    return member >= 0 ? hvd__members_fail_lost(m, member)
                       : hvd__fail(HVD_ERR_LOST, "another rank has not started "
                                                 "the world of the survivors");
}

int hvd__members_look(struct hvd__members *m)
{
    hvd__members_look_at_all(m);
    if (hvd__members_is_lost(m, m->self))
        return hvd__members_fail_lost(m, m->self);
    for (int i = 0; i < m->nlisted; i++)
        if (hvd__members_is_lost(m, m->list[i]))
            return hvd__members_fail_lost(m, m->list[i]);
        else if (!m->net &&
                 atomic_load(&m->page->lines[m->list[i]].ready) > m->round)
            return hvd__fail(HVD_ERR_LOST, "rank %d starts another world",
                             m->list[i]);
    return m->net ? judge_start(m) : HVD_OK;
}
