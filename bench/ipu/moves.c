/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moves.c - rows of data movement: between tiles, by pattern and size, with and
 * without load; between chips; between host or DRAM and chip; and broadcasts.
 */
#include "ipu/rows.h"

enum { SMALLEST = 4, TIMES = 8, LARGEST_MESSAGE = 32 << 10 };

static int exchange(const ipu_system *system, const struct ipu_sink *sink,
                    const char *group, ipu_pattern pattern, int64_t bytes)
{
    ipu_target_peaks peaks = ipu_row_peaks(system);
    ipu_cycles cycles = {.size = sizeof cycles};
    int status = ipu_model_exchange(&system->ipu, pattern, bytes, &cycles);
    double moved, peak = peaks.exchange_bytes_per_second;

    if (status < 0)
        return status;
    moved = (double)cycles.exchange_bytes;
    if (pattern == IPU_PATTERN_PAIR || pattern == IPU_PATTERN_GATHER ||
        pattern == IPU_PATTERN_SCATTER)
        peak /= system->ipu.tiles; /* one tile receives or sends */
    else
        moved *= system->ipu.tiles;
    ipu_row_put(system, sink,
                (struct ipu_row){.group = group,
                                 .what = ipu_pattern_name(pattern),
                                 .size = bytes,
                                 .unit = "GB/s"},
                &cycles, moved, peak);
    return 0;
}

static int all_sizes(const ipu_system *system, const struct ipu_sink *sink,
                     const char *group, ipu_pattern pattern)
{
    int status = 0;
    int64_t most = LARGEST_MESSAGE;

    if (pattern == IPU_PATTERN_GATHER || pattern == IPU_PATTERN_SCATTER ||
        pattern == IPU_PATTERN_ALL_TO_ALL) /* one tile holds everything */
        most = system->ipu.bytes_per_tile / 2 / system->ipu.tiles;
    for (int64_t bytes = SMALLEST; bytes <= most && status >= 0; bytes *= TIMES)
        status = exchange(system, sink, group, pattern, bytes);
    return status;
}

int ipu_rows_exchange(const ipu_system *system, const struct ipu_sink *sink)
{
    int status = 0;

    for (ipu_pattern p = 0; p < IPU_NUM_PATTERNS && status >= 0; p++)
        if (p != IPU_PATTERN_BROADCAST)
            status = all_sizes(system, sink, "exchange", p);
    return status;
}

int ipu_rows_broadcast(const ipu_system *system, const struct ipu_sink *sink)
{
    return all_sizes(system, sink, "broadcast", IPU_PATTERN_BROADCAST);
}

/* ---------------------------------------------------------- out of the chip */

static int link(const ipu_system *system, const struct ipu_sink *sink,
                int32_t to, int64_t bytes, int32_t loaded, const char *what)
{
    ipu_cycles cycles = {.size = sizeof cycles};
    double peak;
    int status = ipu_system_path(system, 0, to, &peak, NULL);

    if (status >= 0)
        status = ipu_model_link(system, 0, to, bytes, loaded, &cycles);
    if (status < 0)
        return status;
    ipu_row_put(
        system, sink,
        (struct ipu_row){
            .group = "links", .what = what, .size = bytes, .unit = "GB/s"},
        &cycles,
        loaded == IPU_LINK_MEAN
            ? 0 /* the time is the result */
            : (double)bytes * (loaded ? system->ipu.tiles : 1),
        peak);
    return 0;
}

int ipu_rows_links(const ipu_system *system, const struct ipu_sink *sink)
{
    static const char *const pair[] = {"in a pair, idle", "in a pair, loaded",
                                       "in a pair, mean of loaded"};
    static const char *const far[] = {"to the last, idle",
                                      "to the last, loaded",
                                      "to the last, mean of loaded"};
    int32_t last = system->ipus - 1;
    int status = 0;

    if (last < 1)
        return 0; /* a single chip has no links */
    for (int64_t bytes = 8; bytes <= 8 << 10 && status >= 0; bytes *= 32)
        for (int32_t loaded = 0; loaded < 3 && status >= 0; loaded++) {
            status = link(system, sink, 1, bytes, loaded, pair[loaded]);
            if (status >= 0 && last > 1)
                status = link(system, sink, last, bytes, loaded, far[loaded]);
        }
    return status;
}

static int stream(const ipu_system *system, const struct ipu_sink *sink,
                  const char *what, int64_t bytes, double peak,
                  int (*model)(const ipu_system *, int64_t, ipu_cycles *))
{
    ipu_cycles cycles = {.size = sizeof cycles};
    int status = model(system, bytes, &cycles);

    if (status < 0)
        return status;
    ipu_row_put(
        system, sink,
        (struct ipu_row){
            .group = "host", .what = what, .size = bytes, .unit = "GB/s"},
        &cycles, (double)bytes, peak);
    return 0;
}

int ipu_rows_host(const ipu_system *system, const struct ipu_sink *sink)
{
    const ipu_target *chip = &system->ipu;
    int status = 0;

    for (int64_t bytes = 4 << 10; bytes <= 128 << 20 && status >= 0;
         bytes *= 8) {
        status = stream(system, sink, "stream to or from the host", bytes,
                        chip->host_bytes_per_second, ipu_model_host);
        if (status >= 0 && system->streaming_bytes_per_board > 0)
            status =
                stream(system, sink, "streaming memory", bytes,
                       chip->streaming_bytes_per_second, ipu_model_streaming);
    }
    return status;
}
