/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fitter STEPS MICROSECONDS - a task of an elastic cluster that trains by a
 * loop of its own over an elastic strategy (hvd_strategy.h); strategy.bats
 * compiles it, starts it, kills it, and starts it again. Each step takes so
 * long. It writes, at each tenth commit and at the end,
 *
 *     committed S
 *     end rank R of N step S updates U weights HASH
 *
 * Gradients are the same on all ranks, and small multiples of a power of two,
 * so that their average is exact whoever takes part: the end is the same, bit
 * by bit, as without losses. The learning rate falls in the middle. A process
 * set of rank 0 of the first world stays this rank's while it lives.
 */
#include <hvd_elastic.h>
#include <hvd_strategy.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 40, WIDTH = 8, VARIABLES = 2, SPARSE = 2 };

#define HVD_TRY(call)                                                          \
    do {                                                                       \
        int failure = (call);                                                  \
                                                                               \
        if (failure < 0)                                                       \
            return failure;                                                    \
    } while (0)

static hvd_strategy *strategy;
static float dense[VARIABLES][ROWS * WIDTH], table[ROWS * WIDTH];
static float own[WIDTH], mean[WIDTH]; /* a statistic */
static int64_t step, last;
static int pause_us;
static int64_t calls;
static int set;         /* a process set of the first world, */
static int rank_in_set; /* and what hvd_process_set_rank says of it */

static void check(int status, const char *what)
{
    if (status >= 0)
        return;
    fprintf(stderr, "%s: %d: %s\n", what, status, hvd_last_error());
    exit(1);
}

static int count_call(void *context, int32_t variable)
{
    (void)context, (void)variable;
    calls++;
    return 0;
}

static float gradient_of(int64_t i)
{
    return (float)((i * 7 + step * 3) % 17 - 8) / 8;
}

static int make_step(void)
{
    int64_t rows[] = {step % ROWS, (step * 5) % ROWS};
    float values[2 * WIDTH];

    for (int32_t v = 0; v < VARIABLES; v++) {
        float *gradient = hvd_strategy_gradient(strategy, v);

        for (int i = 0; i < ROWS * WIDTH; i++)
            gradient[i] = gradient_of(i + v);
        HVD_TRY(hvd_strategy_ready(strategy, v));
    }
    for (int i = 0; i < 2 * WIDTH; i++)
        values[i] = gradient_of(i);
    HVD_TRY(hvd_strategy_ready_rows(strategy, SPARSE, rows, values,
                                    rows[0] == rows[1] ? 1 : 2, WIDTH));
    if (step == last / 2)
        HVD_TRY(hvd_strategy_set_learning_rate(strategy, 0.001));
    HVD_TRY(hvd_strategy_step(strategy));
    own[step % WIDTH] += 1;
    step++;
    return 0;
}

static int train(void *context)
{
    (void)context;
    while (step < last) {
        HVD_TRY(make_step());
        usleep((useconds_t)pause_us);
        if (step % 5 != 0)
            continue;
        HVD_TRY(hvd_commit());
        if (step % 50 == 0) {
            printf("committed %d\n", (int)step);
            fflush(stdout);
        }
    }
    return 0;
}

static int look_at_set(void *context, const hvd_reset *reset)
{
    int status;

    (void)context;
    if (reset->old_rank < 0 || set == 0)
        return 0;
    status = hvd_process_set_rank(set);
    if (status != rank_in_set)
        printf("wrong: in the process set this is rank %d\n", status);
    fflush(stdout);
    return 0;
}

static void make_strategy(void)
{
    const int64_t shape[] = {ROWS, WIDTH}, width = WIDTH;
    hvd_strategy_options options;

    hvd_strategy_options_init(&options, sizeof options);
    options.learning_rate = 0.01;
    options.elastic = 1;
    options.updated = count_call;
    options.check_every = 10;
    check(hvd_strategy_new(&options, &strategy), "new");
    check(hvd_strategy_add(strategy, "first", dense[0], 2, shape), "add");
    check(hvd_strategy_add(strategy, "second", dense[1], 2, shape), "add");
    check(hvd_strategy_add_sparse(strategy, "table", table, ROWS, WIDTH),
          "add_sparse");
    check(hvd_strategy_add_statistic(strategy, "seen", own, mean, 1, &width),
          "add_statistic");
    check(hvd_strategy_start(strategy), "start");
}

static int64_t count_updates(void)
{
    int64_t updates = -1;
    void *data[64] = {NULL};
    hvd_strategy_tensor info = {.size = sizeof info};

    for (int32_t i = 0; i < hvd_strategy_state_count(strategy); i++) {
        check(hvd_strategy_state_info(strategy, i, &info), "info");
        if (info.dtype == HVD_INT64 && info.variable == 0)
            data[i] = &updates;
    }
    check(hvd_strategy_read_state(strategy, data), "read_state");
    return updates;
}

static unsigned long long hash_all(void)
{
    const float *all[] = {dense[0], dense[1], table};
    unsigned long long h = 1;

    for (int v = 0; v < 3; v++)
        for (size_t i = 0; i < ROWS * WIDTH * sizeof(float); i++)
            h = (h ^ ((const unsigned char *)all[v])[i]) * 0x100000001b3ULL;
    return h;
}

int main(int argc, char **argv)
{
    const int32_t first[] = {0};
    hvd_recovery how;

    last = argc > 1 ? atoi(argv[1]) : 20;
    pause_us = argc > 2 ? atoi(argv[2]) : 0;
    check(hvd_init(), "init");
    check(hvd_last_recovery(&how, sizeof how), "last_recovery");
    if (how.generation == 0 && hvd_size() > 1) {
        check(set = hvd_add_process_set(first, 1), "add_process_set");
        rank_in_set = hvd_rank() == 0 ? 0 : HVD_ERR_PROCESS_SET;
    }
    for (int i = 0; i < ROWS * WIDTH; i++)
        dense[0][i] = dense[1][i] = table[i] = (float)(i % 9) * 0.25F;
    check(hvd_state_register("step", &step, sizeof step, 0), "register");
    check(hvd_on_reset(look_at_set, NULL), "on_reset");
    make_strategy();
    check(hvd_elastic_run(train, NULL), "train");
    check(hvd_strategy_check(strategy), "check");
    if (calls < step && how.generation == 0)
        printf("wrong: %d calls\n", (int)calls);
    printf("end rank %d of %d step %d updates %d weights %016llx\n", hvd_rank(),
           hvd_size(), (int)step, (int)count_updates(), hash_all());
    hvd_strategy_free(strategy);
    check(hvd_shutdown(), "shutdown");
    return 0;
}
