/* SPDX-License-Identifier: Apache-2.0 */
/* Members of three hosts, which are threads here, find out whether a world that
 * was to grow has started (watch/members_settle.c), whoever of them failed. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "suite.h"
#include "watch/members.h"

enum { N = 3 };
#define MS INT64_C(1000000)

/* An exchange between threads. */
static pthread_barrier_t meeting;
static const void *offers[N];

static int exchange(struct hvd__transport *t, const void *mine, void *all,
                    size_t bytes)
{
    offers[t->rank] = mine;
    pthread_barrier_wait(&meeting);
    for (int i = 0; i < N; i++)
        memcpy((char *)all + (size_t)i * bytes, offers[i], bytes);
    pthread_barrier_wait(&meeting);
    return HVD_OK;
}

static const char *host_of(const void *names, int rank)
{
    return ((const char *const *)names)[rank];
}

static const char *const apart[N] = {"a", "b", "c"};

struct member {
    struct hvd__transport transport;
    const char *const *hosts; /* of the old world */
    bool fails, exists;
    int status, n; /* of the next round, if the new world does not exist */
};

static atomic_int nsettled;

static struct hvd__members *open_members(struct member *member,
                                         const char *const *hosts)
{
    static const unsigned char loopback[16] = {
        [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
    struct hvd__members_options options = {.heartbeat_ns = 5000 * MS,
                                           .limit_ns = 20000 * MS};
    struct hvd__members *members = NULL;

    memcpy(&options.address, loopback, sizeof loopback);
    member->status = hvd__members_open(&members, &member->transport, host_of,
                                       hosts, &options);
    return members;
}

static int be_ready(void *unused)
{
    (void)unused;
    return 1;
}

/* Answers for others until all know what they want to know. */
static void tend(struct hvd__members *members)
{
    char text[200];

    atomic_fetch_add(&nsettled, 1);
    for (int i = 0; i < 5000 && atomic_load(&nsettled) < N; i++) {
        hvd__members_tend(members, text, sizeof text);
        nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
    }
}

static void *live(void *argument)
{
    struct member *member = argument;
    struct hvd__members *old = open_members(member, member->hosts), *made;

    if (!old || hvd__members_agree(old, be_ready, NULL) < 0)
        return NULL;
    made = open_members(member, apart);
    if (!made)
        return NULL;
    member->exists =
        hvd__members_share_host(old)
            ? hvd__members_settle(old, !member->fails)
            : hvd__members_settle_in_letters(old, made, !member->fails);
    if (!member->exists) {
        member->status = hvd__members_agree(old, be_ready, NULL);
        hvd__members_list(old, &member->n);
    }
    tend(old);
    pthread_barrier_wait(&meeting);
    hvd__members_close(made);
    hvd__members_close(old);
    return NULL;
}

/* Bit i of fails: member i has not started. */
static void run(struct member members[N], const char *const *hosts, int fails)
{
    pthread_t threads[N];

    atomic_store(&nsettled, 0);
    pthread_barrier_init(&meeting, NULL, N);
    for (int i = 0; i < N; i++) {
        members[i] = (struct member){
            .transport = {.rank = i, .size = N, .exchange = exchange},
            .hosts = hosts,
            .fails = fails >> i & 1};
        pthread_create(&threads[i], NULL, live, &members[i]);
    }
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&meeting);
}

/* As long as one has started it, all belong to it. */
LOOP_TEST(a_world_that_has_started_anywhere_exists_for_all, 0, 7)
{
    struct member members[N];

    run(members, apart, _i);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(members[i].status, HVD_OK);
        ck_assert(members[i].exists);
    }
}

TEST(a_world_that_has_started_nowhere_is_followed_by_a_next_one_of_all)
{
    struct member members[N];

    run(members, apart, 7);
    for (int i = 0; i < N; i++) {
        ck_assert(!members[i].exists);
        ck_assert_int_eq(members[i].status, HVD_OK);
        ck_assert_int_eq(members[i].n, N);
    }
}

/* A world of one host that was to grow over others. */
LOOP_TEST(on_one_host_the_first_word_counts_for_all, 0, 8)
{
    static const char *const together[N] = {"a", "a", "a"};
    struct member members[N];

    run(members, together, _i);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(members[i].status, HVD_OK);
        ck_assert_int_eq(members[i].exists, members[0].exists);
        ck_assert(members[i].exists || _i != 0);
        ck_assert(!members[i].exists || _i != 7);
    }
}

TEST_MAIN("watch_settle", .seconds = 60)
