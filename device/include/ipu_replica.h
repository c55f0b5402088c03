/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_replica.h - the same program on several IPUs: replicas, which differ in
 * the data that they get, and meet in collective ops. ipu.h includes it.
 *
 * Run by one engine alone, a program is its only replica, and a sum over all
 * is what it has itself. Errors and threads are as in ipu.h.
 */
#ifndef IPU_H
#include "ipu.h" /* ipu.h includes this file after those that it needs */
#elif !defined(IPU_REPLICA_H)
#define IPU_REPLICA_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------- in a program */

/*
 * The sum, or the mean, over replicas: element by element, added in the order
 * of the replicas, so that all get the same bits. group_size 0: over all of
 * them; k: over each k that follow one another, of which there must be a whole
 * number when the program runs. Sums of int32 wrap around; a mean is of floats.
 */
ipu_tensor ipu_cross_replica_sum(ipu_graph *graph, ipu_tensor x,
                                 int32_t group_size);
ipu_tensor ipu_cross_replica_mean(ipu_graph *graph, ipu_tensor x,
                                  int32_t group_size);

/* What a cross-replica optimiser gives to the one within it: the mean of each
 * of count gradients, over all replicas. averaged may be gradients. */
int ipu_cross_replica_gradients(ipu_graph *graph, int32_t count,
                                const ipu_tensor *gradients,
                                ipu_tensor *averaged);

/* Which replica it is, 0 to their number - 1: an int32 scalar, the same tensor
 * each time. For random numbers that are to differ. */
ipu_tensor ipu_replica_index(ipu_graph *graph);

/* Each replica may have its own value of this variable, of statistics for
 * example: ipu_replicas_check_equal passes over it. */
int ipu_replica_own(ipu_graph *graph, ipu_tensor variable);

/* ------------------------------------------------------------ to run them */

/* IPUs over shards; IPU_ERR_ARGUMENT if they do not divide. */
int ipu_replica_count(int32_t ipus, int32_t shards);

typedef struct ipu_replicas ipu_replicas;

/* Fill it with ipu_replicas_options_init; then set what differs. */
typedef struct ipu_replicas_options {
    uint32_t size;            /* sizeof(ipu_replicas_options) */
    int32_t ipus;             /* of all replicas together: 2 */
    int32_t shards;           /* IPUs of each: 1 */
    int32_t threads;          /* 0: one a replica while there are cores; 1: the
                                 caller's alone */
    const ipu_system *system; /* borrowed during the call; NULL: an M2000, or
                                 as large a Pod as it takes */
    /* Sums that could be sent together are, up to so many bytes; 0: each by
     * itself. Of cycles and exchanges only: the numbers are the same. */
    int64_t maximum_cross_replica_sum_buffer_size;
} ipu_replicas_options;

void ipu_replicas_options_init(ipu_replicas_options *options, size_t size);

/*
 * An engine for each replica. The executable must outlive them.
 *
 * IPU_ERR_ARGUMENT: IPUs are not a multiple of shards, or replicas not of a
 * group size of the program; IPU_ERR_STATE: the system has fewer IPUs.
 */
int ipu_replicas_new(const ipu_executable *executable,
                     const ipu_replicas_options *options,
                     ipu_replicas **replicas);
void ipu_replicas_free(ipu_replicas *replicas); /* NULL is accepted */

/* How many there are. */
int32_t ipu_replicas_count(const ipu_replicas *replicas);

/* Connect a stream of all of them to host memory [replicas, shape...], borrowed
 * as ipu_engine_connect does: each has its own part. */
int ipu_replicas_connect(ipu_replicas *replicas, const char *name, void *data,
                         size_t bytes);

/* The same part for all: inputs only. */
int ipu_replicas_connect_shared(ipu_replicas *replicas, const char *name,
                                void *data, size_t bytes);

/* Write a variable of all, read that of one. */
int ipu_replicas_write(ipu_replicas *replicas, const char *name,
                       const void *data, size_t bytes);
int ipu_replicas_read(ipu_replicas *replicas, int32_t replica, const char *name,
                      void *data, size_t bytes);

/*
 * Run all of them once. They go on until each has come to the next collective
 * op, which then is done for all: on threads of their own, or one after the
 * other; the bits are the same. A failure of one, which the text names, ends
 * the run of all: variables are as they were, and they can run again.
 */
int ipu_replicas_run(ipu_replicas *replicas);

/* What the host call that ended the last run returned; 0 if none did. */
int ipu_replicas_callback_status(const ipu_replicas *replicas);

/*
 * IPU_ERR_DATA, naming variable, replica and element, unless all have the same
 * bits in every variable that must be equal. Passed over is what each replica
 * has of its own: accumulators of gradients that have not been averaged, the
 * parts of an optimiser's state that replicas share (ipu_sharded_optimizer),
 * running statistics of ipu_batch_norm, the scale of ipu_scaled_gradients, the
 * index, and what ipu_replica_own names. Returns how many variables that are.
 */
int ipu_replicas_check_equal(ipu_replicas *replicas);

/* The name of a variable that ipu_replicas_check_equal passes over, and why
 * (may be NULL): number 0, 1, ...; NULL: there are no more. Both are borrowed
 * until the executable is freed. */
const char *ipu_replicas_own(const ipu_replicas *replicas, int32_t number,
                             const char **why);

/*
 * Those "of a run" are of one with as many updates (ipu_training.h) as a run
 * can have: if gradients are accumulated over several runs, of the one that
 * updates; if within a loop, of its iterations that do. Of a loop with a
 * condition, they are of as many iterations as it allows.
 */
typedef struct ipu_replicas_info {
    uint32_t size; /* sizeof(ipu_replicas_info), set by the caller */
    int32_t replicas;
    int32_t collectives;     /* of a run */
    int32_t exchanges;       /* ... as sent together */
    int64_t sent_bytes;      /* of a run, by each replica: 2 n (R - 1) / R for
                                a sum of n bytes over R replicas; half of that
                                if each takes or gives only its part, as in
                                ipu_sharded_optimizer */
    int64_t exchange_cycles; /* of these */
    int64_t total_cycles;    /* of a run */
    double seconds;
    int64_t runs; /* so far */
    int64_t done; /* collectives, in all of them */
    /* The same of a run on average: */
    double mean_collectives;
    double mean_sent_bytes;
    double mean_exchange_cycles;
    double mean_total_cycles;
} ipu_replicas_info;

int ipu_replicas_stats(const ipu_replicas *replicas, ipu_replicas_info *info);

/* -------------------------------------------------------------- sharding */

/*
 * One program on several chips, one after the other: for room, not for speed
 * (a pipeline is for that). What is built from here on is on this chip; -1, as
 * at first: inputs on chip 0, and every op where the first of its inputs is
 * that is a variable or was computed. Derivatives are where their tensors are.
 */
int ipu_shard(ipu_graph *graph, int32_t shard);

/* Share out what has been built so far over count chips, in its order, so that
 * each has about as many bytes of variables and activations. Before gradients:
 * IPU_ERR_STATE if there are any. */
int ipu_shard_automatically(ipu_graph *graph, int32_t count);

/* The chip a tensor is on. */
int32_t ipu_tensor_shard(const ipu_graph *graph, ipu_tensor tensor);

/* Chips that a program is on. A program of several is compiled if each of them
 * has room for its part; the engine runs it as any other, to the same bits. */
int32_t ipu_executable_shards(const ipu_executable *executable);

/* One of them. */
typedef struct ipu_shard_info {
    uint32_t size; /* sizeof(ipu_shard_info), set by the caller */
    int32_t steps;
    int64_t variable_bytes; /* and constants */
    int64_t received_bytes; /* copies of what is on others, in a run */
    int64_t peak_bytes;     /* all that is alive at once */
    int64_t cycles;         /* of its steps */
    int64_t code_bytes_per_tile;
    int64_t tile_bytes; /* on the fullest tile, with code */
    int64_t bytes_per_tile;
} ipu_shard_info;

int ipu_executable_shard(const ipu_executable *executable, int32_t shard,
                         ipu_shard_info *info);

typedef struct ipu_sharding_info {
    uint32_t size; /* sizeof(ipu_sharding_info), set by the caller */
    int32_t shards;
    int32_t transfers;       /* of tensors between chips, in a run */
    int64_t inter_ipu_bytes; /* of these */
    int64_t exchange_cycles;
    int64_t total_cycles; /* of a run, with them */
    double seconds;
} ipu_sharding_info;

/* What passes between the chips of a system, of which shard i is IPU i. */
int ipu_executable_sharding(const ipu_executable *executable,
                            const ipu_system *system, ipu_sharding_info *info);

#ifdef __cplusplus
}
#endif

#endif
