/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates by gradients that are not finite are skipped by all ranks together:
 * the training is the one, bit by bit, that never had the rows. The first rank,
 * variable and step are named, too many one after the other are a failure, and
 * a scale of the loss is found by them.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lines.h"

/* The rows of a training, in steps of batch rows of all ranks: with those of
 * the step bad, one of which has a NaN, or without them. */
struct rows {
    int batch, bad;
    bool whole;
};

static float x[ROWS][FEATURES], y[ROWS];

/* The row with the NaN: the last rank has it, in its last replica. */
static int bad_row(const struct rows *r)
{
    return (r->bad + 1) * r->batch - 1;
}

static hvd_dataset *data(const struct rows *r)
{
    const hvd_component components[] = {{"x", HVD_FLOAT32, 1, {FEATURES}},
                                        {"y", HVD_FLOAT32, 0, {0}}};
    const void *const arrays[] = {x, y};
    int count = 0;

    lines_fill();
    for (int i = 0; i < ROWS; i++) {
        if (!r->whole && i / r->batch == r->bad)
            continue;
        memcpy(x[count], lines_x[i], sizeof x[0]);
        y[count] = lines_y[i];
        if (r->whole && i == bad_row(r))
            x[count][1] = NAN;
        count++;
    }
    return hvd_dataset_batch(
        hvd_dataset_memory(2, components, arrays, count, NULL, NULL), 4, 1);
}

/* The loss, the variables, and the running averages. */
enum { NUMBERS = 2 * FEATURES + 2 };

struct heard {
    int64_t step;
    int count, rank;
    char variable[48], text[256];
};

static int after(void *context, hvd_estimator *e, hvd_event *event)
{
    struct heard *h = context;

    (void)e;
    if (!event->skipped)
        return 0;
    h->step = event->step;
    h->count++;
    h->rank = event->skipped_rank;
    snprintf(h->variable, sizeof h->variable, "%s", event->skipped_variable);
    snprintf(h->text, sizeof h->text, "%s", event->skipped);
    return 0;
}

static struct heard heard;
static hvd_hook hook = {
    .size = sizeof(hvd_hook), .context = &heard, .after_step = after};
static hvd_hook *const hooks[] = {&hook};

/* Trains on the rows of one epoch. The variables come behind the loss. */
static void train(const struct rows *rows, int64_t steps, double *found)
{
    const hvd_train_spec spec = lines_steps(steps);
    hvd_results results = {.size = sizeof results};
    float averages[FEATURES];
    hvd_estimator *e;

    heard = (struct heard){.count = 0};
    lines_options.hooks = hooks;
    lines_options.nhooks = 1;
    lines_options.ema_decay = 0.5;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, data(rows), &spec, &results));
    ck_assert_int_eq(results.skipped, heard.count);
    found[0] = results.loss;
    lines_read(e, found + 1, found + 1 + FEATURES);
    MUST(hvd_estimator_variable(e, "average/line/kernel", averages, FEATURES));
    for (int k = 0; k < FEATURES; k++)
        found[FEATURES + 2 + k] = (double)averages[k];
    hvd_estimator_free(e);
}

static const char *const optimizers[] = {"sgd", "momentum", "adam", "lamb"};

static void compare(const struct rows *with, int accumulate)
{
    const int64_t steps = ROWS / with->batch;
    struct rows without = *with;
    double skipped[NUMBERS], never[NUMBERS];

    without.whole = false;
    without.batch = with->batch * accumulate;
    without.bad = with->bad / accumulate;
    lines_options.skip_nonfinite = 2;
    lines_options.accumulate = accumulate;
    train(with, steps, skipped);
    ck_assert_int_eq(heard.count, 1);
    ck_assert_int_eq(heard.step, (with->bad / accumulate + 1) * accumulate);
    ck_assert_int_eq(heard.rank, ranks_size() - 1);
    ck_assert_str_eq(heard.variable, "line/bias");
    train(&without, steps - accumulate, never);
    ck_assert_int_eq(heard.count, 0);
    ck_assert_mem_eq(skipped + 1, never + 1, sizeof skipped - sizeof *skipped);
    ck_assert_double_eq_tol(skipped[0], never[0], 1e-12);
    /* Without a bad row it makes no difference whether there is a guard. */
    lines_options.skip_nonfinite = 0;
    train(&without, steps - accumulate, skipped);
    ck_assert_mem_eq(skipped, never, sizeof skipped);
}

LOOP_TEST(a_skipped_update_leaves_nothing, 0, 4)
{
    const struct rows rows = {4 * ranks_size(), 1, true};

    lines_set_options();
    lines_options.optimizer = optimizers[_i];
    lines_options.clip_norm = _i == 1 ? 0.5 : 0;
    compare(&rows, 1);
}

/* Of two replicas the second has the row. */
TEST(replicas_skip_together)
{
    const struct rows rows = {8 * ranks_size(), 1, true};

    if (ROWS / rows.batch < 2)
        return;
    lines_set_options();
    lines_options.optimizer = "adam";
    lines_options.replicas = 2;
    compare(&rows, 1);
}

/* The sum of two steps is skipped, whichever of them is bad. */
LOOP_TEST(sums_of_gradients_are_skipped, 0, 2)
{
    const struct rows rows = {4 * ranks_size(), _i, true};

    if (ROWS / rows.batch < 4 || ROWS / rows.batch % 2 != 0)
        return;
    lines_set_options();
    lines_options.optimizer = "adam";
    compare(&rows, 2);
}

TEST(the_devices_network_skips_together)
{
    const struct rows rows = {4 * ranks_size(), 1, true};

    lines_set_options();
    lines_options.optimizer = "adam";
    lines_options.device_collective = 1;
    compare(&rows, 1);
}

/* -------------------------------------------------------------- statistics */

static ipu_tensor normal(hvd_net *net, ipu_tensor in, void *context)
{
    const int64_t flat[] = {-1};
    ipu_graph *g = hvd_net_graph(net);

    (void)context;
    return ipu_reshape(
        g,
        hvd_dense(net, "line", hvd_batch_norm(net, "norm", in), 1, HVD_LINEAR),
        1, flat);
}

/* Two trainings of a step each, the second of which is skipped: the moving
 * averages are as they were, although the forward pass has changed them. */
LOOP_TEST(statistics_stay, 1, 3)
{
    const struct rows bad = {4 * ranks_size() * _i, 0, true};
    const hvd_train_spec one = lines_steps(1);
    float mean[2][FEATURES];
    hvd_results results = {.size = sizeof results};
    hvd_estimator *e;

    if (bad.batch > ROWS)
        return;
    lines_set_options();
    lines_model.build = normal;
    lines_options.replicas = _i;
    lines_options.skip_nonfinite = 1;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, hvd_dataset_batch(lines_data(ROWS, 2), 4, 1),
                             &one, &results));
    ck_assert_int_eq(results.skipped, 0);
    MUST(hvd_estimator_variable(e, "norm/mean", mean[0], FEATURES));
    ck_assert_float_ne(mean[0][0], 0);
    /* The next step is the second of the data. */
    MUST(hvd_estimator_train(
        e, data(&(struct rows){bad.batch, ROWS >= 2 * bad.batch, true}), &one,
        &results));
    ck_assert_int_eq(results.skipped, 1);
    ck_assert(isnan(results.loss));
    MUST(hvd_estimator_variable(e, "norm/mean", mean[1], FEATURES));
    ck_assert_mem_eq(mean[0], mean[1], sizeof mean[0]);
    hvd_estimator_free(e);
}

/* ----------------------------------------------------------- limits, resume */

TEST(too_many_are_a_failure)
{
    const hvd_train_spec ten = lines_steps(10);
    hvd_results results = {.size = sizeof results};
    hvd_estimator *e;

    lines_set_options();
    lines_options.rate.rate = 1e30; /* the second step has no finite gradient */
    lines_options.skip_nonfinite = 3;
    MUST(hvd_estimator_new(&lines_options, &e));
    ck_assert_int_lt(
        hvd_estimator_train(e, hvd_dataset_batch(lines_data(ROWS, 2), 4, 1),
                            &ten, &results),
        0);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "4 updates one after"));
    ck_assert_int_eq(results.skipped, 4);
    hvd_estimator_free(e);
}

/* A training that begins to skip counts the updates that there have been. */
TEST(a_guard_may_come_later)
{
    const struct rows rows = {4 * ranks_size(), 1, false};
    const char *folder = lines_folder();
    double whole[NUMBERS], resumed[NUMBERS];
    const int64_t steps = ROWS / rows.batch - 1;
    hvd_train_spec first = lines_steps(1);
    hvd_estimator *e;

    lines_set_options();
    lines_options.optimizer = "adam";
    train(&rows, steps, whole);
    lines_options.model_dir = folder;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, data(&rows), &first, NULL));
    hvd_estimator_free(e);
    lines_options.skip_nonfinite = 1;
    train(&rows, steps - 1, resumed);
    ck_assert_mem_eq(whole + 1, resumed + 1, sizeof whole - sizeof *whole);
    lines_remove();
}

/* ------------------------------------------------------------- loss scaling */

/* Returns true if the log of a folder has a text. */
static bool has_text(const char *folder, const char *text)
{
    char path[300], line[1000];
    bool found = false;
    FILE *f;

    snprintf(path, sizeof path, "%s/log.jsonl", folder);
    f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f))
        found |= strstr(line, text) != NULL;
    fclose(f);
    return found;
}

/* The scale is doubled by each update but the second, which halves it. */
TEST(the_log_tells_of_scale_and_skips)
{
    const struct rows rows = {4 * ranks_size(), 1, true};
    const int steps = ROWS / rows.batch;
    const char *folder = lines_folder();
    char skipped[120];
    double found[NUMBERS];

    lines_set_options();
    lines_options.skip_nonfinite = 1;
    lines_options.loss_scale = 1024;
    lines_options.loss_scale_steps = 1;
    lines_options.log_dir = folder;
    lines_options.log_step_count_steps = 1;
    train(&rows, steps, found);
    snprintf(skipped, sizeof skipped,
             "step 2: the gradient of line/bias on rank %d is not finite",
             ranks_size() - 1);
    if (ranks_rank() == 0) {
        ck_assert(has_text(folder, skipped));
        ck_assert_double_eq(lines_logged(folder, "train/loss_scale", 1), 2048);
        ck_assert(isnan(lines_logged(folder, "train/loss", 2)));
        ck_assert_double_eq(lines_logged(folder, "train/loss_scale", steps),
                            1024 * pow(2, steps - 2));
    }
    lines_remove();
}

/* Powers of two change no bit, as long as nothing overflows. */
TEST(a_scale_of_the_loss_changes_nothing)
{
    const struct rows rows = {4 * ranks_size(), 1, false};
    double plain[NUMBERS], scaled[NUMBERS];

    lines_set_options();
    lines_options.optimizer = "adam";
    train(&rows, 10, plain);
    lines_options.skip_nonfinite = 1;
    lines_options.loss_scale = 1024;
    lines_options.loss_scale_steps = 3;
    train(&rows, 10, scaled);
    ck_assert_mem_eq(plain, scaled, sizeof plain);
    ck_assert_int_eq(heard.count, 0);
}

static ipu_tensor halved(hvd_net *net, ipu_tensor in, void *context)
{
    const int64_t flat[] = {-1};
    ipu_graph *g = hvd_net_graph(net);
    ipu_tensor out = hvd_dense(net, "line", in, 1, HVD_LINEAR);

    (void)context;
    return ipu_reshape(
        g, ipu_cast(g, ipu_cast(g, out, IPU_FLOAT16), IPU_FLOAT32), 1, flat);
}

/* Losses of 1e-8 times as much: their gradients are zero in float16. */
static ipu_tensor small(hvd_net *net, ipu_tensor out, void *context)
{
    ipu_graph *g = hvd_net_graph(net);

    (void)context;
    return ipu_scale(
        g, ipu_square(g, ipu_subtract(g, out, hvd_net_input(net, "y"))), 1e-8,
        0);
}

/* Returns how far the variables have moved. */
static double train_half(double loss_scale, int64_t *skipped)
{
    const hvd_train_spec none = lines_steps(1), more = lines_steps(40);
    hvd_results results = {.size = sizeof results};
    double before[FEATURES], after_it[FEATURES], b, moved = 0;
    hvd_estimator *e;

    lines_set_options();
    lines_model.build = halved;
    lines_model.loss = small;
    lines_options.rate.rate = 1e7;
    lines_options.skip_nonfinite = 30;
    lines_options.loss_scale = loss_scale;
    lines_options.loss_scale_steps = 10;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, hvd_dataset_batch(lines_data(ROWS, 2), 4, 1),
                             &none, NULL));
    lines_read(e, before, &b);
    MUST(hvd_estimator_train(e, hvd_dataset_batch(lines_data(ROWS, 2), 4, 1),
                             &more, &results));
    lines_read(e, after_it, &b);
    *skipped = results.skipped;
    for (int k = 0; k < FEATURES; k++)
        moved = fmax(moved, fabs(before[k] - after_it[k]));
    hvd_estimator_free(e);
    return moved;
}

TEST(float16_needs_a_scale)
{
    int64_t skipped;

    ck_assert_double_eq(train_half(0, &skipped), 0);
    ck_assert_double_gt(train_half(65536, &skipped), 0.1);
    /* 2^60 overflows in float16, and is found to. */
    ck_assert_double_gt(train_half(ldexp(1, 60), &skipped), 0.1);
    ck_assert_int_gt(skipped, 10);
}

TEST(a_scale_needs_a_guard)
{
    hvd_estimator *e;

    lines_set_options();
    lines_options.loss_scale = 1024;
    ck_assert_int_eq(hvd_estimator_new(&lines_options, &e), HVD_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "skip_nonfinite"));
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_estimator_guard")
