/* SPDX-License-Identifier: Apache-2.0 */
/*
 * streams.h - the device's side of the queues between host and device: infeeds
 * and outfeeds. The door of this room.
 *
 * The room knows shapes and errors only; graphs name the queues that they
 * dequeue, engines attach to them and move elements. Queues are counted: the
 * maker holds one share, and so does everything that points to one (graphs,
 * executables, engines). Engines hold it as users; a queue in use is not
 * deleted.
 *
 * Each queue has one lock, which is never held across a callback of the user.
 */
#ifndef IPU_STREAMS_STREAMS_H
#define IPU_STREAMS_STREAMS_H

#include "base/shape.h"

/* ------------------------------------------------------------------ infeeds */

/* The description of a loaded program's queue, without a data set: no engine
 * can use it. As ipu_infeed_new checks it. */
int ipu__infeed_absent(const char *name, int32_t replicas, int32_t count,
                       const ipu_feed_tensor *tensors, ipu_infeed **infeed);
bool ipu__infeed_is_absent(const ipu_infeed *infeed);

void ipu__infeed_retain(ipu_infeed *infeed);
void ipu__infeed_release(ipu_infeed *infeed); /* NULL is accepted */

/* An engine comes, with so many replicas (IPU_ERR_STATE unless these are the
 * queue's), and goes. It needs a share beside. */
int ipu__infeed_attach(ipu_infeed *infeed, int32_t replicas);
void ipu__infeed_detach(ipu_infeed *infeed);

/*
 * Take the replica's next element into buffers (any may be NULL: not wanted);
 * waits for it. IPU_ERR_STATE: not started, stopped meanwhile; IPU_ERR_END;
 * IPU_ERR_CALLBACK: the source failed, *callback_status gets what it returned.
 * Each replica may do so on a thread of its own.
 */
int ipu__infeed_take(ipu_infeed *infeed, int32_t replica, void *const *buffers,
                     int *callback_status);

const char *ipu__infeed_name(const ipu_infeed *infeed);
int32_t ipu__infeed_replicas(const ipu_infeed *infeed);
size_t ipu__infeed_bytes(const ipu_infeed *infeed); /* of an element */

/* ----------------------------------------------------------------- outfeeds */

/* The same as for infeeds. */
int ipu__outfeed_absent(const char *name, int32_t replicas, int32_t count,
                        const ipu_feed_tensor *tensors, ipu_outfeed **outfeed);
bool ipu__outfeed_is_absent(const ipu_outfeed *outfeed);

void ipu__outfeed_retain(ipu_outfeed *outfeed);
void ipu__outfeed_release(ipu_outfeed *outfeed); /* NULL is accepted */

/* Say what its elements are, of one replica. Again with the same: nothing;
 * with others: IPU_ERR_STATE. */
int ipu__outfeed_describe(ipu_outfeed *outfeed, int32_t count,
                          const ipu_feed_tensor *tensors);

int ipu__outfeed_attach(ipu_outfeed *outfeed, int32_t replicas);
void ipu__outfeed_detach(ipu_outfeed *outfeed);

/* A run that enqueues begins, on the calling thread, and ends with a status.
 * Of several runs at the same time, the queue is idle after the last. */
void ipu__outfeed_begin(ipu_outfeed *outfeed);
void ipu__outfeed_end(ipu_outfeed *outfeed, int status);

/* Give the replica's part of its next element. IPU_ERR_STATE: aborted, or
 * nobody dequeues and there is a limit. */
int ipu__outfeed_put(ipu_outfeed *outfeed, int32_t replica,
                     const void *const *buffers);

/* Returns the number of tensors in an element of one replica, or 0 if no
 * program has described it. The array is borrowed until the queue is freed. */
int32_t ipu__outfeed_tensors(const ipu_outfeed *outfeed,
                             const ipu_feed_tensor **tensors);

const char *ipu__outfeed_name(const ipu_outfeed *outfeed);
int32_t ipu__outfeed_replicas(const ipu_outfeed *outfeed);
ipu_outfeed_mode ipu__outfeed_mode(const ipu_outfeed *outfeed);

/* -------------------------------------------------------------- elements */

/* The description of an element, which both kinds of queue have. */
struct ipu__element {
    int32_t ntensors;
    ipu_feed_tensor tensors[IPU_MAX_FEED_TENSORS];
    char *names[IPU_MAX_FEED_TENSORS]; /* owned */
    size_t bytes[IPU_MAX_FEED_TENSORS];
    size_t total; /* of these */
};

/* Copies tensors, checked; what names the queue. IPU_ERR_SHAPE, _NAME,
 * _ARGUMENT. */
int ipu__element_init(struct ipu__element *element, const char *what,
                      int32_t count, const ipu_feed_tensor *tensors);
void ipu__element_fini(struct ipu__element *element);
bool ipu__element_equal(const struct ipu__element *a,
                        const struct ipu__element *b);

/* Number i of the element of a piece of memory that holds all tensors one after
 * the other, each aligned to IPU__FEED_ALIGNMENT; and its whole size. */
enum { IPU__FEED_ALIGNMENT = 4096 };
size_t ipu__element_offset(const struct ipu__element *element, int32_t i);

#endif
