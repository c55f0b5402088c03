/* SPDX-License-Identifier: Apache-2.0 */
#include "base/left.h"

#include <stdlib.h>

#include "suite.h"

/* A sanitized build (make sanitize) looks for leaks when the test's process
 * ends. */
TEST(each_block_is_found)
{
    for (int i = 0; i < 4; i++) {
        void **block = malloc(sizeof *block);

        ck_assert(block != NULL);
        *block = malloc(100);
        hvd__leave_behind(block);
    }
}

TEST_MAIN("base_left")
