/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal gets a bar, other outputs get lines, and ranks that do not print
 * get nothing. A terminal is what HVD_TTY says it is.
 */
#include "output/progress.h"

#include "suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *text;
static size_t bytes;
static FILE *out;

static void setup(void)
{
    static const char *const names[] = {"HVD_TTY",   "COLUMNS",
                                        "NO_COLOR",  "TERM",
                                        "PMIX_RANK", "OMPI_COMM_WORLD_RANK",
                                        "PMI_RANK"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    out = open_memstream(&text, &bytes);
}

static void teardown(void)
{
    fclose(out);
    free(text);
}

/* The bar is drawn at most ten times a second. */
static void update(struct progress *progress, double part)
{
    progress->last -= 0.2;
    progress_update(progress, "epoch 1/2", part, "loss 0.5");
    fflush(out);
}

TEST(log_has_plain_lines)
{
    struct progress progress;

    progress_init(&progress, out, true);
    update(&progress, 0.5);
    progress_line(&progress, "loss %d", 7);
    progress_clear(&progress);
    fflush(out);
    ck_assert_str_eq(text, "loss 7\n");
}

TEST(silent_log_speaks_after_ten_seconds)
{
    struct progress progress;

    progress_init(&progress, out, true);
    progress.last -= 11;
    progress_update(&progress, "epoch 1/2", 0.25, "loss 0.5");
    progress_update(&progress, "epoch 1/2", 0.5, "loss 0.5");
    fflush(out);
    ck_assert_str_eq(text, "epoch 1/2  25 % loss 0.5\n");
}

TEST(terminal_has_a_bar_that_is_erased)
{
    struct progress progress;

    setenv("HVD_TTY", "1", 1);
    progress_init(&progress, out, true);
    update(&progress, 0.5);
    ck_assert_ptr_nonnull(strstr(text, "=>"));
    ck_assert_ptr_nonnull(strstr(text, "50 %"));
    ck_assert_ptr_null(strchr(text, '\n'));
    progress_line(&progress, "done");
    fflush(out);
    ck_assert_ptr_nonnull(strstr(text, "\r\033[Kdone\n"));
}

TEST(updates_in_quick_succession_are_skipped)
{
    struct progress progress;

    setenv("HVD_TTY", "1", 1);
    progress_init(&progress, out, true);
    update(&progress, 0.1);
    size_t once = strlen(text);
    for (int i = 0; i < 5; i++)
        progress_update(&progress, "epoch 1/2", 0.5, "loss 0.5");
    fflush(out);
    ck_assert_uint_eq(strlen(text), once);
}

TEST(bar_fits_the_width)
{
    static const char *const widths[] = {"80", "40", "30", "20", "5", "1"};

    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        struct progress progress;
        setenv("HVD_TTY", "1", 1);
        setenv("NO_COLOR", "1", 1);
        setenv("COLUMNS", widths[i], 1);
        progress_init(&progress, out, true);
        size_t before = bytes;
        for (int part = 0; part <= 10; part++) {
            update(&progress, part / 10.0);
            size_t drawn = strlen(text) - before - strlen("\r\033[K");
            ck_assert_uint_lt(drawn, (size_t)atoi(widths[i]));
            before = strlen(text);
        }
    }
}

TEST(no_color_is_respected)
{
    struct progress progress;

    setenv("HVD_TTY", "1", 1);
    setenv("NO_COLOR", "1", 1);
    progress_init(&progress, out, true);
    update(&progress, 0.5);
    ck_assert_ptr_null(strstr(text, "\033[3"));
    setenv("NO_COLOR", "", 1); /* empty counts as not set */
    progress_init(&progress, out, true);
    update(&progress, 0.5);
    ck_assert_ptr_nonnull(strstr(text, "\033[32m"));
}

TEST(dumb_terminal_has_no_bar)
{
    struct progress progress;

    setenv("HVD_TTY", "1", 1);
    setenv("TERM", "dumb", 1);
    progress_init(&progress, out, true);
    update(&progress, 0.5);
    ck_assert_str_eq(text, "");
}

TEST(launcher_may_say_there_is_no_terminal)
{
    struct progress progress;

    setenv("HVD_TTY", "0", 1);
    progress_init(&progress, out, true);
    ck_assert(!progress.live);
}

TEST(silent_rank_prints_nothing)
{
    struct progress progress;

    setenv("HVD_TTY", "1", 1);
    progress_init(&progress, out, false);
    update(&progress, 0.5);
    progress_line(&progress, "loss");
    progress_clear(&progress);
    fflush(out);
    ck_assert_str_eq(text, "");
}

TEST_MAIN("models_progress", .set_up = setup, .tear_down = teardown)
