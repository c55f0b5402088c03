/* SPDX-License-Identifier: Apache-2.0 */
/* These tests are about the variants of kernels, and choosing one. */
#include <stdbool.h>
#include <string.h>

#include "hvd.h"
#include "kernels/kernels.h"
#include "suite.h"

static const char *last_offered(void)
{
    const char *name = NULL;

    for (int i = 0; hvd__kernels_offered(i); i++)
        name = hvd__kernels_offered(i);
    return name;
}

TEST(the_best_is_used)
{
    ck_assert_str_eq(hvd__kernels_offered(0), "generic");
    ck_assert_str_eq(hvd__kernels_name(), last_offered());
    ck_assert_int_eq(hvd__kernels_choose("generic"), HVD_OK);
    ck_assert_str_eq(hvd__kernels_name(), "generic");
    ck_assert_int_eq(hvd__kernels_choose("auto"), HVD_OK);
    ck_assert_str_eq(hvd__kernels_name(), last_offered());
}

TEST(what_is_offered_can_be_chosen)
{
    for (int i = 0; hvd__kernels_offered(i); i++) {
        const char *name = hvd__kernels_offered(i);

        ck_assert_int_eq(hvd__kernels_choose(name), HVD_OK);
        ck_assert_str_eq(hvd__kernels_name(), name);
    }
}

static bool is_offered(const char *name)
{
    for (int i = 0; hvd__kernels_offered(i); i++)
        if (strcmp(hvd__kernels_offered(i), name) == 0)
            return true;
    return false;
}

TEST(what_is_not_cannot_and_changes_nothing)
{
    static const char *const names[] = {"avx2", "avx512", "sse9",
                                        "",     "AVX2",   "generic "};

    ck_assert_int_eq(hvd__kernels_choose("generic"), HVD_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (is_offered(names[i]))
            continue;
        ck_assert_int_eq(hvd__kernels_choose(names[i]), HVD_ERR_CONFIG);
        ck_assert_ptr_nonnull(strstr(hvd_last_error(), names[i]));
        ck_assert_ptr_nonnull(strstr(hvd_last_error(), "HVD_KERNELS"));
        ck_assert_ptr_nonnull(strstr(hvd_last_error(), "auto"));
        for (int k = 0; hvd__kernels_offered(k); k++)
            ck_assert_ptr_nonnull(
                strstr(hvd_last_error(), hvd__kernels_offered(k)));
        ck_assert_str_eq(hvd__kernels_name(), "generic");
    }
}

TEST_MAIN("kernels_variants")
