/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_training.h - larger batches and larger models than a chip has room for:
 * gradients accumulated over several runs, optimiser state in the memory
 * beside the chip. Included by ipu.h.
 *
 * The update region. Some of a program need not run each time: what an
 * optimiser makes of the gradients of count mini-batches runs in every
 * count-th run only (or, within a loop, iteration). A node belongs to the
 * region if it depends on a tensor of ipu_accumulate, or was built between
 * ipu_update_begin and ipu_update_end. In the other runs its steps are passed
 * over: variables that it assigns stay, its host calls are not made, its
 * outputs leave the host's memory as it is. The graph counts mini-batches in a
 * variable, "update/<count>/mini_batch"; a run that fails does not count.
 *
 * Builders here keep their failures in the graph, as those of ipu.h do.
 */
#ifndef IPU_H
#include "ipu.h" /* ipu.h includes this file after those that it needs */
#elif !defined(IPU_TRAINING_H)
#define IPU_TRAINING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ----------------------------------------------------- the update region */

/* What is built from here on to ipu_update_end runs in every count-th run
 * only. A graph may have several regions, of different counts, but nothing
 * may depend on two of them. IPU_ERR_STATE if one has begun already; count: 1
 * to 2^20. */
int ipu_update_begin(ipu_graph *graph, int32_t count);
int ipu_update_end(ipu_graph *graph);

/* The same, and only if condition, an int32 scalar that is computed in each
 * run, is not 0. */
int ipu_update_begin_if(ipu_graph *graph, int32_t count, ipu_tensor condition);

/* The count of mini-batches with which the graph updates: the smallest number
 * of runs, or of iterations, after which all its regions have run a whole
 * number of times. 1 if it has none. Negative: the graph is NULL. */
int ipu_update_count(const ipu_graph *graph);

/*
 * For what runs a program several times: IPU_ERR_STATE unless that many
 * iterations end with an update, so that no gradients are left over. where
 * names the loop, for the message.
 */
int ipu_update_check_iterations(const ipu_graph *graph, const char *where,
                                int64_t iterations);

/* For what accumulates gradients itself, as a pipeline does: IPU_ERR_STATE if
 * the graph has an update region of count 2 or more. */
int ipu_update_check_absent(const ipu_graph *graph, const char *where);

/* ----------------------------------------------------------- accumulation */

/* What the gradients g of mini-batches 0 to count - 1 become. */
typedef int32_t ipu_reduction;
enum {
    IPU_REDUCTION_SUM = 0,         /* acc + g */
    IPU_REDUCTION_MEAN = 1,        /* acc + g / count */
    IPU_REDUCTION_RUNNING_MEAN = 2 /* acc n / (n + 1) + g / (n + 1): the mean
                                      of those so far, so that nothing grows
                                      with their number */
};

/* "SUM", "MEAN", "RUNNING_MEAN"; NULL if it is none. */
const char *ipu_reduction_name(ipu_reduction reduction);

/* The reduction of a name, in capitals or not. IPU_ERR_NAME with the names
 * that there are. */
int ipu_reduction_parse(const char *name, ipu_reduction *reduction);

/* The dtype in which the gradients of a variable of this dtype are
 * accumulated. Called while the graph is built. */
typedef ipu_dtype (*ipu_accumulator_fn)(void *context, const char *variable,
                                        ipu_dtype dtype);

/* Where variables lie. */
typedef int32_t ipu_offload;
enum {
    IPU_OFFLOAD_AUTO = 0, /* what only the update region uses, beside the chip,
                             if there is memory there and the program fits so,
                             and does not fit otherwise; else on the chip */
    IPU_OFFLOAD_ON = 1,   /* beside the chip, or the program does not compile */
    IPU_OFFLOAD_OFF = 2   /* on the chip */
};

typedef struct ipu_accumulation_options {
    uint32_t size;           /* sizeof(ipu_accumulation_options) */
    ipu_reduction reduction; /* SUM */
    /* The accumulator's dtype: that of the variable if both are NULL; the
     * function is asked if there is one. */
    const ipu_dtype *dtype;
    ipu_accumulator_fn choose;
    void *context; /* borrowed during the call */
    int32_t cast;  /* 1: the result is cast back to the variable's dtype */
    ipu_offload offload; /* of the accumulator: ipu_offload_variable */
} ipu_accumulation_options;

/*
 * Accumulate the variable's gradient over count mini-batches. The result is
 * that of all of them, of the accumulator's dtype, and whatever depends on it
 * runs in every count-th run only: give it to an optimiser. An optimiser takes
 * gradients of its variable's dtype: where the accumulator's is another, set
 * cast.
 *
 * The accumulator is a variable, the variable's name with "/accumulator". It
 * begins anew with the first mini-batch after an update. options NULL: the
 * sum, in the variable's dtype.
 */
ipu_tensor ipu_accumulate(ipu_graph *graph, ipu_tensor variable,
                          ipu_tensor gradient, int32_t count,
                          const ipu_accumulation_options *options);

/* --------------------------------------------------------- recomputation */

/*
 * Whether derivatives that are asked for from here on (ipu_gradients) read
 * activations that are computed again in the backward pass, instead of those
 * of the forward pass, which need not be kept then: 0 or 1. Gradients are the
 * same, bit for bit. Computed again is what lies before the last checkpoint,
 * from the checkpoint before it or from what the host gives. Without
 * checkpoints of the program's, some are chosen.
 */
int ipu_allow_recompute(ipu_graph *graph, int32_t allow);

/* Keep a tensor where activations are computed again. Returns the tensor;
 * without ipu_allow_recompute it changes nothing. */
ipu_tensor ipu_recomputation_checkpoint(ipu_graph *graph, ipu_tensor tensor);

/* ------------------------------------------------------------ optimisers */

typedef int32_t ipu_optimizer_kind;
enum {
    IPU_OPTIMIZER_SGD = 0, /* with momentum or without */
    IPU_OPTIMIZER_ADAM = 1,
    IPU_OPTIMIZER_ADAMW = 2,
    IPU_OPTIMIZER_LAMB = 3
};

/* One of the optimisers of ipu.h. */
typedef struct ipu_optimizer {
    uint32_t size; /* sizeof(ipu_optimizer) */
    ipu_optimizer_kind kind;
    ipu_tensor rate; /* a float32 scalar */
    int32_t reserved;
    const char *step;           /* name of the variable that counts updates;
                                   NULL: "optimizer/step"; not of SGD */
    const ipu_sgd_options *sgd; /* borrowed during the call; NULL: usual */
    const ipu_adam_options *adam;
} ipu_optimizer;

typedef struct ipu_update_options {
    uint32_t size;       /* sizeof(ipu_update_options) */
    ipu_offload offload; /* of variables that only the update uses */
    /* 1: no update is made if condition, an int32 scalar that is computed in
     * each run, was 0 in one of the mini-batches. */
    int32_t conditional;
    ipu_tensor condition;
    int64_t minimum_remote_bytes;          /* smaller ones stay; 0: 128 */
    ipu_accumulation_options accumulation; /* its size may be 0: the usual */
    ipu_offload offload_weights; /* of the variables: ipu_offload_variable */
    int32_t reserved;
} ipu_update_options;

/*
 * Update nvariables variables by their gradients, accumulated over
 * mini_batches runs. The optimiser's state is kept beside the chip if options
 * say so. options NULL: the sums, offload AUTO. Within a loop its iterations
 * must be a multiple of mini_batches (ipu_update_check_iterations).
 */
int ipu_accumulating_optimizer(ipu_graph *graph, const ipu_optimizer *optimizer,
                               int32_t nvariables, const ipu_tensor *variables,
                               const ipu_tensor *gradients,
                               int32_t mini_batches,
                               const ipu_update_options *options);

/* The first of these: SGD and momentum only, others are IPU_ERR_ARGUMENT; of
 * one mini-batch it is the optimiser itself. */
int ipu_accumulating_optimizer_v1(
    ipu_graph *graph, const ipu_optimizer *optimizer, int32_t nvariables,
    const ipu_tensor *variables, const ipu_tensor *gradients,
    int32_t mini_batches, const ipu_update_options *options);

/* Each run, without an update region. */
int ipu_optimize(ipu_graph *graph, const ipu_optimizer *optimizer,
                 int32_t nvariables, const ipu_tensor *variables,
                 const ipu_tensor *gradients);

/* ----------------------------------------------------------- loss scaling */

/* Those of AutomaticLossScalingOptimizer; 0 stands for what is in brackets. */
typedef struct ipu_loss_scaling_options {
    uint32_t size;            /* sizeof(ipu_loss_scaling_options) */
    int32_t update_frequency; /* runs from change to change [8] */
    double initial;           /* the first scale [1] */
    double increase;          /* what it is multiplied by [2] ... */
    double decrease;          /* ... if gradients overflow [0.5] */
    double maximum;           /* it stays below [32768] */
    double ratio_threshold;   /* of gradients that overflow, above which it
                                 decreases [10e-6] */
    int32_t latest_only;      /* 1: of the run before the change alone, not of
                                 all since the last one */
    int32_t widen;            /* 1: gradients come back in float32 */
} ipu_loss_scaling_options;

/* What it is made of, in a run. */
typedef struct ipu_loss_scaling {
    uint32_t size;        /* sizeof(ipu_loss_scaling), set by the caller */
    ipu_tensor scale;     /* float32 scalar */
    ipu_tensor overflows; /* float32 scalar: elements of gradients that did */
    ipu_tensor finite;    /* int32 scalar: 1 if none did */
} ipu_loss_scaling;

/*
 * ipu_gradients of the loss times a scale, which are divided by it: small
 * gradients are then no zeros in float16. The scale grows while gradients have
 * room, and falls when more than a share of their elements is 65504, the
 * largest float16, or above, infinite or no number. It is a variable, name
 * with "/scale" (0 before the first run: the initial one); beside it are
 * "/overflows" and "/runs" since it was last looked at.
 *
 * An update by gradients that are not finite spoils the weights: give finite to
 * ipu_update_options as condition. options and scaling may be NULL.
 */
int ipu_scaled_gradients(ipu_graph *graph, const char *name, ipu_tensor loss,
                         int32_t count, const ipu_tensor *wrt,
                         const ipu_loss_scaling_options *options,
                         ipu_tensor *gradients, ipu_loss_scaling *scaling);

/* ------------------------------------------------- clipping, learning rates */

/* Replace gradients: each element is brought within [-limit, limit]; NaN
 * stays. */
int ipu_clip_by_value(ipu_graph *graph, int32_t count, ipu_tensor *gradients,
                      double limit);

/* Replace gradients by themselves times limit / length if their length, the
 * square root of the sum of the squares of all elements, is above limit; by NaN
 * if it is none. Computed in float32. norm, which may be NULL: the length. */
int ipu_clip_by_global_norm(ipu_graph *graph, int32_t count,
                            ipu_tensor *gradients, double limit,
                            ipu_tensor *norm);

typedef int32_t ipu_rate_kind;
enum {
    IPU_RATE_CONSTANT = 0,
    IPU_RATE_LINEAR = 1,      /* in a straight line to final_rate */
    IPU_RATE_COSINE = 2,      /* in half a wave */
    IPU_RATE_EXPONENTIAL = 3, /* by the same factor in each step */
    IPU_RATE_INVERSE_SQRT = 4 /* times the root of warmup / (step + 1) */
};

typedef struct ipu_rate_options {
    uint32_t size; /* sizeof(ipu_rate_options) */
    ipu_rate_kind kind;
    double rate;       /* when it has warmed up */
    double final_rate; /* in the last of the steps, and after it */
    int64_t warmup;    /* first steps, in which it rises in a straight line:
                          rate / warmup, 2 rate / warmup, ... */
    int64_t steps;     /* in all; CONSTANT and INVERSE_SQRT have no last one */
} ipu_rate_options;

/* A learning rate, a float32 scalar, by the step, an int32 scalar: ipu_counter;
 * one of an update region, if updates are to count. */
ipu_tensor ipu_rate(ipu_graph *graph, ipu_tensor step,
                    const ipu_rate_options *options);

/* --------------------------------------------------------------- offload */

/*
 * Where the variables lie that only the update region of that count uses, in
 * the region that begins with ipu_update_begin or ipu_accumulate: those of at
 * least minimum_bytes (0: 128) are loaded when the region needs them and
 * stored when they have been assigned, in transfers of at most 128 MiB. AUTO
 * unless said: all of them, or none, as the program fits. With ON a target
 * without streaming memory is IPU_ERR_ARGUMENT when the graph is compiled.
 */
int ipu_update_offload(ipu_graph *graph, int32_t count, ipu_offload offload,
                       int64_t minimum_bytes);

/*
 * Where one variable lies, whoever uses it: a weight, an accumulator. ON:
 * beside the chip, if it has 128 bytes or more. It is loaded when the forward
 * pass first reads it, again when derivatives do, and again when the update
 * does, each time until the last step of that phase that reads it; it is stored
 * when it has been assigned. A target without streaming memory is then
 * IPU_ERR_ARGUMENT when the graph is compiled. OFF: on the chip, even if only
 * the update uses it. AUTO: as ipu_update_offload says.
 */
int ipu_offload_variable(ipu_graph *graph, ipu_tensor variable,
                         ipu_offload offload);

/* --------------------------------------------- state shared by replicas */

/*
 * A tensor like x: the sum over all replicas of theirs, the same bits for all.
 * name: of what is added up, the same for all and no other's. It is called
 * while the graph is built; over processes, it gives x to an ipu_host_call and
 * takes the sum by ipu_host_receive.
 */
typedef ipu_tensor (*ipu_sum_fn)(ipu_graph *graph, void *context,
                                 const char *name, ipu_tensor x);

typedef struct ipu_replication {
    uint32_t size;    /* sizeof(ipu_replication) */
    int32_t replicas; /* that run the same graph */
    int32_t mean;     /* 1: gradients are averaged, not added */
    /* NULL: ipu_cross_replica_sum, and index is ipu_replica_index. */
    ipu_sum_fn sum;
    ipu_tensor index; /* int32 scalar: which of them this one is, from 0 on */
    void *context;
} ipu_replication;

/*
 * ipu_accumulating_optimizer for replicas, each of which keeps only its part of
 * the optimiser's state: elements / replicas of each variable, rounded up.
 * Gradients are added up over the replicas once in an update; each updates its
 * part of the weights, and gets those of the others. Variables of less than
 * replicas times minimum_remote_bytes are kept and updated by all. Weights are
 * those of replicas that keep everything: the same bits, but with LAMB to
 * rounding. With IPU_OFFLOAD_OFF it is IPU_ERR_ARGUMENT.
 */
int ipu_sharded_optimizer(ipu_graph *graph, const ipu_optimizer *optimizer,
                          int32_t nvariables, const ipu_tensor *variables,
                          const ipu_tensor *gradients, int32_t mini_batches,
                          const ipu_update_options *options,
                          const ipu_replication *replication);

/* Elements that each of so many replicas keeps: rounded up. */
int64_t ipu_shard_elements(int64_t elements, int32_t replicas);

/* One variable on replicas, each of which has so many IPUs. */
typedef struct ipu_sharding_cost {
    uint32_t size; /* sizeof(ipu_sharding_cost), set by the caller */
    int32_t reserved;
    int64_t elements;       /* of each replica */
    int64_t padding;        /* of all of them, beyond the variable's */
    int64_t bytes;          /* of each tensor of state, on each replica */
    int64_t sent_bytes;     /* by a replica, for each of the two: */
    int64_t scatter_cycles; /* gradients to who keeps the part */
    int64_t gather_cycles;  /* parts of the weights to all */
} ipu_sharding_cost;

int ipu_sharding_cost_get(const ipu_system *system, int32_t replicas,
                          int32_t ipus_per_replica, int64_t elements,
                          ipu_dtype dtype, ipu_sharding_cost *info);

#ifdef __cplusplus
}
#endif

/* Each builder tells where it is called. Not with IPU_NO_SOURCES. */
#ifndef IPU_NO_SOURCES
#define ipu_accumulate(graph, ...) ipu_accumulate(IPU_HERE(graph), __VA_ARGS__)
#define ipu_recomputation_checkpoint(graph, ...)                               \
    ipu_recomputation_checkpoint(IPU_HERE(graph), __VA_ARGS__)
#define ipu_update_begin(graph, ...)                                           \
    ipu_update_begin(IPU_HERE(graph), __VA_ARGS__)
#define ipu_scaled_gradients(graph, ...)                                       \
    ipu_scaled_gradients(IPU_HERE(graph), __VA_ARGS__)
#define ipu_update_begin_if(graph, ...)                                        \
    ipu_update_begin_if(IPU_HERE(graph), __VA_ARGS__)
#define ipu_clip_by_value(graph, ...)                                          \
    ipu_clip_by_value(IPU_HERE(graph), __VA_ARGS__)
#define ipu_clip_by_global_norm(graph, ...)                                    \
    ipu_clip_by_global_norm(IPU_HERE(graph), __VA_ARGS__)
#define ipu_rate(graph, ...) ipu_rate(IPU_HERE(graph), __VA_ARGS__)
#define ipu_sharded_optimizer(graph, ...)                                      \
    ipu_sharded_optimizer(IPU_HERE(graph), __VA_ARGS__)
#define ipu_optimize(graph, ...) ipu_optimize(IPU_HERE(graph), __VA_ARGS__)
#define ipu_accumulating_optimizer(graph, ...)                                 \
    ipu_accumulating_optimizer(IPU_HERE(graph), __VA_ARGS__)
#define ipu_accumulating_optimizer_v1(graph, ...)                              \
    ipu_accumulating_optimizer_v1(IPU_HERE(graph), __VA_ARGS__)
#endif

#endif
