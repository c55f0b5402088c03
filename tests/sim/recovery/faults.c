/* SPDX-License-Identifier: Apache-2.0 */
/* faults.c - draws the faults of a story, and does them. */
#include <stdio.h>

#include "story.h"

void story_act(struct story *story, const struct action *action)
{
    static const char *const verbs[] = {"kill", "stop", "wake", "cut",
                                        "join", "part", "mend"};
    struct node *node = &story->nodes[action->which];

    SAY("%s %d %d", verbs[action->verb], action->which, action->other);
    switch (action->verb) {
    case KILL: node->is_dead = true; break;
    case STOP:
        node->is_stopped = true;
        node->frozen_since = story->now;
        break;
    case WAKE:
        if (node->is_stopped && !node->is_dead) {
            node->is_stopped = false;
            node->nheld = 0;
            story_push(story, (struct event){.at = story->now,
                                             .kind = TICKING,
                                             .to = action->which});
        }
        break;
    case CUT: story->is_cut[action->which] = true; break;
    case JOIN: story->is_cut[action->which] = false; break;
    case PART:
    case MEND:
        story->is_parted[action->which][action->other] =
            story->is_parted[action->other][action->which] =
                action->verb == PART;
    }
    story->last_action = story->now;
    story->nleft--;
}

static void plan(struct story *story, int64_t at, struct action action)
{
    if (story->nactions == MOST_ACTIONS)
        return;
    story->actions[story->nactions] = action;
    story_push(story, (struct event){
                          .at = at, .kind = ACTION, .to = story->nactions++});
    story->nleft++;
}

static int64_t length(struct story *story)
{
    return sim_once_in(&story->draw, 2) ? sim_below(&story->draw, 400) * MS
                                        : sim_below(&story->draw, 4000) * MS;
}

static void plan_fault(struct story *story, int64_t at, int kinds)
{
    int which = sim_below(&story->draw, story->n),
        host = sim_below(&story->draw, story->nhosts),
        other = sim_below(&story->draw, story->nhosts);
    int64_t until = at + length(story);
    bool is_forever = sim_once_in(&story->draw, 2);
    int kind = sim_below(&story->draw, 8);

    if (kind == 5 && kinds & 2) {
        story->nstops++;
        plan(story, at, (struct action){STOP, which, 0});
        if (!is_forever)
            plan(story, until, (struct action){WAKE, which, 0});
    } else if (kind == 6 && kinds & 4) {
        story->ncuts++;
        plan(story, at, (struct action){CUT, host, 0});
        if (!is_forever)
            plan(story, until, (struct action){JOIN, host, 0});
    } else if (kind == 7 && kinds & 8 && host != other) {
        story->nparts++;
        plan(story, at, (struct action){PART, host, other});
        if (!is_forever)
            plan(story, until, (struct action){MEND, host, other});
    } else if (kinds & 1) {
        plan(story, at, (struct action){KILL, which, 0});
    }
}

void story_plan_faults(struct story *story)
{
    int nfaults = 1 + sim_below(&story->draw, 6),
        kinds = sim_once_in(&story->draw, 3) ? 1
                : sim_once_in(&story->draw, 6)
                    ? 4
                    : 1 + 2 * sim_below(&story->draw, 8);
    int64_t at = sim_below(&story->draw, 200) * MS;

    if (kinds == 4)
        nfaults = 12;
    for (int i = 0; i < nfaults; i++) {
        plan_fault(story, at, kinds);
        if (kinds == 4 && story->ncuts > 0)
            break;
        at += sim_once_in(&story->draw, 6)
                  ? sim_below(&story->draw, 3000) * MS
                  : sim_below(&story->draw, 150000) * (MS / 1000);
    }
}
