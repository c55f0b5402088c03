/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that pipelines train to the same bits as the same network in one
 * program, for each schedule, 2 to 8 stages and three optimisers, and that the
 * executed slots follow the schedule's formulas.
 */
#include "suite.h"

#include "pipelined.h"

/* _i is optimizer, schedule, and 2 to 8 stages. */
LOOP_TEST(a_pipeline_trains_as_one_program_does, 0, 63)
{
    int runs = getenv("HVD_TEST_FULL") ? 10 : 2;

    which = (enum optimizer)(_i % 3);
    cut(2 + _i / 9, 0);
    options.schedule = _i / 3 % 3;
    options.repeat_count = 10;
    start();
    for (int i = 0; i < runs; i++)
        MUST(ipu_pipeline_run(pipeline));
    train_plain(runs * 10, options.count, IPU_REDUCTION_SUM, 0);
    ck_assert_int_eq(nlosses, runs * 10 * options.count);
    expect_same_weights(0);
    plain_free(&plain);
    finish();
}

/* ------------------------------------------------------------ what has run */

/* _i is schedule, and 2 to 8 stages. */
LOOP_TEST(what_has_run_is_what_the_formulas_say, 0, 21)
{
    int s = 2 + _i / 3, depth[] = {2, 1, 0};
    int64_t n, slots[3];

    cut(s, 0);
    n = options.count;
    slots[0] = n + 2 * s - 1;
    slots[1] = 2 * (n + s - 1);
    slots[2] = 2 * s * n;
    options.schedule = _i % 3;
    options.repeat_count = 3;
    start();
    for (int run = 0; run < 2; run++)
        MUST(ipu_pipeline_run(pipeline));
    for (int k = 0; k < s; k++) {
        ck_assert_int_eq(stage_info(k).forward_executions, 6 * n);
        ck_assert_int_eq(stage_info(k).backward_executions, 6 * n);
        ck_assert_int_eq(stage_info(k).recompute_executions, 0);
        ck_assert_int_eq(stage_info(k).stash_depth,
                         depth[_i % 3] * (s - 1 - k));
    }
    ck_assert_int_eq(run_info().slots, 6 * slots[_i % 3]);
    ck_assert_int_eq(run_info().updates, 6);
    ck_assert_int_eq(run_info().mini_batches, 6 * n);
    ck_assert_int_eq(run_info().ipus, s);
    finish();
}

LOOP_TEST(inference_goes_forwards_only, 0, 21)
{
    int s = 2 + _i / 3;

    cut(s, 0);
    options.schedule = _i % 3;
    options.optimizer = NULL;
    start();
    MUST(ipu_pipeline_run(pipeline));
    ck_assert_int_eq(nlosses, options.count);
    train_plain(1, options.count, IPU_REDUCTION_SUM, 0);
    ck_assert_float_eq(losses[options.count - 1], plain.loss);
    for (int k = 0; k < s; k++) {
        ck_assert_int_eq(stage_info(k).forward_executions, options.count);
        ck_assert_int_eq(stage_info(k).backward_executions, 0);
        ck_assert_int_eq(stage_info(k).stash_depth, 0);
    }
    ck_assert_int_eq(run_info().slots, _i % 3 == IPU_SCHEDULE_SEQUENTIAL
                                           ? s * options.count
                                           : options.count + s - 1);
    ck_assert_int_eq(run_info().updates, 0);
    plain_free(&plain);
    finish();
}

/* Each event's slot is the one that the schedule gives; events of one IPU do
 * not overlap. */
LOOP_TEST(events_tell_what_ran_when, 0, 3)
{
    const ipu_pipeline_event *events = NULL;
    int64_t count, updates = 0, until[4] = {0};

    cut(4, 0);
    options.schedule = _i;
    options.count = 8;
    options.record = 1;
    options.repeat_count = 2;
    start();
    MUST(ipu_pipeline_run(pipeline));
    MUST(ipu_pipeline_run(pipeline));
    count = ipu_pipeline_events(pipeline, &events);
    ck_assert_int_eq(count, 2 * (2 * 4 * 8 + 4));
    for (int64_t i = 0; i < count; i++) {
        const ipu_pipeline_event *e = &events[i];
        int position = e->kind == IPU_STAGE_BACKWARD ? 7 - e->stage : e->stage;
        int64_t slots = run_info().slots / 4, m = e->mini_batch;

        ck_assert_int_ge(e->ipu, 0);
        ck_assert_int_lt(e->ipu, 4);
        ck_assert_int_ge(e->start_cycles, until[e->ipu]);
        until[e->ipu] = e->start_cycles + e->cycles;
        if (e->kind == IPU_STAGE_UPDATE) {
            ck_assert_int_eq(e->stage, -1);
            updates++;
            continue;
        }
        ck_assert_int_eq(e->slot % slots,
                         _i == IPU_SCHEDULE_GROUPED       ? m + position
                         : _i == IPU_SCHEDULE_INTERLEAVED ? 2 * m + position
                                                          : 8 * m + position);
    }
    ck_assert_int_eq(updates, 8);
    finish();
}

/* The report has all programs and draws what ran. */
/* Returns the sum of the numbers behind "host" over all programs; *n counts
 * them. */
static double host_cycles(const char *json, int *n)
{
    static const char key[] = "\"host\":";
    double sum = 0;

    *n = 0;
    for (const char *at = json; (at = strstr(at, key)); ++*n) {
        at += sizeof key - 1;
        sum += strtod(at, NULL);
    }
    return sum;
}

TEST(a_profile_has_its_programs_and_events)
{
    ipu_profile *profile = NULL;
    char *text = NULL;
    int n;

    cut(2, 0);
    stages[0].name = "foot";
    options.record = 1;
    start();
    MUST(ipu_pipeline_run(pipeline));
    MUST(ipu_profile_new("test", &profile));
    MUST(ipu_pipeline_profile(pipeline, profile));
    MUST(ipu_profile_print(profile, IPU_PROFILE_JSON, &text));
    ck_assert_ptr_nonnull(strstr(text, "foot forward"));
    ck_assert_ptr_nonnull(strstr(text, "1 backward"));
    ck_assert_ptr_nonnull(strstr(text, "update on IPU 1"));
    ck_assert_ptr_nonnull(strstr(text, "\"mini_batch\""));
    /* Data between stages moves between chips, or stays. Data that the pipeline
     * takes from the host is reported after its programs. */
    *strstr(text, "\"pipeline_run\"") = '\0';
    ck_assert_double_eq(host_cycles(text, &n), 0);
    ck_assert_int_gt(n, 5);
    MUST_FAIL(ipu_pipeline_profile(pipeline, NULL), IPU_ERR_ARGUMENT,
              "the profile is NULL");
    free(text);
    ipu_profile_free(profile);
    finish();
}

/* A count and an I/O overlap that the plain schedule does not allow. */
TEST(streams_overlap_with_io_tiles)
{
    cut(2, 0);
    options.io_tiles = 1;
    options.count = 7;
    start();
    MUST(ipu_pipeline_run(pipeline));
    ck_assert_int_eq(run_info().slots, 7 + 3 + 2);
    train_plain(1, 7, IPU_REDUCTION_SUM, 0);
    expect_same_weights(0);
    plain_free(&plain);
    finish();
}

/* Weights are the same with one thread, the caller's, as with more. */
LOOP_TEST(threads_do_not_change_anything, 1, 6)
{
    cut(4, 0);
    options.threads = _i;
    options.schedule = IPU_SCHEDULE_GROUPED;
    start();
    for (int run = 0; run < 5; run++)
        MUST(ipu_pipeline_run(pipeline));
    train_plain(5, options.count, IPU_REDUCTION_SUM, 0);
    expect_same_weights(0);
    plain_free(&plain);
    finish();
}

TEST_MAIN("device_pipeline", .set_up = begin, .seconds = 120)
