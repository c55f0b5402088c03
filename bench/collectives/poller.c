/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poller.c - one cycle, as Horovod's background loop runs it once all tensors
 * are in its cache, which is its fast path and its steady state:
 *
 *   sleep until a millisecond after the last cycle began
 *   MPI_Allreduce(BAND) of a bit for each tensor and three for the state,
 *     also when nothing is queued
 *   tensors that all ranks have, in order, are packed as long as they fit
 *     into the fusion buffer: copy in, one MPI_Allreduce, copy out;
 *     a single tensor is reduced in place
 *   the others wait for the next cycle
 *
 * A waiting caller sleeps on a condition variable. Horovod does more, which
 * this program leaves out: it converts frameworks' tensors, writes the
 * timeline, checks for stalls, and negotiates new tensors through rank 0.
 */
#include "collectives/poller.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STATE_BITS = 3, CYCLE_NS = 1000000 };

/* Bit 0 of the bit vector. It is inverted, so that AND over the ranks means
 * "any": it is clear if any rank wants to end. */
static const uint64_t GO_ON = 1;

/* ------------------------------------------------------------ what all have */

static int bit_of(const uint64_t *bits, int tensor)
{
    int bit = STATE_BITS + tensor;

    return (int)(bits[bit / 64] >> (bit % 64) & 1);
}

static void collect_bits(struct poller *p)
{
    memset(p->bits, 0, (size_t)p->nwords * sizeof *p->bits);
    pthread_mutex_lock(&p->lock);
    p->bits[0] = p->stop ? 0 : GO_ON;
    for (int i = 0; i < p->n; i++)
        if (p->tensors[i].queued) {
            int bit = STATE_BITS + i;

            p->bits[bit / 64] |= UINT64_C(1) << (bit % 64);
        }
    pthread_mutex_unlock(&p->lock);
}

/* ----------------------------------------------------------------- reducing */

static int sum_in_place(struct poller *p, float *data, int64_t count)
{
    return MPI_Allreduce(MPI_IN_PLACE, data, (int)count, MPI_FLOAT, MPI_SUM,
                         p->comm);
}

static int reduce_packed(struct poller *p, const int *batch, int n)
{
    int64_t at = 0;
    int code;

    for (int i = 0; i < n; i++) {
        const struct poller_tensor *t = &p->tensors[batch[i]];

        memcpy(p->fusion + at, t->data, (size_t)t->count * sizeof(float));
        at += t->count;
    }
    code = sum_in_place(p, p->fusion, at);
    at = 0;
    for (int i = 0; i < n; i++) {
        const struct poller_tensor *t = &p->tensors[batch[i]];

        memcpy(t->data, p->fusion + at, (size_t)t->count * sizeof(float));
        at += t->count;
    }
    return code;
}

static void run_batch(struct poller *p, const int *batch, int n)
{
    const struct poller_tensor *first = &p->tensors[batch[0]];
    int code = n == 1 ? sum_in_place(p, first->data, first->count)
                      : reduce_packed(p, batch, n);

    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < n; i++) {
        p->tensors[batch[i]].queued = 0;
        p->tensors[batch[i]].done = 1;
    }
    if (p->code == MPI_SUCCESS)
        p->code = code;
    pthread_cond_broadcast(&p->progress);
    pthread_mutex_unlock(&p->lock);
}

/* Reduces all tensors that every rank has. batch has room for all tensors. */
static void run_common(struct poller *p, int *batch)
{
    int64_t count = 0;
    int n = 0;

    for (int i = 0; i < p->n; i++) {
        if (!bit_of(p->bits, i))
            continue;
        if (n > 0 && count + p->tensors[i].count > p->fusion_count) {
            run_batch(p, batch, n);
            count = n = 0;
        }
        batch[n++] = i;
        count += p->tensors[i].count;
    }
    if (n > 0)
        run_batch(p, batch, n);
}

/* ------------------------------------------------------------------- cycles */

static void sleep_until_next(struct timespec *start)
{
    start->tv_nsec += CYCLE_NS;
    if (start->tv_nsec >= 1000000000) {
        start->tv_nsec -= 1000000000;
        start->tv_sec++;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, start, NULL);
    clock_gettime(CLOCK_MONOTONIC, start);
}

static void *run_cycles(void *argument)
{
    struct poller *p = argument;
    int *batch = (int *)(p->bits + p->nwords);
    struct timespec start;

    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        sleep_until_next(&start);
        collect_bits(p);
        MPI_Allreduce(MPI_IN_PLACE, p->bits, p->nwords, MPI_UINT64_T, MPI_BAND,
                      p->comm);
        run_common(p, batch);
    } while (p->bits[0] & GO_ON);
    return NULL;
}

/* ---------------------------------------------------------------- lifecycle */

int poller_init(struct poller *p, int n, size_t bytes)
{
    *p = (struct poller){.comm = MPI_COMM_NULL,
                         .n = n,
                         .nwords = (n + STATE_BITS + 63) / 64,
                         .fusion_count = (int64_t)(bytes / sizeof(float))};
    p->tensors = calloc((size_t)n, sizeof *p->tensors);
    /* The indices of a batch's tensors follow the bits. */
    p->bits = calloc(1, (size_t)p->nwords * sizeof *p->bits +
                            (size_t)n * sizeof(int));
    p->fusion = malloc(bytes);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->progress, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &p->comm);
    return p->tensors && p->bits && p->fusion ? 0 : -1;
}

void poller_fini(struct poller *p)
{
    if (p->n == 0)
        return;
    MPI_Comm_free(&p->comm);
    pthread_cond_destroy(&p->progress);
    pthread_mutex_destroy(&p->lock);
    free(p->tensors);
    free(p->bits);
    free(p->fusion);
    *p = (struct poller){0};
}

int poller_start(struct poller *p)
{
    p->stop = 0;
    p->code = MPI_SUCCESS;
    return pthread_create(&p->thread, NULL, run_cycles, p) == 0 ? 0 : -1;
}

void poller_stop(struct poller *p)
{
    pthread_mutex_lock(&p->lock);
    p->stop = 1;
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
}

void poller_submit(struct poller *p, int i, float *data, int64_t count)
{
    pthread_mutex_lock(&p->lock);
    p->tensors[i] =
        (struct poller_tensor){.data = data, .count = count, .queued = 1};
    pthread_mutex_unlock(&p->lock);
}

int poller_wait(struct poller *p, int i)
{
    int code;

    pthread_mutex_lock(&p->lock);
    while (!p->tensors[i].done)
        pthread_cond_wait(&p->progress, &p->lock);
    code = p->code;
    pthread_mutex_unlock(&p->lock);
    return code;
}
