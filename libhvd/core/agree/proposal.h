/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proposal.h - a proposal collects what the members of a set have submitted
 * under one name so far. The coordinator keeps proposals of all members, and a
 * rank that speaks for others (relay.h) keeps proposals of these.
 */
#ifndef HVD_CORE_PROPOSAL_H
#define HVD_CORE_PROPOSAL_H

#include "core/agree/wire.h"
#include "core/request/hash.h"
#include "core/request/request.h"

/* An announcement of some members. All pointers are borrowed. */
struct hvd__announcement {
    uint64_t key;
    int32_t priority;
    const struct hvd__statement *what;
    const int *who; /* [nwho]: the members */
    int nwho;
    const int64_t *numbers; /* [nwho * nnumbers]: member by member */
};

/* Why a member announces nothing more, for now or for ever. */
enum hvd__gone {
    HVD__GONE_JOINED = 1,
    HVD__GONE_RESTORES, /* it has joined, and takes the variables of the last
                           rank to join, so that steps of strategies may go on
                           without it */
    HVD__GONE_LEFT      /* it has shut down, or removes the set */
};

/* One of the distinct statements about a name. */
struct hvd__variant {
    struct hvd__statement *what; /* owned */
    int64_t *numbers;            /* owned, [members * nnumbers] */
};

enum { HVD__ANSWERED = -1 };

/* A request of a proposal on which all have agreed (batch.h). */
struct hvd__item {
    struct hvd__item *next;
    struct hvd__proposal *proposal;
    int index;    /* of its signature */
    int number;   /* which of the variant's numbers is its; -1: none */
    size_t bytes; /* in the fusion buffer */
};

struct hvd__proposal {
    uint64_t key;
    UT_hash_handle hh;             /* the table holds the oldest of each key */
    struct hvd__proposal *later;   /* owned: the next of the same key */
    struct hvd__variant *variants; /* owned */
    int nvariants;
    int nannounced;
    int32_t priority;
    struct hvd__item *items; /* owned, [nsignatures]; NULL: not agreed on */
    int nitems;              /* of them in a list */
    char *lacking; /* owned; names the missing members that have left; NULL:
                      none */
    int of[]; /* [members]: 0: not yet submitted; i + 1: submitted variants[i];
                 HVD__ANSWERED: submitted, failure sent */
};

/* Looks at a proposal after members have said something, and may remove it. all
 * is true if it should not wait for other members any longer. */
typedef int hvd__judge(void *owner, struct hvd__proposal *proposal, bool all);

/* The proposals of a number of members, and who of these is gone. The members
 * have numbers from 0. */
struct hvd__proposals {
    int n;
    struct hvd__proposal *table; /* owned, by key */
    int *joined;                 /* owned, [n]: 0 or enum hvd__gone */
    int *left;                   /* owned, [n] */
    int njoined, nleft;
    int *some; /* owned scratch, [n] */
    hvd__judge *judge;
    void *owner;
};

/* Begins the proposals of n members. The functions below fail with
 * HVD_ERR_MEMORY, or as judge does. */
int hvd__proposals_init(struct hvd__proposals *proposals, int n,
                        hvd__judge *judge, void *owner);
/* Accepts a zeroed structure. */
void hvd__proposals_fini(struct hvd__proposals *proposals);

/* Adds what members say to the proposals of its key: each member's to the
 * oldest that lacks the member, or to a new one. Judges those of the key. */
int hvd__proposals_add(struct hvd__proposals *proposals,
                       const struct hvd__announcement *announcement);
/* Notes that a member is gone. Judges all. */
int hvd__proposals_gone(struct hvd__proposals *proposals, int member,
                        enum hvd__gone how);
/* Members that have joined go on. */
void hvd__proposals_rejoin(struct hvd__proposals *proposals);
/* Judges all. They should not wait any longer. */
int hvd__proposals_judge(struct hvd__proposals *proposals);

/* Returns true if every member that can announce the proposal has done so. */
bool hvd__proposal_is_complete(const struct hvd__proposals *proposals,
                               const struct hvd__proposal *proposal);
/* Takes a proposal out. The next of its key takes its place. */
int hvd__proposal_take(struct hvd__proposals *proposals,
                       struct hvd__proposal *proposal);
void hvd__proposal_free(struct hvd__proposal *proposal);
/* Does both. */
int hvd__proposal_remove(struct hvd__proposals *proposals,
                         struct hvd__proposal *proposal);

#endif
