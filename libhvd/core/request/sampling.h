/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampling.h - chooses the requests that read the clock, and estimates the
 * times of the others.
 *
 * Reading the clock takes a tenth of the time of a small request. So one small
 * request in eight is timed, and the next ones are assumed to be like it. For a
 * request that is not timed,
 *
 *     submitted_ns   is exact to a few milliseconds
 *     since_ns       is the time of its decision less what the last timed
 *                    request waited; or when it was announced by name
 *     its latency    if it ran at once, is that of the last timed one
 *
 * Larger requests are always timed, and so are all requests while a trace is
 * written. The driver calls these functions; any thread may call
 * hvd__sampling_start.
 */
#ifndef HVD_CORE_SAMPLING_H
#define HVD_CORE_SAMPLING_H

#include "base/clock.h"
#include "core/request/request.h"

/* The last timed requests of a set. */
struct hvd__sampling {
    int64_t quick_ns;  /* latency of the last one that ran at once */
    int64_t waited_ns; /* time that the last one waited for other ranks */
};

/* Starts the clock of a submission. It is timed in any case if always is true.
 * number is a number of the request, in any order; it is mixed so that the
 * choice does not follow a period in the program's requests. */
static inline void hvd__sampling_start(struct hvd__submission *submission,
                                       bool always, int64_t number)
{
    enum { TIMED_LOG2 = 3, SMALL_BYTES = 16384 };
    const uint64_t spread = (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15);

    submission->state.timed = always ||
                              submission->requests[0].bytes > SMALL_BYTES ||
                              spread >> (64 - TIMED_LOG2) == 0;
    submission->state.submitted_ns =
        submission->state.timed ? hvd__now_ns() : hvd__coarse_ns();
    submission->state.since_ns = submission->state.submitted_ns;
}

/* Call this before the submission is announced by name. */
static inline void hvd__sampling_announce(struct hvd__submission *submission)
{
    if (!submission->state.timed)
        submission->state.since_ns = hvd__now_ns();
}

/* Call this when this rank has found, at now_ns, that all ranks have submitted
 * it. */
static inline void hvd__sampling_decide(struct hvd__sampling *sampling,
                                        struct hvd__submission *submission,
                                        int64_t now_ns)
{
    if (submission->state.timed)
        sampling->waited_ns = now_ns - submission->state.since_ns;
    else
        submission->state.since_ns = now_ns - sampling->waited_ns;
}

/* Ends a submission that ran at once. yielded_ns is its time since the first
 * yield, a lower bound of its latency. */
static inline void hvd__sampling_end(struct hvd__sampling *sampling,
                                     const struct hvd__submission *submission,
                                     int64_t yielded_ns)
{
    if (submission->state.timed)
        sampling->quick_ns = hvd__now_ns() - submission->state.submitted_ns;
    else if (yielded_ns > sampling->quick_ns)
        sampling->quick_ns = yielded_ns;
}

/* Continues a submission that could not run at once. It is timed from its first
 * yield if it yielded, else from now. */
static inline void hvd__sampling_go_on(struct hvd__submission *submission,
                                       int64_t yielded_at_ns)
{
    if (!submission->state.timed)
        submission->state.since_ns =
            yielded_at_ns ? yielded_at_ns : hvd__now_ns();
    submission->state.timed = true;
}

#endif
