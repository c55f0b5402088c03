/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/door.h"

#include "base/clock.h"
#include "base/ip_socket.h"
#include "output/problem.h"
#include "transport/tcp/address.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/lookup.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 128, AT_ONCE = 128 };
#define LIMIT_NS INT64_C(5000000000)
#define LOG_INTERVAL_NS INT64_C(10000000000)

/* Somebody at the door. */
struct caller {
    int fd; /* owned */
    bool is_challenged;
    size_t got; /* bytes of the record that comes */
    int64_t until_ns;
    char from[DOOR_ADDRESS];
    struct hvd__hello hello;
    struct hvd__challenge challenge;
    uint8_t proof[HVD__PROOF_BYTES];
};

struct remote_door {
    const struct remote_party *party; /* borrowed until door_close */
    struct hvd__job job;
    int fd;                        /* owned */
    struct sockaddr_storage place; /* where it listens */
    socklen_t place_bytes;
    int ncallers;
    struct caller callers[DOOR_MOST]; /* the oldest first */
    int64_t refused, logged_ns;
};

/* ------------------------------------------------------------------ opening */

/* Makes a socket at a place. Returns 0, or a negative errno. */
static int bind_to(const struct sockaddr_storage *place, socklen_t size,
                   int *fd)
{
    const int yes = 1;

    *fd =
        socket(place->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return -errno;
    setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    return bind(*fd, (const struct sockaddr *)place, size) == 0 ? 0 : -errno;
}

/* Keeps the text of a negative errno with which no socket could be had. */
static int fail_place(const struct remote_party *party, int port, int status)
{
    const char *address = party_address(party, party_rank(party));

    if (status == -EADDRINUSE)
        return problem_set("cannot listen on %s%s: a process uses that port; "
                           "does this server run already?",
                           address, port > 0 ? " (--job-port)" : "");
    if (status == -EADDRNOTAVAIL)
        return problem_set("cannot listen on %s: the address is not one of "
                           "this host; is this the host of this task?",
                           address);
    return problem_set("cannot listen on %s: %s", address, strerror(-status));
}

/* Listens at one of the places that the name of this process's host leads to,
 * and keeps which. */
static int take_place(struct remote_door *door, const struct addrinfo *found)
{
    const struct remote_party *party = door->party;
    size_t key_bytes;
    int status = -EADDRNOTAVAIL;

    for (const struct addrinfo *at = found; at && status < 0;
         at = at->ai_next) {
        if (!party_key(party, &key_bytes) &&
            !hvd__address_is_loopback(at->ai_addr))
            return problem_set("others than this host can reach %s: give all "
                               "servers and clients a key "
                               "(HVD_JOB_KEY_FILE), or use addresses of the "
                               "loopback interface",
                               party_address(party, party_rank(party)));
        memcpy(&door->place, at->ai_addr, at->ai_addrlen);
        door->place_bytes = at->ai_addrlen;
        status = bind_to(&door->place, door->place_bytes, &door->fd);
        if (status == 0 && listen(door->fd, BACKLOG) != 0)
            status = -errno;
        if (status < 0 && door->fd >= 0)
            close(door->fd);
        if (status == -EADDRINUSE)
            break;
    }
    return status < 0 ? fail_place(party, 0, status) : 0;
}

int door_open(const struct remote_party *party, struct remote_door **made)
{
    const char *address = party_address(party, party_rank(party));
    struct remote_door *door = calloc(1, sizeof *door);
    struct addrinfo *found;
    const char *problem;
    int status;

    if (!door)
        return problem_set("no memory for the server");
    door->party = party;
    party_job(party, party_rank(party), &door->job);
    problem = hvd__lookup_wait(address, &found);
    if (problem) {
        free(door);
        return problem_set("the address %s: %s", address, problem);
    }
    status = take_place(door, found);
    freeaddrinfo(found);
    if (status == 0)
        *made = door;
    else
        free(door);
    return status;
}

static void set_port(struct sockaddr_storage *place, int port)
{
    if (place->ss_family == AF_INET)
        ((struct sockaddr_in *)(void *)place)->sin_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in6 *)(void *)place)->sin6_port =
            htons((uint16_t)port);
}

int door_reserve_port(const struct remote_door *door, int port, int *fd,
                      uint32_t *reserved)
{
    struct sockaddr_storage place = door->place;
    socklen_t size = sizeof place;
    int status;

    set_port(&place, port);
    status = bind_to(&place, door->place_bytes, fd);
    if (status < 0) {
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
        return fail_place(door->party, port, status);
    }
    getsockname(*fd, (struct sockaddr *)&place, &size);
    *reserved = ntohs(hvd__ip_port(&place));
    return 0;
}

void door_close(struct remote_door *door)
{
    if (!door)
        return;
    for (int i = 0; i < door->ncallers; i++)
        close(door->callers[i].fd);
    close(door->fd);
    free(door);
}

/* ------------------------------------------------------------------ callers */

/* Writes a line about those who were sent away, but not many. */
static void log_refusal(struct remote_door *door, const char *from,
                        const char *why)
{
    int64_t now = hvd__now_ns();

    door->refused++;
    if (door->logged_ns && now - door->logged_ns < LOG_INTERVAL_NS)
        return;
    door->logged_ns = now;
    fprintf(stderr,
            "hvd-server: a connection was refused (%lld since the start): %s "
            "%s\n",
            (long long)door->refused, from, why);
}

/* Takes a caller out, and returns its descriptor. */
static int take_out(struct remote_door *door, int number)
{
    struct caller *caller = &door->callers[number];
    int fd = caller->fd;

    door->ncallers--;
    memmove(caller, caller + 1,
            (size_t)(door->ncallers - number) * sizeof *caller);
    return fd;
}

static void send_away(struct remote_door *door, int number, const char *why)
{
    log_refusal(door, door->callers[number].from, why);
    close(take_out(door, number));
}

static void let_in(struct remote_door *door)
{
    for (int i = 0; i < AT_ONCE; i++) {
        struct sockaddr_storage from;
        socklen_t size = sizeof from;
        struct caller *caller;
        int fd = accept4(door->fd, (struct sockaddr *)&from, &size,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0)
            return;
        if (door->ncallers == DOOR_MOST)
            send_away(door, 0, "said nothing, and others came");
        caller = &door->callers[door->ncallers++];
        *caller =
            (struct caller){.fd = fd, .until_ns = hvd__now_ns() + LIMIT_NS};
        hvd__address_print((const struct sockaddr *)&from, caller->from,
                           sizeof caller->from);
    }
}

int door_wait(const struct remote_door *door, struct pollfd *fds)
{
    fds[0] = (struct pollfd){door->fd, POLLIN, 0};
    for (int i = 0; i < door->ncallers; i++)
        fds[i + 1] = (struct pollfd){door->callers[i].fd, POLLIN, 0};
    return door->ncallers + 1;
}

/* ---------------------------------------------------------------- handshake */

/* Reads a record. Returns 1 if all of it is there, 0 if not yet, and -1 if the
 * caller has ended. */
static int read_record(struct caller *caller, void *record, size_t bytes)
{
    ssize_t got =
        recv(caller->fd, (char *)record + caller->got, bytes - caller->got, 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got <= 0)
        return -1;
    caller->got += (size_t)got;
    return caller->got == bytes;
}

/* Whoever does not take so little has not listened. */
static bool answer(const struct caller *caller, const void *record,
                   size_t bytes)
{
    return send(caller->fd, record, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* Returns why the caller is to be sent away, or NULL. */
static const char *take_hello(struct remote_door *door, struct caller *caller)
{
    enum hvd__answer found = hvd__hello_judge(&caller->hello, &door->job);

    caller->got = 0;
    caller->is_challenged = true;
    if (!hvd__challenge_fill(&caller->challenge, &caller->hello, &door->job,
                             found) ||
        !answer(caller, &caller->challenge, sizeof caller->challenge))
        return "did not listen";
    switch (found) {
    case HVD__ANSWER_WELCOME: return NULL;
    case HVD__ANSWER_VERSION: return "has another version of hvd";
    case HVD__ANSWER_CLUSTER: return "has another description of the cluster";
    default: return "is not a client, or wants another server";
    }
}

static const char *take_proof(struct remote_door *door, struct caller *caller)
{
    const bool holds = hvd__proof_holds(caller->proof, &caller->challenge,
                                        &caller->hello, &door->job);
    const struct hvd__result result =
        hvd__result_of(holds ? HVD__ANSWER_WELCOME : HVD__ANSWER_KEY);

    if (!answer(caller, &result, sizeof result))
        return "did not listen";
    return holds ? NULL : "has another key";
}

/* Goes on with a caller. Returns true if it has been let in; *why is the reason
 * to send it away, or NULL. */
static bool serve_caller(struct remote_door *door, struct caller *caller,
                         const char **why)
{
    const bool proves = caller->is_challenged;
    int got = proves
                  ? read_record(caller, caller->proof, sizeof caller->proof)
                  : read_record(caller, &caller->hello, sizeof caller->hello);

    *why = NULL;
    if (got < 0)
        *why = "hung up before it said who it is";
    else if (got > 0)
        *why = proves ? take_proof(door, caller) : take_hello(door, caller);
    else if (!proves && caller->got >= sizeof caller->hello.magic &&
             !hvd__handshake_knows(&caller->hello))
        *why = "is not hvd";
    else if (hvd__now_ns() > caller->until_ns)
        *why = "did not say who it is in time";
    return got > 0 && proves && !*why;
}

int door_tend(struct remote_door *door, char from[DOOR_ADDRESS])
{
    let_in(door);
    for (int i = 0; i < door->ncallers;) {
        const char *why;

        if (serve_caller(door, &door->callers[i], &why)) {
            memcpy(from, door->callers[i].from, DOOR_ADDRESS);
            return take_out(door, i);
        }
        if (why)
            send_away(door, i, why);
        else
            i++;
    }
    return -1;
}
