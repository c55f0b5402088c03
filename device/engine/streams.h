/* SPDX-License-Identifier: Apache-2.0 */
/*
 * streams.h - the queues of a program, without those of its loops.
 */
#ifndef IPU_ENGINE_STREAMS_H
#define IPU_ENGINE_STREAMS_H

#include "engine/memory.h"

/* An engine comes: how many queues it is attached to; and goes. */
int ipu__streams_attach(const struct ipu_executable *executable,
                        int32_t replicas);
void ipu__streams_detach(const struct ipu_executable *executable,
                         int32_t count);

/* A run begins, and ends with a status. */
void ipu__streams_begin(const struct ipu_executable *executable);
void ipu__streams_end(const struct ipu_executable *executable, int status);

/* Take an element of each infeed; give one to each outfeed. */
int ipu__streams_take(const struct ipu__memory *memory, int32_t replica,
                      int *callback_status);
int ipu__streams_give(const struct ipu__memory *memory, int32_t replica);

#endif
