/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c - the watchdog.
 *
 * Each rank has a line on its host's board (board.h). The watchdog of a rank
 * wakes up a few times in every heartbeat; it counts up its own line's beats,
 * puts what its rank has in flight beside it, and looks at the others':
 *
 *     gone      the kernel says so, through a pidfd, at once; unless the rank
 *               has said goodbye (HVD__LINE_LEFT)
 *     frozen    its beats have not moved for a whole heartbeat: stopped, or
 *               swapped out, or its host is
 *     stalled   one of our own requests waits too long for somebody
 *
 * The time that another is silent grows by what passes between two of our own
 * looks, but by two ticks at most: when we have been stopped ourselves, with
 * the whole job or the whole machine, the others were not silent, we were
 * deaf.
 *
 * The end. Who first finds a rank gone or frozen, or a stall that has lasted
 * too long, writes it on the board; all watchdogs of the host read it there
 * and tell their own rank's core, which fails everything. MPI is of no help
 * then, and a program may be stuck inside it: if the process is still there
 * after a while, its watchdog ends it.
 *
 * The thread takes no lock that another thread holds for long, allocates
 * nothing once it runs, and never calls MPI.
 */
#include "watch/watch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "watch/board.h"
#include "watch/process.h"
#include "watch/stall.h"

/* The exit status of a process that had to be ended: EX_SOFTWARE. */
enum { EXIT_ENDED = 70 };

enum { MOST_STALLS = 6, TICKS_A_HEARTBEAT = 20 };
#define TICK_MIN_NS INT64_C(20000000)
#define TICK_MAX_NS INT64_C(250000000)

/* Another rank of this host. */
struct peer {
    int rank;
    int line;
    int pidfd; /* owned; -1: the kernel has none */
    bool is_gone;
    uint64_t beats;
    int64_t silent_ns;
};

struct hvd__watch {
    struct hvd__watch_options options;
    struct hvd__watch_subject subject;
    struct hvd__board *board; /* owned mapping */
    int nlines;
    struct hvd__line *mine;
    struct peer *peers; /* owned, [npeers]: the others of this host */
    int npeers;
    struct pollfd *polls;           /* owned, [npeers + 1]: the last is stop */
    struct hvd__view *views;        /* owned, [nranks]; the thread's */
    struct hvd__in_flight *flights; /* owned, [nlines]; the thread's */
    struct hvd__in_flight flight;   /* ours */
    struct hvd__watch_request requests[HVD__BOARD_KEYS];
    int nrequests;
    int nranks, rank;
    int stop; /* owned eventfd */
    int64_t tick_ns;
    int64_t looked_ns;   /* when the thread last looked */
    int64_t reported_ns; /* when it last reported stalls */
    int64_t ended_ns;    /* 0: not yet */
    pthread_t thread;
    bool has_thread;
};

/* --------------------------------------------------------------------- ends */

/* All that matters of a rank, as others see it. */
static void describe(const struct hvd__watch *w, const struct peer *peer,
                     const char *how, char *text, size_t size)
{
    struct hvd__line *line = &w->board->lines[peer->line];
    struct hvd__doing doing;
    char last[160], host[64] = "";

    gethostname(host, sizeof host - 1);
    hvd__board_read_doing(line, &doing);
    snprintf(text, size,
             "rank %d (process %d on %s) %s; its last operation: "
             "%s",
             peer->rank, (int)atomic_load(&line->pid), host, how,
             hvd__doing_print(&doing, hvd__now_ns(), last, sizeof last));
}

static void end(struct hvd__watch *w, int status, const char *text)
{
    char first[HVD__BOARD_TEXT];

    if (w->ended_ns != 0)
        return;
    hvd__board_end(w->board, status, text);
    /* Another may have been faster, with another cause. */
    if (!hvd__board_has_ended(w->board, &status, first, sizeof first))
        snprintf(first, sizeof first, "%s", text);
    w->ended_ns = hvd__now_ns();
    w->subject.end(w->subject.context, status, first);
}

static void end_process(const struct hvd__watch *w)
{
    char text[200];
    int n =
        snprintf(text, sizeof text,
                 "hvd: rank %d: error: still running %.1f s after the end "
                 "of the world; ending this process with status %d\n",
                 w->rank, (double)w->options.exit_grace_ns * 1e-9, EXIT_ENDED);

    if (write(STDERR_FILENO, text, (size_t)n) < 0)
        _exit(EXIT_ENDED);
    _exit(EXIT_ENDED);
}

/* -------------------------------------------------------------------- peers */

static bool has_left(const struct hvd__watch *w, const struct peer *peer)
{
    return atomic_load(&w->board->lines[peer->line].state) == HVD__LINE_LEFT;
}

static void lose(struct hvd__watch *w, struct peer *peer)
{
    char fate[96], text[HVD__BOARD_TEXT];

    peer->is_gone = true;
    if (has_left(w, peer))
        return;
    hvd__process_fate((int)atomic_load(&w->board->lines[peer->line].pid), fate,
                      sizeof fate);
    describe(w, peer, fate, text, sizeof text);
    end(w, HVD_ERR_LOST, text);
}

static void look_for_death(struct hvd__watch *w)
{
    for (int i = 0; i < w->npeers; i++) {
        struct peer *peer = &w->peers[i];
        const struct hvd__line *line = &w->board->lines[peer->line];

        if (peer->is_gone || atomic_load(&line->state) == HVD__LINE_EMPTY)
            continue;
        if (peer->pidfd >= 0
                ? w->polls[i].revents != 0
                : hvd__process_start_time((int)atomic_load(&line->pid), NULL) !=
                      atomic_load(&line->start_time))
            lose(w, peer);
    }
}

static void freeze(struct hvd__watch *w, const struct peer *peer)
{
    const struct hvd__line *line = &w->board->lines[peer->line];
    char how[120], text[HVD__BOARD_TEXT], state = '?';

    hvd__process_start_time((int)atomic_load(&line->pid), &state);
    snprintf(how, sizeof how, "%s: no heartbeat for %.1f s",
             state == 'T' || state == 't' ? "is stopped (by SIGSTOP, or a "
                                            "debugger)"
                                          : "is frozen",
             (double)peer->silent_ns * 1e-9);
    describe(w, peer, how, text, sizeof text);
    end(w, HVD_ERR_LOST, text);
}

static void look_for_silence(struct hvd__watch *w, int64_t passed)
{
    if (passed > 2 * w->tick_ns)
        passed = 2 * w->tick_ns;
    for (int i = 0; i < w->npeers; i++) {
        struct peer *peer = &w->peers[i];
        uint64_t beats = atomic_load(&w->board->lines[peer->line].beats);

        peer->silent_ns += passed;
        if (beats != peer->beats || peer->is_gone || has_left(w, peer))
            peer->silent_ns = 0;
        peer->beats = beats;
        if (w->options.heartbeat_ns > 0 &&
            peer->silent_ns >= w->options.heartbeat_ns)
            freeze(w, peer);
    }
}

/* -------------------------------------------------------------------- stalls
 */

static void publish(struct hvd__watch *w)
{
    struct hvd__in_flight *f = &w->flight;
    int32_t before = f->nkeys;

    w->nrequests =
        w->subject.requests(w->subject.context, w->requests, HVD__BOARD_KEYS);
    f->nkeys = w->nrequests;
    f->nrequests =
        w->nrequests < HVD__BOARD_REQUESTS ? w->nrequests : HVD__BOARD_REQUESTS;
    for (int32_t i = 0; i < f->nkeys; i++)
        f->keys[i] = w->requests[i].key;
    memcpy(f->requests, w->requests,
           (size_t)f->nrequests * sizeof *f->requests);
    if (f->nkeys > 0 || before > 0)
        hvd__board_write_flight(w->mine, f);
    atomic_fetch_add(&w->mine->beats, 1);
}

static void view(struct hvd__watch *w)
{
    memset(w->views, 0, (size_t)w->nranks * sizeof *w->views);
    w->views[w->rank].state = HVD__VIEW_ALIVE;
    w->views[w->rank].flight = &w->flight;
    for (int i = 0; i < w->npeers; i++) {
        const struct peer *peer = &w->peers[i];
        struct hvd__line *line = &w->board->lines[peer->line];
        struct hvd__view *v = &w->views[peer->rank];

        v->state = has_left(w, peer)                  ? HVD__VIEW_LEFT
                   : peer->silent_ns > 8 * w->tick_ns ? HVD__VIEW_SILENT
                                                      : HVD__VIEW_ALIVE;
        v->silent_ns = peer->silent_ns;
        hvd__board_read_doing(line, &v->doing);
        hvd__board_read_flight(line, &w->flights[peer->line]);
        v->flight = &w->flights[peer->line];
    }
}

/* Of those who wait for a request, the lowest speaks for all. */
static bool is_ours_to_tell(const struct hvd__watch *w, uint64_t key)
{
    for (int rank = 0; rank < w->rank; rank++)
        if (hvd__view_waits(&w->views[rank], key))
            return false;
    return true;
}

static bool is_due(const struct hvd__watch_request *request, int64_t now,
                   int64_t limit)
{
    return limit > 0 && !request->decided && now - request->since_ns >= limit;
}

static void report_stalls(struct hvd__watch *w, int64_t now)
{
    char text[HVD__BOARD_TEXT];
    int told = 0, more = 0;

    view(w);
    for (int i = 0; i < w->nrequests; i++) {
        const struct hvd__watch_request *r = &w->requests[i];

        if (!is_due(r, now, w->options.stall_check_ns) ||
            !is_ours_to_tell(w, r->key))
            continue;
        if (told++ >= MOST_STALLS) {
            more++;
            continue;
        }
        hvd__log(HVD__LOG_WARNING, "stalled: %s",
                 hvd__stall_print(w->views, w->nranks, r, w->subject.is_member,
                                  w->subject.context, now, text, sizeof text));
    }
    if (more > 0)
        hvd__log(HVD__LOG_WARNING, "stalled: and %d more", more);
}

static void look_for_stalls(struct hvd__watch *w, int64_t now)
{
    char text[HVD__BOARD_TEXT];
    bool due = false;

    for (int i = 0; i < w->nrequests; i++) {
        const struct hvd__watch_request *r = &w->requests[i];

        due |= is_due(r, now, w->options.stall_check_ns);
        if (!is_due(r, now, w->options.stall_shutdown_ns))
            continue;
        view(w);
        hvd__stall_print(w->views, w->nranks, r, w->subject.is_member,
                         w->subject.context, now, text, sizeof text);
        end(w, HVD_ERR_STALLED, text);
        return;
    }
    if (!due || (w->reported_ns != 0 &&
                 now - w->reported_ns < w->options.stall_check_ns))
        return;
    w->reported_ns = now;
    report_stalls(w, now);
}

/* ------------------------------------------------------------------ the thread
 */

static void look(struct hvd__watch *w)
{
    int64_t now = hvd__now_ns(), passed = now - w->looked_ns;
    char text[HVD__BOARD_TEXT];
    int status;

    if (w->ended_ns != 0) {
        if (w->options.exit_grace_ns > 0 &&
            now - w->ended_ns >= w->options.exit_grace_ns)
            end_process(w);
        atomic_fetch_add(&w->mine->beats, 1);
        return;
    }
    if (hvd__board_has_ended(w->board, &status, text, sizeof text)) {
        end(w, status, text);
        return;
    }
    look_for_death(w);
    if (passed < w->tick_ns / 2 && w->looked_ns != 0)
        return; /* woken up early by a death: the rest has time */
    w->looked_ns = now;
    publish(w);
    look_for_silence(w, passed);
    look_for_stalls(w, now);
}

/* Those that are gone stay readable: they are not asked again. */
static void prepare_polls(struct hvd__watch *w)
{
    for (int i = 0; i < w->npeers; i++)
        w->polls[i] =
            (struct pollfd){.fd = w->peers[i].is_gone ? -1 : w->peers[i].pidfd,
                            .events = POLLIN};
    w->polls[w->npeers] = (struct pollfd){.fd = w->stop, .events = POLLIN};
}

static void *run(void *argument)
{
    struct hvd__watch *w = argument;

    w->looked_ns = hvd__now_ns();
    for (;;) {
        int timeout = (int)(w->tick_ns / 1000000);

        prepare_polls(w);
        if (poll(w->polls, (nfds_t)w->npeers + 1, timeout) < 0 &&
            errno != EINTR)
            return NULL;
        if (w->polls[w->npeers].revents)
            return NULL;
        look(w);
    }
}

/* -------------------------------------------------------------------- opening
 */

/* What ranks of a host tell each other first. */
struct hello {
    char board[48]; /* the lowest rank's: the name; "" if there is none */
    int32_t failed;
    int32_t pid;
};

static int lines_before(const char *(*host)(const void *, int),
                        const void *context, int rank, int before)
{
    int n = 0;

    for (int r = 0; r < before; r++)
        n += strcmp(host(context, r), host(context, rank)) == 0;
    return n;
}

static int first_of_host(const char *(*host)(const void *, int),
                         const void *context, int rank)
{
    int first = 0;

    while (strcmp(host(context, first), host(context, rank)) != 0)
        first++;
    return first;
}

static int allocate(struct hvd__watch *w)
{
    size_t n = (size_t)w->nlines + 1;

    w->peers = calloc(n, sizeof *w->peers);
    w->polls = calloc(n, sizeof *w->polls);
    w->views = calloc((size_t)w->nranks, sizeof *w->views);
    w->flights = calloc(n, sizeof *w->flights);
    w->stop = eventfd(0, EFD_CLOEXEC);
    if (!w->peers || !w->polls || !w->views || !w->flights)
        return hvd__fail_memory(n * sizeof *w->views);
    if (w->stop < 0)
        return hvd__fail(HVD_ERR_MEMORY, "eventfd: %s", strerror(errno));
    return HVD_OK;
}

static void write_line(struct hvd__watch *w, int line)
{
    w->mine = &w->board->lines[line];
    atomic_store(&w->mine->pid, (int32_t)getpid());
    atomic_store(&w->mine->start_time, hvd__process_start_time(getpid(), NULL));
    atomic_store(&w->mine->state, HVD__LINE_ALIVE);
}

static void meet_peers(struct hvd__watch *w,
                       const char *(*host)(const void *, int),
                       const void *context, const struct hello *all)
{
    int line = 0, k = 0;

    for (int rank = 0; rank < w->nranks; rank++) {
        if (strcmp(host(context, rank), host(context, w->rank)) != 0)
            continue;
        if (rank != w->rank)
            w->peers[k++] =
                (struct peer){.rank = rank,
                              .line = line,
                              .pidfd = hvd__process_open(all[rank].pid)};
        line++;
    }
}

static int start_thread(struct hvd__watch *w)
{
    sigset_t signals, before;
    int code;

    /* The program's signals are for the program's threads. */
    sigfillset(&signals);
    pthread_sigmask(SIG_SETMASK, &signals, &before);
    code = pthread_create(&w->thread, NULL, run, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return hvd__fail(HVD_ERR_MEMORY, "no watchdog thread: error %d", code);
    pthread_setname_np(w->thread, "hvd-watchdog");
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

/* Map the board, in two meetings: its name, and whether all could. */
static int open_board(struct hvd__watch *w, struct hvd__transport *t,
                      const char *(*host)(const void *, int),
                      const void *context, struct hello *all)
{
    int first = first_of_host(host, context, t->rank);
    int line = lines_before(host, context, t->rank, t->rank);
    struct hello mine = {.pid = (int32_t)getpid()};
    bool all_could = true;

    w->nlines = lines_before(host, context, t->rank, t->size);
    w->npeers = w->nlines - 1;
    mine.failed = allocate(w) < 0;
    if (first == t->rank && !mine.failed)
        w->board = hvd__board_create(w->nlines, mine.board, sizeof mine.board);
    HVD_TRY(t->exchange(t, &mine, all, sizeof mine));
    if (first != t->rank && all[first].board[0] && !mine.failed)
        w->board = hvd__board_attach(all[first].board, w->nlines);
    if (w->board) {
        write_line(w, line);
        meet_peers(w, host, context, all);
        if (start_thread(w) < 0)
            mine.failed = 1;
    }
    mine.failed |= !w->board;
    if (mine.failed)
        hvd__log(HVD__LOG_WARNING,
                 "the ranks of this host do not watch each other: %s",
                 hvd_last_error());
    HVD_TRY(t->exchange(t, &mine, all, sizeof mine));
    hvd__board_unlink(mine.board);
    for (int rank = 0; rank < t->size; rank++)
        if (strcmp(host(context, rank), host(context, t->rank)) == 0)
            all_could &= !all[rank].failed;
    /* A rank without a line would look frozen: then nobody watches. */
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
    w->nranks = t->size;
    w->rank = t->rank;
    w->stop = -1;
    w->tick_ns = tick_of(options);
    status = open_board(w, t, host, context, all);
    free(all);
    if (status == HVD_OK)
        *watch = w;
    else
        hvd__watch_close(w);
    return status < 0 ? status : HVD_OK;
}

/* Cut to what there is room for; returns what is left of it. */
static char *append(char *at, const char *end, const char *text)
{
    size_t room = (size_t)(end - at), bytes = strnlen(text, room);

    memcpy(at, text, bytes);
    return at + bytes;
}

void hvd__watch_doing(struct hvd__watch *w, const char *kind, const char *name,
                      int64_t now_ns)
{
    struct hvd__doing doing = {.since_ns = now_ns};
    char *at = doing.text, *end = doing.text + sizeof doing.text - 1;

    if (!w)
        return;
    /* Not printf: this is on the way of every request. */
    at = append(at, end, kind);
    at = append(at, end, " '");
    at = append(at, end, name[0] > 0 && name[0] < ' ' ? name + 1 : name);
    append(at, end, "'");
    hvd__board_write_doing(w->mine, &doing);
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
    if (w->has_thread && write(w->stop, &one, sizeof one) == sizeof one)
        pthread_join(w->thread, NULL);
    if (w->stop >= 0)
        close(w->stop);
    for (int i = 0; w->peers && i < w->npeers; i++)
        if (w->peers[i].pidfd > 0)
            close(w->peers[i].pidfd);
    hvd__board_unmap(w->board, w->nlines);
    free(w->peers);
    free(w->polls);
    free(w->views);
    free(w->flights);
    free(w);
}
