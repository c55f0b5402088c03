/* SPDX-License-Identifier: Apache-2.0 */
/* faults.c - draws the faults of a story, and who comes, and does it. */

#include "story.h"

static void plan(struct story *story, int64_t at, struct action action)
{
    if (story->nactions == MOST_ACTIONS)
        return;
    story->actions[story->nactions] = action;
    story_push(story, (struct event){
                          .at = at, .kind = ACTION, .to = story->nactions++});
    story->nleft++;
}

/* Starts a process, unless that which has its place still runs. Then it is
 * tried again. */
static void come(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    for (int j = 0; j < story->nall; j++) {
        const struct node *other = &story->nodes[j];

        if (j == i || other->place != node->place || other->is_dead ||
            other->phase == ENDED || other->phase == AWAY)
            continue;
        if (story->now < LIMIT)
            plan(story, story->now + 30 * MS, (struct action){COME, i, 0});
        return;
    }
    story_seek(story, i);
}

void story_act(struct story *story, const struct action *action)
{
    static const char *const verbs[] = {"kill", "stop", "wake", "cut",
                                        "join", "part", "mend", "come"};
    struct node *node = &story->nodes[action->which];

    SAY("%s %d %d", verbs[action->verb], action->which, action->other);
    switch (action->verb) {
    case KILL:
        node->is_dead = true;
        story_close_links(story, action->which);
        break;
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
        break;
    case COME:
        if (!node->is_dead)
            come(story, action->which);
        break;
    }
    story->last_action = story->now;
    story->nleft--;
}

/* Returns whom a message kills. */
static int choose(struct story *story, enum victim victim,
                  const struct event *event)
{
    int which = sim_below(&story->draw, story->nall);

    if (victim == SENDER)
        return event->from;
    if (victim == RECEIVER)
        return event->to;
    for (int n = 0; n < story->nall; n++, which = (which + 1) % story->nall) {
        const struct node *node = &story->nodes[which];

        if (victim == GUEST && (node->phase == WAITING ||
                                (node->phase == STARTING && node->job < 0)))
            return which;
        if (victim == LEADER && node->job >= 0 && node->in[node->job])
            return story->jobs[node->job].who[node->in[node->job]->leader];
    }
    return event->from;
}

/* Begins a fault, and plans its end. */
static void strike(struct story *story, const struct deadly *deadly,
                   const struct event *event)
{
    struct action action = {deadly->verb, choose(story, deadly->victim, event),
                            0};

    if (action.verb == CUT) {
        action.which = story->nodes[action.which].host;
        story->ncuts++;
    } else if (action.verb == PART) {
        action.which = story->nodes[event->from].host;
        action.other = story->nodes[event->to].host;
        story->nparts++;
    }
    SAY("message %d from %d to %d:", deadly->message, event->from, event->to);
    story->nleft++;
    story_act(story, &action);
    if (action.verb == KILL || deadly->length == 0)
        return;
    action.verb = action.verb == CUT ? JOIN : MEND;
    plan(story, story->now + deadly->length, action);
}

void story_strike(struct story *story, const struct event *event)
{
    const enum meeting meeting =
        event->kind == MEETING ? event->meeting : MEETINGS;

    story->nmessages[MEETINGS]++;
    if (meeting < MEETINGS)
        story->nmessages[meeting]++;
    for (int k = 0; k < story->ndeadly; k++) {
        const struct deadly *deadly = &story->deadly[k];

        if (deadly->growth == story->ngrowths &&
            (deadly->meeting == MEETINGS || deadly->meeting == meeting) &&
            deadly->message == story->nmessages[deadly->meeting])
            strike(story, deadly, event);
    }
}

static int64_t length(struct story *story)
{
    return sim_once_in(&story->draw, 2) ? sim_below(&story->draw, 400) * MS
                                        : sim_below(&story->draw, 4000) * MS;
}

static void plan_fault(struct story *story, int64_t at, int kinds)
{
    int which = sim_below(&story->draw, story->nall),
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

/* Plans who comes, and which messages have somebody die, or be cut off. Most
 * come at the same time as another one, or while something happens to the
 * others. */
static void plan_growth(struct story *story, bool only_deaths)
{
    int64_t at = sim_below(&story->draw, 100) * MS;

    for (int i = story->n; i < story->nall; i++) {
        if (story->founds)
            at = sim_below(&story->founding, 800) * MS;
        plan(story, at, (struct action){COME, i, 0});
        if (!sim_once_in(&story->draw, 3))
            at += sim_below(&story->draw, 400000) * (MS / 1000);
    }
    story->ndeadly = sim_below(&story->draw, MOST_DEADLY + 1);
    for (int k = 0; k < story->ndeadly; k++) {
        struct deadly *deadly = &story->deadly[k];

        deadly->growth = 1 + sim_below(&story->draw, 3);
        if (story->founds && sim_once_in(&story->founding, 3))
            deadly->growth = 0; /* before a world is founded */
        deadly->meeting = (enum meeting)sim_below(&story->draw, MEETINGS + 1);
        deadly->message =
            1 + sim_below(&story->draw, deadly->meeting < MEETINGS ? 40 : 200);
        deadly->victim = (enum victim)sim_below(&story->draw, VICTIMS);
        deadly->verb = !only_deaths && sim_once_in(&story->draw, 2)
                           ? sim_once_in(&story->draw, 2) ? CUT : PART
                           : KILL;
        deadly->length = sim_once_in(&story->draw, 2) ? 0 : length(story);
    }
}

/* Returns a process whose host has another one, which can say that it has died;
 * -1: the draw has hit none. */
static int draw_witnessed(struct story *story)
{
    const int which = sim_below(&story->parting, story->size);

    for (int j = 0; j < story->size; j++)
        if (j != which && story->nodes[j].host == story->nodes[which].host)
            return which;
    return -1;
}

/* Parts pairs of hosts for ever, and lets a process die at about that time in
 * half of these stories, so that the others agree before they have missed a
 * host. Then no watch says at once who is silent: of hosts that are parted
 * later nobody would know when a list is proposed. */
static void plan_parts(struct story *story, int64_t at)
{
    const int nparts = 1 + sim_below(&story->parting, 3),
              dies = draw_witnessed(story);

    story->only_parts = true;
    for (int k = 0; k < nparts; k++) {
        const int host = sim_below(&story->parting, story->nhosts),
                  other = sim_below(&story->parting, story->nhosts);

        if (host == other)
            continue;
        story->nparts++;
        plan(story, at + sim_below(&story->parting, 150) * MS,
             (struct action){PART, host, other});
    }
    if (dies < 0 || sim_once_in(&story->parting, 2))
        return;
    story->hands_over = false;
    plan(story, at + sim_below(&story->parting, 150) * MS,
         (struct action){KILL, dies, 0});
}

void story_plan_faults(struct story *story)
{
    int nfaults = 1 + sim_below(&story->draw, 6),
        kinds = sim_once_in(&story->draw, 3) ? 1
                : sim_once_in(&story->draw, 6)
                    ? 4
                    : 1 + 2 * sim_below(&story->draw, 8);
    int64_t at = sim_below(&story->draw, 200) * MS;

    if (!story_grows(story) && story->nhosts > 2 &&
        sim_once_in(&story->parting, 4)) {
        plan_parts(story, at);
        return;
    }
    if (kinds == 4)
        nfaults = 12;
    if (story_grows(story)) {
        plan_growth(story, kinds == 1);
        nfaults = kinds == 4 ? nfaults : sim_below(&story->draw, 4);
    }
    for (int i = 0; i < nfaults; i++) {
        plan_fault(story, at, kinds);
        if (kinds == 4 && story->ncuts > 0)
            break;
        at += sim_once_in(&story->draw, 6)
                  ? sim_below(&story->draw, 3000) * MS
                  : sim_below(&story->draw, 150000) * (MS / 1000);
    }
}
