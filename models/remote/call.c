/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/call.h"

#include "base/clock.h"
#include "output/problem.h"
#include "transport/tcp/address.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/lookup.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The limit runs from when the address is known. */
#define LIMIT_NS INT64_C(10000000000)

/* A call that is being made. */
struct call {
    const struct remote_party *party;
    int rank, fd;
    int64_t until_ns;
};

static int fail(const struct call *call, const char *why)
{
    return problem_set("%s: %s", party_name(call->party, call->rank), why);
}

/* Waits until the socket is ready. Returns 0, or PROBLEM when the time is up.
 */
static int await(const struct call *call, short events)
{
    struct pollfd one = {call->fd, events, 0};
    int64_t left;

    do {
        left = (call->until_ns - hvd__now_ns()) / 1000000;
        if (left <= 0)
            return fail(call, "no answer for 10 seconds");
    } while (poll(&one, 1, (int)left) <= 0);
    return 0;
}

static const char *explain(int error)
{
    return error == ECONNREFUSED
               ? "nobody listens there: is hvd-server started?"
               : strerror(error);
}

/* Connects to one of the places of an address. Returns 0, an errno, or
 * PROBLEM. */
static int connect_to(struct call *call, const struct addrinfo *at)
{
    int error = 0;
    socklen_t size = sizeof error;

    call->fd =
        socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (call->fd < 0)
        return errno;
    if (connect(call->fd, at->ai_addr, at->ai_addrlen) != 0) {
        if (errno != EINPROGRESS)
            return errno;
        if (await(call, POLLOUT) < 0)
            return PROBLEM;
        getsockopt(call->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    return error;
}

static int check_key(const struct call *call, const struct sockaddr *address)
{
    size_t bytes;

    if (party_key(call->party, &bytes) || hvd__address_is_loopback(address))
        return 0;
    return fail(call, "the server is on another host: give the key that it "
                      "has (HVD_JOB_KEY_FILE)");
}

static int reach(struct call *call)
{
    struct addrinfo *found;
    const char *problem =
        hvd__lookup_wait(party_address(call->party, call->rank), &found);
    int error = EADDRNOTAVAIL;

    if (problem)
        return fail(call, problem);
    call->until_ns = hvd__now_ns() + LIMIT_NS;
    for (const struct addrinfo *at = found; at; at = at->ai_next) {
        error = check_key(call, at->ai_addr);
        if (error == 0)
            error = connect_to(call, at);
        if (error <= 0)
            break;
        if (call->fd >= 0)
            close(call->fd);
        call->fd = -1;
    }
    freeaddrinfo(found);
    return error > 0 ? fail(call, explain(error)) : error;
}

/* Sends a record, which fits into the socket's buffer. */
static int say(const struct call *call, const void *record, size_t bytes)
{
    return send(call->fd, record, bytes, MSG_NOSIGNAL) == (ssize_t)bytes
               ? 0
               : fail(call, "it hung up");
}

static int hear(const struct call *call, void *record, size_t bytes)
{
    size_t all = 0;

    while (all < bytes) {
        ssize_t got;

        if (await(call, POLLIN) < 0)
            return PROBLEM;
        got = recv(call->fd, (char *)record + all, bytes - all, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            continue;
        if (got <= 0)
            return fail(call, "it hung up: it may be busy with many callers, "
                              "or is no hvd-server");
        all += (size_t)got;
    }
    return 0;
}

static int check_answer(const struct call *call, enum hvd__answer answer)
{
    switch (answer) {
    case HVD__ANSWER_WELCOME: return 0;
    case HVD__ANSWER_KEY:
        return fail(call, "the server has another key than this client "
                          "(HVD_JOB_KEY_FILE)");
    case HVD__ANSWER_VERSION:
        return fail(call, "the server is of another version of hvd, which "
                          "must be " HVD_VERSION_STRING);
    case HVD__ANSWER_CLUSTER:
        return fail(call, "the server has another description of the cluster");
    case HVD__ANSWER_OTHER:
        return fail(call, "the server there is another task");
    default:
        return fail(call, "a worker of another training listens there, and no "
                          "hvd-server");
    }
}

static int shake_hands(const struct call *call)
{
    struct hvd__job job;
    struct hvd__hello hello;
    struct hvd__challenge challenge;
    struct hvd__result result;
    uint8_t proof[HVD__PROOF_BYTES];

    /* A client has no rank; it speaks as the rank that it calls, as which no
     * rank does. */
    party_job(call->party, call->rank, &job);
    if (!hvd__hello_fill(&hello, &job, call->rank))
        return fail(call, "the system gives no random numbers");
    if (say(call, &hello, sizeof hello) < 0 ||
        hear(call, &challenge, sizeof challenge) < 0 ||
        check_answer(call, hvd__challenge_judge(&challenge, &hello, &job)) < 0)
        return PROBLEM;
    hvd__proof_fill(proof, &challenge, &hello, &job);
    if (say(call, proof, sizeof proof) < 0 ||
        hear(call, &result, sizeof result) < 0)
        return PROBLEM;
    return check_answer(call, result.answer < HVD__NANSWERS
                                  ? (enum hvd__answer)result.answer
                                  : HVD__ANSWER_VERSION);
}

int call_server(const struct remote_party *party, int rank, int *fd)
{
    struct call call = {.party = party, .rank = rank, .fd = -1};
    int status = reach(&call);

    if (status == 0)
        status = shake_hands(&call);
    if (status == 0)
        *fd = call.fd;
    else if (call.fd >= 0)
        close(call.fd);
    return status;
}
