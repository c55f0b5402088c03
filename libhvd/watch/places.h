/* SPDX-License-Identifier: Apache-2.0 */
/*
 * places.h - which rank is on which host, which hosts are neighbours, and which
 * line of the status page (page.h) is whose. The functions do no I/O. watch.c
 * makes the places of a rank; the watchdog and the heartbeats read them.
 *
 * Hosts are numbered in the order of their lowest ranks. A rank keeps some 20
 * bytes for each rank of the world, and nothing else that grows with it.
 */
#ifndef HVD_WATCH_PLACES_H
#define HVD_WATCH_PLACES_H

#include <stdbool.h>

/* HVD__NEAR is the most neighbours that a host has. */
enum { HVD__NEAR = 8 };

struct hvd__places {
    int rank, nranks;
    int nhosts, host; /* number of hosts, and the host of this rank */
    int nlocal;       /* ranks of this host */
    int most;         /* ranks of the host that has most */
    int *host_of;     /* owned, [nranks] */
    int *next;        /* owned, [nranks]: the next rank of its host; -1: none */
    int *first;       /* owned, [nhosts]: the lowest rank of each host */
    int *line_of;     /* owned, [nranks]: its line on the page; -1: none */
    int nlines;       /* lines that are given away */
};

/* Sorts the ranks by host, and gives the ranks of this host the first lines in
 * their order. host(context, rank) returns the name of a rank's host. Returns
 * HVD_ERR_MEMORY on failure. */
int hvd__places_open(struct hvd__places *places, int rank, int nranks,
                     const char *(*host)(const void *context, int rank),
                     const void *context);
/* Frees the tables. Accepts zeroed and half-open places. */
void hvd__places_close(struct hvd__places *places);

/* Gives the ranks of another host the next lines. */
void hvd__places_add_lines(struct hvd__places *places, int host);
/* Returns how many lines a page needs at most. */
int hvd__places_most_lines(const struct hvd__places *places);

/* Returns whether a rank is on the host of this rank. */
static inline bool hvd__places_is_ours(const struct hvd__places *places,
                                       int rank)
{
    return places->host_of[rank] == places->host;
}

/*
 * Writes the neighbours of host number `host` among n, and returns how many
 * they are. Up to HVD__NEAR + 1 hosts are all neighbours of each other. More
 * have HVD__NEAR neighbours each, at fixed distances in both directions around
 * a circle: 1 and about the fourth root, the square root and the third power of
 * the fourth root of n. If a is a neighbour of b, then b is one of a.
 */
int hvd__places_near(int n, int host, int near[HVD__NEAR]);

#endif
