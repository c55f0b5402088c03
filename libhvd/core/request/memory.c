/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "hvd.h"
#include "transport/shm/heap.h"

/* The size of a cache line and of the widest vector register. */
enum { ALIGNMENT = 64 };

void *hvd_malloc(size_t bytes)
{
    void *memory;

    if (bytes > PTRDIFF_MAX - ALIGNMENT) {
        hvd__fail_memory(bytes);
        return NULL;
    }
    bytes = bytes ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    memory = hvd__heap_alloc(bytes);
    if (memory)
        return memory;
    memory = aligned_alloc(ALIGNMENT, bytes);
    if (!memory) {
        hvd__fail_memory(bytes);
        return NULL;
    }
    return memset(memory, 0, bytes);
}

void hvd_free(void *memory)
{
    if (memory && !hvd__heap_free(memory))
        free(memory);
}
