/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages of a pipeline are mapped to IPUs.
 */
#include "suite.h"

#include "pipelined.h"

static const int32_t same_ipu[] = {0, 0, 1, 1};

LOOP_TEST(stages_are_as_near_as_can_be, 2, 9)
{
    ipu_system system = {.size = sizeof system};

    MUST(ipu_system_find("Pod16", &system));
    cut(_i, 0);
    options.system = &system;
    start();
    for (int i = 1; i < _i; i++) {
        int32_t hops;

        MUST(ipu_system_path(&system, stage_info(i - 1).ipu, stage_info(i).ipu,
                             NULL, &hops));
        ck_assert_int_eq(hops, 1);
    }
    finish();
}

LOOP_TEST(stages_of_one_ipu_share_it, 0, 2)
{
    ipu_pipeline_info info = {.size = sizeof info};

    cut(4, 0);
    options.device_mapping = same_ipu;
    options.nmappings = 4;
    options.schedule = _i ? IPU_SCHEDULE_SEQUENTIAL : IPU_SCHEDULE_GROUPED;
    start();
    for (int i = 0; i < 10; i++)
        MUST(ipu_pipeline_run(pipeline));
    MUST(ipu_pipeline_stats(pipeline, &info));
    ck_assert_int_eq(info.ipus, 2);
    train_plain(10, options.count, IPU_REDUCTION_SUM, 0);
    expect_same_weights(0);
    plain_free(&plain);
    finish();
}

TEST_MAIN("device_pipeline_mapping", .set_up = begin)
