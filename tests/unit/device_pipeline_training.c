/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pipeline trains as one program does, with each of its options: reductions,
 * accumulators, recomputation, dropout, concurrent stages, batch serialization
 * and outputs. The options change memory and cycles.
 */
#include "suite.h"

#include "pipelined.h"

static ipu_system tight = {.size = sizeof tight};

static ipu_pipeline_ipu_info chip(int number)
{
    ipu_pipeline_ipu_info info = {.size = sizeof info};

    MUST(ipu_pipeline_ipu(pipeline, number, &info));
    return info;
}

/* The mean's weight is rounded in another place than in one program. */
LOOP_TEST(reductions_are_what_they_are_called, 0, 3)
{
    which = ADAM;
    cut(4, 0);
    options.reduction = _i;
    start();
    for (int i = 0; i < 20; i++)
        MUST(ipu_pipeline_run(pipeline));
    train_plain(20, options.count, _i, 0);
    expect_same_weights(_i == IPU_REDUCTION_RUNNING_MEAN ? 1e-5f : 0);
    plain_free(&plain);
    finish();
}

/* ------------------------------------------------------------ recomputation */

static float kept[2 * LAYERS][MOST_WIDTH * MOST_WIDTH];

static void read_weights(void)
{
    char name[16];

    for (int i = 0; i < 2 * LAYERS; i++)
        MUST(ipu_pipeline_read(pipeline, 0, name_of(i, name), kept[i],
                               (size_t)count_of(i) * 4));
}

static void expect_kept_weights(void)
{
    float values[MOST_WIDTH * MOST_WIDTH];
    char name[16];

    for (int i = 0; i < 2 * LAYERS; i++) {
        size_t bytes = (size_t)count_of(i) * 4;

        MUST(ipu_pipeline_read(pipeline, 0, name_of(i, name), values, bytes));
        ck_assert_mem_eq(values, kept[i], bytes);
    }
}

/* Each stage counts its own steps, so one program would drop other elements:
 * the test compares pipelines. _i is the schedule, without and with dropout. */
LOOP_TEST(recomputation_changes_no_bit, 0, 6)
{
    static const ipu_recompute modes[] = {
        IPU_RECOMPUTE_THEN_BACKPROPAGATE, IPU_RECOMPUTE_THEN_BACKPROPAGATE,
        IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED};
    int64_t stash = 0, cycles = 0;

    for (int recompute = 0; recompute < 2; recompute++) {
        begin();
        cut(2, _i / 3);
        options.schedule = _i % 3;
        options.recompute = recompute;
        start();
        for (int i = 0; i < 10; i++)
            MUST(ipu_pipeline_run(pipeline));
        if (!recompute) {
            read_weights();
            stash = stage_info(0).stash_bytes;
            cycles = run_info().total_cycles;
            ck_assert_int_eq(run_info().recompute, 0);
        } else {
            expect_kept_weights();
            ck_assert_int_eq(run_info().recompute, modes[_i % 3]);
            ck_assert_int_eq(stage_info(0).recompute_executions,
                             10 * options.count);
            ck_assert_int_eq(stage_info(1).recompute_executions, 0);
            ck_assert_int_lt(stage_info(0).stash_bytes, stash);
            ck_assert_int_gt(stage_info(0).recompute_cycles, 0);
            ck_assert_int_gt(run_info().total_cycles, cycles);
        }
        finish();
    }
}

/* The stash has a stage's inputs, and the counter of a dropout. */
LOOP_TEST(the_stash_of_a_recomputed_stage_is_its_inputs, 0, 2)
{
    cut(2, _i);
    options.recompute = 1;
    start();
    ck_assert_int_eq(stage_info(0).stash_bytes,
                     ROWS * FEATURES * 4 + (_i ? 4 : 0));
    finish();
}

/* A stage that keeps one tensor in its middle. */
static int build_checkpointed(void *context, ipu_graph *graph, int32_t ninputs,
                              const ipu_tensor *inputs, ipu_tensor *outputs)
{
    ipu_tensor x = inputs[1];

    (void)context, (void)ninputs;
    x = one_layer(graph, 0, x, NULL);
    x = one_layer(graph, 1, x, NULL);
    x = ipu_recomputation_checkpoint(graph, x);
    x = one_layer(graph, 2, x, NULL);
    outputs[0] = inputs[0];
    outputs[1] = one_layer(graph, 3, x, NULL);
    outputs[2] = inputs[2];
    return 3;
}

TEST(checkpoints_are_kept)
{
    for (int i = 0; i < 2; i++) {
        begin();
        cut(2, 0);
        stages[0].build = build_checkpointed;
        options.recompute = i;
        options.recompute_mode =
            i ? IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED : 0;
        start();
        MUST(ipu_pipeline_run(pipeline));
        if (i == 0) {
            read_weights();
        } else {
            expect_kept_weights();
            ck_assert_int_eq(stage_info(0).stash_bytes,
                             ROWS * (FEATURES + widths[2]) * 4);
        }
        finish();
    }
}

/* Dropout must drop the same elements forwards and backwards. One stage has one
 * counter, as one program has; several stages have one each. */
LOOP_TEST(dropout_is_the_same_on_both_ways, 0, 3)
{
    which = MOMENTUM;
    cut(4, 1);
    options.schedule = _i;
    start();
    for (int i = 0; i < 10; i++)
        MUST(ipu_pipeline_run(pipeline));
    train_plain(10, options.count, IPU_REDUCTION_SUM, 1);
    expect_same_weights(0);
    plain_free(&plain);
    finish();
}

/* -------------------------------------------------------- concurrent stages */

/* Builds a stage with half of the columns of a layer's W; the join puts both
 * halves together. */
static int build_half(void *context, ipu_graph *graph, int32_t ninputs,
                      const ipu_tensor *inputs, ipu_tensor *outputs)
{
    const int *half = context;
    ipu_tensor w = ipu_variable(graph, *half ? "right" : "left", IPU_FLOAT32, 2,
                                SHAPE(7, 3));

    ck_assert_int_eq(ninputs, 3);
    outputs[0] = ipu_tanh(graph, ipu_matmul(graph, inputs[1], w));
    if (*half)
        return 1;
    outputs[1] = inputs[0];
    outputs[2] = inputs[2];
    return 3;
}

static int build_join(void *context, ipu_graph *graph, int32_t ninputs,
                      const ipu_tensor *inputs, ipu_tensor *outputs)
{
    const ipu_tensor halves[] = {inputs[0], inputs[3]};
    ipu_tensor w = ipu_variable(graph, "out", IPU_FLOAT32, 2, SHAPE(6, 3));

    (void)context;
    ck_assert_int_eq(ninputs, 4);
    outputs[0] =
        loss_of(graph, ipu_matmul(graph, ipu_concat(graph, 2, halves, 1), w),
                inputs[2], ROWS);
    outputs[1] = inputs[1];
    return 2;
}

/* Builds one stage with both halves. */
static int build_whole(void *context, ipu_graph *graph, int32_t ninputs,
                       const ipu_tensor *inputs, ipu_tensor *outputs)
{
    static const int sides[] = {0, 1};
    ipu_tensor right[3];

    (void)context;
    MUST(build_half((void *)(uintptr_t)&sides[0], graph, ninputs, inputs,
                    outputs));
    MUST(build_half((void *)(uintptr_t)&sides[1], graph, ninputs, inputs,
                    right));
    outputs[3] = right[0];
    return 4;
}

static void write_halves(void)
{
    float values[7 * 8];

    device_fill(values, 35, 1);
    MUST(ipu_pipeline_write(pipeline, "w0", values, 35 * 4));
    device_fill(values, 21, 2);
    MUST(ipu_pipeline_write(pipeline, "left", values, 21 * 4));
    device_fill(values, 21, 3);
    MUST(ipu_pipeline_write(pipeline, "right", values, 21 * 4));
    device_fill(values, 18, 4);
    MUST(ipu_pipeline_write(pipeline, "out", values, 18 * 4));
}

LOOP_TEST(concurrent_stages_are_one_position, 0, 3)
{
    static struct layers first = {0, 1, 0};
    static int sides[] = {0, 1};
    static const int32_t mapping[] = {0, 1, 2, 3};
    const ipu_stage beside[] = {
        {"first", build_layers, &first, 3, 0},
        {"left", build_half, &sides[0], 3, 0},
        {"right", build_half, &sides[1], 3, 1},
        {"join", build_join, NULL, 4, 0},
    };
    const ipu_stage whole[] = {
        {"first", build_layers, &first, 3, 0},
        {"both", build_whole, NULL, 3, 0},
        {"join", build_join, NULL, 4, 0},
    };
    float weights[2][35], rate = 0.1f;

    for (int i = 0; i < 2; i++) {
        begin();
        cut(3, 0);
        options.schedule = _i;
        options.stages = i ? whole : beside;
        options.nstages = i ? 3 : 4;
        options.device_mapping = mapping;
        options.nmappings = options.nstages;
        options.count = 12;
        MUST(ipu_pipeline_new(&options, &pipeline));
        MUST(ipu_infeed_start(options.infeed));
        MUST(ipu_pipeline_argument(pipeline, "rate", &rate, sizeof rate));
        write_halves();
        for (int k = 0; k < 20; k++)
            MUST(ipu_pipeline_run(pipeline));
        /* The ramps up and down are one slot shorter each than with these
         * stages one after the other. */
        ck_assert_int_eq(run_info().slots,
                         20 * (_i == IPU_SCHEDULE_GROUPED ? 12 + 2 * 3 - 1
                               : _i == IPU_SCHEDULE_INTERLEAVED
                                   ? 2 * (12 + 3 - 1)
                                   : 2 * 3 * 12));
        ck_assert_int_eq(stage_info(1).position, 1);
        ck_assert_int_eq(stage_info(2).position, i ? 2 : 1);
        MUST(ipu_pipeline_read(pipeline, 0, "w0", weights[i], 35 * 4));
        ck_assert_int_eq(run_info().ipus, options.nstages);
        finish();
    }
    ck_assert_mem_eq(weights[0], weights[1], sizeof weights[0]);
}

/* ------------------------------------------------------ batch serialization */

TEST(batch_serialization_is_a_larger_count)
{
    static const int32_t one_ipu[4];

    cut(4, 0);
    options.schedule = IPU_SCHEDULE_SEQUENTIAL;
    options.device_mapping = one_ipu;
    options.nmappings = 4;
    options.count = 3;
    options.batch_serialization_iterations = 5;
    options.sink = NULL;
    start();
    MUST(ipu_pipeline_run(pipeline));
    MUST(ipu_pipeline_run(pipeline));
    ck_assert_int_eq(run_info().slots, 2 * 2 * 4 * 3);
    ck_assert_int_eq(stage_info(2).forward_executions, 2 * 15);
    ck_assert_int_eq(run_info().ipus, 1);
    ck_assert_int_eq(run_info().inter_ipu_bytes, 0);
    train_plain(2, 15, IPU_REDUCTION_SUM, 0);
    expect_same_weights(0);
    plain_free(&plain);
    finish();
}

/* ----------------------------------------------------------- * accumulators */

static ipu_dtype choose_half(void *context, const char *variable,
                             ipu_dtype dtype)
{
    (*(int *)context)++;
    return variable[0] == 'w' ? IPU_FLOAT16 : dtype;
}

TEST(accumulators_have_their_dtype)
{
    int asked = 0;
    uint16_t half[MOST_WIDTH * MOST_WIDTH];
    float wide[MOST_WIDTH];

    cut(2, 0);
    options.accumulator_of = choose_half;
    options.accumulator_context = &asked;
    MUST_FAIL(ipu_pipeline_new(&options, &pipeline), IPU_ERR_SHAPE,
              "the weight update on IPU 0");
    options.optimizer = apply_cast;
    start();
    ck_assert_int_eq(asked, 2 * 2 * LAYERS);
    MUST(ipu_pipeline_run(pipeline));
    MUST(ipu_pipeline_read(pipeline, 0, "w1/accumulator", half,
                           (size_t)count_of(2) * 2));
    MUST(ipu_pipeline_read(pipeline, 0, "b1/accumulator", wide,
                           (size_t)count_of(3) * 4));
    for (int i = 0; i < count_of(2); i++)
        ck_assert_int_eq(half[i], 0); /* zero again after an update */
    train_plain(1, options.count, IPU_REDUCTION_SUM, 0);
    expect_same_weights(1e-3f);
    plain_free(&plain);
    finish();
}

static int not_the_first(void *context, const char *variable)
{
    (void)context;
    return variable[1] != '0';
}

TEST(what_is_not_trained_stays)
{
    float values[MOST_WIDTH * MOST_WIDTH], first[MOST_WIDTH * MOST_WIDTH];
    int count = 0;

    cut(4, 0);
    options.trained = not_the_first;
    start();
    MUST(ipu_pipeline_run(pipeline));
    first_values(0, first);
    MUST(ipu_pipeline_read(pipeline, 0, "w0", values, (size_t)count_of(0) * 4));
    ck_assert_mem_eq(values, first, (size_t)count_of(0) * 4);
    while (ipu_pipeline_variable(pipeline, count))
        count++;
    ck_assert_int_eq(count, 2 * LAYERS - 2);
    ck_assert_str_eq(ipu_pipeline_variable(pipeline, 0), "w1");
    finish();
}

/* ------------------------------------------------------------------ outputs */

static float sums[64];
static int nsums, ncounts;

static int take_sum(void *context, int32_t replica, int64_t mini_batch,
                    int32_t count, const void *const *outputs)
{
    (void)context, (void)replica, (void)mini_batch;
    ncounts = count;
    memcpy(&sums[nsums++], outputs[0], sizeof *sums);
    return 0;
}

LOOP_TEST(outputs_go_out_as_told, 0, 3)
{
    static const int32_t mask[] = {1, 0};

    nsums = 0;
    cut(2, 0);
    options.sink = take_sum;
    options.accumulate_outfeed = _i == 0;
    options.outfeed_loss = _i <= 1;
    options.outfeed_mask = _i == 2 ? mask : NULL;
    options.noutfeed_mask = _i == 2 ? 2 : 0;
    options.repeat_count = 2;
    start();
    MUST(ipu_pipeline_run(pipeline));
    ck_assert_int_eq(ncounts, 1);
    ck_assert_int_eq(nsums, _i == 0 ? 2 : 2 * options.count);
    if (_i == 2) {
        ck_assert_float_eq(sums[0], 0.05f); /* the rate */
    } else {
        float sum = 0, first = 0;

        plain_new(&plain, which, 0);
        for (int64_t n = 0; n < options.count; n++) {
            plain_add(&plain, n, 1, 1);
            sum += plain.loss;
            first = n == 0 ? plain.loss : first;
        }
        ck_assert_float_eq(sums[0], _i == 0 ? sum : first);
        plain_free(&plain);
    }
    finish();
}

TEST(an_outfeed_queue_gets_what_comes_out)
{
    static const char *const names[] = {"loss", "rate"};
    ipu_outfeed_options o;
    ipu_results *results = NULL;
    int64_t shape[IPU_MAX_RESULT_DIMS];
    const void *data_of;

    cut(2, 0);
    ipu_outfeed_options_init(&o, sizeof o);
    o.name = "losses";
    options.sink = NULL;
    MUST(ipu_outfeed_new(&o, &options.outfeed));
    options.outfeed_names = names;
    options.noutfeed_names = 2;
    start();
    MUST(ipu_pipeline_run(pipeline));
    MUST(ipu_outfeed_dequeue(options.outfeed, 1, &results));
    ck_assert_int_eq(ipu_results_tensor(results, "loss", NULL, shape, &data_of),
                     1);
    ck_assert_int_eq(shape[0], options.count);
    plain_new(&plain, which, 0);
    for (int64_t n = 0; n < options.count; n++) {
        plain_add(&plain, n, 1, 1);
        ck_assert_float_eq(((const float *)data_of)[n], plain.loss);
    }
    plain_free(&plain);
    ipu_results_free(results);
    finish();
    MUST(ipu_outfeed_delete(options.outfeed));
}

/* ----------------------------------------------------------------- accounts */

/* Builds equal stages: tanh((x + b) W), the last with its sum as the loss. The
 * bias makes the first send a derivative back to it, as the others do. */
static int build_alike(void *context, ipu_graph *graph, int32_t ninputs,
                       const ipu_tensor *inputs, ipu_tensor *outputs)
{
    const int *last = context;
    ipu_tensor b, w, y;
    char name[16];

    (void)ninputs;
    snprintf(name, sizeof name, "v%d", *last);
    w = ipu_variable(graph, name, IPU_FLOAT32, 2, SHAPE(1024, 1024));
    name[0] = 'b';
    b = ipu_variable(graph, name, IPU_FLOAT32, 1, SHAPE(1024));
    y = ipu_bias_add(graph, inputs[0], b);
    y = ipu_tanh(graph, ipu_matmul(graph, y, w));
    outputs[0] = *last == 3 ? ipu_reduce_sum(graph, y, 1) : y;
    return 1;
}

static int apply_alike(void *context, ipu_graph *graph, int32_t noutputs,
                       const ipu_tensor *outputs, int32_t count,
                       const ipu_tensor *variables, const ipu_tensor *gradients)
{
    (void)context, (void)noutputs, (void)outputs;
    for (int32_t i = 0; i < count; i++)
        MUST(ipu_sgd(graph, variables[i], gradients[i],
                     ipu_fill(graph, IPU_FLOAT32, 0, NULL, 0.01), NULL));
    return 0;
}

TEST(accounts_are_those_of_equal_stages)
{
    static int numbers[] = {0, 1, 2, 3};
    static const ipu_feed_tensor x = {"x", IPU_FLOAT32, 2, {128, 1024}};
    int64_t stash[2], tensor = 128 * 1024 * 4;
    double ideal;

    for (int schedule = 0; schedule < 2; schedule++) {
        begin();
        ipu_pipeline_options_init(&options, sizeof options);
        for (int i = 0; i < 4; i++)
            stages[i] = (ipu_stage){NULL, build_alike, &numbers[i], 1, 0};
        options.nstages = 4;
        options.stages = stages;
        options.count = 16;
        options.schedule = schedule;
        options.arguments = &x;
        options.narguments = 1;
        options.optimizer = apply_alike;
        MUST(ipu_pipeline_new(&options, &pipeline));
        MUST(ipu_pipeline_run(pipeline));
        stash[schedule] = 0;
        for (int i = 0; i < 3; i++)
            stash[schedule] +=
                stage_info(i).stash_depth * stage_info(i).stash_bytes;
        ideal = 3.0 / (16 + 4 - 1);
        if (schedule == IPU_SCHEDULE_GROUPED)
            ck_assert_msg(fabs(run_info().idle_fraction - ideal) < 0.02,
                          "idle %g, ideal %g", run_info().idle_fraction, ideal);
        /* Tensors go forward and back over three borders, 16 times. */
        ck_assert_int_eq(run_info().inter_ipu_bytes, 16 * 3 * 2 * tensor);
        ck_assert_int_eq(stage_info(1).sent_bytes, 2 * tensor);
        ck_assert_int_gt(run_info().exchange_cycles, 0);
        /* 512 KiB over two links of 16 GB/s: some 20 microseconds a slot. */
        ck_assert_int_lt(run_info().exchange_cycles, run_info().slots * 40000);
        ck_assert_int_eq(run_info().total_cycles,
                         run_info().compute_cycles +
                             run_info().exchange_cycles +
                             run_info().sync_cycles + run_info().update_cycles +
                             run_info().host_cycles);
        ck_assert_int_eq(chip(0).stash_bytes, (stage_info(0).stash_depth + 1) *
                                                  stage_info(0).stash_bytes);
        ck_assert_int_ge(chip(0).variable_bytes, 2 * 1024 * 1024 * 4);
        ck_assert_int_gt(chip(0).busy_cycles, 0);
        ck_assert_int_le(chip(0).tile_bytes, chip(0).bytes_per_tile);
        ipu_pipeline_free(pipeline);
    }
    ck_assert_int_eq(stash[0], 2 * stash[1]);
}

/* An offloaded tensor is not on the chip, takes longer, and changes no
 * result. */
LOOP_TEST(offloading_moves_bytes_and_costs_cycles, 0, 4)
{
    int64_t on_chip[2], total[2];

    for (int i = 0; i < 2; i++) {
        begin();
        which = ADAM;
        cut(2, 0);
        options.offload_state = i && _i == 0 ? IPU_OFFLOAD_ON : IPU_OFFLOAD_OFF;
        if (i && _i == 1)
            options.offload_activations = IPU_OFFLOAD_ON;
        if (i && _i == 2)
            options.offload_accumulators = IPU_OFFLOAD_ON;
        if (i && _i == 3)
            options.offload_weights = IPU_OFFLOAD_ON;
        start();
        MUST(ipu_pipeline_run(pipeline));
        on_chip[i] = chip(0).variable_bytes + chip(0).stash_bytes;
        total[i] = run_info().total_cycles;
        ck_assert_int_eq(chip(0).streaming_bytes > 0, i);
        if (i)
            expect_kept_weights();
        else
            read_weights();
        if (i)
            ck_assert_int_eq(on_chip[0] - on_chip[1], chip(0).streaming_bytes);
        finish();
    }
    ck_assert_int_gt(total[1], total[0]);
}

/* Returns the bytes of the fullest tile of each of two chips. */
static void look_at(ipu_offload state, ipu_pipeline_ipu_info *chips)
{
    begin();
    which = ADAM;
    cut(2, 0);
    options.system = &tight;
    options.offload_state = state;
    options.allow_out_of_memory = 1;
    start();
    MUST(ipu_pipeline_run(pipeline));
    chips[0] = chip(0);
    chips[1] = chip(1);
}

/* By its own choice the pipeline moves an IPU's state off the chip only if the
 * IPU is too full otherwise, and if it fits then. */
TEST(state_goes_from_chips_that_are_too_full)
{
    ipu_pipeline_ipu_info on[2], off[2], automatic[2];

    MUST(ipu_system_find("M2000", &tight));
    tight.ipu.tiles = 16;
    look_at(IPU_OFFLOAD_OFF, off);
    read_weights();
    finish();
    look_at(IPU_OFFLOAD_ON, on);
    finish();
    ck_assert_int_lt(on[1].tile_bytes, off[1].tile_bytes);
    /* There is room for the first IPU, and for the second with its state off
     * the chip. */
    tight.ipu.bytes_per_tile = (on[1].tile_bytes + off[1].tile_bytes) / 2;
    ck_assert_int_lt(off[0].tile_bytes, tight.ipu.bytes_per_tile);
    look_at(IPU_OFFLOAD_AUTO, automatic);
    expect_kept_weights();
    finish();
    ck_assert_int_eq(automatic[0].streaming_bytes, 0);
    ck_assert_int_eq(automatic[0].offload_cycles, 0);
    ck_assert_int_eq(automatic[0].update_cycles, off[0].update_cycles);
    ck_assert_int_eq(automatic[1].automatic_bytes, on[1].streaming_bytes);
    ck_assert_int_eq(automatic[1].offload_cycles, on[1].offload_cycles);
    ck_assert_int_gt(automatic[1].offload_cycles, 0);
    ck_assert_int_gt(automatic[1].tile_bytes_without, tight.ipu.bytes_per_tile);
    ck_assert_int_le(automatic[1].tile_bytes, tight.ipu.bytes_per_tile);
    /* Tiles are too small for both, with the state in either place. */
    tight.ipu.bytes_per_tile = 64;
    look_at(IPU_OFFLOAD_AUTO, automatic);
    finish();
    ck_assert_int_eq(automatic[0].streaming_bytes, 0);
    ck_assert_int_eq(automatic[1].streaming_bytes, 0);
}

TEST_MAIN("device_pipeline_training", .set_up = begin, .seconds = 120)
