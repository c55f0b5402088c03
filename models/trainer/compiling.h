/* SPDX-License-Identifier: Apache-2.0 */
/* compiling.h - compiles a graph, and shows how far that is. */
#ifndef MODELS_COMPILING_H
#define MODELS_COMPILING_H

#include <hvd_progress.h>
#include <ipu.h>
#include <stdbool.h>

/* An ipu_progress_fn whose context is a progress, or NULL: shows each pass. The
 * compilation stops if hvd_progress_check says so. */
int compiling_tell(void *context, const char *phase, int64_t done,
                   int64_t total);

/* Compiles for the default target. proportion is the share of a tile that
 * products may take (ipu_compile_options; 0: the default). on_host: the program
 * is for no device, and need not fit one. Returns the device's status. */
int compiling_run(const ipu_graph *graph, double proportion, bool on_host,
                  hvd_progress *progress, ipu_executable **executable);

#endif
