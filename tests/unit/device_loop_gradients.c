/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derivatives through loops, against central differences, and against the same
 * iterations written out one after the other: carried values, what a body uses
 * from around it, sequences that it reads and writes, loops in loops. Kept
 * activations are counted, and what has no derivative is refused.
 */
#include <stdbool.h>

#include "suite.h"

#include "differences.h"
#include "feeds.h"

enum { ROWS = 3, WIDTH = 4, MOST_STEPS = 7 };

/* ---------------------------------------------------------- a small network */

/* What an iteration does; a test sets it. */
static struct form {
    int steps;
    bool sequence; /* reads a row of inputs, and writes one of outputs */
    bool unrolled;
    bool nested; /* another loop around the recurrence, of two iterations */
    bool recompute;
    bool half;
} form;

/* What it uses. */
static struct {
    ipu_tensor w, u, x;
} used;

static ipu_tensor one(ipu_graph *g)
{
    return device_scalar(g, IPU_INT32, 1);
}

/* h = tanh(h w + row of x) * u */
static ipu_tensor recur(ipu_graph *g, ipu_tensor h, ipu_tensor row)
{
    h = ipu_tanh(g, ipu_add(g, ipu_matmul(g, h, used.w), row));
    return ipu_multiply(g, h, used.u);
}

static int again(ipu_graph *g, void *context, int32_t ninputs,
                 const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const ipu_tensor *row = context;

    (void)ninputs, (void)noutputs;
    out[0] = recur(g, in[0], *row);
    return 0;
}

/* One iteration: the number of the step, h, and the outputs so far. */
static void step(ipu_graph *g, ipu_tensor *v)
{
    ipu_tensor row = form.sequence ? ipu_gather(g, used.x, v[0], 1) : used.x;

    if (!form.nested)
        v[1] = recur(g, v[1], row);
    else if (form.unrolled)
        v[1] = recur(g, recur(g, v[1], row), row);
    else
        MUST(ipu_repeat(g, 2, again, &row, 1, &v[1], NULL, &v[1]));
    if (form.sequence)
        v[2] = ipu_dynamic_update(g, v[2], v[0], v[1], 1);
    v[0] = ipu_add(g, v[0], one(g));
}

static int body(ipu_graph *g, void *context, int32_t ninputs,
                const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context;
    ck_assert_int_eq(ninputs, noutputs);
    memcpy(out, in, (size_t)ninputs * sizeof *in);
    step(g, out);
    return 0;
}

static ipu_dtype dtype(void)
{
    return form.half ? IPU_FLOAT16 : IPU_FLOAT32;
}

/* Builds the loop on variables; returns what the loss is made of: the sequence
 * of outputs, or the last h. */
static ipu_tensor build(ipu_tensor h, ipu_tensor w, ipu_tensor u, ipu_tensor x)
{
    ipu_graph *g = d.graph;
    ipu_tensor v[3] = {device_scalar(g, IPU_INT32, 0), h};

    used.w = w;
    used.u = u;
    used.x = x;
    v[2] = ipu_fill(g, dtype(), form.sequence ? 3 : 0,
                    SHAPE(ROWS, form.steps, WIDTH), 0);
    ipu_allow_recompute(g, form.recompute);
    if (form.unrolled)
        for (int i = 0; i < form.steps; i++)
            step(g, v);
    else
        MUST(ipu_repeat(g, form.steps, body, NULL, 3, v, NULL, v));
    return form.sequence ? v[2] : v[1];
}

static ipu_tensor build_on_variables(void)
{
    ipu_tensor v[4];

    spread = 0.7f;
    for (int i = 0; i < 4; i++) {
        if (i == 3 && form.sequence)
            v[i] = variable(3, SHAPE(ROWS, form.steps, WIDTH));
        else
            v[i] = variable(2, SHAPE(i == 1 ? WIDTH : ROWS, WIDTH));
        if (form.half)
            v[i] = ipu_cast(d.graph, v[i], IPU_FLOAT16);
    }
    return build(v[0], v[1], v[2], v[3]);
}

static const int lengths[] = {1, 2, 3, MOST_STEPS};

LOOP_TEST(carried_values_against_differences, 0, 4)
{
    form = (struct form){.steps = lengths[_i]};
    check_gradients(build_on_variables());
}

LOOP_TEST(sequences_against_differences, 0, 4)
{
    form = (struct form){.steps = lengths[_i], .sequence = true};
    check_gradients(build_on_variables());
}

LOOP_TEST(loops_in_loops_against_differences, 0, 4)
{
    form =
        (struct form){.steps = lengths[_i], .sequence = true, .nested = true};
    check_gradients(build_on_variables());
}

/* --------------------------------------------------------- written out */

/* Values of variables, and their derivatives after a run. */
struct outcome {
    float gradients[4][MOST];
    int64_t counts[4], peak_bytes;
};

/* Runs the network of form, and differentiates its sum of squares. */
static struct outcome run_form(void)
{
    static struct outcome o;
    ipu_tensor gradients[4], y;
    char name[16];

    memset(&o, 0, sizeof o);
    tear_down();
    set_up();
    y = build_on_variables();
    if (form.half)
        y = ipu_cast(d.graph, y, IPU_FLOAT32);
    y = ipu_reduce_sum(d.graph, ipu_square(d.graph, y), 1);
    MUST(ipu_gradients(d.graph, y, 4, variables, gradients));
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "d%d", i);
        MUST(ipu_output(d.graph, name, gradients[i]));
        o.counts[i] = device_count(&d, variables[i]);
    }
    device_load(&d);
    for (int i = 0; i < 4; i++) {
        float values[MOST];

        snprintf(name, sizeof name, "d%d", i);
        device_connect(&d, name, o.gradients[i], o.counts[i]);
        device_fill(values, o.counts[i], (uint64_t)i + 1);
        MUST(ipu_engine_write(d.engine, names[i], values,
                              (size_t)o.counts[i] * 4));
    }
    MUST(ipu_engine_run(d.engine));
    o.peak_bytes = device_memory(&d).peak_bytes;
    return o;
}

static void check_close(const struct outcome *a, const struct outcome *b,
                        float tolerance)
{
    for (int v = 0; v < 4; v++) {
        float largest = 0;

        ck_assert_int_eq(a->counts[v], b->counts[v]);
        for (int64_t i = 0; i < a->counts[v]; i++)
            largest = fmaxf(largest, fabsf(b->gradients[v][i]));
        ck_assert_float_gt(largest, 1e-4f);
        for (int64_t i = 0; i < a->counts[v]; i++)
            ck_assert_float_le(fabsf(a->gradients[v][i] - b->gradients[v][i]),
                               tolerance * largest);
    }
}

/* Bits 0 to 2: a sequence, a loop in the loop, recomputation. */
LOOP_TEST(like_the_iterations_written_out, 0, 8)
{
    struct outcome loop, out;

    form = (struct form){
        .steps = 5, .sequence = _i & 1, .nested = _i & 2, .recompute = _i & 4};
    loop = run_form();
    ck_assert_ptr_nonnull(strstr(device_program(&d), "repeat 5 times"));
    form.unrolled = true;
    form.recompute = false;
    out = run_form();
    ck_assert_ptr_null(strstr(device_program(&d), "repeat"));
    check_close(&loop, &out, 2e-6f);
}

LOOP_TEST(halves, 0, 2)
{
    struct outcome loop, out;

    form = (struct form){.steps = 3, .sequence = _i, .half = true};
    loop = run_form();
    form.half = false;
    out = run_form();
    check_close(&loop, &out, 2e-2f);
}

/* An iteration keeps h and tanh, and with recomputation h alone. */
TEST(what_is_kept_is_counted)
{
    enum { STACK = ROWS * WIDTH * (int)sizeof(float) };
    int64_t few, many;

    form = (struct form){.steps = 10};
    few = run_form().peak_bytes;
    form.steps = 30;
    many = run_form().peak_bytes;
    ck_assert_int_eq(many - few, 20 * 2 * STACK);
    ck_assert_ptr_nonnull(strstr(device_program(&d), "tanh:2 kept"));
    form.recompute = true;
    ck_assert_int_eq(many - run_form().peak_bytes, 30 * STACK);
    ck_assert_ptr_null(strstr(device_program(&d), "tanh:2 kept"));
}

/* A row is written where it belongs: nothing copies a whole sequence. */
TEST(iterations_take_the_same_cycles)
{
    int64_t cycles[3], steps[3] = {20, 200, 2000};

    for (int i = 0; i < 3; i++) {
        ipu_tensor w, x, dw, y;

        tear_down();
        set_up();
        form = (struct form){.steps = (int)steps[i], .sequence = true};
        w = variable(2, SHAPE(WIDTH, WIDTH));
        x = device_floats(&d, "x", 3, SHAPE(ROWS, form.steps, WIDTH));
        y = build(ipu_fill(d.graph, IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH), 0), w,
                  ipu_fill(d.graph, IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH), 1), x);
        MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, y, 1), 1, &w, &dw));
        MUST(ipu_output(d.graph, "dw", dw));
        device_load(&d);
        cycles[i] = device_cycles(&d).total;
    }
    /* What is done once for the whole sequence takes at least as long for a
     * short one, by element. */
    ck_assert_int_lt(cycles[1] - cycles[0], 10 * cycles[0]);
    ck_assert_int_lt(cycles[2] - cycles[1], 11 * (cycles[1] - cycles[0]));
}

/* ------------------------------------------------- what loops can contain */

/* Values become each other; one stays; one is not used. */
static int mix(ipu_graph *g, void *context, int32_t ninputs,
               const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)noutputs;
    out[0] = in[1];
    out[1] = ipu_multiply(g, ipu_tanh(g, in[0]), in[2]);
    out[2] = in[2];
    out[3] = ipu_scale(g, in[1], 0.5, 0);
    return 0;
}

LOOP_TEST(values_that_stay_move_and_end, 0, 5)
{
    ipu_tensor v[4];

    for (int i = 0; i < 4; i++)
        v[i] = variable(1, SHAPE(3));
    MUST(ipu_repeat(d.graph, _i, mix, NULL, 4, v, NULL, v));
    check_gradients(ipu_add(d.graph, ipu_multiply(d.graph, v[0], v[1]),
                            ipu_add(d.graph, v[2], v[3])));
}

/* The body has tensors of as many dimensions as there may be. */
static int many_dimensions(ipu_graph *g, void *context, int32_t ninputs,
                           const ipu_tensor *in, int32_t noutputs,
                           ipu_tensor *out)
{
    int64_t shape[IPU_MAX_DIMS] = {2, 3};

    (void)context, (void)ninputs, (void)noutputs;
    for (int i = 2; i < IPU_MAX_DIMS; i++)
        shape[i] = 1;
    out[0] = ipu_reshape(
        g,
        ipu_tanh(g, ipu_square(g, ipu_reshape(g, in[0], IPU_MAX_DIMS, shape))),
        1, SHAPE(6));
    return 0;
}

TEST(rows_of_most_dimensions)
{
    ipu_tensor v = variable(1, SHAPE(6));

    MUST(ipu_repeat(d.graph, 3, many_dimensions, NULL, 1, &v, NULL, &v));
    check_gradients(v);
}

/* Both losses depend on the same loop. */
TEST(two_losses)
{
    ipu_tensor y, twice[2], dx[2];
    float got[2][ROWS * WIDTH];

    form = (struct form){.steps = 4};
    y = build_on_variables();
    twice[0] = ipu_reduce_sum(d.graph, y, 1);
    twice[1] = ipu_reduce_sum(d.graph, y, 3);
    MUST(ipu_gradients(d.graph, twice[0], 1, &variables[0], &dx[0]));
    MUST(ipu_gradients(d.graph, twice[1], 1, &variables[0], &dx[1]));
    MUST(ipu_output(d.graph, "first", dx[0]));
    MUST(ipu_output(d.graph, "second", dx[1]));
    device_load(&d);
    device_connect(&d, "first", got[0], ROWS * WIDTH);
    device_connect(&d, "second", got[1], ROWS * WIDTH);
    for (int i = 0; i < 4; i++) {
        float values[ROWS * WIDTH + WIDTH * WIDTH];
        int64_t n = device_count(&d, variables[i]);

        device_fill(values, n, (uint64_t)i);
        MUST(ipu_engine_write(d.engine, names[i], values, (size_t)n * 4));
    }
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < ROWS * WIDTH; i++) {
        ck_assert_float_ne(got[0][i], 0);
        ck_assert_float_eq_tol(got[1][i], 3 * got[0][i], 1e-5f);
    }
}

/* Training in a loop, of a recurrence that is a loop in its body. */
static int train(ipu_graph *g, void *context, int32_t ninputs,
                 const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    ipu_tensor v[2] = {device_scalar(g, IPU_INT32, 0)}, dw;

    (void)context, (void)ninputs, (void)noutputs, (void)in, (void)out;
    v[1] = ipu_fill(g, IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH), 0.5);
    form = (struct form){.steps = 3};
    MUST(ipu_repeat(g, form.steps, body, NULL, 2, v, NULL, v));
    MUST(ipu_gradients(g, ipu_reduce_sum(g, ipu_square(g, v[1]), 1), 1, &used.w,
                       &dw));
    return ipu_assign(g, used.w,
                      ipu_subtract(g, used.w, ipu_scale(g, dw, 0.01, 0)));
}

LOOP_TEST(in_a_training_loop, 0, 2)
{
    static float got[2][WIDTH * WIDTH];
    float begin[WIDTH * WIDTH];

    device_fill(begin, WIDTH * WIDTH, 5);
    for (int way = 0; way < 2; way++) {
        tear_down();
        set_up();
        used.w = variable(2, SHAPE(WIDTH, WIDTH));
        used.u = ipu_fill(d.graph, IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH), 0.9);
        used.x = ipu_fill(d.graph, IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH), 0.1);
        if (way == 0)
            MUST(train(d.graph, NULL, 0, NULL, 0, NULL));
        else
            MUST(ipu_repeat(d.graph, 6, train, NULL, 0, NULL, NULL, NULL));
        device_load(&d);
        MUST(ipu_engine_write(d.engine, "v0", begin, sizeof begin));
        for (int run = 0; run < (way == 0 ? 6 : 1); run++)
            MUST(ipu_engine_run(d.engine));
        MUST(ipu_engine_read(d.engine, "v0", got[way], sizeof got[way]));
    }
    ck_assert_mem_ne(got[0], begin, sizeof begin);
    ck_assert_mem_eq(got[0], got[1], sizeof got[0]);
}

/* --------------------------------------------------- what iterations draw */

/* y = y (w dropped out by a counter of the body) */
static int drop(ipu_graph *g, void *context, int32_t ninputs,
                const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)noutputs;
    out[0] = ipu_multiply(
        g, in[0], ipu_dropout(g, used.w, 0.5, 11, ipu_counter(g, "draws")));
    return 0;
}

/* The elements that stay in all three iterations are 8 w^3, of slope 24 w^2. */
TEST(dropout_by_a_counter_of_the_body)
{
    enum { COUNT = 400 };
    float dw[COUNT], w[COUNT], y[COUNT];
    ipu_tensor v = ipu_fill(d.graph, IPU_FLOAT32, 1, SHAPE(COUNT), 1), slope;
    int stay = 0;

    used.w = variable(1, SHAPE(COUNT));
    MUST(ipu_repeat(d.graph, 3, drop, NULL, 1, &v, NULL, &v));
    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, v, 1), 1, &used.w,
                       &slope));
    MUST(ipu_output(d.graph, "y", v));
    MUST(ipu_output(d.graph, "dw", slope));
    device_load(&d);
    device_connect(&d, "y", y, COUNT);
    device_connect(&d, "dw", dw, COUNT);
    for (int i = 0; i < COUNT; i++)
        w[i] = 0.5f + (float)i / COUNT;
    MUST(ipu_engine_write(d.engine, "v0", w, sizeof w));
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < COUNT; i++) {
        stay += y[i] != 0;
        if (y[i] != 0)
            ck_assert_float_eq_tol(y[i], 8 * w[i] * w[i] * w[i], 1e-4f);
        ck_assert_float_eq_tol(dw[i], y[i] != 0 ? 24 * w[i] * w[i] : 0, 1e-3f);
    }
    /* One eighth of them, if each iteration draws anew; a fourth or a half if
     * not. */
    ck_assert_int_gt(stay, 20);
    ck_assert_int_lt(stay, 90);
}

/* y = y + w * (element of the queue) */
static int feed(ipu_graph *g, void *context, int32_t ninputs,
                const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)noutputs;
    ck_assert_int_eq(ninputs, 2);
    out[0] = ipu_add(g, in[0], ipu_multiply(g, used.w, in[1]));
    return 0;
}

TEST(elements_of_queues_are_kept)
{
    struct source source = source_of(1, 0.5f);
    ipu_infeed *infeed = infeed_of(&source, 1, 3);
    ipu_tensor v = ipu_fill(d.graph, IPU_FLOAT32, 1, SHAPE(3), 0), slope;
    float dw[3];

    used.w = variable(1, SHAPE(3));
    MUST(ipu_repeat(d.graph, 4, feed, NULL, 1, &v, infeed, &v));
    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, v, 1), 1, &used.w,
                       &slope));
    MUST(ipu_output(d.graph, "dw", slope));
    device_load(&d);
    device_connect(&d, "dw", dw, 3);
    MUST(ipu_infeed_start(infeed));
    for (int run = 0; run < 2; run++) {
        MUST(ipu_engine_run(d.engine));
        for (int i = 0; i < 3; i++) /* 1 + 1.5 + 2 + 2.5, and 2 more each */
            ck_assert_float_eq(dw[i], run ? 15 : 7);
    }
    ipu_engine_free(d.engine);
    ipu_executable_free(d.executable);
    d.engine = NULL;
    d.executable = NULL;
    ipu_infeed_free(infeed);
}

/* ---------------------------------------------------------------- in files */

LOOP_TEST(in_files, 0, 2)
{
    struct outcome before, after;
    const char *path = device_file("");
    ipu_graph *graph = NULL;

    form = (struct form){.steps = 5, .sequence = true, .nested = true};
    before = run_form();
    after = before;
    memset(after.gradients, 0, sizeof after.gradients);
    if (_i)
        MUST(ipu_graph_save(d.graph, path));
    else
        MUST(ipu_executable_save(d.executable, path));
    tear_down();
    d = (struct device){0};
    if (_i) {
        MUST(ipu_graph_load(path, &graph));
        d.graph = graph;
        MUST(ipu_compile(graph, NULL, &d.executable));
    } else {
        MUST(ipu_executable_load(path, &d.executable));
    }
    unlink(path);
    MUST(ipu_engine_new(d.executable, &d.engine));
    for (int i = 0; i < 4; i++) {
        float values[MOST];
        char name[16];

        snprintf(name, sizeof name, "d%d", i);
        device_connect(&d, name, after.gradients[i], after.counts[i]);
        device_fill(values, after.counts[i], (uint64_t)i + 1);
        MUST(ipu_engine_write(d.engine, names[i], values,
                              (size_t)after.counts[i] * 4));
    }
    MUST(ipu_engine_run(d.engine));
    ck_assert_mem_eq(before.gradients, after.gradients,
                     sizeof before.gradients);
}

/* ----------------------------------------------------------------- refusals */

static int goes_on(ipu_graph *g, void *context, int32_t ninputs,
                   const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)noutputs;
    out[0] = ipu_less(g, in[0], device_scalar(g, IPU_INT32, 3));
    return 0;
}

static int changes(ipu_graph *g, void *context, int32_t ninputs,
                   const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const bool *reads = context;

    (void)ninputs, (void)noutputs;
    out[0] = *reads ? ipu_multiply(g, in[0], used.w) : in[0];
    return ipu_assign(g, used.w, ipu_multiply(g, used.w, used.u));
}

LOOP_TEST(refusals, 0, 3)
{
    static const char *const why[] = {
        "the loss depends on while:0/1, which is made by a loop with a "
        "condition: only ipu_repeat has gradients",
        "the loss depends on v0 as each iteration of a loop finds it, and the "
        "loop changes it: carry it instead",
        "the loss depends on v0 as a loop has left it: carry it instead",
    };
    ipu_tensor v[3] = {device_scalar(d.graph, IPU_INT32, 0)}, slope, loss;
    bool reads = _i == 1;

    form = (struct form){.steps = 3};
    used.w = variable(2, SHAPE(WIDTH, WIDTH));
    used.u = variable(2, SHAPE(WIDTH, WIDTH));
    used.x = variable(2, SHAPE(WIDTH, WIDTH));
    v[1] = variable(2, SHAPE(WIDTH, WIDTH));
    v[2] = ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, 0);
    if (_i == 0)
        MUST(ipu_while(d.graph, 0, goes_on, body, NULL, 2, v, NULL, v));
    else
        MUST(ipu_repeat(d.graph, 3, changes, &reads, 1, v + 1, NULL, v + 1));
    loss = ipu_reduce_sum(d.graph, _i < 2 ? v[1] : used.w, 1);
    MUST_FAIL(ipu_gradients(d.graph, loss, 1, &used.u, &slope),
              IPU_ERR_ARGUMENT, why[_i]);
}

TEST_MAIN("device_loop_gradients", .set_up = set_up, .tear_down = tear_down)
