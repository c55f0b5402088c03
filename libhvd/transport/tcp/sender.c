/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sender.c - connections to other ranks: each is called, asked who it is and
 * told who calls, and then written to.
 *
 * Calling is repeated, ever less often, until it succeeds or the other side
 * refuses for good: processes are started in any order, and a rank may be late.
 * If an address has several meanings (localhost is 127.0.0.1 and ::1), they are
 * called in turn. Before the ranks have met, a connection that breaks is called
 * again, because a process may be started again; afterwards it is a fault.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "transport/tcp/tcp.h"

#define FIRST_DELAY_NS INT64_C(2000000)
#define LAST_DELAY_NS INT64_C(500000000)
/* The time that a connection may take to be made and proved. */
#define CALL_LIMIT_NS INT64_C(10000000000)
/* A rank that answers so often in a row that it is in another run is believed:
 * before, it may just be ending that run. */
enum { MANY_ANSWERS = 20 };
/* Requests that one system call writes, each with its frame. */
enum { BURST = 16 };

static void enter(struct hvd__sender *sender, enum hvd__sender_stage stage)
{
    sender->stage = stage;
    sender->since_ns = hvd__now_ns();
}

static void hang_up(struct hvd__sender *sender)
{
    if (sender->watched.fd >= 0)
        close(sender->watched.fd);
    sender->watched.fd = -1;
    sender->got = 0;
    sender->wants_room = false;
}

static void start_calling(struct hvd__tcp *tcp, struct hvd__sender *sender)
{
    enter(sender, HVD__SENDER_IDLE);
    sender->retry_ns = 0;
    sender->delay_ns = FIRST_DELAY_NS;
    if (sender->is_listed)
        return;
    sender->is_listed = true;
    sender->next = tcp->opening;
    tcp->opening = sender;
}

struct hvd__sender *hvd__sender_of(struct hvd__tcp *tcp, int peer)
{
    struct hvd__sender *sender = tcp->peers[peer].sender;

    if (sender)
        return sender;
    sender = calloc(1, sizeof *sender);
    if (!sender) {
        hvd__fail_memory(sizeof *sender);
        return NULL;
    }
    sender->watched.kind = HVD__FD_SENDER;
    sender->watched.fd = -1;
    sender->peer = peer;
    sender->queue.end = &sender->queue.first;
    tcp->peers[peer].sender = sender;
    start_calling(tcp, sender);
    return sender;
}

static void drop_messages(struct hvd__tcp *tcp, struct hvd__sender *sender)
{
    struct hvd__tcp_request *request = sender->queue.first;

    while (request) {
        struct hvd__tcp_request *next = request->next;

        if (request->message) {
            hvd__tcp_request_free(request);
            tcp->npending--;
        }
        request = next;
    }
    sender->queue = (struct hvd__tcp_queue){NULL, &sender->queue.first};
}

/* Ends a call that has led to nothing. */
static void give_up_call(struct hvd__tcp *tcp, struct hvd__sender *sender,
                         const char *why)
{
    snprintf(sender->why, sizeof sender->why, "%s", why);
    sender->is_absent = false;
    hang_up(sender);
    enter(sender, HVD__SENDER_IDLE);
    sender->retry_ns = hvd__now_ns() + sender->delay_ns;
    sender->delay_ns *= 2;
    if (sender->delay_ns > LAST_DELAY_NS)
        sender->delay_ns = LAST_DELAY_NS;
    sender->at = sender->at ? sender->at->ai_next : NULL;
    if (tcp->job.is_started)
        hvd__fault_note(&tcp->fault, sender->peer, why);
}

static void refuse(struct hvd__tcp *tcp, struct hvd__sender *sender,
                   const char *why)
{
    give_up_call(tcp, sender, why);
    enter(sender, HVD__SENDER_REFUSED);
}

/* A connection that was open has ended. */
static void break_off(struct hvd__tcp *tcp, struct hvd__sender *sender,
                      const char *why)
{
    hang_up(sender);
    drop_messages(tcp, sender);
    snprintf(sender->why, sizeof sender->why, "%s", why);
    if (!tcp->job.is_started) {
        start_calling(tcp, sender);
        return;
    }
    enter(sender, HVD__SENDER_BROKEN);
    hvd__fault_note(&tcp->fault, sender->peer, why);
}

/* ------------------------------------------------------------------ calling */

/* Ends a call that has failed with an error of the system's. */
static void fail_call(struct hvd__tcp *tcp, struct hvd__sender *sender,
                      int error)
{
    give_up_call(tcp, sender, strerror(error));
    sender->is_absent = error == ECONNREFUSED;
}

static int connect_to(struct hvd__tcp *tcp, struct hvd__sender *sender,
                      const struct addrinfo *at)
{
    const int yes = 1;

    if (tcp->is_local && !hvd__address_is_loopback(at->ai_addr)) {
        refuse(tcp, sender,
               "the address is not of the loopback interface, and there is no "
               "key of the job");
        return HVD_OK;
    }
    sender->watched.fd =
        socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (sender->watched.fd < 0)
        return hvd__fail(HVD_ERR_MEMORY, "no socket: %s", strerror(errno));
    setsockopt(sender->watched.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    HVD_TRY(hvd__tcp_watch(tcp, &sender->watched, true));
    enter(sender, HVD__SENDER_CALLING);
    if (connect(sender->watched.fd, at->ai_addr, at->ai_addrlen) != 0 &&
        errno != EINPROGRESS)
        fail_call(tcp, sender, errno);
    return HVD_OK;
}

/* Looks up the addresses of a rank anew. Returns 1 when they are there. */
static int find_addresses(struct hvd__tcp *tcp, struct hvd__sender *sender)
{
    const char *problem;

    if (!sender->lookup)
        sender->lookup = hvd__lookup_start(tcp->addresses[sender->peer]);
    if (!sender->lookup)
        return HVD_ERR_MEMORY;
    if (sender->addresses)
        freeaddrinfo(sender->addresses);
    sender->addresses = NULL;
    if (!hvd__lookup_poll(sender->lookup, &sender->addresses, &problem)) {
        snprintf(sender->why, sizeof sender->why, "its name is looked up");
        return 0;
    }
    hvd__lookup_free(sender->lookup);
    sender->lookup = NULL;
    sender->at = sender->addresses;
    if (sender->at)
        return 1;
    give_up_call(tcp, sender, problem);
    return 0;
}

static int call(struct hvd__tcp *tcp, struct hvd__sender *sender)
{
    int found = sender->at ? 1 : find_addresses(tcp, sender);

    return found == 1 ? connect_to(tcp, sender, sender->at) : found;
}

int hvd__senders_call(struct hvd__tcp *tcp)
{
    int64_t now = hvd__now_ns();
    struct hvd__sender **link = &tcp->opening;

    while (*link) {
        struct hvd__sender *sender = *link;

        if (sender->stage == HVD__SENDER_OPEN ||
            sender->stage == HVD__SENDER_REFUSED) {
            *link = sender->next;
            sender->is_listed = false;
            continue;
        }
        if (sender->stage == HVD__SENDER_IDLE && now >= sender->retry_ns)
            HVD_TRY(call(tcp, sender));
        else if (sender->stage != HVD__SENDER_IDLE &&
                 now - sender->since_ns > CALL_LIMIT_NS)
            give_up_call(tcp, sender, "it does not answer");
        link = &sender->next;
    }
    return HVD_OK;
}

/* ---------------------------------------------------------------- handshake */

/* Sends a record that fits into an empty buffer of the kernel's. */
static bool send_record(const struct hvd__sender *sender, const void *record,
                        size_t bytes)
{
    return send(sender->watched.fd, record, bytes, MSG_NOSIGNAL) ==
           (ssize_t)bytes;
}

/* A call to a free port of this host can get that port for itself, and then
 * reaches itself. */
static bool reaches_itself(int fd)
{
    struct sockaddr_storage own, other;
    socklen_t own_size = sizeof own, other_size = sizeof other;

    memset(&own, 0, sizeof own);
    memset(&other, 0, sizeof other);
    return getsockname(fd, (struct sockaddr *)&own, &own_size) == 0 &&
           getpeername(fd, (struct sockaddr *)&other, &other_size) == 0 &&
           own_size == other_size && memcmp(&own, &other, own_size) == 0;
}

static void say_hello(struct hvd__tcp *tcp, struct hvd__sender *sender)
{
    int error = 0;
    socklen_t size = sizeof error;

    getsockopt(sender->watched.fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (!error && reaches_itself(sender->watched.fd))
        error = ECONNREFUSED;
    if (error) {
        fail_call(tcp, sender, error);
        return;
    }
    hvd__tcp_rewatch(tcp, &sender->watched, false);
    if (!hvd__hello_fill(&sender->hello, &tcp->job, sender->peer) ||
        !send_record(sender, &sender->hello, sizeof sender->hello))
        give_up_call(tcp, sender, "the connection broke at once");
    else
        enter(sender, HVD__SENDER_ASKED);
}

/* Takes an answer that is not WELCOME. */
static void take_refusal(struct hvd__tcp *tcp, struct hvd__sender *sender,
                         enum hvd__answer answer)
{
    char why[sizeof sender->why];

    snprintf(why, sizeof why, "it %s", hvd__answer_text(answer));
    sender->is_stranger = answer == HVD__ANSWER_CLUSTER;
    sender->ncalls = answer == HVD__ANSWER_UNDER_WAY ? sender->ncalls + 1 : 0;
    if (hvd__answer_is_passing(answer) && sender->ncalls < MANY_ANSWERS)
        give_up_call(tcp, sender, why);
    else
        refuse(tcp, sender, why);
}

static void take_challenge(struct hvd__tcp *tcp, struct hvd__sender *sender)
{
    const struct hvd__challenge *challenge = &sender->answer.challenge;
    enum hvd__answer answer =
        hvd__challenge_judge(challenge, &sender->hello, &tcp->job);
    uint8_t proof[HVD__PROOF_BYTES];

    if (answer != HVD__ANSWER_WELCOME) {
        take_refusal(tcp, sender, answer);
        return;
    }
    hvd__proof_fill(proof, challenge, &sender->hello, &tcp->job);
    sender->got = 0;
    if (send_record(sender, proof, sizeof proof))
        enter(sender, HVD__SENDER_PROVING);
    else
        give_up_call(tcp, sender, "the connection broke during the handshake");
}

static void flush(struct hvd__tcp *tcp, struct hvd__sender *sender);

static void take_result(struct hvd__tcp *tcp, struct hvd__sender *sender)
{
    uint32_t answer = sender->answer.result.answer;

    if (answer != HVD__ANSWER_WELCOME) {
        take_refusal(tcp, sender,
                     answer < HVD__NANSWERS ? (enum hvd__answer)answer
                                            : HVD__ANSWER_VERSION);
        return;
    }
    enter(sender, HVD__SENDER_OPEN);
    hvd__fault_clear(&tcp->fault, sender->peer);
    flush(tcp, sender);
}

/* Reads an answer. Returns whether all of it is there. */
static bool read_answer(struct hvd__tcp *tcp, struct hvd__sender *sender,
                        size_t bytes)
{
    ssize_t got = recv(sender->watched.fd, sender->answer.bytes + sender->got,
                       bytes - sender->got, 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        give_up_call(tcp, sender, got == 0 ? "it hung up" : strerror(errno));
        return false;
    }
    sender->got += (size_t)got;
    if (sender->got >= sizeof(uint32_t) &&
        !hvd__handshake_knows(sender->answer.bytes)) {
        refuse(tcp, sender, "what listens there is not hvd");
        return false;
    }
    return sender->got == bytes;
}

/* ------------------------------------------------------------------ writing */

/* Lists what is to be written next. Returns the number of pieces. */
static int list_pieces(const struct hvd__sender *sender,
                       struct iovec pieces[2 * BURST])
{
    int n = 0;

    for (struct hvd__tcp_request *request = sender->queue.first;
         request && n + 2 <= 2 * BURST; request = request->next) {
        size_t header = sizeof request->frame, done = request->done;

        if (done < header)
            pieces[n++] =
                (struct iovec){(char *)&request->frame + done, header - done};
        done = done > header ? done - header : 0;
        if (done < request->frame.bytes)
            pieces[n++] = (struct iovec){request->data + done,
                                         request->frame.bytes - done};
    }
    return n;
}

/* Takes from the queue what has been written. */
static void account(struct hvd__tcp *tcp, struct hvd__sender *sender,
                    size_t written)
{
    while (sender->queue.first) {
        struct hvd__tcp_request *request = sender->queue.first;
        size_t left =
            sizeof request->frame + request->frame.bytes - request->done;

        if (written < left) {
            request->done += written;
            return;
        }
        written -= left;
        sender->queue.first = request->next;
        if (!request->next)
            sender->queue.end = &sender->queue.first;
        request->is_done = true;
        if (request->message) {
            hvd__tcp_request_free(request);
            tcp->npending--;
        }
    }
}

static void want_room(struct hvd__tcp *tcp, struct hvd__sender *sender,
                      bool wants)
{
    if (sender->wants_room == wants)
        return;
    sender->wants_room = wants;
    hvd__tcp_rewatch(tcp, &sender->watched, wants);
}

static void flush(struct hvd__tcp *tcp, struct hvd__sender *sender)
{
    while (sender->queue.first) {
        struct iovec pieces[2 * BURST];
        struct msghdr header = {
            .msg_iov = pieces,
            .msg_iovlen = (size_t)list_pieces(sender, pieces),
        };
        ssize_t written = sendmsg(sender->watched.fd, &header, MSG_NOSIGNAL);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN) {
            want_room(tcp, sender, true);
            return;
        }
        if (written < 0) {
            break_off(tcp, sender, strerror(errno));
            return;
        }
        account(tcp, sender, (size_t)written);
    }
    want_room(tcp, sender, false);
}

void hvd__sender_add(struct hvd__tcp *tcp, struct hvd__sender *sender,
                     struct hvd__tcp_request *request)
{
    bool is_first = !sender->queue.first;

    if (request->message)
        tcp->npending++;
    hvd__tcp_queue_add(&sender->queue, request);
    if (sender->stage == HVD__SENDER_BROKEN)
        drop_messages(tcp, sender);
    else if (sender->stage == HVD__SENDER_OPEN && is_first)
        flush(tcp, sender);
}

/* Nobody writes to a connection in this direction but to end it. */
static void look_for_end(struct hvd__tcp *tcp, struct hvd__sender *sender)
{
    char byte;
    ssize_t got = recv(sender->watched.fd, &byte, 1, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    break_off(tcp, sender, got < 0 ? strerror(errno) : "it hung up");
}

void hvd__sender_ready(struct hvd__tcp *tcp, struct hvd__sender *sender,
                       bool can_write)
{
    switch (sender->stage) {
    case HVD__SENDER_CALLING: say_hello(tcp, sender); break;
    case HVD__SENDER_ASKED:
        if (read_answer(tcp, sender, sizeof sender->answer.challenge))
            take_challenge(tcp, sender);
        break;
    case HVD__SENDER_PROVING:
        if (read_answer(tcp, sender, sizeof sender->answer.result))
            take_result(tcp, sender);
        break;
    case HVD__SENDER_OPEN:
        if (can_write)
            flush(tcp, sender);
        else
            look_for_end(tcp, sender);
        break;
    case HVD__SENDER_IDLE:
    case HVD__SENDER_REFUSED:
    case HVD__SENDER_BROKEN: break;
    }
}

int hvd__sender_take(struct hvd__tcp *tcp, int peer)
{
    struct hvd__sender *sender = tcp->peers[peer].sender;
    int fd = sender->watched.fd;

    hvd__tcp_unwatch(tcp, fd);
    sender->watched.fd = -1;
    hvd__sender_free(tcp, peer);
    return fd;
}

void hvd__sender_free(struct hvd__tcp *tcp, int peer)
{
    struct hvd__sender *sender = tcp->peers[peer].sender;
    struct hvd__sender **link = &tcp->opening;

    if (!sender)
        return;
    while (*link && *link != sender)
        link = &(*link)->next;
    if (*link)
        *link = sender->next;
    drop_messages(tcp, sender);
    hvd__lookup_free(sender->lookup);
    if (sender->addresses)
        freeaddrinfo(sender->addresses);
    tcp->peers[peer].sender = NULL;
    hvd__tcp_retire(tcp, &sender->watched);
}
