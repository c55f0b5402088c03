/* SPDX-License-Identifier: Apache-2.0 */
#include "project/network.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define US 1e-6
#define GB 1e9

/* The rates are of a stream of TCP or of RDMA; latency and overheads together
 * are half a round trip of a few bytes. They are what such links are generally
 * known for, to be replaced by what is measured on one's own
 * (docs/PROJECTION.md). */
const struct network_preset network_presets[] = {
    {"tcp-1g",
     "TCP over 1 Gbit/s Ethernet",
     {.latency = 15 * US,
      .overhead = 5 * US,
      .bandwidth = 0.1195 * GB,
      .handling = 0.3 / GB,
      .local = US,
      .copying = 0.1 / GB,
      .reducing = 0.1 / GB}},
    {"tcp-10g",
     "TCP over 10 Gbit/s Ethernet",
     {.latency = 8 * US,
      .overhead = 5 * US,
      .bandwidth = 1.15 * GB,
      .handling = 0.3 / GB,
      .local = US,
      .copying = 0.1 / GB,
      .reducing = 0.1 / GB}},
    {"tcp-25g",
     "TCP over 25 Gbit/s Ethernet",
     {.latency = 7 * US,
      .overhead = 4 * US,
      .bandwidth = 2.8 * GB,
      .handling = 0.25 / GB,
      .local = US,
      .copying = 0.1 / GB,
      .reducing = 0.1 / GB}},
    {"tcp-100g",
     "TCP over 100 Gbit/s Ethernet, of which a rank gets 4 GB/s",
     {.latency = 6 * US,
      .overhead = 3 * US,
      .bandwidth = 11.5 * GB,
      .stream = 4 * GB,
      .handling = 0.2 / GB,
      .local = US,
      .copying = 0.1 / GB,
      .reducing = 0.1 / GB}},
    {"roce-25g",
     "RDMA over 25 Gbit/s Ethernet",
     {.latency = 1.5 * US,
      .overhead = 0.5 * US,
      .bandwidth = 2.9 * GB,
      .local = US,
      .copying = 0.1 / GB,
      .reducing = 0.1 / GB}},
    {"roce-100g",
     "RDMA over 100 Gbit/s Ethernet",
     {.latency = 1 * US,
      .overhead = 0.5 * US,
      .bandwidth = 11.5 * GB,
      .local = US,
      .copying = 0.1 / GB,
      .reducing = 0.1 / GB}},
    {"ib-200g",
     "InfiniBand HDR",
     {.latency = 0.55 * US,
      .overhead = 0.3 * US,
      .bandwidth = 24 * GB,
      .local = US,
      .copying = 0.1 / GB,
      .reducing = 0.1 / GB}},
    {.name = NULL},
};

const struct network_preset *network_find(const char *name)
{
    const struct network_preset *preset = network_presets;

    while (preset->name && strcmp(preset->name, name) != 0)
        preset++;
    return preset->name ? preset : NULL;
}

/* Returns how often pieces go through the steps, one few behind another. */
static double passes(const struct plan *plan)
{
    return fmax(1, ceil(plan->pieces / fmax(plan->under_way, 1)));
}

/* Returns the time of a rank on a core. */
static double core_time(const struct network *network, const struct plan *plan)
{
    return 2 * fmax(plan->steps, plan->messages) * network->overhead +
           plan->local_steps * network->local +
           2 * plan->rank_bytes * network->handling +
           plan->reduced * network->reducing + plan->copied * network->copying;
}

/* Returns the time of all ranks together on cores that they share. If they are
 * more than the cores, each step takes turns of all of them. */
static double shared_cores_time(const struct network *network,
                                const struct plan *plan, double one, int nhosts,
                                int nranks)
{
    double n = (double)nhosts * nranks;
    double steps = passes(plan) * (plan->steps + plan->local_steps);
    double all = n * one;

    if (plan->speaks)
        all = nhosts * one + (n - nhosts) * plan->local_steps * network->local;
    if (n > network->cores)
        all += n * steps * network->switching;
    return all;
}

/*
 * Pieces go through the steps one behind another, a few at a time, so each few
 * wait for the latency once. Where one piece is on the link, the next is on the
 * core: with many pieces only the slower of both counts, with one the sum.
 */
struct duration network_time(const struct network *network,
                             const struct plan *plan, int nhosts, int nranks)
{
    double core = core_time(network, plan);
    double link = plan->link_bytes / network->bandwidth;
    struct duration time = {.fixed =
                                plan->steps * network->latency * passes(plan)};

    if (network->stream > 0)
        link = fmax(link, plan->rank_bytes / network->stream);
    if (network->cores > 0) {
        time.cores = shared_cores_time(network, plan, core, nhosts, nranks);
        core = fmax(core, time.cores / network->cores);
    }
    time.shared =
        network->burst > 0
            ? fmax(link - time.fixed, core)
            : fmax(link, core) + fmin(link, core) / fmax(plan->pieces, 1);
    time.waiting = time.shared - core;
    time.shared += plan->seconds;
    return time;
}

struct plan plan_ring(double bytes, int nhosts, int nranks)
{
    double p = (double)nhosts * nranks;
    double most = 2 * (p - 1) / p * bytes;

    if (p < 2)
        return (struct plan){.algorithm = "ring"};
    return (struct plan){
        .algorithm = "ring",
        .steps = nhosts > 1 ? 2 * (p - 1) : 0,
        .local_steps = nhosts > 1 ? 0 : 2 * (p - 1),
        .messages = nhosts > 1 ? 2 * (p - 1) : 0,
        .link_bytes = nhosts > 1 ? most : 0,
        .rank_bytes = most,
        .reduced = most / 2,
        .copied = nhosts > 1 ? 0 : most,
        .pieces = 1,
    };
}
