/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks are sorted by host, and the graph of neighbours holds together. */
#include <stdio.h>
#include <string.h>

#include "suite.h"
#include "watch/places.h"

enum { MOST = 1100 };

/* ------------------------------------------------------------------- places */

static int hosts_of_dealt; /* ranks are dealt to so many hosts in turn */

static const char *dealt(const void *context, int rank)
{
    static char names[9][32];
    char *name = names[rank % hosts_of_dealt];

    (void)context;
    snprintf(name, sizeof names[0], "node%d boot", rank % hosts_of_dealt);
    return name;
}

TEST(ranks_are_sorted_by_host)
{
    struct hvd__places p;

    for (int nranks = 1; nranks <= 40; nranks++)
        for (hosts_of_dealt = 1; hosts_of_dealt <= 9; hosts_of_dealt++) {
            int n = nranks < hosts_of_dealt ? nranks : hosts_of_dealt;
            int rank = nranks / 2, seen = 0;

            ck_assert_int_eq(hvd__places_open(&p, rank, nranks, dealt, NULL),
                             0);
            ck_assert_int_eq(p.nhosts, n);
            ck_assert_int_eq(p.host, rank % hosts_of_dealt);
            ck_assert_int_eq(p.most, (nranks + n - 1) / n);
            for (int h = 0; h < n; h++) {
                ck_assert_int_eq(p.first[h], h);
                for (int r = h; r >= 0; r = p.next[r], seen++) {
                    ck_assert_int_eq(p.host_of[r], h);
                    ck_assert(p.next[r] == -1
                                  ? r + hosts_of_dealt >= nranks
                                  : p.next[r] == r + hosts_of_dealt);
                }
            }
            ck_assert_int_eq(seen, nranks);
            hvd__places_close(&p);
        }
}

TEST(lines_are_given_in_order)
{
    struct hvd__places p;

    hosts_of_dealt = 3;
    ck_assert_int_eq(hvd__places_open(&p, 4, 8, dealt, NULL), 0);
    ck_assert_int_eq(p.nlocal, 3); /* ranks 1, 4, 7 */
    ck_assert_int_eq(p.line_of[1], 0);
    ck_assert_int_eq(p.line_of[4], 1);
    ck_assert_int_eq(p.line_of[7], 2);
    ck_assert_int_eq(p.line_of[2], -1);
    ck_assert(hvd__places_is_ours(&p, 7) && !hvd__places_is_ours(&p, 6));
    hvd__places_add_lines(&p, 2);
    ck_assert_int_eq(p.line_of[2], 3);
    ck_assert_int_eq(p.line_of[5], 4);
    ck_assert_int_eq(p.line_of[0], -1);
    ck_assert_int_ge(hvd__places_most_lines(&p), 8);
    hvd__places_close(&p);
    hvd__places_close(&p);
}

/* --------------------------------------------------------------- neighbours */

static bool is_near(int n, int a, int b)
{
    int near[HVD__NEAR], count = hvd__places_near(n, a, near);

    for (int i = 0; i < count; i++)
        if (near[i] == b)
            return true;
    return false;
}

TEST(few_hosts_are_all_neighbours)
{
    for (int n = 1; n <= HVD__NEAR + 1; n++)
        for (int a = 0; a < n; a++)
            for (int b = 0; b < n; b++)
                ck_assert(is_near(n, a, b) == (a != b));
}

TEST(neighbours_are_different_and_mutual)
{
    for (int n = HVD__NEAR + 2; n <= MOST; n += n < 140 ? 1 : 37)
        for (int a = 0; a < n; a++) {
            int near[HVD__NEAR];

            ck_assert_int_eq(hvd__places_near(n, a, near), HVD__NEAR);
            for (int i = 0; i < HVD__NEAR; i++) {
                ck_assert(near[i] >= 0 && near[i] < n && near[i] != a);
                ck_assert(is_near(n, near[i], a));
                for (int j = 0; j < i; j++)
                    ck_assert(near[i] != near[j]);
            }
        }
}

/* Returns how many steps the last host that news of host `from` reach is away,
 * and in *reached how many hosts they reach. Hosts that are gone pass on
 * nothing. */
static int spread(int n, int from, const bool *is_gone, int *reached)
{
    static int steps[MOST + 1], queue[MOST + 1];
    int head = 0, tail = 0;

    for (int h = 0; h < n; h++)
        steps[h] = is_gone[h] ? 0 : -1;
    steps[from] = 0;
    queue[tail++] = from;
    while (head < tail) {
        int near[HVD__NEAR], at = queue[head++];
        int count = hvd__places_near(n, at, near);

        for (int i = 0; i < count; i++)
            if (steps[near[i]] < 0) {
                steps[near[i]] = steps[at] + 1;
                queue[tail++] = near[i];
            }
    }
    *reached = tail;
    return steps[queue[tail - 1]];
}

TEST(news_reach_all_hosts_in_few_steps)
{
    static const bool nobody[MOST + 1];
    int reached;

    for (int n = 2; n <= MOST; n += n < 550 ? 1 : 13) {
        int steps = spread(n, 0, nobody, &reached);

        ck_assert_int_eq(reached, n);
        ck_assert_int_le(steps, n <= 9 ? 1 : n <= 100 ? 5 : n <= 512 ? 8 : 10);
    }
}

/* All hosts look alike, so it is enough that host 0 reaches the others. */
TEST(no_five_dead_neighbours_cut_a_host_off)
{
    static const int counts[] = {10, 11, 12, 15, 16, 17, 25, 64, 100, 127, 512};

    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (unsigned dead = 0; dead < 1u << HVD__NEAR; dead++) {
            bool is_gone[MOST + 1] = {false};
            int near[HVD__NEAR], reached, n = counts[c];

            if (__builtin_popcount(dead) > 5)
                continue;
            hvd__places_near(n, 0, near);
            for (int i = 0; i < HVD__NEAR; i++)
                is_gone[near[i]] = dead >> i & 1;
            spread(n, 0, is_gone, &reached);
            ck_assert_int_eq(reached, n - __builtin_popcount(dead));
        }
}

TEST(no_two_dead_hosts_cut_off_others)
{
    static const int counts[] = {10, 11, 13, 16, 32, 33, 64};

    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (int a = 1; a < counts[c]; a++)
            for (int b = 1; b < a; b++) {
                bool is_gone[MOST + 1] = {false};
                int reached;

                is_gone[a] = is_gone[b] = true;
                spread(counts[c], 0, is_gone, &reached);
                ck_assert_int_eq(reached, counts[c] - 2);
            }
}

TEST_MAIN("watch_places", .seconds = 60)
