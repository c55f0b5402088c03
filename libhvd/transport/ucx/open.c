/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - makes and ends the transport over UCX. core/world/transport.c calls
 * it through transport.h, with the lock of hvd_init.
 *
 * A rank that has no UCX says so when addresses are exchanged, so that all
 * ranks fail alike.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/left.h"
#include "base/status.h"
#include "transport/ucx/ucx.h"

int hvd__ucx_fail(const struct hvd__ucx *ucx, const char *call,
                  ucs_status_t status)
{
    return hvd__fail(HVD_ERR_UNSUPPORTED, "UCX: %s: %s", call,
                     ucx->library->ucs_status_string(status));
}

/* UCX makes room for so many peers at first, and chooses among its transports
 * by it. Ranks speak to few others: the partners of a recursive doubling. */
enum { USUAL_PEERS = 16 };

static int make_context(struct hvd__ucx *ucx)
{
    const ucp_params_t params = {
        .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_REQUEST_SIZE |
                      UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_NAME,
        .features = UCP_FEATURE_TAG,
        .request_size = sizeof(struct hvd__ucx_request),
        .estimated_num_eps = USUAL_PEERS,
        .name = "hvd",
    };
    ucp_config_t *config;
    ucs_status_t status = ucx->library->ucp_config_read(NULL, NULL, &config);
    int result;

    if (status != UCS_OK)
        return hvd__ucx_fail(ucx, "ucp_config_read", status);
    result = hvd__ucx_configure(ucx, config);
    if (result == HVD_OK) {
        status = ucx->library->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR,
                                                &params, config, &ucx->context);
        if (status != UCS_OK) {
            ucx->context = NULL;
            result = hvd__ucx_fail(ucx, "ucp_init", status);
        }
    }
    ucx->library->ucp_config_release(config);
    return result;
}

/* One thread at a time uses the worker, not always the same one. */
static int make_worker(struct hvd__ucx *ucx)
{
    const ucp_worker_params_t params = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
    };
    ucs_status_t status =
        ucx->library->ucp_worker_create(ucx->context, &params, &ucx->worker);

    if (status == UCS_OK)
        return HVD_OK;
    ucx->worker = NULL;
    return hvd__ucx_fail(ucx, "ucp_worker_create", status);
}

/* Ranks describe themselves by a hello before they exchange addresses. */
struct hello {
    int32_t status;
    uint32_t address_bytes;
    char text[256]; /* why the status is negative */
};

static int judge_hellos(const struct hello *all, int size, size_t *longest)
{
    *longest = 1; /* memory is never taken for no bytes */
    for (int rank = 0; rank < size; rank++) {
        if (all[rank].status < 0)
            return hvd__fail(all[rank].status, "rank %d: %s", rank,
                             all[rank].text);
        if (all[rank].address_bytes > *longest)
            *longest = all[rank].address_bytes;
    }
    return HVD_OK;
}

/* Collective: all ranks succeed or fail. status: whether this one can. */
static int meet(struct hvd__ucx *ucx, int status, size_t bytes)
{
    struct hvd__transport *below = ucx->below;
    size_t size = (size_t)below->size;
    struct hello mine = {status, (uint32_t)bytes, ""};
    struct hello *all = calloc(size, sizeof *all);

    if (!all)
        return hvd__fail_memory(size * sizeof *all);
    if (status < 0)
        snprintf(mine.text, sizeof mine.text, "%s", hvd_last_error());
    status = below->exchange(below, &mine, all, sizeof mine);
    if (status == HVD_OK)
        status = judge_hellos(all, below->size, &ucx->address_bytes);
    free(all);
    return status;
}

static int exchange_addresses(struct hvd__ucx *ucx, const void *own,
                              size_t bytes)
{
    struct hvd__transport *below = ucx->below;
    unsigned char *mine = calloc(1, ucx->address_bytes);
    int status;

    ucx->addresses = calloc((size_t)below->size, ucx->address_bytes);
    if (mine)
        memcpy(mine, own, bytes);
    if (!mine || !ucx->addresses)
        status = hvd__fail_memory((size_t)below->size * ucx->address_bytes);
    else
        status =
            below->exchange(below, mine, ucx->addresses, ucx->address_bytes);
    free(mine);
    return status;
}

/* Makes what this rank needs for itself. */
static int prepare(struct hvd__ucx *ucx, ucp_address_t **address, size_t *bytes)
{
    ucs_status_t status;

    ucx->library = hvd__ucx_load();
    if (!ucx->library)
        return HVD_ERR_UNSUPPORTED;
    ucx->peers = calloc((size_t)ucx->below->size, sizeof *ucx->peers);
    if (!ucx->peers)
        return hvd__fail_memory((size_t)ucx->below->size * sizeof *ucx->peers);
    HVD_TRY(make_context(ucx));
    HVD_TRY(make_worker(ucx));
    status = ucx->library->ucp_worker_get_address(ucx->worker, address, bytes);
    if (status == UCS_OK)
        return HVD_OK;
    *address = NULL;
    return hvd__ucx_fail(ucx, "ucp_worker_get_address", status);
}

int hvd__ucx_open(struct hvd__transport *below, int64_t grace_ns,
                  struct hvd__transport **transport)
{
    struct hvd__ucx *ucx = calloc(1, sizeof *ucx);
    ucp_address_t *address = NULL;
    size_t bytes = 0;
    int status;

    /* A rank that returned here would leave the others waiting. */
    if (!ucx)
        return hvd__fail_memory(sizeof *ucx);
    hvd__ucx_hush(1);
    hvd__ucx_fill(ucx, below);
    ucx->fault = (struct hvd__fault){
        .grace_ns = grace_ns, .transport = "UCX", .peer = -1};
    status = prepare(ucx, &address, &bytes);
    status = meet(ucx, status, bytes);
    if (status == HVD_OK)
        status = exchange_addresses(ucx, address, bytes);
    if (address)
        ucx->library->ucp_worker_release_address(ucx->worker, address);
    if (status < 0) {
        hvd__ucx_drop(&ucx->base);
        return status;
    }
    *transport = &ucx->base;
    return HVD_OK;
}

/* --------------------------------------------------------------------- end */

/* Begins to close all endpoints by force, which waits for no peer. Returns the
 * requests of those that take time. */
static struct hvd__ucx_request *close_endpoints(struct hvd__ucx *ucx)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_EP_CLOSE_FLAG_FORCE,
    };
    struct hvd__ucx_request *closing = NULL;

    for (int rank = 0; rank < ucx->base.size; rank++) {
        struct hvd__ucx_request *request;

        if (!ucx->peers[rank].endpoint)
            continue;
        request =
            ucx->library->ucp_ep_close_nbx(ucx->peers[rank].endpoint, &param);
        if (!request || UCS_PTR_IS_ERR(request))
            continue;
        *request = (struct hvd__ucx_request){.next = closing};
        closing = request;
    }
    return closing;
}

static bool is_under_way(const struct hvd__ucx *ucx,
                         const struct hvd__ucx_request *request)
{
    return ucx->library->ucp_request_check_status((void *)(uintptr_t)request) ==
           UCS_INPROGRESS;
}

/* Ends all transfers, in memory that may be the caller's no more. Returns false
 * if UCX does not let go of one: a receive that has got a part of its data. */
static bool cancel_transfers(struct hvd__ucx *ucx)
{
    for (struct hvd__ucx_request *r = ucx->transfers; r; r = r->next)
        if (is_under_way(ucx, r))
            ucx->library->ucp_request_cancel(ucx->worker, r);
    for (struct hvd__ucx_request *r = ucx->transfers; r; r = r->next)
        if (is_under_way(ucx, r))
            return false;
    return true;
}

static void free_requests(struct hvd__ucx *ucx,
                          struct hvd__ucx_request *request)
{
    while (request) {
        struct hvd__ucx_request *next = request->next;

        free(request->message);
        ucx->library->ucp_request_free(request);
        request = next;
    }
}

/* UCX closes an endpoint in a few steps of its worker. */
enum { CLOSING_STEPS = 1000 };

static void end_worker(struct hvd__ucx *ucx, struct hvd__ucx_request *closing)
{
    for (struct hvd__ucx_request *r = closing; r; r = r->next)
        for (int i = 0; i < CLOSING_STEPS && is_under_way(ucx, r); i++)
            ucx->library->ucp_worker_progress(ucx->worker);
    free_requests(ucx, closing);
    free_requests(ucx, ucx->transfers);
    free_requests(ucx, ucx->messages);
    ucx->library->ucp_worker_destroy(ucx->worker);
}

struct hvd__transport *hvd__ucx_drop(struct hvd__transport *transport)
{
    struct hvd__ucx *ucx = (struct hvd__ucx *)transport;
    struct hvd__transport *below = ucx->below;

    if (ucx->worker) {
        struct hvd__ucx_request *closing = close_endpoints(ucx);

        /* Not a step more: it could write to memory that is freed by now. */
        if (!cancel_transfers(ucx)) {
            hvd__leave_behind(ucx);
            return below;
        }
        end_worker(ucx, closing);
    }
    if (ucx->context)
        ucx->library->ucp_cleanup(ucx->context);
    hvd__ucx_hush(-1);
    free(ucx->incoming.message);
    free(ucx->addresses);
    free(ucx->peers);
    free(ucx);
    return below;
}
