/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A terminal gets a bar, other outputs get lines, and ranks that do not print
 * get nothing. A terminal is what HVD_TTY says it is.
 */
#include "output/progress_text.h"

#include <hvd_progress.h>

#include "suite.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *text;
static size_t bytes;
static FILE *out;
static hvd_progress *progress;

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
    hvd_progress_free(progress);
    progress = NULL;
    fclose(out);
    free(text);
}

static hvd_progress_options options_of(double interval)
{
    hvd_progress_options options;

    hvd_progress_options_init(&options, sizeof options);
    options.out = out;
    options.interval = interval;
    return options;
}

static void make(double interval)
{
    const hvd_progress_options options = options_of(interval);

    hvd_progress_free(progress);
    ck_assert_int_eq(hvd_progress_new(&options, &progress), 0);
}

static void make_bar(void)
{
    setenv("HVD_TTY", "1", 1);
    make(10);
}

/* A bar is drawn at most ten times a second. */
static void update(int64_t done)
{
    usleep(110000);
    ck_assert_int_eq(hvd_progress_update(progress, done, "loss 0.5"), 0);
    fflush(out);
}

static void begin(void)
{
    hvd_progress_phase(progress, "epoch 1 of 2", 0, 200, "steps");
}

TEST(log_has_plain_lines)
{
    make(10);
    begin();
    update(100);
    hvd_progress_line(progress, "loss %d", 7);
    hvd_progress_end(progress);
    fflush(out);
    ck_assert_str_eq(text, "loss 7\n");
}

TEST(first_line_of_a_log_comes_within_half_a_second)
{
    make(10);
    begin();
    for (int i = 1; i <= 5; i++)
        update(20 * i);
    ck_assert_int_eq(strncmp(text, "epoch 1 of 2  ", 14), 0);
    ck_assert_ptr_nonnull(strstr(text, " %  "));
    ck_assert_ptr_nonnull(strstr(text, "/200 steps  "));
    ck_assert_ptr_nonnull(strstr(text, "/s  ETA "));
    ck_assert_ptr_nonnull(strstr(text, "  loss 0.5\n"));
    /* There was one; the next one comes after ten seconds. */
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}

TEST(log_has_a_line_after_each_interval)
{
    make(0.2);
    hvd_progress_line(progress, "begin");
    begin();
    for (int i = 1; i <= 4; i++)
        update(i);
    ck_assert_int_eq(strncmp(text, "begin\nepoch 1 of 2", 18), 0);
    ck_assert_ptr_nonnull(strstr(text, "1 %  2/200 steps"));
    ck_assert_ptr_nonnull(strstr(text, "2 %  4/200 steps"));
    ck_assert_ptr_null(strstr(text, " 3/200 steps"));
}

TEST(terminal_has_a_bar_at_once_that_is_erased)
{
    make_bar();
    begin();
    fflush(out);
    ck_assert_ptr_nonnull(strstr(text, "epoch 1 of 2 \033[32m[>"));
    update(100);
    ck_assert_ptr_nonnull(strstr(text, "=>"));
    ck_assert_ptr_nonnull(strstr(text, "50 %  100/200 steps  "));
    ck_assert_ptr_null(strchr(text, '\n'));
    hvd_progress_line(progress, "done");
    fflush(out);
    ck_assert_ptr_nonnull(strstr(text, "\r\033[Kdone\n"));
    /* The phase goes on behind the line, until its end. */
    ck_assert_ptr_nonnull(strstr(strstr(text, "done\n"), "50 %"));
    hvd_progress_end(progress);
    fflush(out);
    ck_assert_str_eq(text + strlen(text) - 4, "\r\033[K");
}

TEST(updates_in_quick_succession_are_skipped)
{
    size_t once;

    make_bar();
    begin();
    update(10);
    once = strlen(text);
    for (int i = 0; i < 5; i++)
        hvd_progress_update(progress, 100, "loss 0.5");
    fflush(out);
    ck_assert_uint_eq(strlen(text), once);
}

TEST(a_phase_that_goes_on_with_another_name_keeps_its_numbers)
{
    make_bar();
    begin();
    update(100);
    hvd_progress_rename(progress, "evalu\nating");
    fflush(out);
    ck_assert_ptr_nonnull(strstr(text, "evalu?ating"));
    ck_assert_ptr_nonnull(strstr(strstr(text, "evalu?ating"), "100/200 steps"));
}

TEST(the_last_bar_says_how_long_it_will_take)
{
    make_bar();
    hvd_progress_phase(progress, "training", 1000, 5000, "steps");
    for (int i = 1; i <= 5; i++)
        update(1000 + i); /* some 9 a second, and 3995 are left */
    ck_assert_ptr_nonnull(strstr(text, "1005/5000 steps"));
    double rate = atof(strstr(strstr(text, "1005/5000"), "steps") + 7);
    ck_assert(rate > 2 && rate < 9.5);
    int minutes = atoi(strstr(strstr(text, "1005/5000"), "ETA") + 4);
    ck_assert(minutes >= 7 && minutes < 40);
}

TEST(text_of_a_bar)
{
    struct progress_view v = {"phase", "loss 1", "steps", 30, 100, 12.34, 75};
    char made[PROGRESS_TEXT_BYTES];

    progress_bar(&v, 71, false, made);
    ck_assert_str_eq(made, "phase [====>         ]  30 %  30/100 steps  "
                           "12.3/s  ETA 1:15  loss 1");
    progress_bar(&v, 70, false, made); /* what is left out first */
    ck_assert_ptr_nonnull(strstr(made, "30/100 steps  12.3/s  ETA"));
    progress_bar(&v, 60, false, made);
    ck_assert_ptr_nonnull(strstr(made, "30/100 steps  ETA 1:15  loss 1"));
    progress_bar(&v, 40, false, made);
    ck_assert_ptr_null(strstr(made, "steps"));
    ck_assert_ptr_nonnull(strstr(made, "ETA 1:15"));
    v.left = 3 * 86400 + 3600 * 4;
    progress_plain(&v, made);
    ck_assert_str_eq(made,
                     "phase  30 %  30/100 steps  12.3/s  ETA 3 d 4 h  loss 1");
    v.left = 3661;
    v.rate = 0.25;
    progress_plain(&v, made);
    ck_assert_str_eq(made,
                     "phase  30 %  30/100 steps  0.25/s  ETA 1:01:01  loss 1");
    v.unit = NULL;
    progress_plain(&v, made);
    ck_assert_str_eq(made, "phase  30 %  loss 1");
    v = (struct progress_view){"phase", "", "images", 30, 0, 1234, -1};
    progress_bar(&v, 80, false, made);
    ck_assert_str_eq(made, "phase 30 images  1234/s");
}

TEST(bar_fits_every_width)
{
    const struct progress_view v = {"größer als", "Verlust 0,5 µ", "Stücke",
                                    123456789,    987654321,       1234567,
                                    1e6};

    for (int width = 1; width < 200; width++)
        for (int colour = 0; colour < 2; colour++) {
            char made[PROGRESS_TEXT_BYTES];
            int columns = 0;

            progress_bar(&v, width, colour, made);
            for (const char *c = made; *c; c++)
                if (*c == '\033')
                    c = strchr(c, 'm');
                else
                    columns += ((unsigned char)*c & 0xC0) != 0x80;
            /* "^C" fits behind it, unless not even that fits. */
            ck_assert_int_lt(columns, width > 3 ? width - 2 : 1);
        }
}

TEST(no_color_is_respected)
{
    setenv("NO_COLOR", "1", 1);
    make_bar();
    begin();
    fflush(out);
    ck_assert_ptr_null(strstr(text, "\033[3"));
    setenv("NO_COLOR", "", 1); /* empty counts as not set */
    make_bar();
    begin();
    fflush(out);
    ck_assert_ptr_nonnull(strstr(text, "\033[32m"));
}

TEST(dumb_terminal_has_no_bar)
{
    setenv("TERM", "dumb", 1);
    make_bar();
    begin();
    update(100);
    ck_assert_str_eq(text, "");
}

TEST(launcher_may_say_there_is_no_terminal)
{
    setenv("HVD_TTY", "0", 1);
    make(10);
    begin();
    update(100);
    ck_assert_str_eq(text, "");
}

static void check_silence(const hvd_progress_options *options)
{
    setenv("HVD_TTY", "1", 1);
    ck_assert_int_eq(hvd_progress_new(options, &progress), 0);
    begin();
    update(100);
    hvd_progress_rename(progress, "evaluating");
    hvd_progress_line(progress, "loss");
    hvd_progress_end(progress);
    fflush(out);
    ck_assert_str_eq(text, "");
}

TEST(other_ranks_print_nothing)
{
    hvd_progress_options options = options_of(0);

    options.rank = 1;
    check_silence(&options);
}

TEST(quiet_prints_nothing)
{
    hvd_progress_options options = options_of(0);

    options.quiet = 1;
    check_silence(&options);
}

TEST(no_progress_is_accepted)
{
    begin();
    hvd_progress_rename(progress, "evaluating");
    ck_assert_int_eq(hvd_progress_update(progress, 1, NULL), 0);
    hvd_progress_line(progress, "loss");
    hvd_progress_end(progress);
}

static int refuse(void *context)
{
    return *(const int *)context;
}

TEST(a_check_is_asked_on_every_rank)
{
    hvd_progress_options options = options_of(10);
    int answer = 0;

    options.rank = 3;
    options.check = refuse;
    options.check_context = &answer;
    ck_assert_int_eq(hvd_progress_new(&options, &progress), 0);
    ck_assert_int_eq(hvd_progress_update(progress, 1, NULL), 0);
    answer = -5;
    ck_assert_int_eq(hvd_progress_update(progress, 1, NULL), -5);
    ck_assert_int_eq(hvd_progress_check(progress), -5);
}

static void *count_up(void *context)
{
    for (int i = 0; i < 20000; i++) {
        hvd_progress_update(progress, i, "loss");
        if (i % 1000 == 0)
            hvd_progress_line(progress, "line of %s", (const char *)context);
    }
    return NULL;
}

TEST(threads_do_not_mix_their_lines)
{
    pthread_t threads[4];
    int lines = 0;

    make(10);
    begin();
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, count_up, (void *)"a thread");
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    fflush(out);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        ck_assert_str_eq(line, "line of a thread");
        lines++;
    }
    ck_assert_int_eq(lines, 80);
}

TEST_MAIN("models_progress", .set_up = setup, .tear_down = teardown)
