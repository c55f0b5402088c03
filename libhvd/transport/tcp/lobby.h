/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lobby.h - what the files of this room know of a lobby. A process that wants
 * to join calls the others with a handshake of its own, in which it names a
 * cluster that no transport has (job.cluster); who is let in so is a guest, and
 * waits on that connection. The one who holds it is its host.
 */
#ifndef HVD_TRANSPORT_TCP_LOBBY_H
#define HVD_TRANSPORT_TCP_LOBBY_H

#include "transport/tcp/guests.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/seeker.h"
#include "transport/tcp/tcp.h"

/* Guests and hosts tell each other notes; n numbers of 32 bits follow one. */
struct hvd__note {
    uint32_t what, n; /* what: an enum hvd__note_kind */
    uint64_t number;
    int32_t generation, nold;
};

struct hvd__lobby {
    struct hvd__job job; /* that of guests: ranks are those of the cluster */
    void *key;           /* owned */
    uint64_t base;       /* fingerprint of the cluster */
    bool is_local;
    int least;                 /* ranks that the first world needs */
    char **addresses, **names; /* owned, [job.size] */
    struct hvd__guests guests; /* with the two arrays behind it, owned */
    bool *is_member;
    struct hvd__guest *list;
    int *fds; /* owned, [job.size]: the guests' connections; -1: none */
    int host; /* connection; -1: none */
    int host_rank;
    struct hvd__tcp *tcp; /* borrowed: the transport that listens; NULL: none */
    int listener; /* owned socket, on which the transports of this process
                     listen one after another; -1: none has yet */
};

/* Returns the cluster that guests of a cluster name. */
uint64_t hvd__lobby_mark(uint64_t cluster);

/* Judges a hello that names job.cluster, but not its key. */
enum hvd__answer hvd__lobby_judge(struct hvd__lobby *lobby,
                                  const struct hvd__hello *hello);
/* Takes a connection whose other side has proved who it is. */
void hvd__lobby_take(struct hvd__lobby *lobby, const struct hvd__hello *hello,
                     int fd);

/* Sends a note, and n numbers behind it. Returns whether that was possible. */
bool hvd__note_send(int fd, const struct hvd__note *note,
                    const int32_t *numbers);
/* Reads n bytes if they are there: returns 1, 0 if not yet, -1 if the other
 * side is gone. */
int hvd__note_read(int fd, void *bytes, size_t n);

/* Closes the connections of those who are guests no more. */
void hvd__lobby_shed(struct hvd__lobby *lobby);
void hvd__lobby_leave(struct hvd__lobby *lobby);
/* Makes a transport for the calls of one who wants to join; it also listens. */
int hvd__lobby_phone(struct hvd__lobby *lobby, const struct hvd__asked *asked,
                     struct hvd__tcp **phone);

#endif
