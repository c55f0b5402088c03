/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enter.c - a process of an elastic cluster finds the others, in hvd_init.
 *
 * It calls all addresses. If a world is there, one of its ranks becomes this
 * process's host, and lets it in when that world grows. If none is, rank 0 of
 * the cluster is the host of all: it founds the first world when all are there,
 * or when the least number is, nobody has come for a while, and nothing listens
 * at the addresses of the others. So there is never a second world beside one
 * that runs: whoever is in a world listens, and a process that is called and
 * does not answer is not absent.
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
    int64_t start_ns;             /* since when it looks for a world */
    int64_t heard_ns;             /* when it last heard its host */
    int64_t left_ns;              /* when it last left one that said nothing */
    int64_t reported_ns, came_ns; /* when the last guest came */
    int nguests;
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
    e->heard_ns = hvd__now_ns();
    /* This process will found no world: those who wait here find the one that
     * runs, too. */
    stop_calling(e);
    l->is_open = false;
    for (int rank = 0; rank < l->job.size; rank++)
        hvd__lobby_drop(l, rank);
    return HVD_OK;
}

/* Takes whom the host lets in. Returns 1 if that is right, 0 if not. */
static int take_admission(struct entering *e, const struct hvd__note *note)
{
    struct hvd__admission *a = e->admission;
    bool is_in = false;
    int got = 0;

    if (note->n < 1 || note->n > (uint32_t)e->lobby->job.size || note->nold < 0)
        return 0;
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
    a->n = (int)note->n;
    for (int i = 0; i < a->n && got > 0; i++) {
        if (a->ranks[i] < 0 || a->ranks[i] >= e->lobby->job.size)
            return 0;
        is_in |= a->ranks[i] == e->lobby->job.rank;
    }
    return got > 0 && is_in;
}

/* Returns whether the host has said nothing for so long that it may be stopped
 * or cut off, while others of its world go on. It may also be that the world
 * looks for guests more rarely than that: then it takes this one again. */
static bool is_mute(const struct entering *e)
{
    return e->limits->silence_ns > 0 &&
           hvd__now_ns() - e->heard_ns > e->limits->silence_ns;
}

/* Listens to the host. Returns 1 if it lets this process in. */
static int hear_host(struct entering *e)
{
    struct hvd__lobby *l = e->lobby;
    const struct hvd__note pong = {.what = HVD__NOTE_PONG};
    struct hvd__note note;
    int got = hvd__note_read(l->host, &note, sizeof note);

    if (got > 0 && note.what == HVD__NOTE_END)
        return hvd__fail(HVD_ERR_SHUTDOWN,
                         "the job has ended, and %s has not let this process "
                         "in before",
                         l->names[l->host_rank]);
    if (got > 0 && note.what == HVD__NOTE_ADMIT)
        got = take_admission(e, &note) ? 2 : -1;
    else if (got > 0 && !hvd__note_send(l->host, &pong, NULL))
        got = -1;
    /* Only a rank of a world, or one that founds it, says anything: this
     * process looks for the others of that world from now on. */
    if (got > 0)
        e->heard_ns = e->start_ns = hvd__now_ns();
    if (got == 0 && is_mute(e)) {
        e->left_ns = hvd__now_ns();
        got = -1;
    }
    if (got < 0)
        hvd__lobby_leave(l);
    return got == 2;
}

/* --------------------------------------------------- one who lets others in */

/* Returns whether nothing listens where a rank would. */
static bool is_absent(const struct entering *e, int rank)
{
    const struct hvd__sender *sender = e->phone->peers[rank].sender;

    return sender && sender->is_absent;
}

static bool may_found(struct entering *e)
{
    struct hvd__lobby *l = e->lobby;
    int64_t now = hvd__now_ns();
    int n = hvd__lobby_count(l);

    if (n != e->nguests)
        e->came_ns = now;
    e->nguests = n;
    if (n + 1 == l->job.size)
        return true;
    if (n + 1 < l->least || now - e->came_ns < SETTLE_NS)
        return false;
    for (int rank = 1; rank < l->job.size; rank++)
        if (l->guests[rank].fd < 0 && !is_absent(e, rank))
            return false;
    return true;
}

/* Lets in those who wait and answer, as many as may be in a world. Returns 1 if
 * these are enough. */
static int found(struct entering *e)
{
    struct hvd__lobby *l = e->lobby;
    struct hvd__admission *a = e->admission;
    int64_t *tickets = calloc((size_t)l->job.size, sizeof *tickets);
    int n;

    if (!tickets)
        return hvd__fail_memory((size_t)l->job.size * sizeof *tickets);
    n = hvd__lobby_list(l, tickets);
    if (n + 1 < l->least || n < e->nguests) {
        free(tickets);
        return 0;
    }
    a->n = 0;
    a->nold = a->generation = 0;
    for (int rank = 0; rank < l->job.size && a->n < l->most; rank++)
        if (rank == l->job.rank || tickets[rank] != 0)
            a->ranks[a->n++] = rank;
    if (!hvd__random(&a->number, sizeof a->number)) {
        free(tickets);
        return hvd__fail(HVD_ERR_INTERNAL, "the system has no random numbers");
    }
    hvd__lobby_admit(l, tickets, a);
    free(tickets);
    return 1;
}

/* ------------------------------------------------------------------ waiting */

/* Names those of the cluster who are not here. */
static void add_missing(const struct hvd__lobby *l, struct hvd__text *text)
{
    int n = 0;

    for (int rank = 1; rank < l->job.size; rank++)
        if (l->guests[rank].fd < 0 && n++ < NAMED)
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

static int look_at_time(struct entering *e)
{
    int64_t now = hvd__now_ns(), limit = e->limits->limit_ns;
    char text[HVD__TCP_TEXT];

    /* One that has left its host is given time to find another one. */
    if (limit && e->lobby->host < 0 && now - e->start_ns > limit &&
        (e->left_ns == 0 || now - e->left_ns > e->limits->silence_ns)) {
        describe_wait(e, text, sizeof text);
        return hvd__fail(HVD_ERR_LOST,
                         "hvd_init took %.0f s (HVD_START_TIME) and still "
                         "waits for %.400s",
                         (double)limit * 1e-9, text);
    }
    if (e->limits->report_ns && now - e->reported_ns > e->limits->report_ns) {
        e->reported_ns = now;
        describe_wait(e, text, sizeof text);
        hvd__log(HVD__LOG_WARNING, "hvd_init waits for %s", text);
    }
    return HVD_OK;
}

/* Waits until something has come, for a moment. */
static int wait_a_moment(struct entering *e)
{
    struct pollfd polls[2] = {{.fd = e->phone->epoll, .events = POLLIN},
                              {.fd = e->lobby->host, .events = POLLIN}};

    poll(polls, 2, LOOK_MS);
    return hvd__tcp_drive(e->phone, 0);
}

static int wait_to_enter(struct entering *e, const struct hvd__asked *asked)
{
    struct hvd__lobby *l = e->lobby;

    for (;;) {
        int entered = 0;

        HVD_TRY(wait_a_moment(e));
        if (l->host < 0) {
            l->is_open = l->job.rank == 0;
            HVD_TRY(look_for_host(e));
        }
        if (l->host >= 0)
            entered = hear_host(e);
        else if (l->is_open && may_found(e))
            entered = found(e);
        if (entered != 0)
            return entered;
        HVD_TRY(asked->ask(asked->context));
        HVD_TRY(look_at_time(e));
    }
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
    struct entering e = {
        .lobby = lobby, .admission = admission, .limits = limits};
    int status;

    e.start_ns = e.reported_ns = e.came_ns = hvd__now_ns();
    admission->ranks = calloc((size_t)lobby->job.size, sizeof(int));
    if (!admission->ranks)
        return hvd__fail_memory((size_t)lobby->job.size * sizeof(int));
    status = open_phone(&e, asked);
    if (status < 0)
        return status;
    status = wait_to_enter(&e, asked);
    e.phone->base.close(&e.phone->base);
    return status < 0 ? status : HVD_OK;
}
