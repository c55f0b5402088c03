/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimators with parameter servers, and with the optimiser on the host: the
 * workers make the steps of gradient descent over their rows, the servers
 * return with what they have found, and a mistake of one rank is a failure of
 * all, servers too.
 */
#include <hvd_strategy.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "lines.h"

/* The batch of each worker. */
enum { BATCH = 2 };

static hvd_dataset *batches(void)
{
    return hvd_dataset_batch(lines_data(ROWS, 2), BATCH, 1);
}

static int workers(void)
{
    return ranks_size() - lines_options.servers;
}

static bool is_worker(void)
{
    return ranks_rank() < workers();
}

/* Every rank has the same results, whatever it did. */
static void must_agree(double value)
{
    double least = value, most = value;

    MUST(hvd_allreduce(&least, &least, 1, HVD_FLOAT64, HVD_MIN));
    MUST(hvd_allreduce(&most, &most, 1, HVD_FLOAT64, HVD_MAX));
    ck_assert_double_eq(least, most);
}

/* Trains twice, from the values that there are after a step, and compares with
 * gradient descent. Sets *loss to what a last evaluation found. */
static void train_and_compare(int steps, double *loss)
{
    const hvd_train_spec one = lines_steps(1), more = lines_steps(steps - 1);
    hvd_results trained = {.size = sizeof trained};
    hvd_results evaluated = {.size = sizeof evaluated};
    double w[FEATURES], b, now[FEATURES], c, before[FEATURES], d;
    hvd_estimator *e;

    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, batches(), &one, &trained));
    ck_assert_int_eq(trained.global_step, 1);
    if (is_worker())
        lines_read(e, w, &b);
    memcpy(before, w, sizeof w);
    d = b;
    MUST(hvd_estimator_train(e, batches(), &more, &trained));
    ck_assert_int_eq(trained.global_step, steps);
    must_agree(trained.loss);
    MUST(hvd_estimator_evaluate(e, hvd_dataset_batch(lines_data(71, 2), 7, 0),
                                NULL, &evaluated));
    ck_assert_int_eq(evaluated.rows, 71);
    ck_assert_int_eq(evaluated.global_step, steps);
    must_agree(evaluated.loss);
    if (is_worker()) {
        lines_descend(BATCH * workers() * lines_options.replicas, 1, steps, 0.1,
                      w, &b);
        lines_read(e, now, &c);
        for (int k = 0; k < FEATURES; k++)
            ck_assert_double_eq_tol(now[k], w[k], 1e-5);
        ck_assert_double_eq_tol(c, b, 1e-5);
        ck_assert_double_ne(c, d);
        ck_assert_double_eq_tol(evaluated.loss, lines_loss(71, w, b), 1e-5);
    } else {
        ck_assert_int_lt(hvd_estimator_variable(e, "line/bias", &(float){0}, 1),
                         0);
    }
    *loss = evaluated.loss;
    hvd_estimator_free(e);
}

/* Returns how many steps do not go beyond the rows. */
static int steps_of(int ranks)
{
    int steps = ROWS / (BATCH * ranks * lines_options.replicas);

    return steps > 8 ? 8 : steps;
}

LOOP_TEST(synchronous_servers_make_the_steps_of_their_workers, 1, 4)
{
    double whole, parts;

    lines_set_options();
    lines_options.servers = _i;
    if (workers() < 1)
        return;
    train_and_compare(steps_of(workers()), &whole);
    lines_options.placement = HVD_PLACE_BY_BYTES;
    lines_options.part_bytes = 4;
    train_and_compare(steps_of(workers()), &parts);
    ck_assert_double_eq(whole, parts);
}

TEST(workers_may_have_replicas)
{
    double loss;

    lines_set_options();
    lines_options.servers = 1;
    lines_options.replicas = 2;
    if (workers() >= 1)
        train_and_compare(steps_of(workers()), &loss);
}

LOOP_TEST(the_optimiser_may_be_on_the_host, 1, 3)
{
    double loss;

    lines_set_options();
    lines_options.variables_on_host = 1;
    lines_options.replicas = _i;
    train_and_compare(steps_of(ranks_size()), &loss);
}

/* ------------------------------------------------------------------- modes */

/* Evaluates before there was a training, too. */
static double loss_of(hvd_estimator *e)
{
    hvd_results found = {.size = sizeof found};

    MUST(hvd_estimator_evaluate(
        e, hvd_dataset_batch(lines_data(71, 2), BATCH, 0), NULL, &found));
    return found.loss;
}

static void must_learn(void)
{
    const hvd_train_spec some = lines_steps(60);
    double before, after;
    hvd_estimator *e;

    if (workers() < 1 || lines_options.backups >= workers())
        return;
    lines_options.rate.rate = 0.02;
    MUST(hvd_estimator_new(&lines_options, &e));
    before = loss_of(e);
    MUST(hvd_estimator_train(e, batches(), &some, NULL));
    after = loss_of(e);
    must_agree(after);
    ck_assert_double_lt(after, before / 4);
    hvd_estimator_free(e);
}

LOOP_TEST(workers_need_not_go_in_step, 1, 3)
{
    lines_set_options();
    lines_options.servers = _i;
    lines_options.server_mode = HVD_SERVER_ASYNCHRONOUS;
    must_learn();
    lines_options.server_mode = HVD_SERVER_BOUNDED;
    lines_options.staleness = 2;
    must_learn();
    lines_options.server_mode = HVD_SERVER_SYNCHRONOUS;
    lines_options.staleness = 0;
    lines_options.backups = 1;
    must_learn();
}

/* ------------------------------------------------------------- checkpoints */

/* The servers of a world with as many workers as divide its ranks, or one. */
static int half(void)
{
    return ranks_size() % 2 == 0 ? ranks_size() / 2 : ranks_size() > 1;
}

/* A number that workers divide, with servers and without. */
static int global_batch(void)
{
    const int n = ranks_size();

    return n % 2 == 0 ? n : n * (n - half());
}

static void train_to(int64_t step, const char *folder, int servers, bool host,
                     double *w, double *b)
{
    hvd_train_spec spec = lines_steps(0);
    hvd_results found = {.size = sizeof found};
    hvd_estimator *e;

    spec.max_steps = step;
    lines_set_options();
    lines_options.model_dir = folder;
    lines_options.servers = servers;
    lines_options.variables_on_host = host;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(
        e, hvd_dataset_batch_global(lines_data(ROWS, 2), global_batch(), 1),
        &spec, &found));
    ck_assert_int_eq(found.global_step, step);
    if (is_worker())
        lines_read(e, w, b);
    hvd_estimator_free(e);
}

/* One step each way: with servers, without, on the host, with servers. */
TEST(a_training_goes_on_elsewhere)
{
    const char *folder = lines_folder();
    const int servers = half();
    double w[FEATURES], b, now[FEATURES], c;

    train_to(1, folder, 0, false, w, &b);
    lines_descend(global_batch(), 1, 4, 0.1, w, &b);
    train_to(2, folder, servers, false, now, &c);
    train_to(3, folder, 0, true, now, &c);
    train_to(4, folder, servers, false, now, &c);
    if (is_worker())
        for (int k = 0; k < FEATURES; k++)
            ck_assert_double_eq_tol(now[k], w[k], 1e-5);
    lines_remove();
}

/* Makes four steps of Adam in that many calls. */
static void train_in_calls(int calls, double *w, double *b)
{
    const hvd_train_spec some = lines_steps(4 / calls);
    hvd_estimator *e;

    lines_set_options();
    lines_options.servers = half();
    lines_options.optimizer = "adam";
    MUST(hvd_estimator_new(&lines_options, &e));
    for (int i = 0; i < calls; i++)
        MUST(hvd_estimator_train(e, batches(), &some, NULL));
    if (is_worker())
        lines_read(e, w, b);
    hvd_estimator_free(e);
}

TEST(the_optimiser_goes_on_with_the_next_call)
{
    double w[FEATURES], b, now[FEATURES], c;

    train_in_calls(1, w, &b);
    train_in_calls(4, now, &c);
    if (is_worker())
        for (int k = 0; k < FEATURES; k++)
            ck_assert_double_eq(now[k], w[k]);
}

/* ------------------------------------------------------------------- hooks */

struct heard {
    int steps, ends;
    int64_t stop_at;
};

static int count_step(void *context, hvd_estimator *e, hvd_event *event)
{
    struct heard *heard = context;
    float one = 1;
    hvd_request request = ranks_sum(HVD_FLOAT32, &one, &one, NULL);

    heard->steps++;
    request.process_set = hvd_estimator_workers(e);
    MUST(ranks_run(&request));
    ck_assert_float_eq(one, (float)workers());
    return event->step == heard->stop_at ? HVD_HOOK_STOP : 0;
}

static int count_end(void *context, hvd_estimator *e, hvd_event *event)
{
    (void)e, (void)event;
    ((struct heard *)context)->ends++;
    return 0;
}

TEST(hooks_are_those_of_the_workers)
{
    const hvd_train_spec many = lines_steps(50);
    struct heard heard = {.stop_at = 3};
    hvd_hook hook = {.size = sizeof hook,
                     .context = &heard,
                     .after_step = count_step,
                     .end = count_end};
    hvd_results found = {.size = sizeof found};
    hvd_estimator *e;

    lines_set_options();
    lines_options.servers = 1;
    lines_options.hooks = (hvd_hook *const[]){&hook};
    lines_options.nhooks = 1;
    if (workers() < 1)
        return;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, batches(), &many, &found));
    ck_assert_int_eq(found.stopped, 1);
    ck_assert_int_eq(found.global_step, 3);
    ck_assert_int_eq(heard.steps, is_worker() ? 3 : 0);
    ck_assert_int_eq(heard.ends, is_worker());
    hvd_estimator_free(e);
}

/* ---------------------------------------------------------------- mistakes */

static void must_fail(hvd_dataset *data, const hvd_train_spec *spec,
                      const char *text)
{
    hvd_estimator *e;

    MUST(hvd_estimator_new(&lines_options, &e));
    ck_assert_int_lt(hvd_estimator_train(e, data, spec, NULL), 0);
    ck_assert_msg(strstr(hvd_last_error(), text) ||
                      strstr(hvd_last_error(), "another rank"),
                  "%s", hvd_last_error());
    hvd_estimator_free(e);
}

TEST(a_failure_of_a_worker_reaches_all)
{
    const hvd_train_spec some = lines_steps(40), none = lines_steps(0);

    lines_set_options();
    lines_options.servers = 1;
    if (workers() < 1)
        return;
    must_fail(ranks_rank() == workers() - 1 ? NULL : batches(), &some,
              "there is no data");
    must_fail(batches(), &none, "steps");
    lines_options.rate.rate = 1e30;
    must_fail(batches(), &some, "no longer a number");
    lines_set_options();
    lines_options.servers = 1;
    lines_options.part_bytes = 8;
    lines_options.optimizer = "lamb";
    must_fail(batches(), &some, "part_bytes");
}

static void must_refuse(const char *text)
{
    hvd_estimator *e;

    ck_assert_int_eq(hvd_estimator_new(&lines_options, &e), HVD_ERR_ARGUMENT);
    ck_assert_msg(strstr(hvd_last_error(), text), "%s", hvd_last_error());
    ck_assert_ptr_null(e);
}

TEST(options_that_make_no_sense_are_refused)
{
    lines_set_options();
    lines_options.servers = ranks_size();
    must_refuse("leaves no worker: start more processes");
    lines_options.servers = -1;
    must_refuse("servers is -1");
    lines_options.servers = 1;
    lines_options.clip_norm = 1;
    must_refuse("servers does not go together with clip_norm");
    lines_set_options();
    lines_options.servers = 1;
    lines_options.device_collective = 1;
    must_refuse("device_collective does not go together with servers");
    lines_set_options();
    lines_options.staleness = 1;
    must_refuse("staleness is of no use without servers");
    lines_options.servers = 1;
    must_refuse("staleness is of no use without the server_mode bounded");
    lines_set_options();
    lines_options.servers = 1;
    lines_options.server_mode = 3;
    must_refuse("server_mode is 3");
    lines_options.server_mode = HVD_SERVER_ASYNCHRONOUS;
    lines_options.ema_decay = 0.9;
    must_refuse("different averages");
    lines_set_options();
    lines_options.variables_on_host = 1;
    lines_options.skip_nonfinite = 1;
    must_refuse("variables_on_host does not go together with skip_nonfinite");
    lines_set_options();
    lines_options.elastic = 1;
    lines_options.servers = 1;
    must_refuse("elastic does not go together with servers");
    lines_options.servers = 0;
    lines_options.stages = 2;
    must_refuse("elastic does not go together with stages");
    lines_set_options();
    lines_options.exclude_stragglers = 2;
    must_refuse("exclude_stragglers does not go together with elastic = 0");
}

/* mpirun can start ranks that were told different things. */
TEST(ranks_that_differ_are_told)
{
    const hvd_train_spec some = lines_steps(2);
    hvd_estimator *e;

    if (ranks_size() < 3)
        return;
    lines_set_options();
    lines_options.servers = ranks_rank() == 0 ? 1 : 2;
    MUST(hvd_estimator_new(&lines_options, &e));
    ck_assert_int_lt(hvd_estimator_train(e, batches(), &some, NULL), 0);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "the ranks differ in"));
    hvd_estimator_free(e);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_estimator_servers")
