/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compiling.h - a graph compiled, with a bar on the terminal if that takes more
 * than two seconds.
 */
#ifndef MODELS_COMPILING_H
#define MODELS_COMPILING_H

#include <ipu.h>

#include "output/progress.h"

struct compiling {
    struct progress *progress; /* borrowed; NULL: nobody is told */
    double start;              /* clock_seconds */
};

/* An ipu_progress_fn, whose context is a struct compiling: a bar for each
 * phase; on a terminal only, and nothing in the first two seconds. */
int compiling_tell(void *context, const char *phase, int64_t done,
                   int64_t total);

/* Compile for the usual target, products with so much of a tile's memory
 * (ipu_compile_options; 0: the usual). The device's status; the bar is erased.
 */
int compiling_run(const ipu_graph *graph, double proportion,
                  struct progress *progress, ipu_executable **executable);

#endif
