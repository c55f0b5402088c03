/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm.h - the shared segment of a process set: memory in which the ranks of the
 * set on one host see each other's progress. Each rank has an area, in its
 * heap, which it alone writes and all read:
 *
 *     slots     what it has submitted, in its order, with the data of small
 *               tensors (core/agree/ordered.c)
 *     rounds    how far it is with the collective that all are working on,
 *               and chunks of its data on their way (transport/algo/shared_*)
 *
 * Other ranks learn of progress by counters that only grow, one cache line for
 * each purpose; nothing here is ever locked. A rank writes what a counter
 * counts before it stores the counter (release); a reader loads the counter
 * first (acquire).
 */
#ifndef HVD_TRANSPORT_SHM_SHM_H
#define HVD_TRANSPORT_SHM_SHM_H

#include <stdatomic.h>
#include <stdbool.h>

#include "transport/shm/heap.h"

enum {
    HVD__LOG_SLOTS = 1024,          /* of a rank; a power of two */
    HVD__PAYLOAD_BYTES = 256 << 10, /* ring of data of a rank's slots */
    HVD__INLINE_BYTES = 88,         /* data that fits in a slot */
    HVD__BUFFERS = 8                /* bounce buffers of a rank */
};

/* The flags of a slot. */
enum {
    HVD__SLOT_FALLBACK = 1, /* not in order: agree on it by name */
    HVD__SLOT_DATA = 2,     /* the slot has the data */
    HVD__SLOT_BESIDE = 4,   /* the data is in the ring, at offset */
    HVD__SLOT_BOUNDARY = 8  /* a piece ends here (hvd__area.pieces) */
};

/* Two cache lines; up to 24 bytes of data lie in the first. A reader fetches
 * both at once, where data in the ring has to wait for the slot's offset. */
struct hvd__log_slot {
    _Alignas(64) _Atomic uint64_t sequence; /* stored last */
    uint64_t key;
    uint64_t fingerprint;
    uint32_t flags;
    uint32_t offset; /* offset of the data in the ring */
    int64_t rows;    /* the number that the request carries */
    union {
        struct {
            uint64_t input, output; /* places; 0: in ordinary memory */
        };
        unsigned char data[HVD__INLINE_BYTES];
    };
};
_Static_assert(sizeof(struct hvd__log_slot) == 128,
               "a slot is two cache lines");

/*
 * A rank's progress in a round: the upper half of the word is the round's
 * number, the lower half a count. A reader counts nothing for a rank in an
 * earlier round, and everything for one in a later round. hvd__round_set stores
 * the word, hvd__round_get loads it.
 */
typedef _Atomic uint64_t hvd__round_count;

/* The values that hold for a piece: the slots of one round between hosts. */
struct hvd__piece_values {
    uint64_t threshold;  /* most bytes of a batch of several requests */
    uint64_t direct_max; /* most bytes of an allreduce sent to all at once */
};

struct hvd__area {
    /* accepted: the epoch that the rank was last offered, and below it a bit
     * that says that it refused (hvd__ordered_open stores it, try_open loads
     * it). The others are sequence numbers of slots: the last that the rank
     * has read (look_who_read loads it), and the last whose share it has
     * reduced (hvd__ordered_least_reduced). A sequence number is the epoch in
     * the upper 24 bits and one more than the number of the slot below;
     * hvd__ordered_compare loads those of the slots. */
    _Alignas(64) _Atomic uint64_t accepted;
    _Alignas(64) _Atomic uint64_t consumed;
    _Alignas(64) _Atomic uint64_t reduced;
    _Atomic uint64_t gave_up; /* 1: its requests have failed, and their memory
                                 is the program's again */

    /* Only the speaker of a host stores the next three (core/agree/speaker.c),
     * and all ranks of the host load them (ordered.c): the result of opening an
     * epoch, which is the epoch times 4, plus 1 if it was refused, plus 2 if
     * it is impossible; the sequence number of the last slot that all hosts
     * have agreed on; and the last epoch that has ended, stored after agreed.
     */
    _Alignas(64) _Atomic uint64_t opened;
    _Atomic uint64_t agreed;
    _Atomic uint64_t ended;

    /* The round, and counts of chunks in it. */
    _Alignas(64) _Atomic uint64_t round;  /* stored after input and output */
    uint64_t input, output;               /* places */
    _Alignas(64) hvd__round_count copied; /* chunks that it has written */
    hvd__round_count combined;            /* chunks that it has the result of */
    hvd__round_count fetched;             /* chunks whose result it has taken */
    _Atomic uint64_t finished; /* the last round that is over for it */

    struct hvd__log_slot slots[HVD__LOG_SLOTS];
    struct hvd__piece_values pieces[HVD__LOG_SLOTS]; /* the speaker's; by slot,
                                                        at boundaries */
    _Alignas(64) unsigned char payload[HVD__PAYLOAD_BYTES];
    /* A place and a pair for each rank, and the buffers, follow this struct. */
};

/* The place of a rank's block for another rank; 0: it comes through buffers. */
struct hvd__shm_place {
    uint64_t place;
    uint64_t bytes;
    bool in_place; /* what comes from that rank takes its room */
};

/* Chunks that this rank has sent to another, and taken from it. */
struct hvd__shm_pair {
    hvd__round_count sent;
    hvd__round_count taken;
};

struct hvd__shm {
    struct hvd__heap *heap; /* borrowed */
    int *world;             /* owned, [size] */
    int rank, size;
    int number; /* number in the directory */
    int32_t id;
    size_t bounce_bytes;
    struct hvd__area **areas; /* owned, [size]; NULL: not seen yet */
    struct hvd__area *own;    /* owned; NULL: no room */
    int nseen;
    bool failed;    /* a rank has no area, so no rank uses the segment */
    uint32_t round; /* the last round that has begun, on all ranks */
    struct hvd__shm *next;
};

/* Returns the bytes of a rank's buffers in a set of nranks. block is the size
 * of one for another rank on the same host; those that go over a network are
 * larger. */
size_t hvd__shm_bounce_bytes(size_t block, int nranks, bool over_network);

/* Makes this rank's area and publishes it under number. This rank is rank of
 * the ranks world[0..size-1], which are copied; bounce is the size of the
 * buffers. Returns NULL if out of memory. Without room in the heap the segment
 * is made all the same, and never ready. */
struct hvd__shm *hvd__shm_new(struct hvd__heap *heap, const int *world,
                              int size, int rank, int number, int32_t id,
                              size_t bounce);
/* Makes the segment of a rank that shares memory with no other. Nothing is ever
 * in its slots and buffers, for which there is no memory; collectives cut data
 * for buffers of bounce bytes. Returns NULL if out of memory. Only
 * hvd__shm_alone_free frees it, which accepts NULL. */
struct hvd__shm *hvd__shm_alone(size_t bounce);
void hvd__shm_alone_free(struct hvd__shm *shm);
/* Ends the use of a segment. This rank's area is freed when no rank uses it.
 * Accepts NULL. */
void hvd__shm_retire(struct hvd__shm *shm);
/* Forgets the segments whose use has ended: the heap is about to be closed. */
void hvd__shm_forget(void);

/* Returns 1 if all areas are there, 0 if not yet, -1 if one will never be. All
 * ranks get the same answer in the end. */
int hvd__shm_ready(struct hvd__shm *shm);

/* This rank gives its requests up: call it before they fail. From then on the
 * program may change memory that others still read. */
void hvd__shm_give_up(struct hvd__shm *shm);
/* Returns true if a rank has given up, so that what was read of its memory up
 * to now may be wrong. Whoever finds that completes nothing, and hears of the
 * reason soon. All areas must be there. */
bool hvd__shm_is_given_up(const struct hvd__shm *shm);

/* Return the parts of a rank's area: the places of its blocks, [size]; the
 * pairs, [size]; its buffers, of bounce_bytes. */
struct hvd__shm_place *hvd__shm_places(const struct hvd__shm *shm, int rank);
struct hvd__shm_pair *hvd__shm_pairs(const struct hvd__shm *shm, int rank);
unsigned char *hvd__shm_buffers(const struct hvd__shm *shm, int rank);

/* hvd__shm_may_begin returns whether all other ranks are done with the round
 * before this one, so that this rank, if it is, may write to its area.
 * hvd__shm_finish says that this rank is done with the round. hvd__shm_least
 * returns the least that the other ranks have in one of their counts, which is
 * given by its offset in an area. */
bool hvd__shm_may_begin(const struct hvd__shm *shm, uint32_t round);
void hvd__shm_finish(struct hvd__shm *shm, uint32_t round);
int64_t hvd__shm_least(const struct hvd__shm *shm, uint32_t round,
                       size_t count);

/* Store and load a word of an area or of a slot: whoever loads a value sees
 * what was written before it was stored. */
static inline void hvd__word_set(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

static inline uint64_t hvd__word_get(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

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
