/* SPDX-License-Identifier: Apache-2.0 */
/* worlds.c - the worlds that have started, and whether they are one line. */

#include "story.h"

/* Returns 1 if the one world may come before the other, -1 if behind it, 0 if
 * they have started beside each other. A job's worlds come behind that of the
 * round in which it was made. */
static int compare(const struct story *story, const struct world *a,
                   const struct world *b)
{
    uint32_t round = b->round;

    if (a->job == b->job)
        return a->round < b->round ? 1 : -1;
    if (a->job > b->job)
        return -compare(story, b, a);
    for (int job = b->job; job > a->job; job = story->jobs[job].parent)
        round = story->jobs[job].round;
    for (int job = b->job; job >= 0; job = story->jobs[job].parent)
        if (story->jobs[job].parent == a->job)
            return a->round < round ? 1 : 0;
    return 0;
}

/* Adds those with whom the members of a world came to be in worlds between that
 * and a later one, which some of each have started. */
static uint32_t follow(const struct story *story, const struct world *early,
                       const struct world *late)
{
    uint32_t line = early->list;

    for (int k = 0; k < story->nworlds * story->nworlds; k++) {
        const struct world *world = &story->worlds[k % story->nworlds];

        if (world != early && world != late &&
            compare(story, early, world) > 0 &&
            compare(story, world, late) > 0 && (world->list & line) != 0)
            line |= world->list;
    }
    return line;
}

/* Of two worlds that started the later goes on with members of the earlier, or
 * with spares or guests that these have let in, and has nobody else but such as
 * had been in no world. */
static bool is_one_line(const struct story *story, const struct world *early,
                        const struct world *late)
{
    if ((follow(story, early, late) & late->list) == 0)
        return false;
    for (int i = 0; i < story->nall; i++) {
        const int first = story->nodes[i].first_world;

        if ((late->list & ~early->list) >> i & 1 && first >= 0 &&
            &story->worlds[first] != late &&
            compare(story, &story->worlds[first], early) > 0)
            return false;
    }
    return true;
}

/* Returns the job from which one has grown in the end. */
static int root_of(const struct story *story, int job)
{
    while (job >= 0 && story->jobs[job].parent >= 0)
        job = story->jobs[job].parent;
    return job;
}

/* Returns whether a process may be in a world that has grown from a job. */
static bool is_lived_in(const struct story *story, int root)
{
    for (int i = 0; i < story->nall; i++) {
        const struct node *node = &story->nodes[i];

        if (!node->is_dead && node->job >= 0 && node->phase != ENDED &&
            root_of(story, node->job) == root)
            return true;
    }
    return false;
}

static struct world *find(struct story *story, int job, uint32_t round)
{
    for (int k = 0; k < story->nworlds; k++)
        if (story->worlds[k].job == job && story->worlds[k].round == round)
            return &story->worlds[k];
    return NULL;
}

static void check(struct story *story, const struct world *world, int i)
{
    for (int k = 0; k < story->nworlds; k++) {
        const struct world *other = &story->worlds[k];
        int order;

        if (other == world || other->nstarted < __builtin_popcount(other->list))
            continue;
        if (root_of(story, other->job) != root_of(story, world->job)) {
            if (is_lived_in(story, root_of(story, other->job)))
                story_fail(story, "a second world was founded", i);
            continue;
        }
        order = compare(story, other, world);
        if (order == 0 || !is_one_line(story, order > 0 ? other : world,
                                       order > 0 ? world : other))
            story_fail(story, "two worlds go on beside each other", i);
    }
}

void story_note_world(struct story *story, int i, int job, uint32_t round,
                      uint32_t list)
{
    struct world *world = find(story, job, round);
    struct node *node = &story->nodes[i];

    if (node->is_dead)
        return;
    if (!world && story->nworlds == MOST_WORLDS) {
        story_fail(story, "there are too many worlds", i);
        return;
    }
    if (!world) {
        world = &story->worlds[story->nworlds++];
        *world = (struct world){.job = job, .round = round, .list = list};
    }
    if (node->first_world < 0)
        node->first_world = (int)(world - story->worlds);
    if (world->list != list)
        story_fail(story, "two lists of one round have started", i);
    if (++world->nstarted < __builtin_popcount(list))
        return;
    story->counts->started++;
    check(story, world, i);
}
