/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests one program on several chips: bits are those of one chip, derivatives
 * lie with their tensors, bytes pass between the chips, and a program fits that
 * one chip has no room for.
 */
#include "suite.h"

#include "one_device.h"

enum { BATCH = 16, WIDTH = 64, LAYERS = 6, STEPS = 100 };

enum { SGD, MOMENTUM, ADAM, OPTIMIZERS };

/* Builds tanh layers and one loss. shards: 0 none, 1 by hand (two), else that
 * many automatically. */
static void build(ipu_graph *g, int shards, int64_t width, int kind,
                  ipu_tensor *v, ipu_tensor *slopes)
{
    const ipu_sgd_options momentum = {.size = sizeof momentum, .momentum = 0.9};
    ipu_tensor h = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(BATCH, width)), loss;
    ipu_tensor rate, step;

    for (int i = 0; i < LAYERS; i++) {
        char name[16];

        if (shards == 1)
            MUST(ipu_shard(g, i / (LAYERS / 2)));
        snprintf(name, sizeof name, "w%d", i);
        v[i] = ipu_variable(g, name, IPU_FLOAT32, 2, SHAPE(width, width));
        h = ipu_tanh(g, ipu_matmul(g, h, v[i]));
    }
    loss = ipu_reduce_sum(g, ipu_square(g, h), 1.0 / BATCH);
    if (shards > 1)
        MUST(ipu_shard_automatically(g, shards));
    MUST(ipu_shard(g, -1));
    MUST(ipu_gradients(g, loss, LAYERS, v, slopes));
    rate = ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.01);
    step = ipu_counter(g, "step");
    for (int i = 0; i < LAYERS; i++)
        MUST(kind == ADAM
                 ? ipu_adam(g, v[i], slopes[i], rate, step, NULL)
                 : ipu_sgd(g, v[i], slopes[i], rate, kind ? &momentum : NULL));
    MUST(ipu_output(g, "loss", loss));
}

static float x[BATCH * WIDTH], weights[2][LAYERS][WIDTH * WIDTH];

static void train(struct device *c, float (*w)[WIDTH * WIDTH])
{
    float loss;
    char name[16];

    device_connect(c, "x", x, BATCH * WIDTH);
    device_connect(c, "loss", &loss, 1);
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "w%d", i);
        device_fill(w[i], WIDTH * WIDTH, (uint64_t)i + 1);
        for (int k = 0; k < WIDTH * WIDTH; k++)
            w[i][k] /= 8;
        MUST(ipu_engine_write(c->engine, name, w[i], sizeof w[i]));
    }
    for (int step = 0; step < STEPS; step++) {
        device_fill(x, BATCH * WIDTH, (uint64_t)step + 77);
        MUST(ipu_engine_run(c->engine));
    }
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "w%d", i);
        MUST(ipu_engine_read(c->engine, name, w[i], sizeof w[i]));
    }
}

static ipu_sharding_info sharding(const struct device *c)
{
    ipu_sharding_info info = {.size = sizeof info};
    ipu_system system = {.size = sizeof system};

    MUST(ipu_system_find("M2000", &system));
    MUST(ipu_executable_sharding(c->executable, &system, &info));
    return info;
}

static ipu_shard_info shard(const struct device *c, int number)
{
    ipu_shard_info info = {.size = sizeof info};

    MUST(ipu_executable_shard(c->executable, number, &info));
    return info;
}

/* _i is the optimiser, and chips chosen by hand or a number of chips. */
LOOP_TEST(several_chips_give_the_same_bits, 0, 4 * OPTIMIZERS)
{
    struct device one = device_new();
    ipu_tensor v[LAYERS], slopes[LAYERS];
    ipu_program_cycles cycles = {.size = sizeof cycles};
    int way = 1 + _i / OPTIMIZERS, count = way == 1 ? 2 : way;
    int64_t variables = 0, own = 0;

    build(one.graph, 0, WIDTH, _i % OPTIMIZERS, v, slopes);
    device_load(&one);
    train(&one, weights[0]);
    build(d.graph, way, WIDTH, _i % OPTIMIZERS, v, slopes);
    for (int i = 0; i < LAYERS; i++) {
        if (way == 1)
            ck_assert_int_eq(ipu_tensor_shard(d.graph, v[i]), i / (LAYERS / 2));
        ck_assert_int_eq(ipu_tensor_shard(d.graph, slopes[i]),
                         ipu_tensor_shard(d.graph, v[i]));
    }
    device_load(&d);
    train(&d, weights[1]);
    ck_assert_mem_eq(weights[0], weights[1], sizeof weights[0]);
    ck_assert_int_eq(ipu_executable_shards(one.executable), 1);
    ck_assert_int_eq(ipu_executable_shards(d.executable), count);
    ck_assert_int_eq(sharding(&one).inter_ipu_bytes, 0);
    /* Each cut sends one tensor there and its derivative back. */
    if (way == 1)
        ck_assert_int_eq(sharding(&d).inter_ipu_bytes,
                         (int64_t)2 * BATCH * WIDTH * 4 +
                             (_i % OPTIMIZERS == ADAM ? 4 : 0)); /* step */
    ck_assert_int_gt(sharding(&d).transfers, 0);
    ck_assert_int_gt(sharding(&d).exchange_cycles, 0);
    /* All chips work one after the other. */
    MUST(ipu_executable_cycles(d.executable, &cycles));
    ck_assert_int_eq(sharding(&d).total_cycles,
                     cycles.total + sharding(&d).exchange_cycles);
    for (int s = 0; s < count; s++) {
        own += shard(&d, s).cycles;
        variables += shard(&d, s).variable_bytes;
        ck_assert_int_lt(shard(&d, s).peak_bytes, shard(&one, 0).peak_bytes);
        ck_assert_int_gt(shard(&d, s).steps, 0);
    }
    ck_assert_int_eq(own, cycles.compute + cycles.exchange + cycles.sync);
    ck_assert_int_ge(variables, shard(&one, 0).variable_bytes);
    device_free(&one);
}

/* Weights, momenta and variances of six layers do not fit on a small chip;
 * those of three do. */
TEST(two_chips_have_room_where_one_has_not)
{
    ipu_target small = {.size = sizeof small};
    ipu_tensor v[LAYERS], slopes[LAYERS];
    struct device one = device_new();

    MUST(ipu_target_find("mk2", &small));
    small.tiles = 64;
    small.bytes_per_tile = 256 * 1024;
    build(one.graph, 0, 512, ADAM, v, slopes);
    ck_assert_int_eq(ipu_compile(one.graph, &small, &one.executable),
                     IPU_ERR_FULL);
    build(d.graph, 2, 512, ADAM, v, slopes);
    MUST(ipu_compile(d.graph, &small, &d.executable));
    ck_assert_int_le(shard(&d, 0).tile_bytes, small.bytes_per_tile);
    small.bytes_per_tile = 128 * 1024;
    ipu_executable_free(d.executable);
    d.executable = NULL;
    MUST_FAIL(ipu_compile(d.graph, &small, &d.executable), IPU_ERR_FULL,
              "shard 0 needs");
    device_free(&one);
}

LOOP_TEST(misuse_is_refused, 0, 3)
{
    ipu_tensor v[LAYERS], slopes[LAYERS];
    ipu_shard_info info = {.size = sizeof info};
    ipu_sharding_info all = {.size = sizeof all};
    ipu_system model = {.size = sizeof model};

    MUST(ipu_system_find("model", &model));
    build(d.graph, 1, WIDTH, ADAM, v, slopes);
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    MUST_FAIL(ipu_executable_shard(d.executable, 2, &info), IPU_ERR_ARGUMENT,
              "no shard 2");
    MUST_FAIL(ipu_executable_sharding(d.executable, &model, &all),
              IPU_ERR_STATE, "2 shards, 'model' has 1");
    MUST_FAIL(ipu_executable_sharding(d.executable, NULL, NULL),
              IPU_ERR_ARGUMENT, "sharding: the place for an account is NULL");
    if (_i == 0)
        MUST_FAIL(ipu_shard(d.graph, 256), IPU_ERR_ARGUMENT, "shard 256");
    else if (_i == 1)
        MUST_FAIL(ipu_shard_automatically(d.graph, 2), IPU_ERR_STATE,
                  "gradients already");
    else
        MUST_FAIL(ipu_shard_automatically(d.graph, 0), IPU_ERR_ARGUMENT,
                  "0 shards");
    MUST_FAIL(ipu_shard(NULL, 0), IPU_ERR_ARGUMENT, "shard: the graph is NULL");
}

TEST_MAIN("device_shards", .set_up = one_device_new,
          .tear_down = one_device_free, .seconds = 60)
