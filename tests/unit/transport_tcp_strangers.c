/* SPDX-License-Identifier: Apache-2.0 */
/* Whoever connects to ranks of the transport over TCP without belonging to them
 * has no effect, and a handshake that was recorded is worth nothing. */
#include <errno.h>

#include "tcp_ranks.h"
#include "transport/tcp/handshake.h"

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

TEST_MAIN("transport_tcp_strangers", .set_up = set_up, .seconds = 60)
