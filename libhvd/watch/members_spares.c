/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members_spares.c - members that are in no world until others are lost: how
 * they wait, and who looks after them.
 *
 * A spare sleeps until the register's bell is rung, which is done when a round
 * has been decided, and when a member leaves the last world. It wakes up a few
 * times a second to show that it is alive, and to see whether the members of
 * the last world still are: if all of them have ended, nobody is left to ring.
 * It says nothing in a round. Whoever proposes one takes the spares that it
 * needs.
 *
 * With several hosts a spare writes letters (survivors.c), and takes part in a
 * round from its beginning to its end, which may be that of the job.
 */
#include "watch/members_state.h"

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"

/* A spare sleeps no longer than this, and its beats are looked at as often. */
#define NAP_NS INT64_C(100000000)

/* A member that leaves writes to spares of other hosts so often, until all know
 * it, and no longer than that. */
enum { TELL_MS = 10, TELLS = 100 };

bool hvd__members_is_listed(const struct hvd__members *m, int member)
{
    for (int i = 0; i < m->nlisted; i++)
        if (m->list[i] == member)
            return true;
    return false;
}

bool hvd__members_is_spare(const struct hvd__members *m)
{
    return !hvd__members_is_listed(m, m->self) &&
           !hvd__members_is_lost(m, m->self);
}

/* ---------------------------------------------------------- who looks after */

int64_t hvd__members_nap(const struct hvd__members *m)
{
    const int64_t beat = m->options.heartbeat_ns / 8;

    return beat > 0 && beat < NAP_NS ? beat : NAP_NS;
}

static bool is_waiting(const struct hvd__members *m, int member)
{
    return !hvd__members_is_lost(m, member) &&
           !hvd__members_is_listed(m, member);
}

static void warn_of_spare(const struct hvd__members *m, int spare,
                          const char *text)
{
    int left = 0;

    for (int i = 0; i < m->n; i++)
        left += is_waiting(m, i) && !m->others[i].is_missed;
    hvd__log(HVD__LOG_WARNING,
             "a spare, rank %d (process %d), %s; %d spare%s left", spare,
             m->others[spare].pid, text, left, left == 1 ? " is" : "s are");
}

/* Looks at a spare of this host, and says so if it is lost. */
static void look_at_spare(struct hvd__members *m, int spare, int64_t passed)
{
    const struct hvd__members_line *line = &m->page->lines[spare];

    hvd__members_look_at(m, spare, passed);
    if (hvd__members_is_lost(m, spare))
        warn_of_spare(m, spare,
                      atomic_load(&line->has_text) ? line->text : "is lost");
}

/* Returns whether this is the lowest member of the list that is left on its
 * host. */
static bool is_lowest(const struct hvd__members *m)
{
    for (int i = 0; i < m->nlisted; i++)
        if (hvd__members_is_ours(m, m->list[i]) &&
            !hvd__members_is_lost(m, m->list[i]))
            return m->list[i] == m->self;
    return false;
}

void hvd__members_look_at_spares(struct hvd__members *m)
{
    int64_t now = hvd__now_ns(), passed;

    if (m->size == m->n || now - m->spares_looked_ns < hvd__members_nap(m))
        return;
    m->spares_looked_ns = now;
    passed = hvd__own_time_pass(&m->spares_time, now, HVD__MEMBERS_GAP_NS);
    if (!is_lowest(m))
        return;
    for (int i = 0; i < m->n; i++)
        if (hvd__members_is_ours(m, i) && is_waiting(m, i))
            look_at_spare(m, i, passed);
}

void hvd__members_report_spares(struct hvd__members *m)
{
    const struct hvd__survivors *s = hvd__members_net_state(m->net);

    if (m->size == m->n || s->leader != m->self ||
        s->stage != HVD__STAGE_WORKING)
        return;
    for (int i = 0; i < m->n; i++) {
        struct hvd__member *other = &m->others[i];
        const bool was_missed = other->is_missed;

        if (!is_waiting(m, i))
            continue;
        other->is_missed = hvd__member_set_has(&s->suspected, i);
        if (other->is_missed && !was_missed)
            warn_of_spare(m, i, "is silent, or its host is cut off");
    }
}

int hvd__members_call_spares(struct hvd__members *m, int n, int *spares)
{
    if (atomic_load(&m->page->dismissed))
        return n;
    for (int i = 0; i < m->n && n < m->size; i++) {
        if (!is_waiting(m, i))
            continue;
        look_at_spare(m, i, 0);
        if (!hvd__members_is_lost(m, i)) {
            *spares++ = i;
            n++;
        }
    }
    return n;
}

void hvd__members_dismiss_spares(struct hvd__members *m)
{
    atomic_store(&m->page->dismissed, true);
    if (!m->net)
        return;
    hvd__mutex_lock(&m->lock);
    hvd__survivors_dismiss(hvd__members_net_state(m->net));
    hvd__members_drive(m);
    hvd__mutex_unlock(&m->lock);
}

/* --------------------------------------------------------- how one waits */

void hvd__members_ring(struct hvd__members *m)
{
    if (m->size == m->n)
        return;
    atomic_fetch_add(&m->page->bell, 1);
    syscall(SYS_futex, &m->page->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void sleep_until_bell(const struct hvd__members *m, uint32_t heard)
{
    const struct timespec nap = {.tv_nsec = hvd__members_nap(m)};

    syscall(SYS_futex, &m->page->bell, FUTEX_WAIT, heard, &nap, NULL, 0);
}

/* Writes to the spares of all hosts. The leader waits until they know it, so
 * that one letter that is lost makes no difference. */
static void write_farewell(struct hvd__members *m, bool in_good_order)
{
    struct hvd__survivors *s = hvd__members_net_state(m->net);
    struct pollfd poll_it = {.fd = hvd__members_fd(m), .events = POLLIN};
    bool has_told;

    for (int i = 0; i < TELLS; i++) {
        hvd__mutex_lock(&m->lock);
        if (in_good_order)
            hvd__survivors_leave(s);
        else
            hvd__survivors_lose(s, m->self, HVD_LOST_ABSENT);
        hvd__members_drive(m);
        has_told = hvd__survivors_has_told(s) || s->leader != m->self;
        hvd__mutex_unlock(&m->lock);
        if (has_told || !in_good_order)
            return;
        poll(&poll_it, 1, TELL_MS);
    }
}

void hvd__members_leave(struct hvd__members *m, bool in_good_order)
{
    atomic_store(&hvd__members_own_line(m)->left,
                 in_good_order ? HVD__LEFT_WELL : HVD__LEFT_BROKEN);
    hvd__members_ring(m);
    if (m->net && m->size < m->n)
        write_farewell(m, in_good_order);
}

/* Returns HVD_OK as long as one of the last world is there. A job that has
 * dismissed its spares has not needed them, however it ended. */
static int judge_others(const struct hvd__members *m)
{
    bool is_well = atomic_load(&m->page->dismissed);

    for (int i = 0; i < m->nlisted; i++) {
        const int member = m->list[i];
        const int32_t left = atomic_load(&m->page->lines[member].left);

        if (left == 0 && !hvd__members_is_lost(m, member) &&
            !hvd__members_is_gone(m, member))
            return HVD_OK;
        is_well |= left == HVD__LEFT_WELL;
    }
    return hvd__members_fail_unneeded(is_well);
}

int hvd__members_fail_unneeded(bool is_well)
{
    return is_well ? hvd__fail(HVD_ERR_SHUTDOWN,
                               "the job has ended, and has not needed this "
                               "process, which was a spare")
                   : hvd__fail(HVD_ERR_LOST,
                               "all ranks of the job have ended or are lost, "
                               "before they could call this process, which was "
                               "a spare");
}

/* A spare has nothing to leave. */
static int has_left(void *unused)
{
    (void)unused;
    return 1;
}

int hvd__members_stand_by(struct hvd__members *m)
{
    if (m->net)
        return hvd__members_agree(m, has_left, NULL);
    for (;;) {
        const uint32_t heard = atomic_load(&m->page->bell);
        const uint64_t decision = atomic_load(&m->page->decision);
        int status = 0;

        atomic_fetch_add(&hvd__members_own_line(m)->beats, 1);
        if (decision >> 32 > m->round)
            status = hvd__members_take(m, decision);
        if (status != 0)
            return status < 0 ? status : HVD_OK;
        if (hvd__members_is_lost(m, m->self))
            return hvd__members_fail_lost(m, m->self);
        status = judge_others(m);
        if (status < 0 && atomic_load(&m->page->decision) == decision)
            return status;
        sleep_until_bell(m, heard);
    }
}
