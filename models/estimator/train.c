/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train.c - the loop of a training. Every rank makes the same calls in the same
 * order: what depends on a clock, or on what one rank has seen, is decided by
 * rank 0 when the loss is averaged.
 */
#include "estimator/estimator.h"
#include "output/clock.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <math.h>
#include <string.h>

/* A call of hvd_estimator_train. */
struct run {
    hvd_estimator *estimator;
    int64_t first; /* step */
    double sum;    /* of the losses of this rank, [count] */
    int64_t count;
    double pending;    /* sum of losses since the last update, [npending] */
    int64_t npending;  /* an update that is skipped takes them with it */
    double rate;       /* of the last step */
    int64_t since;     /* steps since the loss was averaged, in this call */
    double since_time; /* clock_seconds */
    bool is_due;       /* a checkpoint, at the next update */
    const hvd_eval_spec *eval;  /* NULL: there are no evaluations */
    double begun, evaluated_at; /* clock_seconds */
    int64_t evaluated;          /* step; -1: none yet */
    struct found *found;
};

void hvd_train_spec_init(hvd_train_spec *spec, size_t size)
{
    memset(spec, 0, size);
    spec->size = (uint32_t)size;
}

/* Returns the first step at or behind last that ends an update, if several
 * steps are made at a time. */
static int64_t round_up(const hvd_estimator *e, int64_t last)
{
    const int64_t rest = last > e->step ? (last - e->step) % e->once : 0;

    return rest > 0 && last < INT64_MAX - e->once ? last - rest + e->once
                                                  : last;
}

/* Returns true if the steps that were made last have come to a multiple. */
static bool has_come_to(const hvd_estimator *e, int64_t multiple)
{
    return e->step / multiple != (e->step - e->once) / multiple;
}

/* Returns true if no gradients are between two updates. */
static bool is_whole(const hvd_estimator *e)
{
    return e->once > 1 || e->step % e->options.accumulate == 0;
}

/* Returns the step at which so many epochs have been made, the rest of the
 * present one by ranks that may be others than before. */
static int64_t end_of_epochs(const hvd_estimator *e, int64_t epochs,
                             int64_t steps)
{
    const int64_t left = hvd_iterator_left(e->input->iterator);

    if (!elastic_has_changed(e) || left < 0)
        return epochs * steps;
    return e->position.epoch >= epochs
               ? e->step
               : e->step + left + (epochs - e->position.epoch - 1) * steps;
}

/* Sets *last to the step at which a training ends. */
static int find_last(hvd_estimator *e, const hvd_train_spec *spec,
                     const struct input *in, int64_t *last)
{
    int64_t steps = hvd_iterator_steps(in->iterator), most = INT64_MAX;

    if (!spec || spec->size < sizeof *spec || spec->steps < 0 ||
        spec->max_steps < 0 || spec->epochs < 0 ||
        (spec->steps == 0 && spec->max_steps == 0 && spec->epochs == 0))
        return problem_fail(HVD_ERR_ARGUMENT,
                            "train: the spec must be set by "
                            "hvd_train_spec_init, and have steps, max_steps or "
                            "epochs, which are not negative");
    if (spec->epochs > 0 && steps < 0)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "train: the data does not know its steps: give "
                            "steps or max_steps in place of epochs");
    if (spec->steps > 0)
        most = (elastic_has_changed(e) ? e->first_step : e->step) + spec->steps;
    if (spec->max_steps > 0 && spec->max_steps < most)
        most = spec->max_steps;
    if (spec->epochs > 0 && end_of_epochs(e, spec->epochs, steps) < most)
        most = end_of_epochs(e, spec->epochs, steps);
    *last = round_up(e, most);
    if (elastic_has_changed(e) && e->program && e->program->last)
        *last = e->program->last(e->program->context, e);
    return 0;
}

static bool is_over(const hvd_estimator *e)
{
    return e->stops || e->step >= e->last;
}

/* Replaces the loss of the last steps by its mean over all ranks, and decides
 * what rank 0's clock asks for. Collective. */
static int average(struct run *run)
{
    hvd_estimator *e = run->estimator;
    const hvd_estimator_options *o = &e->options;
    double now = clock_seconds(), values[2], speed;
    struct values found = {0};
    const bool all_skipped = e->numbers[NUMBER_SINCE] == 0;
    int status;

    values[0] =
        all_skipped ? 0 : e->numbers[NUMBER_RECENT] / e->numbers[NUMBER_SINCE];
    values[1] = hvd_rank() == 0 && o->model_dir &&
                o->save_checkpoints_steps == 0 &&
                o->save_checkpoints_secs > 0 &&
                now - e->saved_at >= o->save_checkpoints_secs;
    status = trainer_meet(e->trainer);
    if (status == 0)
        status = agree_average(values, 2);
    if (status < 0)
        return status;
    run->is_due |= values[1] > 0;
    if (all_skipped)
        return 0;
    if (!isfinite(values[0]))
        return problem_fail(
            HVD_ERR_UNSUPPORTED,
            "the loss is no longer a number in the steps up to %lld: "
            "try a smaller %s than %g, or %s",
            (long long)e->step, e->program ? "--lr" : "learning rate",
            run->rate, e->program ? "--clip" : "clip_norm");
    speed = (double)run->since / (now - run->since_time);
    if (o->log && hvd_rank() == 0)
        o->log(o->log_context, e->step, values[0], speed);
    if (e->log)
        status = record_training(e, values[0], run->rate, speed);
    e->numbers[NUMBER_RECENT] = e->numbers[NUMBER_SINCE] = 0;
    run->since = 0;
    run->since_time = now;
    values_add(&found, "train/loss", values[0]);
    found.step = e->step;
    if (o->log_dir)
        status = estimator_agree(status);
    if (status == 0)
        status = hooks_call(e, MOMENT_AFTER_AVERAGE, (double)NAN, &found);
    return status == 0 && e->listens ? evaluations_hear(e) : status;
}

static int evaluate(struct run *run)
{
    const hvd_eval_spec *eval = run->eval;

    run->evaluated_at = clock_seconds();
    run->evaluated = run->estimator->step;
    run->found->evaluated = true;
    return hvd_estimator_evaluate(run->estimator,
                                  eval->data(eval->data_context), eval,
                                  &run->found->evaluation);
}

/* Evaluates, if rank 0's clock asks for it. Collective. */
static int evaluate_if_due(struct run *run)
{
    double now = clock_seconds(), due;
    int status;

    if (!run->eval)
        return 0;
    due = hvd_rank() == 0 && now - run->begun >= run->eval->start_delay_secs &&
          (run->evaluated < 0 ||
           now - run->evaluated_at >= run->eval->throttle_secs);
    status = agree_sum(&due, 1);
    return status < 0 || due == 0 ? status : evaluate(run);
}

/* The losses since the last average become their mean over the ranks, so that a
 * training which begins with this checkpoint has all of them. Collective. */
static int save_now(hvd_estimator *e)
{
    int status = trainer_read_statistics(e->trainer);

    if (status == 0)
        status = agree_average(&e->numbers[NUMBER_RECENT], 1);
    return status < 0
               ? status
               : estimator_agree(hvd_rank() == 0 ? resume_save(e, false) : 0);
}

/* Has a checkpoint written. Collective. */
static int save(struct run *run)
{
    hvd_estimator *e = run->estimator;
    const double start = clock_seconds();
    int status;

    run->is_due = false;
    status = e->elastic ? elastic_save(e) : save_now(e);
    e->saving += clock_seconds() - start;
    return status < 0
               ? status
               : hooks_call(e, MOMENT_AFTER_CHECKPOINT, (double)NAN, NULL);
}

/* Returns true if the steps since the newest checkpoint have come to a
 * multiple: an elastic training may have gone back meanwhile. */
static bool has_come_to_save(const hvd_estimator *e, int64_t multiple)
{
    const int64_t saved = e->saved_step > 0 ? e->saved_step : 0;

    return e->elastic ? e->step / multiple > saved / multiple
                      : has_come_to(e, multiple);
}

/* Returns true if a checkpoint is due, and no gradients are between two
 * updates. */
static bool is_save_due(struct run *run)
{
    const hvd_estimator *e = run->estimator;
    const hvd_estimator_options *o = &e->options;

    if (o->model_dir && o->save_checkpoints_steps > 0 &&
        has_come_to_save(e, o->save_checkpoints_steps))
        run->is_due = true;
    return run->is_due && is_whole(e) && !is_over(e);
}

/* Evaluates before a checkpoint, if that is due. */
static int prepare_save(struct run *run)
{
    const int status = trainer_meet(run->estimator->trainer);

    return status < 0 ? status : evaluate_if_due(run);
}

static int save_if_due(struct run *run)
{
    int status;

    if (!is_save_due(run))
        return 0;
    status = prepare_save(run);
    return status < 0 || run->estimator->stops ? status : save(run);
}

/* Counts the losses since the last update. */
static void count_losses(struct run *run)
{
    run->sum += run->pending;
    run->count += run->npending;
    run->estimator->numbers[NUMBER_RECENT] += run->pending;
    run->estimator->numbers[NUMBER_SINCE] += (double)run->npending;
    run->pending = 0;
    run->npending = 0;
}

/* Counts the losses since the last update, or leaves them out if this one was
 * skipped. Collective. */
static int finish_update(struct run *run)
{
    int status = guard_end(run->estimator);

    if (run->estimator->skip.variable) {
        run->pending = 0;
        run->npending = 0;
    } else if (is_whole(run->estimator)) {
        averages_update(run->estimator);
    }
    count_losses(run);
    return status;
}

static int64_t commit_interval(const hvd_estimator *e)
{
    const int64_t updates = e->options.elastic_steps * e->options.accumulate;

    return updates > e->once ? updates : e->once;
}

/* Commits, if that is due, and has a checkpoint of the commit written. 1: the
 * training is to go on in another world. */
static int commit_if_due(struct run *run)
{
    hvd_estimator *e = run->estimator;
    bool saves = is_save_due(run);
    int status = 0;

    if (!is_whole(e) || !has_come_to(e, commit_interval(e)))
        return 0;
    if (saves)
        status = prepare_save(run);
    saves &= !e->stops;
    if (status == 0)
        status = elastic_commit(e, saves);
    if (status == 0 && saves)
        status = save(run);
    return status < 0 ? status : elastic_look(e);
}

static int make_step(struct run *run)
{
    hvd_estimator *e = run->estimator;
    double loss = 0;
    int status = hooks_call(e, MOMENT_BEFORE_STEP, (double)NAN, NULL);

    if (status < 0 || e->stops)
        return status;
    run->rate = hvd_schedule_rate(&e->options.rate, e->step + e->once - 1) *
                e->numbers[NUMBER_RATE_FACTOR];
    trainer_set_momentum(
        e->trainer,
        hvd_schedule_momentum(&e->options.rate, e->step + e->once - 1));
    status = guard_begin(e);
    if (status == 0 && e->program)
        status = e->program->before_step(e->program->context);
    if (status == 0)
        status = trainer_step(e->trainer, run->rate, &loss);
    if (status < 0)
        return status;
    e->step += e->once;
    elastic_count(e);
    run->since += e->once;
    run->pending += loss * (double)e->once;
    run->npending += e->once;
    if (e->options.skip_nonfinite == 0 || is_whole(e))
        status = finish_update(run);
    if (status < 0)
        return status;
    status = hvd_iterator_position(e->input->iterator, &e->position);
    if (status == 0)
        status = hooks_call(e, MOMENT_AFTER_STEP, loss, NULL);
    if (status == 0 && e->program)
        status = e->program->after_step(e->program->context, loss);
    if (status == 0 && has_come_to(e, e->options.log_step_count_steps))
        status = average(run);
    if (status < 0)
        return status;
    return e->elastic ? commit_if_due(run) : save_if_due(run);
}

static int finish_training(struct run *run, hvd_results *results)
{
    hvd_estimator *e = run->estimator;
    double mean;
    int status;

    count_losses(run);
    mean = run->sum / (double)run->count;
    status = trainer_settle(e->trainer);
    if (status == 0 && e->numbers[NUMBER_SINCE] > 0)
        status = average(run);
    if (status == 0)
        status = agree_average(&mean, 1);
    results->loss = mean;
    return status;
}

/* Has the last checkpoint written. */
static int save_final(hvd_estimator *e)
{
    int status = estimator_agree(hvd_rank() == 0 ? resume_save(e, true) : 0);

    return status < 0
               ? status
               : hooks_call(e, MOMENT_AFTER_CHECKPOINT, (double)NAN, NULL);
}

static int make_steps(struct run *run, hvd_results *results)
{
    hvd_estimator *e = run->estimator;
    int status = hooks_call(e, MOMENT_BEGIN, (double)NAN, NULL);

    run->first = e->step;
    if (status == 0 && e->program)
        status = e->program->begin(e->program->context, e);
    while (status == 0 && !is_over(e))
        status = make_step(run);
    if (status == 0 && e->step > run->first)
        status = finish_training(run, results);
    if (status == 0 && run->eval && run->evaluated != e->step)
        status = evaluate(run);
    if (status == 0)
        status = hooks_call(e, MOMENT_END, (double)NAN, NULL);
    if (status == 0 && e->step > run->first && e->options.model_dir &&
        !e->elastic)
        status = save_final(e);
    return status;
}

static int train(struct run *run, const hvd_train_spec *spec,
                 hvd_results *results)
{
    hvd_estimator *e = run->estimator;
    double data = trainer_times(e->trainer).data;
    int status = 0;

    run->since_time = clock_seconds();
    status = input_match(e->input, trainer_model(e->trainer), false);
    if (status == 0 && e->step > 0) {
        e->input->waits = false;
        status = hvd_iterator_restore(e->input->iterator, &e->position);
    }
    if (status == 0)
        status = find_last(e, spec, e->input, &e->last);
    status = estimator_agree(status);
    trainer_seek(e->trainer, e->step);
    e->skip.count = 0;
    if (status == 0)
        status = make_steps(run, results);
    results->skipped = e->skip.count;
    results->stopped = e->stops;
    e->stops = false;
    results->seconds = clock_seconds() - run->begun;
    data = trainer_times(e->trainer).data - data;
    results->data_share = results->seconds > 0 ? data / results->seconds : 0;
    return status;
}

/* Trains in one world. Takes data over. */
static int train_here(hvd_estimator *e, hvd_dataset *data,
                      const hvd_train_spec *spec, const hvd_eval_spec *eval,
                      struct found *found)
{
    struct run run = {.estimator = e,
                      .eval = eval,
                      .begun = clock_seconds(),
                      .evaluated = -1,
                      .found = found};
    struct input in;
    const bool opened = estimator_open(e, data, true, &in) >= 0;
    int status;

    e->input = &in;
    status = elastic_compare(e, opened ? &in : NULL);
    if (status == 0)
        status = estimator_prepare(e, opened ? &in : NULL);
    if (status == 0)
        status = elastic_begin(e);
    if (status == 0)
        status = train(&run, spec, &found->training);
    if (status == 0)
        status = elastic_finish(e);
    e->input = NULL;
    input_close(&in);
    found->training.global_step = e->step;
    return status;
}

/* Trains in one world after the other, if it is elastic, and ranks are lost or
 * join. */
static int train_in_worlds(hvd_estimator *e, hvd_dataset *data,
                           const hvd_train_spec *spec,
                           const hvd_eval_spec *eval, struct found *found)
{
    int way = WAY_AGAIN, status = elastic_open(e);

    while (status == 0 && way == WAY_AGAIN) {
        status = train_here(e, hvd_dataset_keep(data), spec, eval, found);
        if (status > 0)
            status = elastic_change(e);
        way = status > 0 ? WAY_AGAIN : WAY_NONE;
        if (status < 0)
            way = elastic_recover(e);
        if (way != WAY_NONE)
            status = way < 0 ? way : 0;
    }
    return status;
}

int train_beside(hvd_estimator *e, hvd_dataset *data,
                 const hvd_train_spec *spec, const hvd_eval_spec *eval,
                 struct found *found)
{
    int status = train_in_worlds(e, data, spec, eval, found);

    elastic_end(e);
    hvd_dataset_free(data);
    if (status >= 0)
        return 0;
    return status <= PROBLEM_EVERYWHERE && !e->program
               ? problem_fail(HVD_ERR_PEER, "%s", problem_text())
               : status;
}

int hvd_estimator_train(hvd_estimator *e, hvd_dataset *data,
                        const hvd_train_spec *spec, hvd_results *results)
{
    struct found found;
    int status = ranks_begin(e, &found);

    if (status > 0)
        status =
            ranks_end(e, &found, train_beside(e, data, spec, NULL, &found));
    else
        hvd_dataset_free(data);
    found_tell(&found, results, NULL);
    return status;
}
