/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_network.h - collectives on the device's own network: ops of a program
 * that runs in several processes, with one device each. ipu.h includes it.
 *
 * The ops are part of the graph, so that a reduction leaves as soon as the
 * backward pass has its gradients, and the program waits for it where its
 * result is needed. Their cycles follow a model of the network. The bytes are
 * moved by functions that whoever runs the engine connects to it: the device
 * knows no other process itself.
 *
 * The dtypes are those that Gaudi's network takes:
 *
 *     reduce     float32, bfloat16
 *     broadcast  float32, int32; bfloat16 by a recipe
 *     gather     float32, float16, int32; bfloat16 by a recipe
 *
 * Others fail with IPU_ERR_SHAPE when the graph is built, and the text names
 * the op, the tensor, and what would be accepted. Errors and threads are as in
 * ipu.h.
 */
#ifndef IPU_H
#include "ipu.h" /* ipu.h includes this file after those that it needs */
#elif !defined(IPU_NETWORK_H)
#define IPU_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- a recipe */

/* Says which collectives carry bfloat16. */
typedef struct ipu_bf16_recipe ipu_bf16_recipe;

/*
 * Reads a recipe, as the variable TF_BF16_CONVERSION has it: "0", "false" or ""
 * converts nothing; "1", "true" or "full" all collectives; "basic" products
 * only, thus no collective; anything else is the path of a JSON file, an object
 * with any of these members:
 *
 *     "allowlist", "allow_list"    types of ops whose float32 is converted
 *     "conditional_list"           types of ops that take bfloat16; float32 is
 *                                  converted by a reduction only, if products
 *                                  (MatMul, Conv2DBackpropFilter ...), which
 *                                  make gradients, are in the allowlist
 *     "strict_conditional_list"    types of ops that take bfloat16, but whose
 *                                  float32 stays
 *     "convertible_exceptions",
 *     "non_convertible_exceptions" pairs [expression, type]: for tensors whose
 *                                  name has a match of the extended regular
 *                                  expression, and ops of that type, or all if
 *                                  it is "", the answer is yes, or no
 *
 * Types are TensorFlow's: CollectiveReduce, CollectiveBcastSend,
 * CollectiveBcastRecv and CollectiveGather, with Hpu before them or V2 or V3
 * after them. Other types are allowed and change nothing here. The text of
 * IPU_ERR_DATA names the file, and the line or the member.
 */
int ipu_bf16_recipe_new(const char *setting, ipu_bf16_recipe **recipe);
void ipu_bf16_recipe_free(ipu_bf16_recipe *recipe); /* NULL is accepted */

/* ------------------------------------------------------------- the network */

/* Fill it with ipu_network_init; then change the fields that differ. */
typedef struct ipu_network {
    uint32_t size;                /* sizeof(ipu_network) */
    int32_t processes;            /* devices in the network: 1 */
    int32_t ports;                /* ports of a device: 10 */
    double port_bytes_per_second; /* 12.5e9: Ethernet of 100 Gbit/s */
    double efficiency;            /* fraction left after headers: 0.98 */
    double latency_seconds;       /* of a message; an assumption: 2e-6 */
    /* Gradients are packed up to this number of bytes, and one that has more is
     * a pack by itself: 4 MiB. 0: all that have the same dtype are one pack. */
    int64_t pack_bytes;
    const ipu_bf16_recipe *recipe; /* borrowed while the graph is built; NULL:
                                      nothing is converted */
} ipu_network;

/* Describes the network of a Gaudi: ten ports of 100 Gbit/s into a switch that
 * is never the limit. */
void ipu_network_init(ipu_network *network, size_t size);

typedef int32_t ipu_collective_kind;
enum {
    IPU_COLLECTIVE_REDUCE = 0,
    IPU_COLLECTIVE_BROADCAST = 1,
    IPU_COLLECTIVE_GATHER = 2
};

/*
 * Returns how long a collective takes whose tensor has so many bytes on each
 * device, and how many bytes a device sends, on average. All are rings: a
 * reduction goes around twice, with 1 / processes of the tensor a message; a
 * gather once, with a tensor a message; a broadcast passes the tensor on in
 * pieces. Both places may be NULL.
 */
int ipu_model_collective(const ipu_network *network, ipu_collective_kind kind,
                         int64_t bytes, double *seconds, int64_t *sent_bytes);

/* ------------------------------------------------------------ in a program */

/*
 * Each process must build the same collectives. name is that of the collective,
 * by which processes find each other: no other of the program may have it. In
 * an update region (ipu_training.h), all processes must be due at the same
 * time.
 */

/* Returns the mean over all processes, or the sum, element by element. Both
 * have derivatives, which travel in the same way, in a collective
 * "NAME/gradient": those of the sum of the losses of all processes. Halves are
 * rounded by what moves them. float32 travels as bfloat16 if the recipe
 * converts it, and is float32 again afterwards, as in the next two. */
ipu_tensor ipu_collective_mean(ipu_graph *graph, const ipu_network *network,
                               const char *name, ipu_tensor x);
ipu_tensor ipu_collective_sum(ipu_graph *graph, const ipu_network *network,
                              const char *name, ipu_tensor x);

/* Returns x of process root. */
ipu_tensor ipu_collective_broadcast(ipu_graph *graph,
                                    const ipu_network *network,
                                    const char *name, ipu_tensor x,
                                    int32_t root);

/* Returns the x of all processes, in their order, along dimension 0. All have
 * the same shape; a scalar counts as [1]. */
ipu_tensor ipu_collective_gather(ipu_graph *graph, const ipu_network *network,
                                 const char *name, ipu_tensor x);

/* Fails: a device's network has no all-to-all. The text says what to use. */
ipu_tensor ipu_collective_all_to_all(ipu_graph *graph,
                                     const ipu_network *network,
                                     const char *name, ipu_tensor x);

/* Normalises as ipu_batch_norm of the batches of all processes together would,
 * which are equally large; and of all replicas of each, if it has several. The
 * means and the variances travel in two collectives, "NAME/mean" and
 * "NAME/variance", and so do their derivatives. All processes keep the same
 * running statistics. */
ipu_tensor ipu_collective_batch_norm(
    ipu_graph *graph, const ipu_network *network, const char *name,
    ipu_tensor x, ipu_tensor scale, ipu_tensor offset, ipu_tensor running_mean,
    ipu_tensor running_variance, double momentum, double epsilon);

/*
 * Averages each of count gradients over all processes. They are packed on the
 * device, from the last on, which the backward pass has first; a pack is one
 * collective, "gradients/0" and so on, and leaves as soon as it is complete.
 * averaged may be the array gradients.
 */
int ipu_collective_gradients(ipu_graph *graph, const ipu_network *network,
                             int32_t count, const ipu_tensor *gradients,
                             ipu_tensor *averaged);

/* -------------------------------------------------------- running a program */

/* One collective of a run. */
typedef struct ipu_collective {
    const char *name;
    ipu_collective_kind kind;
    ipu_dtype dtype;
    int32_t mean;  /* of a reduction: 1: the mean; 0: the sum */
    int32_t root;  /* of a broadcast */
    int64_t count; /* elements of this process */
} ipu_collective;

/*
 * What moves the bytes. The engine calls these on its own thread, in the same
 * order in all processes of the same program: start, and later finish, for each
 * collective of a run. Several may be on their way at once.
 *
 * A negative status ends the run, which then fails with IPU_ERR_CALLBACK,
 * ipu_engine_callback_status, and the text.
 */
typedef struct ipu_network_functions {
    uint32_t size; /* sizeof(ipu_network_functions) */
    /* Begins a collective of data, which stays where it is until finish; a
     * reduction and a broadcast may change it from now on. */
    int (*start)(void *context, const ipu_collective *collective, void *data);
    /* Waits until it has ended. data is that of start, and has the result; but
     * a gather's result goes to data, [processes, count]. */
    int (*finish)(void *context, const ipu_collective *collective, void *data);
    /* The run has failed: returns when no memory given to start is in use any
     * more. Called only if something has been started and not finished. */
    void (*abandon)(void *context);
    /* Returns the text of the last failure, borrowed until the next call;
     * NULL: there is none, as if it returned NULL. */
    const char *(*text)(void *context);
} ipu_network_functions;

/*
 * Connects an engine to a network of so many processes. functions are copied,
 * context is borrowed until the engine is freed or connected elsewhere; NULL
 * disconnects it. A program of one process needs no network, and any other
 * fails to run without one. Replicas have theirs by ipu_replicas_network, and
 * pipelines have none.
 *
 * Returns IPU_ERR_ARGUMENT, naming a collective, if the program is for another
 * number of processes; IPU_ERR_STATE while the engine runs.
 */
int ipu_engine_network(ipu_engine *engine,
                       const ipu_network_functions *functions, void *context,
                       int32_t processes);

#ifdef __cplusplus
}
#endif

#endif
