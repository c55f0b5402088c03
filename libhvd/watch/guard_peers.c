/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_peers.c - the table of peers; it decides when a peer is lost. guard.c
 * calls it and holds the guard's lock.
 *
 * A peer is a rank of this host that has called (roll.h). A peer matters as
 * long as this rank waits for it. In MPI_Init, this rank waits until the peer
 * has left MPI_Init. Later, if the peer takes part in the same world, this rank
 * waits until the peer says that it goes on. A peer that matters is lost if
 *
 *     it is gone       the kernel reports it at once, through a pidfd
 *     it is stopped    /proc reports it for a whole heartbeat period
 *
 * A peer that gives up says why. This rank adopts the reason, so that all ranks
 * name the rank that was lost first, and not each other. A peer that failed by
 * itself gets the grace of an exit, unless the others learn the reason from it.
 *
 * In MPI_Finalize other rules hold. A peer that has left it says so and is not
 * waited for: this rank is about to leave it, too, however long that takes on a
 * busy machine. What the peer said may be lost, so one that is gone is lost
 * only if this rank takes a whole heartbeat period to leave. If the program
 * called MPI_Finalize itself, the library does not see the call return. Then
 * only peers count that have not called MPI_Finalize, because the call cannot
 * have returned without them.
 */
#include "watch/guard_peers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "watch/page.h"
#include "watch/process.h"

/* MOST_TOLD is the length of a list; more helps nobody. */
enum { MOST_TOLD = 6 };

static const struct {
    const char *name;
    bool blocks;
} stages[] = {
#define X(constant, name, blocks) {name, blocks},
    HVD__STAGES(X)
#undef X
};
enum { NSTAGES = sizeof stages / sizeof *stages };

const char *hvd__stage_name(enum hvd__stage stage)
{
    return stages[stage].name;
}

bool hvd__stage_blocks(enum hvd__stage stage)
{
    return stages[stage].blocks;
}

/* ------------------------------------------------------------- in words */

int hvd__number_of(const struct hvd__guard *g, int rank)
{
    return g->is_chosen ? g->number_of[rank] : rank;
}

static void describe(const struct hvd__guard *g, int rank, const char *how,
                     char *text, size_t size)
{
    const struct hvd__guard_peer *f = &g->peers[rank];
    bool is_in_it = f->stage >= 0 && f->stage < HVD__STAGE_FINALIZE;

    snprintf(text, size, "rank %d (process %d on %s) %s, %s%s%s",
             hvd__number_of(g, rank), f->pid, g->host, how,
             g->stage == HVD__STAGE_FINALIZE ? "while this rank is in " : "in ",
             g->stage == HVD__STAGE_FINALIZE ? "MPI_Finalize" : "hvd_init",
             is_in_it ? ", in " : "");
    if (is_in_it)
        snprintf(text + strlen(text), size - strlen(text), "%s",
                 hvd__stage_name((enum hvd__stage)f->stage));
}

static bool is_stopped(const struct hvd__guard_peer *f)
{
    char state = '?';

    return f->pid > 0 && hvd__process_start_time(f->pid, &state) == f->start &&
           (state == 'T' || state == 't');
}

/* Adds the ranks that were not heard of, as "ranks 2,3". Returns their
 * number. */
static int add_unheard(const struct hvd__guard *g, struct hvd__text *out)
{
    int n = 0;

    for (int rank = 0; rank < g->roll.size; rank++)
        if (rank != g->roll.rank && hvd__number_of(g, rank) >= 0 &&
            !g->peers[rank].is_here && n++ <= MOST_TOLD)
            hvd__text_add(out, "%s%d", n == 1 ? "" : ",",
                          hvd__number_of(g, rank));
    if (n > MOST_TOLD + 1)
        hvd__text_add(out, " and %d more", n - MOST_TOLD - 1);
    return n;
}

/* Adds the ranks that have not come as far as this one. */
void hvd__guard_peers_add_missing(const struct hvd__guard *g,
                                  struct hvd__text *out)
{
    char unheard[160] = "";
    struct hvd__text list = hvd__text_at(unheard, sizeof unheard);
    int n = 0, nunheard = add_unheard(g, &list);

    for (int rank = 0; rank < g->roll.size; rank++) {
        const struct hvd__guard_peer *f = &g->peers[rank];
        bool stopped;

        if (!f->is_here || f->has_left || hvd__number_of(g, rank) < 0)
            continue;
        stopped = is_stopped(f);
        if ((f->stage >= (int)g->stage && !stopped) || n++ >= MOST_TOLD)
            continue;
        hvd__text_add(out, "%srank %d (process %d on %s) is in %s%s",
                      n > 1 ? "; " : "", hvd__number_of(g, rank), f->pid,
                      g->host, hvd__stage_name((enum hvd__stage)f->stage),
                      stopped ? ", and stopped" : "");
    }
    if (nunheard > 0)
        hvd__text_add(out,
                      "%snothing was heard of rank%s %s, which %s not called "
                      "hvd_init, or %s ended, or %s on another host",
                      n > 0 ? "; " : "", nunheard > 1 ? "s" : "", unheard,
                      nunheard > 1 ? "have" : "has",
                      nunheard > 1 ? "have" : "has",
                      nunheard > 1 ? "are" : "is");
    if (n + nunheard == 0)
        hvd__text_add(out, g->roll.size > 0 ? "all ranks have come as far"
                                            : "nothing is known of the others");
}

void hvd__guard_peers_add_absent(const struct hvd__guard *g,
                                 struct hvd__text *out)
{
    int nknown = 1, nabsent = 0; /* this rank itself is known */

    for (int rank = 0; rank < g->roll.size; rank++) {
        const struct hvd__guard_peer *f = &g->peers[rank];

        nknown += f->is_here;
        if (!f->is_here || f->has_left || f->stage == HVD__STAGE_FINALIZE ||
            nabsent++ >= MOST_TOLD)
            continue;
        hvd__text_add(out, "%srank %d (process %d on %s) has not called it%s",
                      nabsent > 1 ? "; " : "", hvd__number_of(g, rank), f->pid,
                      g->host, is_stopped(f) ? ", and is stopped" : "");
    }
    if (nabsent > MOST_TOLD)
        hvd__text_add(out, "; and %d more", nabsent - MOST_TOLD);
    if (nknown < g->roll.size)
        hvd__text_add(out,
                      "%snothing is known of %d process%s on another host, or "
                      "without hvd_init",
                      nabsent > 0 ? "; " : "", g->roll.size - nknown,
                      g->roll.size - nknown > 1 ? "es" : "");
    else if (nabsent == 0)
        hvd__text_add(out, "all of them have called it");
}

bool hvd__guard_peers_are_above(const struct hvd__guard *g)
{
    for (int rank = 0; rank < g->roll.rank; rank++) {
        const struct hvd__guard_peer *f = &g->peers[rank];

        /* When one has left MPI_Finalize, the others are about to: nobody need
         * report that wait. */
        if (f->is_here && (!f->has_left || g->stage == HVD__STAGE_FINALIZE) &&
            f->stage >= (int)g->stage && hvd__number_of(g, rank) >= 0 &&
            !is_stopped(f))
            return false;
    }
    return true;
}

/* ------------------------------------------------------------ the peers */

static void meet(struct hvd__guard_peer *f, int pid)
{
    if (f->pid == pid && pid > 0)
        return;
    if (f->pidfd >= 0)
        close(f->pidfd);
    f->pid = pid;
    f->pidfd = pid > 0 ? hvd__process_open(pid) : -1;
    f->start = pid > 0 ? hvd__process_start_time(pid, NULL) : 0;
}

static void answer(const struct hvd__guard *g, int to)
{
    struct hvd__call call = {.kind = HVD__CALL_ANSWER, .stage = (int)g->stage};

    hvd__roll_call(&g->roll, to, &call);
}

/* Takes in a peer's end and its cause. The cause may be this rank, if it was
 * stopped. */
static void take_end(struct hvd__guard *g, const struct hvd__call *call)
{
    char text[1024];

    if (!hvd__end_is_of(call->text, hvd__number_of(g, g->roll.rank))) {
        hvd__guard_conclude(g, call->status, call->text, true);
        return;
    }
    snprintf(text, sizeof text, HVD__GIVEN_UP "%.900s", call->text);
    hvd__guard_conclude(g, call->status, text, true);
}

static void take_call(struct hvd__guard *g, const struct hvd__call *call,
                      int pid)
{
    struct hvd__guard_peer *f = &g->peers[call->rank];

    meet(f, pid);
    f->is_here = true;
    if (call->stage >= 0 && call->stage < NSTAGES &&
        call->kind <= HVD__CALL_ANSWER) {
        f->stage = call->stage;
        f->has_left = false; /* it is back */
        f->status = HVD_OK;
        f->over_ns = 0;
    }
    if (call->kind == HVD__CALL_HERE)
        answer(g, call->rank);
    if (call->kind == HVD__CALL_LEFT) {
        f->has_left = call->status == HVD_OK;
        f->status = call->status;
        snprintf(f->why, sizeof f->why, "%.*s", (int)sizeof f->why - 1,
                 call->text);
    }
    if (call->kind == HVD__CALL_END && call->status < 0 &&
        hvd__number_of(g, call->rank) >= 0 && g->stage != HVD__STAGE_FINALIZE)
        take_end(g, call);
}

void hvd__guard_peers_hear(struct hvd__guard *g)
{
    struct hvd__call call;
    int pid;

    while (hvd__roll_hear(&g->roll, &call, &pid))
        take_call(g, &call, pid);
}

bool hvd__guard_peer_matters(const struct hvd__guard *g, int rank)
{
    const struct hvd__guard_peer *f = &g->peers[rank];

    if (!f->is_here || f->has_left || f->pid == 0 || g->is_watched)
        return false;
    if (g->stage == HVD__STAGE_MPI)
        return f->stage == HVD__STAGE_MPI;
    if (g->stage == HVD__STAGE_FINALIZE)
        return g->is_last || f->stage != HVD__STAGE_FINALIZE;
    return hvd__number_of(g, rank) >= 0;
}

static bool is_gone(const struct hvd__guard_peer *f)
{
    struct pollfd poll_it = {.fd = f->pidfd, .events = POLLIN};

    if (f->pidfd >= 0)
        return poll(&poll_it, 1, 0) == 1;
    return hvd__process_start_time(f->pid, NULL) != f->start || f->start == 0;
}

static void lose(struct hvd__guard *g, int rank, const char *how)
{
    char text[1024];

    describe(g, rank, how, text, sizeof text);
    hvd__guard_conclude(g, HVD_ERR_LOST, text, false);
}

/* Looks at a peer that has failed, if the others have not learnt it in the
 * ordinary way. */
static void look_at_failed(struct hvd__guard *g, int rank, int64_t passed)
{
    struct hvd__guard_peer *f = &g->peers[rank];
    char text[400];

    f->over_ns += passed;
    if (g->options.exit_grace_ns == 0 || f->over_ns < g->options.exit_grace_ns)
        return;
    snprintf(text, sizeof text, "rank %d has left hvd_init: %s",
             hvd__number_of(g, rank), f->why);
    hvd__guard_conclude(g, f->status, text, false);
}

static void look_at_gone(struct hvd__guard *g, int rank, int64_t passed)
{
    struct hvd__guard_peer *f = &g->peers[rank];
    char fate[96];

    f->over_ns += passed ? passed : 1; /* no longer polled */
    if (g->stage == HVD__STAGE_FINALIZE &&
        (g->options.heartbeat_ns == 0 || f->over_ns < g->options.heartbeat_ns))
        return;
    lose(g, rank, hvd__process_fate(f->pid, fate, sizeof fate));
}

static void look_at_peer(struct hvd__guard *g, int rank, int64_t passed)
{
    struct hvd__guard_peer *f = &g->peers[rank];
    char how[120];

    if (f->status < 0) {
        look_at_failed(g, rank, passed);
    } else if (is_gone(f)) {
        look_at_gone(g, rank, passed);
    } else if (passed > 0 && g->options.heartbeat_ns > 0) {
        f->stopped_ns = is_stopped(f) ? f->stopped_ns + passed : 0;
        if (f->stopped_ns < g->options.heartbeat_ns)
            return;
        snprintf(how, sizeof how,
                 "is stopped (by SIGSTOP, or a debugger) for %.1f s",
                 (double)f->stopped_ns * 1e-9);
        lose(g, rank, how);
    }
}

bool hvd__guard_peers_look(struct hvd__guard *g, int64_t passed)
{
    bool is_waiting = false;

    for (int rank = 0; rank < g->roll.size; rank++)
        if (hvd__guard_peer_matters(g, rank)) {
            is_waiting = true;
            look_at_peer(g, rank, passed);
        }
    return is_waiting;
}
