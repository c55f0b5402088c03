/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulated.h - one simulated world of watchdogs: its hosts, their ranks, the
 * network between them and the time, all in one thread. The watchdogs are
 * libhvd's own (libhvd/watch); what they ask of the kernel is answered here.
 * story.c says what happens in it, ranks.c lets the watchdogs look, network.c
 * carries their datagrams.
 */
#ifndef SIM_WATCH_SIMULATED_H
#define SIM_WATCH_SIMULATED_H

#include <ucontext.h>

#include "../random.h"
#include "base/ip.h"
#include "watch/watchdog.h"

#define SIM_SECOND INT64_C(1000000000)
#define SIM_MS INT64_C(1000000)

enum { SIM_NAMES = 3 };      /* addresses that a host can have */
enum { SIM_REQUESTS = 100 }; /* that a rank can have in flight */

struct sim_letter {
    struct sim_letter *next;
    struct hvd__ip
        address; /* where it comes from, or, of a refusal, was sent to */
    int port;    /* of a refusal */
    size_t bytes;
    unsigned char data[]; /* [bytes] */
};

/* Letters that wait at a rank, the oldest first. */
struct sim_post {
    struct sim_letter *first, **last;
    int n;
};

struct sim_rank {
    struct hvd__watch *watch; /* owned */
    int rank, host;
    enum { SIM_RUNS, SIM_DEAD, SIM_LEFT } state;
    bool is_stopped;
    bool is_leaving; /* it leaves at its next look */
    int64_t wake_ns; /* its next look; 0: none is planned */
    int64_t told_ns; /* when it was told of an end; 0: not yet */
    int64_t dies_ns; /* when it exits, after that */
    int told_status;
    char told[HVD__PAGE_TEXT];
    int nrequests;                  /* in flight */
    int64_t since_ns[SIM_REQUESTS]; /* when it submitted each of them */
    struct sim_post letters, refusals;
    struct hvd__transport transport;
    ucontext_t context; /* while it opens its watch */
    char *stack;        /* owned */
    const void *mine;   /* what it exchanges */
    void *all;
    size_t bytes;
    int opened; /* status of that; 1: not yet */
};

struct sim_host {
    char name[32];
    int first, nranks;
    int naddresses;
    bool reaches[SIM_NAMES]; /* whether others reach its addresses */
    bool is_dead;            /* the machine: nothing refuses letters */
    int side;                /* letters pass between hosts of one side */
    int64_t busy_ns;         /* how late its threads may wake */
    int64_t late_ns;         /* so long after the last exchange it links up */
    struct hvd__page *page;  /* owned */
    int64_t letters, bytes;  /* that it has sent */
};

struct sim_world {
    uint64_t seed;
    int nhosts, nranks;
    struct sim_host *hosts; /* owned, [nhosts] */
    struct sim_rank *ranks; /* owned, [nranks] */
    struct hvd__watch_options options;
    int64_t now_ns;
    int64_t latency_ns, jitter_ns; /* of a letter */
    int loss;                      /* of a thousand letters */
    int lost_first;                /* letters of the first end that are lost */
    struct sim_random network, threads;
    int warner;                   /* the rank that logged the last warning */
    int warnings;                 /* logged so far */
    char warning[HVD__PAGE_TEXT]; /* the last one */
    bool verbose;
    bool has_failed;
    char failure[2 * HVD__PAGE_TEXT];
    struct sim_rank *current; /* whose code runs; NULL: none */
};

extern struct sim_world sim;

/* Makes hosts of so many ranks each, with their watchdogs. */
void sim_open(const int *ranks_of_host, int nhosts);
void sim_close(void);

/* Runs everything that happens until a time. */
void sim_run_until(int64_t ns);
/* Returns the time of the next event; INT64_MAX: there is none. */
int64_t sim_next_event(void);

/* Plans a look of a rank, unless it looks earlier. */
void sim_wake(struct sim_rank *rank, int64_t ns);
/* Brings a letter to a rank, or a refusal. */
void sim_deliver(struct sim_rank *rank, bool is_refusal,
                 struct sim_letter *letter);
/* Plans that for a time. */
void sim_post_at(int64_t ns, struct sim_rank *rank, bool is_refusal,
                 struct sim_letter *letter);

/* What can happen to a rank or a host. */
void sim_kill(struct sim_rank *rank);
void sim_stop(struct sim_rank *rank);
void sim_continue(struct sim_rank *rank);
void sim_leave(struct sim_rank *rank);

/* Notes the first failure of a run. */
__attribute__((format(printf, 1, 2))) void sim_fail(const char *format, ...);
__attribute__((format(printf, 1, 2))) void sim_say(const char *format, ...);

/* Runs the story of a seed; returns false if it has failed. */
bool sim_story(uint64_t seed, unsigned without, bool verbose);
/* Prints letters and times for some numbers of hosts. */
int sim_measure(const int *hosts, int n, int ranks, bool csv);

#endif
