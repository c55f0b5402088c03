/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - every rank makes the same calls in the same order, which follow from
 * the options alone, as in mnist/loop.c.
 */
#include "gpt/loop.h"

#include "output/clock.h"
#include "trainer/agree.h"

#include <math.h>

/* The fewest steps between two averages of the loss, for the progress line. */
enum { INTERVAL = 10 };

double gpt_rate(double rate, int64_t step, int64_t steps, int64_t warmup)
{
    const double pi = 3.14159265358979323846, least = 0.1;
    int64_t rest = steps - warmup - 1;

    if (step < warmup)
        return rate * (double)(step + 1) / (double)warmup;
    if (rest < 1)
        return rate;
    double part = (double)(step - warmup) / (double)rest;
    return rate * (least + (1 - least) * 0.5 * (1 + cos(pi * part)));
}

static int average_loss(struct gpt_loop *t, double *loss)
{
    struct outcome *outcome = &t->summary->outcome;

    return times_average_loss(&outcome->times, loss, outcome->steps,
                              t->options->learning_rate);
}

static void report_step(struct gpt_loop *t, double loss)
{
    const struct gpt_summary *s = t->summary;
    char head[48], tail[64];

    snprintf(head, sizeof head, "step %lld/%lld", (long long)s->outcome.steps,
             (long long)t->options->steps);
    snprintf(tail, sizeof tail, "loss %.4f", loss);
    progress_update(t->progress, head,
                    (double)s->outcome.steps / (double)t->options->steps, tail);
}

/* Makes as many steps as the trainer makes at a time, at the rate of the last
 * of them. Sets *loss to the mean on this rank. */
static int make_steps(struct gpt_loop *t, int count, double *loss)
{
    const struct options *o = t->options;
    int64_t last = t->summary->outcome.steps + count - 1;

    t->summary->outcome.steps += count;
    return trainer_step(t->trainer,
                        gpt_rate(o->learning_rate, last, o->steps, o->warmup),
                        loss);
}

/* Makes count steps. Sets *loss to their mean over all ranks. */
static int train_steps(struct gpt_loop *t, int64_t count, double *loss)
{
    int once = trainer_steps(t->trainer), since = 0;
    double sum = 0, recent = 0;

    for (int64_t made = 0; made < count; made += once) {
        double fresh = 0;
        int status = make_steps(t, once, &fresh);

        if (status < 0)
            return status;
        sum += fresh * once;
        recent += fresh * once;
        since += once;
        if (since < INTERVAL)
            continue;
        recent /= since;
        status = average_loss(t, &recent);
        if (status < 0)
            return status;
        report_step(t, recent);
        recent = 0;
        since = 0;
    }
    *loss = sum / (double)count;
    return average_loss(t, loss);
}

static int evaluate_all(struct gpt_loop *t, struct gpt_evaluation *e)
{
    double sums[2] = {0, 0}; /* loss, correct */
    double characters = (double)t->summary->evaluated;

    int status = agree(trainer_evaluate(t->trainer, pieces_fill_test, t->pieces,
                                        &sums[0], &sums[1]));
    if (status == 0)
        status = agree_sum(sums, 2);
    if (status < 0)
        return status;
    e->step = t->summary->outcome.steps;
    e->loss = sums[0] / characters;
    e->accuracy = sums[1] / characters;
    return 0;
}

/* Makes the steps up to the next evaluation, and evaluates. */
static int run_part(struct gpt_loop *t, int64_t count)
{
    struct gpt_summary *s = t->summary;
    struct gpt_evaluation e = {0};
    int64_t tokens = count * t->options->batch_size * t->options->gpt.context *
                     s->outcome.world_size * t->options->partition.replicas;
    double start = clock_seconds();
    int status = train_steps(t, count, &e.train_loss);
    double seconds = clock_seconds() - start;

    if (status < 0)
        return status;
    s->outcome.times.training += seconds;
    s->tokens += tokens;
    status = evaluate_all(t, &e);
    if (status < 0)
        return status;
    progress_line(t->progress,
                  "step %lld/%lld  loss %.4f  validation loss %.4f, perplexity "
                  "%.2f  %.0f tokens/s  %.1f s",
                  (long long)s->outcome.steps, (long long)t->options->steps,
                  e.train_loss, e.loss, exp(e.loss),
                  seconds > 0 ? (double)tokens / seconds : 0, seconds);
    return gpt_summary_add(s, &e);
}

int gpt_loop_run(struct gpt_loop *t)
{
    int64_t every = t->options->eval_every, left = t->options->steps;

    while (left > 0) {
        int64_t now = every > 0 && every < left ? every : left;
        int status = run_part(t, now);
        if (status < 0)
            return status;
        left -= now;
    }
    return times_finish(&t->summary->outcome.times, t->trainer);
}
