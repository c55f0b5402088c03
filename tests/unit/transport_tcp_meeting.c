/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of the transport over TCP meet in any order; who is missing, or does
 * not belong to them, is named; and a connection that breaks is an error. */
#include "tcp_ranks.h"

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

/* The world that was to begin does not, and its other ranks may make another
 * one. */
TEST(a_rank_0_that_has_been_started_again_is_lost)
{
    struct hvd__lobby *lobby;

    prepare(2, NULL);
    ck_assert_int_eq(hvd__lobby_open(&ranks[1].options, 1, 2, &lobby), HVD_OK);
    ranks[1].options.lobby = lobby;
    ranks[1].options.cluster = 98; /* the number of that world */
    start(0, 2);
    join(1, 2);
    expect_error(&ranks[1], HVD_ERR_LOST, "worker 0 at 127.0.0.1:");
    expect_error(&ranks[1], HVD_ERR_LOST, "has died and been started again");
    atomic_store(&ranks[0].gives_up, true);
    join(0, 1);
    hvd__lobby_close(lobby);
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

TEST_MAIN("transport_tcp_meeting", .set_up = set_up, .seconds = 60)
