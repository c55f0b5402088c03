/* SPDX-License-Identifier: Apache-2.0 */
/* Loops have costs, and their bodies can be inspected. */
#include "device.h"
#include "suite.h"

static int multiply_body(ipu_graph *g, void *context, int32_t ninputs,
                         const ipu_tensor *in, int32_t noutputs,
                         ipu_tensor *out)
{
    const ipu_tensor *w = context;

    (void)ninputs, (void)noutputs;
    out[0] = ipu_tanh(g, ipu_matmul(g, in[0], *w));
    return 0;
}

static ipu_program_cycles cycles_of(int64_t count)
{
    struct device d = device_new();
    ipu_tensor w = device_floats(&d, "w", 2, SHAPE(64, 64)), x, out;
    ipu_program_cycles cycles = {.size = sizeof cycles};

    x = device_floats(&d, "x", 2, SHAPE(64, 64));
    MUST(ipu_repeat(d.graph, count, multiply_body, &w, 1, &x, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    device_load(&d);
    MUST(ipu_executable_cycles(d.executable, &cycles));
    device_free(&d);
    return cycles;
}

/* Cycles are those of an iteration, times their number; the host's are not. */
TEST(cycles_grow_with_iterations)
{
    ipu_program_cycles zero = cycles_of(0), one = cycles_of(1),
                       many = cycles_of(1000);

    ck_assert_int_gt(one.compute, zero.compute);
    ck_assert_int_eq(many.compute - zero.compute,
                     1000 * (one.compute - zero.compute));
    ck_assert_int_eq(many.exchange, 1000 * one.exchange);
    ck_assert_double_eq_tol(many.flops, 1000 * one.flops, 1e-6 * many.flops);
    ck_assert_int_eq(many.host, one.host);
    ck_assert_int_eq(many.total,
                     many.compute + many.exchange + many.sync + many.host);
    /* A cost too large to be counted is reported as a huge one, and nothing
     * overflows. */
    many = cycles_of(INT64_MAX);
    ck_assert_int_ge(many.total, INT64_C(1) << 56);
    ck_assert_int_ge(many.total, many.compute);
}

static int large_condition(ipu_graph *g, void *context, int32_t ninputs,
                           const ipu_tensor *in, int32_t noutputs,
                           ipu_tensor *out)
{
    ipu_tensor all = ipu_broadcast(g, in[0], 2, SHAPE(4096, 4096)), sum;
    const int32_t axis = 1;

    (void)context, (void)ninputs, (void)noutputs;
    all = ipu_transpose(g, ipu_tanh(g, ipu_transpose(g, all, NULL)), NULL);
    sum = ipu_reduce_sum(g, ipu_sum(g, all, 1, &axis, 0), 1);
    out[0] = ipu_less(g, sum, ipu_fill(g, IPU_FLOAT32, 0, NULL, 1));
    return 0;
}

static int small_body(ipu_graph *g, void *context, int32_t ninputs,
                      const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)noutputs;
    out[0] = ipu_tanh(g, in[0]);
    return 0;
}

/* The tensors of a condition are in memory while it runs. */
TEST(conditions_need_memory)
{
    struct device d = device_new();
    ipu_memory_info memory = {.size = sizeof memory};
    ipu_tensor x = device_floats(&d, "x", 0, NULL), out;

    MUST(ipu_while(d.graph, 5, large_condition, small_body, NULL, 1, &x, NULL,
                   &out));
    MUST(ipu_output(d.graph, "y", out));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    MUST(ipu_executable_memory(d.executable, &memory));
    ck_assert_int_gt(memory.fullest_tile_bytes, 4096 * 4096 * 4 / 1472);
    device_free(&d);
}

/* Updates in every second iteration of the largest possible loop: the costs
 * must not overflow to a negative sum. */
static int update_seldom(ipu_graph *g, void *context, int32_t ninputs,
                         const ipu_tensor *in, int32_t noutputs,
                         ipu_tensor *out)
{
    const ipu_tensor *w = context;
    ipu_tensor rate = ipu_fill(g, IPU_FLOAT32, 0, NULL, 1);

    (void)ninputs, (void)noutputs;
    out[0] = ipu_tanh(g, in[0]);
    MUST(ipu_update_begin(g, 2));
    MUST(ipu_sgd(g, *w, ipu_accumulate(g, *w, in[0], 2, NULL), rate, NULL));
    return ipu_update_end(g);
}

static ipu_program_cycles cycles_of_updates(int64_t count)
{
    struct device d = device_new();
    ipu_program_cycles cycles = {.size = sizeof cycles};
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(64));
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(64)), out;

    MUST(ipu_repeat(d.graph, count, update_seldom, &w, 1, &x, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    MUST(ipu_executable_cycles(d.executable, &cycles));
    device_free(&d);
    return cycles;
}

TEST(seldom_updates_are_counted)
{
    const int64_t most = INT64_C(1) << 52;
    ipu_program_cycles two = cycles_of_updates(2), four = cycles_of_updates(4),
                       many = cycles_of_updates(100),
                       all = cycles_of_updates(most);

    ck_assert_int_eq(many.total, two.total + 49 * (four.total - two.total));
    ck_assert_int_eq(many.compute,
                     two.compute + 49 * (four.compute - two.compute));
    ck_assert_int_gt(all.total, most);
    ck_assert_int_gt(all.compute, most);
    ck_assert_int_gt(all.sync, most);
}

/* One run of ten iterations costs the device as much as ten runs of one, except
 * for counting. The host is met once instead of ten times. */
TEST(one_run_meets_the_host_once)
{
    ipu_program_cycles once = cycles_of(1), loop = cycles_of(10);

    ck_assert_int_gt(once.host, 0);
    ck_assert_int_eq(loop.host, once.host);
    ck_assert_int_lt(loop.total, 10 * once.total - 8 * once.host);
    ck_assert_int_eq(loop.sync, 10 * once.sync);
}

TEST(bodies_can_be_looked_at)
{
    struct device d = device_new();
    ipu_tensor w = device_floats(&d, "w", 2, SHAPE(64, 64)), x, out;
    const ipu_executable *body;
    ipu_step_info info = {.size = sizeof info};
    ipu_memory_info memory = {.size = sizeof memory};
    int64_t count;

    x = device_floats(&d, "x", 2, SHAPE(64, 64));
    MUST(ipu_repeat(d.graph, 6, multiply_body, &w, 1, &x, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    device_load(&d);
    ck_assert_int_eq(ipu_executable_body(d.executable, 0, &body, &count), 1);
    ck_assert_int_eq(count, 6);
    ck_assert_int_eq(ipu_executable_body(body, 0, NULL, &count), 0);
    ck_assert_int_eq(count, 1);
    MUST(ipu_executable_step(body, 0, &info));
    ck_assert_str_eq(info.op, "matmul");
    MUST(ipu_executable_step(d.executable, 0, &info));
    ck_assert_str_eq(info.op, "loop");
    ck_assert_int_gt(info.temporary_bytes, 0);
    MUST(ipu_executable_memory(d.executable, &memory));
    ck_assert_int_gt(memory.code_bytes_per_tile, 0);
    MUST_FAIL(ipu_executable_body(d.executable, 1, NULL, NULL),
              IPU_ERR_ARGUMENT, "there is no step 1");
    device_free(&d);
}

TEST_MAIN("device_loops_costs")
