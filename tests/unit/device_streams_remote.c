/* SPDX-License-Identifier: Apache-2.0 */
/* Tests remote buffers, which are rows in the memory off the chip. */
#include "device.h"
#include "suite.h"

static ipu_tensor number(ipu_graph *g, int32_t value)
{
    return ipu_fill(g, IPU_INT32, 0, NULL, value);
}

static void write_rows(struct device *d, float first)
{
    for (int64_t row = 0; row < 4; row++) {
        float data[3];

        for (int i = 0; i < 3; i++)
            data[i] = first + (float)(10 * row + i);
        MUST(ipu_remote_write(d->engine, "rows", row, data, sizeof data));
    }
}

static void check_row(struct device *d, int64_t row, float first)
{
    float data[3];

    MUST(ipu_remote_read(d->engine, "rows", row, data, sizeof data));
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(data[i], first + (float)i);
}

/* Loads and stores of one buffer happen in the order in which they are built,
 * whatever the numbers are. */
TEST(rows_are_loaded_and_stored_in_order)
{
    struct device d = device_new();
    ipu_remote_buffer rows;
    ipu_tensor i = ipu_input(d.graph, "i", IPU_INT32, 0, NULL), before, after;
    float seen[6];
    int32_t index = 2;

    rows = ipu_remote_buffer_new(d.graph, "rows", IPU_FLOAT32, 4, 1, SHAPE(3));
    before = ipu_remote_load(d.graph, rows, i);
    MUST(
        ipu_remote_store(d.graph, rows, i, ipu_scale(d.graph, before, 1, 100)));
    after = ipu_remote_load(d.graph, rows, i);
    MUST(ipu_remote_store(d.graph, rows, number(d.graph, 0), after));
    MUST(ipu_output(d.graph, "after", after));
    MUST(ipu_output(d.graph, "before", before));
    device_load(&d);
    device_connect(&d, "i", &index, 1);
    device_connect(&d, "before", &seen[0], 3);
    device_connect(&d, "after", &seen[3], 3);
    write_rows(&d, 0);
    MUST(ipu_engine_run(d.engine));
    for (int k = 0; k < 3; k++) {
        ck_assert_float_eq(seen[k], 20 + (float)k);
        ck_assert_float_eq(seen[3 + k], 120 + (float)k);
    }
    check_row(&d, 0, 120);
    check_row(&d, 1, 10);
    check_row(&d, 2, 120);
    device_free(&d);
}

/* The order also holds if only the host reads what was loaded before a
 * store. */
TEST(rows_are_loaded_before_they_are_stored)
{
    struct device d = device_new();
    ipu_remote_buffer rows;
    ipu_tensor early;
    float seen[3];

    rows = ipu_remote_buffer_new(d.graph, "rows", IPU_FLOAT32, 4, 1, SHAPE(3));
    early = ipu_remote_load(d.graph, rows, number(d.graph, 1));
    MUST(ipu_remote_store(d.graph, rows, number(d.graph, 1),
                          ipu_fill(d.graph, IPU_FLOAT32, 1, SHAPE(3), 7)));
    MUST(ipu_output(d.graph, "early", early));
    device_load(&d);
    device_connect(&d, "early", seen, 3);
    write_rows(&d, 0);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(seen[2], 12);
    MUST(ipu_remote_read(d.engine, "rows", 1, seen, sizeof seen));
    ck_assert_float_eq(seen[2], 7);
    device_free(&d);
}

/* row[i] = row[i] + row[i - 1], i carried */
static int add_previous(ipu_graph *g, void *context, int32_t ninputs,
                        const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const ipu_remote_buffer *rows = context;
    ipu_tensor here = ipu_remote_load(g, *rows, in[0]), last;

    (void)ninputs, (void)noutputs;
    last = ipu_remote_load(g, *rows, ipu_subtract(g, in[0], number(g, 1)));
    out[0] = ipu_add(g, in[0], number(g, 1));
    return ipu_remote_store(g, *rows, in[0], ipu_add(g, here, last));
}

TEST(rows_in_loops)
{
    struct device d = device_new();
    ipu_remote_buffer rows;
    ipu_tensor one = number(d.graph, 1), end;

    rows = ipu_remote_buffer_new(d.graph, "rows", IPU_FLOAT32, 4, 1, SHAPE(3));
    MUST(ipu_repeat(d.graph, 3, add_previous, &rows, 1, &one, NULL, &end));
    device_load(&d);
    write_rows(&d, 0);
    MUST(ipu_engine_run(d.engine));
    for (int64_t row = 0; row < 4; row++) {
        float data[3];

        MUST(ipu_remote_read(d.engine, "rows", row, data, sizeof data));
        for (int i = 0; i < 3; i++)
            ck_assert_float_eq(data[i],
                               (float)(5 * row * (row + 1) + (row + 1) * i));
    }
    device_free(&d);
}

TEST(rows_that_do_not_exist)
{
    struct device d = device_new();
    ipu_remote_buffer rows;
    ipu_tensor i = ipu_input(d.graph, "i", IPU_INT32, 0, NULL);
    float row[3], y[3];
    int32_t index = 4;

    rows = ipu_remote_buffer_new(d.graph, "rows", IPU_FLOAT32, 4, 1, SHAPE(3));
    MUST(ipu_output(d.graph, "y", ipu_remote_load(d.graph, rows, i)));
    device_load(&d);
    device_connect(&d, "i", &index, 1);
    device_connect(&d, "y", y, 3);
    write_rows(&d, 5);
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_DATA,
              "there is no row 4 in remote buffer 'rows': it has 0 to 3");
    index = -1;
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_DATA, "there is no row -1");
    index = 3;
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(y[0], 35);
    MUST_FAIL(ipu_remote_read(d.engine, "rows", 4, row, sizeof row),
              IPU_ERR_ARGUMENT, "has rows 0 to 3, not 4");
    MUST_FAIL(ipu_remote_write(d.engine, "rows", 0, row, 8), IPU_ERR_SHAPE,
              "a row of remote buffer 'rows' is 12 bytes, not 8");
    MUST_FAIL(ipu_remote_write(d.engine, "rows", 0, row,
                               ((size_t)1 << 62) + sizeof row),
              IPU_ERR_SHAPE, "is 12 bytes, not 4611686018427387916");
    MUST_FAIL(ipu_remote_write(d.engine, "row", 0, row, sizeof row),
              IPU_ERR_NAME, "there is no remote buffer 'row'");
    MUST_FAIL(ipu_remote_write(d.engine, "rows", 0, NULL, 12), IPU_ERR_ARGUMENT,
              "the host memory is NULL");
    device_free(&d);
}

static void check_refused(int64_t rows, int32_t ndim, const int64_t *shape,
                          int status, const char *words)
{
    struct device d = device_new();

    ck_assert_int_lt(
        ipu_remote_buffer_new(d.graph, "rows", IPU_FLOAT32, rows, ndim, shape)
            .id,
        0);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable), status, words);
    device_free(&d);
}

TEST(buffers_that_cannot_be)
{
    check_refused(0, 1, SHAPE(3), IPU_ERR_ARGUMENT, "0 rows");
    check_refused(2, 1, SHAPE(0), IPU_ERR_SHAPE, "a row is 0 bytes");
    check_refused(2, 1, SHAPE((1 << 25) + 1), IPU_ERR_SHAPE,
                  "a transfer has 1 to 134217728 (128 MiB): make more rows");
    check_refused(2, 8, SHAPE(1, 1, 1, 1, 1, 1, 1, 1), IPU_ERR_SHAPE,
                  "they have at most 7");
}

TEST(what_is_no_buffer)
{
    struct device d = device_new();
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(3)), x;

    x = ipu_remote_load(d.graph, (ipu_remote_buffer){w.id}, number(d.graph, 0));
    ck_assert_int_lt(x.id, 0);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable), IPU_ERR_ARGUMENT,
              "load_row: w is no remote buffer");
    device_free(&d);
    d = device_new();
    MUST_FAIL(
        ipu_remote_store(
            d.graph,
            ipu_remote_buffer_new(d.graph, "b", IPU_FLOAT32, 2, 1, SHAPE(3)),
            number(d.graph, 0),
            ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(4))),
        IPU_ERR_SHAPE, "w is float32 [4], a row of 'b' is float32 [3]");
    device_free(&d);
}

/* Rows lie on no tile, and their cycles are those of streaming memory. A chip
 * without it cannot have them. */
TEST(rows_cost_streams)
{
    struct device d = device_new();
    ipu_remote_buffer rows;
    ipu_program_cycles cycles = {.size = sizeof cycles};
    ipu_memory_info memory = {.size = sizeof memory};
    ipu_cycles one = {.size = sizeof one};
    ipu_system system = {.size = sizeof system};
    ipu_target target;

    rows = ipu_remote_buffer_new(d.graph, "rows", IPU_FLOAT32, 1000, 1,
                                 SHAPE(1000000));
    MUST(ipu_output(d.graph, "y",
                    ipu_remote_load(d.graph, rows, number(d.graph, 7))));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    MUST(ipu_executable_memory(d.executable, &memory));
    ck_assert_int_eq(memory.remote_bytes, 4000000000);
    ck_assert_int_lt(memory.peak_bytes, 5000000);
    MUST(ipu_executable_cycles(d.executable, &cycles));
    ck_assert_int_eq(cycles.streaming_bytes, 4000000);
    MUST(ipu_system_find("M2000", &system));
    MUST(ipu_model_streaming(&system, 4000000, &one));
    ck_assert_int_eq(cycles.streaming, one.exchange);
    ipu_executable_free(d.executable);
    d.executable = NULL;
    ipu_target_init(&target, sizeof target);
    target.streaming_bytes_per_second = 0;
    MUST_FAIL(ipu_compile(d.graph, &target, &d.executable), IPU_ERR_ARGUMENT,
              "has no streaming memory");
    device_free(&d);
}

TEST_MAIN("device_streams_remote")
