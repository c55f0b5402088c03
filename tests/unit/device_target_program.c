/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cycles of compiled programs on a chip: of steps, tiles and runs.
 */
#include "suite.h"

#include <math.h>

#include "target_program.h"

TEST(a_step_takes_what_the_model_says)
{
    ipu_cycles product = {.size = sizeof product}, relu = product;

    small_layer();
    without = IPU_PASS_FUSE;
    compiled();
    MUST(ipu_model_product(&target,
                           &(ipu_product){.size = sizeof(ipu_product),
                                          .element_bytes = 4,
                                          .batch = 1,
                                          .m = 64,
                                          .k = 128,
                                          .n = 32},
                           NULL, &product));
    /* Compiled: a load, an instruction, a store, and two to count. */
    MUST(ipu_model_loop(&target,
                        &(ipu_loop){.size = sizeof(ipu_loop),
                                    .iterations = 1, /* two floats a tile */
                                    .loads = 1,
                                    .stores = 1,
                                    .arithmetic = 1,
                                    .control = 2},
                        &relu));
    ck_assert_str_eq(device_step(&d, 0).op, "matmul");
    ck_assert_int_eq(device_step(&d, 0).total_cycles, product.total);
    ck_assert_double_eq(device_step(&d, 0).flops, 2.0 * 64 * 128 * 32);
    ck_assert_str_eq(device_step(&d, 1).op, "relu");
    ck_assert_int_eq(device_step(&d, 1).total_cycles, relu.total);
    ck_assert_int_eq(device_step(&d, 1).busy_tiles, 64 * 32 / 2);
    ck_assert_int_eq(device_cycles(&d).compute, product.compute + relu.compute);
    ck_assert_int_eq(device_cycles(&d).exchange, product.exchange);
    ck_assert_int_eq(device_cycles(&d).sync, product.sync);
    ck_assert_int_eq(device_cycles(&d).estimates, 1);
    ck_assert_ptr_nonnull(strstr(device_step(&d, 0).estimate, "another plan"));
    ck_assert_ptr_null(device_step(&d, 1).estimate);
}

TEST(a_run_is_its_steps_and_its_streams)
{
    ipu_program_cycles run;
    int64_t device;

    small_layer();
    compiled();
    run = device_cycles(&d);
    device = run.compute + run.exchange + run.sync;
    ck_assert_int_gt(run.host, 0);
    ck_assert_int_eq(run.total, device + run.host);
    ck_assert_double_eq_tol(run.seconds, (double)run.total / target.clock_hz,
                            1e-12);
}

TEST(io_tiles_serve_streams_beside_the_rest)
{
    ipu_program_cycles run;

    small_layer();
    target.io_tiles = 32;
    compiled();
    run = device_cycles(&d);
    ck_assert_int_gt(run.host, run.compute + run.exchange + run.sync);
    ck_assert_int_eq(run.total, run.host);
}

TEST(a_host_call_is_a_stream)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(1000));
    int64_t before;

    MUST(ipu_host_call(d.graph, "y", ipu_relu(d.graph, x), device_no_call,
                       NULL));
    compiled();
    ck_assert_str_eq(device_step(&d, 1).op, "host_call");
    ck_assert_int_eq(device_step(&d, 1).compute_cycles, 0);
    before = device_cycles(&d).host;
    ck_assert_int_gt(before, device_step(&d, 1).total_cycles);
    ck_assert_int_eq(device_cycles(&d).exchange, 0);
}

TEST(an_alias_takes_nothing)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(64));

    MUST(ipu_output(d.graph, "y", ipu_reshape(d.graph, x, 2, SHAPE(8, 8))));
    compiled();
    ck_assert_int_eq(device_step(&d, 0).total_cycles, 0);
}

/* A convolution and its two derivatives multiply as often. */
LOOP_TEST(derivatives_of_a_convolution_take_as_many_products, 0, 2)
{
    const int32_t groups = _i ? 4 : 1;
    const ipu_conv_options options = {
        .size = sizeof options, .stride = {1, 1}, .groups = groups};
    ipu_tensor x = device_floats(&d, "x", 4, SHAPE(2, 8, 8, 16));
    ipu_tensor k = ipu_variable(d.graph, "k", IPU_FLOAT32, 4,
                                SHAPE(3, 3, 16 / groups, 16));
    ipu_tensor y = ipu_conv2d(d.graph, x, k, &options), grads[2];
    double flops = 2.0 * (2 * 6 * 6) * (3 * 3 * 16) * 16 / groups, found = 0;
    int products = 0;

    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, y, 1), 2,
                       (ipu_tensor[]){x, k}, grads));
    MUST(ipu_output(d.graph, "dx", grads[0]));
    MUST(ipu_output(d.graph, "dk", grads[1]));
    MUST(ipu_output(d.graph, "y", y));
    for (int32_t i = 0, n = compiled().steps; i < n; i++)
        if (strncmp(device_step(&d, i).op, "conv2d", 6) == 0) {
            found += device_step(&d, i).flops;
            products++;
        }
    ck_assert_int_eq(products, 3);
    ck_assert_double_eq(found, 3 * flops);
}

/* A row of x lies on each tile. Half of each stays where it is; rows of the
 * second half of the tiles, a half of one each, come from there; transposed,
 * all of what a tile has comes from others, but for one element at most. */
LOOP_TEST(what_moves_is_followed, 0, 3)
{
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(1472, 8));
    ipu_tensor y;

    if (_i == 0)
        y = ipu_slice(d.graph, x, SHAPE(0, 0), SHAPE(-1, 4));
    else if (_i == 1)
        y = ipu_slice(d.graph, x, SHAPE(736, 0), SHAPE(-1, -1));
    else
        y = ipu_transpose(d.graph, x, NULL);
    MUST(ipu_output(d.graph, "y", y));
    compiled();
    ck_assert_str_eq(device_step(&d, 0).op, _i == 2 ? "transpose" : "slice");
    ck_assert_int_eq(device_step(&d, 0).exchange_bytes, _i * 4 * 4);
    ck_assert_ptr_null(device_step(&d, 0).estimate);
    ck_assert_double_eq(device_step(&d, 0).flops, 0);
}

TEST(a_batch_of_products_counts_each)
{
    ipu_tensor a = device_floats(&d, "a", 3, SHAPE(5, 16, 32));
    ipu_tensor b = device_floats(&d, "b", 3, SHAPE(5, 32, 8));

    MUST(ipu_output(d.graph, "y", ipu_batch_matmul(d.graph, a, b, 0, 0)));
    compiled();
    ck_assert_double_eq(device_step(&d, 0).flops, 2.0 * 5 * 16 * 32 * 8);
}

/* A tensor on one tile leaves it through 4 bytes a cycle, whoever takes it. */
TEST(operands_come_from_where_they_lie)
{
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(512, 64));
    ipu_tensor w = device_floats(&d, "w", 2, SHAPE(64, 512));
    int64_t spread;

    MUST(ipu_output(d.graph, "y", ipu_matmul(d.graph, x, w)));
    compiled();
    spread = device_step(&d, 0).exchange_cycles;
    ck_assert_int_lt(spread, 512 * 64);
    device_free(&d);
    d = device_new();
    x = device_floats(&d, "x", 2, SHAPE(512, 64));
    w = device_floats(&d, "w", 2, SHAPE(64, 512));
    MUST(ipu_map(d.graph, x, 7, 1));
    MUST(ipu_output(d.graph, "y", ipu_matmul(d.graph, x, w)));
    compiled();
    ck_assert_int_ge(device_step(&d, 0).exchange_cycles, 512 * 64);
}

static ipu_step_info sum_of(int32_t axis, int32_t tiles)
{
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(1472, 64));
    ipu_step_info info;

    if (tiles)
        MUST(ipu_map(d.graph, x, 0, tiles));
    MUST(ipu_output(d.graph, "y", ipu_sum(d.graph, x, 1, &axis, 0)));
    compiled();
    info = device_step(&d, 0);
    device_free(&d);
    d = device_new();
    return info;
}

/* A row lies on one tile, or on two if it begins within one. A column lies on
 * all tiles that hold rows. All of it lies on one tile, if it has been put
 * there. */
TEST(sums_are_made_where_elements_lie)
{
    ck_assert_int_eq(sum_of(1, 0).exchange_bytes, 0);
    ck_assert_int_eq(sum_of(1, 1000).exchange_bytes, 2 * 4);
    ck_assert_int_gt(sum_of(0, 0).exchange_cycles, 0);
    ck_assert_int_eq(sum_of(0, 1).exchange_bytes, 0);
    ck_assert_int_gt(sum_of(0, 1).compute_cycles,
                     20 * sum_of(0, 0).compute_cycles);
}

/* Returns the instructions of one pair of elements, by the difference to
 * many. */
static double slots_of(ipu_tensor (*op)(ipu_graph *, ipu_tensor),
                       ipu_dtype dtype)
{
    const int64_t pairs = 6 * 100; /* of each tile */
    ipu_tensor x = ipu_input(d.graph, "x", dtype, 1, SHAPE(1472 * 2 * pairs));
    double slots;

    MUST(ipu_output(d.graph, "y", op(d.graph, x)));
    compiled();
    slots = (double)device_step(&d, 0).compute_cycles / (double)pairs;
    /* The time of a function depends on its arguments. */
    ck_assert_int_eq(device_step(&d, 0).estimate == NULL, op == (ipu_relu));
    device_free(&d);
    d = device_new();
    return slots;
}

TEST(functions_take_their_instructions)
{
    double relu = slots_of((ipu_relu), IPU_FLOAT32);
    double exp = slots_of((ipu_exp), IPU_FLOAT32);
    double gelu = slots_of((ipu_gelu), IPU_FLOAT32);

    /* A compiled loop has four slots besides the function: load, store, count,
     * branch. With 600 elements the launch shows. The library's gelu is written
     * by hand. */
    ck_assert_double_eq_tol(relu, 1 + 4, 0.5);
    ck_assert_double_eq_tol(exp, 6 + 4, 0.5);
    ck_assert_double_gt(gelu, exp + 20);
    /* Four halves at a time, and an exponential that two share. */
    ck_assert_double_eq_tol(slots_of((ipu_exp), IPU_FLOAT16), (4 + 4) / 2.0,
                            0.5);
    ck_assert_double_eq_tol(slots_of((ipu_tanh), IPU_FLOAT16), (2 + 4) / 2.0,
                            0.5);
    ck_assert_double_eq_tol(slots_of((ipu_relu), IPU_FLOAT16), (1 + 4) / 2.0,
                            0.5);
}

static ipu_tensor made(int i, ipu_tensor x)
{
    ipu_graph *g = d.graph;
    const int32_t axis = 1;

    switch (i) {
    case 0: return ipu_relu(g, x);
    case 1: return ipu_sum(g, x, 1, &axis, 0);
    case 2: return ipu_transpose(g, x, NULL);
    case 3: return ipu_tanh(g, x);
    case 4: return ipu_softmax(g, x);
    case 5: return ipu_argmax(g, x, 1);
    case 6: return ipu_matmul(g, x, ipu_transpose(g, x, NULL));
    case 7: return ipu_gather(g, x, ipu_counter(g, "row"), 0);
    default:
        return ipu_max_pool2d(g, ipu_reshape(g, x, 4, SHAPE(1, 8, 8, 2)), 2);
    }
}

/* An estimate is marked as one, with the reason; in the report, too. */
LOOP_TEST(estimates_say_why, 0, 9)
{
    static const char *const reasons[] = {NULL,
                                          NULL,
                                          NULL,
                                          "depends on their data",
                                          "depends on",
                                          "does not say how many",
                                          "another plan",
                                          "which rows",
                                          "windows take from"};
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(16, 8));
    ipu_program_cycles all;
    int32_t last = -1;

    without = IPU_PASS_FUSE;
    MUST(ipu_output(d.graph, "y", made(_i, x)));
    compiled();
    all = device_cycles(&d);
    for (int32_t i = 0; last < 0; i++)
        if (device_step(&d, i).estimate || !reasons[_i])
            last = i;
    if (reasons[_i])
        ck_assert_ptr_nonnull(
            strstr(device_step(&d, last).estimate, reasons[_i]));
    ck_assert_int_eq(all.estimates > 0, reasons[_i] != NULL);
}

/* A softmax is computed where its output lies. */
LOOP_TEST(rows_that_lie_elsewhere_are_received, 0, 2)
{
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(1472, 8));
    ipu_tensor y = ipu_softmax(d.graph, x);

    MUST(ipu_output(d.graph, "y", y));
    MUST(ipu_map(d.graph, x, 0, 736));
    MUST(ipu_map(d.graph, y, _i ? 736 : 0, 736));
    compiled();
    ck_assert_int_eq(device_step(&d, 0).exchange_bytes, _i ? 64 : 0);
}

/* Graphcore's library makes a softmax of loops over all elements: the largest,
 * 1 slot of a vector, less it, 2, exp, 6 and 4 around it (halves: 4 and 4),
 * sum, 1 (2), and the product with its inverse, 2. Each starts the six contexts
 * (50 cycles), which take 20 slots to begin and end. A tile has 120 vectors
 * here.
 */
LOOP_TEST(a_softmax_goes_over_its_rows_five_times, 0, 2)
{
    static const struct {
        ipu_dtype dtype;
        int64_t columns, slots;
    } kinds[] = {{IPU_FLOAT32, 240, 1 + 2 + 10 + 1 + 2},
                 {IPU_FLOAT16, 480, 1 + 2 + 8 + 2 + 2}};
    ipu_tensor x = ipu_input(d.graph, "x", kinds[_i].dtype, 2,
                             SHAPE(1472, kinds[_i].columns));

    MUST(ipu_output(d.graph, "y", ipu_softmax(d.graph, x)));
    compiled();
    ck_assert_int_eq(device_step(&d, 0).compute_cycles,
                     5 * (50 + 6 * 20) + 120 * kinds[_i].slots);
    ck_assert_int_eq(device_step(&d, 0).exchange_bytes, 0);
}

/* A norm has several loops by row: of statistics, two sums (halves: 2 slots
 * each) and the inverse of few deviations; of the normalised values, mean,
 * inverse, scale and offset. */
TEST(a_norm_is_many_loops)
{
    const int64_t n = 1472, columns = 480; /* 120 vectors a tile */
    ipu_tensor x = ipu_input(d.graph, "x", IPU_FLOAT16, 2, SHAPE(n, columns));
    ipu_tensor scale =
        ipu_input(d.graph, "scale", IPU_FLOAT16, 1, SHAPE(columns));

    MUST(ipu_output(d.graph, "y",
                    ipu_layer_norm(d.graph, x, scale, scale, 1e-5)));
    compiled();
    ck_assert_str_eq(device_step(&d, 0).op, "norm_statistics");
    ck_assert_int_eq(device_step(&d, 0).compute_cycles,
                     3 * (50 + 6 * 20) + 120 * (2 + 2));
    ck_assert_str_eq(device_step(&d, 1).op, "layer_norm");
    ck_assert_int_eq(device_step(&d, 1).compute_cycles,
                     4 * (50 + 6 * 20) + 120 * 4 * 2);
}

/* The library adds two tensors by hand, three slots for a vector; what it has
 * no loop for is compiled: two loads, a store, two to count, and arithmetic. */
TEST(a_fused_step_is_compiled)
{
    const int64_t count = 1472 * 1200; /* 600 vectors a tile */
    ipu_tensor x = device_floats(&d, "x", 1, &count);
    ipu_tensor y = device_floats(&d, "y", 1, &count);
    ipu_tensor sum = ipu_add(d.graph, x, y);

    MUST(ipu_output(d.graph, "sum", sum));
    compiled();
    ck_assert_int_eq(device_step(&d, 0).compute_cycles, 50 + 6 * 20 + 600 * 3);
    device_free(&d);
    d = device_new();
    x = device_floats(&d, "x", 1, &count);
    y = device_floats(&d, "y", 1, &count);
    MUST(ipu_output(d.graph, "sum", ipu_relu(d.graph, ipu_add(d.graph, x, y))));
    compiled();
    ck_assert_str_eq(device_step(&d, 0).parts, "add, relu");
    ck_assert_int_eq(device_step(&d, 0).compute_cycles,
                     50 + 6 * 20 + 600 * (2 + 1 + 2 + 2));
}

/* Few rows lie on many tiles each, which tell each other their sums. */
TEST(rows_over_several_tiles_are_summed_up)
{
    ipu_tensor few = device_floats(&d, "few", 2, SHAPE(4, 14720));
    ipu_tensor many = device_floats(&d, "many", 2, SHAPE(14720, 4));

    MUST(ipu_output(d.graph, "a", ipu_softmax(d.graph, few)));
    MUST(ipu_output(d.graph, "b", ipu_softmax(d.graph, many)));
    compiled();
    ck_assert_int_gt(device_step(&d, 0).exchange_bytes, 0);
    ck_assert_int_eq(device_step(&d, 1).exchange_bytes, 0);
    ck_assert_int_gt(device_step(&d, 0).total_cycles,
                     device_step(&d, 1).total_cycles);
}

/* A row that is looked up costs itself, whatever the table has. */
TEST(looking_up_does_not_read_the_table)
{
    int64_t taken[2];

    for (int i = 0; i < 2; i++) {
        ipu_tensor table = ipu_variable(d.graph, "table", IPU_FLOAT32, 2,
                                        SHAPE(i ? 50000 : 500, 64));
        ipu_tensor at = ipu_input(d.graph, "at", IPU_INT32, 1, SHAPE(1472));

        MUST(ipu_output(d.graph, "y", ipu_embedding(d.graph, table, at)));
        compiled();
        taken[i] = device_step(&d, 0).total_cycles;
        ck_assert_int_eq(device_step(&d, 0).exchange_bytes, 64 * 4);
        ck_assert_ptr_nonnull(
            strstr(device_step(&d, 0).estimate, "known only when it"));
        device_free(&d);
        d = device_new();
    }
    ck_assert_int_eq(taken[0], taken[1]);
}

TEST(tiles_without_work_wait)
{
    ipu_cycles busy = {.size = sizeof busy}, idle = busy;
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(8));

    MUST(ipu_output(d.graph, "y", ipu_relu(d.graph, x)));
    compiled();
    ck_assert_int_eq(device_step(&d, 0).busy_tiles, 4);
    MUST(ipu_executable_tile_cycles(d.executable, 0, 3, &busy));
    MUST(ipu_executable_tile_cycles(d.executable, 0, 4, &idle));
    ck_assert_int_gt(busy.compute, 0);
    ck_assert_int_eq(idle.compute, 0);
    ck_assert_int_eq(idle.sync - busy.sync, busy.compute);
    ck_assert_int_eq(idle.total, busy.total);
}

/* The mean tile's wait for the busiest is reported besides its compute: for a
 * relu of one vector (2 floats) on each of half the tiles; then of two on half
 * of them and one on the others, which all start their contexts. */
TEST(waiting_for_the_busiest_is_told)
{
    const int64_t start = 50 + 6 * 20, turn = 6 * 5;
    const int64_t half = 1472, more = 1472 * 6 * 2 * 3 / 2;

    MUST(ipu_output(d.graph, "a",
                    ipu_relu(d.graph, device_floats(&d, "x", 1, &half))));
    MUST(ipu_output(d.graph, "b",
                    ipu_relu(d.graph, device_floats(&d, "y", 1, &more))));
    compiled();
    ck_assert_int_eq(device_step(&d, 0).compute_cycles, start + turn);
    ck_assert_int_eq(device_step(&d, 0).waiting_cycles, (start + turn) / 2);
    /* Nine vectors a tile are two turns of six contexts; all have as many. */
    ck_assert_int_eq(device_step(&d, 1).compute_cycles, start + 2 * turn);
    ck_assert_int_eq(device_step(&d, 1).waiting_cycles, 0);
    ck_assert_int_eq(device_cycles(&d).waiting, (start + turn) / 2);
}

/* A product of few rows and columns leaves tiles without a block. */
TEST(products_that_are_uneven_wait)
{
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(3, 8));
    ipu_tensor even = device_floats(&d, "even", 2, SHAPE(1472, 64));

    MUST(ipu_output(
        d.graph, "a",
        ipu_matmul(d.graph, x,
                   ipu_variable(d.graph, "w", IPU_FLOAT32, 2, SHAPE(8, 5)))));
    MUST(ipu_output(
        d.graph, "b",
        ipu_matmul(d.graph, even,
                   ipu_variable(d.graph, "v", IPU_FLOAT32, 2, SHAPE(64, 64)))));
    compiled();
    ck_assert_int_gt(device_step(&d, 0).waiting_cycles,
                     device_step(&d, 0).compute_cycles * 9 / 10);
    ck_assert_int_lt(device_step(&d, 1).waiting_cycles,
                     device_step(&d, 1).compute_cycles / 10);
}

TEST(a_faster_chip_is_faster)
{
    double mk2;

    small_layer();
    compiled();
    mk2 = device_cycles(&d).seconds;
    ipu_executable_free(d.executable);
    MUST(ipu_target_find("bow", &target));
    compiled();
    ck_assert(device_cycles(&d).seconds < mk2);
}

TEST_MAIN("device_target_program", .set_up = set_up, .tear_down = tear_down)
