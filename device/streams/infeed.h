/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infeed.h - what the two files about infeeds share: the queue itself, which
 * producer.c fills from the source and infeed.c empties to the device.
 *
 *     source --next--> slot slot slot --take--> device
 *              |       (a ring for each replica)  |
 *        the producer's thread              the engine's thread
 *
 * Element e is that of replica e mod replicas. A slot is written or read
 * outside of the lock, which publishes the rings' counts.
 */
#ifndef IPU_STREAMS_INFEED_H
#define IPU_STREAMS_INFEED_H

#include "streams/queue.h"
#include "streams/ring.h"

/* Of one replica. */
struct ipu__replica_ring {
    struct ipu__ring ring;
    bool waiting; /* its taker has found none, and has not woken up since */
};

struct ipu_infeed {
    struct ipu__queue base; /* described from the beginning */
    ipu_source source;
    int32_t depth;
    bool repeat;
    /* With the lock: */
    struct ipu__replica_ring *rings; /* owned, [replicas]; NULL: it is absent */
    pthread_t producer;
    bool producing;    /* the thread is to be joined */
    bool joining;      /* ... and is being: the lock has been given up */
    bool started;      /* and not stopped */
    bool ever_started; /* the source may have been read */
    bool stop;         /* the producer is asked to end */
    bool at_end;       /* no more elements than are filled: */
    int failure; /* because the source returned this; 0: the data has ended */
    int32_t copying; /* takers that read slots */
    ipu_infeed_stats stats;
};

/* From the source's beginning, with empty rings. With the lock.
 * IPU_ERR_CALLBACK: it cannot be rewound; IPU_ERR_MEMORY. */
int ipu__producer_start(ipu_infeed *q);
/* Wait for it to end, if there is one, unless another thread is joining it.
 * With the lock, which is given up meanwhile. */
void ipu__producer_stop(ipu_infeed *q);

#endif
