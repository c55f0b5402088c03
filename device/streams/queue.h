/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - what infeeds and outfeeds have in common, as the first member of
 * both: a name, the description of an element, the lock, and who holds a share.
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
    pthread_mutex_t lock; /* of all that follows, here and in the queue */
    pthread_cond_t changed;
    bool described;              /* it is known what an element is: */
    struct ipu__element element; /* ... of one replica */
    int32_t shares, engines;
    bool deleted;
    bool absent; /* of a loaded program, until a queue is connected */
};

/* IPU_ERR_ARGUMENT unless name, depth and replicas can be those of a queue.
 * depth_of says what the depth is of: "prefetch". */
int ipu__queue_check(const char *kind, const char *name, const char *depth_of,
                     int32_t depth, int32_t replicas);

/* With one share; fini is also for what init has failed on. */
int ipu__queue_init(struct ipu__queue *queue, const char *kind,
                    const char *name, int32_t replicas);
void ipu__queue_fini(struct ipu__queue *queue);

/* Say what an element is; again with the same: nothing; with others:
 * IPU_ERR_STATE. */
int ipu__queue_describe(struct ipu__queue *queue, int32_t count,
                        const ipu_feed_tensor *tensors);

void ipu__queue_retain(struct ipu__queue *queue);
/* Whether that was the last share: then the caller frees it all. */
bool ipu__queue_release(struct ipu__queue *queue);

int ipu__queue_attach(struct ipu__queue *queue, int32_t replicas);
void ipu__queue_detach(struct ipu__queue *queue);

/* Whether it may be deleted: IPU_ERR_NAME if it was never used, which why_not
 * explains; IPU_ERR_STATE while engines do. With the lock. */
int ipu__queue_check_delete(const struct ipu__queue *queue, bool used,
                            const char *why_not);

#endif
