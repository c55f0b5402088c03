/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - the network of an engine: functions that move the bytes of
 * collectives.
 */
#ifndef IPU_ENGINE_NETWORK_H
#define IPU_ENGINE_NETWORK_H

#include "graph/op.h"

struct ipu__network {
    ipu_network_functions functions;
    void *context;     /* borrowed */
    int32_t processes; /* 0: there is no network */
    int32_t under_way; /* collectives that are started and not finished */
};

/* IPU_ERR_STATE, naming a collective, if the program is for several processes
 * and there is no network. network may be NULL. */
int ipu__network_check_run(const struct ipu__network *network,
                           const ipu_executable *executable);

/* Runs a step that starts or finishes a collective. */
int ipu__network_run(struct ipu__network *network,
                     const struct ipu__call *call);

/* A run has failed. */
void ipu__network_abandon(struct ipu__network *network);

#endif
