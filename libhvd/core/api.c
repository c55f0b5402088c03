/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.c - the door: every collective call is a request that goes through
 * submit() below. Follow one from here through
 *
 *     request.c      can this be at all?
 *     ledger.c       in flight from now on, under its key
 *     progress.c     whoever waits moves the rest
 *     negotiate.c    announced to rank 0, and
 *     coordinator.c  agreed on by all, with
 *     fuse.c         its neighbours in the same batch
 *     execute.c      packed, and moved by an algorithm of transport/algo
 *     complete.c     status, callback, waiter
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "core/complete.h"
#include "core/refuse.h"
#include "core/text.h"
#include "core/world.h"

/* What a message calls a request: its kind and its name. */
static const char *describe(const hvd_request *request, char *text, size_t size)
{
    struct hvd__text out = hvd__text_at(text, size);
    const char *kind = hvd_kind_name(request->kind);

    hvd__text_add(&out, "%s ", kind ? kind : "request");
    if (request->name && request->name[0])
        hvd__text_add(&out, "'%s'", request->name);
    else
        hvd__text_add(&out, "without a name");
    return text;
}

/* Tell the other ranks that this request was refused, so that they do not
 * wait for it. entry is taken; the last error stays. */
static int refuse(struct hvd__world *world, struct hvd__entry *entry,
                  int status)
{
    entry->status = status;
    entry->message = strdup(hvd_last_error());
    if (!entry->message) {
        hvd__entry_free(entry);
        return hvd__fail_memory(1);
    }
    hvd__ledger_refuse(&world->ledger, entry);
    hvd__progress_wake(world);
    return status;
}

void hvd__refuse(const char *name, int status)
{
    struct hvd__entry *entry;
    int world_status;
    struct hvd__world *world = hvd__world_get(&world_status);

    if (!world || !(entry = calloc(1, sizeof *entry)))
        return;
    snprintf(entry->key, sizeof entry->key, "%s", name);
    refuse(world, entry, status);
}

static int submit(struct hvd__world *world, const hvd_request *request,
                  hvd_handle *handle)
{
    struct hvd__entry *entry;
    char what[HVD_MAX_NAME + 32];
    int status;

    if (request->name)
        HVD_TRY(hvd__request_check_name(request->name));
    entry = calloc(1, sizeof *entry);
    if (!entry)
        return hvd__fail_memory(sizeof *entry);
    if (request->name)
        strcpy(entry->key, request->name);
    entry->callback = request->callback;
    entry->callback_context = request->callback_context;
    status = hvd__request_check(request, world->transport->size,
                                describe(request, what, sizeof what), entry);
    if (status == HVD_OK)
        status = hvd__ledger_submit(&world->ledger, entry, handle);
    if (status < 0)
        return refuse(world, entry, status);
    return HVD_OK;
}

int hvd_submit(const hvd_request *given, hvd_handle *handle)
{
    struct hvd__world *world;
    hvd_request request;
    int status;

    world = hvd__world_get(&status);
    if (!world)
        return status;
    HVD_TRY(hvd__request_copy(given, &request));
    HVD_TRY(submit(world, &request, handle));
    hvd__progress_wake(world);
    return HVD_OK;
}

/* ------------------------------------------------------------ wait and poll */

static bool is_done(const void *context)
{
    const struct hvd__entry *entry = context;

    return atomic_load_explicit(&entry->done, memory_order_acquire);
}

static int no_waiting_here(void)
{
    return hvd__fail(HVD_ERR_ARGUMENT,
                     "a callback must not wait: submit and return");
}

static int wait_for(struct hvd__world *world, hvd_handle handle)
{
    struct hvd__entry *entry;
    int status;

    if (hvd__in_callback())
        return no_waiting_here();
    HVD_TRY(hvd__ledger_find(&world->ledger, handle, true, &entry));
    hvd__progress_until(world, is_done, entry, 0);
    status = entry->status;
    if (status < 0)
        hvd__fail_text(status,
                       entry->message ? entry->message : hvd_strerror(status));
    hvd__ledger_reap(&world->ledger, entry);
    return status;
}

int hvd_wait(hvd_handle handle)
{
    int status;
    struct hvd__world *world = hvd__world_get(&status);

    return world ? wait_for(world, handle) : status;
}

int hvd_poll(hvd_handle handle)
{
    struct hvd__entry *entry;
    int status;
    struct hvd__world *world = hvd__world_get(&status);

    if (!world)
        return status;
    HVD_TRY(hvd__ledger_find(&world->ledger, handle, false, &entry));
    if (!is_done(entry) && !hvd__in_callback())
        hvd__progress_once(world);
    return is_done(entry);
}

/* ------------------------------------------------------------- conveniences */

static void fill(hvd_request *request, hvd_kind kind, const char *name,
                 const void *in, void *out, const int64_t *count,
                 hvd_dtype dtype)
{
    hvd_request_init(request, sizeof *request);
    request->kind = kind;
    request->name = name;
    request->input = in;
    request->output = out;
    request->dtype = dtype;
    request->ndim = 1;
    request->shape = count;
}

/* Submit and wait: nobody else is woken, this thread drives. */
static int blocking(const hvd_request *request)
{
    hvd_handle handle = 0;
    int status;
    struct hvd__world *world = hvd__world_get(&status);

    if (!world)
        return status;
    if (hvd__in_callback())
        return no_waiting_here();
    HVD_TRY(submit(world, request, &handle));
    return wait_for(world, handle);
}

int hvd_allreduce(const void *in, void *out, int64_t count, hvd_dtype dtype,
                  hvd_op op)
{
    hvd_request request;

    fill(&request, HVD_ALLREDUCE, NULL, in, out, &count, dtype);
    request.op = op;
    return blocking(&request);
}

int hvd_broadcast(void *buffer, int64_t count, hvd_dtype dtype, int root)
{
    hvd_request request;

    fill(&request, HVD_BROADCAST, NULL, NULL, buffer, &count, dtype);
    request.root = root;
    return blocking(&request);
}

int hvd_barrier(void)
{
    hvd_request request;

    hvd_request_init(&request, sizeof request);
    request.kind = HVD_BARRIER;
    return blocking(&request);
}

int hvd_allreduce_async(const char *name, const void *in, void *out,
                        int64_t count, hvd_dtype dtype, hvd_op op,
                        hvd_handle *handle)
{
    hvd_request request;

    fill(&request, HVD_ALLREDUCE, name, in, out, &count, dtype);
    request.op = op;
    return hvd_submit(&request, handle);
}

int hvd_broadcast_async(const char *name, void *buffer, int64_t count,
                        hvd_dtype dtype, int root, hvd_handle *handle)
{
    hvd_request request;

    fill(&request, HVD_BROADCAST, name, NULL, buffer, &count, dtype);
    request.root = root;
    return hvd_submit(&request, handle);
}
