/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer.h - trains a model (model.h) on software IPUs, together with all
 * other ranks: what a training program sees of both.
 *
 *     trainer_new(model, &options, &trainer)    collective
 *     trainer_step(trainer, rate, &loss)        collective, again and again
 *     trainer_evaluate(trainer, ...)            this rank's share of the tests
 *     trainer_compare_ranks(trainer, &hash)     collective
 *     trainer_save, trainer_profile             rank 0
 *     trainer_free(trainer)
 *
 * The trainer has the variables on the host, an evaluation (evaluation.h), and
 * a backend (backend.h) that makes the steps: one device, or a pipeline of
 * several. Each rank has its own; gradients are averaged over all of them
 * (exchange.h). The trainer fetches its mini-batches by options.fill.
 *
 * Functions that return int return 0, or a problem with the text kept
 * (problem.h).
 */
#ifndef MODELS_TRAINER_H
#define MODELS_TRAINER_H

#include "model/optimizer.h"
#include "trainer/partition.h"
#include "trainer/strategy.h"

#include <hvd_progress.h>
#include <stdbool.h>
#include <stdint.h>

struct trainer;
struct model;              /* model.h */
struct safetensors_tensor; /* safetensors.h */

/* Fills mini-batch number 0, 1, ... of this rank: a buffer for each input of
 * the model, or replaces it by memory that stays as it is until the next call.
 * If there are k replicas, they take k successive ones. 0, or PROBLEM with the
 * text kept. */
typedef int fill_batch_fn(void *context, int64_t number, void **inputs);

struct trainer_options {
    struct optimizer_settings optimizer;
    int strategy;                    /* an enum strategy */
    struct servers_settings servers; /* of STRATEGY_PARAMETER_SERVER */
    bool synchronised;      /* normalise by the batches of all replicas of all
                               ranks */
    bool variables_on_host; /* the optimiser is on the host, not the devices */
    struct sums_settings sums; /* over the replicas, without a partition */
    int replicas;  /* 1 or more copies of the network, or of the pipeline */
    int rank;      /* this rank */
    uint64_t seed; /* seed of first values, and of what is random in training */
    int compression;    /* the hvd_compression of gradients */
    const char *recipe; /* of bfloat16, for the devices' network; NULL: none */
    int64_t pack_bytes; /* of gradients on that network; < 0: the default */
    int check_every; /* updates between two comparisons of the ranks' variables;
                        0: none */
    bool keep_gradients; /* trainer_gradient has them, also of a single rank */
    int threads;
    bool serial;         /* reduce after the backward pass */
    double proportion;   /* share of a tile for products; 0: the default */
    const char *load;    /* weights to start from; NULL: none */
    const char *graphs;  /* folder with the network's graphs and first weights
                            (program.h), in place of what the model's pieces
                            build; borrowed until trainer_free; NULL: none */
    const char *profile; /* directory or "text"; NULL: no profile */
    hvd_progress *
        progress; /* shows compilations; borrowed by trainer_new; may be NULL */
    bool evaluates; /* and does not train: it takes no device, and evaluates on
                       the host, whatever a tile would hold, with the same
                       bits */
    struct partition partition; /* stages 0: one device */
    fill_batch_fn *fill; /* fills training batches, within trainer_step; a
                            pipeline calls it on a separate thread */
    void *fill_context;  /* borrowed until trainer_free */
};

struct exchange_settings; /* exchange.h */

/* Returns the settings of the exchange between ranks; they borrow options. */
struct exchange_settings trainer_exchange(
    const struct trainer_options *options);

/* Seconds since the start, on this rank. */
struct trainer_times {
    double data;    /* time in which this thread fills mini-batches */
    double compute; /* devices run, and gradients leave meanwhile */
    double wait;    /* the rank only waits for averages */
    double update;  /* the optimiser runs; 0 without an exchange */
};

/*
 * Collective: compiles the model, draws first values (different ones on each
 * rank, on purpose: the broadcast must make them equal) or loads them, and
 * broadcasts them from rank 0. Takes the model over, also on failure; then
 * *trainer is NULL and all ranks fail. model NULL: this rank could not make
 * one, and fails.
 */
int trainer_new(struct model *model, const struct trainer_options *options,
                struct trainer **trainer);
void trainer_free(struct trainer *trainer); /* NULL is accepted */

/*
 * Collective: stops what serves the trainer outside of its ranks: the parameter
 * servers, which return from serving_run (serving.h). The variables are on the
 * workers then, as trainer_settle has left them, and can be evaluated; rank 0
 * has the state of the optimiser. The other starts it again; what runs stays as
 * it is. Without servers both do nothing.
 */
void trainer_stop(struct trainer *trainer);
int trainer_start(struct trainer *trainer);

/*
 * Writes the network for one of nranks ranks into a folder, as the files that
 * options.graphs reads: its graphs, and the first values of its variables,
 * which are those of rank 0. Takes the model over, also on failure. Not
 * collective, and without libhvd: for a process that lets others train. model
 * NULL: there is none, and the text is kept.
 */
int trainer_export(struct model *model, const struct trainer_options *options,
                   int nranks, const char *folder);

/* Returns how many steps trainer_step makes at a time: 1, or with a pipeline
 * all of an update. */
int trainer_steps(const struct trainer *trainer);

/* Collective: trains on the next mini-batch, or on all of an update. Sets *loss
 * to the mean on this rank. */
int trainer_step(struct trainer *trainer, double rate, double *loss);

/* Has the next step be the one behind that many: options.fill is asked for its
 * mini-batches, and what is random depends on it. 0 in the beginning. */
void trainer_seek(struct trainer *trainer, int64_t steps);

/* The gradients by which an update was skipped, in a guarded training. The
 * numbers are those of variables; -1: all are finite. */
struct trainer_nonfinite {
    int32_t average; /* the first whose average is not finite, the same on all
                        ranks; 0 or more: the update was skipped */
    int32_t here;    /* the first whose own gradient is not, on this rank */
    int replica;     /* of this rank, whose it is */
};

struct trainer_nonfinite trainer_nonfinite(const struct trainer *trainer);

/* Sets the momentum, or beta1, from the next step on, if the optimiser is
 * cycled. To be called before the first step. */
void trainer_set_momentum(struct trainer *trainer, double momentum);

/* Sets the scale of the loss, from the next step on. */
void trainer_set_scale(struct trainer *trainer, double scale);

/* Keeps the statistics of this rank's devices as they are, or gives back those
 * that were kept last, if there are any. PROBLEM: no memory. */
int trainer_keep_statistics(struct trainer *trainer);
void trainer_revert_statistics(struct trainer *trainer);

/* Collective: gives all ranks the newest variables, which they may lack with
 * parameter servers, and reads the statistics. To be called before an
 * evaluation, and in the end. */
int trainer_settle(struct trainer *trainer);

/* Collective: to be called before the ranks agree on anything between two
 * steps. With backups a worker whose gradients came too late would wait for
 * steps that the others make only later. Else it does nothing. */
int trainer_meet(struct trainer *trainer);

/* Collective: has the values of the statistics (model.h) be their means over
 * all devices of all ranks. To be called before a checkpoint; without
 * statistics it does nothing. */
int trainer_read_statistics(struct trainer *trainer);

/* Fills test batch number step = 0, 1, ... of this rank, as fill_batch_fn.
 * Returns how many rows are real, 0 when there are no more. */
typedef int64_t fill_test_fn(void *context, int64_t step, void *const *inputs);

/* What an evaluation has computed of a batch; valid during the visit. */
struct trainer_results {
    int64_t rows;              /* real losses */
    const float *losses;       /* [rows of a batch]; NULL in a prediction */
    void *const *inputs;       /* of the model; NULL for those not needed */
    void *const *outputs;      /* of the model */
    const struct model *model; /* borrowed */
};

/* Looks at a batch. 0, or a problem that ends the evaluation. */
typedef int visit_batch_fn(void *context,
                           const struct trainer_results *results);

/* Evaluates all test batches of this rank, and has visit look at each; or, if
 * it predicts, without labels and losses. Not collective. */
int trainer_visit(struct trainer *trainer, bool predicts, fill_test_fn *fill,
                  void *context, visit_batch_fn *visit, void *visit_context);

/* Has evaluations and predictions use other values of the variables,
 * [variables], which are borrowed until trainer_free; NULL: those of
 * trainer_values, as in the beginning. PROBLEM with the text kept. */
int trainer_show(struct trainer *trainer, float *const *values);

enum trainer_dtype { TRAINER_FLOAT32, TRAINER_INT32, TRAINER_INT64 };

/* A tensor that a training keeps beside its variables, to go on as if it had
 * not been stopped: moments, counters. */
struct trainer_state {
    const char *name; /* borrowed until trainer_free */
    enum trainer_dtype dtype;
    int32_t ndim;
    int64_t shape[8];
    int64_t count; /* elements */
    bool on_host;  /* of an optimiser on the host or on servers, which all ranks
                      have in common; these come last */
};

/* Lists all of them, in an array that the caller frees. Returns how many there
 * are; PROBLEM, without memory, with the text kept. */
int trainer_states(const struct trainer *trainer,
                   struct trainer_state **states);

/* Copies all of them to data, a place for each: from the first device of this
 * rank, and from where the optimiser is. The newest variables of parameter
 * servers come with them. Not collective. PROBLEM with the text kept. */
int trainer_state_read(struct trainer *trainer, void *const *data);

/* Collective: writes all of them: to all devices of this rank; and of those on
 * the host, rank 0's to where the optimisers of all ranks have them, with rank
 * 0's variables and statistics. */
int trainer_state_write(struct trainer *trainer, const void *const *data);

/* Replaces this rank's variables on all devices by the values of
 * trainer_values, which the caller has changed. PROBLEM with the text kept. */
int trainer_write_values(struct trainer *trainer);

/* Evaluates all test batches of this rank: adds up the losses of their rows,
 * and how many are right, and has visit (NULL: nobody) look at each. Not
 * collective. */
int trainer_evaluate(struct trainer *trainer, fill_test_fn *fill, void *context,
                     visit_batch_fn *visit, void *visit_context,
                     double *loss_sum, double *correct);

/* Returns the model that is trained, which is the trainer's. */
const struct model *trainer_model(const struct trainer *trainer);

/* The variables, [variables], for reading. They are the trainer's. */
float *const *trainer_values(const struct trainer *trainer);

/* Returns the gradient of variable i in the last update, its mean over the
 * ranks (with parameter servers, or an optimiser on the host: what this rank
 * gave). NULL: it does not come to the host, or there is none. */
const float *trainer_gradient(const struct trainer *trainer, int i);

/* Takes a node of a drawing: inputs are names of nodes before it. */
typedef int trainer_node_fn(void *context, const char *name, const char *op,
                            int ninputs, const char *const *inputs);

/* Describes the network by nodes; none if it came from a file. Returns 0, or
 * what add returned. */
int trainer_draw(const struct trainer *trainer, trainer_node_fn *add,
                 void *context);

/* Collective: checks that the variables have the same bits on all ranks. Sets
 * *hash to theirs. */
int trainer_compare_ranks(struct trainer *trainer, uint64_t *hash);

/* Returns the elements of all variables together. */
int64_t trainer_parameters(const struct trainer *trainer);

/* Writes values of the variables to a file (weights.h). */
int trainer_save(const struct trainer *trainer, float *const *values,
                 const char *path);

/* Returns the names and shapes of trainer_values, [count], without data; owned
 * by the caller. NULL with the text kept. */
struct safetensors_tensor *trainer_tensors(const struct trainer *trainer,
                                           int *count);

/* Prints or writes the profile, as profile.h's where says. Not collective: for
 * the rank that writes. */
int trainer_profile(const struct trainer *trainer, const char *where,
                    const char *title);

/* Has the training's device measure times, from zero, or stop and forget them;
 * several replicas measure none. Not collective. */
int trainer_record(const struct trainer *trainer, bool on);

/* Writes the profile of the training to a folder. Not collective. */
int trainer_write_profile(const struct trainer *trainer, const char *folder,
                          const char *title);

/* Reports what the modelled chips make of a partition. PROBLEM if there is
 * none. */
int trainer_partition_stats(const struct trainer *trainer,
                            struct partition_stats *stats);

/* What a step costs on each of the modelled chips of the replicas. */
struct sums_stats {
    int64_t cycles;          /* of all of it */
    int64_t exchange_cycles; /* of sums over replicas */
    int64_t exchanges;       /* that these sums take */
    int64_t sent_bytes;      /* of sums, by the replica that sends most */
};

/* Reports them. PROBLEM if there are no replicas, or a partition. */
int trainer_sums_stats(const struct trainer *trainer, struct sums_stats *stats);

struct trainer_times trainer_times(const struct trainer *trainer);

#endif
