/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests programs with loops, queues and remote buffers in files. A loaded
 * program computes the same bits once its queues are connected, and saves to
 * the same bytes. A queue that cannot be connected is refused.
 */
#include "device_file_loops.h"
#include "suite.h"

/* -------------------------------------------------------------------- runs */

struct result {
    float sum[2], variable[2], rows[LOOPS_ROWS][2], sums[3 * LOOPS_RUNS][2];
    float last[2], seen[2];
    int32_t tries[3 * LOOPS_RUNS], iterations, calls;
    int64_t elements;
    char program[1 << 14];
};

static int look(void *context, const char *name, void *data, int64_t count)
{
    struct result *r = context;

    ck_assert_str_eq(name, "seen");
    ck_assert_int_eq(count, 2);
    memcpy(r->seen, data, sizeof r->seen);
    r->calls++;
    return 0;
}

static void take_results(struct loops_queues *q, struct result *r)
{
    const void *data;
    ipu_results *results;

    MUST(ipu_outfeed_dequeue(q->results, 0, &results));
    r->elements = ipu_results_count(results);
    ck_assert_int_eq(r->elements, 3 * LOOPS_RUNS);
    MUST(ipu_results_tensor(results, "sum", NULL, NULL, &data));
    memcpy(r->sums, data, sizeof r->sums);
    MUST(ipu_results_tensor(results, "tries", NULL, NULL, &data));
    memcpy(r->tries, data, sizeof r->tries);
    ipu_results_free(results);
    MUST(ipu_outfeed_dequeue(q->last, 0, &results));
    MUST(ipu_results_tensor(results, NULL, NULL, NULL, &data));
    memcpy(r->last, data, sizeof r->last);
    ipu_results_free(results);
}

/* Three runs from the same beginning. */
static void run(const ipu_executable *x, struct loops_queues *q,
                struct result *r)
{
    const float begin[2] = {0.75f, -0.5f};
    ipu_engine *e = NULL;

    memset(r, 0, sizeof *r);
    MUST(ipu_engine_new(x, &e));
    MUST(ipu_engine_connect(e, "sum", r->sum, sizeof r->sum));
    MUST(ipu_engine_connect_call(e, "seen", look, r));
    MUST(ipu_engine_write(e, "variable", begin, sizeof begin));
    MUST(ipu_infeed_start(q->data));
    MUST(ipu_infeed_start(q->first));
    for (int i = 0; i < 3; i++)
        MUST(ipu_engine_run(e));
    MUST(ipu_engine_read(e, "variable", r->variable, sizeof r->variable));
    MUST(ipu_engine_read(e, "iterations", &r->iterations, 4));
    for (int i = 0; i < LOOPS_ROWS; i++)
        MUST(ipu_remote_read(e, "rows", i, r->rows[i], sizeof r->rows[i]));
    take_results(q, r);
    ck_assert_int_lt(ipu_executable_print(x, r->program, sizeof r->program),
                     sizeof r->program);
    ipu_engine_free(e);
    ipu_infeed_stop(q->data);
    ipu_infeed_stop(q->first);
}

/* Checks one result in full, so that equality with the others proves
 * something. */
static void check_result(const struct result *r)
{
    ck_assert_int_eq(r->calls, 3 * LOOPS_RUNS);
    ck_assert_int_eq(r->iterations, 3 * LOOPS_RUNS);
    for (int i = 0; i < 3 * LOOPS_RUNS; i++)
        ck_assert_int_eq(r->tries[i], 3);
    ck_assert_mem_eq(r->seen, r->sums[3 * LOOPS_RUNS - 1], sizeof r->seen);
    ck_assert_mem_eq(r->last, r->sum, sizeof r->sum);
    ck_assert_mem_eq(r->rows[LOOPS_RUNS + 1], r->sum, sizeof r->sum);
    ck_assert(r->rows[0][0] == 0 && r->rows[1][0] != 0);
    ck_assert_ptr_nonnull(strstr(r->program, "repeat 4 times"));
}

static void check_same(const struct result *a, const ipu_executable *x,
                       struct loops_queues *q)
{
    struct result *b = malloc(sizeof *b);

    run(x, q, b);
    ck_assert_str_eq(a->program, b->program);
    ck_assert_mem_eq(a, b, sizeof *a);
    free(b);
}

/* Holds the program as built, its result, and its files. */
static struct loops_queues *queues;
static ipu_graph *built;
static ipu_executable *compiled;
static struct result expected;

static void set_up_program(void)
{
    folder_make();
    queues = loops_queues_new();
    MUST(ipu_graph_new(&built));
    file_build_loops(built, queues);
    file_compile(built, &compiled);
    run(compiled, queues, &expected);
    MUST(ipu_graph_save(built, in_folder("graph")));
    MUST(ipu_executable_save(compiled, in_folder("program")));
}

static void tear_down_program(void)
{
    ipu_executable_free(compiled);
    ipu_graph_free(built);
    loops_queues_free(queues);
    folder_remove();
}

TEST(a_loaded_executable_computes_the_same)
{
    struct loops_queues *q = loops_queues_new();
    ipu_executable *x = NULL;

    check_result(&expected);
    MUST(ipu_executable_load(in_folder("program"), &x));
    MUST(ipu_executable_save(x, in_folder("again")));
    files_equal(in_folder("program"), in_folder("again"));
    loops_connect(x, q);
    check_same(&expected, x, q);
    MUST(ipu_executable_save(x, in_folder("again")));
    files_equal(in_folder("program"), in_folder("again"));
    ipu_executable_free(x);
    loops_queues_free(q);
}

/* Queues are connected to the graph or to its executable. */
LOOP_TEST(a_loaded_graph_computes_the_same, 0, 2)
{
    struct loops_queues *q = loops_queues_new();
    ipu_executable *x = NULL;
    ipu_graph *g = NULL;

    MUST(ipu_graph_load(in_folder("graph"), &g));
    MUST(ipu_graph_save(g, in_folder("again")));
    files_equal(in_folder("graph"), in_folder("again"));
    if (_i == 0) {
        MUST(ipu_graph_connect_outfeed(g, q->last));
        MUST(ipu_graph_connect_outfeed(g, q->results));
        MUST(ipu_graph_connect_infeed(g, q->first));
        MUST(ipu_graph_connect_infeed(g, q->data));
    }
    file_compile(g, &x);
    if (_i == 1)
        loops_connect(x, q);
    check_same(&expected, x, q);
    MUST(ipu_executable_save(x, in_folder("again")));
    files_equal(in_folder("program"), in_folder("again"));
    ipu_executable_free(x);
    ipu_graph_free(g);
    loops_queues_free(q);
}

TEST(a_loaded_executable_knows_its_cost)
{
    ipu_memory_info first = {.size = sizeof first}, second = first;
    ipu_program_cycles c = {.size = sizeof c}, d = c;
    const ipu_executable *body = NULL, *loaded_body = NULL;
    ipu_executable *x = NULL;
    int32_t step = 0;

    MUST(ipu_executable_load(in_folder("program"), &x));
    MUST(ipu_executable_memory(compiled, &first));
    MUST(ipu_executable_memory(x, &second));
    ck_assert_mem_eq(&first, &second, sizeof first);
    MUST(ipu_executable_cycles(compiled, &c));
    MUST(ipu_executable_cycles(x, &d));
    ck_assert_mem_eq(&c, &d, sizeof c);
    while (ipu_executable_body(compiled, step, &body, NULL) == 0)
        step++;
    ck_assert_int_eq(ipu_executable_body(x, step, &loaded_body, NULL), 1);
    MUST(ipu_executable_cycles(body, &c));
    MUST(ipu_executable_cycles(loaded_body, &d));
    ck_assert_mem_eq(&c, &d, sizeof c);
    ipu_executable_free(x);
}

/* If ops are added to the loaded graph, it stays equal to the built one with
 * the same ops. */
TEST(a_loaded_graph_is_built_on)
{
    ipu_graph *graphs[2] = {built, NULL};
    ipu_executable *x[2] = {NULL};

    MUST(ipu_graph_load(in_folder("graph"), &graphs[1]));
    for (int i = 0; i < 2; i++) {
        ipu_tensor variable, sum;

        MUST(ipu_graph_find(graphs[i], "variable", &variable));
        MUST(ipu_graph_find(graphs[i], "sum", &sum));
        MUST(ipu_output(graphs[i], "more",
                        ipu_multiply(graphs[i], variable, sum)));
        file_compile(graphs[i], &x[i]);
        MUST(ipu_executable_save(x[i], in_folder(i ? "x1" : "x0")));
        ipu_executable_free(x[i]);
    }
    files_equal(in_folder("x0"), in_folder("x1"));
    ipu_graph_free(graphs[1]);
}

/* -------------------------------------------------------------- connecting */

static int count_queues(const ipu_executable *x, int32_t connected)
{
    ipu_queue_info info = {.size = sizeof info};
    int n = 0;

    while (ipu_executable_queue(x, n, &info) == 1) {
        ck_assert_int_eq(info.connected, connected);
        n++;
    }
    return n;
}

TEST(a_program_says_which_queues_it_has)
{
    ipu_queue_info info = {.size = sizeof info};
    ipu_executable *x = NULL;
    ipu_graph *g = NULL;
    int found = 0;

    MUST(ipu_executable_load(in_folder("program"), &x));
    MUST(ipu_graph_load(in_folder("graph"), &g));
    ck_assert_int_eq(count_queues(x, 0), 4);
    ck_assert_int_eq(count_queues(compiled, 1), 4);
    for (int32_t i = 0; i < 4; i++) {
        ck_assert_int_eq(ipu_graph_queue(g, i, &info), 1);
        ck_assert_int_eq(info.replicas, 1);
        if (strcmp(info.name, "data") == 0) {
            found++;
            ck_assert_int_eq(info.kind, IPU_QUEUE_INFEED);
            ck_assert_int_eq(info.ntensors, 2);
            ck_assert_str_eq(info.tensors[1].name, "x2");
            ck_assert_int_eq(info.tensors[1].ndim, 1);
            ck_assert_int_eq(info.tensors[1].shape[0], 2);
        } else if (strcmp(info.name, "results") == 0) {
            found++;
            ck_assert_int_eq(info.kind, IPU_QUEUE_OUTFEED);
            ck_assert_str_eq(info.tensors[1].name, "tries");
            ck_assert_int_eq(info.tensors[1].dtype, IPU_INT32);
        }
    }
    ck_assert_int_eq(found, 2);
    ck_assert_int_eq(ipu_graph_queue(g, 4, &info), 0);
    ck_assert_int_eq(ipu_executable_queue(x, 4, &info), 0);
    MUST_FAIL(ipu_graph_queue(g, -1, &info), IPU_ERR_ARGUMENT,
              "there is no queue -1");
    MUST_FAIL(ipu_graph_queue(NULL, 0, &info), IPU_ERR_ARGUMENT,
              "queue: the program is NULL");
    MUST_FAIL(ipu_executable_queue(x, 0, NULL), IPU_ERR_ARGUMENT,
              "queue: the place for its info is NULL");
    ipu_executable_free(x);
    ipu_graph_free(g);
}

TEST(without_queues_there_is_no_engine)
{
    struct loops_queues *q = loops_queues_new();
    ipu_executable *x = NULL;
    ipu_engine *e = NULL;

    MUST(ipu_executable_load(in_folder("program"), &x));
    MUST_FAIL(ipu_engine_new(x, &e), IPU_ERR_STATE,
              "outfeed 'last' of the loaded program is only a description: "
              "ipu_executable_connect_outfeed a queue first");
    MUST(ipu_executable_connect_outfeed(x, q->results));
    MUST(ipu_executable_connect_outfeed(x, q->last));
    MUST(ipu_executable_connect_infeed(x, q->first));
    MUST_FAIL(ipu_engine_new(x, &e), IPU_ERR_STATE,
              "infeed 'data' of the loaded program is only a description: "
              "ipu_executable_connect_infeed a queue first");
    ck_assert_ptr_null(e);
    MUST(ipu_executable_connect_infeed(x, q->data));
    MUST(ipu_engine_new(x, &e));
    ipu_engine_free(e);
    ipu_executable_free(x);
    loops_queues_free(q);
}

/* The program is unchanged after that. */
TEST(what_does_not_fit_is_not_connected)
{
    struct source source = source_of(0, 1);
    ipu_feed_tensor tensors[2];
    ipu_infeed_options in = infeed_options(&source, tensors, 2, 3);
    ipu_outfeed_options out = outfeed_options(IPU_OUTFEED_ALL);
    ipu_executable *x = NULL;
    ipu_infeed *infeed;
    ipu_outfeed *outfeed;

    MUST(ipu_executable_load(in_folder("program"), &x));
    MUST(ipu_infeed_new(&in, &infeed));
    MUST_FAIL(ipu_executable_connect_infeed(x, infeed), IPU_ERR_SHAPE,
              "connect: tensor 0 of infeed 'data' is 'x1', float32 [3]; the "
              "program takes 'x1', float32 [2]");
    ipu_infeed_free(infeed);
    in = infeed_options(&source, tensors, 1, 2);
    MUST(ipu_infeed_new(&in, &infeed));
    MUST_FAIL(ipu_executable_connect_infeed(x, infeed), IPU_ERR_SHAPE,
              "infeed 'data' has 1 tensors, the program takes 2");
    ipu_infeed_free(infeed);
    in.name = "nobody";
    MUST(ipu_infeed_new(&in, &infeed));
    MUST_FAIL(ipu_executable_connect_infeed(x, infeed), IPU_ERR_NAME,
              "the program has no infeed 'nobody': it has 'first', 'data'");
    ipu_infeed_free(infeed);
    in = infeed_options(&source, tensors, 2, 2);
    in.replicas = 2;
    MUST(ipu_infeed_new(&in, &infeed));
    MUST_FAIL(ipu_executable_connect_infeed(x, infeed), IPU_ERR_STATE,
              "connect: infeed 'data' has replication factor 2, the program 1");
    ipu_infeed_free(infeed);
    out.name = "first"; /* an infeed has it */
    MUST(ipu_outfeed_new(&out, &outfeed));
    MUST_FAIL(ipu_executable_connect_outfeed(x, outfeed), IPU_ERR_NAME,
              "the program has no outfeed 'first': it has 'last', 'results'");
    ipu_outfeed_free(outfeed);
    ck_assert_int_eq(count_queues(x, 0), 4);
    ipu_executable_free(x);
}

TEST(connecting_is_done_once)
{
    struct loops_queues *q = loops_queues_new();
    ipu_outfeed_options out = outfeed_options(IPU_OUTFEED_ALL);
    ipu_executable *x = NULL;
    ipu_outfeed *other;
    struct device d = device_new();

    MUST(ipu_executable_load(in_folder("program"), &x));
    /* Another program enqueues something else into it. */
    MUST(ipu_outfeed_new(&out, &other));
    MUST(ipu_outfeed_enqueue(
        d.graph, other, 1, NULL,
        (const ipu_tensor[]){device_floats(&d, "x", 1, SHAPE(1))}));
    MUST_FAIL(ipu_executable_connect_outfeed(x, other), IPU_ERR_STATE,
              "outfeed 'results' has been enqueued by another program");
    loops_connect(x, q);
    MUST_FAIL(ipu_executable_connect_infeed(x, q->data), IPU_ERR_STATE,
              "the program has its infeed 'data' already");
    MUST_FAIL(ipu_executable_connect_outfeed(compiled, q->results),
              IPU_ERR_STATE, "the program has its outfeed 'results' already");
    MUST_FAIL(ipu_graph_connect_infeed(d.graph, q->data), IPU_ERR_NAME,
              "the program has no infeed 'data'");
    MUST_FAIL(ipu_graph_connect_infeed(NULL, q->data), IPU_ERR_ARGUMENT,
              "connect: the program is NULL");
    MUST_FAIL(ipu_executable_connect_infeed(x, NULL), IPU_ERR_ARGUMENT,
              "connect: the infeed is NULL");
    MUST_FAIL(ipu_graph_connect_outfeed(NULL, q->last), IPU_ERR_ARGUMENT,
              "connect: the program is NULL");
    MUST_FAIL(ipu_executable_connect_outfeed(x, NULL), IPU_ERR_ARGUMENT,
              "connect: the outfeed is NULL");
    /* The program keeps its queues when their maker lets go. */
    loops_queues_let_go(q);
    ck_assert_int_eq(count_queues(x, 1), 4);
    ipu_executable_free(x);
    ck_assert_int_eq(q->steps.closed + q->source.closed, 2);
    free(q);
    device_free(&d);
    ipu_outfeed_free(other);
}

TEST_MAIN("device_file_loops", .set_up = set_up_program,
          .tear_down = tear_down_program)
