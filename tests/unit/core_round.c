/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_round.c - rounds between up to 512 hosts of one process: messages lie in
 * queues, and transfers are done after a random while. Hosts begin one round
 * after another and wait for nobody, so they are at different messages of
 * different rounds. Blocks go beside the messages where each host has one
 * member, also those of hosts that offer more than the others, which drop them.
 * The sequence depends on the seed alone.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/agree/round.h"
#include "suite.h"
#include "trace/metrics.h"

enum { MOST_HOSTS = 512, MOST_MEMBERS = 2 * MOST_HOSTS, ROUNDS = 3, TAG = 77 };
enum {
    SLOTS = 4,
    MOST_STRAIGHT = 64,
    FIRST_RANK = 5
}; /* ranks of the world are not members */

/* Asserting costs a system call even where nothing is wrong. */
#define MUST(condition)                                                        \
    do {                                                                       \
        if (!(condition))                                                      \
            ck_abort_msg("not so: %s", #condition);                            \
    } while (0)

static uint64_t seed;

static uint32_t any(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)((seed * UINT64_C(0x2545f4914f6cdd1d)) >> 32) % below;
}

/* ------------------------------------------------------------- a transport */

/* A message on its way; it is freed when both sides are done with it. */
struct message {
    const unsigned char *borrowed; /* the sender's, until its test says done */
    unsigned char *data;           /* owned: what was sent */
    size_t bytes;
    bool is_sent, is_received;
    struct message *next;
};

struct queue {
    struct message *first;
    bool awaited; /* the receiver has posted a receive */
};

/* A transfer: of a message that is sent, or into a buffer. */
struct waiting {
    struct message *message; /* NULL: a receive */
    struct queue *queue;
    unsigned char *buffer;
    size_t room;
};

static struct host {
    struct hvd__transport transport; /* first: the transport is the host */
    struct hvd__team team;
    struct hvd__hosts *hosts;
    struct hvd__round *round;
    struct hvd__metrics metrics;
    int nrounds; /* rounds that are over */
    int nsent;   /* messages */
    int ndue;    /* messages that the rounds so far should have taken */
    struct hvd__request straight; /* the slot of that way, with these blocks */
    int64_t sent[MOST_STRAIGHT];
} hosts[MOST_HOSTS];

static int nhosts, nmembers, late; /* transfers are done one time in late */
static int host_of[MOST_MEMBERS], world[MOST_MEMBERS];
static struct queue queues[2][MOST_HOSTS][MOST_HOSTS]; /* tag, from, to */

static int host_of_rank(int rank)
{
    int member = rank - FIRST_RANK;

    MUST(member >= 0);
    MUST(member < nmembers);
    return host_of[member];
}

static struct queue *queue_of(int tag, int from, int to)
{
    MUST(tag == TAG || tag == TAG + 1);
    return &queues[tag - TAG][from][to];
}

static int fake_send(struct hvd__transport *self, int peer, int tag,
                     const void *data, size_t bytes,
                     struct hvd__transfer *transfer)
{
    struct host *own = (struct host *)self;
    struct queue *queue = queue_of(tag, (int)(own - hosts), host_of_rank(peer));
    struct message *message = calloc(1, sizeof *message), **end = &queue->first;
    struct waiting *waiting = calloc(1, sizeof *waiting);

    MUST(!transfer->request);
    message->borrowed = data;
    message->data = malloc(bytes);
    message->bytes = bytes;
    memcpy(message->data, data, bytes);
    while (*end)
        end = &(*end)->next;
    *end = message;
    waiting->message = message;
    transfer->request = waiting;
    own->nsent += tag == TAG;
    return HVD_OK;
}

static int fake_receive(struct hvd__transport *self, int peer, int tag,
                        void *data, size_t bytes,
                        struct hvd__transfer *transfer)
{
    struct queue *queue =
        queue_of(tag, host_of_rank(peer), (int)((struct host *)self - hosts));
    struct waiting *waiting = calloc(1, sizeof *waiting);

    MUST(!transfer->request);
    MUST(!queue->awaited);
    queue->awaited = true;
    waiting->queue = queue;
    waiting->buffer = data;
    waiting->room = bytes;
    transfer->request = waiting;
    return HVD_OK;
}

static void let_go(struct message *message)
{
    if (!message->is_sent || !message->is_received)
        return;
    free(message->data);
    free(message);
}

static int fake_test(struct hvd__transport *self,
                     struct hvd__transfer *transfer)
{
    struct waiting *waiting = transfer->request;
    struct message *message = waiting->message;

    (void)self;
    if (any((uint32_t)late) > 0)
        return 0;
    if (message) {
        /* Nobody has changed what is being sent. */
        MUST(memcmp(message->borrowed, message->data, message->bytes) == 0);
        message->is_sent = true;
    } else {
        message = waiting->queue->first;
        if (!message)
            return 0;
        MUST(message->bytes <= waiting->room);
        memcpy(waiting->buffer, message->data, message->bytes);
        waiting->queue->first = message->next;
        waiting->queue->awaited = false;
        message->is_received = true;
    }
    let_go(message);
    free(waiting);
    transfer->request = NULL;
    return 1;
}

/* ---------------------------------------------------------------- the hosts */

static void begin_hosts(int n)
{
    bool alone = any(3) == 0;

    nhosts = n;
    nmembers = 0;
    for (int h = 0; h < n; h++)
        host_of[nmembers++] = h;
    for (int h = 0; h < n; h++)
        if (!alone && any(2))
            host_of[nmembers++] = h;
    for (int i = 0; i < nmembers; i++)
        world[i] = FIRST_RANK + i;
    for (int h = 0; h < n; h++) {
        struct host *own = &hosts[h];

        *own = (struct host){0};
        own->transport = (struct hvd__transport){.name = "queues",
                                                 .rank = FIRST_RANK + h,
                                                 .send = fake_send,
                                                 .receive = fake_receive,
                                                 .test = fake_test};
        own->team = (struct hvd__team){.transport = &own->transport,
                                       .world = world,
                                       .rank = h,
                                       .size = nmembers};
        own->hosts = hvd__hosts_new(nmembers, h, host_of);
        own->round = hvd__round_new(&own->team, own->hosts, TAG, &own->metrics);
        MUST(own->round);
    }
}

/* ------------------------------------------------------------- their rounds */

static struct hvd__submission submissions[SLOTS];
static struct hvd__request requests[SLOTS];
static int offered[ROUNDS][MOST_HOSTS]; /* slots */

/* Sums of a number for each host, which it alone makes 1, where that is
 * possible in halves, too; numbers of all; and, where there are few members,
 * blocks from each to each, also straight. */
static enum hvd__way way_of(int slot)
{
    if (slot == 1 && nmembers == nhosts && nhosts <= MOST_STRAIGHT)
        return HVD__WAY_STRAIGHT;
    if (slot == 2 && (nhosts & (nhosts - 1)) == 0)
        return HVD__WAY_HALVES;
    if (slot % 2 == 0)
        return HVD__WAY_SUM;
    return slot == 3 && nmembers <= 64 ? HVD__WAY_SPLITS : HVD__WAY_ROWS;
}

static void make_requests(void)
{
    for (int i = 0; i < SLOTS; i++) {
        submissions[i].key = 10 + (uint64_t)i;
        requests[i] = (struct hvd__request){
            .submission = &submissions[i],
            .count = nhosts,
            .bytes = (size_t)nhosts * sizeof(int64_t),
            .signature = {.kind = HVD_ALLREDUCE,
                          .dtype = HVD_INT64,
                          .op = HVD_SUM,
                          .prescale = 1,
                          .postscale = 1},
        };
    }
}

static int64_t number_of(int member, int round, int slot)
{
    return (int64_t)member * 100 + round * 10 + slot;
}

static void write_blocks(const struct host *own, int64_t *blocks, int slot)
{
    const struct hvd__hosts *groups = own->hosts;

    for (int p = groups->first[groups->own]; p < groups->first[groups->own + 1];
         p++)
        for (int to = 0; to < nmembers; to++)
            blocks[p * nmembers + to] =
                number_of(groups->members[p], own->nrounds, slot) + 7 * to;
}

static void check_blocks(const struct host *own,
                         const struct hvd__offer_slot *slot, int i)
{
    const struct hvd__hosts *groups = own->hosts;
    static int64_t result[64 * 64];
    const int64_t *at = result;

    hvd__offer_result(&own->round->offer, slot, (unsigned char *)result);
    for (int p = 0; p < nmembers; p++)
        for (int q = groups->first[groups->own];
             q < groups->first[groups->own + 1]; q++)
            MUST(*at++ == number_of(groups->members[p], own->nrounds, i) +
                              7 * groups->members[q]);
}

/* Makes the request of the slot whose blocks go straight; returns it. */
static struct hvd__request *make_straight(struct host *own, int slot)
{
    for (int to = 0; to < nhosts; to++)
        own->sent[to] = number_of(own->hosts->own, own->nrounds, slot) + 7 * to;
    own->straight = requests[slot];
    own->straight.input = own->sent;
    return &own->straight;
}

static void check_straight(struct host *own, int slot)
{
    const void *sources[MOST_STRAIGHT];

    hvd__straight_sources(&own->round->straight, &own->round->offer, sources);
    for (int from = 0; from < nhosts; from++)
        MUST(*(const int64_t *)sources[from] ==
             number_of(from, own->nrounds, slot) + 7 * own->hosts->own);
}

static void start_round(int h)
{
    struct host *own = &hosts[h];
    struct hvd__offer *offer = &own->round->offer;
    const struct hvd__hosts *groups = own->hosts;

    hvd__round_begin(own->round, 1);
    offer->values.threshold = (uint64_t)h + 1;
    for (int i = 0; i < offered[own->nrounds][h]; i++) {
        const struct hvd__offer_slot *slot = &offer->slots[i];
        int64_t *numbers;

        if (way_of(i) == HVD__WAY_STRAIGHT) {
            MUST(hvd__offer_add(offer, make_straight(own, i), way_of(i), -1));
            MUST(!hvd__offer_add(offer, &own->straight, way_of(i), -1));
            hvd__straight_fill(&own->round->straight, offer, slot);
            continue;
        }
        MUST(hvd__offer_add(offer, &requests[i], way_of(i), -1));
        numbers = (int64_t *)(void *)(offer->data + slot->at);
        if (way_of(i) == HVD__WAY_SPLITS) {
            write_blocks(own, numbers, i);
            continue;
        }
        for (int k = 0; i % 2 == 0 && k < nhosts; k++)
            numbers[k] = k == h;
        for (int p = groups->first[h]; i % 2 && p < groups->first[h + 1]; p++)
            numbers[p] = number_of(groups->members[p], own->nrounds, i);
    }
    MUST(hvd__round_start(own->round) == HVD_OK);
}

static void check_result(int h)
{
    struct host *own = &hosts[h];
    const struct hvd__offer *offer = &own->round->offer;
    int least = SLOTS;

    for (int other = 0; other < nhosts; other++)
        if (offered[own->nrounds][other] < least)
            least = offered[own->nrounds][other];
    MUST(offer->n == least);
    MUST(offer->flags == 0);
    MUST(offer->values.threshold == 1);
    for (int i = 0; i < least; i++) {
        const int64_t *numbers =
            (const int64_t *)(const void *)(offer->data + offer->slots[i].at);

        if (way_of(i) == HVD__WAY_SPLITS)
            check_blocks(own, &offer->slots[i], i);
        if (way_of(i) == HVD__WAY_STRAIGHT)
            check_straight(own, i);
        if (way_of(i) == HVD__WAY_SPLITS || way_of(i) == HVD__WAY_STRAIGHT)
            continue;
        for (int k = 0; i % 2 == 0 && k < nhosts; k++)
            MUST(numbers[k] == 1);
        for (int p = 0; i % 2 && p < nmembers; p++)
            MUST(numbers[p] ==
                 number_of(own->hosts->members[p], own->nrounds, i));
    }
}

/* Returns how many messages a host sends in a round. */
static int messages_of(int h)
{
    int k = 0, folded;

    while (2 << k <= nhosts)
        k++;
    folded = nhosts - (1 << k);
    if (h >= 2 * folded)
        return k;
    return h % 2 ? k + 1 : 1;
}

static void step(int h)
{
    struct host *own = &hosts[h];
    bool moved = false;
    int done;

    if (own->nrounds == ROUNDS)
        return;
    if (!own->round->is_under_way)
        start_round(h);
    done = hvd__round_step(own->round, &moved);
    MUST(done >= 0);
    if (done == 0)
        return;
    check_result(h);
    own->nrounds++;
    own->ndue += messages_of(h);
    for (int i = 0; i < own->round->offer.n; i++)
        own->ndue += way_of(i) == HVD__WAY_HALVES ? messages_of(h) : 0;
    MUST(own->nsent == own->ndue);
}

static void end_hosts(void)
{
    for (int h = 0; h < nhosts; h++) {
        struct host *own = &hosts[h];

        MUST(own->nrounds == ROUNDS);
        while (hvd__round_pending(own->round) > 0)
            continue;
        MUST(atomic_load(&own->metrics.messages) == own->nsent);
    }
    for (int h = 0; h < nhosts; h++) {
        for (int to = 0; to < nhosts; to++) {
            for (int tag = TAG; tag <= TAG + 1; tag++) {
                MUST(!queue_of(tag, h, to)->first);
                MUST(!queue_of(tag, h, to)->awaited);
            }
        }
        hvd__round_free(hosts[h].round);
        hvd__hosts_free(hosts[h].hosts);
    }
}

static void run(int n)
{
    late = 1 + (int)any(4);
    begin_hosts(n);
    make_requests();
    for (int round = 0; round < ROUNDS; round++) {
        int least = (int)any(SLOTS + 1);

        for (int h = 0; h < n; h++)
            offered[round][h] = least + (int)any((uint32_t)(SLOTS - least + 1));
    }
    for (int over = 0; over < n;) {
        int h = (int)any((uint32_t)n), before = hosts[h].nrounds;

        /* Some hosts run far ahead. */
        for (uint32_t times = 1 + any(8); times > 0; times--)
            step(h);
        over += hosts[h].nrounds == ROUNDS && before < ROUNDS;
    }
    end_hosts();
}

LOOP_TEST(all_hosts_get_the_result_of_all, 2, 34)
{
    int times = getenv("HVD_TEST_FULL") ? 5000 : 100;

    for (int i = 0; i < times; i++) {
        seed = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(1 + i * 64 + _i);
        run(_i);
    }
}

TEST(hundreds_of_hosts)
{
    static const int sizes[] = {64, 100, 255, 256, 511, 512};

    for (int i = 0; i < 6; i++) {
        seed = (uint64_t)sizes[i];
        run(sizes[i]);
    }
}

TEST_MAIN("core_round", .seconds = 300)
