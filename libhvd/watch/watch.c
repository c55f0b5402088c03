/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - how a watch begins and ends. The ranks of a host find their status
 * page, and hosts find each other, before the watchdog (watchdog.c) begins.
 * core/world opens and closes the watch; whoever submits a request notes it
 * here.
 *
 * All ranks exchange data twice, over the transport. First the lowest rank of
 * each host says where the status page is that it made, and each rank says
 * where it can be reached. Then all say whether they could do their part. If
 * one rank of a host could not, the ranks of that host do not watch each other,
 * and other hosts do not watch them.
 */
#include "watch/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/thread.h"
#include "watch/process.h"
#include "watch/watchdog.h"

enum { TICKS_A_HEARTBEAT = 20 };
/* The first heartbeat of a host is sent GREETINGS times: whoever misses it does
 * not watch that host before the next one comes. */
enum { GREETINGS = 3 };
#define TICK_MIN_NS INT64_C(20000000)
#define TICK_MAX_NS INT64_C(250000000)

/* The data of the first exchange. */
struct hello {
    /* made by the lowest rank of a host; 0: none */
    struct hvd__segment_address page;
    int32_t failed;
    int32_t pid;
    struct hvd__heartbeat_card card;
};

static int allocate(struct hvd__watch *w)
{
    size_t nlocal = (size_t)w->places.nlocal;

    w->peers = calloc(nlocal, sizeof *w->peers);
    w->polls = calloc(nlocal + 2, sizeof *w->polls);
    w->flights = calloc(nlocal, sizeof *w->flights);
    w->stop = eventfd(0, EFD_CLOEXEC);
    if (!w->peers || !w->polls || !w->flights)
        return hvd__fail_memory(nlocal * sizeof *w->flights);
    if (w->stop < 0)
        return hvd__fail(HVD_ERR_MEMORY, "eventfd: %s", strerror(errno));
    return HVD_OK;
}

static void write_line(struct hvd__watch *w)
{
    w->mine = &w->page->lines[w->places.line_of[w->places.rank]];
    atomic_store(&w->mine->pid, (int32_t)getpid());
    atomic_store(&w->mine->start_time, hvd__process_start_time(getpid(), NULL));
    atomic_store(&w->mine->state, HVD__LINE_ALIVE);
}

static void meet_peers(struct hvd__watch *w, const struct hello *all)
{
    const struct hvd__places *p = &w->places;

    for (int rank = p->first[p->host]; rank >= 0; rank = p->next[rank])
        if (rank != p->rank)
            w->peers[w->npeers++] = (struct hvd__peer){
                .rank = rank, .pidfd = hvd__process_open(all[rank].pid)};
}

static int start_thread(struct hvd__watch *w)
{
    HVD_TRY(
        hvd__thread_start(&w->thread, "hvd-watchdog", hvd__watchdog_run, w));
    w->has_thread = true;
    return HVD_OK;
}

static int64_t tick_of(const struct hvd__watch_options *options)
{
    int64_t tick = options->heartbeat_ns / TICKS_A_HEARTBEAT;

    if (options->stall_check_ns > 0 &&
        (tick == 0 || options->stall_check_ns / 4 < tick))
        tick = options->stall_check_ns / 4;
    return tick < TICK_MIN_NS   ? TICK_MIN_NS
           : tick > TICK_MAX_NS ? TICK_MAX_NS
                                : tick;
}

/* Sends the first heartbeat of this host. The ranks of a world meet again
 * before any of them leaves hvd_init, so by then each host has sent its own,
 * and one that is cut off from that moment on is missed. Only silence behind a
 * first heartbeat counts: a firewall that lets no datagram through is no death,
 * and a host may come here long after the others. */
static void greet_hosts(struct hvd__watch *w)
{
    for (int i = 0; i < GREETINGS; i++)
        hvd__heartbeat_send(w->heartbeat);
}

/* Links the hosts: a rank that is watched on its own host can then be watched
 * from other hosts. */
static void link_hosts(struct hvd__watch *w, const struct hello *all)
{
    if (!w->heartbeat)
        return;
    for (int rank = 0; rank < w->places.nranks; rank++)
        hvd__heartbeat_introduce(w->heartbeat, rank, &all[rank].card,
                                 !all[rank].failed);
    hvd__heartbeat_start(w->heartbeat, w->page, &w->subject,
                         SILENT_TICKS * w->tick_ns);
    if (w->places.rank == w->places.first[w->places.host])
        greet_hosts(w); /* before the watchdog's thread uses the heartbeat */
    atomic_store(&w->is_linked, true);
}

/* Maps the status page in two exchanges: where it is, and whether all could map
 * it. */
static int open_page(struct hvd__watch *w, struct hvd__transport *t,
                     const char *(*host)(const void *, int),
                     const void *context, struct hello *all)
{
    int first;
    struct hello mine = {.pid = (int32_t)getpid()};
    bool all_could = true, is_told;

    HVD_TRY(hvd__places_open(&w->places, t->rank, t->size, host, context));
    first = w->places.first[w->places.host];
    w->shape = (struct hvd__page_shape){hvd__places_most_lines(&w->places),
                                        w->places.nlocal};
    mine.failed =
        allocate(w) < 0 ||
        hvd__heartbeat_open(&w->heartbeat, w->options.address, &w->places, host,
                            context, &mine.card) < 0;
    if (first == t->rank && !mine.failed)
        w->page = hvd__page_create(w->shape, &w->page_fd);
    if (w->page)
        mine.page = w->page_at = hvd__segment_address_of(w->page_fd);
    HVD_TRY(t->exchange(t, &mine, all, sizeof mine));
    if (first != t->rank && all[first].page.process && !mine.failed)
        w->page = hvd__page_attach(&all[first].page, w->shape);
    if (w->page) {
        write_line(w);
        meet_peers(w, all);
        if (start_thread(w) < 0)
            mine.failed = 1;
    }
    /* The rank that could not make the page has logged that already. */
    is_told = !mine.failed && first != t->rank && !all[first].page.process;
    mine.failed |= !w->page;
    if (mine.failed && !is_told)
        hvd__log(HVD__LOG_WARNING,
                 "the ranks of this host do not watch each other: %s",
                 hvd_last_error());
    HVD_TRY(t->exchange(t, &mine, all, sizeof mine));
    for (int rank = first; rank >= 0; rank = w->places.next[rank])
        all_could &= !all[rank].failed;
    if (all_could)
        link_hosts(w, all);
    /* A rank without a line would look frozen, so nobody watches. */
    return all_could ? HVD_OK : 1;
}

int hvd__watch_open(struct hvd__watch **watch, struct hvd__transport *t,
                    const char *(*host)(const void *context, int rank),
                    const void *context,
                    const struct hvd__watch_options *options,
                    const struct hvd__watch_subject *subject)
{
    struct hvd__watch *w;
    struct hello *all;
    int status;

    *watch = NULL;
    if (t->size == 1)
        return HVD_OK;
    w = calloc(1, sizeof *w);
    all = calloc((size_t)t->size, sizeof *all);
    if (!w || !all) {
        free(w);
        free(all);
        return hvd__fail_memory(sizeof *w + (size_t)t->size * sizeof *all);
    }
    w->options = *options;
    w->subject = *subject;
    w->stop = -1;
    w->page_fd = -1;
    w->tick_ns = tick_of(options);
    status = open_page(w, t, host, context, all);
    free(all);
    hvd__segment_settle(&w->page_at);
    if (w->page_fd >= 0)
        close(w->page_fd);
    if (status == HVD_OK)
        *watch = w;
    else
        hvd__watch_close(w);
    return status < 0 ? status : HVD_OK;
}

void hvd__watch_doing(struct hvd__watch *w, int32_t kind,
                      const char name[static HVD__BEGUN_NAME], int64_t now_ns)
{
    if (w)
        hvd__page_write_begun(w->mine, kind, name, now_ns);
}

void hvd__watch_quick(struct hvd__watch *w, int32_t kind, uint64_t number,
                      int64_t now_ns)
{
    if (w)
        hvd__page_write_quick(w->mine, kind, number, now_ns);
}

hvd_lost_reason hvd__watch_reason(struct hvd__watch *w, int rank)
{
    struct hvd__cause cause;
    int line = w ? w->places.line_of[rank] : -1;

    if (line >= 0 && atomic_load(&w->page->lines[line].lost) != 0)
        return atomic_load(&w->page->lines[line].lost);
    if (w &&
        hvd__page_has_ended(w->page, hvd__now_ns(), hvd__watchdog_settle_ns(w),
                            &cause) &&
        cause.lost == rank)
        return cause.reason;
    return 0;
}

bool hvd__end_is_of(const char *text, int rank)
{
    char begin[24];
    int n = snprintf(begin, sizeof begin, "rank %d (", rank);

    return strncmp(text, begin, (size_t)n) == 0;
}

void hvd__watch_leave(struct hvd__watch *w)
{
    if (w)
        atomic_store(&w->mine->state, HVD__LINE_LEFT);
}

void hvd__watch_close(struct hvd__watch *w)
{
    uint64_t one = 1;

    if (!w)
        return;
    if (w->mine)
        hvd__watch_leave(w);
    if (w->has_thread && write(w->stop, &one, sizeof one) == sizeof one)
        pthread_join(w->thread, NULL);
    if (w->stop >= 0)
        close(w->stop);
    for (int i = 0; w->peers && i < w->npeers; i++)
        if (w->peers[i].pidfd > 0)
            close(w->peers[i].pidfd);
    hvd__heartbeat_close(w->heartbeat);
    hvd__page_unmap(w->page, w->shape);
    hvd__places_close(&w->places);
    free(w->peers);
    free(w->polls);
    free(w->flights);
    free(w);
}
