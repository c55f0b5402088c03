/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - the ranks meet: they are started in any order, by hand, on any
 * hosts.
 *
 * Every rank listens on its own address and calls rank 0, again and again. Rank
 * 0 calls back whoever has called it: so both ways are known to be open, and
 * rank 0 can say whom everybody waits for. When all are there it tells them to
 * start, with the number of the run. A process that ends before that is waited
 * for again; a process that comes later is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "transport/tcp/lobby.h"
#include "transport/tcp/tcp.h"

enum { LOOK_MS = 20 };

/* Open files for what is not a connection between ranks: of the program, and
 * for those who connect and have not proved anything (listener.c). */
enum { OTHER_FILES = 32, STRANGERS = 160 };

/* The missing ranks that are named one by one. */
enum { NAMED = 4 };

enum { NOTICE_START = 1, NOTICE_MISSING, NOTICE_END };

/* Rank 0 sends notices while the ranks meet. */
struct notice {
    int32_t what;
    int32_t status; /* of an end */
    char text[HVD__TCP_TEXT];
};

static int notify(struct hvd__tcp *tcp, int peer, const struct notice *notice)
{
    const struct hvd__frame frame = {HVD__FRAME_MEETING, 0, sizeof *notice};
    struct hvd__sender *sender = tcp->peers[peer].sender;
    struct hvd__tcp_request *request;

    if (!sender || sender->stage != HVD__SENDER_OPEN)
        return HVD_OK;
    request = hvd__tcp_request_new(tcp, &frame);
    if (!request)
        return HVD_ERR_MEMORY;
    request->message = malloc(sizeof *notice);
    if (!request->message) {
        hvd__tcp_request_free(request);
        return hvd__fail_memory(sizeof *notice);
    }
    memcpy(request->message, notice, sizeof *notice);
    request->data = request->message;
    hvd__sender_add(tcp, sender, request);
    return HVD_OK;
}

static int notify_all(struct hvd__tcp *tcp, const struct notice *notice)
{
    for (int peer = 1; peer < tcp->base.size; peer++)
        HVD_TRY(notify(tcp, peer, notice));
    return HVD_OK;
}

void hvd__meeting_hear(struct hvd__tcp *tcp, const void *bytes, size_t count)
{
    struct hvd__meeting *meeting = &tcp->meeting;
    struct notice notice;

    if (count != sizeof notice || tcp->job.is_started)
        return;
    memcpy(&notice, bytes, sizeof notice);
    notice.text[sizeof notice.text - 1] = '\0';
    if (notice.what == NOTICE_START)
        tcp->job.is_started = true;
    else if (notice.what == NOTICE_MISSING)
        snprintf(meeting->missing, sizeof meeting->missing, "%s", notice.text);
    else if (notice.what == NOTICE_END && notice.status < 0 &&
             !meeting->end_status) {
        meeting->end_status = notice.status;
        snprintf(meeting->end_text, sizeof meeting->end_text, "%s",
                 notice.text);
    }
}

/* ------------------------------------------------------------------- rank 0 */

/* Describes a rank that has not come, or cannot be called back. */
static void add_missing(const struct hvd__tcp *tcp, int rank,
                        struct hvd__text *text)
{
    const struct hvd__tcp_peer *peer = &tcp->peers[rank];

    hvd__text_add(text, "%s%s at %s", text->used ? ", " : "", tcp->names[rank],
                  tcp->addresses[rank]);
    if (peer->receiver && peer->sender && peer->sender->why[0])
        hvd__text_add(text,
                      " (which has called, but cannot be called back: "
                      "%s)",
                      peer->sender->why);
}

/* Calls back those who have called. Returns how many ranks are missing, and
 * names them. */
static int find_missing(struct hvd__tcp *tcp, char *list, size_t size)
{
    struct hvd__text text = hvd__text_at(list, size);
    int nmissing = 0;

    list[0] = '\0';
    for (int rank = 1; rank < tcp->base.size; rank++) {
        const struct hvd__tcp_peer *peer = &tcp->peers[rank];

        if (!peer->receiver)
            hvd__sender_free(tcp, rank);
        else if (!hvd__sender_of(tcp, rank))
            return HVD_ERR_MEMORY;
        if (peer->sender && peer->sender->stage == HVD__SENDER_OPEN)
            continue;
        if (++nmissing <= NAMED)
            add_missing(tcp, rank, &text);
    }
    if (nmissing > NAMED)
        hvd__text_add(&text, " and %d more", nmissing - NAMED);
    return nmissing;
}

static int start_all(struct hvd__tcp *tcp)
{
    const struct notice start = {.what = NOTICE_START};

    tcp->job.is_started = true;
    return notify_all(tcp, &start);
}

static int lead(struct hvd__tcp *tcp)
{
    struct hvd__meeting *meeting = &tcp->meeting;
    char missing[HVD__TCP_TEXT];
    int n = find_missing(tcp, missing, sizeof missing);

    if (n == 0)
        return start_all(tcp);
    if (n > 0 && strcmp(missing, meeting->missing) != 0) {
        struct notice notice = {.what = NOTICE_MISSING};

        snprintf(notice.text, sizeof notice.text, "%s", missing);
        memcpy(meeting->missing, missing, sizeof missing);
        return notify_all(tcp, &notice);
    }
    return n < 0 ? n : HVD_OK;
}

/* ----------------------------------------------------------------- the rest */

/* Writes whom this rank waits for. */
static void describe_wait(const struct hvd__tcp *tcp, char *text, size_t size)
{
    const struct hvd__sender *sender = tcp->peers[0].sender;

    if (tcp->meeting.missing[0])
        snprintf(text, size, "%s", tcp->meeting.missing);
    else if (tcp->base.rank != 0)
        snprintf(text, size, "%s at %s%s%s%s", tcp->names[0], tcp->addresses[0],
                 sender && sender->why[0] ? " (" : "",
                 sender ? sender->why : "",
                 sender && sender->why[0] ? ")" : "");
    else
        snprintf(text, size, "the others");
}

/* A rank that has been refused by rank 0 does not belong to the job. But those
 * who make a world of an elastic cluster know each other by its number: who
 * does not know it has been started at that address since the number was given
 * out, because the rank 0 that was meant has died. */
static int fail_refused(const struct hvd__tcp *tcp,
                        const struct hvd__sender *sender)
{
    if (tcp->lobby && sender->is_stranger)
        return hvd__fail(HVD_ERR_LOST,
                         "%s at %s has died and been started again while a "
                         "world was to begin with it",
                         tcp->names[0], tcp->addresses[0]);
    return hvd__fail(HVD_ERR_LAUNCH, "%s at %s refuses this process: %s",
                     tcp->names[0], tcp->addresses[0], sender->why);
}

static int follow(struct hvd__tcp *tcp)
{
    const struct hvd__meeting *meeting = &tcp->meeting;
    const struct hvd__sender *sender = hvd__sender_of(tcp, 0);

    if (!sender)
        return HVD_ERR_MEMORY;
    if (meeting->end_status < 0)
        return hvd__fail_text(meeting->end_status, meeting->end_text);
    if (sender->stage == HVD__SENDER_REFUSED)
        return fail_refused(tcp, sender);
    /* Rank 0 has gone, and what it said no longer holds. */
    if (sender->stage != HVD__SENDER_OPEN)
        tcp->meeting.missing[0] = '\0';
    return HVD_OK;
}

static int give_up(struct hvd__tcp *tcp, int64_t limit_ns)
{
    struct notice notice = {.what = NOTICE_END, .status = HVD_ERR_LOST};
    char missing[HVD__TCP_TEXT];

    describe_wait(tcp, missing, sizeof missing);
    snprintf(notice.text, sizeof notice.text,
             "hvd_init took %.0f s (HVD_START_TIME) and still waits for %.400s",
             (double)limit_ns * 1e-9, missing);
    if (tcp->base.rank == 0) {
        HVD_TRY(notify_all(tcp, &notice));
        hvd__tcp_drive(tcp, 0);
    }
    return hvd__fail_text(notice.status, notice.text);
}

static int meet(struct hvd__tcp *tcp, const struct hvd__tcp_options *options)
{
    const int64_t start = hvd__now_ns();
    int64_t reported = start;
    char missing[HVD__TCP_TEXT];

    for (;;) {
        int64_t now;

        HVD_TRY(hvd__tcp_drive(tcp, LOOK_MS));
        HVD_TRY(tcp->base.rank == 0 ? lead(tcp) : follow(tcp));
        if (tcp->job.is_started)
            return HVD_OK;
        HVD_TRY(tcp->asked.ask(tcp->asked.context));
        now = hvd__now_ns();
        if (options->limit_ns && now - start > options->limit_ns)
            return give_up(tcp, options->limit_ns);
        if (options->report_ns && now - reported > options->report_ns) {
            reported = now;
            describe_wait(tcp, missing, sizeof missing);
            hvd__log(HVD__LOG_WARNING, "hvd_init waits for %s", missing);
        }
    }
}

/* ------------------------------------------------------------------ opening */

char **hvd__tcp_copy_texts(const char *const *texts, int n)
{
    size_t bytes = (size_t)n * sizeof(char *);
    char **copies, *at;

    for (int i = 0; i < n; i++)
        bytes += strlen(texts[i]) + 1;
    copies = malloc(bytes);
    if (!copies)
        return NULL;
    at = (char *)(copies + n);
    for (int i = 0; i < n; i++) {
        copies[i] = at;
        at = stpcpy(at, texts[i]) + 1;
    }
    return copies;
}

static int fill(struct hvd__tcp *tcp, const struct hvd__tcp_options *options,
                const struct hvd__asked *asked)
{
    const int size = options->size;

    hvd__tcp_fill(tcp, options->rank, size);
    tcp->asked = *asked;
    tcp->fault = (struct hvd__fault){
        .grace_ns = options->grace_ns, .transport = "TCP", .peer = -1};
    tcp->job = (struct hvd__job){
        .rank = options->rank,
        .size = size,
        .cluster = options->cluster,
        .key_bytes = options->key_bytes,
    };
    tcp->is_local = !options->key;
    tcp->lobby = options->lobby;
    tcp->listener.watched =
        (struct hvd__watched_fd){HVD__FD_LISTENER, -1, NULL};
    tcp->received_end = &tcp->received;
    tcp->epoll = epoll_create1(EPOLL_CLOEXEC);
    tcp->peers = calloc((size_t)size, sizeof *tcp->peers);
    tcp->addresses = hvd__tcp_copy_texts(options->addresses, size);
    tcp->names = hvd__tcp_copy_texts(options->names, size);
    tcp->key = malloc(options->key_bytes + 1);
    if (!tcp->peers || !tcp->addresses || !tcp->names || !tcp->key)
        return hvd__fail_memory((size_t)size * sizeof *tcp->peers);
    if (tcp->epoll < 0)
        return hvd__fail(HVD_ERR_MEMORY, "epoll_create1 has no room");
    if (options->key)
        memcpy(tcp->key, options->key, options->key_bytes);
    tcp->job.key = tcp->key;
    for (int rank = 0; rank < size; rank++) {
        tcp->peers[rank].posted.end = &tcp->peers[rank].posted.first;
        tcp->peers[rank].unexpected_end = &tcp->peers[rank].unexpected;
    }
    if (options->rank == 0 &&
        !hvd__random(&tcp->job.session, sizeof tcp->job.session))
        return hvd__fail(HVD_ERR_INTERNAL, "the system has no random numbers");
    tcp->job.session |= options->rank == 0;
    return HVD_OK;
}

/* Raises the limit of open files, where that is allowed: every rank may call
 * every other one and be called by it. Rank 0 certainly is. */
static int make_room(const struct hvd__tcp *tcp)
{
    const rlim_t least = 2 * (rlim_t)(tcp->base.size - 1) + OTHER_FILES;
    const rlim_t wanted = least + STRANGERS;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted)
        return HVD_OK;
    if (tcp->base.rank == 0 && files.rlim_max < least)
        return hvd__fail(HVD_ERR_CONFIG,
                         "rank 0 of %d needs %llu open files, and this process "
                         "may have %llu: raise the limit (ulimit -Hn)",
                         tcp->base.size, (unsigned long long)least,
                         (unsigned long long)files.rlim_max);
    files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
    setrlimit(RLIMIT_NOFILE, &files);
    return HVD_OK;
}

int hvd__tcp_listen(const struct hvd__tcp_options *options,
                    const struct hvd__asked *asked, struct hvd__tcp **made)
{
    struct hvd__tcp *tcp = calloc(1, sizeof *tcp);
    int status;

    if (!tcp)
        return hvd__fail_memory(sizeof *tcp);
    tcp->epoll = -1;
    status = fill(tcp, options, asked);
    if (status == HVD_OK)
        status = make_room(tcp);
    if (status == HVD_OK)
        status = hvd__listener_open(tcp);
    if (status < 0) {
        tcp->base.close(&tcp->base);
        return status;
    }
    if (tcp->lobby)
        tcp->lobby->tcp = tcp;
    *made = tcp;
    return HVD_OK;
}

int hvd__tcp_open(const struct hvd__tcp_options *options,
                  const struct hvd__asked *asked,
                  struct hvd__transport **transport)
{
    struct hvd__tcp *tcp = NULL;
    int status;

    HVD_TRY(hvd__tcp_listen(options, asked, &tcp));
    status = meet(tcp, options);
    if (status < 0) {
        tcp->base.close(&tcp->base);
        return status;
    }
    *transport = &tcp->base;
    return HVD_OK;
}

/* The ranks meet as those of another job, so that none of an earlier generation
 * gets in. */
int hvd__tcp_shrink(struct hvd__transport *self, const struct hvd__shrink *to,
                    struct hvd__transport **made)
{
    const struct hvd__tcp *tcp = (const struct hvd__tcp *)self;
    const char **texts = calloc(2 * (size_t)to->n, sizeof *texts);
    struct hvd__tcp_options options = {
        .size = to->n,
        .addresses = texts,
        .cluster = hvd__mix(tcp->job.cluster + (uint64_t)to->generation),
        .key = tcp->is_local ? NULL : tcp->key,
        .key_bytes = tcp->job.key_bytes,
        .limit_ns = to->limit_ns,
        .report_ns = to->report_ns,
        .grace_ns = tcp->fault.grace_ns,
        .lobby = tcp->lobby,
    };
    int status;

    if (!texts)
        return hvd__fail_memory(2 * (size_t)to->n * sizeof *texts);
    options.names = texts + to->n;
    for (int i = 0; i < to->n; i++) {
        texts[i] = tcp->addresses[to->ranks[i]];
        texts[to->n + i] = tcp->names[to->ranks[i]];
        if (to->ranks[i] == self->rank)
            options.rank = i;
    }
    status = hvd__tcp_open(&options, to->asked, made);
    free(texts);
    return status;
}
