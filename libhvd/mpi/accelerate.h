/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accelerate.h - the parts of libhvd-mpi.so, which is loaded before MPI and
 * does collectives of MPI programs by libhvd (docs/MPI.md).
 *
 * A collective becomes a struct hvd__accel_call: hvd__accel_enter says whether
 * libhvd may take calls on the communicator, a plan fills in the request, and
 * hvd__accel_run or hvd__accel_start does it. Where one of them says no, the
 * caller calls MPI. Every "no" depends only on what all ranks know.
 */
#ifndef HVD_MPI_ACCELERATE_H
#define HVD_MPI_ACCELERATE_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hvd.h"

/* In the order of the summary; names: collective_names in summary.c. */
enum hvd__accel_kind {
    HVD__ACCEL_ALLREDUCE,
    HVD__ACCEL_REDUCE,
    HVD__ACCEL_BCAST,
    HVD__ACCEL_ALLGATHER,
    HVD__ACCEL_ALLGATHERV,
    HVD__ACCEL_REDUCE_SCATTER,
    HVD__ACCEL_REDUCE_SCATTER_BLOCK,
    HVD__ACCEL_ALLTOALL,
    HVD__ACCEL_ALLTOALLV,
    HVD__ACCEL_BARRIER,
    HVD__ACCEL_KINDS
};

/* ------------------------------------------------------------------- state */

/* The choices that all ranks have made in MPI_Init, and this process' place in
 * MPI_COMM_WORLD (start.c). They stay until MPI_Finalize. */
struct hvd__accel {
    /* Set last in MPI_Init and cleared first in MPI_Finalize. It publishes the
     * other members to threads that call collectives. */
    atomic_bool is_on;
    bool may_start;     /* nonblocking calls are taken, too */
    bool takes_all;     /* also what MPI is faster at: HVD_MPI=all */
    bool is_threaded;   /* some rank has MPI_THREAD_MULTIPLE */
    bool is_over_ucx;   /* libhvd sends by UCX from host to host */
    bool wants_summary; /* HVD_MPI_SUMMARY */
    int rank, size;     /* of MPI_COMM_WORLD */
};
extern struct hvd__accel hvd__accel;

/* Threads and nesting. */
struct hvd__accel_thread {
    int inside;     /* libhvd calls that this thread is in */
    bool is_libhvd; /* it is one of libhvd's own threads */
};
extern _Thread_local struct hvd__accel_thread hvd__accel_thread
    __attribute__((tls_model("initial-exec")));

/* ----------------------------------------------------------- communicators */

/* The ranks of a communicator tell each other in their first large call of a
 * kind whether one of them has to pack its data. If so, such calls are MPI's
 * from then on. */
enum hvd__accel_large {
    HVD__ACCEL_LARGE_UNKNOWN,
    HVD__ACCEL_LARGE_FLAT,
    HVD__ACCEL_LARGE_PACKED
};

/* A communicator of the program, as an attribute of it. */
struct hvd__accel_comm {
    bool is_taken;   /* libhvd can do collectives on it */
    bool is_ordered; /* its ranks are in the order of MPI_COMM_WORLD */
    bool is_near;    /* they are all on one host */
    int rank, size;
    int32_t *ranks; /* owned, [size]: in MPI_COMM_WORLD; NULL: the same ones */
    /* Its process set: 0 if ranks is NULL; -1 until enough blocking collectives
     * have been counted that libhvd would be faster at. */
    int32_t set;
    int ncounted, enough;
    /* The same on all ranks, and different for each communicator of one process
     * set: 0 for MPI_COMM_WORLD; -1 until the first blocking collective. */
    int id;
    enum hvd__accel_large large[HVD__ACCEL_KINDS];
    atomic_llong nnamed; /* requests of this communicator that had a name */
};

/* Creates what communicators need, once in a process. Returns MPI's code. */
int hvd__accel_comm_init(void);

/* Returns what is known of the communicator, which is valid. Never NULL. */
struct hvd__accel_comm *hvd__accel_comm_of(MPI_Comm comm);

/* Returns true if the communicator has what its requests need; makes it, if
 * may_make is true and this collective is worth it. Then this is collective and
 * blocking over it. All of its ranks get the same answer. */
bool hvd__accel_comm_ready(struct hvd__accel_comm *state, MPI_Comm comm,
                           bool may_make);

/* Returns a rank of the communicator in MPI_COMM_WORLD. */
int hvd__accel_comm_world(const struct hvd__accel_comm *state, int rank);

/* ------------------------------------------------------------------- types */

/* The reduction of libhvd that does what an operation of MPI does to a type of
 * MPI. */
struct hvd__accel_reduction {
    hvd_dtype dtype;
    hvd_op op;
    int elements; /* of dtype in one of MPI's */
    size_t bytes; /* of one of MPI's */
};

void hvd__accel_types_init(void);

/* Returns false if libhvd cannot. All ranks get the same answer, because MPI
 * wants the same type and operation on all of them. */
bool hvd__accel_reduction_find(MPI_Datatype type, MPI_Op op,
                               struct hvd__accel_reduction *reduction);

/* ----------------------------------------------------------------- layouts */

/* Blocks of the program's memory, one for each rank, or one in all. */
struct hvd__accel_layout {
    void *buffer; /* borrowed */
    MPI_Datatype type;
    size_t bytes;       /* of data in an element */
    MPI_Aint extent;    /* from one element to the next */
    bool is_dense;      /* elements are data without gaps */
    bool owns_type;     /* type is a duplicate, to be freed */
    int nblocks, count; /* elements of each block, if counts is NULL */
    const int *counts;  /* borrowed, [nblocks] */
    const int *displs;  /* borrowed, [nblocks]: in extents */
};

/* Returns false for what MPI refuses, too. */
bool hvd__accel_layout_init(struct hvd__accel_layout *layout,
                            const void *buffer, int count, MPI_Datatype type,
                            int nblocks);
/* Does the same for blocks of different sizes. displs may be NULL if the
 * layout's memory is not used. */
bool hvd__accel_layout_init_v(struct hvd__accel_layout *layout,
                              const void *buffer, const int *counts,
                              const int *displs, MPI_Datatype type,
                              int nblocks);

/* Returns the bytes of data in a block. */
int64_t hvd__accel_layout_block(const struct hvd__accel_layout *layout, int i);
/* Returns the bytes of the largest block, and their sum. */
int64_t hvd__accel_layout_widest(const struct hvd__accel_layout *layout,
                                 int64_t *sum);
/* Returns true if the memory is nothing but the data of all blocks, in order.
 */
bool hvd__accel_layout_is_flat(const struct hvd__accel_layout *layout);

/* Copy the data of a block to or from other memory. Return MPI's code. */
int hvd__accel_layout_pack(const struct hvd__accel_layout *layout, int i,
                           void *to, MPI_Comm comm);
int hvd__accel_layout_unpack(const struct hvd__accel_layout *layout, int i,
                             const void *from, MPI_Comm comm);

/* ------------------------------------------------------------------- calls */

/* A collective of the program. */
struct hvd__accel_call {
    enum hvd__accel_kind kind;
    bool is_nonblocking;
    MPI_Comm comm;
    struct hvd__accel_comm *state; /* borrowed */
    int64_t began_ns;              /* 0: no summary is wanted */
    int64_t bytes;                 /* of this rank, for the summary */
    int code;                      /* MPI's, once the call has been done */
    int *state_of_request;         /* borrowed: the code of a nonblocking one */
    hvd_request request;
    int64_t count; /* the request's shape */
    void *room; /* owned: memory for data that does not lie as libhvd wants */
    /* Afterwards blocks of to are unpacked, from result on, stride bytes from
     * one to the next, except the block number skip (-1: none); or, if tail is
     * not NULL, tail_bytes are copied there from result. */
    struct hvd__accel_layout to;
    const char *result;
    int64_t stride;
    int skip;
    void *tail;
    size_t tail_bytes;
};

/* A plan turns the arguments of a collective into a request (plan.h). It
 * returns who does the call. */
enum hvd__accel_plan {
    HVD__ACCEL_LEFT,  /* MPI does it, on all ranks */
    HVD__ACCEL_TAKEN, /* libhvd does it, or tells all ranks that it cannot */
    HVD__ACCEL_DONE   /* it has been done: call->code */
};

/* Begins a collective. Returns true if libhvd may do it. */
bool hvd__accel_enter(struct hvd__accel_call *call, enum hvd__accel_kind kind,
                      MPI_Comm comm);
/* Does the same for a nonblocking one. */
bool hvd__accel_enter_nonblocking(struct hvd__accel_call *call,
                                  enum hvd__accel_kind kind, MPI_Comm comm);

/* Does what was planned, and waits. Returns false if MPI has to do it, on all
 * ranks; else call->code is what the program gets. */
bool hvd__accel_run(struct hvd__accel_call *call, enum hvd__accel_plan plan);

/* Writes the name of the next request of a communicator. */
void hvd__accel_name(struct hvd__accel_comm *state, char *name, size_t size);

/* Runs a request that is part of a collective, and waits. Returns a status. */
int hvd__accel_wait(struct hvd__accel_call *call, const hvd_request *request);

/* Returns MPI's code for a status of libhvd, which failed. */
int hvd__accel_code(int status);
/* Returns true if no request can succeed any more. */
bool hvd__accel_is_over(int status);
/* Says what failed and calls the error handler. Returns MPI's code. */
int hvd__accel_fail(MPI_Comm comm, int status);

/* Begins what was planned. Returns false if MPI has to do it; else *request
 * and call->code are what the program gets. */
bool hvd__accel_start(struct hvd__accel_call *call, enum hvd__accel_plan plan,
                      MPI_Request *request);

/* Gives the program what libhvd has written elsewhere, and frees memory. */
int hvd__accel_finish(struct hvd__accel_call *call);
/* Frees what a call owns. */
void hvd__accel_drop(struct hvd__accel_call *call);

/* Ends a call that libhvd has done or begun. */
void hvd__accel_taken(struct hvd__accel_call *call);
/* Ends a call that MPI has done or begun. Returns code. */
int hvd__accel_left(struct hvd__accel_call *call, int code);

/* ------------------------------------------------------------- nonblocking */

/* Returns true if Open MPI can move libhvd while it waits. */
bool hvd__accel_can_hook(void);
/* Waits for all that was started. */
void hvd__accel_drain(void);

/* Makes a thread of libhvd's, as pthread_create does. */
int hvd__accel_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                              void *(*run)(void *), void *argument);

/* ----------------------------------------------------------------- summary */

void hvd__accel_summary_add(const struct hvd__accel_call *call, int64_t ns,
                            bool taken);
/* Prints it on rank 0. Collective over MPI_COMM_WORLD. */
void hvd__accel_summary_print(void);

/* ------------------------------------------------------------------- rules */

/* Returns true if libhvd is the faster one for a call with so many bytes:
 * those of a vector, or of a rank's blocks for all ranks. */
bool hvd__accel_pays(const struct hvd__accel_call *call, int64_t bytes);

/* Returns true if libhvd does such a call, which only the arguments that are
 * equal on all ranks have decided on up to here. */
bool hvd__accel_takes(const struct hvd__accel_call *call, int64_t bytes);

/* Does the same for data that is only moved. packs is true if it does not lie
 * as libhvd wants it, which may differ between ranks. Where that matters, the
 * first such call on a communicator is blocking and collective: ranks ask each
 * other.
 */
bool hvd__accel_takes_moved(const struct hvd__accel_call *call, int64_t bytes,
                            bool packs);

#endif
