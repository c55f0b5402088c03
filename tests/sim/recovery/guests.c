/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guests.c - the guests of a process. transport/tcp/guests.c decides; this does
 * for it what lobby.c does: it sends the notes, and closes the connections of
 * those who are guests no more.
 */
#include <string.h>

#include "story.h"

#define ANSWER (100 * MS)

void story_init_lobby(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    node->guests.size = node->guests.most = story->nplaces;
    node->guests.is_member = node->is_member;
    node->guests.list = node->guest_list;
    node->seeker.guests = &node->guests;
    node->seeker.is_absent = node->is_absent;
    node->seeker.rank = node->place;
    node->seeker.host = -1;
}

void story_shed_guests(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    for (int place = 0; place < story->nplaces; place++) {
        if (node->guest_list[place].ticket != 0)
            continue;
        story_close_link(story, node->guest_links[place], i);
        node->guest_links[place] = 0;
    }
}

static void drop_if_gone(struct story *story, int i, int place)
{
    struct node *node = &story->nodes[i];

    if (node->guest_links[place] == 0 ||
        !story_is_gone(story, node->guest_links[place], i))
        return;
    hvd__guests_drop(&node->guests, place);
    story_shed_guests(story, i);
}

void story_set_members(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    const struct job *job = &story->jobs[node->job];
    int places[MOST], n = 0;

    for (int m = 0; m < job->n; m++)
        if (hvd__member_set_has(&story_state(node)->base_list, m))
            places[n++] = story->nodes[job->who[m]].place;
    hvd__guests_members(&node->guests, places, n);
}

/* A process that is between two worlds drives no connection, so that whoever
 * calls it waits. */
static bool is_driving(const struct node *node)
{
    return node->phase != LEAVING && node->phase != FINDING;
}

void story_take_call(struct story *story, struct event *event)
{
    struct node *node = &story->nodes[event->to];
    const int place = story->nodes[event->from].place;
    struct event reply = {.kind = REPLY,
                          .from = event->to,
                          .to = event->from,
                          .round = event->round};

    if (!story_reaches(story, event->from, event->to))
        return; /* the caller waits in vain */
    if (node->is_dead || node->phase == ENDED) {
        reply.number = NOBODY_LISTENS;
        reply.at = story->now + story_delay(story);
        story_push(story, reply);
        return;
    }
    if (!is_driving(node)) {
        event->at = story->now + 5 * MS;
        story_push(story, *event);
        return;
    }
    drop_if_gone(story, event->to, place);
    if (story->nlinks + 1 == MOST_LINKS ||
        hvd__guests_judge(&node->guests, place) != HVD__ANSWER_WELCOME) {
        story_send(story, reply);
        return;
    }
    node->guest_links[place] = story_open_link(story, event->from, event->to);
    hvd__guests_take(&node->guests, place, node->guest_links[place]);
    story_send_on(story, node->guest_links[place], reply);
}

void story_hear_guest(struct story *story, const struct event *event)
{
    struct node *node = &story->nodes[event->to];
    const int place = story->nodes[event->from].place;

    if (node->guest_links[place] == event->link)
        hvd__guests_hear(&node->guests, place);
}

void story_ping_guests(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    for (int place = 0; place < story->nplaces; place++)
        drop_if_gone(story, i, place);
    hvd__guests_ping(&node->guests);
    for (int place = 0; place < story->nplaces; place++)
        if (node->guest_links[place] != 0)
            story_send_on(story, node->guest_links[place],
                          (struct event){.kind = NOTE,
                                         .number = HVD__NOTE_PING,
                                         .from = i});
    node->is_listing = true;
    node->list_until = story->now + ANSWER;
}

bool story_has_listed(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    for (int place = 0; place < story->nplaces; place++)
        drop_if_gone(story, i, place);
    return hvd__guests_awaited(&node->guests) == 0 ||
           story->now >= node->list_until;
}

int story_list_guests(struct story *story, int i, int64_t *tickets)
{
    struct node *node = &story->nodes[i];
    const int n = hvd__guests_list(&node->guests, tickets);

    node->is_listing = false;
    story_shed_guests(story, i);
    return n;
}

void story_admit(struct story *story, int i, int job)
{
    struct node *node = &story->nodes[i];

    for (int place = 0; place < story->nplaces; place++)
        if (hvd__guests_admit(&node->guests, place,
                              story->jobs[job].tickets[place]))
            story_send_on(story, node->guest_links[place],
                          (struct event){.kind = NOTE,
                                         .number = HVD__NOTE_ADMIT,
                                         .from = i,
                                         .job = job});
}

bool story_lacks_guest(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    for (int place = 0; place < story->nplaces; place++)
        if (node->guest_list[place].is_admitted &&
            story_is_gone(story, node->guest_links[place], i))
            return true;
    return node->host_link != 0 && story_is_gone(story, node->host_link, i);
}

void story_settle_guests(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    hvd__guests_settle(&node->guests);
    story_shed_guests(story, i);
    story_close_link(story, node->host_link, i);
    node->host_link = 0;
}
