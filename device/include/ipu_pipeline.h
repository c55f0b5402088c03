/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_pipeline.h - pipelines: models in stages over several IPUs. ipu.h
 * includes it.
 *
 * The first part computes schedules: which stage works on which mini-batch in
 * which slot. The second part builds and runs pipelines. Errors and threads are
 * as in ipu.h; docs/PIPELINES.md is the guide.
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
    IPU_SCHEDULE_GROUPED = 0,     /* in a slot, each IPU runs the backward pass
                                     of one mini-batch and the forward pass of
                                     another */
    IPU_SCHEDULE_INTERLEAVED = 1, /* in a slot, some IPUs run forward and the
                                     others backward: this keeps half as many
                                     activations */
    IPU_SCHEDULE_SEQUENTIAL = 2   /* one stage at a time */
};
enum { IPU_NUM_SCHEDULES = 3 };

/* Returns the name of a schedule ("grouped"), static, or NULL. */
const char *ipu_schedule_name(ipu_schedule schedule);

/* A schedule of count mini-batches through a number of stages. */
typedef struct ipu_schedule_options {
    uint32_t size; /* sizeof(ipu_schedule_options) */
    ipu_schedule schedule;
    int32_t stages;   /* forward stages, 1 or more; concurrent stages count as
                         one */
    int32_t training; /* 1: with the backward pass */
    int32_t io_tiles; /* 1: streams have tiles of their own and overlap with
                         stages; grouped only */
    int64_t count;    /* mini-batches until the weights change */
} ipu_schedule_options;

/*
 * The shape of a schedule: a ramp-up, repeats of steady_slots slots, and a
 * ramp-down. Executions count those of all stages, forward and backward.
 */
typedef struct ipu_schedule_info {
    uint32_t size;       /* sizeof(ipu_schedule_info), set by the caller */
    int32_t multiple_of; /* count must be a multiple of this */
    int32_t at_least;    /* and at least this */
    int64_t slots;
    int64_t ramp_up_slots, ramp_down_slots;
    int64_t steady_slots; /* slots of one repeat */
    int64_t repeats;
    int64_t ramp_up_executions, ramp_down_executions;
    int64_t executions;
} ipu_schedule_info;

/*
 * Plans a schedule. Returns IPU_ERR_ARGUMENT for a count that the schedule does
 * not allow, with the text that Graphcore's library has: "The number of
 * iterations ... must be a multiple of 8, but it is 12".
 */
int ipu_schedule_plan(const ipu_schedule_options *options,
                      ipu_schedule_info *info);

/* Returns the number of mini-batches whose activations wait between the forward
 * and the backward pass of a stage (0: the first), besides the one in work. */
int32_t ipu_schedule_stash(const ipu_schedule_options *options, int32_t stage);

typedef int32_t ipu_stage_kind;
enum {
    IPU_STAGE_FORWARD = 0,
    IPU_STAGE_BACKWARD = 1,
    IPU_STAGE_RECOMPUTE = 2, /* the forward pass again, for the backward pass */
    IPU_STAGE_UPDATE = 3,    /* the update of the weights */
    IPU_NUM_STAGE_KINDS = 4
};

/* A stage at work on a mini-batch. */
typedef struct ipu_schedule_entry {
    int32_t stage; /* 0: the first */
    ipu_stage_kind kind;
    int64_t mini_batch;
} ipu_schedule_entry;

/* Returns the entries of a slot, in the order in which an IPU runs them. Writes
 * at most capacity entries, and returns how many there are. */
int ipu_schedule_slot(const ipu_schedule_options *options, int64_t slot,
                      int32_t capacity, ipu_schedule_entry *entries);

/*
 * Prints a schedule, one slot after the other. Each letter is a stage: "a" is
 * the forward pass of the first stage, and the last letter its backward pass.
 * Each slot has as many characters as the schedule has offsets, with a dot for
 * an idle one. phase 0 is the ramp-up, 1 one repeat of the steady state, 2 the
 * ramp-down. Writes at most size bytes with the NUL, returns the length that
 * the text needs.
 */
int64_t ipu_schedule_print(const ipu_schedule_options *options, int32_t phase,
                           char *text, int64_t size);

/* --------------------------------------------------------------- pipelines */

enum { IPU_MAX_STAGES = 64, IPU_MAX_STAGE_TENSORS = 32 };

typedef struct ipu_pipeline ipu_pipeline;

/*
 * Builds a stage: from its inputs to its outputs, of which there may be
 * IPU_MAX_STAGE_TENSORS. Returns the number of outputs, or a negative status
 * of its own. ipu_pipeline_new calls it once. The variables that it makes live
 * on the stage's IPU; stages on the same IPU that make a variable of the same
 * name, dtype and shape share it. Variables that the loss depends on and that
 * the stage does not assign are trained.
 *
 * The inputs of the first stage are the arguments and then the tensors of the
 * infeed; the inputs of every other are the outputs of the stage before. A
 * stage must pass on what a later stage needs. The last stage of a training
 * pipeline has the loss among its outputs. In training, ipu_repeat adds its
 * body once for each iteration, so that it has derivatives; queues, remote
 * buffers and ipu_while are refused with IPU_ERR_ARGUMENT.
 */
typedef int (*ipu_stage_fn)(void *context, ipu_graph *graph, int32_t ninputs,
                            const ipu_tensor *inputs, ipu_tensor *outputs);

typedef struct ipu_stage {
    const char *name; /* borrowed during ipu_pipeline_new; NULL: a number */
    ipu_stage_fn build;
    void *context;  /* borrowed during ipu_pipeline_new */
    int32_t inputs; /* number of inputs; -1: all that the stage before gives */
    int32_t beside; /* 1: a concurrent stage, which works at the same time as
                       the stage before it, on the same inputs; the next stage
                       gets the outputs of one and then of the other */
} ipu_stage;

/*
 * Receives the outputs of the last stage, for each mini-batch in order, on the
 * thread that runs the pipeline. data has count outputs, valid during the call.
 * A negative return ends the run with IPU_ERR_CALLBACK.
 */
typedef int (*ipu_pipeline_sink_fn)(void *context, int32_t replica,
                                    int64_t mini_batch, int32_t count,
                                    const void *const *data);

/*
 * Builds the update of all trained variables of an IPU, with ipu_sgd for
 * example. It is called once for each IPU. gradients[i] has the accumulator's
 * dtype. outputs are those of the last stage for the last mini-batch, such as a
 * learning rate that the stages passed on. Variables that the function makes
 * belong to the IPU. Returns 0, or a negative status of its own.
 */
typedef int (*ipu_optimizer_fn)(void *context, ipu_graph *graph,
                                int32_t noutputs, const ipu_tensor *outputs,
                                int32_t count, const ipu_tensor *variables,
                                const ipu_tensor *gradients);

/*
 * Two functions that reduce gradients over several processes, of which the
 * device knows nothing.
 *
 * ready begins a reduction: the gradient of a variable (number and name are
 * those of ipu_pipeline_variable) is complete for all mini-batches of an
 * update, and averaged over the replicas. The callee owns data, count float32
 * elements, until wait returns; the optimizer then uses what data holds. ready
 * must not wait for other processes, since earlier stages have yet to run their
 * backward pass, which the reduction overlaps. It is called once for each
 * variable and update, from the last number to 0.
 *
 * wait returns when all reductions that were begun are complete. status 0 means
 * that all gradients of this update were given. A negative status, whose text
 * is ipu_last_error(), means that the run has failed and that the other
 * gradients will not follow: wait should tell the other processes, and return
 * when data is no longer in use. It is called once for each update, and once
 * more for a run that fails in the update itself, to say that the next one will
 * not come; no reduction is then under way.
 *
 * Both are called on the thread that runs the pipeline. A negative return ends
 * the run with IPU_ERR_CALLBACK; it is ignored for a run that has failed.
 */
typedef int (*ipu_ready_fn)(void *context, int32_t number, const char *variable,
                            float *data, int64_t count);
typedef int (*ipu_wait_fn)(void *context, int status);

/* Returns 1 if the variable should be trained, 0 if not. */
typedef int (*ipu_trained_fn)(void *context, const char *variable);

/* The way to recompute activations. Texts use the names of Graphcore's
 * RecomputationMode. */
typedef int32_t ipu_recompute;
enum {
    IPU_RECOMPUTE_AUTO = 0, /* interleaved if the schedule is sequential, else
                               the other */
    IPU_RECOMPUTE_THEN_BACKPROPAGATE = 1,
    IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED = 2
};

enum { IPU_ACCUMULATOR_SAME = -1 }; /* the variable's dtype */

/* Fill it with ipu_pipeline_options_init; then set the fields that differ. All
 * pointers are borrowed during ipu_pipeline_new, or, where it says "kept",
 * until the pipeline is freed. */
typedef struct ipu_pipeline_options {
    uint32_t size; /* sizeof(ipu_pipeline_options) */
    ipu_schedule schedule;
    int32_t nstages;
    int32_t nmappings; /* 0: consecutive stages are on neighbouring IPUs */
    const ipu_stage *stages;
    const int32_t *device_mapping; /* [nmappings]: the IPU of each stage */
    const ipu_system
        *system;          /* NULL: an M2000, or a Pod that is large enough */
    int64_t count;        /* mini-batches until the weights change */
    int64_t repeat_count; /* updates in one run: 1 */
    int64_t batch_serialization_iterations; /* number of elements that pass a
                                               stage one by one before the next
                                               stage begins: 1 */
    int32_t replicas; /* copies of the pipeline, whose gradients are averaged
                         before the weights change: 1 */
    int32_t narguments;
    const ipu_feed_tensor *arguments; /* tensors that are constant in a run */
    int32_t io_tiles;                 /* 1: streams overlap with stages */
    int32_t noutfeed_names;
    ipu_infeed *infeed;   /* kept; with the same number of replicas, or NULL */
    ipu_outfeed *outfeed; /* kept; with the same number of replicas, or NULL */
    const char *const *outfeed_names; /* names of outputs; NULL: numbers */
    ipu_pipeline_sink_fn sink;        /* used with or without an outfeed */
    void *sink_context;               /* kept */

    /* A pipeline with an optimizer trains. */
    ipu_optimizer_fn optimizer;
    void *optimizer_context;
    int32_t loss; /* which output of the last stage: 0; a float32 scalar */
    ipu_reduction reduction;
    ipu_trained_fn trained; /* NULL: all variables are trained */
    void *trained_context;
    ipu_dtype accumulator;             /* IPU_ACCUMULATOR_SAME */
    int32_t recompute;                 /* 1: activations are recomputed */
    ipu_accumulator_fn accumulator_of; /* chooses the dtype for each variable;
                                          NULL: accumulator is used for all */
    void *accumulator_context;
    ipu_recompute recompute_mode;
    int32_t continuous_updates; /* must be 0: not implemented */
    ipu_ready_fn ready;         /* reduces over processes, with wait; or NULL */
    ipu_wait_fn wait;
    void *exchange_context; /* context of ready and wait; kept */

    /* These choose what outfeed and sink receive. */
    int32_t outfeed_loss;       /* 1: the loss alone */
    int32_t accumulate_outfeed; /* 1: the sum over count mini-batches, once */
    int32_t noutfeed_mask;
    int32_t threads; /* 0: a thread for each IPU, at most one a core; 1: the
                        caller's thread alone */
    const int32_t *outfeed_mask; /* [outputs]: 1 leaves the output out */

    /* These move tensors to DRAM beside the chip. */
    ipu_offload offload_activations; /* OFF */
    ipu_offload offload_state; /* the optimizer's state: AUTO, which is ON for
                                  each IPU that is too full otherwise */
    ipu_offload offload_accumulators; /* OFF */
    ipu_offload offload_weights;      /* OFF */

    int32_t allow_out_of_memory; /* 1: a pipeline that does not fit is built
                                    too */
    int32_t record; /* 1: records the events of the last run, and measures the
                       time of runs and stages on this machine */
    /* 1: each replica keeps only its part of the optimizer's state, and does
     * only its part of an update: ceil(n / replicas) elements of a variable of
     * n. The optimizer function then gets parts of variables and gradients, as
     * vectors under the variables' names, and must work on them elementwise, as
     * SGD, momentum, Adam and AdamW do; the text of IPU_ERR_ARGUMENT names what
     * does not. All replicas keep variables of less than 128 bytes a replica.
     * The weights have the same bits as without this option. It cannot be used
     * with IPU_OFFLOAD_OFF for offload_state. */
    int32_t replicated_optimizer_state_sharding;
    int32_t reserved;
    double available_memory_proportion; /* for all stages, as in
                                           ipu_compile_options; 0: 0.6. A stage
                                           may set its own with
                                           ipu_available_memory_proportion */
} ipu_pipeline_options;

void ipu_pipeline_options_init(ipu_pipeline_options *options, size_t size);

/*
 * Builds the forward and backward pass of all stages and the update of the
 * weights, and compiles each for its IPU. The text of a failure names the
 * stage. Returns IPU_ERR_FULL if an IPU's variables, stashes and programs do
 * not fit together.
 */
int ipu_pipeline_new(const ipu_pipeline_options *options,
                     ipu_pipeline **pipeline);
void ipu_pipeline_free(ipu_pipeline *pipeline); /* NULL is accepted */

/* Sets an argument, by name; data is copied. Arguments are zero until set. */
int ipu_pipeline_argument(ipu_pipeline *pipeline, const char *name,
                          const void *data, size_t bytes);

/*
 * Write a whole variable to all replicas, or read it from one. name is that of
 * a variable of a stage or of the optimizer, or "w/accumulator" for the
 * gradient of a trained variable w.
 */
int ipu_pipeline_write(ipu_pipeline *pipeline, const char *name,
                       const void *data, size_t bytes);
int ipu_pipeline_read(const ipu_pipeline *pipeline, int32_t replica,
                      const char *name, void *data, size_t bytes);

/*
 * Places a variable of replica 0 ("w", or its gradient "w/accumulator") in this
 * memory of the host, of exactly `bytes` bytes, like ipu_engine_place, so that
 * the host can use it without a copy. The variable takes the elements that data
 * holds. data is borrowed until the pipeline is freed or the name is placed
 * elsewhere; NULL moves the variable back to the pipeline's own memory, with
 * its current elements. Call it between runs. Other replicas keep memory of
 * their own; ipu_pipeline_write, which accepts data, writes to all.
 *
 * Returns IPU_ERR_STATE for a variable that several IPUs have, such as the
 * optimizer's counters.
 */
int ipu_pipeline_place(ipu_pipeline *pipeline, const char *name, void *data,
                       size_t bytes);

/* Returns the name of trained variable number 0, 1, ..., in the order of the
 * stages, and NULL when there are no more. Each name comes once. It is borrowed
 * until the pipeline is freed. */
const char *ipu_pipeline_variable(const ipu_pipeline *pipeline, int32_t number);

/* Describes a variable, by a name that ipu_pipeline_read takes. shape must have
 * room for IPU_MAX_DIMS; outputs may be NULL. Returns the number of dimensions.
 */
int ipu_pipeline_variable_info(const ipu_pipeline *pipeline, const char *name,
                               ipu_dtype *dtype, int64_t *shape);

/* Describes variable number 0, 1, ... of all that a pipeline keeps from update
 * to update: weights, the state of the optimizer, counters. Each name comes
 * once, also if several IPUs have it, and can be read and written by
 * ipu_pipeline_read and ipu_pipeline_write. own is 0. Returns IPU_ERR_NAME if
 * there are not so many. */
int ipu_pipeline_state(const ipu_pipeline *pipeline, int32_t number,
                       ipu_variable_info *info);

/*
 * Runs count mini-batches and then updates the weights, repeat_count times.
 * Blocks until it is done, including waits for the infeed and for room in the
 * outfeed. Returns IPU_ERR_END if the infeed has ended, and IPU_ERR_CALLBACK if
 * a function of the caller's has failed. After a failure, whose text names
 * slot, stage and mini-batch, all variables are as the last update left them,
 * and the pipeline can run again.
 */
int ipu_pipeline_run(ipu_pipeline *pipeline);

/* Returns what the function that ended the last run returned; 0 if none did. */
int ipu_pipeline_callback_status(const ipu_pipeline *pipeline);

/* One stage of a pipeline; concurrent stages are counted separately. */
typedef struct ipu_pipeline_stage_info {
    uint32_t size;    /* sizeof(ipu_pipeline_stage_info), set by the caller */
    const char *name; /* borrowed until the pipeline is freed */
    int32_t position; /* position in the schedule */
    int32_t ipu;      /* IPU of replica 0 */
    int64_t forward_executions, backward_executions, recompute_executions;
    int64_t stash_depth; /* most mini-batches that waited, besides the one in
                            work */
    int64_t stash_bytes; /* bytes of activations kept for one mini-batch */
    int64_t sent_bytes;  /* bytes sent to other IPUs for one mini-batch, forward
                            and backward */
    int64_t forward_cycles, backward_cycles, recompute_cycles; /* each of one
                                                                  execution */
} ipu_pipeline_stage_info;

/* Returns stage number 0, 1, ... */
int ipu_pipeline_stage(const ipu_pipeline *pipeline, int32_t stage,
                       ipu_pipeline_stage_info *info);

/* One IPU of a pipeline. Bytes are those of the whole chip, unless the name
 * says tile. */
typedef struct ipu_pipeline_ipu_info {
    uint32_t size; /* sizeof(ipu_pipeline_ipu_info), set by the caller */
    int32_t ipu;
    int64_t variable_bytes;  /* weights, state and accumulators on the chip */
    int64_t stash_bytes;     /* activations that wait at a time */
    int64_t program_bytes;   /* most that one program needs in addition */
    int64_t streaming_bytes; /* bytes kept in DRAM */
    int64_t busy_cycles;     /* cycles since the pipeline was made */
    int64_t bytes_per_tile;  /* size of a tile's memory */
    int64_t tile_bytes;      /* bytes in use on the fullest tile */
    int64_t update_cycles;  /* cycles of an update without reducing gradients */
    int64_t offload_cycles; /* part of update_cycles: to and from DRAM */
    int64_t automatic_bytes;    /* part of streaming_bytes that is there because
                                   of IPU_OFFLOAD_AUTO */
    int64_t tile_bytes_without; /* what the fullest tile would use with these on
                                   the chip; 0: they are */
} ipu_pipeline_ipu_info;

/* Returns an IPU. number counts the IPUs of all replicas from 0 on. */
int ipu_pipeline_ipu(const ipu_pipeline *pipeline, int32_t number,
                     ipu_pipeline_ipu_info *info);

/* Totals since the pipeline was made. */
typedef struct ipu_pipeline_info {
    uint32_t size; /* sizeof(ipu_pipeline_info), set by the caller */
    int32_t stages, ipus, replicas;
    int32_t recompute; /* the mode in use; 0: none */
    int64_t mini_batches, updates, slots;
    int64_t exchanges;       /* reductions of a gradient between replicas */
    int64_t inter_ipu_bytes; /* bytes sent between stages */
    int64_t replica_bytes;   /* bytes that each replica sent to others */
    int64_t total_cycles;    /* cycles of slots and updates */
    int64_t compute_cycles;  /* part of total_cycles in which stages compute */
    int64_t exchange_cycles; /* cycles of exchange between stages */
    int64_t sync_cycles;
    int64_t update_cycles; /* cycles of updates and of reducing gradients */
    int64_t host_cycles;   /* cycles of streams that nothing overlaps */
    double idle_fraction;  /* mean fraction of slots' time that IPUs are idle */
    double seconds;        /* time of total_cycles on the chip */
} ipu_pipeline_info;

/* Returns the totals. */
int ipu_pipeline_stats(const ipu_pipeline *pipeline, ipu_pipeline_info *info);

/* One piece of work in the last run, with options.record. */
typedef struct ipu_pipeline_event {
    int32_t ipu;
    int32_t stage; /* -1: an update */
    ipu_stage_kind kind;
    int32_t replica;
    int64_t slot, mini_batch; /* numbers in the run; for an update the number of
                                 updates before it */
    int64_t start_cycles, cycles;
} ipu_pipeline_event;

/* Returns the events of the last run and their number. *events is borrowed
 * until the next run, or until the pipeline is freed. */
int64_t ipu_pipeline_events(const ipu_pipeline *pipeline,
                            const ipu_pipeline_event **events);

struct ipu_profile; /* ipu_report.h */

/* Adds to a profile all programs, named after stage and direction ("head
 * forward", "update on IPU 1"); with options.record also the events of the last
 * run, its cycles as a whole, and the measured times. */
int ipu_pipeline_profile(const ipu_pipeline *pipeline,
                         struct ipu_profile *profile);

#ifdef __cplusplus
}
#endif

#endif
