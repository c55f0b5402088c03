/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_collective.h - the network of the devices of all ranks: collectives of
 * a program (ipu_network.h), moved by libhvd.
 */
#ifndef MODELS_DEVICE_COLLECTIVE_H
#define MODELS_DEVICE_COLLECTIVE_H

#include <ipu.h>

struct device_collective;

/*
 * Makes a network of all ranks. recipe says which collectives carry bfloat16
 * (ipu_bf16_recipe_new); NULL: none. pack_bytes < 0: the default. Not
 * collective. PROBLEM with the text kept.
 */
int device_collective_new(const char *recipe, int64_t pack_bytes,
                          struct device_collective **network);

/* Free it after the devices that it is connected to. NULL is accepted. */
void device_collective_free(struct device_collective *network);

/* Returns the network for the graph; it is the network's. NULL: there is one
 * rank, and none is needed. */
const ipu_network *device_collective_model(
    const struct device_collective *network);

/* Connect an engine; or replicas, which share the network: each collective is
 * made once, by the first that comes. PROBLEM with the text kept. */
int device_collective_connect(struct device_collective *network,
                              ipu_engine *engine);
int device_collective_connect_replicas(struct device_collective *network,
                                       ipu_replicas *replicas);

/* Begins a run. The other two return the first problem in it, 0 if there was
 * none, and the seconds for which it waited. */
void device_collective_begin(struct device_collective *network);
int device_collective_problem(const struct device_collective *network);
double device_collective_waited(const struct device_collective *network);

#endif
