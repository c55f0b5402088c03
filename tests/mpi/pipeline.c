/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipelines on several ranks, by the exchange of the training programs: they
 * train as one program that has all elements, gradients leave while stages
 * still work, and a run that fails on one rank fails on all, in words that name
 * rank and tensor; after which all go on.
 */
#include "pipelined.h"

#include "output/problem.h"
#include "ranks.h"
#include "trainer/pipeline_exchange.h"

static struct exchange *ranks;
static struct pipeline_exchange *exchange;
static int64_t
    fails_at; /* mini-batch at which this rank's sink fails; -1: none */

/* Gives this rank its share of the elements, which go to the ranks in turn. */
static int next_of_rank(void *context, void *const *buffers)
{
    struct data *own = context;

    if (own->end && own->next >= own->end)
        return 0;
    element_of(own->next++ * ranks_size() + ranks_rank(), buffers[0],
               buffers[1]);
    return 1;
}

static int sink(void *context, int32_t replica, int64_t mini_batch,
                int32_t count, const void *const *outputs)
{
    (void)context, (void)replica, (void)count, (void)outputs;
    return mini_batch == fails_at ? -9 : 0;
}

static void describe(int nstages, int replicas)
{
    static const ipu_feed_tensor tensors[] = {
        {"x", IPU_FLOAT32, 2, {ROWS, FEATURES}},
        {"labels", IPU_INT32, 1, {ROWS}},
    };
    const struct exchange_settings settings = {.compression = 0};
    static ipu_system pod;
    ipu_infeed_options o;

    begin();
    fails_at = -1;
    cut(nstages, 0);
    ipu_infeed_free(options.infeed);
    ipu_infeed_options_init(&o, sizeof o);
    o.name = "data";
    o.ntensors = 2;
    o.tensors = tensors;
    o.replicas = replicas;
    o.source.next = next_of_rank;
    o.source.context = &data;
    MUST(ipu_infeed_new(&o, &options.infeed));
    pod.size = sizeof pod;
    MUST(ipu_system_find("Pod16", &pod));
    options.system = &pod;
    options.replicas = replicas;
    options.sink = sink;
    options.threads = 2;
    ck_assert_int_eq(exchange_new(&settings, &ranks), 0);
    ck_assert_int_eq(pipeline_exchange_new(&options, ranks, &exchange), 0);
}

/* Starts a pipeline everywhere. Only rank 0 has the first weights; the others
 * get them from it. */
static void start_all(void)
{
    float zeros[MOST_WIDTH * MOST_WIDTH] = {0};
    char name[16];

    start();
    for (int i = 0; i < 2 * LAYERS && ranks_rank() > 0; i++)
        MUST(ipu_pipeline_write(pipeline, name_of(i, name), zeros,
                                (size_t)count_of(i) * 4));
    ck_assert_msg(pipeline_exchange_start(exchange, pipeline) == 0, "%s",
                  problem_text());
}

static void finish_all(void)
{
    pipeline_exchange_free(exchange);
    exchange = NULL;
    finish();
}

static void run_all(int updates)
{
    for (int i = 0; i < updates; i++)
        ck_assert_msg(pipeline_exchange_run(exchange) == 0, "%s",
                      problem_text());
}

/* Expects the mean over replicas and ranks of their sums. */
static void expect_one_program(int updates, float tolerance)
{
    int parts = options.replicas * ranks_size();

    expect_training(updates, parts, 1.0 / parts, tolerance);
}

/* All ranks have rank 0's bits, in all replicas. */
static void expect_equal_ranks(void)
{
    float mine[MOST_WIDTH * MOST_WIDTH], theirs[MOST_WIDTH * MOST_WIDTH];
    char name[16];

    for (int i = 0; i < 2 * LAYERS; i++)
        for (int r = 0; r < options.replicas; r++) {
            size_t bytes = (size_t)count_of(i) * 4;

            MUST(ipu_pipeline_read(pipeline, r, name_of(i, name), mine, bytes));
            memcpy(theirs, mine, bytes);
            ck_hvd(hvd_broadcast(theirs, count_of(i), HVD_FLOAT32, 0));
            ck_assert_mem_eq(mine, theirs, bytes);
        }
}

static int64_t allreduces(void)
{
    hvd_metrics metrics = {.size = sizeof metrics};

    ck_hvd(hvd_get_metrics(&metrics));
    return metrics.kinds[HVD_ALLREDUCE].completed;
}

/* _i is the optimizer, with 1 and 2 replicas. */
LOOP_TEST(ranks_train_as_one_program, 0, 6)
{
    struct exchange_stats stats;
    int64_t before;

    describe(2, 1 + _i / 3);
    which = (enum optimizer)(_i % 3);
    start_all();
    before = allreduces();
    run_all(10);
    ck_assert_int_eq(allreduces() - before, 10 * 2 * LAYERS);
    expect_equal_ranks();
    /* There are no more updates: Adam divides by sizes of gradients, and
     * roundings grow. */
    expect_one_program(10, 1e-4f);
    ranks->functions->get_stats(ranks, &stats);
    ck_assert_int_eq(stats.averages, 10 * 2 * LAYERS);
    ck_assert_int_le(stats.early, stats.averages);
    ck_assert_double_ge(stats.wait, 0);
    finish_all();
}

/* _i is the schedule. More mini-batches to an update take fewer allreduces. */
LOOP_TEST(accumulation_divides_the_allreduces, 0, 3)
{
    for (int times = 1; times <= 4; times *= 2) {
        int64_t before;

        describe(2, 1);
        options.schedule = _i;
        options.count = 4 * times;
        start_all();
        before = allreduces();
        run_all(8 / times);
        ck_assert_int_eq(allreduces() - before, 8 / times * 2 * LAYERS);
        expect_equal_ranks();
        expect_one_program(8 / times, 1e-4f);
        finish_all();
    }
}

/* The accumulators of weights are halves, in which the strategy does not
 * average. */
static ipu_dtype half_weights(void *context, const char *variable,
                              ipu_dtype dtype)
{
    (void)context;
    return variable[0] == 'w' ? IPU_FLOAT16 : dtype;
}

TEST(halves_are_averaged_too)
{
    describe(4, 1);
    options.accumulator_of = half_weights;
    options.optimizer = apply_cast;
    start_all();
    run_all(5);
    expect_equal_ranks();
    expect_one_program(5, 2e-2f);
    finish_all();
}

/* ----------------------------------------------------------------- failures */

/* Checks a run that fails on the last rank while the others are alive. */
static void expect_failure(const char *here, const char *there)
{
    int status = pipeline_exchange_run(exchange), last = ranks_size() - 1;
    const char *words = ranks_rank() == last ? here : there;
    char who[32];

    ck_assert_int_eq(status,
                     ranks_rank() == last ? PROBLEM : PROBLEM_ELSEWHERE);
    ck_assert_msg(strstr(problem_text(), words) != NULL, "'%s' is not in: %s",
                  words, problem_text());
    if (ranks_rank() == last)
        return;
    sprintf(who, "rank %d", last);
    ck_assert_msg(strstr(problem_text(), who) != NULL, "%s", problem_text());
    ck_assert_msg(strstr(problem_text(), "the gradient of '") != NULL, "%s",
                  problem_text());
}

/* All ranks are where they were, and train on. */
static void expect_they_go_on(void)
{
    MUST(ipu_infeed_stop(options.infeed));
    data = (struct data){0};
    fails_at = -1;
    MUST(ipu_infeed_start(options.infeed));
    run_all(3);
    expect_equal_ranks();
    expect_one_program(3, 1e-4f);
    finish_all();
}

/* _i is the schedule, with 1 and 2 replicas. */
LOOP_TEST(data_that_ends_on_one_rank_ends_all, 0, 6)
{
    describe(2, 1 + _i / 3);
    options.schedule = _i % 3;
    if (ranks_rank() == ranks_size() - 1)
        data.end = 3 * options.replicas;
    start_all();
    expect_failure("mini-batch 3 of 4", "the data of infeed 'data' has ended");
    expect_they_go_on();
}

/* _i is the mini-batch, with 1 and 2 replicas. */
LOOP_TEST(a_callback_that_fails_on_one_rank_ends_all, 0, 16)
{
    describe(4, 1 + _i / 8);
    options.schedule = IPU_SCHEDULE_SEQUENTIAL;
    fails_at = ranks_rank() == ranks_size() - 1 ? _i % 8 : -1;
    start_all();
    expect_failure("the sink returned -9", "the sink returned -9");
    expect_they_go_on();
}

static ipu_ready_fn give;
static int gives_left; /* gradients that it gives before this rank fails; -1: it
                          does not fail */

static int give_some(void *context, int32_t number, const char *variable,
                     float *values, int64_t count)
{
    if (gives_left == 0)
        return -77;
    gives_left -= gives_left > 0;
    return give(context, number, variable, values, count);
}

/* A rank fails in the ramp-down, after it has given _i gradients. */
LOOP_TEST(what_is_under_way_does_not_keep_others_waiting, 0, 2 * LAYERS)
{
    describe(4, 1);
    give = options.ready;
    options.ready = give_some;
    gives_left = ranks_rank() == ranks_size() - 1 ? _i : -1;
    start_all();
    expect_failure("the gradient of '", "returned -77");
    gives_left = -1;
    expect_they_go_on();
}

/* If all ranks fail at once, each reports its own failure, and none waits for
 * another. */
TEST(failures_on_all_ranks_are_their_own)
{
    describe(2, 1);
    fails_at = ranks_rank() % 4;
    start_all();
    ck_assert_int_eq(pipeline_exchange_run(exchange), PROBLEM);
    ck_assert_ptr_nonnull(strstr(problem_text(), "the sink returned -9"));
    expect_they_go_on();
}

/* An update that fails on one rank ends the next run of the others, because
 * they have changed their weights by then. */
TEST(an_update_that_fails_on_one_rank_ends_the_next_of_all)
{
    int last = ranks_size() - 1;

    describe(2, 1);
    options.optimizer = apply_calling;
    start_all();
    update_status = ranks_rank() == last ? -12 : 0;
    ck_assert_int_eq(pipeline_exchange_run(exchange),
                     ranks_rank() == last ? PROBLEM : 0);
    update_status = 0;
    if (ranks_rank() != last) {
        ck_assert_int_eq(pipeline_exchange_run(exchange), PROBLEM_ELSEWHERE);
        ck_assert_ptr_nonnull(strstr(problem_text(), "the weight update"));
    }
    run_all(1);
    finish_all();
}

/* _i says whether the last rank, or the others, do not train the first
 * matrix. */
static int without_first(void *context, const char *variable)
{
    (void)context;
    return strcmp(variable, "w0") != 0;
}

LOOP_TEST(other_networks_are_told_apart, 0, 2)
{
    int last = ranks_size() - 1, status;

    describe(2, 1);
    if ((ranks_rank() == last) == (_i == 0))
        options.trained = without_first;
    start();
    status = pipeline_exchange_start(exchange, pipeline);
    if (last > 0) {
        ck_assert_int_eq(status, PROBLEM_EVERYWHERE);
        ck_assert_msg(strstr(problem_text(), "'w0'") != NULL, "%s",
                      problem_text());
    } else {
        ck_assert_int_eq(status, 0);
    }
    finish_all();
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_pipeline")
