/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs.c - measures where the time of each rank goes, and has rank 0 log it.
 *
 * A point of the log stands for --log-every steps. For it each rank gives its
 * figures to all (an allreduce of an array in which every rank has a row of its
 * own): its loss, what its time went to, and its slowest step. Steps of ranks
 * that train together take the same time, so a rank is slow if it waits less
 * than the others, and a step is slow if a rank spends long on it without
 * waiting.
 */
#include "command/logs.h"

#include "command/training_run.h"
#include "files/safetensors.h"
#include "output/clock.h"
#include "output/problem.h"
#include "trainer/agree.h"

#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* More ranks than these have no scalars of their own. */
enum { MOST_RANKS = 32 };

/* A row of a rank: what its time went to, all of it, its loss, and its slowest
 * step. */
enum {
    TOTAL = LOGS_SHARES,
    LOSS,
    STEP,
    STEP_SECONDS,
    STEP_SHARES,
    FIGURES = STEP_SHARES + LOGS_SHARES
};

static const char *const share_names[LOGS_SHARES] = {
    [LOGS_DEVICE] = "device",         [LOGS_COMMUNICATION] = "communication",
    [LOGS_UPDATE] = "update",         [LOGS_DATA] = "data",
    [LOGS_CHECKPOINT] = "checkpoint", [LOGS_EVALUATION] = "evaluation"};

static bool is_on(const struct training_run *run)
{
    return run->options->log_dir != NULL;
}

/* Returns rank 0's log; NULL: there is none here. */
static hvd_log *log_of(const struct training_run *run)
{
    return run->command->log.log;
}

/* Tells once that something could not be logged. */
static void note_failure(struct training_run *run, int status)
{
    if (status >= 0 || run->logs.told)
        return;
    run->logs.told = true;
    hvd_progress_line(run->command->progress, "--log-dir %s: %s",
                      run->options->log_dir, problem_text());
}

static void log_scalar(struct training_run *run, double value,
                       const char *format, ...)
{
    char tag[96];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(tag, sizeof tag, format, arguments);
    va_end(arguments);
    note_failure(run,
                 hvd_log_scalar(log_of(run), tag, run->outcome.steps, value));
}

/* ----------------------------------------------------------- begin and end */

int logs_open(struct command *command)
{
    const struct options *o = command->options;

    command->log = (struct log_folder){o->log_dir, o->log_formats, NULL};
    return log_folder_open(&command->log);
}

int logs_close(struct command *command)
{
    return log_folder_close(&command->log, command->progress);
}

void logs_fini(struct training_run *run)
{
    log_folder_fini(&run->command->log, run->command->progress);
    free(run->logs.ranks);
    free(run->logs.last);
}

int logs_begin(struct training_run *run)
{
    struct logs *logs = &run->logs;
    size_t count = (size_t)run->command->size * FIGURES;

    if (!is_on(run))
        return 0;
    logs->ranks = calloc(count, sizeof *logs->ranks);
    logs->last = calloc(count, sizeof *logs->last);
    if (agree(logs->ranks && logs->last
                  ? 0
                  : problem_set("no memory for --log-dir")) < 0)
        return PROBLEM;
    if (log_of(run)) {
        log_folder_hold();
        note_failure(run, logs_settings(run));
        note_failure(run, logs_network(run));
        log_folder_release();
    }
    logs->began = clock_seconds();
    return 0;
}

/* ----------------------------------------------------------------- the time */

void logs_spend(struct training_run *run, enum logs_share share, double seconds)
{
    run->logs.seconds[share] += seconds;
}

/* Takes over the times that the trainer has measured. */
static void read_times(struct training_run *run)
{
    const struct trainer_times t = trainer_times(run->trainer);
    double *seconds = run->logs.seconds;

    seconds[LOGS_DEVICE] = t.compute;
    seconds[LOGS_COMMUNICATION] = t.wait + run->outcome.times.wait;
    seconds[LOGS_UPDATE] = t.update;
    seconds[LOGS_DATA] = t.data;
    seconds[LOGS_CHECKPOINT] = run->estimator->saving;
}

void logs_step_begins(struct training_run *run)
{
    struct logs *logs = &run->logs;

    if (!is_on(run))
        return;
    read_times(run);
    memcpy(logs->before, logs->seconds, sizeof logs->before);
    logs->step_began = clock_seconds();
}

/* Keeps the step if it is the slowest since the last point. */
static void measure_step(struct training_run *run)
{
    struct logs *logs = &run->logs;
    struct logs_step step = {.step = run->outcome.steps,
                             .seconds = clock_seconds() - logs->step_began};

    read_times(run);
    for (int i = 0; i < LOGS_SHARES; i++)
        step.shares[i] = logs->seconds[i] - logs->before[i];
    step.seconds -= step.shares[LOGS_COMMUNICATION];
    if (step.seconds > logs->slowest.seconds)
        logs->slowest = step;
}

/* ------------------------------------------------------------------- points */

/* Fills in this rank's row, and gets those of the others. Collective. */
static int gather(struct training_run *run)
{
    struct logs *logs = &run->logs;
    int size = run->command->size;
    double *row = logs->ranks + (size_t)run->command->rank * FIGURES;

    memcpy(logs->last, logs->ranks,
           (size_t)size * FIGURES * sizeof *logs->last);
    memset(logs->ranks, 0, (size_t)size * FIGURES * sizeof *logs->ranks);
    memcpy(row, logs->seconds, sizeof logs->seconds);
    row[TOTAL] = clock_seconds() - logs->began;
    row[LOSS] = logs->loss;
    row[STEP] = (double)logs->slowest.step;
    row[STEP_SECONDS] = logs->slowest.seconds;
    memcpy(row + STEP_SHARES, logs->slowest.shares,
           sizeof logs->slowest.shares);
    return agree_sum(logs->ranks, size * FIGURES);
}

/* Returns what a figure of a rank has grown by since the last point. */
static double growth(const struct logs *logs, int rank, int figure)
{
    size_t at = (size_t)rank * FIGURES + (size_t)figure;

    return logs->ranks[at] - logs->last[at];
}

static double mean_of(const struct training_run *run, int figure)
{
    double sum = 0;

    for (int r = 0; r < run->command->size; r++)
        sum += run->logs.ranks[(size_t)r * FIGURES + (size_t)figure];
    return sum / run->command->size;
}

/* Returns the seconds for which a rank trained since the last point. */
static double trained_seconds(const struct logs *logs, int rank)
{
    return growth(logs, rank, TOTAL) - growth(logs, rank, LOGS_CHECKPOINT) -
           growth(logs, rank, LOGS_EVALUATION);
}

static void log_times(struct training_run *run)
{
    double rest = mean_of(run, TOTAL);

    for (int i = 0; i < LOGS_SHARES; i++) {
        double mean = mean_of(run, i);

        log_scalar(run, mean, "time/%s", share_names[i]);
        rest -= mean;
    }
    log_scalar(run, fmax(rest, 0), "time/other");
}

/* Logs how many examples a second each rank could train on alone, and which
 * share of its time it waits for others. */
static void log_ranks(struct training_run *run, double examples)
{
    const struct logs *logs = &run->logs;
    int size = run->command->size;

    for (int r = 0; r < size && size <= MOST_RANKS; r++) {
        double seconds = trained_seconds(logs, r);
        double waits = growth(logs, r, LOGS_COMMUNICATION);

        log_scalar(run, examples / fmax(seconds - waits, 1e-9),
                   "ranks/%d/%s_per_second", r, run->functions->unit);
        log_scalar(run, seconds > 0 ? waits / seconds : 0, "ranks/%d/waiting",
                   r);
    }
}

static int log_slowest(struct training_run *run, double mean)
{
    const double *row = run->logs.ranks;
    json_t *step;
    char *text = NULL;
    int rank = 0, status;

    for (int r = 1; r < run->command->size; r++)
        if (row[(size_t)r * FIGURES + STEP_SECONDS] >
            row[(size_t)rank * FIGURES + STEP_SECONDS])
            rank = r;
    row += (size_t)rank * FIGURES;
    step = json_pack("{s:I, s:i, s:f, s:f}", "step", (json_int_t)row[STEP],
                     "rank", rank, "seconds", row[STEP_SECONDS], "mean", mean);
    for (int i = 0; i < LOGS_SHARES && step; i++)
        if (i != LOGS_COMMUNICATION)
            json_object_set_new(step, share_names[i],
                                json_real(row[STEP_SHARES + i]));
    if (step)
        text = json_dumps(step, JSON_COMPACT | JSON_REAL_PRECISION(6));
    status = text ? hvd_log_text(log_of(run), "slowest step",
                                 run->outcome.steps, text)
                  : problem_set("no memory for a step");
    free(text);
    json_decref(step);
    return status;
}

/* Logs what all ranks have gathered of a point. */
static void log_gathered(struct training_run *run)
{
    const struct logs *logs = &run->logs;
    const hvd_schedule *rates = &run->estimator->options.rate;
    const int64_t last = run->outcome.steps - 1;
    double examples = (double)(logs->steps * run->outcome.per_step);
    double waits = 0, seconds = 0;
    int size = run->command->size;

    for (int r = 0; r < size; r++) {
        seconds += trained_seconds(logs, r) / size;
        waits += growth(logs, r, LOGS_COMMUNICATION) / size;
    }
    log_scalar(run, mean_of(run, LOSS) / (double)logs->steps, "train/loss");
    log_scalar(run, hvd_schedule_rate(rates, last), "train/learning_rate");
    if (run->options->optimizer.cycled)
        log_scalar(run, hvd_schedule_momentum(rates, last), "train/momentum");
    log_scalar(run, examples * size / fmax(seconds, 1e-9),
               "speed/%s_per_second", run->functions->unit);
    log_times(run);
    log_ranks(run, examples);
    note_failure(run,
                 log_slowest(run, (seconds - waits) / (double)logs->steps));
}

/* Logs a point: the steps since the last one. Collective. */
static int log_point(struct training_run *run)
{
    struct logs *logs = &run->logs;
    int status;

    status = trainer_meet(run->trainer);
    read_times(run);
    if (status == 0)
        status = gather(run);
    if (status == 0 && log_of(run)) {
        log_folder_hold();
        log_gathered(run);
        log_folder_release();
    }
    logs->steps = 0;
    logs->loss = 0;
    logs->slowest = (struct logs_step){0};
    return status;
}

/* Logs the weights that all ranks have, and the last gradients, their means
 * over the ranks. */
static int log_histograms(struct training_run *run)
{
    int count, status = 0;
    struct safetensors_tensor *t = trainer_tensors(run->trainer, &count);
    float *const *values = trainer_values(run->trainer);

    if (!t)
        return PROBLEM;
    log_folder_hold();
    for (int i = 0; i < count && status >= 0; i++) {
        const float *gradient = trainer_gradient(run->trainer, i);
        char tag[96];

        snprintf(tag, sizeof tag, "weights/%s", t[i].name);
        status = hvd_log_histogram(log_of(run), tag, run->outcome.steps,
                                   values[i], (size_t)t[i].count);
        snprintf(tag, sizeof tag, "gradients/%s", t[i].name);
        if (status >= 0 && gradient)
            status = hvd_log_histogram(log_of(run), tag, run->outcome.steps,
                                       gradient, (size_t)t[i].count);
    }
    log_folder_release();
    free(t);
    return status;
}

/* Returns whether a multiple of every is among the last count steps. */
static bool is_due(const struct training_run *run, int every, int count)
{
    int64_t steps = run->outcome.steps;

    return every > 0 && steps / every != (steps - count) / every;
}

int logs_step_ends(struct training_run *run, int count, double loss)
{
    struct logs *logs = &run->logs;

    if (!is_on(run))
        return 0;
    logs->steps += count;
    logs->loss += loss * count;
    measure_step(run);
    if (log_of(run) && is_due(run, run->options->histograms_every, count))
        note_failure(run, log_histograms(run));
    return is_due(run, run->options->log_every, count) ? log_point(run) : 0;
}

int logs_end(struct training_run *run)
{
    return is_on(run) && run->logs.steps > 0 ? log_point(run) : 0;
}

void logs_evaluated(struct training_run *run, const struct outcome_part *part)
{
    const struct training_functions *f = run->functions;

    if (!log_of(run))
        return;
    log_folder_hold();
    log_scalar(run, part->loss, "%s/loss", f->tests);
    log_scalar(run, part->accuracy, "%s/accuracy", f->tests);
    if (run->options->program == OPTIONS_CHAR_GPT)
        log_scalar(run, exp(part->loss), "%s/perplexity", f->tests);
    if (f->log_tests)
        note_failure(run, f->log_tests(run, log_of(run)));
    log_folder_release();
}
