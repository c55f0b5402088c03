/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - the constants of a network and of the machines on it, and the
 * time that an allreduce takes on them.
 *
 * The model is LogGP's: a message takes its sender and its receiver time on a
 * core, then a latency, and its bytes pass through the link of each host, which
 * the host's ranks share. Bytes may also take time on a core, as they do with
 * TCP. If all hosts are on one machine, they share its cores.
 */
#ifndef BENCH_PROJECT_NETWORK_H
#define BENCH_PROJECT_NETWORK_H

#include <stdbool.h>

/* Times are seconds, rates bytes a second. */
struct network {
    double latency;   /* until a message has arrived, beside its overheads */
    double overhead;  /* of a message on a core, at each end */
    double bandwidth; /* of a host's link, in each direction */
    double burst;  /* bytes that pass at once, as through tc's token bucket: up
                      to that, time on the link and on cores overlap; 0: none */
    double stream; /* what one rank gets of it at most; 0: all */
    double handling;  /* of a byte on a core, at each end */
    double local;     /* a step between ranks of a host */
    double copying;   /* of a byte in a host's memory */
    double reducing;  /* of a byte added to others */
    double switching; /* of a shared core from one rank to another */
    double attention; /* until libhvd's thread looks, while its rank has a
                         core to compute */
    int cores;        /* that all hosts share; 0: each rank has one */
};

/* A network by name, for hosts with machines of their own. */
struct network_preset {
    const char *name;
    const char *description;
    struct network network;
};

/* Ends with an entry without a name. */
extern const struct network_preset network_presets[];

/* Returns NULL if there is no preset of that name. */
const struct network_preset *network_find(const char *name);

/*
 * What one collective does, as far as time is concerned. Of ranks that do
 * different amounts it is the most.
 */
struct plan {
    const char *algorithm; /* borrowed */
    double steps;          /* messages between hosts, one after another */
    double local_steps;    /* the same within a host */
    double messages;       /* sent by one rank to other hosts */
    double link_bytes;     /* sent by one host to others */
    double rank_bytes;     /* sent by one rank to others */
    double reduced;        /* bytes that one rank adds */
    double copied;         /* bytes that one rank copies */
    double pieces;         /* parts that follow each other through the steps */
    int under_way;         /* pieces under way at a time */
    bool speaks;    /* one rank of each host does so, and the others look on */
    double seconds; /* the time of all of it, if nothing else is known */
};

/* The parts of the time that a plan takes, in seconds. */
struct duration {
    double fixed;   /* latency: it passes whatever else is under way */
    double shared;  /* use of the link or of cores: it takes twice as long if
                       two do it at once */
    double waiting; /* of that, what a faster link would save */
    double cores; /* of that, the time of all cores together that it takes from
                     computing, if hosts share them */
};

static inline double duration_all(struct duration duration)
{
    return duration.fixed + duration.shared;
}

/* Returns the time of a plan on hosts of nranks ranks each. */
struct duration network_time(const struct network *network,
                             const struct plan *plan, int nhosts, int nranks);

/* Returns the plan of a ring over all ranks, host by host, as NCCL made it:
 * each rank sends a part to the next in 2(p-1) steps. */
struct plan plan_ring(double bytes, int nhosts, int nranks);

#endif
