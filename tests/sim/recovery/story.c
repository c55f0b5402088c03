/* SPDX-License-Identifier: Apache-2.0 */
/*
 * story.c - a story drawn from a seed: processes on hosts; a network that
 * delays, loses, doubles and reorders letters; and up to six faults, most of
 * them while the others are busy with the one before.
 *
 *     kill    a process ends; its host's others learn it at once
 *     stop    it does nothing for a while, or ever; the register of its host
 *             has it as frozen after the silence
 *     cut     a host is cut off from all others, for a while or for ever
 *     part    two hosts do not reach each other, for a while or for ever
 *
 * A member in a world leaves it when it finds that another one of it is dead,
 * silent or has left it. It is ready a moment later, or, rarely, much later.
 * When a list is decided it starts: the members of the list exchange messages,
 * as hvd_init does, and who has heard all others has started. So members differ
 * in whether a world has started when one fails in between.
 *
 * In half of the stories workers come, to new places or to those of others that
 * have died, and worlds let them in (grow.c, guests.c). Then a message of those
 * that grow may also be what somebody dies of, or what a network is cut at. In
 * half of the others the last members are spares. In a third of the stories in
 * which workers come there is no world in the beginning, and they found one
 * (seekers.c).
 *
 * These must hold:
 *
 *     one list    members that start a round have the same list
 *     one line    of two worlds in which all have started, the later has a
 *                 member of the earlier, or one that came to be in a world with
 *                 such a one, and otherwise only processes that had been in no
 *                 world before: nobody goes on beside it
 *     one first   nobody founds a world while a process is in one, or may come
 *                 to be in one again
 *     end         everybody comes to a world in which all are, or waits as a
 *                 spare of a world that stands, or ends in words
 *     size        if processes only die, and letters arrive, the world is as
 *                 large as it was, or has all that live
 *     the rest    if processes only die, and none of a host's last, or one host
 *                 is cut off alone and nobody comes: those that should are in
 *                 that world
 */
#include <stdlib.h>

#include "story.h"

/* In every second story workers come, to new places or to those of others that
 * have died. */
static void draw_growth(struct story *story)
{
    const int nnew = sim_below(&story->draw, MOST_FIRST - story->n + 1);
    const int nback = sim_below(&story->draw, 5);

    story->nplaces = story->n + nnew;
    story->nall = story->nplaces + nback;
    story->period = (10 + sim_below(&story->draw, 200)) * MS;
    story->least = 1 + sim_below(&story->founding, story->nplaces);
    story->founds = sim_once_in(&story->founding, 3);
    if (story->founds)
        story->n = story->size = 0;
}

static void draw_sizes(struct story *story)
{
    story->nhosts = 1 + sim_below(&story->draw, 4);
    story->n = 2 + sim_below(&story->draw, MOST_FIRST - 1);
    story->size = story->nplaces = story->nall = story->n;
    if (sim_once_in(&story->draw, 2)) {
        story->n = story->size = 1 + sim_below(&story->draw, 6);
        draw_growth(story);
    } else if (sim_once_in(&story->draw, 2)) {
        story->size -= sim_below(&story->draw, story->n < 4 ? story->n : 4);
    }
    if (story->nhosts > story->nall)
        story->nhosts = story->nall;
}

static void place(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    node->place =
        i < story->nplaces ? i : sim_below(&story->draw, story->nplaces);
    node->host = node->place != i    ? story->nodes[node->place].host
                 : i < story->nhosts ? i
                                     : sim_below(&story->draw, story->nhosts);
    node->job = node->to_job = i < story->n ? 0 : -1;
    node->first_world = -1;
    story_init_lobby(story, i);
    for (int j = 0; j < MOST; j++)
        for (int k = 0; k < 3; k++)
            node->heard[j][k].job = -1;
    if (i >= story->n)
        node->phase = AWAY;
    else if (i >= story->size)
        node->phase = LEAVING; /* nothing, and at once */
    else
        node->phase = IN_WORLD;
    node->meeting = MEETINGS;
    node->bad_since = node->enter_at = -1;
    node->patience = sim_below(&story->draw, 50) * MS;
    story_push(story, (struct event){.at = sim_below(&story->draw, 5) * MS,
                                     .kind = TICKING,
                                     .to = i});
}

/* The world that stands in the beginning, if one does. */
static void found(struct story *story)
{
    struct job *job = &story->jobs[story->njobs++];

    *job = (struct job){.n = story->n, .parent = -1};
    for (int i = 0; i < story->n; i++)
        job->who[i] = i;
    for (int i = 0; i < story->n; i++)
        story_take_part(story, i, 0);
    for (int i = 0; i < story->size; i++)
        story_note_world(story, i, 0, 0, (UINT32_C(1) << story->size) - 1);
    for (int i = 0; i < story->size && story_grows(story); i++)
        story_set_members(story, i);
    if (!story->founds)
        story->counts->started--; /* it has not done so in this story */
}

static void begin(struct story *story)
{
    draw_sizes(story);
    story->loss =
        sim_once_in(&story->draw, 2) ? sim_below(&story->draw, 25) : 0;
    story->doubles =
        sim_once_in(&story->draw, 2) ? sim_below(&story->draw, 20) : 0;
    story->slow = 2 + sim_below(&story->draw, 60);
    story->has_refusals = sim_once_in(&story->draw, 2);
    story->hands_over = sim_once_in(&story->draw, 2);
    for (int i = 0; i < story->nall; i++)
        place(story, i);
    found(story);
    story_plan_faults(story);
}

static void close_story(struct story *story)
{
    while (story->nevents > 0)
        free(story_pop(story).letter);
    free(story->heap);
    story->heap = NULL;
    for (int i = 0; i < story->nall; i++)
        for (int k = 0; k < story->njobs; k++)
            story_drop_out(story, i, k);
}

bool sim_recovery(uint64_t seed, bool verbose, struct sim_counts *counts)
{
    static struct story story;
    int64_t over_since = -1;

    story = (struct story){.draw = sim_stream(seed, 1),
                           .network = sim_stream(seed, 2),
                           .founding = sim_stream(seed, 3),
                           .parting = sim_stream(seed, 4),
                           .calling = sim_stream(seed, 5),
                           .seed = seed,
                           .is_verbose = verbose,
                           .counts = counts};
    begin(&story);
    while (story.nevents > 0 && !story.is_bad) {
        struct event event = story_pop(&story);

        story.now = event.at;
        story_take(&story, &event);
        free(event.letter);
        if (!story_is_over(&story))
            over_since = -1;
        else if (over_since < 0)
            over_since = story.now;
        if (over_since >= 0 && story.now - over_since > 100 * MS)
            break;
        story_check_hang(&story);
    }
    if (!story.is_bad)
        story_check_end(&story);
    counts->stories++;
    close_story(&story);
    return !story.is_bad;
}
