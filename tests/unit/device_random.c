/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random graphs, with their derivatives, on planned and on poisoned memory.
 *
 * On planned memory tensors share space and ops work in place; on poisoned
 * memory each has its own, which is filled with NaN when the plan says that
 * it is not needed any more. If the plan is right, both give the same bits.
 *
 * A failure prints the seed of its graph.
 */
#include "suite.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "device.h"

enum { GRAPHS = 300, OPS = 24, SIDE = 6, COUNT = SIDE * SIDE, SINKS = 8 };

enum { PASSES = 15 }; /* all of them, as bits */

/* The data that a run gives the host: of calls, in the order of their names
 * (the compiler chooses the order of calls), of outputs, and of variables. */
struct results {
    float data[2 * SINKS + 2][COUNT];
    int64_t counts[2 * SINKS + 2];
};

static void keep(struct results *results, int place, const void *data,
                 int64_t count)
{
    ck_assert_int_le(count, COUNT);
    memcpy(results->data[place], data, (size_t)count * sizeof(float));
    results->counts[place] = count;
}

static int record(void *context, const char *name, void *data, int64_t count)
{
    keep(context, name[0] - 'a', data, count);
    return 0;
}

static int choose(uint64_t *state, int n)
{
    return (int)(device_random(state) % (uint64_t)n);
}

/* Reshapes x to an image, so that the ops on images take part. */
static ipu_tensor through_images(ipu_graph *g, ipu_tensor x, ipu_tensor k)
{
    ipu_conv_options same = {.size = sizeof same, .stride = {1, 1}, .same = 1};
    ipu_tensor image = ipu_reshape(g, x, 4, SHAPE(1, SIDE, SIDE, 1));
    ipu_tensor kernel = ipu_reshape(g, k, 4, SHAPE(SIDE, SIDE, 1, 1));
    ipu_tensor small;

    image = ipu_conv2d(g, image, kernel, &same);
    small = ipu_max_pool2d(g, image, 2); /* 3 x 3 */
    image = ipu_add(g, image, ipu_max_pool2d(g, image, 1));
    image = ipu_bias_add(
        g, image, ipu_reshape(g, ipu_reduce_sum(g, small, 0.125), 1, SHAPE(1)));
    return ipu_reshape(g, image, 2, SHAPE(SIDE, SIDE));
}

/* Returns a, normalised with a row of b. */
static ipu_tensor through_rows(ipu_graph *g, ipu_tensor a, ipu_tensor b)
{
    const int32_t axis = 0;
    ipu_tensor row = ipu_mean(g, b, 1, &axis, 0);

    return ipu_layer_norm(g, a, row, ipu_max(g, b, 1, &axis, 0), 1e-2);
}

/* Cuts a in two, and joins the parts with a tensor between them. */
static ipu_tensor through_parts(ipu_graph *g, ipu_tensor a, ipu_tensor b)
{
    const ipu_tensor parts[] = {
        ipu_slice(g, a, SHAPE(0, 0), SHAPE(2, SIDE)),
        ipu_slice(g, b, SHAPE(2, 0), SHAPE(1, SIDE)),
        ipu_slice(g, a, SHAPE(3, 0), SHAPE(-1, SIDE)),
    };

    return ipu_concat(g, 3, parts, 0);
}

/* Returns a tensor of the same shape as all others. */
static ipu_tensor random_op(ipu_graph *g, uint64_t *state, ipu_tensor a,
                            ipu_tensor b)
{
    switch (choose(state, 16)) {
    case 0: return ipu_relu(g, a);
    case 1: return ipu_add(g, a, b);
    case 2: return ipu_multiply(g, a, b);
    case 3: return ipu_matmul(g, a, b);
    case 4:
        a = ipu_reshape(g, a, 1, SHAPE(COUNT));
        return ipu_reshape(g, a, 2, SHAPE(SIDE, SIDE));
    case 5: return through_images(g, a, b);
    case 6: return ipu_softmax(g, ipu_subtract(g, a, b));
    case 7: return ipu_maximum(g, ipu_tanh(g, a), b);
    case 8: return ipu_batch_matmul(g, a, b, 1, choose(state, 2));
    case 9: return ipu_transpose(g, ipu_gelu(g, a), NULL);
    case 10: return through_rows(g, a, b);
    case 11: return through_parts(g, a, b);
    case 12:
        return ipu_cast(g, ipu_sigmoid(g, ipu_cast(g, a, IPU_BFLOAT16)),
                        IPU_FLOAT32);
    case 13:
        return ipu_dropout(g, ipu_add(g, a, b), 0.25, 5,
                           ipu_fill(g, IPU_INT32, 0, NULL, 2));
    case 14: return ipu_gather(g, a, ipu_argmax(g, b, 1), choose(state, 2));
    default:
        b = ipu_reshape(g, b, 3, SHAPE(1, COUNT, 1));
        b = ipu_relu(g, b); /* in place of an alias, if nothing else reads it */
        return ipu_add(g, a, ipu_reshape(g, b, 2, SHAPE(SIDE, SIDE)));
    }
}

static void build(struct device *d, uint64_t seed, struct results *results)
{
    const int64_t square[] = {SIDE, SIDE};
    ipu_tensor pool[3 + OPS], gradients[3];
    ipu_tensor loss;
    char name[] = "a";
    int n = 3;

    pool[0] = ipu_input(d->graph, "x", IPU_FLOAT32, 2, square);
    pool[1] = ipu_variable(d->graph, "v", IPU_FLOAT32, 2, square);
    pool[2] = ipu_variable(d->graph, "w", IPU_FLOAT32, 2, square);
    for (; n < 3 + OPS; n++)
        pool[n] = random_op(d->graph, &seed, pool[choose(&seed, n)],
                            pool[n - 1 - choose(&seed, 3)]);
    loss = ipu_reduce_sum(d->graph, pool[n - 1], 1);
    MUST(ipu_gradients(d->graph, loss, 3, pool, gradients));
    for (int i = 0; i < 3; i++, name[0]++)
        MUST(ipu_host_call(d->graph, name, gradients[i], record, results));
    /* Variables become anything, each other too. */
    if (choose(&seed, 2))
        MUST(ipu_assign(d->graph, pool[1], pool[choose(&seed, n)]));
    if (choose(&seed, 2))
        MUST(ipu_assign(d->graph, pool[2],
                        ipu_scale(d->graph,
                                  choose(&seed, 2) ? pool[2] : gradients[2],
                                  0.5, 0)));
    for (int i = 3; i < SINKS; i++, name[0]++) {
        ipu_tensor tensor = pool[choose(&seed, n)];

        if (choose(&seed, 2))
            MUST(ipu_host_call(d->graph, name, tensor, record, results));
        else
            MUST(ipu_output(d->graph, name, tensor));
    }
}

/* Host calls as they come, then the outputs. */
static void run(struct device *d, struct results *results)
{
    float values[COUNT], outputs[SINKS][COUNT];
    char name[] = "a";

    device_fill(values, COUNT, 1);
    device_connect(d, "x", values, COUNT);
    MUST(ipu_engine_write(d->engine, "v", values, sizeof values));
    for (int i = 0; i < COUNT; i++)
        values[i] /= 2;
    MUST(ipu_engine_write(d->engine, "w", values, sizeof values));
    memset(outputs, 0, sizeof outputs);
    for (int i = 0; i < SINKS; i++, name[0]++)
        if (strstr("abc", name) == NULL)
            device_connect(d, name, outputs[i], COUNT);
    for (int i = 0; i < 2; i++) {
        memset(results, 0, sizeof *results);
        MUST(ipu_engine_run(d->engine));
    }
    for (int i = 0; i < SINKS; i++)
        keep(results, SINKS + i, outputs[i], COUNT);
    MUST(ipu_engine_read(d->engine, "v", values, sizeof values));
    keep(results, 2 * SINKS, values, COUNT);
    MUST(ipu_engine_read(d->engine, "w", values, sizeof values));
    keep(results, 2 * SINKS + 1, values, COUNT);
}

/* without: passes that are left out */
static void compute(uint64_t seed, const char *poison, uint32_t without,
                    struct results *results)
{
    const ipu_compile_options options = {.size = sizeof options,
                                         .without = without};
    struct device d = device_new();

    ck_assert_int_eq(setenv("IPU_POISON", poison, 1), 0);
    build(&d, seed, results);
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    MUST(ipu_engine_new(d.executable, &d.engine));
    run(&d, results);
    device_free(&d);
}

static void must_be_equal(const struct results *a, const struct results *b,
                          uint64_t seed, uint32_t without)
{
    for (int i = 0; i < 2 * SINKS + 2; i++)
        ck_assert_msg(
            a->counts[i] == b->counts[i] &&
                memcmp(a->data[i], b->data[i], (size_t)a->counts[i] * 4) == 0,
            "seed %d, without passes %x: result %d is different", (int)seed,
            (unsigned)without, i);
}

LOOP_TEST(sharing_memory_changes_no_bit, 0, GRAPHS / 10)
{
    static struct results planned, poisoned;

    for (uint64_t seed = (uint64_t)_i * 10; seed < (uint64_t)_i * 10 + 10;
         seed++) {
        compute(seed, "0", 0, &planned);
        compute(seed, "1", 0, &poisoned);
        must_be_equal(&planned, &poisoned, seed, 0);
    }
}

/* No set of passes may change a bit, on either memory. Each graph is compiled
 * with a third of the sets of passes, or with all if HVD_TEST_FULL is set. */
LOOP_TEST(passes_change_no_bit, 0, GRAPHS / 10)
{
    static struct results plain, other;
    bool all = getenv("HVD_TEST_FULL") != NULL;

    for (uint64_t seed = (uint64_t)_i * 10; seed < (uint64_t)_i * 10 + 10;
         seed++) {
        compute(seed, "0", PASSES, &plain);
        for (uint32_t without = 0; without < PASSES; without++) {
            if (!all && without % 3 != seed % 3)
                continue;
            compute(seed, without % 3 ? "0" : "1", without, &other);
            must_be_equal(&plain, &other, seed, without);
        }
    }
}

/* Without this check, the test above could pass on NaN alone. */
TEST(most_results_are_numbers)
{
    static struct results results;
    int finite = 0, all = 0;

    for (uint64_t seed = 0; seed < 50; seed++) {
        compute(seed, "1", 0, &results);
        for (int i = 0; i < 2 * SINKS + 2; i++) {
            all += results.counts[i] > 0;
            finite += results.counts[i] > 0 && isfinite(results.data[i][0]);
        }
    }
    ck_assert_int_gt(finite, all * 3 / 4);
}

TEST_MAIN("device_random", .seconds = 120)
