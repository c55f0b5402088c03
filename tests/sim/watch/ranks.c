/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - the processes of a simulated world. While watches are opened, which
 * is collective, each rank is a fiber; then all happens in events: a watchdog
 * looks, a letter comes. The calls of a watchdog to the kernel come here
 * through the linker: the clock, processes, shared memory, threads and the log.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "../wraps.h"
#include "base/log.h"
#include "base/segment.h"
#include "base/thread.h"
#include "simulated.h"
#include "watch/process.h"

/* A process has the number FIRST_PROCESS + its rank; descriptors are such that
 * no file has them. */
enum { FIRST_PROCESS = 1000, NO_FILE = 1 << 29, STACK_BYTES = 128 * 1024 };
enum { EXCHANGES = 2 }; /* of ranks that open their watch */
/* A thread wakes up so late; once in a while, later. */
#define WAKE_NS (2 * SIM_MS)
#define WAKE_LATE_NS (15 * SIM_MS)
#define START_NS (1000 * SIM_SECOND)

struct sim_world sim;
static ucontext_t scheduler;

SIM_WRAPS(clock_gettime);
SIM_WRAPS(eventfd);
SIM_WRAPS(getrandom);
SIM_WRAPS(gethostname);
SIM_WRAPS(getpid);
SIM_WRAPS(hvd__thread_start);
SIM_WRAPS(hvd__page_create);
SIM_WRAPS(hvd__page_attach);
SIM_WRAPS(hvd__page_unmap);
SIM_WRAPS(hvd__segment_address_of);
SIM_WRAPS(hvd__segment_settle);
SIM_WRAPS(hvd__process_open);
SIM_WRAPS(hvd__process_start_time);
SIM_WRAPS(hvd__process_fate);
SIM_WRAPS(hvd__log);

void sim_fail(const char *format, ...)
{
    va_list arguments;

    if (sim.has_failed)
        return;
    sim.has_failed = true;
    va_start(arguments, format);
    vsnprintf(sim.failure, sizeof sim.failure, format, arguments);
    va_end(arguments);
}

void sim_say(const char *format, ...)
{
    va_list arguments;

    if (!sim.verbose)
        return;
    printf("%9.3f s  ", (double)(sim.now_ns - START_NS) * 1e-9);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
}

/* --------------------------------------------------------------- the kernel */

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    time->tv_sec = (time_t)(sim.now_ns / SIM_SECOND);
    time->tv_nsec = (long)(sim.now_ns % SIM_SECOND);
    return 0;
}

int __wrap_eventfd(unsigned count, int flags)
{
    (void)count;
    (void)flags;
    return NO_FILE;
}

ssize_t __wrap_getrandom(void *data, size_t bytes, unsigned flags)
{
    (void)flags;
    memset(data, sim.current->rank + 1, bytes);
    return (ssize_t)bytes;
}

int __wrap_gethostname(char *name, size_t bytes)
{
    snprintf(name, bytes, "node%d", sim.current->host);
    return 0;
}

pid_t __wrap_getpid(void)
{
    return FIRST_PROCESS + sim.current->rank;
}

/* The watchdog's thread runs in events. */
int __wrap_hvd__thread_start(pthread_t *thread, const char *name,
                             void *(*run)(void *), void *argument)
{
    (void)thread;
    (void)name;
    (void)run;
    sim.current->watch = argument;
    return 0;
}

struct hvd__segment_address __wrap_hvd__segment_address_of(int fd)
{
    (void)fd;
    return (struct hvd__segment_address){.process = 1};
}

void __wrap_hvd__segment_settle(const struct hvd__segment_address *address)
{
    (void)address;
}

static struct sim_rank *process(int pid)
{
    return &sim.ranks[pid - FIRST_PROCESS];
}

int __wrap_hvd__process_open(int pid)
{
    return NO_FILE + pid;
}

uint64_t __wrap_hvd__process_start_time(int pid, char *state)
{
    const struct sim_rank *rank = process(pid);

    if (rank->state != SIM_RUNS)
        return 0;
    if (state)
        *state = rank->is_stopped ? 'T' : 'S';
    return 1;
}

const char *__wrap_hvd__process_fate(int pid, char *text, size_t size)
{
    (void)pid;
    snprintf(text, size, "was killed by signal 9 (Killed)");
    return text;
}

void __wrap_hvd__log(enum hvd__log_level level, const char *format, ...)
{
    va_list arguments;

    if (level > HVD__LOG_WARNING)
        return;
    sim.warnings++;
    va_start(arguments, format);
    vsnprintf(sim.warning, sizeof sim.warning, format, arguments);
    va_end(arguments);
    sim.warner = sim.current->rank;
    sim_say("rank %d: warning: %s", sim.current->rank, sim.warning);
}

/* ------------------------------------------------------------------- events */

struct event {
    int64_t ns;
    uint64_t number; /* in the order of planning */
    struct sim_rank *rank;
    struct sim_letter *letter; /* NULL: a look */
    bool is_refusal;
};

static struct event *heap;
static size_t nevents, room;
static uint64_t nplanned;

static bool is_earlier(const struct event *a, const struct event *b)
{
    return a->ns != b->ns ? a->ns < b->ns : a->number < b->number;
}

static void plan(struct event event)
{
    size_t at = nevents++;

    if (nevents > room) {
        room = 2 * room + 1024;
        heap = realloc(heap, room * sizeof *heap);
    }
    event.number = ++nplanned;
    for (; at > 0 && is_earlier(&event, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = event;
}

static struct event next_event(void)
{
    struct event first = heap[0], last = heap[--nevents];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < nevents && is_earlier(&heap[child + 1], &heap[child]))
            child++;
        if (child >= nevents || !is_earlier(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

int64_t sim_next_event(void)
{
    return nevents > 0 ? heap[0].ns : INT64_MAX;
}

void sim_post_at(int64_t ns, struct sim_rank *rank, bool is_refusal,
                 struct sim_letter *letter)
{
    plan((struct event){ns, 0, rank, letter, is_refusal});
}

void sim_wake(struct sim_rank *rank, int64_t ns)
{
    if (rank->state != SIM_RUNS || rank->is_stopped ||
        (rank->wake_ns != 0 && rank->wake_ns <= ns))
        return;
    rank->wake_ns = ns;
    plan((struct event){.ns = ns, .rank = rank});
}

/* Returns when a thread wakes up that is ready to at a time. */
static int64_t woken(const struct sim_rank *rank, int64_t ns)
{
    int64_t busy = sim.hosts[rank->host].busy_ns;
    int64_t most = busy > 0 && sim_once_in(&sim.threads, 4) ? busy
                   : sim_once_in(&sim.threads, 200)         ? WAKE_LATE_NS
                                                            : WAKE_NS;

    return ns + most * sim_below(&sim.threads, 1000) / 1000;
}

/* -------------------------------------------------------------------- looks */

static void tell(void *context, int status, const char *text)
{
    struct sim_rank *self = context;

    if (self->told_ns != 0)
        sim_fail("rank %d was told twice", self->rank);
    self->told_ns = sim.now_ns;
    self->told_status = status;
    snprintf(self->told, sizeof self->told, "%s", text);
    /* The program exits some time later, without a goodbye. */
    self->dies_ns = sim.now_ns + SIM_MS * (10 + sim_below(&sim.threads, 2000));
    sim_say("rank %d is told: %s", self->rank, text);
}

/* Marks what the watchdog's poll would report. Returns whether anything. */
static bool poll_all(struct sim_rank *self)
{
    struct hvd__watch *w = self->watch;
    bool any = self->is_leaving;

    for (int i = 0; i < w->npeers; i++) {
        w->polls[i].revents =
            w->polls[i].fd >= 0 && sim.ranks[w->peers[i].rank].state != SIM_RUNS
                ? POLLIN
                : 0;
        any |= w->polls[i].revents != 0;
    }
    w->polls[w->npeers].revents = self->is_leaving ? POLLIN : 0;
    w->polls[w->npeers + 1].revents =
        w->polls[w->npeers + 1].fd >= 0 &&
                self->letters.n + self->refusals.n > 0
            ? POLLIN
            : 0;
    return any || w->polls[w->npeers + 1].revents;
}

static void look(struct sim_rank *self)
{
    int ms;

    if (self->dies_ns != 0 && sim.now_ns >= self->dies_ns) {
        sim_kill(self);
        return;
    }
    sim.current = self;
    hvd__watchdog_prepare(self->watch);
    poll_all(self);
    if (!hvd__watchdog_look(self->watch)) {
        self->state = SIM_LEFT;
        sim.current = NULL;
        return;
    }
    ms = hvd__watchdog_prepare(self->watch);
    sim_wake(self, woken(self, poll_all(self) ? sim.now_ns
                                              : sim.now_ns + ms * SIM_MS));
    sim.current = NULL;
}

void sim_run_until(int64_t ns)
{
    while (nevents > 0 && heap[0].ns <= ns && !sim.has_failed) {
        struct event event = next_event();
        struct sim_rank *rank = event.rank;

        sim.now_ns = event.ns;
        if (event.letter) {
            sim_deliver(rank, event.is_refusal, event.letter);
            /* Once its world has ended, a watchdog does not listen. */
            if (rank->told_ns == 0)
                sim_wake(rank, woken(rank, event.ns));
        } else if (rank->wake_ns == event.ns && rank->state == SIM_RUNS &&
                   !rank->is_stopped) {
            rank->wake_ns = 0;
            look(rank);
        }
    }
    if (sim.now_ns < ns)
        sim.now_ns = ns;
}

/* ------------------------------------------------------------- what happens */

void sim_kill(struct sim_rank *rank)
{
    const struct sim_host *host = &sim.hosts[rank->host];

    rank->state = SIM_DEAD;
    rank->is_stopped = false;
    for (int i = 0; i < host->nranks; i++) {
        struct sim_rank *peer = &sim.ranks[host->first + i];

        if (peer->told_ns == 0)
            sim_wake(peer, woken(peer, sim.now_ns));
    }
}

void sim_stop(struct sim_rank *rank)
{
    rank->is_stopped = true;
    rank->wake_ns = 0;
}

void sim_continue(struct sim_rank *rank)
{
    rank->is_stopped = false;
    sim_wake(rank, woken(rank, sim.now_ns));
}

void sim_leave(struct sim_rank *rank)
{
    hvd__watch_leave(rank->watch);
    rank->is_leaving = true;
    sim_wake(rank, woken(rank, sim.now_ns));
}

/* ------------------------------------------------------------------ opening */

static const char *host_of(const void *context, int rank)
{
    (void)context;
    return sim.hosts[sim.ranks[rank].host].name;
}

/* The requests of all ranks are alike but for their times. Each heartbeat asks
 * for them, so they are written once. */
static const struct hvd__watch_request *request_alike(int i)
{
    static struct hvd__watch_request all[SIM_REQUESTS];
    struct hvd__watch_request *r = &all[i];

    if (r->key == 0) {
        r->key = 100 + (uint64_t)i;
        snprintf(r->name, sizeof r->name, "'r%d'", i);
        snprintf(r->what, sizeof r->what, "barrier");
    }
    return r;
}

static int requests(void *context, struct hvd__watch_request *oldest, int max)
{
    const struct sim_rank *self = context;
    int n = 0;

    for (; n < self->nrequests && n < max; n++) {
        oldest[n] = *request_alike(n);
        oldest[n].since_ns = self->since_ns[n];
    }
    return n;
}

static bool is_member(void *context, int32_t set, int rank)
{
    (void)context;
    (void)set;
    (void)rank;
    return true;
}

static int exchange(struct hvd__transport *t, const void *mine, void *all,
                    size_t bytes)
{
    struct sim_rank *self = &sim.ranks[t->rank];

    self->mine = mine;
    self->all = all;
    self->bytes = bytes;
    swapcontext(&self->context, &scheduler);
    return 0;
}

static void open_watch(void)
{
    struct sim_rank *self = sim.current;
    const struct hvd__watch_subject subject = {
        .context = self,
        .requests = requests,
        .is_member = is_member,
        .end = tell,
    };
    struct hvd__watch *watch;

    self->opened = hvd__watch_open(&watch, &self->transport, host_of, NULL,
                                   &sim.options, &subject);
    if (self->opened == 0 && watch != self->watch)
        sim_fail("rank %d has no watch", self->rank);
}

static void run_fiber(struct sim_rank *rank)
{
    sim.current = rank;
    swapcontext(&scheduler, &rank->context);
    sim.current = NULL;
}

static void start_fiber(struct sim_rank *rank)
{
    rank->stack = malloc(STACK_BYTES);
    getcontext(&rank->context);
    rank->context.uc_stack.ss_sp = rank->stack;
    rank->context.uc_stack.ss_size = STACK_BYTES;
    rank->context.uc_link = &scheduler;
    makecontext(&rank->context, open_watch, 0);
    rank->opened = 1;
}

/* Lets all ranks come to their next exchange, and then exchanges. */
static void meet(void)
{
    for (int r = 0; r < sim.nranks; r++)
        run_fiber(&sim.ranks[r]);
    for (int to = 0; to < sim.nranks; to++)
        for (int from = 0; from < sim.nranks; from++) {
            const struct sim_rank *f = &sim.ranks[from];

            memcpy((char *)sim.ranks[to].all + (size_t)from * f->bytes, f->mine,
                   f->bytes);
        }
}

static void add_host(int host, int first, int nranks)
{
    struct sim_host *h = &sim.hosts[host];

    snprintf(h->name, sizeof h->name, "node%d boot", host);
    h->first = first;
    h->nranks = nranks;
    if (h->naddresses == 0) {
        h->naddresses = 1;
        h->reaches[0] = true;
    }
    for (int r = first; r < first + nranks; r++) {
        struct sim_rank *rank = &sim.ranks[r];

        rank->rank = r;
        rank->host = host;
        rank->letters.last = &rank->letters.first;
        rank->refusals.last = &rank->refusals.first;
        rank->transport = (struct hvd__transport){
            .rank = r, .size = sim.nranks, .exchange = exchange};
        start_fiber(rank);
    }
}

/* Lets the ranks go on behind their last exchange: those of each host at its
 * time. The watchdogs look meanwhile. */
static void finish_opening(void)
{
    const int64_t begin = sim.now_ns;

    for (;;) {
        int next = -1;

        for (int h = 0; h < sim.nhosts; h++)
            if (sim.ranks[sim.hosts[h].first].opened == 1 &&
                (next < 0 || sim.hosts[h].late_ns < sim.hosts[next].late_ns))
                next = h;
        if (next < 0)
            return;
        sim_run_until(begin + sim.hosts[next].late_ns);
        for (int i = 0; i < sim.hosts[next].nranks; i++)
            run_fiber(&sim.ranks[sim.hosts[next].first + i]);
    }
}

void sim_open(const int *ranks_of_host, int nhosts)
{
    int first = 0;

    sim.now_ns = START_NS;
    sim.nhosts = nhosts;
    for (int h = 0; h < nhosts; h++)
        sim.nranks += ranks_of_host[h];
    sim.ranks = calloc((size_t)sim.nranks, sizeof *sim.ranks);
    for (int h = 0; h < nhosts; first += ranks_of_host[h], h++)
        add_host(h, first, ranks_of_host[h]);
    for (int i = 0; i < EXCHANGES; i++)
        meet();
    for (int r = 0; r < sim.nranks; r++)
        if (sim.ranks[r].watch)
            sim_wake(&sim.ranks[r],
                     sim.now_ns + sim_below(&sim.threads, 1000) *
                                      sim.ranks[r].watch->tick_ns / 1000);
    finish_opening();
    for (int r = 0; r < sim.nranks; r++) {
        free(sim.ranks[r].stack);
        sim.ranks[r].stack = NULL;
        if (sim.ranks[r].opened != 0 || !sim.ranks[r].watch)
            sim_fail("rank %d could not open its watch", r);
    }
}

static void discard(struct sim_post *post)
{
    while (post->first) {
        struct sim_letter *letter = post->first;

        post->first = letter->next;
        free(letter);
    }
}

void sim_close(void)
{
    while (nevents > 0)
        free(next_event().letter);
    for (int r = 0; r < sim.nranks; r++) {
        sim.current = &sim.ranks[r];
        hvd__watch_close(sim.ranks[r].watch);
        discard(&sim.ranks[r].letters);
        discard(&sim.ranks[r].refusals);
    }
    for (int h = 0; h < sim.nhosts; h++)
        free(sim.hosts[h].page);
    free(sim.hosts);
    free(sim.ranks);
    free(heap);
    heap = NULL;
    nevents = room = 0;
    nplanned = 0;
}

/* The pages of hosts; sim_close frees them. */
struct hvd__page *__wrap_hvd__page_create(struct hvd__page_shape shape, int *fd)
{
    struct sim_host *host = &sim.hosts[sim.current->host];
    size_t bytes = hvd__page_bytes(shape);

    *fd = NO_FILE;
    host->page = aligned_alloc(64, (bytes + 63) / 64 * 64);
    memset(host->page, 0, bytes);
    host->page->nlines = shape.nlines;
    return host->page;
}

struct hvd__page *__wrap_hvd__page_attach(
    const struct hvd__segment_address *address, struct hvd__page_shape shape)
{
    (void)address;
    (void)shape;
    return sim.hosts[sim.current->host].page;
}

void __wrap_hvd__page_unmap(struct hvd__page *page,
                            struct hvd__page_shape shape)
{
    (void)page;
    (void)shape;
}
