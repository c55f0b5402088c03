/* SPDX-License-Identifier: Apache-2.0 */
#include "suite.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 200 };

static struct listed {
    const TTest *test;
    int first, end;
} listed[MOST];
static size_t nlisted;

void suite_add(const TTest *test, int first, int end)
{
    if (nlisted == MOST)
        abort();
    listed[nlisted++] = (struct listed){test, first, end};
}

void checks_pass(const char *file, int line)
{
    enum { LINES = 64, RECENT = 4096 };
    static _Thread_local int recent[LINES];
    static _Thread_local unsigned npassed;

    if (npassed++ % RECENT == 0)
        memset(recent, 0, sizeof recent);
    if (recent[line % LINES] == line)
        return;
    recent[line % LINES] = line;
    _mark_point(file, line);
}

static int by_line(const void *a, const void *b)
{
    const struct listed *x = a, *y = b;

    return x->test->line - y->test->line;
}

/* Constructors run in an order that the compiler chooses, so the lines sort
 * the tests. */
void suite_fill(TCase *tcase, const struct suite *suite)
{
    tcase_add_checked_fixture(tcase, suite->set_up, suite->tear_down);
    tcase_add_unchecked_fixture(tcase, suite->set_up_once,
                                suite->tear_down_once);
    if (suite->seconds > 0)
        tcase_set_timeout(tcase, suite->seconds);
    qsort(listed, nlisted, sizeof *listed, by_line);
    for (const struct listed *l = listed; l < listed + nlisted; l++)
        tcase_add_loop_test(tcase, l->test, l->first, l->end);
}

int suite_main(const struct suite *suite)
{
    Suite *tests = suite_create(suite->name);
    TCase *tcase = tcase_create(suite->name);
    SRunner *runner = srunner_create(tests);
    int failed;

    suite_fill(tcase, suite);
    suite_add_tcase(tests, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
