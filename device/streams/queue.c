/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - the part that infeeds and outfeeds have in common: name,
 * description, and shares.
 *
 * A queue lives as long as somebody holds a share. Deleting, which is refused
 * while engines use the queue, gives up only the maker's share; the queue stays
 * for the others, but is of no use any more.
 *
 * The queue of a loaded program is absent: a description without a source or a
 * consumer, which no engine can use, until the host connects its own in its
 * place (file/queues.c).
 */
#include "streams/queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int ipu__queue_check(const char *kind, const char *name, const char *depth_of,
                     int32_t depth, int32_t replicas)
{
    if (!name || !name[0])
        return ipu__fail(IPU_ERR_ARGUMENT, "the %s has no name", kind);
    if (depth < 1 || depth > IPU__MOST_DEPTH)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s '%s': %s depth %d: it must be 1 to %d", kind, name,
                         depth_of, (int)depth, IPU__MOST_DEPTH);
    if (replicas < 1 || replicas > IPU__MOST_REPLICAS)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s '%s': %d replicas: there must be 1 to %d", kind,
                         name, (int)replicas, IPU__MOST_REPLICAS);
    return IPU_OK;
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

int ipu__queue_init(struct ipu__queue *q, const char *kind, const char *name,
                    int32_t replicas)
{
    pthread_mutex_init(&q->lock, NULL);
    init_condition(&q->changed);
    q->kind = kind;
    q->replicas = replicas;
    q->shares = 1;
    q->name = strdup(name);
    return q->name ? IPU_OK : ipu__fail_memory(strlen(name) + 1);
}

void ipu__queue_fini(struct ipu__queue *q)
{
    ipu__element_fini(&q->element);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->changed);
    free(q->name);
}

int ipu__queue_describe(struct ipu__queue *q, int32_t count,
                        const ipu_feed_tensor *tensors)
{
    struct ipu__element element;
    char what[160];
    int status = IPU_OK;

    snprintf(what, sizeof what, "%s '%.100s'", q->kind, q->name);
    IPU_TRY(ipu__element_init(&element, what, count, tensors));
    pthread_mutex_lock(&q->lock);
    if (!q->described) {
        q->element = element;
        q->described = true;
    } else {
        if (!ipu__element_equal(&q->element, &element))
            status = ipu__fail(IPU_ERR_STATE,
                               "%s '%s' has been enqueued by another program "
                               "with other names, dtypes or shapes",
                               q->kind, q->name);
        ipu__element_fini(&element);
    }
    pthread_mutex_unlock(&q->lock);
    return status;
}

void ipu__queue_retain(struct ipu__queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->shares++;
    pthread_mutex_unlock(&q->lock);
}

bool ipu__queue_release(struct ipu__queue *q)
{
    bool last;

    pthread_mutex_lock(&q->lock);
    last = --q->shares == 0;
    pthread_mutex_unlock(&q->lock);
    return last;
}

/* Checks that an engine may use the queue. The caller holds the lock. */
static int check_attach(const struct ipu__queue *q, int32_t replicas)
{
    if (q->absent)
        return ipu__fail(IPU_ERR_STATE,
                         "%s '%s' of the loaded program is only a description: "
                         "ipu_executable_connect_%s a queue first",
                         q->kind, q->name, q->kind);
    if (q->deleted)
        return ipu__fail(IPU_ERR_STATE, "%s '%s' has been deleted", q->kind,
                         q->name);
    if (replicas != q->replicas)
        return ipu__fail(IPU_ERR_STATE,
                         "%s '%s' has replication factor %d, the program %d",
                         q->kind, q->name, (int)q->replicas, (int)replicas);
    return IPU_OK;
}

int ipu__queue_attach(struct ipu__queue *q, int32_t replicas)
{
    int status;

    pthread_mutex_lock(&q->lock);
    status = check_attach(q, replicas);
    q->engines += status == IPU_OK;
    pthread_mutex_unlock(&q->lock);
    return status;
}

void ipu__queue_detach(struct ipu__queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->engines--;
    pthread_mutex_unlock(&q->lock);
}

int ipu__queue_check_delete(const struct ipu__queue *q, bool used,
                            const char *why_not)
{
    if (!used)
        return ipu__fail(IPU_ERR_NAME, "%s '%s' cannot be deleted: %s", q->kind,
                         q->name, why_not);
    if (q->engines > 0)
        return ipu__fail(IPU_ERR_STATE,
                         "%s '%s' cannot be deleted while %d engine%s it",
                         q->kind, q->name, (int)q->engines,
                         q->engines == 1 ? " uses" : "s use");
    return IPU_OK;
}
