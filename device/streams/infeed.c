/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infeed.c - a data set as a queue: its life, and the way of elements to the
 * device after producer.c has read them (infeed.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "streams/clock.h"
#include "streams/infeed.h"

void ipu_infeed_options_init(ipu_infeed_options *options, size_t size)
{
    if (!options)
        return;
    memset(options, 0, size);
    options->size = (uint32_t)size;
    options->prefetch_depth = 3;
    options->replicas = 1;
}

/* ----------------------------------------------------------- life and death */

static int check_options(const ipu_infeed_options *o)
{
    IPU_TRY(ipu__check_size("infeed options", o->size, sizeof *o));
    IPU_TRY(ipu__queue_check("infeed", o->name, "prefetch", o->prefetch_depth,
                             o->replicas));
    if (!o->source.next)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "infeed '%s': the source has no next function",
                         o->name);
    if (o->repeat && !o->source.rewind)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "infeed '%s': a source without a rewind function "
                         "cannot repeat",
                         o->name);
    return IPU_OK;
}

static int init_rings(struct ipu_infeed *q)
{
    const struct ipu__element *e = &q->base.element;

    IPU_TRY(
        ipu__new_array(&q->rings, (size_t)q->base.replicas, sizeof *q->rings));
    for (int32_t r = 0; r < q->base.replicas; r++)
        IPU_TRY(ipu__ring_init(&q->rings[r].ring,
                               ipu__element_offset(e, e->ntensors), q->depth));
    return IPU_OK;
}

static void infeed_fini(struct ipu_infeed *q)
{
    for (int32_t r = 0; q->rings && r < q->base.replicas; r++)
        ipu__ring_fini(&q->rings[r].ring);
    free(q->rings);
    ipu__queue_fini(&q->base);
    free(q);
}

static int infeed_init(struct ipu_infeed *q, const ipu_infeed_options *o)
{
    IPU_TRY(ipu__queue_init(&q->base, "infeed", o->name, o->replicas));
    IPU_TRY(ipu__queue_describe(&q->base, o->ntensors, o->tensors));
    q->source = o->source;
    q->depth = o->prefetch_depth;
    q->repeat = o->repeat != 0;
    return IPU_OK;
}

int ipu_infeed_new(const ipu_infeed_options *options, ipu_infeed **infeed)
{
    struct ipu_infeed *q;
    int status;

    if (!options || !infeed)
        return ipu__fail(IPU_ERR_ARGUMENT, "infeed: %s is NULL",
                         options ? "the place for it" : "options");
    IPU_TRY(check_options(options));
    IPU_TRY(ipu__new(&q, sizeof *q));
    status = infeed_init(q, options);
    if (status == IPU_OK)
        status = init_rings(q);
    if (status < 0) {
        infeed_fini(q);
        return status;
    }
    *infeed = q;
    return IPU_OK;
}

int ipu__infeed_absent(const char *name, int32_t replicas, int32_t count,
                       const ipu_feed_tensor *tensors, ipu_infeed **infeed)
{
    ipu_infeed_options o;
    struct ipu_infeed *q;
    int status;

    ipu_infeed_options_init(&o, sizeof o);
    o.name = name;
    o.replicas = replicas;
    o.ntensors = count;
    o.tensors = tensors;
    IPU_TRY(ipu__queue_check("infeed", name, "prefetch", 1, replicas));
    IPU_TRY(ipu__new(&q, sizeof *q));
    status = infeed_init(q, &o);
    if (status < 0) {
        infeed_fini(q);
        return status;
    }
    q->base.absent = true;
    *infeed = q;
    return IPU_OK;
}

void ipu__infeed_retain(ipu_infeed *q)
{
    ipu__queue_retain(&q->base);
}

void ipu__infeed_release(ipu_infeed *q)
{
    if (!q || !ipu__queue_release(&q->base))
        return;
    ipu_infeed_stop(q);
    if (q->source.close)
        q->source.close(q->source.context);
    infeed_fini(q);
}

int ipu__infeed_attach(ipu_infeed *q, int32_t replicas)
{
    return ipu__queue_attach(&q->base, replicas);
}

void ipu__infeed_detach(ipu_infeed *q)
{
    ipu__queue_detach(&q->base);
}

/* ------------------------------------------------------------------ control */

/* Waits until nobody fills slots or reads them. Others may have started the
 * queue again by then. The caller holds the lock, which is given up
 * meanwhile. */
static void settle(ipu_infeed *q)
{
    ipu__producer_stop(q);
    while (q->joining || q->copying > 0)
        pthread_cond_wait(&q->base.changed, &q->base.lock);
}

/* Returns whether the queue is started and not absent. The caller holds the
 * lock. */
static bool is_started(const ipu_infeed *q)
{
    return q->started && !q->at_end;
}

int ipu_infeed_start(ipu_infeed *q)
{
    int status;

    if (!q)
        return ipu__fail(IPU_ERR_ARGUMENT, "infeed start: the infeed is NULL");
    pthread_mutex_lock(&q->base.lock);
    if (!is_started(q))
        settle(q);
    if (is_started(q))
        status = ipu__fail(IPU_ERR_STATE,
                           "infeed '%s' has been started: ipu_infeed_stop it "
                           "first",
                           q->base.name);
    else
        status = ipu__producer_start(q);
    pthread_mutex_unlock(&q->base.lock);
    return status;
}

int ipu_infeed_stop(ipu_infeed *q)
{
    if (!q)
        return ipu__fail(IPU_ERR_ARGUMENT, "infeed stop: the infeed is NULL");
    pthread_mutex_lock(&q->base.lock);
    q->started = false;
    settle(q);
    for (int32_t r = 0; !q->started && q->rings && r < q->base.replicas; r++)
        q->rings[r].ring.taken = q->rings[r].ring.filled;
    pthread_mutex_unlock(&q->base.lock);
    return IPU_OK;
}

int ipu_infeed_delete(ipu_infeed *q)
{
    int status;

    if (!q)
        return ipu__fail(IPU_ERR_ARGUMENT, "infeed delete: the infeed is NULL");
    pthread_mutex_lock(&q->base.lock);
    status = ipu__queue_check_delete(&q->base, q->ever_started,
                                     "it has never been started");
    pthread_mutex_unlock(&q->base.lock);
    if (status == IPU_OK)
        ipu_infeed_free(q);
    return status;
}

void ipu_infeed_free(ipu_infeed *q)
{
    if (!q)
        return;
    ipu_infeed_stop(q);
    pthread_mutex_lock(&q->base.lock);
    q->base.deleted = true;
    pthread_mutex_unlock(&q->base.lock);
    ipu__infeed_release(q);
}

/* --------------------------------------------------------------- the device */

/* Returns the status that says why there is no element. The caller holds the
 * lock. */
static int no_element(const struct ipu_infeed *q, int *callback_status)
{
    if (!q->ever_started)
        return ipu__fail(IPU_ERR_STATE,
                         "infeed '%s' has not been started: call "
                         "ipu_infeed_start before the run",
                         q->base.name);
    if (!q->started)
        return ipu__fail(IPU_ERR_STATE, "infeed '%s' has been stopped",
                         q->base.name);
    if (q->failure == 0)
        return ipu__fail(IPU_ERR_END, "the data of infeed '%s' has ended",
                         q->base.name);
    if (callback_status)
        *callback_status = q->failure;
    return ipu__fail(IPU_ERR_CALLBACK,
                     "infeed '%s': the next function of its source returned %d",
                     q->base.name, q->failure);
}

/* Waits until there is an element. The caller holds the lock. */
static bool await_element(struct ipu_infeed *q, struct ipu__replica_ring *own)
{
    const struct ipu__ring *ring = &own->ring;
    double begun;

    if (ipu__ring_depth(ring) > 0 || !q->started || q->at_end)
        return q->started && ipu__ring_depth(ring) > 0;
    begun = ipu__seconds();
    own->waiting = true;
    pthread_cond_broadcast(&q->base.changed); /* rings may grow */
    while (q->started && !q->at_end && ipu__ring_depth(ring) == 0)
        pthread_cond_wait(&q->base.changed, &q->base.lock);
    own->waiting = false;
    q->stats.waits++;
    q->stats.wait_seconds += ipu__seconds() - begun;
    return q->started && ipu__ring_depth(ring) > 0;
}

int ipu__infeed_take(ipu_infeed *q, int32_t replica, void *const *buffers,
                     int *callback_status)
{
    struct ipu__replica_ring *own = &q->rings[replica];
    const unsigned char *from;
    int status = IPU_OK;

    pthread_mutex_lock(&q->base.lock);
    if (!await_element(q, own)) {
        status = no_element(q, callback_status);
        pthread_mutex_unlock(&q->base.lock);
        return status;
    }
    from = ipu__ring_front(&own->ring);
    q->copying++;
    pthread_mutex_unlock(&q->base.lock);
    for (int32_t i = 0; i < q->base.element.ntensors; i++)
        if (buffers[i])
            memcpy(buffers[i], from + ipu__element_offset(&q->base.element, i),
                   q->base.element.bytes[i]);
    pthread_mutex_lock(&q->base.lock);
    q->copying--;
    own->ring.taken++;
    q->stats.consumed++;
    pthread_cond_broadcast(&q->base.changed);
    pthread_mutex_unlock(&q->base.lock);
    return IPU_OK;
}

/* ------------------------------------------------------------------- asking */

bool ipu__infeed_is_absent(const ipu_infeed *q)
{
    return q->base.absent;
}

const char *ipu__infeed_name(const ipu_infeed *q)
{
    return q->base.name;
}

int32_t ipu__infeed_replicas(const ipu_infeed *q)
{
    return q->base.replicas;
}

size_t ipu__infeed_bytes(const ipu_infeed *q)
{
    return q->base.element.total;
}

int32_t ipu_infeed_tensors(const ipu_infeed *q, const ipu_feed_tensor **tensors)
{
    if (!q)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "infeed tensors: the infeed is NULL");
    if (tensors)
        *tensors = q->base.element.tensors;
    return q->base.element.ntensors;
}

int ipu_infeed_get_stats(ipu_infeed *q, ipu_infeed_stats *stats)
{
    uint32_t size;

    if (!q || !stats)
        return ipu__fail(IPU_ERR_ARGUMENT, "infeed stats: %s is NULL",
                         q ? "the place for them" : "the infeed");
    IPU_TRY(ipu__check_size("infeed stats", stats->size, sizeof *stats));
    size = stats->size;
    pthread_mutex_lock(&q->base.lock);
    *stats = q->stats;
    stats->depth = 0;
    for (int32_t r = 0; r < q->base.replicas; r++)
        stats->depth += (int32_t)ipu__ring_depth(&q->rings[r].ring);
    pthread_mutex_unlock(&q->base.lock);
    stats->size = size;
    return IPU_OK;
}

int ipu_iterator_new(const ipu_infeed_options *options, ipu_infeed **infeed)
{
    static int count; /* atomic, counted here alone; publishes nothing */
    ipu_infeed_options named;
    char name[32];
    int status;

    if (!options || !infeed)
        return ipu__fail(IPU_ERR_ARGUMENT, "iterator: %s is NULL",
                         options ? "the place for it" : "options");
    IPU_TRY(ipu__check_size("infeed options", options->size, sizeof *options));
    named = *options;
    if (!named.name || !named.name[0]) {
        snprintf(name, sizeof name, "iterator %d",
                 __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
        named.name = name;
    }
    IPU_TRY(ipu_infeed_new(&named, infeed));
    status = ipu_infeed_start(*infeed);
    if (status < 0) {
        ipu_infeed_free(*infeed);
        *infeed = NULL;
    }
    return status;
}
