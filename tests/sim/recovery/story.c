/* SPDX-License-Identifier: Apache-2.0 */
/*
 * story.c - a story drawn from a seed: members on hosts, a network that delays,
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
 *     one line    of two worlds in which all have started, the later has only
 *                 members of the earlier: nobody goes on beside it
 *     end         everybody comes to a world in which all are, or ends in words
 *     the rest    if members only die, and none of a host's last, or one host
 * is cut off alone: those that should are in that world
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "simulated.h"
#include "watch/survivors.h"

#define MS INT64_C(1000000)
enum {
    MOST = 9,
    MOST_ACTIONS = 16,
    MEETINGS = 2,
    MOST_WORLDS = 64,
    MOST_EVENTS = 3000000
};
#define TICK (5 * MS)
#define SILENCE (1000 * MS)
#define LIMIT (10000 * MS)
#define SETTLE (20 * MS)
#define RESEND (20 * MS)
#define GAP (500 * MS)
#define PATIENCE (240000 * MS) /* after the last fault: a hang */

enum phase { IN_WORLD, LEAVING, STARTING, ENDED };

struct node {
    struct hvd__survivors s;
    int host;
    bool is_dead, is_stopped;
    enum phase phase;
    int64_t looked, bad_since, patience, enter_at, ready_at, started_at;
    int64_t frozen_since; /* as its host sees it */
    int meeting;          /* the one it is in, while it starts */
    int refusals[MOST];
    uint32_t met[MOST][MEETINGS]; /* the last round heard of */
    int farewells;
};

enum kind { LETTER, TICKING, ACTION, MEETING, REFUSAL };

struct event {
    int64_t at;
    uint64_t order;
    enum kind kind;
    int to, from;
    uint32_t round;
    int meeting;
    struct hvd__letter *letter; /* owned */
};

enum verb { KILL, STOP, WAKE, CUT, JOIN, PART, MEND };

struct action {
    enum verb verb;
    int which, other;
};

struct world {
    uint32_t round;
    struct hvd__member_set list;
    int nstarted;
};

struct story {
    struct sim_random draw, network;
    int n, nhosts, loss, doubles, slow;
    bool has_refusals, is_verbose, is_bad;
    struct node nodes[MOST];
    int fate[MOST]; /* the registers of the hosts */
    bool is_cut[MOST], is_parted[MOST][MOST];
    struct action actions[MOST_ACTIONS];
    int nactions, nleft, nstops, ncuts, nparts, nlate;
    struct event *heap; /* owned */
    int nevents, room;
    uint64_t order;
    int64_t now, last_action;
    struct world worlds[MOST_WORLDS];
    int nworlds;
    struct sim_counts *counts;
    uint64_t seed;
};

/* -------------------------------------------------------------------- events
 */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

static void push(struct story *story, struct event event)
{
    int i = story->nevents++;

    if (i == story->room) {
        story->room = 2 * story->room + 64;
        story->heap =
            realloc(story->heap, (size_t)story->room * sizeof *story->heap);
    }
    event.order = story->order++;
    for (; i > 0 && is_before(&event, &story->heap[(i - 1) / 2]);
         i = (i - 1) / 2)
        story->heap[i] = story->heap[(i - 1) / 2];
    story->heap[i] = event;
}

static struct event pop(struct story *story)
{
    struct event first = story->heap[0], last = story->heap[--story->nevents];
    int i = 0;

    for (;;) {
        int child = 2 * i + 1;

        if (child + 1 < story->nevents &&
            is_before(&story->heap[child + 1], &story->heap[child]))
            child++;
        if (child >= story->nevents || is_before(&last, &story->heap[child]))
            break;
        story->heap[i] = story->heap[child];
        i = child;
    }
    story->heap[i] = last;
    return first;
}

static void fail(struct story *story, const char *what, int node)
{
    printf("seed %llu: at %.1f ms, member %d: %s\n",
           (unsigned long long)story->seed, (double)story->now * 1e-6, node,
           what);
    story->is_bad = true;
}

static const char *list_text(const struct hvd__member_set *list)
{
    static char text[64];
    int at = 0;

    for (int i = 0; i < MOST; i++)
        if (hvd__member_set_has(list, i))
            text[at++] = (char)('0' + i);
    text[at] = '\0';
    return text;
}

#define SAY(...)                                                               \
    do {                                                                       \
        if (story->is_verbose) {                                               \
            printf("%9.2f ms  ", (double)story->now * 1e-6);                   \
            printf(__VA_ARGS__);                                               \
            putchar('\n');                                                     \
        }                                                                      \
    } while (0)

/* ------------------------------------------------------------------- network
 */

static bool reaches(const struct story *story, int a, int b)
{
    int ha = story->nodes[a].host, hb = story->nodes[b].host;

    return ha == hb || (!story->is_cut[ha] && !story->is_cut[hb] &&
                        !story->is_parted[ha][hb]);
}

static int64_t delay(struct story *story)
{
    int64_t most = sim_once_in(&story->network, story->slow) ? 60000 : 1500;

    return 50000 + 1000 * (int64_t)sim_below(&story->network, (int)most);
}

static void send_letter(struct story *story, int to,
                        const struct hvd__letter *letter)
{
    int copies = 1 + (sim_below(&story->network, 100) < story->doubles);

    story->counts->letters++;
    if (sim_below(&story->network, 100) < story->loss)
        return;
    while (copies-- > 0) {
        struct hvd__letter *copy = malloc(sizeof *copy);

        *copy = *letter;
        push(story, (struct event){.at = story->now + delay(story),
                                   .kind = LETTER,
                                   .to = to,
                                   .from = letter->from,
                                   .letter = copy});
    }
}

/* The members of a host share a register of those of them that are lost for
 * ever. A member that finds itself there says nothing any more. */
static void sync_register(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    for (int j = 0; j < story->n; j++) {
        int fate = hvd__survivors_fate(&node->s, j);

        if (story->nodes[j].host != node->host)
            continue;
        if (fate != 0 && story->fate[j] == 0 && j != i)
            story->fate[j] = fate;
        if (story->fate[j] != 0 && fate == 0)
            hvd__survivors_lose(&node->s, j, story->fate[j]);
    }
}

static void flush(struct story *story, int i)
{
    struct hvd__letter letter;
    int to;

    sync_register(story, i);
    while ((to = hvd__survivors_next(&story->nodes[i].s, &letter)) >= 0)
        send_letter(story, to, &letter);
}

/* ------------------------------------------------------------- a member's life
 */

static void end_node(struct story *story, int i, const char *why)
{
    struct node *node = &story->nodes[i];

    SAY("%d ends: %s", i, why);
    node->phase = ENDED;
    hvd__survivors_lose(&node->s, i, 4);
    flush(story, i);
    if (story->fate[i] == 0)
        story->fate[i] = 4;
    story->counts->ended++;
}

static void enter(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

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
            push(story, (struct event){.at = story->now + delay(story),
                                       .kind = MEETING,
                                       .to = j,
                                       .from = i,
                                       .round = node->s.round,
                                       .meeting = node->meeting});
}

static void start(struct story *story, int i)
{
    struct node *node = &story->nodes[i];

    SAY("%d starts round %u: %s", i, node->s.round, list_text(&node->s.list));
    node->phase = STARTING;
    node->meeting = 0;
    node->started_at = story->now;
    meet(story, i);
}

/* All members of one world must have one list, and of two worlds that started
 * the later be a part of the earlier. */
static void note_world(struct story *story, int i)
{
    const struct hvd__survivors *s = &story->nodes[i].s;
    struct world *world = story->worlds;

    while (world < story->worlds + story->nworlds && world->round != s->base)
        world++;
    if (world == story->worlds + story->nworlds) {
        if (story->nworlds == MOST_WORLDS) {
            fail(story, "there are too many worlds", i);
            return;
        }
        *world = (struct world){.round = s->base, .list = s->base_list};
        story->nworlds++;
    }
    if (memcmp(&world->list, &s->base_list, sizeof world->list) != 0)
        fail(story, "two lists of one round have started", i);
    if (++world->nstarted < hvd__member_set_count(&world->list))
        return;
    story->counts->started++;
    for (int k = 0; k < story->nworlds; k++) {
        const struct world *other = &story->worlds[k];
        const struct world *early = other->round < world->round ? other : world,
                           *late = early == other ? world : other;

        if (other->nstarted < hvd__member_set_count(&other->list))
            continue;
        for (int w = 0; w < HVD__MEMBER_SET_WORDS; w++)
            if (late->list.words[w] & ~early->list.words[w])
                fail(story, "two worlds go on beside each other", i);
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
    }
}

/* Returns how long a member must see this until it leaves its world; 0: it sees
 * nothing wrong. */
static int64_t trouble(const struct story *story, int i)
{
    const struct node *node = &story->nodes[i];
    int64_t found = 0;

    for (int j = 0; j < story->n; j++) {
        const struct node *other = &story->nodes[j];

        if (j == i || !hvd__member_set_has(&node->s.base_list, j))
            continue;
        if (other->is_dead && reaches(story, i, j))
            return node->patience + 1;
        if (other->is_dead || other->is_stopped || !reaches(story, i, j) ||
            other->phase == ENDED ||
            (other->phase != STARTING && other->phase != IN_WORLD) ||
            (other->phase == IN_WORLD && other->s.base != node->s.base))
            found = SILENCE + node->patience;
    }
    return found;
}

static void live_in_world(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    int64_t limit = trouble(story, i);

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
    sync_register(story, i);
}

static void tick(struct story *story, int i)
{
    struct node *node = &story->nodes[i];
    int64_t passed = story->now - node->looked;

    node->looked = story->now;
    look_at_host(story, i);
    hvd__survivors_pass(&node->s, passed < GAP ? passed : GAP);
    if (node->phase == ENDED) {
        flush(story, i);
        return;
    }
    if (node->phase == IN_WORLD)
        live_in_world(story, i);
    sync_register(story, i);
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
    flush(story, i);
}

/* ------------------------------------------------------------------- actions
 */

static void act(struct story *story, const struct action *action)
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
            push(story, (struct event){.at = story->now,
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
    push(story,
         (struct event){.at = at, .kind = ACTION, .to = story->nactions++});
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

static void plan_all(struct story *story)
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

/* --------------------------------------------------------------------- a story
 */

static void begin(struct story *story)
{
    const struct hvd__survivors_times times = {SILENCE, LIMIT, SETTLE, RESEND};

    story->nhosts = 1 + sim_below(&story->draw, 4);
    story->n = 2 + sim_below(&story->draw, MOST - 1);
    story->loss =
        sim_once_in(&story->draw, 2) ? sim_below(&story->draw, 25) : 0;
    story->doubles =
        sim_once_in(&story->draw, 2) ? sim_below(&story->draw, 20) : 0;
    story->slow = 2 + sim_below(&story->draw, 60);
    story->has_refusals = sim_once_in(&story->draw, 2);
    if (story->nhosts > story->n)
        story->nhosts = story->n;
    for (int i = 0; i < story->n; i++) {
        struct node *node = &story->nodes[i];

        hvd__survivors_init(&node->s, story->n, i, &times);
        node->host =
            i < story->nhosts ? i : sim_below(&story->draw, story->nhosts);
        node->bad_since = node->enter_at = -1;
        node->patience = sim_below(&story->draw, 50) * MS;
        push(story, (struct event){.at = sim_below(&story->draw, 5) * MS,
                                   .kind = TICKING,
                                   .to = i});
    }
    for (int i = 0; i < story->n; i++)
        for (int j = 0; j < story->n; j++)
            story->nodes[i].s.host[j] = (int16_t)story->nodes[j].host;
    plan_all(story);
}

/* Returns whether nothing more will happen: every member is dead, stopped,
 * ended or in a world with all others of its list. */
static bool is_over(const struct story *story)
{
    if (story->nleft > 0)
        return false;
    for (int i = 0; i < story->n; i++) {
        const struct node *node = &story->nodes[i];

        if (node->is_dead || node->is_stopped || node->phase == ENDED)
            continue;
        if (node->phase != IN_WORLD || trouble(story, i) != 0 ||
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
    for (int j = 0; j < story->n; j++)
        if ((story->nodes[j].host == cut) == (story->nodes[i].host == cut)) {
            inside++;
            holds_lowest |= j == 0;
        }
    return 2 * inside > story->n || (2 * inside == story->n && holds_lowest);
}

static void check_end(struct story *story)
{
    uint32_t round = 0;
    bool has_world = false;

    for (int i = 0; i < story->n; i++) {
        const struct node *node = &story->nodes[i];
        int should = should_go_on(story, i);
        bool is_in =
            !node->is_dead && !node->is_stopped && node->phase == IN_WORLD;

        if (is_in && has_world && node->s.base != round)
            fail(story, "two worlds are left", i);
        if (is_in) {
            has_world = true;
            round = node->s.base;
        }
        if (should == 1 && !is_in)
            fail(story, "should have gone on", i);
        if (should == 0 && is_in)
            fail(story, "should not have gone on", i);
    }
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
    fail(story, "hangs, or others do", 0);
}

static void take_letter(struct story *story, struct event *event)
{
    struct node *node = &story->nodes[event->to];

    if (!reaches(story, event->from, event->to))
        return;
    if (node->is_dead || (node->phase == ENDED && ++node->farewells > 3)) {
        if (story->has_refusals)
            push(story, (struct event){.at = story->now + delay(story),
                                       .kind = REFUSAL,
                                       .to = event->from,
                                       .from = event->to});
        return;
    }
    node->refusals[event->from] = 0;
    hvd__survivors_hear(&node->s, event->letter);
    flush(story, event->to);
}

static void take(struct story *story, struct event *event)
{
    struct node *node = &story->nodes[event->to];

    if (event->kind == ACTION) {
        act(story, &story->actions[event->to]);
        return;
    }
    if (node->is_stopped && !node->is_dead && event->kind != TICKING) {
        event->at = story->now + 7 * MS;
        push(story, *event);
        event->letter = NULL; /* it is in the queue again */
        return;
    }
    if (event->kind == LETTER) {
        take_letter(story, event);
    } else if (node->is_dead) {
        return;
    } else if (event->kind == TICKING && !node->is_stopped) {
        tick(story, event->to);
        push(story, (struct event){.at = story->now + TICK,
                                   .kind = TICKING,
                                   .to = event->to});
    } else if (event->kind == MEETING) {
        const struct node *from = &story->nodes[event->from];

        if (reaches(story, event->from, event->to)) {
            if (event->round > node->met[event->from][event->meeting])
                node->met[event->from][event->meeting] = event->round;
        } else if (!from->is_dead && from->phase != ENDED &&
                   from->s.round == event->round &&
                   (from->phase == STARTING || from->phase == IN_WORLD)) {
            event->at = story->now + 30 * MS;
            push(story, *event);
        }
    } else if (event->kind == REFUSAL && node->phase != ENDED &&
               reaches(story, event->from, event->to) &&
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
        struct event event = pop(&story);

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
        free(pop(&story).letter);
    free(story.heap);
    story.heap = NULL;
    return !story.is_bad;
}
