/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines refuse wrong arguments and programs, with a reason.
 */
#include "suite.h"

#include "pipelined.h"

static const int32_t same_ipu[] = {0, 0, 1, 1}, four[] = {0, 1, 2, 3};
static const int32_t mask[] = {1, 0, 1};
static ipu_stage changed[8];
static ipu_system system_c2;

static int build_nothing(void *context, ipu_graph *graph, int32_t ninputs,
                         const ipu_tensor *inputs, ipu_tensor *outputs)
{
    (void)graph, (void)ninputs, (void)inputs, (void)outputs;
    return *(const int *)context;
}

static ipu_tensor of_another_graph;

static int build_captures(void *context, ipu_graph *graph, int32_t ninputs,
                          const ipu_tensor *inputs, ipu_tensor *outputs)
{
    (void)context, (void)graph, (void)ninputs;
    if (of_another_graph.id < 0)
        of_another_graph = inputs[1];
    outputs[0] = inputs[0];
    outputs[1] = of_another_graph;
    outputs[2] = inputs[2];
    return 3;
}

static int build_vector_loss(void *context, ipu_graph *graph, int32_t ninputs,
                             const ipu_tensor *inputs, ipu_tensor *outputs)
{
    int count = build_layers(context, graph, ninputs, inputs, outputs);

    outputs[0] = ipu_broadcast(graph, outputs[0], 1, SHAPE(2));
    return count;
}

static int build_wrong_shapes(void *context, ipu_graph *graph, int32_t ninputs,
                              const ipu_tensor *inputs, ipu_tensor *outputs)
{
    ipu_tensor w = ipu_variable(graph, "w", IPU_FLOAT32, 2, SHAPE(99, 3));

    (void)context, (void)ninputs;
    outputs[0] = ipu_matmul(graph, inputs[1], w);
    return 1;
}

static int build_input(void *context, ipu_graph *graph, int32_t ninputs,
                       const ipu_tensor *inputs, ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)inputs;
    outputs[0] = ipu_input(graph, "mine", IPU_FLOAT32, 0, NULL);
    return 1;
}

static int build_output(void *context, ipu_graph *graph, int32_t ninputs,
                        const ipu_tensor *inputs, ipu_tensor *outputs)
{
    (void)context, (void)ninputs;
    ipu_output(graph, "mine", inputs[0]);
    outputs[0] = inputs[0];
    return 1;
}

static int build_accumulates(void *context, ipu_graph *graph, int32_t ninputs,
                             const ipu_tensor *inputs, ipu_tensor *outputs)
{
    ipu_tensor w = ipu_variable(graph, "w", IPU_FLOAT32, 0, NULL);

    (void)context, (void)ninputs;
    ipu_assign(graph, w, ipu_accumulate(graph, w, inputs[0], 4, NULL));
    outputs[0] = inputs[0];
    return 1;
}

static int apply_fails(void *context, ipu_graph *graph, int32_t noutputs,
                       const ipu_tensor *outputs, int32_t count,
                       const ipu_tensor *variables, const ipu_tensor *gradients)
{
    (void)context, (void)graph, (void)noutputs, (void)outputs, (void)count;
    (void)variables, (void)gradients;
    return -77;
}

static int trains_nothing(void *context, const char *variable)
{
    (void)context, (void)variable;
    return 0;
}

static ipu_dtype wrong_accumulator(void *context, const char *variable,
                                   ipu_dtype dtype)
{
    (void)context, (void)variable, (void)dtype;
    return IPU_INT32;
}

static void one_stage(void)
{
    options.nstages = 1;
}

static void no_stages(void)
{
    options.stages = NULL;
}

static void no_function(void)
{
    changed[2].build = NULL;
}

static void first_beside(void)
{
    changed[0].beside = 1;
}

static void short_mapping(void)
{
    options.device_mapping = four;
    options.nmappings = 3;
}

static void null_mapping(void)
{
    options.nmappings = 4;
}

static void mapping_outside(void)
{
    static const int32_t far[] = {0, 1, 2, -4};

    options.device_mapping = far;
    options.nmappings = 4;
}

static void shared_ipu(void)
{
    options.device_mapping = same_ipu;
    options.nmappings = 4;
    options.schedule = IPU_SCHEDULE_INTERLEAVED;
}

static void concurrent_on_one(void)
{
    changed[1].beside = 1;
    options.device_mapping = same_ipu;
    options.nmappings = 4;
}

static void wrong_count(void)
{
    options.count = 12;
}

static void small_count_with_io(void)
{
    options.io_tiles = 1;
    options.count = 9;
}

static void serial_grouped(void)
{
    options.batch_serialization_iterations = 2;
}

static void serial_on_two(void)
{
    options.batch_serialization_iterations = 2;
    options.schedule = IPU_SCHEDULE_SEQUENTIAL;
}

static void serial_mean(void)
{
    static const int32_t one[4];

    serial_on_two();
    options.device_mapping = one;
    options.nmappings = 4;
    options.reduction = IPU_REDUCTION_MEAN;
}

static void loss_without_optimizer(void)
{
    options.optimizer = NULL;
    options.outfeed_loss = 1;
}

static void loss_and_mask(void)
{
    options.outfeed_loss = 1;
    options.noutfeed_mask = 2;
    options.outfeed_mask = mask;
}

static void long_mask(void)
{
    options.noutfeed_mask = 3;
    options.outfeed_mask = mask;
}

static void sums_without_outfeed(void)
{
    options.sink = NULL;
    options.accumulate_outfeed = 1;
}

static void sums_to_the_last(void)
{
    ipu_outfeed_options last;

    ipu_outfeed_options_init(&last, sizeof last);
    last.name = "sums";
    last.mode = IPU_OUTFEED_LAST;
    MUST(ipu_outfeed_new(&last, &options.outfeed));
    options.accumulate_outfeed = 1;
}

static void outputs_without_outfeed(void)
{
    options.optimizer = NULL;
    options.sink = NULL;
}

static void continuous(void)
{
    options.continuous_updates = 1;
}

static void wrong_arity(void)
{
    changed[2].inputs = 5;
    changed[2].name = "head";
    changed[1].name = "body";
}

static void wrong_first_arity(void)
{
    changed[0].inputs = 2;
}

static void negative_stage(void)
{
    static int status = -5;

    changed[1].build = build_nothing;
    changed[1].context = &status;
}

static void too_many_outputs(void)
{
    static int count = IPU_MAX_STAGE_TENSORS + 1;

    changed[1].build = build_nothing;
    changed[1].context = &count;
}

static void unset_output(void)
{
    static int count = 1;

    changed[1].build = build_nothing;
    changed[1].context = &count;
}

static void captures(void)
{
    of_another_graph.id = -1;
    changed[0].build = changed[1].build = build_captures;
}

static void wrong_shapes(void)
{
    changed[1].build = build_wrong_shapes;
    changed[1].name = "body";
}

static void makes_input(void)
{
    changed[1].build = build_input;
}

static void makes_output(void)
{
    changed[1].build = build_output;
}

static void accumulates(void)
{
    changed[1].build = build_accumulates;
}

static void loss_outside(void)
{
    options.loss = 2;
}

static void loss_is_rate(void)
{
    options.loss = 1;
}

static void loss_is_a_vector(void)
{
    changed[3].build = build_vector_loss;
}

static void optimizer_fails(void)
{
    options.optimizer = apply_fails;
}

static void nothing_trained(void)
{
    options.trained = trains_nothing;
}

static void accumulator_of_integers(void)
{
    options.accumulator_of = wrong_accumulator;
}

static void then_sequential(void)
{
    options.schedule = IPU_SCHEDULE_SEQUENTIAL;
    options.recompute = 1;
    options.recompute_mode = IPU_RECOMPUTE_THEN_BACKPROPAGATE;
}

static void both_interleaved(void)
{
    options.schedule = IPU_SCHEDULE_INTERLEAVED;
    options.recompute = 1;
    options.recompute_mode = IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED;
}

static void small_system(void)
{
    system_c2.size = sizeof system_c2;
    MUST(ipu_system_find("C2", &system_c2));
    options.system = &system_c2;
}

static void no_streaming(void)
{
    static const int32_t two[] = {0, 0, 1, 1};

    small_system();
    options.device_mapping = two;
    options.nmappings = 4;
    options.offload_state = IPU_OFFLOAD_ON;
}

static void too_small(void)
{
    static ipu_system tiny;

    tiny.size = sizeof tiny;
    MUST(ipu_system_find("M2000", &tiny));
    tiny.ipu.tiles = 16;
    tiny.ipu.bytes_per_tile = 4 * 1024;
    options.system = &tiny;
}

/* Builds a stage that also has a variable of the first stage. */
static int build_sharing(void *context, ipu_graph *graph, int32_t ninputs,
                         const ipu_tensor *inputs, ipu_tensor *outputs)
{
    ipu_variable(graph, "w0", IPU_FLOAT32, 2, SHAPE(widths[0], widths[1]));
    return build_layers(context, graph, ninputs, inputs, outputs);
}

static void shares_a_variable(void)
{
    changed[1].build = build_sharing;
}

static int build_checkpoint(void *context, ipu_graph *graph, int32_t ninputs,
                            const ipu_tensor *inputs, ipu_tensor *outputs)
{
    int count = build_layers(context, graph, ninputs, inputs, outputs);

    outputs[1] = ipu_recomputation_checkpoint(graph, outputs[1]);
    return count;
}

static void checkpoint_interleaved(void)
{
    changed[1].build = build_checkpoint;
    options.schedule = IPU_SCHEDULE_INTERLEAVED;
    options.recompute = 1;
}

static void wrong_schedule(void)
{
    options.schedule = 3;
}

static void wrong_reduction(void)
{
    options.reduction = 3;
}

static void no_repeats(void)
{
    options.repeat_count = 0;
}

static void wrong_replicas(void)
{
    options.replicas = 2;
}

static const struct refusal {
    void (*change)(void);
    int status;
    const char *words;
} refusals[] = {
    {one_stage, IPU_ERR_ARGUMENT,
     "Pipeline requires at least two computational stages"},
    {no_stages, IPU_ERR_ARGUMENT, "NULL"},
    {no_function, IPU_ERR_ARGUMENT, "stage 2 has no function"},
    {first_beside, IPU_ERR_ARGUMENT, "stage 0 is the first"},
    {short_mapping, IPU_ERR_ARGUMENT,
     "Each stage must be mapped to an IPU: 3 mappings != 4 stages"},
    {null_mapping, IPU_ERR_ARGUMENT, "device_mapping is NULL"},
    {mapping_outside, IPU_ERR_ARGUMENT, "stage 3 is mapped to IPU -4"},
    {shared_ipu, IPU_ERR_ARGUMENT, "stages 0 and 1 are both mapped to IPU 0"},
    {concurrent_on_one, IPU_ERR_ARGUMENT, "at the same time"},
    {wrong_count, IPU_ERR_ARGUMENT,
     "The number of iterations of the pipeline must be a multiple of 8, but "
     "it is 12"},
    {small_count_with_io, IPU_ERR_ARGUMENT, "at least 10, but it is 9"},
    {serial_grouped, IPU_ERR_ARGUMENT, "sequential schedule"},
    {serial_on_two, IPU_ERR_ARGUMENT, "single IPU"},
    {serial_mean, IPU_ERR_ARGUMENT, "SUM"},
    {loss_without_optimizer, IPU_ERR_ARGUMENT,
     "outfeed_loss needs an optimizer"},
    {loss_and_mask, IPU_ERR_ARGUMENT, "exclude each other"},
    {long_mask, IPU_ERR_ARGUMENT, "outfeed_mask has 3 entries, stage 3"},
    {sums_without_outfeed, IPU_ERR_ARGUMENT, "without an outfeed"},
    {sums_to_the_last, IPU_ERR_ARGUMENT,
     "accumulate_outfeed needs an outfeed of mode ALL, and 'sums'"},
    {outputs_without_outfeed, IPU_ERR_ARGUMENT, "no outfeed"},
    {continuous, IPU_ERR_ARGUMENT, "continuous"},
    {wrong_arity, IPU_ERR_SHAPE,
     "stage head takes 5 inputs, but stage body before it gives 3 outputs"},
    {wrong_first_arity, IPU_ERR_SHAPE,
     "stage 0 takes 2 inputs, but there are 1 arguments and 2 elements"},
    {negative_stage, -5, "stage 1: its function returned -5"},
    {too_many_outputs, IPU_ERR_ARGUMENT, "stage 1 gives 33 outputs"},
    {unset_output, IPU_ERR_ARGUMENT, "stage 1, output 0"},
    {captures, IPU_ERR_ARGUMENT, "captures a tensor"},
    {wrong_shapes, IPU_ERR_SHAPE, "stage body: "},
    {makes_input, IPU_ERR_ARGUMENT, "stage 1 makes the input 'mine'"},
    {makes_output, IPU_ERR_ARGUMENT, "stage 1 makes the output 'mine'"},
    {accumulates, IPU_ERR_STATE, "stage 1"},
    {loss_outside, IPU_ERR_ARGUMENT, "the loss is output 2"},
    {loss_is_rate, IPU_ERR_ARGUMENT,
     "pipeline: stage 3: the loss, output 1, does not depend on any variable "
     "that is trained"},
    {loss_is_a_vector, IPU_ERR_SHAPE, "float32 [2], not a float32 scalar"},
    {optimizer_fails, -77, "the weight update on IPU 0: the optimizer"},
    {nothing_trained, IPU_ERR_ARGUMENT,
     "pipeline: stage 3: the loss, output 0, does not depend on any variable "
     "that is trained"},
    {accumulator_of_integers, IPU_ERR_ARGUMENT, "gradients of 'w0'"},
    {then_sequential, IPU_ERR_ARGUMENT, "RecomputeThenBackpropagate is not"},
    {both_interleaved, IPU_ERR_ARGUMENT,
     "RecomputeAndBackpropagateInterleaved is not"},
    {small_system, IPU_ERR_STATE, "1 replicas of 4 IPUs: 'C2' has 2"},
    {no_streaming, IPU_ERR_STATE, "streaming memory"},
    {too_small, IPU_ERR_FULL, "IPU 0 needs"},
    {shares_a_variable, IPU_ERR_NAME,
     "the variable 'w0' is used by stage 0 on IPU 0 and by stage 1 on IPU 1"},
    {checkpoint_interleaved, IPU_ERR_ARGUMENT,
     "stage 1 has recomputation checkpoints"},
    {wrong_schedule, IPU_ERR_ARGUMENT, "schedule 3 is none"},
    {wrong_reduction, IPU_ERR_ARGUMENT, "reduction 3 is none"},
    {no_repeats, IPU_ERR_ARGUMENT, "repeat_count is 0"},
    {wrong_replicas, IPU_ERR_STATE, "the infeed 'data' was made for 1"},
};

LOOP_TEST(misuse_is_refused, 0, sizeof refusals / sizeof *refusals)
{
    const struct refusal *r = &refusals[_i];

    cut(4, 0);
    memcpy(changed, stages, sizeof changed);
    options.stages = changed;
    r->change();
    MUST_FAIL(ipu_pipeline_new(&options, &pipeline), r->status, r->words);
    ck_assert_ptr_null(strchr(ipu_last_error(), '\n'));
    ck_assert_ptr_null(pipeline);
    finish();
    ipu_outfeed_free(options.outfeed);
}

TEST(what_does_not_fit_may_run_all_the_same)
{
    cut(4, 0);
    too_small();
    options.allow_out_of_memory = 1;
    start();
    MUST(ipu_pipeline_run(pipeline));
    finish();
}

TEST(names_and_sizes_are_checked)
{
    ipu_pipeline_stage_info stage = {.size = sizeof stage};
    ipu_pipeline_ipu_info ipu = {.size = sizeof ipu};
    ipu_pipeline_info info = {0};
    float x[64] = {0};

    cut(4, 0);
    start();
    MUST_FAIL(ipu_pipeline_argument(pipeline, "speed", x, 4), IPU_ERR_NAME,
              "no argument 'speed'");
    MUST_FAIL(ipu_pipeline_argument(pipeline, "rate", x, 8), IPU_ERR_SHAPE,
              "'rate' takes 4 bytes, not 8");
    MUST_FAIL(ipu_pipeline_write(pipeline, "w9", x, 4), IPU_ERR_NAME,
              "no variable 'w9'");
    MUST_FAIL(ipu_pipeline_write(pipeline, "b0", x, 4), IPU_ERR_SHAPE,
              "'b0' takes 28 bytes");
    MUST_FAIL(ipu_pipeline_read(pipeline, 1, "b0", x, 28), IPU_ERR_ARGUMENT,
              "no replica 1");
    MUST_FAIL(ipu_pipeline_read(pipeline, 0, "b0", NULL, 28), IPU_ERR_ARGUMENT,
              "pipeline: variable 'b0': the host memory is NULL");
    MUST_FAIL(ipu_pipeline_stage(pipeline, 4, &stage), IPU_ERR_ARGUMENT,
              "no stage 4");
    MUST_FAIL(ipu_pipeline_ipu(pipeline, 4, &ipu), IPU_ERR_ARGUMENT,
              "no IPU 4");
    MUST_FAIL(ipu_pipeline_stats(pipeline, &info), IPU_ERR_ARGUMENT, "size");
    MUST_FAIL(ipu_pipeline_run(NULL), IPU_ERR_ARGUMENT, "the pipeline is NULL");
    MUST_FAIL(ipu_pipeline_new(NULL, &pipeline), IPU_ERR_ARGUMENT,
              "pipeline: the options are NULL");
    MUST_FAIL(ipu_pipeline_new(&options, NULL), IPU_ERR_ARGUMENT,
              "pipeline: the place for it is NULL");
    finish();
}

/* The number of IPUs overflows 32 bits. */
TEST(replicas_beyond_count_are_refused)
{
    ipu_infeed *infeed;

    cut(4, 0);
    infeed = options.infeed;
    options.infeed = NULL;
    options.replicas = INT32_MAX;
    MUST_FAIL(ipu_pipeline_new(&options, &pipeline), IPU_ERR_STATE,
              "2147483647 replicas of 4 IPUs");
    ipu_infeed_free(infeed);
}

TEST_MAIN("device_pipeline_refusals", .set_up = begin, .seconds = 60)
