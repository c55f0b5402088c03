/* SPDX-License-Identifier: Apache-2.0 */
/* A process of a cluster of four seeks a world: what it decides. The simulator
 * of recoveries has what many of them come to. */
#include "transport/tcp/seeker.h"

#include <string.h>

#include "suite.h"

enum { SIZE = 4, LIMIT = 1000, SILENCE = 100, SETTLE = 50 };

static bool is_member[SIZE], is_absent[SIZE];
static struct hvd__guest list[SIZE];
static struct hvd__guests guests;
static struct hvd__seeker seeker;
static int places[SIZE];
static struct hvd__admission admission;

/* Has this process be a rank of the cluster, whose first world needs least
 * ranks. It begins at 1. */
static void begin(int rank, int least)
{
    memset(is_member, 0, sizeof is_member);
    memset(is_absent, 0, sizeof is_absent);
    memset(list, 0, sizeof list);
    guests = (struct hvd__guests){
        .size = SIZE, .most = SIZE, .is_member = is_member, .list = list};
    seeker = (struct hvd__seeker){.guests = &guests,
                                  .is_absent = is_absent,
                                  .rank = rank,
                                  .least = least,
                                  .times = {LIMIT, 0, SILENCE, SETTLE}};
    admission = (struct hvd__admission){.ranks = places};
    hvd__seeker_begin(&seeker, 1);
}

static void come(int rank)
{
    ck_assert_int_eq(hvd__guests_judge(&guests, rank), HVD__ANSWER_WELCOME);
    hvd__guests_take(&guests, rank, 100 + rank);
}

/* Lists the guests, of whom these answer. Returns how many did. */
static int list_those(const char *answering, int64_t *tickets)
{
    hvd__guests_ping(&guests);
    for (; *answering; answering++)
        hvd__guests_hear(&guests, *answering - '0');
    return hvd__guests_list(&guests, tickets);
}

TEST(all_found_a_world_at_once)
{
    int64_t tickets[SIZE];
    int n;

    begin(0, 2);
    come(1);
    come(2);
    ck_assert_int_eq(hvd__seeker_step(&seeker, 2), HVD__SEEKER_WAITS);
    come(3);
    ck_assert_int_eq(hvd__seeker_step(&seeker, 3), HVD__SEEKER_FOUNDS);
    n = list_those("123", tickets);
    ck_assert(hvd__seeker_found(&seeker, tickets, n, &admission));
    ck_assert_int_eq(admission.n, 4);
    for (int rank = 0; rank < SIZE; rank++)
        ck_assert_int_eq(places[rank], rank);
}

TEST(some_wait_until_nobody_comes_and_nothing_listens_elsewhere)
{
    begin(0, 2);
    come(2);
    hvd__seeker_step(&seeker, 10);
    ck_assert_int_eq(hvd__seeker_step(&seeker, 90), HVD__SEEKER_WAITS);
    is_absent[1] = is_absent[3] = true;
    ck_assert_int_eq(hvd__seeker_step(&seeker, 91), HVD__SEEKER_FOUNDS);
    come(3);
    ck_assert_int_eq(hvd__seeker_step(&seeker, 92), HVD__SEEKER_WAITS);
    ck_assert_int_eq(hvd__seeker_step(&seeker, 92 + SETTLE),
                     HVD__SEEKER_FOUNDS);
}

TEST(no_world_is_founded_without_the_least_or_one_that_is_silent)
{
    int64_t tickets[SIZE];

    begin(0, 3);
    come(1);
    is_absent[2] = is_absent[3] = true;
    hvd__seeker_step(&seeker, 2);
    ck_assert_int_eq(hvd__seeker_step(&seeker, 500), HVD__SEEKER_WAITS);
    come(2);
    hvd__seeker_step(&seeker, 501);
    ck_assert_int_eq(hvd__seeker_step(&seeker, 600), HVD__SEEKER_FOUNDS);
    ck_assert(!hvd__seeker_found(&seeker, tickets, list_those("2", tickets),
                                 &admission));
    ck_assert_int_eq(tickets[1], 0);
    ck_assert_int_eq(tickets[2], 102);
}

TEST(a_world_has_no_more_than_the_most)
{
    int64_t tickets[SIZE];

    begin(0, 2);
    guests.most = 2;
    for (int rank = 1; rank < SIZE; rank++)
        come(rank);
    hvd__seeker_step(&seeker, 2);
    ck_assert(hvd__seeker_found(&seeker, tickets, list_those("123", tickets),
                                &admission));
    ck_assert_int_eq(admission.n, 2);
    ck_assert_int_eq(places[1], 1);
}

TEST(a_guest_that_does_not_answer_thrice_is_forgotten)
{
    int64_t tickets[SIZE];

    begin(0, 2);
    come(1);
    for (int round = 0; round < 2; round++)
        ck_assert_int_eq(list_those("", tickets), 0);
    ck_assert_int_eq(list_those("1", tickets), 1);
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(hvd__guests_judge(&guests, 1), HVD__ANSWER_TAKEN);
        ck_assert_int_eq(list_those("", tickets), 0);
    }
    ck_assert_int_eq(hvd__guests_judge(&guests, 1), HVD__ANSWER_WELCOME);
}

TEST(only_the_guest_that_was_listed_is_let_in)
{
    begin(0, 2);
    come(1);
    hvd__guests_drop(&guests, 1);
    hvd__guests_take(&guests, 1, 201);
    ck_assert(!hvd__guests_admit(&guests, 1, 101));
    ck_assert(hvd__guests_admit(&guests, 1, 201));
    hvd__guests_settle(&guests);
    ck_assert_int_eq(hvd__guests_judge(&guests, 1), HVD__ANSWER_WELCOME);
}

TEST(a_rank_of_the_world_is_no_guest)
{
    begin(1, 2);
    ck_assert_int_eq(hvd__guests_judge(&guests, 2), HVD__ANSWER_LATER);
    hvd__guests_members(&guests, (const int[]){1, 2}, 2);
    ck_assert_int_eq(hvd__guests_judge(&guests, 2), HVD__ANSWER_TAKEN);
    ck_assert_int_eq(hvd__guests_judge(&guests, 3), HVD__ANSWER_WELCOME);
    ck_assert_int_eq(hvd__guests_room(&guests), 2);
}

TEST(one_that_finds_a_world_has_no_guests_and_forgets_who_was_absent)
{
    begin(0, 1);
    come(2);
    is_absent[1] = is_absent[2] = is_absent[3] = true;
    hvd__seeker_find(&seeker, 3, 10);
    ck_assert_int_eq(atomic_load(&guests.count), 0);
    ck_assert_int_eq(hvd__guests_judge(&guests, 2), HVD__ANSWER_LATER);
    hvd__seeker_lose(&seeker);
    ck_assert_int_eq(hvd__guests_judge(&guests, 2), HVD__ANSWER_WELCOME);
    ck_assert_int_eq(hvd__seeker_step(&seeker, 900), HVD__SEEKER_WAITS);
}

TEST(an_admission_is_of_ranks_of_the_cluster_and_of_this_one)
{
    const int others[] = {0, 2}, wrong[] = {1, SIZE}, right[] = {0, 1};
    const int *const all[] = {others, wrong, right};

    for (int i = 0; i < 3; i++) {
        begin(1, 2);
        hvd__seeker_find(&seeker, 0, 2);
        memcpy(places, all[i], sizeof others);
        admission.n = 2;
        ck_assert_int_eq(
            hvd__seeker_hear(&seeker, HVD__NOTE_ADMIT, &admission, 3),
            i == 2 ? HVD__SEEKER_ENTERS : HVD__SEEKER_LOSES);
        ck_assert_int_eq(seeker.host, i == 2 ? 0 : -1);
    }
    ck_assert_int_eq(hvd__seeker_hear(&seeker, HVD__NOTE_END, NULL, 4),
                     HVD__SEEKER_ENDS);
}

TEST(a_silent_host_is_left_and_time_is_given_to_find_another_one)
{
    begin(1, 2);
    hvd__seeker_find(&seeker, 0, 10);
    ck_assert_int_eq(hvd__seeker_hear(&seeker, HVD__NOTE_PING, NULL, LIMIT),
                     HVD__SEEKER_ANSWERS);
    ck_assert_int_eq(hvd__seeker_step(&seeker, LIMIT + SILENCE),
                     HVD__SEEKER_WAITS);
    ck_assert_int_eq(hvd__seeker_step(&seeker, LIMIT + SILENCE + 1),
                     HVD__SEEKER_LEAVES);
    /* The limit of a seeker begins when it last heard its host. */
    ck_assert_int_eq(hvd__seeker_step(&seeker, 2 * LIMIT), HVD__SEEKER_WAITS);
    ck_assert_int_eq(hvd__seeker_step(&seeker, 2 * LIMIT + 1),
                     HVD__SEEKER_GIVES_UP);
}

TEST(nobody_is_waited_for_longer_than_the_limit)
{
    begin(1, 2);
    ck_assert_int_eq(hvd__seeker_step(&seeker, 1 + LIMIT), HVD__SEEKER_WAITS);
    ck_assert_int_eq(hvd__seeker_step(&seeker, 2 + LIMIT),
                     HVD__SEEKER_GIVES_UP);
    /* One that hears a host all the time is not late. */
    begin(1, 2);
    seeker.times.silence = 0;
    hvd__seeker_find(&seeker, 0, 2);
    ck_assert_int_eq(hvd__seeker_step(&seeker, 9 * LIMIT), HVD__SEEKER_WAITS);
}

TEST_MAIN("transport_tcp_seeker", .seconds = 30)
