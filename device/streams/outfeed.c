/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfeed.c - elements that programs enqueue for the host.
 *
 * Elements stand in two lists, oldest first: complete ones, and behind them
 * partial ones, which lack the parts of some replicas. A replica that has put
 * its part of the first n partial ones is n ahead; its next part goes to the
 * one after. Only complete ones are dequeued. LAST keeps one of them, the
 * newest.
 *
 * Two sides wait: a device that may not put more (blocking, ALL only), until
 * the host dequeues; the host, for an element or for the end of the runs. A run
 * that fails or is aborted wakes them all. Every wait has an end: the run's, a
 * time limit, an abort.
 *
 * Dequeuing hands the elements over to results, which copy them into one piece
 * for each tensor, outside of the lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "streams/outfeed.h"

void ipu_outfeed_options_init(ipu_outfeed_options *options, size_t size)
{
    if (!options)
        return;
    memset(options, 0, size);
    options->size = (uint32_t)size;
    options->buffer_depth = 3;
    options->replicas = 1;
}

/* ----------------------------------------------------------- life and death */

static int check_options(const ipu_outfeed_options *o)
{
    IPU_TRY(ipu__check_size("outfeed options", o->size, sizeof *o));
    IPU_TRY(ipu__queue_check("outfeed", o->name, "buffer", o->buffer_depth,
                             o->replicas));
    if (o->mode != IPU_OUTFEED_ALL && o->mode != IPU_OUTFEED_LAST)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "outfeed '%s': mode %d is neither ALL nor LAST",
                         o->name, (int)o->mode);
    if (o->most_elements < 0 || !(o->timeout_seconds >= 0))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "outfeed '%s': a limit is less than 0", o->name);
    return IPU_OK;
}

void ipu__puts_free(struct ipu__put *put)
{
    while (put) {
        struct ipu__put *next = put->next;

        free(put);
        put = next;
    }
}

static void outfeed_fini(struct ipu_outfeed *q)
{
    ipu__puts_free(q->complete.first);
    ipu__puts_free(q->partial.first);
    free(q->ahead);
    ipu__queue_fini(&q->base);
    free(q);
}

int ipu_outfeed_new(const ipu_outfeed_options *options, ipu_outfeed **outfeed)
{
    struct ipu_outfeed *q;
    int status;

    if (!options || !outfeed)
        return ipu__fail(IPU_ERR_ARGUMENT, "outfeed: %s is NULL",
                         options ? "the place for it" : "options");
    IPU_TRY(check_options(options));
    IPU_TRY(ipu__new(&q, sizeof *q));
    status =
        ipu__queue_init(&q->base, "outfeed", options->name, options->replicas);
    q->options = *options;
    q->options.name = NULL; /* the caller's */
    q->ahead = calloc((size_t)options->replicas, sizeof *q->ahead);
    if (status == IPU_OK && !q->ahead)
        status = ipu__fail_memory((size_t)options->replicas * sizeof *q->ahead);
    if (status < 0) {
        outfeed_fini(q);
        return status;
    }
    *outfeed = q;
    return IPU_OK;
}

int ipu__outfeed_absent(const char *name, int32_t replicas, int32_t count,
                        const ipu_feed_tensor *tensors, ipu_outfeed **outfeed)
{
    ipu_outfeed_options o;
    ipu_outfeed *q = NULL;
    int status;

    ipu_outfeed_options_init(&o, sizeof o);
    o.name = name;
    o.replicas = replicas;
    status = ipu_outfeed_new(&o, &q);
    if (!q)
        return status;
    q->base.absent = true;
    status = ipu__outfeed_describe(q, count, tensors);
    if (status < 0) {
        ipu__outfeed_release(q);
        return status;
    }
    *outfeed = q;
    return IPU_OK;
}

void ipu__outfeed_retain(ipu_outfeed *q)
{
    ipu__queue_retain(&q->base);
}

void ipu__outfeed_release(ipu_outfeed *q)
{
    if (q && ipu__queue_release(&q->base))
        outfeed_fini(q);
}

int ipu__outfeed_attach(ipu_outfeed *q, int32_t replicas)
{
    return ipu__queue_attach(&q->base, replicas);
}

void ipu__outfeed_detach(ipu_outfeed *q)
{
    ipu__queue_detach(&q->base);
}

int ipu_outfeed_delete(ipu_outfeed *q)
{
    int status;

    if (!q)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "outfeed delete: the outfeed is NULL");
    pthread_mutex_lock(&q->base.lock);
    status = ipu__queue_check_delete(&q->base, q->base.described,
                                     "no program enqueues into it");
    pthread_mutex_unlock(&q->base.lock);
    if (status == IPU_OK)
        ipu_outfeed_free(q);
    return status;
}

void ipu_outfeed_free(ipu_outfeed *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->base.lock);
    q->base.deleted = true;
    q->aborted = true;
    pthread_cond_broadcast(&q->base.changed);
    pthread_mutex_unlock(&q->base.lock);
    ipu__outfeed_release(q);
}

/* --------------------------------------------------------------- the device */

int ipu__outfeed_describe(ipu_outfeed *q, int32_t count,
                          const ipu_feed_tensor *tensors)
{
    return ipu__queue_describe(&q->base, count, tensors);
}

int32_t ipu__outfeed_tensors(const ipu_outfeed *q,
                             const ipu_feed_tensor **tensors)
{
    *tensors = q->base.element.tensors;
    return q->base.element.ntensors;
}

/* Parts without their others, of a run that failed. */
static void drop_partial(struct ipu_outfeed *q)
{
    ipu__puts_free(q->partial.first);
    q->partial = (struct ipu__puts){0};
    memset(q->ahead, 0, (size_t)q->base.replicas * sizeof *q->ahead);
}

void ipu__outfeed_begin(ipu_outfeed *q)
{
    pthread_mutex_lock(&q->base.lock);
    if (q->runs++ == 0) {
        q->aborted = q->base.deleted;
        q->failure = 0;
        drop_partial(q);
    }
    q->runner = pthread_self();
    pthread_mutex_unlock(&q->base.lock);
}

void ipu__outfeed_end(ipu_outfeed *q, int status)
{
    pthread_mutex_lock(&q->base.lock);
    q->runs--;
    if (status < 0)
        q->failure = status;
    pthread_cond_broadcast(&q->base.changed);
    pthread_mutex_unlock(&q->base.lock);
}

static bool is_full(const struct ipu_outfeed *q)
{
    return q->options.blocking && q->options.mode == IPU_OUTFEED_ALL &&
           q->complete.count >= q->options.buffer_depth;
}

/* Waits until an element may be added. The caller holds the lock. */
static int await_room(struct ipu_outfeed *q)
{
    struct timespec deadline;
    bool limited = q->options.timeout_seconds > 0;

    if (limited)
        deadline = ipu__deadline(q->options.timeout_seconds);
    while (is_full(q) && !q->aborted) {
        if (!limited)
            pthread_cond_wait(&q->base.changed, &q->base.lock);
        else if (pthread_cond_timedwait(&q->base.changed, &q->base.lock,
                                        &deadline) == ETIMEDOUT &&
                 is_full(q))
            return ipu__fail(IPU_ERR_STATE,
                             "outfeed '%s' is full: nobody has dequeued for "
                             "%g seconds",
                             q->base.name, q->options.timeout_seconds);
    }
    if (q->aborted)
        return ipu__fail(IPU_ERR_STATE, "outfeed '%s' was aborted",
                         q->base.name);
    if (q->options.mode == IPU_OUTFEED_ALL && q->options.most_elements > 0 &&
        q->complete.count >= q->options.most_elements)
        return ipu__fail(
            IPU_ERR_STATE,
            "outfeed '%s' is full: nobody has dequeued the %" PRId64
            " elements it may keep",
            q->base.name, q->options.most_elements);
    return IPU_OK;
}

static void append_put(struct ipu__puts *list, struct ipu__put *put)
{
    put->next = NULL;
    *(list->last ? &list->last->next : &list->first) = put;
    list->last = put;
    list->count++;
}

/* The partial element of the replica's next part; NULL: no memory. */
static struct ipu__put *next_put(struct ipu_outfeed *q, int32_t replica)
{
    struct ipu__put *put = q->partial.first;

    for (int64_t i = 0; i < q->ahead[replica] && put; i++)
        put = put->next;
    if (put)
        return put;
    put =
        malloc(sizeof *put + q->base.element.total * (size_t)q->base.replicas);
    if (put) {
        put->parts = 0;
        append_put(&q->partial, put);
    }
    return put;
}

/* Moves the first partial element, of which all replicas have given their part,
 * to the complete ones. */
static void complete_first(struct ipu_outfeed *q)
{
    struct ipu__put *put = q->partial.first;

    q->partial.first = put->next;
    if (!put->next)
        q->partial.last = NULL;
    q->partial.count--;
    for (int32_t r = 0; r < q->base.replicas; r++)
        q->ahead[r]--;
    if (q->options.mode == IPU_OUTFEED_LAST) {
        ipu__puts_free(q->complete.first);
        q->complete = (struct ipu__puts){0};
    }
    append_put(&q->complete, put);
    pthread_cond_broadcast(&q->base.changed);
}

/* Puts the part of one replica. The caller holds the lock. */
static int put_part(struct ipu_outfeed *q, int32_t replica,
                    const void *const *buffers)
{
    struct ipu__put *put;
    unsigned char *to;

    IPU_TRY(await_room(q));
    put = next_put(q, replica);
    if (!put)
        return ipu__fail_memory(q->base.element.total);
    to = put->data;
    for (int32_t i = 0; i < q->base.element.ntensors; i++) {
        size_t bytes = q->base.element.bytes[i];

        memcpy(to + bytes * (size_t)replica, buffers[i], bytes);
        to += bytes * (size_t)q->base.replicas;
    }
    q->ahead[replica]++;
    if (++put->parts == q->base.replicas)
        complete_first(q);
    return IPU_OK;
}

int ipu__outfeed_put(ipu_outfeed *q, int32_t replica,
                     const void *const *buffers)
{
    int status;

    pthread_mutex_lock(&q->base.lock);
    status = put_part(q, replica, buffers);
    pthread_mutex_unlock(&q->base.lock);
    return status;
}

int ipu_outfeed_abort(ipu_outfeed *q)
{
    if (!q)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "outfeed abort: the outfeed is NULL");
    pthread_mutex_lock(&q->base.lock);
    q->aborted = true;
    pthread_cond_broadcast(&q->base.changed);
    pthread_mutex_unlock(&q->base.lock);
    return IPU_OK;
}

bool ipu__outfeed_is_absent(const ipu_outfeed *q)
{
    return q->base.absent;
}

const char *ipu__outfeed_name(const ipu_outfeed *q)
{
    return q->base.name;
}

int32_t ipu__outfeed_replicas(const ipu_outfeed *q)
{
    return q->base.replicas;
}

ipu_outfeed_mode ipu__outfeed_mode(const ipu_outfeed *q)
{
    return q->options.mode;
}
