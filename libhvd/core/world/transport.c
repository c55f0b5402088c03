/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport.c - chooses the transport of a world of several ranks: the one on
 * which they met, MPI or TCP, or UCX on top of it. start_world calls it.
 *
 * Without MPI, only HVD_TRANSPORT=ucx takes UCX: it listens on ports of its
 * own, to which anybody can connect.
 *
 * HVD_TRANSPORT=auto takes UCX if all ranks have it, there are several hosts,
 * and a test between their first ranks finds it not slower than MPI. The hosts
 * are numbered; host i is a partner of host i^d for d = 1, 2, 4, ..., as in a
 * recursive doubling. All partners must hear each other over UCX, or it is not
 * taken: a network that UCX chose may lead nowhere. The partners at distance 1
 * take times: the shortest round trips of a small and of a large message. The
 * sums over all of them decide, so that all ranks decide alike.
 *
 * Whatever fails on a rank is told to all in an exchange on MPI.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "core/world/world.h"
#include "transport/fault.h"

/* UCX may be slower by a part that is less than what times vary by. */
#define TOLERANCE 1.05
/* A partner that is not heard for so long cannot be reached. */
#define REACH_NS INT64_C(5000000000)

enum { SMALL = 64, LARGE = 64 << 10, NSMALL = 20, NLARGE = 6 };

/* What a rank found. The times are nanoseconds; 0: not measured. */
struct finding {
    int64_t small[2], large[2]; /* MPI, UCX */
    int32_t status;
    char text[256];
};

static bool has_several_hosts(const struct hvd__world *world)
{
    for (int rank = 0; rank < world->engine.transport->size; rank++)
        if (world->host_of[rank] != 0)
            return true;
    return false;
}

/* Writes the first rank of each host, or all ranks of one host, to firsts,
 * which has room for all. Returns their number. *own becomes the number of this
 * rank if it is one of them, or -1. */
static int find_firsts(const struct hvd__world *world, int *firsts, int *own)
{
    bool all = !has_several_hosts(world);
    int n = 0;

    *own = -1;
    for (int rank = 0; rank < world->engine.transport->size; rank++) {
        if (world->host_of[rank] != rank && !all)
            continue;
        if (rank == world->engine.transport->rank)
            *own = n;
        firsts[n++] = rank;
    }
    return n;
}

/* Finds the shortest of n round trips over each transport. They take turns,
 * and the first of each turn is the last of the next: a link that has rested
 * may pass some data faster than it can for long, and a busy machine changes.
 */
static int measure(struct hvd__transport *const transports[2], int peer,
                   size_t bytes, int n, const struct hvd__asked *asked,
                   int64_t ns[2])
{
    ns[0] = ns[1] = INT64_MAX;
    for (int i = 0; i < 2 * n; i++) {
        int which = (i ^ i >> 1) & 1;
        int64_t each;

        HVD_TRY(hvd__ping(transports[which], peer, bytes, 1,
                          which ? REACH_NS : 0, asked, &each));
        if (each < ns[which])
            ns[which] = each;
    }
    return HVD_OK;
}

/* Tests UCX with the partners of this rank's host. */
static int try_partners(struct hvd__world *world, struct hvd__transport *ucx,
                        struct finding *finding)
{
    const struct hvd__asked asked = hvd__world_asked(world);
    int *firsts = calloc((size_t)ucx->size, sizeof *firsts);
    int n, own, status = HVD_OK;
    int64_t ns;

    if (!firsts)
        return hvd__fail_memory((size_t)ucx->size * sizeof *firsts);
    n = find_firsts(world, firsts, &own);
    for (int d = 1; d < n && own >= 0 && status == HVD_OK; d *= 2)
        if ((own ^ d) < n)
            status = hvd__ping(ucx, firsts[own ^ d], SMALL, 1, REACH_NS, &asked,
                               &ns);
    if (status == HVD_OK && own >= 0 && (own ^ 1) < n &&
        world->engine.settings.transport == HVD__TRANSPORT_AUTO) {
        struct hvd__transport *const both[] = {world->engine.transport, ucx};
        int peer = firsts[own ^ 1];

        status = measure(both, peer, SMALL, NSMALL, &asked, finding->small);
        if (status == HVD_OK)
            status = measure(both, peer, LARGE, NLARGE, &asked, finding->large);
    }
    free(firsts);
    return status;
}

/* Evaluates what all ranks found. *slower becomes true if UCX is. */
static int judge_findings(const struct finding *all, int size, bool *slower)
{
    double small[2] = {0}, large[2] = {0};

    for (int rank = 0; rank < size; rank++) {
        if (all[rank].status < 0)
            return hvd__fail_text(all[rank].status, all[rank].text);
        for (int i = 0; i < 2; i++) {
            small[i] += (double)all[rank].small[i];
            large[i] += (double)all[rank].large[i];
        }
    }
    *slower =
        small[1] > TOLERANCE * small[0] || large[1] > TOLERANCE * large[0];
    if (small[0] > 0)
        hvd__log(
            HVD__LOG_DEBUG,
            "round trips of %d B and %d KiB, in us, summed over hosts: MPI "
            "%.1f and %.1f, UCX %.1f and %.1f",
            SMALL, LARGE >> 10, small[0] * 1e-3, large[0] * 1e-3,
            small[1] * 1e-3, large[1] * 1e-3);
    return HVD_OK;
}

/* Tests UCX, and exchanges what was found. */
static int try_ucx(struct hvd__world *world, struct hvd__transport *ucx,
                   bool *slower)
{
    struct hvd__transport *t = world->engine.transport;
    struct finding mine = {0};
    struct finding *all = calloc((size_t)t->size, sizeof *all);
    int status = HVD_OK;

    /* A rank without memory cannot even tell the others. */
    if (!all)
        return hvd__fail_memory((size_t)t->size * sizeof *all);
    mine.status = try_partners(world, ucx, &mine);
    if (mine.status < 0)
        snprintf(mine.text, sizeof mine.text, "%s", hvd_last_error());
    status = t->exchange(t, &mine, all, sizeof mine);
    if (status == HVD_OK)
        status = judge_findings(all, t->size, slower);
    free(all);
    return status;
}

static int check_choice(enum hvd__transport_choice choice, bool is_tcp)
{
    if (choice == HVD__TRANSPORT_MPI && is_tcp)
        return hvd__fail(HVD_ERR_CONFIG,
                         "HVD_TRANSPORT=mpi, but the ranks of a cluster have "
                         "no MPI: give tcp, ucx or auto, or start them with "
                         "mpirun");
    if (choice == HVD__TRANSPORT_TCP && !is_tcp)
        return hvd__fail(HVD_ERR_CONFIG,
                         "HVD_TRANSPORT=tcp is for the ranks of a cluster, who "
                         "know each other's addresses: give mpi, ucx or auto");
    return HVD_OK;
}

int hvd__world_choose_transport(struct hvd__world *world)
{
    const struct hvd__settings *settings = &world->engine.settings;
    struct hvd__transport *t = world->engine.transport, *ucx = NULL;
    bool is_free = settings->transport == HVD__TRANSPORT_AUTO, slower = false;
    bool is_tcp = strcmp(t->name, "tcp") == 0;
    int status;

    HVD_TRY(check_choice(settings->transport, is_tcp));
    if (t->size == 1 || settings->transport == HVD__TRANSPORT_MPI ||
        settings->transport == HVD__TRANSPORT_TCP ||
        (is_free && (is_tcp || !has_several_hosts(world))))
        return HVD_OK;
    status =
        hvd__ucx_open(t, settings->heartbeat_ns + HVD__FAULT_GRACE_NS, &ucx);
    if (status == HVD_OK)
        status = try_ucx(world, ucx, &slower);
    if (status == HVD_OK && !(is_free && slower)) {
        world->engine.transport = ucx;
        return HVD_OK;
    }
    if (ucx)
        hvd__ucx_drop(ucx);
    if (status == HVD_ERR_UNSUPPORTED && !is_free) {
        char text[HVD__MESSAGE_MAX];

        snprintf(text, sizeof text, "%s", hvd_last_error());
        return hvd__fail(status, "HVD_TRANSPORT=ucx: %s%s", text,
                         ucx ? " (UCX_NET_DEVICES names the networks to use)"
                             : "");
    }
    if (status < 0 && status != HVD_ERR_UNSUPPORTED)
        return status;
    if (t->rank == 0)
        hvd__log(HVD__LOG_INFO, "not over UCX: %s",
                 status < 0 ? hvd_last_error() : "MPI is faster here");
    return HVD_OK;
}
