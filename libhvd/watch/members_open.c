/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members_open.c - opens and closes the register of each host, and, if there
 * are several hosts, the sockets on which members write to each other.
 *
 * The lowest member of a host makes the host's register, and the others map it.
 * Every member keeps its first failure until all have met: so all of them have
 * a register, or none has.
 */
#include "watch/members_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/segment.h"
#include "base/status.h"
#include "watch/process.h"

/* Between hosts: how long nothing new must be heard before a proposal, and the
 * time between letters that say the same, plus what it takes to send them. */
#define SETTLE_NS INT64_C(20000000)
#define RESEND_NS INT64_C(10000000)
#define LETTER_NS INT64_C(100000)

static size_t page_bytes(int n, int nwords)
{
    return sizeof(struct hvd__members_page) +
           (size_t)n * sizeof(struct hvd__members_line) +
           (size_t)n * (size_t)nwords * sizeof(uint64_t);
}

/* Every rank makes the others an offer. */
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

static struct hvd__members_page *map(int fd, size_t bytes)
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
    m->n = t->size;
    m->size = m->nlisted = t->size - o->nspares;
    m->nstanding = o->nspares > 0 ? 0 : t->size;
    m->self = t->rank;
    m->nwords = (t->size + HVD__PROPOSAL_BITS - 1) / HVD__PROPOSAL_BITS;
    m->bytes = page_bytes(m->n, m->nwords);
    m->others = calloc(n, sizeof *m->others);
    m->polls = calloc(n + 1, sizeof *m->polls);
    m->list = calloc(n, sizeof *m->list);
    m->found = calloc(n, sizeof *m->found);
    m->standing = calloc(n, sizeof *m->standing);
    for (int i = 0; m->others && i < m->n; i++)
        m->others[i].pidfd = -1;
    for (int i = 0; m->list && m->standing && i < m->n; i++)
        m->list[i] = m->standing[i] = i;
    if (m->others && m->polls && m->list && m->found && m->standing)
        return m;
    hvd__members_close(m);
    return NULL;
}

static void meet_others(struct hvd__members *m, const struct offer *all)
{
    for (int i = 0; i < m->n; i++) {
        m->others[i].pid = all[i].pid;
        m->others[i].start = all[i].start;
        if (i != m->self && hvd__members_is_ours(m, i))
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
        .ping_ns = hvd__members_nap(m),
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
    if (m->net)
        hvd__survivors_reserve(hvd__members_net_state(m->net), m->size);
    if (m->net)
        hvd__survivors_join(hvd__members_net_state(m->net), m->options.nelders);
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
    hvd__members_close(m->before);
    if (m->page)
        munmap(m->page, m->bytes);
    free(m->others);
    free(m->polls);
    free(m->list);
    free(m->found);
    free(m->standing);
    free(m);
}
