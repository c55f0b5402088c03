/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seeker.h - a process of an elastic cluster that is in no world: which of the
 * others becomes its host, and when it founds a world itself. These functions
 * decide, and call nothing: enter.c makes the calls, reads the notes, and tells
 * the time. The simulator runs the same functions in virtual time
 * (tests/sim/recovery).
 */
#ifndef HVD_TRANSPORT_TCP_SEEKER_H
#define HVD_TRANSPORT_TCP_SEEKER_H

#include "transport/tcp/guests.h"
#include "transport/transport.h"

/* The notes that guests and hosts send each other. */
enum hvd__note_kind {
    HVD__NOTE_PING = 1,
    HVD__NOTE_PONG,
    HVD__NOTE_ADMIT,
    HVD__NOTE_END
};

/* Times in ns; 0: none, but for settle. */
struct hvd__seeker_times {
    int64_t limit;   /* after which it looks no more */
    int64_t report;  /* between two reports of whom it waits for */
    int64_t silence; /* after which it leaves its host */
    int64_t settle; /* nobody has come for so long, so nobody may be about to */
};

struct hvd__seeker {
    struct hvd__guests *guests; /* borrowed */
    bool *is_absent;            /* borrowed, [size of the cluster]: when it was
                                   called last, nothing listened there */
    int rank;                   /* of the cluster; 0 founds worlds */
    int least;                  /* ranks that the first world needs */
    struct hvd__seeker_times times;
    int host;         /* rank; -1: none */
    int64_t start_ns; /* since when it looks for a world */
    int64_t heard_ns; /* when it last heard its host */
    int64_t left_ns;  /* when it last left one that said nothing; 0: never */
    int64_t reported_ns, came_ns; /* when the last guest came */
    int nguests;
};

enum hvd__seeker_step {
    HVD__SEEKER_WAITS,
    HVD__SEEKER_LEAVES,  /* its host, which has said nothing for too long */
    HVD__SEEKER_FOUNDS,  /* it is time to list the guests, for a world */
    HVD__SEEKER_REPORTS, /* for whom it waits */
    HVD__SEEKER_GIVES_UP /* nobody has let it in within the limit */
};

enum hvd__seeker_heard {
    HVD__SEEKER_ANSWERS, /* the ping */
    HVD__SEEKER_ENTERS,  /* its host has let it in */
    HVD__SEEKER_LOSES,   /* what its host says is wrong: it leaves it */
    HVD__SEEKER_ENDS     /* the job has ended */
};

/* Begins the search. The seeker has guests, is_absent, rank, least and times.
 */
void hvd__seeker_begin(struct hvd__seeker *seeker, int64_t now);
/* Makes a rank that has answered the host of a seeker that has none yet. It
 * ends its calls to all others, and has no guests any more. */
void hvd__seeker_find(struct hvd__seeker *seeker, int rank, int64_t now);
/* Hears a note of the host; with HVD__NOTE_ADMIT, the host lets in the ranks of
 * *admission, n of them. Returns what the seeker does then. */
enum hvd__seeker_heard hvd__seeker_hear(struct hvd__seeker *seeker,
                                        enum hvd__note_kind note,
                                        const struct hvd__admission *admission,
                                        int64_t now);
/* Notes that the host is gone. */
void hvd__seeker_lose(struct hvd__seeker *seeker);
/* Returns what the seeker does now. */
enum hvd__seeker_step hvd__seeker_step(struct hvd__seeker *seeker, int64_t now);
/* Founds a world of the seeker and the guests that have been listed
 * (hvd__guests_list), n of them. Returns whether they are enough; then the
 * ranks of *admission are those of it, as many as may be in one. */
bool hvd__seeker_found(const struct hvd__seeker *seeker, const int64_t *tickets,
                       int n, struct hvd__admission *admission);

#endif
