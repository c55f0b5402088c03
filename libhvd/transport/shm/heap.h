/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h - memory that all ranks of a host see: each rank has a file in
 * /dev/shm (base/segment.h), its heap, which every other rank of the host has
 * mapped too.
 * hvd_malloc hands out pieces of it, so that another rank can reduce them
 * where they lie.
 *
 * The file is as large as /dev/shm could ever be, and empty: its pages are
 * allocated when they are handed out, so that a full /dev/shm is a failed
 * allocation and not a SIGBUS later. It never has a name: no crash leaves it
 * behind.
 *
 * A place is where something lies in the heap of its rank; 0: nowhere. Other
 * ranks turn it into an address of their own.
 */
#ifndef HVD_TRANSPORT_SHM_HEAP_H
#define HVD_TRANSPORT_SHM_HEAP_H

#include "transport/transport.h"

struct hvd__heap;

/*
 * Collective over the whole transport. locals: the ranks of this host,
 * ascending, copied; limit: most bytes of this rank's heap, 0: none.
 * *heap stays NULL, on all ranks of a host, if one of them cannot have it;
 * *why, of size bytes, then says why not, or is empty if none was wanted.
 * A failure is of the transport.
 */
int hvd__heap_open(struct hvd__transport *transport, const int *locals,
                   int nlocals, size_t limit, struct hvd__heap **heap,
                   char *why, size_t size);

/* The other ranks' heaps are unmapped; one's own stays for as long as
 * something in it is in use. NULL is accepted. */
void hvd__heap_close(struct hvd__heap *heap);

/* Zeroed and aligned to a cache line, from the heap that is open; NULL if
 * there is none, or no room in it. Any thread. */
void *hvd__heap_alloc(size_t bytes);
/* Give it back: false if it is of no heap. Any thread, also after the heap
 * was closed. */
bool hvd__heap_free(void *memory);

/* In a child of a fork: all heaps are the parent's. Nothing is taken from
 * them, or given back, and what is written to them is not seen by others. */
void hvd__heap_forked(void);

/* As if it were given back, but untouched, for others may look at it: the heap
 * is about to be closed. */
void hvd__heap_forget(const void *memory);

/* The place of bytes at memory, which is 0 unless they lie in this rank's own
 * heap. */
uint64_t hvd__heap_place(const struct hvd__heap *heap, const void *memory,
                         size_t bytes);
/* The address here of bytes at a place in the heap of a rank of the world;
 * NULL if there is no such place. */
void *hvd__heap_at(const struct hvd__heap *heap, int rank, uint64_t place,
                   size_t bytes);

/* Whether a rank of the world is on this host. */
bool hvd__heap_is_local(const struct hvd__heap *heap, int rank);

/*
 * The directory of a heap says what its rank has put where, for others to
 * find: under a number less than HVD__HEAP_DIRECTORY and an id (two that have
 * the number at different times have different ids), a place. 0 as a place:
 * it could not be had.
 */
enum { HVD__HEAP_DIRECTORY = 1024 };
void hvd__heap_publish(struct hvd__heap *heap, int number, int32_t id,
                       uint64_t place);
/* 1: *place is what rank has published; 0: nothing yet. */
int hvd__heap_look_up(const struct hvd__heap *heap, int rank, int number,
                      int32_t id, uint64_t *place);

#endif
