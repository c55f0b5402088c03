/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.h - the engine for other rooms: it runs a compiled program on the CPU
 * and keeps its memory. The door of this room.
 *
 * An engine belongs to one thread at a time. It borrows its executable, and
 * holds a share of each queue that it uses. A run that fails leaves the
 * variables as they were. Replicas and pipelines run several engines step by
 * step with the calls below; thread_pool.h has the threads.
 */
#ifndef IPU_ENGINE_ENGINE_H
#define IPU_ENGINE_ENGINE_H

#include "compiler/program.h"

/* Returns the executable that the engine runs; borrowed. */
const ipu_executable *ipu__engine_executable(const ipu_engine *engine);

/* Returns whether a call of ipu_engine_run is going on. */
bool ipu__engine_is_running(const ipu_engine *engine);

/*
 * A run in parts, for who runs several engines that meet: begin, then steps
 * up to a number (not with it), as often as there are parts, then the end: with
 * IPU_OK, outputs are streamed, otherwise the run has failed. The number of
 * steps is the last part's.
 */
int ipu__engine_begin(ipu_engine *engine);
int ipu__engine_advance(ipu_engine *engine, int32_t until);
int ipu__engine_end(ipu_engine *engine, int status); /* the run's */

/* Tells the program's outfeeds that a run begins, before the first replica, and
 * that it has ended, after the last. */
void ipu__engine_begin_queues(const ipu_engine *engine);
void ipu__engine_end_queues(const ipu_engine *engine, int status);

/* Does ipu_engine_new for one of several replicas. Returns IPU_ERR_STATE if the
 * program's queues have another replication factor. */
int ipu__engine_new_replica(const ipu_executable *executable, int32_t replica,
                            int32_t replicas, ipu_engine **engine);

/* Returns false if the step's update region is not due this time. */
bool ipu__engine_is_due(const ipu_engine *engine, int32_t step);

/* Returns the memory of a step's value. */
void *ipu__engine_value(ipu_engine *engine, int32_t value);

/*
 * Called when a collective op in the body or condition of a loop has put what
 * is its replica's own where the sum is to be, data; on the thread that runs
 * the engine. Ops outside of loops are cut at instead.
 */
typedef int (*ipu__meet_fn)(void *context, int32_t replica,
                            const struct ipu__step *step,
                            const struct ipu__shape *shape, void *data);
void ipu__engine_meet(ipu_engine *engine, ipu__meet_fn meet, void *context);

#endif
