/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests batch normalisation over replicas: R replicas with a batch each
 * normalise, differentiate and keep statistics as one program with the whole
 * batch does, and groups as programs with the batches of a group. The number of
 * replicas is 1 to 8.
 */
#include "suite.h"

#include <math.h>

#include "replicated.h"

enum { ROWS = 6, CHANNELS = 5, MOST = 8, BATCH_FLOATS = ROWS * CHANNELS };

static const char *const names[] = {"scale", "offset", "mean", "variance"};
static float x[MOST * BATCH_FLOATS], weight[MOST * BATCH_FLOATS];

/* What a program gives and keeps. */
struct results {
    float y[MOST * BATCH_FLOATS], dx[MOST * BATCH_FLOATS];
    float dscale[MOST * CHANNELS], doffset[MOST * CHANNELS];
    float kept[4][CHANNELS];
};

static struct results of_replicas, of_whole;

/* Normalises rows of x; the loss is the sum of the products with weights.
 * synchronised: over groups of that size; -1: in this program alone. */
static void build(ipu_graph *g, int rows, int synchronised)
{
    const int64_t shape[] = {rows / 2, 2, CHANNELS};
    ipu_tensor v[4], slope[3];
    ipu_tensor in = ipu_input(g, "x", IPU_FLOAT32, 3, shape);
    ipu_tensor by = ipu_input(g, "weight", IPU_FLOAT32, 3, shape), y;

    for (int i = 0; i < 4; i++)
        v[i] = ipu_variable(g, names[i], IPU_FLOAT32, 1, SHAPE(CHANNELS));
    y = synchronised < 0
            ? ipu_batch_norm(g, in, v[0], v[1], v[2], v[3], 0.75, 1e-3)
            : ipu_synchronised_batch_norm(g, in, v[0], v[1], v[2], v[3], 0.75,
                                          1e-3, synchronised);
    MUST(ipu_output(g, "y", y));
    MUST(ipu_gradients(g, ipu_reduce_sum(g, ipu_multiply(g, y, by), 1), 3,
                       (const ipu_tensor[]){in, v[0], v[1]}, slope));
    MUST(ipu_output(g, "dx", slope[0]));
    MUST(ipu_output(g, "dscale", slope[1]));
    MUST(ipu_output(g, "doffset", slope[2]));
}

static void first_values(float *values, int i)
{
    device_fill(values, CHANNELS, (uint64_t)i + 77);
    for (int c = 0; c < CHANNELS; c++)
        values[c] += i == 3 ? 2 : 0;
}

static void run_replicas(int count, int group)
{
    struct results *r = &of_replicas;
    size_t floats = (size_t)count * BATCH_FLOATS;

    build(d.graph, ROWS, group);
    start(count);
    connect("x", x, floats);
    connect("weight", weight, floats);
    connect("y", r->y, floats);
    connect("dx", r->dx, floats);
    connect("dscale", r->dscale, (size_t)count * CHANNELS);
    connect("doffset", r->doffset, (size_t)count * CHANNELS);
    for (int i = 0; i < 4; i++) {
        first_values(r->kept[i], i);
        MUST(ipu_replicas_write(replicas, names[i], r->kept[i],
                                sizeof r->kept[i]));
    }
    for (int run = 0; run < 3; run++)
        MUST(ipu_replicas_run(replicas));
}

/* One program with the batches of count replicas, from the given one on. */
static void run_whole(int first, int count)
{
    struct results *r = &of_whole;
    struct device whole = device_new();
    int floats = count * BATCH_FLOATS;

    build(whole.graph, ROWS * count, -1);
    device_load(&whole);
    device_connect(&whole, "x", x + first * BATCH_FLOATS, floats);
    device_connect(&whole, "weight", weight + first * BATCH_FLOATS, floats);
    device_connect(&whole, "y", r->y, floats);
    device_connect(&whole, "dx", r->dx, floats);
    device_connect(&whole, "dscale", r->dscale, CHANNELS);
    device_connect(&whole, "doffset", r->doffset, CHANNELS);
    for (int i = 0; i < 4; i++) {
        first_values(r->kept[i], i);
        MUST(ipu_engine_write(whole.engine, names[i], r->kept[i],
                              sizeof r->kept[i]));
    }
    for (int run = 0; run < 3; run++)
        MUST(ipu_engine_run(whole.engine));
    for (int i = 0; i < 4; i++)
        MUST(ipu_engine_read(whole.engine, names[i], r->kept[i],
                             sizeof r->kept[i]));
    device_free(&whole);
}

static void check_close(const float *a, const float *b, int count)
{
    for (int k = 0; k < count; k++)
        ck_assert_float_le(fabsf(a[k] - b[k]), 2e-5f * (1 + fabsf(b[k])));
}

/* Gradients of scale and offset are sums over the replicas' rows. */
static void check_sums(const float *parts, const float *whole, int count)
{
    for (int c = 0; c < CHANNELS; c++) {
        float sum = 0;

        for (int r = 0; r < count; r++)
            sum += parts[r * CHANNELS + c];
        check_close(&sum, &whole[c], 1);
    }
}

static void check_group(int first, int count)
{
    int at = first * BATCH_FLOATS, floats = count * BATCH_FLOATS;
    float kept[CHANNELS];

    run_whole(first, count);
    check_close(of_replicas.y + at, of_whole.y, floats);
    check_close(of_replicas.dx + at, of_whole.dx, floats);
    check_sums(of_replicas.dscale + first * CHANNELS, of_whole.dscale, count);
    check_sums(of_replicas.doffset + first * CHANNELS, of_whole.doffset, count);
    for (int r = first; r < first + count; r++)
        for (int i = 0; i < 4; i++) {
            MUST(ipu_replicas_read(replicas, r, names[i], kept, sizeof kept));
            check_close(kept, of_whole.kept[i], CHANNELS);
        }
}

/* Replicas have different means, so that none of them normalises alone as all
 * together do. */
static void fill(int count)
{
    device_fill(x, count * BATCH_FLOATS, 5);
    device_fill(weight, count * BATCH_FLOATS, 6);
    for (int k = 0; k < count * BATCH_FLOATS; k++)
        x[k] += (float)(k / BATCH_FLOATS);
}

/* _i is the number of replicas. */
LOOP_TEST(replicas_normalise_as_the_whole_batch, 1, MOST + 1)
{
    fill(_i);
    run_replicas(_i, 0);
    check_group(0, _i);
    /* No variable is a replica's own: all keep the same bits. */
    ck_assert_int_eq(ipu_replicas_check_equal(replicas), 0);
}

TEST(groups_normalise_by_themselves)
{
    fill(6);
    run_replicas(6, 2);
    for (int first = 0; first < 6; first += 2)
        check_group(first, 2);
    ck_assert_int_eq(ipu_replicas_check_equal(replicas), 2);
}

/* Halves are normalised in float32, and rounded once. */
TEST(halves_keep_float32_statistics)
{
    static float y[2 * BATCH_FLOATS];
    ipu_tensor in = device_floats(&d, "x", 2, SHAPE(ROWS, CHANNELS)), v[4];

    for (int i = 0; i < 4; i++)
        v[i] = ipu_variable(d.graph, names[i], IPU_FLOAT32, 1, SHAPE(CHANNELS));
    in = ipu_synchronised_batch_norm(
        d.graph, ipu_cast(d.graph, in, IPU_FLOAT16),
        ipu_cast(d.graph, v[0], IPU_FLOAT16),
        ipu_cast(d.graph, v[1], IPU_FLOAT16), v[2], v[3], 0.75, 1e-3, 0);
    MUST(ipu_output(d.graph, "y", ipu_cast(d.graph, in, IPU_FLOAT32)));
    fill(2);
    start(2);
    connect("x", x, 2 * BATCH_FLOATS);
    connect("y", y, 2 * BATCH_FLOATS);
    for (int i = 0; i < 4; i++) {
        float values[CHANNELS];

        first_values(values, i);
        MUST(ipu_replicas_write(replicas, names[i], values, sizeof values));
    }
    MUST(ipu_replicas_run(replicas));
    run_whole(0, 2);
    for (int k = 0; k < 2 * BATCH_FLOATS; k++)
        ck_assert_float_le(fabsf(y[k] - of_whole.y[k]), 1e-2f);
}

/* _i is a wrong momentum, or a wrong group. */
LOOP_TEST(arguments_are_checked, 0, 2)
{
    ipu_tensor in = device_floats(&d, "x", 2, SHAPE(ROWS, CHANNELS));
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(CHANNELS));

    device_refused(&d,
                   ipu_synchronised_batch_norm(d.graph, in, v, v, v, v,
                                               _i ? 0.5 : 1.5, 1e-3, -_i),
                   IPU_ERR_ARGUMENT,
                   _i ? "groups of -1 replicas"
                      : "momentum is 1.5, not within 0 and 1");
}

TEST_MAIN("device_replica_norm", .set_up = set_up, .tear_down = tear_down)
