/* SPDX-License-Identifier: Apache-2.0 */
/*
 * found.c - processes that are in no world look for each other, and the one of
 * place 0 founds a world (transport/tcp/enter.c). It takes the others as
 * guests, until all are there, or enough are, nobody has come for a while, and
 * nothing listens at the places of the others. All members of that world are
 * guests: there is none that it could have grown from. A process of place 0
 * that comes back must not found one while there is a world.
 */
#include <string.h>

#include "story.h"

#define SETTLED (150 * MS)

bool story_is_open(const struct story *story, int host)
{
    const struct node *node = &story->nodes[host];

    return node->phase == IN_WORLD ||
           (node->place == 0 && node->phase == CALLING);
}

/* Returns whether nothing listens at a place, and its host says so. Whoever has
 * come listens until it ends, also between two worlds. */
static bool is_absent(const struct story *story, int i, int place)
{
    if (!story_reaches(story, i, place)) /* the host of the place's first */
        return false;
    for (int j = 0; j < story->nall; j++) {
        const struct node *node = &story->nodes[j];

        if (node->place == place && !node->is_dead && node->phase != AWAY &&
            node->phase != ENDED)
            return false;
    }
    return true;
}

static bool has_guest_of(const struct story *story, const struct node *node,
                         int place)
{
    for (int g = 0; g < story->nall; g++)
        if (node->guests[g] != 0 && story->nodes[g].place == place)
            return true;
    return false;
}

static bool may_found(const struct story *story, int i)
{
    const struct node *node = &story->nodes[i];

    if (node->nguests + 1 == story->nplaces)
        return true;
    if (node->nguests + 1 < story->least ||
        story->now - node->guest_came < SETTLED)
        return false;
    for (int place = 1; place < story->nplaces; place++)
        if (!has_guest_of(story, node, place) && !is_absent(story, i, place))
            return false;
    return true;
}

/* Makes the job of a process and its guests, in the order of their places. */
static int make_job(struct story *story, int i, const uint16_t *tickets)
{
    struct job *made = &story->jobs[story->njobs];

    *made = (struct job){.parent = -1};
    made->who[made->n++] = i;
    for (int place = 1; place < story->nplaces; place++)
        for (int g = 0; g < story->nall; g++)
            if (tickets[g] != 0 && story->nodes[g].place == place) {
                made->tickets[g] = tickets[g];
                made->who[made->n++] = g;
            }
    return story->njobs++;
}

void story_found(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    uint16_t tickets[MOST] = {0};
    int n = story_count_guests(story, i), nanswers = 0;

    if (n != node->nguests)
        node->guest_came = story->now;
    node->nguests = n;
    if (!may_found(story, i) || story->njobs >= MOST_JOBS - 1)
        return;
    story_list_guests(story, i, tickets);
    for (int g = 0; g < story->nall; g++)
        nanswers += tickets[g] != 0;
    if (nanswers < n || nanswers + 1 < story->least)
        return;
    node->to_job = make_job(story, i, tickets);
    SAY("%d founds job %d of %d", i, node->to_job, nanswers + 1);
    node->phase = STARTING;
    node->to_round = 0;
    node->meeting = GREET;
    node->started_at = story->now;
    node->bad_since = -1;
    story->ngrowths++;
    memset(story->nmessages, 0, sizeof story->nmessages);
    story_admit(story, i, node->to_job);
    story_meet(story, i);
}
