/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - the status page: shared memory of one host with a line for each rank
 * of this host and of those that are its neighbours (places.h). A rank writes
 * its own line; the rank that receives a heartbeat from another host
 * (heartbeat.h) writes the lines of that host's ranks. All ranks of the host
 * read all lines.
 *
 * Times on the page are hvd__now_ns: one clock for all processes of a host.
 */
#ifndef HVD_WATCH_PAGE_H
#define HVD_WATCH_PAGE_H

#include <stdatomic.h>

#include "base/segment.h"
#include "watch/watch.h"

enum {
    HVD__PAGE_REQUESTS = 32, /* the oldest, stored in full */
    HVD__PAGE_KEYS = 512,    /* the oldest, stored by key */
    HVD__PAGE_CAUSES = 16,   /* of an end */
    HVD__PAGE_TEXT = 1024
};

enum hvd__line_state { HVD__LINE_EMPTY, HVD__LINE_ALIVE, HVD__LINE_LEFT };

/* The operation that a rank last began. */
struct hvd__doing {
    int64_t since_ns; /* 0: nothing yet */
    char text[HVD__BEGUN_NAME];
};

/* The same as it stands on the page, which is written more often than read: the
 * kind of request, or HVD__GROUP, and its name; or HVD__IN_WORDS and a finished
 * text. */
enum { HVD__IN_WORDS = -2 };

struct hvd__begun {
    int64_t since_ns;
    int64_t kind;
    char name[HVD__BEGUN_NAME]; /* cut to this length */
};

/* The requests that a rank has in flight, as of its last beat. */
struct hvd__in_flight {
    int32_t
        nrequests; /* valid entries of requests; nkeys counts those of keys */
    int32_t nkeys;
    struct hvd__watch_request requests[HVD__PAGE_REQUESTS];
    uint64_t keys[HVD__PAGE_KEYS];
};

/* The lock of a value that one thread at a time writes and others read without
 * waiting: a reader that meets a writer reads again. Each word of the value is
 * an atomic, copied one by one. write_words and read_words in page.c are the
 * two sides. */
struct hvd__seqlock {
    _Atomic uint32_t version; /* odd: being written */
};

struct hvd__line {
    _Alignas(64) _Atomic int32_t state;
    _Atomic int32_t pid;
    _Atomic uint64_t
        start_time;         /* start of the process, in /proc's clock ticks */
    _Atomic uint64_t beats; /* number of its watchdog's beats */
    _Atomic int32_t in_flight; /* requests in flight, as of the last beat */
    _Atomic int32_t lost;      /* 0, or the hvd_lost_reason that was found */
    /* The next four are only for ranks of other hosts. */
    _Atomic int64_t silent_ns; /* silence, as their host reports it */
    /* Where it was last heard from (struct hvd__ip); zeros: never. A reader
     * that meets a writer gets halves of two addresses, and a datagram is lost.
     */
    _Atomic uint64_t address[2];
    _Atomic uint64_t datagram; /* number of the last datagram from it */
    _Atomic uint32_t writing; /* keeps two ranks apart that hear what it does */
    _Alignas(64) struct hvd__seqlock doing_lock;
    _Atomic uint64_t begun[sizeof(struct hvd__begun) / 8];
    /* The last request without a name: its kind in the upper 8 bits, its number
     * below; and when it began. A quick_ns of 0 means that begun is the later
     * one. quick is written before quick_ns (hvd__page_write_quick,
     * hvd__page_read_doing). */
    _Alignas(64) _Atomic uint64_t quick;
    _Atomic int64_t quick_ns;
};

/* What a rank of this host has in flight; other hosts ask for that when they
 * need it (heartbeat_ask.c). */
struct hvd__flight {
    _Alignas(64) struct hvd__seqlock lock;
    _Atomic uint64_t words[sizeof(struct hvd__in_flight) / 8];
};

/* Why the world has ended, as one rank, the finder, has found it. */
struct hvd__cause {
    int32_t finder, status;
    int32_t lost;           /* the rank that is lost; -1: none is */
    hvd_lost_reason reason; /* how it was lost, or 0 */
    char text[HVD__PAGE_TEXT];
};

struct hvd__page {
    _Atomic int64_t ended_ns; /* when the first cause came; 0: none yet */
    _Atomic int32_t ncauses;  /* places in causes that are taken */
    _Atomic int32_t verdict; /* 1 + the place of the one that counts; 0: none */
    struct {
        _Atomic bool is_there; /* publishes is */
        struct hvd__cause is;
    } causes[HVD__PAGE_CAUSES];
    int32_t nlines;
    struct hvd__line lines[]; /* [nlines]; behind them are the flights */
};

static inline struct hvd__flight *hvd__page_flight(struct hvd__page *page,
                                                   int i)
{
    return (struct hvd__flight *)(void *)(page->lines + page->nlines) + i;
}

/* The shape of a page is the number of its lines and flights. */
struct hvd__page_shape {
    int nlines, nflights;
};

size_t hvd__page_bytes(struct hvd__page_shape shape);
/* Makes the segment, and *fd, which the caller closes when others have mapped
 * it. Returns NULL, with the last error set, on failure. */
struct hvd__page *hvd__page_create(struct hvd__page_shape shape, int *fd);
/* Maps a page that another process made. */
struct hvd__page *hvd__page_attach(const struct hvd__segment_address *address,
                                   struct hvd__page_shape shape);
/* Unmaps a page. Accepts NULL. */
void hvd__page_unmap(struct hvd__page *page, struct hvd__page_shape shape);

/* Records what a rank of another host does, unless another rank of this host is
 * just doing so. */
void hvd__page_write_doing(struct hvd__line *line,
                           const struct hvd__doing *doing);
/* Records a request, or a group of requests, by its name. One thread at a time
 * may call it. */
void hvd__page_write_begun(struct hvd__line *line, int32_t kind,
                           const char name[static HVD__BEGUN_NAME],
                           int64_t since_ns);
void hvd__page_write_quick(struct hvd__line *line, int32_t kind,
                           uint64_t number, int64_t since_ns);
/* Reads the later of the named and the quick request. */
void hvd__page_read_doing(struct hvd__line *line, struct hvd__doing *doing);
void hvd__page_write_flight(struct hvd__flight *flight,
                            const struct hvd__in_flight *value);
void hvd__page_read_flight(struct hvd__flight *flight,
                           struct hvd__in_flight *value);

/*
 * Two ranks may find causes of an end at the same time, on this host or on
 * others, and all ranks shall give the same one. So a cause counts only when it
 * has stood on the page for a while, settle_ns; until then one of a lower
 * finder replaces it. Whoever knows a cause looks for no other.
 *
 * hvd__page_end puts a cause on the page. It returns false if it is too late,
 * or not better than what is there.
 */
bool hvd__page_end(struct hvd__page *page, const struct hvd__cause *cause,
                   int64_t now_ns, int64_t settle_ns);
/* Returns whether there is a cause, which may not count yet. */
bool hvd__page_is_ending(const struct hvd__page *page);
/* Returns whether a cause counts, and copies it. All ranks of the host get the
 * same. */
bool hvd__page_has_ended(struct hvd__page *page, int64_t now_ns,
                         int64_t settle_ns, struct hvd__cause *cause);

#endif
