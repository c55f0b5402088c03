/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the proportion that limits the part of a tile which a product may take
 * for temporaries. A smaller one gives no more temporary memory and no fewer
 * cycles, for single products and for programs, whose results are the same
 * bits. It can be set in several places, files keep it, reports have it, and
 * wrong ones are refused.
 */
#include "suite.h"

#include <math.h>

#include "one_device.h"

static const double proportions[] = {1e-9, 0.002, 0.01, 0.05, 0.1, 0.2,
                                     0.3,  0.45,  0.6,  0.8,  1};
enum { PROPORTIONS = sizeof proportions / sizeof *proportions };

/* --------------------------------------------------------- single products */

static const ipu_product products[] = {
    {.m = 4096, .k = 4096, .n = 4096},
    {.m = 1000, .k = 7777, .n = 33},
    {.m = 17, .k = 20000, .n = 1000},
    {.batch = 24, .m = 384, .k = 64, .n = 384},
    {.m = 20 * 56 * 56, .k = 64, .n = 64, .kernel = {3, 3}},
    {.m = 8 * 112 * 112, .k = 3, .n = 64, .kernel = {7, 7}, .stride = {2, 2}},
    {.m = 64, .k = 20 * 28 * 28, .n = 128, .kernel = {3, 3}, .of_kernel = 1},
};
enum { PRODUCTS = sizeof products / sizeof *products };

/* _i is product and dtype, of a Mk2 or a Mk1. */
LOOP_TEST(less_takes_no_more_memory_and_no_fewer_cycles, 0, 4 * PRODUCTS)
{
    ipu_target target = {.size = sizeof target};
    ipu_product p = products[_i / 2 % PRODUCTS];
    int64_t last_bytes = -1, last_cycles = INT64_MAX;

    MUST(ipu_target_find(_i / 2 / PRODUCTS ? "mk1" : "mk2", &target));
    p.size = sizeof p;
    p.batch = p.batch ? p.batch : 1;
    p.element_bytes = _i % 2 ? 2 : 4;
    for (int i = 0; i < PROPORTIONS; i++) {
        ipu_cycles cycles = {.size = sizeof cycles};

        p.available_memory_proportion = proportions[i];
        if (ipu_model_product(&target, &p, NULL, &cycles) == IPU_ERR_FULL)
            continue; /* the operands alone fill the chip */
        ck_assert_int_ge(cycles.temporary_bytes, last_bytes);
        ck_assert_int_le(cycles.total, last_cycles);
        last_bytes = cycles.temporary_bytes;
        last_cycles = cycles.total;
    }
}

/* Memory limits the plan here, and the default is 0.6. */
TEST(a_product_keeps_to_its_proportion)
{
    ipu_target target = {.size = sizeof target};
    ipu_product p = products[0];
    ipu_cycles usual = {.size = sizeof usual}, cycles = usual;

    MUST(ipu_target_find("mk2", &target));
    p.size = sizeof p;
    p.batch = 1;
    p.element_bytes = 2;
    MUST(ipu_model_product(&target, &p, NULL, &usual));
    for (int i = 0; i < PROPORTIONS; i++) {
        p.available_memory_proportion = proportions[i];
        MUST(ipu_model_product(&target, &p, NULL, &cycles));
        if (proportions[i] >= 0.3) /* sums alone take a sixth of a tile */
            ck_assert_double_le((double)cycles.temporary_bytes,
                                proportions[i] * (double)target.bytes_per_tile);
        if (proportions[i] == 0.6)
            ck_assert_int_eq(cycles.total, usual.total);
    }
    p.available_memory_proportion = 0.05;
    MUST(ipu_model_product(&target, &p, NULL, &cycles));
    ck_assert_int_lt(cycles.temporary_bytes, usual.temporary_bytes);
    ck_assert_int_gt(cycles.total, usual.total);
}

/* ---------------------------------------------------------------- programs */

enum { BATCH = 32, SIDE = 12, CHANNELS = 8, WIDTH = 512, CLASSES = 10 };

/* Builds a convolution and two products with their derivatives and an update.
 * The first product has the proportion `own`, if that is more than 0. */
static void build(ipu_graph *g, double own)
{
    ipu_tensor x =
        ipu_input(g, "x", IPU_FLOAT32, 4, SHAPE(BATCH, SIDE, SIDE, 4));
    ipu_tensor t = ipu_input(g, "t", IPU_INT32, 1, SHAPE(BATCH)), loss, v[3],
               s[3];
    const int64_t flat = SIDE * SIDE * CHANNELS;

    v[0] = ipu_variable(g, "k", IPU_FLOAT32, 4, SHAPE(3, 3, 4, CHANNELS));
    v[1] = ipu_variable(g, "w", IPU_FLOAT32, 2, SHAPE(flat, WIDTH));
    v[2] = ipu_variable(g, "o", IPU_FLOAT32, 2, SHAPE(WIDTH, CLASSES));
    x = ipu_conv2d(g, x, v[0],
                   &(ipu_conv_options){.size = sizeof(ipu_conv_options),
                                       .stride = {1, 1},
                                       .same = 1});
    x = ipu_reshape(g, ipu_relu(g, x), 2, SHAPE(BATCH, flat));
    if (own > 0)
        MUST(ipu_available_memory_proportion(g, own));
    x = ipu_tanh(g, ipu_matmul(g, x, v[1]));
    MUST(ipu_available_memory_proportion(g, 0));
    loss = ipu_reduce_sum(
        g, ipu_softmax_cross_entropy(g, ipu_matmul(g, x, v[2]), t), 1);
    MUST(ipu_gradients(g, loss, 3, v, s));
    for (int i = 0; i < 3; i++)
        MUST(ipu_sgd(g, v[i], s[i], ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.01),
                     NULL));
    MUST(ipu_output(g, "loss", loss));
}

static void compile(double all, double matmul, double convolution)
{
    ipu_target small = {.size = sizeof small};
    ipu_compile_options o = {.size = sizeof o,
                             .target = &small,
                             .allow_out_of_memory = 1,
                             .available_memory_proportion = all,
                             .matmul_memory_proportion = matmul,
                             .convolution_memory_proportion = convolution};

    MUST(ipu_target_find("mk2", &small));
    small.tiles = 32; /* memory shall limit the products */
    small.bytes_per_tile = 512 << 10;
    MUST(ipu_compile_with(d.graph, &o, &d.executable));
}

static int steps(void)
{
    return device_memory(&d).steps;
}

/* The number that steps of an op have; -1: not the same. */
static double proportion_of(const char *op)
{
    double found = 0;

    for (int i = 0; i < steps(); i++) {
        ipu_step_info s = device_step(&d, i);
        const char *what = s.parts ? s.parts : s.op;

        if (strncmp(what, op, strlen(op)) != 0)
            continue;
        if (found != 0 && s.available_memory_proportion != found)
            return -1;
        found = s.available_memory_proportion;
    }
    return found;
}

TEST(programs_take_less_and_compute_the_same)
{
    static float x[BATCH * SIDE * SIDE * 4], w[SIDE * SIDE * CHANNELS * WIDTH];
    static float k[9 * 4 * CHANNELS], o[WIDTH * CLASSES],
        first[9 * 4 * CHANNELS];
    int32_t t[BATCH];
    float loss, first_loss = 0;
    int64_t bytes[32], cycles[32], total = INT64_MAX;
    int less = 0;

    build(d.graph, 0);
    for (int p = 0; p < PROPORTIONS; p++) {
        compile(proportions[p], 0, 0);
        ck_assert_int_lt(steps(), 32);
        ck_assert_int_le(device_cycles(&d).total, total);
        total = device_cycles(&d).total;
        for (int i = 0; i < steps(); i++) {
            ipu_step_info s = device_step(&d, i);

            if (s.available_memory_proportion == 0)
                continue;
            ck_assert_double_eq(s.available_memory_proportion, proportions[p]);
            if (p > 0) {
                ck_assert_int_ge(s.temporary_bytes, bytes[i]);
                ck_assert_int_le(s.total_cycles, cycles[i]);
                less +=
                    s.total_cycles < cycles[i] && s.temporary_bytes > bytes[i];
            }
            bytes[i] = s.temporary_bytes;
            cycles[i] = s.total_cycles;
        }
        MUST(ipu_engine_new(d.executable, &d.engine));
        device_fill(x, BATCH * SIDE * SIDE * 4, 1);
        device_fill(k, 9 * 4 * CHANNELS, 2);
        device_fill(w, SIDE * SIDE * CHANNELS * WIDTH, 3);
        device_fill(o, WIDTH * CLASSES, 4);
        for (int i = 0; i < BATCH; i++)
            t[i] = i % CLASSES;
        MUST(ipu_engine_write(d.engine, "k", k, sizeof k));
        MUST(ipu_engine_write(d.engine, "w", w, sizeof w));
        MUST(ipu_engine_write(d.engine, "o", o, sizeof o));
        device_connect(&d, "x", x, BATCH * SIDE * SIDE * 4);
        device_connect(&d, "t", t, BATCH);
        device_connect(&d, "loss", &loss, 1);
        for (int i = 0; i < 3; i++)
            MUST(ipu_engine_run(d.engine));
        MUST(ipu_engine_read(d.engine, "k", k, sizeof k));
        if (p == 0) {
            first_loss = loss;
            memcpy(first, k, sizeof k);
        }
        ck_assert_mem_eq(&loss, &first_loss, sizeof loss);
        ck_assert_mem_eq(k, first, sizeof k);
        ipu_engine_free(d.engine);
        ipu_executable_free(d.executable);
        d.engine = NULL;
        d.executable = NULL;
    }
    ck_assert_int_ge(less, 3); /* the knob does something */
}

/* A product's own proportion counts first, then that of its kind, then that of
 * all, then 0.6. */
LOOP_TEST(the_nearest_word_counts, 0, 2)
{
    build(d.graph, _i ? 0.07 : 0);
    compile(0.3, 0, 0.2);
    ck_assert_double_eq(proportion_of("conv2d"), 0.2);
    /* Derivatives are as their products. */
    ck_assert_double_eq(proportion_of("matmul"), _i ? -1 : 0.3);
    ck_assert_int_eq(strstr(device_program(&d), "of 0.07 of a tile") != NULL,
                     _i);
    ck_assert_ptr_nonnull(strstr(device_program(&d), "of 0.2 of a tile"));
    ipu_executable_free(d.executable);
    compile(0, 0.5, 0);
    ck_assert_double_eq(proportion_of("conv2d"), 0.6);
    ck_assert_double_eq(proportion_of("matmul"), _i ? -1 : 0.5);
    if (_i) {
        int own = 0;

        for (int i = 0; i < steps(); i++)
            own += device_step(&d, i).available_memory_proportion == 0.07;
        ck_assert_int_eq(own, 3); /* there, and twice back */
    }
}

/* The product is in a loop's body. */
static int square(ipu_graph *g, void *context, int32_t ninputs,
                  const ipu_tensor *inputs, int32_t noutputs,
                  ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)noutputs;
    outputs[0] = ipu_matmul(g, inputs[0], inputs[0]);
    return 0;
}

LOOP_TEST(bodies_have_what_their_loops_have, 0, 2)
{
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(64, 64)), y;
    const ipu_executable *body = NULL;
    ipu_step_info step = {.size = sizeof step};

    MUST(ipu_available_memory_proportion(d.graph, _i ? 0.11 : 0));
    MUST(ipu_repeat(d.graph, 3, square, NULL, 1, &x, NULL, &y));
    MUST(ipu_output(d.graph, "y", y));
    compile(0.22, 0, 0);
    for (int i = 0; i < steps() && !body; i++)
        MUST(ipu_executable_body(d.executable, i, &body, NULL));
    MUST(ipu_executable_step(body, 0, &step));
    ck_assert_double_eq(step.available_memory_proportion, _i ? 0.11 : 0.22);
}

TEST(files_keep_it)
{
    const char *path = device_file("");
    char told[16384];

    build(d.graph, 0.07);
    MUST(ipu_graph_save(d.graph, path));
    ipu_graph_free(d.graph);
    d.graph = NULL;
    MUST(ipu_graph_load(path, &d.graph));
    compile(0.3, 0, 0.2);
    snprintf(told, sizeof told, "%s", device_program(&d));
    ck_assert_ptr_nonnull(strstr(told, "of 0.07 of a tile"));
    MUST(ipu_executable_save(d.executable, path));
    ipu_executable_free(d.executable);
    d.executable = NULL;
    MUST(ipu_executable_load(path, &d.executable));
    ck_assert_str_eq(device_program(&d), told);
    ck_assert_double_eq(proportion_of("conv2d"), 0.2);
    unlink(path);
}

TEST(reports_tell_it)
{
    static const char *const words[] = {
        [IPU_PROFILE_TEXT] = "available to a product: 0.07 of a tile to 0.3",
        [IPU_PROFILE_JSON] = "\"available_memory_proportion\""};
    ipu_profile *profile = NULL;

    build(d.graph, 0.07);
    compile(0.3, 0, 0.2);
    MUST(ipu_profile_new("proportions", &profile));
    MUST(ipu_profile_add(profile, "program", 0, d.executable, NULL));
    for (int format = IPU_PROFILE_TEXT; format <= IPU_PROFILE_JSON; format++) {
        char *text = NULL;

        MUST(ipu_profile_print(profile, format, &text));
        ck_assert_ptr_nonnull(strstr(text, words[format]));
        free(text);
    }
    ipu_profile_free(profile);
}

/* ---------------------------------------------------------------- the rest */

TEST(configurations_have_it)
{
    ipu_config *config = NULL;
    ipu_compile_options o = {.size = sizeof o, .brief = 1};
    const char *path =
        device_file("{\"convolutions\": {\"poplar_options\": "
                    "{\"availableMemoryProportion\": \"0.25\"}}}");

    MUST(ipu_config_new(&config));
    MUST(ipu_config_compile_options(config, &o));
    ck_assert_double_eq(o.matmul_memory_proportion, 0.6);
    MUST(ipu_config_load(config, path));
    MUST(ipu_config_set(
        config, "matmuls.poplar_options.availableMemoryProportion", "0.1"));
    MUST(ipu_config_compile_options(config, &o));
    ck_assert_double_eq(o.matmul_memory_proportion, 0.1);
    ck_assert_double_eq(o.convolution_memory_proportion, 0.25);
    ck_assert_int_eq(o.brief, 1);
    MUST(ipu_config_set(
        config, "matmuls.poplar_options.availableMemoryProportion", "1.5"));
    MUST_FAIL(ipu_config_compile_options(config, &o), IPU_ERR_ARGUMENT,
              "matmuls.poplar_options.availableMemoryProportion: 1.5 of a "
              "tile's memory");
    MUST_FAIL(ipu_config_set(config,
                             "matmuls.poplar_options.availableMemoryProportion",
                             "much"),
              IPU_ERR_ARGUMENT, "it must be a number");
    ipu_config_free(config);
    unlink(path);
}

LOOP_TEST(what_it_cannot_be_is_refused, 0, 5)
{
    static const double wrong[] = {-0.1, 1.0001, 60, NAN, INFINITY};
    ipu_compile_options o = {.size = sizeof o};
    ipu_target mk2 = {.size = sizeof mk2};
    ipu_product p = products[0];
    ipu_cycles cycles = {.size = sizeof cycles};
    ipu_remedy remedy = {.size = sizeof remedy};

    MUST(ipu_target_find("mk2", &mk2));
    p.size = sizeof p;
    p.batch = 1;
    p.element_bytes = 4;
    p.available_memory_proportion = wrong[_i];
    MUST_FAIL(ipu_model_product(&mk2, &p, NULL, &cycles), IPU_ERR_ARGUMENT,
              "it must be more than 0 and at most 1, or 0 for 0.6");
    build(d.graph, 0);
    o.available_memory_proportion = wrong[_i];
    MUST_FAIL(ipu_compile_with(d.graph, &o, &d.executable), IPU_ERR_ARGUMENT,
              "available_memory_proportion: ");
    o.available_memory_proportion = 0;
    o.convolution_memory_proportion = wrong[_i];
    MUST_FAIL(ipu_compile_with(d.graph, &o, &d.executable), IPU_ERR_ARGUMENT,
              "convolution_memory_proportion: ");
    MUST_FAIL(ipu_remedy_try(d.graph, &o, IPU_REMEDY_HALF, 0, &remedy),
              IPU_ERR_ARGUMENT, "convolution_memory_proportion: ");
    MUST_FAIL(ipu_available_memory_proportion(d.graph, wrong[_i]),
              IPU_ERR_ARGUMENT, "available memory proportion: ");
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable), IPU_ERR_ARGUMENT,
              "available memory proportion: ");
    MUST_FAIL(ipu_available_memory_proportion(NULL, 0.1), IPU_ERR_ARGUMENT,
              "the graph is NULL");
}

TEST_MAIN("device_proportion", .set_up = one_device_new,
          .tear_down = one_device_free, .seconds = 60)
