/* SPDX-License-Identifier: Apache-2.0 */
/* The transport over TCP: ranks, which are threads here, meet in any order and
 * move data; whoever does not belong to them has no effect. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "suite.h"
#include "transport/tcp/handshake.h"
#include "transport/transport.h"

enum { MOST = 8, SECOND = 1000000000 };

static char addresses[MOST][32];
static int ports[MOST];
static const char *address_of[MOST];
static const char *const name_of[MOST] = {"worker 0", "worker 1", "worker 2",
                                          "worker 3", "worker 4", "worker 5",
                                          "worker 6", "worker 7"};
static const char key[] = "a key of thirty-two bytes or so.";

static void nap(int ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

static bool is_free(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0), status;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons((uint16_t)port);
    status = bind(fd, (struct sockaddr *)&at, sizeof at);
    close(fd);
    return status == 0;
}

/* Finds ports that nobody uses, below those that the kernel gives to the
 * connections of others. */
static void find_ports(void)
{
    unsigned seed = (unsigned)hvd__now_ns();

    for (int i = 0; i < MOST; i++) {
        do
            ports[i] = 10000 + rand_r(&seed) % 22767;
        while (!is_free(ports[i]));
        snprintf(addresses[i], sizeof addresses[i], "127.0.0.1:%d", ports[i]);
        address_of[i] = addresses[i];
    }
}

static void set_up(void)
{
    hvd__log_set(HVD__LOG_ERROR, -1);
    find_ports();
}

/* A rank, which is a thread. */
struct rank {
    struct hvd__tcp_options options;
    int delay_ms;
    void (*run)(struct rank *rank); /* NULL: only meets */
    atomic_bool gives_up;           /* as if it was interrupted */
    struct hvd__transport *transport;
    int status;
    char error[HVD__MESSAGE_MAX];
    pthread_t thread;
    unsigned seed;
};

static int ask(void *context)
{
    struct rank *rank = context;

    return atomic_load(&rank->gives_up) ? hvd__fail(HVD_ERR_LOST, "interrupted")
                                        : HVD_OK;
}

static void finish(struct rank *rank, struct hvd__transfer *transfer)
{
    int done;

    while ((done = rank->transport->test(rank->transport, transfer)) == 0)
        ;
    ck_assert_msg(done == 1, "%s", hvd_last_error());
}

static void part(struct rank *rank)
{
    int done;

    while ((done = rank->transport->part(rank->transport)) == 0)
        nap(1);
    ck_assert_msg(done == 1, "%s", hvd_last_error());
}

static void *live(void *argument)
{
    struct rank *rank = argument;
    const struct hvd__asked asked = {ask, rank};

    nap(rank->delay_ms);
    rank->status = hvd__tcp_open(&rank->options, &asked, &rank->transport);
    if (rank->status < 0) {
        snprintf(rank->error, sizeof rank->error, "%s", hvd_last_error());
        return NULL;
    }
    if (rank->run)
        rank->run(rank);
    part(rank);
    rank->transport->close(rank->transport);
    return NULL;
}

static struct rank ranks[MOST];

static void prepare(int size, void (*run)(struct rank *))
{
    for (int i = 0; i < size; i++)
        ranks[i] = (struct rank){
            .options = {.rank = i,
                        .size = size,
                        .addresses = address_of,
                        .names = name_of,
                        .cluster = 99,
                        .key = key,
                        .key_bytes = sizeof key,
                        .limit_ns = (int64_t)20 * SECOND,
                        .grace_ns = SECOND},
            .run = run,
            .seed = (unsigned)i + 1,
        };
}

static void start(int first, int end)
{
    for (int i = first; i < end; i++)
        ck_assert_int_eq(
            pthread_create(&ranks[i].thread, NULL, live, &ranks[i]), 0);
}

static void join(int first, int end)
{
    for (int i = first; i < end; i++)
        pthread_join(ranks[i].thread, NULL);
}

static void all_are_well(int size)
{
    for (int i = 0; i < size; i++)
        ck_assert_msg(ranks[i].status == HVD_OK, "rank %d: %s", i,
                      ranks[i].error);
}

static void expect_error(const struct rank *rank, int status, const char *words)
{
    ck_assert_int_eq(rank->status, status);
    ck_assert_msg(strstr(rank->error, words), "'%s' lacks '%s'", rank->error,
                  words);
}

/* --------------------------------------------------------------- moving data
 */

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
    prepare(2, take_in_another_order);
    start(0, 2);
    join(0, 2);
    all_are_well(2);
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
    prepare(sizes[_i], move_messages);
    start(0, sizes[_i]);
    join(0, sizes[_i]);
    all_are_well(sizes[_i]);
}

static void exchange(struct rank *rank)
{
    struct hvd__transport *t = rank->transport;
    int mine[3] = {t->rank, t->rank * t->rank, 7}, all[MOST][3];

    for (int i = 0; i < 50; i++) {
        mine[2] = i;
        ck_assert_int_eq(t->exchange(t, mine, all, sizeof mine), HVD_OK);
        for (int r = 0; r < t->size; r++) {
            ck_assert_int_eq(all[r][0], r);
            ck_assert_int_eq(all[r][1], r * r);
            ck_assert_int_eq(all[r][2], i);
        }
    }
}

LOOP_TEST(exchanges_gather_from_all, 0, 6)
{
    prepare(sizes[_i], exchange);
    start(0, sizes[_i]);
    join(0, sizes[_i]);
    all_are_well(sizes[_i]);
}

/* A rank may be done with a run, and begin the next one, while others end it.
 */
TEST(runs_follow_each_other)
{
    for (int run = 0; run < 20; run++) {
        prepare(3, exchange);
        start(0, 3);
        join(0, 3);
        all_are_well(3);
    }
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

/* -------------------------------------------------------------- the meeting */

TEST(the_missing_are_named)
{
    prepare(4, NULL);
    for (int i = 0; i < 4; i++)
        ranks[i].options.limit_ns = SECOND / 2 + (i > 0) * (int64_t)SECOND;
    start(0, 2);
    join(0, 2);
    expect_error(&ranks[0], HVD_ERR_LOST, "worker 2 at 127.0.0.1:");
    expect_error(&ranks[0], HVD_ERR_LOST, "worker 3 at 127.0.0.1:");
    expect_error(&ranks[1], HVD_ERR_LOST, "worker 2 at 127.0.0.1:");
}

TEST(a_missing_rank_0_is_named)
{
    prepare(2, NULL);
    ranks[1].options.limit_ns = SECOND / 3;
    start(1, 2);
    join(1, 2);
    expect_error(&ranks[1], HVD_ERR_LOST, "worker 0 at 127.0.0.1:");
    expect_error(&ranks[1], HVD_ERR_LOST, "refused");
}

/* Ranks are interrupted before all have met, and started again. */
LOOP_TEST(a_rank_may_be_started_again, 0, 3)
{
    prepare(3, exchange);
    start(_i, _i + 1);
    start((_i + 1) % 3, (_i + 1) % 3 + 1);
    nap(150);
    atomic_store(&ranks[_i].gives_up, true);
    join(_i, _i + 1);
    expect_error(&ranks[_i], HVD_ERR_LOST, "interrupted");
    atomic_store(&ranks[_i].gives_up, false);
    start(_i, _i + 1);
    nap(100);
    start((_i + 2) % 3, (_i + 2) % 3 + 1);
    join(0, 3);
    all_are_well(3);
}

/* A rank that does not belong to the others is refused, and they still meet
 * when the right one comes. */
static void refuse_then_meet(const char *words)
{
    start(0, 2);
    join(1, 2);
    expect_error(&ranks[1], HVD_ERR_LAUNCH, words);
    ranks[1].options = ranks[0].options;
    ranks[1].options.rank = 1;
    start(1, 2);
    join(0, 2);
    all_are_well(2);
}

TEST(another_key_is_refused)
{
    prepare(2, exchange);
    ranks[1].options.key = "b key of thirty-two bytes or so.";
    refuse_then_meet("worker 0 at 127.0.0.1");
}

TEST(no_key_is_refused)
{
    prepare(2, exchange);
    ranks[1].options.key = NULL;
    ranks[1].options.key_bytes = 0;
    refuse_then_meet("has another key of the job");
}

TEST(another_cluster_is_refused)
{
    prepare(2, exchange);
    ranks[1].options.cluster = 98;
    refuse_then_meet("has another description of the cluster");
}

TEST(a_rank_that_is_there_is_not_replaced)
{
    static struct rank twin;

    prepare(3, exchange);
    start(0, 2);
    nap(100);
    prepare(0, NULL);
    twin = (struct rank){.options = ranks[1].options};
    live(&twin);
    expect_error(&twin, HVD_ERR_CONFIG, "does this task run already?");
    start(2, 3);
    join(0, 3);
    all_are_well(3);
}

TEST(a_port_in_use_is_named)
{
    prepare(2, NULL);
    address_of[1] = address_of[0];
    start(0, 1);
    nap(100);
    start(1, 2);
    join(1, 2);
    expect_error(&ranks[1], HVD_ERR_CONFIG,
                 "rank 1 cannot listen on 127.0.0.1");
    atomic_store(&ranks[0].gives_up, true);
    join(0, 1);
}

TEST(an_address_of_another_host_is_named)
{
    prepare(1, NULL);
    address_of[0] = "192.0.2.1:4444";
    start(0, 1);
    join(0, 1);
    expect_error(&ranks[0], HVD_ERR_CONFIG, "is this the host of this task?");
}

TEST(without_a_key_only_the_loopback_interface_is_used)
{
    prepare(1, NULL);
    address_of[0] = "0.0.0.0:4444";
    ranks[0].options.key = NULL;
    ranks[0].options.key_bytes = 0;
    start(0, 1);
    join(0, 1);
    expect_error(&ranks[0], HVD_ERR_CONFIG, "give all processes a key");
}

TEST(names_of_hosts_are_looked_up)
{
    char names[2][32];

    prepare(2, exchange);
    for (int i = 0; i < 2; i++) {
        snprintf(names[i], sizeof names[i], "localhost:%d", ports[i]);
        address_of[i] = names[i];
    }
    start(0, 2);
    join(0, 2);
    all_are_well(2);
}

/* ---------------------------------------------------------------- strangers */

static int connect_to(int rank)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    const struct timeval limit = {.tv_sec = 20};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons((uint16_t)ports[rank]);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static atomic_bool is_besieged;

/* Keeps moving data as long as strangers come. */
static void move_on(struct rank *rank)
{
    struct hvd__transport *t = rank->transport;
    int goes_on = 1;

    while (goes_on) {
        int mine = t->rank > 0 || atomic_load(&is_besieged), all[MOST];

        ck_assert_int_eq(t->exchange(t, &mine, all, sizeof mine), HVD_OK);
        goes_on = all[0];
        exchange(rank);
    }
}

/* Ends like a connection in which the other side has hung up. */
static bool is_hung_up(int fd)
{
    char bytes[256];
    ssize_t got;

    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0)
        ;
    return got == 0 || errno == ECONNRESET;
}

static void send_garbage(int nranks)
{
    char garbage[200];

    for (int i = 0; i < 1000; i++) {
        int fd = connect_to(i % nranks);

        ck_assert_int_ge(fd, 0);
        memset(garbage, 'a' + i % 26, sizeof garbage);
        (void)!send(fd, garbage, (size_t)(1 + i % 200), MSG_NOSIGNAL);
        if (i % 50 == 0)
            ck_assert(i % 200 < 4 || is_hung_up(fd));
        close(fd);
    }
}

/* Connections that say nothing push out the oldest of their kind. */
static void stay_half_open(void)
{
    int fds[300];

    for (int i = 0; i < 300; i++) {
        fds[i] = connect_to(0);
        ck_assert_int_ge(fds[i], 0);
    }
    ck_assert(is_hung_up(fds[0]));
    for (int i = 0; i < 300; i++)
        close(fds[i]);
}

/* Says what rank 2 says to rank 0, with a proof that is wrong, or cut. */
static void forge(size_t bytes)
{
    const struct hvd__job job = {
        .rank = 2, .size = 3, .cluster = 99, .session = 0};
    struct hvd__hello hello;
    char proof[HVD__PROOF_BYTES] = "forged";
    int fd = connect_to(0);

    ck_assert(hvd__hello_fill(&hello, &job, 0));
    ck_assert_int_eq(send(fd, &hello, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
    if (bytes == sizeof hello) {
        struct hvd__challenge challenge;

        ck_assert_int_eq(recv(fd, &challenge, sizeof challenge, MSG_WAITALL),
                         sizeof challenge);
        (void)!send(fd, proof, sizeof proof, MSG_NOSIGNAL);
        ck_assert(is_hung_up(fd));
    }
    close(fd);
}

TEST(strangers_have_no_effect)
{
    int fd;

    atomic_store(&is_besieged, true);
    prepare(3, move_on);
    start(0, 2);
    nap(50);
    /* While the ranks meet, and while they work. */
    for (int i = 0; i < 2; i++) {
        send_garbage(2 + i);
        stay_half_open();
        for (size_t bytes = 1; bytes <= sizeof(struct hvd__hello); bytes++)
            forge(bytes);
        if (i == 0) {
            start(2, 3);
            while ((fd = connect_to(2)) < 0)
                nap(1);
            close(fd);
        }
    }
    atomic_store(&is_besieged, false);
    join(0, 3);
    all_are_well(3);
}

/* A handshake that was recorded proves nothing later. */
TEST(a_handshake_is_good_once)
{
    const struct hvd__job caller = {.rank = 1,
                                    .size = 2,
                                    .cluster = 99,
                                    .key = key,
                                    .key_bytes = sizeof key};
    struct hvd__job called = caller;
    struct hvd__hello hello;
    struct hvd__challenge first, second;
    uint8_t proof[HVD__PROOF_BYTES];

    called.rank = 0;
    ck_assert(hvd__hello_fill(&hello, &caller, 0));
    ck_assert_int_eq(hvd__hello_judge(&hello, &called), HVD__ANSWER_WELCOME);
    ck_assert(
        hvd__challenge_fill(&first, &hello, &called, HVD__ANSWER_WELCOME));
    ck_assert(
        hvd__challenge_fill(&second, &hello, &called, HVD__ANSWER_WELCOME));
    ck_assert_int_eq(hvd__challenge_judge(&first, &hello, &caller),
                     HVD__ANSWER_WELCOME);
    hvd__proof_fill(proof, &first, &hello, &caller);
    ck_assert(hvd__proof_holds(proof, &first, &hello, &called));
    ck_assert(!hvd__proof_holds(proof, &second, &hello, &called));
    /* Nor in the other direction. */
    ck_assert(!hvd__proof_holds(first.proof, &first, &hello, &called));
    for (size_t i = 0; i < sizeof hello; i++) {
        ((unsigned char *)&hello)[i] ^= 1;
        ck_assert(!hvd__proof_holds(proof, &first, &hello, &called));
        ((unsigned char *)&hello)[i] ^= 1;
    }
}

/* ------------------------------------------------------------------- faults */

static void vanish(struct rank *rank)
{
    if (rank->options.rank == 1)
        atomic_store(&rank->gives_up, true);
}

/* A rank whose connections end is an error after the grace. */
static void wait_for_rank_1(struct rank *rank)
{
    struct hvd__transport *t = rank->transport;
    struct hvd__transfer transfer;
    char byte;
    int done;

    if (t->rank == 1) {
        vanish(rank);
        return;
    }
    ck_assert_int_eq(t->receive(t, 1, 5, &byte, 1, &transfer), HVD_OK);
    while ((done = t->test(t, &transfer)) == 0)
        ;
    ck_assert_int_eq(done, HVD_ERR_LOST);
    ck_assert(strstr(hvd_last_error(), "rank 1 over TCP broke"));
}

static void *live_without_end(void *argument)
{
    struct rank *rank = argument;
    const struct hvd__asked asked = {ask, rank};

    rank->status = hvd__tcp_open(&rank->options, &asked, &rank->transport);
    ck_assert_int_eq(rank->status, HVD_OK);
    exchange(rank);
    wait_for_rank_1(rank);
    rank->transport->close(rank->transport);
    return NULL;
}

TEST(a_broken_connection_is_an_error_after_the_grace)
{
    prepare(3, NULL);
    for (int i = 0; i < 3; i++) {
        ranks[i].options.grace_ns = SECOND / 5;
        ck_assert_int_eq(
            pthread_create(&ranks[i].thread, NULL, live_without_end, &ranks[i]),
            0);
    }
    join(0, 3);
}

TEST_MAIN("transport_tcp", .set_up = set_up, .seconds = 60)
