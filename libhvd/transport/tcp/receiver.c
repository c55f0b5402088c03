/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receiver.c - reads what other ranks send, frame by frame, and finds the
 * receive that each transfer is for.
 *
 * A read fills what is left of the frame's own memory and then a buffer, in one
 * system call. So a long tensor goes straight to where it belongs, and many
 * short frames cost one call.
 *
 * A transfer may come before its receive is started. A long one is left where
 * it is for a moment, for its receive is often about to come, and the kernel
 * slows the sender down meanwhile. After that, or if it is short, it is read
 * and kept: what follows it on the connection may be what this rank waits for.
 * If the receive is started while it comes, the rest goes to the receive's
 * memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "transport/tcp/tcp.h"

/* Reads in a row from one connection, so that others have their turn. */
enum { TURN = 16 };

/* A transfer from this size on waits for its receive for so long. */
enum { LONG_BYTES = 65536 };
#define PATIENCE_NS INT64_C(1000000)

/* A part of it is still in the kernel, which tells of it again and again. */
_Static_assert((int)LONG_BYTES >= (int)HVD__READ_BYTES,
               "a frame that waits may be in the buffer, unseen by epoll");

/* A frame of the meeting is a text. */
enum { MEETING_BYTES = 2 * HVD__TCP_TEXT };

int hvd__receiver_new(struct hvd__tcp *tcp, int peer, int fd)
{
    struct hvd__receiver *receiver = calloc(1, sizeof *receiver);
    int status;

    if (!receiver) {
        close(fd);
        return hvd__fail_memory(sizeof *receiver);
    }
    receiver->watched = (struct hvd__watched_fd){HVD__FD_RECEIVER, fd, NULL};
    receiver->peer = peer;
    status = hvd__tcp_rewatch(tcp, &receiver->watched, false);
    if (status < 0) {
        close(fd);
        free(receiver);
        return status;
    }
    hvd__receiver_free(tcp, peer);
    tcp->peers[peer].receiver = receiver;
    return HVD_OK;
}

static void drop_unexpected(struct hvd__tcp_peer *peer)
{
    while (peer->unexpected) {
        struct hvd__unexpected *unexpected = peer->unexpected;

        peer->unexpected = unexpected->next;
        free(unexpected->data);
        free(unexpected);
    }
    peer->unexpected_end = &peer->unexpected;
}

void hvd__receiver_free(struct hvd__tcp *tcp, int peer)
{
    struct hvd__receiver *receiver = tcp->peers[peer].receiver;

    drop_unexpected(&tcp->peers[peer]);
    if (!receiver)
        return;
    free(receiver->message);
    tcp->peers[peer].receiver = NULL;
    hvd__tcp_retire(tcp, &receiver->watched);
}

static void break_off(struct hvd__tcp *tcp, struct hvd__receiver *receiver,
                      const char *why)
{
    if (!tcp->job.is_started) {
        hvd__receiver_free(tcp, receiver->peer);
        return;
    }
    close(receiver->watched.fd);
    receiver->watched.fd = -1;
    hvd__fault_note(&tcp->fault, receiver->peer, why);
}

/* ----------------------------------------------------------------- matching */

static int check_room(const struct hvd__tcp_request *request, uint64_t bytes)
{
    if (bytes <= request->frame.bytes)
        return HVD_OK;
    return hvd__fail(HVD_ERR_INTERNAL,
                     "a rank sent more bytes than were expected");
}

/* Takes the first receive of a tag out of those that wait. */
static struct hvd__tcp_request *take_posted(struct hvd__tcp_peer *peer,
                                            uint32_t tag)
{
    struct hvd__tcp_request **link = &peer->posted.first;

    while (*link && (*link)->frame.tag != tag)
        link = &(*link)->next;
    if (*link) {
        struct hvd__tcp_request *request = *link;

        *link = request->next;
        if (peer->posted.end == &request->next)
            peer->posted.end = link;
        return request;
    }
    return NULL;
}

static struct hvd__unexpected *keep_unexpected(struct hvd__tcp_peer *peer,
                                               const struct hvd__frame *frame)
{
    struct hvd__unexpected *unexpected = calloc(1, sizeof *unexpected);
    char *data = malloc(frame->bytes);

    if (!unexpected || !data) {
        free(unexpected);
        free(data);
        hvd__fail_memory(frame->bytes);
        return NULL;
    }
    unexpected->tag = frame->tag;
    unexpected->bytes = frame->bytes;
    unexpected->data = data;
    *peer->unexpected_end = unexpected;
    peer->unexpected_end = &unexpected->next;
    return unexpected;
}

/* Takes the first transfer of a tag out of those that came unexpected. */
static struct hvd__unexpected *take_unexpected(struct hvd__tcp_peer *peer,
                                               uint32_t tag)
{
    struct hvd__unexpected **link = &peer->unexpected;

    while (*link && (*link)->tag != tag)
        link = &(*link)->next;
    if (*link) {
        struct hvd__unexpected *unexpected = *link;

        *link = unexpected->next;
        if (peer->unexpected_end == &unexpected->next)
            peer->unexpected_end = link;
        return unexpected;
    }
    return NULL;
}

int hvd__receiver_post(struct hvd__tcp *tcp, int rank,
                       struct hvd__tcp_request *request)
{
    struct hvd__tcp_peer *peer = &tcp->peers[rank];
    struct hvd__receiver *receiver = peer->receiver;
    struct hvd__unexpected *unexpected =
        take_unexpected(peer, request->frame.tag);
    int status;

    if (!unexpected) {
        hvd__tcp_queue_add(&peer->posted, request);
        return HVD_OK;
    }
    status = check_room(request, unexpected->bytes);
    if (status == HVD_OK && receiver && receiver->unexpected == unexpected) {
        size_t got = unexpected->bytes - receiver->left;

        memcpy(request->data, unexpected->data, got);
        receiver->unexpected = NULL;
        receiver->request = request;
        receiver->to = request->data + got;
    } else if (status == HVD_OK) {
        memcpy(request->data, unexpected->data, unexpected->bytes);
        request->is_done = true;
    } else {
        return status;
    }
    free(unexpected->data);
    free(unexpected);
    return HVD_OK;
}

/* ------------------------------------------------------------------ reading */

/* Returns true if the receive of a frame may still come in time. */
static bool must_wait(struct hvd__receiver *receiver)
{
    int64_t now = hvd__now_ns();

    if (receiver->waits_until_ns == 0)
        receiver->waits_until_ns = now + PATIENCE_NS;
    else if (now >= receiver->waits_until_ns)
        receiver->waits_until_ns = 0;
    return receiver->waits_until_ns != 0;
}

static int begin_transfer(struct hvd__tcp *tcp, struct hvd__receiver *receiver)
{
    struct hvd__tcp_peer *peer = &tcp->peers[receiver->peer];
    const struct hvd__frame *frame = &receiver->frame;

    receiver->request = take_posted(peer, frame->tag);
    if (receiver->request) {
        receiver->waits_until_ns = 0;
        receiver->to = receiver->request->data;
        return check_room(receiver->request, frame->bytes);
    }
    if (frame->bytes >= LONG_BYTES && must_wait(receiver))
        return HVD_OK;
    receiver->unexpected = keep_unexpected(peer, frame);
    if (!receiver->unexpected)
        return HVD_ERR_MEMORY;
    receiver->to = receiver->unexpected->data;
    return HVD_OK;
}

static int begin_frame(struct hvd__tcp *tcp, struct hvd__receiver *receiver)
{
    const struct hvd__frame *frame = &receiver->frame;
    bool is_meeting = frame->kind == HVD__FRAME_MEETING;

    receiver->left = frame->bytes;
    if (frame->kind == HVD__FRAME_TRANSFER)
        return begin_transfer(tcp, receiver);
    if ((frame->kind != HVD__FRAME_MESSAGE && !is_meeting) ||
        (is_meeting && frame->bytes > MEETING_BYTES))
        return hvd__fail(HVD_ERR_INTERNAL, "rank %d sent what is no frame",
                         receiver->peer);
    receiver->message = malloc(frame->bytes + 1);
    if (!receiver->message)
        return hvd__fail_memory(frame->bytes + 1);
    receiver->to = receiver->message;
    return HVD_OK;
}

static int end_frame(struct hvd__tcp *tcp, struct hvd__receiver *receiver)
{
    void *message = receiver->message;

    if (receiver->request)
        receiver->request->is_done = true;
    receiver->request = NULL;
    receiver->unexpected = NULL;
    receiver->message = NULL;
    receiver->frame_got = 0;
    if (receiver->frame.kind == HVD__FRAME_MESSAGE)
        return hvd__tcp_keep_message(tcp, receiver->peer, message,
                                     receiver->frame.bytes);
    if (receiver->frame.kind == HVD__FRAME_MEETING)
        hvd__meeting_hear(tcp, message, receiver->frame.bytes);
    free(message);
    return HVD_OK;
}

/* Notes that bytes of the frame's rest are where they belong. */
static int advance(struct hvd__tcp *tcp, struct hvd__receiver *receiver,
                   size_t bytes)
{
    receiver->to += bytes;
    receiver->left -= bytes;
    return receiver->left == 0 ? end_frame(tcp, receiver) : HVD_OK;
}

static bool is_in_frame(const struct hvd__receiver *receiver)
{
    return receiver->frame_got == sizeof receiver->frame;
}

/* Takes what a read has left in the buffer, up to a frame that waits. */
static int parse(struct hvd__tcp *tcp, struct hvd__receiver *receiver,
                 const char *at, size_t bytes)
{
    while (bytes > 0 && receiver->waits_until_ns == 0) {
        size_t part;

        if (is_in_frame(receiver)) {
            part = bytes < receiver->left ? bytes : receiver->left;
            memcpy(receiver->to, at, part);
            HVD_TRY(advance(tcp, receiver, part));
        } else {
            part = sizeof receiver->frame - receiver->frame_got;
            part = bytes < part ? bytes : part;
            memcpy((char *)&receiver->frame + receiver->frame_got, at, part);
            receiver->frame_got += part;
            if (is_in_frame(receiver))
                HVD_TRY(begin_frame(tcp, receiver));
            if (is_in_frame(receiver) && receiver->left == 0)
                HVD_TRY(end_frame(tcp, receiver));
        }
        at += part;
        bytes -= part;
    }
    receiver->kept = at;
    receiver->nkept = bytes;
    return HVD_OK;
}

/* Looks again for the receive that the frame waits for, and takes what was
 * read after the frame's header. Returns 1 if it can be read on, 0 if not. */
static int resume(struct hvd__tcp *tcp, struct hvd__receiver *receiver)
{
    HVD_TRY(begin_transfer(tcp, receiver));
    if (receiver->waits_until_ns != 0)
        return 0;
    HVD_TRY(parse(tcp, receiver, receiver->kept, receiver->nkept));
    return receiver->waits_until_ns == 0;
}

/* Returns 1 if more may be there to read, 0 if not. */
static int read_once(struct hvd__tcp *tcp, struct hvd__receiver *receiver)
{
    size_t direct = is_in_frame(receiver) ? receiver->left : 0, rest;
    const struct iovec pieces[2] = {
        {receiver->to, direct},
        {receiver->buffer, sizeof receiver->buffer},
    };
    ssize_t got = readv(receiver->watched.fd, direct ? pieces : pieces + 1,
                        direct ? 2 : 1);

    if (got < 0 && errno == EINTR)
        return 1;
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got <= 0) {
        break_off(tcp, receiver, got < 0 ? strerror(errno) : "it hung up");
        return 0;
    }
    rest = (size_t)got;
    if (direct) {
        size_t part = rest < direct ? rest : direct;

        HVD_TRY(advance(tcp, receiver, part));
        rest -= part;
    }
    HVD_TRY(parse(tcp, receiver, receiver->buffer, rest));
    return receiver->waits_until_ns == 0 &&
           (size_t)got == direct + sizeof receiver->buffer;
}

int hvd__receiver_ready(struct hvd__tcp *tcp, struct hvd__receiver *receiver)
{
    int status = 1;

    if (receiver->waits_until_ns != 0)
        status = resume(tcp, receiver);
    for (int i = 0; i < TURN && status > 0; i++)
        status = read_once(tcp, receiver);
    return status < 0 ? status : HVD_OK;
}

int hvd__receiver_loop(struct hvd__tcp *tcp, const struct hvd__frame *frame,
                       const void *data)
{
    struct hvd__tcp_peer *peer = &tcp->peers[tcp->base.rank];
    struct hvd__tcp_request *request = take_posted(peer, frame->tag);
    struct hvd__unexpected *unexpected;

    if (request) {
        HVD_TRY(check_room(request, frame->bytes));
        memcpy(request->data, data, frame->bytes);
        request->is_done = true;
        return HVD_OK;
    }
    unexpected = keep_unexpected(peer, frame);
    if (!unexpected)
        return HVD_ERR_MEMORY;
    memcpy(unexpected->data, data, frame->bytes);
    return HVD_OK;
}
