/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - the engine holds the state that the steps of all process sets of a
 * world share. The room core/run has this door, together with execute.h
 * (batches) and complete.h.
 *
 * Functions of core/run, core/agree and core/world get the engine, or a process
 * set, which refers to it, as their first argument. "Driver only" and
 * "driver's" mark functions and fields that only the thread with the role of
 * the driver (core/world/progress.h) may use; they need no lock. The driver
 * stores sending after each step. Any thread may load it, relaxed, as a hint
 * whether to drive. hvd_completion_fd sets completion_fd once.
 */
#ifndef HVD_CORE_ENGINE_H
#define HVD_CORE_ENGINE_H

#include "core/settings/settings.h"
#include "core/table/table.h"
#include "trace/metrics.h"
#include "trace/trace_writer.h"
#include "transport/costs.h"
#include "transport/transport.h"

struct hvd__engine {
    struct hvd__settings settings; /* fixed once the world has started */
    struct hvd__costs costs;       /* likewise, and the same on all ranks */
    struct hvd__transport
        *transport; /* owned; driver's, except rank and size */
    struct hvd__table table;
    struct hvd__set *live;          /* driver's: sets that the steps move */
    struct hvd__set *_Atomic added; /* sets to add to live in the next step */
    int nskipped; /* driver's: steps since the last poll for messages */
    bool is_told; /* driver's: another rank has said that its world is broken */
    atomic_bool sending; /* messages of this rank are still being sent */
    struct hvd__metrics metrics;
    struct hvd__trace_writer writer;
    atomic_int completion_fd; /* hvd_completion_fd; -1: not asked for */
};

#endif
