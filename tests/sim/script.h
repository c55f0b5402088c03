/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script.h - what the programs of the ranks do in one run of the explorer:
 * drawn from the seed, the same for all ranks but for their orders (script.c);
 * run by each rank (program.c), which checks what it gets (use.c, status.c).
 */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include "sim.h"

enum {
    SCRIPT_RANKS = 24,
    SCRIPT_OPS = 12,
    SCRIPT_PHASES = 10,
    SCRIPT_SETS = 3,
    SCRIPT_VARIABLES = 6,
    SCRIPT_SHOT = 2048 /* elements of a request of a burst */
};

/* What a run may contain. Each seed leaves out a random half. */
enum {
    WITH_SETS = 1 << 0,
    WITH_GROUPS = 1 << 1,
    WITH_PRIORITIES = 1 << 2,
    WITH_ORDERS = 1 << 3,   /* some ranks submit in another order */
    WITH_REFUSALS = 1 << 4, /* a rank's submission is refused */
    WITH_MISMATCHES = 1 << 5,
    WITH_JOINS = 1 << 6,
    WITH_LEAVER = 1 << 7, /* a rank shuts down early */
    WITH_DEATH = 1 << 8,
    WITH_BLOCKING = 1 << 9,
    WITH_HEAP = 1 << 10, /* buffers of hvd_malloc */
    WITH_UNNAMED = 1 << 11,
    WITH_ROWS = 1 << 12,   /* rows that differ between ranks */
    WITH_STALLS = 1 << 13, /* ranks that stop for long */
    WITH_STRAGGLERS = 1 << 14,
    WITH_THREADS = 1 << 15, /* background threads */
    WITH_LARGE = 1 << 16,
    WITH_SETTINGS = 1 << 17, /* settings other than the default ones */
    WITH_HERMITS = 1 << 18,  /* a host whose ranks share no memory */
    WITH_KINDS = 1 << 19,    /* more than allreduce and broadcast */
    WITH_BURSTS = 1 << 20,
    WITH_BETWEEN = 1 << 21, /* others come between accesses to memory */
    WITH_STRATEGIES = 1 << 22,
    WITH_FEW_SLOTS = 1 << 23, /* slots run out soon */
    WITH_EMPTY = 1 << 24,     /* ranks that give or get nothing */
    WITH_ALL = (1 << 25) - 1
};

enum script_kind {
    PHASE_REQUESTS, /* requests, and then waits */
    PHASE_BLOCKING, /* one blocking request */
    PHASE_BURST,    /* hundreds of requests, and then waits */
    PHASE_JOIN,     /* sums of some ranks, and a join */
    PHASE_STRATEGY, /* steps of a strategy, and its join */
    PHASE_ADD_SET,
    PHASE_REMOVE_SET
};

enum script_fault { NO_FAULT, DIFFERS, REFUSED };

struct script_op {
    hvd_kind kind;
    hvd_dtype dtype;
    hvd_op op;
    int root; /* of the world */
    int64_t count;
    int64_t rows[SCRIPT_RANKS]; /* each rank's count, if has_rows */
    int64_t splits[SCRIPT_RANKS][SCRIPT_RANKS];
    bool has_rows, in_place, has_callback;
    double prescale, postscale;
    int set; /* index in script.sets; -1: the world */
    enum script_fault fault;
    int faulty; /* the rank that differs or is refused */
    int unit;
};

/* What is submitted at once: a request, or a group. */
struct script_unit {
    int first, n;
    bool is_group, is_named;
    int set;
    int priorities[SCRIPT_RANKS];
};

struct script_phase {
    enum script_kind kind;
    int nops, nunits, repeats;
    struct script_op ops[SCRIPT_OPS];
    struct script_unit units[SCRIPT_OPS];
    int orders[SCRIPT_RANKS][SCRIPT_OPS]; /* of units */
    int njoined[SCRIPT_RANKS]; /* PHASE_JOIN: ops before a rank joins;
                                  PHASE_STRATEGY: steps */
    int set;                   /* which set is added or removed */
    int nburst;                /* PHASE_BURST: requests */
    bool is_mixed;             /* PHASE_BURST: many are broadcasts */
    int group;                 /* PHASE_BURST: requests that go together */
    int swapper, swaps; /* PHASE_BURST: this rank submits two neighbours the
                           other way round, of which this is the first; -1 */
    bool is_serial;     /* PHASE_STRATEGY: nothing overlaps */
    int check_every;
};

struct script_set {
    int n;
    int32_t ranks[SCRIPT_RANKS];
    bool has[SCRIPT_RANKS];
    int32_t id; /* as it must be */
};

struct script {
    unsigned features;
    int nranks, nhosts;
    int host_of[SCRIPT_RANKS];
    bool shares[SCRIPT_RANKS];
    struct sim_costs costs;
    int nphases;
    struct script_phase phases[SCRIPT_PHASES];
    int nsets;
    struct script_set sets[SCRIPT_SETS];
    int leaver, leaves_in, leaves_after; /* rank (-1: none), phase, units */
    int victim;                          /* rank that dies; -1: none */
    int64_t dies_after;                  /* steps of the scheduler */
    int joined_last; /* what the first rank was told; -1: nothing yet */
};

extern struct script script;

/* Draws a script, and settings. mask: the features that it may have. */
void script_draw(uint64_t seed, unsigned mask);
void script_print(void);
/* The program of a rank. */
void script_run(struct sim_rank *rank);
/* A phase of it: PHASE_STRATEGY (strategies.c). */
void script_run_strategy(int number);
/* Lets others run, or not, between two calls. */
void script_pause(void);
/* Frees what the programs have used. */
void script_forget(void);

static inline bool script_has(unsigned feature)
{
    return (script.features & feature) != 0;
}

#endif
