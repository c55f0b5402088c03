/* SPDX-License-Identifier: Apache-2.0 */
/*
 * infeed.c - a data set, read ahead.
 *
 *     source --next--> slot slot slot --take--> device
 *              |       (a ring for each replica)  |
 *        the producer's thread              the engine's thread
 *
 * Element e is that of replica e mod replicas; each replica has a ring of
 * prefetch_depth slots. The producer fills the slots in the order of elements,
 * and waits when the next one is still full; a replica empties its own, and
 * waits when it is empty. Replicas that run one after the other would then wait
 * for ever: so while one waits, the rings of the others grow. A slot is written
 * or read outside of the lock: its owner is known from the counts filled and
 * taken, which the lock publishes.
 *
 * The producer ends by itself at the end of the data or with the source's
 * failure, both of which come after the elements read before. Then, or when it
 * is stopped, the queue can be started again.
 *
 * next is called without the lock; so it may ask the queue for its numbers, but
 * not stop it, which waits for the producer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "graph/error.h"
#include "streams/queue.h"
#include "target/target.h"

/* Of one replica: elements filled and taken since the start. */
struct ring {
    unsigned char *slots; /* owned, [room][stride] */
    int64_t room;
    int64_t filled, taken;
    bool waiting; /* its taker has found none, and has not woken up since */
};

struct ipu_infeed {
    struct ipu__queue base; /* described from the beginning */
    ipu_source source;
    size_t stride; /* bytes from slot to slot */
    int32_t depth;
    bool repeat;
    /* With the lock: */
    struct ring *rings; /* owned, [replicas]; NULL: it is absent */
    pthread_t producer;
    bool producing;    /* the thread is to be joined */
    bool started;      /* and not stopped */
    bool ever_started; /* the source may have been read */
    bool stop;         /* the producer is asked to end */
    bool at_end;       /* no more elements than are filled: */
    int failure; /* because the source returned this; 0: the data has ended */
    int32_t copying; /* takers that read slots */
    ipu_infeed_stats stats;
};

void ipu_infeed_options_init(ipu_infeed_options *options, size_t size)
{
    if (!options)
        return;
    memset(options, 0, size);
    options->size = (uint32_t)size;
    options->prefetch_depth = 3;
    options->replicas = 1;
}

/* ------------------------------------------------------------- life and death
 */

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
    q->rings = calloc((size_t)q->base.replicas, sizeof *q->rings);
    if (!q->rings)
        return ipu__fail_memory((size_t)q->base.replicas * sizeof *q->rings);
    for (int32_t r = 0; r < q->base.replicas; r++) {
        size_t bytes = q->stride * (size_t)q->depth;

        q->rings[r].slots = aligned_alloc(IPU__FEED_ALIGNMENT, bytes);
        q->rings[r].room = q->depth;
        if (!q->rings[r].slots)
            return ipu__fail_memory(bytes);
    }
    return IPU_OK;
}

static void fini(struct ipu_infeed *q)
{
    for (int32_t r = 0; q->rings && r < q->base.replicas; r++)
        free(q->rings[r].slots);
    free(q->rings);
    ipu__queue_fini(&q->base);
    free(q);
}

static int init(struct ipu_infeed *q, const ipu_infeed_options *o)
{
    IPU_TRY(ipu__queue_init(&q->base, "infeed", o->name, o->replicas));
    IPU_TRY(ipu__queue_describe(&q->base, o->ntensors, o->tensors));
    q->source = o->source;
    q->depth = o->prefetch_depth;
    q->repeat = o->repeat != 0;
    q->stride = ipu__element_offset(&q->base.element, q->base.element.ntensors);
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
    q = calloc(1, sizeof *q);
    if (!q)
        return ipu__fail_memory(sizeof *q);
    status = init(q, options);
    if (status == IPU_OK)
        status = init_rings(q);
    if (status < 0) {
        fini(q);
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
    q = calloc(1, sizeof *q);
    if (!q)
        return ipu__fail_memory(sizeof *q);
    status = init(q, &o);
    if (status < 0) {
        fini(q);
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
    fini(q);
}

int ipu__infeed_attach(ipu_infeed *q, int32_t replicas)
{
    return ipu__queue_attach(&q->base, replicas);
}

void ipu__infeed_detach(ipu_infeed *q)
{
    ipu__queue_detach(&q->base);
}

/* -------------------------------------------------------------- the producer
 */

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static unsigned char *slot(const struct ipu_infeed *q, int32_t replica,
                           int64_t element)
{
    const struct ring *ring = &q->rings[replica];

    return ring->slots + q->stride * (size_t)(element % ring->room);
}

static void buffers_of(const struct ipu_infeed *q, unsigned char *memory,
                       void **buffers)
{
    for (int32_t i = 0; i < q->base.element.ntensors; i++)
        buffers[i] = memory + ipu__element_offset(&q->base.element, i);
}

/* Fill a slot: 1, or 0 at the end, or the source's failure. An empty data set
 * is begun again once only, by which it is known to be empty. */
static int read_element(struct ipu_infeed *q, unsigned char *memory)
{
    void *buffers[IPU_MAX_FEED_TENSORS];
    int got;

    buffers_of(q, memory, buffers);
    got = q->source.next(q->source.context, buffers);
    if (got != 0 || !q->repeat)
        return got;
    got = q->source.rewind(q->source.context);
    return got < 0 ? got : q->source.next(q->source.context, buffers);
}

/* Twice the room. Slots move: nobody may read one. With the lock. */
static int grow(struct ipu_infeed *q, struct ring *ring)
{
    size_t bytes = q->stride * (size_t)ring->room * 2;
    unsigned char *slots = aligned_alloc(IPU__FEED_ALIGNMENT, bytes);

    if (!slots)
        return IPU_ERR_MEMORY;
    for (int64_t e = ring->taken; e < ring->filled; e++)
        memcpy(slots + q->stride * (size_t)(e % (2 * ring->room)),
               ring->slots + q->stride * (size_t)(e % ring->room), q->stride);
    free(ring->slots);
    ring->slots = slots;
    ring->room *= 2;
    return IPU_OK;
}

/* Whether a replica waits for an element that has yet to be read; not one that
 * only has to wake up for it. With the lock. */
static bool is_short(const struct ipu_infeed *q)
{
    for (int32_t r = 0; r < q->base.replicas; r++)
        if (q->rings[r].waiting && q->rings[r].filled == q->rings[r].taken)
            return true;
    return false;
}

/* With the lock. */
static bool may_fill(const struct ipu_infeed *q, const struct ring *ring)
{
    return ring->filled - ring->taken < q->depth ||
           (q->base.replicas > 1 && q->copying == 0 && is_short(q));
}

/* Until there is a free slot: 1; 0 if asked to stop, or no memory. With the
 * lock. */
static int await_slot(struct ipu_infeed *q, struct ring *ring)
{
    while (!q->stop && !may_fill(q, ring))
        pthread_cond_wait(&q->base.changed, &q->base.lock);
    if (q->stop)
        return 0;
    if (ring->filled - ring->taken < ring->room)
        return 1;
    return grow(q, ring) < 0 ? IPU_ERR_MEMORY : 1;
}

static void *produce(void *argument)
{
    struct ipu_infeed *q = argument;

    pthread_mutex_lock(&q->base.lock);
    for (int64_t element = 0;; element++) {
        int32_t replica = (int32_t)(element % q->base.replicas);
        struct ring *ring = &q->rings[replica];
        unsigned char *memory;
        double begun;
        int got;

        got = await_slot(q, ring);
        if (got <= 0) {
            q->at_end = got < 0;
            q->failure = got;
            break;
        }
        memory = slot(q, replica, ring->filled);
        pthread_mutex_unlock(&q->base.lock);
        begun = now();
        got = read_element(q, memory);
        pthread_mutex_lock(&q->base.lock);
        q->stats.read_seconds += now() - begun;
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

/* Wait for the producer to end. With the lock, which is given up meanwhile. */
static void join(struct ipu_infeed *q)
{
    pthread_t producer = q->producer;

    if (!q->producing)
        return;
    q->producing = false;
    q->stop = true;
    pthread_cond_broadcast(&q->base.changed);
    pthread_mutex_unlock(&q->base.lock);
    pthread_join(producer, NULL);
    pthread_mutex_lock(&q->base.lock);
}

/* With the lock. */
static int begin(struct ipu_infeed *q)
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
        q->rings[r].filled = q->rings[r].taken = 0;
    q->stats = (ipu_infeed_stats){0};
    q->stop = q->at_end = false;
    q->failure = 0;
    error = pthread_create(&q->producer, NULL, produce, q);
    if (error)
        return ipu__fail(IPU_ERR_MEMORY,
                         "infeed '%s': a thread cannot be made: %s",
                         q->base.name, strerror(error));
    q->producing = q->started = q->ever_started = true;
    return IPU_OK;
}

int ipu_infeed_start(ipu_infeed *q)
{
    int status;

    if (!q)
        return ipu__fail(IPU_ERR_ARGUMENT, "the infeed is NULL");
    pthread_mutex_lock(&q->base.lock);
    if (q->started && !q->at_end) {
        status = ipu__fail(IPU_ERR_STATE,
                           "infeed '%s' has been started: ipu_infeed_stop it "
                           "first",
                           q->base.name);
    } else {
        join(q);
        status = begin(q);
    }
    pthread_mutex_unlock(&q->base.lock);
    return status;
}

int ipu_infeed_stop(ipu_infeed *q)
{
    if (!q)
        return ipu__fail(IPU_ERR_ARGUMENT, "the infeed is NULL");
    pthread_mutex_lock(&q->base.lock);
    q->started = false;
    join(q);
    while (q->copying > 0)
        pthread_cond_wait(&q->base.changed, &q->base.lock);
    for (int32_t r = 0; q->rings && r < q->base.replicas; r++)
        q->rings[r].taken = q->rings[r].filled;
    pthread_mutex_unlock(&q->base.lock);
    return IPU_OK;
}

int ipu_infeed_delete(ipu_infeed *q)
{
    int status;

    if (!q)
        return ipu__fail(IPU_ERR_ARGUMENT, "the infeed is NULL");
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

/* ---------------------------------------------------------------- the device
 */

/* Why there is no element. With the lock. */
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

/* With the lock: until there is an element. */
static bool await_element(struct ipu_infeed *q, struct ring *ring)
{
    double begun;

    if (ring->filled > ring->taken || !q->started || q->at_end)
        return q->started && ring->filled > ring->taken;
    begun = now();
    ring->waiting = true;
    pthread_cond_broadcast(&q->base.changed); /* rings may grow */
    while (q->started && !q->at_end && ring->filled == ring->taken)
        pthread_cond_wait(&q->base.changed, &q->base.lock);
    ring->waiting = false;
    q->stats.waits++;
    q->stats.wait_seconds += now() - begun;
    return q->started && ring->filled > ring->taken;
}

int ipu__infeed_take(ipu_infeed *q, int32_t replica, void *const *buffers,
                     int *callback_status)
{
    struct ring *ring = &q->rings[replica];
    const unsigned char *from;
    int status = IPU_OK;

    pthread_mutex_lock(&q->base.lock);
    if (!await_element(q, ring)) {
        status = no_element(q, callback_status);
        pthread_mutex_unlock(&q->base.lock);
        return status;
    }
    from = slot(q, replica, ring->taken);
    q->copying++;
    pthread_mutex_unlock(&q->base.lock);
    for (int32_t i = 0; i < q->base.element.ntensors; i++)
        if (buffers[i])
            memcpy(buffers[i], from + ipu__element_offset(&q->base.element, i),
                   q->base.element.bytes[i]);
    pthread_mutex_lock(&q->base.lock);
    q->copying--;
    ring->taken++;
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
        return ipu__fail(IPU_ERR_ARGUMENT, "the infeed is NULL");
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
        stats->depth += (int32_t)(q->rings[r].filled - q->rings[r].taken);
    pthread_mutex_unlock(&q->base.lock);
    stats->size = size;
    return IPU_OK;
}

int ipu_iterator_new(const ipu_infeed_options *options, ipu_infeed **infeed)
{
    static int count;
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
