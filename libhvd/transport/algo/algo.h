/* SPDX-License-Identifier: Apache-2.0 */
/*
 * algo.h - collectives made of transfers: the door of this room.
 *
 * An algorithm is a row of the table in algo.c: when it may be used, what it
 * does first, and a step that moves it on without blocking until it is done.
 * Everything it needs is allocated before (the workspace when a world starts,
 * large scratch when a request is submitted), so that a rank cannot run out
 * of memory in the middle, alone.
 */
#ifndef HVD_TRANSPORT_ALGO_ALGO_H
#define HVD_TRANSPORT_ALGO_ALGO_H

#include "transport/algo/visible.h"
#include "transport/pattern.h"
#include "transport/team.h"

/* Segments of one collective that are under way at the same time. */
enum { HVD__SEGMENTS = 3 };

/* Tags that one collective uses. */
enum { HVD__COLLECTIVE_TAGS = 2 };

/* A run of bytes from or to one rank. */
struct hvd__block {
    unsigned char *data; /* borrowed; not written to if it is sent */
    size_t bytes;
};

/* Memory of one collective at a time; all owned. */
struct hvd__workspace {
    unsigned char *scratch;          /* what other ranks send us */
    size_t segment_bytes;            /* of scratch, for each segment */
    struct hvd__transfer *transfers; /* HVD__SEGMENTS runs of per_segment */
    int per_segment;
    const void **sources;      /* [nranks] arguments of hvd__reduce */
    void **targets;            /* [nranks] ... and of hvd__reduce_to */
    struct hvd__block *blocks; /* [2 * nranks] of exchanges */
};

int hvd__workspace_init(struct hvd__workspace *workspace, int nranks);
void hvd__workspace_fini(struct hvd__workspace *workspace);

/* A collective in shared memory, which is one segment (shared_*.c). */
struct hvd__shared {
    uint32_t round; /* its number, on all ranks */
    bool began;     /* our area says so */
    bool direct;    /* nothing is copied on its way */
    int64_t copied; /* how far we are, in blocks: as in our area */
    int64_t combined;
    int64_t fetched;
    int64_t summed;   /* over several hosts: on their way between them */
    int64_t gathered; /* ... of which these are on their way back */
    struct hvd__visible visible; /* direct: our share */
};

/* One segment under way; what its fields mean is the algorithm's. */
struct hvd__segment {
    int phase;
    int64_t start;
    int64_t count;
};

/* What moves how. */
enum hvd__motion {
    HVD__REDUCE_TO_ALL,    /* output: the reduction of all inputs */
    HVD__REDUCE_TO_ROOT,   /* ... on root only */
    HVD__REDUCE_TO_SHARES, /* ... of what shares says, at output's start */
    HVD__SEND_FROM_ROOT,   /* output of root to the output of all */
    HVD__EXCHANGE          /* blocks */
};

struct hvd__collective {
    /* What to do; the caller fills these. */
    enum hvd__motion motion;
    struct hvd__reduction reduction; /* of HVD__SEND_FROM_ROOT: dtype only */
    bool narrows; /* sums of hosts travel as wire, a smaller floating type;
                     only for algorithms that say they can */
    hvd_dtype wire;
    const void *input;               /* borrowed until done */
    void *output;                    /* borrowed until done; may equal input */
    int64_t count;                   /* elements of input */
    int root;                        /* in the team */
    const struct hvd__slice *shares; /* [team size], borrowed */
    struct hvd__block *to, *from;    /* [team size], in the workspace; what a
                                         rank sends itself is copied, unless
                                         it is there already */
    void *scratch;                   /* hvd__adasum_scratch bytes, borrowed */
    size_t direct_max; /* bytes to all ranks that "direct" is for; 0: as it
                          thinks best */
    bool same_order;   /* of the ranks, in sums of floating-point numbers,
                          whatever else moves with them */
    int tag;           /* this and the next are free for this collective */
    const struct hvd__team *team;     /* borrowed */
    struct hvd__workspace *workspace; /* borrowed, no one else's */

    /* How it goes. */
    const struct hvd__algorithm *algorithm;
    int64_t total;   /* units of work, as the algorithm counts them */
    int64_t started; /* units whose segments have started */
    int64_t head;    /* number of the oldest segment under way */
    int64_t tail;    /* number of the next segment to start */
    struct hvd__segment segments[HVD__SEGMENTS]; /* number modulo */
    struct hvd__shared shared;
    int64_t computing_ns; /* in kernels */
};

struct hvd__algorithm {
    const char *name;
    const char *description;
    bool narrows; /* it does what narrows asks */
    bool (*applies)(const struct hvd__collective *collective);
    /* Units of work that segments cut. */
    int64_t (*total)(const struct hvd__collective *collective);
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

extern const struct hvd__algorithm hvd__reduce_local;
extern const struct hvd__algorithm hvd__reduce_shared;
extern const struct hvd__algorithm hvd__reduce_hosts;
extern const struct hvd__algorithm hvd__broadcast_shared;
extern const struct hvd__algorithm hvd__exchange_shared;
extern const struct hvd__algorithm hvd__reduce_adasum;
extern const struct hvd__algorithm hvd__reduce_direct;
extern const struct hvd__algorithm hvd__reduce_scatter;
extern const struct hvd__algorithm hvd__broadcast_local;
extern const struct hvd__algorithm hvd__broadcast_binomial;
extern const struct hvd__algorithm hvd__exchange_pairwise;

/* Whether the algorithm for it can narrow what goes from host to host. The
 * same on all ranks. */
bool hvd__collective_can_narrow(const struct hvd__collective *collective);
/* Choose the algorithm. Never fails: the last that applies always does. */
void hvd__collective_start(struct hvd__collective *collective);

/* 1 done, 0 not yet. *moved becomes true if anything happened. */
int hvd__collective_step(struct hvd__collective *collective, bool *moved);

/* Bytes of scratch that an adasum of count elements needs on nranks ranks. */
size_t hvd__adasum_scratch(hvd_dtype dtype, int64_t count, int nranks);

/* hvd__reduce_to, whose time is added to *ns if there is so much to do that
 * reading clocks does not matter. */
enum { HVD__TIMED_BYTES = 16 << 10 };
void hvd__timed_reduce(int64_t *ns, const struct hvd__reduction *reduction,
                       void *const *outs, int nouts, const void *const *sources,
                       int nsources, int64_t count);

/* For the algorithms: the transfers of a segment, and whether all are done
 * (1, 0 or a failure). */
struct hvd__transfer *hvd__segment_transfers(struct hvd__collective *c,
                                             const struct hvd__segment *s);
int hvd__transfers_done(const struct hvd__team *team,
                        struct hvd__transfer *transfers, int count);
unsigned char *hvd__segment_scratch(struct hvd__collective *c,
                                    const struct hvd__segment *s);
/* The elements of input that are rank's to reduce. */
struct hvd__slice hvd__share_of(const struct hvd__collective *c, int rank);

#endif
