/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts.h - the counts of an engine that is asked to count: nanoseconds of
 * runs, of steps, of copies.
 */
#ifndef IPU_ENGINE_COUNTS_H
#define IPU_ENGINE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "ipu.h"

/* So many times between runs are kept for their median. */
enum { IPU__GAPS = 255 };

struct ipu__counts {
    int32_t nsteps;
    int64_t runs; /* runs that succeeded; all that follows counts these */
    int64_t run_ns, fastest_ns, input_ns, output_ns, call_ns;
    int64_t *step_ns; /* owned, [nsteps] */
    int64_t gaps[IPU__GAPS];
    int64_t ngaps; /* gaps in all; a ring keeps the last of them */
    /* times of the current run; 0: there was no run before */
    int64_t began, mark; /* when; 0: no run before */
    int64_t ended;
    int64_t input, output, calls;
    int64_t *steps; /* owned, [nsteps] */
};

/* NULL: no memory. */
struct ipu__counts *ipu__counts_new(int32_t nsteps);
void ipu__counts_free(struct ipu__counts *counts); /* NULL is accepted */

/* A run calls these functions in this order. Each counts the time since the
 * call before. call says that the step is a host call. */
void ipu__counts_begin(struct ipu__counts *counts);
void ipu__counts_input(struct ipu__counts *counts);
void ipu__counts_step(struct ipu__counts *counts, int32_t step, bool call);
void ipu__counts_end(struct ipu__counts *counts, bool succeeded);

/* The median of the times between runs. */
int64_t ipu__counts_between(const struct ipu__counts *counts);

/* The engine of the body of a loop; NULL: the step is none. Borrowed. */
const ipu_engine *ipu__engine_body(const ipu_engine *engine, int32_t step);

#endif
