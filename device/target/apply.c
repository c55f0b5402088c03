/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply.c - judges a configuration as a whole: whether it goes together, which
 * chips it means, and how much of each is left for computing.
 *
 * Device ids count as Graphcore's driver does: first every chip by itself, then
 * every aligned group of two, of four, and so on up to all of them. With four
 * chips: 0 to 3, then 4 and 5 (twos), then 6 (all).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "target/config.h"
#include "target/target.h"

#define REFUSE(...) ipu__fail(IPU_ERR_ARGUMENT, "config: " __VA_ARGS__)

/* ------------------------------------------------------------ consistency */

static bool is_model(const ipu_config *config)
{
    return strcmp(ipu__config_text(config, "system"), "model") == 0;
}

static int check_connection(const ipu_config *config)
{
    const char *type = ipu__config_text(config, "device_connection.type");
    const char *version = ipu__config_text(config, "device_connection.version");
    ipu_target target = {.size = sizeof target};

    if (*version)
        return ipu_target_find(version, &target);
    if (strcmp(type, "PRE_COMPILE") != 0 && strcmp(type, "NEVER") != 0)
        return IPU_OK;
    return REFUSE("device_connection.type is %s, so no chip tells what it is: "
                  "set device_connection.version to ipu1, ipu2 or ipu21",
                  type);
}

static int check_io_tiles(const ipu_config *config)
{
    int64_t tiles = ipu__config_int(config, "io_tiles.num_io_tiles");
    double share =
        ipu__config_real(config, "io_tiles.available_memory_proportion");

    if (tiles < 0)
        return REFUSE("io_tiles.num_io_tiles is %lld; 0 or more",
                      (long long)tiles);
    if (!(share > 0 && share <= 1))
        return REFUSE("io_tiles.available_memory_proportion is %g; more than "
                      "0, at most 1",
                      share);
    if (tiles == 0 && ipu__config_bool(config, "io_tiles.place_ops_on_io_"
                                               "tiles"))
        return REFUSE("io_tiles.place_ops_on_io_tiles is set, but there are no "
                      "I/O tiles: set io_tiles.num_io_tiles");
    return IPU_OK;
}

static int check_distribution(const ipu_config *config)
{
    int64_t index = ipu__config_int(
        config, "experimental.multi_replica_distribution.process_index");
    int64_t count = ipu__config_int(
        config, "experimental.multi_replica_distribution.process_count");

    if (count < 0 || index < 0 || index >= (count ? count : 1))
        return REFUSE("multi_replica_distribution: process_index is %lld of a "
                      "process_count of %lld; it must be 0 or more, and less "
                      "than the count",
                      (long long)index, (long long)count);
    if (count > 0 && is_model(config))
        return REFUSE("multi_replica_distribution is not possible on the IPU "
                      "model: choose a system of chips");
    return IPU_OK;
}

static int check_norms(const ipu_config *config)
{
    const char *name =
        "norms.experimental.distributed_batch_norm_replica_group_size";
    int64_t group = ipu__config_int(config, name);

    if (group < 1)
        return REFUSE("%s is %lld; 1 or more", name, (long long)group);
    if (group > 1 && ipu__config_int(config, "io_tiles.num_io_tiles") > 0)
        return REFUSE("%s is more than 1, which is not possible together with "
                      "I/O tiles",
                      name);
    return IPU_OK;
}

/* ---------------------------------------------------------------- the chips */

/* Returns the number of simulated chips: one rack, or the requested number. */
static int32_t model_chips(const ipu_config *config)
{
    int32_t asked[IPU_MAX_IPUS], usual = 64;
    int32_t n =
        ipu__config_list(config, "auto_select_ipus", asked, IPU_MAX_IPUS);
    int64_t sum = 0;

    for (int32_t i = 0; i < n && i < IPU_MAX_IPUS; i++)
        sum += asked[i] > 0 ? asked[i] : 0;
    return sum > usual ? IPU_MAX_IPUS : usual;
}

static int find_system(const ipu_config *config, ipu_system *system)
{
    const char *version = ipu__config_text(config, "device_connection.version");
    int64_t io = ipu__config_int(config, "io_tiles.num_io_tiles");
    int64_t tiles = ipu__config_int(config, "ipu_model.tiles_per_ipu");

    IPU_TRY(ipu_system_find(ipu__config_text(config, "system"), system));
    if (*version)
        IPU_TRY(ipu_target_find(version, &system->ipu));
    if (is_model(config)) {
        system->ipus = model_chips(config);
        IPU_TRY(ipu_target_find(ipu__config_text(config, "ipu_model.version"),
                                &system->ipu));
        if (tiles < 0 || tiles > 1 << 20)
            return REFUSE("ipu_model.tiles_per_ipu is %lld; 0 to 1048576",
                          (long long)tiles);
        if (tiles > 0)
            system->ipu.tiles = (int32_t)tiles;
    }
    if (io >= system->ipu.tiles)
        return REFUSE("io_tiles.num_io_tiles is %lld, and an IPU has %d tiles: "
                      "some must be left to compute",
                      (long long)io, (int)system->ipu.tiles);
    system->ipu.tiles -= (int32_t)io;
    system->ipu.io_tiles = (int32_t)io;
    return IPU_OK;
}

/* Returns the i-th of count chips, from 0, in the requested order. */
static int32_t ordered(const char *order, int32_t i, int32_t count)
{
    if (strcmp(order, "HOOF") ==
        0) /* HOOF goes up one side and down the other. */
        return i < (count + 1) / 2 ? 2 * i : 2 * (count - i) - 1;
    /* Neighbours in the order are neighbours on the ladder. */
    if (strcmp(order, "ZIGZAG") != 0 && (i & 2) && (i | 1) < count)
        return i ^ 1;
    return i;
}

static void make_device(const ipu_config *config, int32_t id, int32_t first,
                        int32_t count, ipu_device *device)
{
    const char *order = ipu__config_text(config, "selection_order");

    *device = (ipu_device){.id = id, .count = count};
    for (int32_t i = 0; i < count; i++)
        device->ipus[i] = first + ordered(order, i, count);
}

/* Finds the group of an id; returns false if there is none. */
static bool group_of(const ipu_system *system, int32_t id, int32_t *first,
                     int32_t *count)
{
    int32_t base = 0;

    for (int32_t size = 1; size <= system->ipus; size *= 2) {
        int32_t groups = system->ipus / size;

        if (id >= base && id < base + groups) {
            *first = (id - base) * size;
            *count = size;
            return true;
        }
        base += groups;
    }
    return false;
}

/* false: one of them is taken already. */
static bool take_chips(bool *taken, int32_t first, int32_t count)
{
    for (int32_t i = first; i < first + count; i++)
        if (taken[i])
            return false;
    for (int32_t i = first; i < first + count; i++)
        taken[i] = true;
    return true;
}

static int select_explicitly(const ipu_config *config, const ipu_system *system,
                             const int32_t *ids, int32_t n, ipu_device *devices)
{
    bool taken[IPU_MAX_IPUS] = {false};

    if (is_model(config))
        return REFUSE("select_ipus is not possible on the IPU model, which has "
                      "no chips with ids: use auto_select_ipus");
    for (int32_t i = 0; i < n; i++) {
        int32_t first, count;

        for (int32_t k = 0; k < i; k++)
            if (ids[k] == ids[i])
                return REFUSE("select_ipus has %d twice: each device must have "
                              "an id of its own",
                              (int)ids[i]);
        if (!group_of(system, ids[i], &first, &count))
            return REFUSE("select_ipus: there is no device %d: %s has ids 0 to "
                          "%d",
                          (int)ids[i], system->name, 2 * (int)system->ipus - 2);
        if (!take_chips(taken, first, count))
            return REFUSE("select_ipus: device %d has a chip that a device "
                          "before it has: IPU %d to %d",
                          (int)ids[i], (int)first, (int)(first + count - 1));
        make_device(config, ids[i], first, count, &devices[i]);
    }
    return n;
}

/* Selects the first free aligned group of each size. */
static int select_any(const ipu_config *config, const ipu_system *system,
                      const int32_t *wanted, int32_t n, ipu_device *devices)
{
    bool taken[IPU_MAX_IPUS] = {false};

    for (int32_t i = 0; i < n; i++) {
        int32_t count = wanted[i], first = 0, base = 0;

        if (count < 1 || count > IPU_MAX_IPUS || (count & (count - 1)))
            return REFUSE("Unsupported number of IPUs requested: %d; a device "
                          "has 1, 2, 4, 8, 16, 32, 64, 128 or 256",
                          (int)count);
        while (first + count <= system->ipus &&
               !take_chips(taken, first, count))
            first += count;
        if (first + count > system->ipus)
            return ipu__fail(IPU_ERR_STATE,
                             "config: no %d IPUs are free for device %d of %d: "
                             "%s has %d",
                             (int)count, (int)i, (int)n, system->name,
                             (int)system->ipus);
        for (int32_t size = 1; size < count; size *= 2)
            base += system->ipus / size;
        make_device(config, base + first / count, first, count, &devices[i]);
    }
    return n;
}

static int choose_devices(const ipu_config *config, const ipu_system *system,
                          ipu_device *devices, int32_t capacity)
{
    int32_t automatic[IPU_MAX_IPUS], explicit_ids[IPU_MAX_IPUS];
    int32_t nauto =
        ipu__config_list(config, "auto_select_ipus", automatic, IPU_MAX_IPUS);
    int32_t nids =
        ipu__config_list(config, "select_ipus", explicit_ids, IPU_MAX_IPUS);
    int32_t n = nauto + nids;

    if (nauto && nids)
        return REFUSE("Only one of auto_select_ipus and select_ipus can be "
                      "set");
    if (n == 0)
        return REFUSE("No IPU devices configured: set auto_select_ipus or "
                      "select_ipus");
    if (n > capacity || n > IPU_MAX_IPUS)
        return REFUSE("%d devices, and there is room for %d", (int)n,
                      (int)capacity);
    return nauto
               ? select_any(config, system, automatic, nauto, devices)
               : select_explicitly(config, system, explicit_ids, nids, devices);
}

int ipu_config_apply(const ipu_config *config, ipu_system *system,
                     ipu_device *devices, int32_t capacity)
{
    ipu_system found = {.size = sizeof found};
    ipu_device *chosen;
    uint32_t size;
    int n;

    if (!config || !system || !devices)
        return REFUSE("%s is NULL", !config   ? "the configuration"
                                    : !system ? "the place for the system"
                                              : "the place for devices");
    IPU_TRY(ipu__check_size("system", system->size, sizeof *system));
    IPU_TRY(check_connection(config));
    IPU_TRY(check_io_tiles(config));
    IPU_TRY(check_distribution(config));
    IPU_TRY(check_norms(config));
    IPU_TRY(find_system(config, &found));
    IPU_TRY(ipu__new_array(&chosen, IPU_MAX_IPUS, sizeof *chosen));
    n = choose_devices(config, &found, chosen, capacity);
    if (n >= 0) {
        size = system->size;
        *system = found;
        system->size = size;
        memcpy(devices, chosen, (size_t)n * sizeof *devices);
    }
    free(chosen);
    return n;
}
