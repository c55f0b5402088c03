/* SPDX-License-Identifier: Apache-2.0 */
/* The transport over TCP moves transfers and messages between ranks, in one run
 * after the other. */
#include "tcp_ranks.h"

static void fill(unsigned char *data, size_t bytes, int from, int to, int i)
{
    for (size_t k = 0; k < bytes; k++)
        data[k] = (unsigned char)(k * 7 + k / 251 +
                                  (size_t)(from * 31 + to * 17 + i));
}

enum { TRANSFERS = 12 };

static size_t bytes_of(int from, int to, int i)
{
    static const size_t sizes[] = {1, 4, 100, 4096, 65536, 300001, 5000000};

    return sizes[(from * 3 + to + i * 5) % 7];
}

static int tag_of(int i)
{
    return i % 3 * 1000000;
}

/* Every rank sends to every rank, itself included, in several tags at once, and
 * receives some time later, or earlier. */
static void move_transfers(struct rank *rank)
{
    struct hvd__transport *t = rank->transport;
    static _Thread_local struct hvd__transfer out[MOST][TRANSFERS],
        in[MOST][TRANSFERS];
    static _Thread_local unsigned char *sent[MOST][TRANSFERS],
        *got[MOST][TRANSFERS];
    unsigned char *expected = malloc(5000000);

    for (int i = 0; i < TRANSFERS; i++)
        for (int peer = 0; peer < t->size; peer++) {
            size_t to = bytes_of(t->rank, peer, i),
                   from = bytes_of(peer, t->rank, i);

            sent[peer][i] = malloc(to);
            got[peer][i] = malloc(from + 9);
            fill(sent[peer][i], to, t->rank, peer, i);
            if (rand_r(&rank->seed) % 8 == 0)
                nap(1);
            ck_assert_int_eq(
                t->send(t, peer, tag_of(i), sent[peer][i], to, &out[peer][i]),
                HVD_OK);
            /* It may give more room than is needed. */
            ck_assert_int_eq(t->receive(t, peer, tag_of(i), got[peer][i],
                                        from + 9, &in[peer][i]),
                             HVD_OK);
        }
    for (int i = TRANSFERS - 1; i >= 0; i--)
        for (int peer = 0; peer < t->size; peer++) {
            size_t from = bytes_of(peer, t->rank, i);

            finish(rank, &in[peer][i]);
            finish(rank, &out[peer][i]);
            fill(expected, from, peer, t->rank, i);
            ck_assert_msg(memcmp(got[peer][i], expected, from) == 0,
                          "transfer %d from %d to %d differs", i, peer,
                          t->rank);
            free(got[peer][i]);
            free(sent[peer][i]);
        }
    free(expected);
}

static const int sizes[] = {1, 2, 3, 4, 5, 8};

LOOP_TEST(transfers_arrive, 0, 6)
{
    prepare(sizes[_i], move_transfers);
    for (int i = 0; i < sizes[_i]; i++)
        ranks[i].delay_ms = (i * 37 + 11) % 50;
    start(0, sizes[_i]);
    join(0, sizes[_i]);
    all_are_well(sizes[_i]);
}

enum { LONG = 3000000, LONGER = 20000 };

/* Rank 1 sends a long transfer first; rank 0 wants what follows it first, and
 * takes the long one at once, after a moment, or after more than it waits. */
static void take_in_another_order(struct rank *rank)
{
    struct hvd__transport *t = rank->transport;
    static const int naps_ms[] = {0, 1, 30};
    unsigned char *data = malloc(LONG), *expected = malloc(LONG);
    struct hvd__transfer transfers[2];

    for (int i = 0; i < 30; i++) {
        fill(expected, LONG, 1, 0, i);
        if (t->rank == 1) {
            memcpy(data, expected, LONG);
            for (int tag = 1; tag <= 2; tag++)
                ck_assert_int_eq(t->send(t, 0, tag, data,
                                         tag == 1 ? LONG : LONGER,
                                         &transfers[tag - 1]),
                                 HVD_OK);
            finish(rank, &transfers[0]);
            finish(rank, &transfers[1]);
            continue;
        }
        for (int tag = 2; tag >= 1; tag--) {
            size_t bytes = tag == 1 ? LONG : LONGER;

            memset(data, 0, bytes);
            ck_assert_int_eq(t->receive(t, 1, tag, data, bytes, transfers),
                             HVD_OK);
            finish(rank, transfers);
            ck_assert_msg(memcmp(data, expected, bytes) == 0,
                          "round %d, tag %d differs", i, tag);
            nap(naps_ms[i % 3]);
        }
    }
    free(data);
    free(expected);
}

TEST(a_long_transfer_holds_nothing_up)
{
    run_ranks(2, take_in_another_order);
}

enum { MESSAGES = 300 };

/* Messages stay in order between two ranks. */
static void move_messages(struct rank *rank)
{
    struct hvd__transport *t = rank->transport;
    int next[MOST] = {0}, nleft = MESSAGES * t->size, posted = 0;

    while (nleft > 0) {
        int *message, peer, found;
        size_t bytes;

        for (int to = 0; posted < MESSAGES && to < t->size; to++) {
            bytes = sizeof(int) * (size_t)(2 + posted % 1000 * 50);
            message = calloc(1, bytes);
            message[0] = posted;
            message[bytes / sizeof(int) - 1] = t->rank + 5;
            ck_assert_int_eq(t->post(t, to, message, bytes), HVD_OK);
        }
        posted++;
        found = t->poll(t, &peer, (void **)&message, &bytes);
        ck_assert_msg(found >= 0, "%s", hvd_last_error());
        if (!found)
            continue;
        ck_assert_int_eq(message[0], next[peer]);
        ck_assert_int_eq(message[bytes / sizeof(int) - 1], peer + 5);
        next[peer]++;
        nleft--;
        free(message);
    }
    while (t->pending(t) > 0)
        ;
}

LOOP_TEST(messages_stay_in_order, 0, 6)
{
    run_ranks(sizes[_i], move_messages);
}

LOOP_TEST(exchanges_gather_from_all, 0, 6)
{
    run_ranks(sizes[_i], exchange);
}

/* A rank may be done with a run, and begin the next one, while others end it.
 */
TEST(runs_follow_each_other)
{
    for (int run = 0; run < 20; run++)
        run_ranks(3, exchange);
}

static void *live_often(void *argument)
{
    for (int run = 0; run < 10; run++)
        live(argument);
    return NULL;
}

TEST(a_rank_that_begins_again_waits_for_the_others)
{
    prepare(4, exchange);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            pthread_create(&ranks[i].thread, NULL, live_often, &ranks[i]), 0);
    join(0, 4);
    all_are_well(4);
}

TEST_MAIN("transport_tcp", .set_up = set_up, .seconds = 60)
