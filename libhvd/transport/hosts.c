/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/hosts.h"

#include <stdlib.h>

/* A member, and the first member of its host. */
struct placed {
    int host, first, member;
};

static int by_host(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    return x->member < y->member ? -1 : x->member > y->member;
}

static int by_first(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;

    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->member < y->member ? -1 : x->member > y->member;
}

/* Groups the members by host, the hosts in the order of their first members. */
static void group(struct hvd__hosts *hosts, int size, int rank,
                  const int *host_of, struct placed *placed)
{
    for (int i = 0; i < size; i++)
        placed[i] = (struct placed){.host = host_of[i], .member = i};
    qsort(placed, (size_t)size, sizeof *placed, by_host);
    for (int i = 0; i < size; i++)
        placed[i].first = i > 0 && placed[i].host == placed[i - 1].host
                              ? placed[i - 1].first
                              : placed[i].member;
    qsort(placed, (size_t)size, sizeof *placed, by_first);
    for (int i = 0; i < size; i++) {
        if (i == 0 || placed[i].first != placed[i - 1].first)
            hosts->first[hosts->n++] = i;
        hosts->members[i] = placed[i].member;
        hosts->places[placed[i].member] = i;
        if (placed[i].member == rank)
            hosts->own = hosts->n - 1;
    }
    hosts->first[hosts->n] = size;
}

/* Returns true if groups of so many members are each on one host, and have its
 * members in their order from the beginning on. */
static bool are_grouped(const struct hvd__hosts *hosts, int size, int group)
{
    for (int i = 0; i < size; i++)
        if (hosts->places[i] - hosts->places[i / group * group] != i % group)
            return false;
    for (int host = 0; host < hosts->n; host++)
        if (hosts->first[host] % group != 0)
            return false;
    return true;
}

struct hvd__hosts *hvd__hosts_new(int size, int rank, const int *host_of)
{
    struct hvd__hosts *hosts = calloc(1, sizeof *hosts);
    struct placed *placed = calloc((size_t)size, sizeof *placed);

    if (hosts) {
        hosts->first = calloc((size_t)size + 1, sizeof *hosts->first);
        hosts->members = calloc((size_t)size, sizeof *hosts->members);
        hosts->places = calloc((size_t)size, sizeof *hosts->places);
    }
    if (!hosts || !placed || !hosts->first || !hosts->members ||
        !hosts->places) {
        hvd__hosts_free(hosts);
        free(placed);
        return NULL;
    }
    group(hosts, size, rank, host_of, placed);
    free(placed);
    hosts->narrowest = size;
    for (int host = 0; host < hosts->n; host++) {
        int n = hvd__hosts_size(hosts, host);

        if (n > hosts->widest)
            hosts->widest = n;
        if (n < hosts->narrowest)
            hosts->narrowest = n;
    }
    for (hosts->group = 1; 2 * hosts->group <= hosts->widest &&
                           are_grouped(hosts, size, 2 * hosts->group);)
        hosts->group *= 2;
    return hosts;
}

int hvd__hosts_find(const struct hvd__hosts *hosts, int member, int *local)
{
    int host = 0, at = hosts->places[member];

    while (hosts->first[host + 1] <= at)
        host++;
    *local = at - hosts->first[host];
    return host;
}

bool hvd__hosts_be_alone(struct hvd__hosts *hosts, size_t bounce)
{
    hosts->shm = hvd__shm_alone(bounce);
    return hosts->shm != NULL;
}

void hvd__hosts_free(struct hvd__hosts *hosts)
{
    if (!hosts)
        return;
    if (hosts->widest == 1)
        hvd__shm_alone_free(hosts->shm);
    free(hosts->first);
    free(hosts->members);
    free(hosts->places);
    free(hosts);
}
