/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/strategy.h"

#include <ipu.h>
#include <stddef.h>

const char *const strategy_names[] = {
    [STRATEGY_HOROVOD] = "horovod",
    [STRATEGY_MULTI_WORKER] = "multi-worker",
    [STRATEGY_MIRRORED] = "mirrored",
    [STRATEGY_PARAMETER_SERVER] = "parameter-server",
    [STRATEGY_DEVICE_COLLECTIVE] = "device-collective",
    NULL};

const char *const sums_algorithms[] = {
    [IPU_CROSS_REPLICA_RING] = "ring",
    [IPU_CROSS_REPLICA_HIERARCHICAL] = "hierarchical",
    [IPU_CROSS_REPLICA_ONE_DEVICE] = "one-device",
    NULL};

const char *const servers_modes[] = {"sync", "async", "stale", NULL};
const char *const servers_placements[] = {"turns", "bytes", NULL};
