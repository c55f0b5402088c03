/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts.h - what an engine counts when it is asked to: nanoseconds of runs,
 * of steps, of copies.
 */
#ifndef IPU_ENGINE_COUNTS_H
#define IPU_ENGINE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "ipu.h"

/* Of the times between runs, so many are kept for their median. */
enum { IPU__GAPS = 255 };

struct ipu__counts {
    int32_t nsteps;
    int64_t runs; /* that succeeded, as all that follows */
    int64_t run_ns, fastest_ns, input_ns, output_ns, call_ns;
    int64_t *step_ns; /* owned, [nsteps] */
    int64_t gaps[IPU__GAPS];
    int64_t ngaps; /* ever; the last of them are kept, around */
    /* Of the run that goes on */
    int64_t began, mark; /* when; 0: no run before */
    int64_t ended;
    int64_t input, output, calls;
    int64_t *steps; /* owned, [nsteps] */
};

/* NULL: no memory. */
struct ipu__counts *ipu__counts_new(int32_t nsteps);
void ipu__counts_free(struct ipu__counts *counts); /* NULL is accepted */

/* In the order in which a run goes. Each counts the time since the one before.
 * call: the step is a host call. */
void ipu__counts_begin(struct ipu__counts *counts);
void ipu__counts_input(struct ipu__counts *counts);
void ipu__counts_step(struct ipu__counts *counts, int32_t step, bool call);
void ipu__counts_end(struct ipu__counts *counts, bool succeeded);

/* The median of the times between runs. */
int64_t ipu__counts_between(const struct ipu__counts *counts);

/* The engine of the body of a loop; NULL: the step is none. Borrowed. */
const ipu_engine *ipu__engine_body(const ipu_engine *engine, int32_t step);

#endif
