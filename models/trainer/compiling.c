/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/compiling.h"

/* The numbers of a compilation's passes become shares of this. */
enum { WHOLE = 1000 };

int compiling_tell(void *context, const char *phase, int64_t done,
                   int64_t total)
{
    double share = total > 0 ? (double)done / (double)total : 0;

    return hvd_progress_update(context, (int64_t)(share * WHOLE), phase);
}

int compiling_run(const ipu_graph *graph, double proportion, bool on_host,
                  hvd_progress *progress, ipu_executable **executable)
{
    const ipu_compile_options options = {.size = sizeof options,
                                         .allow_out_of_memory = on_host,
                                         .progress = compiling_tell,
                                         .progress_context = progress,
                                         .available_memory_proportion =
                                             proportion};
    int status;

    hvd_progress_phase(progress, "compiling", 0, WHOLE, NULL);
    status = ipu_compile_with(graph, &options, executable);
    hvd_progress_end(progress);
    return status;
}
