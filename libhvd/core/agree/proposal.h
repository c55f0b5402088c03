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
 * negative, theirs was refused. */
struct hvd__announcement {
    uint64_t key;
    uint64_t fingerprint; /* 0: refused */
    int status;
    const char *text; /* borrowed; why it was refused; else NULL */
    int32_t priority;
    const int *who; /* borrowed, [nwho]: the members */
    int nwho;
    const int64_t *numbers; /* borrowed, [nwho * nnumbers]: carried by the
                               requests, member by member */
    int nnumbers;
    /* The requests if the coordinator's own rank announces, else NULL. Their
     * signatures are copied. */
    const struct hvd__request *requests; /* borrowed, [nrequests] */
    int nrequests;
};

/* Why a member announces nothing more, for now or for ever. */
enum hvd__gone {
    HVD__GONE_JOINED = 1,
    HVD__GONE_RESTORES, /* it has joined, and takes the variables of the last
                           rank to join, so that steps of strategies may go on
                           without it */
    HVD__GONE_LEFT
};

/* One of the distinct submissions under a name. */
struct hvd__variant {
    uint64_t fingerprint;
    struct hvd__signature *signatures; /* owned; NULL: not known */
    int nsignatures;
    int status; /* negative: refused; text says why */
    char *text; /* owned */
    bool asked;
};

enum { HVD__ANSWERED = -1 };

struct hvd__proposal {
    uint64_t key;
    UT_hash_handle hh;             /* the table holds the oldest of each key */
    struct hvd__proposal *later;   /* owned: the next of the same key */
    struct hvd__variant *variants; /* owned */
    int nvariants;
    int nannounced;
    int *of;          /* owned, [nranks]: 0: not yet submitted; i + 1: submitted
                         variants[i]; HVD__ANSWERED: submitted, failure sent */
    int64_t *numbers; /* owned, [nranks * nnumbers]; NULL: none */
    int nnumbers;
    int32_t priority;
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

/* Removes a proposal from the table and frees it. Fails with HVD_ERR_MEMORY. */
int hvd__proposal_remove(struct hvd__proposal **table,
                         struct hvd__proposal *proposal);

#endif
