/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members.c - the register of a host's processes, and the rounds in which the
 * survivors of a loss agree on who is left.
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
 *
 * Orders: fate is claimed with a compare-and-swap, after which text is written
 * and has_text released; readers acquire has_text. The proposal is written
 * before the decision is swapped (release), and read after it (acquire).
 */
#include "watch/members.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/own_time.h"
#include "base/segment.h"
#include "base/status.h"
#include "base/text.h"
#include "watch/members_net.h"
#include "watch/process.h"
#include "watch/watch.h"

enum { FATE_TEXT = 160, WORD_BITS = 64, NAMED = 6 };

/* A look at all members is due after LOOK_NS; a wait sleeps for SHORT_NS at
 * first, and then until a process ends, for PAUSE_MS at most. */
#define LOOK_NS INT64_C(500000)
#define SHORT_NS 50000
#define GAP_NS INT64_C(500000000)
enum { SHORT_NAPS = 40, PAUSE_MS = 1 };

/* Between hosts: how long nothing new must be heard before a proposal, and the
 * time between letters that say the same, plus what it takes to send them. */
#define SETTLE_NS INT64_C(20000000)
#define RESEND_NS INT64_C(10000000)
#define LETTER_NS INT64_C(100000)

struct line {
    _Alignas(64) _Atomic uint64_t beats;
    _Atomic uint32_t ready; /* the round for which it is ready */
    _Atomic int32_t fate;   /* 0, or a hvd_lost_reason, for ever */
    _Atomic bool has_text;  /* publishes text */
    char text[FATE_TEXT];   /* how it was lost */
};

struct page {
    _Atomic uint64_t decision; /* round << 32 | proposer + 1; 0: none yet */
    _Atomic int32_t settled;   /* hvd__members_settled */
    _Alignas(64) struct line lines[]; /* [n], then the proposals */
};

/* What this process knows of another. */
struct other {
    int pid;
    int pidfd; /* owned; -1: none */
    uint64_t start;
    uint64_t beats;
    int64_t silent_ns;
    int host;             /* the lowest member of its host */
    _Atomic int32_t fate; /* of one of another host, as in its line */
    char text[FATE_TEXT]; /* how that one seems to be lost */
};

struct hvd__members {
    struct hvd__members_options options;
    struct page *page; /* owned mapping */
    size_t bytes;
    int n, self, nwords;
    struct other *others; /* owned, [n] */
    struct pollfd *polls; /* owned, [n + 1] */
    int *list;            /* owned, [n]: the members of the last world */
    int nlisted;
    uint32_t round;
    struct hvd__own_time time;
    int64_t looked_ns;
    struct hvd__members_net *net; /* owned; NULL: all are on this host */
    struct hvd__mutex lock;       /* guards net */
};

/* ------------------------------------------------------------- the register */

static size_t page_bytes(int n, int nwords)
{
    return sizeof(struct page) + (size_t)n * sizeof(struct line) +
           (size_t)n * (size_t)nwords * sizeof(uint64_t);
}

static _Atomic uint64_t *proposal_of(const struct hvd__members *m, int member)
{
    _Atomic uint64_t *first =
        (_Atomic uint64_t *)(void *)(m->page->lines + m->n);

    return first + (size_t)member * (size_t)m->nwords;
}

static struct line *own_line(const struct hvd__members *m)
{
    return &m->page->lines[m->self];
}

static bool is_ours(const struct hvd__members *m, int member)
{
    return m->others[member].host == m->others[m->self].host;
}

hvd_lost_reason hvd__members_fate(const struct hvd__members *m, int member)
{
    return is_ours(m, member) ? atomic_load(&m->page->lines[member].fate)
                              : atomic_load(&m->others[member].fate);
}

static bool is_lost(const struct hvd__members *m, int member)
{
    return hvd__members_fate(m, member) != 0;
}

static void write_fate(struct hvd__members *m, int member,
                       hvd_lost_reason reason, const char *text)
{
    struct line *line = &m->page->lines[member];
    int32_t alive = 0;

    if (!atomic_compare_exchange_strong(&line->fate, &alive, reason))
        return;
    snprintf(line->text, sizeof line->text, "%s", text);
    atomic_store(&line->has_text, true);
}

/* --------------------------------------------------------- several hosts */

/* The words for each hvd_lost_reason begin with a verb. */
static const char *const reports[] = {
    "is silent", "has ended, as its host has found",
    "is frozen, as its host has found",
    "is silent, as its host may be, and was left out",
    "did not come to hvd_recover, or failed there"};

/* Makes the register and the protocol know the same, and this process first
 * what others of its host have written about it. The caller has the lock. */
static void compare_notes(struct hvd__members *m)
{
    struct hvd__survivors *s = hvd__members_net_state(m->net);
    hvd_lost_reason own;

    for (int i = 0; i < m->n; i++) {
        int fate = hvd__survivors_fate(s, i);

        if (fate != 0 && is_ours(m, i))
            write_fate(m, i, fate,
                       i == m->self ? "was left out: they went on without it"
                                    : reports[fate]);
        else if (fate != 0)
            atomic_store(&m->others[i].fate, fate);
    }
    own = atomic_load(&own_line(m)->fate);
    if (own != 0)
        hvd__survivors_lose(s, m->self, own);
    for (int i = 0; i < m->n; i++)
        if (is_ours(m, i) && atomic_load(&m->page->lines[i].fate) != 0)
            hvd__survivors_lose(s, i, atomic_load(&m->page->lines[i].fate));
}

/* The caller has the lock. */
static void drive(struct hvd__members *m)
{
    hvd__members_net_receive(m->net);
    compare_notes(m);
    hvd__members_net_send(m->net);
}

bool hvd__members_tend(struct hvd__members *m, char *text, size_t size)
{
    const struct hvd__survivors *s;
    bool has_ended;

    atomic_fetch_add(&own_line(m)->beats, 1);
    if (!m->net || !hvd__mutex_try(&m->lock))
        return false;
    drive(m);
    s = hvd__members_net_state(m->net);
    has_ended = s->stage == HVD__STAGE_WORKING && s->is_broken;
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
        snprintf(m->others[member].text, FATE_TEXT, "%s", text);
    if (reason == HVD_LOST_CUT_OFF || reason == HVD_LOST_FROZEN)
        hvd__survivors_suspect(s, member);
    else
        hvd__survivors_lose(s, member, reason);
    drive(m);
    hvd__mutex_unlock(&m->lock);
}

void hvd__members_lose(struct hvd__members *m, int member,
                       hvd_lost_reason reason, const char *text)
{
    if (!is_ours(m, member)) {
        lose_other(m, member, reason, text);
        return;
    }
    write_fate(m, member, reason, text);
    if (!m->net)
        return;
    hvd__mutex_lock(&m->lock);
    drive(m);
    hvd__mutex_unlock(&m->lock);
}

bool hvd__members_is_doubted(struct hvd__members *m, int member)
{
    bool is;

    if (!m->net)
        return is_lost(m, member);
    hvd__mutex_lock(&m->lock);
    is = hvd__survivors_is_doubted(hvd__members_net_state(m->net), member);
    hvd__mutex_unlock(&m->lock);
    return is;
}

void hvd__members_start(struct hvd__members *m)
{
    if (!m->net)
        return;
    hvd__mutex_lock(&m->lock);
    hvd__survivors_start(hvd__members_net_state(m->net));
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

bool hvd__members_settle(struct hvd__members *m, bool has_started)
{
    int32_t nothing = 0;

    atomic_compare_exchange_strong(&m->page->settled, &nothing,
                                   has_started ? 1 : -1);
    return hvd__members_settled(m) == 1;
}

int hvd__members_settled(const struct hvd__members *m)
{
    return atomic_load(&m->page->settled);
}

/* ------------------------------------------------------------ opening */

/* What a rank tells the others. */
struct offer {
    struct hvd__segment_address at; /* of the register, from the lowest of a
                                       host */
    int32_t pid;
    int32_t has_failed;
    uint64_t start;
    struct hvd__heartbeat_card card; /* if there are several hosts */
    char why[128];
};

static void fail_offer(struct offer *mine, const char *what, int code)
{
    mine->has_failed = 1;
    snprintf(mine->why, sizeof mine->why, "%s: %s", what,
             hvd__segment_strerror(code));
}

static struct page *map(int fd, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

/* Makes the register. The caller closes *fd. */
static void create(struct hvd__members *m, int *fd, struct offer *mine)
{
    int code;

    *fd = hvd__segment_create();
    if (*fd < 0) {
        fail_offer(mine, "shared memory", -*fd);
        return;
    }
    code = posix_fallocate(*fd, 0, (off_t)m->bytes);
    if (code == 0 && !(m->page = map(*fd, m->bytes)))
        code = errno;
    if (code != 0)
        fail_offer(mine, "shared memory", code);
    else
        mine->at = hvd__segment_address_of(*fd);
}

static void attach(struct hvd__members *m, const struct offer *first,
                   struct offer *mine)
{
    int fd = first->has_failed ? -ENOENT : hvd__segment_open(&first->at);

    if (fd < 0) {
        fail_offer(mine, "opening another rank's shared memory", -fd);
        return;
    }
    m->page = map(fd, m->bytes);
    if (!m->page)
        fail_offer(mine, "mapping another rank's shared memory", errno);
    close(fd);
}

static struct hvd__members *members_new(const struct hvd__transport *t,
                                        const struct hvd__members_options *o)
{
    struct hvd__members *m = calloc(1, sizeof *m);
    size_t n = (size_t)t->size;

    if (!m)
        return NULL;
    m->options = *o;
    m->n = m->nlisted = t->size;
    m->self = t->rank;
    m->nwords = (t->size + WORD_BITS - 1) / WORD_BITS;
    m->bytes = page_bytes(m->n, m->nwords);
    m->others = calloc(n, sizeof *m->others);
    m->polls = calloc(n + 1, sizeof *m->polls);
    m->list = calloc(n, sizeof *m->list);
    for (int i = 0; m->others && i < m->n; i++)
        m->others[i].pidfd = -1;
    for (int i = 0; m->list && i < m->n; i++)
        m->list[i] = i;
    if (m->others && m->polls && m->list)
        return m;
    hvd__members_close(m);
    return NULL;
}

static void meet_others(struct hvd__members *m, const struct offer *all)
{
    for (int i = 0; i < m->n; i++) {
        m->others[i].pid = all[i].pid;
        m->others[i].start = all[i].start;
        if (i != m->self && is_ours(m, i))
            m->others[i].pidfd = hvd__process_open(all[i].pid);
        if (!m->net)
            continue;
        hvd__members_net_introduce(m->net, i, &all[i].card);
        hvd__members_net_state(m->net)->host[i] = (int16_t)m->others[i].host;
    }
    if (m->net)
        hvd__members_net_start(m->net);
}

static const struct offer *find_failed(const struct offer *all, int n)
{
    for (int i = 0; i < n; i++)
        if (all[i].has_failed)
            return &all[i];
    return NULL;
}

/* Finds out which members share a host. Returns whether all do. */
static bool find_hosts(struct hvd__members *m,
                       const char *(*host)(const void *context, int rank),
                       const void *context)
{
    bool is_one = true;

    for (int i = 0; i < m->n; i++) {
        int first = 0;

        while (strcmp(host(context, first), host(context, i)) != 0)
            first++;
        m->others[i].host = first;
        is_one &= first == 0;
    }
    return is_one;
}

/* Does what this member can do alone. */
static void prepare(struct hvd__members *m,
                    const char *(*host)(const void *context, int rank),
                    const void *context, int *fd, struct offer *mine)
{
    const int64_t beat = m->options.heartbeat_ns / 8;
    struct hvd__survivors_times times = {
        .silence_ns = m->options.heartbeat_ns,
        .limit_ns = m->options.limit_ns,
        .settle_ns = SETTLE_NS,
        .resend_ns = RESEND_NS + m->n * LETTER_NS,
    };

    if (beat > 0 && beat < times.resend_ns)
        times.resend_ns = beat;
    if (!find_hosts(m, host, context) &&
        hvd__members_net_open(&m->net, m->options.address, m->n, m->self,
                              &times, &mine->card) < 0) {
        mine->has_failed = 1;
        snprintf(mine->why, sizeof mine->why, "%s", hvd_last_error());
        return;
    }
    if (m->others[m->self].host == m->self)
        create(m, fd, mine);
}

int hvd__members_open(struct hvd__members **members, struct hvd__transport *t,
                      const char *(*host)(const void *context, int rank),
                      const void *context,
                      const struct hvd__members_options *options)
{
    struct offer mine = {.pid = (int32_t)getpid(),
                         .start = hvd__process_start_time(getpid(), NULL)};
    struct offer *all = calloc((size_t)t->size, sizeof *all);
    struct hvd__members *m = members_new(t, options);
    const struct offer *failed;
    int fd = -1, status;

    *members = NULL;
    if (!all) {
        hvd__members_close(m);
        return hvd__fail_memory((size_t)t->size * sizeof *all);
    }
    if (!m)
        fail_offer(&mine, "memory", ENOMEM);
    else
        prepare(m, host, context, &fd, &mine);
    status = t->exchange(t, &mine, all, sizeof mine);
    if (status == HVD_OK && m && m->others[t->rank].host != t->rank)
        attach(m, &all[m->others[t->rank].host], &mine);
    if (status == HVD_OK)
        status = t->exchange(t, &mine, all, sizeof mine);
    hvd__segment_settle(&mine.at);
    if (fd >= 0)
        close(fd);
    failed = status == HVD_OK ? find_failed(all, t->size) : &mine;
    if (failed && status == HVD_OK && t->rank == 0)
        hvd__log(HVD__LOG_WARNING,
                 "HVD_ELASTIC has no effect, because ranks do not share what "
                 "it takes: rank %d: %s",
                 (int)(failed - all), failed->why);
    if (!failed) {
        meet_others(m, all);
        *members = m;
    } else {
        hvd__members_close(m);
    }
    free(all);
    return status;
}

void hvd__members_close(struct hvd__members *m)
{
    if (!m)
        return;
    for (int i = 0; m->others && i < m->n; i++)
        if (m->others[i].pidfd >= 0)
            close(m->others[i].pidfd);
    hvd__members_net_close(m->net);
    if (m->page)
        munmap(m->page, m->bytes);
    free(m->others);
    free(m->polls);
    free(m->list);
    free(m);
}

/* ------------------------------------------------------- who is alive */

static bool is_gone(const struct other *other)
{
    struct pollfd poll_it = {.fd = other->pidfd, .events = POLLIN};

    if (other->pidfd >= 0)
        return poll(&poll_it, 1, 0) == 1;
    return hvd__process_start_time(other->pid, NULL) != other->start;
}

static void look_at(struct hvd__members *m, int member, int64_t passed)
{
    struct other *other = &m->others[member];
    uint64_t beats = atomic_load(&m->page->lines[member].beats);
    char text[FATE_TEXT];

    if (is_gone(other)) {
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

static int fail_lost(const struct hvd__members *m, int member)
{
    const struct line *line = &m->page->lines[member];
    const struct other *other = &m->others[member];
    const char *text = atomic_load(&line->has_text) ? line->text : "is lost";

    if (!is_ours(m, member))
        text = other->text[0] ? other->text
                              : reports[hvd__members_fate(m, member)];
    return hvd__fail(HVD_ERR_LOST, "%srank %d (process %d) %s",
                     member == m->self ? HVD__GIVEN_UP : "", member, other->pid,
                     text);
}

static void look_at_all(struct hvd__members *m)
{
    int64_t now = hvd__now_ns(), passed;

    atomic_fetch_add(&own_line(m)->beats, 1);
    if (now - m->looked_ns < LOOK_NS)
        return;
    m->looked_ns = now;
    passed = hvd__own_time_pass(&m->time, now, GAP_NS);
    for (int i = 0; i < m->nlisted; i++)
        if (m->list[i] != m->self && is_ours(m, m->list[i]) &&
            !is_lost(m, m->list[i]))
            look_at(m, m->list[i], passed);
    if (!m->net)
        return;
    hvd__mutex_lock(&m->lock);
    drive(m);
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
    return member >= 0 ? fail_lost(m, member)
                       : hvd__fail(HVD_ERR_LOST, "another rank has not started "
                                                 "the world of the survivors");
}

int hvd__members_look(struct hvd__members *m)
{
    look_at_all(m);
    if (is_lost(m, m->self))
        return fail_lost(m, m->self);
    for (int i = 0; i < m->nlisted; i++)
        if (is_lost(m, m->list[i]))
            return fail_lost(m, m->list[i]);
        else if (!m->net &&
                 atomic_load(&m->page->lines[m->list[i]].ready) > m->round)
            return hvd__fail(HVD_ERR_LOST, "rank %d starts another world",
                             m->list[i]);
    return m->net ? judge_start(m) : HVD_OK;
}

/* ------------------------------------------------------------- a round */

/* Sleeps for a moment, and no longer than until a process ends. */
static void rest(struct hvd__members *m, int naps)
{
    nfds_t n = 0;

    if (naps < SHORT_NAPS) {
        nanosleep(&(struct timespec){.tv_nsec = SHORT_NS}, NULL);
        return;
    }
    for (int i = 0; i < m->nlisted; i++)
        if (!is_lost(m, m->list[i]) && m->others[m->list[i]].pidfd >= 0)
            m->polls[n++] = (struct pollfd){.fd = m->others[m->list[i]].pidfd,
                                            .events = POLLIN};
    if (m->net)
        m->polls[n++] =
            (struct pollfd){.fd = hvd__members_fd(m), .events = POLLIN};
    if (poll(m->polls, n, PAUSE_MS) > 0)
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

        if (is_lost(m, member))
            continue;
        if (!is_ready(m, member, round))
            return false;
        if (lowest < 0)
            lowest = member;
    }
    return lowest == m->self;
}

static void propose(struct hvd__members *m, uint32_t round, uint64_t before)
{
    _Atomic uint64_t *words = proposal_of(m, m->self);

    for (int w = 0; w < m->nwords; w++)
        atomic_store(&words[w], 0);
    for (int i = 0; i < m->nlisted; i++)
        if (!is_lost(m, m->list[i]))
            atomic_fetch_or(&words[m->list[i] / WORD_BITS],
                            UINT64_C(1) << m->list[i] % WORD_BITS);
    atomic_compare_exchange_strong(&m->page->decision, &before,
                                   (uint64_t)round << 32 |
                                       (uint32_t)(m->self + 1));
}

/* Takes the members that a decision names. */
static int accept(struct hvd__members *m, uint64_t decision)
{
    const _Atomic uint64_t *words = proposal_of(m, (int)(uint32_t)decision - 1);
    int n = 0;

    m->round = (uint32_t)(decision >> 32);
    for (int i = 0; i < m->n; i++)
        if (atomic_load(&words[i / WORD_BITS]) >> i % WORD_BITS & 1)
            m->list[n++] = i;
    m->nlisted = n;
    for (int i = 0; i < n; i++)
        if (m->list[i] == m->self)
            return HVD_OK;
    return hvd__fail(HVD_ERR_LOST, HVD__GIVEN_UP "they went on without rank %d",
                     m->self);
}

/* Names those that have not come. Returns their number. */
static int list_absent(const struct hvd__members *m, uint32_t round,
                       struct hvd__text *out)
{
    int n = 0;

    for (int i = 0; i < m->nlisted; i++)
        if (!is_lost(m, m->list[i]) && !is_ready(m, m->list[i], round) &&
            n++ < NAMED)
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
    char text[512], how[FATE_TEXT];
    struct hvd__text out = hvd__text_at(text, sizeof text);
    int64_t now = hvd__now_ns(), passed = now - wait->looked_ns;

    wait->looked_ns = now;
    wait->spent_ns += passed < GAP_NS ? passed : GAP_NS;
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

/* Takes what the protocol has decided. Returns 0 if it has not. */
static int take_decision(struct hvd__members *m)
{
    const struct hvd__survivors *s = hvd__members_net_state(m->net);
    char text[FATE_TEXT];

    if (s->stage == HVD__STAGE_TOO_FEW) {
        snprintf(text, sizeof text,
                 "is on a side of the network that has %d of %d ranks",
                 (int)s->few, (int)s->of);
        write_fate(m, m->self, HVD_LOST_CUT_OFF, text);
        return hvd__fail(HVD_ERR_LOST,
                         "this side of the network has no more than %d of %d "
                         "ranks, too few to go on: it takes more than half of "
                         "those that are not known to have ended, or half with "
                         "the lowest of them",
                         (int)s->few, (int)s->of);
    }
    if (is_lost(m, m->self) || s->stage == HVD__STAGE_OUT)
        return fail_lost(m, m->self);
    if (s->stage != HVD__STAGE_DECIDED)
        return 0;
    m->round = s->round;
    m->nlisted = 0;
    for (int i = 0; i < m->n; i++)
        if (hvd__member_set_has(&s->list, i))
            m->list[m->nlisted++] = i;
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
    hvd__survivors_enter(s);
    hvd__mutex_unlock(&m->lock);
    for (int naps = 0; done == 0; naps++) {
        m->looked_ns = 0;
        look_at_all(m);
        worked = work(context);
        HVD_TRY(worked);
        hvd__mutex_lock(&m->lock);
        if (worked > 0)
            hvd__survivors_be_ready(s);
        drive(m);
        done = take_decision(m);
        hvd__mutex_unlock(&m->lock);
        if (done == 0)
            rest(m, naps);
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

        look_at_all(m);
        if (is_lost(m, m->self))
            return fail_lost(m, m->self);
        if (worked == 0) {
            worked = work(context);
            HVD_TRY(worked);
        } else {
            atomic_store(&own_line(m)->ready, wait.round);
            HVD_TRY(work(context));
        }
        if (decision >> 32 >= wait.round)
            return accept(m, decision);
        if (worked && may_propose(m, wait.round))
            propose(m, wait.round, decision);
        else
            rest(m, naps);
        look_at_time(m, &wait);
    }
}
