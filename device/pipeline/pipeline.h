/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.h - what a pipeline is made of: the door of this room.
 *
 * A position is a place in the schedule, 0 to S - 1. At each are one or more
 * parts, stages that work side by side. Buffers between them are rings, in
 * which element e lies at e modulo their capacity.
 */
#ifndef IPU_PIPELINE_PIPELINE_H
#define IPU_PIPELINE_PIPELINE_H

#include "base/error.h"
#include "engine/thread_pool.h"
#include "graph/graph.h"

/* Room for the name of a variable and what is put behind it; longer ones are
 * cut. */
enum { IPU__NAME_MAX = 512 };

/* A tensor at the border of a part. */
struct ipu__port {
    struct ipu__shape shape;
    int32_t tensor;      /* in the joint graph */
    bool depends;        /* on something that is trained */
    ipu_tensor gradient; /* of an input: what its maker gets back, or invalid */
};

/* A variable with the gradient that a part makes of it. */
struct ipu__trained {
    char *name; /* owned */
    struct ipu__shape shape;
    ipu_dtype accumulator;
    int32_t tensor; /* in the joint graph */
    ipu_tensor gradient;
};

/* A tensor that goes from a part's way there to its way back. */
struct ipu__stash {
    int32_t tensor; /* in the joint graph */
    size_t bytes;
};

struct ipu__stage_part {
    char *name;             /* owned */
    const ipu_stage *stage; /* borrowed during ipu_pipeline_new */
    int32_t position;
    int32_t ipu; /* in a replica */

    ipu_graph *joint; /* owned, while building: there, and back */
    int32_t nforward; /* of its nodes, those of the user */
    int32_t noutputs;
    struct ipu__port inputs[IPU_MAX_STAGE_TENSORS];
    struct ipu__port outputs[IPU_MAX_STAGE_TENSORS];
    bool sends[IPU_MAX_STAGE_TENSORS]; /* the gradient of an input */
    int32_t ntrained, trained_capacity;
    struct ipu__trained *trained; /* owned */
    int32_t nstash, stash_capacity;
    struct ipu__stash *stash; /* owned */
    bool recomputes;

    ipu_executable *forward, *backward; /* owned; backward NULL: inference */
    ipu_executable *plain; /* owned; backward, had it not to recompute */
    int64_t stash_bytes;   /* of one element */
    int64_t forward_cycles, backward_cycles, recompute_cycles;
    int64_t forward_sends, backward_sends; /* bytes to other IPUs */
    int64_t forward_link, backward_link;   /* cycles of that */
};

/* What a part of a replica has done. */
struct ipu__done {
    int64_t forwards, backwards, recomputes; /* executions */
    int64_t waiting, most;                   /* elements in the stash */
};

/* A place in the schedule. */
struct ipu__position {
    int32_t first_part, nparts;
    int32_t ninputs; /* of each of its parts */
    int32_t noutputs;
};

/* A variable of an IPU, shared by all programs there. */
struct ipu__variable {
    char *name; /* owned */
    struct ipu__shape shape;
    size_t bytes;
    bool trained;
    bool staged;      /* a stage made it */
    bool advanced;    /* a stage assigns it, or a loop or a store in it */
    bool saved;       /* a run that fails may have changed it */
    bool resident;    /* programs other than the update need it */
    int32_t share_of; /* the number + 1 of the variable of whose state it is a
                         replica's share; 0: each replica has all of it */
    int32_t part;     /* that made it; -1: the update */
};

/* A variable of the optimizer's of which each replica has its share. */
struct ipu__state {
    char *name; /* owned */
    char *of;   /* owned: the trained variable */
};

/* Of a trained variable, on the chip that has it. */
struct ipu__gradient {
    const char *name;      /* borrowed from the chip's variable */
    int32_t chip;          /* number */
    int32_t variable, sum; /* numbers on the chip: it, and its accumulator */
    int32_t position;      /* the first whose way back adds to it */
    int64_t share;         /* elements that a replica updates; 0: all of them */
    float *wide; /* owned; of a half accumulator, for other processes */
    bool given;  /* to them, in this update */
};

struct ipu__chip {
    int32_t ipu; /* in a replica */
    int32_t nvariables, variable_capacity;
    struct ipu__variable *variables; /* owned */
    int32_t nstates, state_capacity;
    struct ipu__state *states; /* owned */
    ipu_executable *update;    /* owned; NULL: inference */
    int64_t update_cycles;
    int64_t variable_bytes, stash_bytes, program_bytes, streaming_bytes;
    int64_t tile_bytes;
    bool state_beside;          /* the optimiser's state lies beside the chip */
    int64_t automatic_bytes;    /* of it, because the chip would be too full */
    int64_t tile_bytes_without; /* ... which then had so many on a tile */
    int64_t offload_cycles;     /* of an update: to move what lies beside it */
};

struct ipu__stage_buffer {
    unsigned char *data; /* owned */
    size_t bytes, stride;
    int64_t capacity;
};

/* Of a variable, in one copy of the pipeline. */
struct ipu__place {
    void *memory; /* owned */
    void *placed; /* borrowed: where it lives instead; NULL: nowhere */
    void *saved;  /* owned: as the last update left it, if a run that fails may
                     have changed it; or NULL */
};

/* A replica's share of a trained variable and of its gradient, for an update;
 * NULL: it has none. */
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
        *carried)[IPU_MAX_STAGE_TENSORS]; /* owned, [positions +
        1]: inputs of each, and what the last makes */
    struct ipu__stage_buffer (
        *returned)[IPU_MAX_STAGE_TENSORS]; /* owned, [parts] */
    struct ipu__stage_buffer **stashed;    /* owned, [parts][stash] */
    void **outfeed;                        /* owned, [outputs]: sums */
    struct ipu__done *done;                /* owned, [parts] */
};

/* Something that a chip does in a slot. */
struct ipu__task {
    int32_t part;
    ipu_stage_kind kind;
    int64_t mini_batch;
};

/* A chip of a replica, and what it does in a slot. */
struct ipu__chip_lane {
    int32_t copy, chip;
    int32_t ntasks;
    struct ipu__task *tasks; /* owned, [2 * parts] */
    int64_t busy_cycles;     /* in all */
    int status;
    int32_t failed; /* the task */
    int callback_status;
    char *message; /* owned, IPU__EXPLANATION_MAX */
};

struct ipu_pipeline {
    ipu_pipeline_options options; /* its arrays are not kept */
    ipu_schedule_options schedule;
    ipu_schedule_info plan;
    ipu_system system;
    ipu_compile_options compiling; /* who is told how far that is */
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
    struct ipu__gradient *gradients; /* owned: of trained variables */
    int32_t ngradients;
    bool waited;                  /* for other processes, in this update */
    struct ipu__chip_lane *lanes; /* owned, [replicas * chips] */
    int32_t nlanes;
    ipu_infeed *attached_infeed; /* a share of each, and used */
    ipu_outfeed *attached_outfeed;
    struct ipu__thread_pool
        *pool; /* owned; NULL: the caller's thread does it all */
    ipu_pipeline_event *events; /* owned */
    int64_t nevents, event_capacity;
    ipu_pipeline_info info;
    ipu_pipeline_info began;    /* as info was when the last run began */
    struct ipu__counts *counts; /* owned: of runs, if they are recorded */
    int64_t idle_cycles;        /* of all chips, while stages are at work */
    int64_t work_cycles;        /* ... of which there were */
    int callback_status;        /* what ended the last run, of the user's */
    bool running;
};

/* The last error, with the part that it is about before it. */
int ipu__part_fail(const struct ipu__stage_part *part, int status);

/* Bytes that a cycle-free copy in host memory needs, in whole cache lines;
 * NULL if there is none left. Zeroed. */
void *ipu__pipeline_allocate(size_t bytes);

/* backward.c: for an IPU of the system, even if it does not fit. */
int ipu__pipeline_compile(const struct ipu_pipeline *pipeline,
                          const ipu_graph *graph, ipu_executable **executable);

/* options.c: what does not go together. */
int ipu__pipeline_check(const ipu_pipeline_options *options);
/* mapping.c: which part is on which IPU. */
int ipu__pipeline_map(struct ipu_pipeline *pipeline,
                      const ipu_pipeline_options *options);
/* stage.c: the parts' graphs there, position after position. */
int ipu__pipeline_stages(struct ipu_pipeline *pipeline);
/* backward.c: their graphs back, and executables. */
int ipu__pipeline_backward(struct ipu_pipeline *pipeline);
/* update.c: what becomes of the weights, chip after chip. */
int ipu__pipeline_updates(struct ipu_pipeline *pipeline);
/* variables.c: "w/accumulator" into name, which has IPU__NAME_MAX. */
void ipu__accumulator_name(const char *variable, char *name);
/* variables.c: which variables there are on which chip. */
int ipu__pipeline_variables(struct ipu_pipeline *pipeline);
struct ipu__variable *ipu__chip_variable(const struct ipu__chip *chip,
                                         const char *name);
/* gradients.c: what becomes of accumulators. List them, in training. */
int ipu__gradients_list(struct ipu_pipeline *pipeline);
void ipu__gradients_free(struct ipu_pipeline *pipeline);
/* An update begins anew. */
void ipu__gradients_begin(struct ipu_pipeline *pipeline);
/* A slot is done: those that are complete now are added up over the replicas
 * and given to other processes. */
int ipu__gradients_give(struct ipu_pipeline *pipeline);
/* All have been given: those of other processes are there. */
int ipu__gradients_wait(struct ipu_pipeline *pipeline);
/* The run has failed: tell them. The last error stays. */
void ipu__gradients_abandon(struct ipu_pipeline *pipeline, int status);
/* shares.c: elements of a trained variable that each replica updates, if they
 * share the optimizer's state; 0: all keep all of it. */
int64_t ipu__share_elements(const struct ipu_pipeline *pipeline,
                            const struct ipu__shape *shape);
/* The update's input that has a replica's share of a gradient. name has
 * IPU__NAME_MAX. */
void ipu__share_name(const char *variable, char *name);
/* Of count variables those with shares (others: 0) are worked on element by
 * element alone; or IPU_ERR_ARGUMENT. Notes the chip's states. */
int ipu__shares_check(const ipu_graph *graph, int32_t count,
                      const ipu_tensor *variables, const int64_t *shares,
                      struct ipu__chip *chip);
/* The share of a value that is shared; NULL: it is none. */
void *ipu__share_value(const struct ipu_pipeline *pipeline,
                       const struct ipu__copy *copy, int32_t chip,
                       const char *name);
int ipu__shares_new(const struct ipu_pipeline *pipeline,
                    struct ipu__copy *copy);
void ipu__shares_free(const struct ipu_pipeline *pipeline,
                      struct ipu__copy *copy);
/* Before an update: each replica takes its share of values and gradients. */
void ipu__shares_take(struct ipu_pipeline *pipeline);
/* After it: all replicas get the shares of all. */
void ipu__shares_gather(struct ipu_pipeline *pipeline);

/* account.c: bytes and cycles; IPU_ERR_FULL. */
int ipu__pipeline_account(struct ipu_pipeline *pipeline);
/* copy.c: memory and engines of the replicas, which count where runs are
 * recorded. */
int ipu__pipeline_copies(struct ipu_pipeline *pipeline);
void ipu__pipeline_copies_free(struct ipu_pipeline *pipeline);
void *ipu__ring_at(const struct ipu__stage_buffer *ring, int64_t element);
/* A variable of a copy lives there from now on; NULL: in its own memory. */
int ipu__copy_place(const struct ipu_pipeline *pipeline, struct ipu__copy *copy,
                    int32_t chip, int32_t variable, void *data);
/* Where a variable lives. */
void *ipu__copy_variable(const struct ipu__copy *copy, int32_t chip,
                         int32_t variable);

/* copy.c: who does what, of all replicas. */
int ipu__pipeline_lanes(struct ipu_pipeline *pipeline);

/* run.c: give every IPU its tasks in a slot. */
int ipu__hand_out(struct ipu_pipeline *pipeline, int64_t slot);

/* new.c: a pipeline that is not run, without memory for its tensors; whether
 * it fits or not. */
struct ipu__pipeline_cost {
    int64_t tile_bytes; /* on the fullest tile of all IPUs */
    int64_t remote_bytes;
    int64_t cycles;           /* from one update to the next */
    int64_t streaming_cycles; /* of these, on the chip that has most, what is
                                 moved for an update */
};

/* compiling: who is told how far it is; plans: of products that are known, or
 * NULL. */
int ipu__pipeline_measure(const ipu_pipeline_options *options,
                          const ipu_compile_options *compiling,
                          struct ipu__plans *plans,
                          struct ipu__pipeline_cost *cost);

/* task.c: one thing that one chip does. */
int ipu__task_run(struct ipu_pipeline *pipeline, struct ipu__chip_lane *lane,
                  const struct ipu__task *task);
/* tally.c: what a slot, an update cost, once they are done. */
int ipu__tally_slot(struct ipu_pipeline *pipeline, int64_t slot);
int ipu__tally_update(struct ipu_pipeline *pipeline, int64_t slot,
                      int64_t repeat);

#endif
