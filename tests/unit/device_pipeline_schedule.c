/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the schedules of a pipeline: their numbers against the formulas, for 2
 * to 8 stages, in training and inference, and the contents of each slot against
 * the rules that any schedule must keep.
 */
#include "suite.h"

#include "device.h"

enum { MOST_STAGES_TESTED = 8, MOST_ENTRIES = 2 * MOST_STAGES_TESTED };

static ipu_schedule_options options_of(ipu_schedule schedule, int stages,
                                       int training, int64_t count)
{
    return (ipu_schedule_options){.size = sizeof(ipu_schedule_options),
                                  .schedule = schedule,
                                  .stages = stages,
                                  .training = training,
                                  .count = count};
}

static ipu_schedule_info plan_of(const ipu_schedule_options *o)
{
    ipu_schedule_info info = {.size = sizeof info};

    MUST(ipu_schedule_plan(o, &info));
    return info;
}

/* Compares the numbers of a schedule: multiple of, ramp-up, ramp-down, slots,
 * executions. */
static void check_numbers(const ipu_schedule_options *o, int64_t multiple,
                          int64_t up, int64_t down, int64_t slots)
{
    ipu_schedule_info info = plan_of(o);

    ck_assert_int_eq(info.multiple_of, multiple);
    ck_assert_int_eq(info.ramp_up_executions, up);
    ck_assert_int_eq(info.ramp_down_executions, down);
    ck_assert_int_eq(info.slots, slots);
    ck_assert_int_eq(info.executions,
                     o->count * o->stages * (o->training ? 2 : 1));
    ck_assert_int_eq(info.ramp_up_slots + info.repeats * info.steady_slots +
                         info.ramp_down_slots,
                     info.slots);
}

LOOP_TEST(numbers_are_those_of_the_formulas, 2, 9)
{
    int64_t s = _i, n = 4 * s;
    ipu_schedule_options o = options_of(IPU_SCHEDULE_GROUPED, _i, 1, n);

    check_numbers(&o, 2 * s, s * (2 * s + 1), s * (2 * s - 1), n + 2 * s - 1);
    o.training = 0;
    check_numbers(&o, s, s * (s + 1) / 2, s * (s - 1) / 2, n + s - 1);
    o.schedule = IPU_SCHEDULE_INTERLEAVED;
    check_numbers(&o, s, s * (s + 1) / 2, s * (s - 1) / 2, n + s - 1);
    o.training = 1;
    check_numbers(&o, s, s * (s + 1), s * (s - 1), 2 * (n + s - 1));
    o.schedule = IPU_SCHEDULE_SEQUENTIAL;
    check_numbers(&o, 1, 0, 0, 2 * s * n);
    o.training = 0;
    check_numbers(&o, 1, 0, 0, s * n);
    for (int k = 0; k < s; k++) {
        o = options_of(IPU_SCHEDULE_GROUPED, _i, 1, n);
        ck_assert_int_eq(ipu_schedule_stash(&o, k), 2 * (s - 1 - k));
        o.schedule = IPU_SCHEDULE_INTERLEAVED;
        ck_assert_int_eq(ipu_schedule_stash(&o, k), s - 1 - k);
        o.schedule = IPU_SCHEDULE_SEQUENTIAL;
        ck_assert_int_eq(ipu_schedule_stash(&o, k), 0);
        o = options_of(IPU_SCHEDULE_GROUPED, _i, 0, n);
        ck_assert_int_eq(ipu_schedule_stash(&o, k), 0);
    }
}

TEST(small_schedules_are_as_known)
{
    ipu_schedule_options o = options_of(IPU_SCHEDULE_GROUPED, 2, 1, 16);
    ipu_schedule_info info;

    check_numbers(&o, 4, 10, 6, 19);
    o = options_of(IPU_SCHEDULE_INTERLEAVED, 2, 1, 8);
    check_numbers(&o, 2, 6, 2, 18);
    o = options_of(IPU_SCHEDULE_GROUPED, 4, 1, 16);
    check_numbers(&o, 8, 36, 28, 23);
    o = options_of(IPU_SCHEDULE_INTERLEAVED, 4, 1, 16);
    check_numbers(&o, 4, 20, 12, 38);
    /* I/O tiles: any count from L + 2 on, two more slots. */
    o = options_of(IPU_SCHEDULE_GROUPED, 2, 1, 7);
    o.io_tiles = 1;
    info = plan_of(&o);
    ck_assert_int_eq(info.multiple_of, 1);
    ck_assert_int_eq(info.at_least, 6);
    ck_assert_int_eq(info.slots, 7 + 3 + 2);
    ck_assert_int_eq(info.executions, 28);
}

TEST(letters_are_as_known)
{
    static const char *const known[] = {"a...ba..cba.dcba", "dcbadcbadcbadcba",
                                        ".dcb..dc...d...."};
    ipu_schedule_options o = options_of(IPU_SCHEDULE_GROUPED, 2, 1, 8);
    char text[64];

    for (int phase = 0; phase < 3; phase++) {
        ck_assert_int_eq(ipu_schedule_print(&o, phase, text, sizeof text), 16);
        ck_assert_str_eq(text, known[phase]);
    }
    ck_assert_int_eq(ipu_schedule_print(&o, 0, text, 5), 16);
    ck_assert_str_eq(text, "a...");
    o.schedule = IPU_SCHEDULE_INTERLEAVED;
    ck_assert_int_eq(ipu_schedule_print(&o, 0, text, sizeof text), 8);
    ck_assert_str_eq(text, "a.b.cadb");
    o.schedule = IPU_SCHEDULE_SEQUENTIAL;
    ck_assert_int_eq(ipu_schedule_print(&o, 1, text, sizeof text), 4);
    ck_assert_str_eq(text, "abcd");
}

/* Checks that each mini-batch goes through all positions in order, and that as
 * many wait at each stage as its stash says. */
static void check_rules(const ipu_schedule_options *o)
{
    ipu_schedule_info info = plan_of(o);
    int64_t next[64] = {0}, waiting[MOST_STAGES_TESTED] = {0}, executions = 0;
    int64_t most[MOST_STAGES_TESTED] = {0};
    ipu_schedule_entry entries[MOST_ENTRIES];

    ck_assert_int_le(o->count, 64);
    for (int64_t slot = 0; slot < info.slots; slot++) {
        int n = ipu_schedule_slot(o, slot, MOST_ENTRIES, entries);
        int busy[MOST_STAGES_TESTED] = {0};

        MUST(n);
        for (int e = 0; e < n; e++) {
            int k = entries[e].stage;
            int64_t m = entries[e].mini_batch;
            int back = entries[e].kind == IPU_STAGE_BACKWARD;
            int64_t position = back ? 2 * o->stages - 1 - k : k;

            ck_assert_int_eq(next[m]++, position);
            waiting[k] += back ? -1 : 1;
            if (most[k] < waiting[k])
                most[k] = waiting[k];
            busy[k]++;
        }
        executions += n;
        for (int k = 0; k < o->stages; k++)
            ck_assert_int_le(busy[k],
                             o->schedule == IPU_SCHEDULE_GROUPED ? 2 : 1);
    }
    ck_assert_int_eq(executions, info.executions);
    for (int64_t m = 0; m < o->count; m++)
        ck_assert_int_eq(next[m], (o->training ? 2 : 1) * o->stages);
    for (int k = 0; k < o->stages && o->training; k++)
        ck_assert_int_eq(most[k] - 1, ipu_schedule_stash(o, k));
    ck_assert_int_eq(ipu_schedule_slot(o, info.slots, 0, NULL), 0);
    ck_assert_int_eq(ipu_schedule_slot(o, -1, 0, NULL), 0);
}

LOOP_TEST(every_mini_batch_goes_its_way, 1, 9)
{
    for (int schedule = 0; schedule < IPU_NUM_SCHEDULES; schedule++)
        for (int training = 0; training < 2; training++) {
            ipu_schedule_options o = options_of(schedule, _i, training, 4 * _i);

            check_rules(&o);
            if (schedule == IPU_SCHEDULE_GROUPED) {
                o.io_tiles = 1;
                o.count = 4 * _i + 1;
                check_rules(&o);
            }
        }
}

TEST(misuse_is_explained)
{
    ipu_schedule_options o = options_of(IPU_SCHEDULE_GROUPED, 2, 1, 6);
    ipu_schedule_info info = {.size = sizeof info};
    char text[8];

    MUST_FAIL(ipu_schedule_plan(&o, &info), IPU_ERR_ARGUMENT,
              "The number of iterations of the pipeline must be a multiple of "
              "4, but it is 6");
    o.count = 0;
    MUST_FAIL(ipu_schedule_plan(&o, &info), IPU_ERR_ARGUMENT, "multiple of 4");
    o.count = INT64_MAX / 4 * 4;
    MUST_FAIL(ipu_schedule_plan(&o, &info), IPU_ERR_ARGUMENT,
              "at most 281474976710656, but it is");
    o.count = INT64_C(1) << 48;
    MUST(ipu_schedule_plan(&o, &info));
    ck_assert_int_eq(info.executions, 4 * o.count);
    o.io_tiles = 1;
    o.count = 5;
    MUST_FAIL(ipu_schedule_plan(&o, &info), IPU_ERR_ARGUMENT,
              "at least 6, but it is 5");
    o.schedule = IPU_SCHEDULE_SEQUENTIAL;
    MUST_FAIL(ipu_schedule_plan(&o, &info), IPU_ERR_ARGUMENT, "sequential");
    o = options_of(IPU_SCHEDULE_SEQUENTIAL, 2, 1, 0);
    MUST_FAIL(ipu_schedule_plan(&o, &info), IPU_ERR_ARGUMENT,
              "at least 1, but it is 0");
    o = options_of(7, 2, 1, 4);
    MUST_FAIL(ipu_schedule_plan(&o, &info), IPU_ERR_ARGUMENT, "schedule 7");
    o = options_of(IPU_SCHEDULE_GROUPED, 0, 1, 4);
    MUST_FAIL(ipu_schedule_plan(&o, &info), IPU_ERR_ARGUMENT, "0 stages");
    o = options_of(IPU_SCHEDULE_GROUPED, 2, 1, 4);
    MUST_FAIL(ipu_schedule_plan(NULL, &info), IPU_ERR_ARGUMENT,
              "schedule: the options are NULL");
    MUST_FAIL(ipu_schedule_plan(&o, NULL), IPU_ERR_ARGUMENT,
              "schedule: the place for the plan is NULL");
    ck_assert_int_eq(ipu_schedule_slot(&o, INT64_MIN, 0, NULL), 0);
    ck_assert_int_eq(ipu_schedule_slot(&o, INT64_MAX, 0, NULL), 0);
    MUST_FAIL(ipu_schedule_stash(&o, 2), IPU_ERR_ARGUMENT, "no stage 2");
    MUST_FAIL((int)ipu_schedule_print(&o, 3, text, sizeof text),
              IPU_ERR_ARGUMENT,
              "schedule: phases are 0, 1, 2, without I/O tiles");
    MUST_FAIL(ipu_schedule_slot(&o, 0, 1, NULL), IPU_ERR_ARGUMENT,
              "schedule: the place for entries is NULL");
    ck_assert_ptr_null(ipu_schedule_name(3));
    ck_assert_str_eq(ipu_schedule_name(IPU_SCHEDULE_INTERLEAVED),
                     "interleaved");
}

TEST_MAIN("device_pipeline_schedule")
