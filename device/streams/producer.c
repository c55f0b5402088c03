/* SPDX-License-Identifier: Apache-2.0 */
/*
 * producer.c - the thread that reads a data set ahead.
 *
 * It fills the slots in the order of elements, and waits when the next one is
 * still full; a replica empties its own, and waits when it is empty. Replicas
 * that run one after the other would then wait for ever: so while one waits,
 * the rings of the others grow.
 *
 * It ends by itself at the end of the data or with the source's failure, both
 * of which come after the elements read before. Then, or when it is stopped,
 * the queue can be started again.
 *
 * next is called without the lock; so it may ask the queue for its numbers, but
 * not stop it, which waits for the producer.
 */
#include <string.h>

#include "base/error.h"
#include "streams/clock.h"
#include "streams/infeed.h"

/* Fill a slot: 1, or 0 at the end, or the source's failure. An empty data set
 * is begun again once only, by which it is known to be empty. */
static int read_element(struct ipu_infeed *q, unsigned char *memory)
{
    void *buffers[IPU_MAX_FEED_TENSORS];
    int got;

    for (int32_t i = 0; i < q->base.element.ntensors; i++)
        buffers[i] = memory + ipu__element_offset(&q->base.element, i);
    got = q->source.next(q->source.context, buffers);
    if (got != 0 || !q->repeat)
        return got;
    got = q->source.rewind(q->source.context);
    return got < 0 ? got : q->source.next(q->source.context, buffers);
}

/* Returns whether a replica waits for an element that has yet to be read. A
 * replica that only has to wake up does not count. The caller holds the
 * lock. */
static bool is_short(const struct ipu_infeed *q)
{
    for (int32_t r = 0; r < q->base.replicas; r++)
        if (q->rings[r].waiting && ipu__ring_depth(&q->rings[r].ring) == 0)
            return true;
    return false;
}

/* Returns whether the ring may be filled. The caller holds the lock. */
static bool may_fill(const struct ipu_infeed *q, const struct ipu__ring *ring)
{
    return ipu__ring_depth(ring) < q->depth ||
           (q->base.replicas > 1 && q->copying == 0 && is_short(q));
}

/* Waits until there is a free slot: returns 1, 0 if asked to stop, or
 * IPU_ERR_MEMORY. The caller holds the lock. */
static int await_slot(struct ipu_infeed *q, struct ipu__ring *ring)
{
    while (!q->stop && !may_fill(q, ring))
        pthread_cond_wait(&q->base.changed, &q->base.lock);
    if (q->stop)
        return 0;
    if (ipu__ring_depth(ring) < ring->room)
        return 1;
    return ipu__ring_grow(ring) < 0 ? IPU_ERR_MEMORY : 1;
}

static void *produce(void *argument)
{
    struct ipu_infeed *q = argument;

    pthread_mutex_lock(&q->base.lock);
    for (int64_t element = 0;; element++) {
        int32_t replica = (int32_t)(element % q->base.replicas);
        struct ipu__ring *ring = &q->rings[replica].ring;
        unsigned char *memory;
        double begun;
        int got;

        got = await_slot(q, ring);
        if (got <= 0) {
            q->at_end = got < 0;
            q->failure = got;
            break;
        }
        memory = ipu__ring_back(ring);
        pthread_mutex_unlock(&q->base.lock);
        begun = ipu__seconds();
        got = read_element(q, memory);
        pthread_mutex_lock(&q->base.lock);
        q->stats.read_seconds += ipu__seconds() - begun;
        if (got <= 0) {
            q->failure = got;
            q->at_end = true;
            break;
        }
        ring->filled++;
        q->stats.produced++;
        pthread_cond_broadcast(&q->base.changed);
    }
    pthread_cond_broadcast(&q->base.changed);
    pthread_mutex_unlock(&q->base.lock);
    return NULL;
}

void ipu__producer_stop(ipu_infeed *q)
{
    pthread_t producer = q->producer;

    if (!q->producing)
        return;
    q->producing = false;
    q->joining = q->stop = true;
    pthread_cond_broadcast(&q->base.changed);
    pthread_mutex_unlock(&q->base.lock);
    pthread_join(producer, NULL);
    pthread_mutex_lock(&q->base.lock);
    q->joining = false;
    pthread_cond_broadcast(&q->base.changed);
}

int ipu__producer_start(ipu_infeed *q)
{
    int error, status;

    if (q->ever_started && q->source.rewind) {
        status = q->source.rewind(q->source.context);
        if (status < 0)
            return ipu__fail(IPU_ERR_CALLBACK,
                             "infeed '%s': rewinding the source returned %d",
                             q->base.name, status);
    }
    for (int32_t r = 0; r < q->base.replicas; r++)
        q->rings[r].ring.filled = q->rings[r].ring.taken = 0;
    q->stats = (ipu_infeed_stats){0};
    q->stop = q->at_end = false;
    q->failure = 0;
    q->started = false;
    error = pthread_create(&q->producer, NULL, produce, q);
    if (error)
        return ipu__fail(IPU_ERR_MEMORY,
                         "infeed '%s': a thread cannot be made: %s",
                         q->base.name, strerror(error));
    q->producing = q->started = q->ever_started = true;
    return IPU_OK;
}
