/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of steps: for small graphs, it needs as little memory as any order
 * does, tried one by one; for larger ones, never more than the order in which
 * the graph was built and scheduled.
 */
#include "suite.h"

#include <stdbool.h>

#include "one_device.h"

enum { ALL = 31, MOST_OPS = 9, MOST_TENSORS = 16 };

static ipu_memory_info compiled(uint32_t without)
{
    const ipu_compile_options options = {
        .size = sizeof options, .without = without, .allow_out_of_memory = 1};

    ipu_executable_free(d.executable);
    d.executable = NULL;
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    return device_memory(&d);
}

static int64_t peak(uint32_t without)
{
    return compiled(without).peak_bytes;
}

static ipu_tensor row(const char *name, int64_t count)
{
    return device_floats(&d, name, 1, SHAPE(count));
}

/* ------------------------------------------------------------- small graphs */

enum kind { SLICE, PAD, CONCAT, RELU, RESHAPE, KINDS };

struct op {
    enum kind kind;
    int inputs[2], ninputs, output; /* tensors */
};

/* The graph as the test models it, apart from the device's graph. */
struct small {
    struct op ops[MOST_OPS];
    int nops;
    int64_t sizes[MOST_TENSORS];
    int cell[MOST_TENSORS]; /* tensor whose memory is shared */
    bool leaves[MOST_TENSORS];
    int ntensors, ninputs;
    ipu_tensor tensors[MOST_TENSORS];
    /* State of the search through all orders. */
    int users[MOST_TENSORS]; /* ops that use a cell and have not run */
    bool stays[MOST_TENSORS];
    bool ran[MOST_OPS];
    int64_t best;
};

static int add_tensor(struct small *s, ipu_tensor tensor, int cell)
{
    s->tensors[s->ntensors] = tensor;
    s->sizes[s->ntensors] = device_count(&d, tensor);
    s->cell[s->ntensors] = cell < 0 ? s->ntensors : cell;
    s->leaves[s->ntensors] = true;
    return s->ntensors++;
}

static void add_op(struct small *s, uint64_t *state)
{
    struct op *op = &s->ops[s->nops++];
    int a = (int)(device_random(state) % (uint64_t)s->ntensors);
    int b = (int)(device_random(state) % (uint64_t)s->ntensors);
    int64_t more = 1 + (int64_t)(device_random(state) % 50);
    ipu_tensor x = s->tensors[a], y;
    int cell = -1;

    *op = (struct op){.kind = (enum kind)(device_random(state) % KINDS),
                      .inputs = {a, b},
                      .ninputs = 1};
    if (op->kind == CONCAT && a == b)
        op->kind = RELU;
    switch (op->kind) {
    case SLICE:
        y = ipu_slice(d.graph, x, SHAPE(0), SHAPE(1 + more % s->sizes[a]));
        break;
    case PAD: y = ipu_pad(d.graph, x, SHAPE(0), SHAPE(more), 0); break;
    case CONCAT:
        op->ninputs = 2;
        y = ipu_concat(d.graph, 2, (ipu_tensor[]){x, s->tensors[b]}, 0);
        break;
    case RELU: y = ipu_relu(d.graph, x); break;
    default:
        y = ipu_reshape(d.graph, x, 1, SHAPE(s->sizes[a]));
        cell = s->cell[a];
    }
    op->output = add_tensor(s, y, cell);
    for (int i = 0; i < op->ninputs; i++)
        s->leaves[op->inputs[i]] = false;
}

static void build(struct small *s, uint64_t *state)
{
    char name[16];

    *s = (struct small){.ninputs = 1 + (int)(device_random(state) % 3)};
    for (int i = 0; i < s->ninputs; i++) {
        snprintf(name, sizeof name, "x%d", i);
        add_tensor(s, row(name, 1 + (int64_t)(device_random(state) % 40)), -1);
    }
    for (int n = 3 + (int)(device_random(state) % (MOST_OPS - 2)); n > 0; n--)
        add_op(s, state);
    for (int t = s->ninputs; t < s->ntensors; t++) {
        if (!s->leaves[t] && device_random(state) % 8)
            continue;
        snprintf(name, sizeof name, "y%d", t);
        MUST(ipu_output(d.graph, name, s->tensors[t]));
        s->stays[s->cell[t]] = true;
    }
    for (int i = 0; i < s->nops; i++)
        for (int k = 0; k < s->ops[i].ninputs; k++)
            s->users[s->cell[s->ops[i].inputs[k]]]++;
}

static bool can_run(const struct small *s, const struct op *op)
{
    for (int i = 0; i < s->nops; i++)
        for (int k = 0; k < op->ninputs; k++)
            if (!s->ran[i] && s->ops[i].output == op->inputs[k])
                return false;
    return true;
}

/* Tries all orders of the ops that have not run. Memory holds `alive` bytes now
 * and has held `most` at most. */
static void try_orders(struct small *s, int left, int64_t alive, int64_t most)
{
    if (left == 0 && most < s->best)
        s->best = most;
    for (int i = 0; i < s->nops && most < s->best; i++) {
        const struct op *op = &s->ops[i];
        int64_t made, freed = 0, during;

        if (s->ran[i] || !can_run(s, op))
            continue;
        made = s->cell[op->output] == op->output ? s->sizes[op->output] : 0;
        s->ran[i] = true;
        for (int k = 0; k < op->ninputs; k++) {
            int cell = s->cell[op->inputs[k]];

            if (--s->users[cell] == 0 && !s->stays[cell])
                freed += s->sizes[cell];
        }
        during = alive + made;
        if (op->kind == RELU && freed > 0)
            during -= made; /* in place */
        try_orders(s, left - 1, alive + made - freed,
                   during > most ? during : most);
        for (int k = 0; k < op->ninputs; k++)
            s->users[s->cell[op->inputs[k]]]++;
        s->ran[i] = false;
    }
}

/* Returns the smallest peak in bytes. Inputs are in memory from the
 * beginning. */
static int64_t smallest_peak(struct small *s)
{
    int64_t alive = 0;

    for (int t = 0; t < s->ninputs; t++)
        alive += s->users[t] > 0 ? s->sizes[t] : 0;
    s->best = INT64_MAX;
    try_orders(s, s->nops, alive, alive);
    return 4 * s->best;
}

LOOP_TEST(small_graphs_need_no_more_than_the_best_order, 0, 5)
{
    uint64_t state = (uint64_t)_i;
    struct small s;
    int better = 0;

    for (int i = 0; i < 60; i++) {
        int64_t best, got;

        build(&s, &state);
        best = smallest_peak(&s);
        ck_assert_int_eq(compiled(ALL - IPU_PASS_ORDER).steps, s.nops);
        got = peak(ALL - IPU_PASS_ORDER);
        better += got < peak(ALL);
        ck_assert_msg(got == best, "graph %d: %d bytes, not %d", i, (int)got,
                      (int)best);
        one_device_free();
        one_device_new();
    }
    ck_assert_int_gt(better, 0); /* or nothing was ordered */
}

/* ------------------------------------------------------------- known graphs */

/* Checks that the peak is never higher than without the pass, with and without
 * fused steps. Returns the peak with them. */
static int64_t no_more_than_before(void)
{
    ck_assert_int_le(peak(ALL - IPU_PASS_ORDER), peak(ALL));
    ck_assert_int_le(peak(0), peak(IPU_PASS_ORDER));
    return peak(0);
}

/* Cuts x into two parts that need more room each, and puts them together again.
 * In the order in which it is built both parts are large at the same time. */
static ipu_tensor diamond(ipu_tensor x)
{
    ipu_tensor a = ipu_pad(d.graph, x, SHAPE(0), SHAPE(1000), 0);
    ipu_tensor b = ipu_pad(d.graph, x, SHAPE(500), SHAPE(500), 0);

    a = ipu_slice(d.graph, a, SHAPE(990), SHAPE(20));
    b = ipu_slice(d.graph, b, SHAPE(10), SHAPE(20));
    return ipu_concat(d.graph, 2, (ipu_tensor[]){a, b}, 0);
}

TEST(of_diamonds_one_side_comes_first)
{
    ipu_tensor x = row("x", 40);

    for (int i = 0; i < 100; i++)
        x = diamond(x);
    MUST(ipu_output(d.graph, "y", x));
    /* At the peak memory holds x, one side and the rest of the other, or both
     * sides. */
    ck_assert_int_eq(no_more_than_before(), 4 * (40 + 1040 + 20));
    ck_assert_int_eq(peak(IPU_PASS_ORDER), 4 * (40 + 1040 + 1040));
}

/* Builds a tree of 2^depth leaves, each made of x: all leaves first, then the
 * sums of two, then those of these. */
static void tree(ipu_tensor x, int depth)
{
    ipu_tensor nodes[1 << 10] = {{0}};
    int n = 1 << depth;

    for (int i = 0; i < n; i++)
        nodes[i] = ipu_pad(d.graph, x, SHAPE(0), SHAPE(99), i);
    for (; n > 1; n /= 2)
        for (int i = 0; i < n / 2; i++)
            nodes[i] = ipu_add(d.graph, nodes[2 * i], nodes[2 * i + 1]);
    MUST(ipu_output(d.graph, "y", nodes[0]));
}

/* A tree needs one more tensor a level, as registers for an expression (Sethi
 * and Ullman 1970). x is there until the last leaf, which is when most is
 * alive. Depths go up to 8, or 10. */
LOOP_TEST(trees_are_walked_in_depth, 0, getenv("HVD_TEST_FULL") ? 20 : 16)
{
    int depth = 1 + _i / 2;

    tree(_i % 2 ? ipu_variable(d.graph, "x", IPU_FLOAT32, 1, SHAPE(1))
                : row("x", 1),
         depth);
    ck_assert_int_eq(peak(ALL), (400 << depth) + 4);
    ck_assert_int_eq(peak(ALL - IPU_PASS_ORDER), 400 * (depth + 1) + 4);
    no_more_than_before();
}

/* ResNets: two convolutions and a way around them, as often as asked. */
static ipu_tensor residual(ipu_tensor x, int n, ipu_tensor *weights)
{
    const ipu_conv_options same = {
        .size = sizeof same, .stride = {1, 1}, .same = 1};
    ipu_tensor y = x;
    char name[16];

    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "w%d.%d", n, i);
        weights[2 * n + i] =
            ipu_variable(d.graph, name, IPU_FLOAT32, 4, SHAPE(3, 3, 8, 8));
        y = ipu_conv2d(d.graph, y, weights[2 * n + i], &same);
        if (i == 0)
            y = ipu_relu(d.graph, y);
    }
    return ipu_relu(d.graph, ipu_add(d.graph, x, y));
}

/* Builds a network of this number of blocks with a step of SGD. With `calls`
 * the host gets the gradients. */
static void resnet(int blocks, bool calls)
{
    ipu_tensor weights[2 * 20], gradients[2 * 20], loss;
    ipu_tensor x = device_floats(&d, "x", 4, SHAPE(4, 8, 8, 8));
    ipu_tensor rate = ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, 0.1);
    char name[16];

    for (int n = 0; n < blocks; n++)
        x = residual(x, n, weights);
    loss = ipu_reduce_sum(d.graph, ipu_square(d.graph, x), 1);
    MUST(ipu_gradients(d.graph, loss, 2 * blocks, weights, gradients));
    for (int i = 0; i < 2 * blocks; i++) {
        snprintf(name, sizeof name, "g%d", i);
        if (calls)
            MUST(ipu_host_call(d.graph, name, gradients[i], device_no_call,
                               NULL));
        else
            MUST(ipu_sgd(d.graph, weights[i], gradients[i], rate, NULL));
    }
    MUST(ipu_output(d.graph, "loss", loss));
}

LOOP_TEST(training_needs_no_more, 0, 10)
{
    static const int blocks[] = {1, 2, 3, 8, 20};

    resnet(blocks[_i / 2], _i % 2);
    no_more_than_before();
}

/* ------------------------------------------------------ what stays as it is */

static char *program(void)
{
    int64_t size = ipu_executable_print(d.executable, NULL, 0) + 1;
    char *text = malloc((size_t)size);

    ck_assert_ptr_nonnull(text);
    ipu_executable_print(d.executable, text, size);
    return text;
}

LOOP_TEST(the_same_graph_is_the_same_program, 0, 2)
{
    char *texts[2];

    resnet(8, _i);
    for (int i = 0; i < 2; i++) {
        compiled(0);
        texts[i] = program();
    }
    ck_assert_str_eq(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
}

/* Writes the numbers of the steps that are calls, and the calls' names, to
 * notes. */
static void note_calls(uint32_t without, char *notes, size_t size)
{
    size_t used = 0;
    int steps = compiled(without).steps;

    for (int i = 0; i < steps; i++) {
        ipu_step_info info = {.size = sizeof info};

        MUST(ipu_executable_step(d.executable, i, &info));
        if (strcmp(info.op, "host_call") != 0)
            continue;
        used += (size_t)snprintf(notes + used, size - used, "%d %s\n", i,
                                 info.tensor);
        ck_assert_uint_lt(used, size);
    }
    ck_assert_uint_gt(used, 0);
}

TEST(calls_come_as_early_as_before)
{
    char notes[2][2048], name[8];
    ipu_tensor x = row("x", 40);

    for (int i = 0; i < 20; i++) {
        x = diamond(x);
        snprintf(name, sizeof name, "c%d", i);
        if (i % 4 == 0)
            MUST(ipu_host_call(d.graph, name, x, device_no_call, NULL));
    }
    MUST(ipu_output(d.graph, "y", x));
    note_calls(0, notes[0], sizeof notes[0]);
    note_calls(IPU_PASS_ORDER, notes[1], sizeof notes[1]);
    ck_assert_str_eq(notes[0], notes[1]);
    ck_assert_int_lt(peak(0), peak(IPU_PASS_ORDER));
}

enum { VARIABLES = 4, ROW = 32, OPS = 40, TENSORS = VARIABLES + OPS };

static const char *variable_name(int i)
{
    static char name[8];

    snprintf(name, sizeof name, "v%d", i);
    return name;
}

/* Rows made of variables, some by way of much longer ones; and what variables
 * become. */
static void build_rows(uint64_t *state)
{
    ipu_tensor rows[TENSORS];

    for (int i = 0; i < VARIABLES; i++)
        rows[i] =
            ipu_variable(d.graph, variable_name(i), IPU_FLOAT32, 1, SHAPE(ROW));
    for (int i = VARIABLES; i < TENSORS; i++) {
        ipu_tensor a = rows[device_random(state) % (uint64_t)i];
        ipu_tensor b = rows[device_random(state) % (uint64_t)i];
        int64_t more = (int64_t)(device_random(state) % 1000);

        switch (device_random(state) % 4) {
        case 0: rows[i] = ipu_add(d.graph, a, b); break;
        case 1: rows[i] = ipu_maximum(d.graph, a, b); break;
        case 2: rows[i] = ipu_scale(d.graph, a, -0.5, 0.25); break;
        default:
            a = ipu_pad(d.graph, a, SHAPE(0), SHAPE(more), 0);
            rows[i] = ipu_slice(d.graph, a, SHAPE(more / 2), SHAPE(ROW));
        }
    }
    for (int i = 0; i < VARIABLES; i++)
        MUST(ipu_assign(d.graph, rows[i],
                        rows[TENSORS - 1 - device_random(state) % OPS]));
    MUST(ipu_output(d.graph, "y", rows[TENSORS - 1]));
}

/* Returns y, and the variables, after two runs. */
static void run_rows(uint32_t without, float results[VARIABLES + 1][ROW])
{
    ipu_engine *engine;

    compiled(without);
    MUST(ipu_engine_new(d.executable, &engine));
    for (int i = 0; i < VARIABLES; i++) {
        device_fill(results[i], ROW, (uint64_t)i);
        MUST(ipu_engine_write(engine, variable_name(i), results[i],
                              sizeof results[i]));
    }
    MUST(ipu_engine_connect(engine, "y", results[VARIABLES],
                            sizeof results[VARIABLES]));
    MUST(ipu_engine_run(engine));
    MUST(ipu_engine_run(engine));
    for (int i = 0; i < VARIABLES; i++)
        MUST(ipu_engine_read(engine, variable_name(i), results[i],
                             sizeof results[i]));
    ipu_engine_free(engine);
}

LOOP_TEST(results_are_the_same_bits, 0, 5)
{
    static const uint32_t ways[] = {0, IPU_PASS_FUSE, ALL - IPU_PASS_ORDER};
    float expected[VARIABLES + 1][ROW], results[VARIABLES + 1][ROW];
    uint64_t state = (uint64_t)_i;
    int other = 0;

    for (int i = 0; i < 20; i++) {
        build_rows(&state);
        run_rows(ALL, expected);
        for (int way = 0; way < 3; way++) {
            run_rows(ways[way], results);
            ck_assert_mem_eq(results, expected, sizeof results);
            ck_assert_int_le(peak(ways[way]), peak(ways[way] | IPU_PASS_ORDER));
        }
        other += peak(ALL - IPU_PASS_ORDER) < peak(ALL);
        one_device_free();
        one_device_new();
    }
    ck_assert_int_gt(other, 0); /* or all were as before */
}

TEST_MAIN("device_compile_order", .set_up = one_device_new,
          .tear_down = one_device_free, .seconds = 120)
