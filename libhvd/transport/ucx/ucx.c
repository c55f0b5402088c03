/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ucx.c - the transport over UCX: tagged messages of one worker. hvd__ucx_open
 * (open.c) makes it beside another transport, the base, on which ranks exchange
 * their addresses and meet at the end; the driver of the engine calls it.
 *
 * Endpoints are made when a rank is first sent to. A rank that is only received
 * from costs nothing but its address.
 *
 *     63 62   61          32  31            0
 *     kind      tag              sender          the tag of a message in UCX
 *
 * Messages are found with a probe that removes them, in the order of arrival,
 * and one at a time is received, so they stay in order between two ranks.
 * UCX's order of matching keeps that of transfers.
 *
 * Faults. UCX reports a killed peer after a millisecond, a frozen one never,
 * and a receive from a dead peer stays under way for ever. So an endpoint that
 * fails is only noted (transport/fault.h). Messages to a rank whose endpoint
 * failed are dropped.
 *
 * Close must not wait for anybody: ranks have met before (part), or the world
 * is broken. It closes the endpoints by force and cancels receives, which UCX
 * would never end. If a receive has got a part of its data, UCX does not let go
 * of its memory; then the worker is left alone, for ever.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "transport/ucx/ucx.h"

enum { MESSAGE = 1, TRANSFER = 2 };
enum { KIND_SHIFT = 62, TAG_SHIFT = 32 };

#define KIND_MASK ((uint64_t)3 << KIND_SHIFT)
#define WHOLE_TAG UINT64_MAX

/* Stands for a transfer that failed together with an endpoint. */
static char lost;

static uint64_t tag_of(int kind, int tag, int sender)
{
    return (uint64_t)kind << KIND_SHIFT | (uint64_t)tag << TAG_SHIFT |
           (uint32_t)sender;
}

/* ------------------------------------------------------------------- faults */

static void note_fault(struct hvd__ucx *ucx, int peer, ucs_status_t why)
{
    hvd__fault_note(&ucx->fault, peer, ucx->library->ucs_status_string(why));
}

static void endpoint_failed(void *argument, ucp_ep_h endpoint, ucs_status_t why)
{
    struct hvd__ucx_peer *peer = argument;

    (void)endpoint;
    note_fault(peer->ucx, (int)(peer - peer->ucx->peers), why);
}

/* Finds the endpoint to a rank; *endpoint becomes NULL after a fault. */
static int reach(struct hvd__ucx *ucx, int rank, ucp_ep_h *endpoint)
{
    struct hvd__ucx_peer *peer = &ucx->peers[rank];
    const ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = (const ucp_address_t *)(ucx->addresses +
                                           (size_t)rank * ucx->address_bytes),
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = endpoint_failed, .arg = peer},
    };
    ucs_status_t status;

    *endpoint = peer->endpoint;
    if (peer->endpoint)
        return HVD_OK;
    peer->ucx = ucx;
    status = ucx->library->ucp_ep_create(ucx->worker, &params, endpoint);
    if (status == UCS_OK) {
        peer->endpoint = *endpoint;
        return HVD_OK;
    }
    *endpoint = NULL;
    if (status == UCS_ERR_UNREACHABLE) /* by their addresses alone */
        return hvd__fail(HVD_ERR_UNSUPPORTED,
                         "UCX knows no way from rank %d to rank %d",
                         ucx->base.rank, rank);
    note_fault(ucx, rank, status);
    return HVD_OK;
}

/* ---------------------------------------------------------------- requests */

static void keep(struct hvd__ucx_request **list,
                 struct hvd__ucx_request *request, void *message)
{
    *request = (struct hvd__ucx_request){
        .next = *list, .link = list, .message = message};
    if (*list)
        (*list)->link = &request->next;
    *list = request;
}

static void drop(struct hvd__ucx *ucx, struct hvd__ucx_request *request)
{
    *request->link = request->next;
    if (request->next)
        request->next->link = request->link;
    free(request->message);
    ucx->library->ucp_request_free(request);
}

/* Takes what UCX returned for a transfer. */
static int start(struct hvd__ucx *ucx, int peer, ucs_status_ptr_t request,
                 struct hvd__transfer *transfer)
{
    transfer->request = NULL;
    if (UCS_PTR_IS_ERR(request)) {
        if (UCS_PTR_STATUS(request) == UCS_ERR_NO_MEMORY)
            return hvd__fail(HVD_ERR_MEMORY, "UCX is out of memory");
        note_fault(ucx, peer, UCS_PTR_STATUS(request));
        transfer->request = &lost;
    } else if (request) {
        keep(&ucx->transfers, request, NULL);
        transfer->request = request;
    }
    return HVD_OK;
}

static int ucx_send(struct hvd__transport *self, int peer, int tag,
                    const void *data, size_t bytes,
                    struct hvd__transfer *transfer)
{
    struct hvd__ucx *ucx = (struct hvd__ucx *)self;
    const ucp_request_param_t param = {0};
    ucp_ep_h endpoint;

    transfer->request = NULL;
    if (bytes == 0)
        return HVD_OK;
    HVD_TRY(reach(ucx, peer, &endpoint));
    if (!endpoint) {
        transfer->request = &lost;
        return HVD_OK;
    }
    return start(
        ucx, peer,
        ucx->library->ucp_tag_send_nbx(
            endpoint, data, bytes, tag_of(TRANSFER, tag, self->rank), &param),
        transfer);
}

static int ucx_receive(struct hvd__transport *self, int peer, int tag,
                       void *data, size_t bytes, struct hvd__transfer *transfer)
{
    struct hvd__ucx *ucx = (struct hvd__ucx *)self;
    const ucp_request_param_t param = {0};

    transfer->request = NULL;
    if (bytes == 0)
        return HVD_OK;
    return start(ucx, peer,
                 ucx->library->ucp_tag_recv_nbx(ucx->worker, data, bytes,
                                                tag_of(TRANSFER, tag, peer),
                                                WHOLE_TAG, &param),
                 transfer);
}

/* Moves everything that is under way, as long as there is news and a request is
 * not done: configure.c lets UCX take one event at a time. Returns the
 * request's status. */
static ucs_status_t advance(struct hvd__ucx *ucx,
                            struct hvd__ucx_request *request)
{
    enum { MOST_EVENTS = 64 };
    ucs_status_t status = ucx->library->ucp_request_check_status(request);

    for (int i = 0; i < MOST_EVENTS && status == UCS_INPROGRESS; i++) {
        if (ucx->library->ucp_worker_progress(ucx->worker) == 0)
            break;
        status = ucx->library->ucp_request_check_status(request);
    }
    return status;
}

static int ucx_test(struct hvd__transport *self, struct hvd__transfer *transfer)
{
    struct hvd__ucx *ucx = (struct hvd__ucx *)self;
    struct hvd__ucx_request *request = transfer->request;
    ucs_status_t status;

    if (!transfer->request)
        return 1;
    if (transfer->request == &lost)
        return hvd__fault_judge(&ucx->fault);
    status = advance(ucx, request);
    if (status == UCS_INPROGRESS)
        return hvd__fault_judge(&ucx->fault);
    drop(ucx, request);
    transfer->request = NULL;
    if (status == UCS_OK)
        return 1;
    if (status == UCS_ERR_MESSAGE_TRUNCATED)
        return hvd__fail(HVD_ERR_INTERNAL,
                         "a rank sent more bytes than were expected");
    /* If it is not that of an endpoint, whose handler was called first, nobody
     * knows whose fault it is. */
    note_fault(ucx, self->rank, status);
    transfer->request = &lost;
    return hvd__fault_judge(&ucx->fault);
}

/* ---------------------------------------------------------------- messages */

static int ucx_post(struct hvd__transport *self, int peer, void *message,
                    size_t bytes)
{
    struct hvd__ucx *ucx = (struct hvd__ucx *)self;
    const ucp_request_param_t param = {0};
    ucp_ep_h endpoint;
    ucs_status_ptr_t request;
    int status = reach(ucx, peer, &endpoint);

    if (!endpoint) {
        free(message);
        return status;
    }
    request = ucx->library->ucp_tag_send_nbx(
        endpoint, message, bytes, tag_of(MESSAGE, 0, self->rank), &param);
    if (request && !UCS_PTR_IS_ERR(request)) {
        keep(&ucx->messages, request, message);
        /* The message may be the last one, before the world breaks. */
        ucx->library->ucp_worker_progress(ucx->worker);
        return HVD_OK;
    }
    free(message);
    if (UCS_PTR_STATUS(request) == UCS_ERR_NO_MEMORY)
        return hvd__fail(HVD_ERR_MEMORY, "UCX is out of memory");
    if (request)
        note_fault(ucx, peer, UCS_PTR_STATUS(request));
    return HVD_OK;
}

/* Frees the messages that have left, or never will. Returns how many have not.
 */
static int ucx_pending(struct hvd__transport *self)
{
    struct hvd__ucx *ucx = (struct hvd__ucx *)self;
    struct hvd__ucx_request *request = ucx->messages;
    int npending = 0;

    if (!request)
        return 0;
    ucx->library->ucp_worker_progress(ucx->worker);
    while (request) {
        struct hvd__ucx_request *next = request->next;

        if (ucx->library->ucp_request_check_status(request) != UCS_INPROGRESS)
            drop(ucx, request);
        else
            npending++;
        request = next;
    }
    return npending;
}

/* Starts to receive the oldest message. Returns 1 if there is one, else 0. */
static int match(struct hvd__ucx *ucx)
{
    const ucp_request_param_t param = {0};
    struct hvd__ucx_incoming *incoming = &ucx->incoming;
    ucp_tag_recv_info_t info;
    ucp_tag_message_h message;
    ucs_status_ptr_t request;

    ucx->library->ucp_worker_progress(ucx->worker);
    message = ucx->library->ucp_tag_probe_nb(ucx->worker, tag_of(MESSAGE, 0, 0),
                                             KIND_MASK, 1, &info);
    if (!message)
        return 0;
    incoming->message = malloc(info.length + 1);
    if (!incoming->message)
        return hvd__fail_memory(info.length + 1);
    incoming->bytes = info.length;
    incoming->peer = (int)(uint32_t)info.sender_tag;
    request = ucx->library->ucp_tag_msg_recv_nbx(ucx->worker, incoming->message,
                                                 info.length, message, &param);
    if (UCS_PTR_IS_ERR(request)) {
        note_fault(ucx, incoming->peer, UCS_PTR_STATUS(request));
        incoming->request = &lost;
    } else {
        incoming->request = request;
    }
    return 1;
}

/* Returns 1 when the message that is being received is there, 0 before. */
static int receive_message(struct hvd__ucx *ucx)
{
    struct hvd__ucx_incoming *incoming = &ucx->incoming;
    ucs_status_t status;

    if (!incoming->request)
        return 1;
    if (incoming->request == &lost)
        return 0;
    ucx->library->ucp_worker_progress(ucx->worker);
    status = ucx->library->ucp_request_check_status(incoming->request);
    if (status == UCS_INPROGRESS)
        return 0;
    ucx->library->ucp_request_free(incoming->request);
    incoming->request = NULL;
    if (status == UCS_OK)
        return 1;
    note_fault(ucx, incoming->peer, status);
    incoming->request = &lost;
    return 0;
}

static int ucx_poll(struct hvd__transport *self, int *peer, void **message,
                    size_t *bytes)
{
    struct hvd__ucx *ucx = (struct hvd__ucx *)self;
    struct hvd__ucx_incoming *incoming = &ucx->incoming;

    if (!incoming->message) {
        int matched = match(ucx);
        if (matched <= 0)
            return matched < 0 ? matched : hvd__fault_judge(&ucx->fault);
    }
    if (receive_message(ucx) == 0)
        return hvd__fault_judge(&ucx->fault);
    *peer = incoming->peer;
    *message = incoming->message;
    *bytes = incoming->bytes;
    incoming->message = NULL;
    return 1;
}

/* --------------------------------------------------------------- the base */

static int ucx_exchange(struct hvd__transport *self, const void *mine,
                        void *all, size_t bytes)
{
    struct hvd__ucx *ucx = (struct hvd__ucx *)self;

    return ucx->below->exchange(ucx->below, mine, all, bytes);
}

/* What this rank sent is all in UCX's hands when it says so on the base, and
 * what others sent has been received. */
static int ucx_part(struct hvd__transport *self)
{
    struct hvd__ucx *ucx = (struct hvd__ucx *)self;
    int npending = ucx_pending(self);

    ucx->library->ucp_worker_progress(ucx->worker);
    return npending ? 0 : ucx->below->part(ucx->below);
}

static void ucx_close(struct hvd__transport *self)
{
    const bool is_broken = self->is_broken;
    struct hvd__transport *below = hvd__ucx_drop(self);

    below->is_broken |= is_broken;
    below->close(below);
}

void hvd__ucx_fill(struct hvd__ucx *ucx, struct hvd__transport *below)
{
    ucx->below = below;
    ucx->base = *below;
    ucx->base.name = "ucx";
    ucx->base.ntags = 1 << (KIND_SHIFT - TAG_SHIFT);
    ucx->base.parts = true;
    /* Only exchange and part use the base. */
    ucx->base.threads = true;
    ucx->base.parts_by_program = !below->threads;
    ucx->base.send = ucx_send;
    ucx->base.receive = ucx_receive;
    ucx->base.test = ucx_test;
    ucx->base.post = ucx_post;
    ucx->base.poll = ucx_poll;
    ucx->base.pending = ucx_pending;
    ucx->base.exchange = ucx_exchange;
    ucx->base.part = ucx_part;
    ucx->base.close = ucx_close;
}
