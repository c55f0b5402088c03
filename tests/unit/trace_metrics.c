/* SPDX-License-Identifier: Apache-2.0 */
/* Tests counters: each event counts in the right places, in the struct and in
 * the text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "folder.h"
#include "suite.h"
#include "trace/metrics.h"

static struct hvd__metrics metrics;
static hvd_metrics seen;

/* Counts a request that took `us` microseconds, with its stations at tenths. */
static void request(hvd_kind kind, int64_t bytes, int status, int64_t us)
{
    const int64_t start = 1000000, step = us * 100;
    const struct hvd__times times = {
        .submitted_ns = start,
        .decided_ns = start + 2 * step,
        .started_ns = start + 5 * step,
        .packed_ns = start + 6 * step,
        .moved_ns = start + 8 * step,
        .done_ns = start + 10 * step,
    };

    hvd__metrics_completed(&metrics, kind, 1, bytes, status, &times);
}

static const hvd_kind_metrics *read_kind(hvd_kind kind)
{
    hvd__metrics_read(&metrics, &seen);
    return &seen.kinds[kind];
}

TEST(requests_are_counted_by_kind)
{
    const hvd_kind_metrics *k;

    request(HVD_ALLREDUCE, 100, HVD_OK, 50);
    request(HVD_ALLREDUCE, 200, HVD_OK, 50);
    request(HVD_ALLREDUCE, 400, HVD_ERR_PEER, 50);
    request(HVD_BROADCAST, 800, HVD_OK, 10);
    k = read_kind(HVD_ALLREDUCE);
    ck_assert_int_eq(k->completed, 2);
    ck_assert_int_eq(k->failed, 1);
    ck_assert_int_eq(k->bytes, 300); /* of those that succeeded */
    ck_assert_int_eq(k->waiting_ns, 3 * 10000);
    ck_assert_int_eq(k->queued_ns, 3 * 15000);
    ck_assert_int_eq(k->moving_ns, 3 * 25000);
    ck_assert_int_eq(k->latency_ns, 3 * 50000);
    ck_assert_int_eq(seen.kinds[HVD_BROADCAST].bytes, 800);
    ck_assert_int_eq(seen.kinds[HVD_BARRIER].completed, 0);
}

/* A request that did not reach a station adds no times for it. */
TEST(stations_that_were_not_reached)
{
    const struct hvd__times times = {.submitted_ns = 1000, .done_ns = 9000};
    const hvd_kind_metrics *k;

    hvd__metrics_completed(&metrics, HVD_GATHER, 1, 8, HVD_ERR_MISMATCH,
                           &times);
    k = read_kind(HVD_GATHER);
    ck_assert_int_eq(k->latency_ns, 8000);
    ck_assert_int_eq(k->waiting_ns + k->queued_ns + k->moving_ns, 0);
}

/* Several requests at once count like each of them alone. */
TEST(requests_of_one_moment)
{
    const struct hvd__times times = {
        .submitted_ns = 1000, .decided_ns = 3000, .done_ns = 9000};
    const hvd_kind_metrics *k;

    hvd__metrics_completed(&metrics, HVD_GATHER, 3, 24, HVD_OK, &times);
    k = read_kind(HVD_GATHER);
    ck_assert_int_eq(k->completed, 3);
    ck_assert_int_eq(k->bytes, 24);
    ck_assert_int_eq(k->waiting_ns, 3 * 2000);
    ck_assert_int_eq(k->latency_ns, 3 * 8000);
    ck_assert_int_eq(k->latency[4], 3);
}

/* Bucket i holds times below 2^i microseconds, and not below half of that. */
TEST(latencies_fall_into_buckets)
{
    for (int i = 0; i < HVD_LATENCY_BUCKETS - 1; i++) {
        memset(&metrics, 0, sizeof metrics);
        request(HVD_ALLREDUCE, 1, HVD_OK, (INT64_C(1) << i) - 1);
        request(HVD_ALLREDUCE, 1, HVD_OK, INT64_C(1) << i);
        ck_assert_int_eq(read_kind(HVD_ALLREDUCE)->latency[i], 1);
        ck_assert_int_eq(seen.kinds[HVD_ALLREDUCE].latency[i + 1], 1);
    }
    request(HVD_REDUCE, 1, HVD_OK, INT64_C(1) << 40);
    ck_assert_int_eq(read_kind(HVD_REDUCE)->latency[HVD_LATENCY_BUCKETS - 1],
                     1);
}

TEST(the_other_counters)
{
    atomic_int_fast64_t *const counters[] = {
        &metrics.batches,     &metrics.batched,    &metrics.fused,
        &metrics.fused_bytes, &metrics.messages,   &metrics.message_bytes,
        &metrics.refused,     &metrics.blocked_ns, &metrics.sent_bytes};
    const int n = sizeof counters / sizeof *counters;

    for (int i = 0; i < n; i++)
        hvd__count(counters[i], i + 1);
    hvd__metrics_read(&metrics, &seen);
    ck_assert_int_eq(seen.batches, 1);
    ck_assert_int_eq(seen.batched, 2);
    ck_assert_int_eq(seen.fused, 3);
    ck_assert_int_eq(seen.fused_bytes, 4);
    ck_assert_int_eq(seen.messages, 5);
    ck_assert_int_eq(seen.message_bytes, 6);
    ck_assert_int_eq(seen.refused, 7);
    ck_assert_int_eq(seen.blocked_ns, 8);
    ck_assert_int_eq(seen.sent_bytes, 9);
}

/* --------------------------------------------------------------------- text */

static char *printed(int rank)
{
    size_t length;
    char *text;

    hvd__metrics_read(&metrics, &seen);
    length = hvd__metrics_print(&seen, rank, NULL, 0);
    text = malloc(length + 1);
    ck_assert(text != NULL);
    ck_assert_uint_eq(hvd__metrics_print(&seen, rank, text, length + 1),
                      length);
    ck_assert_uint_eq(strlen(text), length);
    return text;
}

/* Returns the value of a line that begins with this. */
static double value_of(const char *text, const char *series)
{
    const char *at = strstr(text, series);

    ck_assert_msg(at != NULL, "no %s", series);
    return strtod(at + strlen(series), NULL);
}

TEST(text_for_prometheus)
{
    char *text;

    request(HVD_ALLREDUCE, 4000, HVD_OK, 3);
    request(HVD_ALLREDUCE, 4000, HVD_OK, 1000);
    hvd__count(&metrics.blocked_ns, 1500000000);
    text = printed(7);
    ck_assert(
        value_of(text, "\nhvd_bytes_total{rank=\"7\",op=\"allreduce\"} ") ==
        8000);
    ck_assert(value_of(text, "\nhvd_blocked_seconds_total{rank=\"7\"} ") ==
              1.5);
    /* Buckets add up, from the shortest to all. */
#define BUCKET "\nhvd_latency_seconds_bucket{rank=\"7\",op=\"allreduce\",le="
    ck_assert(value_of(text, BUCKET "\"0.000002\"} ") == 0);
    ck_assert(value_of(text, BUCKET "\"0.000004\"} ") == 1);
    ck_assert(value_of(text, BUCKET "\"0.000512\"} ") == 1);
    ck_assert(value_of(text, BUCKET "\"0.001024\"} ") == 2);
    ck_assert(value_of(text, BUCKET "\"+Inf\"} ") == 2);
#undef BUCKET
    ck_assert(value_of(text, "\nhvd_latency_seconds_count{rank=\"7\",op="
                             "\"allreduce\"} ") == 2);
    ck_assert(value_of(text, "\nhvd_latency_seconds_sum{rank=\"7\",op="
                             "\"allreduce\"} ") == 0.001003);
    free(text);
}

/* Each line is a comment or a series and a number. A metric's help and type
 * come first, and once. */
TEST(text_is_well_formed)
{
    char *text = printed(0), *rest = text, *line;
    char metric[64] = "";

    ck_assert(text[strlen(text) - 1] == '\n');
    while ((line = strsep(&rest, "\n")) && *line) {
        char name[64], labels[128], end;
        double value;

        if (sscanf(line, "# HELP %63s ", metric) == 1) {
            ck_assert_ptr_eq(strstr(rest, line), NULL);
            continue;
        }
        if (sscanf(line, "# TYPE %63s", name) == 1) {
            ck_assert_str_eq(name, metric);
            continue;
        }
        ck_assert_msg(sscanf(line, "%63[a-z_]{%127[^}]} %lf%c", name, labels,
                             &value, &end) == 3,
                      "%s", line);
        ck_assert_msg(strncmp(name, metric, strlen(metric)) == 0, "%s", line);
    }
    free(text);
}

TEST(text_is_cut_to_its_room)
{
    char *text = printed(3), small[100];

    memset(small, 'x', sizeof small);
    ck_assert_uint_eq(hvd__metrics_print(&seen, 3, small, 50), strlen(text));
    ck_assert_uint_eq(strlen(small), 49);
    ck_assert(strncmp(small, text, 49) == 0);
    ck_assert(small[50] == 'x');
    free(text);
}

/* --------------------------------------------------------------------- file */

TEST(files_are_replaced)
{
    const char *path;
    char *text;
    struct stat before, after;

    folder_make();
    path = in_folder("metrics.prom");
    hvd__metrics_read(&metrics, &seen);
    ck_assert_int_eq(hvd__metrics_write(&seen, 0, path, true), HVD_OK);
    ck_assert_int_eq(stat(path, &before), 0);
    request(HVD_BARRIER, 0, HVD_OK, 1);
    text = printed(0);
    ck_assert_int_eq(hvd__metrics_write(&seen, 0, path, true), HVD_OK);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert(before.st_ino != after.st_ino); /* never half of it */
    ck_assert(strncmp(file_text(path), text, 1000) == 0);
    free(text);
    ck_assert_int_eq(directory_entries(folder), 1);

    folder_remove();
    ck_assert_int_eq(hvd__metrics_write(&seen, 0, path, true), HVD_ERR_FILE);
    ck_assert(strstr(hvd_last_error(), path));
    ck_assert(strstr(hvd_last_error(), "No such file"));
}

TEST_MAIN("trace_metrics")
