/* SPDX-License-Identifier: Apache-2.0 */
/*
 * algo.h - collectives made of transfers: the door of this room.
 *
 * An algorithm is a row of the table in algo.c: when it may be used, what it
 * does first, and a step that moves it on without blocking until it is done.
 * Everything it needs is allocated when a world starts (the workspace), so
 * that a rank cannot run out of memory in the middle, alone.
 */
#ifndef HVD_TRANSPORT_ALGO_ALGO_H
#define HVD_TRANSPORT_ALGO_ALGO_H

#include "kernels/kernels.h"
#include "transport/pattern.h"
#include "transport/transport.h"

/* Segments of one collective that are under way at the same time. */
enum { HVD__SEGMENTS = 3 };

/* Memory of one collective at a time; all owned. */
struct hvd__workspace {
    unsigned char *scratch;          /* what other ranks send us */
    size_t slot_bytes;               /* of scratch, for each segment */
    struct hvd__transfer *transfers; /* HVD__SEGMENTS runs of per_segment */
    int per_segment;
    const void **sources; /* [nranks] arguments of hvd__reduce */
};

int hvd__workspace_init(struct hvd__workspace *workspace, int nranks);
void hvd__workspace_fini(struct hvd__workspace *workspace);

/* One segment under way; what its fields mean is the algorithm's. */
struct hvd__segment {
    int phase;
    int64_t start; /* first element */
    int64_t count;
};

struct hvd__collective {
    /* What to do; the caller fills these. */
    hvd_kind kind; /* HVD_ALLREDUCE or HVD_BROADCAST */
    struct hvd__reduction reduction;
    const void *input; /* borrowed until done */
    void *output;      /* borrowed until done; may equal input */
    int64_t count;
    int root;
    int tag; /* this and the next are free for this collective */
    struct hvd__transport *transport; /* borrowed */
    struct hvd__workspace *workspace; /* borrowed, no one else's */

    /* How it goes. */
    const struct hvd__algorithm *algorithm;
    int64_t started; /* elements whose segments have started */
    int64_t head;    /* number of the oldest segment under way */
    int64_t tail;    /* number of the next segment to start */
    struct hvd__segment segments[HVD__SEGMENTS]; /* number modulo */
};

struct hvd__algorithm {
    const char *name;
    const char *description;
    hvd_kind kind;
    bool (*applies)(const struct hvd__collective *collective);
    /* Start the next segment, in place of number tail: sets its phase, start
     * and count. */
    int (*start)(struct hvd__collective *collective,
                 struct hvd__segment *segment);
    /* Move a segment: 1 done, 0 not yet. Called for the oldest first. The
     * one before is given so that phases can keep its order; NULL if done. */
    int (*step)(struct hvd__collective *collective,
                struct hvd__segment *segment,
                const struct hvd__segment *before);
};

extern const struct hvd__algorithm hvd__allreduce_local;
extern const struct hvd__algorithm hvd__allreduce_direct;
extern const struct hvd__algorithm hvd__allreduce_scatter;
extern const struct hvd__algorithm hvd__broadcast_local;
extern const struct hvd__algorithm hvd__broadcast_binomial;

/* Choose the algorithm. Never fails: the last that applies always does. */
void hvd__collective_start(struct hvd__collective *collective);

/* 1 done, 0 not yet. *moved becomes true if anything happened. */
int hvd__collective_step(struct hvd__collective *collective, bool *moved);

/* For the algorithms: the transfers of a segment, and whether all are done
 * (1, 0 or a failure). */
struct hvd__transfer *hvd__segment_transfers(struct hvd__collective *c,
                                             const struct hvd__segment *s);
int hvd__transfers_done(struct hvd__transport *transport,
                        struct hvd__transfer *transfers, int count);
unsigned char *hvd__segment_scratch(struct hvd__collective *c,
                                    const struct hvd__segment *s);

#endif
