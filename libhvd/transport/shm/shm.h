/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm.h - where the ranks of a process set that share a host write what the
 * others of the set need to see. Each has an area of its own, in its heap,
 * which it alone writes and all read:
 *
 *     slots     what it has submitted, in its order, with the data of small
 *               tensors beside them (core/agree/ordered.c)
 *     rounds     how far it is with the collective that all are working on,
 *               and blocks of its data on their way (transport/algo/shared_*)
 *
 * Counters that grow by themselves, one cache line for each purpose, tell the
 * others; nothing here is ever locked. What a counter counts was written
 * before it (release) and is read after it (acquire).
 */
#ifndef HVD_TRANSPORT_SHM_SHM_H
#define HVD_TRANSPORT_SHM_SHM_H

#include <stdatomic.h>

#include "transport/shm/heap.h"

enum {
    HVD__LOG_SLOTS = 1024,          /* of a rank; a power of two */
    HVD__PAYLOAD_BYTES = 256 << 10, /* of a rank's ring of data beside slots */
    HVD__INLINE_BYTES = 24,         /* of data within a slot */
    HVD__BUFFERS = 8                /* bounce buffers of a rank */
};

/* What a slot says beside its numbers. */
enum {
    HVD__SLOT_FALLBACK = 1, /* cannot go this way: agree on it by name */
    HVD__SLOT_DATA = 2,     /* the data is here */
    HVD__SLOT_BESIDE = 4,   /* ... in the ring, of length bytes */
    HVD__SLOT_ALL = 7
};

struct hvd__log_slot {
    _Alignas(
        64) _Atomic uint64_t sequence; /* published last: which slot it is */
    uint64_t key;
    uint64_t fingerprint;
    uint32_t flags;
    uint32_t offset; /* of the data in the ring, if it is not in the slot */
    int64_t rows;    /* what the request carries */
    union {
        struct {
            uint64_t input, output; /* places; 0: in ordinary memory */
        };
        uint64_t length; /* of the data in the ring */
        unsigned char data[HVD__INLINE_BYTES];
    };
};
_Static_assert(sizeof(struct hvd__log_slot) == 64, "a slot is one cache line");

/*
 * How far a rank is with a round: its number in the upper half, a count in the
 * lower. Of a rank that is in an earlier round nothing is counted yet, of one
 * that is in a later one everything.
 */
typedef _Atomic uint64_t hvd__round_count;

struct hvd__area {
    /* Of the slots. Sequence numbers, as in them: what it has accepted, the
     * last slot that it has read, the last that it has reduced its share of. */
    _Alignas(64) _Atomic uint64_t accepted;
    _Alignas(64) _Atomic uint64_t consumed;
    _Alignas(64) _Atomic uint64_t reduced;

    /* Of the rounds. */
    _Alignas(64) _Atomic uint64_t round;  /* published last: input and output */
    uint64_t input, output;               /* places */
    _Alignas(64) hvd__round_count copied; /* blocks that it has written */
    hvd__round_count combined;            /* ... that it has the result of */
    hvd__round_count fetched;             /* ... whose result it has taken */
    _Atomic uint64_t finished; /* the last round that is over for it */

    struct hvd__log_slot slots[HVD__LOG_SLOTS];
    _Alignas(64) unsigned char payload[HVD__PAYLOAD_BYTES];
    /* Then: a place and a pair for each rank, and the buffers. */
};

/* What a rank has for another: where it lies, or that it comes in blocks. */
struct hvd__shm_place {
    uint64_t place;
    uint64_t bytes;
};

/* Blocks that have gone from this rank to another, that this rank has taken
 * of the other. */
struct hvd__shm_pair {
    hvd__round_count sent;
    hvd__round_count taken;
};

struct hvd__shm {
    struct hvd__heap *heap; /* borrowed */
    int *world;             /* owned, [size] */
    int rank, size;
    int number; /* in the directory */
    int32_t id;
    size_t bounce_bytes;
    struct hvd__area **areas; /* owned, [size]; NULL: not seen yet */
    struct hvd__area *own;    /* owned; NULL: there was no room */
    int nseen;
    bool failed;    /* a rank has none: nobody uses it */
    uint32_t round; /* the last that has begun; the same on all ranks */
    struct hvd__shm *next;
};

/* Our area, published under number, for the ranks world[0..size-1], copied, of
 * which we are rank. bounce: bytes for blocks. NULL: out of memory. Without
 * room in the heap it is made all the same, and never ready. */
struct hvd__shm *hvd__shm_new(struct hvd__heap *heap, const int *world,
                              int size, int rank, int number, int32_t id,
                              size_t bounce);
/* We use it no more; our area is given back when nobody does. NULL is
 * accepted. */
void hvd__shm_retire(struct hvd__shm *shm);
/* The heap is about to be closed: what is retired need not be given back. */
void hvd__shm_forget(void);

/* 1: all areas are there; 0: not yet; -1: one will never be. The same in the
 * end on all ranks. */
int hvd__shm_ready(struct hvd__shm *shm);

/* In a rank's area: what it has for all others, [size]; the counts, [size];
 * its blocks, of bounce_bytes. */
struct hvd__shm_place *hvd__shm_places(const struct hvd__shm *shm, int rank);
struct hvd__shm_pair *hvd__shm_pairs(const struct hvd__shm *shm, int rank);
unsigned char *hvd__shm_buffers(const struct hvd__shm *shm, int rank);

/* A round: all ranks are done with the one before, so that our area may be
 * written to; we are done with it; the least that the other ranks have in one
 * of their counts, given its offset in an area. */
bool hvd__shm_may_begin(const struct hvd__shm *shm, uint32_t round);
void hvd__shm_finish(struct hvd__shm *shm, uint32_t round);
int64_t hvd__shm_least(const struct hvd__shm *shm, uint32_t round,
                       size_t count);

static inline void hvd__round_set(hvd__round_count *count, uint32_t round,
                                  int64_t value)
{
    atomic_store_explicit(count, (uint64_t)round << 32 | (uint32_t)value,
                          memory_order_release);
}

static inline int64_t hvd__round_get(const hvd__round_count *count,
                                     uint32_t round)
{
    uint64_t value = atomic_load_explicit(count, memory_order_acquire);
    int32_t ahead = (int32_t)((uint32_t)(value >> 32) - round);

    return ahead > 0 ? INT64_MAX : ahead < 0 ? 0 : (int64_t)(uint32_t)value;
}

#endif
