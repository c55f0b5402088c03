/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_training.h - training with larger batches and models than a chip has room
 * for: gradients accumulated over several runs, recomputation, optimiser state
 * in DRAM beside the chip or spread over replicas; and loss scaling, clipping
 * and learning rates. ipu.h includes it.
 *
 * The update region is the part of a program that runs only in every count-th
 * run (or, within a loop, iteration): what an optimiser does with the gradients
 * of count mini-batches. A node belongs to the region if it depends on a tensor
 * of ipu_accumulate, or was built between ipu_update_begin and ipu_update_end.
 * The other runs skip its steps: variables that it assigns keep their values,
 * its host calls are not made, and its outputs are not written. The graph
 * counts mini-batches in a variable, "update/<count>/mini_batch"; a run that
 * fails does not count.
 *
 * Functions that build ops keep their failures in the graph, as in ipu.h.
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

/* Begin and end an update region: ops built in between run in every count-th
 * run only. A graph may have several regions, of different counts, but no op
 * may depend on two of them. count is 1 to 2^20. Returns IPU_ERR_STATE if a
 * region has begun already. */
int ipu_update_begin(ipu_graph *graph, int32_t count);
int ipu_update_end(ipu_graph *graph);

/* Begins an update region that is skipped as well if condition is 0: an int32
 * scalar that is computed in each run, or in the update region of that count.
 */
int ipu_update_begin_if(ipu_graph *graph, int32_t count, ipu_tensor condition);

/* Returns the smallest number of runs, or of iterations, after which all update
 * regions have run a whole number of times: the least common multiple of their
 * counts, 1 if there is none. Negative if the graph is NULL. */
int ipu_update_count(const ipu_graph *graph);

/*
 * Checks that a number of iterations ends with an update, so that no gradients
 * are left over, and otherwise returns IPU_ERR_STATE. where names the loop in
 * the text.
 */
int ipu_update_check_iterations(const ipu_graph *graph, const char *where,
                                int64_t iterations);

/* Returns IPU_ERR_STATE if the graph has an update region of count 2 or more.
 * Code that accumulates gradients itself, like a pipeline, calls it. */
int ipu_update_check_absent(const ipu_graph *graph, const char *where);

/* ----------------------------------------------------------- accumulation */

/* A reduction says how an accumulator acc combines the gradients g of
 * mini-batches 0 to count
 * - 1.
 */
typedef int32_t ipu_reduction;
enum {
    IPU_REDUCTION_SUM = 0,         /* acc + g */
    IPU_REDUCTION_MEAN = 1,        /* acc + g / count */
    IPU_REDUCTION_RUNNING_MEAN = 2 /* acc n / (n + 1) + g / (n + 1), the mean of
                                      n + 1 gradients, which does not grow with
                                      their number */
};

/* Returns "SUM", "MEAN" or "RUNNING_MEAN", static, or NULL. */
const char *ipu_reduction_name(ipu_reduction reduction);

/* Finds a reduction by its name, in upper or lower case. The text of
 * IPU_ERR_NAME lists the names. */
int ipu_reduction_parse(const char *name, ipu_reduction *reduction);

/* Returns the dtype in which the gradients of a variable of this dtype are
 * accumulated. It is called while the graph is built. */
typedef ipu_dtype (*ipu_accumulator_fn)(void *context, const char *variable,
                                        ipu_dtype dtype);

/* The place of variables: on the chip, or in DRAM beside it. */
typedef int32_t ipu_offload;
enum {
    IPU_OFFLOAD_AUTO = 0, /* variables that only the update region uses lie in
                             DRAM if there is DRAM and the program fits only so;
                             else on the chip */
    IPU_OFFLOAD_ON = 1,   /* in DRAM, or the program does not compile */
    IPU_OFFLOAD_OFF = 2   /* on the chip */
};

typedef struct ipu_accumulation_options {
    uint32_t size;           /* sizeof(ipu_accumulation_options) */
    ipu_reduction reduction; /* SUM */
    /* The accumulator's dtype: choose returns it if it is not NULL, else *dtype
     * is used; if both are NULL, it is the dtype of the variable. */
    const ipu_dtype *dtype;
    ipu_accumulator_fn choose;
    void *context; /* borrowed during the call */
    int32_t cast;  /* 1: the result is cast back to the variable's dtype */
    ipu_offload offload; /* of the accumulator, as in ipu_offload_variable */
} ipu_accumulation_options;

/*
 * Accumulates a variable's gradient over count mini-batches. The result, of the
 * accumulator's dtype, combines all of them, and every op that depends on it
 * runs in every count-th run only. Give it to an optimiser. An optimiser takes
 * gradients of its variable's dtype: set cast if the accumulator's differs.
 *
 * The accumulator is a variable with the variable's name and "/accumulator". It
 * is reset by the first mini-batch after an update. options NULL stands for the
 * sum in the variable's dtype.
 */
ipu_tensor ipu_accumulate(ipu_graph *graph, ipu_tensor variable,
                          ipu_tensor gradient, int32_t count,
                          const ipu_accumulation_options *options);

/* --------------------------------------------------------- recomputation */

/*
 * Turns recomputation on (1) or off (0) for the following calls of
 * ipu_gradients. With recomputation, derivatives use activations that are
 * computed again in the backward pass, so that those of the forward pass need
 * not be kept. Gradients have the same bits. Everything before the last
 * checkpoint is recomputed, starting from the checkpoint before or from inputs.
 * If the program sets no checkpoints, the library chooses some.
 */
int ipu_allow_recompute(ipu_graph *graph, int32_t allow);

/* Makes a tensor a checkpoint: recomputation keeps it and starts from it.
 * Returns the tensor. It has no effect without ipu_allow_recompute. */
ipu_tensor ipu_recomputation_checkpoint(ipu_graph *graph, ipu_tensor tensor);

/* ------------------------------------------------------------ optimisers */

typedef int32_t ipu_optimizer_kind;
enum {
    IPU_OPTIMIZER_SGD = 0, /* with momentum or without */
    IPU_OPTIMIZER_ADAM = 1,
    IPU_OPTIMIZER_ADAMW = 2,
    IPU_OPTIMIZER_LAMB = 3,
    IPU_OPTIMIZER_LION = 4,
    IPU_OPTIMIZER_RMSPROP = 5,
    IPU_OPTIMIZER_ADAGRAD = 6,
    IPU_OPTIMIZER_ADADELTA = 7,
    IPU_OPTIMIZER_LARS = 8
};

/*
 * One of the optimisers of ipu_optimizers.h, and its options. As optimisers of
 * a whole model they leave variables of fewer than two dimensions alone, which
 * are biases and scales of norms: their weights do not decay, and LARS has the
 * ratio 1 for them.
 */
typedef struct ipu_optimizer {
    uint32_t size; /* sizeof(ipu_optimizer) */
    ipu_optimizer_kind kind;
    ipu_tensor rate; /* a float32 scalar */
    int32_t reserved;
    const char *step;             /* name of the variable that counts updates;
                                     NULL: "optimizer/step". Only adam,
                                     adamw and lamb have one */
    const ipu_sgd_options *sgd;   /* borrowed during the call, like adam; NULL:
                                     the defaults */
    const ipu_adam_options *adam; /* lion's, too */
    /* Programs that were compiled before there were these have a smaller
     * size. */
    const ipu_rms_options *rms; /* of rmsprop, adagrad and adadelta */
    const ipu_lars_options *lars;
    /* A float32 scalar, such as an input, in place of the options' momentum or
     * beta1, so that each step may have another; borrowed during the call.
     * NULL: theirs. IPU_ERR_ARGUMENT if the optimiser keeps none: adagrad,
     * adadelta; sgd and rmsprop without momentum in their options. */
    const ipu_tensor *momentum;
} ipu_optimizer;

typedef struct ipu_update_options {
    uint32_t size;       /* sizeof(ipu_update_options) */
    ipu_offload offload; /* of variables that only the update uses */
    /* 1: the update is skipped if condition, an int32 scalar that is computed
     * in each run, was 0 for one of the mini-batches. */
    int32_t conditional;
    ipu_tensor condition;
    int64_t minimum_remote_bytes; /* smaller variables stay on the chip; 0: 128
                                   */
    ipu_accumulation_options accumulation; /* size 0 stands for the defaults */
    ipu_offload offload_weights; /* of the variables, as in ipu_offload_variable
                                  */
    int32_t reserved;
} ipu_update_options;

/*
 * Updates nvariables variables by their gradients, accumulated over
 * mini_batches runs. options choose where the optimiser's state lies; NULL
 * stands for sums and IPU_OFFLOAD_AUTO. Within a loop, the number of iterations
 * must be a multiple of mini_batches (ipu_update_check_iterations).
 */
int ipu_accumulating_optimizer(ipu_graph *graph, const ipu_optimizer *optimizer,
                               int32_t nvariables, const ipu_tensor *variables,
                               const ipu_tensor *gradients,
                               int32_t mini_batches,
                               const ipu_update_options *options);

/* The restricted first version, which takes SGD and momentum only and returns
 * IPU_ERR_ARGUMENT for others. With one mini-batch it is the optimiser itself.
 */
int ipu_accumulating_optimizer_v1(
    ipu_graph *graph, const ipu_optimizer *optimizer, int32_t nvariables,
    const ipu_tensor *variables, const ipu_tensor *gradients,
    int32_t mini_batches, const ipu_update_options *options);

/* Updates one variable of a model in each run. step: an int32 scalar, 0 in the
 * first run. */
int ipu_optimize_variable(ipu_graph *graph, const ipu_optimizer *optimizer,
                          ipu_tensor variable, ipu_tensor gradient,
                          ipu_tensor step);

/* Updates the variables in each run, without an update region. */
int ipu_optimize(ipu_graph *graph, const ipu_optimizer *optimizer,
                 int32_t nvariables, const ipu_tensor *variables,
                 const ipu_tensor *gradients);

/* ----------------------------------------------------------- loss scaling */

/* The options of Graphcore's AutomaticLossScalingOptimizer; 0 stands for the
 * default in brackets. */
typedef struct ipu_loss_scaling_options {
    uint32_t size;            /* sizeof(ipu_loss_scaling_options) */
    int32_t update_frequency; /* runs from change to change [8] */
    double initial;           /* the first scale [1] */
    double increase;          /* factor while gradients do not overflow [2] */
    double decrease;          /* factor if gradients overflow [0.5] */
    double maximum;           /* the scale stays below [32768] */
    double ratio_threshold;   /* fraction of elements that overflow above which
                                 the scale decreases [10e-6] */
    int32_t latest_only; /* 1: looks at the run before a change only, not at
                            all runs since the last change */
    int32_t widen;       /* 1: gradients come back in float32 */
} ipu_loss_scaling_options;

/* Tensors of loss scaling that a program may use, in each run. */
typedef struct ipu_loss_scaling {
    uint32_t size;        /* sizeof(ipu_loss_scaling), set by the caller */
    ipu_tensor scale;     /* float32 scalar */
    ipu_tensor overflows; /* float32 scalar: number of elements of gradients
                             that overflow */
    ipu_tensor finite;    /* int32 scalar: 1 if all gradients are finite */
} ipu_loss_scaling;

/*
 * Adds gradients of the loss times a scale, and divides them by the scale, so
 * that small gradients do not become zeros in float16. The scale grows while
 * gradients have room, and shrinks when more than a fraction of their elements
 * is at least 65504, the largest float16, infinite or NaN. It is a variable
 * with the name and "/scale" (0 before the first run stands for the initial
 * scale);
 * "/overflows" and "/runs" count since the last change.
 *
 * An update by gradients that are not finite destroys the weights: give finite
 * to ipu_update_options as condition. options and scaling may be NULL.
 */
int ipu_scaled_gradients(ipu_graph *graph, const char *name, ipu_tensor loss,
                         int32_t count, const ipu_tensor *wrt,
                         const ipu_loss_scaling_options *options,
                         ipu_tensor *gradients, ipu_loss_scaling *scaling);

/* Returns the index of the first tensor of count that has an element which is
 * infinite or NaN, an int32 scalar; -1: all are finite. */
ipu_tensor ipu_find_nonfinite(ipu_graph *graph, int32_t count,
                              const ipu_tensor *tensors);

/* ------------------------------------------------- clipping, learning rates */

/* Replaces gradients by themselves, with each element limited to [-limit,
 * limit]; NaN stays. */
int ipu_clip_by_value(ipu_graph *graph, int32_t count, ipu_tensor *gradients,
                      double limit);

/* Scales gradients by limit / norm if their norm, the square root of the sum of
 * the squares of all elements, is above limit. If the norm is NaN, all
 * gradients become NaN. The norm is computed in float32 and returned in *norm,
 * which may be NULL. */
int ipu_clip_by_global_norm(ipu_graph *graph, int32_t count,
                            ipu_tensor *gradients, double limit,
                            ipu_tensor *norm);

typedef int32_t ipu_rate_kind;
enum {
    IPU_RATE_CONSTANT = 0,
    IPU_RATE_LINEAR = 1,      /* falls linearly to final_rate */
    IPU_RATE_COSINE = 2,      /* falls to final_rate in half a cosine wave */
    IPU_RATE_EXPONENTIAL = 3, /* falls by the same factor in each step */
    IPU_RATE_INVERSE_SQRT = 4 /* is rate * sqrt(warmup / (step + 1)) */
};

typedef struct ipu_rate_options {
    uint32_t size; /* sizeof(ipu_rate_options) */
    ipu_rate_kind kind;
    double rate;       /* rate after the warm-up */
    double final_rate; /* rate in the last step and after it */
    int64_t warmup; /* number of first steps in which the rate rises linearly:
                       rate / warmup, 2 rate / warmup, ... */
    int64_t steps;  /* total number of steps; not used by CONSTANT and
                       INVERSE_SQRT */
} ipu_rate_options;

/* Computes a learning rate, a float32 scalar, from the step, an int32 scalar
 * such as ipu_counter. Use a counter of an update region to count updates
 * rather than runs. */
ipu_tensor ipu_rate(ipu_graph *graph, ipu_tensor step,
                    const ipu_rate_options *options);

/* --------------------------------------------------------------- offload */

/*
 * Sets where the variables lie that only the update region of that count uses.
 * Offloaded variables of at least minimum_bytes (0: 128) are loaded when the
 * region needs them and stored when they have been assigned, in transfers of at
 * most 128 MiB. The default is AUTO, which offloads all of them or none,
 * whichever fits. With ON, compiling for a target without streaming memory
 * fails with IPU_ERR_ARGUMENT.
 */
int ipu_update_offload(ipu_graph *graph, int32_t count, ipu_offload offload,
                       int64_t minimum_bytes);

/*
 * Sets where one variable lies, for example a weight or an accumulator. ON puts
 * it in DRAM if it has 128 bytes or more. It is loaded when the forward pass
 * first reads it, again for the derivatives, and again for the update; each
 * time it stays until the last step of that phase that reads it. It is stored
 * when it has been assigned. Compiling for a target without streaming memory
 * then fails with IPU_ERR_ARGUMENT. OFF keeps it on the chip even if only the
 * update uses it. AUTO leaves it to ipu_update_offload.
 */
int ipu_offload_variable(ipu_graph *graph, ipu_tensor variable,
                         ipu_offload offload);

/* --------------------------------------------- state shared by replicas */

/*
 * Builds the sum of x over all replicas, with the same bits on all of them.
 * name is unique, and the same on all replicas. It is called while the graph is
 * built. Over processes, such a function gives x to an ipu_host_call and takes
 * the sum from ipu_host_receive.
 */
typedef ipu_tensor (*ipu_sum_fn)(ipu_graph *graph, void *context,
                                 const char *name, ipu_tensor x);

typedef struct ipu_replication {
    uint32_t size;    /* sizeof(ipu_replication) */
    int32_t replicas; /* number of replicas that run the same graph */
    int32_t mean;     /* 1: gradients are averaged, not added */
    /* NULL stands for ipu_cross_replica_sum, with index ipu_replica_index. */
    ipu_sum_fn sum;
    ipu_tensor index; /* int32 scalar: the number of this replica, from 0 on */
    void *context;
} ipu_replication;

/*
 * Updates variables like ipu_accumulating_optimizer on replicas, each of which
 * keeps only its part of the optimiser's state: elements / replicas of each
 * variable, rounded up. Gradients are summed over the replicas once an update;
 * each replica updates its part of the weights and receives the others' parts.
 * All replicas keep and update variables of less than replicas times
 * minimum_remote_bytes. Weights have the same bits as with the whole state on
 * each replica; with LAMB and LARS they are equal up to rounding. Returns
 * IPU_ERR_ARGUMENT with IPU_OFFLOAD_OFF.
 */
int ipu_sharded_optimizer(ipu_graph *graph, const ipu_optimizer *optimizer,
                          int32_t nvariables, const ipu_tensor *variables,
                          const ipu_tensor *gradients, int32_t mini_batches,
                          const ipu_update_options *options,
                          const ipu_replication *replication);

/* Returns elements / replicas, rounded up: the elements that a replica keeps.
 */
int64_t ipu_shard_elements(int64_t elements, int32_t replicas);

/* The cost of sharding the state of one variable over replicas. */
typedef struct ipu_sharding_cost {
    uint32_t size; /* sizeof(ipu_sharding_cost), set by the caller */
    int32_t reserved;
    int64_t elements;       /* elements that each replica keeps */
    int64_t padding;        /* elements of all replicas beyond the variable's */
    int64_t bytes;          /* bytes of each tensor of state on each replica */
    int64_t sent_bytes;     /* bytes that a replica sends in each of these: */
    int64_t scatter_cycles; /* reduce-scatter of the gradients */
    int64_t gather_cycles;  /* all-gather of the weights */
} ipu_sharding_cost;

/* Returns that cost, for replicas of ipus_per_replica IPUs each. */
int ipu_sharding_cost_get(const ipu_system *system, int32_t replicas,
                          int32_t ipus_per_replica, int64_t elements,
                          ipu_dtype dtype, ipu_sharding_cost *info);

#ifdef __cplusplus
}
#endif

/* Each builder records the source line of its caller, unless IPU_NO_SOURCES is
 * defined. */
#ifndef IPU_NO_SOURCES
#define ipu_accumulate(graph, ...) ipu_accumulate(IPU_HERE(graph), __VA_ARGS__)
#define ipu_recomputation_checkpoint(graph, ...)                               \
    ipu_recomputation_checkpoint(IPU_HERE(graph), __VA_ARGS__)
#define ipu_update_begin(graph, ...)                                           \
    ipu_update_begin(IPU_HERE(graph), __VA_ARGS__)
#define ipu_scaled_gradients(graph, ...)                                       \
    ipu_scaled_gradients(IPU_HERE(graph), __VA_ARGS__)
#define ipu_find_nonfinite(graph, ...)                                         \
    ipu_find_nonfinite(IPU_HERE(graph), __VA_ARGS__)
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
#define ipu_optimize_variable(graph, ...)                                      \
    ipu_optimize_variable(IPU_HERE(graph), __VA_ARGS__)
#define ipu_accumulating_optimizer(graph, ...)                                 \
    ipu_accumulating_optimizer(IPU_HERE(graph), __VA_ARGS__)
#define ipu_accumulating_optimizer_v1(graph, ...)                              \
    ipu_accumulating_optimizer_v1(IPU_HERE(graph), __VA_ARGS__)
#endif

#endif
