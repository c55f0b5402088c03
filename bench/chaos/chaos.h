/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chaos.h - what hvd-chaos is asked to do, what it has done, and the small
 * things that its files share.
 */
#ifndef BENCH_CHAOS_CHAOS_H
#define BENCH_CHAOS_CHAOS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ----------------------------------------------------------------- settings */

enum chaos_kind { CHAOS_KILL, CHAOS_STOP, CHAOS_SLOW, CHAOS_CUT, CHAOS_KINDS };

/* "kill", "stop", "slow", "cut". */
extern const char *const chaos_names[CHAOS_KINDS];

/* Times are in seconds. */
struct chaos_settings {
    uint64_t seed;
    double after;    /* from the moment when the ranks are there */
    double every;    /* between two faults, on average */
    double duration; /* from the first to the last fault; 0: no limit */
    double limit;    /* the command must end within so long; 0: no limit */
    bool wanted[CHAOS_KINDS];
    double lasts[CHAOS_KINDS]; /* how long a fault lasts; 0: for ever */
    double slow_share;         /* of its time that a slow rank runs, 0 to 1 */
    int nranks;                /* wait for so many; 0: until no more come */
    int most_dead;             /* kill at most so many; -1: any number */
    int least_left;            /* leave at least so many ranks alone */
    int together;              /* ranks that are killed within 5 ms */
    bool spare_rank0;
    bool quiet;
};

/* ------------------------------------------------------------------- faults */

/* A fault is one thing that hvd-chaos has done to a rank. */
struct chaos_fault {
    enum chaos_kind kind;
    double at; /* seconds since the command was started */
    char rank[24];
    pid_t pid;
    char program[16];
    char error[96]; /* why it could not be done; "": it was done */
};

/* All that were tried. */
struct chaos_record {
    struct chaos_fault *faults; /* owned, [n] */
    int n, ndone, ndead;
    int nheld; /* moments at which no rank could be hurt */
    int most_ranks;
    double from; /* when the ranks were there; 0: never */
};

/* ------------------------------------------------------------------- shared */

/* Seconds of the monotonic clock. */
double chaos_now(void);

/* Draws the next number of a sequence (splitmix64). */
uint64_t chaos_draw(uint64_t *state);

/* Draws a number of 0 to less than 1. */
double chaos_draw_real(uint64_t *state);

/* Prints one line on standard error, behind the program's name. */
__attribute__((format(printf, 1, 2))) void chaos_say(const char *format, ...);

#endif
