/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.h - the parts of a pipeline: the door of this room.
 *
 * A position is a place in the schedule, 0 to S - 1. Each has one or more
 * parts: stages that work concurrently. The buffers between positions are
 * rings, in which element e is at e modulo their capacity.
 */
#ifndef IPU_PIPELINE_PIPELINE_H
#define IPU_PIPELINE_PIPELINE_H

#include "base/error.h"
#include "engine/thread_pool.h"
#include "graph/graph.h"

/* Room for the name of a variable and a suffix; longer names are cut. */
enum { IPU__NAME_MAX = 512 };

/* A tensor at the boundary of a part. */
struct ipu__port {
    struct ipu__shape shape;
    int32_t tensor;      /* index in the joint graph */
    bool depends;        /* it depends on a trained variable */
    ipu_tensor gradient; /* derivative that is sent to the maker of an input */
};

/* A variable with the gradient that a part computes for it. */
struct ipu__trained {
    char *name; /* owned */
    struct ipu__shape shape;
    ipu_dtype accumulator;
    int32_t tensor; /* index in the joint graph */
    ipu_tensor gradient;
};

/* A tensor that goes from a part's forward program to its backward program. */
struct ipu__stash {
    int32_t tensor; /* index in the joint graph */
    size_t bytes;
};

struct ipu__stage_part {
    char *name;             /* owned */
    const ipu_stage *stage; /* borrowed during ipu_pipeline_new */
    int32_t position;
    int32_t ipu; /* number of the IPU in a replica */

    ipu_graph *joint; /* owned, during building: both directions */
    int32_t nforward; /* number of nodes that the user made */
    int32_t noutputs;
    struct ipu__port inputs[IPU_MAX_STAGE_TENSORS];
    struct ipu__port outputs[IPU_MAX_STAGE_TENSORS];
    bool sends[IPU_MAX_STAGE_TENSORS]; /* inputs whose gradient is sent back */
    int32_t ntrained, trained_capacity;
    struct ipu__trained *trained; /* owned */
    int32_t nstash, stash_capacity;
    struct ipu__stash *stash; /* owned */
    bool recomputes;

    ipu_executable *forward, *backward; /* owned; backward NULL: inference */
    ipu_executable *plain; /* owned; backward without recomputation */
    int64_t stash_bytes;   /* bytes of one element */
    int64_t forward_cycles, backward_cycles, recompute_cycles;
    int64_t forward_sends, backward_sends; /* bytes sent to other IPUs */
    int64_t forward_link, backward_link;   /* cycles of these transfers */
};

/* The work that a part of a replica has done. */
struct ipu__done {
    int64_t forwards, backwards, recomputes; /* executions */
    int64_t waiting, most;                   /* elements in the stash */
};

/* A place in the schedule. */
struct ipu__position {
    int32_t first_part, nparts;
    int32_t ninputs; /* inputs of each of its parts */
    int32_t noutputs;
};

/* A variable of an IPU, shared by all programs there. */
struct ipu__variable {
    char *name; /* owned */
    struct ipu__shape shape;
    size_t bytes;
    bool trained;
    bool staged;   /* a stage made it */
    bool advanced; /* a stage, or a loop or store in one, assigns it */
    bool saved;    /* a failed run may have changed it */
    bool resident; /* programs other than the update need it */
    bool first;    /* it is kept from update to update, and no chip before this
                      one has a variable of its name */
    /* index of the variable whose state this replica's share belongs to; -1:
     * each replica has all of it */
    int32_t share_of;
    int32_t part; /* the part that made it; -1: the update */
};

/* A variable of the optimiser that is divided between the replicas. */
struct ipu__state {
    char *name; /* owned */
    char *of;   /* owned: name of the trained variable */
};

/* The gradient of a trained variable, on the chip that has the variable. */
struct ipu__gradient {
    const char *name; /* borrowed from the chip's variable */
    int32_t chip;     /* index of the chip */
    int32_t variable,
        sum;          /* indices on the chip: the variable, its accumulator */
    int32_t position; /* first position that adds to it */
    int64_t share;    /* elements that a replica updates; 0: all */
    float *wide;      /* owned; a float16 accumulator as float32 */
    bool given;       /* it has been given to other processes, in this update */
};

struct ipu__chip {
    int32_t ipu; /* number of the IPU in a replica */
    int32_t nvariables, variable_capacity;
    struct ipu__variable *variables; /* owned */
    int32_t nstates, state_capacity;
    struct ipu__state *states; /* owned */
    ipu_executable *update;    /* owned; NULL: inference */
    int64_t update_cycles;
    int64_t variable_bytes, stash_bytes, program_bytes, streaming_bytes;
    int64_t tile_bytes;
    bool state_beside; /* optimiser state in streaming memory */
    /* the part of it that IPU_OFFLOAD_AUTO has moved */
    int64_t automatic_bytes;
    int64_t tile_bytes_without; /* bytes per tile without that move */
    int64_t offload_cycles;     /* cycles of an update for offloaded state */
};

struct ipu__stage_buffer {
    unsigned char *data; /* owned */
    size_t bytes, stride;
    int64_t capacity;
};

/* The memory of a variable in one copy of the pipeline. */
struct ipu__place {
    void *memory; /* owned */
    void *placed; /* borrowed memory used instead; or NULL */
    void *saved;  /* owned: the value after the last update, if a failed run may
                     have changed it; or NULL */
};

/* A replica's share of a trained variable and of its gradient, for an update;
 * NULL: no share. */
struct ipu__share {
    void *value, *gradient; /* owned */
};

/* One copy of the pipeline: memory and engines. */
struct ipu__copy {
    struct ipu__place **places;       /* owned, [chips][variables] */
    ipu_engine **forward, **backward; /* owned, [parts] */
    ipu_engine **update;              /* owned, [chips] */
    struct ipu__share *shares;        /* owned, [gradients] */
    struct ipu__stage_buffer (
        *carried)[IPU_MAX_STAGE_TENSORS]; /* owned, [positions + 1]: inputs of
                                             each */
    struct ipu__stage_buffer (
        *returned)[IPU_MAX_STAGE_TENSORS]; /* owned, [parts] */
    struct ipu__stage_buffer **stashed;    /* owned, [parts][stash] */
    void **outfeed;                        /* owned, [outputs]: sums */
    struct ipu__done *done;                /* owned, [parts] */
};

/* A task of a chip in a slot. */
struct ipu__task {
    int32_t part;
    ipu_stage_kind kind;
    int64_t mini_batch;
};

/* A chip of a replica, and its tasks in a slot. */
struct ipu__chip_lane {
    int32_t copy, chip;
    int32_t ntasks;
    struct ipu__task *tasks; /* owned, [2 * parts] */
    int64_t busy_cycles;     /* cycles of work in all slots */
    int status;
    int32_t failed; /* index of the failed task */
    int callback_status;
    char *message; /* owned, IPU__EXPLANATION_MAX */
};

struct ipu_pipeline {
    ipu_pipeline_options options; /* options without their arrays */
    ipu_schedule_options schedule;
    ipu_schedule_info plan;
    ipu_system system;
    ipu_compile_options compiling; /* reports progress */
    struct ipu__plans *plans;      /* borrowed while measuring; or NULL */
    bool training;
    int32_t npositions, nparts, nchips;
    int32_t ipus_per_copy;
    struct ipu__position positions[IPU_MAX_STAGES];
    struct ipu__stage_part *parts; /* owned */
    struct ipu__chip *chips;       /* owned */
    char **argument_names;         /* owned, [arguments], each owned */
    bool kept_back[IPU_MAX_STAGE_TENSORS];
    struct ipu__copy *copies;        /* owned, [replicas] */
    struct ipu__gradient *gradients; /* owned: gradients of trained variables */
    int32_t ngradients;
    bool waited; /* it has waited for other processes, in this update */
    struct ipu__chip_lane *lanes; /* owned, [replicas * chips] */
    int32_t nlanes;
    ipu_infeed *attached_infeed; /* one reference to each; they are used */
    ipu_outfeed *attached_outfeed;
    struct ipu__thread_pool
        *pool;                  /* owned; NULL: the caller's thread does all */
    ipu_pipeline_event *events; /* owned */
    int64_t nevents, event_capacity;
    ipu_pipeline_info info;
    ipu_pipeline_info began;    /* info before the last run */
    struct ipu__counts *counts; /* owned: counts of runs, if recorded */
    int64_t idle_cycles;        /* idle cycles of all chips while stages work */
    int64_t work_cycles;        /* all cycles of these chips meanwhile */
    int callback_status;        /* user's status that ended the last run */
    bool running;
};

/* Puts the part's name in front of the last error. Returns status. */
int ipu__part_fail(const struct ipu__stage_part *part, int status);

/* Allocates zeroed host memory in whole cache lines, for bytes; returns NULL
 * without memory. */
void *ipu__pipeline_allocate(size_t bytes);

/* backward.c: compiles a program for an IPU of the system, even if it does not
 * fit. */
int ipu__pipeline_compile(const struct ipu_pipeline *pipeline,
                          const ipu_graph *graph, ipu_executable **executable);

/* options.c: refuses options that contradict each other. */
int ipu__pipeline_check(const ipu_pipeline_options *options);
/* mapping.c: chooses the IPU of each part. */
int ipu__pipeline_map(struct ipu_pipeline *pipeline,
                      const ipu_pipeline_options *options);
/* stage.c: makes the parts' forward graphs, position after position. */
int ipu__pipeline_stages(struct ipu_pipeline *pipeline);
/* backward.c: makes their backward graphs, and the executables. */
int ipu__pipeline_backward(struct ipu_pipeline *pipeline);
/* update.c: makes the program of each chip's update. */
int ipu__pipeline_updates(struct ipu_pipeline *pipeline);
/* variables.c: writes "w/accumulator" into name, which has IPU__NAME_MAX. */
void ipu__accumulator_name(const char *variable, char *name);
bool ipu__is_accumulator(const char *name);
/* variables.c: finds the variables of each chip. */
int ipu__pipeline_variables(struct ipu_pipeline *pipeline);
struct ipu__variable *ipu__chip_variable(const struct ipu__chip *chip,
                                         const char *name);
/* gradients.c: lists the accumulators, in training. */
int ipu__gradients_list(struct ipu_pipeline *pipeline);
void ipu__gradients_free(struct ipu_pipeline *pipeline);
/* Begins a new update. */
void ipu__gradients_begin(struct ipu_pipeline *pipeline);
/* Sums, after a slot, the complete gradients over the replicas, and gives them
 * to other processes. */
int ipu__gradients_give(struct ipu_pipeline *pipeline);
/* Waits, after all gradients have been given, for the sums from other
 * processes. */
int ipu__gradients_wait(struct ipu_pipeline *pipeline);
/* Reports a failed run to other processes. Keeps the last error. */
void ipu__gradients_abandon(struct ipu_pipeline *pipeline, int status);
/* shares.c: returns the elements of a trained variable that each replica
 * updates if the replicas share the optimiser's state; 0: all update all of
 * it. */
int64_t ipu__share_elements(const struct ipu_pipeline *pipeline,
                            const struct ipu__shape *shape);
/* Writes the name of the update's input for a replica's share of a gradient.
 * name has IPU__NAME_MAX. */
void ipu__share_name(const char *variable, char *name);
/* Checks that those of count variables that are shared (shares not 0) are only
 * used element by element, and notes the chip's states. Returns
 * IPU_ERR_ARGUMENT otherwise. */
int ipu__shares_check(const ipu_graph *graph, int32_t count,
                      const ipu_tensor *variables, const int64_t *shares,
                      struct ipu__chip *chip);
/* Returns a replica's share of a shared value; NULL if it is not shared. */
void *ipu__share_value(const struct ipu_pipeline *pipeline,
                       const struct ipu__copy *copy, int32_t chip,
                       const char *name);
int ipu__shares_new(const struct ipu_pipeline *pipeline,
                    struct ipu__copy *copy);
void ipu__shares_free(const struct ipu_pipeline *pipeline,
                      struct ipu__copy *copy);
/* Lets each replica take its share of values and gradients before an update. */
void ipu__shares_take(struct ipu_pipeline *pipeline);
/* Distributes all shares to all replicas after an update. */
void ipu__shares_gather(struct ipu_pipeline *pipeline);

/* account.c: counts bytes and cycles. Returns IPU_ERR_FULL if the pipeline does
 * not fit. */
int ipu__pipeline_account(struct ipu_pipeline *pipeline);
/* copy.c: makes the memory and the engines of the replicas, which count if runs
 * are recorded. */
int ipu__pipeline_copies(struct ipu_pipeline *pipeline);
void ipu__pipeline_copies_free(struct ipu_pipeline *pipeline);
void *ipu__ring_at(const struct ipu__stage_buffer *ring, int64_t element);
/* Moves a variable of a copy to that memory; NULL: back to the copy's memory.
 */
int ipu__copy_place(const struct ipu_pipeline *pipeline, struct ipu__copy *copy,
                    int32_t chip, int32_t variable, void *data);
/* Returns the memory of a variable. */
void *ipu__copy_variable(const struct ipu__copy *copy, int32_t chip,
                         int32_t variable);

/* copy.c: makes the lanes of all replicas. */
int ipu__pipeline_lanes(struct ipu_pipeline *pipeline);

/* run.c: gives every IPU its tasks in a slot. */
int ipu__hand_out(struct ipu_pipeline *pipeline, int64_t slot);

/* new.c: the cost of a pipeline that is not run and has no memory for its
 * tensors, whether it fits or not. */
struct ipu__pipeline_cost {
    int64_t tile_bytes; /* bytes on the fullest tile of all IPUs */
    int64_t remote_bytes;
    int64_t cycles; /* cycles from one update to the next */
    /* the part of these that transfers for an update take, on the chip with
     * the most */
    int64_t streaming_cycles;
};

/* Measures a pipeline. compiling: reports progress; plans: known plans of
 * products, or NULL. */
int ipu__pipeline_measure(const ipu_pipeline_options *options,
                          const ipu_compile_options *compiling,
                          struct ipu__plans *plans,
                          struct ipu__pipeline_cost *cost);

/* task.c: runs one task of one chip. */
int ipu__task_run(struct ipu_pipeline *pipeline, struct ipu__chip_lane *lane,
                  const struct ipu__task *task);
/* tally.c: counts the cost of a slot, or of an update, after it. */
int ipu__tally_slot(struct ipu_pipeline *pipeline, int64_t slot);
int ipu__tally_update(struct ipu_pipeline *pipeline, int64_t slot,
                      int64_t repeat);

#endif
