/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infeed.h - shared by the two files about infeeds: the queue itself, which
 * producer.c fills from the source and infeed.c empties to the device.
 *
 *     source --next--> slot slot slot --take--> device
 *              |       (a ring for each replica)  |
 *        the producer's thread              the engine's thread
 *
 * Element e belongs to replica e mod replicas. A slot is written or read
 * outside of the lock; the lock publishes the rings' counts.
 */
#ifndef IPU_STREAMS_INFEED_H
#define IPU_STREAMS_INFEED_H

#include "streams/queue.h"
#include "streams/ring.h"

/* The elements of one replica. */
struct ipu__replica_ring {
    struct ipu__ring ring;
    bool waiting; /* its taker found no element, and has not woken up since */
};

struct ipu_infeed {
    struct ipu__queue base; /* described from the beginning */
    ipu_source source;
    int32_t depth;
    bool repeat;
    /* The lock guards the rest: */
    /* owned, [replicas]; NULL: the queue is absent */
    struct ipu__replica_ring *rings;
    pthread_t producer;
    bool producing;    /* the thread is to be joined */
    bool joining;      /* a thread is joining it, and has given up the lock */
    bool started;      /* and not stopped */
    bool ever_started; /* the source may have been read */
    bool stop;         /* the producer is asked to end */
    bool at_end;       /* no more elements will be filled: */
    int failure; /* the source returned this status; 0: the data has ended */
    int32_t copying; /* takers that read slots */
    ipu_infeed_stats stats;
};

/* Starts the producer at the source's beginning, with empty rings. Returns
 * IPU_ERR_CALLBACK if the source cannot be rewound, or IPU_ERR_MEMORY. The
 * caller holds the lock. */
int ipu__producer_start(ipu_infeed *q);
/* Wait for it to end, if there is one, unless another thread is joining it.
 * With the lock, which is given up meanwhile. */
void ipu__producer_stop(ipu_infeed *q);

#endif
