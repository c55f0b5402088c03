/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition.h - the spread of a network over several IPUs, and the figures of
 * the modelled chips. stages.c makes the stages.
 */
#ifndef MODELS_PARTITION_H
#define MODELS_PARTITION_H

#include <stdbool.h>
#include <stdint.h>

struct partition {
    int stages;     /* 0: one IPU, no pipeline */
    int schedule;   /* an ipu_schedule */
    bool recompute; /* compute activations again, instead of keeping them */
};

/* Figures since the pipeline was made. */
struct partition_stats {
    int ipus; /* IPUs of all replicas */
    int64_t mini_batches, updates, slots;
    double idle;             /* share of the IPUs' time, 0 to 1 */
    double seconds;          /* time of the modelled chips */
    int64_t stash_bytes;     /* most that wait at a time on one IPU */
    int64_t tile_bytes;      /* used, on the fullest tile */
    int64_t bytes_per_tile;  /* a tile has */
    int64_t inter_ipu_bytes; /* between stages */
    int64_t averages;        /* averages of a gradient over the ranks */
    int64_t early; /* averages that had arrived when they were needed */
    double wait;   /* seconds that this process waited for other ranks */
};

/* The names, by ipu_schedule; ends with NULL. */
extern const char *const partition_schedules[];

#endif
