/* SPDX-License-Identifier: Apache-2.0 */
/* A compilation shows its passes on a terminal, and is stopped by a check. */
#include "trainer/compiling.h"

#include "suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *text;
static size_t bytes;
static FILE *out;
static hvd_progress *progress;
static int answer;

static int check(void *context)
{
    (void)context;
    return answer;
}

static void set_up(void)
{
    hvd_progress_options options;

    setenv("HVD_TTY", "1", 1);
    setenv("TERM", "xterm", 1);
    setenv("NO_COLOR", "1", 1);
    setenv("COLUMNS", "60", 1);
    out = open_memstream(&text, &bytes);
    answer = 0;
    hvd_progress_options_init(&options, sizeof options);
    options.out = out;
    options.check = check;
    ck_assert_int_eq(hvd_progress_new(&options, &progress), 0);
}

static void tear_down(void)
{
    hvd_progress_free(progress);
    fclose(out);
    free(text);
}

static void tell(const char *phase, int64_t done, int64_t total)
{
    hvd_progress_phase(progress, "compiling", 0, 1000, NULL);
    usleep(110000);
    ck_assert_int_eq(compiling_tell(progress, phase, done, total), 0);
    fflush(out);
}

TEST(passes_are_shown)
{
    tell("schedule", 30, 60);
    ck_assert_ptr_nonnull(strstr(text, "compiling [>"));
    ck_assert_ptr_nonnull(strstr(text, "compiling [="));
    ck_assert_ptr_nonnull(strstr(text, "]  50 %  schedule"));
}

TEST(a_pass_of_nothing)
{
    tell("fit", 0, 0);
    ck_assert_ptr_nonnull(strstr(text, "  0 %  fit"));
    ck_assert_int_eq(compiling_tell(NULL, "fit", 0, 1), 0);
}

TEST(it_compiles)
{
    ipu_executable *executable = NULL;
    ipu_graph *graph = NULL;

    ck_assert_int_eq(ipu_graph_new(&graph), 0);
    ck_assert_int_eq(compiling_run(graph, 0, false, progress, &executable), 0);
    ck_assert_ptr_nonnull(executable);
    fflush(out);
    ck_assert_ptr_nonnull(strstr(text, "compiling"));
    ck_assert_str_eq(text + strlen(text) - 4, "\r\033[K");
    ipu_executable_free(executable);
    executable = NULL;
    answer = -3;
    ck_assert_int_lt(compiling_run(graph, 0, false, progress, &executable), 0);
    ck_assert_ptr_null(executable);
    ipu_relu(graph, (ipu_tensor){-1});
    ck_assert_int_lt(compiling_run(graph, 0, false, NULL, &executable), 0);
    ck_assert_ptr_null(executable);
    ipu_graph_free(graph);
}

TEST_MAIN("models_compiling", .set_up = set_up, .tear_down = tear_down)
