/* SPDX-License-Identifier: Apache-2.0 */
/*
 * working_folder.h - a temporary folder as working directory, for tests of
 * files.
 */
#ifndef HVD_TESTS_WORKING_FOLDER_H
#define HVD_TESTS_WORKING_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "checks.h"

static char folder[160];

static inline void folder_enter(void)
{
    const char *base = getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%s/hvd-disk.XXXXXX", base ? base : "/tmp");
    ck_assert(mkdtemp(folder) != NULL);
    ck_assert_int_eq(chdir(folder), 0);
}

static inline void folder_remove(void)
{
    char command[sizeof folder + 16];

    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

#endif
