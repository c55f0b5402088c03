/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each launcher has variables of its own, some of which it may not set.
 */
#include "output/launcher.h"

#include "suite.h"

#include <stdlib.h>

static void setup(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "PMIX_RANK",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "MPI_LOCALNRANKS"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
}

TEST(process_without_a_launcher_is_rank_0)
{
    ck_assert(!launcher_present());
    ck_assert_int_eq(launcher_rank(), 0);
    ck_assert_int_eq(launcher_size(), 0);
    ck_assert_int_eq(launcher_local_size(), 0);
    setenv("PMI_RANK", "", 1);
    ck_assert(!launcher_present());
}

TEST(hydra_tells_rank_and_sizes)
{
    setenv("PMI_RANK", "4", 1);
    ck_assert(launcher_present());
    ck_assert_int_eq(launcher_rank(), 4);
    ck_assert_int_eq(launcher_size(), 0);
    setenv("PMI_SIZE", "8", 1);
    setenv("MPI_LOCALNRANKS", "5", 1);
    ck_assert_int_eq(launcher_size(), 8);
    ck_assert_int_eq(launcher_local_size(), 5);
}

TEST(variables_of_one_launcher_are_not_mixed_with_others)
{
    setenv("PMI_RANK", "4", 1);
    setenv("PMI_SIZE", "8", 1);
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    ck_assert_int_eq(launcher_rank(), 3);
    ck_assert_int_eq(launcher_size(), 0);
    setenv("OMPI_COMM_WORLD_SIZE", "6", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    ck_assert_int_eq(launcher_size(), 6);
    ck_assert_int_eq(launcher_local_size(), 2);
}

TEST_MAIN("models_launcher", .set_up = setup)
