/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c - the slots of a ring, and the thread that fills them ahead.
 *
 * Without batches ahead there is one slot, which the caller fills. With n ahead
 * there are n + 1: the caller has one, and a thread fills the others. On a busy
 * machine it may get no processor in time: then the caller fills the next slot
 * itself. Whoever fills has `filling`.
 *
 * When all are full, the thread sleeps for as long as the caller needed for
 * half of them before, and wakes by itself. To be woken would cost the caller
 * some 30 us where a processor must be called out of its sleep, more than many
 * a batch takes; it wakes the thread only when few are left.
 */
#include "dataset/ring.h"

#include "dataset/crew.h"
#include "output/clock.h"
#include "output/problem.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double nap_min = 50e-6, nap_max = 50e-3; /* seconds */

struct ring {
    struct ring_maker maker;
    struct slot *slots; /* [n], owned */
    int n;
    /* With a thread, these are read and written with lock held. */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    pthread_t thread;
    bool has_thread; /* the caller's alone */
    bool quit;
    bool filling;          /* somebody fills a slot */
    bool failed;           /* the slot filled last has a failure */
    int64_t filled, freed; /* slots, since the thread started */
    int64_t taken;         /* the caller's alone */
    double nap;            /* seconds; the thread's alone */
};

/* ------------------------------------------------------------- the thread */

/* Fills the next slot. The lock is held, but not while it does so. */
static void fill_next(struct ring *ring)
{
    struct slot *slot = &ring->slots[ring->filled % ring->n];

    ring->filling = true;
    pthread_mutex_unlock(&ring->lock);
    ring->maker.fill(ring->maker.context, slot, slot->at);
    pthread_mutex_lock(&ring->lock);
    ring->filling = false;
    ring->failed = slot->status < 0;
    ring->filled++;
    pthread_cond_signal(&ring->moved);
}

/* Sleeps until half of the slots should be free, or somebody wakes the thread.
 */
static void take_nap(struct ring *ring)
{
    double since = clock_seconds();
    int64_t freed = ring->freed, used;
    double until = since + ring->nap;
    struct timespec t = {.tv_sec = (time_t)until};

    t.tv_nsec = (long)((until - (double)t.tv_sec) * 1e9);
    pthread_cond_clockwait(&ring->moved, &ring->lock, CLOCK_MONOTONIC, &t);
    used = ring->freed - freed;
    if (used > 0)
        ring->nap = (clock_seconds() - since) / (double)used * (ring->n / 2.0);
    else
        ring->nap *= 2;
    ring->nap = ring->nap < nap_min   ? nap_min
                : ring->nap > nap_max ? nap_max
                                      : ring->nap;
}

static void *read_ahead(void *context)
{
    struct ring *ring = context;

    pthread_mutex_lock(&ring->lock);
    while (!ring->quit && !ring->failed)
        if (ring->filling)
            pthread_cond_wait(&ring->moved, &ring->lock);
        else if (ring->filled - ring->freed == ring->n)
            take_nap(ring);
        else
            fill_next(ring);
    pthread_mutex_unlock(&ring->lock);
    return NULL;
}

void ring_stop(struct ring *ring)
{
    if (!ring->has_thread)
        return;
    pthread_mutex_lock(&ring->lock);
    ring->quit = true;
    pthread_cond_signal(&ring->moved);
    pthread_mutex_unlock(&ring->lock);
    pthread_join(ring->thread, NULL);
    ring->has_thread = ring->quit = ring->failed = false;
    ring->filled = ring->freed = ring->taken = 0;
}

/* ------------------------------------------------------------- the caller */

struct slot *ring_take(struct ring *ring, void *const *buffers)
{
    struct slot *first = &ring->slots[0];

    if (ring->n == 1) {
        if (first->status >= 0)
            ring->maker.fill(ring->maker.context, first,
                             buffers ? buffers : first->at);
        return first;
    }
    if (!ring->has_thread) {
        ring->nap = nap_min;
        if (thread_start(&ring->thread, read_ahead, ring) < 0)
            return NULL;
        ring->has_thread = true;
    }
    pthread_mutex_lock(&ring->lock);
    /* The caller has done with what it had; but a failure stays. */
    int64_t before = ring->taken - 1;
    if (before >= 0 && ring->slots[before % ring->n].status < 0)
        ring->taken--;
    else
        ring->freed = ring->taken;
    if (ring->filled - ring->taken <= ring->n / 4)
        pthread_cond_signal(&ring->moved);
    while (ring->filled == ring->taken)
        if (ring->filling)
            pthread_cond_wait(&ring->moved, &ring->lock);
        else
            fill_next(ring);
    pthread_mutex_unlock(&ring->lock);
    return &ring->slots[ring->taken++ % ring->n];
}

bool ring_is_ahead(const struct ring *ring)
{
    return ring->n > 1;
}

void ring_clear(struct ring *ring)
{
    for (int i = 0; i < ring->n; i++)
        ring->slots[i].status = 0;
}

/* ------------------------------------------------------------ making it */

static int make_slots(struct ring *ring)
{
    const struct ring_maker *m = &ring->maker;
    size_t bytes = m->lay_out(m->context, NULL, NULL);

    ring->slots = calloc((size_t)m->depth + 1, sizeof *ring->slots);
    for (int i = 0; ring->slots && i <= m->depth; i++) {
        struct slot *slot = &ring->slots[i];

        ring->n = i + 1;
        slot->memory = aligned_alloc(64, bytes + 64);
        slot->replica_rows =
            calloc((size_t)m->replicas, sizeof *slot->replica_rows);
        if (!slot->memory || !slot->replica_rows)
            break;
        m->lay_out(m->context, slot->memory, slot->at);
        if (i == m->depth)
            return 0;
    }
    return problem_fail(HVD_ERR_MEMORY,
                        "iterator: no memory for %d batches of %zu bytes",
                        m->depth + 1, bytes);
}

int ring_new(const struct ring_maker *maker, struct ring **made)
{
    struct ring *ring = calloc(1, sizeof *ring);
    int status;

    if (!ring)
        return problem_fail(HVD_ERR_MEMORY, "iterator: no memory");
    ring->maker = *maker;
    pthread_mutex_init(&ring->lock, NULL);
    pthread_cond_init(&ring->moved, NULL);
    status = make_slots(ring);
    if (status < 0)
        ring_free(ring);
    else
        *made = ring;
    return status;
}

void ring_free(struct ring *ring)
{
    if (!ring)
        return;
    ring_stop(ring);
    for (int i = 0; i < ring->n; i++) {
        free(ring->slots[i].memory);
        free(ring->slots[i].replica_rows);
        free(ring->slots[i].text);
    }
    free(ring->slots);
    pthread_mutex_destroy(&ring->lock);
    pthread_cond_destroy(&ring->moved);
    free(ring);
}
