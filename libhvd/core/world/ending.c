/* SPDX-License-Identifier: Apache-2.0 */
#include "core/world/ending.h"

#include <stdio.h>

#include "base/status.h"
#include "transport/transport.h"

static struct hvd__guard_options options;
static char lost[HVD__MESSAGE_MAX]; /* the lost ranks; "": none */
static void (*then)(void);

struct hvd__guard_options hvd__ending_options(
    const struct hvd__settings *settings)
{
    return (struct hvd__guard_options){
        .heartbeat_ns = settings->heartbeat_ns,
        .limit_ns = settings->start_ns,
        .report_ns = settings->stall_check_ns,
        .exit_grace_ns = settings->exit_grace_ns,
    };
}

/* Runs when MPI_Finalize begins. */
static void enter_finalize(bool is_last)
{
    hvd__guard_watch_finalize(&options, lost[0] ? lost : NULL, is_last);
}

void hvd__ending_expect(const struct hvd__settings *settings)
{
    options = hvd__ending_options(settings);
    hvd__mpi_around_end(enter_finalize, hvd__guard_leave_finalize);
}

/* An exit does not finalise MPI while a handler is set, so this one sets itself
 * again. */
static void stay_broken(void)
{
    hvd__mpi_before_end(stay_broken);
}

void hvd__ending_set(bool is_broken, const char *why)
{
    snprintf(lost, sizeof lost, "%s", why);
    then = is_broken ? stay_broken : NULL;
}

void hvd__ending_resume(void)
{
    hvd__mpi_before_end(then);
}
