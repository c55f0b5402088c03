/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outfeed.c - what programs enqueue, for the host.
 *
 * Elements stand in two lists, oldest first: complete ones, and behind them
 * partial ones, which lack the parts of some replicas. A replica that has put
 * its part of the first n partial ones is n ahead; its next part goes to the
 * one after. Only complete ones are dequeued. LAST keeps one of them, the
 * newest.
 *
 * Who waits: a device that may not put more (blocking, ALL only) until the host
 * dequeues; the host for an element, or for the end of the runs. A run that
 * fails or is aborted wakes them all. Every wait has an end of its own: the
 * run's, a time limit, an abort.
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

#include "graph/error.h"
#include "streams/outfeed.h"
#include "target/target.h"

enum { MOST_DEPTH = 255, MOST_REPLICAS = 4096 };

void ipu_outfeed_options_init(ipu_outfeed_options *options, size_t size)
{
    if (!options)
        return;
    memset(options, 0, size);
    options->size = (uint32_t)size;
    options->buffer_depth = 3;
    options->replicas = 1;
}

/* ------------------------------------------------------------- life and death
 */

static int check_options(const ipu_outfeed_options *o)
{
    IPU_TRY(ipu__check_size("outfeed options", o->size, sizeof *o));
    if (!o->name || !o->name[0])
        return ipu__fail(IPU_ERR_ARGUMENT, "the outfeed has no name");
    if (o->mode != IPU_OUTFEED_ALL && o->mode != IPU_OUTFEED_LAST)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "outfeed '%s': mode %d is neither ALL nor LAST",
                         o->name, (int)o->mode);
    if (o->buffer_depth < 1 || o->buffer_depth > MOST_DEPTH)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "outfeed '%s': buffer depth %d: it must be 1 to %d",
                         o->name, (int)o->buffer_depth, MOST_DEPTH);
    if (o->replicas < 1 || o->replicas > MOST_REPLICAS)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "outfeed '%s': %d replicas: there must be 1 to %d",
                         o->name, (int)o->replicas, MOST_REPLICAS);
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

static void fini(struct ipu_outfeed *q)
{
    ipu__puts_free(q->complete.first);
    ipu__puts_free(q->partial.first);
    ipu__element_fini(&q->element);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->changed);
    free(q->ahead);
    free(q->name);
    free(q);
}

/* Time limits are not to jump with the clock on the wall. */
static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

int ipu_outfeed_new(const ipu_outfeed_options *options, ipu_outfeed **outfeed)
{
    struct ipu_outfeed *q;

    if (!options || !outfeed)
        return ipu__fail(IPU_ERR_ARGUMENT, "outfeed: %s is NULL",
                         options ? "the place for it" : "options");
    IPU_TRY(check_options(options));
    q = calloc(1, sizeof *q);
    if (!q)
        return ipu__fail_memory(sizeof *q);
    pthread_mutex_init(&q->lock, NULL);
    init_condition(&q->changed);
    q->options = *options;
    q->shares = 1;
    q->name = strdup(options->name);
    q->ahead = calloc((size_t)options->replicas, sizeof *q->ahead);
    if (!q->name || !q->ahead) {
        fini(q);
        return ipu__fail_memory((size_t)options->replicas * sizeof *q->ahead);
    }
    *outfeed = q;
    return IPU_OK;
}

void ipu__outfeed_retain(ipu_outfeed *q)
{
    pthread_mutex_lock(&q->lock);
    q->shares++;
    pthread_mutex_unlock(&q->lock);
}

void ipu__outfeed_release(ipu_outfeed *q)
{
    bool last;

    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    last = --q->shares == 0;
    pthread_mutex_unlock(&q->lock);
    if (last)
        fini(q);
}

int ipu__outfeed_attach(ipu_outfeed *q, int32_t replicas)
{
    int status = IPU_OK;

    pthread_mutex_lock(&q->lock);
    if (q->deleted)
        status =
            ipu__fail(IPU_ERR_STATE, "outfeed '%s' has been deleted", q->name);
    else if (replicas != q->options.replicas)
        status = ipu__fail(IPU_ERR_STATE,
                           "outfeed '%s' has replication factor %d, the "
                           "program %d",
                           q->name, (int)q->options.replicas, (int)replicas);
    else
        q->engines++;
    pthread_mutex_unlock(&q->lock);
    return status;
}

void ipu__outfeed_detach(ipu_outfeed *q)
{
    pthread_mutex_lock(&q->lock);
    q->engines--;
    pthread_mutex_unlock(&q->lock);
}

int ipu_outfeed_delete(ipu_outfeed *q)
{
    int status = IPU_OK;

    if (!q)
        return ipu__fail(IPU_ERR_ARGUMENT, "the outfeed is NULL");
    pthread_mutex_lock(&q->lock);
    if (!q->described)
        status = ipu__fail(IPU_ERR_NAME,
                           "outfeed '%s' cannot be deleted: no program "
                           "enqueues into it",
                           q->name);
    else if (q->engines > 0)
        status = ipu__fail(IPU_ERR_STATE,
                           "outfeed '%s' cannot be deleted while %d engine%s "
                           "it",
                           q->name, (int)q->engines,
                           q->engines == 1 ? " uses" : "s use");
    pthread_mutex_unlock(&q->lock);
    if (status == IPU_OK)
        ipu_outfeed_free(q);
    return status;
}

void ipu_outfeed_free(ipu_outfeed *q)
{
    if (!q)
        return;
    pthread_mutex_lock(&q->lock);
    q->deleted = true;
    q->aborted = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    ipu__outfeed_release(q);
}

/* ---------------------------------------------------------------- the device
 */

int ipu__outfeed_describe(ipu_outfeed *q, int32_t count,
                          const ipu_feed_tensor *tensors)
{
    struct ipu__element element;
    char what[160];
    int status = IPU_OK;

    snprintf(what, sizeof what, "outfeed '%.100s'", q->name);
    IPU_TRY(ipu__element_init(&element, what, count, tensors));
    pthread_mutex_lock(&q->lock);
    if (!q->described) {
        q->element = element;
        q->described = true;
    } else {
        if (!ipu__element_equal(&q->element, &element))
            status = ipu__fail(IPU_ERR_STATE,
                               "outfeed '%s' has been enqueued by another "
                               "program with other names, dtypes or shapes",
                               q->name);
        ipu__element_fini(&element);
    }
    pthread_mutex_unlock(&q->lock);
    return status;
}

/* Parts without their others, of a run that failed. */
static void drop_partial(struct ipu_outfeed *q)
{
    ipu__puts_free(q->partial.first);
    q->partial = (struct ipu__puts){0};
    memset(q->ahead, 0, (size_t)q->options.replicas * sizeof *q->ahead);
}

void ipu__outfeed_begin(ipu_outfeed *q)
{
    pthread_mutex_lock(&q->lock);
    if (q->runs++ == 0) {
        q->aborted = q->deleted;
        q->failure = 0;
        drop_partial(q);
    }
    q->runner = pthread_self();
    pthread_mutex_unlock(&q->lock);
}

void ipu__outfeed_end(ipu_outfeed *q, int status)
{
    pthread_mutex_lock(&q->lock);
    q->runs--;
    if (status < 0)
        q->failure = status;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static bool is_full(const struct ipu_outfeed *q)
{
    return q->options.blocking && q->options.mode == IPU_OUTFEED_ALL &&
           q->complete.count >= q->options.buffer_depth;
}

/* With the lock: until an element may be added. */
static int await_room(struct ipu_outfeed *q)
{
    struct timespec deadline;
    bool limited = q->options.timeout_seconds > 0;

    if (limited)
        deadline = ipu__deadline(q->options.timeout_seconds);
    while (is_full(q) && !q->aborted) {
        if (!limited)
            pthread_cond_wait(&q->changed, &q->lock);
        else if (pthread_cond_timedwait(&q->changed, &q->lock, &deadline) ==
                     ETIMEDOUT &&
                 is_full(q))
            return ipu__fail(IPU_ERR_STATE,
                             "outfeed '%s' is full: nobody has dequeued for "
                             "%g seconds",
                             q->name, q->options.timeout_seconds);
    }
    if (q->aborted)
        return ipu__fail(IPU_ERR_STATE, "outfeed '%s' was aborted", q->name);
    if (q->options.mode == IPU_OUTFEED_ALL && q->options.most_elements > 0 &&
        q->complete.count >= q->options.most_elements)
        return ipu__fail(
            IPU_ERR_STATE,
            "outfeed '%s' is full: nobody has dequeued the %" PRId64
            " elements it may keep",
            q->name, q->options.most_elements);
    return IPU_OK;
}

static void append(struct ipu__puts *list, struct ipu__put *put)
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
    put = malloc(sizeof *put + q->element.total * (size_t)q->options.replicas);
    if (put) {
        put->parts = 0;
        append(&q->partial, put);
    }
    return put;
}

/* All replicas have given their part of the first partial element. */
static void complete_first(struct ipu_outfeed *q)
{
    struct ipu__put *put = q->partial.first;

    q->partial.first = put->next;
    if (!put->next)
        q->partial.last = NULL;
    q->partial.count--;
    for (int32_t r = 0; r < q->options.replicas; r++)
        q->ahead[r]--;
    if (q->options.mode == IPU_OUTFEED_LAST) {
        ipu__puts_free(q->complete.first);
        q->complete = (struct ipu__puts){0};
    }
    append(&q->complete, put);
    pthread_cond_broadcast(&q->changed);
}

/* With the lock. */
static int put_part(struct ipu_outfeed *q, int32_t replica,
                    const void *const *buffers)
{
    struct ipu__put *put;
    unsigned char *to;

    IPU_TRY(await_room(q));
    put = next_put(q, replica);
    if (!put)
        return ipu__fail_memory(q->element.total);
    to = put->data;
    for (int32_t i = 0; i < q->element.ntensors; i++) {
        size_t bytes = q->element.bytes[i];

        memcpy(to + bytes * (size_t)replica, buffers[i], bytes);
        to += bytes * (size_t)q->options.replicas;
    }
    q->ahead[replica]++;
    if (++put->parts == q->options.replicas)
        complete_first(q);
    return IPU_OK;
}

int ipu__outfeed_put(ipu_outfeed *q, int32_t replica,
                     const void *const *buffers)
{
    int status;

    pthread_mutex_lock(&q->lock);
    status = put_part(q, replica, buffers);
    pthread_mutex_unlock(&q->lock);
    return status;
}

int ipu_outfeed_abort(ipu_outfeed *q)
{
    if (!q)
        return ipu__fail(IPU_ERR_ARGUMENT, "the outfeed is NULL");
    pthread_mutex_lock(&q->lock);
    q->aborted = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return IPU_OK;
}

const char *ipu__outfeed_name(const ipu_outfeed *q)
{
    return q->name;
}

int32_t ipu__outfeed_replicas(const ipu_outfeed *q)
{
    return q->options.replicas;
}

ipu_outfeed_mode ipu__outfeed_mode(const ipu_outfeed *q)
{
    return q->options.mode;
}
