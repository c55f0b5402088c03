/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks are assigned to hosts in all ways, for all numbers of ranks up to
 * 17. */
#include <stdbool.h>
#include <string.h>

#include "core/world/topology.h"
#include "suite.h"

enum { MOST = 17 };

static const char *const hosts[] = {"a", "b", "c", "d"};

static const char *host_of(const void *layout, int rank)
{
    return hosts[((const int *)layout)[rank]];
}

/* Checks the numbers by their definitions: sizes add up, and the places of a
 * local rank over the hosts are 0, 1, 2 ... in the order of the hosts' first
 * ranks. */
static void check_layout(const int *layout, int n)
{
    for (int rank = 0; rank < n; rank++) {
        struct hvd__topology t = hvd__topology_of(rank, n, host_of, layout);
        int local_rank = 0, local_size = 0, seen = 0, cross_rank = -1;
        bool passed[4] = {false};

        for (int other = 0; other < n; other++) {
            local_rank += layout[other] == layout[rank] && other < rank;
            local_size += layout[other] == layout[rank];
        }
        for (int other = 0; other < n; other++) {
            int host = layout[other], size = 0;

            if (passed[host])
                continue;
            passed[host] = true;
            for (int k = 0; k < n; k++)
                size += layout[k] == host;
            if (size <= local_rank)
                continue;
            if (host == layout[rank])
                cross_rank = seen;
            seen++;
        }
        ck_assert_int_eq(t.local_rank, local_rank);
        ck_assert_int_eq(t.local_size, local_size);
        ck_assert_int_eq(t.cross_rank, cross_rank);
        ck_assert_int_eq(t.cross_size, seen);
    }
}

TEST(every_layout)
{
    int layout[MOST];

    for (int n = 1; n <= 6; n++) {
        int total = 1;

        for (int i = 0; i < n; i++)
            total *= 4;
        for (int code = 0; code < total; code++) {
            for (int i = 0, rest = code; i < n; i++, rest /= 4)
                layout[i] = rest % 4;
            check_layout(layout, n);
        }
    }
    for (int n = 7; n <= MOST; n++)
        for (int step = 1; step <= 4; step++) {
            for (int i = 0; i < n; i++)
                layout[i] = i / step % 4; /* interleaved, uneven */
            check_layout(layout, n);
        }
}

TEST(two_uneven_hosts)
{
    static const int layout[] = {0, 0, 1, 0};
    struct hvd__topology t = hvd__topology_of(2, 4, host_of, layout);

    ck_assert(t.local_rank == 0 && t.local_size == 1);
    ck_assert(t.cross_rank == 1 && t.cross_size == 2);
    t = hvd__topology_of(3, 4, host_of, layout);
    ck_assert(t.local_rank == 2 && t.local_size == 3);
    ck_assert(t.cross_rank == 0 && t.cross_size == 1);
}

TEST_MAIN("core_topology")
