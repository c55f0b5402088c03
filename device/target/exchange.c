/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - the cost of moving data between the tiles of a chip.
 *
 *     o o o o      islands of tiles, in columns; each column reaches the
 *     o o o o      exchange at its foot
 *     o o o o
 *     ---------    the exchange
 *
 * The compiler knows when each word leaves and arrives, so there are no
 * headers, no arbitration and no queues: any pattern moves as fast as the
 * busiest tile can receive or send, 4 bytes a cycle. Load changes only the
 * length of the phase: one message ends when it has travelled its path, a full
 * exchange when the longest path is complete.
 */
#include <math.h>

#include "base/error.h"
#include "target/cost.h"

/* Islands of the tallest column. */
static int64_t column_height(const ipu_target *target)
{
    int64_t tiles =
        ipu__ceil_div(target->tiles, (int64_t)target->tiles_per_island);

    return ipu__ceil_div(tiles, target->columns);
}

/* Columns that have tiles at all. */
static int64_t columns(const ipu_target *target)
{
    int64_t islands =
        ipu__ceil_div(target->tiles, (int64_t)target->tiles_per_island);

    return ipu__least(islands, target->columns);
}

int64_t ipu__longest_path(const ipu_target *target)
{
    return 2 * (column_height(target) - 1) * target->island_cycles +
           (columns(target) - 1) * target->column_cycles;
}

/* Two of n places, uniformly: their mean distance is (n^2 - 1) / 3n. */
static double mean_distance(int64_t n)
{
    return ((double)n * (double)n - 1) / (3.0 * (double)n);
}

int64_t ipu__mean_path(const ipu_target *target)
{
    int64_t height = column_height(target), width = columns(target);
    double same = 1.0 / (double)width; /* chance of the same column */
    double within = mean_distance(height) * target->island_cycles;
    double down = (double)(height - 1) * target->island_cycles;

    return lround(same * within + (1 - same) * down +
                  mean_distance(width) * target->column_cycles);
}

static const char *const names[IPU_NUM_PATTERNS] = {
    "pair", "permute", "broadcast", "gather", "scatter", "all-to-all"};

const char *ipu_pattern_name(ipu_pattern pattern)
{
    return pattern >= 0 && pattern < IPU_NUM_PATTERNS ? names[pattern] : NULL;
}

/* Bytes that the busiest tile takes or gives, and in how many messages. */
static int64_t busiest(const ipu_target *target, ipu_pattern pattern,
                       int64_t bytes, int64_t *messages)
{
    *messages = 1;
    if (pattern == IPU_PATTERN_GATHER || pattern == IPU_PATTERN_SCATTER ||
        pattern == IPU_PATTERN_ALL_TO_ALL)
        *messages = target->tiles - 1;
    return bytes * *messages;
}

int ipu_model_exchange(const ipu_target *target, ipu_pattern pattern,
                       int64_t bytes, ipu_cycles *cycles)
{
    ipu_cycles counted = {0};
    int64_t messages;

    IPU_TRY(ipu__check_model(target, cycles));
    if (!ipu_pattern_name(pattern))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "exchange: %d is not a pattern; 0 to %d", (int)pattern,
                         IPU_NUM_PATTERNS - 1);
    if (bytes < 0 || bytes > (int64_t)1 << 40)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "exchange: messages of %lld bytes; 0 to 2^40",
                         (long long)bytes);
    bytes = busiest(target, pattern, bytes, &messages);
    ipu__count_exchange(target, bytes, messages, &counted);
    if (pattern == IPU_PATTERN_PAIR && bytes > 0)
        counted.exchange += ipu__mean_path(target) - ipu__longest_path(target);
    counted.estimate =
        "the cycles of sync, setup and way are fitted to two latencies of a "
        "Mk1";
    if (messages > 1)
        counted.estimate =
            NULL; /* Nearly all of the cycles are those of words. */
    ipu__finish(&counted, cycles);
    return IPU_OK;
}

int ipu_model_rearrange(const ipu_target *target, int64_t bytes, int32_t atom,
                        ipu_cycles *cycles)
{
    /* A regression of Graphcore's over its copy vertices. */
    static const double per_byte[] = {[1] = 5.1484, [2] = 3.125, [3] = 0.4404};
    ipu_cycles counted = {0};
    int row = atom == 2 ? 1 : atom == 4 ? 2 : 3;

    IPU_TRY(ipu__check_model(target, cycles));
    if ((atom != 2 && atom != 4 && atom != 8) || bytes < 0 ||
        bytes > (int64_t)1 << 40)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "rearrange: %lld bytes in pieces of %d; pieces are 2, "
                         "4 or 8 bytes long",
                         (long long)bytes, (int)atom);
    if (bytes > 0)
        counted.compute = lround(587 + per_byte[row] * (double)bytes);
    counted.temporary_bytes = bytes;
    counted.estimate = "a regression over measured copies, not a mechanism";
    ipu__finish(&counted, cycles);
    return IPU_OK;
}
