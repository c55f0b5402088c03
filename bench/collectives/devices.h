/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices.h - lists which process runs where.
 */
#ifndef BENCH_DEVICES_H
#define BENCH_DEVICES_H

#include "tables/nccl_table.h"

/*
 * Gathers the process, host and processor of every rank, in the order of ranks.
 * Call it after hvd_init. Returns NULL, on every rank, if one has no memory for
 * the list. The list is to be freed. Collective.
 */
struct nccl_device *devices_gather(int nranks);

#endif
