/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compiling.h - compiles a graph, with a bar on the terminal if that takes more
 * than two seconds.
 */
#ifndef MODELS_COMPILING_H
#define MODELS_COMPILING_H

#include <ipu.h>

#include "output/progress.h"

struct compiling {
    struct progress *progress; /* borrowed; NULL: no bar */
    double start;              /* clock_seconds */
};

/* An ipu_progress_fn with a struct compiling as its context. It draws a bar for
 * each phase, on a terminal only, and none in the first two seconds. The
 * compilation stops if progress_ask says so. */
int compiling_tell(void *context, const char *phase, int64_t done,
                   int64_t total);

/* Compiles for the default target. proportion is the share of a tile that
 * products may take (ipu_compile_options; 0: the default). on_host: the program
 * is for no device, and need not fit one. Returns the device's status; the bar
 * is erased. */
int compiling_run(const ipu_graph *graph, double proportion, bool on_host,
                  struct progress *progress, ipu_executable **executable);

#endif
