/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A compilation draws a bar on a terminal once it has taken two seconds;
 * it draws nothing before, and nothing elsewhere.
 */
#include "trainer/compiling.h"

#include "suite.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/clock.h"

static char *text;
static size_t bytes;
static struct progress progress;

static void set_up(void)
{
    FILE *out = open_memstream(&text, &bytes);

    setenv("HVD_TTY", "1", 1);
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    setenv("COLUMNS", "60", 1);
    progress_init(&progress, out, true);
}

static void tear_down(void)
{
    fclose(progress.out);
    free(text);
}

/* Returns the output after this number of seconds. */
static const char *told(double seconds)
{
    struct compiling c = {&progress, clock_seconds() - seconds};

    progress.last -= 1;
    ck_assert_int_eq(compiling_tell(&c, "schedule", 30, 60), 0);
    fflush(progress.out);
    return text;
}

TEST(a_long_compilation_has_a_bar)
{
    ck_assert_ptr_nonnull(strstr(told(2.5), "compiling [="));
    ck_assert_ptr_nonnull(strstr(text, "]  50 % schedule"));
}

TEST(a_short_one_has_none)
{
    ck_assert_str_eq(told(1.5), "");
}

TEST(nothing_in_a_log)
{
    progress.live = false;
    progress.last -= 100;
    ck_assert_str_eq(told(50), "");
}

TEST(a_phase_of_nothing)
{
    struct compiling c = {&progress, clock_seconds() - 5}, nobody = {NULL, 0};

    progress.last -= 1;
    ck_assert_int_eq(compiling_tell(&c, "fit", 0, 0), 0);
    fflush(progress.out);
    ck_assert_ptr_nonnull(strstr(text, "  0 % fit"));
    ck_assert_int_eq(compiling_tell(&nobody, "fit", 0, 1), 0);
}

TEST(it_compiles)
{
    ipu_executable *executable = NULL;
    ipu_graph *graph = NULL;

    ck_assert_int_eq(ipu_graph_new(&graph), 0);
    progress.drawn = true;
    ck_assert_int_eq(compiling_run(graph, 0, false, &progress, &executable), 0);
    ck_assert_ptr_nonnull(executable);
    ck_assert(!progress.drawn);
    ipu_executable_free(executable);
    executable = NULL;
    ipu_relu(graph, (ipu_tensor){-1});
    ck_assert_int_lt(compiling_run(graph, 0, false, NULL, &executable), 0);
    ck_assert_ptr_null(executable);
    ipu_graph_free(graph);
}

TEST_MAIN("models_compiling", .set_up = set_up, .tear_down = tear_down)
