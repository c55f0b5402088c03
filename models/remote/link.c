/* SPDX-License-Identifier: Apache-2.0 */
#include "remote/link.h"

#include "base/clock.h"
#include "output/problem.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PING_NS INT64_C(2000000000)
#define SILENCE_NS INT64_C(10000000000)

/* A frame is sent as it lies in memory. */
struct head {
    uint32_t magic;
    uint16_t kind;
    uint16_t item;
    uint32_t bytes;
};
_Static_assert(sizeof(struct head) == 12, "a head has no gaps");
#define MAGIC UINT32_C(0x68766446)

enum { IN_BYTES = sizeof(struct head) + FRAME_MOST };

int link_init(struct remote_link *link, int fd)
{
    const int yes = 1;

    *link = (struct remote_link){.fd = fd, .heard_ns = hvd__now_ns()};
    link->spoke_ns = link->heard_ns;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    link->in = malloc(IN_BYTES);
    if (link->in)
        return 0;
    link_fini(link);
    return problem_set("no memory for a connection");
}

void link_fini(struct remote_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    free(link->in);
    free(link->out);
    *link = (struct remote_link){.fd = -1};
}

size_t link_waiting(const struct remote_link *link)
{
    return link->queued - link->sent;
}

/* Makes room behind what is queued. */
static int reserve(struct remote_link *link, size_t bytes)
{
    size_t room = 2 * (link_waiting(link) + bytes) + 4096;
    unsigned char *grown;

    if (link->sent > 0) {
        memmove(link->out, link->out + link->sent, link_waiting(link));
        link->queued -= link->sent;
        link->sent = 0;
    }
    if (link->queued + bytes <= link->room)
        return 0;
    grown = realloc(link->out, room);
    if (!grown)
        return problem_set("no memory for a connection");
    link->out = grown;
    link->room = room;
    return 0;
}

int link_send(struct remote_link *link, enum frame_kind kind, unsigned item,
              const void *data, size_t bytes)
{
    const struct head head = {MAGIC, (uint16_t)kind, (uint16_t)item,
                              (uint32_t)bytes};

    if (reserve(link, sizeof head + bytes) < 0)
        return PROBLEM;
    memcpy(link->out + link->queued, &head, sizeof head);
    if (bytes > 0)
        memcpy(link->out + link->queued + sizeof head, data, bytes);
    link->queued += sizeof head + bytes;
    return 0;
}

int link_write(struct remote_link *link)
{
    while (link_waiting(link) > 0) {
        ssize_t sent = send(link->fd, link->out + link->sent,
                            link_waiting(link), MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN)
            return 0;
        if (sent < 0)
            return problem_set("the connection broke: %s", strerror(errno));
        link->sent += (size_t)sent;
        link->spoke_ns = hvd__now_ns();
    }
    return 0;
}

void link_finish(struct remote_link *link)
{
    if (!link->has_finished)
        shutdown(link->fd, SHUT_WR);
    link->has_finished = true;
}

/* Reads the head at the front. Returns 1 if all of its frame is there, 0 if
 * not. */
static int look_at_frame(const struct remote_link *link, size_t at,
                         struct frame *frame)
{
    struct head head;

    if (link->got - at < sizeof head)
        return 0;
    memcpy(&head, link->in + at, sizeof head);
    if (head.magic != MAGIC || head.kind >= FRAME_KINDS ||
        head.bytes > FRAME_MOST)
        return problem_set("what came over the connection is no frame");
    *frame = (struct frame){(enum frame_kind)head.kind, head.item,
                            link->in + at + sizeof head, head.bytes};
    return link->got - at - sizeof head >= head.bytes;
}

static int take_frames(struct remote_link *link,
                       int (*take)(void *context, const struct frame *frame),
                       void *context)
{
    struct frame frame = {.bytes = 0};
    size_t at = 0;
    int status;

    while ((status = look_at_frame(link, at, &frame)) > 0) {
        at += sizeof(struct head) + frame.bytes;
        if (frame.kind != FRAME_PING && take(context, &frame) < 0)
            return PROBLEM;
        if (link->fd < 0) /* whoever took it has hung up */
            return 0;
    }
    memmove(link->in, link->in + at, link->got - at);
    link->got -= at;
    return status;
}

int link_read(struct remote_link *link,
              int (*take)(void *context, const struct frame *frame),
              void *context)
{
    ssize_t got = recv(link->fd, link->in + link->got, IN_BYTES - link->got,
                       MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got < 0)
        return problem_set("the connection broke: %s", strerror(errno));
    if (got == 0)
        return problem_set("the connection ended");
    link->got += (size_t)got;
    link->heard_ns = hvd__now_ns();
    return take_frames(link, take, context);
}

int link_tend(struct remote_link *link, bool deaf)
{
    int64_t now = hvd__now_ns();

    if (deaf)
        link->heard_ns = now;
    if (now - link->heard_ns > SILENCE_NS)
        return problem_set("nothing was heard for 10 seconds");
    if (now - link->spoke_ns < PING_NS || link_waiting(link) > 0 ||
        link->has_finished)
        return 0;
    link->spoke_ns = now;
    return link_send(link, FRAME_PING, 0, NULL, 0);
}
