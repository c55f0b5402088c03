/* SPDX-License-Identifier: Apache-2.0 */
/* Slices and trees are right for all numbers of ranks up to 17. */
#include <string.h>

#include "suite.h"
#include "transport/pattern.h"

enum { MOST = 17 };

TEST(slices_are_a_partition)
{
    for (int n = 1; n <= MOST; n++)
        for (int64_t count = 0; count <= 100; count++) {
            int64_t next = 0;

            for (int rank = 0; rank < n; rank++) {
                struct hvd__slice s = hvd__slice_of(count, rank, n);

                ck_assert_int_eq(s.start, next);
                ck_assert_int_eq(s.count, count / n + (rank < count % n));
                next += s.count;
            }
            ck_assert_int_eq(next, count);
        }
}

TEST(binomial_trees_reach_everyone)
{
    for (int n = 1; n <= MOST; n++)
        for (int root = 0; root < n; root++) {
            int reached = 0, rounds = 0;

            while (1 << rounds < n)
                rounds++;
            ck_assert_int_eq(hvd__binomial_parent(root, root, n), -1);
            for (int rank = 0; rank < n; rank++) {
                int children[32], up = rank, depth = 0;
                int nchildren = hvd__binomial_children(rank, root, n, children);

                ck_assert_int_le(nchildren, rounds);
                for (int i = 0; i < nchildren; i++)
                    ck_assert_int_eq(hvd__binomial_parent(children[i], root, n),
                                     rank);
                reached += nchildren;
                while (up != root && depth <= rounds) {
                    up = hvd__binomial_parent(up, root, n);
                    depth++;
                }
                ck_assert_int_eq(up, root);
                ck_assert_int_le(depth, rounds);
            }
            ck_assert_int_eq(reached, n - 1);
        }
}

/* Beyond 2^31, where an int in between would show. */
TEST(slices_of_very_many)
{
    const int64_t count = (INT64_C(1) << 62) + 5;

    for (int n = 1; n <= MOST; n++) {
        struct hvd__slice last = hvd__slice_of(count, n - 1, n);

        ck_assert_int_eq(hvd__slice_of(count, 0, n).start, 0);
        ck_assert_int_eq(last.start + last.count, count);
        ck_assert_int_eq(last.count, count / n);
    }
}

/* The child with the most to pass on is first: in a whole tree each child has
 * half of what the one before has. */
TEST(large_subtrees_come_first)
{
    int children[32];

    ck_assert_int_eq(hvd__binomial_children(0, 0, 16, children), 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(children[i], 8 >> i);
    ck_assert_int_eq(hvd__binomial_children(15, 3, 16, children), 2);
    ck_assert_int_eq(children[0], (15 + 2) % 16);
    ck_assert_int_eq(children[1], (15 + 1) % 16);
    /* A tree without its last ranks: the first child lost some. */
    ck_assert_int_eq(hvd__binomial_children(0, 0, 5, children), 3);
    ck_assert_int_eq(children[0], 4);
    ck_assert_int_eq(children[1], 2);
    ck_assert_int_eq(children[2], 1);
}

/* In each step members meet in pairs, and after all steps what each has been
 * given, directly or not, is everyone's; halved parts are a partition. */
TEST(pairings_reach_everyone)
{
    for (int n = 1; n <= 33; n++) {
        uint64_t knows[33], met[33];
        int64_t covered = 0;

        for (int i = 0; i < n; i++) {
            struct hvd__pairing p = hvd__pairing_of(i, n);

            knows[i] = UINT64_C(1) << i;
            if (p.folded >= 0)
                ck_assert_int_eq(hvd__pairing_of(p.folded, n).folded, i);
            if (p.number >= 0 && p.folded >= 0)
                knows[i] |= UINT64_C(1) << p.folded;
            if (p.number >= 0)
                covered += hvd__pairing_part((struct hvd__slice){7, 1001},
                                             p.number, p.steps)
                               .count;
        }
        ck_assert_int_eq(covered, 1001);
        for (int step = 0; step < hvd__pairing_of(0, n).steps; step++) {
            memcpy(met, knows, sizeof met);
            for (int i = 0; i < n; i++) {
                struct hvd__pairing p = hvd__pairing_of(i, n), q;
                int partner;

                if (p.number < 0)
                    continue;
                partner = hvd__pairing_partner(&p, step);
                q = hvd__pairing_of(partner, n);
                ck_assert_int_eq(hvd__pairing_partner(&q, step), i);
                ck_assert_uint_eq(met[i] & met[partner], 0);
                knows[i] = met[i] | met[partner];
            }
        }
        for (int i = 0; i < n; i++)
            if (hvd__pairing_of(i, n).number >= 0)
                ck_assert_uint_eq(knows[i], (UINT64_C(1) << n) - 1);
    }
}

TEST_MAIN("transport_pattern")
