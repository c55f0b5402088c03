/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seeker.c - how a process of an elastic cluster finds the others.
 *
 * It calls all addresses. If a world is there, one of its ranks becomes this
 * process's host, and lets it in when that world grows. If none is, rank 0 of
 * the cluster is the host of all: it founds the first world when all are there,
 * or when the least number is, nobody has come for a while, and nothing listens
 * at the addresses of the others. So there is never a second world beside one
 * that runs: whoever is in a world listens, and a process that is called and
 * does not answer is not absent.
 */
#include "transport/tcp/seeker.h"

#include <string.h>

void hvd__seeker_begin(struct hvd__seeker *s, int64_t now)
{
    s->host = -1;
    s->start_ns = s->reported_ns = s->came_ns = now;
    s->heard_ns = s->left_ns = 0;
    s->nguests = 0;
    s->guests->is_open = s->rank == 0;
}

/* A process that has a host will found no world: its guests find the one that
 * runs, too. Who was absent before may be in that world when its host is gone.
 */
void hvd__seeker_find(struct hvd__seeker *s, int rank, int64_t now)
{
    s->host = rank;
    s->heard_ns = now;
    memset(s->is_absent, 0, (size_t)s->guests->size * sizeof *s->is_absent);
    hvd__guests_shut(s->guests);
}

/* ------------------------------------------------------ what a host says */

/* Returns whether these can be the ranks of a world of which this process is.
 */
static bool is_right(const struct hvd__seeker *s,
                     const struct hvd__admission *a)
{
    bool is_in = false;

    if (a->n < 1 || a->n > s->guests->size || a->nold < 0)
        return false;
    for (int i = 0; i < a->n; i++) {
        if (a->ranks[i] < 0 || a->ranks[i] >= s->guests->size)
            return false;
        is_in |= a->ranks[i] == s->rank;
    }
    return is_in;
}

enum hvd__seeker_heard hvd__seeker_hear(struct hvd__seeker *s,
                                        enum hvd__note_kind note,
                                        const struct hvd__admission *admission,
                                        int64_t now)
{
    if (note == HVD__NOTE_END)
        return HVD__SEEKER_ENDS;
    if (note == HVD__NOTE_ADMIT && !is_right(s, admission)) {
        hvd__seeker_lose(s);
        return HVD__SEEKER_LOSES;
    }
    /* Only a rank of a world, or one that founds it, says anything: this
     * process looks for the others of that world from now on. */
    s->heard_ns = s->start_ns = now;
    return note == HVD__NOTE_ADMIT ? HVD__SEEKER_ENTERS : HVD__SEEKER_ANSWERS;
}

void hvd__seeker_lose(struct hvd__seeker *s)
{
    s->host = -1;
    s->guests->is_open = s->rank == 0;
}

/* ---------------------------------------------------------- what it does */

/* Returns whether the host has said nothing for so long that it may be stopped
 * or cut off, while others of its world go on. It may also be that the world
 * looks for guests more rarely than that: then it takes this one again. */
static bool is_mute(const struct hvd__seeker *s, int64_t now)
{
    return s->times.silence > 0 && now - s->heard_ns > s->times.silence;
}

static bool may_found(struct hvd__seeker *s, int64_t now)
{
    const struct hvd__guests *g = s->guests;
    const int n = atomic_load(&g->count);

    if (n != s->nguests)
        s->came_ns = now;
    s->nguests = n;
    if (n + 1 == g->size)
        return true;
    if (n + 1 < s->least || now - s->came_ns < s->times.settle)
        return false;
    for (int rank = 1; rank < g->size; rank++)
        if (g->list[rank].ticket == 0 && !s->is_absent[rank])
            return false;
    return true;
}

/* A process that has left its host is given time to find another one. */
static bool is_late(const struct hvd__seeker *s, int64_t now)
{
    return s->times.limit > 0 && s->host < 0 &&
           now - s->start_ns > s->times.limit &&
           (s->left_ns == 0 || now - s->left_ns > s->times.silence);
}

enum hvd__seeker_step hvd__seeker_step(struct hvd__seeker *s, int64_t now)
{
    if (s->host >= 0 && is_mute(s, now)) {
        s->left_ns = now;
        hvd__seeker_lose(s);
        return HVD__SEEKER_LEAVES;
    }
    if (s->host < 0 && s->rank == 0 && may_found(s, now))
        return HVD__SEEKER_FOUNDS;
    if (is_late(s, now))
        return HVD__SEEKER_GIVES_UP;
    if (s->times.report > 0 && now - s->reported_ns > s->times.report) {
        s->reported_ns = now;
        return HVD__SEEKER_REPORTS;
    }
    return HVD__SEEKER_WAITS;
}

bool hvd__seeker_found(const struct hvd__seeker *s, const int64_t *tickets,
                       int n, struct hvd__admission *a)
{
    const struct hvd__guests *g = s->guests;

    if (n + 1 < s->least || n < s->nguests)
        return false;
    a->n = 0;
    a->nold = a->generation = 0;
    for (int rank = 0; rank < g->size && a->n < g->most; rank++)
        if (rank == s->rank || tickets[rank] != 0)
            a->ranks[a->n++] = rank;
    return true;
}
