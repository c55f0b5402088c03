/* SPDX-License-Identifier: Apache-2.0 */
/*
 * required.h - the nodes that have still to run for a tensor.
 */
#ifndef IPU_COMPILER_SCHEDULE_REQUIRED_H
#define IPU_COMPILER_SCHEDULE_REQUIRED_H

#include "compiler/schedule/effects.h"

/* Facts about a candidate: how many nodes it needed when they were last
 * counted, and some of them. Zeros at first. */
enum { IPU__MOST_WATCHED = 13 };

struct ipu__required_known {
    int32_t needed, nwatched;
    int32_t watched[IPU__MOST_WATCHED];
};

struct ipu__required {
    const ipu_graph *graph;      /* borrowed */
    struct ipu__effects effects; /* which nodes must run before others */
    bool *scheduled;             /* owned, as all: [nodes]: run already */
    bool *wanted;                /* [nodes], where there are effects */
    int32_t *looked;             /* [nodes]: the last look that came by */
    int32_t look;                /* its number */
    int32_t *nodes;              /* [nodes]: result of the last search */
    int32_t count;
    /* Nodes that read each variable, in whatever state: readers from number
     * first[tensor] to first[tensor + 1], ascending. */
    int32_t *first, *readers;
};

int ipu__required_init(struct ipu__required *needs, const ipu_graph *graph);
void ipu__required_fini(struct ipu__required *needs);

/* Finds the nodes that tensors need and that are not scheduled, in the order of
 * the graph. Returns how many. */
int32_t ipu__required_find(struct ipu__required *needs, const int32_t *tensors,
                           int32_t count);

/* Returns whether the last look has found a node. */
bool ipu__required_has(const struct ipu__required *needs, int32_t node);

/* Returns the candidate that needs the fewest nodes, the first of several; -1
 * if there is none. Candidates are tensors, or -1. known: [count] */
int32_t ipu__required_fewest(struct ipu__required *needs,
                             const int32_t *candidates, int32_t count,
                             struct ipu__required_known *known);

#endif
