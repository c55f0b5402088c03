/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poller.h - the scheme of Horovod 0.28, to compare with: a thread that wakes
 * each millisecond, agrees by a bit vector on what all ranks have submitted,
 * and reduces that through a fusion buffer.
 */
#ifndef BENCH_POLLER_H
#define BENCH_POLLER_H

#include <mpi.h>
#include <pthread.h>
#include <stdint.h>

struct poller_tensor {
    float *data; /* borrowed until done */
    int64_t count;
    int queued;
    int done;
};

struct poller {
    MPI_Comm comm;                 /* its own */
    struct poller_tensor *tensors; /* owned */
    int n;
    uint64_t *bits; /* owned; what this rank has, then what all have */
    int nwords;
    float *fusion; /* owned */
    int64_t fusion_count;
    pthread_t thread;
    pthread_mutex_t lock; /* of tensors' queued and done, stop, code */
    pthread_cond_t progress;
    int stop;
    int code; /* the first failure of MPI */
};

/* Collective: for n tensors, with a fusion buffer of bytes. MPI must allow
 * several threads. 0, or -1 without memory. */
int poller_init(struct poller *poller, int n, size_t bytes);
/* Collective; accepts a zeroed one. */
void poller_fini(struct poller *poller);

/* Collective: start and end the thread. 0, or -1 if there is none. */
int poller_start(struct poller *poller);
void poller_stop(struct poller *poller);

/* Sum tensor i over all ranks, in place; between start and stop. */
void poller_submit(struct poller *poller, int i, float *data, int64_t count);
/* Until it is done. An MPI code. */
int poller_wait(struct poller *poller, int i);

#endif
