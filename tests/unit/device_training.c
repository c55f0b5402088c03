/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests gradients accumulated over mini-batches: the ops of each run, the
 * reductions, the state after a failing run, and the cost.
 */
#include "suite.h"

#include <math.h>

#include "accumulated.h"

static int32_t read_int(const char *name)
{
    int32_t value;

    MUST(ipu_engine_read(d.engine, name, &value, sizeof value));
    return value;
}

/* --------------------------------------------------------------- reductions */

static const double wanted[] = {[IPU_REDUCTION_SUM] = 1 + 2 + 4 + 8,
                                [IPU_REDUCTION_MEAN] = 15.0 / 4,
                                [IPU_REDUCTION_RUNNING_MEAN] = 15.0 / 4};

LOOP_TEST(a_variable_changes_in_every_nth_run, 0, 3)
{
    const ipu_accumulation_options o = {.size = sizeof o, .reduction = _i};
    double before = 0;

    g = ipu_accumulate(d.graph, w, g, N, &o);
    MUST(ipu_sgd(d.graph, w, g, rate, NULL));
    ck_assert_int_eq(ipu_update_count(d.graph), N);
    device_load(&d);
    for (int update = 0; update < 3; update++) {
        for (int i = 0; i < N; i++) {
            ck_assert_int_eq(read_int("update/4/mini_batch"), i);
            ck_assert_double_eq_tol((double)read_first("w"), before, 1e-6);
            run_with((float)(1 << i));
        }
        before -= 0.5 * wanted[_i];
        ck_assert_double_eq_tol((double)read_first("w"), before, 1e-6);
    }
}

/* Values from before the update must not come back, not even a NaN. */
LOOP_TEST(accumulation_begins_anew, 0, 3)
{
    const ipu_accumulation_options o = {.size = sizeof o, .reduction = _i};

    g = ipu_accumulate(d.graph, w, g, 2, &o);
    MUST(ipu_assign(d.graph, w, g));
    device_load(&d);
    run_with(NAN);
    run_with(1);
    for (int i = 0; i < 2; i++)
        run_with(8);
    ck_assert_float_eq(read_first("w"), _i == IPU_REDUCTION_SUM ? 16 : 8);
}

TEST(reductions_have_names)
{
    ipu_reduction r = -1;

    for (int i = 0; i < 3; i++) {
        MUST(ipu_reduction_parse(ipu_reduction_name(i), &r));
        ck_assert_int_eq(r, i);
    }
    MUST(ipu_reduction_parse("running_mean", &r));
    ck_assert_int_eq(r, IPU_REDUCTION_RUNNING_MEAN);
    MUST_FAIL(ipu_reduction_parse("AVERAGE", &r), IPU_ERR_NAME,
              "'AVERAGE' cannot be parsed as the reduction of accumulated "
              "gradients: valid are SUM, MEAN, RUNNING_MEAN");
    MUST_FAIL(ipu_reduction_parse(NULL, &r), IPU_ERR_NAME, "valid are");
    MUST_FAIL(ipu_reduction_parse("SUM", NULL), IPU_ERR_ARGUMENT,
              "the place for the reduction is NULL");
    ck_assert_int_eq(r, IPU_REDUCTION_RUNNING_MEAN);
    ck_assert_ptr_null(ipu_reduction_name(3));
    ck_assert_ptr_null(ipu_reduction_name(-1));
}

/* -------------------------------------------------------- the update region */

static int calls;

static int note(void *context, const char *name, void *data, int64_t count)
{
    (void)name, (void)count;
    *(float *)context = *(const float *)data;
    calls++;
    return 0;
}

/* A host call of an accumulated gradient is made in every n-th run: what
 * reduces it over ranks does so n times less often. */
TEST(host_calls_are_made_with_updates)
{
    float seen = 0, host[COUNT] = {-1};

    calls = 0;
    g = ipu_accumulate(d.graph, w, g, N, NULL);
    MUST(ipu_host_call(d.graph, "call", g, note, &seen));
    MUST(ipu_output(d.graph, "sum", g));
    device_load(&d);
    device_connect(&d, "sum", host, COUNT);
    for (int i = 1; i <= 3 * N; i++) {
        run_with((float)i);
        ck_assert_int_eq(calls, i / N);
        if (i < N)
            ck_assert_float_eq(host[0], -1); /* left as it is */
    }
    ck_assert_float_eq(seen, 9 + 10 + 11 + 12);
    ck_assert_float_eq(host[COUNT - 1], 9 + 10 + 11 + 12);
}

/* Ops in the scope need not depend on a gradient. */
TEST(updates_are_counted)
{
    MUST(ipu_update_begin(d.graph, 3));
    ipu_counter(d.graph, "updates");
    MUST(ipu_assign(d.graph, w, g));
    MUST(ipu_update_end(d.graph));
    ipu_counter(d.graph, "runs");
    device_load(&d);
    for (int i = 1; i <= 10; i++) {
        run_with((float)i);
        ck_assert_int_eq(read_int("runs"), i);
        ck_assert_int_eq(read_int("updates"), i / 3);
        ck_assert_float_eq(read_first("w"), (float)(i / 3 * 3));
    }
}

/* Ops of the region see other variables as they were in that run. */
TEST(the_region_sees_what_was)
{
    ipu_tensor last =
        ipu_variable(d.graph, "last", IPU_FLOAT32, 1, SHAPE(COUNT));

    MUST(ipu_assign(d.graph, last, g));
    g = ipu_accumulate(d.graph, w, g, 2, NULL);
    MUST(ipu_assign(d.graph, w, ipu_subtract(d.graph, g, last)));
    device_load(&d);
    run_with(5);
    run_with(7);
    ck_assert_float_eq(read_first("w"), 5 + 7 - 5);
    ck_assert_float_eq(read_first("last"), 7);
}

static int refuse(void *context, const char *name, void *data, int64_t count)
{
    (void)name, (void)data, (void)count;
    return *(int *)context;
}

/* A failing run does not count, and its accumulated gradients are discarded. */
LOOP_TEST(a_run_that_fails_has_not_been, 0, 2)
{
    int answer = 0;
    ipu_tensor sum = ipu_accumulate(d.graph, w, g, 2, NULL);

    MUST(ipu_assign(d.graph, w, sum));
    MUST(ipu_host_call(d.graph, "call", _i ? sum : g, refuse, &answer));
    device_load(&d);
    run_with(1);
    answer = -3;
    for (int i = 0; i < 3; i++) {
        float slopes[COUNT] = {100};

        device_connect(&d, "g", slopes, COUNT);
        MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_CALLBACK, "returned -3");
        ck_assert_float_eq(read_first("w/accumulator"), 1);
        ck_assert_float_eq(read_first("w"), 0);
    }
    answer = 0;
    run_with(2);
    ck_assert_float_eq(read_first("w"), 3);
}

/* Two regions, of 2 and of 3: 6 runs are a whole. */
TEST(regions_have_their_own_counts)
{
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(COUNT));

    MUST(ipu_assign(d.graph, w, ipu_accumulate(d.graph, w, g, 2, NULL)));
    MUST(ipu_assign(d.graph, v, ipu_accumulate(d.graph, v, g, 3, NULL)));
    ck_assert_int_eq(ipu_update_count(d.graph), 6);
    device_load(&d);
    for (int i = 1; i <= 6; i++)
        run_with((float)i);
    ck_assert_float_eq(read_first("w"), 5 + 6);
    ck_assert_float_eq(read_first("v"), 4 + 5 + 6);
}

TEST(the_update_costs_in_every_nth_run)
{
    ipu_program_cycles plain = {.size = sizeof plain}, all = plain;
    ipu_step_info step = {.size = sizeof step};
    ipu_memory_info memory = {.size = sizeof memory};
    int64_t cycles = 0, with_update = 0;
    ipu_executable *without;

    MUST(ipu_output(d.graph, "loss", ipu_reduce_sum(d.graph, g, 1)));
    MUST(ipu_compile(d.graph, NULL, &without));
    MUST(ipu_executable_cycles(without, &plain));
    ck_assert_int_eq(plain.update, 0);
    ck_assert_int_eq(plain.mean_total, plain.total);
    g = ipu_accumulate(d.graph, w, g, N, NULL);
    MUST(ipu_sgd(d.graph, w, g, rate, NULL));
    device_load(&d);
    MUST(ipu_executable_cycles(d.executable, &all));
    MUST(ipu_executable_memory(d.executable, &memory));
    for (int32_t i = 0; i < memory.steps; i++) {
        MUST(ipu_executable_step(d.executable, i, &step));
        ck_assert(step.update_count == 1 || step.update_count == N);
        *(step.update_count == 1 ? &cycles : &with_update) += step.total_cycles;
    }
    ck_assert_int_gt(with_update, 0);
    ck_assert_int_eq(all.update, with_update);
    ck_assert_int_eq(all.total, cycles + with_update + all.host);
    ck_assert_int_eq(all.mean_total,
                     all.total - (int64_t)((double)with_update * 0.75));
    ipu_executable_free(without);
}

/* The accumulated gradient is the accumulator, not another tensor. */
TEST(accumulators_are_updated_in_place)
{
    enum { LARGE = 10000 };
    ipu_memory_info memory = {.size = sizeof memory};
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(LARGE));
    ipu_tensor h = device_floats(&d, "h", 1, SHAPE(LARGE));

    MUST(ipu_sgd(d.graph, v, ipu_accumulate(d.graph, v, h, N, NULL), rate,
                 NULL));
    device_load(&d);
    MUST(ipu_executable_memory(d.executable, &memory));
    /* v, its accumulator, h */
    ck_assert_int_lt(memory.peak_bytes, 3 * LARGE * 4 + 1000);
}

TEST(loops_and_pipelines_can_ask)
{
    MUST(ipu_update_check_iterations(d.graph, "repeat", 7));
    MUST(ipu_update_check_absent(d.graph, "pipeline"));
    ipu_accumulate(d.graph, w, g, N, NULL);
    MUST(ipu_update_check_iterations(d.graph, "repeat", 2 * N));
    MUST_FAIL(ipu_update_check_iterations(d.graph, "repeat 'train'", 10),
              IPU_ERR_STATE,
              "repeat 'train': gradients are accumulated over 4 mini-batches "
              "inside a loop of 10 iterations: 4 must divide the number of "
              "iterations evenly");
    MUST_FAIL(ipu_update_check_absent(d.graph, "pipeline"), IPU_ERR_STATE,
              "a pipeline does so itself");
}

/* The variable's value at the beginning of the run decides whether it updates,
 * although the same run assigns it. */
TEST(a_variable_says_whether_to_update)
{
    ipu_tensor on = ipu_variable(d.graph, "on", IPU_INT32, 0, NULL);
    ipu_tensor zero = ipu_fill(d.graph, IPU_INT32, 0, NULL, 0);
    int32_t one = 1;

    MUST(ipu_assign(d.graph, on, ipu_equal(d.graph, on, zero)));
    MUST(ipu_update_begin_if(d.graph, 1, on));
    MUST(ipu_sgd(d.graph, w, g, rate, NULL));
    MUST(ipu_update_end(d.graph));
    device_load(&d);
    MUST(ipu_engine_write(d.engine, "on", &one, sizeof one));
    for (int run = 1; run <= 4;
         run++) { /* w changes in the first and the third run */
        run_with(1);
        ck_assert_int_eq(read_int("on"), run % 2 == 0);
        ck_assert_float_eq(read_first("w"), run < 3 ? -0.5f : -1);
    }
}

/* The sum of three gradients says itself whether there is an update. */
TEST(sums_that_are_not_finite_are_skipped)
{
    const float gradients[][3] = {{1, 2, 4},
                                  {1, INFINITY, 4},
                                  {NAN, 1, 1},
                                  {8, 8, (float)-INFINITY},
                                  {1, 1, 2}};
    int32_t bad = 7;
    ipu_tensor sum = ipu_accumulate(d.graph, w, g, 3, NULL), found;

    found = ipu_find_nonfinite(d.graph, 2, (ipu_tensor[]){sum, sum});
    MUST(ipu_output(d.graph, "bad", found));
    MUST(ipu_update_begin_if(
        d.graph, 3,
        ipu_less(d.graph, found, ipu_fill(d.graph, IPU_INT32, 0, NULL, 0))));
    MUST(ipu_sgd(d.graph, w, sum, rate, NULL));
    ipu_counter(d.graph, "updates");
    MUST(ipu_update_end(d.graph));
    device_load(&d);
    MUST(ipu_engine_connect(d.engine, "bad", &bad, sizeof bad));
    for (int update = 0; update < 5; update++) {
        for (int i = 0; i < 3; i++)
            run_with(gradients[update][i]);
        ck_assert_int_eq(bad, update == 0 || update == 4 ? -1 : 0);
        ck_assert_float_eq(read_first("w"), update < 4 ? -3.5F : -5.5F);
        ck_assert_int_eq(read_int("updates"), update < 4 ? 1 : 2);
    }
}

TEST(the_first_that_is_not_finite_is_found)
{
    ipu_tensor some[] = {w, g, ipu_multiply(d.graph, g, g), w};
    ipu_tensor number = ipu_fill(d.graph, IPU_INT32, 0, NULL, 1);
    int32_t none = 0, bad = 0, square = 0;

    MUST(ipu_output(d.graph, "none", ipu_find_nonfinite(d.graph, 0, NULL)));
    MUST(ipu_output(d.graph, "bad", ipu_find_nonfinite(d.graph, 4, some)));
    MUST(ipu_output(d.graph, "square",
                    ipu_find_nonfinite(d.graph, 2, some + 2)));
    device_load(&d);
    MUST(ipu_engine_connect(d.engine, "none", &none, sizeof none));
    MUST(ipu_engine_connect(d.engine, "bad", &bad, sizeof bad));
    MUST(ipu_engine_connect(d.engine, "square", &square, sizeof square));
    run_with(1);
    ck_assert_int_eq(none, -1);
    ck_assert_int_eq(bad, -1);
    run_with(1e30F);
    ck_assert_int_eq(bad, 2);
    ck_assert_int_eq(square, 0);
    run_with(NAN);
    ck_assert_int_eq(bad, 1);
    ck_assert_int_lt(ipu_find_nonfinite(d.graph, 1, &number).id, 0);
    ck_assert_int_lt(ipu_find_nonfinite(NULL, 1, &number).id, 0);
}

TEST(regions_do_not_mix)
{
    ipu_tensor two = ipu_accumulate(d.graph, w, g, 2, NULL);
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(COUNT));
    ipu_tensor three = ipu_accumulate(d.graph, v, g, 3, NULL);

    ck_assert_int_lt(ipu_add(d.graph, two, three).id, 0);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable), IPU_ERR_STATE,
              "is computed in each 3 runs, and cannot be used in what is "
              "computed in each 2");
}

static ipu_dtype no_dtype(void *context, const char *variable, ipu_dtype dtype)
{
    (void)context, (void)variable, (void)dtype;
    return 99;
}

static void refuse_accumulation(int i)
{
    const ipu_dtype number = IPU_INT32;
    ipu_accumulation_options o = {.size = sizeof o};
    ipu_tensor scalar = ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, 1);

    switch (i) {
    case 0: ipu_accumulate(d.graph, g, g, 2, NULL); break;
    case 1: ipu_accumulate(d.graph, w, scalar, 2, NULL); break;
    case 2: ipu_accumulate(d.graph, w, g, 0, NULL); break;
    case 3:
        o.size = 8;
        ipu_accumulate(d.graph, w, g, 2, &o);
        break;
    case 4:
        o.reduction = 3;
        ipu_accumulate(d.graph, w, g, 2, &o);
        break;
    case 5:
        o.dtype = &number;
        ipu_accumulate(d.graph, w, g, 2, &o);
        break;
    case 6:
        o.choose = no_dtype;
        ipu_accumulate(d.graph, w, g, 2, &o);
        break;
    case 7:
        g = ipu_accumulate(d.graph, w, g, 2, NULL);
        ipu_accumulate(d.graph, w, g, 2, NULL);
        break;
    case 8:
        ipu_accumulate(d.graph, w, g, 2, NULL);
        ipu_accumulate(d.graph, w, g, 2, NULL);
        break;
    case 9: ipu_update_end(d.graph); break;
    case 10:
        ipu_update_begin(d.graph, 2);
        ipu_update_begin(d.graph, 2);
        break;
    case 11: ipu_update_offload(d.graph, 2, 3, 0); break;
    case 12: ipu_update_offload(d.graph, 2, IPU_OFFLOAD_ON, -1); break;
    case 13: ipu_update_begin(d.graph, 1 << 21); break;
    default: break;
    }
}

static const char *const refusals[] = {
    "g is not a variable",
    "the gradient fill:1 is float32 []: the same floats are wanted",
    "update: of 0 mini-batches; 1 to 1048576",
    "the options' size is 8",
    "the reduction is 3; there are SUM, MEAN and RUNNING_MEAN",
    "dtype 1 for the accumulator of w: it must be float32",
    "dtype 99 for the accumulator of w",
    "it has been accumulated already",
    "'w/accumulator': an input or variable has that name",
    "no region has begun",
    "a region of count 2 has begun and not ended",
    "3 is neither AUTO, ON nor OFF",
    "at least -1 bytes",
    "of 2097152 mini-batches",
};

LOOP_TEST(accumulation_refuses, 0, sizeof refusals / sizeof refusals[0])
{
    refuse_accumulation(_i);
    device_says(&d, refusals[_i]);
}

TEST_MAIN("device_training", .set_up = set_up, .tear_down = tear_down)
