/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests replicas that share the optimiser's state. Each is an engine in a
 * thread of its own. Sums over them are host calls that wait for all, as with
 * replicas in several processes.
 */
#include "suite.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>

#include "device.h"

enum { MOST = 4, COUNT = 150, SMALL = 7, STEPS = 100, SUMS = 12 };

/* ------------------------------------------------- a sum over the threads */

struct replica;

/* A sum of the program is the same object for all replicas, as they build their
 * sums in the same order. */
struct sum {
    float parts[MOST][COUNT + MOST];
};

static struct sum sums[SUMS];
static pthread_barrier_t barrier;
static int nreplicas;

/* A replica, and what its host calls need. */
static struct replica {
    struct device d;
    int number, nsums;
    struct place {
        struct replica *replica;
        struct sum *sum;
    } places[SUMS];
    float weights[COUNT], small[SMALL];
} replicas[MOST];

static int64_t sent; /* number of elements that replica 0 gave to sums */

static int give(void *context, const char *name, void *data, int64_t count)
{
    const struct place *p = context;

    (void)name;
    memcpy(p->sum->parts[p->replica->number], data, (size_t)count * 4);
    if (p->replica->number == 0)
        sent += count;
    return 0;
}

static int take(void *context, const char *name, void *data, int64_t count)
{
    const struct place *p = context;
    float *y = data;

    (void)name;
    pthread_barrier_wait(&barrier);
    for (int64_t i = 0; i < count; i++) {
        y[i] = p->sum->parts[0][i];
        for (int r = 1; r < nreplicas; r++)
            y[i] += p->sum->parts[r][i];
    }
    pthread_barrier_wait(&barrier);
    return 0;
}

static ipu_tensor sum_over(ipu_graph *graph, void *context, const char *name,
                           ipu_tensor x)
{
    struct replica *r = context;
    struct place *p = &r->places[r->nsums];
    char back[80];

    ck_assert_int_lt(r->nsums, SUMS);
    *p = (struct place){r, &sums[r->nsums++]};
    snprintf(back, sizeof back, "%s back", name);
    MUST(ipu_host_call(graph, name, x, give, p));
    return ipu_host_receive(graph, back, x, take, p);
}

/* ---------------------------------------------------------------- programs */

enum { SGD, MOMENTUM, ADAM, RMSPROP, LAMB, LARS, KINDS };

static ipu_optimizer optimizer_of(ipu_graph *graph, int kind)
{
    static const ipu_sgd_options momentum = {.size = sizeof momentum,
                                             .momentum = 0.9};

    static const ipu_optimizer_kind kinds[] = {
        IPU_OPTIMIZER_SGD,     IPU_OPTIMIZER_SGD,  IPU_OPTIMIZER_ADAM,
        IPU_OPTIMIZER_RMSPROP, IPU_OPTIMIZER_LAMB, IPU_OPTIMIZER_LARS};

    return (ipu_optimizer){.size = sizeof(ipu_optimizer),
                           .kind = kinds[kind],
                           .sgd = kind == MOMENTUM ? &momentum : NULL,
                           .rate = ipu_fill(graph, IPU_FLOAT32, 0, NULL, 0.01)};
}

/* Gradients are inputs. shards 0: an optimiser of all. */
static void build(struct replica *r, int kind, int mini, int shards)
{
    ipu_graph *graph;
    ipu_tensor w[2], g[2];
    ipu_replication replication = {.size = sizeof replication,
                                   .replicas = shards,
                                   .sum = sum_over,
                                   .context = r};
    ipu_optimizer o;

    r->d = device_new();
    graph = r->d.graph;
    w[0] = ipu_variable(graph, "w", IPU_FLOAT32, 2, SHAPE(10, COUNT / 10));
    w[1] = ipu_variable(graph, "b", IPU_FLOAT32, 1, SHAPE(SMALL));
    g[0] = ipu_input(graph, "gw", IPU_FLOAT32, 2, SHAPE(10, COUNT / 10));
    g[1] = ipu_input(graph, "gb", IPU_FLOAT32, 1, SHAPE(SMALL));
    o = optimizer_of(graph, kind);
    if (shards) {
        replication.index = ipu_input(graph, "replica", IPU_INT32, 0, NULL);
        MUST(ipu_sharded_optimizer(graph, &o, 2, w, g, mini, NULL,
                                   &replication));
    } else {
        MUST(ipu_accumulating_optimizer(graph, &o, 2, w, g, mini, NULL));
    }
    device_load(&r->d);
}

/* Gradients with few bits: sums of them are exact, in any order. */
static void fill_gradients(float *gw, float *gb, int step, int replica)
{
    for (int i = 0; i < COUNT; i++)
        gw[i] = (float)((i * 7 + step * 13 + replica * 29) % 64 - 32) / 256;
    for (int i = 0; i < SMALL; i++)
        gb[i] = (float)((i * 5 + step * 3 + replica * 11) % 64 - 32) / 256;
}

static void write_weights(struct replica *r)
{
    device_fill(r->weights, COUNT, 1);
    device_fill(r->small, SMALL, 2);
    MUST(ipu_engine_write(r->d.engine, "w", r->weights, sizeof r->weights));
    MUST(ipu_engine_write(r->d.engine, "b", r->small, sizeof r->small));
}

static void read_weights(struct replica *r)
{
    MUST(ipu_engine_read(r->d.engine, "w", r->weights, sizeof r->weights));
    MUST(ipu_engine_read(r->d.engine, "b", r->small, sizeof r->small));
}

static int mini_batches;

static void *run_replica(void *context)
{
    struct replica *r = context;
    float gw[COUNT], gb[SMALL];
    int32_t number = r->number;

    device_connect(&r->d, "gw", gw, COUNT);
    device_connect(&r->d, "gb", gb, SMALL);
    device_connect(&r->d, "replica", &number, 1);
    for (int step = 0; step < STEPS * mini_batches; step++) {
        fill_gradients(gw, gb, step, r->number);
        if (ipu_engine_run(r->d.engine) < 0)
            return r;
    }
    return NULL;
}

static void run_replicas(int n)
{
    pthread_t threads[MOST];

    nreplicas = n;
    pthread_barrier_init(&barrier, NULL, (unsigned)n);
    for (int i = 0; i < n; i++) {
        write_weights(&replicas[i]);
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, run_replica, &replicas[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
        read_weights(&replicas[i]);
    }
    pthread_barrier_destroy(&barrier);
}

/* Trains with one optimiser that keeps everything, on all gradients added
 * up. */
static void run_plain(struct replica *r, int n)
{
    float gw[COUNT], gb[SMALL], part[COUNT], small[SMALL];

    write_weights(r);
    device_connect(&r->d, "gw", gw, COUNT);
    device_connect(&r->d, "gb", gb, SMALL);
    for (int step = 0; step < STEPS * mini_batches; step++) {
        memset(gw, 0, sizeof gw);
        memset(gb, 0, sizeof gb);
        for (int k = 0; k < n; k++) {
            fill_gradients(part, small, step, k);
            for (int i = 0; i < COUNT; i++)
                gw[i] += part[i];
            for (int i = 0; i < SMALL; i++)
                gb[i] += small[i];
        }
        MUST(ipu_engine_run(r->d.engine));
    }
    read_weights(r);
}

static struct replica plain;

static void set_up(void)
{
    memset(replicas, 0, sizeof replicas);
    memset(&plain, 0, sizeof plain);
    for (int i = 0; i < MOST; i++)
        replicas[i].number = i;
    sent = 0;
}

static void tear_down(void)
{
    for (int i = 0; i < MOST; i++)
        device_free(&replicas[i].d);
    device_free(&plain.d);
}

/* -------------------------------------------------------------------- tests */

static void check_weights(const struct replica *r, int kind)
{
    if (kind < LAMB) {
        ck_assert_mem_eq(r->weights, plain.weights, sizeof plain.weights);
        ck_assert_mem_eq(r->small, plain.small, sizeof plain.small);
        return;
    }
    for (int i = 0; i < COUNT; i++)
        ck_assert_float_eq_tol(r->weights[i], plain.weights[i], 1e-5f);
}

/* _i: kind, and 2 or 4 replicas; 150 is no multiple of 4. */
LOOP_TEST(weights_are_those_of_one_that_keeps_all, 0, 2 * KINDS)
{
    int kind = _i / 2, n = _i % 2 ? 4 : 2;

    mini_batches = 1;
    build(&plain, kind, 1, 0);
    for (int i = 0; i < n; i++)
        build(&replicas[i], kind, 1, n);
    run_replicas(n);
    run_plain(&plain, n);
    for (int i = 0; i < n; i++)
        check_weights(&replicas[i], kind);
}

/* The same test on chips: 2 and 4 replicas of one program, which meet in
 * cross-replica ops. _i is the kind, and the number of replicas. */
LOOP_TEST(replicas_on_chips_share_it_too, 0, 2 * KINDS)
{
    static float gw[MOST][COUNT], gb[MOST][SMALL];
    int kind = _i / 2, n = _i % 2 ? 4 : 2;
    ipu_replicas_options options;
    ipu_replication replication = {.size = sizeof replication, .replicas = n};
    struct replica *r = &replicas[0];
    ipu_replicas *all = NULL;
    ipu_tensor w[2], g[2];
    ipu_optimizer o;

    mini_batches = 3;
    build(&plain, kind, mini_batches, 0);
    r->d = device_new();
    w[0] = ipu_variable(r->d.graph, "w", IPU_FLOAT32, 2, SHAPE(10, COUNT / 10));
    w[1] = ipu_variable(r->d.graph, "b", IPU_FLOAT32, 1, SHAPE(SMALL));
    g[0] = ipu_input(r->d.graph, "gw", IPU_FLOAT32, 2, SHAPE(10, COUNT / 10));
    g[1] = ipu_input(r->d.graph, "gb", IPU_FLOAT32, 1, SHAPE(SMALL));
    o = optimizer_of(r->d.graph, kind);
    MUST(ipu_sharded_optimizer(r->d.graph, &o, 2, w, g, mini_batches, NULL,
                               &replication));
    MUST(ipu_compile(r->d.graph, NULL, &r->d.executable));
    ipu_replicas_options_init(&options, sizeof options);
    options.ipus = n;
    MUST(ipu_replicas_new(r->d.executable, &options, &all));
    device_fill(r->weights, COUNT, 1);
    device_fill(r->small, SMALL, 2);
    MUST(ipu_replicas_write(all, "w", r->weights, sizeof r->weights));
    MUST(ipu_replicas_write(all, "b", r->small, sizeof r->small));
    MUST(ipu_replicas_connect(all, "gw", gw, (size_t)n * sizeof gw[0]));
    MUST(ipu_replicas_connect(all, "gb", gb, (size_t)n * sizeof gb[0]));
    for (int step = 0; step < STEPS * mini_batches; step++) {
        for (int k = 0; k < n; k++)
            fill_gradients(gw[k], gb[k], step, k);
        MUST(ipu_replicas_run(all));
    }
    run_plain(&plain, n);
    for (int k = 0; k < n; k++) {
        MUST(ipu_replicas_read(all, k, "w", r->weights, sizeof r->weights));
        MUST(ipu_replicas_read(all, k, "b", r->small, sizeof r->small));
        check_weights(r, kind);
    }
    ipu_replicas_free(all);
}

/* An update of 3 mini-batches has a third of the exchange. */
TEST(replicas_exchange_with_updates_only)
{
    /* Rows are padded to 152, for gradients and weights; b is summed once. */
    const int64_t elements = 2 * 152 + SMALL;

    mini_batches = 3;
    build(&plain, ADAM, 3, 0);
    for (int i = 0; i < 4; i++)
        build(&replicas[i], ADAM, 3, 4);
    run_replicas(4);
    run_plain(&plain, 4);
    check_weights(&replicas[2], ADAM);
    ck_assert_int_eq(sent, STEPS * elements);
}

/* Each replica keeps a part of w, rounded up; b is too small. */
LOOP_TEST(each_keeps_its_part, 0, MOST)
{
    static const int parts[] = {150, 75, 50, 38};
    int n = _i + 1;
    float state[COUNT];

    build(&replicas[0], ADAM, 1, n);
    MUST(ipu_engine_read(replicas[0].d.engine, "w/m", state,
                         (size_t)parts[_i] * 4));
    MUST(ipu_engine_read(replicas[0].d.engine, "w/v", state,
                         (size_t)parts[_i] * 4));
    MUST(ipu_engine_read(replicas[0].d.engine, "b/m", state, SMALL * 4));
    ck_assert_int_eq(ipu_shard_elements(COUNT, n), parts[_i]);
}

TEST(parts_are_counted)
{
    ipu_system system = {.size = sizeof system};
    ipu_sharding_cost info = {.size = sizeof info}, one = info;

    MUST(ipu_system_find("M2000", &system));
    MUST(ipu_sharding_cost_get(&system, 4, 1, 1000001, IPU_FLOAT16, &info));
    ck_assert_int_eq(info.elements, 250001);
    ck_assert_int_eq(info.padding, 3);
    ck_assert_int_eq(info.bytes, 500002);
    ck_assert_int_eq(info.sent_bytes, 3 * 500002);
    ck_assert_int_gt(info.scatter_cycles, 0);
    ck_assert_int_eq(info.scatter_cycles, info.gather_cycles);
    MUST(ipu_sharding_cost_get(&system, 1, 4, 1000001, IPU_FLOAT16, &one));
    ck_assert_int_eq(one.elements, 1000001);
    ck_assert_int_eq(one.scatter_cycles, 0);
    ck_assert_int_eq(ipu_shard_elements(0, 3), 0);
    ck_assert_int_eq(ipu_shard_elements(2, 3), 1);
    ck_assert_int_eq(ipu_shard_elements(5, 0), 0);
    MUST_FAIL(ipu_sharding_cost_get(&system, 0, 1, 1, IPU_FLOAT32, &info),
              IPU_ERR_ARGUMENT, "over 0 replicas");
    MUST_FAIL(
        ipu_sharding_cost_get(&system, 4, 1, INT64_MAX, IPU_FLOAT32, &info),
        IPU_ERR_ARGUMENT, "9223372036854775807 elements");
    MUST_FAIL(ipu_sharding_cost_get(NULL, 1, 1, 1, IPU_FLOAT32, &info),
              IPU_ERR_ARGUMENT, "system is NULL");
    info.size = 4;
    MUST_FAIL(ipu_sharding_cost_get(&system, 1, 1, 1, IPU_FLOAT32, &info),
              IPU_ERR_ARGUMENT, "size");
}

LOOP_TEST(sharding_refuses, 0, 8)
{
    static const char *const words[] = {
        "shard: the replication is NULL",
        "optimizer: the update options' size is 3, not ",
        "shard: the replication's size is 1, not ",
        "shard: over 0 replicas; 1 to 4096",
        "shard: an optimiser's state that replicas share must be offloaded: "
        "IPU_OFFLOAD_ON, or AUTO",
        "optimizer: the kind 9 is none: 0 (SGD) to 8 (LARS)",
        "optimizer: the count is less than 0",
        "optimizer: an array is NULL"};
    ipu_replication r = {.size = sizeof r, .replicas = 2, .sum = sum_over};
    ipu_update_options u = {.size = sizeof u};
    ipu_optimizer o;
    ipu_tensor w, g;

    plain.d = device_new();
    o = optimizer_of(plain.d.graph, SGD);
    w = ipu_variable(plain.d.graph, "w", IPU_FLOAT32, 1, SHAPE(3));
    g = device_floats(&plain.d, "g", 1, SHAPE(3));
    r.index = ipu_input(plain.d.graph, "replica", IPU_INT32, 0, NULL);
    switch (_i) {
    case 1: u.size = 3; break;
    case 2: r.size = 1; break;
    case 3: r.replicas = 0; break;
    case 4: u.offload = IPU_OFFLOAD_OFF; break;
    case 5: o.kind = 9; break;
    default: break;
    }
    ck_assert_int_eq(ipu_sharded_optimizer(NULL, &o, 1, &w, &g, 1, &u, &r),
                     IPU_ERR_ARGUMENT);
    MUST_FAIL(ipu_sharded_optimizer(plain.d.graph, &o, _i == 6 ? -1 : 1,
                                    _i == 7 ? NULL : &w, &g, 1, &u,
                                    _i ? &r : NULL),
              IPU_ERR_ARGUMENT, words[_i]);
}

TEST_MAIN("device_training_sharding", .set_up = set_up, .tear_down = tear_down,
          .seconds = 120)
