/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enter.c - a process of an elastic cluster finds the others, in hvd_init: the
 * calls, the notes and the clock of seeker.c, which decides. docs/ELASTIC.md
 * has the rules.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "transport/tcp/lobby.h"

/* Nobody has come for so long, so nobody may be about to. */
#define SETTLE_NS INT64_C(1000000000)
#define PORT_NS INT64_C(2000000000)
enum { LOOK_MS = 10, NAMED = 4 };

struct entering {
    struct hvd__lobby *lobby;
    struct hvd__tcp *phone;
    struct hvd__admission *admission;
    const struct hvd__lobby_limits *limits;
    struct hvd__seeker seeker;
    int64_t start_ns;
};

/* -------------------------------------------------------- one who is let in */

/* Ends the calls to all others. */
static void stop_calling(struct entering *e)
{
    for (int rank = 0; rank < e->lobby->job.size; rank++)
        hvd__sender_free(e->phone, rank);
}

/* The first who answers is the host. */
static int look_for_host(struct entering *e)
{
    struct hvd__lobby *l = e->lobby;

    for (int rank = 0; rank < l->job.size && l->host < 0; rank++) {
        const struct hvd__sender *sender;

        if (rank == l->job.rank)
            continue;
        sender = hvd__sender_of(e->phone, rank);
        if (!sender)
            return HVD_ERR_MEMORY;
        e->seeker.is_absent[rank] = sender->is_absent;
        if (sender->stage == HVD__SENDER_REFUSED)
            return hvd__fail(HVD_ERR_LAUNCH,
                             "%s at %s refuses this process: %s",
                             l->names[rank], l->addresses[rank], sender->why);
        if (sender->stage == HVD__SENDER_OPEN) {
            l->host = hvd__sender_take(e->phone, rank);
            l->host_rank = rank;
        }
    }
    if (l->host < 0)
        return HVD_OK;
    hvd__seeker_find(&e->seeker, l->host_rank, hvd__now_ns());
    stop_calling(e);
    hvd__lobby_shed(l);
    return HVD_OK;
}

/* Reads the ranks that the host lets in, which follow its note. Returns whether
 * they were there. */
static bool read_admission(struct entering *e, const struct hvd__note *note)
{
    struct hvd__admission *a = e->admission;
    int got = 0;

    if (note->n < 1 || note->n > (uint32_t)e->lobby->job.size)
        return false;
    /* The host has sent the ranks together with the note. */
    for (int i = 0; i < 100 && got == 0; i++) {
        got = hvd__note_read(e->lobby->host, a->ranks,
                             note->n * sizeof *a->ranks);
        if (got == 0)
            poll(NULL, 0, 1);
    }
    a->number = note->number;
    a->generation = note->generation;
    a->nold = note->nold;
    a->n = got > 0 ? (int)note->n : 0;
    return got > 0;
}

static int end_with_job(const struct hvd__lobby *l)
{
    return hvd__fail(HVD_ERR_SHUTDOWN,
                     "the job has ended, and %s has not let this process in "
                     "before",
                     l->names[l->host_rank]);
}

/* Leaves the host, which is gone, or has sent nonsense. */
static void lose_host(struct entering *e)
{
    hvd__seeker_lose(&e->seeker);
    hvd__lobby_leave(e->lobby);
}

/* Listens to the host. Returns 1 if it lets this process in. */
static int hear_host(struct entering *e)
{
    const struct hvd__note pong = {.what = HVD__NOTE_PONG};
    struct hvd__lobby *l = e->lobby;
    struct hvd__note note;
    const int got = hvd__note_read(l->host, &note, sizeof note);
    enum hvd__seeker_heard heard;

    if (got == 0)
        return 0;
    if (got < 0 ||
        (note.what == HVD__NOTE_ADMIT && !read_admission(e, &note))) {
        lose_host(e);
        return 0;
    }
    heard = hvd__seeker_hear(&e->seeker, (enum hvd__note_kind)note.what,
                             e->admission, hvd__now_ns());
    if (heard == HVD__SEEKER_ENDS)
        return end_with_job(l);
    if (heard == HVD__SEEKER_LOSES ||
        (heard == HVD__SEEKER_ANSWERS && !hvd__note_send(l->host, &pong, NULL)))
        lose_host(e);
    return heard == HVD__SEEKER_ENTERS;
}

/* --------------------------------------------------- one who lets others in */

/* Lets in those who wait and answer, as many as may be in a world. Returns 1 if
 * these are enough. */
static int found(struct entering *e)
{
    struct hvd__lobby *l = e->lobby;
    struct hvd__admission *a = e->admission;
    int64_t *tickets = calloc((size_t)l->job.size, sizeof *tickets);
    int status, n;

    if (!tickets)
        return hvd__fail_memory((size_t)l->job.size * sizeof *tickets);
    n = hvd__lobby_list(l, tickets);
    status = hvd__seeker_found(&e->seeker, tickets, n, a);
    if (status && !hvd__random(&a->number, sizeof a->number))
        status =
            hvd__fail(HVD_ERR_INTERNAL, "the system has no random numbers");
    if (status > 0)
        hvd__lobby_admit(l, tickets, a);
    free(tickets);
    return status;
}

/* ------------------------------------------------------------------ waiting */

/* Names those of the cluster who are not here. */
static void add_missing(const struct hvd__lobby *l, struct hvd__text *text)
{
    int n = 0;

    for (int rank = 1; rank < l->job.size; rank++)
        if (l->fds[rank] < 0 && n++ < NAMED)
            hvd__text_add(text, "%s%s at %s", n > 1 ? ", " : "", l->names[rank],
                          l->addresses[rank]);
    if (n > NAMED)
        hvd__text_add(text, " and %d more", n - NAMED);
}

static void describe_wait(const struct entering *e, char *bytes, size_t size)
{
    const struct hvd__lobby *l = e->lobby;
    const struct hvd__sender *sender = e->phone->peers[0].sender;
    struct hvd__text text = hvd__text_at(bytes, size);

    bytes[0] = '\0';
    if (l->host >= 0)
        hvd__text_add(&text, "%s at %s to let it in", l->names[l->host_rank],
                      l->addresses[l->host_rank]);
    else if (l->job.rank == 0)
        add_missing(l, &text);
    else
        hvd__text_add(&text, "%s at %s%s%s%s", l->names[0], l->addresses[0],
                      sender && sender->why[0] ? " (" : "",
                      sender ? sender->why : "",
                      sender && sender->why[0] ? ")" : "");
}

static int give_up(const struct entering *e)
{
    char text[HVD__TCP_TEXT];

    describe_wait(e, text, sizeof text);
    return hvd__fail(HVD_ERR_LOST,
                     "hvd_init took %.0f s (HVD_START_TIME) and still waits "
                     "for %.400s",
                     (double)e->limits->limit_ns * 1e-9, text);
}

static void report(const struct entering *e)
{
    char text[HVD__TCP_TEXT];

    describe_wait(e, text, sizeof text);
    hvd__log(HVD__LOG_WARNING, "hvd_init waits for %s", text);
}

/* Waits until something has come, for a moment. */
static int wait_a_moment(struct entering *e)
{
    struct pollfd polls[2] = {{.fd = e->phone->epoll, .events = POLLIN},
                              {.fd = e->lobby->host, .events = POLLIN}};

    poll(polls, 2, LOOK_MS);
    return hvd__tcp_drive(e->phone, 0);
}

/* Takes the step that the seeker says is due. Returns 1 if this process has
 * founded a world. */
static int step(struct entering *e)
{
    switch (hvd__seeker_step(&e->seeker, hvd__now_ns())) {
    case HVD__SEEKER_LEAVES: hvd__lobby_leave(e->lobby); return 0;
    case HVD__SEEKER_FOUNDS: return found(e);
    case HVD__SEEKER_REPORTS: report(e); return 0;
    case HVD__SEEKER_GIVES_UP: return give_up(e);
    default: return 0;
    }
}

static int wait_to_enter(struct entering *e, const struct hvd__asked *asked)
{
    struct hvd__lobby *l = e->lobby;
    int entered = 0;

    hvd__seeker_begin(&e->seeker, e->start_ns);
    while (entered == 0) {
        HVD_TRY(wait_a_moment(e));
        if (l->host < 0)
            HVD_TRY(look_for_host(e));
        if (l->host >= 0)
            entered = hear_host(e);
        if (entered == 0)
            entered = step(e);
        if (entered == 0)
            HVD_TRY(asked->ask(asked->context));
    }
    return entered;
}

/* A process that has just been killed may still have the port. */
static int open_phone(struct entering *e, const struct hvd__asked *asked)
{
    int status;

    for (;;) {
        status = hvd__lobby_phone(e->lobby, asked, &e->phone);
        if (status != HVD_ERR_CONFIG || hvd__now_ns() - e->start_ns > PORT_NS)
            return status;
        HVD_TRY(asked->ask(asked->context));
        poll(NULL, 0, LOOK_MS);
    }
}

int hvd__lobby_enter(struct hvd__lobby *lobby,
                     const struct hvd__lobby_limits *limits,
                     const struct hvd__asked *asked,
                     struct hvd__admission *admission)
{
    const int size = lobby->job.size;
    struct entering e = {
        .lobby = lobby,
        .admission = admission,
        .limits = limits,
        .seeker = {.guests = &lobby->guests,
                   .rank = lobby->job.rank,
                   .least = lobby->least,
                   .times = {limits->limit_ns, limits->report_ns,
                             limits->silence_ns, SETTLE_NS}},
        .start_ns = hvd__now_ns(),
    };
    int status;

    admission->ranks = calloc((size_t)size, sizeof(int));
    e.seeker.is_absent = calloc((size_t)size, sizeof *e.seeker.is_absent);
    if (!admission->ranks || !e.seeker.is_absent)
        status = hvd__fail_memory((size_t)size * sizeof(int));
    else
        status = open_phone(&e, asked);
    if (status == HVD_OK) {
        status = wait_to_enter(&e, asked);
        e.phone->base.close(&e.phone->base);
    }
    free(e.seeker.is_absent);
    return status < 0 ? status : HVD_OK;
}
