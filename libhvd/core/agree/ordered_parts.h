/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered_parts.h - what the files of ordered mode share: ordered.c (epochs,
 * deciding), ordered_post.c, ordered_run.c, and quick.c, which goes through
 * all of them at once.
 *
 * A sequence number is the epoch in its upper 24 bits and one more than the
 * number of a slot in this epoch below: the sequence number of a later slot is
 * greater, in whatever epoch it is.
 */
#ifndef HVD_CORE_ORDERED_PARTS_H
#define HVD_CORE_ORDERED_PARTS_H

#include "core/agree/agreement.h"
#include "core/run/engine.h"

enum { HVD__EPOCH_SHIFT = 40 };
#define HVD__SEQUENCE_SLOTS ((UINT64_C(1) << HVD__EPOCH_SHIFT) - 1)

static inline uint64_t hvd__sequence_of(const struct hvd__ordered *x,
                                        uint64_t slot)
{
    return (uint64_t)x->epoch << HVD__EPOCH_SHIFT | (slot + 1);
}

/* How many slots of this epoch a sequence number says are done with. */
static inline uint64_t hvd__slots_of(const struct hvd__ordered *x,
                                     uint64_t sequence)
{
    return sequence >> HVD__EPOCH_SHIFT == x->epoch
               ? sequence & HVD__SEQUENCE_SLOTS
               : 0;
}

static inline struct hvd__log_slot *hvd__slot_at(struct hvd__area *area,
                                                 uint64_t slot)
{
    return &area->slots[slot % HVD__LOG_SLOTS];
}

/* Slots of all ranks that we have read: one whose share is not yet reduced
 * will be looked at again. */
static inline uint64_t hvd__slots_read(const struct hvd__ordered *x)
{
    return x->decided - (x->now.request != NULL);
}

/* Post all requests of a submission; false: there is no room, go on later. */
bool hvd__ordered_post_submission(const struct hvd__engine *engine,
                                  struct hvd__set *set,
                                  struct hvd__submission *submission);
/* Post that nothing follows; false: likewise. */
bool hvd__ordered_post_end(struct hvd__set *set);

/* What the ranks have in the slot that is the next to be decided. */
enum hvd__verdict { HVD__UNKNOWN, HVD__AGREED, HVD__DIFFERENT };
enum hvd__verdict hvd__ordered_compare(const struct hvd__set *set);
/* Tell the others what we have read. */
void hvd__ordered_consume(struct hvd__set *set);

/* All ranks have this request in this slot: run it, or have it run. */
int hvd__ordered_run(struct hvd__engine *engine, struct hvd__set *set,
                     struct hvd__request *request, uint64_t slot, int64_t now);
/* ... if it can be run here and now: whether it was. */
bool hvd__ordered_run_here(struct hvd__engine *engine, struct hvd__set *set,
                           struct hvd__request *request, uint64_t slot);
/* Returns whether a request other than an allreduce or a broadcast can be run
 * on the data in slots. */
bool hvd__ordered_may_move(const struct hvd__request *request);
/* Whether it is to be reduced in place; if so, its addresses are kept. */
bool hvd__ordered_goes_in_place(const struct hvd__engine *engine,
                                struct hvd__set *set,
                                const struct hvd__request *request,
                                uint64_t slot);
/* That reduction is what is done now. */
void hvd__ordered_begin_share(struct hvd__set *set,
                              struct hvd__request *request, uint64_t slot);
/* Go on with it. Whether our share is done. */
bool hvd__ordered_reduce_share(struct hvd__set *set);
/* The slot up to which all ranks have reduced their shares, as a sequence
 * number. */
uint64_t hvd__ordered_least_reduced(const struct hvd__set *set);
/* Reductions in place are done when all have done their share: they, and what
 * was run, are completed. */
void hvd__ordered_finish(struct hvd__engine *engine, struct hvd__set *set,
                         bool *moved);

#endif
