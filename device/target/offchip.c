/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offchip.c - data that leaves the chip: over IPU-Links, to the host, to the
 * DRAM beside it. Bytes over bandwidth, after everybody has met.
 *
 * Chips meet over the links: 15 ns a hop, there and back, along half of the
 * ladder. That, the width of a link and what its headers leave (85 %) are
 * Graphcore's own figures for its models.
 */
#include <math.h>

#include "graph/error.h"
#include "target/cost.h"
#include "target/target.h"

static int check(const ipu_system *system, int64_t bytes,
                 const ipu_cycles *cycles)
{
    if (!system)
        return ipu__fail(IPU_ERR_ARGUMENT, "the system is NULL");
    IPU_TRY(ipu__check_size("system", system->size, sizeof *system));
    IPU_TRY(ipu__check_model(&system->ipu, cycles));
    if (bytes < 0 || bytes > (int64_t)1 << 50)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "a transfer of %lld bytes; 0 to "
                         "2^50",
                         (long long)bytes);
    return IPU_OK;
}

static int64_t cycles_of(const ipu_system *system, double seconds)
{
    return (int64_t)ceil(seconds * system->ipu.clock_hz - 1e-9);
}

static int64_t global_sync(const ipu_system *system)
{
    int64_t hops = 1 + system->ipus / 2 / 2;

    if (system->ipus == 1)
        return system->ipu.sync_cycles;
    return cycles_of(system, system->ipu.hop_seconds * (double)hops * 2);
}

int ipu_model_global_sync(const ipu_system *system, int64_t *cycles)
{
    ipu_cycles ignored = {.size = sizeof ignored};

    IPU_TRY(check(system, 0, &ignored));
    if (!cycles)
        return ipu__fail(IPU_ERR_ARGUMENT, "the place for cycles is NULL");
    if (system->ipus > 1 && system->ipus % 2)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%d chips: a ladder has an even number of them",
                         (int)system->ipus);
    *cycles = global_sync(system);
    return IPU_OK;
}

int ipu_model_link(const ipu_system *system, int32_t from, int32_t to,
                   int64_t bytes, int32_t loaded, ipu_cycles *cycles)
{
    ipu_cycles counted = {0};
    double bandwidth;
    int32_t hops;

    IPU_TRY(check(system, bytes, cycles));
    IPU_TRY(ipu_system_path(system, from, to, &bandwidth, &hops));
    if (from == to || !(bandwidth > 0))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "there is no link from IPU %d to %d of %s", (int)from,
                         (int)to, system->name);
    if (bytes > 0) {
        const ipu_target *chip = &system->ipu;
        double moved = (double)bytes * (loaded ? chip->tiles : 1);
        int64_t wire =
            cycles_of(system, moved / (bandwidth * chip->link_efficiency));
        int64_t tile = ipu__words_cycles(chip, bytes);

        /* One tile alone is slower than the links. */
        counted.sync = chip->sync_cycles + global_sync(system);
        counted.exchange = (wire > tile ? wire : tile) +
                           cycles_of(system, chip->hop_seconds * hops) +
                           chip->exchange_setup_cycles +
                           2 * ipu__longest_path(chip);
        counted.exchange_bytes = bytes;
        counted.exchange_code_bytes = IPU__MESSAGE_CODE_BYTES;
    }
    counted.estimate = "how small messages share a packet is not published; "
                       "hops are Graphcore's for a sync";
    ipu__finish(&counted, cycles);
    return IPU_OK;
}

/* latency and then bytes, through whatever is between. */
static void count_stream(const ipu_system *system, int64_t bytes,
                         double latency, double bandwidth, const char *estimate,
                         ipu_cycles *cycles)
{
    ipu_cycles counted = {.estimate = estimate};

    if (bytes > 0) {
        counted.sync = global_sync(system);
        counted.exchange =
            cycles_of(system, latency + (double)bytes / bandwidth);
        counted.exchange_bytes = ipu__ceil_div(bytes, system->ipu.tiles);
        counted.exchange_code_bytes = IPU__MESSAGE_CODE_BYTES;
    }
    ipu__finish(&counted, cycles);
}

int ipu_model_host(const ipu_system *system, int64_t bytes, ipu_cycles *cycles)
{
    IPU_TRY(check(system, bytes, cycles));
    count_stream(system, bytes, system->ipu.host_latency_seconds,
                 system->ipu.host_bytes_per_second * system->host_share,
                 system->host_share < 1
                     ? "the gateway's share of PCI Express is a measurement "
                       "whose source contradicts itself: 5.5 or 2.8 GB/s"
                     : "the host's latency is typical of PCI Express, not of "
                       "this system",
                 cycles);
    return IPU_OK;
}

int ipu_model_streaming(const ipu_system *system, int64_t bytes,
                        ipu_cycles *cycles)
{
    IPU_TRY(check(system, bytes, cycles));
    if (!(system->ipu.streaming_bytes_per_second > 0) ||
        system->streaming_bytes_per_board <= 0)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s has no streaming memory",
                         system->name);
    count_stream(system, bytes, system->ipu.host_latency_seconds,
                 system->ipu.streaming_bytes_per_second,
                 "20 GB/s a chip is not confirmed", cycles);
    return IPU_OK;
}
