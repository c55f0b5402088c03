/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology.c - prints a world: its hosts, the costs of messages between ranks,
 * and for collectives of several sizes the algorithm that is chosen and the
 * time that it is expected to take by these costs. The choice is the library's
 * own, made for the process set of all ranks.
 */
#include "topology.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "base/text.h"
#include "core/run/execute.h"
#include "core/world/world.h"
#include "disk/disk.h"
#include "transport/algo/algo.h"
#include "transport/hosts.h"

/* A card is what a rank says about its host. */
struct card {
    char host[64];
    int32_t cores;  /* that this rank may use */
    int32_t shares; /* memory, with other ranks */
};

static void fill_card(const struct hvd__world *world, struct card *card)
{
    cpu_set_t cpus;

    *card = (struct card){.shares = world->heap != NULL};
    gethostname(card->host, sizeof card->host - 1);
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0)
        card->cores = CPU_COUNT(&cpus);
}

static void print_hosts(const struct hvd__world *world,
                        const struct card *cards)
{
    int n = world->engine.transport->size, nhosts = 0;
    char text[256];

    for (int rank = 0; rank < n; rank++)
        nhosts += world->host_of[rank] == rank;
    printf("World:\n  ranks        %d on %d host%s\n", n, nhosts,
           nhosts > 1 ? "s" : "");
    for (int rank = 0; rank < n; rank++) {
        struct hvd__text out = hvd__text_at(text, sizeof text);

        if (world->host_of[rank] != rank)
            continue;
        hvd__text_add_ranks(&out, NULL, world->host_of, n, rank);
        printf("  host         %s: %s, %d core%s%s\n", cards[rank].host, text,
               cards[rank].cores, cards[rank].cores > 1 ? "s" : "",
               cards[rank].shares ? ", shared memory" : "");
    }
    if (strcmp(world->engine.transport->name, "ucx") == 0)
        printf("  transport    UCX %s\n", hvd__ucx_version());
    else if (strcmp(world->engine.transport->name, "mpi") == 0)
        printf("  transport    %s\n", hvd__mpi_library());
    else
        printf("  transport    none: one rank\n");
}

/* -------------------------------------------------------------------- costs */

static const char *origin_of(const struct hvd__world *world, char *text,
                             size_t size)
{
    const char *setting = world->engine.settings.costs;

    if (strcmp(setting, "auto") == 0)
        return world->engine.costs.between.kib_moved ==
                       hvd__default_costs.between.kib_moved
                   ? "default"
                   : "of 1 Gbit/s between hosts";
    if (strcmp(setting, "default") == 0)
        return "default";
    if (strcmp(setting, "measure") == 0)
        return "measured at start";
    snprintf(text, size, "from '%s'", setting);
    return text;
}

static void print_link(const char *name, const struct hvd__link_costs *link)
{
    double kib = (double)link->kib_moved;

    printf("  %-14s %7.2f us a step, %6.2f us a message, %6.3f us a KiB "
           "(%.3g GB/s)\n",
           name, (double)link->step * 1e-3, (double)link->message * 1e-3,
           kib * 1e-3, kib > 0 ? 1024 / kib : 0);
}

static void print_costs(const struct hvd__world *world)
{
    const struct hvd__costs *costs = &world->engine.costs;
    char text[HVD__SETTING_TEXT + 16];

    printf("Costs, %s:\n", origin_of(world, text, sizeof text));
    print_link("between hosts", &costs->between);
    print_link("within a host", &costs->within);
    printf("  %-14s %7.3f us a KiB\n", "reducing",
           (double)costs->kib_reduced * 1e-3);
}

static int write_costs(const struct hvd__world *world, const char *path)
{
    char text[HVD__COSTS_TEXT], origin[HVD__SETTING_TEXT + 16];
    int status;

    hvd__costs_print(&world->engine.costs,
                     origin_of(world, origin, sizeof origin), text,
                     sizeof text);
    status = disk__replace(path, text, strlen(text), 0);
    return status < 0 ? hvd__fail(HVD_ERR_FILE, "cannot write '%s': %s", path,
                                  disk__text(status))
                      : HVD_OK;
}

/* ------------------------------------------------------------------ choices */

static const struct kind {
    const char *name;
    enum hvd__motion motion;
    bool is_by_rank; /* the bytes are those of each rank's block */
} kinds[] = {
    {"allreduce", HVD__REDUCE_TO_ALL, false},
    {"reduce", HVD__REDUCE_TO_ROOT, false},
    {"reducescatter", HVD__REDUCE_TO_SHARES, false},
    {"broadcast", HVD__SEND_FROM_ROOT, false},
    {"allgather", HVD__GATHER_TO_ALL, true},
    {"alltoall", HVD__EXCHANGE, true},
};

static const size_t sizes[] = {4,       1 << 10, 16 << 10, 64 << 10, 256 << 10,
                               1 << 20, 4 << 20, 16 << 20, 64 << 20};

/* Describes a collective of float32, of bytes in all or for each rank. */
static struct hvd__collective describe(const struct hvd__set *set,
                                       struct hvd__workspace *workspace,
                                       const struct kind *kind, size_t bytes)
{
    bool moves = kind->motion == HVD__SEND_FROM_ROOT;
    size_t block =
        kind->motion == HVD__EXCHANGE ? bytes / (size_t)set->team.size : bytes;
    struct hvd__collective c = {
        .motion = kind->motion,
        .reduction = {.dtype = moves ? HVD_UINT8 : HVD_FLOAT32,
                      .op = HVD_SUM,
                      .prescale = 1,
                      .postscale = 1,
                      .divisor = set->team.size},
        .count = (int64_t)(moves ? bytes : bytes / 4),
        .to = workspace->blocks,
        .from = workspace->blocks + set->team.size,
        .same_order = hvd__keeps_order(set),
        .team = &set->team,
        .workspace = workspace,
    };

    for (int i = 0; kind->is_by_rank && i < set->team.size; i++)
        c.to[i].bytes = c.from[i].bytes = block;
    return c;
}

static void print_bytes(size_t bytes)
{
    char text[24];

    if (bytes < 1024)
        snprintf(text, sizeof text, "%zu B", bytes);
    else if (bytes < 1 << 20)
        snprintf(text, sizeof text, "%zu KiB", bytes >> 10);
    else
        snprintf(text, sizeof text, "%zu MiB", bytes >> 20);
    printf("  %9s", text);
}

static void print_choice(const struct hvd__collective *c,
                         const struct kind *kind, size_t bytes, bool is_csv)
{
    const struct hvd__algorithm *algorithm = hvd__collective_choose(c);
    int64_t ns = algorithm->cost ? algorithm->cost(c) : 0;

    char time[32] = "";

    if (ns > 0)
        snprintf(time, sizeof time, "%.1f", (double)ns * 1e-3);
    if (is_csv) {
        printf("%s,%zu,%s,%s\n", kind->name, bytes, algorithm->name, time);
        return;
    }
    printf("  %-13s", kind->name);
    print_bytes(bytes);
    printf("  %-14s  %12s%s\n", algorithm->name, time, ns > 0 ? " us" : "");
}

static int print_choices(const struct hvd__set *set, bool is_csv)
{
    struct hvd__workspace workspace = {0};

    HVD_TRY(hvd__workspace_init(&workspace, set->team.size));
    fputs(is_csv ? "collective,bytes,algorithm,expected_us\n"
                 : "Algorithms for float32 sums and blocks; small tensors "
                   "travel with the agreement on\nthem instead where their "
                   "order is the same on all ranks:\n",
          stdout);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            struct hvd__collective c =
                describe(set, &workspace, &kinds[k], sizes[i]);

            print_choice(&c, &kinds[k], sizes[i], is_csv);
        }
    hvd__workspace_fini(&workspace);
    return HVD_OK;
}

/* ----------------------------------------------------------------- the door */

static int print_world(const struct hvd__world *world, const struct card *cards,
                       const struct topology_options *options)
{
    const struct hvd__set *set = world->engine.table.sets[0];

    if (!options->is_csv) {
        print_hosts(world, cards);
        print_costs(world);
    }
    HVD_TRY(print_choices(set, options->is_csv));
    return options->output ? write_costs(world, options->output) : HVD_OK;
}

static int print_all(const struct topology_options *options)
{
    struct hvd__world *world;
    struct card mine, *cards;
    int status;

    HVD_TRY(hvd__world_get(&world));
    fill_card(world, &mine);
    cards = calloc((size_t)hvd_size(), sizeof *cards);
    if (!cards)
        return hvd__fail_memory((size_t)hvd_size() * sizeof *cards);
    /* After a gather the set knows the hosts, if they share memory. */
    status = hvd_gather(&mine, cards, sizeof mine, HVD_UINT8, 0);
    if (status >= 0 && hvd_rank() == 0)
        status = print_world(world, cards, options);
    free(cards);
    return status;
}

int topology_print(const struct topology_options *options)
{
    int status;

    if (options->measures)
        setenv("HVD_COSTS", "measure", 1);
    HVD_TRY(hvd_init());
    status = print_all(options);
    hvd_shutdown();
    return status;
}
