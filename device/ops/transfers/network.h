/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - collectives of a device's network, as the compiler and the engine
 * see them: a step that starts one, and a step that finishes it.
 */
#ifndef IPU_OPS_NETWORK_H
#define IPU_OPS_NETWORK_H

#include "ops/op.h"

/* The members of attributes that both steps have. */
static inline int32_t ipu__network_processes(const struct ipu__attributes *a)
{
    return a->size;
}

static inline double ipu__network_seconds(const struct ipu__attributes *a)
{
    return a->factors[0];
}

static inline int64_t ipu__network_bytes(const struct ipu__attributes *a)
{
    return (int64_t)a->factors[1];
}

/* Describes the collective of either step to what moves its bytes; call is that
 * of the step. */
ipu_collective ipu__network_collective(const struct ipu__call *call);

#endif
