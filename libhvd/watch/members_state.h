/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members_state.h - the register and what a process knows beside it, for the
 * files of members.h: members.c says who is lost, members_open.c opens and
 * closes, members_round.c agrees on who is left.
 *
 * Orders: fate is claimed with a compare-and-swap, after which text is written
 * and has_text released; readers acquire has_text. A proposal is written before
 * the decision is swapped (release), and read after it (acquire).
 */
#ifndef HVD_WATCH_MEMBERS_STATE_H
#define HVD_WATCH_MEMBERS_STATE_H

#include <poll.h>

#include "base/mutex.h"
#include "base/own_time.h"
#include "watch/members.h"
#include "watch/members_net.h"

enum { HVD__FATE_TEXT = 160, HVD__PROPOSAL_BITS = 64 /* in a word */ };

/* Time that passes between two looks counts up to this much: the process may
 * have been stopped. */
#define HVD__MEMBERS_GAP_NS INT64_C(500000000)

/* A member's line of the register. */
struct hvd__members_line {
    _Alignas(64) _Atomic uint64_t beats;
    _Atomic uint32_t ready;    /* the round for which it is ready */
    _Atomic int32_t fate;      /* 0, or a hvd_lost_reason, for ever */
    _Atomic bool has_text;     /* publishes text */
    char text[HVD__FATE_TEXT]; /* how it was lost */
};

/* The register. */
struct hvd__members_page {
    _Atomic uint64_t decision; /* round << 32 | proposer + 1; 0: none yet */
    _Atomic int32_t settled;   /* hvd__members_settled */
    _Alignas(64) struct hvd__members_line lines[]; /* [n], then the proposals */
};

/* A process of the job, as this process knows it. */
struct hvd__member {
    int pid;
    int pidfd; /* owned; -1: none */
    uint64_t start;
    uint64_t beats;
    int64_t silent_ns;
    int host;                  /* the lowest member of its host */
    _Atomic int32_t fate;      /* of one of another host, as in its line */
    char text[HVD__FATE_TEXT]; /* how that one seems to be lost */
};

struct hvd__members {
    struct hvd__members_options options;
    struct hvd__members_page *page; /* owned mapping */
    size_t bytes;
    int n, self, nwords;
    struct hvd__member *others; /* owned, [n] */
    struct pollfd *polls;       /* owned, [n + 1] */
    int *list;                  /* owned, [n]: the members of the last world */
    int nlisted;
    uint32_t round;
    struct hvd__own_time time;
    int64_t looked_ns;
    struct hvd__members_net *net; /* owned; NULL: all are on this host */
    struct hvd__mutex lock;       /* guards net */
};

static inline struct hvd__members_line *hvd__members_own_line(
    const struct hvd__members *m)
{
    return &m->page->lines[m->self];
}

/* Returns whether a member is on this host. */
static inline bool hvd__members_is_ours(const struct hvd__members *m,
                                        int member)
{
    return m->others[member].host == m->others[m->self].host;
}

static inline bool hvd__members_is_lost(const struct hvd__members *m,
                                        int member)
{
    return hvd__members_fate(m, member) != 0;
}

/* Writes into the line of a member of this host that it is lost, unless it says
 * so already. */
void hvd__members_write_fate(struct hvd__members *m, int member,
                             hvd_lost_reason reason, const char *text);
/* Receives and sends letters, and makes the register and the protocol know the
 * same. The caller has the lock; there are several hosts. */
void hvd__members_drive(struct hvd__members *m);
/* Shows that this process is alive, and looks after the others if that is due.
 */
void hvd__members_look_at_all(struct hvd__members *m);
/* Returns HVD_ERR_LOST, with a text that says how a member was lost. */
int hvd__members_fail_lost(const struct hvd__members *m, int member);

#endif
