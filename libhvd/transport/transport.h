/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transport.h - how bytes move between the ranks of a world.
 *
 * A transport is a table of functions and its state. Nothing in it blocks:
 * sends and receives are started and tested, messages are posted and polled,
 * so that whoever drives can always do something else, or give up. One
 * thread at a time uses a transport (core's progress.c sees to that).
 *
 * There are two kinds of traffic. Messages carry the negotiation: of any
 * size, in order between two ranks, received from whoever sent. Transfers
 * carry tensors: the receiver knows peer, tag and size, and gives the memory.
 *
 * Functions return 0 or more on success, a negative HVD_ERR_* with the text
 * of hvd_last_error set on failure.
 */
#ifndef HVD_TRANSPORT_TRANSPORT_H
#define HVD_TRANSPORT_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hvd.h"

/* A transfer under way; lives with whoever started it. NULL: none, done. */
struct hvd__transfer {
    void *request;
};

/* Asked now and then while a collective call waits for other ranks: what is
 * negative ends the wait, with the last error set, and nothing can be done with
 * the transport any more but to close it. */
struct hvd__asked {
    int (*ask)(void *context);
    void *context;
};

struct hvd__transport {
    const char *name; /* "self", "mpi" */
    int rank;
    int size;
    bool threads; /* any thread may drive, one at a time */
    int ntags;    /* tags of transfers are 0 <= tag < ntags */
    /* Where bytes of transfers to other ranks are counted; NULL: nowhere. */
    atomic_int_fast64_t *sent_bytes;

    /* Start a transfer. The memory is borrowed until test says done. Between
     * two ranks, transfers of one tag match in the order started. bytes must
     * be the same on both sides. */
    int (*send)(struct hvd__transport *self, int peer, int tag,
                const void *data, size_t bytes, struct hvd__transfer *transfer);
    int (*receive)(struct hvd__transport *self, int peer, int tag, void *data,
                   size_t bytes, struct hvd__transfer *transfer);
    /* 1 done (at once for an empty transfer), 0 not yet. */
    int (*test)(struct hvd__transport *self, struct hvd__transfer *transfer);

    /* Send a message. message was malloc'ed and is owned by the transport
     * from now on, also on failure. */
    int (*post)(struct hvd__transport *self, int peer, void *message,
                size_t bytes);
    /* 1: *message is the caller's to free, from *peer; 0: there is none. */
    int (*poll)(struct hvd__transport *self, int *peer, void **message,
                size_t *bytes);
    /* Messages posted and still on their way out. Moves them. */
    int (*pending)(struct hvd__transport *self);

    /* Collective, blocking (it polls and sleeps): all[r] is what rank r gave
     * as mine, each of bytes. */
    int (*exchange)(struct hvd__transport *self, const void *mine, void *all,
                    size_t bytes);

    /* Collective. Frees self. Nothing may be under way. */
    void (*close)(struct hvd__transport *self);
};

/* One rank, no peers; messages it posts to itself come back. */
int hvd__self_open(struct hvd__transport **transport);

/* A communicator to open on; comm points to an MPI_Comm (a type that this
 * header must not know), NULL: MPI_COMM_WORLD. Collective. MPI has been started
 * (hvd__mpi_start), and threads is what that said. */
int hvd__mpi_open(const void *comm, bool threads,
                  const struct hvd__asked *asked,
                  struct hvd__transport **transport);

/* Make MPI live, initialising it if the program has not: then it is finalised
 * at exit. *threads: whether a thread of ours may call MPI while the program
 * runs; if not, *note, static, says in words what that costs; else it is
 * NULL. */
int hvd__mpi_start(bool *threads, const char **note);

/* The ranks in MPI_COMM_WORLD of a communicator's, in the order of theirs,
 * negative for those of other jobs: *n of them, the caller's to free. */
int hvd__mpi_members(const void *comm, int **ranks, int *n);

/* "Open MPI 4.1.4", static. */
const char *hvd__mpi_library(void);

/* Whether the program has initialised MPI, and not finalised it. */
bool hvd__mpi_is_live(void);

/* Call fn once, when MPI is about to be finalised or the process exits,
 * whichever comes first, while MPI still works. NULL: no longer. If fn sets
 * itself again, an exit leaves MPI without finalising it. */
void hvd__mpi_before_end(void (*fn)(void));

/* Call enter when MPI is being finalised, after the above and before ranks wait
 * for each other; is_last: because the process exits. And leave when it exits
 * and the program has finalised MPI before. */
void hvd__mpi_around_end(void (*enter)(bool is_last), void (*leave)(void));

#endif
