/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.h - how a network is spread over several IPUs, as the command line
 * has it, and what the modelled chips make of it. stages.h does it.
 */
#ifndef MODELS_PARTITION_H
#define MODELS_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

struct partition {
    int stages;     /* 0: one IPU, no pipeline */
    int schedule;   /* an ipu_schedule */
    int replicas;   /* copies of the pipeline; 1 or more */
    bool recompute; /* activations, instead of keeping them */
};

/* Since the pipeline was made. */
struct partition_stats {
    int ipus; /* of all replicas */
    int64_t mini_batches, updates, slots;
    double idle;             /* part of the IPUs' time, 0 to 1 */
    double seconds;          /* on the chips */
    int64_t stash_bytes;     /* that wait at a time, on the IPU with most */
    int64_t tile_bytes;      /* used, on the fullest tile */
    int64_t bytes_per_tile;  /* that there are */
    int64_t inter_ipu_bytes; /* between stages */
    int64_t averages;        /* of gradients over ranks */
    int64_t early;           /* ... that were there when they were needed */
    double wait;             /* seconds of this process, for other ranks */
};

/* -1 if there is no such schedule. */
int partition_schedule_from_name(const char *name);
const char *partition_schedule_name(int schedule);
/* "grouped, interleaved, sequential" */
extern const char partition_schedule_names[];

#endif
