/* SPDX-License-Identifier: Apache-2.0 */
#include "core/world/topology.h"

#include <stdbool.h>
#include <string.h>

struct hvd__topology hvd__topology_of(int rank, int nranks,
                                      const char *(*host)(const void *context,
                                                          int rank),
                                      const void *context)
{
    struct hvd__topology t = {0};

    for (int r = 0; r < nranks; r++)
        if (strcmp(host(context, r), host(context, rank)) == 0) {
            t.local_rank += r < rank;
            t.local_size++;
        }
    for (int first = 0; first < nranks; first++) {
        bool is_first = true;
        int local_size = 0;

        for (int r = 0; r < first && is_first; r++)
            is_first = strcmp(host(context, r), host(context, first)) != 0;
        if (!is_first)
            continue;
        for (int r = first; r < nranks; r++)
            local_size += strcmp(host(context, r), host(context, first)) == 0;
        if (local_size <= t.local_rank)
            continue;
        if (strcmp(host(context, first), host(context, rank)) == 0)
            t.cross_rank = t.cross_size;
        t.cross_size++;
    }
    return t;
}
