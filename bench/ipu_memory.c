/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local memory: how long a load takes, and STREAM on all tiles, over arrays of
 * half of a tile's memory.
 *
 * Loops are compiled (vectors of 8 bytes, an instruction at a time, counted
 * once in four iterations, which are unrolled) or written by hand.
 */
#include "ipu_rows.h"

static const struct {
    const char *compiled, *tuned;
    int32_t loads, stores, arithmetic;           /* by hand */
    int32_t compiled_loads, compiled_arithmetic; /* of 8 bytes each */
} kernels[] = {
    {"read, compiled", "read, by hand", 2, 0, 1, 1, 1},
    {"copy, compiled", "copy, by hand", 1, 1, 0, 1, 0},
    {"scale, compiled", "scale, by hand", 1, 1, 1, 1, 1},
    {"add, compiled", "add, by hand", 2, 1, 1, 2, 1},
    {"triad, compiled", "triad, by hand", 2, 1, 1, 2, 2},
};

enum { NKERNELS = sizeof kernels / sizeof *kernels, UNROLLED = 4 };

static int stream(const ipu_system *system, const struct ipu_sink *sink,
                  const char *what, ipu_loop loop)
{
    const ipu_target *chip = &system->ipu;
    ipu_target_peaks peaks = ipu_row_peaks(system);
    ipu_cycles cycles = {.size = sizeof cycles};
    int32_t bytes = (loop.loads + loop.stores) * chip->vector_bytes;
    double moved, peak = peaks.memory_bytes_per_second;
    int status;

    loop.size = sizeof loop;
    loop.iterations = chip->bytes_per_tile / 2 / bytes;
    status = ipu_model_loop(chip, &loop, &cycles);
    if (status < 0)
        return status;
    moved = (double)bytes * (double)loop.iterations * chip->tiles;
    if (loop.stores == 0)
        peak = peaks.read_bytes_per_second;
    ipu_row_put(system, sink,
                (struct ipu_row){.group = "memory",
                                 .what = what,
                                 .size = bytes * loop.iterations,
                                 .unit = "TB/s"},
                &cycles, moved, peak);
    return 0;
}

static int latency(const ipu_system *system, const struct ipu_sink *sink)
{
    ipu_cycles cycles = {.size = sizeof cycles};
    const ipu_loop chase = {.size = sizeof chase,
                            .tuned = 1,
                            .iterations = 1,
                            .loads = 1,
                            .dependent = 1,
                            .bare = 1};
    int status = ipu_model_loop(&system->ipu, &chase, &cycles);

    if (status < 0)
        return status;
    ipu_row_put(
        system, sink,
        (struct ipu_row){.group = "memory", .what = "load latency", .size = 8},
        &cycles, 0, 0);
    return 0;
}

int ipu_rows_memory(const ipu_system *system, const struct ipu_sink *sink)
{
    int status = latency(system, sink);

    for (int i = 0; i < NKERNELS && status >= 0; i++) {
        ipu_loop compiled = {
            .loads = UNROLLED * kernels[i].compiled_loads,
            .stores = UNROLLED * kernels[i].stores,
            .arithmetic = UNROLLED * kernels[i].compiled_arithmetic,
            .control = kernels[i].stores ? 2 : 0,
        };
        ipu_loop tuned = {
            .tuned = 1,
            .loads = kernels[i].loads,
            .stores = kernels[i].stores,
            .arithmetic = kernels[i].arithmetic,
        };

        status = stream(system, sink, kernels[i].compiled, compiled);
        if (status >= 0)
            status = stream(system, sink, kernels[i].tuned, tuned);
    }
    return status;
}
