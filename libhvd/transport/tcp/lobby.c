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
enum { MOST_MISSED = 3 };

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
    for (int rank = 0; rank < l->job.size; rank++)
        l->is_member[rank] = false;
    for (int i = 0; i < n; i++)
        l->is_member[ranks[i]] = true;
    l->nmembers = n;
    l->is_open = true;
}

void hvd__lobby_shut(struct hvd__lobby *l)
{
    for (int rank = 0; rank < l->job.size; rank++)
        hvd__lobby_drop(l, rank);
    l->is_open = false;
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

void hvd__lobby_drop(struct hvd__lobby *l, int rank)
{
    struct hvd__guest *guest = &l->guests[rank];

    if (guest->fd < 0)
        return;
    close(guest->fd);
    *guest = (struct hvd__guest){.fd = -1};
    atomic_fetch_sub(&l->nguests, 1);
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
    enum hvd__answer found = hvd__hello_identify(hello, &l->job);
    const struct hvd__guest *guest;

    if (found != HVD__ANSWER_WELCOME)
        return found;
    if (hello->from == (uint32_t)l->job.rank)
        return HVD__ANSWER_OTHER;
    if (!l->is_open)
        return HVD__ANSWER_LATER;
    guest = &l->guests[hello->from];
    if (guest->fd >= 0 && is_gone(guest->fd))
        hvd__lobby_drop(l, (int)hello->from);
    return l->is_member[hello->from] || guest->fd >= 0 ? HVD__ANSWER_TAKEN
                                                       : HVD__ANSWER_WELCOME;
}

void hvd__lobby_take(struct hvd__lobby *l, const struct hvd__hello *hello,
                     int fd)
{
    int64_t ticket;

    memcpy(&ticket, hello->nonce, sizeof ticket);
    hvd__lobby_drop(l, (int)hello->from);
    l->guests[hello->from] =
        (struct hvd__guest){.fd = fd, .ticket = (ticket & INT64_MAX) | 1};
    atomic_fetch_add(&l->nguests, 1);
}

int hvd__lobby_room(const struct hvd__lobby *l)
{
    return l->most > l->nmembers ? l->most - l->nmembers : 0;
}

int hvd__lobby_count(const struct hvd__lobby *l)
{
    return atomic_load(&l->nguests);
}

/* Reads what a guest has sent. */
static void hear_guest(struct hvd__lobby *l, int rank)
{
    struct hvd__guest *guest = &l->guests[rank];
    struct hvd__note note;
    int got = 1;

    while (guest->fd >= 0 && got > 0) {
        got = hvd__note_read(guest->fd, &note, sizeof note);
        if (got > 0)
            guest->has_answered = true;
        else if (got < 0)
            hvd__lobby_drop(l, rank);
    }
}

/* Returns how many guests have not answered. */
static int hear_guests(struct hvd__lobby *l)
{
    int n = 0;

    for (int rank = 0; rank < l->job.size; rank++) {
        hear_guest(l, rank);
        n += l->guests[rank].fd >= 0 && !l->guests[rank].has_answered;
    }
    return n;
}

int hvd__lobby_list(struct hvd__lobby *l, int64_t *tickets)
{
    const struct hvd__note ping = {.what = HVD__NOTE_PING};
    int64_t end = hvd__now_ns() + ANSWER_NS;
    int n = 0;

    memset(tickets, 0, (size_t)l->job.size * sizeof *tickets);
    if (hvd__lobby_count(l) == 0)
        return 0;
    hear_guests(l);
    for (int rank = 0; rank < l->job.size; rank++) {
        l->guests[rank].has_answered = false;
        if (l->guests[rank].fd >= 0 &&
            !hvd__note_send(l->guests[rank].fd, &ping, NULL))
            hvd__lobby_drop(l, rank);
    }
    while (hear_guests(l) > 0 && hvd__now_ns() < end)
        poll(NULL, 0, 1);
    for (int rank = 0; rank < l->job.size; rank++) {
        struct hvd__guest *guest = &l->guests[rank];

        if (guest->fd >= 0 && guest->has_answered) {
            tickets[rank] = guest->ticket;
            guest->nmissed = 0;
            n++;
        } else if (guest->fd >= 0 && ++guest->nmissed == MOST_MISSED) {
            hvd__lobby_drop(l, rank);
        }
    }
    return n;
}

static bool is_admitted(const struct hvd__admission *admission, int rank)
{
    for (int i = 0; i < admission->n; i++)
        if (admission->ranks[i] == rank)
            return true;
    return false;
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

    for (int rank = 0; rank < l->job.size; rank++) {
        struct hvd__guest *guest = &l->guests[rank];

        if (guest->fd < 0 || guest->ticket != tickets[rank] ||
            !is_admitted(admission, rank))
            continue;
        guest->is_admitted = true;
        hvd__note_send(guest->fd, &note, admission->ranks);
    }
}

int hvd__lobby_look(const struct hvd__lobby *l)
{
    if (l->host >= 0 && is_gone(l->host))
        return hvd__fail(HVD_ERR_LOST,
                         "%s has not taken this process into its world",
                         l->names[l->host_rank]);
    for (int rank = 0; rank < l->job.size; rank++)
        if (l->guests[rank].is_admitted && is_gone(l->guests[rank].fd))
            return hvd__fail(HVD_ERR_LOST, "%s, which was to join, is gone",
                             l->names[rank]);
    return HVD_OK;
}

void hvd__lobby_settle(struct hvd__lobby *l)
{
    for (int rank = 0; rank < l->job.size; rank++)
        if (l->guests[rank].is_admitted)
            hvd__lobby_drop(l, rank);
    hvd__lobby_leave(l);
}

void hvd__lobby_end(struct hvd__lobby *l)
{
    const struct hvd__note end = {.what = HVD__NOTE_END};

    for (int rank = 0; rank < l->job.size; rank++)
        if (l->guests[rank].fd >= 0)
            hvd__note_send(l->guests[rank].fd, &end, NULL);
}
