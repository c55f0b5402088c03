/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proposal.h - a proposal: what the members of a set have submitted under one
 * name so far.
 */
#ifndef HVD_CORE_PROPOSAL_H
#define HVD_CORE_PROPOSAL_H

#include "core/request/hash.h"
#include "core/request/signature.h"

/* One of the distinct things that were submitted. */
struct hvd__variant {
    uint64_t fingerprint;
    struct hvd__signature *signatures; /* owned; NULL: not known */
    int nsignatures;
    int status; /* negative: refused, for the reason text */
    char *text; /* owned */
    bool asked;
};

enum { HVD__ANSWERED = -1 };

struct hvd__proposal {
    uint64_t key;
    UT_hash_handle hh;             /* the oldest of its key is in the table */
    struct hvd__proposal *later;   /* owned: the next of the same key */
    struct hvd__variant *variants; /* owned */
    int nvariants;
    int nannounced;
    int *of;          /* owned, [nranks]: 0 not yet, i + 1 submitted
                         variants[i], HVD__ANSWERED: did, and was told that it
                         fails */
    int64_t *numbers; /* owned, [nranks * nnumbers]; NULL: none */
    int nnumbers;
    int32_t priority;
    char *lacking; /* owned; once a member that it lacks has left: who */
};

/* All proposals of a table are of the same number of members. */

void hvd__proposal_free(struct hvd__proposal *proposal);

/* Returns the proposal to which a member's record about key belongs: the oldest
 * that lacks the member, or a new one. NULL: out of memory. */
struct hvd__proposal *hvd__proposal_for(struct hvd__proposal **table,
                                        int nranks, uint64_t key, int rank);

/* Take a proposal out of the table. HVD_ERR_MEMORY. */
int hvd__proposal_remove(struct hvd__proposal **table,
                         struct hvd__proposal *proposal);

/* Returns the number, from 1, of an equal variant, which is added if there is
 * none; 0: out of memory. text is copied. */
int hvd__proposal_variant(struct hvd__proposal *proposal, uint64_t fingerprint,
                          int status, const char *text);

/* Learns what a variant's fingerprint stands for, if it is not known yet; NULL
 * signatures say nothing. HVD_ERR_MEMORY. */
int hvd__variant_learn(struct hvd__variant *variant,
                       const struct hvd__signature *const *signatures, int n);

/* Copies the n numbers that a member carries. HVD_ERR_MEMORY. */
int hvd__proposal_take_numbers(struct hvd__proposal *proposal, int nranks,
                               int rank, const int64_t *numbers, int n);

#endif
