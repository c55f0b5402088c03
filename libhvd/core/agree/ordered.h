/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered.h - ordered mode: agreement among ranks that submit in the same
 * order, which they nearly always do. Ranks that share a host need no message
 * for it; hosts need rounds of messages from one rank of each (speaker.c).
 *
 * Each rank writes its requests, in its order, into slots that all ranks of its
 * host see (transport/shm/shm.h). When all ranks have written slot i and the
 * slots are equal, the request is agreed on, and every rank finds that out at
 * the same place of its order: on one host by comparing the slots, on several
 * by the result of the round that compared them. The first slots that differ
 * end ordered mode at the same place on every rank. Undecided requests
 * and all later ones are then agreed on by name (coordinator.c). A slot with
 * the flag FALLBACK differs from all others. It stands for something that
 * cannot be agreed on by order: a refused request, a join, or the end.
 *
 * When nothing is left to agree on by name, the coordinator opens ordered mode
 * again: a new epoch of slots begins if every rank accepts it. A rank accepts
 * the epoch if the coordinator has received all its announcements. So no
 * request that is agreed on by name can wait for one in ordered mode.
 *
 * Small tensors lie in or next to the slots and are reduced on every rank as
 * soon as all slots are written: a blocking allreduce costs one cache line each
 * way. Between hosts they travel with the messages of a round. On one host
 * large tensors in heaps are reduced in place, a share on each rank, one after
 * another without waiting in between. Everything else goes to the lanes
 * (run/execute.c); on several hosts in batches of one round's requests
 * (ordered_run.c).
 */
#ifndef HVD_CORE_ORDERED_H
#define HVD_CORE_ORDERED_H

#include "core/agree/round.h"
#include "core/request/sampling.h"
#include "transport/algo/visible.h"
#include "transport/shm/shm.h"

struct hvd__set;

enum hvd__ordered_state {
    HVD__ORDERED_OFF,     /* permanent: ordered mode cannot be used */
    HVD__ORDERED_CLOSED,  /* requests are agreed on by name */
    HVD__ORDERED_OPENING, /* not all have accepted the epoch yet */
    HVD__ORDERED_OPEN
};

/* A slot of this rank that is posted and not decided. */
struct hvd__pending_slot {
    struct hvd__request *request; /* borrowed; NULL: the slot ends the epoch */
    uint64_t payload_end;         /* end of its data in the ring of payload */
};

/* A reduction in place. */
struct hvd__in_place {
    struct hvd__request *request; /* NULL: none */
    uint64_t slot;
    struct hvd__visible work; /* this rank's share */
};

/* Driver only. */
struct hvd__ordered {
    struct hvd__set *set; /* borrowed */
    enum hvd__ordered_state state;
    uint32_t epoch;
    uint64_t posted;          /* this rank's slots of this epoch */
    uint64_t decided;         /* how many of these are decided */
    uint64_t read;            /* how many of these every rank has read */
    struct hvd__area **areas; /* borrowed, [nareas]: areas of the members on
                                 this host; the first is the speaker's */
    int nareas;
    struct hvd__area *own;  /* borrowed: this rank's area */
    struct hvd__area *lone; /* owned: own, if no member shares memory with this
                               rank; else NULL */
    const struct hvd__hosts *hosts; /* borrowed; NULL: all are on one host */
    struct hvd__request_list piece; /* several hosts only (ordered_run.c) */
    size_t broadcast_bytes;   /* of the piece so far (hvd__way_in_round) */
    struct hvd__round *round; /* owned; only on speakers of several hosts */
    uint64_t agreed;          /* speaker: slots that all hosts have agreed on */
    uint64_t scanned;         /* speaker: slots on which this host agrees */
    struct hvd__pending_slot *pending; /* owned, [HVD__LOG_SLOTS] */
    uint64_t payload_next;             /* bytes of the ring ever allocated */
    uint64_t payload_free;             /* bytes of the ring ever freed */
    struct hvd__submission *waiting;   /* list: not yet posted */
    struct hvd__submission *last_waiting;
    bool ending; /* this rank has posted its last slot */
    struct hvd__in_place now;
    struct hvd__request_list over;       /* run, to be completed */
    struct hvd__request_list unfinished; /* in place, own share done */
    const void **sources; /* owned, [size]; addresses for now, or */
    void **targets;       /* for the request that is run at once */
    uint32_t nquick;      /* number of quick requests */
    struct hvd__sampling sampling;
    int pauses;         /* pauses of a quick request between two polls */
    int64_t nannounced; /* announcements that this rank has sent so far */
    int64_t patience;   /* coordinator only: it opens the next epoch after this
                           many of its own announcements */
    int64_t closed_at;  /* nannounced at the end of the last epoch */
};

/* Returns the way of a request's data, which is the same on all ranks; but on
 * one host, some may have data with a slot that others do not (way.c). */
enum hvd__way hvd__way_of(const struct hvd__set *set,
                          const struct hvd__request *request);

/* Returns the way of the data of the next slot of a round. The first broadcasts
 * of a round go with it; what is beyond goes to a lane, where a link carries it
 * once. *broadcast_bytes counts, from 0 at the beginning of each round. All
 * members and speakers ask about the same slots, and get the same answers. */
enum hvd__way hvd__way_in_round(const struct hvd__hosts *hosts,
                                const struct hvd__request *request,
                                size_t *broadcast_bytes);

/* Initialises ordered mode for a set, if set->shm or set->hosts makes it
 * possible. Fails with HVD_ERR_MEMORY. */
int hvd__ordered_init(struct hvd__ordered *ordered, struct hvd__set *set);
/* Forgets all undecided submissions, because nothing moves any more. */
void hvd__ordered_drop(struct hvd__ordered *ordered);
void hvd__ordered_fini(struct hvd__ordered *ordered);

/* Queues a submission to the set. */
void hvd__ordered_submit(struct hvd__ordered *ordered,
                         struct hvd__submission *submission);
/* Posts, decides, reduces and completes requests. leaving is true if nothing
 * more will be submitted. */
int hvd__ordered_step(struct hvd__ordered *x, bool leaving, bool *moved);
/* Posts new submissions and does nothing else. Ordered mode must be open. */
void hvd__ordered_post(struct hvd__ordered *x);
/* Returns true if this rank waits for other ranks. */
bool hvd__ordered_is_busy(const struct hvd__ordered *ordered);

/* Handles the coordinator's opening of an epoch, and passes it on. The rank
 * must refuse it if the coordinator does not know all of its announcements. */
int hvd__ordered_open(struct hvd__set *set, uint32_t epoch, bool refused);
/* Coordinator only. Returns true if it may open an epoch. */
bool hvd__ordered_may_open(const struct hvd__ordered *ordered);

/* The rest is for the steps of ordered mode alone: ordered.c (epochs and
 * decisions), ordered_post.c, ordered_run.c, speaker.c (between hosts), and
 * ordered_quick.c, which does all steps at once.
 *
 * A sequence number holds the epoch in its upper 24 bits and one more than the
 * number of a slot of that epoch in the bits below. A later slot has a greater
 * sequence number, also across epochs. */
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
/* Likewise. Posts a slot that differs from all others, for a request, or for
 * none if nothing follows. */
bool hvd__ordered_post_fallback(struct hvd__ordered *x,
                                struct hvd__request *request);

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

/* Runs a request that all ranks have in this slot, or passes it to a lane. */
int hvd__ordered_run(struct hvd__ordered *x, struct hvd__request *request,
                     uint64_t slot, int64_t now);
/* Runs the request if its data is in the slots. Returns true if it ran. */
bool hvd__ordered_run_here(struct hvd__ordered *x, struct hvd__request *request,
                           uint64_t slot);
/* Several hosts only. Passes the requests up to a slot that ends a piece to the
 * lanes. */
int hvd__ordered_end_piece(struct hvd__ordered *x, uint64_t slot);
/* Returns true if a request other than a broadcast can run on data that each
 * rank sees. */
bool hvd__ordered_may_move(const struct hvd__request *request);
/* Begins the reduction of this rank's share. Returns false if the request
 * cannot be reduced in place. */
bool hvd__ordered_begin_share(struct hvd__ordered *x,
                              struct hvd__request *request, uint64_t number);
/* Continues the share. Returns true if it is done. */
bool hvd__ordered_reduce_share(struct hvd__ordered *x);
/* Returns the sequence number of the slot up to which all ranks have reduced
 * their shares. */
uint64_t hvd__ordered_least_reduced(const struct hvd__ordered *x);
/* Completes requests that have run, and in-place reductions whose shares are
 * done on all ranks. */
void hvd__ordered_finish(struct hvd__ordered *x, bool *moved);

#endif
