/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lobby.c - where processes of a cluster wait until a world lets them in.
 *
 * Every rank of an elastic cluster has a lobby, which outlives its transports.
 * A process that comes late calls all addresses of the cluster (enter.c). The
 * rank that answers first is its host: it keeps the connection, and lists the
 * guest when its world looks for guests. When the ranks of a world have agreed
 * whom they let in, the hosts tell their guests who the ranks of the next world
 * are and which number it has, and all of them meet as for any transport
 * (open.c). The number makes up the fingerprint by which they know each other,
 * and no other world has it, so nobody comes to the wrong one.
 *
 * A guest that has gone is seen at once, since its connection ends. One that is
 * stopped does not answer a ping, and is not listed. The other way round, a
 * guest whose host has gone calls the others again.
 *
 * guests.c decides who is a guest, and what follows from an answer. This file
 * has the connections: lobby->fds has those of the guests in its list.
 *
 * Only the driver of the engine may use a lobby, and whoever starts or ends a
 * world; nguests is for all.
 */
#include "transport/tcp/lobby.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fingerprint.h"
#include "base/status.h"

#define MARK UINT64_C(0x6c6f626279)
/* A guest is given this time to answer. */
#define ANSWER_NS INT64_C(100000000)

uint64_t hvd__lobby_mark(uint64_t cluster)
{
    return hvd__mix(cluster ^ MARK);
}

/* ------------------------------------------------------------------ members */

int hvd__lobby_size(const struct hvd__lobby *l)
{
    return l->job.size;
}

void hvd__lobby_members(struct hvd__lobby *l, const int *ranks, int n)
{
    hvd__guests_members(&l->guests, ranks, n);
}

void hvd__lobby_shut(struct hvd__lobby *l)
{
    hvd__guests_shut(&l->guests);
    hvd__lobby_shed(l);
}

/* -------------------------------------------------------------------- notes */

bool hvd__note_send(int fd, const struct hvd__note *note,
                    const int32_t *numbers)
{
    struct iovec pieces[2] = {
        {(void *)(uintptr_t)note, sizeof *note},
        {(void *)(uintptr_t)numbers, note->n * sizeof *numbers},
    };
    const struct msghdr header = {.msg_iov = pieces,
                                  .msg_iovlen = note->n > 0 ? 2 : 1};

    /* It fits into the kernel's buffer unless the other side reads nothing. */
    return sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) ==
           (ssize_t)(pieces[0].iov_len + pieces[1].iov_len);
}

int hvd__note_read(int fd, void *bytes, size_t n)
{
    ssize_t got = recv(fd, bytes, n, MSG_PEEK | MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0)
        return -1;
    if ((size_t)got < n)
        return 0;
    return recv(fd, bytes, n, MSG_DONTWAIT) == (ssize_t)n ? 1 : -1;
}

static bool is_gone(int fd)
{
    char byte;
    ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

/* ------------------------------------------------------------------- guests */

void hvd__lobby_shed(struct hvd__lobby *l)
{
    for (int rank = 0; rank < l->job.size; rank++) {
        if (l->fds[rank] < 0 || l->list[rank].ticket != 0)
            continue;
        close(l->fds[rank]);
        l->fds[rank] = -1;
    }
}

/* Forgets a guest that is gone. */
static void drop(struct hvd__lobby *l, int rank)
{
    hvd__guests_drop(&l->guests, rank);
    hvd__lobby_shed(l);
}

void hvd__lobby_leave(struct hvd__lobby *l)
{
    if (l->host >= 0)
        close(l->host);
    l->host = -1;
}

enum hvd__answer hvd__lobby_judge(struct hvd__lobby *l,
                                  const struct hvd__hello *hello)
{
    const enum hvd__answer found = hvd__hello_identify(hello, &l->job);
    const int rank = (int)hello->from;

    if (found != HVD__ANSWER_WELCOME)
        return found;
    if (rank == l->job.rank)
        return HVD__ANSWER_OTHER;
    if (l->fds[rank] >= 0 && is_gone(l->fds[rank]))
        drop(l, rank);
    return hvd__guests_judge(&l->guests, rank);
}

void hvd__lobby_take(struct hvd__lobby *l, const struct hvd__hello *hello,
                     int fd)
{
    const int rank = (int)hello->from;
    int64_t ticket;

    memcpy(&ticket, hello->nonce, sizeof ticket);
    drop(l, rank);
    hvd__guests_take(&l->guests, rank, (ticket & INT64_MAX) | 1);
    l->fds[rank] = fd;
}

int hvd__lobby_room(const struct hvd__lobby *l)
{
    return hvd__guests_room(&l->guests);
}

int hvd__lobby_count(const struct hvd__lobby *l)
{
    return atomic_load(&l->guests.count);
}

/* Reads what a guest has sent. */
static void hear_guest(struct hvd__lobby *l, int rank)
{
    struct hvd__note note;
    int got = 1;

    while (l->fds[rank] >= 0 && got > 0) {
        got = hvd__note_read(l->fds[rank], &note, sizeof note);
        if (got > 0)
            hvd__guests_hear(&l->guests, rank);
        else if (got < 0)
            drop(l, rank);
    }
}

/* Returns how many guests have not answered. */
static int hear_guests(struct hvd__lobby *l)
{
    for (int rank = 0; rank < l->job.size; rank++)
        hear_guest(l, rank);
    return hvd__guests_awaited(&l->guests);
}

static void ping_guests(struct hvd__lobby *l)
{
    const struct hvd__note ping = {.what = HVD__NOTE_PING};

    hear_guests(l);
    hvd__guests_ping(&l->guests);
    for (int rank = 0; rank < l->job.size; rank++)
        if (l->fds[rank] >= 0 && !hvd__note_send(l->fds[rank], &ping, NULL))
            drop(l, rank);
}

int hvd__lobby_list(struct hvd__lobby *l, int64_t *tickets)
{
    const int64_t end = hvd__now_ns() + ANSWER_NS;
    int n;

    memset(tickets, 0, (size_t)l->job.size * sizeof *tickets);
    if (hvd__lobby_count(l) == 0)
        return 0;
    ping_guests(l);
    while (hear_guests(l) > 0 && hvd__now_ns() < end)
        poll(NULL, 0, 1);
    n = hvd__guests_list(&l->guests, tickets);
    hvd__lobby_shed(l);
    return n;
}

void hvd__lobby_admit(struct hvd__lobby *l, const int64_t *tickets,
                      const struct hvd__admission *admission)
{
    const struct hvd__note note = {
        .what = HVD__NOTE_ADMIT,
        .n = (uint32_t)admission->n,
        .number = admission->number,
        .generation = admission->generation,
        .nold = admission->nold,
    };

    for (int i = 0; i < admission->n; i++) {
        const int rank = admission->ranks[i];

        if (hvd__guests_admit(&l->guests, rank, tickets[rank]))
            hvd__note_send(l->fds[rank], &note, admission->ranks);
    }
}

int hvd__lobby_look(const struct hvd__lobby *l)
{
    if (l->host >= 0 && is_gone(l->host))
        return hvd__fail(HVD_ERR_LOST,
                         "%s has not taken this process into its world",
                         l->names[l->host_rank]);
    for (int rank = 0; rank < l->job.size; rank++)
        if (l->list[rank].is_admitted && is_gone(l->fds[rank]))
            return hvd__fail(HVD_ERR_LOST, "%s, which was to join, is gone",
                             l->names[rank]);
    return HVD_OK;
}

void hvd__lobby_settle(struct hvd__lobby *l)
{
    hvd__guests_settle(&l->guests);
    hvd__lobby_shed(l);
    hvd__lobby_leave(l);
}

void hvd__lobby_end(struct hvd__lobby *l)
{
    const struct hvd__note end = {.what = HVD__NOTE_END};

    for (int rank = 0; rank < l->job.size; rank++)
        if (l->fds[rank] >= 0)
            hvd__note_send(l->fds[rank], &end, NULL);
}
