/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfeed.h - what the two files about outfeeds share: the queue itself, which
 * outfeed.c fills and dequeue.c empties.
 */
#ifndef IPU_STREAMS_OUTFEED_H
#define IPU_STREAMS_OUTFEED_H

#include <time.h>

#include "streams/queue.h"

/* One element: tensor after tensor, of each the replicas' parts. */
struct ipu__put {
    struct ipu__put *next;
    int32_t parts; /* that are there */
    unsigned char data[];
};

struct ipu__puts {
    struct ipu__put *first, *last; /* owned */
    int64_t count;
};

struct ipu_outfeed {
    struct ipu__queue base; /* described by the program */
    ipu_outfeed_options options;
    /* With the lock: */
    struct ipu__puts complete, partial;
    int64_t *ahead; /* owned, [replicas] */
    bool aborted;
    int failure; /* of the last run; 0: none */
    int32_t runs;
    pthread_t runner; /* the thread of the last run to begin */
};

/* A list and what follows. */
void ipu__puts_free(struct ipu__put *first);

/* Seconds from now, as the conditions of outfeeds count. */
struct timespec ipu__deadline(double seconds);

#endif
