/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proposal.h - a proposal collects what the members of a set have submitted
 * under one name so far. The coordinator keeps proposals of all members, and a
 * rank that speaks for others (relay.h) keeps proposals of these.
 */
#ifndef HVD_CORE_PROPOSAL_H
#define HVD_CORE_PROPOSAL_H

#include "core/request/hash.h"
#include "core/request/request.h"

/* An announcement of some members: they have made a submission or, if status is
 * negative, theirs was refused; then it has neither signatures nor numbers. */
struct hvd__announcement {
    uint64_t key;
    uint64_t fingerprint; /* of all signatures; 0: refused */
    int status;
    const char *text; /* borrowed; why it was refused; else NULL */
    int32_t priority;
    const int *who; /* borrowed, [nwho]: the members */
    int nwho;
    const struct hvd__signature *signatures; /* borrowed, [nsignatures] */
    int nsignatures;
    const int64_t *numbers; /* borrowed, [nwho * nnumbers]: member by member,
                               one for each signature that carries one */
    int nnumbers;
};

/* Why a member announces nothing more, for now or for ever. */
enum hvd__gone {
    HVD__GONE_JOINED = 1,
    HVD__GONE_RESTORES, /* it has joined, and takes the variables of the last
                           rank to join, so that steps of strategies may go on
                           without it */
    HVD__GONE_LEFT      /* it has shut down, or removes the set */
};

/* One of the distinct submissions under a name. */
struct hvd__variant {
    uint64_t fingerprint;
    struct hvd__signature *signatures; /* owned */
    int nsignatures;
    int64_t *numbers; /* owned, [nranks * nnumbers]; NULL: none */
    int nnumbers;
    int status; /* negative: refused; text says why */
    char *text; /* owned */
};

enum { HVD__ANSWERED = -1 };

/* A request of a proposal on which all have agreed (ready.h). */
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
    int *of; /* owned, [nranks]: 0: not yet submitted; i + 1: submitted
                variants[i]; HVD__ANSWERED: submitted, failure sent */
    int32_t priority;
    struct hvd__item *items; /* owned, [nsignatures]; NULL: not agreed on */
    int nitems;              /* of them in a list */
    char *lacking; /* owned; names the missing members that have left; NULL:
                      none */
};

/* All proposals of a table have the same number of members. */

/* Adds what members say to the proposals of its key, of nranks members each.
 * Each member's goes to the oldest that lacks the member, or to a new one.
 * *oldest becomes the oldest of the key. Fails with HVD_ERR_MEMORY. */
int hvd__proposals_add(struct hvd__proposal **table, int nranks,
                       const struct hvd__announcement *announcement,
                       struct hvd__proposal **oldest);
/* Frees all proposals of a table. */
void hvd__proposals_free(struct hvd__proposal **table);

/* Takes a proposal out of the table. The next of its key takes its place. Fails
 * with HVD_ERR_MEMORY. */
int hvd__proposal_take(struct hvd__proposal **table,
                       struct hvd__proposal *proposal);
void hvd__proposal_free(struct hvd__proposal *proposal);
/* Does both. */
int hvd__proposal_remove(struct hvd__proposal **table,
                         struct hvd__proposal *proposal);

#endif
