/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agree.c - turns a failure of one rank into a failure of all. Texts travel by
 * allreduces only, because these also work if a rank has joined: all ranks but
 * the reported one add zeros.
 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "state/state.h"

int hvd__allreduce_on(int32_t process_set, void *data, int64_t count,
                      hvd_dtype dtype, hvd_op op)
{
    hvd_request request;
    hvd_handle handle;

    if (process_set == 0)
        return hvd_allreduce(data, data, count, dtype, op);
    hvd_request_init(&request, sizeof request);
    request.dtype = dtype;
    request.op = op;
    request.ndim = 1;
    request.shape = &count;
    request.input = request.output = data;
    request.process_set = process_set;
    HVD_TRY(hvd_submit(&request, &handle));
    return hvd_wait(handle);
}

int hvd__agree(int32_t set, int status)
{
    char text[HVD__MESSAGE_MAX] = "";
    /* The least of these numbers stands for the lowest rank that failed. */
    int64_t mine = status < 0 ? (int64_t)hvd_rank() - hvd_size() : 0;
    int64_t worst = mine;
    int32_t shared = status;

    if (status < 0)
        snprintf(text, sizeof text, "%s", hvd_last_error());
    HVD_TRY(hvd__allreduce_on(set, &worst, 1, HVD_INT64, HVD_MIN));
    if (worst == 0)
        return HVD_OK;
    worst += hvd_size();
    if (worst != hvd_rank()) {
        shared = 0;
        memset(text, 0, sizeof text);
    }
    HVD_TRY(hvd__allreduce_on(set, &shared, 1, HVD_INT32, HVD_SUM));
    HVD_TRY(hvd__allreduce_on(set, text, sizeof text, HVD_UINT8, HVD_SUM));
    return hvd__fail(shared, "rank %d: %s", (int)worst, text);
}
