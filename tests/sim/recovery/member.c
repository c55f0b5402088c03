/* SPDX-License-Identifier: Apache-2.0 */
/* member.c - a member's life: in a world, leaving it, starting the next one. */
#include <string.h>

#include "story.h"

void story_end(struct story *story, int i, const char *why)
{
    struct node *node = &story->nodes[i];

    SAY("%d ends: %s", i, why);
    node->phase = ENDED;
    story_close_links(story, i);
    for (int k = 0; k < story->njobs; k++) {
        if (!node->in[k])
            continue;
        hvd__survivors_lose(node->in[k], node->in[k]->self, 4);
        story_flush(story, i, k);
        if (story->jobs[k].fate[node->in[k]->self] == 0)
            story->jobs[k].fate[node->in[k]->self] = 4;
    }
    story->counts->ended++;
}

/* The watch of a world that is left says who is silent. */
static void hand_over(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    struct hvd__survivors *s = story_state(node);
    const struct job *job = &story->jobs[node->job];

    for (int m = 0; m < job->n && node->phase == IN_WORLD; m++)
        if (hvd__member_set_has(&s->base_list, m) &&
            (story->nodes[job->who[m]].is_stopped ||
             !story_reaches(story, i, job->who[m])))
            hvd__survivors_suspect(s, m);
}

void story_enter(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    if (story->hands_over)
        hand_over(story, i);
    SAY("%d leaves its world of job %d, round %u", i, node->job,
        story_state(node)->base);
    node->ready_at = story->now;
    if (node->phase == IN_WORLD)
        node->ready_at += sim_below(&story->draw, 20) * MS;
    node->phase = LEAVING;
    node->is_listing = false;
    hvd__survivors_enter(story_state(node));
}

/* Returns whom a process meets: the list of the last round, or all members of
 * the job that is to be. */
static uint32_t partners(const struct story *story, const struct node *node)
{
    const struct job *job = &story->jobs[node->to_job];
    const struct hvd__survivors *s = node->in[node->to_job];
    uint32_t all = 0;

    if (node->to_round > 0)
        return story_processes(job, node->phase == STARTING ? &s->list
                                                            : &s->base_list);
    for (int m = 0; m < job->n; m++)
        all |= UINT32_C(1) << job->who[m];
    return all;
}

void story_meet(struct story *story, int i)
{
    const struct node *node = &story->nodes[i];
    const uint32_t list = partners(story, node);

    for (int j = 0; j < story->nall; j++) {
        struct event event = {.kind = MEETING,
                              .to = j,
                              .from = i,
                              .job = node->to_job,
                              .round = node->to_round,
                              .meeting = node->meeting};

        if (j == i || !(list >> j & 1))
            continue;
        if (node->meeting == COMPARE && node->has_tickets)
            memcpy(event.tickets, node->tickets, sizeof event.tickets);
        story_send(story, event);
    }
}

bool story_has_met_all(const struct story *story, int i)
{
    const struct node *node = &story->nodes[i];
    const uint32_t list = partners(story, node);

    for (int j = 0; j < story->nall; j++)
        if (j != i && list >> j & 1 &&
            node->met[node->to_job][j][node->meeting] != node->to_round + 1)
            return false;
    return true;
}

static void start(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    const struct hvd__survivors *s = story_state(node);

    SAY("%d starts round %u of job %d: %s", i, s->round, node->job,
        story_list_text(story_processes(&story->jobs[node->job], &s->list)));
    if (!hvd__member_set_equal(&s->list, &s->base_list))
        node->has_tickets = false;
    node->phase = STARTING;
    node->to_job = node->job;
    node->to_round = s->round;
    node->meeting = COMPARE;
    node->started_at = story->now;
    story_meet(story, i);
}

void story_begin(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    SAY("%d has started round %u of job %d", i, node->to_round, node->to_job);
    node->phase = IN_WORLD;
    node->is_listing = false;
    story_set_members(story, i);
    node->bad_since = -1;
    node->enter_at = -1;
    node->patience = sim_below(&story->draw, 50) * MS;
    node->is_broken = false;
    node->number = 0;
    node->asks = node->is_parting = node->has_tickets = false;
    node->asks_at = story->now + story->period;
}

static void go_on_starting(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    while (node->phase == STARTING && story_has_met_all(story, i)) {
        if (node->meeting == COMPARE && story_agrees_to_grow(story, i))
            return;
        if (node->meeting < START) {
            node->meeting++;
            story_meet(story, i);
            continue;
        }
        if (story_state(node)->stage != HVD__STAGE_DECIDED)
            return; /* it has been given up meanwhile */
        hvd__survivors_start(story_state(node));
        story_begin(story, i);
        story_note_world(story, i, node->job, node->to_round,
                         story_processes(&story->jobs[node->job],
                                         &story_state(node)->base_list));
        node->meeting = LAST;
        story_meet(story, i);
    }
    if (node->phase == IN_WORLD && node->meeting == LAST &&
        node->to_job == node->job && node->to_round > 0 &&
        story_has_met_all(story, i)) {
        node->meeting = MEETINGS;
        hvd__survivors_complete(story_state(node));
    }
}

/* Returns whether another process is in the world of this one, or is about to
 * be. */
static bool is_with(const struct node *node, const struct node *other)
{
    const uint32_t base = story_state(node)->base;

    if (other->phase == STARTING)
        return other->to_job == node->job && other->to_round == base;
    return other->phase == IN_WORLD && other->job == node->job &&
           story_state(other)->base == base && !other->is_broken;
}

int64_t story_trouble(const struct story *story, int i)
{
    const struct node *node = &story->nodes[i];
    const struct job *job = &story->jobs[node->job];
    int64_t found = node->is_broken;

    for (int m = 0; m < job->n; m++) {
        const int j = job->who[m];
        const struct node *other = &story->nodes[j];

        if (j == i || !hvd__member_set_has(&story_state(node)->base_list, m))
            continue;
        if (other->is_dead && story_reaches(story, i, j))
            return node->patience + 1;
        if (other->is_dead || other->is_stopped ||
            !story_reaches(story, i, j) || !is_with(node, other))
            found = found > 0 ? found : SILENCE + node->patience;
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
                               story_state(node)->is_broken)) {
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
        story_enter(story, i);
    else if (node->enter_at < 0 && story_grows(story))
        story_look_for_guests(story, i);
}

/* The kernel and the register of a host. */
static void look_at_host(struct story *story, int i, int number)
{
    struct job *job = &story->jobs[number];

    for (int m = 0; m < job->n; m++) {
        struct node *other = &story->nodes[job->who[m]];

        if (other->host != story->nodes[i].host || job->who[m] == i)
            continue;
        if (other->is_dead && job->fate[m] == 0)
            job->fate[m] = 1;
        if (other->is_dead)
            hvd__survivors_lose(story->nodes[i].in[number], m, 1);
        if (other->is_stopped && job->fate[m] == 0 &&
            story->now - other->frozen_since > SILENCE)
            job->fate[m] = 2;
    }
    story_sync_register(story, i, number);
}

static void flush_all(struct story *story, int i)
{
    for (int k = 0; k < story->njobs; k++)
        if (story->nodes[i].in[k])
            story_flush(story, i, k);
}

/* Goes on with what comes behind a world, and before the next. */
static void go_on(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    struct hvd__survivors *s = story_state(node);

    if (node->phase == LEAVING && story->now >= node->ready_at)
        hvd__survivors_be_ready(s);
    if (node->phase == STARTING && node->to_job == node->job && s->is_broken)
        story_enter(story, i);
    else if (node->phase == STARTING && node->to_job == node->job &&
             story->now - node->started_at > 2 * LIMIT)
        story_end(story, i, "the start takes too long");
    if (node->phase == LEAVING && s->stage == HVD__STAGE_DECIDED)
        start(story, i);
    if (node->phase == FINDING)
        story_find_out(story, i);
    if (node->to_job == node->job)
        go_on_starting(story, i);
}

/* Ends a process that the protocol lets go on no more. */
static void end_if_out(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    const struct hvd__survivors *s = story_state(node);

    if (node->phase == ENDED)
        return;
    if (node->phase != IN_WORLD && s->stage == HVD__STAGE_OUT)
        story_end(story, i, "it was given up");
    else if (s->stage == HVD__STAGE_TOO_FEW)
        story_end(story, i, "they are too few");
    else if (node->phase != IN_WORLD && s->stage == HVD__STAGE_FORSAKEN)
        story_end(story, i, "nobody is left that could call it");
}

void story_tick(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    int64_t passed = story->now - node->looked;

    node->looked = story->now;
    for (int k = 0; k < story->njobs; k++) {
        if (!node->in[k])
            continue;
        look_at_host(story, i, k);
        hvd__survivors_pass(node->in[k], passed < GAP ? passed : GAP);
    }
    if (node->phase == ENDED || node->phase == AWAY) {
        flush_all(story, i);
        return;
    }
    if (node->phase == CALLING || node->phase == WAITING) {
        story_look_for_world(story, i);
        return;
    }
    if (node->phase == IN_WORLD)
        live_in_world(story, i);
    if (node->job >= 0)
        go_on(story, i);
    if (node->to_job != node->job && !node->is_dead)
        story_go_on_growing(story, i);
    if (node->job >= 0)
        end_if_out(story, i);
    flush_all(story, i);
}
