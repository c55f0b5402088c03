/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costs.c - the constants of costs that all ranks of a world go by: the default
 * ones, those of a file, or measured ones. HVD_COSTS of rank 0 says which.
 * start_world calls it.
 *
 * HVD_COSTS=auto takes the rate of the link between the first two hosts, which
 * says whether the constants are those of 1 Gbit/s or of 10 Gbit/s. The ranks
 * exchange four messages each way, larger than what limiters of rates let pass
 * at once. Where the bits must be the same from run to run, nothing is measured
 * unasked.
 *
 * To measure all constants takes three pairs of numbers: the first ranks of the
 * first two hosts, and the first two ranks of the first host that has two,
 * exchange few and many, small and large messages, in both directions at once,
 * as algorithms do. These are the probes PRTT(k, 0, s) of Hoefler et al.
 * (2007), of which the shortest times count. What there is no pair for keeps
 * its default.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "core/world/world.h"
#include "disk/disk.h"
#include "kernels/kernels.h"

/* Messages are of SMALL bytes; MEDIUM and LARGE ones travel by the same
 * protocol, and their times differ by that of the bytes. Those of RATED bytes
 * tell a slow link from a fast one. */
enum { SMALL = 8, MEDIUM = 128 << 10, RATED = 256 << 10, LARGE = 1 << 20 };
enum { NSMALL = 20, NMEDIUM = 5, NLARGE = 2, REDUCED_BYTES = 64 << 10 };

/* ------------------------------------------------------------------- a file */

static int read_file(const char *path, struct hvd__costs *costs)
{
    char text[HVD__COSTS_TEXT];
    int status;
    FILE *file = disk__read_stream(path, &status);
    size_t n;

    if (!file)
        return hvd__fail(HVD_ERR_CONFIG,
                         "HVD_COSTS: cannot read '%s': %s; give auto, "
                         "default, measure or a file that hvd-info --topology "
                         "--output has written",
                         path, disk__text(status));
    n = fread(text, 1, sizeof text, file);
    fclose(file);
    if (n == sizeof text)
        return hvd__fail(HVD_ERR_CONFIG, "HVD_COSTS: '%s' is no file of costs",
                         path);
    text[n] = '\0';
    return hvd__costs_parse(path, text, costs);
}

/* ---------------------------------------------------------------- measuring */

/* Returns a time that is more than 0. */
static int64_t positive(int64_t ns)
{
    return ns > 0 ? ns : 1;
}

static int measure_link(struct hvd__world *world, int peer,
                        struct hvd__link_costs *link)
{
    const struct hvd__asked asked = hvd__world_asked(world);
    struct hvd__transport *t = world->engine.transport;
    const int many = HVD__PROBE_MESSAGES;
    int64_t one, all, medium, large;

    HVD_TRY(hvd__probe(t, peer, SMALL, 1, NSMALL, &asked, &one));
    HVD_TRY(hvd__probe(t, peer, SMALL, many, NSMALL, &asked, &all));
    HVD_TRY(hvd__probe(t, peer, MEDIUM, 1, NMEDIUM, &asked, &medium));
    HVD_TRY(hvd__probe(t, peer, LARGE, 1, NLARGE, &asked, &large));
    link->message = positive((all - one) / (many - 1));
    link->step = positive(one - link->message);
    link->kib_moved = positive((large - medium) / ((LARGE - MEDIUM) / 1024));
    return HVD_OK;
}

static int measure_reduction(int64_t *kib_ns)
{
    const struct hvd__reduction sum = {
        .dtype = HVD_FLOAT32, .op = HVD_SUM, .prescale = 1, .postscale = 1};
    float *data = calloc(2, REDUCED_BYTES);
    const void *sources[] = {data, data + REDUCED_BYTES / sizeof *data};
    int64_t least = INT64_MAX;

    if (!data)
        return hvd__fail_memory(2 * (size_t)REDUCED_BYTES);
    for (int i = 0; i < NSMALL; i++) {
        int64_t since = hvd__now_ns();

        hvd__reduce(&sum, data, sources, 2, REDUCED_BYTES / sizeof *data);
        if (hvd__now_ns() - since < least)
            least = hvd__now_ns() - since;
    }
    free(data);
    *kib_ns = positive(least / (REDUCED_BYTES / 1024));
    return HVD_OK;
}

/* The ranks that measure: pairs of two. Negative: there is none. */
struct pairs {
    int between[2], within[2];
};

static struct pairs find_pairs(const struct hvd__world *world)
{
    const int *host_of = world->host_of;
    struct pairs pairs = {{0, -1}, {-1, -1}};

    for (int rank = world->engine.transport->size - 1; rank > 0; rank--) {
        if (host_of[rank] != 0)
            pairs.between[1] = host_of[rank];
        if (host_of[rank] != rank) {
            pairs.within[0] = host_of[rank];
            pairs.within[1] = rank;
        }
    }
    return pairs;
}

/* Returns the partner of a rank in a pair; -1: it is not in it. */
static int partner_of(const int *pair, int rank)
{
    if (pair[0] < 0 || pair[1] < 0)
        return -1;
    return rank == pair[0] ? pair[1] : rank == pair[1] ? pair[0] : -1;
}

static int measure(struct hvd__world *world, const struct pairs *pairs,
                   struct hvd__costs *costs)
{
    int rank = world->engine.transport->rank;
    int peer = partner_of(pairs->between, rank);

    if (peer >= 0)
        HVD_TRY(measure_link(world, peer, &costs->between));
    peer = partner_of(pairs->within, rank);
    if (peer >= 0)
        HVD_TRY(measure_link(world, peer, &costs->within));
    return rank == 0 ? measure_reduction(&costs->kib_reduced) : HVD_OK;
}

/* The ranks of a pair find the constants for the rate of their link. */
static int measure_rate(struct hvd__world *world, const int *pair,
                        struct hvd__costs *costs)
{
    const struct hvd__asked asked = hvd__world_asked(world);
    struct hvd__transport *t = world->engine.transport;
    int peer = partner_of(pair, t->rank);
    int64_t ns;

    if (peer < 0)
        return HVD_OK;
    HVD_TRY(hvd__probe(t, peer, RATED, 1, 1, &asked, &ns));
    *costs = hvd__costs_at_rate(ns / (RATED / 1024));
    return HVD_OK;
}

/* ----------------------------------------------------------------- the door */

/* Gives all ranks what those that measured, or have read the file, found. */
static int share(struct hvd__world *world, const struct pairs *pairs)
{
    struct hvd__transport *t = world->engine.transport;
    struct hvd__costs *costs = &world->engine.costs;
    struct hvd__costs *all = calloc((size_t)t->size, sizeof *all);
    int status;

    if (!all)
        return hvd__fail_memory((size_t)t->size * sizeof *all);
    status = t->exchange(t, costs, all, sizeof *costs);
    if (status == HVD_OK) {
        *costs = all[0];
        if (pairs->within[0] >= 0)
            costs->within = all[pairs->within[0]].within;
    }
    free(all);
    return status;
}

int hvd__world_find_costs(struct hvd__world *world)
{
    const char *setting = world->engine.settings.costs;
    struct pairs pairs = {{-1, -1}, {-1, -1}};
    int status = HVD_OK;

    world->engine.costs = hvd__default_costs;
    if (strcmp(setting, "default") == 0)
        return HVD_OK;
    if (strcmp(setting, "auto") == 0) {
        pairs.between[0] = 0;
        pairs.between[1] = find_pairs(world).between[1];
        if (pairs.between[1] < 0 || world->engine.settings.deterministic)
            return HVD_OK;
        status = measure_rate(world, pairs.between, &world->engine.costs);
    } else if (strcmp(setting, "measure") == 0) {
        pairs = find_pairs(world);
        status = measure(world, &pairs, &world->engine.costs);
    } else if (world->engine.transport->rank == 0) {
        status = read_file(setting, &world->engine.costs);
    }
    HVD_TRY(hvd__world_meet(world, status));
    return share(world, &pairs);
}
