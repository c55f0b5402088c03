/* SPDX-License-Identifier: Apache-2.0 */
/* Masks and quotas of all kinds decide whether a rank may spin. */
#include "core/world/cores.h"
#include "suite.h"

enum { MOST = 4 };

static const struct hvd__cores *of(const void *context, int i)
{
    return (const struct hvd__cores *)context + i;
}

/* Returns whether the cores suffice for n ranks to spin. There is a text of
 * cores for each rank: "01" may use cores 0 and 1. */
static bool suffice(int n, int self, const char *const masks[], double quota)
{
    struct hvd__cores cores[MOST];

    for (int i = 0; i < n; i++) {
        CPU_ZERO(&cores[i].mask);
        for (const char *core = masks[i]; *core; core++)
            CPU_SET((size_t)(*core - '0'), &cores[i].mask);
        cores[i].quota = quota;
    }
    return hvd__cores_suffice(n, self, of, cores);
}

TEST(free_ranks_share_all_cores)
{
    const char *const masks[] = {"01", "01", "01", "01"};

    ck_assert(suffice(1, 0, masks, 0));
    ck_assert(suffice(2, 1, masks, 0));
    ck_assert(!suffice(3, 0, masks, 0));
    ck_assert(!suffice(4, 3, masks, 0));
}

TEST(a_core_of_its_own_is_enough)
{
    const char *const masks[] = {"0", "1", "2", "3"};

    for (int rank = 0; rank < 4; rank++)
        ck_assert(suffice(4, rank, masks, 0));
}

TEST(a_core_shared_by_two_is_not)
{
    const char *const masks[] = {"0", "0", "12", "12"};

    ck_assert(!suffice(4, 0, masks, 0));
    ck_assert(!suffice(4, 1, masks, 0));
    ck_assert(suffice(4, 2, masks, 0));
}

TEST(others_may_be_confined_to_ours)
{
    const char *const masks[] = {"012", "0", "1", "2"};

    ck_assert(!suffice(4, 0, masks, 0));
    ck_assert(suffice(4, 1, masks, 0));
}

TEST(a_quota_counts_for_all)
{
    const char *const masks[] = {"0123", "0123", "0123", "0123"};

    ck_assert(suffice(4, 0, masks, 4));
    ck_assert(!suffice(4, 0, masks, 3.5));
    ck_assert(suffice(2, 0, masks, 2));
}

TEST(a_quota_is_read)
{
    ck_assert(hvd__cores_quota("max 100000\n") == 0);
    ck_assert(hvd__cores_quota("150000 100000\n") == 1.5);
    ck_assert(hvd__cores_quota("50000 100000") == 0.5);
    ck_assert(hvd__cores_quota("") == 0);
    ck_assert(hvd__cores_quota("-1 100000") == 0);
    ck_assert(hvd__cores_quota("200000") == 0);
}

TEST(this_process_has_a_core)
{
    struct hvd__cores cores;

    hvd__cores_read(&cores);
    ck_assert_int_ge(CPU_COUNT(&cores.mask), 1);
    ck_assert(cores.quota >= 0);
}

TEST_MAIN("core_cores")
