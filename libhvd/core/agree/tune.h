/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.h - searches for the sizes that move most bytes a second. It does not
 * depend on what it tunes.
 */
#ifndef HVD_CORE_TUNE_H
#define HVD_CORE_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "disk/disk.h"

/* The sizes that are tuned: powers of two. */
struct hvd__knobs {
    size_t fusion_threshold; /* bytes */
    size_t direct_max;       /* bytes: largest allreduce sent to all at once; 0:
                                by its cost */
};

enum { HVD__TUNE_SAMPLES = 5 };

struct hvd__tune {
    struct hvd__knobs now;  /* the sizes being tried */
    struct hvd__knobs best; /* the best sizes so far */
    double best_score;      /* bytes a second */
    size_t most_fusion;     /* the size of the buffers */
    int move;    /* 0, 1: fusion_threshold doubled, halved; 2, 3: direct_max */
    int nfailed; /* moves in a row without a gain; 4: the search is over */
    bool active;
    double samples[HVD__TUNE_SAMPLES];
    int nsamples; /* -1: the first sample of a setting, which is dropped */
    int64_t since_ns;
    int64_t bytes;
    struct disk__output log; /* may be closed */
};

/* Starts at these sizes. log is the path of a file that gets one line per
 * setting, or "". Fails with HVD_ERR_CONFIG. */
int hvd__tune_start(struct hvd__tune *tune, const struct hvd__knobs *first,
                    size_t most_fusion, const char *log);
void hvd__tune_fini(struct hvd__tune *tune);

/* Counts bytes that are done. Returns true if now has changed. Once active is
 * false, now holds the best sizes and stays. */
bool hvd__tune_step(struct hvd__tune *tune, int64_t bytes, int64_t now_ns);

/* Reads knobs that an earlier run found. Returns 1, or 0 if there is no such
 * file but one can be created. Fails with HVD_ERR_CONFIG. */
int hvd__knobs_read(struct hvd__knobs *knobs, const char *path);
int hvd__knobs_write(const struct hvd__knobs *knobs, const char *path);

#endif
