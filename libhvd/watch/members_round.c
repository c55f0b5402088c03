/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members_round.c - the rounds in which the survivors of a loss agree on who is
 * left.
 *
 * A round on one host. Each survivor writes the number of the round into its
 * line: it is ready, which means that it has stopped using the last world. When
 * all members that are not lost are ready, the lowest of them writes down who
 * they are, its proposal, and offers it by one compare-and-swap of a word of
 * the register, the decision: the round and the proposer. So there is one
 * decision a round, even if two members think that they are the lowest, as they
 * may when one was stopped. If the lowest dies before, the next one is the
 * lowest. Nobody waits for a member without looking whether it is alive.
 *
 * A member may die when it has been decided that it is in: then the start of
 * the next world fails, for hvd__members_look says so, and those to whom it
 * fails go to the next round. Those to whom it did not fail have a world that
 * ends at once, since its watchdogs see the death, and come to the next round
 * from there. Nobody is ready for a round before it has read the decision of
 * the one before, so a word and a proposal a member are enough.
 *
 * With several hosts a round is one of survivors.c.
 */
#include "watch/members_state.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "watch/watch.h"

/* A wait sleeps for SHORT_NS at first, and then until a process ends, for
 * PAUSE_MS at most. */
#define SHORT_NS 50000
enum { SHORT_NAPS = 40, PAUSE_MS = 1 };

/* A report names so many ranks that have not come. */
enum { NAMED = 6 };

static _Atomic uint64_t *proposal_of(const struct hvd__members *m, int member)
{
    _Atomic uint64_t *first =
        (_Atomic uint64_t *)(void *)(m->page->lines + m->n);

    return first + (size_t)member * (size_t)m->nwords;
}

/* A spare that waits sleeps until a letter comes. */
void hvd__members_rest(struct hvd__members *m, int naps)
{
    const bool waits =
        m->net && hvd__members_net_state(m->net)->stage == HVD__STAGE_STANDBY;
    nfds_t n = 0;

    if (naps < SHORT_NAPS && !waits) {
        nanosleep(&(struct timespec){.tv_nsec = SHORT_NS}, NULL);
        return;
    }
    for (int i = 0; i < m->nlisted; i++)
        if (!hvd__members_is_lost(m, m->list[i]) &&
            m->others[m->list[i]].pidfd >= 0)
            m->polls[n++] = (struct pollfd){.fd = m->others[m->list[i]].pidfd,
                                            .events = POLLIN};
    if (m->net)
        m->polls[n++] =
            (struct pollfd){.fd = hvd__members_fd(m), .events = POLLIN};
    if (poll(m->polls, n,
             waits ? (int)(hvd__members_nap(m) / 1000000) : PAUSE_MS) > 0)
        m->looked_ns = 0;
}

static bool is_ready(const struct hvd__members *m, int member, uint32_t round)
{
    if (m->net)
        return hvd__member_set_has(&hvd__members_net_state(m->net)->ready,
                                   member);
    return atomic_load(&m->page->lines[member].ready) >= round;
}

/* Returns whether all that are left are ready, and this is the lowest. */
static bool may_propose(const struct hvd__members *m, uint32_t round)
{
    int lowest = -1;

    for (int i = 0; i < m->nlisted; i++) {
        int member = m->list[i];

        if (hvd__members_is_lost(m, member))
            continue;
        if (!is_ready(m, member, round))
            return false;
        if (lowest < 0)
            lowest = member;
    }
    return lowest == m->self;
}

static bool was_standing(const struct hvd__members *m, int member)
{
    for (int i = 0; i < m->nstanding; i++)
        if (m->standing[i] == member)
            return true;
    return false;
}

/* Writes who is left, and spares in the place of the others. The caller makes
 * it the decision. */
static void write_proposal(struct hvd__members *m, uint32_t round)
{
    const bool is_first = atomic_load(&m->page->founded) == 0 && m->size < m->n;
    struct hvd__members_line *mine = hvd__members_own_line(m);
    _Atomic uint64_t *words = proposal_of(m, m->self);
    int *who = m->found, n = 0, nold = 0;

    for (int i = 0; i < m->nlisted; i++)
        if (!hvd__members_is_lost(m, m->list[i]))
            who[n++] = m->list[i];
    n = hvd__members_call_spares(m, n, who + n);
    atomic_store(&mine->proposes, round);
    for (int w = 0; w < m->nwords; w++)
        atomic_store(&words[w], 0);
    for (int i = 0; i < n; i++) {
        atomic_fetch_or(&words[who[i] / HVD__PROPOSAL_BITS],
                        UINT64_C(1) << who[i] % HVD__PROPOSAL_BITS);
        nold += was_standing(m, who[i]);
    }
    atomic_store(&mine->old_size, m->nstanding);
    atomic_store(&mine->njoined, is_first ? 0 : n - nold);
}

static void propose(struct hvd__members *m, uint32_t round, uint64_t before)
{
    write_proposal(m, round);
    if (atomic_compare_exchange_strong(&m->page->decision, &before,
                                       (uint64_t)round << 32 |
                                           (uint32_t)(m->self + 1)))
        hvd__members_ring(m);
}

int hvd__members_take(struct hvd__members *m, uint64_t decision)
{
    const int proposer = (int)(uint32_t)decision - 1;
    const struct hvd__members_line *line = &m->page->lines[proposer];
    const _Atomic uint64_t *words = proposal_of(m, proposer);
    const uint32_t round = (uint32_t)(decision >> 32);
    int n = 0;

    for (int i = 0; i < m->n; i++)
        if (atomic_load(&words[i / HVD__PROPOSAL_BITS]) >>
                i % HVD__PROPOSAL_BITS &
            1)
            m->found[n++] = i;
    m->old_size = atomic_load(&line->old_size);
    m->njoined = atomic_load(&line->njoined);
    if (atomic_load(&line->proposes) != round)
        return 0;
    memcpy(m->list, m->found, (size_t)n * sizeof *m->list);
    m->nlisted = n;
    m->round = round;
    if (!hvd__members_is_listed(m, m->self))
        return 0;
    return n > m->njoined ? 1
                          : hvd__fail(HVD_ERR_LOST,
                                      "all ranks that were in the last world "
                                      "are lost, and their state with them");
}

/* Takes what was decided. */
static int accept(struct hvd__members *m, uint64_t decision)
{
    int taken = hvd__members_take(m, decision);

    if (taken == 0)
        return hvd__fail(HVD_ERR_LOST,
                         HVD__GIVEN_UP "they went on without rank %d", m->self);
    return taken < 0 ? taken : HVD_OK;
}

/* Names those that have not come. Returns their number. */
static int list_absent(const struct hvd__members *m, uint32_t round,
                       struct hvd__text *out)
{
    int n = 0;

    for (int i = 0; i < m->nlisted; i++)
        if (!hvd__members_is_lost(m, m->list[i]) &&
            !is_ready(m, m->list[i], round) && n++ < NAMED)
            hvd__text_add(out, "%srank %d (process %d)", n > 1 ? ", " : "",
                          m->list[i], m->others[m->list[i]].pid);
    if (n > NAMED)
        hvd__text_add(out, " and %d more", n - NAMED);
    return n;
}

/* A wait for the others, in this process's own time. */
struct wait {
    uint32_t round;
    int64_t spent_ns, reported_ns, looked_ns;
};

static void look_at_time(struct hvd__members *m, struct wait *wait)
{
    char text[512], how[HVD__FATE_TEXT];
    struct hvd__text out = hvd__text_at(text, sizeof text);
    int64_t now = hvd__now_ns(), passed = now - wait->looked_ns;

    wait->looked_ns = now;
    if (m->net && hvd__members_net_state(m->net)->stage == HVD__STAGE_STANDBY)
        return; /* a spare waits for nobody */
    wait->spent_ns +=
        passed < HVD__MEMBERS_GAP_NS ? passed : HVD__MEMBERS_GAP_NS;
    if (!m->net && m->options.limit_ns > 0 &&
        wait->spent_ns >= m->options.limit_ns) {
        snprintf(how, sizeof how, "has not called hvd_recover for %.0f s",
                 (double)wait->spent_ns * 1e-9);
        for (int i = 0; i < m->nlisted; i++)
            if (!is_ready(m, m->list[i], wait->round))
                hvd__members_lose(m, m->list[i], HVD_LOST_ABSENT, how);
    } else if (m->options.report_ns > 0 &&
               wait->spent_ns - wait->reported_ns >= m->options.report_ns) {
        wait->reported_ns = wait->spent_ns;
        if (list_absent(m, wait->round, &out) > 0)
            hvd__log(HVD__LOG_WARNING, "hvd_recover has waited %.0f s for %s",
                     (double)wait->spent_ns * 1e-9, text);
    }
}

/* Takes a list, and how many the last world had. The first world has none
 * before it. */
static void take_list(struct hvd__members *m,
                      const struct hvd__member_set *list,
                      const struct hvd__survivors *s)
{
    const bool is_first = m->size < m->n && s->founded == 0;

    m->nlisted = 0;
    m->old_size = is_first ? 0 : hvd__member_set_count(&s->base_list);
    for (int i = 0; i < m->n; i++)
        if (hvd__member_set_has(list, i))
            m->list[m->nlisted++] = i;
}

/* Takes what the protocol has decided. Returns 0 if it has not. */
static int take_decision(struct hvd__members *m)
{
    const struct hvd__survivors *s = hvd__members_net_state(m->net);
    char text[HVD__FATE_TEXT];

    if (s->stage == HVD__STAGE_TOO_FEW) {
        snprintf(text, sizeof text,
                 "is on a side of the network that has %d of %d ranks",
                 (int)s->few, (int)s->of);
        hvd__members_write_fate(m, m->self, HVD_LOST_CUT_OFF, text);
        return hvd__fail(HVD_ERR_LOST,
                         "this side of the network has no more than %d of %d "
                         "ranks, too few to go on: it takes more than half of "
                         "those that are not known to have ended, or half with "
                         "the lowest of them",
                         (int)s->few, (int)s->of);
    }
    if (hvd__members_is_lost(m, m->self) || s->stage == HVD__STAGE_OUT)
        return hvd__members_fail_lost(m, m->self);
    if (s->stage == HVD__STAGE_OVER || s->stage == HVD__STAGE_FORSAKEN)
        return hvd__members_fail_unneeded(s->stage == HVD__STAGE_OVER);
    if (s->stage == HVD__STAGE_STANDBY)
        take_list(m, &s->base_list, s); /* whom it is a spare of */
    if (s->stage != HVD__STAGE_DECIDED)
        return 0;
    m->round = s->round;
    take_list(m, &s->list, s);
    return 1;
}

/* A round between hosts. */
static int agree_in_letters(struct hvd__members *m, int (*work)(void *context),
                            void *context)
{
    struct hvd__survivors *s = hvd__members_net_state(m->net);
    struct wait wait = {.round = m->round + 1, .looked_ns = hvd__now_ns()};
    int done = 0, worked = 0;

    hvd__mutex_lock(&m->lock);
    /* A round may have been decided when a world could not grow. */
    if (s->stage != HVD__STAGE_DECIDED || s->round == m->round)
        hvd__survivors_enter(s);
    hvd__mutex_unlock(&m->lock);
    for (int naps = 0; done == 0; naps++) {
        m->looked_ns = 0;
        hvd__members_look_at_all(m);
        worked = work(context);
        HVD_TRY(worked);
        hvd__mutex_lock(&m->lock);
        if (worked > 0)
            hvd__survivors_be_ready(s);
        hvd__members_drive(m);
        done = take_decision(m);
        hvd__mutex_unlock(&m->lock);
        if (done == 0)
            hvd__members_rest(m, naps);
        look_at_time(m, &wait);
    }
    return done < 0 ? done : HVD_OK;
}

int hvd__members_agree(struct hvd__members *m, int (*work)(void *context),
                       void *context)
{
    struct wait wait = {.round = m->round + 1, .looked_ns = hvd__now_ns()};
    int worked = 0;

    if (m->net)
        return agree_in_letters(m, work, context);
    for (int naps = 0;; naps++) {
        uint64_t decision = atomic_load(&m->page->decision);

        hvd__members_look_at_all(m);
        if (hvd__members_is_lost(m, m->self))
            return hvd__members_fail_lost(m, m->self);
        if (worked == 0) {
            worked = work(context);
            HVD_TRY(worked);
        } else {
            atomic_store(&hvd__members_own_line(m)->ready, wait.round);
            HVD_TRY(work(context));
        }
        if (decision >> 32 >= wait.round)
            return accept(m, decision);
        if (worked && may_propose(m, wait.round))
            propose(m, wait.round, decision);
        else
            hvd__members_rest(m, naps);
        look_at_time(m, &wait);
    }
}
