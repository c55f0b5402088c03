/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered.h - ordered mode: agreement among ranks that submit in the same
 * order, which they nearly always do. It takes no message if they share a host,
 * else one from each rank to each (replicated_log.h).
 *
 * Each rank writes its requests, in its order, into slots that all others see
 * (transport/shm/shm.h). If slot i of all ranks is there and all are equal,
 * that request is agreed on, and every rank knows it at the same place of its
 * order. The first slots that differ end ordered mode on every rank at that
 * very place, for all compare the same slots: what is undecided, and everything
 * that follows, is agreed on by name (coordinator.c). A slot with the flag
 * FALLBACK differs from all; it stands for what cannot be agreed on by order: a
 * refused request, a join, the end.
 *
 * When nothing is left to be agreed on by name, the coordinator opens ordered
 * mode again: an epoch of slots begins, if every rank accepts it. A rank
 * accepts it if the coordinator has heard all that the rank has said. So
 * nothing can be left behind by name, waiting for something that goes by order.
 *
 * Small tensors lie in or next to the slots and are reduced on every rank as
 * soon as all are there: a blocking allreduce costs one cache line each way.
 * Large ones that lie in heaps are reduced in place, a share on each rank, one
 * after another without waiting in between. Everything else goes to the lanes
 * (run/execute.c); among ranks that share no memory, in batches between the
 * boundaries that rank 0 sets (boundary.h).
 */
#ifndef HVD_CORE_ORDERED_H
#define HVD_CORE_ORDERED_H

#include "core/agree/replicated_log.h"
#include "core/request/sampling.h"
#include "transport/algo/visible.h"
#include "transport/shm/shm.h"

struct hvd__set;
struct hvd__engine;

enum hvd__ordered_state {
    HVD__ORDERED_OFF,     /* for ever: the ranks do not share a host */
    HVD__ORDERED_CLOSED,  /* requests are agreed on by name */
    HVD__ORDERED_OPENING, /* not all have accepted the epoch yet */
    HVD__ORDERED_OPEN
};

/* A slot of this rank that is posted and not decided. */
struct hvd__pending_slot {
    struct hvd__request *request; /* borrowed; NULL: the end */
    uint64_t payload_end; /* of the ring's bytes: up to where it is ours */
};

/* A reduction in place. */
struct hvd__in_place {
    struct hvd__request *request; /* NULL: none */
    uint64_t slot;
    struct hvd__visible work; /* our share */
};

/* Driver's. */
struct hvd__ordered {
    enum hvd__ordered_state state;
    uint32_t epoch;
    uint64_t posted;                 /* our slots of this epoch */
    uint64_t decided;                /* of them */
    uint64_t read;                   /* that every rank is known to have read */
    struct hvd__area **areas;        /* borrowed, [size]: of all ranks */
    struct hvd__area *own;           /* borrowed: ours */
    struct hvd__replicated_log *log; /* owned; whose areas they are; NULL: they
                                   are in shared memory, the shared segment's */
    struct hvd__pending_slot *pending; /* owned, [HVD__LOG_SLOTS] */
    uint64_t payload_next;             /* bytes of the ring ever given out */
    uint64_t payload_free; /* ... of which up to here are free again */
    struct hvd__submission *waiting; /* list: submitted, and not posted yet */
    struct hvd__submission **waiting_tail;
    bool ending; /* the last slot of ours is posted */
    struct hvd__in_place now;
    struct hvd__request *over; /* list: to be completed */
    struct hvd__request **over_tail;
    struct hvd__request *unfinished; /* list: in place, our share is reduced */
    struct hvd__request **unfinished_tail;
    const void **sources; /* owned, [size]; of now, as far as it has come, */
    void **targets;       /* ... or of what is being moved at once */
    uint32_t nquick;      /* requests that have gone the quick way */
    struct hvd__sampling sampling;
    int pauses;         /* between their looks for the others */
    int64_t nannounced; /* what this rank has told the coordinator so far */
    int64_t *nheard;    /* owned, [size]; the coordinator's: from each */
    int64_t patience;   /* the coordinator's: so many of its own announcements
                           after the end of an epoch it opens the next */
    int64_t closed_at;  /* nannounced then */
};

/* Initialises ordered mode for a set with a shared segment or with a replicated
 * log, which is taken, also on failure; both NULL: the set has no ordered mode.
 * HVD_ERR_MEMORY. */
int hvd__ordered_init(struct hvd__ordered *ordered, struct hvd__shm *shm,
                      struct hvd__replicated_log *log, int rank, int size);
/* Forgets what is submitted and not decided: nothing moves any more. */
void hvd__ordered_drop(struct hvd__ordered *ordered);
void hvd__ordered_fini(struct hvd__ordered *ordered);

/* Takes a submission to the set. */
void hvd__ordered_submit(struct hvd__ordered *ordered,
                         struct hvd__submission *submission);
/* Posts, decides, reduces and completes. leaving: nothing more is submitted. */
int hvd__ordered_step(struct hvd__engine *engine, struct hvd__set *set,
                      bool leaving, bool *moved);
/* Posts what is submitted, and no more. Ordered mode is open. */
void hvd__ordered_post(struct hvd__engine *engine, struct hvd__set *set);
/* Returns true if this rank waits for other ranks. */
bool hvd__ordered_is_busy(const struct hvd__ordered *ordered);

/* Returns true if ordered mode is open in shared memory and nothing of this
 * rank is under way. */
bool hvd__ordered_is_free(const struct hvd__ordered *ordered);

/* The coordinator opens an epoch; it has heard nheard of our announcements. */
void hvd__ordered_open(struct hvd__set *set, uint32_t epoch, int64_t nheard);
/* The coordinator's. Returns true if it may open an epoch. */
bool hvd__ordered_may_open(const struct hvd__ordered *ordered);

#endif
