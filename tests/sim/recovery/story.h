/* SPDX-License-Identifier: Apache-2.0 */
/* story.h - what the files that play a story share (story.c says what it is).
 */
#ifndef SIM_RECOVERY_STORY_H
#define SIM_RECOVERY_STORY_H

#include <stdio.h>

#include "../random.h"
#include "simulated.h"
#include "transport/tcp/seeker.h"
#include "watch/survivors.h"

#define MS INT64_C(1000000)
enum {
    MOST = 16,      /* processes */
    MOST_FIRST = 9, /* of them at a time: the places of a cluster */
    MOST_JOBS = 48,
    MOST_ACTIONS = 40,
    MOST_DEADLY = 3,
    MOST_WORLDS = 200,
    MOST_HELD = 200, /* letters that a socket has room for */
    LINK_BITS = 11,
    MOST_LINKS = 1 << LINK_BITS,
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

/* Where the members of a world meet while it starts: they compare whom they
 * let in, and whoever has heard all others at START has started. At LAST they
 * learn that all have. */
enum meeting { COMPARE, GREET, START, LAST, MEETINGS };

/* Processes that have registers in common, from a first world, or one that has
 * grown, to the next that grows. A member is a number in it. */
struct job {
    int n, nelders;
    int who[MOST];  /* the process of each member */
    int fate[MOST]; /* of each member, in the register of its host */
    int parent;     /* the job whose world has grown; -1: none */
    uint32_t round; /* the round of the parent's that it was made in */
    uint32_t tickets[MOST_FIRST]; /* of those who were let in, by place */
    int settled; /* on one host: 1 it has started, -1 never will */
};

enum phase {
    AWAY,    /* it has not been started yet */
    CALLING, /* it looks for a rank that takes it as a guest */
    WAITING, /* it is the guest of one */
    IN_WORLD,
    LEAVING,
    STARTING,
    FINDING, /* it could not start a world that grows, and others may have */
    ENDED
};

/* What a member says in an allreduce, or when plans are compared. */
struct share {
    int job;
    uint32_t round;
    int number;
    uint32_t tickets[MOST_FIRST];
};

/* A connection of a guest and its host, the two sides of which are 0 and 1
 * (links.c). */
struct link {
    int guest, host; /* processes */
    uint32_t ticket; /* the guest's: the number of the link, and random bits */
    bool is_closed[2], has_ended[2]; /* by a side, and for it */
    uint32_t nsent[2], ntaken[2];    /* messages, by a side */
};

/* A process. */
struct node {
    struct hvd__survivors *in[MOST_JOBS]; /* owned; NULL: in no such job */
    bool was_in[MOST_JOBS];
    int job; /* the last one in which it was in a world; -1: none */
    int place, host;
    bool is_dead, is_stopped;
    enum phase phase;
    int64_t looked, bad_since, patience, enter_at, ready_at, started_at;
    int64_t frozen_since; /* as its host sees it */
    int nheld;            /* letters that wait until it goes on */
    int refusals[MOST_JOBS][MOST];
    int farewells;
    /* the world that it starts */
    int to_job;
    uint32_t to_round;
    enum meeting meeting;
    uint32_t met[MOST_JOBS][MOST][MEETINGS]; /* 1 + the last round heard of */
    int first_world; /* the first that it has started; -1: none */
    /* growing (grow.c) */
    bool is_broken;        /* its world was so for it from the beginning */
    bool asks, is_parting; /* it is in an allreduce, in the good end */
    int number;            /* of the allreduce */
    int64_t asks_at;
    uint32_t tickets[MOST_FIRST]; /* of those whom it will let in */
    bool has_tickets;
    struct share heard[MOST][3]; /* of two allreduces, and of a comparison */
    int nfailed;                 /* starts to which it was let in */
    /* its guests (guests.c), by place */
    struct hvd__guests guests;
    struct hvd__guest guest_list[MOST_FIRST];
    bool is_member[MOST_FIRST];
    uint32_t guest_links[MOST_FIRST]; /* tickets; 0: none */
    bool is_listing;
    int64_t list_until;
    /* looking for a world (seekers.c), by place */
    struct hvd__seeker seeker;
    bool is_absent[MOST_FIRST], is_calling[MOST_FIRST];
    uint32_t calls; /* those with this number go on */
    int64_t call_at[MOST_FIRST], call_delay[MOST_FIRST];
    uint32_t answers[MOST_FIRST]; /* tickets of the links that are open */
    uint32_t host_link;           /* its ticket as a guest; 0: it is none */
};

enum kind {
    LETTER,
    TICKING,
    ACTION,
    MEETING,
    REFUSAL,
    ASK,
    CALL,
    REPLY,
    NOTE,
    HANGUP
};
/* The answers of a REPLY that has no link, which a process sends, or the kernel
 * of its host. */
enum reply { NOT_NOW, NOBODY_LISTENS };

struct event {
    int64_t at;
    uint64_t order;
    enum kind kind;
    int to, from;
    int job;
    uint32_t round;
    enum meeting meeting;
    int number; /* of an ASK; the kind of a NOTE; an enum reply */
    uint32_t tickets[MOST_FIRST];
    uint32_t link, sequence; /* a ticket; the message of its link */
    bool is_held;
    struct hvd__letter *letter; /* owned */
};

enum verb { KILL, STOP, WAKE, CUT, JOIN, PART, MEND, COME };

struct action {
    enum verb verb;
    int which, other;
};

/* When so many messages were sent since a world began to grow, at a meeting or
 * of any kind, somebody dies, his host is cut off, or the hosts of the
 * message's two sides are. */
enum victim { SENDER, RECEIVER, LEADER, GUEST, VICTIMS };
struct deadly {
    int growth, message;
    enum meeting meeting; /* MEETINGS: any message */
    enum victim victim;
    enum verb verb; /* KILL, CUT or PART */
    int64_t length; /* of a cut; 0: for ever */
};

struct world {
    int job;
    uint32_t round;
    uint32_t list; /* a bit for each process */
    int nstarted;
};

struct story {
    struct sim_random draw, network, founding, parting, calling;
    int n, size, nall, nhosts, loss, doubles, slow;
    int nplaces;    /* n: no world grows */
    int64_t period; /* between two looks for guests */
    bool founds;    /* no world stands in the beginning */
    int least;      /* processes that found a world */
    bool has_refusals, hands_over, is_verbose, is_bad;
    struct node nodes[MOST];
    struct job jobs[MOST_JOBS];
    int njobs;
    bool is_cut[MOST], is_parted[MOST][MOST];
    struct action actions[MOST_ACTIONS];
    int nactions, nleft, nstops, ncuts, nparts, nlate;
    bool only_parts; /* nothing else happens, but for a death */
    struct deadly deadly[MOST_DEADLY];
    int ndeadly;
    int ngrowths;
    int nmessages[MEETINGS + 1]; /* since the last of these began */
    int growing_job;             /* where that was */
    uint32_t growing_round;
    struct link links[MOST_LINKS]; /* from 1 on, nlinks */
    uint32_t nlinks;
    struct event *heap; /* owned */
    int nevents, room;
    uint64_t order;
    int64_t now, last_action;
    struct world worlds[MOST_WORLDS];
    int nworlds;
    struct sim_counts *counts;
    uint64_t seed;
};

/* The protocol of a process in its job. */
static inline struct hvd__survivors *story_state(const struct node *node)
{
    return node->in[node->job];
}

static inline bool story_grows(const struct story *story)
{
    return story->nplaces > story->n || story->nall > story->n;
}

/* events.c */

void story_push(struct story *story, struct event event);
/* Returns the first event. There must be one. */
struct event story_pop(struct story *story);
/* Says what is wrong with a process, and ends the story. */
void story_fail(struct story *story, const char *what, int node);
/* Returns the processes' numbers, until it is called again. */
const char *story_list_text(uint32_t list);

#define SAY(...)                                                               \
    do {                                                                       \
        if (story->is_verbose) {                                               \
            printf("%9.2f ms  ", (double)story->now * 1e-6);                   \
            printf(__VA_ARGS__);                                               \
            putchar('\n');                                                     \
        }                                                                      \
    } while (0)

/* jobs.c */

/* Makes a process a member of a job that it has not been in. */
void story_take_part(struct story *story, int i, int job);
/* Ends that it is one. */
void story_drop_out(struct story *story, int i, int job);
/* Returns the member that a process is in a job, or -1. */
int story_member(const struct job *job, int i);
/* Returns the processes of a list of members, a bit for each. */
uint32_t story_processes(const struct job *job,
                         const struct hvd__member_set *list);
/* Returns whether all members of a job are on one host. */
bool story_shares_host(const struct story *story, const struct job *job);

/* letters.c */

/* Returns whether a letter from one process comes to the other. */
bool story_reaches(const struct story *story, int a, int b);
/* Draws how long a letter takes, in ns. */
int64_t story_delay(struct story *story);
/* Sends a message, which arrives after its time, unless the sender is dead; it
 * may be what one of them dies of. */
void story_send(struct story *story, struct event event);
/* Lets a member and the register of its host know what the other knows. */
void story_sync_register(struct story *story, int i, int job);
/* Sends what a member has to say. */
void story_flush(struct story *story, int i, int job);

/* member.c */

/* Lets a process do what is due. */
void story_tick(struct story *story, int i);
/* Returns for how many ns a member must see what it sees until it leaves its
 * world; 0: it sees nothing wrong. */
int64_t story_trouble(const struct story *story, int i);
/* Leaves its world, or the start of one, and looks for the next one. */
void story_enter(struct story *story, int i);
/* Sends a message to all whom it meets where it is. */
void story_meet(struct story *story, int i);
/* Returns whether it has heard all of them. */
bool story_has_met_all(const struct story *story, int i);
/* Its world has started: that of to_job, or of the last round. */
void story_begin(struct story *story, int i);
void story_end(struct story *story, int i, const char *why);

/* worlds.c */

/* Records that a process has started the world that it was to start, and checks
 * that it goes on with all that are complete. */
void story_note_world(struct story *story, int i, int job, uint32_t round,
                      uint32_t list);

/* grow.c */

/* In a world: lets a process look for guests, and leave when there are some. */
void story_look_for_guests(struct story *story, int i);
/* All have compared whom they let in. Returns whether this start is one of a
 * world that grows. */
bool story_agrees_to_grow(struct story *story, int i);
/* Begins the start of the world of a job, which has grown or was founded. */
void story_meet_in_job(struct story *story, int i, int job);
/* Goes on with the start of a world that grows. */
void story_go_on_growing(struct story *story, int i);
/* Looks whether the world that could not be started has started elsewhere. */
void story_find_out(struct story *story, int i);
void story_hear_share(struct story *story, struct event *event);

/* links.c */

/* Makes a link, and returns its ticket. There must be room for it. */
uint32_t story_open_link(struct story *story, int guest, int host);
struct link *story_link(struct story *story, uint32_t ticket);
/* Sends a message from one side to the other, unless that side is closed. */
void story_send_on(struct story *story, uint32_t ticket, struct event event);
/* A process closes its side, if the ticket is not 0. */
void story_close_link(struct story *story, uint32_t ticket, int i);
/* A process has ended: its kernel closes all of its sides. */
void story_close_links(struct story *story, int i);
/* Returns whether a process knows that the other side is closed. */
bool story_is_gone(struct story *story, uint32_t ticket, int i);
/* Returns whether a message of a link is taken now; else it comes again later,
 * or never. */
bool story_arrives(struct story *story, struct event *event);

/* guests.c */

/* Is called before all others: gives a process a list of guests, and a seeker.
 */
void story_init_lobby(struct story *story, int i);
/* Lets a process take guests for the world that it is in. */
void story_set_members(struct story *story, int i);
void story_take_call(struct story *story, struct event *event);
/* Takes the answer of a guest to a ping. */
void story_hear_guest(struct story *story, const struct event *event);
/* Begins to list the guests of a process. */
void story_ping_guests(struct story *story, int i);
/* Returns whether the guests have answered, or have had the time to. */
bool story_has_listed(struct story *story, int i);
/* Writes the tickets of the guests that have. Returns how many there are. */
int story_list_guests(struct story *story, int i, int64_t *tickets);
/* Tells those who are let in to which job they come. */
void story_admit(struct story *story, int i, int job);
/* Returns whether a guest that was admitted has gone, or its host. */
bool story_lacks_guest(struct story *story, int i);
/* Ends what admitted guests and their hosts have to do with each other. */
void story_settle_guests(struct story *story, int i);
/* Closes the connections of those who are guests of a process no more. */
void story_shed_guests(struct story *story, int i);

/* seekers.c */

/* Has a process that is in no world begin to look for one. */
void story_seek(struct story *story, int i);
/* Lets it go on. */
void story_look_for_world(struct story *story, int i);
void story_take_reply(struct story *story, struct event *event);
void story_take_note(struct story *story, struct event *event);

/* take.c */

/* Does what an event says. The letter stays the event's, or becomes NULL. */
void story_take(struct story *story, struct event *event);

/* ends.c */

/* Returns whether nothing more will happen: every process is dead, stopped,
 * ended, waiting as a spare, or in a world with all others of its list. */
bool story_is_over(const struct story *story);
void story_check_end(struct story *story);
/* Fails if everyone who is left has gone on for ever, or hangs. */
void story_check_hang(struct story *story);

/* faults.c */

void story_plan_faults(struct story *story);
void story_act(struct story *story, const struct action *action);
/* Does what is to happen when a message has been sent. */
void story_strike(struct story *story, const struct event *event);

#endif
