/* SPDX-License-Identifier: Apache-2.0 */
/* Steps whose times can be computed by hand: networks without latency, on which
 * a byte takes a nanosecond, and so on. */
#include "project/step.h"
#include "suite.h"

#include <stdlib.h>

#define MS 1e-3
#define MB 1000000

/* A nanosecond a byte, and nothing else takes time but agreeing, of which a
 * message has 64 bytes: on two hosts, each round takes 64 ns. */
static const struct network plain = {.bandwidth = 1e9};
#define ROUND 64e-9

static struct workload made_of(double forward, double backward, double update)
{
    return (struct workload){
        .forward = forward, .backward = backward, .update = update};
}

static void add(struct workload *w, int64_t bytes, double ready)
{
    ck_assert_int_eq(workload_add(w, "tensor", 6, bytes, ready), 0);
}

/* Runs a step and frees the workload. */
static struct step_result run(struct workload *w, int nhosts, int nranks,
                              struct network network, int64_t threshold,
                              enum step_rules rules, double cycle)
{
    const struct step_task task = {.workload = w,
                                   .network = network,
                                   .shape = {nhosts, nranks, threshold},
                                   .rules = rules,
                                   .cycle = cycle};
    struct step_result result;

    ck_assert_int_eq(step_run(&task, &result), 0);
    workload_fini(w);
    return result;
}

static struct step_result run_plain(struct workload *w, int nhosts)
{
    return run(w, nhosts, 1, plain, 64 << 20, STEP_HVD, 0);
}

#define CLOSE(a, b) ck_assert_double_eq_tol(a, b, 1e-9)

/* 8 MB are ready when the backward pass ends: nothing is hidden. */
TEST(one_tensor_without_overlap)
{
    struct workload w = made_of(10 * MS, 20 * MS, 3 * MS);
    struct step_result r;

    add(&w, 8 * MB, 20 * MS);
    r = run_plain(&w, 2);
    CLOSE(r.total, 10 * MS + 20 * MS + ROUND + 8 * MS + 3 * MS);
    CLOSE(step_exposed(&r), ROUND + 8 * MS);
    CLOSE(r.hidden, 0);
    CLOSE(r.busy, ROUND + 8 * MS);
    CLOSE(step_efficiency(&r), 33 * MS / (41 * MS + ROUND));
    ck_assert_int_eq(r.n, 1);
    ck_assert_int_eq(r.nrounds, 1);
    CLOSE(r.link_bytes, 8 * MB + 64);
    step_result_fini(&r);
}

/* The same are ready at once: everything is hidden. */
TEST(full_overlap)
{
    struct workload w = made_of(10 * MS, 20 * MS, 3 * MS);
    struct step_result r;

    add(&w, 8 * MB, 0);
    r = run_plain(&w, 2);
    CLOSE(r.total, 33 * MS);
    CLOSE(step_exposed(&r), 0);
    CLOSE(r.hidden, ROUND + 8 * MS);
    CLOSE(r.busy, r.hidden);
    step_result_fini(&r);
}

/* Ready 5 ms before the end, 8 ms long: 3 ms and the round are exposed. */
TEST(half_of_it_overlaps)
{
    struct workload w = made_of(0, 20 * MS, 0);
    struct step_result r;

    add(&w, 8 * MB, 15 * MS);
    r = run_plain(&w, 2);
    CLOSE(step_exposed(&r), 3 * MS + ROUND);
    CLOSE(r.hidden, 5 * MS);
    step_result_fini(&r);
}

/* On 4 hosts each sends 2 * 3/4 of the bytes: on 8, 2 * 7/8. */
TEST(bytes_on_more_hosts)
{
    for (int hosts = 4; hosts <= 8; hosts *= 2) {
        struct workload w = made_of(0, 0, 0);
        double steps = hosts == 4 ? 2 : 3;
        struct step_result r;

        add(&w, 8 * MB, 0);
        r = run_plain(&w, hosts);
        CLOSE(r.total, steps * ROUND + 2e-9 * 8 * MB * (hosts - 1) / hosts);
        step_result_fini(&r);
    }
}

TEST(one_rank_communicates_nothing)
{
    struct workload w = made_of(1 * MS, 2 * MS, 3 * MS);
    struct step_result r;

    add(&w, 8 * MB, 0);
    r = run_plain(&w, 1);
    CLOSE(r.total, 6 * MS);
    ck_assert_int_eq(r.n, 0);
    step_result_fini(&r);
}

/* What is ready together moves together, up to the threshold. */
TEST(fusion)
{
    static const int64_t thresholds[] = {64 * MB, 2 * MB, 1};
    static const int batches[] = {1, 2, 4};

    for (int t = 0; t < 3; t++) {
        struct workload w = made_of(0, 0, 0);
        struct step_result r;

        for (int i = 0; i < 4; i++)
            add(&w, MB, 0);
        r = run(&w, 2, 1, plain, thresholds[t], STEP_HVD, 0);
        ck_assert_int_eq(r.n, batches[t]);
        for (int i = 0; i < r.n; i++) {
            ck_assert_int_eq(r.batches[i].n, 4 / batches[t]);
            ck_assert_int_eq(r.batches[i].bytes, 4 * MB / batches[t]);
        }
        CLOSE(r.total, ROUND + 4 * MS);
        step_result_fini(&r);
    }
}

/* Two batches move at a time and a third waits. What is ready meanwhile
 * gathers.
 */
TEST(two_batches_move_and_one_waits)
{
    struct workload w = made_of(0, 5 * MS, 0);
    struct step_result r;

    for (int i = 0; i < 5; i++)
        add(&w, 10 * MB, i * MS);
    r = run_plain(&w, 2);
    ck_assert_int_eq(r.n, 4);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(r.batches[i].n, 1);
    ck_assert_int_eq(r.batches[3].n, 2);
    /* The first has 1 ms alone; then both go half as fast. */
    CLOSE(r.batches[0].end, ROUND + 19 * MS);
    CLOSE(r.batches[2].start, r.batches[0].end);
    CLOSE(r.batches[3].start, r.batches[1].end);
    CLOSE(r.total, 50 * MS + ROUND);
    step_result_fini(&r);
}

/* Ranks of a host share memory, where batches move one after another. */
TEST(one_batch_after_another_on_a_host)
{
    struct workload w = made_of(0, 5 * MS, 0);
    struct step_result r;

    for (int i = 0; i < 2; i++)
        add(&w, 10 * MB, i * MS);
    r = run(&w, 2, 2, plain, 64 << 20, STEP_HVD, 0);
    ck_assert_int_eq(r.n, 2);
    CLOSE(r.batches[0].end, ROUND + 10 * MS);
    CLOSE(r.batches[1].start, r.batches[0].end);
    step_result_fini(&r);
}

/* A small tensor takes no large one along that would have to wait. */
TEST(large_tensors_wait_behind_small_ones)
{
    struct workload w = made_of(0, 5 * MS, 0);
    struct step_result r;
    int nlarge = 0;

    for (int i = 0; i < 6; i++) {
        add(&w, 4, i * 0.5 * MS);
        add(&w, 10 * MB, i * 0.5 * MS);
    }
    r = run_plain(&w, 2);
    for (int i = 0; i < r.n; i++)
        nlarge += r.batches[i].bytes >= 10 * MB;
    ck_assert_int_eq(nlarge, 4);
    step_result_fini(&r);
}

/* A small tensor is done with the round that agrees on it. */
TEST(small_tensors_go_along)
{
    struct network slow = {.latency = 1 * MS, .bandwidth = 1e9};
    struct workload w = made_of(0, 10 * MS, 0);
    struct step_result r;

    add(&w, 4, 10 * MS);
    r = run(&w, 4, 1, slow, 64 << 20, STEP_HVD, 0);
    ck_assert_int_eq(r.n, 1);
    ck_assert_str_eq(r.batches[0].algorithm, "round");
    ck_assert_double_eq_tol(step_exposed(&r), 2 * MS, 1e-6);
    step_result_fini(&r);
}

/* Updates go on while other averages are on their way. */
TEST(updates_follow_their_averages)
{
    struct workload w = made_of(0, 10 * MS, 8 * MS);
    struct step_result r;

    add(&w, 4 * MB, 0);
    add(&w, 4 * MB, 10 * MS);
    r = run_plain(&w, 2);
    /* 4 ms of updating the first while the second moves, then 4 ms more. */
    CLOSE(r.total, 10 * MS + ROUND + 4 * MS + 4 * MS);
    step_result_fini(&r);
}

/* 2(p-1) messages one after another, and 2(p-1)/p of the bytes. */
TEST(ring_in_cycles)
{
    struct network n = {.latency = 10e-6, .overhead = 2e-6, .bandwidth = 1e9};
    struct workload w = made_of(0, 7 * MS, 0);
    struct step_result r;
    double one = 14 * 14e-6 + 2 * 7.0 / 8 * 8e-9 * MB;

    add(&w, 4 * MB, 1 * MS);
    add(&w, 4 * MB, 2 * MS);
    r = run(&w, 2, 4, n, 64 << 20, STEP_RING, 5 * MS);
    ck_assert_int_eq(r.n, 1);
    ck_assert_str_eq(r.batches[0].algorithm, "ring");
    CLOSE(r.batches[0].start, 5 * MS);
    CLOSE(r.total, 5 * MS + one);
    step_result_fini(&r);
}

/* Four ranks on two cores compute half as fast; and where a byte takes a core
 * as long as the link, communication takes two of four. */
TEST(hosts_that_share_cores)
{
    struct network n = {.bandwidth = 1e9, .cores = 2};
    struct workload w = made_of(1 * MS, 10 * MS, 1 * MS);
    struct step_result r;

    add(&w, MB, 0);
    r = run(&w, 4, 1, n, 64 << 20, STEP_HVD, 0);
    CLOSE(r.forward, 2 * MS);
    CLOSE(r.computed, 20 * MS);
    CLOSE(r.total, 24 * MS);
    step_result_fini(&r);

    n.cores = 4;
    n.handling = 0.25e-9; /* at both ends: half a core of each of two ranks */
    w = made_of(0, 10 * MS, 0);
    add(&w, 4 * MB, 0);
    r = run(&w, 2, 1, n, 64 << 20, STEP_HVD, 0);
    CLOSE(r.computed, 10 * MS); /* there are cores enough */
    step_result_fini(&r);

    n.cores = 2;
    w = made_of(0, 10 * MS, 0);
    add(&w, 4 * MB, 0);
    r = run(&w, 2, 1, n, 64 << 20, STEP_HVD, 0);
    ck_assert_double_gt(r.computed, 11 * MS);
    ck_assert_double_lt(r.computed, 12.1 * MS);
    step_result_fini(&r);
}

/* The expected maxima of normal samples, of tables of order statistics. */
TEST(the_slowest_of_many)
{
    static const struct {
        double n, deviations;
    } known[] = {{1, 0},       {2, 0.56419}, {3, 0.84628},
                 {4, 1.02938}, {8, 1.42360}, {100, 2.50759}};

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        ck_assert_double_eq_tol(step_slowest(known[i].n), known[i].deviations,
                                1e-4);
    ck_assert_double_gt(step_slowest(1 << 20), 4.5);
    ck_assert_double_lt(step_slowest(1 << 20), 5.2);
}

/* The times are those of the slowest of two ranks; on four, and on one. */
TEST(ranks_that_differ)
{
    static const int hosts[] = {1, 2, 4};

    for (int i = 0; i < 3; i++) {
        struct workload w = made_of(10 * MS, 20 * MS, 2 * MS);
        double slowest = 1 + 0.1 * step_slowest(hosts[i]);
        double mean = 32 * MS / (1 + 0.1 * step_slowest(2));
        struct step_result r;

        w.nranks = 2;
        w.deviation = 0.1;
        add(&w, 1 * MB, 0);
        r = run_plain(&w, hosts[i]);
        ck_assert_double_eq_tol(r.total, mean * slowest, 1e-6);
        ck_assert_double_eq_tol(step_computing(&r), mean, 1e-6);
        ck_assert_double_eq_tol(r.uneven, mean * (slowest - 1), 1e-6);
        ck_assert_double_eq_tol(step_efficiency(&r), 1 / slowest, 1e-6);
        CLOSE(step_exposed(&r), 0);
        step_result_fini(&r);
    }
}

/* Whatever algorithms are chosen for worlds of all sizes. */
LOOP_TEST(worlds_of_all_sizes, 0, 7)
{
    static const int hosts[] = {1, 2, 3, 16, 129, 513, 4096};
    struct network n = network_find("tcp-25g")->network;
    struct workload w = made_of(10 * MS, 20 * MS, 1 * MS);
    struct step_result r;
    int ntensors = 0;

    for (int i = 0; i < 40; i++)
        add(&w, i % 2 ? 4 * MB : 4096, i * 0.5 * MS);
    r = run(&w, hosts[_i], 4, n, 64 << 20, STEP_HVD, 0);
    ck_assert_double_ge(step_exposed(&r), 0);
    for (int i = 0; i < r.n; i++) {
        ck_assert_double_gt(r.batches[i].end, r.batches[i].start);
        ck_assert_double_ge(r.batches[i].start, r.batches[i].ready - 1e-9);
        ntensors += r.batches[i].n;
    }
    ck_assert_int_eq(ntensors, 40);
    step_result_fini(&r);
}

TEST_MAIN("project_step")
