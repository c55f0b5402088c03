/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dequeue.c - takes elements from an outfeed, and makes the host's results of
 * them.
 *
 * Elements are taken from the queue under its lock, as a list; then each tensor
 * of all of them is copied into one piece of memory, outside of the lock. The
 * description of an element does not change once it is there.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "streams/outfeed.h"

struct ipu_results {
    int64_t count;
    bool single; /* without the dimension of elements */
    int32_t replicas;
    struct ipu__element element;
    unsigned char *data[IPU_MAX_FEED_TENSORS]; /* owned */
};

struct timespec ipu__deadline(double seconds)
{
    struct timespec t;
    double whole = floor(fmin(seconds, 1e9));

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)whole;
    t.tv_nsec += (long)((fmin(seconds, 1e9) - whole) * 1e9);
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

/* ------------------------------------------------------------------ results */

void ipu_results_free(ipu_results *results)
{
    if (!results)
        return;
    for (int32_t i = 0; i < results->element.ntensors; i++)
        free(results->data[i]);
    ipu__element_fini(&results->element);
    free(results);
}

static int allocate_tensors(ipu_results *results)
{
    for (int32_t i = 0; i < results->element.ntensors; i++) {
        size_t bytes = results->element.bytes[i] * (size_t)results->replicas *
                       (size_t)results->count;

        results->data[i] = malloc(bytes ? bytes : 1);
        if (!results->data[i])
            return ipu__fail_memory(bytes);
    }
    return IPU_OK;
}

/* Makes the result of count elements of a queue that is described. */
static int make_results(const struct ipu_outfeed *q, const struct ipu__put *put,
                        int64_t count, bool single, ipu_results **made)
{
    ipu_results *results;
    int status;

    IPU_TRY(ipu__new(&results, sizeof *results));
    results->count = count;
    results->single = single;
    results->replicas = q->base.replicas;
    status =
        ipu__element_init(&results->element, "results",
                          q->base.element.ntensors, q->base.element.tensors);
    if (status == IPU_OK)
        status = allocate_tensors(results);
    if (status < 0) {
        ipu_results_free(results);
        return status;
    }
    for (int64_t n = 0; n < count; n++, put = put->next) {
        const unsigned char *from = put->data;

        for (int32_t i = 0; i < results->element.ntensors; i++) {
            size_t bytes =
                results->element.bytes[i] * (size_t)results->replicas;

            memcpy(results->data[i] + bytes * (size_t)n, from, bytes);
            from += bytes;
        }
    }
    *made = results;
    return IPU_OK;
}

int64_t ipu_results_count(const ipu_results *results)
{
    return results ? results->count
                   : ipu__fail(IPU_ERR_ARGUMENT, "the results are NULL");
}

static int find_tensor(const ipu_results *results, const char *name)
{
    const struct ipu__element *e = &results->element;
    char names[256];
    int used = 0;

    if (!name && e->ntensors == 1)
        return 0;
    for (int32_t i = 0; i < e->ntensors; i++) {
        if (name && strcmp(e->tensors[i].name, name) == 0)
            return i;
        if (used < (int)sizeof names)
            used += snprintf(names + used, sizeof names - (size_t)used,
                             "%s'%.60s'", i ? ", " : "", e->tensors[i].name);
    }
    if (!name)
        return ipu__fail(IPU_ERR_NAME, "say which of the tensors: %s", names);
    return ipu__fail(IPU_ERR_NAME, "there is no tensor '%s' in: %s", name,
                     names);
}

int ipu_results_tensor(const ipu_results *results, const char *name,
                       ipu_dtype *dtype, int64_t *shape, const void **data)
{
    const ipu_feed_tensor *t;
    int32_t ndim = 0;
    int i;

    if (!results)
        return ipu__fail(IPU_ERR_ARGUMENT, "the results are NULL");
    i = find_tensor(results, name);
    IPU_TRY(i);
    t = &results->element.tensors[i];
    if (dtype)
        *dtype = t->dtype;
    if (data)
        *data = results->data[i];
    if (shape && !results->single)
        shape[ndim] = results->count;
    ndim += !results->single;
    if (shape && results->replicas > 1)
        shape[ndim] = results->replicas;
    ndim += results->replicas > 1;
    if (shape)
        memcpy(shape + ndim, t->shape, (size_t)t->ndim * sizeof *shape);
    return ndim + t->ndim;
}

/* ---------------------------------------------------------------- dequeuing */

/* Checks that the queue is described. The caller holds the lock. */
static int check_described(const struct ipu_outfeed *q)
{
    if (q->base.described)
        return IPU_OK;
    return ipu__fail(IPU_ERR_STATE,
                     "outfeed '%s' is dequeued, but no program enqueues into "
                     "it",
                     q->base.name);
}

/* Takes at most count elements and adds them behind those of the list. The
 * caller holds the lock. */
static void take_elements(struct ipu_outfeed *q, int64_t count,
                          struct ipu__puts *taken)
{
    while (count-- > 0 && q->complete.first) {
        struct ipu__put *put = q->complete.first;

        q->complete.first = put->next;
        if (!put->next)
            q->complete.last = NULL;
        q->complete.count--;
        put->next = NULL;
        *(taken->last ? &taken->last->next : &taken->first) = put;
        taken->last = put;
        taken->count++;
    }
    pthread_cond_broadcast(&q->base.changed); /* there is room */
}

/* Takes all elements of the current run, until it ends. A device that waits for
 * room gets it. The caller holds the lock. */
static void take_until_idle(struct ipu_outfeed *q, struct ipu__puts *taken)
{
    take_elements(q, q->complete.count, taken);
    while (q->runs > 0 && !q->base.deleted) {
        pthread_cond_wait(&q->base.changed, &q->base.lock);
        if (q->complete.count > 0)
            take_elements(q, q->complete.count, taken);
    }
}

static int dequeue_all(struct ipu_outfeed *q, bool wait, ipu_results **results)
{
    struct ipu__puts taken = {0};
    int status;

    if (wait)
        take_until_idle(q, &taken);
    else
        take_elements(q, q->complete.count, &taken);
    pthread_mutex_unlock(&q->base.lock);
    status = make_results(q, taken.first, taken.count, false, results);
    ipu__puts_free(taken.first);
    pthread_mutex_lock(&q->base.lock);
    return status;
}

static int dequeue_last(struct ipu_outfeed *q, bool wait, ipu_results **results)
{
    while (wait && q->runs > 0 && !q->base.deleted)
        pthread_cond_wait(&q->base.changed, &q->base.lock);
    if (q->complete.count == 0)
        return ipu__fail(IPU_ERR_STATE,
                         "outfeed '%s': there is no last value before a "
                         "program has been run that enqueues one",
                         q->base.name);
    return make_results(q, q->complete.first, 1, true, results);
}

int ipu_outfeed_dequeue(ipu_outfeed *q, int32_t wait, ipu_results **results)
{
    int status;

    if (!q || !results)
        return ipu__fail(IPU_ERR_ARGUMENT, "dequeue: %s is NULL",
                         q ? "the place for results" : "the outfeed");
    pthread_mutex_lock(&q->base.lock);
    status = check_described(q);
    if (status == IPU_OK && wait && q->runs > 0 &&
        pthread_equal(q->runner, pthread_self()))
        status = ipu__fail(IPU_ERR_STATE,
                           "outfeed '%s': the thread that runs the engine "
                           "cannot wait for the end of the run",
                           q->base.name);
    if (status == IPU_OK)
        status = q->options.mode == IPU_OUTFEED_LAST
                     ? dequeue_last(q, wait != 0, results)
                     : dequeue_all(q, wait != 0, results);
    pthread_mutex_unlock(&q->base.lock);
    return status;
}

/* Returns the reason why no element will come; 0: one may. The caller holds the
 * lock. */
static int hopeless(const struct ipu_outfeed *q)
{
    if (q->aborted)
        return ipu__fail(IPU_ERR_STATE, "outfeed '%s' was aborted",
                         q->base.name);
    if (q->runs == 0 && q->failure < 0)
        return ipu__fail(IPU_ERR_STATE,
                         "outfeed '%s': the run that fed it has failed: %s",
                         q->base.name, ipu_strerror(q->failure));
    if (q->runs > 0 && pthread_equal(q->runner, pthread_self()))
        return ipu__fail(IPU_ERR_STATE,
                         "outfeed '%s': the thread that runs the engine cannot "
                         "wait for an element",
                         q->base.name);
    return IPU_OK;
}

/* Waits for an element: returns 1 for an element, 0 if the time is over. The
 * caller holds the lock. */
static int await_element(struct ipu_outfeed *q, double seconds)
{
    struct timespec deadline = ipu__deadline(seconds > 0 ? seconds : 0);
    bool over = seconds == 0;

    while (q->complete.count == 0) {
        IPU_TRY(over ? IPU_OK : hopeless(q));
        if (over)
            return 0;
        if (seconds < 0)
            pthread_cond_wait(&q->base.changed, &q->base.lock);
        else
            over = pthread_cond_timedwait(&q->base.changed, &q->base.lock,
                                          &deadline) == ETIMEDOUT;
    }
    return 1;
}

int ipu_outfeed_next(ipu_outfeed *q, double seconds, ipu_results **results)
{
    struct ipu__puts taken = {0};
    int status = IPU_OK;

    if (!q || !results)
        return ipu__fail(IPU_ERR_ARGUMENT, "next: %s is NULL",
                         q ? "the place for results" : "the outfeed");
    if (q->options.mode != IPU_OUTFEED_ALL)
        return ipu__fail(IPU_ERR_STATE,
                         "outfeed '%s' keeps only the last element: it cannot "
                         "be iterated over",
                         q->base.name);
    pthread_mutex_lock(&q->base.lock);
    status = check_described(q);
    if (status == IPU_OK)
        status = await_element(q, seconds);
    if (status > 0)
        take_elements(q, 1, &taken);
    pthread_mutex_unlock(&q->base.lock);
    if (status <= 0)
        return status;
    status = make_results(q, taken.first, 1, true, results);
    ipu__puts_free(taken.first);
    return status < 0 ? status : 1;
}

int64_t ipu_outfeed_count(ipu_outfeed *q)
{
    int64_t count;

    if (!q)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "outfeed count: the outfeed is NULL");
    pthread_mutex_lock(&q->base.lock);
    count = q->complete.count;
    pthread_mutex_unlock(&q->base.lock);
    return count;
}

int ipu_outfeed_clear(ipu_outfeed *q)
{
    struct ipu__puts taken = {0};

    if (!q)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "outfeed clear: the outfeed is NULL");
    pthread_mutex_lock(&q->base.lock);
    take_elements(q, q->complete.count, &taken);
    if (q->runs == 0) {
        q->failure = 0;
        q->aborted = q->base.deleted;
    }
    pthread_mutex_unlock(&q->base.lock);
    ipu__puts_free(taken.first);
    return IPU_OK;
}
