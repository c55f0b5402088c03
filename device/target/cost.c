/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.c - sums that all cost functions share: vertices, launches, waiting, and
 * the total of what was counted.
 *
 * All are pure functions of the target. A result is written to the caller's
 * struct only when it is complete (ipu__finish).
 */
#include "target/cost.h"

#include <math.h>

#include "base/error.h"
#include "target/target.h"

int64_t ipu__ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

int64_t ipu__least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t ipu__vertices_cycles(const ipu_target *target, int64_t count,
                             int64_t slots)
{
    return ipu__ceil_div(count, target->workers) * target->workers * slots;
}

int64_t ipu__words_cycles(const ipu_target *target, int64_t bytes)
{
    return (int64_t)ceil((double)bytes / target->exchange_bytes_per_cycle);
}

void ipu__count_exchange(const ipu_target *target, int64_t bytes,
                         int64_t messages, ipu_cycles *cycles)
{
    if (bytes <= 0)
        return;
    cycles->sync += target->sync_cycles;
    cycles->exchange += target->exchange_setup_cycles +
                        ipu__longest_path(target) +
                        ipu__words_cycles(target, bytes);
    cycles->exchange_bytes += bytes;
    cycles->exchange_code_bytes += messages * IPU__MESSAGE_CODE_BYTES;
}

int64_t ipu__start_cycles(const ipu_target *target, int32_t loops)
{
    return (loops > 1 ? loops : 1) *
           (IPU__LAUNCH_CYCLES + (int64_t)IPU__VERTEX_SLOTS * target->workers);
}

void ipu__count_waiting(const ipu_target *target, int64_t units, int64_t most,
                        int64_t fixed, ipu_cycles *cycles)
{
    double tiles = target->tiles, busy = (double)units / tiles, mean;

    if (units <= 0 || most <= 0)
        return;
    fixed = ipu__least(fixed, cycles->compute);
    mean = (double)fixed * (busy < 1 ? busy : 1) +
           (double)(cycles->compute - fixed) * fmin(1, busy / (double)most);
    cycles->waiting = cycles->compute - (int64_t)ceil(mean);
}

void ipu__count_loops(const ipu_target *target, int32_t loops,
                      ipu_cycles *cycles)
{
    int64_t more = loops > 1 ? loops - 1 : 0;

    cycles->compute += more * ipu__start_cycles(target, 1);
    cycles->code_bytes +=
        more * (int64_t)IPU__VERTEX_SLOTS * IPU__INSTRUCTION_BYTES;
    cycles->total = cycles->compute + cycles->exchange + cycles->sync;
}

void ipu__follow(ipu_cycles *cycles, const ipu_cycles *before)
{
    cycles->compute += before->compute;
    cycles->exchange += before->exchange;
    cycles->sync += before->sync;
    cycles->total += before->total;
    cycles->waiting += before->waiting;
    cycles->exchange_bytes += before->exchange_bytes;
    if (cycles->temporary_bytes < before->temporary_bytes)
        cycles->temporary_bytes = before->temporary_bytes;
    if (cycles->partial_bytes < before->partial_bytes)
        cycles->partial_bytes = before->partial_bytes;
    cycles->code_bytes += before->code_bytes;
    cycles->exchange_code_bytes += before->exchange_code_bytes;
    cycles->flops += before->flops;
    if (before->estimate)
        cycles->estimate = before->estimate;
}

void ipu__finish(const ipu_cycles *counted, ipu_cycles *cycles)
{
    uint32_t size = cycles->size;

    *cycles = *counted;
    cycles->size = size;
    cycles->total = counted->compute + counted->exchange + counted->sync;
}

int ipu__check_model(const ipu_target *target, const ipu_cycles *cycles)
{
    IPU_TRY(ipu_target_check(target));
    if (!cycles)
        return ipu__fail(IPU_ERR_ARGUMENT, "the place for cycles is NULL");
    return ipu__check_size("cycles", cycles->size, sizeof *cycles);
}

double ipu_model_seconds(const ipu_target *target, int64_t cycles)
{
    return target ? (double)cycles / target->clock_hz : 0;
}
