/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_pipeline.h - a model in stages over several IPUs. ipu.h includes it.
 *
 * First the schedule, which is arithmetic alone: which stage works on which
 * mini-batch in which slot. Then the pipeline, which does it. Errors and
 * threads are as in ipu.h; docs/PIPELINES.md tells the story.
 */
#ifndef IPU_H
#include "ipu.h" /* ipu.h includes this file after those that it needs */
#elif !defined(IPU_PIPELINE_H)
#define IPU_PIPELINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -------------------------------------------------------------- schedules */

typedef int32_t ipu_schedule;
enum {
    IPU_SCHEDULE_GROUPED = 0,     /* in a slot, each IPU goes backwards with one
                                     mini-batch and forwards with another */
    IPU_SCHEDULE_INTERLEAVED = 1, /* in a slot, some go forwards and the others
                                     backwards: half of the activations */
    IPU_SCHEDULE_SEQUENTIAL = 2   /* one stage at a time */
};
enum { IPU_NUM_SCHEDULES = 3 };

/* "grouped"; NULL if it is none. Static. */
const char *ipu_schedule_name(ipu_schedule schedule);

/* stages mini-batches go through, count of them. */
typedef struct ipu_schedule_options {
    uint32_t size; /* sizeof(ipu_schedule_options) */
    ipu_schedule schedule;
    int32_t stages;   /* forwards: 1 or more; concurrent ones are one */
    int32_t training; /* 1: backwards too */
    int32_t io_tiles; /* 1: streams have tiles of their own, so that they
                         overlap with stages: grouped only */
    int64_t count;    /* mini-batches until the weights change */
} ipu_schedule_options;

/*
 * What follows. Executions are those of all stages, forwards and backwards.
 * The program is a ramp-up, repeats of steady_slots slots, and a ramp-down.
 */
typedef struct ipu_schedule_info {
    uint32_t size;       /* sizeof(ipu_schedule_info), set by the caller */
    int32_t multiple_of; /* that count must be */
    int32_t at_least;    /* ... and be */
    int64_t slots;
    int64_t ramp_up_slots, ramp_down_slots;
    int64_t steady_slots; /* of one repeat */
    int64_t repeats;
    int64_t ramp_up_executions, ramp_down_executions;
    int64_t executions;
} ipu_schedule_info;

/*
 * IPU_ERR_ARGUMENT for a count that the schedule cannot do: "The number of
 * iterations ... must be a multiple of 8, but it is 12", as Graphcore's says.
 */
int ipu_schedule_plan(const ipu_schedule_options *options,
                      ipu_schedule_info *info);

/* Mini-batches that wait between a stage (0: the first) and its own way back,
 * beside the one at work. */
int32_t ipu_schedule_stash(const ipu_schedule_options *options, int32_t stage);

typedef int32_t ipu_stage_kind;
enum {
    IPU_STAGE_FORWARD = 0,
    IPU_STAGE_BACKWARD = 1,
    IPU_STAGE_RECOMPUTE = 2, /* forwards again, for the way back */
    IPU_STAGE_UPDATE = 3,    /* of the weights */
    IPU_NUM_STAGE_KINDS = 4
};

/* A stage at work on a mini-batch. */
typedef struct ipu_schedule_entry {
    int32_t stage; /* 0: the first */
    ipu_stage_kind kind;
    int64_t mini_batch;
} ipu_schedule_entry;

/* What runs in a slot, in the order in which an IPU runs it. At most capacity
 * entries are written; returns how many there are. */
int ipu_schedule_slot(const ipu_schedule_options *options, int64_t slot,
                      int32_t capacity, ipu_schedule_entry *entries);

/*
 * A slot after the other as letters, "a" the first stage forwards, the last
 * of them the first stage backwards: each slot has as many characters as the
 * schedule has offsets, with dots for what does not run. phase 0: the ramp-up,
 * 1: one repeat of the steady state, 2: the ramp-down. Writes at most size
 * bytes with the NUL, returns the length it needs.
 */
int64_t ipu_schedule_print(const ipu_schedule_options *options, int32_t phase,
                           char *text, int64_t size);

/* --------------------------------------------------------------- pipelines */

enum { IPU_MAX_STAGES = 64, IPU_MAX_STAGE_TENSORS = 32 };

typedef struct ipu_pipeline ipu_pipeline;

/*
 * Build a stage: from its inputs to its outputs, of which there may be
 * IPU_MAX_STAGE_TENSORS. Returns the number of outputs, or a negative status
 * of its own. The variables it makes live on its IPU; another stage on the
 * same IPU that makes one of the same name, dtype and shape shares it.
 * Variables that the loss depends on and that the stage does not assign are
 * trained. Called once, by ipu_pipeline_new.
 *
 * The first stage gets the arguments and then what the infeed has; every other
 * the outputs of the one before; what a later stage needs must be handed
 * through. The last stage of a training pipeline has the loss among its
 * outputs. In training ipu_repeat adds its body once for each iteration, so
 * that derivatives pass it, and queues, remote buffers and ipu_while are
 * refused: IPU_ERR_ARGUMENT.
 */
typedef int (*ipu_stage_fn)(void *context, ipu_graph *graph, int32_t ninputs,
                            const ipu_tensor *inputs, ipu_tensor *outputs);

typedef struct ipu_stage {
    const char *name; /* borrowed during ipu_pipeline_new; NULL: a number */
    ipu_stage_fn build;
    void *context;  /* borrowed during ipu_pipeline_new */
    int32_t inputs; /* how many it takes; -1: as many as there are */
    int32_t beside; /* 1: works at the same time as the stage before it, on the
                       same inputs; what follows gets the outputs of the one and
                       then those of the other */
} ipu_stage;

/*
 * Called on the thread that runs the pipeline for each mini-batch that has
 * left the last stage, in order; data are its count outputs, valid during the
 * call. A negative return ends the run with IPU_ERR_CALLBACK.
 */
typedef int (*ipu_pipeline_sink_fn)(void *context, int32_t replica,
                                    int64_t mini_batch, int32_t count,
                                    const void *const *data);

/*
 * What the weights become, once for all the trained variables of an IPU:
 * ipu_sgd and its like. gradients[i] has the accumulator's dtype. outputs are
 * those of the last stage, of the last mini-batch: a learning rate that was
 * handed through. What it makes on the graph is the IPU's own. Returns 0, or a
 * negative status of its own.
 */
typedef int (*ipu_optimizer_fn)(void *context, ipu_graph *graph,
                                int32_t noutputs, const ipu_tensor *outputs,
                                int32_t count, const ipu_tensor *variables,
                                const ipu_tensor *gradients);

/*
 * Between processes, of which the device knows nothing: what makes one of the
 * gradients that each of them has.
 *
 * ready: the gradient of a variable (number and name are those of
 * ipu_pipeline_variable) is complete, of all mini-batches of an update, and
 * averaged over the replicas. data, count float32 elements, is the callee's
 * until wait returns: what is there then the optimizer gets. It must not wait
 * for others: called while earlier stages have yet to go backwards, so that
 * what it begins goes on beside them. Once a variable and update, from the last
 * number to 0.
 *
 * wait: return when all that was begun is there. status 0: all gradients of
 * this update were given. Negative, a status whose text is ipu_last_error():
 * the run has failed, and those that were not given will not come; tell the
 * other processes, and return when no data is in use any more. Once an update,
 * and once more for a run that fails in the update itself, of which then
 * nothing is under way: to say that the next will not come.
 *
 * Both on the thread that runs the pipeline. A negative return ends the run
 * with IPU_ERR_CALLBACK; that of a wait for a failed run is ignored.
 */
typedef int (*ipu_ready_fn)(void *context, int32_t number, const char *variable,
                            float *data, int64_t count);
typedef int (*ipu_wait_fn)(void *context, int status);

/* 1 if the variable is trained, 0 if not. */
typedef int (*ipu_trained_fn)(void *context, const char *variable);

/* Which of the ways to compute activations again. Texts name them as
 * Graphcore's RecomputationMode does. */
typedef int32_t ipu_recompute;
enum {
    IPU_RECOMPUTE_AUTO = 0, /* the second of these if the schedule is
                               sequential, else the first */
    IPU_RECOMPUTE_THEN_BACKPROPAGATE = 1,
    IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED = 2
};

enum { IPU_ACCUMULATOR_SAME = -1 }; /* the variable's dtype */

/* Fill it with ipu_pipeline_options_init; then set what differs. All pointers
 * are borrowed during ipu_pipeline_new, but those marked: as long as the
 * pipeline is. */
typedef struct ipu_pipeline_options {
    uint32_t size; /* sizeof(ipu_pipeline_options) */
    ipu_schedule schedule;
    int32_t nstages;
    int32_t nmappings; /* 0: stages on IPUs as near as can be */
    const ipu_stage *stages;
    const int32_t *device_mapping; /* [nmappings]: the IPU of each stage */
    const ipu_system
        *system;          /* NULL: an M2000, or as large a Pod as it takes */
    int64_t count;        /* mini-batches until the weights change */
    int64_t repeat_count; /* updates in one run: 1 */
    int64_t batch_serialization_iterations; /* 1; more: that many elements go
                                               through a stage one by one
                                               before the next begins */
    int32_t replicas; /* 1; more: copies of the pipeline, whose gradients are
                         averaged before the weights change */
    int32_t narguments;
    const ipu_feed_tensor *arguments; /* the same in all of a run */
    int32_t io_tiles;                 /* 1: streams overlap with stages */
    int32_t noutfeed_names;
    ipu_infeed *infeed;   /* of as many replicas; kept; NULL: none */
    ipu_outfeed *outfeed; /* of as many replicas; kept; NULL: none */
    const char *const *outfeed_names; /* of what goes there; NULL: numbers */
    ipu_pipeline_sink_fn sink;        /* beside the outfeed, or instead */
    void *sink_context;               /* as long */

    /* Training: with an optimizer. */
    ipu_optimizer_fn optimizer;
    void *optimizer_context;
    int32_t loss; /* which output of the last stage: 0; a float32 scalar */
    ipu_reduction reduction;
    ipu_trained_fn trained; /* NULL: all are */
    void *trained_context;
    ipu_dtype accumulator;             /* IPU_ACCUMULATOR_SAME */
    int32_t recompute;                 /* 1: activations are computed again */
    ipu_accumulator_fn accumulator_of; /* or chosen for each; NULL: all same */
    void *accumulator_context;
    ipu_recompute recompute_mode;
    int32_t continuous_updates; /* 1 is refused: it does not exist */
    ipu_ready_fn ready;         /* between processes: both of these, or NULL */
    ipu_wait_fn wait;
    void *exchange_context; /* of both; as long */

    /* What outfeed and sink get. */
    int32_t outfeed_loss;       /* 1: the loss alone */
    int32_t accumulate_outfeed; /* 1: the sum over count mini-batches, once */
    int32_t noutfeed_mask;
    int32_t threads; /* 0: one an IPU while there are cores; 1: the caller's */
    const int32_t *outfeed_mask; /* [outputs]: 1 keeps it back */

    /* Streaming memory beside the chip. */
    ipu_offload offload_activations; /* OFF */
    ipu_offload offload_state; /* what only the update needs: AUTO, which is
                                  ON for each IPU that is too full otherwise */
    ipu_offload offload_accumulators; /* OFF */
    ipu_offload offload_weights;      /* OFF */

    int32_t allow_out_of_memory; /* 1: build what does not fit, too */
    int32_t record; /* 1: keep what ran when, of the last run, and count what
                       runs and stages take here */
    /* 1: each replica keeps only its part of the optimizer's state, and of the
     * work of an update: ceil(n / replicas) elements of a variable of n. Its
     * function is given parts of variables and gradients, as vectors under the
     * variables' names, and may only work on them element by element, as SGD,
     * momentum, Adam and AdamW do: IPU_ERR_ARGUMENT names what does not.
     * Variables of less than 128 bytes a replica are kept by all. Weights are
     * the same bits as without. Not with IPU_OFFLOAD_OFF of offload_state. */
    int32_t replicated_optimizer_state_sharding;
    int32_t reserved;
    double available_memory_proportion; /* as in ipu_compile_options: of all
                                           stages; 0: 0.6. A stage may say
                                           another of its products by
                                           ipu_available_memory_proportion */
} ipu_pipeline_options;

void ipu_pipeline_options_init(ipu_pipeline_options *options, size_t size);

/*
 * Build the stages, there and back, and what updates the weights; compile each
 * for its IPU. Failures name the stage. IPU_ERR_FULL if an IPU's variables,
 * stashes and programs do not fit together.
 */
int ipu_pipeline_new(const ipu_pipeline_options *options,
                     ipu_pipeline **pipeline);
void ipu_pipeline_free(ipu_pipeline *pipeline); /* NULL is accepted */

/* Set an argument, by name; copied. Zero until set. */
int ipu_pipeline_argument(ipu_pipeline *pipeline, const char *name,
                          const void *data, size_t bytes);

/*
 * Write or read a whole variable, by name: of a stage, of the optimizer, or
 * "w/accumulator" of a trained one w. Written to all replicas; read from one.
 */
int ipu_pipeline_write(ipu_pipeline *pipeline, const char *name,
                       const void *data, size_t bytes);
int ipu_pipeline_read(const ipu_pipeline *pipeline, int32_t replica,
                      const char *name, void *data, size_t bytes);

/*
 * From now on a variable of replica 0 ("w", or "w/accumulator", where its
 * gradient is) lives in this memory of the host, of exactly bytes bytes, as
 * ipu_engine_place has it: so that the host works on it without a copy. It has
 * the elements that were there; data is borrowed until the pipeline is freed or
 * the name is placed elsewhere; NULL: in the pipeline's own memory, with the
 * elements that it has by then. Between runs. Other replicas have memory of
 * their own: write what is to be everywhere with ipu_pipeline_write, to which
 * data may be given.
 *
 * IPU_ERR_STATE for a variable that several IPUs have, as the optimizer's
 * counters are.
 */
int ipu_pipeline_place(ipu_pipeline *pipeline, const char *name, void *data,
                       size_t bytes);

/* Names of the trained variables, each once, stage after stage: [0, ...). NULL:
 * there are no more. Borrowed until the pipeline is freed. */
const char *ipu_pipeline_variable(const ipu_pipeline *pipeline, int32_t number);

/* What a variable is, by a name that ipu_pipeline_read takes. shape must have
 * room for IPU_MAX_DIMS; outputs may be NULL. Returns the number of
 * dimensions. */
int ipu_pipeline_variable_info(const ipu_pipeline *pipeline, const char *name,
                               ipu_dtype *dtype, int64_t *shape);

/*
 * repeat_count times: count mini-batches go through, then the weights change.
 * Blocks; waits for elements of the infeed, and while the outfeed does. After a
 * failure, whose text names slot, stage and mini-batch, all variables are as
 * the last update left them, and the pipeline can run again: IPU_ERR_END if the
 * infeed has come to its end, IPU_ERR_CALLBACK if a function of the user's has
 * failed.
 */
int ipu_pipeline_run(ipu_pipeline *pipeline);

/* What it returned; 0 if none did. */
int ipu_pipeline_callback_status(const ipu_pipeline *pipeline);

/* One stage of a pipeline; concurrent ones count each. */
typedef struct ipu_pipeline_stage_info {
    uint32_t size;    /* sizeof(ipu_pipeline_stage_info), set by the caller */
    const char *name; /* borrowed until the pipeline is freed */
    int32_t position; /* in the schedule */
    int32_t ipu;      /* of replica 0 */
    int64_t forward_executions, backward_executions, recompute_executions;
    int64_t stash_depth; /* most mini-batches that waited, beside the one at
                            work */
    int64_t stash_bytes; /* of one mini-batch */
    int64_t sent_bytes;  /* to other IPUs for one mini-batch, there and back */
    int64_t forward_cycles, backward_cycles, recompute_cycles; /* of one */
} ipu_pipeline_stage_info;

int ipu_pipeline_stage(const ipu_pipeline *pipeline, int32_t stage,
                       ipu_pipeline_stage_info *info);

/* One IPU. All bytes are of the whole chip but those of a tile. */
typedef struct ipu_pipeline_ipu_info {
    uint32_t size; /* sizeof(ipu_pipeline_ipu_info), set by the caller */
    int32_t ipu;
    int64_t variable_bytes;  /* weights, state and accumulators on the chip */
    int64_t stash_bytes;     /* of all that waits at a time */
    int64_t program_bytes;   /* most that a program needs beside */
    int64_t streaming_bytes; /* kept beside the chip */
    int64_t busy_cycles;     /* since the pipeline was made */
    int64_t bytes_per_tile;  /* that there are */
    int64_t tile_bytes;      /* that are used, on the fullest */
    int64_t update_cycles; /* of an update, without the exchange of gradients */
    int64_t offload_cycles;     /* ... of these, to move what is kept beside */
    int64_t automatic_bytes;    /* of streaming_bytes: there because of
                                   IPU_OFFLOAD_AUTO */
    int64_t tile_bytes_without; /* what the fullest tile would use if these lay
                                   on the chip; 0: they do */
} ipu_pipeline_ipu_info;

/* number: 0 to the number of IPUs, of all replicas. */
int ipu_pipeline_ipu(const ipu_pipeline *pipeline, int32_t number,
                     ipu_pipeline_ipu_info *info);

/* Since the pipeline was made. */
typedef struct ipu_pipeline_info {
    uint32_t size; /* sizeof(ipu_pipeline_info), set by the caller */
    int32_t stages, ipus, replicas;
    int32_t recompute; /* the mode in use; 0: none */
    int64_t mini_batches, updates, slots;
    int64_t exchanges;       /* of a variable's gradients between replicas */
    int64_t inter_ipu_bytes; /* between stages */
    int64_t replica_bytes;   /* between replicas: sent by each */
    int64_t total_cycles;    /* slots and updates */
    int64_t compute_cycles;  /* ... of which stages at work */
    int64_t exchange_cycles; /* between stages */
    int64_t sync_cycles;
    int64_t update_cycles; /* with the exchange of gradients */
    int64_t host_cycles;   /* streams that nothing overlapped */
    double idle_fraction;  /* of an IPU's time, while stages are at work */
    double seconds;        /* total_cycles on the chip */
} ipu_pipeline_info;

int ipu_pipeline_stats(const ipu_pipeline *pipeline, ipu_pipeline_info *info);

/* What ran when in the last run: options.record. */
typedef struct ipu_pipeline_event {
    int32_t ipu;
    int32_t stage; /* -1: an update */
    ipu_stage_kind kind;
    int32_t replica;
    int64_t slot, mini_batch; /* of the run; an update: how many before it */
    int64_t start_cycles, cycles;
} ipu_pipeline_event;

/* Borrowed until the next run, or until the pipeline is freed. Returns how many
 * there are. */
int64_t ipu_pipeline_events(const ipu_pipeline *pipeline,
                            const ipu_pipeline_event **events);

struct ipu_profile; /* ipu_report.h */

/* Add to a profile all programs, named after stage and direction ("head
 * forward", "update on IPU 1"); with options.record also what ran when in the
 * last run, what that took as a whole, and what was measured. */
int ipu_pipeline_profile(const ipu_pipeline *pipeline,
                         struct ipu_profile *profile);

#ifdef __cplusplus
}
#endif

#endif
