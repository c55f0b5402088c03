/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - what the ranks of one host know of each other, and of those of
 * other hosts: a piece of shared memory with a line for each rank of the
 * world. A rank of this host writes its own; the lines of others are written
 * by whoever of this host hears from theirs (heartbeat.h). All are read by all.
 *
 * Times on it are hvd__now_ns: one clock for all processes of a host.
 */
#ifndef HVD_WATCH_PAGE_H
#define HVD_WATCH_PAGE_H

#include <stdatomic.h>

#include "base/segment.h"
#include "watch/watch.h"

enum {
    HVD__PAGE_REQUESTS = 32, /* the oldest, told in full */
    HVD__PAGE_KEYS = 512,    /* the oldest, told by key */
    HVD__PAGE_TEXT = 1024
};

enum hvd__line_state { HVD__LINE_EMPTY, HVD__LINE_ALIVE, HVD__LINE_LEFT };

/* What a rank last began. */
struct hvd__doing {
    int64_t since_ns; /* 0: nothing yet */
    char text[120];
};

/* The same on the status page, where it is written more often than it is read:
 * the kind of request, or HVD__GROUP, and its name; or HVD__IN_WORDS, and a
 * finished text. */
enum { HVD__IN_WORDS = -2 };

struct hvd__begun {
    int64_t since_ns;
    int32_t kind;
    char name[124]; /* cut to that */
};

/* What a rank has in flight, as of its last heartbeat. */
struct hvd__in_flight {
    int32_t nrequests; /* entries of both that are valid */
    int32_t nkeys;
    struct hvd__watch_request requests[HVD__PAGE_REQUESTS];
    uint64_t keys[HVD__PAGE_KEYS];
};

/* A value that one process writes and others read without a lock: a reader
 * that meets a writer reads again. Copied word by word, each an atomic. */
struct hvd__seqlock {
    _Atomic uint32_t version; /* odd: being written */
    _Atomic uint32_t writing; /* keeps two threads of the owner apart */
};

struct hvd__line {
    _Alignas(64) _Atomic int32_t state;
    _Atomic int32_t pid;
    _Atomic uint64_t start_time; /* of the process: /proc's, clock ticks */
    _Atomic uint64_t beats;      /* signs of life */
    _Atomic int32_t in_flight;   /* how many requests, as of the last beat */
    /* Of ranks of other hosts only: */
    _Atomic int64_t silent_ns; /* for so long, as their host says */
    _Atomic uint32_t address;  /* where it was last heard from, IPv4 in the
                                  order of the network; 0: never */
    _Atomic uint64_t datagram; /* the number of the last one from it */
    _Alignas(64) struct hvd__seqlock doing_lock;
    _Atomic uint64_t begun[sizeof(struct hvd__begun) / 8];
    /* Or a request without a name: its kind above its number, and when; 0: the
     * above is the later. */
    _Alignas(64) _Atomic uint64_t quick;
    _Atomic int64_t quick_ns;
    _Alignas(64) struct hvd__seqlock flight_lock;
    _Atomic uint64_t flight[sizeof(struct hvd__in_flight) / 8];
};

struct hvd__page {
    _Atomic int32_t ended; /* 1: somebody writes, 2: end_text is there */
    _Atomic int32_t end_status;
    char end_text[HVD__PAGE_TEXT];
    struct hvd__line lines[]; /* one a rank of the world */
};

/* Make the segment for n lines, and *fd, for the caller to close when others
 * have mapped it. NULL, with the last error set. */
struct hvd__page *hvd__page_create(int n, int *fd);
/* Map one that another process made. */
struct hvd__page *hvd__page_attach(const struct hvd__segment_address *address,
                                   int n);
/* NULL is accepted. */
void hvd__page_unmap(struct hvd__page *page, int n);

void hvd__page_write_doing(struct hvd__line *line,
                           const struct hvd__doing *doing);
/* A request, or a group of them, by its name of so many bytes. */
void hvd__page_write_begun(struct hvd__line *line, int32_t kind,
                           const char *name, size_t bytes, int64_t since_ns);
void hvd__page_write_quick(struct hvd__line *line, int32_t kind,
                           uint64_t number, int64_t since_ns);
/* The later of the two. */
void hvd__page_read_doing(struct hvd__line *line, struct hvd__doing *doing);
void hvd__page_write_flight(struct hvd__line *line,
                            const struct hvd__in_flight *flight);
void hvd__page_read_flight(struct hvd__line *line,
                           struct hvd__in_flight *flight);

/* The first cause stays: whether it was this one. */
bool hvd__page_end(struct hvd__page *page, int status, const char *text);
/* Whether there is one; a copy. */
bool hvd__page_has_ended(struct hvd__page *page, int *status, char *text,
                         size_t size);

#endif
