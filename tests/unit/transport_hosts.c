/* SPDX-License-Identifier: Apache-2.0 */
/* Members are grouped by host, whatever the numbers of hosts and the order. */
#include <stdlib.h>

#include "suite.h"
#include "transport/hosts.h"

/* Checks the groups by their definition: each member is in one place, with
 * those of its number and no others, in ascending order, and hosts come in the
 * order of their first members. */
static void check_groups(const int *host_of, int n)
{
    for (int rank = 0; rank < n; rank++) {
        struct hvd__hosts *hosts = hvd__hosts_new(n, rank, host_of);
        int widest = 0, narrowest = n, before = -1;

        ck_assert_ptr_nonnull(hosts);
        ck_assert_int_eq(hosts->first[0], 0);
        ck_assert_int_eq(hosts->first[hosts->n], n);
        for (int h = 0; h < hosts->n; h++) {
            const int *members = &hosts->members[hosts->first[h]];
            int size = hvd__hosts_size(hosts, h), same = 0;

            ck_assert_int_gt(size, 0);
            for (int i = 0; i < n; i++)
                same += host_of[i] == host_of[members[0]];
            ck_assert_int_eq(size, same);
            for (int i = 0; i < size; i++) {
                int local;

                ck_assert_int_eq(host_of[members[i]], host_of[members[0]]);
                ck_assert(i == 0 || members[i] > members[i - 1]);
                ck_assert_int_eq(hvd__hosts_find(hosts, members[i], &local), h);
                ck_assert_int_eq(local, i);
                ck_assert(members[i] != rank || hosts->own == h);
            }
            ck_assert_int_gt(members[0], before);
            before = members[0];
            widest = size > widest ? size : widest;
            narrowest = size < narrowest ? size : narrowest;
        }
        ck_assert_int_eq(hosts->widest, widest);
        ck_assert_int_eq(hosts->narrowest, narrowest);
        hvd__hosts_free(hosts);
    }
}

TEST(groups_of_all_kinds)
{
    int host_of[40];

    for (int n = 1; n <= 40; n += n < 9 ? 1 : 7)
        for (int kind = 0; kind < 4; kind++) {
            for (int i = 0; i < n; i++)
                host_of[i] = kind == 0   ? i / 3
                             : kind == 1 ? 100 - i % 5
                             : kind == 2 ? n - i
                                         : i * i % 7;
            check_groups(host_of, n);
        }
}

/* Groups of the lowest numbers, by powers of two. */
TEST(groups_on_one_host)
{
    static const struct {
        int n, host_of[9], group;
    } cases[] = {
        {8, {0, 0, 0, 0, 1, 1, 1, 1}, 4}, {8, {0, 0, 1, 1, 0, 0, 1, 1}, 2},
        {8, {0, 1, 0, 1, 0, 1, 0, 1}, 1}, {7, {0, 0, 0, 0, 1, 1, 2}, 2},
        {9, {0, 0, 0, 1, 1, 1, 2, 2}, 1}, {5, {0, 0, 1, 1, 0}, 1},
        {5, {0, 0, 1, 1, 1}, 2},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hvd__hosts *hosts =
            hvd__hosts_new(cases[i].n, 0, cases[i].host_of);

        ck_assert_ptr_nonnull(hosts);
        ck_assert_int_eq(hosts->group, cases[i].group);
        hvd__hosts_free(hosts);
    }
}

TEST_MAIN("transport_hosts")
