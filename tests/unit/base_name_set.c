/* SPDX-License-Identifier: Apache-2.0 */
/* A set of names equals one that is searched from end to end. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "checks.h"
#include "suite.h"

enum { MOST = 600 };

static bool was_there(char (*names)[24], int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* The set is filled to the last place that was asked for, with names drawn from
 * so few that many are drawn again. */
TEST(knows_what_was_there)
{
    static char drawn[MOST][24];
    struct hvd__names names;
    uint64_t state = 88172645463325252U;
    int n = 0;

    ck_assert_int_eq(hvd__names_init(&names, MOST), 0);
    while (n < MOST) {
        char *name = drawn[n];

        state = state * 6364136223846793005U + 1442695040888963407U;
        snprintf(name, sizeof drawn[n], "%s%d", n % 3 ? "layer " : "",
                 (int)(state >> 33) % MOST);
        if (was_there(drawn, n, name)) {
            char copy[24];

            memcpy(copy, name, sizeof copy);
            ck_assert(!hvd__names_add(&names, copy));
        } else {
            ck_assert(hvd__names_add(&names, name));
            n++;
        }
    }
    for (int i = 0; i < MOST; i++)
        ck_assert(!hvd__names_add(&names, drawn[i]));
    hvd__names_fini(&names);
}

TEST(few_or_none)
{
    struct hvd__names names = {0};

    hvd__names_fini(&names);
    ck_assert_int_eq(hvd__names_init(&names, 0), 0);
    hvd__names_fini(&names);
    ck_assert_int_eq(hvd__names_init(&names, 1), 0);
    ck_assert(hvd__names_add(&names, ""));
    ck_assert(!hvd__names_add(&names, ""));
    hvd__names_fini(&names);
    hvd__names_fini(&names);
}

TEST_MAIN("base_name_set")
