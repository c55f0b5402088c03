/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests options of a pipeline that are impossible, alone or together, and
 * stages that do not go together. Each is refused with its whole text.
 */
#include "suite.h"

#include "pipelined.h"

static ipu_stage changed[IPU_MAX_STAGES + 1];

static void too_many_stages(void)
{
    options.nstages = IPU_MAX_STAGES + 1;
}

static void less_than_no_stages(void)
{
    options.nstages = -1;
}

static void serialized_never(void)
{
    options.batch_serialization_iterations = 0;
}

static void mask_of_null(void)
{
    options.noutfeed_mask = 2;
}

static void computed_again_somehow(void)
{
    options.recompute_mode = 3;
}

static void less_than_no_arguments(void)
{
    options.narguments = -1;
}

static void arguments_of_null(void)
{
    options.arguments = NULL;
}

static void argument_without_a_name(void)
{
    static const ipu_feed_tensor two[] = {{"rate", IPU_FLOAT32, 0, {0}},
                                          {NULL, IPU_FLOAT32, 0, {0}}};

    options.arguments = two;
    options.narguments = 2;
}

static void too_many_arguments(void)
{
    static ipu_feed_tensor many[IPU_MAX_STAGE_TENSORS - 1];

    for (int i = 0; i < IPU_MAX_STAGE_TENSORS - 1; i++)
        many[i] = rate_argument;
    options.arguments = many;
    options.narguments = IPU_MAX_STAGE_TENSORS - 1;
}

static void make_outfeed(int replicas)
{
    ipu_outfeed_options o;

    ipu_outfeed_options_init(&o, sizeof o);
    o.name = "losses";
    o.replicas = replicas;
    MUST(ipu_outfeed_new(&o, &options.outfeed));
}

static void outfeed_of_two(void)
{
    make_outfeed(2);
}

static void three_names_for_two(void)
{
    static const char *const names[] = {"loss", "rate", "more"};

    make_outfeed(1);
    options.outfeed_names = names;
    options.noutfeed_names = 3;
}

/* Builds a stage that gives a matrix where the loss should be. */
static int build_matrix(void *context, ipu_graph *graph, int32_t ninputs,
                        const ipu_tensor *inputs, ipu_tensor *outputs)
{
    int count = build_layers(context, graph, ninputs, inputs, outputs);

    outputs[0] = ipu_square(graph, inputs[1]);
    return count;
}

static void loss_of_many(void)
{
    changed[3].build = build_matrix;
    changed[3].name = "head";
}

/* Builds a stage with more than half of the possible number of outputs. */
static int build_many(void *context, ipu_graph *graph, int32_t ninputs,
                      const ipu_tensor *inputs, ipu_tensor *outputs)
{
    const int count = IPU_MAX_STAGE_TENSORS / 2 + 1;

    (void)context, (void)ninputs;
    for (int i = 0; i < count; i++)
        outputs[i] = ipu_negate(graph, inputs[1]);
    return count;
}

static void too_many_side_by_side(void)
{
    changed[1].build = changed[2].build = build_many;
    changed[1].name = "left";
    changed[2].beside = 1;
    options.count = 6;
}

/* Builds a stage that has a variable of the stage before in another shape, on
 * the same IPU. */
static int build_another_shape(void *context, ipu_graph *graph, int32_t ninputs,
                               const ipu_tensor *inputs, ipu_tensor *outputs)
{
    ipu_tensor v = ipu_variable(graph, "b0", IPU_FLOAT32, 0, NULL);
    int count = build_layers(context, graph, ninputs, inputs, outputs);

    outputs[1] = ipu_add(graph, outputs[1], v);
    return count;
}

static void a_variable_of_two_shapes(void)
{
    static const int32_t pairs[] = {0, 0, 1, 1};

    changed[0].name = "first";
    changed[1].name = "second";
    changed[1].build = build_another_shape;
    options.optimizer = NULL;
    options.device_mapping = pairs;
    options.nmappings = 4;
}

static void three_stages_on_six_ipus(void)
{
    static ipu_system six;

    six.size = sizeof six;
    MUST(ipu_system_find("Pod16", &six));
    six.ipus = 6;
    ipu_infeed_free(options.infeed);
    cut(3, 0);
    ipu_infeed_free(options.infeed);
    options.infeed = infeed_of(&data, 2);
    options.replicas = 2;
    options.system = &six;
    options.stages = stages;
}

static const struct refusal {
    void (*change)(void);
    int status;
    const char *text;
} refusals[] = {
    {too_many_stages, IPU_ERR_ARGUMENT,
     "pipeline: 65 stages, there may be 2 to 64"},
    {less_than_no_stages, IPU_ERR_ARGUMENT,
     "pipeline: -1 stages, there may be 2 to 64"},
    {serialized_never, IPU_ERR_ARGUMENT,
     "pipeline: batch_serialization_iterations is 0, it must be 1 or more"},
    {mask_of_null, IPU_ERR_ARGUMENT, "pipeline: outfeed_mask is NULL"},
    {computed_again_somehow, IPU_ERR_ARGUMENT,
     "pipeline: recompute_mode 3 is none: 0 auto, 1 then backpropagate, 2 "
     "interleaved with it"},
    {less_than_no_arguments, IPU_ERR_ARGUMENT, "pipeline: -1 arguments"},
    {arguments_of_null, IPU_ERR_ARGUMENT,
     "pipeline: 1 arguments, and the list is NULL"},
    {argument_without_a_name, IPU_ERR_ARGUMENT,
     "pipeline: argument 1 has no name"},
    {too_many_arguments, IPU_ERR_ARGUMENT,
     "pipeline: 31 arguments and 2 tensors of the infeed: a stage takes 32"},
    {outfeed_of_two, IPU_ERR_STATE,
     "pipeline: 1 replicas, and the outfeed 'losses' was made for 2"},
    {three_names_for_two, IPU_ERR_ARGUMENT,
     "pipeline: 3 names for the 2 tensors that go to the outfeed"},
    {loss_of_many, IPU_ERR_SHAPE,
     "pipeline: stage head: the loss, output 0, is float32 [4,6], not a "
     "float32 "
     "scalar"},
    {too_many_side_by_side, IPU_ERR_ARGUMENT,
     "pipeline: stage left and those beside it give 34 outputs, there may be "
     "32"},
    {a_variable_of_two_shapes, IPU_ERR_NAME,
     "pipeline: the variable 'b0' is float32 [7] in stage first and float32 [] "
     "in stage second"},
    {three_stages_on_six_ipus, IPU_ERR_STATE,
     "pipeline: 2 replicas of 4 IPUs: 'Pod16' has 6: set device_mapping"},
};

LOOP_TEST(what_cannot_be_is_refused, 0, sizeof refusals / sizeof *refusals)
{
    const struct refusal *r = &refusals[_i];

    cut(4, 0);
    memcpy(changed, stages, 4 * sizeof *changed);
    options.stages = changed;
    r->change();
    ck_assert_int_eq(ipu_pipeline_new(&options, &pipeline), r->status);
    ck_assert_str_eq(ipu_last_error(), r->text);
    ck_assert_ptr_null(pipeline);
    finish();
    ipu_outfeed_free(options.outfeed);
}

TEST(what_it_does_not_have_is_not_read)
{
    float x;

    cut(4, 0);
    start();
    ck_assert_int_eq(ipu_pipeline_read(pipeline, 0, "w9", &x, sizeof x),
                     IPU_ERR_NAME);
    ck_assert_str_eq(ipu_last_error(), "pipeline: there is no variable 'w9'");
    finish();
}

TEST_MAIN("device_pipeline_options", .set_up = begin, .seconds = 60)
