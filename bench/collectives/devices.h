/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices.h - which process runs where.
 */
#ifndef BENCH_DEVICES_H
#define BENCH_DEVICES_H

#include "tables/nccl_table.h"

/*
 * Collective, after hvd_init: what every rank runs on, in the order of ranks.
 * NULL, on every rank, if one has no memory for it. Owned by the caller;
 * devices_free accepts NULL.
 */
struct nccl_device *devices_gather(int nranks);
void devices_free(struct nccl_device *devices);

#endif
