/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poller.h - the scheme of Horovod 0.28, to compare with: a thread wakes each
 * millisecond, agrees by a bit vector on the tensors that all ranks have
 * submitted, and reduces these through a fusion buffer.
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
    MPI_Comm comm;                 /* a duplicate of MPI_COMM_WORLD */
    struct poller_tensor *tensors; /* owned */
    int n;
    uint64_t *bits; /* owned; tensors of this rank, then of all */
    int nwords;
    float *fusion; /* owned */
    int64_t fusion_count;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the tensors and the rest */
    pthread_cond_t progress;
    int stop;
    int code; /* the first failure of MPI */
};

/* Prepares for n tensors, with a fusion buffer of bytes. MPI must allow several
 * threads. Returns 0, or -1 without memory. Collective. */
int poller_init(struct poller *poller, int n, size_t bytes);
/* Frees everything; accepts a zeroed struct. Collective. */
void poller_fini(struct poller *poller);

/* Start and end the thread. poller_start returns 0, or -1 if there is no
 * thread. Collective. */
int poller_start(struct poller *poller);
void poller_stop(struct poller *poller);

/* Submits tensor i, which is summed over all ranks, in place. Only between
 * start and stop. */
void poller_submit(struct poller *poller, int i, float *data, int64_t count);
/* Waits until tensor i is done. Returns an MPI code. */
int poller_wait(struct poller *poller, int i);

#endif
