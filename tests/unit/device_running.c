/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function of the host, called by a run, may not change the program: it is
 * refused, the run goes on, and its numbers are right.
 */
#include <string.h>

#include "device.h"
#include "feeds.h"
#include "suite.h"

static struct device d;
static ipu_outfeed *outfeed;
static ipu_replicas *replicas;
static float in[2] = {1, 2}, out[4];
static int calls, attempts; /* functions called; refusals of them */

#define REFUSED(call, text)                                                    \
    do {                                                                       \
        attempts++;                                                            \
        ck_assert_int_eq((call), IPU_ERR_STATE);                               \
        ck_assert_str_eq(ipu_last_error(), (text));                            \
    } while (0)

/* A function of the host gives x unchanged. */
static void give(void *data)
{
    memcpy(data, in, sizeof in);
}

/* Builds y = (x + v)^2, stores x in row 0 of rows; x + v goes to the host
 * first. */
static void build(ipu_host_fn fn)
{
    ipu_remote_buffer rows;
    ipu_tensor x, y, v, zero;

    calls = attempts = 0;
    d = device_new();
    x = device_floats(&d, "x", 1, SHAPE(2));
    v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(2));
    rows = ipu_remote_buffer_new(d.graph, "rows", IPU_FLOAT32, 2, 1, SHAPE(2));
    zero = ipu_fill(d.graph, IPU_INT32, 0, NULL, 0);
    MUST(ipu_remote_store(d.graph, rows, zero, x));
    y = ipu_host_receive(d.graph, "r", ipu_add(d.graph, x, v), fn, NULL);
    y = ipu_square(d.graph, y);
    MUST(ipu_outfeed_enqueue(d.graph, outfeed, 1, NULL, &y));
    MUST(ipu_output(d.graph, "y", y));
}

static void set_up(void)
{
    outfeed = outfeed_of(IPU_OUTFEED_ALL);
}

static void tear_down(void)
{
    ipu_replicas_free(replicas);
    replicas = NULL;
    device_free(&d);
    ipu_outfeed_free(outfeed);
}

static void run(void)
{
    device_load(&d);
    device_connect(&d, "x", in, 2);
    device_connect(&d, "y", out, 2);
    MUST(ipu_engine_run(d.engine));
    ck_assert_int_eq(calls, 1);
    ck_assert_int_gt(attempts, 0);
    ck_assert(out[0] == 1 && out[1] == 4);
}

static int uses_the_engine(void *context, const char *name, void *data,
                           int64_t count)
{
    float row[2];

    (void)context, (void)name, (void)count;
    calls++;
    give(data);
    REFUSED(ipu_engine_run(d.engine),
            "the engine is running: a host call cannot run it");
    REFUSED(ipu_engine_place(d.engine, "v", row, sizeof row),
            "the engine is running: place 'v' between two runs");
    REFUSED(ipu_engine_connect_call(d.engine, "r", NULL, NULL),
            "the engine is running: host call 'r' stays as it is");
    REFUSED(ipu_engine_profile(d.engine, 1),
            "the engine is running: whether it counts is decided between runs");
    REFUSED(ipu_remote_write(d.engine, "rows", 1, row, sizeof row),
            "remote buffer 'rows': the engine is running");
    REFUSED(ipu_remote_read(d.engine, "rows", 1, row, sizeof row),
            "remote buffer 'rows': the engine is running");
    REFUSED(
        ipu_engine_save_variables(d.engine, "/nowhere/at/all"),
        "save /nowhere/at/all: the engine is running, and its variables are "
        "between the old and the new");
    return 0;
}

TEST(the_engine)
{
    build(uses_the_engine);
    run();
}

static int waits_for_results(void *context, const char *name, void *data,
                             int64_t count)
{
    ipu_results *results = NULL;

    (void)context, (void)name, (void)count;
    calls++;
    give(data);
    REFUSED(ipu_outfeed_dequeue(outfeed, 1, &results),
            "outfeed 'results': the thread that runs the engine cannot wait "
            "for the end of the run");
    REFUSED(ipu_outfeed_next(outfeed, -1, &results),
            "outfeed 'results': the thread that runs the engine cannot wait "
            "for an element");
    ck_assert_ptr_null(results);
    return 0;
}

TEST(the_outfeed)
{
    ipu_results *results = NULL;

    build(waits_for_results);
    run();
    MUST(ipu_outfeed_next(outfeed, 0, &results));
    ck_assert_int_eq(ipu_results_count(results), 1);
    ipu_results_free(results);
    MUST(ipu_outfeed_abort(outfeed));
    REFUSED(ipu_outfeed_next(outfeed, -1, &results),
            "outfeed 'results' was aborted");
}

static int runs_the_replicas(void *context, const char *name, void *data,
                             int64_t count)
{
    (void)context, (void)name, (void)count;
    calls++;
    give(data);
    REFUSED(ipu_replicas_run(replicas),
            "the replicas are running: a host call cannot run them");
    return 0;
}

TEST(the_replicas)
{
    ipu_replicas_options o;
    ipu_tensor y;

    calls = attempts = 0;
    ipu_replicas_options_init(&o, sizeof o);
    o.threads = 1;
    d = device_new();
    y = ipu_host_receive(d.graph, "r", device_floats(&d, "x", 1, SHAPE(2)),
                         runs_the_replicas, NULL);
    MUST(ipu_output(d.graph, "y", ipu_square(d.graph, y)));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    MUST(ipu_replicas_new(d.executable, &o, &replicas));
    MUST(ipu_replicas_connect_shared(replicas, "x", in, sizeof in));
    MUST(ipu_replicas_connect(replicas, "y", out, sizeof out));
    MUST(ipu_replicas_run(replicas));
    ck_assert_int_eq(calls, 2);
    ck_assert(out[1] == 4 && out[3] == 4);
}

static int writes_too_much(void *context, const char *name, void *data,
                           int64_t count)
{
    (void)context, (void)name;
    calls++;
    ((float *)data)[count] = 1;
    return 0;
}

/* The host's function writes one element more than the tensor has. Poisoned
 * memory must notice it. */
TEST(writing_outside)
{
    ck_assert_int_eq(setenv("IPU_POISON", "1", 1), 0);
    build(writes_too_much);
    device_load(&d);
    device_connect(&d, "x", in, 2);
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_STATE,
              " of r wrote outside of r");
    ck_assert_int_eq(calls, 1);
}

TEST_MAIN("device_running", .set_up = set_up, .tear_down = tear_down)
