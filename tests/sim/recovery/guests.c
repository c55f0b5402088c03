/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guests.c - processes that come, or come back, look for a rank that takes them
 * as guests, and wait (transport/tcp/lobby.c, enter.c). A guest and its host
 * have a connection, of whose end the other side learns unless a network that
 * is cut, or a stop, keeps it from it. A guest that hears nothing of its host
 * for long looks for another one.
 */
#include <string.h>

#include "story.h"

#define PATIENCE_WITH_HOST (SILENCE + 500 * MS)

static bool is_running(const struct node *node)
{
    return !node->is_dead && !node->is_stopped;
}

/* Returns whether a guest has left its host, as far as that can know. */
static bool is_gone(const struct story *story, int host, int guest)
{
    const struct node *node = &story->nodes[guest];

    return story_reaches(story, host, guest) &&
           (node->is_dead || node->host_rank != host ||
            node->ticket != story->nodes[host].guests[guest]);
}

/* Returns whether a host has left its guest, as far as that can know. */
static bool is_left(const struct story *story, int guest)
{
    const struct node *node = &story->nodes[guest];
    const struct node *host = &story->nodes[node->host_rank];

    return story_reaches(story, node->host_rank, guest) &&
           (host->is_dead || host->phase == ENDED ||
            host->guests[guest] != node->ticket);
}

static bool is_taken(struct story *story, int host, int place)
{
    struct node *node = &story->nodes[host];
    const uint32_t list = node->job < 0
                              ? UINT32_C(1) << host
                              : story_processes(&story->jobs[node->job],
                                                &story_state(node)->base_list);

    for (int j = 0; j < story->nall; j++) {
        if (story->nodes[j].place != place)
            continue;
        if (node->guests[j] != 0 && is_gone(story, host, j))
            node->guests[j] = 0;
        if (list >> j & 1 || node->guests[j] != 0)
            return true;
    }
    return false;
}

/* Calls one of the others. */
static void call(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    const int j = sim_below(&story->draw, story->nall);
    struct node *host = &story->nodes[j];

    if (j == i || !is_running(host) || !story_reaches(story, i, j) ||
        !story_is_open(story, j) || is_taken(story, j, node->place))
        return;
    memset(node->guests, 0,
           sizeof node->guests); /* they find that world, too */
    node->ticket = host->guests[i] = ++story->ntickets;
    host->is_admitted[i] = false;
    node->host_rank = j;
    node->heard_host = story->now;
    node->phase = WAITING;
    SAY("%d is a guest of %d", i, j);
}

void story_look_for_host(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    if (node->phase == CALLING && story->now - node->came > LIMIT)
        story_end(story, i, "nobody has let it in");
    else if (node->phase == CALLING && sim_once_in(&story->draw, 4))
        call(story, i);
    if (node->phase == CALLING && node->place == 0)
        story_found(story, i);
    if (node->phase != WAITING)
        return;
    if ((is_left(story, i) && sim_once_in(&story->draw, 2)) ||
        story->now - node->heard_host > PATIENCE_WITH_HOST) {
        node->host_rank = -1;
        node->came = story->now;
        node->phase = CALLING;
    }
}

int story_count_guests(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    int n = 0;

    for (int g = 0; g < story->nall; g++) {
        if (node->guests[g] != 0 && is_gone(story, i, g))
            node->guests[g] = 0;
        n += node->guests[g] != 0;
    }
    return n;
}

void story_list_guests(struct story *story, int i, uint16_t *tickets)
{
    struct node *node = &story->nodes[i];
    const int room =
        story->nplaces -
        (node->job < 0 ? 1
                       : hvd__member_set_count(&story_state(node)->base_list));

    if (room <= 0 || story->njobs >= MOST_JOBS - 1)
        return;
    for (int g = 0; g < story->nall; g++) {
        struct node *guest = &story->nodes[g];

        if (node->guests[g] == 0)
            continue;
        if (is_gone(story, i, g)) {
            node->guests[g] = 0;
        } else if (is_running(guest) && story_reaches(story, i, g)) {
            tickets[g] = node->guests[g];
            guest->heard_host = story->now;
        } else if (sim_once_in(&story->draw, 3)) {
            node->guests[g] = 0; /* it has not answered thrice */
        }
    }
}

void story_admit(struct story *story, int i, int job)
{
    struct node *node = &story->nodes[i];

    for (int g = 0; g < story->nall; g++) {
        const uint16_t ticket = story->jobs[job].tickets[g];

        if (ticket == 0 || node->guests[g] != ticket)
            continue;
        node->is_admitted[g] = true;
        story_send(story, (struct event){.kind = ADMIT,
                                         .to = g,
                                         .from = i,
                                         .job = job,
                                         .number = ticket});
    }
}

void story_hear_admission(struct story *story, struct event *event)
{
    struct node *node = &story->nodes[event->to];

    if (node->phase != WAITING || node->ticket != event->number ||
        !story_reaches(story, event->from, event->to))
        return;
    node->phase = STARTING;
    node->to_job = event->job;
    node->to_round = 0;
    node->meeting = GREET;
    node->started_at = story->now;
    node->bad_since = -1;
    story_meet(story, event->to);
}

bool story_lacks_guest(const struct story *story, int i)
{
    const struct node *node = &story->nodes[i];

    for (int g = 0; g < story->nall; g++)
        if (node->is_admitted[g] && is_gone(story, i, g))
            return true;
    return node->host_rank >= 0 && is_left(story, i);
}

void story_settle_guests(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    for (int g = 0; g < story->nall; g++)
        if (node->is_admitted[g]) {
            node->is_admitted[g] = false;
            node->guests[g] = 0;
        }
    node->host_rank = -1;
    node->ticket = 0;
}
