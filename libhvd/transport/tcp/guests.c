/* SPDX-License-Identifier: Apache-2.0 */
/* guests.c - keeps the list of a process's guests. */
#include "transport/tcp/guests.h"

#include <string.h>

enum { MOST_MISSED = 3 };

enum hvd__answer hvd__guests_judge(const struct hvd__guests *g, int rank)
{
    if (!g->is_open)
        return HVD__ANSWER_LATER;
    return g->is_member[rank] || g->list[rank].ticket != 0
               ? HVD__ANSWER_TAKEN
               : HVD__ANSWER_WELCOME;
}

void hvd__guests_take(struct hvd__guests *g, int rank, int64_t ticket)
{
    hvd__guests_drop(g, rank);
    g->list[rank] = (struct hvd__guest){.ticket = ticket};
    atomic_fetch_add(&g->count, 1);
}

void hvd__guests_drop(struct hvd__guests *g, int rank)
{
    if (g->list[rank].ticket == 0)
        return;
    g->list[rank] = (struct hvd__guest){.ticket = 0};
    atomic_fetch_sub(&g->count, 1);
}

void hvd__guests_members(struct hvd__guests *g, const int *ranks, int n)
{
    for (int rank = 0; rank < g->size; rank++)
        g->is_member[rank] = false;
    for (int i = 0; i < n; i++)
        g->is_member[ranks[i]] = true;
    g->nmembers = n;
    g->is_open = true;
}

void hvd__guests_shut(struct hvd__guests *g)
{
    for (int rank = 0; rank < g->size; rank++)
        hvd__guests_drop(g, rank);
    g->is_open = false;
}

int hvd__guests_room(const struct hvd__guests *g)
{
    return g->most > g->nmembers ? g->most - g->nmembers : 0;
}

void hvd__guests_ping(struct hvd__guests *g)
{
    for (int rank = 0; rank < g->size; rank++)
        g->list[rank].has_answered = false;
}

void hvd__guests_hear(struct hvd__guests *g, int rank)
{
    g->list[rank].has_answered = true;
}

int hvd__guests_awaited(const struct hvd__guests *g)
{
    int n = 0;

    for (int rank = 0; rank < g->size; rank++)
        n += g->list[rank].ticket != 0 && !g->list[rank].has_answered;
    return n;
}

int hvd__guests_list(struct hvd__guests *g, int64_t *tickets)
{
    int n = 0;

    memset(tickets, 0, (size_t)g->size * sizeof *tickets);
    for (int rank = 0; rank < g->size; rank++) {
        struct hvd__guest *guest = &g->list[rank];

        if (guest->ticket != 0 && guest->has_answered) {
            tickets[rank] = guest->ticket;
            guest->nmissed = 0;
            n++;
        } else if (guest->ticket != 0 && ++guest->nmissed == MOST_MISSED) {
            hvd__guests_drop(g, rank);
        }
    }
    return n;
}

bool hvd__guests_admit(struct hvd__guests *g, int rank, int64_t ticket)
{
    if (ticket == 0 || g->list[rank].ticket != ticket)
        return false;
    g->list[rank].is_admitted = true;
    return true;
}

void hvd__guests_settle(struct hvd__guests *g)
{
    for (int rank = 0; rank < g->size; rank++)
        if (g->list[rank].is_admitted)
            hvd__guests_drop(g, rank);
}
