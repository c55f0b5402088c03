/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passes.c - the cost of the accumulating product unit of one tile.
 *
 * The unit holds the weights of a group of input by a group of output channels,
 * and rows stream through it:
 *
 *     float16   16 x units weights, a row in 4 cycles of a context's slots
 *     float32    8 x units weights, a row in 8
 *
 * The number of units follows from the target's multiplications in a cycle. A
 * block [rows, k, n] takes a pass for each group of k, each group of n and each
 * position of the kernel. For a pass the supervisor loads the weights, 8 bytes
 * a cycle, and starts the contexts, which divide the rows among themselves; the
 * next pass waits for the slowest of them.
 *
 * The cost of the loops around that comes from Graphcore's own estimates
 * (poplibs, lib/poplin/PerformanceEstimation.hpp): cycles of the supervisor for
 * a group of k, a group of n, a pass; slots of a context to read what it works
 * on, to fill the unit (three rows or fewer take as long as three) and to end.
 * Rows of a kernel with several positions come in a list, which costs more to
 * read. float16 sums begin at zero by themselves, float32 ones are cleared
 * first.
 */
#include "target/cost.h"

enum {
    GROUP_IN_CYCLES = 15,
    GROUP_OUT_CYCLES = 19,
    PASS_CYCLES = 6,
    LISTED_PASS_CYCLES = 15,
    POSITION_CYCLES = 12,
    FILLING_ROWS = 3,
    CLEARING_SLOTS = 2
};

struct ipu__product_unit ipu__product_unit_of(const ipu_target *target,
                                              int32_t element_bytes)
{
    struct ipu__product_unit unit = {.element_bytes = element_bytes};
    int32_t macs =
        element_bytes == 2 ? target->macs_float16 : target->macs_float32;

    unit.in = element_bytes == 2 ? 16 : 8;
    unit.row = element_bytes == 2 ? 4 : 8;
    unit.out = macs * unit.row / unit.in;
    if (unit.out < 1)
        unit.out = 1;
    return unit;
}

/* Returns the slots of a context, except those of its rows. */
static int64_t context_slots(const struct ipu__product_unit *unit,
                             int64_t positions)
{
    if (positions > 1)
        return unit->element_bytes == 2 ? 42 : 41;
    return unit->element_bytes == 2 ? 32 : 26;
}

/* Clearing is a row's work, for each row of the first group of k. */
static int64_t clearing(const struct ipu__product_unit *unit, int64_t rows,
                        int64_t groups_out)
{
    if (unit->element_bytes == 2)
        return 0;
    return groups_out * (CLEARING_SLOTS + unit->row * rows);
}

int64_t ipu__passes_cycles(const ipu_target *target,
                           const struct ipu__product_unit *unit, int64_t rows,
                           int64_t k, int64_t n, int64_t positions)
{
    int64_t in = ipu__ceil_div(k, unit->in), out = ipu__ceil_div(n, unit->out);
    int64_t mine = ipu__ceil_div(rows, target->workers);
    int64_t weights = ipu__ceil_div(unit->in * unit->out * unit->element_bytes,
                                    target->vector_bytes);
    int64_t filled = mine > FILLING_ROWS ? mine : FILLING_ROWS;
    int64_t each = context_slots(unit, positions) + unit->row * filled;
    int64_t pass = weights + each * target->workers;

    if (positions > 1)
        pass = (pass + LISTED_PASS_CYCLES + POSITION_CYCLES) * positions;
    else
        pass += PASS_CYCLES;
    return IPU__LAUNCH_CYCLES +
           in * (GROUP_IN_CYCLES + out * (GROUP_OUT_CYCLES + pass)) +
           clearing(unit, mine, out) * target->workers;
}
