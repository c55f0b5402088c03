/* SPDX-License-Identifier: Apache-2.0 */
#include "streams/ring.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "streams/streams.h"

int ipu__ring_init(struct ipu__ring *ring, size_t stride, int64_t room)
{
    size_t bytes = stride * (size_t)room;

    *ring = (struct ipu__ring){
        .slots = aligned_alloc(IPU__FEED_ALIGNMENT, bytes),
        .stride = stride,
        .room = room,
    };
    return ring->slots ? IPU_OK : ipu__fail_memory(bytes);
}

void ipu__ring_fini(struct ipu__ring *ring)
{
    free(ring->slots);
    *ring = (struct ipu__ring){0};
}

static unsigned char *slot(const struct ipu__ring *ring, int64_t element)
{
    return ring->slots + ring->stride * (size_t)(element % ring->room);
}

unsigned char *ipu__ring_back(const struct ipu__ring *ring)
{
    return slot(ring, ring->filled);
}

unsigned char *ipu__ring_front(const struct ipu__ring *ring)
{
    return slot(ring, ring->taken);
}

int ipu__ring_grow(struct ipu__ring *ring)
{
    struct ipu__ring larger = *ring;

    larger.room *= 2;
    larger.slots =
        aligned_alloc(IPU__FEED_ALIGNMENT, ring->stride * (size_t)larger.room);
    if (!larger.slots)
        return IPU_ERR_MEMORY;
    for (int64_t e = ring->taken; e < ring->filled; e++)
        memcpy(slot(&larger, e), slot(ring, e), ring->stride);
    free(ring->slots);
    *ring = larger;
    return IPU_OK;
}
