/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow.c - a world takes in guests, as core/world/grow.c does: its members
 * agree on the guests by an allreduce, leave it in good order, come to a round
 * in which nobody is lost, compare whom they let in, and start the world of a
 * new job together with these. Those whose start fails find out whether others
 * have started it (watch/members_settle.c): on one host by a word of a
 * register, on several by the protocol itself.
 */
#include <string.h>

#include "story.h"

enum { ATTEMPTS = 8, FAREWELLS = 3 };

/* ------------------------------------------------------- in the old world */

static bool is_heard(const struct node *node, int from)
{
    const struct share *share = &node->heard[from][node->number % 2];

    return share->job == node->job && share->round == story_state(node)->base &&
           share->number == node->number;
}

/* Begins the next allreduce, with these tickets. */
static void ask(struct story *story, int i, const uint32_t *tickets)
{
    const struct node *node = &story->nodes[i];
    const struct hvd__survivors *s = story_state(node);
    const uint32_t list =
        story_processes(&story->jobs[node->job], &s->base_list);

    for (int j = 0; j < story->nall; j++) {
        struct event event = {.kind = ASK,
                              .to = j,
                              .from = i,
                              .job = node->job,
                              .round = s->base,
                              .number = node->number};

        memcpy(event.tickets, tickets, sizeof event.tickets);
        if (j != i && list >> j & 1)
            story_send(story, event);
    }
}

static bool has_heard_all(const struct story *story, int i)
{
    const struct node *node = &story->nodes[i];
    const uint32_t list =
        story_processes(&story->jobs[node->job], &story_state(node)->base_list);

    for (int j = 0; j < story->nall; j++)
        if (j != i && list >> j & 1 && !is_heard(node, j))
            return false;
    return true;
}

/* Takes the tickets of all. Returns whether there is one. */
static bool share_tickets(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    const uint32_t list =
        story_processes(&story->jobs[node->job], &story_state(node)->base_list);
    bool any = false;

    for (int place = 0; place < story->nplaces; place++) {
        for (int j = 0; j < story->nall; j++) {
            const uint32_t ticket =
                node->heard[j][node->number % 2].tickets[place];

            if (j != i && list >> j & 1 && ticket > node->tickets[place])
                node->tickets[place] = ticket;
        }
        any |= node->tickets[place] != 0;
    }
    return any;
}

static void note_growth(struct story *story, const struct node *node)
{
    const uint32_t base = story_state(node)->base;

    if (story->ngrowths > 0 && story->growing_job == node->job &&
        story->growing_round == base)
        return;
    story->ngrowths++;
    memset(story->nmessages, 0, sizeof story->nmessages);
    story->growing_job = node->job;
    story->growing_round = base;
}

/* Lists the guests that may come in. Returns whether that is done. */
static bool list_guests(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    int64_t tickets[MOST_FIRST] = {0};

    if (hvd__guests_room(&node->guests) > 0 && story->njobs < MOST_JOBS - 1) {
        if (!node->is_listing)
            story_ping_guests(story, i);
        if (!story_has_listed(story, i))
            return false;
        story_list_guests(story, i, tickets);
    }
    node->is_listing = false;
    for (int place = 0; place < story->nplaces; place++)
        node->tickets[place] = (uint32_t)tickets[place];
    return true;
}

void story_look_for_guests(struct story *story, int i)
{
    static const uint32_t none[MOST_FIRST];
    struct node *node = &story->nodes[i];

    if (!node->asks && story->now >= node->asks_at && list_guests(story, i)) {
        node->asks = true;
        ask(story, i, node->tickets);
    }
    while (node->asks && has_heard_all(story, i)) {
        if (node->is_parting) {
            node->asks = node->is_parting = false;
            story_enter(story, i);
            return;
        }
        node->is_parting = node->has_tickets = share_tickets(story, i);
        node->number++;
        if (node->is_parting)
            note_growth(story, node);
        if (node->is_parting)
            ask(story, i, none); /* they leave when all want to */
        node->asks = node->is_parting;
        node->asks_at = story->now + story->period;
    }
}

void story_hear_share(struct story *story, struct event *event)
{
    struct node *node = &story->nodes[event->to];
    const bool is_plan = event->kind == MEETING;
    struct share *share =
        &node->heard[event->from][is_plan ? 2 : event->number % 2];

    if (event->job < share->job ||
        (event->job == share->job &&
         (event->round < share->round ||
          (event->round == share->round && event->number < share->number))))
        return;
    *share = (struct share){
        .job = event->job, .round = event->round, .number = event->number};
    memcpy(share->tickets, event->tickets, sizeof share->tickets);
}

/* ------------------------------------------------------------- the plan */

static bool has_same_plan(const struct node *node, int from)
{
    const struct share *plan = &node->heard[from][2];

    return plan->job == node->job && plan->round == node->to_round &&
           memcmp(plan->tickets, node->tickets, sizeof plan->tickets) == 0;
}

/* A world has one process of each place. */
static void check_place(struct story *story, const struct job *made, int place)
{
    for (int m = 0; m < made->n; m++)
        if (story->nodes[made->who[m]].place == place)
            story_fail(story, "a place is twice in a world", made->who[m]);
}

/* Makes the job of those in the list and of the guests, as many as have room.
 * Returns its number. */
static int make_job(struct story *story, const struct node *node)
{
    struct job *made = &story->jobs[story->njobs];
    const struct job *old = &story->jobs[node->job];

    *made = (struct job){.parent = node->job, .round = node->to_round};
    for (int m = 0; m < old->n; m++)
        if (hvd__member_set_has(&story_state(node)->list, m))
            made->who[made->n++] = old->who[m];
    made->nelders = made->n;
    for (int place = 0; place < story->nplaces; place++)
        if (node->tickets[place] != 0 && made->n < story->nplaces) {
            check_place(story, made, place);
            made->tickets[place] = node->tickets[place];
            made->who[made->n++] =
                story_link(story, node->tickets[place])->guest;
        }
    return story->njobs++;
}

static int find_job(const struct story *story, const struct node *node)
{
    for (int k = 1; k < story->njobs; k++)
        if (story->jobs[k].parent == node->job &&
            story->jobs[k].round == node->to_round)
            return k;
    return -1;
}

void story_meet_in_job(struct story *story, int i, int job)
{
    struct node *node = &story->nodes[i];

    node->phase = STARTING;
    node->to_job = job;
    node->to_round = 0;
    node->meeting = GREET;
    node->started_at = story->now;
    node->bad_since = -1;
    story_meet(story, i);
}

bool story_agrees_to_grow(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    const struct job *job = &story->jobs[node->job];
    int made;

    for (int m = 0; m < job->n && node->has_tickets; m++)
        if (job->who[m] != i &&
            hvd__member_set_has(&story_state(node)->list, m) &&
            !has_same_plan(node, job->who[m]))
            node->has_tickets = false;
    if (!node->has_tickets)
        return false;
    made = find_job(story, node);
    if (made < 0)
        made = make_job(story, node);
    node->has_tickets = false;
    SAY("%d grows into job %d", i, made);
    story_admit(story, i, made);
    story_meet_in_job(story, i, made);
    return true;
}

/* ------------------------------------------------------------- the start */

static bool is_guest(const struct node *node)
{
    return node->job < 0;
}

/* Returns whether a word of a register decides for this process whether the new
 * world has started. */
static bool has_judge(const struct story *story, const struct node *node)
{
    return story_shares_host(story, &story->jobs[node->to_job]) ||
           (!is_guest(node) &&
            story_shares_host(story, &story->jobs[node->job]));
}

/* Says in a register whether this process has started, unless another one has
 * said something. Returns what was said. */
static int judge(struct story *story, const struct node *node, int said)
{
    struct job *made = &story->jobs[node->to_job];

    if (made->settled == 0)
        made->settled = said;
    return made->settled;
}

/* There is the new world, of which this process is a member. */
static void finish(struct story *story, int i, bool is_complete)
{
    struct node *node = &story->nodes[i];
    const int old = node->job;

    story_settle_guests(story, i);
    node->job = node->to_job;
    if (is_complete)
        hvd__survivors_complete(story_state(node));
    for (int k = 0; k < node->job; k++)
        if (node->in[k] &&
            (is_complete ||
             (k == old && story_shares_host(story, &story->jobs[k]))))
            story_drop_out(story, i, k);
    story_begin(story, i);
    node->is_broken = !is_complete;
    node->meeting = MEETINGS;
}

/* This process takes no part in the new job any more. Old ones come to another
 * round, guests look for a host again. */
static void cancel(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    const int made = node->to_job;
    struct hvd__survivors *s = node->in[made];

    SAY("%d gives up job %d", i, made);
    if (s && has_judge(story, node))
        judge(story, node, -1);
    if (s) {
        story->jobs[made].fate[s->self] = 4;
        hvd__survivors_withdraw(s);
        for (int k = 0; k < FAREWELLS; k++) {
            hvd__survivors_repeat(s);
            story_flush(story, i, made);
        }
        story_drop_out(story, i, made);
    }
    story_settle_guests(story, i);
    node->to_job = node->job;
    if (is_guest(node)) {
        story_seek(story, i);
        if (++node->nfailed == ATTEMPTS)
            story_end(story, i,
                      "it was let in, and could not start, too often");
        return;
    }
    s = story_state(node);
    node->phase = LEAVING;
    if (s->stage != HVD__STAGE_DECIDED || s->round == story->jobs[made].round)
        story_enter(story, i);
}

static void fail(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    SAY("%d could not start job %d", i, node->to_job);
    if (node->meeting == LAST && !is_guest(node)) {
        finish(story, i, false);
    } else if (node->meeting != START) {
        cancel(story, i);
    } else if (has_judge(story, node)) {
        if (judge(story, node, -1) > 0)
            finish(story, i, false);
        else
            cancel(story, i);
    } else if (is_guest(node)) {
        cancel(story, i);
    } else {
        node->phase = FINDING;
        hvd__survivors_enter(story_state(node));
        hvd__survivors_be_ready(story_state(node));
    }
}

void story_find_out(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    int found = hvd__survivors_settle(story_state(node),
                                      story->jobs[node->to_job].round);

    if (found > 0)
        finish(story, i, false);
    else if (found < 0)
        cancel(story, i);
}

/* This process has started the new world. */
static void settle(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    const struct job *made = &story->jobs[node->to_job];
    const bool is_one = story_shares_host(story, made);
    uint32_t list = 0;

    if (has_judge(story, node) && judge(story, node, 1) < 0) {
        cancel(story, i);
        return;
    }
    for (int m = 0; m < made->n; m++)
        list |= UINT32_C(1) << made->who[m];
    if (!is_guest(node) && !has_judge(story, node))
        hvd__survivors_start(story_state(node));
    story_settle_guests(story, i); /* the next meeting does without them */
    if (!is_guest(node) || is_one)
        story_note_world(story, i, node->to_job, 0, list);
    node->meeting = LAST;
    if (is_one)
        finish(story, i, true);
    else
        story_meet(story, i);
}

/* Returns whether another process still takes part in the start of the new
 * world, or will. */
static bool is_coming(const struct story *story, const struct node *node, int j)
{
    const struct job *made = &story->jobs[node->to_job];
    const struct node *other = &story->nodes[j];

    if (other->phase == WAITING)
        return other->host_link == made->tickets[other->place];
    if (other->phase == LEAVING && other->job == made->parent)
        return story_state(other)->failed < made->round;
    if (other->phase == STARTING && other->to_job == made->parent)
        return other->to_round == made->round;
    return (other->phase == STARTING && other->to_job == node->to_job) ||
           (other->phase == IN_WORLD && other->job == node->to_job);
}

/* Returns for how many ns a process must see what it sees until its start
 * fails; 0: it sees nothing wrong. */
static int64_t trouble(const struct story *story, int i)
{
    const struct node *node = &story->nodes[i];
    const struct job *made = &story->jobs[node->to_job];
    int64_t found = 0;

    for (int m = 0; m < made->n; m++) {
        const int j = made->who[m];
        const struct node *other = &story->nodes[j];

        if (j == i || node->met[node->to_job][j][node->meeting] != 0)
            continue;
        if (!story_reaches(story, i, j) ||
            (other->is_stopped && !other->is_dead))
            found = found > 0 ? found : SILENCE + node->patience;
        else if (other->is_dead || !is_coming(story, node, j))
            return node->patience + 1;
    }
    return found;
}

static bool has_failed(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    const struct hvd__survivors *s = node->in[node->to_job];
    int64_t limit = trouble(story, i);

    if (story->now - node->started_at > LIMIT)
        return true;
    if (!is_guest(node) &&
        (hvd__survivors_fate(story_state(node), story_state(node)->self) != 0 ||
         (story_state(node)->stage == HVD__STAGE_DECIDED &&
          story_state(node)->is_broken)))
        return true;
    for (int m = 0; s && m < s->n; m++)
        if (hvd__survivors_fate(s, m) != 0)
            return true;
    if (has_judge(story, node) && s && story->jobs[node->to_job].settled < 0)
        return true;
    if ((!s ||
         (has_judge(story, node) && story->jobs[node->to_job].settled == 0)) &&
        story_lacks_guest(story, i))
        return true;
    if (limit == 0)
        node->bad_since = -1;
    else if (node->bad_since < 0)
        node->bad_since = story->now;
    return limit > 0 && story->now - node->bad_since >= limit;
}

void story_go_on_growing(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    if (node->phase != STARTING)
        return;
    while (node->phase == STARTING && node->to_job != node->job &&
           story_has_met_all(story, i)) {
        if (node->meeting == GREET) {
            story_take_part(story, i, node->to_job);
            node->meeting = START;
            story_meet(story, i);
        } else if (node->meeting == START) {
            settle(story, i);
        } else {
            uint32_t list = 0;

            for (int m = 0; m < story->jobs[node->to_job].n; m++)
                list |= UINT32_C(1) << story->jobs[node->to_job].who[m];
            if (is_guest(node))
                story_note_world(story, i, node->to_job, 0, list);
            finish(story, i, true);
        }
    }
    if (node->phase == STARTING && node->to_job != node->job &&
        has_failed(story, i))
        fail(story, i);
}
