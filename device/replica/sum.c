/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sum.c - the same tensor of several replicas added up, and what that takes.
 *
 * Added in the order of the replicas, so that all of them get the same bits,
 * however many threads there are.
 *
 * On the chips it is a ring: every replica cuts the tensor into as many pieces
 * as there are replicas; for R - 1 steps each sends a piece on and adds what
 * comes, then for R - 1 steps the finished pieces go around. A step moves a
 * piece over each link of the ring at the same time, and takes as long as the
 * longest way, the last replica's back to the first.
 */
#include "replica/replica.h"

#include "base/error.h"
#include "compiler/program.h"
#include "ops/half.h"
#include "target/cost.h"

int ipu__send_cycles(const ipu_system *system, int32_t from, int32_t to,
                     int64_t bytes, ipu_cycles *cycles)
{
    int64_t grains = ipu__ceil_div(bytes, IPU__GRAIN_BYTES);
    int64_t senders = ipu__least(grains, system->ipu.tiles);

    cycles->size = sizeof *cycles;
    return ipu__link_cycles(system, from, to,
                            ipu__ceil_div(bytes, senders > 0 ? senders : 1),
                            senders, IPU_LINK_LOADED, cycles);
}

int ipu__ring_cycles(const ipu_system *system, int32_t replicas, int32_t apart,
                     int64_t bytes, int64_t *sent, int64_t *cycles)
{
    int64_t piece = (bytes + replicas - 1) / replicas, longest = 0;

    *cycles = 0;
    if (replicas < 2 || bytes == 0)
        return IPU_OK;
    for (int32_t r = 0; r < replicas; r++) {
        ipu_cycles c;

        IPU_TRY(ipu__send_cycles(system, r * apart, (r + 1) % replicas * apart,
                                 piece, &c));
        longest = longest > c.total ? longest : c.total;
    }
    *sent += 2 * (replicas - 1) * piece;
    *cycles = 2 * (replicas - 1) * longest;
    return IPU_OK;
}

/* The elements of a whole that begin at some number, as float32. */
enum { BLOCK = 1024 };

static void load(float *to, ipu_dtype dtype, const void *from, int64_t first,
                 int64_t count)
{
    if (dtype == IPU_FLOAT32)
        for (int64_t i = 0; i < count; i++)
            to[i] = ((const float *)from)[first + i];
    else
        ipu__widen(dtype, to, (const uint16_t *)from + first, count);
}

static void store(void *to, ipu_dtype dtype, const float *from, int64_t first,
                  int64_t count)
{
    if (dtype == IPU_FLOAT32)
        for (int64_t i = 0; i < count; i++)
            ((float *)to)[first + i] = from[i];
    else
        ipu__narrow(dtype, (uint16_t *)to + first, from, count);
}

static void sum_integers(int32_t n, void *const *tensors, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t sum = 0;

        for (int32_t r = 0; r < n; r++)
            sum += ((const uint32_t *)tensors[r])[i];
        for (int32_t r = 0; r < n; r++)
            ((uint32_t *)tensors[r])[i] = sum;
    }
}

void ipu__sum_replicas(ipu_dtype dtype, int32_t n, void *const *tensors,
                       int64_t count, float scale)
{
    float sum[BLOCK], part[BLOCK];

    if (dtype == IPU_INT32) {
        sum_integers(n, tensors, count);
        return;
    }
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t length = count - first < BLOCK ? count - first : BLOCK;

        load(sum, dtype, tensors[0], first, length);
        for (int32_t r = 1; r < n; r++) {
            load(part, dtype, tensors[r], first, length);
            for (int64_t i = 0; i < length; i++)
                sum[i] += part[i];
        }
        for (int64_t i = 0; i < length; i++)
            sum[i] *= scale;
        for (int32_t r = 0; r < n; r++)
            store(tensors[r], dtype, sum, first, length);
    }
}
