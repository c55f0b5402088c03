/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use.h - what one rank uses for a request of the script: buffers, a handle,
 * and what it was told; and whether that is right.
 */
#ifndef SIM_USE_H
#define SIM_USE_H

#include "outcome.h"

struct use {
    void *input, *output;
    size_t input_bytes, output_bytes;
    int64_t counts[SCRIPT_RANKS];
    hvd_handle handle;
    int submitted; /* its status */
    int ncallbacks, callback_status;
};

struct use *use_of(const struct context *c);

/* Returns zeroed memory, sometimes of the rank's heap; use_forget frees it. */
void *use_memory(size_t bytes);
/* Allocates the buffers of a request. */
void use_allocate(const struct context *c);
/* Fills the input; the output has what must be overwritten. */
void use_fill(const struct context *c);
/* Fails the run unless the output of a request that succeeded is right, and
 * nothing else was written. */
void use_check(const struct context *c);
void use_forget(void);

/* Fails the run unless a request may end with this status and text (status.c).
 * All ranks must get the same text for the same failure. */
void status_check(const struct context *c, int status, const char *text);
/* Returns whether any request may end so, because a rank has died or left. */
bool status_may_end(const struct context *c, int status);
void status_forget(void);

/* Runs a phase with hundreds of requests (burst.c). */
void burst_run(struct context c);

#endif
