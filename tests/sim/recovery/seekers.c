/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seekers.c - processes that are in no world, and look for one.
 * transport/tcp/seeker.c decides; this does for it what enter.c and sender.c
 * do: it calls the others, ever less often, and tells it who has answered and
 * what the host has said. A process of place 0 that comes back must not found a
 * world while there is one.
 */
#include <string.h>

#include "story.h"

#define PATIENCE_WITH_HOST (SILENCE + 500 * MS)
#define SETTLED (150 * MS)
#define FIRST_DELAY (2 * MS)
#define LAST_DELAY (60 * MS)
/* The time that a call may take. */
#define CALL_LIMIT SILENCE

/* Begins to call, and forgets all calls before. */
static void begin_calls(struct story *story, struct node *node)
{
    node->calls++;
    node->phase = CALLING;
    for (int place = 0; place < story->nplaces; place++) {
        node->call_at[place] = story->now;
        node->call_delay[place] = FIRST_DELAY;
        node->is_calling[place] = false;
        node->answers[place] = 0;
    }
}

void story_seek(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    node->seeker.times =
        (struct hvd__seeker_times){LIMIT, 0, PATIENCE_WITH_HOST, SETTLED};
    node->seeker.least = story->least;
    node->is_listing = false;
    hvd__guests_shut(&node->guests);
    story_shed_guests(story, i);
    memset(node->is_absent, 0, sizeof node->is_absent);
    memset(node->is_member, 0, sizeof node->is_member);
    node->guests.nmembers = 0;
    hvd__seeker_begin(&node->seeker, story->now);
    begin_calls(story, node);
}

/* Ends all calls but that which has led to this process's host, if any. */
static void end_calls(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    node->calls++;
    for (int place = 0; place < story->nplaces; place++) {
        if (node->answers[place] != node->host_link)
            story_close_link(story, node->answers[place], i);
        node->answers[place] = 0;
    }
}

/* ------------------------------------------------------------------ calls */

/* Returns the process that listens at a place, or -1. Whoever has come listens
 * until it ends, also between two worlds. */
static int listener_of(const struct story *story, int place)
{
    for (int j = 0; j < story->nall; j++) {
        const struct node *node = &story->nodes[j];

        if (node->place == place && !node->is_dead && node->phase != AWAY &&
            node->phase != ENDED)
            return j;
    }
    return -1;
}

static void end_call(struct story *story, struct node *node, int place,
                     bool is_absent)
{
    node->is_absent[place] = is_absent;
    node->is_calling[place] = false;
    node->call_at[place] = story->now + node->call_delay[place];
    node->call_delay[place] *= 2;
    if (node->call_delay[place] > LAST_DELAY)
        node->call_delay[place] = LAST_DELAY;
}

/* The first process of a place stands for the kernel of its host, if nobody
 * listens there. */
static void call(struct story *story, int i, int place)
{
    struct node *node = &story->nodes[i];
    const int listener = listener_of(story, place);

    node->is_calling[place] = true;
    node->call_at[place] = story->now + CALL_LIMIT;
    if (listener >= 0)
        story_send(story, (struct event){.kind = CALL,
                                         .to = listener,
                                         .from = i,
                                         .round = node->calls});
    else if (story_reaches(story, i, place))
        story_push(story, (struct event){.kind = REPLY,
                                         .at = story->now + story_delay(story),
                                         .to = i,
                                         .from = place,
                                         .number = NOBODY_LISTENS,
                                         .round = node->calls});
}

static void call_others(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    for (int place = 0; place < story->nplaces; place++) {
        if (place == node->place || node->answers[place] != 0 ||
            story->now < node->call_at[place])
            continue;
        if (node->is_calling[place])
            end_call(story, node, place, false);
        else
            call(story, i, place);
    }
}

void story_take_reply(struct story *story, struct event *event)
{
    struct node *node = &story->nodes[event->to];
    const int place = story->nodes[event->from].place;

    if (event->link != 0 && !story_arrives(story, event))
        return;
    if (node->phase != CALLING || event->round != node->calls) {
        story_close_link(story, event->link, event->to);
        return;
    }
    if (event->link != 0) {
        story_close_link(story, node->answers[place], event->to);
        node->answers[place] = event->link;
        node->is_absent[place] = false;
    } else if (story_reaches(story, event->from, event->to)) {
        end_call(story, node, place, event->number == NOBODY_LISTENS);
    }
}

/* The first who answers is the host. */
static void look_for_host(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    for (int place = 0; place < story->nplaces; place++) {
        if (node->answers[place] == 0)
            continue;
        node->host_link = node->answers[place];
        hvd__seeker_find(&node->seeker, place, story->now);
        end_calls(story, i);
        story_shed_guests(story, i);
        node->phase = WAITING;
        SAY("%d is a guest of %d", i, story_link(story, node->host_link)->host);
        return;
    }
}

/* --------------------------------------------------------------- the host */

/* The host is gone, or has been left. */
static void leave_host(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    story_close_link(story, node->host_link, i);
    node->host_link = 0;
    begin_calls(story, node);
}

static void lose_host(struct story *story, int i)
{
    hvd__seeker_lose(&story->nodes[i].seeker);
    leave_host(story, i);
}

/* Returns the admission of which a note tells. */
static struct hvd__admission admission_of(const struct story *story, int number,
                                          int *places)
{
    const struct job *job = &story->jobs[number];

    for (int m = 0; m < job->n; m++)
        places[m] = story->nodes[job->who[m]].place;
    return (struct hvd__admission){
        .n = job->n, .nold = job->nelders, .ranks = places};
}

static void hear_host(struct story *story, const struct event *event)
{
    struct node *node = &story->nodes[event->to];
    int places[MOST];
    const struct hvd__admission admission =
        admission_of(story, event->job, places);

    switch (hvd__seeker_hear(&node->seeker, (enum hvd__note_kind)event->number,
                             &admission, story->now)) {
    case HVD__SEEKER_ANSWERS:
        story_send_on(story, event->link,
                      (struct event){.kind = NOTE,
                                     .number = HVD__NOTE_PONG,
                                     .from = event->to});
        return;
    case HVD__SEEKER_ENTERS:
        story_meet_in_job(story, event->to, event->job);
        return;
    case HVD__SEEKER_LOSES: leave_host(story, event->to); return;
    default: story_end(story, event->to, "the job has ended"); return;
    }
}

void story_take_note(struct story *story, struct event *event)
{
    struct node *node = &story->nodes[event->to];
    const int guest = story_link(story, event->link)->guest;

    if (!story_arrives(story, event))
        return;
    if (guest != event->to) {
        if (event->kind == NOTE)
            story_hear_guest(story, event);
    } else if (node->phase == WAITING && node->host_link == event->link) {
        if (event->kind == NOTE)
            hear_host(story, event);
        else
            lose_host(story, event->to);
    }
}

/* --------------------------------------------------------------- founding */

/* Makes the job of those who are let in. */
static int make_job(struct story *story, const int64_t *tickets,
                    const struct hvd__admission *admission, int i)
{
    struct job *made = &story->jobs[story->njobs];

    *made = (struct job){.parent = -1};
    for (int k = 0; k < admission->n; k++) {
        const int place = admission->ranks[k];
        const uint32_t ticket = (uint32_t)tickets[place];

        made->tickets[place] = ticket;
        made->who[made->n++] =
            ticket == 0 ? i : story_link(story, ticket)->guest;
    }
    return story->njobs++;
}

static void found(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    int64_t tickets[MOST_FIRST];
    int places[MOST], n = story_list_guests(story, i, tickets);
    struct hvd__admission admission = {.ranks = places};

    if (story->njobs >= MOST_JOBS - 1 ||
        !hvd__seeker_found(&node->seeker, tickets, n, &admission))
        return;
    node->to_job = make_job(story, tickets, &admission, i);
    SAY("%d founds job %d of %d", i, node->to_job, admission.n);
    if (admission.n < story->least)
        story_fail(story, "too few found a world", i);
    end_calls(story, i);
    story->ngrowths++;
    memset(story->nmessages, 0, sizeof story->nmessages);
    story_admit(story, i, node->to_job);
    story_meet_in_job(story, i, node->to_job);
}

void story_look_for_world(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    if (node->is_listing) {
        if (story_has_listed(story, i))
            found(story, i);
        return;
    }
    if (node->phase == CALLING) {
        call_others(story, i);
        look_for_host(story, i);
    }
    if (node->phase == WAITING && story_is_gone(story, node->host_link, i))
        lose_host(story, i); /* it was before this process looked */
    switch (hvd__seeker_step(&node->seeker, story->now)) {
    case HVD__SEEKER_LEAVES: leave_host(story, i); return;
    case HVD__SEEKER_FOUNDS: story_ping_guests(story, i); return;
    case HVD__SEEKER_GIVES_UP:
        story_end(story, i, "nobody has let it in");
        return;
    default: return;
    }
}
