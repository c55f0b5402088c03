/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c - the network that connects devices of several processes.
 *
 * The numbers of ipu_network_init are those of a Gaudi: ten ports of 100 Gbit/s
 * Ethernet with RDMA (https://habana.ai/gaudi-integrated-roce/). A frame
 * carries 4096 bytes, and 82 more for its headers and the gap: 0.98 is left.
 * The latency of a message is an assumption.
 */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "target/network.h"

void ipu_network_init(ipu_network *network, size_t size)
{
    const ipu_network gaudi = {.size = (uint32_t)size,
                               .processes = 1,
                               .ports = 10,
                               .port_bytes_per_second = 12.5e9,
                               .efficiency = 0.98,
                               .latency_seconds = 2e-6,
                               .pack_bytes = (int64_t)4 << 20};

    if (!network)
        return;
    memset(network, 0, size);
    memcpy(network, &gaudi, size < sizeof gaudi ? size : sizeof gaudi);
}

static int fail_number(const char *what, double value, const char *range)
{
    return ipu__fail(IPU_ERR_ARGUMENT, "network: %s is %g; it may be %s", what,
                     value, range);
}

int ipu__network_check(const ipu_network *n)
{
    if (!n)
        return ipu__fail(IPU_ERR_ARGUMENT, "the network is NULL");
    IPU_TRY(ipu__check_size("network", n->size, sizeof *n));
    if (n->processes < 1 || n->processes > IPU__MAX_PROCESSES)
        return fail_number("processes", n->processes, "1 to 65536");
    if (n->ports < 1 || n->ports > 1024)
        return fail_number("ports", n->ports, "1 to 1024");
    if (!(n->port_bytes_per_second >= 1 && n->port_bytes_per_second <= 1e15))
        return fail_number("port_bytes_per_second", n->port_bytes_per_second,
                           "1 to 1e15");
    if (!(n->efficiency >= 0.01 && n->efficiency <= 1))
        return fail_number("efficiency", n->efficiency, "0.01 to 1");
    if (!(n->latency_seconds >= 0 && n->latency_seconds <= 1))
        return fail_number("latency_seconds", n->latency_seconds, "0 to 1");
    if (n->pack_bytes < 0)
        return fail_number("pack_bytes", (double)n->pack_bytes, "0 or more");
    return IPU_OK;
}

int ipu_model_collective(const ipu_network *network, ipu_collective_kind kind,
                         int64_t bytes, double *seconds, int64_t *sent_bytes)
{
    double others, sent, messages, width;

    IPU_TRY(ipu__network_check(network));
    if (kind < IPU_COLLECTIVE_REDUCE || kind > IPU_COLLECTIVE_GATHER)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "network: %d is no collective; 0 to %d", (int)kind,
                         IPU_COLLECTIVE_GATHER);
    if (bytes < 0 || bytes > (int64_t)1 << 40)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "network: a tensor of %lld bytes; 0 to 2^40",
                         (long long)bytes);
    others = network->processes - 1;
    messages = kind == IPU_COLLECTIVE_REDUCE ? 2 * others : others;
    sent = (double)bytes * others / network->processes;
    if (kind == IPU_COLLECTIVE_REDUCE)
        sent *= 2;
    if (kind == IPU_COLLECTIVE_GATHER)
        sent = (double)bytes * others;
    width =
        network->ports * network->port_bytes_per_second * network->efficiency;
    if (seconds) {
        /* A process sends less than the whole tensor on average, but the last
         * process of a broadcast waits until it has received all of it. */
        double through = kind == IPU_COLLECTIVE_BROADCAST && others > 0
                             ? (double)bytes
                             : sent;

        *seconds = messages * network->latency_seconds + through / width;
    }
    if (sent_bytes)
        *sent_bytes = llround(sent);
    return IPU_OK;
}
