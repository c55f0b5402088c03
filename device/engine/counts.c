/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counts.c - the clock of an engine.
 *
 * A run reads the clock once after its inputs, once after each step and once at
 * its end; the time between two readings belongs to the work before the second.
 * A run's own counts are added to the sums only when it has succeeded, so that
 * a failure spoils none of them.
 *
 * The time between two runs is what the host needs to prepare the next one. Now
 * and then it is something else (an evaluation, a pause), which the median
 * leaves out; the median is over the last few hundred.
 */
#include "engine/counts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct ipu__counts *ipu__counts_new(int32_t nsteps)
{
    struct ipu__counts *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->nsteps = nsteps;
    c->step_ns = calloc((size_t)nsteps + 1, sizeof *c->step_ns);
    c->steps = calloc((size_t)nsteps + 1, sizeof *c->steps);
    if (!c->step_ns || !c->steps) {
        ipu__counts_free(c);
        return NULL;
    }
    return c;
}

void ipu__counts_free(struct ipu__counts *counts)
{
    if (!counts)
        return;
    free(counts->step_ns);
    free(counts->steps);
    free(counts);
}

/* Since the last reading. */
static int64_t read_lap(struct ipu__counts *c)
{
    int64_t before = c->mark;

    c->mark = now_ns();
    return c->mark - before;
}

void ipu__counts_begin(struct ipu__counts *counts)
{
    counts->began = counts->mark = now_ns();
    counts->input = counts->output = counts->calls = 0;
    memset(counts->steps, 0, (size_t)counts->nsteps * sizeof *counts->steps);
}

void ipu__counts_input(struct ipu__counts *counts)
{
    counts->input += read_lap(counts);
}

void ipu__counts_step(struct ipu__counts *counts, int32_t step, bool call)
{
    int64_t ns = read_lap(counts);

    counts->steps[step] += ns;
    if (call)
        counts->calls += ns;
}

static void add_run(struct ipu__counts *c)
{
    int64_t ns = c->mark - c->began;

    if (c->runs == 0 || ns < c->fastest_ns)
        c->fastest_ns = ns;
    c->runs++;
    c->run_ns += ns;
    c->input_ns += c->input;
    c->output_ns += c->output;
    c->call_ns += c->calls;
    for (int32_t i = 0; i < c->nsteps; i++)
        c->step_ns[i] += c->steps[i];
    if (c->ended > 0)
        c->gaps[c->ngaps++ % IPU__GAPS] = c->began - c->ended;
}

void ipu__counts_end(struct ipu__counts *counts, bool succeeded)
{
    counts->output += read_lap(counts);
    if (succeeded)
        add_run(counts);
    counts->ended = counts->mark;
}

static int by_value(const void *first, const void *second)
{
    int64_t a = *(const int64_t *)first, b = *(const int64_t *)second;

    return a < b ? -1 : a > b;
}

int64_t ipu__counts_between(const struct ipu__counts *counts)
{
    int64_t sorted[IPU__GAPS];
    size_t n = counts->ngaps < IPU__GAPS ? (size_t)counts->ngaps : IPU__GAPS;

    if (n == 0)
        return 0;
    memcpy(sorted, counts->gaps, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    return sorted[n / 2];
}
