/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_streams.h - feeding a program while it runs: infeed and outfeed queues,
 * loops on the device, remote buffers, and a benchmark of data sets. ipu.h
 * includes it.
 *
 *   ipu_infeed      is a queue that a thread fills from a data set; each
 *                   ipu_infeed_dequeue of a program takes an element
 *   ipu_outfeed     is a queue that a program fills and the host empties, also
 *                   while the program still runs
 *   ipu_repeat      makes n iterations of a body within one run
 *   ipu_while       makes iterations while a condition holds
 *   ipu_remote_*    are rows in the DRAM beside the chip
 *
 * docs/STREAMS.md is the guide.
 *
 * Errors are as in ipu.h. Threads: any thread may call any function of a queue,
 * also while another thread runs an engine that uses it. Only one thread may
 * delete or free it, while no other is in one of its functions. Functions that
 * build a graph follow the rules of ipu.h.
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

/* Dtypes of data sets that the device does not have. Queues refuse them, and
 * the text says what to cast them to. */
enum { IPU_INT64 = 64, IPU_FLOAT64 = 65 };

enum { IPU_MAX_FEED_TENSORS = 64, IPU_MAX_RESULT_DIMS = 10 };

/* One tensor of a queue's element. */
typedef struct ipu_feed_tensor {
    const char *name; /* copied; unique within the element */
    ipu_dtype dtype;
    int32_t ndim;
    int64_t shape[IPU_MAX_DIMS]; /* all known and more than 0 */
} ipu_feed_tensor;

/* ---------------------------------------------------------------- data sets */

/*
 * A data set. next fills one buffer for each tensor, 4096-byte aligned, of
 * exactly the tensor's bytes; it returns 1 if it did, 0 if the data has ended,
 * negative for a failure. rewind (may be NULL) goes back to the beginning; it
 * returns 0, or negative for a failure. close (may be NULL) is called once,
 * when the queue is freed. One thread at a time calls them, not always the same
 * one. context is passed to all three.
 */
typedef struct ipu_source {
    int (*next)(void *context, void *const *buffers);
    int (*rewind)(void *context);
    void (*close)(void *context);
    void *context;
} ipu_source;

typedef struct ipu_infeed_options {
    uint32_t size;                  /* sizeof(ipu_infeed_options) */
    int32_t prefetch_depth;         /* elements read ahead, 1 to 255: 3 */
    const char *name;               /* copied; for messages and profiles */
    int32_t ntensors;               /* tensors of an element */
    int32_t replicas;               /* replicas take elements in turn: 1 */
    const ipu_feed_tensor *tensors; /* copied */
    ipu_source source;
    int32_t repeat; /* 1: at the end of the data, rewind and go on */
} ipu_infeed_options;

/* Sets the defaults above, and zero elsewhere. */
void ipu_infeed_options_init(ipu_infeed_options *options, size_t size);

typedef struct ipu_infeed ipu_infeed;

/*
 * Makes a queue for a data set, without reading yet. On failure the source is
 * not closed.
 *
 * Returns IPU_ERR_ARGUMENT for the prefetch depth, a missing name or a missing
 * next function; IPU_ERR_SHAPE for a shape that is not fully defined (an extent
 * less than 0) or has an extent of 0, and for a dtype that must be cast;
 * IPU_ERR_NAME if two tensors have one name.
 */
int ipu_infeed_new(const ipu_infeed_options *options, ipu_infeed **infeed);

/*
 * Starts reading, from the beginning if the source can rewind and has been read
 * before. A run that takes an element from a queue that was not started fails
 * with IPU_ERR_STATE. Starting twice is IPU_ERR_STATE too, but a queue can be
 * started again after the end of the data, a failure or ipu_infeed_stop.
 */
int ipu_infeed_start(ipu_infeed *infeed);

/* Stops reading and drops the elements that were read ahead. Blocks until next
 * returns. A run that waits for an element fails with IPU_ERR_STATE. */
int ipu_infeed_stop(ipu_infeed *infeed);

/*
 * Deletes the queue. Returns IPU_ERR_NAME if it has never been started, and
 * IPU_ERR_STATE while there is an engine of a program that takes from it; the
 * queue is then not deleted.
 */
int ipu_infeed_delete(ipu_infeed *infeed);

/* Releases the queue in any state; NULL is accepted. Graphs, executables and
 * engines that use it keep it, stopped, until they are freed. */
void ipu_infeed_free(ipu_infeed *infeed);

/* Returns the number of tensors of an element, and the tensors (may be NULL),
 * which are borrowed until the queue is freed. */
int32_t ipu_infeed_tensors(const ipu_infeed *infeed,
                           const ipu_feed_tensor **tensors);

/* Makes a queue and starts it, like an iterator of other languages. A queue
 * without a name is named after its number. */
int ipu_iterator_new(const ipu_infeed_options *options, ipu_infeed **infeed);

typedef struct ipu_infeed_stats {
    uint32_t size;       /* sizeof(ipu_infeed_stats), set by the caller */
    int32_t depth;       /* elements in the queue now */
    int64_t produced;    /* elements read, since the last start */
    int64_t consumed;    /* elements taken */
    int64_t waits;       /* times that the device found the queue empty */
    double wait_seconds; /* time for which it waited */
    double read_seconds; /* time spent in next */
} ipu_infeed_stats;

int ipu_infeed_get_stats(ipu_infeed *infeed, ipu_infeed_stats *stats);

/* ----------------------------------------------------------------- outfeeds */

typedef int32_t ipu_outfeed_mode;
enum {
    IPU_OUTFEED_ALL = 0, /* keeps all elements */
    IPU_OUTFEED_LAST = 1 /* keeps the last element */
};

typedef struct ipu_outfeed_options {
    uint32_t size; /* sizeof(ipu_outfeed_options) */
    ipu_outfeed_mode mode;
    const char *name;     /* copied */
    int32_t buffer_depth; /* elements, 1 to 255: 3 */
    int32_t replicas;     /* each replica gives a part of an element: 1 */
    /*
     * IPU_OUTFEED_ALL keeps elements until they are dequeued. With blocking 0
     * the queue grows in host memory, and the device does not wait. With 1 the
     * device waits while buffer_depth elements have not been dequeued; another
     * thread must dequeue them, or the run does not end.
     */
    int32_t blocking;
    int32_t reserved;
    double timeout_seconds; /* a wait that takes longer fails the run with
                               IPU_ERR_STATE; 0: no limit */
    int64_t most_elements;  /* a queue that grows beyond it fails the run with
                               IPU_ERR_STATE; 0: no limit */
} ipu_outfeed_options;

/* Sets the defaults above, and zero elsewhere. */
void ipu_outfeed_options_init(ipu_outfeed_options *options, size_t size);

typedef struct ipu_outfeed ipu_outfeed;

/* Makes an empty queue. */
int ipu_outfeed_new(const ipu_outfeed_options *options, ipu_outfeed **outfeed);

/* Delete or release the queue, under the rules for an infeed. */
int ipu_outfeed_delete(ipu_outfeed *outfeed);
void ipu_outfeed_free(ipu_outfeed *outfeed);

/*
 * Elements taken from an outfeed. With IPU_OUTFEED_ALL each tensor has the
 * shape [elements, shape...], or [elements, replicas, shape...] if there are
 * several replicas; elements may be 0. With IPU_OUTFEED_LAST, and for the
 * single element of ipu_outfeed_next, the dimension of elements is missing.
 */
typedef struct ipu_results ipu_results;

/* Returns the number of elements, which is 1 with IPU_OUTFEED_LAST and for
 * ipu_outfeed_next. */
int64_t ipu_results_count(const ipu_results *results);

/* Finds the tensor of a name (NULL: the only tensor). Any output may be NULL;
 * shape has room for IPU_MAX_RESULT_DIMS. data is borrowed until the results
 * are freed. Returns the number of dimensions, or IPU_ERR_NAME, whose text
 * lists the names. */
int ipu_results_tensor(const ipu_results *results, const char *name,
                       ipu_dtype *dtype, int64_t *shape, const void **data);

void ipu_results_free(ipu_results *results); /* NULL is accepted */

/*
 * Takes all elements of the queue: with wait 1 after the current run has ended,
 * with 0 at once. IPU_OUTFEED_LAST leaves its element in the queue.
 *
 * Returns IPU_ERR_STATE if no program enqueues into the queue, if nothing has
 * been enqueued yet with IPU_OUTFEED_LAST, or if wait is 1 on the thread that
 * runs the engine.
 */
int ipu_outfeed_dequeue(ipu_outfeed *outfeed, int32_t wait,
                        ipu_results **results);

/*
 * Takes the next element; for IPU_OUTFEED_ALL only. Waits for at most so many
 * seconds (less than 0: without limit), also for a run that has not begun yet.
 * Returns 1 and the element, 0 if the time has passed, or IPU_ERR_STATE if no
 * program enqueues into the queue or the run that would have given the element
 * has failed or was aborted.
 */
int ipu_outfeed_next(ipu_outfeed *outfeed, double seconds,
                     ipu_results **results);

/* Returns the number of elements that can be dequeued now. */
int64_t ipu_outfeed_count(ipu_outfeed *outfeed);

/*
 * Aborts the current run from another thread. The run fails with IPU_ERR_STATE
 * when it next enqueues, or at once if it waits; threads that wait for elements
 * fail too. The next run is not affected.
 */
int ipu_outfeed_abort(ipu_outfeed *outfeed);

/*
 * Drops all elements. Between runs it also forgets that a run failed or was
 * aborted: ipu_outfeed_next then waits for a new run. Call it before you start
 * a thread again that reads.
 */
int ipu_outfeed_clear(ipu_outfeed *outfeed);

/* ------------------------------------------------------------- in a program */

/*
 * Takes an element from a queue, one for each run, or in the body of a loop one
 * for each iteration: outputs[i] becomes tensor i of the queue. A program can
 * dequeue a queue at one place only. When the data has ended, the run ends with
 * IPU_ERR_END.
 */
int ipu_infeed_dequeue(ipu_graph *graph, ipu_infeed *infeed,
                       ipu_tensor *outputs);

/*
 * Enqueues count tensors, with these names, as one element. names NULL stands
 * for "0", "1", ..., or for no name if there is one tensor. A program can
 * enqueue into a queue at one place only. Programs that enqueue into the same
 * queue must use the same names, dtypes and shapes (IPU_ERR_STATE). Elements of
 * completed iterations stay in the queue when a run fails.
 */
int ipu_outfeed_enqueue(ipu_graph *graph, ipu_outfeed *outfeed, int32_t count,
                        const char *const *names, const ipu_tensor *tensors);

/*
 * Builds the body of a loop; it is called once, when the loop is built. inputs
 * are the carried values and after them the infeed's tensors. The function sets
 * outputs[i] to the next value of carried value i, of the same dtype and shape.
 * A negative return fails the graph.
 */
typedef int (*ipu_body_fn)(ipu_graph *graph, void *context, int32_t ninputs,
                           const ipu_tensor *inputs, int32_t noutputs,
                           ipu_tensor *outputs);

/*
 * Repeats a body count times (0 or more), in one step of the program. inputs
 * are the initial values of the ninputs carried values, outputs their final
 * values. infeed (may be NULL) is dequeued in each iteration, and the body must
 * use an element of it.
 *
 * The body may use all tensors made before it; tensors made in it can be used
 * in it only. Loops may be nested, and there may be several. ipu_assign in a
 * body takes effect after each iteration; so do ipu_counter and optimisers.
 * Ops built before a loop see variables as they were before it; ops built after
 * it see the final values. Host calls and enqueues in the body happen in each
 * iteration. ipu_output is refused in it.
 *
 * ipu_gradients passes the loop from the carried values back to what they began
 * with, and to what the body uses from around it, by a loop in reverse order:
 * docs/STREAMS.md. The forward loop keeps for it what each iteration makes;
 * with ipu_allow_recompute it keeps the carried values and checkpoints alone.
 *
 * After a run that fails in an iteration, variables have the values of the
 * iteration before.
 *
 * Fails with IPU_ERR_SHAPE if the body has not set an output, or if its dtype
 * or shape differs from that of the carried value; the text names both.
 */
int ipu_repeat(ipu_graph *graph, int64_t count, ipu_body_fn body, void *context,
               int32_t ninputs, const ipu_tensor *inputs, ipu_infeed *infeed,
               ipu_tensor *outputs);

/*
 * Repeats a body while a condition holds, but at most `most` times (0: without
 * limit). condition computes an int32 scalar from the carried values before
 * each iteration and stores it in outputs[0] (noutputs is 1); the loop ends
 * when it is 0. There are no gradients through the loop: call ipu_gradients in
 * its body. All else is as in ipu_repeat. The model counts cycles for `most`
 * iterations, or for one without a limit, and marks them as estimates.
 */
int ipu_while(ipu_graph *graph, int64_t most, ipu_body_fn condition,
              ipu_body_fn body, void *context, int32_t ninputs,
              const ipu_tensor *inputs, ipu_infeed *infeed,
              ipu_tensor *outputs);

/* Returns the program of the loop body at a step, and the number of iterations.
 * Returns 1, or 0 if the step is no loop (NULL, 1). For a loop with a condition
 * the count is the number of iterations that cycles are counted for. body and
 * count may be NULL; *body is borrowed until the executable is freed. */
int ipu_executable_body(const ipu_executable *executable, int32_t step,
                        const ipu_executable **body, int64_t *count);

/* ----------------------------------------------------------- remote buffers */

/* Rows in the chip's streaming memory. id < 0 is invalid. */
typedef struct ipu_remote_buffer {
    int32_t id;
} ipu_remote_buffer;

enum { IPU_MAX_REMOTE_BYTES = 128 << 20 }; /* largest row, and transfer */

/* Makes a buffer of rows of one shape, which are zero until written. */
ipu_remote_buffer ipu_remote_buffer_new(ipu_graph *graph, const char *name,
                                        ipu_dtype dtype, int64_t rows,
                                        int32_t ndim, const int64_t *shape);

/*
 * Load or store the row of a buffer whose number is index, an int32 scalar.
 * Loads and stores happen in the order in which they are built, in each run or
 * iteration. An index out of range fails the run with IPU_ERR_DATA.
 */
ipu_tensor ipu_remote_load(ipu_graph *graph, ipu_remote_buffer buffer,
                           ipu_tensor index);
int ipu_remote_store(ipu_graph *graph, ipu_remote_buffer buffer,
                     ipu_tensor index, ipu_tensor value);

/* Copy one row between host memory and the engine's buffer, between runs. bytes
 * is the size of a row. */
int ipu_remote_write(ipu_engine *engine, const char *name, int64_t row,
                     const void *data, size_t bytes);
int ipu_remote_read(ipu_engine *engine, const char *name, int64_t row,
                    void *data, size_t bytes);

/* --------------------------------------------------- benchmark of data sets */

typedef struct ipu_benchmark_options {
    uint32_t size;  /* sizeof(ipu_benchmark_options) */
    int32_t epochs; /* 1 or more */
    int64_t elements_per_epoch;
    int32_t no_memcpy; /* 1: elements are not copied out of the queue, as the
                          device would do */
    /* print, if not NULL, is called after each epoch with the epoch's number
     * and its object of the JSON text. */
    void (*print)(void *context, int32_t epoch, const char *json);
    void *context;
} ipu_benchmark_options;

/*
 * Take epochs * elements_per_epoch elements as fast as possible, while the
 * queue's thread reads ahead. *json becomes a text that the caller frees with
 * free():
 *
 * {"epochs":[{"bandwidth":...,"elements_per_second":...,
 *             "elements_processed":...,"time_elapsed":...,
 *             "total_bytes_processed":...}, ...]}
 *
 * The keys are sorted; bandwidth is in 1e9 bytes a second; all numbers have
 * single precision. The source is not closed. An infeed must not be started,
 * and is stopped afterwards. Returns IPU_ERR_END if the data ends early.
 */
int ipu_dataset_benchmark(const ipu_infeed_options *dataset,
                          const ipu_benchmark_options *options, char **json);
int ipu_infeed_benchmark(ipu_infeed *infeed,
                         const ipu_benchmark_options *options, char **json);

#ifdef __cplusplus
}
#endif

#endif
