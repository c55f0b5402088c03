/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_streams.h - feeding a program while it runs: infeed and outfeed queues,
 * loops on the device, remote buffers, and how fast a data set is. ipu.h
 * includes it.
 *
 *   ipu_infeed      a data set, read ahead by a thread of its own; each
 *                   ipu_infeed_dequeue of a program takes an element
 *   ipu_outfeed     what a program enqueues, for the host to dequeue, also
 *                   while the program still runs
 *   ipu_repeat      n iterations of a body within one run, without returning
 *   ipu_while       to the host
 *   ipu_remote_*    rows in the memory beside the chip
 *
 * docs/STREAMS.md is the guide.
 *
 * Errors are as in ipu.h. Threads: a queue may be used by the thread that runs
 * an engine and by others at the same time, and every function of a queue may
 * be called from any thread; but it is one thread that deletes or frees it,
 * when no other is in one of its functions. Builders are as those of ipu.h.
 */
#ifndef IPU_H
#include "ipu.h" /* ipu.h includes this file after those that it needs */
#elif !defined(IPU_STREAMS_H)
#define IPU_STREAMS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* dtypes that data sets have and the device has not: queues refuse them,
 * saying what to cast them to. */
enum { IPU_INT64 = 64, IPU_FLOAT64 = 65 };

enum { IPU_MAX_FEED_TENSORS = 64, IPU_MAX_RESULT_DIMS = 10 };

/* One tensor of a queue's element. */
typedef struct ipu_feed_tensor {
    const char *name; /* copied; of its own among those of the element */
    ipu_dtype dtype;
    int32_t ndim;
    int64_t shape[IPU_MAX_DIMS]; /* all known and more than 0 */
} ipu_feed_tensor;

/* ---------------------------------------------------------------- data sets */

/*
 * A data set. next fills one buffer for each tensor, 4096-byte aligned, of
 * exactly the tensor's bytes; it returns 1 if it did, 0 if the data has ended,
 * negative for a failure. rewind (NULL: none) goes back to the beginning; it
 * returns 0, or negative for a failure. close (NULL: none) is called once,
 * when the queue goes. All on one thread at a time, which is not always the
 * same; context is the data set's own.
 */
typedef struct ipu_source {
    int (*next)(void *context, void *const *buffers);
    int (*rewind)(void *context);
    void (*close)(void *context);
    void *context;
} ipu_source;

typedef struct ipu_infeed_options {
    uint32_t size;                  /* sizeof(ipu_infeed_options) */
    int32_t prefetch_depth;         /* elements read ahead: 1 to 255; 3 */
    const char *name;               /* copied; for messages and profiles */
    int32_t ntensors;               /* of an element */
    int32_t replicas;               /* that take elements in turn; 1 */
    const ipu_feed_tensor *tensors; /* copied */
    ipu_source source;
    int32_t repeat; /* 1: at the end of the data, rewind and go on */
} ipu_infeed_options;

/* The defaults above, zero elsewhere. */
void ipu_infeed_options_init(ipu_infeed_options *options, size_t size);

typedef struct ipu_infeed ipu_infeed;

/*
 * A queue of a data set, not read yet. On failure the source is not closed.
 *
 * IPU_ERR_ARGUMENT: prefetch depth, a missing name or next function;
 * IPU_ERR_SHAPE: a shape is not fully defined (an extent less than 0) or has
 * an extent of 0, a dtype that must be cast; IPU_ERR_NAME: two tensors of one
 * name.
 */
int ipu_infeed_new(const ipu_infeed_options *options, ipu_infeed **infeed);

/*
 * Begin to read: from the beginning, if the source can rewind and has been
 * read before. Without it a run that takes an element is IPU_ERR_STATE. So is
 * starting twice; after the end of the data, a failure or ipu_infeed_stop it
 * starts anew.
 */
int ipu_infeed_start(ipu_infeed *infeed);

/* Stop reading and drop what has been read ahead. Waits until next returns. A
 * run that waits for an element fails with IPU_ERR_STATE. */
int ipu_infeed_stop(ipu_infeed *infeed);

/*
 * Delete. IPU_ERR_NAME if it has never been started, IPU_ERR_STATE while an
 * engine uses it (any engine of a program that takes from it): then it is not
 * deleted.
 */
int ipu_infeed_delete(ipu_infeed *infeed);

/* Let go, whatever state it is in; NULL is accepted. What still uses it
 * (graphs, executables, engines) keeps it, stopped, until it is freed too. */
void ipu_infeed_free(ipu_infeed *infeed);

/* Of an element; tensors (may be NULL) is borrowed until the queue goes. */
int32_t ipu_infeed_tensors(const ipu_infeed *infeed,
                           const ipu_feed_tensor **tensors);

/* A queue for one data set, named after its number if it has no name, and
 * started: what an iterator is in other languages. */
int ipu_iterator_new(const ipu_infeed_options *options, ipu_infeed **infeed);

typedef struct ipu_infeed_stats {
    uint32_t size;       /* sizeof(ipu_infeed_stats), set by the caller */
    int32_t depth;       /* elements that wait now */
    int64_t produced;    /* elements read, since the last start */
    int64_t consumed;    /* elements taken */
    int64_t waits;       /* times the device found none: bound by the host */
    double wait_seconds; /* for how long */
    double read_seconds; /* in next */
} ipu_infeed_stats;

int ipu_infeed_get_stats(ipu_infeed *infeed, ipu_infeed_stats *stats);

/* ----------------------------------------------------------------- outfeeds */

typedef int32_t ipu_outfeed_mode;
enum {
    IPU_OUTFEED_ALL = 0, /* keep everything */
    IPU_OUTFEED_LAST = 1 /* keep what came last */
};

typedef struct ipu_outfeed_options {
    uint32_t size; /* sizeof(ipu_outfeed_options) */
    ipu_outfeed_mode mode;
    const char *name;     /* copied */
    int32_t buffer_depth; /* elements: 1 to 255; 3 */
    int32_t replicas;     /* that each give a part of an element; 1 */
    /*
     * ALL keeps what was enqueued until it is dequeued. 0: host memory grows
     * for it, and the device does not wait. 1: the device waits while
     * buffer_depth elements have not been dequeued, which another thread must
     * do, or the run would not end.
     */
    int32_t blocking;
    int32_t reserved;
    double timeout_seconds; /* of such a wait: then the run fails with
                               IPU_ERR_STATE; 0: none */
    int64_t most_elements;  /* that memory grows for: then the run fails with
                               IPU_ERR_STATE; 0: no limit */
} ipu_outfeed_options;

/* The defaults above, zero elsewhere. */
void ipu_outfeed_options_init(ipu_outfeed_options *options, size_t size);

typedef struct ipu_outfeed ipu_outfeed;

int ipu_outfeed_new(const ipu_outfeed_options *options, ipu_outfeed **outfeed);

/* As those of an infeed. */
int ipu_outfeed_delete(ipu_outfeed *outfeed);
void ipu_outfeed_free(ipu_outfeed *outfeed);

/*
 * What came out. Of ALL, each tensor is [elements, shape...], or [elements,
 * replicas, shape...] if there are several; elements may be 0. Of LAST, and of
 * one element from ipu_outfeed_next, the first is missing.
 */
typedef struct ipu_results ipu_results;

/* Elements; 1 of LAST and of ipu_outfeed_next. */
int64_t ipu_results_count(const ipu_results *results);

/* The tensor of a name (NULL: the only one). Any output may be NULL; shape has
 * room for IPU_MAX_RESULT_DIMS. data is borrowed until the results are freed.
 * Returns the number of dimensions, or IPU_ERR_NAME, listing the names. */
int ipu_results_tensor(const ipu_results *results, const char *name,
                       ipu_dtype *dtype, int64_t *shape, const void **data);

void ipu_results_free(ipu_results *results); /* NULL is accepted */

/*
 * Take all that there is. wait 1: when the run that goes on has ended; 0: now,
 * while it goes on. LAST takes nothing away.
 *
 * IPU_ERR_STATE: no program enqueues into it; of LAST, nothing has been
 * enqueued yet; wait on the thread that runs the engine.
 */
int ipu_outfeed_dequeue(ipu_outfeed *outfeed, int32_t wait,
                        ipu_results **results);

/*
 * Take the next element, of ALL only. Waits for it, at most so many seconds
 * (less than 0: as long as it takes; a run need not have begun). 1: there it
 * is; 0: the time is over; IPU_ERR_STATE: as above, or the run that would have
 * given it has failed or was aborted.
 */
int ipu_outfeed_next(ipu_outfeed *outfeed, double seconds,
                     ipu_results **results);

/* Elements that can be dequeued now. */
int64_t ipu_outfeed_count(ipu_outfeed *outfeed);

/*
 * From another thread: the run that goes on fails with IPU_ERR_STATE when it
 * next enqueues, or at once if it waits; who waits for elements fails too. The
 * next run begins as if nothing had been.
 */
int ipu_outfeed_abort(ipu_outfeed *outfeed);

/*
 * Drop all elements. Between runs also what is left of a run that failed or was
 * aborted: whoever asks for the next element then waits for a new run. Call it
 * before a thread that reads is started again.
 */
int ipu_outfeed_clear(ipu_outfeed *outfeed);

/* ------------------------------------------------------------- in a program */

/*
 * Take an element: outputs[i] becomes tensor i of the queue. In the body of a
 * loop, one for each iteration; elsewhere, one for each run. A queue is
 * dequeued at one place of a program. When the data has ended the run ends
 * with IPU_ERR_END.
 */
int ipu_infeed_dequeue(ipu_graph *graph, ipu_infeed *infeed,
                       ipu_tensor *outputs);

/*
 * Give count tensors, by their names, as one element. names NULL: one tensor,
 * or "0", "1", ... A queue is enqueued at one place of a program; if another
 * program enqueues into it too, then tensors of the same names, dtypes and
 * shapes (IPU_ERR_STATE). Elements of iterations that were completed stay in
 * the queue when a run fails.
 */
int ipu_outfeed_enqueue(ipu_graph *graph, ipu_outfeed *outfeed, int32_t count,
                        const char *const *names, const ipu_tensor *tensors);

/*
 * The body of a loop, called once, when the loop is built. inputs are the
 * carried values and after them the infeed's tensors; it sets outputs[i] to
 * what carried value i becomes, of the same dtype and shape. A negative return
 * fails the graph.
 */
typedef int (*ipu_body_fn)(ipu_graph *graph, void *context, int32_t ninputs,
                           const ipu_tensor *inputs, int32_t noutputs,
                           ipu_tensor *outputs);

/*
 * count iterations (0 or more) of a body, one after the other, in one step of
 * the program. inputs are what the ninputs carried values begin with, outputs
 * what they have become. infeed (may be NULL): dequeued in each iteration, and
 * the body must use an element of it.
 *
 * The body may use all tensors made before it; what is made in it can be used
 * in it only. Loops may be nested, and there may be several. ipu_assign in a
 * body takes effect after each iteration; so do ipu_counter and optimisers.
 * Ops that are built before a loop see variables as they were before it, those
 * after it as the loop has left them. Host calls and enqueues in the body
 * happen in each iteration. ipu_output is refused in it, and so are gradients
 * through the loop: call ipu_gradients in the body.
 *
 * A run that fails in an iteration leaves variables as the iteration before it
 * has left them.
 *
 * IPU_ERR_SHAPE: the body has not set an output (arity), or its dtype or shape
 * is another than that of the carried value, both named.
 */
int ipu_repeat(ipu_graph *graph, int64_t count, ipu_body_fn body, void *context,
               int32_t ninputs, const ipu_tensor *inputs, ipu_infeed *infeed,
               ipu_tensor *outputs);

/*
 * The same, as long as an int32 scalar that condition makes of the carried
 * values is not 0 before an iteration, but at most most times (0: without
 * limit). condition sets outputs[0], noutputs is 1. Cycles are counted for most
 * iterations, or for one, and marked as estimates.
 */
int ipu_while(ipu_graph *graph, int64_t most, ipu_body_fn condition,
              ipu_body_fn body, void *context, int32_t ninputs,
              const ipu_tensor *inputs, ipu_infeed *infeed,
              ipu_tensor *outputs);

/* The program of a loop's body and how often it runs, of step number step;
 * returns 1, or 0 if that is no loop (NULL, 1). With a condition, the count is
 * what cycles are counted for. body, borrowed until the executable is freed,
 * and count may be NULL. */
int ipu_executable_body(const ipu_executable *executable, int32_t step,
                        const ipu_executable **body, int64_t *count);

/* ----------------------------------------------------------- remote buffers */

/* Rows in the chip's streaming memory. id < 0 is invalid. */
typedef struct ipu_remote_buffer {
    int32_t id;
} ipu_remote_buffer;

enum { IPU_MAX_REMOTE_BYTES = 128 << 20 }; /* of a row: of one transfer */

/* rows of a shape; zero until written. */
ipu_remote_buffer ipu_remote_buffer_new(ipu_graph *graph, const char *name,
                                        ipu_dtype dtype, int64_t rows,
                                        int32_t ndim, const int64_t *shape);

/*
 * Row number index, an int32 scalar; and give the row this value. Both happen
 * in the order in which they are built, in each run or iteration. An index
 * that is out of range fails the run: IPU_ERR_DATA.
 */
ipu_tensor ipu_remote_load(ipu_graph *graph, ipu_remote_buffer buffer,
                           ipu_tensor index);
int ipu_remote_store(ipu_graph *graph, ipu_remote_buffer buffer,
                     ipu_tensor index, ipu_tensor value);

/* Copy one row between host and the engine's buffer, when no run goes on.
 * bytes are those of a row. */
int ipu_remote_write(ipu_engine *engine, const char *name, int64_t row,
                     const void *data, size_t bytes);
int ipu_remote_read(ipu_engine *engine, const char *name, int64_t row,
                    void *data, size_t bytes);

/* --------------------------------------------------------- how fast is it */

typedef struct ipu_benchmark_options {
    uint32_t size;  /* sizeof(ipu_benchmark_options) */
    int32_t epochs; /* 1 or more */
    int64_t elements_per_epoch;
    int32_t no_memcpy; /* 1: do not copy elements out of the queue, as the
                          device would */
    /* Called after each epoch, if not NULL, with its number and its object of
     * the JSON text. */
    void (*print)(void *context, int32_t epoch, const char *json);
    void *context;
} ipu_benchmark_options;

/*
 * Take epochs * elements_per_epoch elements as fast as they come, while a
 * thread of the queue reads ahead. *json becomes a text for free():
 *
 * {"epochs":[{"bandwidth":...,"elements_per_second":...,
 *             "elements_processed":...,"time_elapsed":...,
 *             "total_bytes_processed":...}, ...]}
 *
 * with sorted keys; bandwidth in 1e9 bytes a second; all single-precision
 * numbers. The source is not closed; the infeed must not be started, and is
 * stopped afterwards. IPU_ERR_END if the data ends before.
 */
int ipu_dataset_benchmark(const ipu_infeed_options *dataset,
                          const ipu_benchmark_options *options, char **json);
int ipu_infeed_benchmark(ipu_infeed *infeed,
                         const ipu_benchmark_options *options, char **json);

#ifdef __cplusplus
}
#endif

#endif
