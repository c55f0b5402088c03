/* SPDX-License-Identifier: Apache-2.0 */
/*
 * members_state.h - the register and what a process knows beside it, for the
 * files of members.h: members.c says who is lost, members_open.c opens and
 * closes, members_round.c agrees on who is left,
 * members_settle.c on whether a world has grown, members_spares.c waits until
 * it is needed.
 *
 * Orders: fate is claimed with a compare-and-swap, after which text is written
 * and has_text released; readers acquire has_text. A proposal is written before
 * the decision is swapped (release), and read after it (acquire). Nobody writes
 * the proposal of a round that was decided while one of its list may read it. A
 * spare may be late: it finds in proposes whether a proposal is still that of
 * the decision.
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

/* The ways in which a member leaves its last world for good. */
enum hvd__members_end { HVD__LEFT_WELL = 1, HVD__LEFT_BROKEN };

/* A member's line of the register. */
struct hvd__members_line {
    _Alignas(64) _Atomic uint64_t beats;
    _Atomic uint32_t ready;    /* the round for which it is ready */
    _Atomic int32_t fate;      /* 0, or a hvd_lost_reason, for ever */
    _Atomic int32_t left;      /* 0, or a hvd__members_end */
    _Atomic uint32_t proposes; /* the round of its proposal; before the words */
    _Atomic int32_t old_size;  /* of its proposal: ranks of the last world */
    _Atomic int32_t njoined;   /* of its proposal: those that were not in it */
    _Atomic bool has_text;     /* publishes text */
    char text[HVD__FATE_TEXT]; /* how it was lost */
};

/* The register. */
struct hvd__members_page {
    _Atomic uint64_t decision; /* round << 32 | proposer + 1; 0: none yet */
    _Atomic uint64_t settled;  /* round << 2 | 1 or 2; hvd__members_settled */
    _Atomic uint32_t founded;  /* the round of the first world; 0 if all members
                                  were in it */
    _Atomic uint32_t bell;     /* a futex, which spares wait for: it changes
                                  when there is something new */
    _Atomic bool dismissed;    /* no spare comes into a world any more */
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
    bool is_missed; /* a spare of another host that is silent, as was said */
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
    int size;      /* members that a world is to have: the others are spares */
    int *found;    /* owned, [n]: of a proposal that is read or written */
    int *standing; /* owned, [n]: the members of the last world that started
                      here; none if this member has been in none */
    int nstanding;
    int old_size; /* of the last decision: members of the world before, */
    int njoined;  /* and, on one host, who was not in it */
    uint32_t round;
    struct hvd__own_time time;
    int64_t looked_ns;
    struct hvd__own_time spares_time; /* of the looks at spares */
    int64_t spares_looked_ns;
    struct hvd__members *before; /* owned: hvd__members_follow */
    struct hvd__members *made; /* borrowed, while this member finds out whether
                                  a world has grown: the members of that */
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
/* Goes on with the rounds of those before, if there are any. */
void hvd__members_drive_before(struct hvd__members *m);
/* Sleeps for a moment, longer after many naps, and no longer than until a
 * process ends. */
void hvd__members_rest(struct hvd__members *m, int naps);
/* Receives and sends letters, and makes the register and the protocol know the
 * same. The caller has the lock; there are several hosts. */
void hvd__members_drive(struct hvd__members *m);
/* Shows that this process is alive, and looks after the others if that is due.
 */
void hvd__members_look_at_all(struct hvd__members *m);
/* Looks whether a member of this host is alive. Time has passed since the last
 * such look. */
void hvd__members_look_at(struct hvd__members *m, int member, int64_t passed);
/* Returns whether the kernel says that a member's process has ended. */
bool hvd__members_is_gone(const struct hvd__members *m, int member);
/* Takes the members that a decision names. Returns 1 if this one is among them,
 * 0 if not, or if the proposal is not that of the decision any more, and
 * HVD_ERR_LOST if none of them was in the last world. */
int hvd__members_take(struct hvd__members *m, uint64_t decision);
/* Returns whether a member is in the last world, or in the next one. */
bool hvd__members_is_listed(const struct hvd__members *m, int member);
/* Returns how long a spare sleeps at most. */
int64_t hvd__members_nap(const struct hvd__members *m);
/* Looks after the spares of this host, if that is due, for its lowest member
 * that is in the last world. */
void hvd__members_look_at_spares(struct hvd__members *m);
/* Says which spares of other hosts are silent, as the protocol has found. The
 * caller has the lock. */
void hvd__members_report_spares(struct hvd__members *m);
/* Writes spares that are alive, the lowest first, until there are enough for a
 * world that has n members. Returns how many it has then. */
int hvd__members_call_spares(struct hvd__members *m, int n, int *spares);
/* Fails with HVD_ERR_SHUTDOWN, or HVD_ERR_LOST if the job did not end well. */
int hvd__members_fail_unneeded(bool is_well);
/* Wakes the spares. */
void hvd__members_ring(struct hvd__members *m);
/* Returns HVD_ERR_LOST, with a text that says how a member was lost. */
int hvd__members_fail_lost(const struct hvd__members *m, int member);

#endif
