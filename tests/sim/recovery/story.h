/* SPDX-License-Identifier: Apache-2.0 */
/* story.h - what the files that play a story share (story.c says what it is).
 */
#ifndef SIM_RECOVERY_STORY_H
#define SIM_RECOVERY_STORY_H

#include "../random.h"
#include "simulated.h"
#include "watch/survivors.h"

#define MS INT64_C(1000000)
enum {
    MOST = 9,
    MOST_ACTIONS = 16,
    MEETINGS = 2, /* until a member has started; one more, until all have */
    MOST_WORLDS = 64,
    MOST_HELD = 200, /* letters that a socket has room for */
    MOST_EVENTS = 3000000
};
#define TICK (5 * MS)
#define SILENCE (1000 * MS)
#define LIMIT (10000 * MS)
#define SETTLE (20 * MS)
#define RESEND (20 * MS)
#define PING (50 * MS)
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
    int nheld;            /* letters that wait until it goes on */
    int refusals[MOST];
    uint32_t met[MOST][MEETINGS + 1]; /* the last round heard of */
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
    bool is_held;
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
    int n, size, nhosts, loss, doubles, slow;
    bool has_refusals, hands_over, is_verbose, is_bad;
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

/* events.c */

void story_push(struct story *story, struct event event);
/* Returns the first event. There must be one. */
struct event story_pop(struct story *story);
/* Says what is wrong with a member, and ends the story. */
void story_fail(struct story *story, const char *what, int node);
/* Returns the members' numbers, until it is called again. */
const char *story_list_text(const struct hvd__member_set *list);

#define SAY(...)                                                               \
    do {                                                                       \
        if (story->is_verbose) {                                               \
            printf("%9.2f ms  ", (double)story->now * 1e-6);                   \
            printf(__VA_ARGS__);                                               \
            putchar('\n');                                                     \
        }                                                                      \
    } while (0)

/* letters.c */

/* Returns whether a letter from one member comes to the other. */
bool story_reaches(const struct story *story, int a, int b);
/* Draws how long a letter takes, in ns. */
int64_t story_delay(struct story *story);
/* Lets a member and the register of its host know what the other knows. */
void story_sync_register(struct story *story, int i);
/* Sends what a member has to say. */
void story_flush(struct story *story, int i);

/* member.c */

/* Lets a member do what is due. */
void story_tick(struct story *story, int i);
/* Returns for how many ns a member must see what it sees until it leaves its
 * world; 0: it sees nothing wrong. */
int64_t story_trouble(const struct story *story, int i);

/* faults.c */

void story_plan_faults(struct story *story);
void story_act(struct story *story, const struct action *action);

#endif
