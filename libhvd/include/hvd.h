/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd.h - collective operations on named tensors over MPI.
 *
 * The one header of libhvd. It needs no other header of ours, includes no
 * MPI type, is plain C99 and compiles as C++.
 *
 * A program calls hvd_init() once, then any number of collectives, then
 * hvd_shutdown(). Every collective is one request that all ranks submit
 * under the same name; ranks may submit requests in different orders. Before
 * data moves, all ranks compare what they submitted; where they differ, the
 * request fails on every rank with the same status and a text that names the
 * ranks and the tensor, and the job goes on.
 *
 * Status. Every function returns 0 (HVD_OK) or more on success and a negative
 * HVD_ERR_* on failure. hvd_strerror() is the short text of a status;
 * hvd_last_error() tells this thread's last failure in full.
 *
 * Threads. Unless a function says otherwise, any thread may call it at any
 * time between hvd_init and hvd_shutdown. Requests of one name must be
 * submitted one after the other; requests without a name are matched by the
 * order in which each rank submits them, so submit those from one thread.
 *
 * fork. A child of a process that has called hvd_init is no rank: every call
 * in it fails with HVD_ERR_NOT_INITIALIZED, and it may exit as it likes.
 *
 * Sources of the semantics: names, numbers of dtypes, reduction operations
 * and request kinds follow Horovod 0.28 (horovod/common/message.h).
 */
#ifndef HVD_H
#define HVD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define HVD_VERSION_MAJOR 0
#define HVD_VERSION_MINOR 1
#define HVD_VERSION_PATCH 0

/* ------------------------------------------------------------- constants */

/* Functions and fields take these as int32_t: the size of a C enum is the
 * compiler's choice, and other languages have no enum. */

typedef int32_t hvd_dtype;
enum {
    HVD_UINT8 = 0,
    HVD_INT8 = 1,
    HVD_UINT16 = 2,
    HVD_INT16 = 3,
    HVD_INT32 = 4,
    HVD_INT64 = 5,
    HVD_FLOAT16 = 6, /* IEEE 754 binary16; reduced in float32 */
    HVD_FLOAT32 = 7,
    HVD_FLOAT64 = 8,
    HVD_BOOL = 9,      /* one byte; not 0 is true, results are 0 or 1 */
    HVD_BFLOAT16 = 10, /* upper half of a float32; reduced in float32 */
    HVD_NUM_DTYPES = 11
};

typedef int32_t hvd_op;
enum {
    HVD_AVERAGE = 0, /* sum divided by the number of ranks; integers truncate
                        toward zero; refused for HVD_BOOL */
    HVD_SUM = 1,     /* integers wrap; on HVD_BOOL the logical or */
    HVD_ADASUM = 2,  /* reserved: refused by this version */
    HVD_MIN = 3,     /* a NaN on any rank gives NaN; HVD_BOOL: logical and */
    HVD_MAX = 4,     /* likewise; HVD_BOOL: logical or */
    HVD_PRODUCT = 5, /* HVD_BOOL: logical and */
    HVD_NUM_OPS = 6
};

typedef int32_t hvd_kind;
enum { HVD_ALLREDUCE = 0, HVD_BROADCAST = 2, HVD_BARRIER = 6 };

/* Grouped by what is no longer usable: the request, or the world. */
enum {
    HVD_OK = 0,
    /* this request failed; the next one works */
    HVD_ERR_ARGUMENT = -1,    /* an argument is out of its range */
    HVD_ERR_UNSUPPORTED = -2, /* this version cannot do that */
    HVD_ERR_DUPLICATE = -3,   /* a request of that name is still in flight */
    HVD_ERR_MISMATCH = -4,    /* the ranks submitted different things */
    HVD_ERR_PEER = -5,        /* another rank was refused what it submitted */
    HVD_ERR_HANDLE = -6,      /* unknown, or already waited for */
    HVD_ERR_MEMORY = -7,      /* out of memory */
    /* no request can succeed in this world */
    HVD_ERR_NOT_INITIALIZED = -20,
    HVD_ERR_SHUTDOWN = -21, /* this or another rank has shut down */
    HVD_ERR_CONFIG = -22,   /* an environment variable is malformed */
    HVD_ERR_LAUNCH = -23,   /* started as one of several, found alone */
    HVD_ERR_MPI = -24,      /* MPI reported an error */
    HVD_ERR_INTERNAL = -25  /* a fault of libhvd; please report it */
};

/* ------------------------------------------------------------- lifecycle */

/*
 * Start the library. Collective and blocking: every process that mpirun
 * started must call it. Initialises MPI if the program has not, and then
 * finalises it when the process exits. Without mpirun the process is alone:
 * rank 0 of 1. A second call while initialised does nothing and succeeds;
 * after hvd_shutdown() the library can be initialised again.
 *
 * If the program initialised MPI with less than MPI_THREAD_MULTIPLE, libhvd
 * starts no thread: requests then move only inside calls of hvd_wait,
 * hvd_poll, hvd_submit and the blocking collectives, which must all come
 * from the thread that may call MPI.
 *
 * HVD_ERR_CONFIG (an HVD_* variable is malformed on some rank),
 * HVD_ERR_LAUNCH (the launcher belongs to another MPI), HVD_ERR_MPI,
 * HVD_ERR_MEMORY; the error of one rank is returned on every rank, unless it
 * is that this rank could not reach the others at all.
 */
int hvd_init(void);

/*
 * Stop the library. Blocking and collective: returns when every rank has
 * called it. Requests that all ranks have submitted complete first; all
 * others fail, on every rank, with HVD_ERR_SHUTDOWN. Handles that were not
 * waited for are gone afterwards. Without a preceding hvd_init it does
 * nothing and succeeds. No other thread may be inside the library.
 */
int hvd_shutdown(void);

/* 1 between hvd_init and hvd_shutdown, else 0. Never fails. */
int hvd_is_initialized(void);

/*
 * Who this process is. rank and size count all processes; local_ those on
 * the same host; cross_ those with the same local rank, one a host.
 * HVD_ERR_NOT_INITIALIZED before hvd_init and after hvd_shutdown.
 */
int hvd_rank(void);
int hvd_size(void);
int hvd_local_rank(void);
int hvd_local_size(void);
int hvd_cross_rank(void);
int hvd_cross_size(void);

/* "0.1.0"; static. */
const char *hvd_version(void);

/* ---------------------------------------------------------------- errors */

/* A short text for a status, static, never NULL. */
const char *hvd_strerror(int status);

/*
 * The calling thread's last failure in full: ranks, tensor, what differed,
 * what to do. One line; "" if nothing failed yet. Owned by the library and
 * valid until this thread's next failing call.
 */
const char *hvd_last_error(void);

/* --------------------------------------------------- names and constants */

/* "float32" and the like; NULL if unknown. Static. */
const char *hvd_dtype_name(hvd_dtype dtype);
const char *hvd_op_name(hvd_op op);
const char *hvd_kind_name(hvd_kind kind);

/* The constant of a name as the functions above print it, for languages that
 * cannot read this header; HVD_ERR_ARGUMENT if there is none. */
int hvd_dtype_from_name(const char *name);
int hvd_op_from_name(const char *name);
int hvd_kind_from_name(const char *name);

/* Bytes of one element; HVD_ERR_ARGUMENT if unknown. */
int hvd_dtype_size(hvd_dtype dtype);

/* ---------------------------------------------------------------- memory */

/*
 * Memory that collectives work on fastest, 64-byte aligned and zeroed. NULL
 * when there is none (hvd_last_error tells); hvd_malloc(0) is a valid unique
 * pointer. Not collective; works before hvd_init too. Owned by the caller
 * until hvd_free, which accepts NULL. Memory of a request in flight must not
 * be freed.
 */
void *hvd_malloc(size_t bytes);
void hvd_free(void *memory);

/* --------------------------------------------- blocking collectives */

/*
 * These return when the result is there; they are collective and unnamed:
 * all ranks must call them in the same order. All counts are elements.
 *
 * out[i] = op over all ranks of in[i]. in == out works in place; partly
 * overlapping buffers are refused. Buffers are borrowed until the return.
 * count 0 is legal (buffers may then be NULL).
 */
int hvd_allreduce(const void *in, void *out, int64_t count, hvd_dtype dtype,
                  hvd_op op);

/* buffer of rank root goes to the buffer of every rank. */
int hvd_broadcast(void *buffer, int64_t count, hvd_dtype dtype, int root);

/* Returns when every rank has called it. */
int hvd_barrier(void);

/* ----------------------------------------------------- named, asynchronous */

/* What a submitted request is waited for with; 0 is never a valid handle. */
typedef int64_t hvd_handle;

/*
 * Called once when a request has completed, on whichever thread completed it
 * (one of the library's own or one inside a libhvd call). It may submit
 * further requests but must not wait. status as hvd_wait would return it;
 * inside the callback hvd_last_error() tells the failure.
 */
typedef void (*hvd_callback)(void *context, int status);

/* Most dimensions of a tensor, and most bytes of a name without its NUL. */
enum { HVD_MAX_DIMS = 16, HVD_MAX_NAME = 255 };

/*
 * One collective operation. Fill with hvd_request_init(), then set what
 * differs. The struct, its name and its shape are copied by hvd_submit; the
 * buffers are borrowed until completion.
 */
typedef struct hvd_request {
    uint32_t size;          /* sizeof(hvd_request), set by hvd_request_init */
    int32_t kind;           /* HVD_ALLREDUCE, ... */
    int32_t dtype;          /* not used by HVD_BARRIER */
    int32_t op;             /* HVD_ALLREDUCE only */
    int32_t root;           /* HVD_BROADCAST only */
    int32_t ndim;           /* 0: a scalar, one element */
    const int64_t *shape;   /* ndim extents, each >= 0; all ranks must agree */
    const char *name;       /* NULL or "": unnamed, matched by order */
    const void *input;      /* HVD_BROADCAST: ignored */
    void *output;           /* may equal input; HVD_BROADCAST: in on root, out
                               elsewhere */
    double prescale;        /* HVD_ALLREDUCE: inputs are multiplied by this */
    double postscale;       /* ... and the result by this; both 1 by default */
    hvd_callback callback;  /* may be NULL */
    void *callback_context; /* passed to callback */
} hvd_request;

/*
 * Defaults: everything zero or NULL, op HVD_SUM, scales 1. request is the
 * caller's; size is sizeof(hvd_request) as the caller was compiled.
 */
void hvd_request_init(hvd_request *request, size_t size);

/*
 * Submit one collective; returns at once. On success *handle must be given
 * to hvd_wait once; handle may be NULL, then only the callback tells of the
 * completion. On failure there is no handle, no callback is called, and
 * every other rank's submission of that name gets HVD_ERR_PEER with the
 * reason, so that no rank waits for one that was refused: the k-th submission
 * of a name on one rank meets the k-th on every other, refused ones included.
 *
 * HVD_ERR_ARGUMENT, HVD_ERR_UNSUPPORTED, HVD_ERR_DUPLICATE, HVD_ERR_MEMORY,
 * HVD_ERR_NOT_INITIALIZED, HVD_ERR_SHUTDOWN.
 */
int hvd_submit(const hvd_request *request, hvd_handle *handle);

/* The same for the two usual cases. Shape is [count]. */
int hvd_allreduce_async(const char *name, const void *in, void *out,
                        int64_t count, hvd_dtype dtype, hvd_op op,
                        hvd_handle *handle);
int hvd_broadcast_async(const char *name, void *buffer, int64_t count,
                        hvd_dtype dtype, int root, hvd_handle *handle);

/*
 * 1 if the request is done (hvd_wait will not block), 0 if not yet,
 * HVD_ERR_HANDLE. Never blocks; moves the engine a little.
 */
int hvd_poll(hvd_handle handle);

/*
 * Block until the request is done, and return its status: what hvd_submit
 * may return, or HVD_ERR_MISMATCH, HVD_ERR_PEER, HVD_ERR_SHUTDOWN,
 * HVD_ERR_MPI. The handle is gone afterwards; HVD_ERR_HANDLE if it already
 * was. One thread may wait for a handle.
 */
int hvd_wait(hvd_handle handle);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
