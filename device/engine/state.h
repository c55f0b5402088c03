/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - struct ipu_engine, for the files of this room.
 */
#ifndef IPU_ENGINE_STATE_H
#define IPU_ENGINE_STATE_H

#include "engine/calls.h"
#include "engine/counts.h"
#include "engine/engine.h"
#include "engine/memory.h"
#include "engine/network.h"

/* Engines of a loop. */
struct ipu__loop_engines {
    ipu_engine *body, *condition; /* owned; NULL: there is none */
};

struct ipu_engine {
    const struct ipu_executable *executable; /* borrowed until free */
    struct ipu__memory memory;
    void **host; /* owned, [streams]: memory of the host, borrowed, or NULL */
    struct ipu__counts *counts; /* owned; NULL: the engine does not count */
    struct ipu__calls calls;
    struct ipu__loop_engines *loops; /* owned, [loops] */
    int32_t nqueues;                 /* that it is attached to */
    int32_t replica, replicas;
    int callback_status;
    int32_t next_step; /* next step of the current run */
    ipu__meet_fn meet; /* called by collective ops in a loop; NULL: there are no
                          other replicas */
    void *meet_context;
    struct ipu__network own_network;
    struct ipu__network *network; /* that, or the one of the engine around;
                                     borrowed, or NULL: there is none */
    bool running;
};

#endif
