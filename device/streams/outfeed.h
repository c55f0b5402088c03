/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfeed.h - shared by the two files about outfeeds: the queue itself, which
 * outfeed.c fills and dequeue.c empties.
 */
#ifndef IPU_STREAMS_OUTFEED_H
#define IPU_STREAMS_OUTFEED_H

#include <time.h>

#include "streams/queue.h"

/* One element: tensor after tensor, and for each the replicas' parts. */
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
    /* The lock guards the rest: */
    struct ipu__puts complete, partial;
    int64_t *ahead; /* owned, [replicas] */
    bool aborted;
    int failure; /* status of the last run; 0: it has not failed */
    int32_t runs;
    pthread_t runner; /* the thread that began the last run */
};

/* A list and what follows. */
void ipu__puts_free(struct ipu__put *first);

/* Seconds from now, as the conditions of outfeeds count. */
struct timespec ipu__deadline(double seconds);

#endif
