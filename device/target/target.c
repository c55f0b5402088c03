/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.c - the chips that are known, and the limits of a chip's numbers.
 *
 * Sources of the numbers. Tiles, memory, clock and peaks are published: for the
 * Mk1 by Graphcore's own profiles and by Jia et al. (arXiv 1912.03413), for the
 * Mk2 at Hot Chips 33, for Bow in the Bow-2000 datasheet; the clock of a C600
 * follows from its 280 TFLOPS. Cycles of the exchange's parts are not
 * published; they are fitted to published totals: 133 ns from tile to tile of
 * an idle Mk1, 165 ns of a busy one. A Mk2 is given the same cycles, for want
 * of a measurement.
 */
#include "target/target.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

enum { KIB = 1 << 10 };

/* Numbers that all chips so far have in common. */
#define COMMON                                                                 \
    .workers = 6, .load_bytes = 16, .store_bytes = 8, .vector_bytes = 8,       \
    .columns = 16, .tiles_per_island = 4, .exchange_bytes_per_cycle = 4,       \
    .exchange_setup_cycles = 60, .column_cycles = 3, .island_cycles = 1,       \
    .sync_cycles = 118, .link_efficiency = 0.85, .hop_seconds = 15e-9,         \
    .host_bytes_per_second = 32e9, .host_latency_seconds = 5e-6

/* A Bow is a Mk2 on a faster clock; so is the chip of a C600 card, which has no
 * streaming memory. */
#define SECOND_GENERATION                                                      \
    .tiles = 1472, .bytes_per_tile = 624 * KIB, .macs_float16 = 64,            \
    .macs_float32 = 16, .memory_element = 32 * KIB,                            \
    .link_bytes_per_second = 16e9, COMMON

/* Numbers of chips in an IPU-Machine. */
#define IN_A_MACHINE                                                           \
    .links = 10, .streaming_bytes_per_second = 20e9, SECOND_GENERATION

static const struct {
    const char *names[3]; /* the last two are aliases */
    ipu_target target;
} chips[] = {
    {{"mk1", "ipu1", "gc2"},
     {.name = "mk1",
      .tiles = 1216,
      .bytes_per_tile = 256 * KIB,
      .clock_hz = 1.6e9,
      .macs_float16 = 32,
      .macs_float32 = 8,
      .memory_element = 16 * KIB,
      .links = 5,
      .link_bytes_per_second = 32e9,
      .watts = 150,
      .output_slices = 1,
      COMMON}},
    {{"mk2", "ipu2", "gc200"},
     {.name = "mk2", .clock_hz = 1.325e9, IN_A_MACHINE}},
    {{"bow", "ipu21", "bow"},
     {.name = "bow", .clock_hz = 1.85e9, IN_A_MACHINE}},
    {{"c600", "c600", "c600"},
     {.name = "c600",
      .clock_hz = 1.486e9,
      .links = 4,
      .watts = 185,
      SECOND_GENERATION}},
};

enum { NCHIPS = sizeof chips / sizeof *chips };

#define INT32(name, least, most)                                               \
    {                                                                          \
#name, IPU__FIELD_INT32, offsetof(ipu_target, name), least, most       \
    }
#define REAL(name, least, most)                                                \
    {                                                                          \
#name, IPU__FIELD_REAL, offsetof(ipu_target, name), least, most        \
    }

const struct ipu__field ipu__target_fields[] = {
    INT32(tiles, 1, 1 << 20),
    {"bytes_per_tile", IPU__FIELD_INT64, offsetof(ipu_target, bytes_per_tile),
     1, 1e15},
    REAL(clock_hz, 1, 1e12),
    INT32(workers, 1, 64),
    INT32(load_bytes, 1, 4096),
    INT32(store_bytes, 1, 4096),
    INT32(vector_bytes, 4, 4096),
    INT32(macs_float16, 1, 1 << 20),
    INT32(macs_float32, 1, 1 << 20),
    INT32(memory_element, 1, 1 << 30),
    INT32(columns, 1, 1 << 20),
    INT32(tiles_per_island, 1, 1 << 20),
    REAL(exchange_bytes_per_cycle, 1e-6, 1e6),
    INT32(exchange_setup_cycles, 0, 1 << 20),
    INT32(column_cycles, 0, 1 << 20),
    INT32(island_cycles, 0, 1 << 20),
    INT32(sync_cycles, 0, 1 << 20),
    INT32(links, 0, 1024),
    REAL(link_bytes_per_second, 0, 1e15),
    REAL(link_efficiency, 0.01, 1),
    REAL(hop_seconds, 0, 1),
    REAL(host_bytes_per_second, 1, 1e15),
    REAL(host_latency_seconds, 0, 1),
    REAL(streaming_bytes_per_second, 0, 1e15),
    INT32(io_tiles, 0, 1 << 20),
    INT32(output_slices, 0, 1),
    INT32(half_sums, 0, 1),
    REAL(watts, 0, 1e6),
    {NULL, IPU__FIELD_REAL, 0, 0, 0},
};

static void fill_target(ipu_target *target, size_t size, const ipu_target *from)
{
    memset(target, 0, size);
    memcpy(target, from, size < sizeof *from ? size : sizeof *from);
    target->size = (uint32_t)size;
}

void ipu_target_init(ipu_target *target, size_t size)
{
    if (target)
        fill_target(target, size, &chips[1].target);
}

int ipu_target_find(const char *name, ipu_target *target)
{
    if (!name || !target)
        return ipu__fail(IPU_ERR_ARGUMENT, "target: %s is NULL",
                         name ? "the place for it" : "its name");
    IPU_TRY(ipu__check_size("target", target->size, sizeof *target));
    for (int i = 0; i < NCHIPS; i++)
        for (int k = 0; k < 3; k++)
            if (strcmp(chips[i].names[k], name) == 0) {
                fill_target(target, target->size, &chips[i].target);
                return IPU_OK;
            }
    return ipu__fail(
        IPU_ERR_NAME,
        "there is no target '%s': mk1, mk2, bow (ipu1, ipu2, ipu21) "
        "or c600, or a JSON file of your own",
        name);
}

int ipu__field_check(const struct ipu__field *field, double value,
                     const char *whose)
{
    if (value >= field->least && value <= field->most)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "%s: %s is %.10g; it must be %.10g to "
                     "%.10g",
                     whose, field->name, value, field->least, field->most);
}

static double value_of(const struct ipu__field *field, const ipu_target *target)
{
    const char *at = (const char *)target + field->offset;

    switch (field->type) {
    case IPU__FIELD_INT32: return *(const int32_t *)(const void *)at;
    case IPU__FIELD_INT64: return (double)*(const int64_t *)(const void *)at;
    default: return *(const double *)(const void *)at;
    }
}

int ipu_target_check(const ipu_target *target)
{
    char whose[48];

    if (!target)
        return ipu__fail(IPU_ERR_ARGUMENT, "the target is NULL");
    if (target->size < sizeof *target)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "the target's size is %u, not %zu: fill it with "
                         "ipu_target_init first",
                         (unsigned)target->size, sizeof *target);
    snprintf(whose, sizeof whose, "target '%.31s'", target->name);
    for (const struct ipu__field *f = ipu__target_fields; f->name; f++)
        IPU_TRY(ipu__field_check(f, value_of(f, target), whose));
    return IPU_OK;
}

int ipu_target_get_peaks(const ipu_target *target, ipu_target_peaks *peaks)
{
    double cycles;

    IPU_TRY(ipu_target_check(target));
    if (!peaks)
        return ipu__fail(IPU_ERR_ARGUMENT, "the place for peaks is NULL");
    IPU_TRY(ipu__check_size("peaks", peaks->size, sizeof *peaks));
    cycles =
        target->tiles * target->clock_hz; /* cycles of all tiles per second */
    *peaks = (ipu_target_peaks){
        .size = peaks->size,
        .threads = target->tiles * target->workers,
        .memory_bytes = target->tiles * target->bytes_per_tile,
        .read_bytes_per_second = cycles * target->load_bytes,
        .memory_bytes_per_second =
            cycles * (target->load_bytes + target->store_bytes),
        .exchange_bytes_per_second = cycles * target->exchange_bytes_per_cycle,
        .flops_float16 = cycles * 2 * target->macs_float16,
        .flops_float32 = cycles * 2 * target->macs_float32,
        .link_bytes_per_second =
            2 * target->links * target->link_bytes_per_second,
    };
    return IPU_OK;
}
