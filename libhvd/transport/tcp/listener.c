/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.c - listens on this rank's address, and lets in those who prove that
 * they are of the job.
 *
 * Anybody can connect. A caller can say nothing but a hello and a proof, both
 * of fixed size; it is sent away after a time, or when many come after it, and
 * what it did is counted in the log. It has no other effect.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ip_socket.h"
#include "base/log.h"
#include "base/status.h"
#include "transport/tcp/lobby.h"
#include "transport/tcp/tcp.h"

enum { MOST_CALLERS = 128, BACKLOG = 1024 };
#define CALLER_LIMIT_NS INT64_C(5000000000)
#define LOG_INTERVAL_NS INT64_C(10000000000)

/* ------------------------------------------------------------------ opening */

static int explain(const struct hvd__tcp *tcp, int error)
{
    const char *address = tcp->addresses[tcp->base.rank];

    if (error == EADDRINUSE)
        return hvd__fail(HVD_ERR_CONFIG,
                         "rank %d cannot listen on %s: a process uses that "
                         "port; does this task run already?",
                         tcp->base.rank, address);
    if (error == EADDRNOTAVAIL)
        return hvd__fail(HVD_ERR_CONFIG,
                         "rank %d cannot listen on %s: the address is not one "
                         "of this host; is this the host of this task?",
                         tcp->base.rank, address);
    return hvd__fail(HVD_ERR_CONFIG, "rank %d cannot listen on %s: %s",
                     tcp->base.rank, address, strerror(error));
}

/* Returns 0, or the number of the error. */
static int listen_on(struct hvd__tcp *tcp, const struct addrinfo *at)
{
    const int yes = 1;
    int fd =
        socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 &&
        listen(fd, BACKLOG) == 0) {
        tcp->listener.watched.fd = fd;
        tcp->base.address = hvd__ip_of(at->ai_addr);
        return 0;
    }
    error = errno;
    close(fd);
    return error;
}

static int listen_on_one(struct hvd__tcp *tcp, const struct addrinfo *found)
{
    int error = EADDRNOTAVAIL;

    for (const struct addrinfo *at = found; at; at = at->ai_next) {
        if (tcp->is_local && !hvd__address_is_loopback(at->ai_addr))
            return hvd__fail(HVD_ERR_CONFIG,
                             "rank %d has the address %s, which others than "
                             "this host can reach: give all processes a key "
                             "of the job, or use addresses of the loopback "
                             "interface",
                             tcp->base.rank, tcp->addresses[tcp->base.rank]);
        error = listen_on(tcp, at);
        if (!error)
            return HVD_OK;
        if (error == EADDRINUSE)
            break;
    }
    return explain(tcp, error);
}

/* Waits for what this rank's own address means. */
static int find_own(struct hvd__tcp *tcp, struct hvd__lookup *lookup,
                    struct addrinfo **found)
{
    const char *problem;

    while (!hvd__lookup_poll(lookup, found, &problem)) {
        HVD_TRY(tcp->asked.ask(tcp->asked.context));
        HVD_TRY(hvd__tcp_drive(tcp, 1));
    }
    if (*found)
        return HVD_OK;
    return hvd__fail(HVD_ERR_CONFIG, "the address %s of rank %d: %s",
                     tcp->addresses[tcp->base.rank], tcp->base.rank, problem);
}

static int open_listener(struct hvd__tcp *tcp)
{
    struct hvd__lookup *lookup =
        hvd__lookup_start(tcp->addresses[tcp->base.rank]);
    struct addrinfo *found;
    int status;

    if (!lookup)
        return HVD_ERR_MEMORY;
    status = find_own(tcp, lookup, &found);
    hvd__lookup_free(lookup);
    if (status < 0)
        return status;
    status = listen_on_one(tcp, found);
    freeaddrinfo(found);
    return status;
}

static int copy_socket(int fd, int *copy)
{
    *copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    return *copy >= 0 ? HVD_OK
                      : hvd__fail(HVD_ERR_MEMORY, "no descriptor: %s",
                                  strerror(errno));
}

/* Listens where the transport before this one has listened. */
static int share_listener(struct hvd__tcp *tcp)
{
    struct sockaddr_storage own;
    socklen_t size = sizeof own;

    HVD_TRY(copy_socket(tcp->lobby->listener, &tcp->listener.watched.fd));
    memset(&own, 0, sizeof own);
    getsockname(tcp->listener.watched.fd, (struct sockaddr *)&own, &size);
    tcp->base.address = hvd__ip_of((struct sockaddr *)&own);
    return HVD_OK;
}

/* A process of an elastic cluster has one transport after another. Its socket
 * stays open in between: whoever is refused takes it for absent, and might
 * found a second world (seeker.c). */
int hvd__listener_open(struct hvd__tcp *tcp)
{
    struct hvd__lobby *lobby = tcp->lobby;

    if (lobby && lobby->listener >= 0) {
        HVD_TRY(share_listener(tcp));
    } else {
        HVD_TRY(open_listener(tcp));
        if (lobby)
            HVD_TRY(copy_socket(tcp->listener.watched.fd, &lobby->listener));
    }
    return hvd__tcp_watch(tcp, &tcp->listener.watched, false);
}

/* ------------------------------------------------------------------ callers */

static void take_out(struct hvd__listener *listener,
                     const struct hvd__caller *caller)
{
    struct hvd__caller **link = &listener->callers;

    while (*link != caller)
        link = &(*link)->next;
    *link = caller->next;
    listener->ncallers--;
}

/* Writes a line about those who were sent away, but not many. */
static void log_refusal(struct hvd__tcp *tcp, const char *from, const char *why)
{
    struct hvd__listener *listener = &tcp->listener;
    int64_t now = hvd__now_ns();

    listener->refused++;
    if (listener->logged_ns && now - listener->logged_ns < LOG_INTERVAL_NS)
        return;
    listener->logged_ns = now;
    hvd__log(HVD__LOG_WARNING,
             "a connection to %s was refused (%" PRId64
             " since the start): %s %s",
             tcp->addresses[tcp->base.rank], listener->refused, from, why);
}

static void send_away(struct hvd__tcp *tcp, struct hvd__caller *caller,
                      const char *why)
{
    if (why)
        log_refusal(tcp, caller->from, why);
    take_out(&tcp->listener, caller);
    hvd__tcp_retire(tcp, &caller->watched);
}

void hvd__listener_tidy(struct hvd__tcp *tcp)
{
    int64_t now = hvd__now_ns();
    struct hvd__caller *caller = tcp->listener.callers;
    int n = 0;

    while (caller) {
        struct hvd__caller *next = caller->next;

        if (++n > MOST_CALLERS)
            send_away(tcp, caller, "said nothing, and others came");
        else if (now > caller->until_ns)
            send_away(tcp, caller, "did not say who it is in time");
        caller = next;
    }
}

static int let_in(struct hvd__tcp *tcp, int fd, const struct sockaddr *from)
{
    const int yes = 1;
    struct hvd__caller *caller = calloc(1, sizeof *caller);
    int status;

    if (!caller) {
        close(fd);
        return HVD_OK; /* the caller will try again */
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    caller->watched = (struct hvd__watched_fd){HVD__FD_CALLER, fd, NULL};
    caller->until_ns = hvd__now_ns() + CALLER_LIMIT_NS;
    hvd__address_print(from, caller->from, sizeof caller->from);
    status = hvd__tcp_watch(tcp, &caller->watched, false);
    if (status < 0) {
        close(fd);
        free(caller);
        return status;
    }
    caller->next = tcp->listener.callers;
    tcp->listener.callers = caller;
    tcp->listener.ncallers++;
    return HVD_OK;
}

int hvd__listener_ready(struct hvd__tcp *tcp)
{
    for (int i = 0; i < MOST_CALLERS; i++) {
        struct sockaddr_storage from;
        socklen_t size = sizeof from;
        int fd = accept4(tcp->listener.watched.fd, (struct sockaddr *)&from,
                         &size, SOCK_NONBLOCK | SOCK_CLOEXEC);

        /* Whoever could not be accepted is seen again, or has gone. */
        if (fd < 0)
            return HVD_OK;
        HVD_TRY(let_in(tcp, fd, (const struct sockaddr *)&from));
    }
    return HVD_OK;
}

/* ---------------------------------------------------------------- handshake */

/* Reads a record. Returns whether all of it is there; a caller that has ended
 * is sent away. */
static bool read_record(struct hvd__tcp *tcp, struct hvd__caller *caller,
                        void *record, size_t bytes)
{
    ssize_t got = recv(caller->watched.fd, (char *)record + caller->got,
                       bytes - caller->got, 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        /* One who wants to join calls all ranks, and needs one of them. */
        send_away(tcp, caller,
                  tcp->lobby ? NULL : "hung up before it said who it is");
        return false;
    }
    caller->got += (size_t)got;
    return caller->got == bytes;
}

/* A refusal may not fit into the kernel's buffer only if the caller reads
 * nothing, and then it is no loss. */
static bool answer(const struct hvd__caller *caller, const void *record,
                   size_t bytes)
{
    return send(caller->watched.fd, record, bytes, MSG_NOSIGNAL) ==
           (ssize_t)bytes;
}

static bool is_of_guest(const struct hvd__tcp *tcp,
                        const struct hvd__hello *hello)
{
    return tcp->lobby && hello->cluster == tcp->lobby->job.cluster;
}

/* Returns the job of which a caller wants to be. */
static const struct hvd__job *job_of(const struct hvd__tcp *tcp,
                                     const struct hvd__hello *hello)
{
    return is_of_guest(tcp, hello) ? &tcp->lobby->job : &tcp->job;
}

/* Returns whether a caller is of the same cluster, and only one side is
 * elastic. */
static bool differs_in_elastic(const struct hvd__tcp *tcp,
                               const struct hvd__hello *hello)
{
    return hello->cluster ==
           (tcp->lobby ? tcp->lobby->base : hvd__lobby_mark(tcp->job.cluster));
}

static enum hvd__answer judge(const struct hvd__tcp *tcp,
                              const struct hvd__hello *hello)
{
    enum hvd__answer found;

    if (is_of_guest(tcp, hello))
        return hvd__lobby_judge(tcp->lobby, hello);
    found = hvd__hello_judge(hello, &tcp->job);
    if (found == HVD__ANSWER_CLUSTER && differs_in_elastic(tcp, hello))
        return HVD__ANSWER_ELASTIC;
    if (found == HVD__ANSWER_WELCOME && tcp->peers[hello->from].receiver)
        found = HVD__ANSWER_TAKEN;
    return found;
}

static void take_hello(struct hvd__tcp *tcp, struct hvd__caller *caller)
{
    enum hvd__answer found = judge(tcp, &caller->hello);
    char why[128];

    caller->got = 0;
    caller->is_challenged = true;
    if (!hvd__challenge_fill(&caller->challenge, &caller->hello,
                             job_of(tcp, &caller->hello), found) ||
        !answer(caller, &caller->challenge, sizeof caller->challenge)) {
        send_away(tcp, caller, "did not listen");
    } else if (found != HVD__ANSWER_WELCOME) {
        snprintf(why, sizeof why, "was told that this rank %s",
                 hvd__answer_text(found));
        send_away(tcp, caller, hvd__answer_is_passing(found) ? NULL : why);
    }
}

static int take_proof(struct hvd__tcp *tcp, struct hvd__caller *caller)
{
    int peer = (int)caller->hello.from, fd;
    enum hvd__answer found = judge(tcp, &caller->hello);
    struct hvd__result result;

    if (!hvd__proof_holds(caller->proof, &caller->challenge, &caller->hello,
                          job_of(tcp, &caller->hello)))
        found = HVD__ANSWER_KEY;
    result = hvd__result_of(found);
    if (!answer(caller, &result, sizeof result) ||
        found != HVD__ANSWER_WELCOME) {
        send_away(tcp, caller,
                  found == HVD__ANSWER_KEY ? "has another key of the job"
                                           : NULL);
        return HVD_OK;
    }
    if (is_of_guest(tcp, &caller->hello)) {
        fd = caller->watched.fd;
        hvd__tcp_unwatch(tcp, fd);
        hvd__lobby_take(tcp->lobby, &caller->hello, fd);
        caller->watched.fd = -1;
        send_away(tcp, caller, NULL);
        return HVD_OK;
    }
    if (peer == 0 && !tcp->job.is_started)
        tcp->job.session = caller->hello.session;
    fd = caller->watched.fd;
    caller->watched.fd = -1;
    send_away(tcp, caller, NULL);
    return hvd__receiver_new(tcp, peer, fd);
}

int hvd__caller_ready(struct hvd__tcp *tcp, struct hvd__caller *caller)
{
    if (caller->is_challenged)
        return read_record(tcp, caller, caller->proof, sizeof caller->proof)
                   ? take_proof(tcp, caller)
                   : HVD_OK;
    if (read_record(tcp, caller, &caller->hello, sizeof caller->hello))
        take_hello(tcp, caller);
    else if (caller->watched.fd >= 0 &&
             caller->got >= sizeof caller->hello.magic &&
             !hvd__handshake_knows(&caller->hello))
        send_away(tcp, caller, "is not hvd");
    return HVD_OK;
}

void hvd__listener_close(struct hvd__tcp *tcp)
{
    while (tcp->listener.callers)
        send_away(tcp, tcp->listener.callers, NULL);
    if (tcp->listener.watched.fd >= 0)
        close(tcp->listener.watched.fd);
    tcp->listener.watched.fd = -1;
}
