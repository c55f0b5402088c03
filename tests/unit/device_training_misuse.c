/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests misuse of optimisers, accumulation, loss scaling, clipping, update
 * regions, checkpoints and offloading. Each is refused, and the graph keeps the
 * whole text.
 */
#include "device.h"
#include "suite.h"

static const ipu_tensor invalid = {-1};
static ipu_tensor w, g;

/* Makes a variable with the longest name to which this suffix can be added. */
static ipu_tensor long_variable(ipu_graph *graph)
{
    static char name[256];

    memset(name, 'v', sizeof name - 8);
    return ipu_variable(graph, name, IPU_FLOAT32, 1, SHAPE(3));
}

static ipu_optimizer sgd_of(ipu_graph *graph)
{
    return (ipu_optimizer){.size = sizeof(ipu_optimizer),
                           .kind = IPU_OPTIMIZER_SGD,
                           .rate = ipu_fill(graph, IPU_FLOAT32, 0, NULL, 0.1)};
}

static void by_nothing(ipu_graph *graph)
{
    ipu_optimize(graph, NULL, 1, &w, &g);
}

static void by_an_unknown_one(ipu_graph *graph)
{
    ipu_optimizer o = sgd_of(graph);

    o.kind = IPU_OPTIMIZER_LARS + 1;
    ipu_optimize(graph, &o, 1, &w, &g);
}

static void of_less_than_none(ipu_graph *graph)
{
    const ipu_optimizer o = sgd_of(graph);

    ipu_optimize(graph, &o, -1, &w, &g);
}

static void of_null(ipu_graph *graph)
{
    const ipu_optimizer o = sgd_of(graph);

    ipu_optimize(graph, &o, 1, &w, NULL);
}

static void with_state_of_a_long_name(ipu_graph *graph)
{
    const ipu_sgd_options momentum = {.size = sizeof momentum, .momentum = 0.9};
    ipu_optimizer o = sgd_of(graph);
    const ipu_tensor v = long_variable(graph);

    o.sgd = &momentum;
    ipu_optimize(graph, &o, 1, &v, &g);
}

static void accumulated_under_a_long_name(ipu_graph *graph)
{
    ipu_accumulate(graph, long_variable(graph), g, 2, NULL);
}

static void scaled_under_a_long_name(ipu_graph *graph)
{
    char name[256] = {0};
    ipu_tensor slope;

    memset(name, 's', sizeof name - 2);
    ipu_scaled_gradients(graph, name, ipu_reduce_sum(graph, w, 1), 1, &w, NULL,
                         &slope, NULL);
}

static void rate_of_null(ipu_graph *graph)
{
    ipu_rate(graph, ipu_counter(graph, "steps"), NULL);
}

static void clipped_to_nothing(ipu_graph *graph)
{
    ipu_clip_by_value(graph, 1, &g, 0);
}

static void clipped_of_null(ipu_graph *graph)
{
    ipu_clip_by_global_norm(graph, 1, NULL, 1, NULL);
}

static void clipped_what_failed(ipu_graph *graph)
{
    ipu_tensor gradients[] = {g, invalid};

    ipu_clip_by_value(graph, 2, gradients, 1);
}

static void a_checkpoint_of_what_failed(ipu_graph *graph)
{
    ipu_recomputation_checkpoint(graph, invalid);
}

static void updated_on_what_failed(ipu_graph *graph)
{
    ipu_update_begin_if(graph, 2, invalid);
}

static void updated_on_a_fraction(ipu_graph *graph)
{
    ipu_update_begin_if(graph, 2, ipu_reduce_sum(graph, g, 1));
}

static void updated_too_seldom(ipu_graph *graph)
{
    ipu_update_begin(graph, (1 << 20) + 1);
}

static void an_end_without_a_beginning(ipu_graph *graph)
{
    ipu_update_end(graph);
}

static void offloaded_what_failed(ipu_graph *graph)
{
    ipu_offload_variable(graph, invalid, IPU_OFFLOAD_ON);
}

static void offloaded_what_is_given(ipu_graph *graph)
{
    ipu_offload_variable(graph, g, IPU_OFFLOAD_ON);
}

static void offloaded_neither_way(ipu_graph *graph)
{
    ipu_offload_variable(graph, w, 3);
}

static void offloaded_from_less_than_nothing(ipu_graph *graph)
{
    ipu_update_offload(graph, 2, IPU_OFFLOAD_ON, -1);
}

static const struct misuse {
    void (*build)(ipu_graph *graph);
    int status;
    const char *text;
} misuses[] = {
    {by_nothing, IPU_ERR_ARGUMENT, "optimizer: it is NULL"},
    {by_an_unknown_one, IPU_ERR_ARGUMENT,
     "optimizer: the kind 9 is none: 0 (SGD) to 8 (LARS)"},
    {of_less_than_none, IPU_ERR_ARGUMENT,
     "optimizer: the count is less than 0"},
    {of_null, IPU_ERR_ARGUMENT, "optimizer: an array is NULL"},
    {with_state_of_a_long_name, IPU_ERR_NAME,
     "the name of "
     "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
     "v... is too long for an optimiser: at most 240 bytes"},
    {accumulated_under_a_long_name, IPU_ERR_NAME,
     "the name of "
     "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
     "v... is too long for an accumulator: at most 240 bytes"},
    {scaled_under_a_long_name, IPU_ERR_NAME,
     "loss scaling: the name "
     "ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss... is "
     "too long: at most 240 bytes"},
    {rate_of_null, IPU_ERR_ARGUMENT, "rate: the options are NULL"},
    {clipped_to_nothing, IPU_ERR_ARGUMENT,
     "clip by value: the limit is 0, it must be more than 0"},
    {clipped_of_null, IPU_ERR_ARGUMENT,
     "clip by norm: the array of gradients is NULL"},
    {clipped_what_failed, IPU_ERR_ARGUMENT,
     "clip by value: gradient 1: the tensor is invalid: what made it failed"},
    {a_checkpoint_of_what_failed, IPU_ERR_ARGUMENT,
     "checkpoint: the tensor is invalid: what made it failed"},
    {updated_on_what_failed, IPU_ERR_ARGUMENT,
     "update: the condition: the tensor is invalid: what made it failed"},
    {updated_on_a_fraction, IPU_ERR_SHAPE,
     "update: the condition reduce_sum:0 is not an int32 scalar that is "
     "computed in each run, or in the region of that count"},
    {updated_too_seldom, IPU_ERR_ARGUMENT,
     "update: of 1048577 mini-batches; 1 to 1048576"},
    {an_end_without_a_beginning, IPU_ERR_STATE,
     "update: no region has begun that could end"},
    {offloaded_what_failed, IPU_ERR_ARGUMENT,
     "offload: the tensor is invalid: what made it failed"},
    {offloaded_what_is_given, IPU_ERR_ARGUMENT, "offload: g is not a variable"},
    {offloaded_neither_way, IPU_ERR_ARGUMENT,
     "offload: 3 is neither AUTO, ON nor OFF"},
    {offloaded_from_less_than_nothing, IPU_ERR_ARGUMENT,
     "offload: of tensors of at least -1 bytes: it must be 0 or more"},
};

LOOP_TEST(misuse_is_refused, 0, sizeof misuses / sizeof *misuses)
{
    const struct misuse *m = &misuses[_i];
    ipu_executable *x = NULL;
    struct device d = device_new();

    w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(3));
    g = device_floats(&d, "g", 1, SHAPE(3));
    m->build(d.graph);
    MUST_FAIL(ipu_compile(d.graph, NULL, &x), m->status, m->text);
    /* The text must end so: it begins with the place in the program. */
    ck_assert_str_eq(strstr(ipu_last_error(), m->text), m->text);
    device_free(&d);
}

/* Runs after which all regions end at once. */
TEST(counts_without_a_common_multiple)
{
    struct device d = device_new();

    MUST(ipu_update_begin(d.graph, (1 << 20) - 3));
    MUST(ipu_update_end(d.graph));
    MUST(ipu_update_begin(d.graph, (1 << 20) - 5));
    MUST(ipu_update_end(d.graph));
    ck_assert_int_eq(ipu_update_count(d.graph), IPU_ERR_ARGUMENT);
    ck_assert_str_eq(ipu_last_error(),
                     "update: the counts of the regions have a common multiple "
                     "only after 2^31 runs");
    device_free(&d);
}

TEST_MAIN("device_training_misuse")
