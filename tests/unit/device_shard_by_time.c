/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests ipu_shard_by_time: no other way to cut a chain in two or three has a
 * shorter slowest chip, among those that fit; with derivatives, too.
 */
#include <stdbool.h>

#include "suite.h"

#include "one_device.h"

enum { BATCH = 32, WIDTH = 96, LAYERS = 6, UNITS = 14 };

/* Each layer has one weight and is applied so many times, which is the time
 * that it takes. */
static const int times[LAYERS] = {1, 1, 7, 2, 1, 2};

/* Builds the chain. from: the first unit of chips 1 and 2, or UNITS; NULL: it
 * is not spread. */
static void build(ipu_graph *g, const int *from, bool trains)
{
    ipu_tensor h = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(BATCH, WIDTH));
    ipu_tensor w[LAYERS], slopes[LAYERS], loss;

    for (int i = 0, unit = 0; i < LAYERS; i++)
        for (int k = 0; k < times[i]; k++, unit++) {
            char name[16];

            if (from)
                MUST(ipu_shard(g, (unit >= from[0]) + (unit >= from[1])));
            snprintf(name, sizeof name, "w%d", i);
            if (k == 0)
                w[i] =
                    ipu_variable(g, name, IPU_FLOAT32, 2, SHAPE(WIDTH, WIDTH));
            h = ipu_tanh(g, ipu_matmul(g, h, w[i]));
        }
    if (!trains) {
        MUST(ipu_output(g, "y", h));
        return;
    }
    loss = ipu_reduce_sum(g, ipu_square(g, h), 1.0 / BATCH);
    if (from)
        MUST(ipu_shard(g, -1));
    MUST(ipu_gradients(g, loss, LAYERS, w, slopes));
    for (int i = 0; i < LAYERS; i++)
        MUST(ipu_sgd(g, w[i], slopes[i],
                     ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.01), NULL));
    MUST(ipu_output(g, "loss", loss));
}

/* Compiles a graph. Returns the cycles of its slowest chip, and sets the bytes
 * of the fullest tile and the number of chips. */
static int64_t slowest(const ipu_graph *g, const ipu_target *target,
                       int64_t *bytes, int *chips)
{
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = target,
                                         .allow_out_of_memory = 1,
                                         .brief = 1};
    ipu_executable *e = NULL;
    int64_t most = 0;

    MUST(ipu_compile_with(g, &options, &e));
    *bytes = 0;
    *chips = ipu_executable_shards(e);
    for (int i = 0; i < *chips; i++) {
        ipu_shard_info info = {.size = sizeof info};

        MUST(ipu_executable_shard(e, i, &info));
        ck_assert_int_gt(info.steps, 0);
        most = most < info.cycles ? info.cycles : most;
        *bytes = *bytes < info.tile_bytes ? info.tile_bytes : *bytes;
    }
    ipu_executable_free(e);
    return most;
}

/* Returns the shortest time of the slowest chip of all ways to cut the chain.
 */
static int64_t shortest(int chips, bool trains)
{
    int64_t best = INT64_MAX;

    for (int i = 1; i < UNITS; i++)
        for (int j = chips > 2 ? i + 1 : UNITS; j < UNITS + (chips == 2); j++) {
            struct device other = device_new();
            int64_t bytes, cycles;
            int count;

            build(other.graph, (const int[]){i, j}, trains);
            cycles = slowest(other.graph, NULL, &bytes, &count);
            best = best < cycles ? best : cycles;
            device_free(&other);
        }
    return best;
}

/* _i says how many chips there are, and whether the program has gradients. */
LOOP_TEST(the_slowest_chip_is_as_fast_as_can_be, 0, 4)
{
    int chips = 2 + _i % 2, count;
    bool trains = _i / 2;
    int64_t bytes, cycles, best;

    build(d.graph, NULL, trains);
    MUST(ipu_shard_by_time(d.graph, NULL, chips));
    cycles = slowest(d.graph, NULL, &bytes, &count);
    ck_assert_int_eq(count, chips);
    best = shortest(chips, trains);
    ck_assert_int_le(cycles, best);
}

/* Each chip has a little less memory than the shortest time needs, and then too
 * little for any cut. */
TEST(each_chip_has_room_if_that_can_be)
{
    ipu_target target = {.size = sizeof target};
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &target};
    ipu_remedy remedy = {.size = sizeof remedy};
    struct device even = device_new();
    int64_t most, least, bytes;
    int count;

    MUST(ipu_target_find("mk2", &target));
    target.tiles = 8;
    build(even.graph, NULL, false);
    MUST(ipu_shard_automatically(even.graph, 3));
    slowest(even.graph, &target, &least, &count);
    build(d.graph, NULL, false);
    MUST(ipu_compile_shards(d.graph, &options, 3, &d.executable));
    ck_assert_int_eq(ipu_executable_shards(d.executable), 3);
    slowest(d.graph, &target, &most, &count);
    ck_assert_int_eq(count, 1); /* the graph is as it was */
    MUST(ipu_shard_by_time(d.graph, &options, 3));
    slowest(d.graph, &target, &most, &count);
    ck_assert_int_lt(least, most);
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_SHARD, 3, &remedy));
    ck_assert_int_eq(remedy.tile_bytes, most);
    target.bytes_per_tile = most - 1;
    MUST(ipu_shard_by_time(d.graph, &options, 3));
    slowest(d.graph, &target, &bytes, &count);
    ck_assert_int_lt(bytes, most);
    target.bytes_per_tile = 1024;
    MUST(ipu_shard_by_time(d.graph, &options, 3));
    slowest(d.graph, &target, &bytes, &count);
    ck_assert_int_lt(bytes, most);
    device_free(&even);
}

TEST(misuse_is_refused)
{
    MUST_FAIL(ipu_shard_by_time(NULL, NULL, 2), IPU_ERR_ARGUMENT,
              "shard: the graph is NULL");
    build(d.graph, NULL, false);
    MUST_FAIL(ipu_shard_by_time(d.graph, NULL, 0), IPU_ERR_ARGUMENT,
              "0 shards");
}

TEST_MAIN("device_shard_by_time", .set_up = one_device_new,
          .tear_down = one_device_free, .seconds = 120)
