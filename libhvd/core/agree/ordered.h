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
struct hvd__engine;

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

#endif
