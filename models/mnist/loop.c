/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - every rank makes the same calls in the same order: the number of
 * steps, the steps at which losses are averaged and the epochs that are
 * evaluated follow from what all ranks share, never from a clock or from what
 * one rank found. A rank that fails returns at once; the others notice in their
 * next step, when the one that failed shuts the library down.
 */
#include "mnist/loop.h"

#include "output/clock.h"
#include "trainer/agree.h"

#include <math.h>

/* The loss is averaged over the ranks so many times an epoch, for the progress
 * line: seldom enough to cost nothing. */
enum { REPORTS = 20 };

static void report_step(struct mnist_loop *t, int epoch, int64_t step,
                        int64_t steps, double loss)
{
    char head[48];
    char tail[64];

    snprintf(head, sizeof head, "epoch %d/%d", epoch + 1, t->options->epochs);
    snprintf(tail, sizeof tail, "loss %.4f", loss);
    progress_update(t->progress, head, (double)(step + 1) / (double)steps,
                    tail);
}

static int average_loss(struct mnist_loop *t, double *loss)
{
    struct outcome *outcome = &t->summary->outcome;

    return times_average_loss(&outcome->times, loss, outcome->steps,
                              t->options->learning_rate);
}

/* Makes the steps of one epoch. Sets *loss to their mean over all ranks. */
static int train_epoch(struct mnist_loop *t, int epoch, int64_t steps,
                       double *loss)
{
    int64_t interval = steps / REPORTS + 1;
    double sum = 0;
    double recent = 0;

    for (int64_t step = 0; step < steps; step++) {
        double fresh = 0;
        int status =
            trainer_step(t->trainer, t->options->learning_rate, &fresh);
        if (status < 0)
            return status;
        t->summary->outcome.steps++;
        sum += fresh;
        recent += fresh;
        if ((step + 1) % interval != 0)
            continue;
        recent /= (double)interval;
        status = average_loss(t, &recent);
        if (status < 0)
            return status;
        report_step(t, epoch, step, steps, recent);
        recent = 0;
    }
    *loss = sum / (double)steps;
    return average_loss(t, loss);
}

/* Evaluates all test images, each on one rank. */
static int evaluate_all(struct mnist_loop *t, struct summary_epoch *epoch)
{
    double sums[2] = {0, 0}; /* loss, correct */
    double images = (double)t->dataset->test.count;

    int status = agree(trainer_evaluate(t->trainer, dataset_fill_test,
                                        t->dataset, &sums[0], &sums[1]));
    if (status == 0)
        status = agree_sum(sums, 2);
    if (status < 0)
        return status;
    epoch->test_loss = sums[0] / images;
    epoch->test_accuracy = sums[1] / images;
    t->summary->test_loss = epoch->test_loss;
    t->summary->test_accuracy = epoch->test_accuracy;
    t->summary->test_correct = (int64_t)sums[1];
    return 0;
}

static void report_epoch(struct mnist_loop *t, int number,
                         const struct summary_epoch *epoch, double seconds,
                         int64_t images)
{
    double speed = seconds > 0 ? (double)images / seconds : 0;

    if (isnan(epoch->test_accuracy))
        progress_line(t->progress,
                      "epoch %d/%d  loss %.4f  %.0f images/s  %.1f s", number,
                      t->options->epochs, epoch->train_loss, speed, seconds);
    else
        progress_line(t->progress,
                      "epoch %d/%d  loss %.4f  test accuracy %.2f %%  "
                      "%.0f images/s  %.1f s",
                      number, t->options->epochs, epoch->train_loss,
                      100 * epoch->test_accuracy, speed, seconds);
}

/* Makes the steps of epoch number (from 0), and an evaluation if it is due. */
static int run_epoch(struct mnist_loop *t, int number, int64_t steps, bool last)
{
    struct summary_epoch epoch = {NAN, NAN, NAN};
    int every = t->options->eval_every;

    double start = clock_seconds();
    int status = train_epoch(t, number, steps, &epoch.train_loss);
    double seconds = clock_seconds() - start;
    if (status < 0)
        return status;
    int64_t images = steps * t->options->batch_size * t->dataset->size;
    t->summary->outcome.times.training += seconds;
    t->summary->images += images;
    if (last || (every > 0 && (number + 1) % every == 0)) {
        status = evaluate_all(t, &epoch);
        if (status < 0)
            return status;
    }
    report_epoch(t, number + 1, &epoch, seconds, images);
    return summary_add_epoch(t->summary, &epoch);
}

int mnist_loop_run(struct mnist_loop *loop)
{
    const struct options *options = loop->options;
    int64_t steps = dataset_steps(loop->dataset, options->batch_size);
    int64_t left = options->steps > 0 ? options->steps : INT64_MAX;

    for (int epoch = 0; epoch < options->epochs && left > 0; epoch++) {
        int64_t now = steps < left ? steps : left;
        left -= now;
        int status = run_epoch(loop, epoch, now,
                               left == 0 || epoch + 1 == options->epochs);
        if (status < 0)
            return status;
    }
    return times_finish(&loop->summary->outcome.times, loop->trainer);
}
