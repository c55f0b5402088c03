/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_estimator.h - trains a network (hvd_model.h) on data (hvd_dataset.h), on
 * any number of ranks and replicas (libhvd-train).
 *
 *     hvd_estimator_options options;
 *
 *     hvd_init();
 *     hvd_estimator_options_init(&options, sizeof options);
 *     options.model = &model;
 *     options.model_dir = "checkpoints";
 *     hvd_estimator_new(&options, &estimator);
 *     hvd_estimator_train(estimator, digits, &spec, &results);
 *     hvd_estimator_evaluate(estimator, tests, NULL, &results);
 *     hvd_estimator_free(estimator);
 *     hvd_shutdown();
 *
 * The world is that of libhvd: ranks that mpirun started, or processes of a
 * TF_CONFIG. The same program, data and seed train the same network on any
 * number of ranks and replicas, to rounding, if the data has a global batch. So
 * it does with stages, with an optimiser on the host and with synchronous
 * parameter servers.
 *
 * With a model_dir, a checkpoint (hvd_checkpoint.h) has all that a training
 * needs to go on: variables, statistics, state of the optimiser, counters, and
 * the position in the data. A training in a folder that has one goes on from
 * the newest that is whole, on any number of ranks and replicas; on as many as
 * before, with the bits that it would have had without the interruption.
 *
 * Functions marked collective are called by all ranks, parameter servers too,
 * in the same order; a failure of one rank is a failure of all. Functions
 * return 0 (HVD_OK) or a negative HVD_ERR_*, and hvd_last_error() has the text.
 * An estimator belongs to one thread at a time.
 */
#ifndef HVD_ESTIMATOR_H
#define HVD_ESTIMATOR_H

#include <hvd_dataset.h>
#include <hvd_hook.h>
#include <hvd_metric.h>
#include <hvd_schedule.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hvd_model; /* hvd_model.h */

typedef struct hvd_estimator hvd_estimator;

/* Options of an estimator. All pointers are borrowed until it is freed. */
typedef struct hvd_estimator_options {
    uint32_t size; /* of the struct, as hvd_estimator_options_init got it */
    const struct hvd_model *model;
    const char *model_dir; /* folder of checkpoints, which is made if there is
                              none; NULL (default): none */
    const char *optimizer; /* a name of docs/OPTIMIZERS.md; "adam" */
    /* The learning rate of each step; 0.001. HVD_SCHEDULE_ONE_CYCLE has the
     * momentum, too, of an optimiser that has one, or beta1; otherwise it is
     * always the optimiser's own. */
    hvd_schedule rate;
    double weight_decay; /* of variables of two dimensions or more, where the
                            optimiser has it; negative (default): what is usual
                            for it */
    /* More than 0: running averages of the trained variables, of which an
     * update keeps this share, such as 0.999; they begin as copies. Evaluations
     * and predictions use them; hvd_estimator_variable reads that of NAME by
     * "average/NAME"; 0 */
    double ema_decay;
    int32_t ema_warmup; /* 1: behind n updates the share is at most (1 + n) /
                           (10 + n), so that first values are soon forgotten; 0
                         */
    double clip_norm;   /* longest gradient, all variables together; 0: any */
    /* More than 0: an update by gradients that are not finite is skipped on all
     * ranks together, and the training fails if more than so many are skipped
     * one after the other. The variables, their running averages, the
     * optimiser's state and statistics stay as they were. 0 (default): such a
     * training fails when the loss is averaged */
    int32_t skip_nonfinite;
    int32_t loss_scale_steps; /* 2000 */
    /* More than 0: gradients are those of the loss times a scale, divided by
     * it, so that small ones do not become zero in float16. The first scale,
     * such as 65536; it is doubled after loss_scale_steps updates, and halved
     * by one that is skipped. Needs skip_nonfinite; 0 */
    double loss_scale;
    int32_t accumulate; /* steps whose gradients make one update; 1 */
    int32_t replicas;   /* software IPUs of each rank, which hold the same
                           network; 1 */
    int32_t device_collective; /* 1: gradients travel on the network of the
                                  devices; with one replica. If one rank has no
                                  batch then, the others wait until it ends */
    int32_t synchronised; /* 1: batch normalisation by the batches of all */
    int32_t threads; /* of matrix products; 1. With stages: those that stages
                        run on; 0: one for each, if there are cores */
    /*
     * 2 or more: a pipeline of so many devices in place of each one, which work
     * at the same time on different mini-batches (docs/PIPELINES.md).
     * Neighbouring pieces of the model (hvd_model.h) make a stage, so that the
     * one with the most work has as little as possible. All accumulate steps of
     * an update are made at once, as many as the schedule asks for (a multiple
     * of twice the stages suits each): a training ends with a whole update, at
     * its last step or behind it, and hooks are called, losses averaged and
     * checkpoints written between two updates. 0 (default): no pipeline
     */
    int32_t stages;
    int32_t schedule;  /* an ipu_schedule (ipu_pipeline.h); grouped */
    int32_t recompute; /* 1: activations are computed again for the backward
                          pass, in place of being kept; 0 */
    /*
     * 1 or more: the last so many ranks are parameter servers (hvd_strategy.h),
     * which hold the variables and the state of the optimiser for the others,
     * the workers. A server makes the same calls, has neither device nor data,
     * serves within a call, and returns from it with the results of rank 0.
     * Data that is made for it is freed unread, and its hooks are not called;
     * hooks and visits use hvd_estimator_workers for collectives of their own.
     * 0 (default): no servers; or
     * the tasks of type ps of a TF_CONFIG, if hvd_estimator_init has found some
     */
    int32_t servers;
    int32_t server_mode; /* an hvd_server_mode; synchronous */
    int32_t backups;     /* workers that a synchronous step does not wait for */
    int32_t staleness;   /* bounded: steps that a worker may be ahead */
    int32_t placement;   /* an hvd_placement; by turns */
    int64_t part_bytes;  /* larger variables are split over the servers, into
                            parts of at most so many bytes; 0: they are whole */
    int32_t variables_on_host; /* 1: the optimiser is that of libhvd, on the
                                  host, and its state takes no memory of the
                                  devices; one copy for all replicas of a rank;
                                  0 */
    uint64_t seed;             /* of first values and dropout; 1 */
    int64_t save_checkpoints_steps; /* steps between two; 0: as below */
    double save_checkpoints_secs;   /* seconds between two, looked at when the
                                       loss is averaged; 600; 0: none but the
                                       last. Ignored if steps are given */
    int32_t keep_checkpoint_max;    /* newest ones that stay; 0: all; 5 */
    int64_t log_step_count_steps; /* steps between two averages of the loss over
                                     all ranks; 100 */
    /* Called on rank 0 with each such average, and at the end; NULL: nobody
     * hears it. */
    void (*log)(void *context, int64_t step, double loss,
                double steps_per_second);
    void *log_context;
    /* Folder of a log (hvd_log.h), which rank 0 writes: every
     * log_step_count_steps steps train/loss, train/learning_rate,
     * train/steps_per_second and train/rows_per_second, of all ranks together;
     * after an evaluation eval/loss and its metrics. NULL (default): none */
    const char *log_dir;
    uint32_t log_formats; /* of hvd_log.h; HVD_LOG_ALL */
    int32_t nhooks;
    hvd_hook *const *hooks; /* [nhooks], which are called in this order */
    /*
     * 1 or more: a training goes on when ranks are lost, as long as so many are
     * left; needs HVD_ELASTIC (docs/ELASTIC.md). All that a checkpoint has is
     * committed in memory every elastic_steps updates. After a loss the ranks
     * that are left go back to the newest commit, and divide the rest of the
     * epoch among themselves; each has as many rows in a step as before. Hooks
     * hear of a new begin. Not with servers or stages. Processes of a cluster
     * that come late, or come back, take part from the next commit on: they
     * make the same calls, none of them collective before this training, which
     * is the first, and get all that the others have. If there is a model_dir,
     * checkpoints are of commits; when too few ranks are left, and nobody
     * comes, the newest commit is written there, and the call fails with
     * HVD_ERR_LOST: a job that is started again goes on from it. 0 (default): a
     * loss ends the training
     */
    int32_t elastic;
    int32_t elastic_steps; /* updates between two commits; 10 */
    /* File to which events are added, each a line of JSON: start, commit, loss,
     * restore, join and end, and stop and resume if there is a
     * model_dir, with step, epoch, samples of the epoch, rows, and
     * which ranks there are: by their ranks in the first world, and those that
     * joined later by the next numbers. NULL (default): none */
    const char *elastic_log;
    /* With elastic: a straggler (hvd_on_straggler) that is busy so many times
     * as long as the median rank, 1.25 or more, is excluded from the training,
     * if more than elastic ranks are there. Its call fails with HVD_ERR_LOST; a
     * spare takes its place, if one waits. 0 (default): none is */
    double exclude_stragglers;
} hvd_estimator_options;

void hvd_estimator_options_init(hvd_estimator_options *options, size_t size);

/* Makes an estimator, which compiles nothing yet. Call after hvd_init.
 * HVD_ERR_ARGUMENT: an option is out of its range. */
int hvd_estimator_new(const hvd_estimator_options *options,
                      hvd_estimator **estimator);

/* Collective if it has trained or evaluated. NULL is accepted. */
void hvd_estimator_free(hvd_estimator *estimator);

/* Makes a data set for a call. NULL: none, and hvd_last_error() says why. */
typedef hvd_dataset *hvd_data_fn(void *context);

/* How long a training goes on: what comes first. At least one is given. */
typedef struct hvd_train_spec {
    uint32_t size;     /* of the struct, as hvd_train_spec_init got it */
    int64_t steps;     /* more steps than are made; 0: not given */
    int64_t max_steps; /* steps since the very first; 0: not given */
    int64_t epochs;    /* epochs since the very first, of data that knows its
                          steps; 0: not given */
    hvd_data_fn *data; /* of hvd_estimator_train_and_evaluate */
    void *data_context;
} hvd_train_spec;

void hvd_train_spec_init(hvd_train_spec *spec, size_t size);

/* What a training or an evaluation has found, the same on all ranks. */
typedef struct hvd_results {
    uint32_t size;       /* sizeof(hvd_results), set by the caller */
    int64_t global_step; /* steps that the network has been trained for */
    double loss;         /* training: the mean of all steps of the call, NaN if
                            none was left; evaluation: of all rows */
    double accuracy;     /* share of rows whose largest logit is that of their
                            class; NaN where the result has no logits [rows,
                            classes], or the second input no int32 [rows] */
    int64_t rows;        /* evaluation: losses, all ranks together */
    double seconds;
    int64_t skipped;   /* training: updates that were skipped */
    int32_t stopped;   /* training: 1: a hook has stopped it */
    double data_share; /* training: share of the time in which this rank
                          waited for data */
} hvd_results;

/*
 * Collective: trains. The data must be batched, with drop_remainder 1: the
 * first component is what the network gets, the others it asks for by name.
 * Sharding is automatic. Takes data over, also on failure.
 *
 * Goes on from the newest checkpoint of model_dir, if there is one, in the
 * first call of an estimator, and from the last step in the next. Returns at
 * once, with results, if all steps are made already. results may be NULL.
 *
 * HVD_ERR_FILE: no checkpoint is whole, or it is one of another network.
 * HVD_ERR_UNSUPPORTED: the loss is no longer a number.
 */
int hvd_estimator_train(hvd_estimator *estimator, hvd_dataset *data,
                        const hvd_train_spec *spec, hvd_results *results);

/* Looks at a batch of an evaluation or a prediction: real rows of the batch,
 * and outputs by the place that hvd_estimator_output says, [capacity, ...]
 * each; losses is NULL in a prediction. Returns 0, or a negative status, which
 * ends it. */
typedef int hvd_visit_fn(void *context, int64_t rows,
                         const void *const *outputs, const float *losses);

/* A metric that an evaluation counts, from what the network gives and what the
 * data has. Pointers are borrowed during the evaluation. */
typedef struct hvd_eval_metric {
    const char *name;    /* in logs and of hooks; NULL: that of its kind, such
                            as "auc", or "top_5" */
    hvd_metric *metric;  /* loses the rows that it had, and gets those of all
                            ranks */
    const char *outputs; /* an output of the network; NULL: the losses for MEAN
                            and PERPLEXITY, else the result */
    const char *labels;  /* a component of the data; NULL: the second */
    const char *weights; /* a component with a number for each row, or for each
                            label; NULL: 1 */
} hvd_eval_metric;

enum { HVD_EVAL_MOST_METRICS = 32 };

typedef struct hvd_eval_spec {
    uint32_t size;       /* of the struct, as hvd_eval_spec_init got it */
    int32_t nmetrics;    /* at most HVD_EVAL_MOST_METRICS */
    int64_t steps;       /* batches of this rank; 0 (default): all */
    hvd_visit_fn *visit; /* NULL: nobody looks */
    void *visit_context;
    int32_t trained; /* 1: the variables as they are trained, also if there are
                        running averages; 0 */
    const hvd_eval_metric *metrics; /* [nmetrics], the same on all ranks */
    const char *name; /* tags in the log begin with "eval_" and this; NULL: with
                         "eval" */
    /* Of hvd_estimator_train_and_evaluate: */
    hvd_data_fn *data;
    void *data_context;
    double start_delay_secs; /* before the first evaluation; 120 */
    double throttle_secs; /* from the beginning of one to that of the next, at
                             least; 600 */
    double wait_secs;     /* an evaluator of its own waits for a checkpoint for
                             so long, and then fails; 3600 */
} hvd_eval_spec;

void hvd_eval_spec_init(hvd_eval_spec *spec, size_t size);

/* Collective: evaluates the network as it is now: after a training in this
 * process, or as the newest checkpoint has it, or with its first values.
 * Batches are as for training, with any drop_remainder; each row is counted
 * once. Takes data over, also on failure. spec may be NULL. HVD_ERR_ARGUMENT: a
 * metric does not go with the outputs or components that it names. If a rank is
 * lost, this fails, hvd_check() returns HVD_ERR_LOST, and behind hvd_recover
 * the ranks that are left can call it again, with data anew. */
int hvd_estimator_evaluate(hvd_estimator *estimator, hvd_dataset *data,
                           const hvd_eval_spec *spec, hvd_results *results);

/* Does the same without labels, losses and metrics. */
int hvd_estimator_predict(hvd_estimator *estimator, hvd_dataset *data,
                          const hvd_eval_spec *spec);

/*
 * Calls hvd_init, in place of which a program may call it: then its TF_CONFIG
 * decides what this process is. The chief and the workers train. Tasks of type
 * ps are parameter servers for them, with ranks behind those of the workers
 * (options.servers). An evaluator, which has no rank, gets a world of its own:
 * {"task": {"type": "evaluator", "index": 0}}.
 */
int hvd_estimator_init(void);

/*
 * Collective: trains, and evaluates between the steps: the network of a
 * checkpoint, just before that is written, if start_delay_secs and
 * throttle_secs have passed, by rank 0's clock; and that of the last step. Both
 * specs have a function that makes their data, and the estimator has a
 * model_dir. Hooks hear of the evaluations, so that the training may end by
 * them. training and evaluation get the results, and may be NULL.
 *
 * In a cluster with an evaluator (hvd_estimator_init) the workers only train,
 * and that process only evaluates, without a device, each newest checkpoint of
 * the model_dir that it sees, until that of max_steps, or of a training that a
 * hook has stopped; without max_steps, the last of any training. It takes no
 * part in reductions, and may begin and end at any time. What it finds is in
 * evaluations.jsonl of the model_dir, which rank 0 reads when the loss is
 * averaged; then hooks hear of it. Its log is in the folder "eval" of log_dir.
 * Its results are those of the last evaluation.
 *
 * HVD_ERR_FILE: no checkpoint has come to the evaluator in wait_secs.
 */
int hvd_estimator_train_and_evaluate(hvd_estimator *estimator,
                                     const hvd_train_spec *train,
                                     const hvd_eval_spec *eval,
                                     hvd_results *training,
                                     hvd_results *evaluation);

/* Returns the place of an output among those that a visit gets, once the
 * estimator has trained or evaluated; HVD_ERR_ARGUMENT if there is none of that
 * name. The result of the network is 0. */
int hvd_estimator_output(const hvd_estimator *estimator, const char *name);

/* Reads a variable, as it is now, once the estimator has trained or evaluated:
 * count float32 values. A parameter server has none. HVD_ERR_ARGUMENT: there is
 * no such variable, or it has another count. */
int hvd_estimator_variable(const hvd_estimator *estimator, const char *name,
                           float *values, int64_t count);

/* Returns the process set of the ranks that train and evaluate, for collectives
 * of hooks and visits: 0, all ranks, without parameter servers. */
int hvd_estimator_workers(const hvd_estimator *estimator);

#ifdef __cplusplus
}
#endif

#endif
