/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - the cost of worker programs on one tile.
 *
 * A tile issues one bundle a cycle, to its contexts in turn. So a context gets
 * every sixth cycle. A load takes as long: its value is there for the context's
 * next instruction. All six together reach the limit of the memory: two loads
 * and a store a cycle, if they do not meet in the same element of the memory,
 * which has one port.
 */
#include "base/error.h"
#include "target/cost.h"

static int64_t memory_bundles(const ipu_loop *loop)
{
    int64_t loads = ipu__ceil_div(loop->loads, 2);

    return loads > loop->stores ? loads : loop->stores;
}

int64_t ipu__loop_slots(const ipu_loop *loop)
{
    int64_t memory = memory_bundles(loop);

    if (!loop->tuned)
        return (int64_t)loop->loads + loop->stores + loop->arithmetic +
               loop->control;
    return memory > loop->arithmetic ? memory : loop->arithmetic;
}

/* Returns the cycles in which the tile stalls, for one iteration. */
static int64_t stalls(const ipu_loop *loop)
{
    return loop->tuned && loop->one_element
               ? loop->loads + loop->stores - memory_bundles(loop)
               : 0;
}

int ipu_model_loop(const ipu_target *target, const ipu_loop *loop,
                   ipu_cycles *cycles)
{
    ipu_cycles counted = {0};
    int64_t slots, contexts;

    IPU_TRY(ipu__check_model(target, cycles));
    if (!loop)
        return ipu__fail(IPU_ERR_ARGUMENT, "the loop is NULL");
    IPU_TRY(ipu__check_size("loop", loop->size, sizeof *loop));
    if (loop->iterations < 0 || loop->iterations > (int64_t)1 << 48 ||
        loop->loads < 0 || loop->stores < 0 || loop->arithmetic < 0 ||
        loop->control < 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "a loop with a negative count, or of more than 2^48 "
                         "iterations");
    slots = ipu__loop_slots(loop);
    contexts = loop->dependent ? 1 : target->workers;
    counted.compute =
        ipu__ceil_div(loop->iterations, contexts) * slots * target->workers +
        loop->iterations * stalls(loop);
    counted.code_bytes = slots * IPU__INSTRUCTION_BYTES;
    if (!loop->bare) {
        counted.compute += ipu__start_cycles(target, 1);
        counted.code_bytes +=
            (int64_t)IPU__VERTEX_SLOTS * IPU__INSTRUCTION_BYTES;
    }
    counted.flops =
        (double)loop->arithmetic * (double)loop->iterations * target->tiles;
    ipu__finish(&counted, cycles);
    return IPU_OK;
}
