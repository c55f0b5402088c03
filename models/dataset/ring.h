/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h - batches that are filled in order, ahead of the caller that uses
 * them. */
#ifndef MODELS_RING_H
#define MODELS_RING_H

#include <hvd_dataset.h>
#include <stdbool.h>
#include <stdint.h>

struct ring;

/* A batch, with the status with which it was filled and the position behind it:
 * so what the caller learns does not depend on who fills, and how far the
 * thread is. */
struct slot {
    char *memory; /* owned */
    void *at[HVD_MAX_COMPONENTS];
    int status;
    char *text;                  /* owned; of a failure */
    int64_t rows, *replica_rows; /* [replicas], owned */
    int64_t epoch, samples;      /* behind it */
};

/* Fills a slot; its tensors go to the addresses in at. Never called by two
 * threads at once. */
typedef void ring_fill(void *context, struct slot *slot, void *const *at);

/* What a ring is made of. lay_out(context, memory, at) returns the bytes of a
 * slot's memory, and sets the addresses of its tensors if memory is not NULL.
 */
struct ring_maker {
    int depth; /* batches ahead; 0: the caller fills what it takes */
    int replicas;
    ring_fill *fill;
    size_t (*lay_out)(void *context, char *memory, void **at);
    void *context; /* borrowed, for both */
};

int ring_new(const struct ring_maker *maker, struct ring **made);
void ring_free(struct ring *ring); /* accepts NULL */

/* Returns the next slot, which is the caller's until it takes another; NULL:
 * the thread does not start. Without batches ahead, the data goes to buffers,
 * if there are some. Behind a failure every slot is that failure. */
struct slot *ring_take(struct ring *ring, void *const *buffers);

/* Returns true if tensors lie in slots whatever buffers ring_take was given. */
bool ring_is_ahead(const struct ring *ring);

/* Ends the thread. Afterwards the caller may change what fill reads. */
void ring_stop(struct ring *ring);
/* Forgets what was filled, and failures too. The thread is stopped. */
void ring_clear(struct ring *ring);

#endif
