/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/problem.h"
#include "suite.h"

static const char *printed(void)
{
    static char *lines;
    size_t bytes;
    FILE *out;

    free(lines);
    out = open_memstream(&lines, &bytes);
    ck_assert(out != NULL);
    problem_print(out, "mnist");
    fclose(out);
    return lines;
}

TEST(one_line)
{
    problem_set("no file; none, at step 3");
    ck_assert_str_eq(printed(), "mnist: no file; none, at step 3\n");
}

/* A long refusal is not cut. */
TEST(a_refusal_is_a_sentence_and_a_list)
{
    char many[2000];

    problem_set("device: tile 0 would hold 9 bytes, 1 more than it has, at "
                "step 1, sum: code 4; largest there: 'a' [2] 8 (x.c:1), 'b' "
                "[2] 8. What would change that; float16 throughout: 5 bytes; "
                "sharding: 4 bytes. What would not; placement");
    ck_assert_str_eq(printed(),
                     "mnist: device: tile 0 would hold 9 bytes, 1 more than it "
                     "has\n    at step 1, sum: code 4\n    largest there: 'a' "
                     "[2] 8 (x.c:1)\n        'b' [2] 8\nWhat would change "
                     "that:\n    float16 throughout: 5 bytes\n    sharding: "
                     "4 bytes\nWhat would not:\n    placement\n");
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    problem_set("%s. What would change that; %s", many, "the end");
    ck_assert(strstr(printed(), "    the end\n"));
}

TEST_MAIN("models_problem")
