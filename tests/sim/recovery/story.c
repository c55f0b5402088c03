/* SPDX-License-Identifier: Apache-2.0 */
/*
 * story.c - a story drawn from a seed: members on hosts, the last of which may
 * be spares, a network that delays,
 * loses, doubles and reorders letters, and up to six faults, most of them while
 * the members are busy with the one before.
 *
 *     kill    a member's process ends; its host's others learn it at once
 *     stop    it does nothing for a while, or ever; the register of its host
 *             has it as frozen after the silence
 *     cut     a host is cut off from all others, for a while or for ever
 *     part    two hosts do not reach each other, for a while or for ever
 *
 * A member in a world leaves it when it finds that another one of it is dead,
 * silent or has left it. It is ready a moment later, or, rarely, much later.
 * When a list is decided it starts: the members of the list exchange messages
 * twice, as hvd_init does, and who has heard all others twice has started. So
 * members differ in whether a world has started when one fails in between.
 *
 * These must hold:
 *
 *     one list    members that start a round have the same list
 *     one line    of two worlds in which all have started, the later has a
 *                 member of the earlier, and otherwise only spares: nobody goes
 *                 on beside it
 *     end         everybody comes to a world in which all are, or waits as a
 *                 spare of a world that stands, or ends in words
 *     size        if members only die, and letters arrive, the world is as
 * large as it was, or has all that live the rest    if members only die, and
 * none of a host's last, or one host is cut off alone: those that should are in
 * that world
 */
#include <stdio.h>
#include <stdlib.h>

#include "story.h"

static void begin(struct story *story)
{
    const struct hvd__survivors_times times = {SILENCE, LIMIT, SETTLE, RESEND,
                                               PING};

    story->nhosts = 1 + sim_below(&story->draw, 4);
    story->n = 2 + sim_below(&story->draw, MOST - 1);
    story->size = story->n;
    if (sim_once_in(&story->draw, 2))
        story->size -= sim_below(&story->draw, story->n < 4 ? story->n : 4);
    story->loss =
        sim_once_in(&story->draw, 2) ? sim_below(&story->draw, 25) : 0;
    story->doubles =
        sim_once_in(&story->draw, 2) ? sim_below(&story->draw, 20) : 0;
    story->slow = 2 + sim_below(&story->draw, 60);
    story->has_refusals = sim_once_in(&story->draw, 2);
    story->hands_over = sim_once_in(&story->draw, 2);
    if (story->nhosts > story->n)
        story->nhosts = story->n;
    for (int i = 0; i < story->n; i++) {
        struct node *node = &story->nodes[i];

        hvd__survivors_init(&node->s, story->n, i, &times);
        hvd__survivors_reserve(&node->s, story->size);
        if (i >= story->size)
            node->phase = LEAVING; /* nothing, and at once */
        node->host =
            i < story->nhosts ? i : sim_below(&story->draw, story->nhosts);
        node->bad_since = node->enter_at = -1;
        node->patience = sim_below(&story->draw, 50) * MS;
        story_push(story, (struct event){.at = sim_below(&story->draw, 5) * MS,
                                         .kind = TICKING,
                                         .to = i});
    }
    for (int i = 0; i < story->n; i++)
        for (int j = 0; j < story->n; j++)
            story->nodes[i].s.host[j] = (int16_t)story->nodes[j].host;
    story_plan_faults(story);
}

/* Returns whether a spare waits for a world that stands. */
static bool waits_well(const struct story *story, int i)
{
    if (story->nodes[i].s.stage != HVD__STAGE_STANDBY)
        return false;
    for (int j = 0; j < story->n; j++)
        if (story_reaches(story, i, j) && !story->nodes[j].is_dead &&
            !story->nodes[j].is_stopped && story->nodes[j].phase == IN_WORLD)
            return true;
    return false;
}

/* Returns whether nothing more will happen: every member is dead, stopped,
 * ended, waiting, or in a world with all others of its list. */
static bool is_over(const struct story *story)
{
    if (story->nleft > 0)
        return false;
    for (int i = 0; i < story->n; i++) {
        const struct node *node = &story->nodes[i];

        if (node->is_dead || node->is_stopped || node->phase == ENDED ||
            waits_well(story, i))
            continue;
        if (node->phase != IN_WORLD || story_trouble(story, i) != 0 ||
            node->enter_at >= 0)
            return false;
        for (int j = 0; j < story->n; j++)
            if (hvd__member_set_has(&node->s.base_list, j) &&
                (story->nodes[j].phase != IN_WORLD ||
                 story->nodes[j].s.base != node->s.base))
                return false;
    }
    return true;
}

/* Returns whether a member should be in the last world, as far as that can be
 * said of this story: 1, 0, or -1 if it cannot. */
static int should_go_on(const struct story *story, int i)
{
    int nhosts_with[MOST] = {0}, cut = -1, inside = 0;
    bool holds_lowest = false;

    if (story->nodes[i].is_dead)
        return 0;
    if (i >= story->size)
        return -1;
    if (story->nstops + story->nparts + story->nlate > 0 || story->ncuts > 1)
        return -1;
    for (int j = 0; j < story->n; j++)
        nhosts_with[story->nodes[j].host] += !story->nodes[j].is_dead;
    if (story->ncuts == 0) {
        for (int h = 0; h < story->nhosts; h++)
            if (nhosts_with[h] == 0)
                return -1;
        return 1;
    }
    for (int h = 0; h < story->nhosts; h++)
        cut = story->is_cut[h] ? h : cut;
    for (int j = 0; j < story->n; j++)
        if (story->nodes[j].is_dead)
            return -1;
    if (cut < 0)
        return -1;
    for (int j = 0; j < story->size; j++)
        if ((story->nodes[j].host == cut) == (story->nodes[i].host == cut)) {
            inside++;
            holds_lowest |= j == 0;
        }
    return 2 * inside > story->size ||
           (2 * inside == story->size && holds_lowest);
}

/* Returns how many the last world must have, as far as that can be said of this
 * story; else -1. */
static int expected_size(const struct story *story)
{
    int nalive = 0;
    bool is_sure = false;

    if (story->ncuts + story->loss > 0)
        return -1;
    for (int i = 0; i < story->n; i++) {
        nalive += !story->nodes[i].is_dead;
        is_sure |= should_go_on(story, i) == 1;
    }
    if (!is_sure)
        return -1;
    return nalive < story->size ? nalive : story->size;
}

static void check_end(struct story *story)
{
    uint32_t round = 0;
    bool has_world = false;
    int size = 0;

    for (int i = 0; i < story->n; i++) {
        const struct node *node = &story->nodes[i];
        int should = should_go_on(story, i);
        bool is_in =
            !node->is_dead && !node->is_stopped && node->phase == IN_WORLD;

        if (is_in && has_world && node->s.base != round)
            story_fail(story, "two worlds are left", i);
        size += is_in;
        if (is_in) {
            has_world = true;
            round = node->s.base;
        }
        if (should == 1 && !is_in)
            story_fail(story, "should have gone on", i);
        if (should == 0 && is_in)
            story_fail(story, "should not have gone on", i);
    }
    if (expected_size(story) >= 0 && size != expected_size(story))
        story_fail(story, "the last world is too small", size);
}

/* Everyone who is left has gone on for ever, or hangs. */
static void check_hang(struct story *story)
{
    if (story->order < MOST_EVENTS &&
        (story->nleft > 0 || story->now - story->last_action < PATIENCE))
        return;
    for (int i = 0; i < story->n; i++)
        SAY("%d: phase %d stage %d base %u round %u leader %d", i,
            story->nodes[i].phase, story->nodes[i].s.stage,
            story->nodes[i].s.base, story->nodes[i].s.round,
            story->nodes[i].s.leader);
    story_fail(story, "hangs, or others do", 0);
}

static void take_letter(struct story *story, struct event *event)
{
    struct node *node = &story->nodes[event->to];

    if (!story_reaches(story, event->from, event->to))
        return;
    if (node->is_dead || (node->phase == ENDED && ++node->farewells > 3)) {
        if (story->has_refusals)
            story_push(story,
                       (struct event){.at = story->now + story_delay(story),
                                      .kind = REFUSAL,
                                      .to = event->from,
                                      .from = event->to});
        return;
    }
    node->refusals[event->from] = 0;
    hvd__survivors_hear(&node->s, event->letter);
    story_flush(story, event->to);
}

static void take(struct story *story, struct event *event)
{
    struct node *node = &story->nodes[event->to];

    if (event->kind == ACTION) {
        story_act(story, &story->actions[event->to]);
        return;
    }
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
    } else if (node->is_dead) {
        return;
    } else if (event->kind == TICKING && !node->is_stopped) {
        story_tick(story, event->to);
        story_push(story, (struct event){.at = story->now + TICK,
                                         .kind = TICKING,
                                         .to = event->to});
    } else if (event->kind == MEETING) {
        const struct node *from = &story->nodes[event->from];

        if (story_reaches(story, event->from, event->to)) {
            if (event->round > node->met[event->from][event->meeting])
                node->met[event->from][event->meeting] = event->round;
        } else if (!from->is_dead && from->phase != ENDED &&
                   from->s.round == event->round &&
                   (from->phase == STARTING || from->phase == IN_WORLD)) {
            event->at = story->now + 30 * MS;
            story_push(story, *event);
        }
    } else if (event->kind == REFUSAL && node->phase != ENDED &&
               story_reaches(story, event->from, event->to) &&
               ++node->refusals[event->from] >= 2) {
        hvd__survivors_suspect(&node->s, event->from);
    }
}

bool sim_recovery(uint64_t seed, bool verbose, struct sim_counts *counts)
{
    static struct story story;
    int64_t over_since = -1;

    free(story.heap);
    story = (struct story){.draw = sim_stream(seed, 1),
                           .network = sim_stream(seed, 2),
                           .seed = seed,
                           .is_verbose = verbose,
                           .counts = counts};
    begin(&story);
    while (story.nevents > 0 && !story.is_bad) {
        struct event event = story_pop(&story);

        story.now = event.at;
        take(&story, &event);
        free(event.letter);
        if (!is_over(&story))
            over_since = -1;
        else if (over_since < 0)
            over_since = story.now;
        if (over_since >= 0 && story.now - over_since > 100 * MS)
            break;
        check_hang(&story);
    }
    if (!story.is_bad)
        check_end(&story);
    counts->stories++;
    while (story.nevents > 0)
        free(story_pop(&story).letter);
    free(story.heap);
    story.heap = NULL;
    return !story.is_bad;
}
