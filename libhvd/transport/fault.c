/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/fault.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"

/* The most of a gap between two looks at the clock that counts as own time. */
#define PASS_NS INT64_C(200000000)

void hvd__fault_note(struct hvd__fault *fault, int peer, const char *why)
{
    if (fault->since_ns)
        return;
    fault->since_ns = hvd__now_ns();
    fault->peer = peer;
    snprintf(fault->why, sizeof fault->why, "%s", why);
    hvd__log(HVD__LOG_DEBUG, "%s: the connection to rank %d broke: %s",
             fault->transport, peer, why);
}

void hvd__fault_clear(struct hvd__fault *fault, int peer)
{
    if (fault->peer == peer)
        fault->since_ns = 0;
}

int hvd__fault_judge(struct hvd__fault *fault)
{
    int64_t now, since;

    if (!fault->since_ns)
        return 0;
    now = hvd__now_ns();
    hvd__own_time_pass(&fault->time, now, PASS_NS);
    since = hvd__own_time_since(&fault->time, fault->since_ns, now);
    if (since <= fault->grace_ns)
        return 0;
    return hvd__fail(HVD_ERR_LOST,
                     "the connection to rank %d over %s broke (%s), and the "
                     "rank was not found dead",
                     fault->peer, fault->transport, fault->why);
}
