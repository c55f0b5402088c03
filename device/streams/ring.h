/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - a replica's elements that have been read and not been taken: slots,
 * filled and emptied in turn. It locks nothing. A slot may be written or read
 * while others change the counts: the counts say which side owns it.
 */
#ifndef IPU_STREAMS_RING_H
#define IPU_STREAMS_RING_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed has no slots. */
struct ipu__ring {
    unsigned char *slots; /* owned, [room][stride], IPU__FEED_ALIGNMENT */
    size_t stride;        /* bytes from slot to slot */
    int64_t room;
    int64_t filled, taken; /* since it was emptied */
};

/* IPU_ERR_MEMORY. */
int ipu__ring_init(struct ipu__ring *ring, size_t stride, int64_t room);
void ipu__ring_fini(struct ipu__ring *ring);

static inline int64_t ipu__ring_depth(const struct ipu__ring *ring)
{
    return ring->filled - ring->taken;
}

/* The slot that is to be filled next, or to be taken. */
unsigned char *ipu__ring_back(const struct ipu__ring *ring);
unsigned char *ipu__ring_front(const struct ipu__ring *ring);

/* Twice the room. Slots move: nobody may be at one. IPU_ERR_MEMORY, without a
 * text. */
int ipu__ring_grow(struct ipu__ring *ring);

#endif
