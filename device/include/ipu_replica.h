/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_replica.h - replicas, which run the same program on several IPUs with
 * different data and meet in collective ops; and sharding, which spreads one
 * program over several IPUs. ipu.h includes it.
 *
 * A program that one engine runs alone is its only replica, and a sum over
 * replicas returns its input. Errors and threads are as in ipu.h.
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
 * Sum and mean over replicas, element by element. Values are added in the order
 * of the replicas, so that all get the same bits. group_size 0 sums over all
 * replicas; k sums over each group of k consecutive ones, and the number of
 * replicas must then be a multiple of k. Sums of int32 wrap around; a mean
 * takes floats only.
 */
ipu_tensor ipu_cross_replica_sum(ipu_graph *graph, ipu_tensor x,
                                 int32_t group_size);
ipu_tensor ipu_cross_replica_mean(ipu_graph *graph, ipu_tensor x,
                                  int32_t group_size);

/* Averages each of count gradients over all replicas, like a cross-replica
 * optimiser. averaged may be the array gradients. */
int ipu_cross_replica_gradients(ipu_graph *graph, int32_t count,
                                const ipu_tensor *gradients,
                                ipu_tensor *averaged);

/* Returns the replica's number, from 0 on: an int32 scalar, the same tensor for
 * each call. Use it for random numbers that should differ among replicas. */
ipu_tensor ipu_replica_index(ipu_graph *graph);

/* Allows each replica its own value of a variable, for example of statistics.
 * ipu_replicas_check_equal does not compare it. */
int ipu_replica_own(ipu_graph *graph, ipu_tensor variable);

/* -------------------------------------------------------- running replicas */

/* Returns ipus / shards, or IPU_ERR_ARGUMENT if that is no whole number. */
int ipu_replica_count(int32_t ipus, int32_t shards);

typedef struct ipu_replicas ipu_replicas;

/* The way of a sum over R replicas through the links. It changes cycles and
 * bytes, but no result. */
typedef int32_t ipu_cross_replica_algorithm;
enum {
    IPU_CROSS_REPLICA_RING = 0,         /* in 2 (R - 1) steps; each replica
                                           sends as little as possible */
    IPU_CROSS_REPLICA_HIERARCHICAL = 1, /* within pairs of IPUs, then along
                                           the ladder: as many bytes in fewer
                                           steps. With an odd number the last
                                           sends all to the one before it */
    IPU_CROSS_REPLICA_ONE_DEVICE = 2    /* all send to the first one, which
                                           sends the sum to all */
};
enum { IPU_NUM_CROSS_REPLICA_ALGORITHMS = 3 };

/* Returns the name of an algorithm ("ring"), static, or NULL. */
const char *ipu_cross_replica_algorithm_name(
    ipu_cross_replica_algorithm algorithm);

/* Fill it with ipu_replicas_options_init; then set the fields that differ. */
typedef struct ipu_replicas_options {
    uint32_t size;            /* sizeof(ipu_replicas_options) */
    int32_t ipus;             /* IPUs of all replicas together: 2 */
    int32_t shards;           /* IPUs of each replica: 1 */
    int32_t threads;          /* 0: a thread for each replica, at most one a
                                 core; 1: the caller's thread alone */
    const ipu_system *system; /* borrowed during the call; NULL: an M2000, or
                                 the smallest Pod that is large enough */
    /* Sums that are ready together are sent together, up to this number of
     * bytes; 0 sends each by itself. It changes cycles and exchanges, but no
     * result. */
    int64_t maximum_cross_replica_sum_buffer_size;
    /* The algorithm of sums and means; a half of a sum, as in
     * ipu_sharded_optimizer, is a ring's. */
    ipu_cross_replica_algorithm cross_replica_algorithm;
    /* Instead of a buffer's size: all sums that are ready together are sent as
     * one tensor, cut into this number of equal packs, within a tensor if need
     * be. 0: sums are not packed. */
    int32_t packs;
} ipu_replicas_options;

void ipu_replicas_options_init(ipu_replicas_options *options, size_t size);

/*
 * Makes an engine for each replica. The executable must outlive them.
 *
 * Returns IPU_ERR_ARGUMENT if IPUs are not a multiple of shards, replicas not
 * of a group size of the program, or both packs and a buffer's size are given;
 * IPU_ERR_STATE if the system has fewer IPUs.
 */
int ipu_replicas_new(const ipu_executable *executable,
                     const ipu_replicas_options *options,
                     ipu_replicas **replicas);
void ipu_replicas_free(ipu_replicas *replicas); /* NULL is accepted */

/* Returns the number of replicas. */
int32_t ipu_replicas_count(const ipu_replicas *replicas);

/* Connects a stream of all replicas to host memory [replicas, shape...], of
 * which each replica uses its own part. data is borrowed as by
 * ipu_engine_connect. */
int ipu_replicas_connect(ipu_replicas *replicas, const char *name, void *data,
                         size_t bytes);

/* Connects an input of all replicas to the same host memory. */
int ipu_replicas_connect_shared(ipu_replicas *replicas, const char *name,
                                void *data, size_t bytes);

/* Write a variable of all replicas; read the variable of one. */
int ipu_replicas_write(ipu_replicas *replicas, const char *name,
                       const void *data, size_t bytes);
int ipu_replicas_read(ipu_replicas *replicas, int32_t replica, const char *name,
                      void *data, size_t bytes);

/* Places a variable of one replica in memory of the host, as ipu_engine_place
 * does; data NULL moves it back. */
int ipu_replicas_place(ipu_replicas *replicas, int32_t replica,
                       const char *name, void *data, size_t bytes);

/*
 * Runs all replicas once, and blocks until they have ended. They run on threads
 * of their own, or one after the other, with the same results; at each
 * collective op they wait for each other. If one of them fails, which the text
 * names, the run of all ends: all variables are as before the run, and the
 * replicas can run again.
 */
int ipu_replicas_run(ipu_replicas *replicas);

/*
 * Connects all replicas to a network, as ipu_engine_network does with one
 * engine: a collective of the program is then of as many processes, each of
 * which has so many replicas. All replicas of a process come to each collective
 * and call the functions with the same context, on their threads and at once;
 * the last of them may come to a start when the first already waits in the
 * finish. They must give the same tensor, as after ipu_cross_replica_mean.
 */
int ipu_replicas_network(ipu_replicas *replicas,
                         const ipu_network_functions *functions, void *context,
                         int32_t processes);

/* Returns what the host call that ended the last run returned; 0 if none did.
 */
int ipu_replicas_callback_status(const ipu_replicas *replicas);

/*
 * Compares the variables of all replicas bit by bit. Returns IPU_ERR_DATA,
 * naming variable, replica and element, if one differs. Variables that each
 * replica has of its own are not compared; the function returns their number.
 * These are accumulators of gradients that have not been averaged, the parts of
 * an optimiser's state (ipu_sharded_optimizer), running statistics of
 * ipu_batch_norm, the scale of ipu_scaled_gradients, the index, and variables
 * named by ipu_replica_own.
 */
int ipu_replicas_check_equal(ipu_replicas *replicas);

/* Returns the name of a variable that ipu_replicas_check_equal does not
 * compare, and the reason in *why (may be NULL): number 0, 1, ..., and NULL
 * when there are no more. Both texts are borrowed until the executable is
 * freed. */
const char *ipu_replicas_own(const ipu_replicas *replicas, int32_t number,
                             const char **why);

/*
 * Figures "of a run" count a run with as many updates (ipu_training.h) as a run
 * can have: if gradients are accumulated over several runs, the run that
 * updates; if within a loop, the iterations that update. A loop with a
 * condition counts with the most iterations that it allows.
 */
typedef struct ipu_replicas_info {
    uint32_t size; /* sizeof(ipu_replicas_info), set by the caller */
    int32_t replicas;
    int32_t collectives;     /* collective ops of a run */
    int32_t exchanges;       /* exchanges of a run, after joining them */
    int64_t sent_bytes;      /* bytes sent in a run by the replica that sends
                                most: 2 n (R - 1) / R for a sum of n bytes over
                                R replicas in a ring, (R - 1) n to one device;
                                half of a ring's if each takes or gives only
                                its part, as in ipu_sharded_optimizer */
    int64_t exchange_cycles; /* cycles of the exchanges of a run */
    int64_t total_cycles;    /* cycles of a run */
    double seconds;
    int64_t runs; /* runs so far */
    int64_t done; /* collective ops in all runs so far */
    /* Means over all runs: */
    double mean_collectives;
    double mean_sent_bytes;
    double mean_exchange_cycles;
    double mean_total_cycles;
} ipu_replicas_info;

/* Returns the counts so far and the modelled cost of a run. */
int ipu_replicas_stats(const ipu_replicas *replicas, ipu_replicas_info *info);

/* -------------------------------------------------------------- sharding */

/*
 * Puts ops built from here on on this chip. The chips of a sharded program work
 * one after the other: sharding gives room, not speed (a pipeline gives speed).
 * The initial value -1 puts inputs on chip 0, and every op where the first of
 * its inputs is that is a variable or a computed tensor. Derivatives are on the
 * chip of their tensors.
 */
int ipu_shard(ipu_graph *graph, int32_t shard);

/* Spreads the ops built so far over count chips, in their order, so that all
 * have about the same bytes of variables and activations. Call it before
 * ipu_gradients: it returns IPU_ERR_STATE if the graph has gradients. */
int ipu_shard_automatically(ipu_graph *graph, int32_t count);

/*
 * Spreads a whole program over count chips, in the order of its forward ops,
 * so that the slowest chip takes as little time as possible among the ways in
 * which each chip has room for its part. If there is none, the parts are as
 * even in bytes as possible. Derivatives go where their tensors are, and so
 * does what is computed of them: call it when the graph is complete. The
 * function compiles the graph a few times, with these options (NULL: as
 * ipu_compile does). What a batch of inputs takes from one chip to the next
 * is not part of the time of either.
 */
int ipu_shard_by_time(ipu_graph *graph, const ipu_compile_options *options,
                      int32_t count);

/* Compiles a program for count chips, as ipu_shard_by_time and ipu_compile_with
 * do, and leaves the graph as it is. */
int ipu_compile_shards(const ipu_graph *graph,
                       const ipu_compile_options *options, int32_t count,
                       ipu_executable **executable);

/* Returns the chip of a tensor. */
int32_t ipu_tensor_shard(const ipu_graph *graph, ipu_tensor tensor);

/* Returns the number of chips of a program. A sharded program compiles if each
 * chip has room for its part; the engine runs it like any other, with the same
 * bits. */
int32_t ipu_executable_shards(const ipu_executable *executable);

/* One chip of a sharded program. */
typedef struct ipu_shard_info {
    uint32_t size; /* sizeof(ipu_shard_info), set by the caller */
    int32_t steps;
    int64_t variable_bytes; /* bytes of variables and constants */
    int64_t received_bytes; /* bytes copied from other chips in a run */
    int64_t peak_bytes;     /* most bytes alive at once */
    int64_t cycles;         /* cycles of its steps */
    int64_t code_bytes_per_tile;
    int64_t tile_bytes; /* bytes on the fullest tile, with code */
    int64_t bytes_per_tile;
} ipu_shard_info;

/* Returns chip number 0 to ipu_executable_shards() - 1. */
int ipu_executable_shard(const ipu_executable *executable, int32_t shard,
                         ipu_shard_info *info);

typedef struct ipu_sharding_info {
    uint32_t size; /* sizeof(ipu_sharding_info), set by the caller */
    int32_t shards;
    int32_t transfers;       /* tensors sent between chips in a run */
    int64_t inter_ipu_bytes; /* bytes of these tensors */
    int64_t exchange_cycles;
    int64_t total_cycles; /* cycles of a run, transfers included */
    double seconds;
} ipu_sharding_info;

/* Returns the traffic between the chips of a system, where shard i is on IPU i.
 * system NULL: the smallest of Graphcore's systems that has so many IPUs, with
 * IPUs of the program's target. */
int ipu_executable_sharding(const ipu_executable *executable,
                            const ipu_system *system, ipu_sharding_info *info);

#ifdef __cplusplus
}
#endif

#endif
