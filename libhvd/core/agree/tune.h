/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune.h - the search for the sizes that move most bytes a second. It knows
 * nothing of what it tunes.
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
    size_t direct_max;       /* bytes: largest allreduce sent to all at once */
};

enum { HVD__TUNE_SAMPLES = 5 };

struct hvd__tune {
    struct hvd__knobs now;  /* being tried */
    struct hvd__knobs best; /* so far */
    double best_score;      /* bytes a second */
    size_t most_fusion;     /* what there are buffers for */
    int knob;               /* which of them is being moved */
    int direction;          /* +1 or -1: doubled or halved */
    int nfailed; /* moves in a row that brought nothing; 4: it is done */
    bool active;
    double samples[HVD__TUNE_SAMPLES];
    int nsamples; /* -1: the first of a setting, which warms up */
    int64_t since_ns;
    int64_t bytes;
    struct disk__output log; /* may be closed */
};

/* Starts at these sizes. log: a file for a line per setting, or "".
 * HVD_ERR_CONFIG. */
int hvd__tune_start(struct hvd__tune *tune, const struct hvd__knobs *first,
                    size_t most_fusion, const char *log);
void hvd__tune_fini(struct hvd__tune *tune);

/* Counts bytes that are done. Returns true if now has changed; once active is
 * false, now is the best and stays. */
bool hvd__tune_step(struct hvd__tune *tune, int64_t bytes, int64_t now_ns);

/* Reads knobs that were found before: returns 1, or 0 if there is no such file,
 * but one can be made; HVD_ERR_CONFIG says what is wrong with it. */
int hvd__knobs_read(struct hvd__knobs *knobs, const char *path);
int hvd__knobs_write(const struct hvd__knobs *knobs, const char *path);

#endif
