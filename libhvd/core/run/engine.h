/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - what the steps of all process sets of a world share: the door of
 * the room core/run, with execute.h (batches), complete.h and trace_writer.h.
 *
 * The rooms that run, agree and drive get the engine as their first argument.
 * "Driver's" marks what belongs, without a lock, to the one thread that has the
 * role of the driver (core/world/progress.h). sending is stored by the driver
 * after each step and loaded by any thread, relaxed: a hint whether to drive.
 * completion_fd is set once, by hvd_completion_fd.
 */
#ifndef HVD_CORE_ENGINE_H
#define HVD_CORE_ENGINE_H

#include "core/run/trace_writer.h"
#include "core/settings/settings.h"
#include "core/table/table.h"
#include "trace/metrics.h"
#include "transport/transport.h"

struct hvd__engine {
    struct hvd__settings settings;    /* fixed once the world has started */
    struct hvd__transport *transport; /* owned; driver's, but rank and size */
    struct hvd__table table;
    struct hvd__set *live;          /* driver's: sets that we move */
    struct hvd__set *_Atomic added; /* ... and will from the next step on */
    int nskipped;        /* driver's: steps without a look at messages */
    atomic_bool sending; /* messages of ours are still on their way out */
    struct hvd__metrics metrics;
    struct hvd__trace_writer writer;
    atomic_int completion_fd; /* hvd_completion_fd; -1: not asked for */
};

#endif
