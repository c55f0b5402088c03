/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - the memory that simulated ranks of a host share, behind the
 * interface of transport/shm/heap.h. The program is linked with this file in
 * place of heap.c.
 *
 * The heap of a rank is a range of ordinary memory, from which allocations are
 * cut one after another; none is used again within a run. Ranges are kept for
 * the next run. A place is the offset in the range, whose first FIRST bytes
 * belong to nobody.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"
#include "transport/shm/shm.h"

enum { FIRST = 4096 };
/* Bytes behind an area that are read before they are written. */
enum { AREA_TAIL = 4096 };
#define RANGE_BYTES ((size_t)64 << 20)
/* Ranges begin some pages behind the mappings that they are in, each with other
 * ones: the areas of all ranks would otherwise share the same sets of a cache.
 */
enum { RANGE_SHIFTS = 31, PAGE_BYTES = 4096 };
/* What a range that is not in use keeps in memory. */
#define KEPT_BYTES ((size_t)2 << 20)

struct entry {
    int32_t id; /* one more than the id; 0: none */
    uint64_t place;
};

struct hvd__heap {
    struct hvd__heap *next; /* in the list of ranges that are not in use */
    unsigned char *base;
    size_t used;
    size_t dirty; /* bytes from the beginning that a run has used */
    const struct sim_rank *ranks;
    int rank;
    int nentries; /* numbers of the directory that are in use */
    struct entry directory[HVD__HEAP_DIRECTORY];
};

static struct hvd__heap *idle;
static size_t nranges;

static struct hvd__heap *take_range(void)
{
    struct hvd__heap *heap = idle;

    if (heap) {
        idle = heap->next;
        return heap;
    }
    heap = calloc(1, sizeof *heap);
    if (!heap)
        abort();
    heap->base = mmap(NULL, RANGE_BYTES + RANGE_SHIFTS * PAGE_BYTES,
                      PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (heap->base == MAP_FAILED)
        abort();
    heap->base += nranges++ % RANGE_SHIFTS * PAGE_BYTES;
    return heap;
}

struct hvd__heap *sim_heap_new(int rank, const struct sim_rank *ranks)
{
    struct hvd__heap *heap = take_range();

    heap->used = FIRST;
    heap->ranks = ranks;
    heap->rank = rank;
    memset(heap->directory, 0,
           (size_t)heap->nentries * sizeof *heap->directory);
    heap->nentries = 0;
    return heap;
}

void sim_heap_free(struct hvd__heap *heap)
{
    if (!heap)
        return;
    if (heap->used > KEPT_BYTES) {
        madvise(heap->base + KEPT_BYTES, heap->used - KEPT_BYTES,
                MADV_DONTNEED);
        heap->used = KEPT_BYTES;
    }
    if (heap->used > heap->dirty)
        heap->dirty = heap->used;
    heap->next = idle;
    idle = heap;
}

/* Clears memory that an earlier run has used. In an area, what ranks write
 * before others read it is left as it is: most of the bytes. */
static void clear(unsigned char *memory, size_t bytes)
{
    if (bytes < sizeof(struct hvd__area) + AREA_TAIL) {
        memset(memory, 0, bytes);
        return;
    }
    memset(memory, 0, offsetof(struct hvd__area, payload));
    memset(memory + sizeof(struct hvd__area), 0, AREA_TAIL);
}

/* ------------------------------------------------------- the real interface */

void *hvd__heap_alloc(size_t bytes)
{
    struct hvd__heap *heap = sim.self ? sim.self->heap : NULL;
    unsigned char *memory;

    bytes = (bytes + 63) / 64 * 64;
    if (!heap || bytes > RANGE_BYTES - heap->used)
        return NULL;
    memory = heap->base + heap->used;
    if (heap->used < heap->dirty)
        clear(memory, bytes);
    heap->used += bytes + 64;
    return memory;
}

bool hvd__heap_free(void *memory)
{
    for (int i = 0; i < sim.nranks; i++) {
        const struct hvd__heap *heap = sim.ranks[i].heap;

        if (heap && hvd__heap_place(heap, memory, 0))
            return true;
    }
    return false;
}

void hvd__heap_forget(const void *memory)
{
    (void)memory;
}

void hvd__heap_forked(void)
{
}

/* No simulated rank is stopped for so long that the others go on without it. */
void hvd__heap_make_private(void)
{
}

int hvd__heap_open(struct hvd__transport *transport, const int *locals,
                   int nlocals, size_t limit, struct hvd__heap **heap,
                   char *why, size_t size)
{
    (void)transport, (void)locals, (void)nlocals, (void)limit, (void)why,
        (void)size;
    *heap = NULL;
    return HVD_OK;
}

void hvd__heap_close(struct hvd__heap *heap)
{
    (void)heap;
}

uint64_t hvd__heap_place(const struct hvd__heap *heap, const void *memory,
                         size_t bytes)
{
    uintptr_t at = (uintptr_t)memory, base = (uintptr_t)heap->base;

    if (at < base || at - base >= RANGE_BYTES ||
        bytes > RANGE_BYTES - (at - base))
        return 0;
    return at - base;
}

bool hvd__heap_is_local(const struct hvd__heap *heap, int rank)
{
    return heap->ranks[rank].host == heap->ranks[heap->rank].host;
}

void *hvd__heap_at(const struct hvd__heap *heap, int rank, uint64_t place,
                   size_t bytes)
{
    if (!hvd__heap_is_local(heap, rank) || place < FIRST ||
        place >= RANGE_BYTES || bytes > RANGE_BYTES - place)
        return NULL;
    return heap->ranks[rank].heap->base + place;
}

void hvd__heap_publish(struct hvd__heap *heap, int number, int32_t id,
                       uint64_t place)
{
    heap->directory[number] = (struct entry){id + 1, place};
    if (number >= heap->nentries)
        heap->nentries = number + 1;
}

int hvd__heap_look_up(const struct hvd__heap *heap, int rank, int number,
                      int32_t id, uint64_t *place)
{
    const struct entry *entry = &heap->ranks[rank].heap->directory[number];

    if (entry->id != id + 1)
        return 0;
    *place = entry->place;
    return 1;
}
