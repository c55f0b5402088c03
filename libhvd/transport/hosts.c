/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/hosts.h"

#include <stdlib.h>

/* Groups the members by host, the hosts in the order of their first members. */
static void group(struct hvd__hosts *hosts, int size, int rank,
                  bool (*same)(const void *context, int a, int b),
                  const void *context, bool *seen)
{
    int at = 0;

    for (int first = 0; first < size; first++) {
        if (seen[first])
            continue;
        hosts->first[hosts->n] = at;
        for (int other = first; other < size; other++) {
            if (seen[other] || !same(context, first, other))
                continue;
            seen[other] = true;
            hosts->members[at++] = other;
            if (other == rank)
                hosts->own = hosts->n;
        }
        hosts->n++;
        hosts->first[hosts->n] = at;
    }
}

struct hvd__hosts *hvd__hosts_new(int size, int rank,
                                  bool (*same)(const void *context, int a,
                                               int b),
                                  const void *context)
{
    struct hvd__hosts *hosts = calloc(1, sizeof *hosts);
    bool *seen = calloc((size_t)size, sizeof *seen);

    if (hosts) {
        hosts->first = calloc((size_t)size + 1, sizeof *hosts->first);
        hosts->members = calloc((size_t)size, sizeof *hosts->members);
    }
    if (!hosts || !seen || !hosts->first || !hosts->members) {
        hvd__hosts_free(hosts);
        free(seen);
        return NULL;
    }
    group(hosts, size, rank, same, context, seen);
    free(seen);
    hosts->narrowest = size;
    for (int host = 0; host < hosts->n; host++) {
        int n = hvd__hosts_size(hosts, host);

        if (n > hosts->widest)
            hosts->widest = n;
        if (n < hosts->narrowest)
            hosts->narrowest = n;
    }
    return hosts;
}

int hvd__hosts_find(const struct hvd__hosts *hosts, int member, int *local)
{
    int host = 0, at = 0;

    while (hosts->members[at] != member)
        at++;
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
    free(hosts);
}
