/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp.c - the transport over TCP, for ranks that know each other's addresses
 * and have neither MPI nor a launcher. hvd__tcp_open (open.c) makes it; the
 * driver of the engine calls it.
 *
 * epoll tells which connections have something to read, or room for what is to
 * be written. What is sent is first tried at once, so a short message costs its
 * sender one system call and its receiver two.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/status.h"
#include "transport/tcp/lobby.h"
#include "transport/tcp/tcp.h"

enum { EVENTS = 64 };

/* -------------------------------------------------------------- descriptors */

static int control(struct hvd__tcp *tcp, int operation,
                   struct hvd__watched_fd *watched, bool writing)
{
    struct epoll_event event = {
        .events = EPOLLIN | (writing ? EPOLLOUT : 0u),
        .data.ptr = watched,
    };

    if (epoll_ctl(tcp->epoll, operation, watched->fd, &event) == 0)
        return HVD_OK;
    return hvd__fail(HVD_ERR_MEMORY, "epoll_ctl: %s", strerror(errno));
}

int hvd__tcp_watch(struct hvd__tcp *tcp, struct hvd__watched_fd *watched,
                   bool writing)
{
    return control(tcp, EPOLL_CTL_ADD, watched, writing);
}

int hvd__tcp_rewatch(struct hvd__tcp *tcp, struct hvd__watched_fd *watched,
                     bool writing)
{
    return control(tcp, EPOLL_CTL_MOD, watched, writing);
}

void hvd__tcp_unwatch(struct hvd__tcp *tcp, int fd)
{
    epoll_ctl(tcp->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void hvd__tcp_retire(struct hvd__tcp *tcp, struct hvd__watched_fd *watched)
{
    if (watched->fd >= 0)
        close(watched->fd);
    watched->fd = -1;
    watched->dead = tcp->dead;
    tcp->dead = watched;
}

static void free_dead(struct hvd__tcp *tcp)
{
    while (tcp->dead) {
        struct hvd__watched_fd *watched = tcp->dead;

        tcp->dead = watched->dead;
        free(watched);
    }
}

static int handle(struct hvd__tcp *tcp, struct hvd__watched_fd *watched,
                  uint32_t events)
{
    /* An earlier event of this turn may have closed it. */
    if (watched->fd < 0)
        return HVD_OK;
    switch (watched->kind) {
    case HVD__FD_LISTENER: return hvd__listener_ready(tcp);
    case HVD__FD_CALLER:
        return hvd__caller_ready(tcp, (struct hvd__caller *)watched);
    case HVD__FD_SENDER:
        hvd__sender_ready(tcp, (struct hvd__sender *)watched,
                          events & EPOLLOUT);
        return HVD_OK;
    case HVD__FD_RECEIVER:
        return hvd__receiver_ready(tcp, (struct hvd__receiver *)watched);
    }
    return HVD_OK;
}

int hvd__tcp_drive(struct hvd__tcp *tcp, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int n, status = HVD_OK;

    if (tcp->opening)
        HVD_TRY(hvd__senders_call(tcp));
    n = epoll_wait(tcp->epoll, events, EVENTS, timeout_ms);
    for (int i = 0; i < n && status == HVD_OK; i++)
        status = handle(tcp, events[i].data.ptr, events[i].events);
    if (tcp->listener.callers)
        hvd__listener_tidy(tcp);
    free_dead(tcp);
    return status;
}

/* ----------------------------------------------------------------- requests */

void hvd__tcp_queue_add(struct hvd__tcp_queue *queue,
                        struct hvd__tcp_request *request)
{
    request->next = NULL;
    *queue->end = request;
    queue->end = &request->next;
}

struct hvd__tcp_request *hvd__tcp_request_new(struct hvd__tcp *tcp,
                                              const struct hvd__frame *frame)
{
    struct hvd__tcp_request *request = calloc(1, sizeof *request);

    if (!request) {
        hvd__fail_memory(sizeof *request);
        return NULL;
    }
    request->frame = *frame;
    request->other = tcp->requests;
    request->place = &tcp->requests;
    if (tcp->requests)
        tcp->requests->place = &request->other;
    tcp->requests = request;
    return request;
}

void hvd__tcp_request_free(struct hvd__tcp_request *request)
{
    *request->place = request->other;
    if (request->other)
        request->other->place = request->place;
    free(request->message);
    free(request);
}

/* --------------------------------------------------------------------- item */

int hvd__tcp_keep_message(struct hvd__tcp *tcp, int peer, void *message,
                          size_t bytes)
{
    struct hvd__tcp_message *item = malloc(sizeof *item);

    if (!item) {
        free(message);
        return hvd__fail_memory(sizeof *item);
    }
    *item = (struct hvd__tcp_message){NULL, peer, bytes, message};
    *tcp->received_end = item;
    tcp->received_end = &item->next;
    return HVD_OK;
}

static void drop_received(struct hvd__tcp *tcp)
{
    while (tcp->received) {
        struct hvd__tcp_message *item = tcp->received;

        tcp->received = item->next;
        free(item->message);
        free(item);
    }
}

/* -------------------------------------------------------- transport's table */

static int tcp_send(struct hvd__transport *self, int peer, int tag,
                    const void *data, size_t bytes,
                    struct hvd__transfer *transfer)
{
    struct hvd__tcp *tcp = (struct hvd__tcp *)self;
    const struct hvd__frame frame = {HVD__FRAME_TRANSFER, (uint32_t)tag, bytes};
    struct hvd__sender *sender;
    struct hvd__tcp_request *request;

    transfer->request = NULL;
    if (bytes == 0)
        return HVD_OK;
    if (peer == self->rank)
        return hvd__receiver_loop(tcp, &frame, data);
    sender = hvd__sender_of(tcp, peer);
    request = sender ? hvd__tcp_request_new(tcp, &frame) : NULL;
    if (!request)
        return HVD_ERR_MEMORY;
    request->data = (char *)(uintptr_t)data; /* it is only read */
    hvd__sender_add(tcp, sender, request);
    if (request->is_done)
        hvd__tcp_request_free(request);
    else
        transfer->request = request;
    return HVD_OK;
}

static int tcp_receive(struct hvd__transport *self, int peer, int tag,
                       void *data, size_t bytes, struct hvd__transfer *transfer)
{
    struct hvd__tcp *tcp = (struct hvd__tcp *)self;
    const struct hvd__frame frame = {HVD__FRAME_TRANSFER, (uint32_t)tag, bytes};
    struct hvd__tcp_request *request;
    int status;

    transfer->request = NULL;
    if (bytes == 0)
        return HVD_OK;
    request = hvd__tcp_request_new(tcp, &frame);
    if (!request)
        return HVD_ERR_MEMORY;
    request->data = data;
    status = hvd__receiver_post(tcp, peer, request);
    if (status < 0 || request->is_done)
        hvd__tcp_request_free(request);
    else
        transfer->request = request;
    return status;
}

static int tcp_test(struct hvd__transport *self, struct hvd__transfer *transfer)
{
    struct hvd__tcp *tcp = (struct hvd__tcp *)self;
    struct hvd__tcp_request *request = transfer->request;

    if (!request)
        return 1;
    if (!request->is_done)
        HVD_TRY(hvd__tcp_drive(tcp, 0));
    if (!request->is_done)
        return hvd__fault_judge(&tcp->fault);
    hvd__tcp_request_free(request);
    transfer->request = NULL;
    return 1;
}

static int tcp_post(struct hvd__transport *self, int peer, void *message,
                    size_t bytes)
{
    struct hvd__tcp *tcp = (struct hvd__tcp *)self;
    const struct hvd__frame frame = {HVD__FRAME_MESSAGE, 0, bytes};
    struct hvd__sender *sender;
    struct hvd__tcp_request *request;

    if (peer == self->rank)
        return hvd__tcp_keep_message(tcp, peer, message, bytes);
    sender = hvd__sender_of(tcp, peer);
    request = sender ? hvd__tcp_request_new(tcp, &frame) : NULL;
    if (!request) {
        free(message);
        return HVD_ERR_MEMORY;
    }
    request->message = message;
    request->data = message;
    hvd__sender_add(tcp, sender, request);
    return HVD_OK;
}

static int tcp_poll(struct hvd__transport *self, int *peer, void **message,
                    size_t *bytes)
{
    struct hvd__tcp *tcp = (struct hvd__tcp *)self;
    struct hvd__tcp_message *item;

    if (!tcp->received)
        HVD_TRY(hvd__tcp_drive(tcp, 0));
    item = tcp->received;
    if (!item)
        return hvd__fault_judge(&tcp->fault);
    tcp->received = item->next;
    if (!tcp->received)
        tcp->received_end = &tcp->received;
    *peer = item->peer;
    *message = item->message;
    *bytes = item->bytes;
    free(item);
    return 1;
}

static int tcp_pending(struct hvd__transport *self)
{
    struct hvd__tcp *tcp = (struct hvd__tcp *)self;

    if (tcp->npending > 0)
        HVD_TRY(hvd__tcp_drive(tcp, 0));
    return tcp->npending;
}

static int rest(struct hvd__transport *self, int looks)
{
    (void)looks;
    return hvd__tcp_drive((struct hvd__tcp *)self, 1);
}

static int tcp_exchange(struct hvd__transport *self, const void *mine,
                        void *all, size_t bytes)
{
    struct hvd__tcp *tcp = (struct hvd__tcp *)self;
    const struct hvd__patience patience = {tcp->asked, rest};

    return hvd__dissemination_gather(self, HVD__TAG_EXCHANGE, &patience, mine,
                                     all, bytes, &tcp->abandoned);
}

static int tcp_part(struct hvd__transport *self)
{
    return hvd__dissemination_part(self, HVD__TAG_PART,
                                   &((struct hvd__tcp *)self)->parting);
}

/* Closes everything that other ranks can reach. */
static void hang_up(struct hvd__tcp *tcp)
{
    for (int rank = 0; tcp->peers && rank < tcp->base.size; rank++) {
        hvd__sender_free(tcp, rank);
        hvd__receiver_free(tcp, rank);
    }
    hvd__listener_close(tcp);
    if (tcp->lobby && tcp->lobby->tcp == tcp)
        tcp->lobby->tcp = NULL;
    free_dead(tcp);
    for (struct hvd__tcp_request *request = tcp->requests, *next; request;
         request = next) {
        next = request->other;
        hvd__tcp_request_free(request);
    }
    drop_received(tcp);
    if (tcp->epoll >= 0)
        close(tcp->epoll);
    tcp->epoll = -1;
}

/* Nothing comes over connections that are closed. */
static int tcp_quiet(struct hvd__transport *self, hvd__rank_test *is_lost,
                     const void *context)
{
    (void)is_lost, (void)context;
    hang_up((struct hvd__tcp *)self);
    return 1;
}

static void tcp_close(struct hvd__transport *self)
{
    struct hvd__tcp *tcp = (struct hvd__tcp *)self;

    hang_up(tcp);
    free(tcp->addresses);
    free(tcp->names);
    free(tcp->key);
    free(tcp->abandoned);
    free(tcp->peers);
    free(tcp);
}

void hvd__tcp_fill(struct hvd__tcp *tcp, int rank, int size)
{
    tcp->base = (struct hvd__transport){
        .name = "tcp",
        .rank = rank,
        .size = size,
        .threads = true,
        .ntags = HVD__TCP_NTAGS,
        .parts = true,
        .send = tcp_send,
        .receive = tcp_receive,
        .test = tcp_test,
        .post = tcp_post,
        .poll = tcp_poll,
        .pending = tcp_pending,
        .exchange = tcp_exchange,
        .part = tcp_part,
        .quiet = tcp_quiet,
        .shrink = hvd__tcp_shrink,
        .close = tcp_close,
    };
}
