/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h - memory that all ranks of a host see. Each rank has a file in
 * /dev/shm (base/segment.h), its heap, which every other rank of the host maps
 * too. hvd_malloc allocates from it, so that another rank can reduce the memory
 * where it lies.
 *
 * The file is as large as /dev/shm could ever be, and empty: its pages are
 * allocated when they are handed out, so that a full /dev/shm is a failed
 * allocation and not a SIGBUS later. It never has a name: no crash leaves it
 * behind.
 *
 * A place says where something lies in the heap of its rank; 0: nowhere. Other
 * ranks turn it into an address of their own.
 */
#ifndef HVD_TRANSPORT_SHM_HEAP_H
#define HVD_TRANSPORT_SHM_HEAP_H

#include "transport/transport.h"

struct hvd__heap;

/*
 * Opens the heaps. Collective over the whole transport. locals: the ranks of
 * this host, ascending, copied; limit: most bytes of this rank's heap, 0: none.
 * *heap stays NULL, on all ranks of a host, if one of them cannot have it; then
 * *why, of size bytes, says why not, or is empty if none was wanted. Fails only
 * if the transport fails.
 */
int hvd__heap_open(struct hvd__transport *transport, const int *locals,
                   int nlocals, size_t limit, struct hvd__heap **heap,
                   char *why, size_t size);

/* Unmaps the other ranks' heaps. One's own stays as long as something in it is
 * in use. Accepts NULL. */
void hvd__heap_close(struct hvd__heap *heap);

/* Makes memory in heaps that are closed, and still in use, private to this
 * process, where it is: what others write to it from now on, because they have
 * been stopped in the middle of that, has no effect here. No thread may write
 * to it meanwhile. Where memory does not suffice for the copy, a warning says
 * so. */
void hvd__heap_make_private(void);

/* Allocates zeroed bytes, aligned to a cache line, from the heap that is open.
 * Returns NULL if there is none, or no room in it. Any thread. */
void *hvd__heap_alloc(size_t bytes);
/* Frees memory. Returns false if it is of no heap. Any thread, also after the
 * heap was closed. */
bool hvd__heap_free(void *memory);

/* Call this in a forked child, where all heaps belong to the parent: nothing is
 * allocated or freed in them any more, and other ranks do not see what the
 * child writes. */
void hvd__heap_forked(void);

/* Frees memory without touching it, for others may look at it: the heap is
 * about to be closed. */
void hvd__heap_forget(const void *memory);

/* Returns the place of bytes at memory, which is 0 unless they lie in this
 * rank's own heap. */
uint64_t hvd__heap_place(const struct hvd__heap *heap, const void *memory,
                         size_t bytes);
/* Returns the address here of bytes at a place in the heap of a rank of the
 * world; NULL if there is no such place. */
void *hvd__heap_at(const struct hvd__heap *heap, int rank, uint64_t place,
                   size_t bytes);

/* Returns whether a rank of the world is on this host. */
bool hvd__heap_is_local(const struct hvd__heap *heap, int rank);

/*
 * The directory of a heap shows other ranks what its rank has published: a
 * place under a number less than HVD__HEAP_DIRECTORY and an id (two that have
 * the same number at different times have different ids). The place 0 means
 * that there was no room.
 */
enum { HVD__HEAP_DIRECTORY = 1024 };
void hvd__heap_publish(struct hvd__heap *heap, int number, int32_t id,
                       uint64_t place);
/* Returns 1 with the place that rank has published, or 0 if there is nothing
 * yet. */
int hvd__heap_look_up(const struct hvd__heap *heap, int rank, int number,
                      int32_t id, uint64_t *place);

#endif
