/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - rows of the local memory: the time of a load, and STREAM on all
 * tiles, over arrays of half of a tile's memory.
 *
 * There are three kinds of loops. A compiler that does not know the alignment
 * of arrays makes scalar code: one element at a time, one instruction for each
 * load, store and operation, and a branch that counts; pointers advance with
 * the accesses. A compiler that knows it makes vectors of 8 bytes, one
 * instruction at a time, in loops that are unrolled four times. Code by hand
 * issues memory accesses and arithmetic in the same bundles, and hardware
 * counts its loops.
 */
#include "ipu/rows.h"

enum code { SCALAR, COMPILED, BY_HAND, NCODES };

static const struct {
    const char *what[NCODES];
    int32_t loads, stores, arithmetic; /* instructions of code by hand */
    /* Compiled code moves 8 bytes, or one element, with each of these: */
    int32_t compiled_loads, compiled_arithmetic;
} kernels[] = {
    {{"read, scalar", "read, compiled", "read, by hand"}, 2, 0, 1, 1, 1},
    {{"copy, scalar", "copy, compiled", "copy, by hand"}, 1, 1, 0, 1, 0},
    {{"scale, scalar", "scale, compiled", "scale, by hand"}, 1, 1, 1, 1, 1},
    {{"add, scalar", "add, compiled", "add, by hand"}, 2, 1, 1, 2, 1},
    {{"triad, scalar", "triad, compiled", "triad, by hand"}, 2, 1, 1, 2, 2},
};

enum { NKERNELS = sizeof kernels / sizeof *kernels, UNROLLED = 4 };

static ipu_loop loop_of(int kernel, enum code code)
{
    int32_t unrolled = code == COMPILED ? UNROLLED : 1;
    ipu_loop loop = {.size = sizeof loop,
                     .tuned = code == BY_HAND,
                     .loads = kernels[kernel].loads,
                     .stores = unrolled * kernels[kernel].stores,
                     .arithmetic = kernels[kernel].arithmetic};

    if (code == BY_HAND)
        return loop;
    loop.loads = unrolled * kernels[kernel].compiled_loads;
    loop.arithmetic = unrolled * kernels[kernel].compiled_arithmetic;
    if (code == SCALAR)
        loop.control = 1;
    else
        loop.control = kernels[kernel].stores ? 2 : 0;
    return loop;
}

static int stream(const ipu_system *system, const struct ipu_sink *sink,
                  const char *what, int32_t width, ipu_loop loop)
{
    const ipu_target *chip = &system->ipu;
    ipu_target_peaks peaks = ipu_row_peaks(system);
    ipu_cycles cycles = {.size = sizeof cycles};
    int32_t bytes = (loop.loads + loop.stores) * width;
    double moved, peak = peaks.memory_bytes_per_second;
    int status;

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

    for (int i = 0; i < NKERNELS * NCODES && status >= 0; i++) {
        enum code code = (enum code)(i % NCODES);
        int32_t width =
            code == SCALAR ? (int32_t)sizeof(float) : system->ipu.vector_bytes;

        status = stream(system, sink, kernels[i / NCODES].what[code], width,
                        loop_of(i / NCODES, code));
    }
    return status;
}
