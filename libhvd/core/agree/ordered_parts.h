/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered_parts.h - the steps of ordered mode, private to this room: ordered.c
 * (epochs and decisions), ordered_post.c, ordered_run.c, speaker.c (between
 * hosts), and ordered_quick.c, which does all steps at once.
 *
 * A sequence number holds the epoch in its upper 24 bits and one more than the
 * number of a slot of that epoch in the bits below. A later slot has a greater
 * sequence number, also across epochs.
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

/* Returns how many slots of this epoch a sequence number covers. */
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

/* Returns the data that lies in a slot or next to it. */
static inline unsigned char *hvd__slot_data(struct hvd__area *area,
                                            uint64_t number)
{
    struct hvd__log_slot *slot = hvd__slot_at(area, number);

    return slot->flags & HVD__SLOT_BESIDE ? area->payload + slot->offset
                                          : slot->data;
}

/* Returns how many slots of all ranks this rank has finished reading. It will
 * read a slot again while its share of it is not yet reduced. */
static inline uint64_t hvd__slots_read(const struct hvd__ordered *x)
{
    return x->decided - (x->now.request != NULL);
}

/* Posts all requests of a submission. Returns false if there is no room; the
 * caller then tries again later. */
bool hvd__ordered_post_submission(struct hvd__ordered *x,
                                  struct hvd__submission *submission);
/* Posts a slot that says that nothing follows. Returns false if there is no
 * room. */
bool hvd__ordered_post_end(struct hvd__ordered *x);

/* Speaker only. Opens the epoch, refused or impossible if a rank of this host
 * says so: as soon as this rank wants it or a rank of this host has refused it,
 * for such a rank may have requests that are agreed on by name. possible is
 * false if the ranks of this host cannot see each other's areas. */
int hvd__speaker_open(struct hvd__ordered *x, bool wanted, bool possible,
                      bool *moved);
/* Speaker only. Starts a round if this host has something to offer, and moves
 * the round that is under way. */
int hvd__speaker_step(struct hvd__ordered *x, bool *moved);

/* Returns true if all ranks of this host have accepted or refused the epoch.
 * *refused becomes true if one has refused it. */
bool hvd__ordered_hear_accepted(const struct hvd__ordered *x, bool *refused);

/* The result of comparing a slot of all ranks of this host. */
enum hvd__verdict { HVD__UNKNOWN, HVD__AGREED, HVD__DIFFERENT };
enum hvd__verdict hvd__ordered_compare(const struct hvd__ordered *x,
                                       uint64_t number);
/* Returns what is known of the next undecided slot: what the slots of all ranks
 * say or, on several hosts, what this host's speaker has published. */
enum hvd__verdict hvd__ordered_judge(const struct hvd__ordered *x);
/* Publishes which slots this rank has read. */
void hvd__ordered_consume(struct hvd__ordered *x);

/* Runs a request that all ranks have in this slot, or passes it to the lanes.
 */
int hvd__ordered_run(struct hvd__ordered *x, struct hvd__request *request,
                     uint64_t slot, int64_t now);
/* Runs the request if its data is already in the slots. Returns true if it ran.
 */
bool hvd__ordered_run_here(struct hvd__ordered *x, struct hvd__request *request,
                           uint64_t slot);
/* Several hosts only. Passes the requests up to a slot that ends a piece to the
 * lanes. */
int hvd__ordered_end_piece(struct hvd__ordered *x, uint64_t slot);
/* Returns true if a request other than a broadcast can run on data that each
 * rank sees. */
bool hvd__ordered_may_move(const struct hvd__request *request);
/* Returns true if the request can be reduced in place. Its addresses are then
 * kept. */
bool hvd__ordered_goes_in_place(struct hvd__ordered *x,
                                const struct hvd__request *request,
                                uint64_t slot);
/* Begins the reduction of this rank's share. */
void hvd__ordered_begin_share(struct hvd__ordered *x,
                              struct hvd__request *request, uint64_t slot);
/* Continues the share. Returns true if it is done. */
bool hvd__ordered_reduce_share(struct hvd__ordered *x);
/* Returns the sequence number of the slot up to which all ranks have reduced
 * their shares. */
uint64_t hvd__ordered_least_reduced(const struct hvd__ordered *x);
/* Completes requests that have run, and in-place reductions whose shares are
 * done on all ranks. */
void hvd__ordered_finish(struct hvd__ordered *x, bool *moved);

#endif
