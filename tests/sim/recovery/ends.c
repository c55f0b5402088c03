/* SPDX-License-Identifier: Apache-2.0 */
/* ends.c - whether a story is over, and whether it has ended as it should. */
#include "story.h"

/* Returns whether a spare waits for a world that stands. */
static bool waits_well(const struct story *story, int i)
{
    if (story->nodes[i].job < 0 ||
        story_state(&story->nodes[i])->stage != HVD__STAGE_STANDBY)
        return false;
    for (int j = 0; j < story->n; j++)
        if (story_reaches(story, i, j) && !story->nodes[j].is_dead &&
            !story->nodes[j].is_stopped && story->nodes[j].phase == IN_WORLD)
            return true;
    return false;
}

/* Returns whether a process is in a world with all others of its list. */
static bool stands(const struct story *story, int i)
{
    const struct node *node = &story->nodes[i];
    const struct job *job;

    if (node->phase != IN_WORLD || story_trouble(story, i) != 0 ||
        node->enter_at >= 0)
        return false;
    job = &story->jobs[node->job];
    for (int m = 0; m < job->n; m++) {
        const struct node *other = &story->nodes[job->who[m]];

        if (hvd__member_set_has(&story_state(node)->base_list, m) &&
            (other->phase != IN_WORLD || other->job != node->job ||
             story_state(other)->base != story_state(node)->base))
            return false;
    }
    return true;
}

bool story_is_over(const struct story *story)
{
    if (story->nleft > 0)
        return false;
    for (int i = 0; i < story->nall; i++) {
        const struct node *node = &story->nodes[i];

        if (!node->is_dead && !node->is_stopped && node->phase != ENDED &&
            node->phase != AWAY && !waits_well(story, i) && !stands(story, i))
            return false;
    }
    return true;
}

/* Returns whether a process has been in no world that could miss it. */
static bool is_needless(const struct story *story, int i)
{
    return i >= story->size && !story_grows(story);
}

/* Returns 1 if only deaths have happened and each host has a process that was
 * there from the beginning, and so can say who has died. Else -1. */
static int should_all_go_on(const struct story *story)
{
    for (int j = 0; j < story->nall && story->founds; j++)
        if (story->nodes[j].is_dead)
            return -1;
    for (int h = 0; h < story->nhosts; h++) {
        bool is_used = false, has_witness = false;

        for (int j = 0; j < story->nall; j++) {
            if (story->nodes[j].host != h || story->nodes[j].phase == AWAY)
                continue;
            is_used = true;
            has_witness |=
                (j < story->n || story->founds) && !story->nodes[j].is_dead;
        }
        if (is_used && !has_witness)
            return -1;
    }
    return 1;
}

/* Returns how many processes of the first world live. */
static int count_living(const struct story *story)
{
    int n = 0;

    for (int j = 0; j < story->size; j++)
        n += !story->nodes[j].is_dead;
    return n;
}

/* Returns how many processes of the first world that live are on some hosts, a
 * bit for each, or 0 if two of the hosts do not reach each other. */
static int count_on(const struct story *story, int hosts)
{
    int n = 0;

    for (int h = 0; h < story->nhosts; h++)
        for (int other = 0; other < story->nhosts; other++)
            if (hosts >> h & hosts >> other & 1 && story->is_parted[h][other])
                return 0;
    for (int j = 0; j < story->size; j++)
        n += !story->nodes[j].is_dead && hosts >> story->nodes[j].host & 1;
    return n;
}

/* Some pairs of hosts do not reach each other, and all reach that of the lowest
 * process, whose death, if anybody's, is known. Then the processes of the hosts
 * that all reach each other and have the most processes go on, if these are not
 * fewer than half. Returns -1 if that cannot be said of one of them, if not all
 * reach the lowest, or if a spare may have taken a dead one's place before the
 * hosts were parted. */
static int should_go_on_in_parts(const struct story *story, int i)
{
    const int living = count_living(story);
    int lowest = 0, most = 0, with = 0, without = 0;

    if (living < story->size && story->n > story->size)
        return -1;
    while (story->nodes[lowest].is_dead)
        lowest++;
    for (int h = 0; h < story->nhosts; h++)
        if (story->is_parted[story->nodes[lowest].host][h])
            return -1;
    for (int hosts = 0; hosts < 1 << story->nhosts; hosts++) {
        const int n = count_on(story, hosts);

        if (n > most) {
            most = n;
            with = without = 0;
        }
        if (n < most)
            continue;
        if (hosts >> story->nodes[i].host & 1)
            with++;
        else
            without++;
    }
    if (2 * most < story->size)
        return 2 * most < living ? 0 : -1;
    return without == 0 ? 1 : with == 0 ? 0 : -1;
}

/* Returns whether a process should be in the last world, as far as that can be
 * said of this story: 1, 0, or -1 if it cannot. */
static int should_go_on(const struct story *story, int i)
{
    int cut = -1, inside = 0;
    bool holds_lowest = false;

    if (story->nodes[i].is_dead || story->nodes[i].phase == AWAY)
        return 0;
    if (is_needless(story, i))
        return -1;
    if (story->only_parts && story->nlate == 0)
        return should_go_on_in_parts(story, i);
    if (story->nstops + story->nparts + story->nlate > 0 || story->ncuts > 1)
        return -1;
    if (story->ncuts == 0)
        return should_all_go_on(story);
    if (story_grows(story))
        return -1;
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

    if (story->ncuts + story->nparts + story->loss > 0)
        return -1;
    for (int i = 0; i < story->nall; i++) {
        nalive += !story->nodes[i].is_dead && story->nodes[i].phase != AWAY;
        is_sure |= should_go_on(story, i) == 1;
    }
    if (!is_sure)
        return -1;
    return nalive < story->size || story_grows(story) ? nalive : story->size;
}

void story_check_end(struct story *story)
{
    const struct node *last = NULL;
    int size = 0;

    for (int i = 0; i < story->nall; i++) {
        const struct node *node = &story->nodes[i];
        int should = should_go_on(story, i);
        bool is_in =
            !node->is_dead && !node->is_stopped && node->phase == IN_WORLD;

        if (is_in && last &&
            (last->job != node->job ||
             story_state(last)->base != story_state(node)->base))
            story_fail(story, "two worlds are left", i);
        size += is_in;
        if (is_in)
            last = node;
        if (should == 1 && !is_in)
            story_fail(story, "should have gone on", i);
        if (should == 0 && is_in)
            story_fail(story, "should not have gone on", i);
    }
    if (story->only_parts && story->nlate == 0 &&
        story->now - story->last_action > LIMIT)
        story_fail(story, "a cut was found late", 0);
    if (expected_size(story) >= 0 && size != expected_size(story))
        story_fail(story, "the last world is too small", size);
}

void story_check_hang(struct story *story)
{
    if (story->order < MOST_EVENTS &&
        (story->nleft > 0 || story->now - story->last_action < PATIENCE))
        return;
    for (int i = 0; i < story->nall; i++) {
        const struct node *node = &story->nodes[i];
        const struct hvd__survivors *s =
            node->job < 0 ? NULL : story_state(node);

        SAY("%d: phase %d job %d to job %d meeting %d", i, node->phase,
            node->job, node->to_job, node->meeting);
        if (s)
            SAY("   stage %d base %u round %u leader %d", s->stage, s->base,
                s->round, s->leader);
    }
    story_fail(story, "hangs, or others do", 0);
}
