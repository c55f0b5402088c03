/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd.h - collective operations on named tensors over MPI.
 *
 * This is the header of libhvd, and includes those of some of its subjects.
 * None of them has a type of MPI; all are plain C99 and compile as C++.
 *
 * A program calls hvd_init() once, then any number of collectives, then
 * hvd_shutdown(). Every collective is one request that all ranks submit under
 * the same name; ranks may submit requests in different orders. Before data
 * moves, all ranks compare what they submitted. Where they differ, the request
 * fails on every rank with the same status and a text that names the ranks and
 * the tensor, and the job goes on.
 *
 * Status. Every function returns 0 (HVD_OK) or more on success and a negative
 * HVD_ERR_* on failure. hvd_strerror() returns the short text of a status;
 * hvd_last_error() returns this thread's last failure in full.
 *
 * Threads. Unless a function says otherwise, any thread may call it at any time
 * between hvd_init and hvd_shutdown. Requests of one name must be submitted one
 * after the other. Requests without a name are matched by the order in which
 * each rank submits them, so submit those from one thread.
 *
 * Signals. A signal handler may call hvd_is_initialized, hvd_version and
 * hvd_strerror, and no other function: the others take locks and allocate, and
 * the thread that was interrupted may be inside one. Let the handler set a flag
 * that the program looks at between two calls.
 *
 * fork. A child of a process that has called hvd_init is no rank: every call in
 * it fails with HVD_ERR_NOT_INITIALIZED, and it may exit as it likes. It may
 * read and write memory of hvd_malloc, gradient buffers of a strategy among it,
 * and no other process sees what it writes. But this is shared memory: a page
 * of it that the child has not yet written to shows what the parent, and
 * requests that the parent has in flight, write there after the fork. If a
 * child needs data as it was, copy it to ordinary memory before the fork. (A
 * child made by a bare clone(), without fork's handlers, must not write there
 * at all.)
 */
#ifndef HVD_H
#define HVD_H

#include <stddef.h>
#include <stdint.h>

#include "hvd_compression.h"
#include "hvd_constants.h"
#include "hvd_errors.h"
#include "hvd_metrics.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define HVD_VERSION_MAJOR 0
#define HVD_VERSION_MINOR 1
#define HVD_VERSION_PATCH 0

/* ------------------------------------------------------------- lifecycle */

/*
 * Starts the library. Collective and blocking: every process that mpirun
 * started must call it. Initialises MPI if the program has not, and then
 * finalises it when the process exits. Without mpirun the process is alone:
 * rank 0 of 1. A second call while initialised does nothing and succeeds; after
 * hvd_shutdown() the library can be initialised again.
 *
 * If the program initialised MPI with less than MPI_THREAD_MULTIPLE, and
 * messages go by MPI (HVD_TRANSPORT), libhvd starts no thread: requests then
 * move only inside calls of hvd_wait, hvd_poll, hvd_submit and the blocking
 * collectives, which must all come from the thread that may call MPI. Over UCX
 * libhvd's thread calls no MPI; hvd_init, hvd_shutdown and hvd_recover must
 * come from the thread that may call it.
 *
 * With HVD_SPARES the last ranks wait here until they replace others that are
 * lost (hvd_last_recovery then has a generation above 0), or until the job ends
 * without them, which is HVD_ERR_SHUTDOWN.
 *
 * Returns HVD_ERR_CONFIG (an HVD_* variable is malformed on some rank),
 * HVD_ERR_LAUNCH (the launcher belongs to another MPI), HVD_ERR_UNSUPPORTED
 * (HVD_TRANSPORT=ucx, and there is no UCX), HVD_ERR_MPI or HVD_ERR_MEMORY; the
 * error of one rank is returned on every rank, unless this rank could not reach
 * the others at all. After HVD_ERR_LOST (a rank died or
 * froze meanwhile) or HVD_ERR_STALLED (HVD_START_TIME is over), save what must
 * be saved, and exit. Inside MPI_Init, which cannot be left, these two end the
 * process, with status 70.
 */
int hvd_init(void);

/* The options of hvd_init_with. */
typedef struct hvd_options {
    uint32_t size; /* sizeof(hvd_options), set by hvd_options_init */
    int32_t nprocess_sets;
    const int32_t *process_set_sizes; /* [nprocess_sets] */
    const int32_t *process_set_ranks; /* their ranks, one set after another */
} hvd_options;

void hvd_options_init(hvd_options *options, size_t size);

/* Does the same as hvd_init, with process sets from the beginning: they get the
 * ids 1, 2, ... in their order. All ranks must give the same sets, or
 * HVD_ERR_MISMATCH is returned. A process that joins a running job
 * (hvd_last_recovery) makes none: hvd_restore gives it those of the others. */
int hvd_init_with(const hvd_options *options);

/*
 * Does the same as hvd_init on n of the processes that mpirun started, given by
 * their ranks in MPI_COMM_WORLD, in any order: they, and no others, are the
 * world, ranked in ascending order. Collective among these, which all give the
 * same list; as long as one has not called it, the others wait. Processes may
 * do so at the same time for other lists. Processes on no list must at least
 * initialise MPI, or MPI_Init does not return. HVD_ERR_ARGUMENT: a rank does
 * not exist, or is given twice, or this process is none of them.
 */
int hvd_init_ranks(const int32_t *ranks, int32_t n);

/*
 * Stops the library. Blocking and collective: returns when every rank has
 * called it. Requests that all ranks have submitted complete first; all others
 * fail, on every rank, with HVD_ERR_SHUTDOWN. Handles that were not waited for
 * are gone afterwards. Without a preceding hvd_init it does nothing and
 * succeeds. No other thread may be inside the library.
 */
int hvd_shutdown(void);

/* Returns 1 between hvd_init and hvd_shutdown, else 0. Never fails. */
int hvd_is_initialized(void);

/*
 * Returns HVD_OK while the world stands, and otherwise the status with which
 * every request fails from now on: HVD_ERR_LOST when a rank has died or frozen,
 * for example. A program that does something else for long, such as reading its
 * data, asks now and then, and so ends in time with a line of its own: a
 * process that still runs HVD_EXIT_GRACE_TIME after the end of its world is
 * terminated. Not collective, never blocks, moves no request; any thread may
 * call it. HVD_ERR_NOT_INITIALIZED before hvd_init, HVD_ERR_SHUTDOWN after
 * hvd_shutdown.
 */
int hvd_check(void);

/* Why a rank is lost. */
typedef int32_t hvd_lost_reason;
enum {
    HVD_LOST_ENDED = 1,   /* its process was killed, crashed or exited */
    HVD_LOST_FROZEN = 2,  /* it is stopped, or gets no processor */
    HVD_LOST_CUT_OFF = 3, /* nothing is heard of its host */
    HVD_LOST_ABSENT = 4,  /* it did not come to hvd_recover, or failed there */
    HVD_LOST_EXCLUDED = 5 /* by hvd_exclude (hvd_elastic.h) */
};

typedef struct hvd_lost_rank {
    int32_t rank;
    hvd_lost_reason reason;
} hvd_lost_rank;

/*
 * Lists the ranks that are lost, ascending: after HVD_ERR_LOST those of this
 * world that this rank knows of by now, after hvd_recover those that it left
 * out, by their ranks in the world before. Writes at most max of them to lost,
 * which may be NULL if max is 0, and returns how many there are. Not
 * collective, never blocks; any thread. Ranks may know of different ones until
 * hvd_recover, which makes them agree.
 */
int hvd_lost_ranks(hvd_lost_rank *lost, int32_t max);

/* How this process came to its world: what hvd_recover or hvd_grow has done. */
typedef struct hvd_recovery {
    uint32_t size;      /* bytes of it that were written */
    int32_t generation; /* grows with each world; the same on all ranks */
    int32_t old_rank;   /* of this process, in the world before, -1: in none, */
    int32_t old_size;   /* which had so many ranks */
    int32_t nlost;      /* of which so many were left out (hvd_lost_ranks) */
    int32_t njoined;    /* the last so many ranks of the world are new in it */
} hvd_recovery;

/*
 * Goes on without the ranks that are lost: ends the world in which requests
 * fail with HVD_ERR_LOST, HVD_ERR_STALLED or HVD_ERR_SHUTDOWN, and starts
 * another one of the ranks that are left, in their old order, which all see the
 * same list. Blocking, and collective among these: a rank that does not call it
 * within HVD_START_TIME counts as lost. If more ranks are lost meanwhile, they
 * are left out too. Spares (HVD_SPARES) that wait in hvd_init take the places
 * of as many, behind the others (njoined). If this rank calls it while the
 * world stands, all requests of the others fail with HVD_ERR_LOST.
 *
 * Process sets and handles of the old world are gone; the id of an old set is
 * never that of another one, and requests on it fail with HVD_ERR_PROCESS_SET.
 * hvd_restore makes those again that were in the commit (hvd_elastic.h). No
 * thread of the program may be inside the library. The memory of requests that
 * have failed must stay allocated until hvd_recover returns; what it holds then
 * is not defined, and nothing of the old world writes to it any more. Memory of
 * hvd_malloc stays valid, but new memory is faster in the new world.
 *
 * recovery, of size bytes, may be NULL. HVD_ERR_UNSUPPORTED: HVD_ELASTIC was
 * not set on rank 0, or the ranks of a host share no memory; the old world is
 * as it was. Or MPI has no tags left, after 255 recoveries. After that, and
 * after any other failure, there is no world. HVD_ERR_LOST: the
 * others have given up this rank, which was stopped or cut off for too long; or
 * its side of the network has too few ranks to go on: it takes more than half
 * of those that are not known to have ended, or half with the lowest of them.
 * Without MPI's cooperation: start mpirun with --enable-recovery, and do not
 * call MPI_Finalize after a loss, which would wait for the dead.
 */
int hvd_recover(hvd_recovery *recovery, size_t size);

/*
 * Lets in the processes of the cluster that wait to join: those that came late,
 * or came back (HVD_ELASTIC). Blocking, and collective over the world, whose
 * ranks all see the same: if nobody waits, or nobody ever can, because there is
 * no cluster or no HVD_ELASTIC, it returns 0 and changes nothing. Otherwise it
 * ends the world and starts another one, and returns 1. Its ranks are first
 * those of the old one, in their order, and then the new ones (njoined), which
 * come from hvd_init and know nothing of the job's state. If those that waited
 * fail to come in, all go on without them, in another world, too (njoined is
 * 0). If a rank is lost meanwhile, the others go on without it and without
 * those (nlost, hvd_lost_ranks); some of them may have called hvd_recover to
 * come to that world. What hvd_recover says of process sets, handles and memory
 * holds here, too; no request may be under way.
 *
 * recovery, of size bytes, may be NULL. After HVD_ERR_LOST and the like call
 * hvd_recover, if hvd_is_initialized says that there is still a world.
 */
int hvd_grow(hvd_recovery *recovery, size_t size);

/* Returns how many processes wait to join, as far as this rank knows: another
 * rank may know of others. Never blocks; any thread. Not collective. */
int hvd_joiners(void);

/* Writes how this process came to its world, which hvd_recover or hvd_grow has
 * told already; a process that has joined a running job learns here that it
 * has: its generation is more than 0 after hvd_init, and it takes its state
 * from rank 0. Not collective, never blocks. */
int hvd_last_recovery(hvd_recovery *recovery, size_t size);

/*
 * Return the numbers of this process. rank and size count all processes; local_
 * those on the same host; cross_ those with the same local rank, one a host.
 * HVD_ERR_NOT_INITIALIZED before hvd_init and after hvd_shutdown.
 */
int hvd_rank(void);
int hvd_size(void);
int hvd_local_rank(void);
int hvd_local_size(void);
int hvd_cross_rank(void);
int hvd_cross_size(void);

/* Returns "0.1.0"; static. */
const char *hvd_version(void);

/* ---------------------------------------------------------------- memory */

/*
 * Allocates memory that collectives work on fastest, 64-byte aligned and
 * zeroed. Returns NULL when there is none (hvd_last_error says why);
 * hvd_malloc(0) is a valid unique pointer. Not collective; works before
 * hvd_init too. The caller owns the memory until hvd_free, which accepts NULL.
 * Memory of a request in flight must not be freed. After hvd_init it is shared
 * with the other ranks of this host: see fork, above.
 */
void *hvd_malloc(size_t bytes);
void hvd_free(void *memory);

/* ---------------------------------------------------------- process sets */

/*
 * A process set is some of the ranks, in ascending order. A collective on it
 * concerns its members only, and collectives on different sets go on at the
 * same time. Set 0 is all ranks; it always exists. Sets may overlap. Ranks are
 * always those of the world, also the root of a broadcast on a set.
 *
 * Names belong to a set: 'x' on set 1 is not 'x' on set 2.
 */

/*
 * Makes a set of n distinct ranks, in any order. Collective and blocking: all
 * ranks, members or not, make the same calls of this and of
 * hvd_remove_process_set in the same order. Returns its id, more than 0, the
 * same everywhere, and never used again in this world; or, on every rank,
 * HVD_ERR_ARGUMENT (a rank out of range or twice, n < 1, a set of these ranks
 * exists) or HVD_ERR_MISMATCH (the ranks asked for different sets).
 */
int hvd_add_process_set(const int32_t *ranks, int32_t n);

/* Removes a set. Collective and blocking, like adding. Requests on it that all
 * members have submitted complete first; others fail with HVD_ERR_SHUTDOWN.
 * Returns HVD_ERR_PROCESS_SET, HVD_ERR_ARGUMENT for set 0, or
 * HVD_ERR_MISMATCH. */
int hvd_remove_process_set(int32_t process_set);

/* Return this rank's number in the set, and the set's size. HVD_ERR_PROCESS_SET
 * if there is no such set, or this rank is no member. */
int hvd_process_set_rank(int32_t process_set);
int hvd_process_set_size(int32_t process_set);
/* Returns 1 if this rank is a member, else 0. */
int hvd_process_set_included(int32_t process_set);
/* Returns the number of sets, set 0 included. */
int hvd_number_of_process_sets(void);
/* Writes the ids of the sets, at most n of them, ascending. Returns their
 * number. */
int hvd_process_set_ids(int32_t *ids, int32_t n);
/* Writes the ranks of a set, at most n of them. Returns their number. */
int hvd_process_set_ranks(int32_t process_set, int32_t *ranks, int32_t n);

/* --------------------------------------------- blocking collectives */

/*
 * These functions return when the result is there. They are collective over all
 * ranks and unnamed: all ranks must call them in the same order. All counts are
 * elements. Buffers are borrowed until the return; count 0 is legal (buffers
 * may then be NULL).
 *
 * In place: hvd_allreduce, hvd_reduce, hvd_reducescatter and hvd_alltoall take
 * in == out; hvd_allgather and hvd_gather take as in this rank's part of out.
 * hvd_allgatherv and hvd_alltoallv take neither. Buffers that overlap in any
 * other way are refused. The same holds for requests; an HVD_ALLGATHER,
 * HVD_GATHER or HVD_ALLTOALL with a capacity or splits is like the last two.
 */

/* Sets out[i] to op over all ranks of in[i]. */
int hvd_allreduce(const void *in, void *out, int64_t count, hvd_dtype dtype,
                  hvd_op op);

/* Copies the buffer of rank root to the buffer of every rank. */
int hvd_broadcast(void *buffer, int64_t count, hvd_dtype dtype, int root);

/* Sets out, of size() * count elements, to the in of rank 0, then of rank 1
 * ...; count is the same on all ranks. in may be this rank's part of out. */
int hvd_allgather(const void *in, void *out, int64_t count, hvd_dtype dtype);

/*
 * Does the same with a count of each rank's own. out holds capacity elements;
 * counts[r] becomes rank r's count (may be NULL). Returns HVD_ERR_ARGUMENT, on
 * this rank only, if out is too small; counts then says what was needed.
 */
int hvd_allgatherv(const void *in, int64_t count, void *out, int64_t capacity,
                   int64_t *counts, hvd_dtype dtype);

/* Does the same as hvd_allgather, to rank root; out is not used elsewhere. */
int hvd_gather(const void *in, void *out, int64_t count, hvd_dtype dtype,
               int root);

/* Does the same as hvd_allreduce, to rank root; out is not used elsewhere. */
int hvd_reduce(const void *in, void *out, int64_t count, hvd_dtype dtype,
               hvd_op op, int root);

/*
 * Reduces in, of count elements; out of rank r gets its share: as even as can
 * be, in order, the first count % size() ranks one element more.
 */
int hvd_reducescatter(const void *in, void *out, int64_t count, hvd_dtype dtype,
                      hvd_op op);

/* Cuts in into size() equal parts and sends part r to rank r. out, of count
 * elements, gets what rank 0, rank 1 ... sent. count is the same on all ranks,
 * a multiple of size(). */
int hvd_alltoall(const void *in, void *out, int64_t count, hvd_dtype dtype);

/*
 * Does the same with parts of different sizes: splits[r] elements go to rank r,
 * one part after the other. out holds capacity elements; counts[r] becomes what
 * rank r sent (may be NULL). If out is too small, it returns what
 * hvd_allgatherv does. in == out is refused.
 */
int hvd_alltoallv(const void *in, const int64_t *splits, void *out,
                  int64_t capacity, int64_t *counts, hvd_dtype dtype);

/* Returns when every rank has called it. */
int hvd_barrier(void);

/*
 * Says that this rank has no more data while others may have. It goes on taking
 * part in their allreduces, reduces and reducescatters with the identity of the
 * operation (0 for sums and averages, the largest value for HVD_MIN, the
 * smallest for HVD_MAX, 1 for products) until every rank has joined, and then
 * returns. Every other operation fails, on all ranks that submitted it, with
 * HVD_ERR_JOINED and the ranks that have joined. *last (may be NULL) becomes
 * the rank that joined last. Until the return this rank can submit nothing
 * else.
 *
 * The variables of a rank that trains do not change with the others' while it
 * has joined: steps of strategies fail then, unless it joined by
 * hvd_strategy_join, which gives it the last rank's variables. A program that
 * updates variables itself broadcasts them, and what its optimiser keeps, from
 * *last.
 */
int hvd_join(int *last);

/* ----------------------------------------------------- named, asynchronous */

/* The bits of hvd_request.flags. */
enum {
    HVD_AVERAGE_CONTRIBUTORS = 1 /* HVD_AVERAGE divides by the number of ranks
                                    that have not joined, not by all */
};

/* A handle stands for a submitted request until hvd_wait; 0 is never a valid
 * one. */
typedef int64_t hvd_handle;

/*
 * A callback is called once when a request has completed, on the thread that
 * completed it (one of the library's own or one inside a libhvd call). It may
 * submit further requests but must not wait. status is what hvd_wait would
 * return; inside the callback hvd_last_error() returns the failure.
 */
typedef void (*hvd_callback)(void *context, int status);

/* The most dimensions of a tensor, and the most bytes of a name without its
 * NUL. */
enum { HVD_MAX_DIMS = 16, HVD_MAX_NAME = 255 };

/*
 * One collective operation. Fill it with hvd_request_init(), then set what
 * differs. A flag that is unknown, or a flag, a scale or a root that means
 * nothing to the kind, is refused. hvd_submit copies the struct, its name,
 * shape and splits; the buffers and counts are borrowed until completion.
 *
 * Shapes. All ranks must agree on the shape, but for the first dimension of
 * HVD_ALLGATHER and HVD_ALLTOALL, unless output is given without a capacity,
 * and of HVD_GATHER, if a capacity is given (on all ranks, with an output or
 * without). These and HVD_REDUCESCATTER need at least one dimension.
 *
 * Outputs. HVD_ALLGATHER, HVD_GATHER (on root), HVD_ALLTOALL and
 * HVD_REDUCESCATTER may leave output NULL: the library allocates it, and
 * hvd_wait_output hands it over. With an output and no capacity, output holds
 * what the shapes, equal on all ranks, imply. With a capacity, more elements
 * than that are never written: hvd_submit refuses a request whose output would
 * have to hold more; where that depends on the rows of other ranks, the request
 * fails on this rank when they have come. On ranks that get no output the
 * capacity is not compared.
 */
typedef struct hvd_request {
    uint32_t size;          /* sizeof(hvd_request), set by hvd_request_init */
    int32_t kind;           /* HVD_ALLREDUCE, ... */
    int32_t dtype;          /* not used by HVD_BARRIER and HVD_JOIN */
    int32_t op;             /* reductions only; HVD_AVERAGE by default, which
                               HVD_BOOL has not: name another for it */
    int32_t root;           /* HVD_BROADCAST, _GATHER, _REDUCE: a rank of the
                               world; else 0 */
    int32_t ndim;           /* 0: a scalar, one element */
    const int64_t *shape;   /* ndim extents, each >= 0 */
    const char *name;       /* NULL or "": unnamed, matched by order; else up to
                               HVD_MAX_NAME bytes, none of them a control
                               character (below 0x20, or 0x7f) */
    const void *input;      /* HVD_BROADCAST: ignored */
    void *output;           /* may equal input; HVD_BROADCAST: in on root, out
                               elsewhere; HVD_JOIN: int32_t, the last rank */
    double prescale;        /* reductions: inputs are multiplied by this */
    double postscale;       /* ... and the result by this; both 1 by default.
                               Both are finite. An integer times a factor is
                               rounded to a double and truncated toward zero;
                               an average is, once, after multiplying and
                               dividing: 10 times 0.7 is 7. If the integer or
                               the product exceeds 2^53, the product is exact
                               instead. A result that does not fit the dtype
                               wraps */
    hvd_callback callback;  /* may be NULL */
    void *callback_context; /* passed to callback */
    int32_t process_set;    /* 0: all ranks */
    int32_t priority;       /* of ready requests, larger ones go first; ranks
                               may differ: the largest counts */
    int32_t flags;          /* HVD_AVERAGE_CONTRIBUTORS, for averages */
    int32_t compression;    /* HVD_ALLREDUCE */
    int64_t capacity;       /* elements that output holds; 0: as many as the
                               result has; see above */
    const int64_t *splits;  /* HVD_ALLTOALL: rows to each rank of the set,
                               their sum at most shape[0] (the rest stays);
                               NULL: equal parts */
    int64_t *counts;        /* HVD_ALLGATHER, _GATHER, _ALLTOALL: becomes the
                               rows of each rank of the set; may be NULL */
} hvd_request;

/*
 * Sets the defaults: everything is zero or NULL, so op is HVD_AVERAGE, as in
 * every language and in strategies, but scales are 1. request is the caller's;
 * size is sizeof(hvd_request) as the caller was compiled.
 */
void hvd_request_init(hvd_request *request, size_t size);

/*
 * Submits one collective and returns at once. On success *handle must be given
 * to hvd_wait once; handle may be NULL, then only the callback reports the
 * completion. On failure there is no handle, no callback is called, and every
 * other rank's submission of that name gets HVD_ERR_PEER with the reason, so
 * that no rank waits for one that was refused: the k-th submission of a name on
 * one rank meets the k-th on every other, refused ones included.
 *
 * Returns HVD_ERR_ARGUMENT, HVD_ERR_UNSUPPORTED, HVD_ERR_DUPLICATE,
 * HVD_ERR_MEMORY, HVD_ERR_PROCESS_SET, HVD_ERR_NOT_INITIALIZED or
 * HVD_ERR_SHUTDOWN.
 */
int hvd_submit(const hvd_request *request, hvd_handle *handle);

/*
 * Does the same as hvd_submit, on the way of the blocking functions, which is
 * shorter if all ranks come at about the same time: a request without a name,
 * a callback and counts, whose output is not the library's, may then be
 * complete when this returns. *handle is 0 in that case, and must not be waited
 * for. It is for callers whose own wait follows at once, such as other
 * languages; handle must not be NULL.
 */
int hvd_run(const hvd_request *request, hvd_handle *handle);

/*
 * Submits n requests of one process set as a group, all or nothing: they are
 * agreed on together, and if one of them is refused or differs between the
 * ranks, all of them fail, on all ranks. name names the group (NULL: matched by
 * order), like a request; the requests' own names are for messages and need not
 * be unique, the group's must. handles, n of them, may be NULL. All ranks must
 * submit the same requests in the same order within the group.
 */
int hvd_submit_group(const char *name, const hvd_request *const *requests,
                     int32_t n, hvd_handle *handles);

/* Submit the usual requests. The shape is [count]. */
int hvd_allreduce_async(const char *name, const void *in, void *out,
                        int64_t count, hvd_dtype dtype, hvd_op op,
                        hvd_handle *handle);
int hvd_broadcast_async(const char *name, void *buffer, int64_t count,
                        hvd_dtype dtype, int root, hvd_handle *handle);
/* hvd_wait_output gives the outputs of these. */
int hvd_allgather_async(const char *name, const void *in, int64_t count,
                        hvd_dtype dtype, hvd_handle *handle);
int hvd_alltoall_async(const char *name, const void *in, int64_t count,
                       const int64_t *splits, hvd_dtype dtype,
                       hvd_handle *handle);
int hvd_reducescatter_async(const char *name, const void *in, int64_t count,
                            hvd_dtype dtype, hvd_op op, hvd_handle *handle);
/* Submits n tensors as a group; in[i] == out[i] works in place. */
int hvd_grouped_allreduce_async(const char *name, int32_t n,
                                const void *const *in, void *const *out,
                                const int64_t *counts, hvd_dtype dtype,
                                hvd_op op, hvd_handle *handles);

/*
 * Submits a sparse allreduce: each rank gives n rows of width elements, and for
 * each the int64 index of the row that it stands for. It is two gathers in a
 * group: handles[0] gives the indices of all ranks, handles[1] the rows
 * (hvd_wait_output both). An index may occur several times; its rows are to be
 * added. op: HVD_SUM, or HVD_AVERAGE, which divides the rows by the number of
 * ranks.
 */
int hvd_sparse_allreduce_async(const char *name, const int64_t *indices,
                               const void *rows, int64_t n, int64_t width,
                               hvd_dtype dtype, hvd_op op, hvd_handle *handles);

/*
 * Returns 1 if the request is done (hvd_wait will not block), 0 if not yet,
 * HVD_ERR_HANDLE if there is none. Never blocks; moves the engine a little.
 */
int hvd_poll(hvd_handle handle);

/*
 * Blocks until the request is done, and returns its status: what hvd_submit may
 * return, or HVD_ERR_MISMATCH, HVD_ERR_PEER, HVD_ERR_JOINED,
 * HVD_ERR_INCONSISTENT, HVD_ERR_SHUTDOWN, HVD_ERR_MPI, HVD_ERR_LOST,
 * HVD_ERR_STALLED. The handle is gone afterwards; HVD_ERR_HANDLE if it already
 * was. Only one thread may wait for a handle.
 */
int hvd_wait(hvd_handle handle);

/*
 * Blocks until the request is done, but for limit_ns nanoseconds at most, and
 * returns what hvd_poll returns: 1, 0 or HVD_ERR_HANDLE. The handle stays
 * valid, and hvd_wait takes the result. It is for threads that must not block
 * for long, such as that of an interpreter, which looks for signals in between.
 */
int hvd_wait_for(hvd_handle handle, int64_t limit_ns);

/* A tensor that the library hands over. */
typedef struct hvd_tensor {
    uint32_t size; /* sizeof(hvd_tensor), set by the caller */
    int32_t dtype;
    int32_t ndim;
    int32_t reserved; /* 0 */
    int64_t shape[HVD_MAX_DIMS];
    void *data; /* the request's output; or, if that was NULL, memory that the
                   caller frees by hvd_free, also after hvd_shutdown */
} hvd_tensor;

/* Does the same as hvd_wait, and gives the output with its shape. On failure
 * *output is zeroed but for its size. The library frees an output that it
 * allocated and that is not taken this way: in hvd_wait, or, if no thread
 * waits, at the end of the world. */
int hvd_wait_output(hvd_handle handle, hvd_tensor *output);

/*
 * Returns a file descriptor for event loops: readable when requests have
 * completed since it was last read (eventfd(2), nonblocking: 8 bytes, their
 * number). It is the same one every time, the library's: do not close it. It
 * costs a system call a completion from the first call on.
 */
int hvd_completion_fd(void);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
