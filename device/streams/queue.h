/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - the first member of both infeeds and outfeeds: a name, the
 * description of an element, the lock, and the number of shares.
 */
#ifndef IPU_STREAMS_QUEUE_H
#define IPU_STREAMS_QUEUE_H

#include <pthread.h>

#include "streams/streams.h"

enum { IPU__MOST_DEPTH = 255, IPU__MOST_REPLICAS = 4096 };

struct ipu__queue {
    const char *kind; /* static: "infeed", "outfeed" */
    char *name;       /* owned */
    int32_t replicas;
    pthread_mutex_t lock; /* guards all that follows, here and in the queue */
    pthread_cond_t changed;
    bool described;              /* the element is known: */
    struct ipu__element element; /* the part of one replica */
    int32_t shares, engines;
    bool deleted;
    bool absent; /* the queue belongs to a loaded program, and none is connected
                    yet */
};

/* IPU_ERR_ARGUMENT unless name, depth and replicas can be those of a queue.
 * depth_of says what the depth is of: "prefetch". */
int ipu__queue_check(const char *kind, const char *name, const char *depth_of,
                     int32_t depth, int32_t replicas);

/* Makes a queue with one share; fini also accepts a queue on which init has
 * failed. */
int ipu__queue_init(struct ipu__queue *queue, const char *kind,
                    const char *name, int32_t replicas);
void ipu__queue_fini(struct ipu__queue *queue);

/* Say what an element is; again with the same: nothing; with others:
 * IPU_ERR_STATE. */
int ipu__queue_describe(struct ipu__queue *queue, int32_t count,
                        const ipu_feed_tensor *tensors);

void ipu__queue_retain(struct ipu__queue *queue);
/* Gives up a share. Returns true if that was the last one: then the caller
 * frees the queue. */
bool ipu__queue_release(struct ipu__queue *queue);

int ipu__queue_attach(struct ipu__queue *queue, int32_t replicas);
void ipu__queue_detach(struct ipu__queue *queue);

/* Returns whether the queue may be deleted: IPU_ERR_NAME if it was never used,
 * which why_not explains; IPU_ERR_STATE while engines use it. The caller holds
 * the lock. */
int ipu__queue_check_delete(const struct ipu__queue *queue, bool used,
                            const char *why_not);

#endif
