/* SPDX-License-Identifier: Apache-2.0 */
/*
 * algo.h - the door of this room: collectives built from transfers or in shared
 * memory.
 *
 * An algorithm is a row of the table in algo.c: when it may be used, how a
 * segment starts, and a step that moves it on without blocking until it is
 * done. Everything that it needs is allocated before (the workspace when a
 * world starts, large scratch when a request is submitted), so that no rank can
 * run out of memory alone in the middle. core/run/execute.c runs collectives.
 */
#ifndef HVD_TRANSPORT_ALGO_ALGO_H
#define HVD_TRANSPORT_ALGO_ALGO_H

#include "transport/algo/visible.h"
#include "transport/pattern.h"
#include "transport/team.h"

/* At most HVD__SEGMENTS segments of one collective are under way at the same
 * time. */
enum { HVD__SEGMENTS = 3 };

/* The number of tags that a collective uses. */
enum { HVD__COLLECTIVE_TAGS = 2 };

/* The bytes from or to one rank. */
struct hvd__block {
    unsigned char *data; /* borrowed; read only if it is sent */
    size_t bytes;
};

/* A place in a sequence of chunks of blocks; the algorithm says which. */
struct hvd__place {
    int64_t chunk;
    int step;
    int slice;
};

/* The memory of one collective at a time. It owns all of it. */
struct hvd__workspace {
    unsigned char *scratch;          /* for what other ranks send */
    size_t segment_bytes;            /* size of a segment's scratch */
    struct hvd__transfer *transfers; /* [HVD__SEGMENTS * per_segment], all
                                        done between phases */
    int per_segment;
    const void **sources;      /* [nranks], for hvd__reduce */
    void **targets;            /* [nranks], for hvd__reduce_to */
    struct hvd__block *blocks; /* [2 * nranks], for exchanges */
    struct hvd__place *places; /* [nranks], for gathers over hosts */
};

int hvd__workspace_init(struct hvd__workspace *workspace, int nranks);
void hvd__workspace_fini(struct hvd__workspace *workspace);

/* The state of a collective in shared memory, which is one segment
 * (shared_*.c). */
struct hvd__shared {
    struct hvd__shm *shm; /* borrowed */
    int nslices;          /* slices of the data, which are cut into chunks */
    size_t chunk_bytes;   /* bytes of a chunk of one slice */
    uint32_t round;       /* number of the round, on all ranks */
    bool direct;          /* data is read where it lies */
    int64_t copied;       /* chunks, as in this rank's area */
    int64_t combined;
    int64_t fetched;
    int64_t summed;            /* several hosts: sent to the others */
    int64_t gathered;          /* several hosts: begun to be received */
    int phases[HVD__SEGMENTS]; /* several hosts: of chunks being reduced */
    struct hvd__place coming, came, going, shown; /* gather_hosts.c */
    struct hvd__visible visible; /* direct reductions: this rank's share */
};

/* A segment under way. Each algorithm gives the fields a meaning. */
struct hvd__segment {
    int phase;
    int met; /* partners with which transfers of the phase have started */
    bool is_done;
    int64_t start;
    int64_t count;
};

/* The kinds of data movement. */
enum hvd__motion {
    HVD__REDUCE_TO_ALL,    /* reduction of all inputs to all outputs */
    HVD__REDUCE_TO_ROOT,   /* reduction to the root's output */
    HVD__REDUCE_TO_SHARES, /* reduction of shares, to output's start */
    HVD__SEND_FROM_ROOT,   /* root's output to all outputs */
    HVD__GATHER_TO_ALL,    /* each rank's block to all: all blocks in to are the
                              same, and all ranks know the bytes of from */
    HVD__EXCHANGE          /* a block from each rank to each */
};

struct hvd__collective {
    /* The task; the caller fills these. */
    enum hvd__motion motion;
    struct hvd__reduction reduction; /* HVD__SEND_FROM_ROOT: only dtype */
    bool narrows; /* hosts' sums travel as wire, a smaller type; for algorithms
                     with narrows */
    hvd_dtype wire;
    const void *input; /* borrowed until done */
    void *output;      /* borrowed until done; may equal input */
    int64_t count; /* elements of the input; HVD__EXCHANGE: bytes of each block
                      between two ranks, or 0 if they are not all equal */
    int root;      /* rank in the team */
    const struct hvd__slice *shares; /* [team size], borrowed */
    struct hvd__block *to, *from;    /* [team size], in the workspace; a rank
                                        copies its own, unless in place */
    void *scratch;                   /* hvd__adasum_scratch bytes, borrowed */
    size_t direct_max; /* most bytes for which "direct" is used, to all; 0: by
                          its cost */
    bool same_order; /* float sums in one order, independent of other tensors */
    int tag;         /* first of this collective's tags */
    const struct hvd__team *team;     /* borrowed */
    struct hvd__workspace *workspace; /* borrowed, used by this one alone */

    /* The progress. */
    const struct hvd__algorithm *algorithm;
    int64_t total;   /* units of work, as the algorithm counts */
    int64_t started; /* units whose segments have started */
    int64_t head;    /* number of the oldest segment under way */
    int64_t tail;    /* number of the next segment to start */
    struct hvd__segment segments[HVD__SEGMENTS]; /* by number modulo */
    struct hvd__shared shared;
    int64_t computing_ns; /* time in kernels */
};

struct hvd__algorithm {
    const char *name;
    const char *description;
    bool narrows; /* it can narrow */
    bool (*applies)(const struct hvd__collective *collective);
    /* Returns the time that it is expected to take, in ns (cost.h). NULL: it
     * is taken wherever it applies. */
    int64_t (*cost)(const struct hvd__collective *collective);
    /* Returns the units of work, which segments divide. */
    int64_t (*total)(const struct hvd__collective *collective);
    /* Starts the next segment, of number tail: sets its phase, start and count.
     */
    int (*start)(struct hvd__collective *collective,
                 struct hvd__segment *segment);
    /* Moves a segment. Returns 1 if it is done, 0 if not yet. Called for the
     * oldest first. before is the segment before it, so that phases can keep
     * their order; NULL: that one is done. */
    int (*step)(struct hvd__collective *collective,
                struct hvd__segment *segment,
                const struct hvd__segment *before);
};

extern const struct hvd__algorithm hvd__reduce_local;
extern const struct hvd__algorithm hvd__reduce_shared;
extern const struct hvd__algorithm hvd__reduce_hosts;
extern const struct hvd__algorithm hvd__reduce_hosts_doubling;
extern const struct hvd__algorithm hvd__reduce_hosts_halving;
extern const struct hvd__algorithm hvd__reduce_hosts_chain;
extern const struct hvd__algorithm hvd__broadcast_shared;
extern const struct hvd__algorithm hvd__exchange_shared;
extern const struct hvd__algorithm hvd__reduce_adasum;
extern const struct hvd__algorithm hvd__reduce_adasum_hosts;
extern const struct hvd__algorithm hvd__reduce_direct;
extern const struct hvd__algorithm hvd__reduce_doubling;
extern const struct hvd__algorithm hvd__reduce_halving;
extern const struct hvd__algorithm hvd__reduce_scatter;
extern const struct hvd__algorithm hvd__scatter_hosts;
extern const struct hvd__algorithm hvd__broadcast_local;
extern const struct hvd__algorithm hvd__broadcast_hosts;
extern const struct hvd__algorithm hvd__broadcast_binomial;
extern const struct hvd__algorithm hvd__gather_hosts;
extern const struct hvd__algorithm hvd__exchange_hosts;
extern const struct hvd__algorithm hvd__exchange_pairwise;

/* Returns true if the algorithm for it can narrow the data between hosts. All
 * ranks get the same answer. */
bool hvd__collective_can_narrow(const struct hvd__collective *collective);
/* Returns the algorithm for it, which all ranks choose alike. */
const struct hvd__algorithm *hvd__collective_choose(
    const struct hvd__collective *collective);
/* Chooses the algorithm. Never fails: the last that applies always does. */
void hvd__collective_start(struct hvd__collective *collective);

/* Moves a collective. Returns 1 if it is done, 0 if not yet. *moved becomes
 * true if anything happened. */
int hvd__collective_step(struct hvd__collective *collective, bool *moved);

/* Returns true if the ranks of each host may be reduced first, and then the
 * hosts: the result is right and, if same_order is true, does not depend on
 * where ranks are. */
bool hvd__reduction_nests(const struct hvd__reduction *reduction,
                          bool same_order);

/* Returns the bytes of scratch that an adasum of count elements needs on nranks
 * ranks, of which at most widest are on one host of several. */
size_t hvd__adasum_scratch(hvd_dtype dtype, int64_t count, int nranks,
                           int widest);

/* Calls hvd__reduce_to and adds its time to *ns, if the work is large enough
 * for the clock not to matter. */
enum { HVD__TIMED_BYTES = 16 << 10 };
void hvd__timed_reduce(int64_t *ns, const struct hvd__reduction *reduction,
                       void *const *outs, int nouts, const void *const *sources,
                       int nsources, int64_t count);

/* Returns true if it takes less time to pass blocks of so many bytes, from each
 * member to each, on from host to host along with the messages of a doubling of
 * hosts, which are sent anyway, than to send them in messages of their own. All
 * ranks get the same answer. */
bool hvd__exchange_goes_along(const struct hvd__team *team,
                              const struct hvd__hosts *hosts, int64_t block);

/* Returns true if it takes less time to make sums of so many bytes in halves,
 * and to pass complete parts back, than to pass them on whole with the messages
 * of a doubling of hosts; or, if goes_whole is false because they are too large
 * for these, than to wait for a round of such messages, without data, and make
 * them in a lane then. All ranks get the same answer. */
bool hvd__sum_halves(const struct hvd__team *team,
                     const struct hvd__hosts *hosts, int64_t bytes,
                     bool goes_whole);
/* Returns true if it takes less time to wait for a round without data, and make
 * sums of so many bytes in a lane then, than to pass them on whole: where hosts
 * take part for others, which are as many as the number of hosts is above a
 * power of two. All ranks get the same answer. */
bool hvd__sum_waits(const struct hvd__team *team,
                    const struct hvd__hosts *hosts, int64_t bytes);

/* Algorithms use these functions. They return the transfers of a segment, 1 if
 * all of them are done (else 0 or a failure), and the scratch of a segment. */
struct hvd__transfer *hvd__segment_transfers(struct hvd__collective *c,
                                             const struct hvd__segment *s);
int hvd__transfers_done(const struct hvd__team *team,
                        struct hvd__transfer *transfers, int count);
unsigned char *hvd__segment_scratch(struct hvd__collective *c,
                                    const struct hvd__segment *s);
/* Starts transfers with all other ranks in the order of hvd__team_to, with as
 * many at a time as there are transfers for. start(c, s, i, transfers) starts
 * two, with the i-th. Between two ranks transfers match by order, so partners
 * wait until the segment before has met them in this phase. Returns 1 if all
 * are done. A segment enters a phase with met == 0, and keeps bytes, the size
 * of its largest transfer, in it: of large ones few are under way at a time. */
int hvd__segment_meet(struct hvd__collective *c, struct hvd__segment *s,
                      const struct hvd__segment *before, int64_t bytes,
                      int (*start)(struct hvd__collective *c,
                                   struct hvd__segment *s, int i,
                                   struct hvd__transfer *transfers));
/* Sets a segment's count to the rest of the total, or to most if that is
 * less. */
void hvd__segment_take(const struct hvd__collective *c,
                       struct hvd__segment *segment, int64_t most);

/* Returns the elements, as a total. */
int64_t hvd__total_count(const struct hvd__collective *c);
/* Returns the elements of input that are rank's to reduce. */
struct hvd__slice hvd__share_of(const struct hvd__collective *c, int rank);
/* Returns the elements of the largest share of n. */
int64_t hvd__largest_share(const struct hvd__collective *c, int n);

/* Returns true if a rank wants the whole result of a reduction. */
static inline bool hvd__is_wanted(const struct hvd__collective *c, int rank)
{
    return c->motion == HVD__REDUCE_TO_ALL ||
           (c->motion == HVD__REDUCE_TO_ROOT && rank == c->root);
}

/* Returns the bytes of count elements. */
static inline size_t hvd__bytes_of(const struct hvd__collective *c,
                                   int64_t count)
{
    return (size_t)count * hvd__dtype_bytes(c->reduction.dtype);
}

#endif
