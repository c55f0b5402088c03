/* SPDX-License-Identifier: Apache-2.0 */
/* take.c - what becomes of each event. */
#include <stdlib.h>

#include "story.h"

static void refuse(struct story *story, const struct event *event)
{
    if (story->has_refusals)
        story_push(story, (struct event){.at = story->now + story_delay(story),
                                         .kind = REFUSAL,
                                         .to = event->from,
                                         .from = event->to,
                                         .job = event->job});
}

static void take_letter(struct story *story, struct event *event)
{
    struct node *node = &story->nodes[event->to];

    if (!story_reaches(story, event->from, event->to))
        return;
    if (node->is_dead || (node->phase == ENDED && ++node->farewells > 3) ||
        (node->was_in[event->job] && !node->in[event->job])) {
        refuse(story, event);
        return;
    }
    if (!node->in[event->job])
        return;
    node->refusals[event->job][event->from] = 0;
    hvd__survivors_hear(node->in[event->job], event->letter);
    story_flush(story, event->to, event->job);
}

static void take_refusal(struct story *story, const struct event *event)
{
    struct node *node = &story->nodes[event->to];
    const struct job *job = &story->jobs[event->job];

    if (node->phase != ENDED && node->in[event->job] &&
        story_reaches(story, event->from, event->to) &&
        ++node->refusals[event->job][event->from] >= 2)
        hvd__survivors_suspect(node->in[event->job],
                               story_member(job, event->from));
}

/* Messages of a start come over connections, which are made again, and whose
 * data is sent again until it arrives, while both sides want that. */
static void take_meeting(struct story *story, struct event *event)
{
    struct node *node = &story->nodes[event->to];
    const struct node *from = &story->nodes[event->from];
    uint32_t *met = &node->met[event->job][event->from][event->meeting];

    if (story_reaches(story, event->from, event->to)) {
        if (event->round + 1 > *met)
            *met = event->round + 1;
        if (event->meeting == COMPARE)
            story_hear_share(story, event);
    } else if (!from->is_dead &&
               (from->phase == STARTING || from->phase == IN_WORLD) &&
               from->to_job == event->job && from->to_round == event->round) {
        event->at = story->now + 30 * MS;
        story_push(story, *event);
    }
}

/* A member asks over the connections of its world. */
static void take_ask(struct story *story, struct event *event)
{
    const struct node *from = &story->nodes[event->from];

    if (story_reaches(story, event->from, event->to)) {
        story_hear_share(story, event);
    } else if (!from->is_dead && from->phase == IN_WORLD &&
               from->job == event->job) {
        event->at = story->now + 30 * MS;
        story_push(story, *event);
    }
}

void story_take(struct story *story, struct event *event)
{
    struct node *node;

    if (event->kind == ACTION) {
        story_act(story, &story->actions[event->to]);
        return;
    }
    node = &story->nodes[event->to];
    if (node->is_stopped && !node->is_dead && event->kind != TICKING) {
        if (event->kind == LETTER && !event->is_held &&
            ++node->nheld > MOST_HELD)
            return;
        event->is_held = true;
        event->at = story->now + 7 * MS;
        story_push(story, *event);
        event->letter = NULL; /* it is in the queue again */
        return;
    }
    if (event->kind == LETTER) {
        take_letter(story, event);
    } else if (event->kind == CALL) {
        story_take_call(story, event);
    } else if (node->is_dead) {
        return;
    } else if (event->kind == TICKING && !node->is_stopped) {
        story_tick(story, event->to);
        story_push(story, (struct event){.at = story->now + TICK,
                                         .kind = TICKING,
                                         .to = event->to});
    } else if (event->kind == MEETING) {
        take_meeting(story, event);
    } else if (event->kind == ASK) {
        take_ask(story, event);
    } else if (event->kind == REPLY) {
        story_take_reply(story, event);
    } else if (event->kind == NOTE || event->kind == HANGUP) {
        story_take_note(story, event);
    } else if (event->kind == REFUSAL) {
        take_refusal(story, event);
    }
}
