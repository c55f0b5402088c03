/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.c - boards of chips, and the distance from one chip to another.
 *
 *        4 - 5        pairs, one above the other; between neighbours
 *        |   |        links_in_pair, between floors links_to_next for each
 *        2 - 3        side.
 *        |   |
 *        0 - 1
 *
 * An IPU-Machine is two pairs. Of a chip's ten links, four lead to the other
 * chip of its pair, two up, two down, and two across, which this model leaves
 * out: they serve collectives over racks. So 8 + 4 links are inside the machine
 * and 4 + 4 leave it; with two gateway links of 100 Gbit/s this gives the 1.2
 * and 2.8 Tbit/s in the maker's data.
 *
 * A rack has a ladder of 64 chips. From rack to rack, data goes through the
 * gateways of the boards at the same place, so that a path follows the ladder
 * of one rack, and then as many gateway links as the racks are apart. The time
 * that such a link adds to a hop is not published: it counts as one hop.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "target/target.h"

struct known {
    const char *name;
    const char *chip;
    int32_t ipus, per_board, in_pair, to_next;
    double host_share, gateway;
    int64_t streaming;
    double watts;
};

enum { RACK = 64 }; /* chips */

#define GIB ((int64_t)1 << 30)

/* The share of PCI Express that reaches a chip is a measurement, not a
 * mechanism: 5.5 GB/s through the gateway of an M2000 (Graphcore's examples,
 * which elsewhere state half of that). A C2 sits in the host itself. */
static const struct known systems[] = {
    {"model", "mk2", 1, 1, 0, 0, 1, 0, 0, 0},
    {"C2", "mk1", 2, 2, 3, 2, 1, 0, 0, 300},
    {"M2000", "mk2", 4, 4, 4, 2, 5.5 / 32, 25e9, 256 * GIB, 0},
    {"Pod16", "mk2", 16, 4, 4, 2, 5.5 / 32, 25e9, 256 * GIB, 0},
    {"Pod64", "mk2", 64, 4, 4, 2, 5.5 / 32, 25e9, 256 * GIB, 0},
    {"Pod128", "mk2", 128, 4, 4, 2, 5.5 / 32, 25e9, 256 * GIB, 0},
    {"Pod256", "mk2", 256, 4, 4, 2, 5.5 / 32, 25e9, 256 * GIB, 0},
    {"Bow-2000", "bow", 4, 4, 4, 2, 5.5 / 32, 25e9, 256 * GIB, 0},
    {"Bow-Pod16", "bow", 16, 4, 4, 2, 5.5 / 32, 25e9, 256 * GIB, 0},
    {"Bow-Pod64", "bow", 64, 4, 4, 2, 5.5 / 32, 25e9, 256 * GIB, 0},
    {"Bow-Pod128", "bow", 128, 4, 4, 2, 5.5 / 32, 25e9, 256 * GIB, 0},
    {"Bow-Pod256", "bow", 256, 4, 4, 2, 5.5 / 32, 25e9, 256 * GIB, 0},
    {NULL, NULL, 0, 0, 0, 0, 0, 0, 0, 0},
};

static const struct known *find_known(const char *name)
{
    const struct known *k = systems;

    while (k->name && strcmp(k->name, name) != 0)
        k++;
    return k->name ? k : NULL;
}

int ipu_system_find(const char *name, ipu_system *system)
{
    const struct known *k;

    if (!name || !system)
        return ipu__fail(IPU_ERR_ARGUMENT, "system: %s is NULL",
                         name ? "the place for it" : "its name");
    IPU_TRY(ipu__check_size("system", system->size, sizeof *system));
    k = find_known(name);
    if (!k)
        return ipu__fail(IPU_ERR_NAME,
                         "there is no system '%s': C2, M2000, Pod16, Pod64, "
                         "Pod128, Pod256, Bow-2000, Bow-Pod16, Bow-Pod64, "
                         "Bow-Pod128, Bow-Pod256 or model",
                         name);
    *system = (ipu_system){
        .size = system->size,
        .ipu.size = sizeof system->ipu,
        .ipus = k->ipus,
        .ipus_per_board = k->per_board,
        .links_in_pair = k->in_pair,
        .links_to_next = k->to_next,
        .host_share = k->host_share,
        .gateway_bytes_per_second = k->gateway,
        .streaming_bytes_per_board = k->streaming,
        .watts_per_board = k->watts,
        .ipus_per_rack = k->ipus < RACK ? k->ipus : RACK,
    };
    strncpy(system->name, k->name, sizeof system->name - 1);
    return ipu_target_find(k->chip, &system->ipu);
}

static int check_system(const ipu_system *system)
{
    if (!system)
        return ipu__fail(IPU_ERR_ARGUMENT, "the system is NULL");
    IPU_TRY(ipu__check_size("system", system->size, sizeof *system));
    if (system->ipus < 1 || system->ipus > IPU_MAX_IPUS ||
        system->ipus_per_board < 1)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "a system of %d IPUs, %d a board: 1 to %d of them",
                         (int)system->ipus, (int)system->ipus_per_board,
                         IPU_MAX_IPUS);
    if (system->ipus_per_rack < 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "a system of %d IPUs a rack: 1 or more, or 0: all",
                         (int)system->ipus_per_rack);
    return ipu_target_check(&system->ipu);
}

int32_t ipu__rack_of(const ipu_system *system, int32_t ipu)
{
    return system->ipus_per_rack > 0 ? ipu / system->ipus_per_rack : 0;
}

static int32_t place_in_rack(const ipu_system *system, int32_t ipu)
{
    return ipu - ipu__rack_of(system, ipu) * system->ipus_per_rack;
}

int ipu_system_path(const ipu_system *system, int32_t from, int32_t to,
                    double *bytes_per_second, int32_t *hops)
{
    int32_t floors, across, links, racks;
    double width;

    IPU_TRY(check_system(system));
    if (from < 0 || to < 0 || from >= system->ipus || to >= system->ipus)
        return ipu__fail(
            IPU_ERR_ARGUMENT, "a path from IPU %d to %d: '%s' has 0 to %d",
            (int)from, (int)to, system->name, (int)system->ipus - 1);
    racks = abs(ipu__rack_of(system, from) - ipu__rack_of(system, to));
    floors =
        abs(place_in_rack(system, from) / 2 - place_in_rack(system, to) / 2);
    across = (from ^ to) & 1;
    links = system->links_in_pair;
    if (floors && (!across || system->links_to_next < links))
        links =
            system
                ->links_to_next; /* The narrowest part of the way limits it. */
    width = links * system->ipu.link_bytes_per_second;
    if (racks &&
        (floors + across == 0 || system->gateway_bytes_per_second < width))
        width = system->gateway_bytes_per_second;
    if (hops)
        *hops = floors + across + racks;
    if (bytes_per_second)
        *bytes_per_second = from == to ? 0 : width;
    return IPU_OK;
}

int ipu_system_get_peaks(const ipu_system *system, ipu_system_peaks *peaks)
{
    ipu_target_peaks chip = {.size = sizeof chip};
    double link;
    int32_t pairs, inside, outside;

    IPU_TRY(check_system(system));
    if (!peaks)
        return ipu__fail(IPU_ERR_ARGUMENT, "the place for peaks is NULL");
    IPU_TRY(ipu__check_size("peaks", peaks->size, sizeof *peaks));
    IPU_TRY(ipu_target_get_peaks(&system->ipu, &chip));
    link = system->ipu.link_bytes_per_second;
    pairs = system->ipus_per_board / 2;
    inside = pairs ? pairs * system->links_in_pair +
                         (pairs - 1) * 2 * system->links_to_next
                   : 0;
    outside = pairs ? 2 * 2 * system->links_to_next : 0; /* above and below */
    *peaks = (ipu_system_peaks){
        .size = peaks->size,
        .memory_bytes = system->ipus * chip.memory_bytes,
        .tiles = system->ipus * system->ipu.tiles,
        .flops_float16 = system->ipus * chip.flops_float16,
        .flops_float32 = system->ipus * chip.flops_float32,
        .pair_bytes_per_second = 2 * link * system->links_in_pair,
        .next_bytes_per_second = 2 * link * system->links_to_next,
        .board_bytes_per_second =
            link * outside + system->gateway_bytes_per_second,
        .fabric_bytes_per_second =
            link * (inside + outside) + system->gateway_bytes_per_second,
        .streaming_bytes = system->streaming_bytes_per_board *
                           (system->ipus / system->ipus_per_board),
    };
    return IPU_OK;
}

int ipu__find_system(const ipu_system *asked, int32_t ipus, ipu_system *system)
{
    static const char *const names[] = {"M2000", "Pod16", "Pod64", "Pod128",
                                        "Pod256"};

    system->size = sizeof *system;
    if (asked) {
        *system = *asked;
        system->size = sizeof *system;
        return ipu_system_path(system, 0, 0, NULL, NULL);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        IPU_TRY(ipu_system_find(names[i], system));
        if (system->ipus >= ipus)
            break;
    }
    return IPU_OK;
}
