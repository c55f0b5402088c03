/* SPDX-License-Identifier: Apache-2.0 */
/* member.c - a member's life: in a world, leaving it, starting the next one. */
#include <stdio.h>
#include <string.h>

#include "story.h"

static void end_node(struct story *story, int i, const char *why)
{
    struct node *node = &story->nodes[i];

    SAY("%d ends: %s", i, why);
    node->phase = ENDED;
    hvd__survivors_lose(&node->s, i, 4);
    story_flush(story, i);
    if (story->fate[i] == 0)
        story->fate[i] = 4;
    story->counts->ended++;
}

/* The watch of a world that is left says who is silent. */
static void hand_over(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    for (int j = 0; j < story->n && node->phase == IN_WORLD; j++)
        if (hvd__member_set_has(&node->s.base_list, j) &&
            (story->nodes[j].is_stopped || !story_reaches(story, i, j)))
            hvd__survivors_suspect(&node->s, j);
}

static void enter(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    if (story->hands_over)
        hand_over(story, i);
    SAY("%d leaves its world of round %u", i, node->s.base);
    node->phase = LEAVING;
    node->ready_at = story->now + sim_below(&story->draw, 20) * MS;
    hvd__survivors_enter(&node->s);
}

static void meet(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    for (int j = 0; j < story->n; j++)
        if (j != i && hvd__member_set_has(&node->s.list, j))
            story_push(story,
                       (struct event){.at = story->now + story_delay(story),
                                      .kind = MEETING,
                                      .to = j,
                                      .from = i,
                                      .round = node->s.round,
                                      .meeting = node->meeting});
}

static void start(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    SAY("%d starts round %u: %s", i, node->s.round,
        story_list_text(&node->s.list));
    node->phase = STARTING;
    node->meeting = 0;
    node->started_at = story->now;
    meet(story, i);
}

static bool have_common(const struct hvd__member_set *a,
                        const struct hvd__member_set *b)
{
    for (int i = 0; i < MOST; i++)
        if (hvd__member_set_has(a, i) && hvd__member_set_has(b, i))
            return true;
    return false;
}

/* Adds those with whom the members of a world came to be in worlds between that
 * and a later round, which some of each have started. */
static void follow(const struct story *story, uint32_t from, uint32_t to,
                   struct hvd__member_set *line)
{
    for (int k = 0; k < story->nworlds * story->nworlds; k++) {
        const struct world *world = &story->worlds[k % story->nworlds];

        if (world->round > from && world->round < to &&
            have_common(&world->list, line))
            for (int i = 0; i < story->n; i++)
                if (hvd__member_set_has(&world->list, i))
                    hvd__member_set_add(line, i);
    }
}

/* Of two worlds that started the later goes on with members of the earlier, or
 * with spares that these have called, and has nobody else but spares. */
static bool is_one_line(const struct story *story, const struct world *early,
                        const struct world *late)
{
    struct hvd__member_set line = early->list;

    follow(story, early->round, late->round, &line);
    for (int i = 0; i < story->size; i++)
        if (hvd__member_set_has(&late->list, i) &&
            !hvd__member_set_has(&early->list, i))
            return false;
    return have_common(&line, &late->list);
}

/* All members of one world must have one list. */
static void note_world(struct story *story, int i)
{
    const struct hvd__survivors *s = &story->nodes[i].s;
    struct world *world = story->worlds;

    while (world < story->worlds + story->nworlds && world->round != s->base)
        world++;
    if (world == story->worlds + story->nworlds) {
        if (story->nworlds == MOST_WORLDS) {
            story_fail(story, "there are too many worlds", i);
            return;
        }
        *world = (struct world){.round = s->base, .list = s->base_list};
        story->nworlds++;
    }
    if (memcmp(&world->list, &s->base_list, sizeof world->list) != 0)
        story_fail(story, "two lists of one round have started", i);
    if (++world->nstarted < hvd__member_set_count(&world->list))
        return;
    story->counts->started++;
    for (int k = 0; k < story->nworlds; k++) {
        const struct world *other = &story->worlds[k];
        const struct world *early = other->round < world->round ? other : world,
                           *late = early == other ? world : other;

        if (other->nstarted < hvd__member_set_count(&other->list))
            continue;
        if (!is_one_line(story, early, late))
            story_fail(story, "two worlds go on beside each other", i);
    }
}

static bool has_met_all(const struct story *story, int i)
{
    const struct node *node = &story->nodes[i];

    for (int j = 0; j < story->n; j++)
        if (j != i && hvd__member_set_has(&node->s.list, j) &&
            node->met[j][node->meeting] != node->s.round)
            return false;
    return true;
}

static void go_on_starting(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    while (node->phase == STARTING && has_met_all(story, i)) {
        if (++node->meeting < MEETINGS) {
            meet(story, i);
            continue;
        }
        SAY("%d has started round %u", i, node->s.round);
        hvd__survivors_start(&node->s);
        node->phase = IN_WORLD;
        node->bad_since = -1;
        node->enter_at = -1;
        node->patience = sim_below(&story->draw, 50) * MS;
        note_world(story, i);
        meet(story, i);
    }
    if (node->phase == IN_WORLD && node->meeting == MEETINGS &&
        has_met_all(story, i)) {
        node->meeting++;
        hvd__survivors_complete(&node->s);
    }
}

/* Returns how long a member must see this until it leaves its world; 0: it sees
 * nothing wrong. */
int64_t story_trouble(const struct story *story, int i)
{
    const struct node *node = &story->nodes[i];
    int64_t found = 0;

    for (int j = 0; j < story->n; j++) {
        const struct node *other = &story->nodes[j];

        if (j == i || !hvd__member_set_has(&node->s.base_list, j))
            continue;
        if (other->is_dead && story_reaches(story, i, j))
            return node->patience + 1;
        if (other->is_dead || other->is_stopped ||
            !story_reaches(story, i, j) || other->phase == ENDED ||
            (other->phase != STARTING && other->phase != IN_WORLD) ||
            (other->phase == IN_WORLD && other->s.base != node->s.base))
            found = SILENCE + node->patience;
    }
    return found;
}

static void live_in_world(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    int64_t limit = story_trouble(story, i);

    if (limit == 0)
        node->bad_since = -1;
    else if (node->bad_since < 0)
        node->bad_since = story->now;
    if (node->enter_at < 0 && ((limit > 0 && node->bad_since >= 0 &&
                                story->now - node->bad_since >= limit) ||
                               node->s.is_broken)) {
        int64_t busy = sim_below(&story->draw, 30) * MS;

        if (sim_once_in(&story->draw, 24))
            busy = sim_below(&story->draw, 3000) * MS;
        if (sim_once_in(&story->draw, 400)) {
            busy = 2 * LIMIT;
            story->nlate++;
        }
        node->enter_at = story->now + busy;
    }
    if (node->enter_at >= 0 && story->now >= node->enter_at)
        enter(story, i);
}

/* The kernel and the register of a host. */
static void look_at_host(struct story *story, int i)
{
    for (int j = 0; j < story->n; j++) {
        struct node *other = &story->nodes[j];

        if (other->host != story->nodes[i].host || j == i)
            continue;
        if (other->is_dead && story->fate[j] == 0)
            story->fate[j] = 1;
        if (other->is_dead)
            hvd__survivors_lose(&story->nodes[i].s, j, 1);
        if (other->is_stopped && story->fate[j] == 0 &&
            story->now - other->frozen_since > SILENCE)
            story->fate[j] = 2;
    }
    story_sync_register(story, i);
}

void story_tick(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    int64_t passed = story->now - node->looked;

    node->looked = story->now;
    look_at_host(story, i);
    hvd__survivors_pass(&node->s, passed < GAP ? passed : GAP);
    if (node->phase == ENDED) {
        story_flush(story, i);
        return;
    }
    if (node->phase == IN_WORLD)
        live_in_world(story, i);
    story_sync_register(story, i);
    if (node->phase == LEAVING && story->now >= node->ready_at)
        hvd__survivors_be_ready(&node->s);
    if (node->phase == STARTING && node->s.is_broken)
        enter(story, i);
    else if (node->phase == STARTING &&
             story->now - node->started_at > 2 * LIMIT)
        end_node(story, i, "the start takes too long");
    if (node->phase == LEAVING && node->s.stage == HVD__STAGE_DECIDED)
        start(story, i);
    go_on_starting(story, i);
    if (node->phase != IN_WORLD && node->s.stage == HVD__STAGE_OUT)
        end_node(story, i, "it was given up");
    else if (node->s.stage == HVD__STAGE_TOO_FEW)
        end_node(story, i, "they are too few");
    else if (node->phase != IN_WORLD && node->s.stage == HVD__STAGE_FORSAKEN)
        end_node(story, i, "nobody is left that could call it");
    story_flush(story, i);
}
