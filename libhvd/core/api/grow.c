/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow.c - hvd_grow: all ranks agree whether processes wait to join, and whom
 * they let in. core/world/grow.h explains the rest.
 */
#include "core/world/grow.h"

#include <stdlib.h>

#include "base/status.h"
#include "core/run/complete.h"

/* Makes all ranks know the tickets that one of them knows. */
static int share_tickets(int64_t *tickets, int n)
{
    const int64_t shape[1] = {n};
    hvd_request request;
    hvd_handle handle;

    hvd_request_init(&request, sizeof request);
    request.kind = HVD_ALLREDUCE;
    request.dtype = HVD_INT64;
    request.op = HVD_MAX;
    request.ndim = 1;
    request.shape = shape;
    request.name = "hvd_grow";
    request.input = request.output = tickets;
    HVD_TRY(hvd_submit(&request, &handle));
    return hvd_wait(handle);
}

int hvd_joiners(void)
{
    struct hvd__world *world;

    HVD_TRY(hvd__world_get(&world));
    return hvd__grow_count(world);
}

int hvd_grow(hvd_recovery *recovery, size_t size)
{
    struct hvd__world *world;
    int64_t *tickets;
    int n, status;

    if (hvd__in_callback())
        return hvd__fail(HVD_ERR_ARGUMENT, "a callback must not call hvd_grow");
    if (recovery && size < sizeof recovery->size)
        return hvd__fail(HVD_ERR_ARGUMENT, "hvd_recovery has %zu bytes", size);
    HVD_TRY(hvd_check());
    HVD_TRY(hvd__world_get(&world));
    n = hvd__grow_list(world, &tickets);
    if (n <= 0)
        return n;
    status = share_tickets(tickets, n);
    for (int rank = 0; rank < n && status == HVD_OK; rank++)
        status = tickets[rank] != 0;
    if (status > 0)
        status = hvd__world_replace(tickets, recovery, size);
    else
        n = 0;
    free(tickets);
    return status < 0 ? status : n > 0;
}
