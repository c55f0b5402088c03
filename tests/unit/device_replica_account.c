/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The account of what replicas send equals what they do: collectives are
 * counted where engines meet, and bytes follow from a formula for each tensor.
 * This holds for each optimiser, with gradients accumulated or not, in runs,
 * loops and loops of loops, by sums of whole gradients or with state that
 * replicas share. The account also says which variables must be equal in all
 * replicas.
 */
#include "suite.h"

#include <stdbool.h>

#include "device.h"

enum { LARGE = 250, SMALL = 7, REPLICAS = 4 };
enum { SGD, MOMENTUM, ADAM, LAMB, KINDS };

static struct device d;
static ipu_replicas *replicas;

static void set_up(void)
{
    d = device_new();
    replicas = NULL;
}

static void tear_down(void)
{
    ipu_replicas_free(replicas);
    device_free(&d);
}

static void start(int count)
{
    ipu_replicas_options o;

    ipu_replicas_options_init(&o, sizeof o);
    o.ipus = count;
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    MUST(ipu_replicas_new(d.executable, &o, &replicas));
}

static ipu_replicas_info stats(void)
{
    ipu_replicas_info info = {.size = sizeof info};

    MUST(ipu_replicas_stats(replicas, &info));
    return info;
}

/* ---------------------------------------------------------------- programs */

struct program {
    int kind, mini; /* batches to an update */
    bool shared;    /* state */
    int replicas;
};

/* Gradients are made of the input, which each replica has of its own. */
static void train(const struct program *p, ipu_graph *g, ipu_tensor x)
{
    const ipu_sgd_options momentum = {.size = sizeof momentum, .momentum = 0.9};
    const ipu_replication replication = {
        .size = sizeof replication, .replicas = p->replicas, .mean = 1};
    ipu_optimizer o = {.size = sizeof o,
                       .kind = p->kind == ADAM   ? IPU_OPTIMIZER_ADAM
                               : p->kind == LAMB ? IPU_OPTIMIZER_LAMB
                                                 : IPU_OPTIMIZER_SGD,
                       .sgd = p->kind == MOMENTUM ? &momentum : NULL,
                       .rate = ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.01)};
    ipu_tensor v[2], slope[2];

    v[0] = ipu_variable(g, "w", IPU_FLOAT32, 1, SHAPE(LARGE));
    v[1] = ipu_variable(g, "b", IPU_FLOAT32, 1, SHAPE(SMALL));
    slope[0] = ipu_add(g, ipu_subtract(g, v[0], x),
                       ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.25));
    slope[1] = ipu_add(g, v[1], ipu_slice(g, x, SHAPE(0), SHAPE(SMALL)));
    if (p->shared) {
        MUST(ipu_sharded_optimizer(g, &o, 2, v, slope, p->mini, NULL,
                                   &replication));
        return;
    }
    for (int i = 0; i < 2; i++)
        slope[i] = ipu_accumulate(g, v[i], slope[i], p->mini, NULL);
    MUST(ipu_cross_replica_gradients(g, 2, slope, slope));
    MUST(ipu_update_begin(g, p->mini));
    MUST(ipu_optimize(g, &o, 2, v, slope));
    MUST(ipu_update_end(g));
}

static int body(ipu_graph *g, void *context, int32_t ninputs,
                const ipu_tensor *inputs, int32_t noutputs, ipu_tensor *outputs)
{
    (void)ninputs, (void)noutputs;
    train(context, g, inputs[0]);
    outputs[0] = inputs[0];
    return 0;
}

static int outer(ipu_graph *g, void *context, int32_t ninputs,
                 const ipu_tensor *inputs, int32_t noutputs,
                 ipu_tensor *outputs)
{
    (void)ninputs, (void)noutputs;
    MUST(ipu_repeat(g, 8, body, context, 1, inputs, NULL, outputs));
    return 0;
}

/* Builds the program in no loop, in one of 16, or in one of 8 within one of 2.
 * Returns how many mini-batches there are in a run. */
static int build(struct program *p, int loops)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(LARGE)), y;

    if (loops == 0) {
        train(p, d.graph, x);
        return 1;
    }
    MUST(ipu_repeat(d.graph, loops == 1 ? 16 : 2, loops == 1 ? body : outer, p,
                    1, &x, NULL, &y));
    MUST(ipu_output(d.graph, "y", y));
    return 16;
}

static void connect(bool output)
{
    static float x[REPLICAS][LARGE], y[REPLICAS][LARGE];
    size_t count = (size_t)ipu_replicas_count(replicas);

    device_fill(x[0], REPLICAS * LARGE, 3);
    MUST(ipu_replicas_connect(replicas, "x", x, count * sizeof x[0]));
    if (output)
        MUST(ipu_replicas_connect(replicas, "y", y, count * sizeof y[0]));
}

/* ------------------------------------------------------------- the account */

/* Returns the bytes that each replica sends around a ring for a whole
 * tensor. */
static int64_t ring(int64_t elements, int n)
{
    return 2 * (n - 1) * ((elements * 4 + n - 1) / n);
}

/* Returns the bytes of one update. LAMB adds up two lengths of what is
 * shared. */
static int64_t bytes_of(const struct program *p)
{
    ipu_system system = {.size = sizeof system};
    ipu_sharding_cost cost = {.size = sizeof cost};
    int64_t small = ring(SMALL, p->replicas);

    if (!p->shared)
        return ring(LARGE, p->replicas) + small;
    MUST(ipu_system_find("M2000", &system));
    MUST(ipu_sharding_cost_get(&system, p->replicas, 1, LARGE, IPU_FLOAT32,
                               &cost));
    ck_assert_int_eq(cost.sent_bytes, (p->replicas - 1) * cost.bytes);
    return 2 * cost.sent_bytes + small +
           (p->kind == LAMB ? 2 * ring(1, p->replicas) : 0);
}

static int64_t collectives_of(const struct program *p)
{
    return p->shared ? 3 + (p->kind == LAMB ? 2 : 0) : 2;
}

/* _i is optimiser, mini-batches, loops, and whether state is shared. */
LOOP_TEST(told_is_what_is_done, 0, KINDS * 3 * 3 * 2)
{
    static const int minis[] = {1, 2, 8};
    struct program p = {.kind = _i % KINDS,
                        .mini = minis[_i / KINDS % 3],
                        .shared = _i / KINDS / 9,
                        .replicas = _i % 3 ? REPLICAS : 2};
    int loops = _i / KINDS / 3 % 3, runs = loops ? 2 : 16;
    int in_run = build(&p, loops);
    int64_t updates = in_run > p.mini ? in_run / p.mini : 1;
    ipu_program_cycles cycles;
    ipu_replicas_info told;

    start(p.replicas);
    connect(loops > 0);
    for (int run = 0; run < runs; run++) {
        MUST(ipu_replicas_run(replicas));
        MUST(ipu_replicas_check_equal(replicas));
    }
    told = stats();
    cycles = device_cycles(&d);
    ck_assert_int_eq(told.done,
                     (int64_t)runs * in_run / p.mini * collectives_of(&p));
    ck_assert_int_eq(told.collectives, updates * collectives_of(&p));
    ck_assert_int_eq(told.exchanges, told.collectives);
    ck_assert_int_eq(told.sent_bytes, updates * bytes_of(&p));
    ck_assert_int_eq(told.total_cycles, cycles.total + told.exchange_cycles);
    ck_assert_double_eq_tol(told.mean_collectives, (double)told.done / runs,
                            1e-9);
    ck_assert_double_eq_tol(told.mean_sent_bytes,
                            (double)in_run / p.mini * (double)bytes_of(&p),
                            1e-6);
    ck_assert_double_eq_tol(
        told.mean_total_cycles,
        (double)cycles.mean_total + told.mean_exchange_cycles, 1e-6);
    ck_assert_double_eq_tol(told.mean_exchange_cycles * (double)updates,
                            (double)told.exchange_cycles * in_run / p.mini,
                            1e-6);
}

/* Both halves of a ring take as much as the whole. */
TEST(halves_of_a_ring_take_half_of_it)
{
    struct program p = {.kind = SGD, .mini = 1, .replicas = REPLICAS};
    ipu_replicas_info whole, halves;

    build(&p, 0);
    start(p.replicas);
    whole = stats();
    tear_down();
    set_up();
    p.shared = true;
    build(&p, 0);
    start(p.replicas);
    halves = stats();
    /* 250 elements are 63 rows of 4. */
    ck_assert_int_eq(halves.sent_bytes - whole.sent_bytes,
                     2 * 3 * 63 * 4 - ring(LARGE, 4));
    ck_assert_int_le(halves.exchange_cycles, whole.exchange_cycles + 16);
}

/* ------------------------------------------------------- what must be equal */

static int passed_over(const char *name)
{
    const char *why = NULL, *found;

    for (int i = 0; (found = ipu_replicas_own(replicas, i, &why)) != NULL; i++)
        if (strcmp(found, name) == 0)
            return why != NULL && *why;
    return 0;
}

/* Sums belong to each replica in the middle of an update, and their leftovers
 * afterwards. _i is the number of runs. */
LOOP_TEST(accumulators_may_differ, 1, 7)
{
    struct program p = {.kind = ADAM, .mini = 3, .replicas = 2};
    float sums[2][LARGE];

    build(&p, 0);
    start(2);
    connect(false);
    for (int run = 0; run < _i; run++)
        MUST(ipu_replicas_run(replicas));
    ck_assert_int_eq(ipu_replicas_check_equal(replicas), 2);
    ck_assert(passed_over("w/accumulator") && passed_over("b/accumulator"));
    ck_assert(!passed_over("w") && !passed_over("w/m"));
    ck_assert_ptr_null(ipu_replicas_own(replicas, 2, NULL));
    ck_assert_ptr_null(ipu_replicas_own(replicas, -1, NULL));
    ck_assert_ptr_null(ipu_replicas_own(NULL, 0, NULL));
    for (int r = 0; r < 2; r++)
        MUST(ipu_replicas_read(replicas, r, "w/accumulator", sums[r],
                               sizeof sums[r]));
    ck_assert(memcmp(sums[0], sums[1], sizeof sums[0]) != 0);
}

/* Accumulators of averaged gradients may not differ. */
TEST(accumulators_of_averages_must_be_equal)
{
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(LARGE));
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(LARGE)), g;

    g = ipu_scale(d.graph, ipu_cross_replica_sum(d.graph, x, 0), 0.5, 0);
    g = ipu_accumulate(d.graph, w, g, 3, NULL);
    MUST(ipu_assign(d.graph, w, ipu_subtract(d.graph, w, g)));
    start(2);
    connect(false);
    MUST(ipu_replicas_run(replicas));
    ck_assert_int_eq(ipu_replicas_check_equal(replicas), 0);
}

TEST(parts_of_state_differ)
{
    struct program p = {.kind = ADAM, .mini = 1, .shared = true, .replicas = 4};

    build(&p, 0);
    start(4);
    connect(false);
    MUST(ipu_replicas_run(replicas));
    ck_assert_int_eq(ipu_replicas_check_equal(replicas), 3);
    ck_assert(passed_over("w/m") && passed_over("w/v"));
    ck_assert(passed_over("replica/index"));
    ck_assert(!passed_over("b/m") && !passed_over("w"));
}

/* _i is within a loop, or not. Differences must be found without marks. */
static int count_own(ipu_graph *g, void *context, int32_t ninputs,
                     const ipu_tensor *inputs, int32_t noutputs,
                     ipu_tensor *outputs)
{
    ipu_tensor seen = ipu_variable(g, "seen", IPU_FLOAT32, 1, SHAPE(LARGE));

    (void)ninputs, (void)noutputs;
    if (*(int *)context)
        MUST(ipu_replica_own(g, seen));
    MUST(ipu_assign(g, seen, ipu_add(g, seen, inputs[0])));
    outputs[0] = inputs[0];
    return 0;
}

LOOP_TEST(programs_say_what_is_their_own, 0, 4)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(LARGE)), y = x;
    int marked = _i % 2;

    if (_i / 2)
        MUST(ipu_repeat(d.graph, 3, count_own, &marked, 1, &x, NULL, &y));
    else
        count_own(d.graph, &marked, 1, &x, 1, &y);
    MUST(ipu_output(d.graph, "y", y));
    start(2);
    connect(true);
    ck_assert_int_eq(ipu_replicas_check_equal(replicas), marked);
    MUST(ipu_replicas_run(replicas));
    if (marked)
        ck_assert_int_eq(ipu_replicas_check_equal(replicas), 1);
    else
        MUST_FAIL(ipu_replicas_check_equal(replicas), IPU_ERR_DATA,
                  "element 0 of variable 'seen' is not the same in replicas 0 "
                  "and 1");
}

/* Running statistics differ, as each replica has seen other data. The scale of
 * a loss does not. */
TEST(statistics_may_differ)
{
    const char *const names[] = {"scale", "offset", "mean", "variance"};
    ipu_loss_scaling scaling = {.size = sizeof scaling};
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(LARGE)), v[4], g[2];

    for (int i = 0; i < 4; i++)
        v[i] = ipu_variable(d.graph, names[i], IPU_FLOAT32, 1, SHAPE(5));
    x = ipu_batch_norm(d.graph, ipu_reshape(d.graph, x, 2, SHAPE(LARGE / 5, 5)),
                       v[0], v[1], v[2], v[3], 0.9, 1e-5);
    MUST(ipu_scaled_gradients(
        d.graph, "scaling", ipu_reduce_sum(d.graph, ipu_square(d.graph, x), 1),
        2, v, NULL, g, &scaling));
    MUST(ipu_cross_replica_gradients(d.graph, 2, g, g));
    for (int i = 0; i < 2; i++)
        MUST(ipu_sgd(d.graph, v[i], g[i],
                     ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, 0.01), NULL));
    start(2);
    connect(false);
    for (int i = 0; i < 3; i++)
        MUST(ipu_replicas_run(replicas));
    ck_assert_int_eq(ipu_replicas_check_equal(replicas), 4);
    ck_assert(passed_over("mean") && passed_over("variance"));
    ck_assert(passed_over("scaling/scale") && passed_over("scaling/overflows"));
}

/* Compiled, saved and loaded; or saved as a graph, loaded and compiled. */
LOOP_TEST(files_keep_what_may_differ, 0, 2)
{
    struct program p = {.kind = ADAM, .mini = 3, .replicas = 2};
    const char *path = device_file("");

    build(&p, 0);
    if (_i) {
        MUST(ipu_graph_save(d.graph, path));
        ipu_graph_free(d.graph);
        d.graph = NULL;
        MUST(ipu_graph_load(path, &d.graph));
        start(2);
    } else {
        start(2);
        MUST(ipu_executable_save(d.executable, path));
        ipu_replicas_free(replicas);
        replicas = NULL;
        ipu_executable_free(d.executable);
        d.executable = NULL;
        MUST(ipu_executable_load(path, &d.executable));
        {
            ipu_replicas_options o;

            ipu_replicas_options_init(&o, sizeof o);
            MUST(ipu_replicas_new(d.executable, &o, &replicas));
        }
    }
    unlink(path);
    connect(false);
    MUST(ipu_replicas_run(replicas));
    ck_assert_int_eq(ipu_replicas_check_equal(replicas), 2);
    ck_assert_int_eq(stats().sent_bytes, bytes_of(&p));
}

TEST(own_is_refused_of_what_is_no_variable)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(3));

    MUST_FAIL(ipu_replica_own(NULL, x), IPU_ERR_ARGUMENT, "the graph is NULL");
    MUST_FAIL(ipu_replica_own(d.graph, x), IPU_ERR_ARGUMENT,
              "replica's own: x is not a variable");
    MUST_FAIL(ipu_replicas_check_equal(NULL), IPU_ERR_ARGUMENT,
              "the replicas are NULL");
}

TEST_MAIN("device_replica_account", .set_up = set_up, .tear_down = tear_down,
          .seconds = 60)
