/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_bench.c - see run_bench.h.
 *
 * Steps are grouped by what they compute: all that are conv2d, bias_add, relu
 * are one row. Their times are sums over all runs, divided by the runs.
 */
#include "run/run_bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_ROWS = 10 };

struct row {
    const char *what; /* borrowed from the executable */
    int64_t ns;
    int steps;
};

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Adds a step to the row of what it computes. */
static int add_step(const struct run_model *run, int32_t step, struct row *rows,
                    int *nrows)
{
    ipu_step_info info = {.size = sizeof info};
    int64_t ns = ipu_engine_step_ns(run->engine, step);
    int status = ipu_executable_step(run->executable, step, &info), i = 0;
    const char *what;

    if (status < 0 || ns < 0)
        return status < 0 ? status : (int)ns;
    what = info.parts ? info.parts : info.op;
    while (i < *nrows && strcmp(rows[i].what, what) != 0)
        i++;
    if (i == *nrows)
        rows[(*nrows)++] = (struct row){.what = what};
    rows[i].ns += ns;
    rows[i].steps++;
    return IPU_OK;
}

static void print_rows(const struct row *rows, int nrows, int count)
{
    double all = 0;

    for (int i = 0; i < nrows; i++)
        all += (double)rows[i].ns;
    printf("  %5s %10s %7s  %s\n", "steps", "ms", "percent", "of the CPU");
    for (int i = 0; i < nrows && i < MOST_ROWS; i++)
        printf("  %5d %10.3f %7.1f  %s\n", rows[i].steps,
               1e-6 * (double)rows[i].ns / count,
               all > 0 ? 100 * (double)rows[i].ns / all : 0, rows[i].what);
}

static int print_steps(const struct run_model *run, int count)
{
    ipu_memory_info info = {.size = sizeof info};
    int status = ipu_executable_memory(run->executable, &info), nrows = 0;
    struct row *rows;

    if (status < 0)
        return status;
    rows = calloc((size_t)info.steps + 1, sizeof *rows);
    if (!rows)
        return IPU_ERR_MEMORY;
    for (int32_t i = 0; i < info.steps && status >= 0; i++)
        status = add_step(run, i, rows, &nrows);
    qsort(rows, (size_t)nrows, sizeof *rows, compare_rows);
    if (status >= 0)
        print_rows(rows, nrows, count);
    free(rows);
    return status;
}

static void print_time(const char *where, double seconds)
{
    printf("  %-24s %12.3f %12.1f\n", where, 1e3 * seconds,
           seconds > 0 ? 1 / seconds : 0);
}

static int measure(struct run_model *run, double *times, int count)
{
    int status = ipu_engine_profile(run->engine, 1);

    for (int i = 0; i < count && status >= 0; i++) {
        double start = seconds_now();

        status = ipu_engine_run(run->engine);
        times[i] = seconds_now() - start;
    }
    qsort(times, (size_t)count, sizeof *times, compare_times);
    return status;
}

int run_print_bench(struct run_model *run, const ipu_target *target, int count)
{
    ipu_program_cycles cycles = {.size = sizeof cycles};
    double *times = calloc((size_t)count, sizeof *times);
    char where[64];
    int status = times ? measure(run, times, count) : IPU_ERR_MEMORY;

    if (status >= 0)
        status = ipu_executable_cycles(run->executable, &cycles);
    if (status >= 0) {
        printf("  %-24s %12s %12s\n", "", "ms", "runs/s");
        snprintf(where, sizeof where, "CPU, median of %d", count);
        print_time(where, times[count / 2]);
        print_time("CPU, fastest", times[0]);
        snprintf(where, sizeof where, "%s, modelled", target->name);
        print_time(where, cycles.seconds);
        printf("  %-24s %12" PRId64 " bytes\n", "weights kept packed",
               ipu_engine_packed_bytes(run->engine));
        status = print_steps(run, count);
    }
    free(times);
    return status;
}
