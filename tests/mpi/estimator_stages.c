/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimators with a pipeline: its updates are those of one device with as many
 * steps, whatever the schedule; it goes on with the same bits, from its own
 * checkpoints, and to rounding from those of one device; and evaluations
 * between its updates do not disturb the data.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lines.h"

/* Rows of a mini-batch; mini-batches of an update; widths of the layers. */
enum { BATCH = 2, COUNT = 4, WIDTH = 5 };

/* -------------------------------------------- a line whose stage is a piece */

static ipu_tensor line(hvd_net *net, ipu_tensor in, void *context)
{
    (void)context;
    return hvd_dense(net, "line", in, 1, HVD_LINEAR);
}

static ipu_tensor flat(hvd_net *net, ipu_tensor in, void *context)
{
    const int64_t shape[] = {-1};

    (void)context;
    return ipu_reshape(hvd_net_graph(net), in, 1, shape);
}

static void set_line(void)
{
    static hvd_build_fn *const pieces[] = {line, flat};

    lines_set_options();
    lines_model.build = NULL;
    lines_model.pieces = pieces;
    lines_model.npieces = 2;
    lines_options.accumulate = COUNT;
    lines_options.stages = 2;
}

static hvd_dataset *batches(void)
{
    return hvd_dataset_batch(lines_data(ROWS, 2), BATCH, 1);
}

static hvd_train_spec steps_to(int64_t step)
{
    hvd_train_spec spec = lines_steps(0);

    spec.max_steps = step;
    return spec;
}

LOOP_TEST(updates_are_those_of_all_rows, 1, 3)
{
    const int rows = BATCH * COUNT * ranks_size() * _i;
    const hvd_train_spec one = steps_to(COUNT), all = steps_to(3 * COUNT);
    hvd_results found = {.size = sizeof found};
    double w[FEATURES], b, now[FEATURES], c;
    hvd_estimator *e;

    if (ROWS % rows != 0) /* an update would have rows of two epochs */
        return;
    set_line();
    lines_options.replicas = _i;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, batches(), &one, &found));
    ck_assert_int_eq(found.global_step, COUNT);
    lines_read(e, w, &b);
    MUST(hvd_estimator_train(e, batches(), &all, &found));
    ck_assert_int_eq(found.global_step, 3 * COUNT);
    lines_read(e, now, &c);
    lines_descend(rows, 1, 3, 0.1, w, &b);
    for (int k = 0; k < FEATURES; k++)
        ck_assert_double_eq_tol(now[k], w[k], 1e-5);
    ck_assert_double_eq_tol(c, b, 1e-5);
    MUST(hvd_estimator_evaluate(e, hvd_dataset_batch(lines_data(71, 2), 7, 0),
                                NULL, &found));
    ck_assert_int_eq(found.rows, 71);
    ck_assert_double_eq_tol(found.loss, lines_loss(71, w, b), 1e-5);
    hvd_estimator_free(e);
}

/* ------------------------------------------------------------ three layers */

static ipu_tensor first(hvd_net *net, ipu_tensor in, void *context)
{
    (void)context;
    return hvd_dense(net, "first", in, WIDTH, HVD_TANH);
}

static ipu_tensor second(hvd_net *net, ipu_tensor in, void *context)
{
    const double *rate = context;

    in = hvd_dense(net, "second", in, WIDTH, HVD_TANH);
    return *rate > 0 ? hvd_dropout(net, in, *rate) : in;
}

static double dropout;

/* The same in one function, with marks. */
static ipu_tensor marked(hvd_net *net, ipu_tensor x, void *context)
{
    x = hvd_net_next_piece(net, first(net, x, context));
    x = hvd_net_next_piece(net, second(net, x, context));
    x = hvd_net_next_piece(net, line(net, x, context));
    return flat(net, x, context);
}

static void set_layers(int stages)
{
    static hvd_build_fn *const pieces[] = {first, second, line, flat};

    set_line();
    lines_model.pieces = pieces;
    lines_model.npieces = 4;
    lines_model.context = &dropout;
    lines_options.optimizer = "adam";
    lines_options.accumulate = 12;
    lines_options.stages = stages;
    lines_options.rate.rate = 0.01;
    lines_options.rate.warmup = 20;
    lines_options.log_step_count_steps = 12;
    lines_options.save_checkpoints_steps = 12;
}

/* Losses that were averaged, and the variables in the end. */
struct run {
    double losses[8];
    int count;
    float values[WIDTH];
};

static void note(void *context, int64_t step, double loss, double speed)
{
    struct run *run = context;

    (void)speed;
    ck_assert_int_eq(step % 12, 0);
    ck_assert_int_lt(run->count, 8);
    run->losses[run->count++] = loss;
}

static void train(int64_t step, struct run *run)
{
    const hvd_train_spec spec = steps_to(step);
    hvd_results found = {.size = sizeof found};
    hvd_estimator *e;

    *run = (struct run){.count = 0};
    lines_options.log = note;
    lines_options.log_context = run;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, batches(), &spec, &found));
    ck_assert_int_eq(found.global_step, step);
    MUST(hvd_estimator_variable(e, "second/bias", run->values, WIDTH));
    hvd_estimator_free(e);
}

static void must_be_near(const struct run *a, const struct run *b)
{
    ck_assert_int_eq(a->count, b->count);
    for (int i = 0; i < a->count; i++)
        ck_assert_double_eq_tol(a->losses[i], b->losses[i], 1e-5);
    for (int k = 0; k < WIDTH; k++)
        ck_assert_float_eq_tol(a->values[k], b->values[k], 1e-4F);
}

TEST(losses_are_those_of_one_device)
{
    struct run one, many;

    dropout = 0;
    set_layers(0);
    train(48, &one);
    ck_assert_int_eq(one.count, ranks_rank() == 0 ? 4 : 0);
    for (int stages = 2; stages <= 4; stages++)
        for (int schedule = 0; schedule < 3; schedule++) {
            if (12 % (2 * stages) != 0 && schedule < 2)
                continue;
            set_layers(stages);
            lines_options.schedule = schedule;
            lines_options.recompute = schedule == 0;
            train(48, &many);
            must_be_near(&one, &many);
        }
}

/* Marks in one function make the pieces that functions make. */
LOOP_TEST(marks_are_pieces, 0, 2)
{
    struct run functions, marks;

    dropout = 0.2;
    set_layers(3 * _i);
    train(24, &functions);
    set_layers(3 * _i);
    lines_model.pieces = NULL;
    lines_model.npieces = 0;
    lines_model.build = marked;
    train(24, &marks);
    ck_assert_mem_eq(&functions, &marks, sizeof marks);
}

/* Adds what another piece has computed. */
static ipu_tensor skips(hvd_net *net, ipu_tensor x, void *context)
{
    ipu_tensor before = hvd_dense(net, "before", x, WIDTH, HVD_TANH);

    x = hvd_net_next_piece(net, before);
    x = second(net, x, context);
    x = ipu_add(hvd_net_graph(net), x, before);
    x = line(net, x, context);
    return flat(net, x, context);
}

/* Builds on the graph of another piece. */
static ipu_tensor keeps_graph(hvd_net *net, ipu_tensor x, void *context)
{
    ipu_graph *graph = hvd_net_graph(net);

    x = hvd_net_next_piece(net, first(net, x, context));
    x = line(net, ipu_square(graph, x), context);
    return flat(net, x, context);
}

/* Marks within a piece that is a function. */
static ipu_tensor twice(hvd_net *net, ipu_tensor x, void *context)
{
    return hvd_net_next_piece(net, first(net, x, context));
}

/* A training that stops at some steps makes whole updates. */
TEST(a_training_ends_with_a_whole_update)
{
    const hvd_train_spec spec = lines_steps(13);
    hvd_results found = {.size = sizeof found};
    hvd_estimator *e;

    set_layers(3);
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, batches(), &spec, &found));
    ck_assert_int_eq(found.global_step, 24);
    hvd_estimator_free(e);
}

/* ------------------------------------------------------------- checkpoints */

/* Evaluates other data between two updates, which asks for other batches. */
static int evaluate(void *context, hvd_estimator *e, hvd_event *event)
{
    (void)context;
    ck_assert_int_eq(event->step % 12, 0);
    MUST(hvd_estimator_evaluate(e, hvd_dataset_batch(lines_data(71, 2), 7, 0),
                                NULL, NULL));
    return 0;
}

LOOP_TEST(a_training_goes_on_with_the_same_bits, 1, 3)
{
    hvd_hook hook = {.size = sizeof hook, .after_step = evaluate};
    struct run whole, part, rest;
    const char *folder = lines_folder();

    dropout = 0.2;
    set_layers(3);
    lines_options.replicas = _i;
    train(48, &whole);
    lines_options.hooks = (hvd_hook *const[]){&hook};
    lines_options.nhooks = 1;
    lines_options.model_dir = folder;
    train(24, &part);
    train(48, &rest);
    ck_assert_mem_eq(whole.values, rest.values, sizeof whole.values);
    if (ranks_rank() == 0) {
        ck_assert_double_eq(whole.losses[1], part.losses[1]);
        ck_assert_double_eq(whole.losses[3], rest.losses[1]);
    }
    lines_remove();
}

/* From one device to a pipeline, and back, and to another pipeline. */
TEST(a_training_goes_on_on_other_devices)
{
    static const int stages[] = {0, 2, 0, 3};
    const char *folder = lines_folder();
    struct run whole, part;

    dropout = 0;
    set_layers(0);
    train(48, &whole);
    for (int i = 0; i < 4; i++) {
        set_layers(stages[i]);
        lines_options.model_dir = folder;
        train(12 * (i + 1), &part);
        if (ranks_rank() == 0)
            ck_assert_double_eq_tol(part.losses[0], whole.losses[i], 1e-5);
    }
    for (int k = 0; k < WIDTH; k++)
        ck_assert_float_eq_tol(part.values[k], whole.values[k], 1e-4F);
    lines_remove();
}

/* Each device has a sum of gradients, which a pipeline has not. */
TEST(half_an_update_is_not_taken_up)
{
    const hvd_train_spec some = steps_to(7), more = steps_to(48);
    const char *folder = lines_folder();
    hvd_estimator *e;

    set_layers(0);
    lines_options.model_dir = folder;
    MUST(hvd_estimator_new(&lines_options, &e));
    MUST(hvd_estimator_train(e, batches(), &some, NULL));
    hvd_estimator_free(e);
    set_layers(2);
    lines_options.model_dir = folder;
    MUST(hvd_estimator_new(&lines_options, &e));
    ck_assert_int_lt(hvd_estimator_train(e, batches(), &more, NULL), 0);
    ck_assert_msg(strstr(hvd_last_error(), "between two updates") ||
                      strstr(hvd_last_error(), "another rank"),
                  "%s", hvd_last_error());
    hvd_estimator_free(e);
    lines_remove();
}

/* ---------------------------------------------------------------- mistakes */

static void must_fail(hvd_dataset *data, const char *text)
{
    const hvd_train_spec some = steps_to(48);
    hvd_estimator *e;

    MUST(hvd_estimator_new(&lines_options, &e));
    ck_assert_int_lt(hvd_estimator_train(e, data, &some, NULL), 0);
    ck_assert_msg(strstr(hvd_last_error(), text) ||
                      strstr(hvd_last_error(), "another rank"),
                  "%s", hvd_last_error());
    hvd_estimator_free(e);
}

/* The data of one rank fails in the middle of an update. */
static int fail_late(void *context, const void *const *in, void *const *out)
{
    static int calls;

    (void)context;
    memcpy(out[0], in[0], FEATURES * sizeof(float));
    memcpy(out[1], in[1], sizeof(float));
    return ranks_rank() == ranks_size() - 1 && ++calls > 3 * COUNT * BATCH + 3
               ? -1
               : 0;
}

TEST(a_failure_of_the_data_reaches_all)
{
    const hvd_component components[] = {{"x", HVD_FLOAT32, 1, {FEATURES}},
                                        {"y", HVD_FLOAT32, 0, {0}}};

    set_line();
    must_fail(hvd_dataset_batch(hvd_dataset_map(lines_data(ROWS, 2), 2,
                                                components, fail_late, NULL, 1),
                                BATCH, 1),
              ranks_rank() == ranks_size() - 1 ? "the data: " : "on rank ");
}

static void must_refuse(const char *text)
{
    hvd_estimator *e;

    ck_assert_int_eq(hvd_estimator_new(&lines_options, &e), HVD_ERR_ARGUMENT);
    ck_assert_msg(strstr(hvd_last_error(), text), "%s", hvd_last_error());
}

TEST(options_that_make_no_sense_are_refused)
{
    set_line();
    lines_options.accumulate = 3;
    must_fail(batches(), "accumulate: ");
    set_line();
    lines_options.stages = 3;
    must_fail(batches(), "3 stages: the network has 2 pieces");
    for (int i = 0; i < 2; i++) {
        set_line();
        lines_model.pieces = NULL;
        lines_model.npieces = 0;
        lines_model.build = i == 0 ? skips : keeps_graph;
        lines_model.context = &dropout;
        must_fail(batches(), "has not come through it");
    }
    set_line();
    lines_model.pieces = (hvd_build_fn *const[]){twice, line, flat};
    lines_model.npieces = 3;
    must_fail(batches(), "the model has functions for its pieces");
    set_line();
    lines_options.stages = -1;
    must_refuse("stages is -1");
    set_line();
    lines_options.device_collective = 1;
    must_refuse("device_collective does not go together with stages");
    set_line();
    lines_options.clip_norm = 1;
    must_refuse("stages does not go together with clip_norm");
    set_line();
    lines_options.variables_on_host = 1;
    must_refuse("stages does not go together with variables_on_host");
    set_line();
    lines_options.schedule = 3;
    must_refuse("schedule is 3");
    lines_set_options();
    lines_options.recompute = 1;
    must_refuse("recompute is of no use without stages");
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_estimator_stages")
