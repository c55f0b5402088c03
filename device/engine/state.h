/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - what an engine is made of, for the files of this room.
 */
#ifndef IPU_ENGINE_STATE_H
#define IPU_ENGINE_STATE_H

#include "engine/calls.h"
#include "engine/counts.h"
#include "engine/engine.h"
#include "engine/memory.h"

/* Engines of a loop. */
struct ipu__loop_engines {
    ipu_engine *body, *condition; /* owned; NULL: there is none */
};

struct ipu_engine {
    const struct ipu_executable *executable; /* borrowed until free */
    struct ipu__memory memory;
    void **host; /* owned, [streams]: borrowed memory of the host, or NULL */
    struct ipu__counts *counts; /* owned; NULL: it does not count */
    struct ipu__calls calls;
    struct ipu__loop_engines *loops; /* owned, [loops] */
    int32_t nqueues;                 /* that it is attached to */
    int32_t replica, replicas;
    int callback_status;
    int32_t next_step; /* of a run that goes on */
    ipu__meet_fn meet; /* of what is in a loop; NULL: nobody to meet */
    void *meet_context;
    bool running;
};

#endif
