/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sampling.h - which requests read the clock, and which times the others get.
 *
 * Reading the clock takes a tenth of the time of a small request. So one small
 * request in eight is timed, and the next ones are taken to be like it: of a
 * request that is not timed,
 *
 *     submitted_ns   is exact to a few milliseconds
 *     since_ns       is the time of its decision less what the last timed
 *                    request waited; or when it was announced by name
 *     its latency    if it ran at once, is that of the last timed one
 *
 * Larger requests are timed, and all are while a trace is written. The driver
 * of a set's engine calls these functions, but for hvd__sampling_start.
 */
#ifndef HVD_CORE_SAMPLING_H
#define HVD_CORE_SAMPLING_H

#include "base/clock.h"
#include "core/request/request.h"

/* The last timed requests of a set. */
struct hvd__sampling {
    int64_t quick_ns;  /* latency of the last that ran at once */
    int64_t waited_ns; /* for the other ranks */
};

/* Starts the time of a submission. always: time it in any case; number: of the
 * request, in any order. The choice must not follow what a program does every
 * so many requests. */
static inline void hvd__sampling_start(struct hvd__submission *submission,
                                       bool always, int64_t number)
{
    enum { TIMED = 8, SMALL_BYTES = 16384 };

    submission->state.timed = always ||
                              submission->requests[0].bytes > SMALL_BYTES ||
                              hvd__mix((uint64_t)number) % TIMED == 0;
    submission->state.submitted_ns =
        submission->state.timed ? hvd__now_ns() : hvd__coarse_ns();
    submission->state.since_ns = submission->state.submitted_ns;
}

/* The submission is about to be announced by name. */
static inline void hvd__sampling_announce(struct hvd__submission *submission)
{
    if (!submission->state.timed)
        submission->state.since_ns = hvd__now_ns();
}

/* All ranks have submitted it, and this one knows since now_ns. */
static inline void hvd__sampling_decide(struct hvd__sampling *sampling,
                                        struct hvd__submission *submission,
                                        int64_t now_ns)
{
    if (submission->state.timed)
        sampling->waited_ns = now_ns - submission->state.since_ns;
    else
        submission->state.since_ns = now_ns - sampling->waited_ns;
}

/* Ends a submission that ran at once. yielded_ns: the part of its time that is
 * known anyway. */
static inline void hvd__sampling_end(struct hvd__sampling *sampling,
                                     const struct hvd__submission *submission,
                                     int64_t yielded_ns)
{
    if (submission->state.timed)
        sampling->quick_ns = hvd__now_ns() - submission->state.submitted_ns;
    else if (yielded_ns > sampling->quick_ns)
        sampling->quick_ns = yielded_ns;
}

/* Goes on with a submission that could not run at once: it is timed from now
 * on, or from its first yield, if it yielded. */
static inline void hvd__sampling_go_on(struct hvd__submission *submission,
                                       int64_t yielded_at_ns)
{
    if (!submission->state.timed)
        submission->state.since_ns =
            yielded_at_ns ? yielded_at_ns : hvd__now_ns();
    submission->state.timed = true;
}

#endif
