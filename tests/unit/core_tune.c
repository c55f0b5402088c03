/* SPDX-License-Identifier: Apache-2.0 */
/* The search finds the best sizes on landscapes whose top is known. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/agree/tune.h"
#include "folder.h"
#include "hvd.h"
#include "suite.h"

/* Returns bytes a second, which are highest where both knobs are right. */
static double score(const struct hvd__knobs *k, double fusion, double direct)
{
    double f = log2((double)k->fusion_threshold / fusion);
    double d = log2((double)k->direct_max / direct);

    return 1e9 / (1 + 0.2 * f * f + 0.1 * d * d);
}

static int run(struct hvd__tune *tune, double fusion, double direct)
{
    int64_t now = 1;
    int settings = 0;

    hvd__tune_step(tune, 0, now);
    for (int step = 0; tune->active && step < 100000; step++) {
        struct hvd__knobs before = tune->now;

        now += 25000000;
        settings += hvd__tune_step(
            tune, (int64_t)(score(&before, fusion, direct) * 0.025), now);
    }
    ck_assert(!tune->active);
    return settings;
}

TEST(it_climbs_to_the_top)
{
    static const size_t fusions[] = {1 << 20, 64 << 20, 64 << 10};
    static const size_t directs[] = {512, 8 << 10, 128 << 10};

    for (int f = 0; f < 3; f++)
        for (int d = 0; d < 3; d++) {
            struct hvd__knobs first = {4 << 20, 8 << 10};
            struct hvd__tune tune;

            ck_assert_int_eq(hvd__tune_start(&tune, &first, 64 << 20, ""), 0);
            ck_assert_int_lt(run(&tune, (double)fusions[f], (double)directs[d]),
                             60);
            ck_assert_uint_eq(tune.best.fusion_threshold, fusions[f]);
            ck_assert_uint_eq(tune.best.direct_max, directs[d]);
            ck_assert(memcmp(&tune.now, &tune.best, sizeof tune.now) == 0);
            hvd__tune_fini(&tune);
        }
}

TEST(it_stops_where_nothing_is_gained)
{
    struct hvd__knobs first = {4 << 20, 8 << 10};
    struct hvd__tune tune;
    int64_t now = 1;
    int n = 0;

    ck_assert_int_eq(hvd__tune_start(&tune, &first, 64 << 20, ""), 0);
    hvd__tune_step(&tune, 0, now);
    while (tune.active && n < 1000) {
        now += 30000000;
        hvd__tune_step(&tune, 2 << 20, now);
        n++;
    }
    ck_assert_int_lt(n, 60);
    ck_assert_uint_eq(tune.best.fusion_threshold, 4 << 20);
    ck_assert_uint_eq(tune.best.direct_max, 8 << 10);
    /* Too little at a time says nothing. */
    ck_assert_int_eq(hvd__tune_start(&tune, &first, 64 << 20, ""), 0);
    for (int i = 0; i < 1000; i++)
        ck_assert(!hvd__tune_step(&tune, 100, now += 30000000));
    hvd__tune_fini(&tune);
}

TEST(what_was_found_is_kept)
{
    const char *path = "knobs";
    struct hvd__knobs knobs = {2 << 20, 4096}, found = {0};

    ck_assert_int_eq(hvd__knobs_write(&knobs, path), 0);
    ck_assert_int_eq(hvd__knobs_read(&found, path), 1);
    ck_assert(found.fusion_threshold == 2 << 20 && found.direct_max == 4096);
    file_write_text(path, "rubbish\n");
    ck_assert_int_eq(hvd__knobs_read(&found, path), HVD_ERR_CONFIG);
    ck_assert(strstr(hvd_last_error(), path));
    unlink(path);
    ck_assert_int_eq(hvd__knobs_read(&found, path), 0);
    ck_assert_int_eq(hvd__knobs_write(&knobs, "/nonexistent/x"),
                     HVD_ERR_CONFIG);
}

/* Searches in a process whose files have at most so many bytes, with the log in
 * path. */
static int search_within(const char *path, rlim_t bytes)
{
    const struct rlimit limit = {bytes, bytes};
    const struct hvd__knobs first = {4 << 20, 8 << 10};
    struct hvd__tune tune;

    setrlimit(RLIMIT_FSIZE, &limit);
    if (hvd__tune_start(&tune, &first, 64 << 20, path) < 0)
        return 1;
    hvd__tune_step(&tune, 0, 1);
    for (int64_t now = 1; tune.active && now < INT64_C(100000000000);)
        hvd__tune_step(&tune, 2 << 20, now += 25000000);
    return tune.active ? 2 : 0;
}

/* A log for which there is no more room ends with a whole line, and the search
 * goes on. */
TEST(a_log_without_room)
{
    const char *path = "log", *text;
    int status;

    file_write_text(path, "");
    for (rlim_t bytes = 40; bytes < 140; bytes++) {
        pid_t child = fork();

        if (child == 0)
            _exit(search_within(path, bytes));
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
        ck_assert_int_eq(WEXITSTATUS(status), bytes < 50);
        text = file_text(path);
        ck_assert_uint_le(strlen(text), bytes);
        ck_assert(bytes < 50 || text[strlen(text) - 1] == '\n');
    }
}

TEST_MAIN("core_tune", .set_up = folder_enter, .tear_down = folder_remove)
