/* SPDX-License-Identifier: Apache-2.0 */
/*
 * required.h - which nodes have still to run for something.
 */
#ifndef IPU_COMPILER_SCHEDULE_REQUIRED_H
#define IPU_COMPILER_SCHEDULE_REQUIRED_H

#include "compiler/schedule/effects.h"

/* Of a candidate: nodes that it needed when they were last counted, and some of
 * them. Zeros at first. */
enum { IPU__MOST_WATCHED = 13 };

struct ipu__required_known {
    int32_t needed, nwatched;
    int32_t watched[IPU__MOST_WATCHED];
};

struct ipu__required {
    const ipu_graph *graph;      /* borrowed */
    struct ipu__effects effects; /* what must run before something else */
    bool *scheduled;             /* owned, as all: [nodes]: run already */
    bool *wanted;                /* [nodes], where there are effects */
    int32_t *looked;             /* [nodes]: the last look that came by */
    int32_t look;                /* its number */
    int32_t *nodes;              /* [nodes]: what the last look found */
    int32_t count;
    /* Who reads each variable, in whatever state: from number first[tensor]
     * to first[tensor + 1] in readers, nodes, ascending. */
    int32_t *first, *readers;
};

int ipu__required_init(struct ipu__required *needs, const ipu_graph *graph);
void ipu__required_fini(struct ipu__required *needs);

/* Find what tensors need of nodes that are not scheduled: nodes, in the order
 * of the graph. Returns how many. */
int32_t ipu__required_find(struct ipu__required *needs, const int32_t *tensors,
                           int32_t count);

/* Whether the last look has found a node. */
bool ipu__required_has(const struct ipu__required *needs, int32_t node);

/* Of candidates, tensors or -1, that which needs the fewest nodes; the first of
 * several; -1: there is none. known: [count] */
int32_t ipu__required_fewest(struct ipu__required *needs,
                             const int32_t *candidates, int32_t count,
                             struct ipu__required_known *known);

#endif
