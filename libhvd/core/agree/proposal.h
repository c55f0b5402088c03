/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proposal.h - a proposal collects what the members of a set have submitted
 * under one name so far.
 */
#ifndef HVD_CORE_PROPOSAL_H
#define HVD_CORE_PROPOSAL_H

#include "core/request/hash.h"
#include "core/request/signature.h"

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

void hvd__proposal_free(struct hvd__proposal *proposal);

/* Returns the proposal to which a member's record about key belongs: the oldest
 * that lacks the member, or a new one. Returns NULL if memory runs out. */
struct hvd__proposal *hvd__proposal_for(struct hvd__proposal **table,
                                        int nranks, uint64_t key, int rank);

/* Removes a proposal from the table. Fails with HVD_ERR_MEMORY. */
int hvd__proposal_remove(struct hvd__proposal **table,
                         struct hvd__proposal *proposal);

/* Returns the number, from 1, of an equal variant, and adds one if there is
 * none. Returns 0 if memory runs out. text is copied. */
int hvd__proposal_variant(struct hvd__proposal *proposal, uint64_t fingerprint,
                          int status, const char *text);

/* Stores the signatures that a variant's fingerprint stands for, if they are
 * not known yet. signatures may be NULL. Fails with HVD_ERR_MEMORY. */
int hvd__variant_learn(struct hvd__variant *variant,
                       const struct hvd__signature *const *signatures, int n);

/* Copies the n numbers that a member carries. Fails with HVD_ERR_MEMORY. */
int hvd__proposal_take_numbers(struct hvd__proposal *proposal, int nranks,
                               int rank, const int64_t *numbers, int n);

#endif
