/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests loops in the stages of a pipeline that trains: layers that share their
 * weights, nested loops, dropout driven by a counter in the body, columns that
 * it reads and writes by its number, checkpoints and host calls. Every bit must
 * equal the same stages written out. Wrong loops are refused. Loops stay loops
 * in inference.
 */
#include "suite.h"

#include "pipelined.h"

enum { WIDTH = 6, OUTER = 3, INNER = 2, UPDATES = 20 };

/* A stage is built with ipu_repeat or written out. */
static struct form {
    int loops; /* 1: ipu_repeat */
    int dropout, checkpoints, calls, nested;
    int state; /* each iteration assigns a variable */
    int rows;  /* each iteration changes a column, by its number */
} form;

static int seen; /* calls of the host */

static int look(void *context, const char *name, void *values, int64_t count)
{
    (void)context, (void)values;
    ck_assert(strncmp(name, "look", 4) == 0);
    ck_assert_int_eq(count, ROWS * WIDTH);
    seen++;
    return 0;
}

/* ------------------------------------------------------------- the middle */

struct weights {
    ipu_tensor w, b;
    ipu_tensor state; /* invalid: none */
};

static struct weights weights_of(ipu_graph *graph)
{
    return (struct weights){
        .state = form.state
                     ? ipu_variable(graph, "loop/state", IPU_FLOAT32, 0, NULL)
                     : (ipu_tensor){-1},
        .w = ipu_variable(graph, "loop/w", IPU_FLOAT32, 2, SHAPE(WIDTH, WIDTH)),
        .b = ipu_variable(graph, "loop/b", IPU_FLOAT32, 1, SHAPE(WIDTH)),
    };
}

static ipu_tensor layer(ipu_graph *graph, const struct weights *v, ipu_tensor x)
{
    return ipu_tanh(graph,
                    ipu_bias_add(graph, ipu_matmul(graph, x, v->w), v->b));
}

/* Returns a running mean of x. */
static ipu_tensor next_state(ipu_graph *graph, ipu_tensor state, ipu_tensor x)
{
    return ipu_add(graph, ipu_scale(graph, state, 0.5, 0),
                   ipu_reduce_sum(graph, x, 0.5 / (ROWS * WIDTH)));
}

/* Doubles column i of x. */
static ipu_tensor double_column(ipu_graph *graph, ipu_tensor x, ipu_tensor i)
{
    ipu_tensor column = ipu_scale(graph, ipu_gather(graph, x, i, 1), 2, 0);

    return ipu_dynamic_update(graph, x, i, column, 1);
}

static int inner_body(ipu_graph *graph, void *context, int32_t ninputs,
                      const ipu_tensor *inputs, int32_t noutputs,
                      ipu_tensor *outputs)
{
    (void)ninputs, (void)noutputs;
    outputs[0] = layer(graph, context, inputs[0]);
    return 0;
}

static int outer_body(ipu_graph *graph, void *context, int32_t ninputs,
                      const ipu_tensor *inputs, int32_t noutputs,
                      ipu_tensor *outputs)
{
    ipu_tensor x = inputs[0], one = ipu_fill(graph, IPU_INT32, 0, NULL, 1);
    const struct weights *v = context;

    ck_assert_int_eq(ninputs, 2);
    ck_assert_int_eq(noutputs, 2);
    if (form.dropout)
        x = ipu_dropout(graph, x, 0.25, 3, ipu_counter(graph, "loop/step"));
    if (form.nested)
        MUST(ipu_repeat(graph, INNER, inner_body, context, 1, &x, NULL, &x));
    else
        x = layer(graph, v, x);
    if (form.rows)
        x = double_column(graph, x, inputs[1]);
    if (form.state)
        MUST(ipu_assign(graph, v->state, next_state(graph, v->state, x)));
    if (form.checkpoints)
        x = ipu_recomputation_checkpoint(graph, x);
    if (form.calls)
        ipu_host_call(graph, "look", x, look, NULL);
    outputs[0] = x;
    outputs[1] = ipu_add(graph, inputs[1], one);
    return 0;
}

/* Builds the same without a loop: a counter goes on by OUTER in each
 * mini-batch. */
static ipu_tensor written_out(ipu_graph *graph, struct weights *v, ipu_tensor x)
{
    ipu_tensor step = {-1}, state = v->state;

    if (form.dropout) {
        step = ipu_variable(graph, "loop/step", IPU_INT32, 0, NULL);
        MUST(ipu_assign(
            graph, step,
            ipu_add(graph, step, ipu_fill(graph, IPU_INT32, 0, NULL, OUTER))));
    }
    for (int i = 0; i < OUTER; i++) {
        ipu_tensor at = {-1};
        char name[16];

        if (form.dropout) {
            at = ipu_add(graph, step, ipu_fill(graph, IPU_INT32, 0, NULL, i));
            x = ipu_dropout(graph, x, 0.25, 3, at);
        }
        for (int k = 0; k < (form.nested ? INNER : 1); k++)
            x = layer(graph, v, x);
        if (form.rows)
            x = double_column(graph, x, ipu_fill(graph, IPU_INT32, 0, NULL, i));
        if (form.state)
            state = next_state(graph, state, x);
        if (form.checkpoints)
            x = ipu_recomputation_checkpoint(graph, x);
        snprintf(name, sizeof name, "look%d", i);
        if (form.calls)
            ipu_host_call(graph, name, x, look, NULL);
    }
    if (!form.state)
        return x;
    MUST(ipu_assign(graph, v->state, state));
    return ipu_add(graph, x, state);
}

static int build_middle(void *context, ipu_graph *graph, int32_t ninputs,
                        const ipu_tensor *inputs, ipu_tensor *outputs)
{
    struct weights v = weights_of(graph);
    ipu_tensor carried[] = {inputs[1], ipu_fill(graph, IPU_INT32, 0, NULL, 0)};

    (void)context;
    ck_assert_int_eq(ninputs, 3);
    if (form.loops)
        MUST(ipu_repeat(graph, OUTER, outer_body, &v, 2, carried, NULL,
                        carried));
    if (form.loops && form.state) /* the value after the loop */
        carried[0] = ipu_add(graph, carried[0], v.state);
    if (!form.loops)
        carried[0] = written_out(graph, &v, carried[0]);
    outputs[0] = inputs[0];
    outputs[1] = carried[0];
    outputs[2] = inputs[2];
    return 3;
}

/* Layers 0 and 1 give x [rows, 6]; layer 6 takes as much. */
static void three_stages(void)
{
    static struct layers ends[] = {{0, 2, 0}, {6, 2, 0}};
    static ipu_stage three[3];

    cut(3, 0);
    ends[0].dropout = ends[1].dropout = 0;
    three[0] = (ipu_stage){"first", build_layers, &ends[0], 3, 0};
    three[1] = (ipu_stage){"middle", build_middle, NULL, 3, 0};
    three[2] = (ipu_stage){"last", build_layers, &ends[1], 3, 0};
    options.stages = three;
    options.count = 6;
    options.sink = NULL;
}

static const char *const trained[] = {"w0",     "b0", "w1", "b1", "loop/w",
                                      "loop/b", "w6", "b6", "w7", "b7"};

enum { TRAINED = sizeof trained / sizeof *trained };

static void start_loops(void)
{
    float values[MOST_WIDTH * MOST_WIDTH], rate = 0.02f;
    int64_t shape[IPU_MAX_DIMS];

    MUST(ipu_pipeline_new(&options, &pipeline));
    MUST(ipu_infeed_start(options.infeed));
    MUST(ipu_pipeline_argument(pipeline, "rate", &rate, sizeof rate));
    for (int i = 0; i < TRAINED; i++) {
        int64_t count = 1;
        int ndim =
            ipu_pipeline_variable_info(pipeline, trained[i], NULL, shape);

        MUST(ndim);
        for (int k = 0; k < ndim; k++)
            count *= shape[k];
        device_fill(values, count, (uint64_t)i + 1);
        MUST(ipu_pipeline_write(pipeline, trained[i], values,
                                (size_t)count * 4));
    }
}

static float kept[TRAINED][MOST_WIDTH * MOST_WIDTH];

static void read_all(float (*values)[MOST_WIDTH * MOST_WIDTH])
{
    int64_t shape[IPU_MAX_DIMS];

    for (int i = 0; i < TRAINED; i++) {
        int64_t count = 1;
        int ndim =
            ipu_pipeline_variable_info(pipeline, trained[i], NULL, shape);

        for (int k = 0; k < ndim; k++)
            count *= shape[k];
        MUST(ipu_pipeline_read(pipeline, 0, trained[i], values[i],
                               (size_t)count * 4));
    }
}

/* _i is bits for the contents of the body, then schedule and optimizer, and
 * recomputation. */
enum { FORMS = 32 };

LOOP_TEST(a_loop_trains_as_what_it_does, 0, 2 * FORMS)
{
    static float values[TRAINED][MOST_WIDTH * MOST_WIDTH];
    static const int way[] = {0, 1, 2, 0, 2};
    int bits = _i % FORMS, recompute = _i / FORMS;
    int32_t step[2] = {0};
    float state[2] = {0};

    memset(kept, 0, sizeof kept);
    memset(values, 0, sizeof values);
    for (int loops = 0; loops < 2; loops++) {
        begin();
        form = (struct form){loops,         bits & 1,      bits >> 1 & 1,
                             bits >> 2 & 1, bits >> 3 & 1, bits >> 4,
                             bits >> 2 & 1};
        which = (enum optimizer)(_i % OPTIMIZERS);
        three_stages();
        options.schedule = way[bits % 5];
        options.recompute = recompute;
        if (recompute && form.checkpoints) {
            options.schedule = IPU_SCHEDULE_GROUPED;
            options.recompute_mode =
                IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED;
        }
        seen = 0;
        start_loops();
        for (int i = 0; i < UPDATES; i++)
            MUST(ipu_pipeline_run(pipeline));
        ck_assert_int_eq(seen, form.calls * UPDATES * options.count * OUTER);
        if (form.dropout)
            MUST(ipu_pipeline_read(pipeline, 0, "loop/step", &step[loops], 4));
        if (form.state)
            MUST(
                ipu_pipeline_read(pipeline, 0, "loop/state", &state[loops], 4));
        read_all(loops ? values : kept);
        finish();
    }
    ck_assert_int_eq(step[0], step[1]);
    ck_assert_mem_eq(&state[0], &state[1], 4);
    ck_assert_int_eq(state[0] != 0, form.state);
    ck_assert(kept[4][0] != 0);
    ck_assert_mem_eq(kept, values, sizeof kept);
}

/* Checks that the derivative is that of the loss: a step against it must lower
 * the loss by nearly rate x |gradient|^2. */
static float first_loss, last_loss;

static int note_loss(void *context, int32_t replica, int64_t mini_batch,
                     int32_t count, const void *const *outputs)
{
    (void)context, (void)replica, (void)count;
    if (mini_batch == 0)
        memcpy(&last_loss, outputs[0], sizeof last_loss);
    return 0;
}

static int same_element(void *context, void *const *buffers)
{
    (void)context;
    element_of(3, buffers[0], buffers[1]);
    return 1;
}

TEST(the_loss_falls_as_its_gradient_says)
{
    const ipu_feed_tensor tensors[] = {
        {"x", IPU_FLOAT32, 2, {ROWS, FEATURES}},
        {"labels", IPU_INT32, 1, {ROWS}},
    };
    static float before[TRAINED][MOST_WIDTH * MOST_WIDTH],
        after[TRAINED][MOST_WIDTH * MOST_WIDTH];
    const float rate = 1e-4f;
    ipu_infeed_options o;
    double square = 0, step = 0;

    form = (struct form){.loops = 1, .nested = 1};
    three_stages();
    ipu_infeed_free(options.infeed);
    ipu_infeed_options_init(&o, sizeof o);
    o.name = "data";
    o.ntensors = 2;
    o.tensors = tensors;
    o.source.next = same_element;
    MUST(ipu_infeed_new(&o, &options.infeed));
    options.reduction = IPU_REDUCTION_MEAN;
    options.sink = note_loss;
    start_loops();
    MUST(ipu_pipeline_argument(pipeline, "rate", &rate, sizeof rate));
    read_all(before);
    MUST(ipu_pipeline_run(pipeline));
    read_all(after);
    first_loss = last_loss;
    MUST(ipu_pipeline_run(pipeline));
    /* Only the loop's weights are compared. */
    for (int i = 0; i < TRAINED; i++)
        for (int k = 0; k < MOST_WIDTH * MOST_WIDTH; k++) {
            double slope = (double)(before[i][k] - after[i][k]) / (double)rate;

            square += slope * slope;
            step += i == 4 || i == 5 ? slope * slope : 0;
        }
    ck_assert_double_gt(step, 0.01);
    ck_assert_double_eq_tol((double)(first_loss - last_loss) / (double)rate,
                            square, 0.05 * square);
    finish();
}

/* The stage keeps its loop in inference, and the program has the body once. */
TEST(inference_keeps_loops)
{
    form = (struct form){.loops = 1, .nested = 1};
    three_stages();
    options.optimizer = NULL;
    options.sink = take_loss;
    options.count = 6;
    start_loops();
    MUST(ipu_pipeline_run(pipeline));
    ck_assert_int_eq(nlosses, 6);
    first_loss = losses[5];
    finish();
    begin();
    form.loops = 0;
    three_stages();
    options.optimizer = NULL;
    options.sink = take_loss;
    start_loops();
    MUST(ipu_pipeline_run(pipeline));
    ck_assert_float_eq(first_loss, losses[5]);
    finish();
}

/* ----------------------------------------------------------------- failures */

static int fail_at;

static int stops_there(void *context, int32_t replica, int64_t mini_batch,
                       int32_t count, const void *const *outputs)
{
    (void)context, (void)replica, (void)count, (void)outputs;
    return mini_batch == fail_at ? -9 : 0;
}

/* The loop assigns its variables in inference; a failing run must leave them
 * unchanged. */
TEST(a_failing_run_takes_back_what_loops_assign)
{
    float state = 0.75f, got;
    int32_t step = 40, steps;

    form = (struct form){.loops = 1, .dropout = 1, .state = 1};
    three_stages();
    options.optimizer = NULL;
    options.sink = stops_there;
    options.count = 6;
    start_loops();
    MUST(ipu_pipeline_write(pipeline, "loop/state", &state, sizeof state));
    MUST(ipu_pipeline_write(pipeline, "loop/step", &step, sizeof step));
    fail_at = 2;
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_CALLBACK, "the sink");
    MUST(ipu_pipeline_read(pipeline, 0, "loop/state", &got, sizeof got));
    ck_assert_float_eq(got, state);
    MUST(ipu_pipeline_read(pipeline, 0, "loop/step", &steps, sizeof steps));
    ck_assert_int_eq(steps, step);
    fail_at = -1;
    MUST(ipu_pipeline_run(pipeline));
    MUST(ipu_pipeline_read(pipeline, 0, "loop/step", &steps, sizeof steps));
    ck_assert_int_eq(steps, step + 6 * OUTER);
    finish();
}

/* ----------------------------------------------------------------- refusals */

static ipu_infeed *another;
static ipu_outfeed *outfeed;

static int once(ipu_graph *graph, void *context, int32_t ninputs,
                const ipu_tensor *inputs, int32_t noutputs, ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)noutputs;
    outputs[0] = ipu_fill(graph, IPU_INT32, 0, NULL, 0);
    (void)inputs;
    return 0;
}

static int keeps(ipu_graph *graph, void *context, int32_t ninputs,
                 const ipu_tensor *inputs, int32_t noutputs,
                 ipu_tensor *outputs)
{
    (void)graph, (void)context, (void)ninputs, (void)noutputs;
    outputs[0] = ipu_tanh(graph, inputs[0]);
    return 0;
}

static int fed(ipu_graph *graph, void *context, int32_t ninputs,
               const ipu_tensor *inputs, int32_t noutputs, ipu_tensor *outputs)
{
    (void)context, (void)noutputs;
    ck_assert_int_eq(ninputs, 3);
    outputs[0] =
        ipu_add(graph, inputs[0], ipu_reduce_sum(graph, inputs[1], 0.1));
    return 0;
}

static int enqueues(ipu_graph *graph, void *context, int32_t ninputs,
                    const ipu_tensor *inputs, int32_t noutputs,
                    ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)noutputs;
    outputs[0] = ipu_tanh(graph, inputs[0]);
    return ipu_outfeed_enqueue(graph, outfeed, 1, NULL, outputs);
}

static int stores(ipu_graph *graph, void *context, int32_t ninputs,
                  const ipu_tensor *inputs, int32_t noutputs,
                  ipu_tensor *outputs)
{
    ipu_tensor at = ipu_fill(graph, IPU_INT32, 0, NULL, 0);

    (void)context, (void)ninputs, (void)noutputs;
    outputs[0] = ipu_tanh(graph, inputs[0]);
    return ipu_remote_store(graph, *(ipu_remote_buffer *)context, at,
                            outputs[0]);
}

static int assigns(ipu_graph *graph, void *context, int32_t ninputs,
                   const ipu_tensor *inputs, int32_t noutputs,
                   ipu_tensor *outputs)
{
    ipu_tensor state = *(const ipu_tensor *)context;

    (void)ninputs, (void)noutputs;
    outputs[0] = inputs[0];
    return ipu_assign(graph, state, next_state(graph, state, inputs[0]));
}

static int changes_shape(ipu_graph *graph, void *context, int32_t ninputs,
                         const ipu_tensor *inputs, int32_t noutputs,
                         ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)noutputs;
    outputs[0] = ipu_reduce_sum(graph, inputs[0], 1);
    return 0;
}

static int repeats_while(ipu_graph *graph, void *context, int32_t ninputs,
                         const ipu_tensor *inputs, int32_t noutputs,
                         ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)noutputs;
    return ipu_while(graph, 3, once, keeps, NULL, 1, inputs, NULL, outputs);
}

static int updates(ipu_graph *graph, void *context, int32_t ninputs,
                   const ipu_tensor *inputs, int32_t noutputs,
                   ipu_tensor *outputs)
{
    (void)ninputs, (void)noutputs;
    MUST(ipu_update_begin(graph, 3));
    MUST(ipu_assign(graph, *(const ipu_tensor *)context,
                    ipu_reduce_sum(graph, inputs[0], 1)));
    outputs[0] = inputs[0];
    return ipu_update_end(graph);
}

static int computes_again(ipu_graph *graph, void *context, int32_t ninputs,
                          const ipu_tensor *inputs, int32_t noutputs,
                          ipu_tensor *outputs)
{
    const ipu_tensor state = *(const ipu_tensor *)context;
    ipu_tensor y = ipu_add(graph, inputs[0], state), slope;

    (void)ninputs, (void)noutputs;
    MUST(ipu_allow_recompute(graph, 1));
    for (int i = 0; i < 4; i++)
        y = ipu_tanh(graph, y);
    y = ipu_recomputation_checkpoint(graph, y);
    outputs[0] = ipu_tanh(graph, y);
    MUST(ipu_gradients(graph, ipu_reduce_sum(graph, outputs[0], 1), 1, &state,
                       &slope));
    return ipu_assign(graph, state, slope);
}

/* The context is the number of the refused program. */
static int build_refused(void *context, ipu_graph *graph, int32_t ninputs,
                         const ipu_tensor *inputs, ipu_tensor *outputs)
{
    ipu_tensor x = inputs[1], scalar = ipu_reduce_sum(graph, x, 1);
    ipu_tensor state = ipu_variable(graph, "state", IPU_FLOAT32, 0, NULL);
    ipu_remote_buffer rows;

    (void)ninputs;
    switch (*(const int *)context) {
    case 0:
        MUST(ipu_while(graph, 3, once, keeps, NULL, 1, &x, NULL, &x));
        break;
    case 1:
        ipu_repeat(graph, 3, fed, NULL, 1, &scalar, another, &scalar);
        break;
    case 2: ipu_repeat(graph, 3, enqueues, NULL, 1, &x, NULL, &x); break;
    case 3:
        rows = ipu_remote_buffer_new(graph, "rows", IPU_FLOAT32, 4, 2,
                                     SHAPE(ROWS, WIDTH));
        ipu_repeat(graph, 3, stores, &rows, 1, &x, NULL, &x);
        break;
    case 4: ipu_repeat(graph, 3, changes_shape, NULL, 1, &x, NULL, &x); break;
    case 5:
        x = ipu_add(graph, x, state);
        ipu_repeat(graph, 3, assigns, &state, 1, &x, NULL, &x);
        break;
    case 6: ipu_repeat(graph, 3, repeats_while, NULL, 1, &x, NULL, &x); break;
    case 7: ipu_repeat(graph, 3, updates, &state, 1, &x, NULL, &x); break;
    case 8:
        ipu_repeat(graph, 3, computes_again, &state, 1, &x, NULL, &x);
        break;
    default: ipu_repeat(graph, -1, keeps, NULL, 1, &x, NULL, &x); break;
    }
    outputs[0] = inputs[0];
    outputs[1] = x;
    outputs[2] = inputs[2];
    return 3;
}

#define UNROLLED(thing)                                                        \
    "repeat: its body has " thing ": where derivatives are to pass, as in a "  \
    "stage of a pipeline that trains, a loop's iterations are built one "      \
    "after the other, and that cannot be"

static const struct {
    int status;
    const char *words;
} refusals[] = {
    {IPU_ERR_ARGUMENT, "stage middle has a loop of unknown length"},
    {IPU_ERR_ARGUMENT, UNROLLED("a queue that it dequeues")},
    {IPU_ERR_ARGUMENT, UNROLLED("a queue that it enqueues into")},
    {IPU_ERR_ARGUMENT, UNROLLED("a remote buffer")},
    {IPU_ERR_SHAPE, "repeat: carried value 0 is float32"},
    {IPU_ERR_ARGUMENT, "assigns 'state', which has been used before the loop"},
    {IPU_ERR_ARGUMENT, UNROLLED("a loop of unknown length")},
    {IPU_ERR_ARGUMENT, UNROLLED("an update region")},
    {IPU_ERR_ARGUMENT, UNROLLED("activations that are computed again")},
    {IPU_ERR_ARGUMENT, "-1 iterations"},
};

enum { REFUSALS = sizeof refusals / sizeof *refusals };

LOOP_TEST(what_cannot_be_repeated_is_refused, 0, REFUSALS)
{
    static ipu_stage changed[3];
    struct data other = {0};
    ipu_outfeed_options o;
    int number = _i;

    another = infeed_of(&other, 1);
    ipu_outfeed_options_init(&o, sizeof o);
    o.name = "activations";
    MUST(ipu_outfeed_new(&o, &outfeed));
    three_stages();
    memcpy(changed, options.stages, sizeof changed);
    changed[1].build = build_refused;
    changed[1].context = &number;
    options.stages = changed;
    MUST_FAIL(ipu_pipeline_new(&options, &pipeline), refusals[_i].status,
              refusals[_i].words);
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "stage middle"));
    ck_assert_ptr_null(pipeline);
    finish();
    ipu_infeed_free(another);
    ipu_outfeed_free(outfeed);
}

/* Builds a loop of 0 or 1 iterations, or the same without a loop. */
static int build_few(void *context, ipu_graph *graph, int32_t ninputs,
                     const ipu_tensor *inputs, ipu_tensor *outputs)
{
    struct weights v = weights_of(graph);
    ipu_tensor x = inputs[1];
    int count = *(const int *)context;

    (void)ninputs;
    if (form.loops)
        MUST(ipu_repeat(graph, count, keeps, NULL, 1, &x, NULL, &x));
    else if (count > 0)
        x = ipu_tanh(graph, x);
    x = layer(graph, &v, x);
    outputs[0] = inputs[0];
    outputs[1] = x;
    outputs[2] = inputs[2];
    return 3;
}

LOOP_TEST(few_iterations_are_few, 0, 2)
{
    static ipu_stage changed[3];
    static float values[TRAINED][MOST_WIDTH * MOST_WIDTH];
    int count = _i;

    memset(kept, 0, sizeof kept);
    for (int loops = 0; loops < 2; loops++) {
        begin();
        form = (struct form){.loops = loops};
        three_stages();
        memcpy(changed, options.stages, sizeof changed);
        changed[1].build = build_few;
        changed[1].context = &count;
        options.stages = changed;
        start_loops();
        for (int i = 0; i < 3; i++)
            MUST(ipu_pipeline_run(pipeline));
        read_all(loops ? values : kept);
        finish();
    }
    ck_assert_mem_eq(kept, values, sizeof kept);
}

TEST_MAIN("device_pipeline_loops", .set_up = begin, .seconds = 120)
