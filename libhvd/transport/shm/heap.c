/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c - the files of the heaps, and an allocator with boundary tags within
 * one's own file: first fit in a list of free blocks; neighbours are merged
 * when they become free. (Knuth, The Art of Computer Programming, volume 1,
 * section 2.5.) hvd_malloc (core/request/memory.c) and shm.c allocate here.
 *
 *     file   | header | block | block |   free   | block |   not yet committed
 *     block  | tag, one cache line | bytes, whole cache lines |
 *
 * The pages of large free blocks are given back to the system, all but the page
 * with the tag; such a block is hollow until it is used again.
 */
#include "transport/shm/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/segment.h"
#include "base/status.h"

enum { LINE = 64, PAGE = 4096 };

/* The file grows by at least STEP; free blocks below HOLLOW_BYTES keep their
 * pages. */
#define STEP ((size_t)64 << 10)
#define HOLLOW_BYTES ((size_t)1 << 20)

/* The directory. An entry's id is 0, or one more than an id: hvd__heap_publish
 * stores it after place, hvd__heap_look_up loads it before. */
struct header {
    struct {
        _Atomic int32_t id;
        _Atomic uint64_t place;
    } directory[HVD__HEAP_DIRECTORY];
};

struct block {
    _Alignas(LINE) size_t bytes;   /* this tag included */
    size_t before;                 /* bytes of the block before; 0: none */
    struct block *next, *previous; /* in the list of free blocks */
    bool used;
    bool hollow;
};
_Static_assert(sizeof(struct block) == LINE, "a tag is one cache line");

#define FIRST ((sizeof(struct header) + PAGE - 1) / PAGE * PAGE)

struct hvd__heap {
    struct hvd__heap *next; /* list of all that are mapped */
    unsigned char *base;    /* this rank's file */
    size_t bytes;           /* size of the file */
    size_t committed;       /* bytes committed, from the beginning */
    size_t last;            /* offset of the last block; 0: none */
    struct block *free;
    int64_t nused;
    int fd;
    bool closed;
    bool is_private; /* what was handed out is no part of the file any more */
    bool warned;
    /* The heaps of all ranks of this host, by local rank. */
    int nlocals;
    int *locals;           /* owned, ascending ranks of the world */
    unsigned char **bases; /* owned; this rank's is base */
    size_t *sizes;         /* owned */
};

/* Guards the list of heaps and the blocks of this rank's heap. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hvd__heap *heaps;
static bool forked;

/* ---------------------------------------------------------------- the files */

/* The offer of a rank: where its file is, or why there is none. */
struct offer {
    struct hvd__segment_address address; /* 0: none */
    uint64_t bytes;
    char why[192]; /* why there is none */
};

static bool is_there(const struct offer *offer)
{
    return offer->address.process != 0;
}

static int refuse(struct offer *offer, const char *what, int code)
{
    snprintf(offer->why, sizeof offer->why, "%s: %s", what,
             hvd__segment_strerror(code));
    offer->address = (struct hvd__segment_address){0};
    return -1;
}

static void *map(int fd, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE, fd, 0);

    if (memory == MAP_FAILED)
        return NULL;
    /* Asks for large pages, where the system lets files in memory have them. */
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

/* Returns the size of a file: as large as the file system could ever hold. If
 * that has no limit, all ranks of the host take half the machine's memory, and
 * where the address space is limited (ulimit -v), a quarter of that. */
static size_t largest(int fd, size_t limit, int nlocals)
{
    struct statvfs fs;
    struct rlimit space;
    uint64_t bytes = 0;

    if (fstatvfs(fd, &fs) == 0)
        bytes = (uint64_t)fs.f_blocks * fs.f_frsize;
    if (bytes == 0)
        bytes =
            (uint64_t)sysconf(_SC_PHYS_PAGES) * PAGE / 2 / (unsigned)nlocals;
    if (bytes > limit)
        bytes = limit;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY &&
        bytes > space.rlim_cur / 4 / (unsigned)nlocals)
        bytes = space.rlim_cur / 4 / (unsigned)nlocals;
    return (size_t)bytes / PAGE * PAGE;
}

/* Makes and maps this rank's file, with its header. */
static int create(struct hvd__heap *heap, size_t limit, struct offer *offer)
{
    int code;

    heap->fd = hvd__segment_create();
    if (heap->fd < 0)
        return refuse(offer, "/dev/shm", -heap->fd);
    heap->bytes = largest(heap->fd, limit, heap->nlocals);
    if (heap->bytes < FIRST + STEP) {
        snprintf(offer->why, sizeof offer->why,
                 "HVD_SHM_SIZE, /dev/shm or ulimit -v leave a rank %zu bytes, "
                 "fewer than the %zu it needs",
                 heap->bytes, (size_t)(FIRST + STEP));
        return -1;
    }
    code = ftruncate(heap->fd, (off_t)heap->bytes) == 0 ? 0 : errno;
    if (code == 0)
        code = posix_fallocate(heap->fd, 0, (off_t)FIRST);
    if (code == 0 && !(heap->base = map(heap->fd, heap->bytes)))
        code = errno;
    if (code != 0)
        return refuse(offer, "shared memory", code);
    offer->address = hvd__segment_address_of(heap->fd);
    heap->committed = FIRST;
    offer->bytes = heap->bytes;
    return 0;
}

/* Maps the file of another rank, with local number i. */
static int attach(struct hvd__heap *heap, int i, const struct offer *offer)
{
    int fd = hvd__segment_open(&offer->address);

    if (fd < 0)
        return -fd;
    heap->bases[i] = map(fd, offer->bytes);
    close(fd);
    if (!heap->bases[i])
        return errno;
    heap->sizes[i] = offer->bytes;
    /* The mapping is left out of forked children and core dumps. */
    madvise(heap->bases[i], offer->bytes, MADV_DONTFORK);
    madvise(heap->bases[i], offer->bytes, MADV_DONTDUMP);
    return 0;
}

static int attach_all(struct hvd__heap *heap, const struct offer *all, int self,
                      struct offer *mine)
{
    char what[80];

    for (int i = 0; i < heap->nlocals; i++) {
        int rank = heap->locals[i], code;

        if (rank == self) {
            heap->bases[i] = heap->base;
            heap->sizes[i] = heap->bytes;
            continue;
        }
        code = is_there(&all[rank]) ? attach(heap, i, &all[rank]) : 0;
        if (code != 0) {
            snprintf(what, sizeof what,
                     "mapping the shared memory of rank %d (/proc/%d/fd/%d)",
                     rank, (int)all[rank].address.process,
                     (int)all[rank].address.fd);
            return refuse(mine, what, code);
        }
    }
    return 0;
}

/* Returns the first rank on this host that has no heap, or could not map the
 * others'; NULL: all have. */
static const struct offer *missing(const struct offer *all, const int *locals,
                                   int nlocals)
{
    for (int i = 0; i < nlocals; i++)
        if (!is_there(&all[locals[i]]))
            return &all[locals[i]];
    return NULL;
}

static void unmap(struct hvd__heap *heap)
{
    for (int i = 0; i < heap->nlocals && heap->bases; i++)
        if (heap->bases[i] && heap->bases[i] != heap->base)
            munmap(heap->bases[i], heap->sizes[i]);
    free(heap->bases);
    free(heap->sizes);
    free(heap->locals);
    heap->bases = NULL;
    heap->sizes = NULL;
    heap->locals = NULL;
    heap->nlocals = 0;
}

static void destroy(struct hvd__heap *heap)
{
    unmap(heap);
    if (heap->base)
        munmap(heap->base, heap->bytes);
    if (heap->fd >= 0)
        close(heap->fd);
    free(heap);
}

static struct hvd__heap *heap_new(const int *locals, int nlocals)
{
    struct hvd__heap *heap = calloc(1, sizeof *heap);
    size_t n = (size_t)nlocals;

    if (!heap)
        return NULL;
    heap->fd = -1;
    heap->nlocals = nlocals;
    heap->locals = malloc(n * sizeof *heap->locals);
    heap->bases = calloc(n, sizeof *heap->bases);
    heap->sizes = calloc(n, sizeof *heap->sizes);
    if (!heap->locals || !heap->bases || !heap->sizes) {
        destroy(heap);
        return NULL;
    }
    memcpy(heap->locals, locals, n * sizeof *locals);
    return heap;
}

int hvd__heap_open(struct hvd__transport *t, const int *locals, int nlocals,
                   size_t limit, struct hvd__heap **heap, char *why,
                   size_t size)
{
    struct offer *all = calloc((size_t)t->size, sizeof *all), mine = {0};
    struct hvd__heap *made = heap_new(locals, nlocals);
    const struct offer *failed;
    struct hvd__segment_address own;
    bool made_one;
    int status;

    *heap = NULL;
    if (!all || !made) {
        free(all);
        if (made)
            destroy(made);
        return hvd__fail_memory((size_t)t->size * sizeof *all);
    }
    made_one = limit > 0 && t->size > 1 && create(made, limit, &mine) == 0;
    own = mine.address;
    status = t->exchange(t, &mine, all, sizeof mine);
    if (status == HVD_OK && made_one && !missing(all, locals, nlocals))
        attach_all(made, all, t->rank, &mine);
    if (status == HVD_OK)
        status = t->exchange(t, &mine, all, sizeof mine);
    hvd__segment_settle(&own);
    failed = status == HVD_OK ? missing(all, locals, nlocals) : &mine;
    snprintf(why, size, "%s", failed ? failed->why : "");
    free(all);
    if (failed) {
        destroy(made);
        return status;
    }
    pthread_mutex_lock(&lock);
    made->next = heaps;
    heaps = made;
    pthread_mutex_unlock(&lock);
    *heap = made;
    return HVD_OK;
}

/* Unmaps a closed heap if nothing in it is in use. The lock is held. */
static void drop_if_unused(struct hvd__heap *heap)
{
    struct hvd__heap **link = &heaps;

    if (!heap->closed || heap->nused > 0)
        return;
    while (*link != heap)
        link = &(*link)->next;
    *link = heap->next;
    destroy(heap);
}

void hvd__heap_close(struct hvd__heap *heap)
{
    if (!heap)
        return;
    pthread_mutex_lock(&lock);
    unmap(heap);
    heap->closed = true;
    drop_if_unused(heap);
    pthread_mutex_unlock(&lock);
}

/* ------------------------------------------------------------ the allocator */

static struct block *block_at(const struct hvd__heap *heap, size_t offset)
{
    return (struct block *)(void *)(heap->base + offset);
}

static size_t offset_of(const struct hvd__heap *heap, const void *at)
{
    return (size_t)((const unsigned char *)at - heap->base);
}

static struct block *after(const struct hvd__heap *heap,
                           const struct block *block)
{
    size_t offset = offset_of(heap, block) + block->bytes;

    return offset < heap->committed ? block_at(heap, offset) : NULL;
}

static void list(struct hvd__heap *heap, struct block *block)
{
    block->used = false;
    block->previous = NULL;
    block->next = heap->free;
    if (heap->free)
        heap->free->previous = block;
    heap->free = block;
}

static void unlist(struct hvd__heap *heap, struct block *block)
{
    if (block->next)
        block->next->previous = block->previous;
    if (block->previous)
        block->previous->next = block->next;
    else
        heap->free = block->next;
}

/* Sets a block's size, also in the block that follows. */
static void resize(struct hvd__heap *heap, struct block *block, size_t bytes)
{
    struct block *next;

    block->bytes = bytes;
    next = after(heap, block);
    if (next)
        next->before = bytes;
    else
        heap->last = offset_of(heap, block);
}

static bool commit(struct hvd__heap *heap, size_t offset, size_t bytes)
{
    int code;

    do
        code = posix_fallocate(heap->fd, (off_t)offset, (off_t)bytes);
    while (code == EINTR);
    return code == 0;
}

/* Makes a free block of bytes or more at the end of the file. */
static struct block *grow(struct hvd__heap *heap, size_t bytes)
{
    struct block *last = heap->last ? block_at(heap, heap->last) : NULL;
    size_t more = (bytes + STEP - 1) / STEP * STEP, before = 0;
    struct block *block;

    if (last && !last->used && !last->hollow)
        more = (bytes - last->bytes + STEP - 1) / STEP * STEP;
    if (more > heap->bytes - heap->committed ||
        !commit(heap, heap->committed, more))
        return NULL;
    block = block_at(heap, heap->committed);
    heap->committed += more;
    if (last && !last->used && !last->hollow) {
        resize(heap, last, last->bytes + more);
        return last;
    }
    if (last)
        before = last->bytes;
    *block = (struct block){.bytes = more, .before = before};
    heap->last = offset_of(heap, block);
    list(heap, block);
    return block;
}

/* Cuts a block, which is on no list, down to bytes, and frees the rest. */
static void split(struct hvd__heap *heap, struct block *block, size_t bytes)
{
    struct block *rest;
    size_t left = block->bytes - bytes;

    if (left < 2 * LINE)
        return;
    rest = block_at(heap, offset_of(heap, block) + bytes);
    *rest = (struct block){.before = bytes, .hollow = block->hollow};
    resize(heap, rest, left);
    block->bytes = bytes;
    list(heap, rest);
}

/* Allocates from a heap. The lock is held. */
static void *take_block(struct hvd__heap *heap, size_t bytes)
{
    struct block *block = heap->free;

    while (block && block->bytes < bytes)
        block = block->next;
    if (!block)
        block = grow(heap, bytes);
    if (!block)
        return NULL;
    /* The tag of the rest needs memory too. */
    if (block->hollow &&
        !commit(heap, offset_of(heap, block),
                bytes + LINE < block->bytes ? bytes + LINE : block->bytes))
        return NULL;
    unlist(heap, block);
    split(heap, block, bytes);
    block->used = true;
    block->hollow = false;
    heap->nused++;
    return block + 1;
}

void *hvd__heap_alloc(size_t bytes)
{
    struct hvd__heap *heap;
    void *memory = NULL;
    bool warn = false;

    if (bytes > PTRDIFF_MAX / 2)
        return NULL;
    bytes = (bytes + LINE - 1) / LINE * LINE + LINE;
    pthread_mutex_lock(&lock);
    heap = heaps;
    while (heap && heap->closed)
        heap = heap->next;
    if (heap && !forked) {
        memory = take_block(heap, bytes);
        warn = !memory && !heap->warned;
        heap->warned |= warn;
    }
    pthread_mutex_unlock(&lock);
    if (warn)
        hvd__log(HVD__LOG_WARNING,
                 "no room for %zu bytes of shared memory (/dev/shm, "
                 "HVD_SHM_SIZE): what does not fit is ordinary memory, which "
                 "is slower to reduce",
                 bytes - LINE);
    return memory ? memset(memory, 0, bytes - LINE) : NULL;
}

/* Gives pages of a large block back to the system. */
static void hollow(struct hvd__heap *heap, struct block *block)
{
    size_t start = offset_of(heap, block), end = start + block->bytes;

    if (block->bytes < HOLLOW_BYTES || heap->is_private)
        return;
    start = (start + LINE + PAGE - 1) / PAGE * PAGE;
    end = end / PAGE * PAGE;
    if (fallocate(heap->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)start, (off_t)(end - start)) == 0)
        block->hollow = true;
}

static struct block *merge(struct hvd__heap *heap, struct block *low,
                           struct block *high)
{
    low->hollow |= high->hollow;
    resize(heap, low, low->bytes + high->bytes);
    return low;
}

/* Frees memory of a heap. The lock is held. */
static void give_block(struct hvd__heap *heap, struct block *block)
{
    struct block *next = after(heap, block), *before;

    if (next && !next->used) {
        unlist(heap, next);
        block = merge(heap, block, next);
    }
    if (block->before > 0) {
        before = block_at(heap, offset_of(heap, block) - block->before);
        if (!before->used) {
            unlist(heap, before);
            block = merge(heap, before, block);
        }
    }
    hollow(heap, block);
    list(heap, block);
    heap->nused--;
}

/* Returns the heap that memory belongs to, or NULL. The lock is held. */
static struct hvd__heap *owner_of(const void *memory)
{
    const unsigned char *at = memory;
    struct hvd__heap *heap = heaps;

    while (heap && (at < heap->base || at >= heap->base + heap->bytes))
        heap = heap->next;
    return heap;
}

/* Turns what has been handed out into this process's own memory, page by page
 * as it writes to it: one call, however large it is. If the system does not
 * promise the memory for that (vm.overcommit_memory 2), nothing can be
 * written. */
static void keep_to_oneself(const struct hvd__heap *heap)
{
    if (mmap(heap->base, heap->committed, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, heap->fd,
             0) == MAP_FAILED)
        mprotect(heap->base, heap->committed, PROT_READ);
    mprotect(heap->base + heap->committed, heap->bytes - heap->committed,
             PROT_NONE);
}

/* Puts a copy of what has been handed out in its place. */
static bool copy_out(struct hvd__heap *heap)
{
    void *copy = mmap(NULL, heap->committed, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (copy == MAP_FAILED)
        return false;
    memcpy(copy, heap->base, heap->committed);
    if (mremap(copy, heap->committed, heap->committed,
               MREMAP_MAYMOVE | MREMAP_FIXED, heap->base) == MAP_FAILED) {
        munmap(copy, heap->committed);
        return false;
    }
    heap->is_private = true;
    return true;
}

void hvd__heap_make_private(void)
{
    size_t failed = 0;

    pthread_mutex_lock(&lock);
    for (struct hvd__heap *heap = heaps; heap; heap = heap->next)
        if (heap->closed && !heap->is_private && !copy_out(heap))
            failed += heap->committed;
    pthread_mutex_unlock(&lock);
    if (failed > 0)
        hvd__log(HVD__LOG_WARNING,
                 "%zu bytes of hvd_malloc stay shared with ranks that were "
                 "stopped, which may write to them once more when they go on",
                 failed);
}

void hvd__heap_forked(void)
{
    /* Another thread of the parent may have held the lock. */
    pthread_mutex_init(&lock, NULL);
    forked = true;
    for (struct hvd__heap *heap = heaps; heap; heap = heap->next)
        keep_to_oneself(heap);
}

void hvd__heap_forget(const void *memory)
{
    pthread_mutex_lock(&lock);
    owner_of(memory)->nused--;
    pthread_mutex_unlock(&lock);
}

bool hvd__heap_free(void *memory)
{
    struct hvd__heap *heap;

    pthread_mutex_lock(&lock);
    heap = owner_of(memory);
    if (heap && !forked) {
        give_block(heap, (struct block *)memory - 1);
        drop_if_unused(heap);
    }
    pthread_mutex_unlock(&lock);
    return heap != NULL;
}

/* --------------------------------------------------------------- who, where */

uint64_t hvd__heap_place(const struct hvd__heap *heap, const void *memory,
                         size_t bytes)
{
    uintptr_t at = (uintptr_t)memory, base = (uintptr_t)heap->base;

    if (at < base || at - base >= heap->bytes ||
        bytes > heap->bytes - (at - base))
        return 0;
    return at - base;
}

/* Returns the local number of a rank of the world; -1: on another host. */
static int local_number(const struct hvd__heap *heap, int rank)
{
    int low = 0, high = heap->nlocals;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (heap->locals[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < heap->nlocals && heap->locals[low] == rank ? low : -1;
}

void *hvd__heap_at(const struct hvd__heap *heap, int rank, uint64_t place,
                   size_t bytes)
{
    int i = local_number(heap, rank);

    if (i < 0 || place == 0 || place >= heap->sizes[i] ||
        bytes > heap->sizes[i] - place)
        return NULL;
    return heap->bases[i] + place;
}

bool hvd__heap_is_local(const struct hvd__heap *heap, int rank)
{
    return local_number(heap, rank) >= 0;
}

void hvd__heap_publish(struct hvd__heap *heap, int number, int32_t id,
                       uint64_t place)
{
    struct header *header = (struct header *)(void *)heap->base;

    atomic_store(&header->directory[number].id, 0);
    atomic_store(&header->directory[number].place, place);
    atomic_store(&header->directory[number].id, id + 1);
}

int hvd__heap_look_up(const struct hvd__heap *heap, int rank, int number,
                      int32_t id, uint64_t *place)
{
    const struct header *header =
        (const struct header *)(void *)heap->bases[local_number(heap, rank)];

    if (atomic_load(&header->directory[number].id) != id + 1)
        return 0;
    *place = atomic_load(&header->directory[number].place);
    return 1;
}
