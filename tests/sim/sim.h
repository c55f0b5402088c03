/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - the simulator: the worlds of many ranks in one process, on a network
 * and a clock that exist only in memory. Everything that happens follows from
 * the seed.
 *
 * libhvd is the real one, linked with other seams below it (docs/SIMULATOR.md):
 *
 *     network.c    the transport of a rank: messages take virtual time
 *     memory.c     in place of transport/shm/heap.c: a host's shared memory
 *     progress.c   in place of core/world/progress.c: who drives a world; a
 *                  thread that waits lets other ranks run
 *     ranks.c      worlds, and a fiber for each rank's program; the calls that
 *                  the linker redirects (clock, locks, the current world)
 *
 * Two programs use it: explore.c runs random scripts (script.c, program.c) in
 * random orders and checks every result; measure.c runs one request on many
 * ranks and counts time and messages.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdio.h>

#include "core/world/world.h"
#include "random.h"

struct sim_network;

/* The cost of a message: latency, time on a core at each end, and time on the
 * host's link for each byte. Messages within a host have no link. */
struct sim_costs {
    int64_t alpha_ns;
    int64_t local_ns;
    int64_t overhead_ns;
    double beta_ns;
    /* Exploring only. */
    bool varies;         /* delays are random, around alpha */
    bool has_stragglers; /* some messages take a hundred times longer */
    size_t eager;        /* longer transfers wait for their receiver */
    bool poisons;        /* memory to receive into is overwritten at once */
};

enum sim_state {
    SIM_RUNS,
    SIM_AT_MARK, /* waits until all ranks have come here */
    SIM_OVER,    /* its program has ended */
    SIM_DEAD
};

struct sim_counts {
    int64_t messages, bytes;             /* sent to other hosts */
    int64_t local_messages, local_bytes; /* sent within the host */
};

struct sim_rank {
    int rank, host;
    struct hvd__world *world;
    struct hvd__heap *heap; /* owned; NULL: shares no memory */
    enum sim_state state;
    int64_t stalled_until;
    int64_t abort_at; /* the watchdog notices a death; 0: never */
    bool moved;       /* something happened since it was last looked at */
    int nyields;      /* yields of the core, in blocking calls */
    struct sim_fiber *fiber;
    struct sim_fiber *background; /* its background thread; NULL: it has none */
    struct sim_random random;     /* what its program draws */
    struct hvd_strategy *strategies; /* those that are started, a list by id */
    int nstrategies;
    uint64_t batches[8]; /* hash of the batches of each process set */
    int nbatches[8];
    bool skipped[8]; /* it has taken no part in a batch */
    struct sim_counts counts;
};

struct sim {
    uint64_t seed;
    int64_t now_ns;
    int64_t marked_ns; /* when a rank last came to a mark */
    int nranks, nhosts;
    int *host_of; /* owned, [nranks] */
    struct sim_rank *ranks;
    struct sim_rank *self; /* whose code runs; NULL: none */
    struct sim_network *network;
    struct hvd__settings settings;
    struct hvd__costs costs; /* that the core chooses algorithms by */
    bool has_threads;
    int interleaves; /* others come between once in so many accesses; 0: never
                      */
    struct sim_random between;
    bool verbose;
    uint64_t hash; /* of everything that happened */
    bool failed;
    char why[1024];
    void (*program)(struct sim_rank *rank); /* what each rank runs */
};

extern struct sim sim;
extern uint16_t sim_slots; /* of a rank's log (atoms.h) */

/* Notes what is wrong; the first counts. */
__attribute__((format(printf, 1, 2))) void sim_fail(const char *format, ...);
__attribute__((format(printf, 1, 2))) void sim_say(const char *format, ...);

static inline void sim_note(uint64_t what)
{
    sim.hash = sim_mix(sim.hash ^ what) + UINT64_C(0x9e3779b97f4a7c15);
}

/* ------------------------------------------------------------------- ranks */

/* Makes the worlds of ranks, whose numbers of hosts are given. shares[h] says
 * whether the ranks of host h share memory. */
void sim_begin(uint64_t seed, int nranks, const int *host_of,
               const bool *shares, const struct sim_costs *costs);
void sim_end(void);
/* Runs the program of a rank, or its background thread, until it yields; a rank
 * that has no such thread makes a step. Both return whether anything happened.
 */
bool sim_run_program(struct sim_rank *rank);
bool sim_run_background(struct sim_rank *rank);
/* Lets others run. Called by what runs on a rank, at any depth. */
void sim_yield(void);
/* Lets others run, or not, between two accesses to shared memory (atoms.h). */
void sim_between(void);
/* Blocks until all ranks have come here. */
void sim_mark(void);
/* Does what hvd_shutdown does, in the world of this rank. */
int sim_shutdown(void);
void sim_kill(struct sim_rank *rank);
/* Returns when a rank does something by itself: sends announcements that it
 * has held for long enough. INT64_MAX: never. */
int64_t sim_next_timer(const struct sim_rank *rank);

/* ----------------------------------------------------------------- network */

struct sim_network *sim_network_new(int nranks, const int *host_of,
                                    uint64_t seed,
                                    const struct sim_costs *costs);
/* Ends all transfers: from now on nobody tests or moves them. Called before
 * their memory is freed. */
void sim_network_stop(struct sim_network *network);
void sim_network_free(struct sim_network *network);
struct hvd__transport *sim_network_transport(struct sim_network *network,
                                             int rank);
/* Delivers what has arrived by now. Returns whether there was anything. */
bool sim_network_deliver(struct sim_network *network);
/* Returns the time of the next arrival; INT64_MAX: none. */
int64_t sim_network_next(const struct sim_network *network);
/* Fails unless nothing is left: no message unread, no transfer without its
 * other end. */
void sim_network_check_empty(const struct sim_network *network);
/* Drops what is under way to a dead rank, and part of what is from it. */
void sim_network_kill(struct sim_network *network, int rank);

/* ------------------------------------------------------------------ memory */

struct hvd__heap *sim_heap_new(int rank, const struct sim_rank *ranks);
void sim_heap_free(struct hvd__heap *heap);

#endif
