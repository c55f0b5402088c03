/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/compiling.h"

#include "output/clock.h"

static const double patience = 2; /* seconds */

int compiling_tell(void *context, const char *phase, int64_t done,
                   int64_t total)
{
    const struct compiling *c = context;

    if (c->progress && c->progress->live &&
        clock_seconds() - c->start >= patience)
        progress_update(c->progress, "compiling",
                        total > 0 ? (double)done / (double)total : 0, phase);
    return progress_ask(c->progress);
}

int compiling_run(const ipu_graph *graph, double proportion, bool on_host,
                  struct progress *progress, ipu_executable **executable)
{
    struct compiling c = {progress, clock_seconds()};
    const ipu_compile_options options = {.size = sizeof options,
                                         .allow_out_of_memory = on_host,
                                         .progress = compiling_tell,
                                         .progress_context = &c,
                                         .available_memory_proportion =
                                             proportion};
    int status = ipu_compile_with(graph, &options, executable);

    if (progress)
        progress_clear(progress);
    return status;
}
