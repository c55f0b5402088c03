/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the comparison of two profiles: each growth must match the figures of
 * both executables, and parts that only one of them has are named.
 */
#include "suite.h"

#include <math.h>

#include "report.h"

static struct device small, large;
static ipu_profile *before, *after;

static void set_up(void)
{
    small = device_new();
    large = device_new();
    report_network(&small, 8, device_no_call);
    report_network(&large, 2048, device_no_call);
    device_load(&small);
    device_load(&large);
    before = report_profile(&small, "small");
    after = report_profile(&large, "large");
}

static void tear_down(void)
{
    ipu_profile_free(before);
    ipu_profile_free(after);
    device_free(&small);
    device_free(&large);
}

static ipu_profile_change change(const ipu_profile *a, const ipu_profile *b)
{
    ipu_profile_change c = {.size = sizeof c};

    MUST(ipu_profile_compare(a, b, &c));
    return c;
}

static char *compared(const ipu_profile *a, const ipu_profile *b,
                      ipu_profile_format format)
{
    char *text = NULL;

    MUST(ipu_profile_compare_print(a, b, format, &text));
    return text;
}

static double grown(double a, double b)
{
    return 100 * (b - a) / a;
}

TEST(nothing_changes_by_itself)
{
    ipu_profile_change c = change(before, before);
    char *text = compared(before, before, IPU_PROFILE_TEXT);

    ck_assert_int_eq(c.programs, 1);
    ck_assert_double_eq(c.cycles_percent, 0);
    ck_assert_double_eq(c.memory_percent, 0);
    ck_assert_double_eq(c.ns_percent, 0);
    report_is_narrow(text);
    ck_assert_ptr_null(strchr(text, '%'));
    ck_assert_ptr_nonnull(strstr(text, " as before"));
    free(text);
}

TEST(growth_is_that_of_the_executables)
{
    ipu_program_cycles a = {.size = sizeof a}, b = a;
    ipu_memory_info m = {.size = sizeof m}, n = m;
    ipu_profile_change c = change(before, after);
    ipu_profile_change back = change(after, before);

    MUST(ipu_executable_cycles(small.executable, &a));
    MUST(ipu_executable_cycles(large.executable, &b));
    MUST(ipu_executable_memory(small.executable, &m));
    MUST(ipu_executable_memory(large.executable, &n));
    ck_assert_double_eq_tol(c.cycles_percent,
                            grown((double)a.total, (double)b.total), 1e-9);
    ck_assert_double_eq_tol(
        c.memory_percent,
        grown((double)m.fullest_tile_bytes, (double)n.fullest_tile_bytes),
        1e-9);
    ck_assert_double_eq_tol(back.cycles_percent,
                            grown((double)b.total, (double)a.total), 1e-9);
    ck_assert(c.cycles_percent > 0 && back.cycles_percent < 0);
}

/* The sum of each figure over steps is the figure of both programs' steps. */
TEST(no_step_is_forgotten)
{
    static const char *const lists[] = {"steps", "ops"};
    char *text = compared(before, after, IPU_PROFILE_JSON);
    json_t *json = json_loads(text, 0, NULL);
    const json_t *program, *figure;
    ipu_memory_info info = {.size = sizeof info};
    size_t i;

    ck_assert_ptr_nonnull(json);
    program = report_program(json, 0);
    MUST(ipu_executable_memory(large.executable, &info));
    for (size_t k = 0; k < 2; k++) {
        int64_t told = 0, cycles = 0;

        json_array_foreach(json_object_get(program, lists[k]), i, figure)
        {
            if (!json_is_null(json_object_get(figure, "after")))
                told += report_number(figure, "after");
        }
        for (int32_t s = 0; s < info.steps; s++) {
            ipu_step_info step = {.size = sizeof step};

            MUST(ipu_executable_step(large.executable, s, &step));
            cycles += step.total_cycles;
        }
        ck_assert_int_eq(told, cycles);
    }
    ck_assert_str_eq(json_string_value(json_object_get(json, "format")),
                     "ipu-profile-comparison");
    json_decref(json);
    free(text);
}

TEST(what_changed_most_comes_first)
{
    char *text = compared(before, after, IPU_PROFILE_JSON);
    json_t *json = json_loads(text, 0, NULL);
    const json_t *figure;
    double last = INFINITY;
    size_t i;

    json_array_foreach(json_object_get(report_program(json, 0), "ops"), i,
                       figure)
    {
        double now = fabs(json_number_value(json_object_get(figure, "after")) -
                          json_number_value(json_object_get(figure, "before")));

        ck_assert(now <= last);
        last = now;
    }
    json_decref(json);
    free(text);
}

TEST(ops_come_and_go)
{
    struct device d = device_new();
    ipu_profile *other;
    char *text;

    MUST(ipu_output(d.graph, "y",
                    ipu_exp(d.graph, device_floats(&d, "x", 1, SHAPE(99)))));
    device_load(&d);
    other = report_profile(&d, "other");
    text = compared(before, other, IPU_PROFILE_TEXT);
    report_is_narrow(text);
    ck_assert_ptr_nonnull(strstr(text, "new\n"));
    ck_assert_ptr_nonnull(strstr(text, "gone\n"));
    free(text);
    ck_assert_ptr_nonnull(
        strstr(text = compared(before, other, IPU_PROFILE_HTML), "<html"));
    free(text);
    ipu_profile_free(other);
    device_free(&d);
}

/* Programs go by their names, unless there is only one each. */
TEST(programs_are_compared_by_name)
{
    ipu_profile *two = NULL, *third = NULL;
    ipu_program_cycles one = {.size = sizeof one}, other = one;
    char *text;

    MUST(ipu_profile_new("two", &two));
    MUST(ipu_profile_add(two, "evaluation", 0, large.executable, NULL));
    MUST(ipu_profile_add(two, "training", 0, small.executable, NULL));
    ck_assert_int_eq(change(before, two).programs, 1);
    ck_assert_double_eq(change(before, two).cycles_percent, 0);
    text = compared(before, two, IPU_PROFILE_TEXT);
    ck_assert_ptr_nonnull(
        strstr(text, "only the second has the program 'evaluation'"));
    free(text);
    MUST(ipu_profile_new("third", &third));
    MUST(ipu_profile_add(third, "a", 0, large.executable, NULL));
    ck_assert_int_eq(change(before, third).programs, 1);
    MUST(ipu_profile_add(third, "b", 0, large.executable, NULL));
    /* No name is the same: all programs of the second are one. */
    ck_assert_int_eq(change(before, third).programs, 0);
    MUST(ipu_executable_cycles(small.executable, &one));
    MUST(ipu_executable_cycles(large.executable, &other));
    ck_assert_double_eq_tol(
        change(before, third).cycles_percent,
        100 * (2 * (double)other.total / (double)one.total - 1), 1e-6);
    text = compared(before, third, IPU_PROFILE_TEXT);
    ck_assert_ptr_nonnull(strstr(text, "one after the other"));
    ck_assert_ptr_null(strstr(text, "only the"));
    free(text);
    ipu_profile_free(two);
    ipu_profile_free(third);
}

TEST(the_worst_of_all_programs_counts)
{
    ipu_profile *a = NULL, *b = NULL;

    MUST(ipu_profile_new("a", &a));
    MUST(ipu_profile_new("b", &b));
    MUST(ipu_profile_add(a, "first", 0, large.executable, NULL));
    MUST(ipu_profile_add(a, "second", 0, small.executable, NULL));
    MUST(ipu_profile_add(b, "first", 0, small.executable, NULL));
    MUST(ipu_profile_add(b, "second", 0, large.executable, NULL));
    ck_assert_double_eq(change(a, b).cycles_percent,
                        change(before, after).cycles_percent);
    ck_assert_int_eq(change(a, b).programs, 2);
    ipu_profile_free(a);
    ipu_profile_free(b);
}

TEST(arguments_are_checked)
{
    ipu_profile_change c = {.size = 1};
    char *text = NULL;

    MUST_FAIL(ipu_profile_compare(before, after, &c), IPU_ERR_ARGUMENT,
              "size is 1");
    MUST_FAIL(ipu_profile_compare(NULL, after, &c), IPU_ERR_ARGUMENT,
              "compare: a profile is NULL");
    MUST_FAIL(ipu_profile_compare(before, after, NULL), IPU_ERR_ARGUMENT,
              "compare: the place for the result is NULL");
    MUST_FAIL(ipu_profile_compare_print(before, NULL, 0, &text),
              IPU_ERR_ARGUMENT, "compare: a profile is NULL");
    MUST_FAIL(ipu_profile_compare_print(before, after, 3, &text),
              IPU_ERR_ARGUMENT, "no format 3");
    ck_assert_ptr_null(text);
}

TEST_MAIN("device_report_compare", .set_up = set_up, .tear_down = tear_down)
