/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "hvd.h"

/* A cache line, and the widest vector register. */
enum { ALIGNMENT = 64 };

void *hvd_malloc(size_t bytes)
{
    void *memory;

    if (bytes > PTRDIFF_MAX - ALIGNMENT) {
        hvd__fail_memory(bytes);
        return NULL;
    }
    bytes = bytes ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    memory = aligned_alloc(ALIGNMENT, bytes);
    if (!memory) {
        hvd__fail_memory(bytes);
        return NULL;
    }
    return memset(memory, 0, bytes);
}

void hvd_free(void *memory)
{
    free(memory);
}
