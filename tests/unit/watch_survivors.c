/* SPDX-License-Identifier: Apache-2.0 */
/* Members agree on who is left, step by step; a letter arrives as it was
 * written. What happens in disorder, hvd-sim-recovery explores. */
#include <string.h>

#include "suite.h"
#include "watch/letter.h"

enum { N = 5 };
#define MS INT64_C(1000000)

static const struct hvd__survivors_times times = {1000 * MS, 5000 * MS, 20 * MS,
                                                  10 * MS, 50 * MS};
static const uint64_t key[2] = {7, 9};
static struct hvd__survivors all[N];
static bool is_dead[N];
static bool is_parted[N][N]; /* these two do not reach each other */

static void begin(void)
{
    memset(is_dead, 0, sizeof is_dead);
    memset(is_parted, 0, sizeof is_parted);
    for (int i = 0; i < N; i++)
        hvd__survivors_init(&all[i], N, i, &times);
}

static void enter(int member)
{
    hvd__survivors_enter(&all[member]);
    hvd__survivors_be_ready(&all[member]);
}

/* Delivers all letters, and lets time pass, in steps of 5 ms. */
static void pass(int64_t ns)
{
    struct hvd__letter letter;

    for (; ns > 0; ns -= 5 * MS)
        for (int i = 0; i < N; i++) {
            int to;

            if (is_dead[i])
                continue;
            hvd__survivors_pass(&all[i], 5 * MS);
            while ((to = hvd__survivors_next(&all[i], &letter)) >= 0)
                if (!is_dead[to] && !is_parted[i][to])
                    hvd__survivors_hear(&all[to], &letter);
        }
}

static struct hvd__member_set set_of(const char *members)
{
    struct hvd__member_set set = {{0}};

    for (; *members; members++)
        hvd__member_set_add(&set, *members - '0');
    return set;
}

static void expect_decided(const char *members)
{
    struct hvd__member_set list = set_of(members);

    for (; *members; members++) {
        const struct hvd__survivors *s = &all[*members - '0'];

        ck_assert_int_eq(s->stage, HVD__STAGE_DECIDED);
        ck_assert_uint_eq(s->round, all[(unsigned char)*members - '0'].round);
        ck_assert(memcmp(&s->list, &list, sizeof list) == 0);
    }
}

/* One of a host with others dies. */
TEST(survivors_of_a_death_decide)
{
    for (int victim = 0; victim < N; victim++) {
        char left[N + 1] = "", *end = left;

        begin();
        is_dead[victim] = true;
        for (int i = 0; i < N; i++)
            if (i != victim) {
                *end++ = (char)('0' + i);
                enter(i);
            }
        hvd__survivors_lose(&all[(victim + 1) % N], victim, 1);
        pass(100 * MS);
        expect_decided(left);
    }
}

TEST(who_is_not_ready_is_waited_for_and_then_left_out)
{
    begin();
    for (int i = 0; i < N - 1; i++)
        enter(i);
    pass(4900 * MS);
    ck_assert_int_eq(all[0].stage, HVD__STAGE_AGREEING);
    pass(300 * MS);
    expect_decided("0123");
    /* The members of the new world tell the one that comes late. */
    for (int i = 0; i < N - 1; i++)
        hvd__survivors_start(&all[i]);
    enter(N - 1);
    pass(100 * MS);
    ck_assert_int_eq(all[N - 1].stage, HVD__STAGE_OUT);
}

/* Hosts of 0 and 1, of 2, and of 3 and 4: the first and the last do not reach
 * each other, and 0 was given up. So 1 leads, and sees too few; 2 sees enough.
 */
TEST(a_leader_that_sees_too_few_does_not_end_those_who_see_enough)
{
    static const int16_t hosts[N] = {0, 0, 1, 2, 2};

    begin();
    is_dead[0] = true;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            all[i].host[j] = hosts[j];
            is_parted[i][j] =
                hosts[i] - hosts[j] == 2 || hosts[j] - hosts[i] == 2;
        }
    for (int i = 1; i < N; i++) {
        enter(i);
        hvd__survivors_lose(&all[i], 0, 3);
    }
    pass(4000 * MS);
    ck_assert_int_eq(all[1].stage, HVD__STAGE_TOO_FEW);
    expect_decided("234");
}

/* Puts members on hosts, and parts some pairs of these: "12 13". */
static void part_hosts(const int16_t *hosts, const char *pairs)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            all[i].host[j] = hosts[j];
    for (const char *at = pairs; *at; at += at[2] ? 3 : 2)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                if (hosts[i] == at[0] - '0' && hosts[j] == at[1] - '0')
                    is_parted[i][j] = is_parted[j][i] = true;
}

/* Nobody has missed a host when all agree, or start. */
TEST(of_hosts_that_do_not_reach_each_other_the_most_members_go_on)
{
    static const struct {
        int16_t hosts[N];
        const char *pairs, *left;
    } cases[] = {{{0, 1, 2, 2, 2}, "12", "0234"},
                 {{0, 1, 1, 2, 2}, "12", "012"},
                 {{0, 1, 1, 2, 3}, "12 23", "0124"},
                 {{0, 1, 2, 3, 4}, "12 13 14", "0234"},
                 {{0, 1, 2, 3, 4}, "12 23 34", "013"},
                 {{0, 0, 0, 1, 2}, "12", "0123"}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hvd__member_set left = set_of(cases[i].left);

        begin();
        part_hosts(cases[i].hosts, cases[i].pairs);
        for (int k = 0; k < N; k++)
            enter(k);
        pass(100 * MS);
        expect_decided("01234");
        pass(1000 * MS);
        for (int k = 0; k < 2 * N; k++) { /* some hear of it from others */
            if (all[k % N].is_broken)
                enter(k % N);
            pass(5 * MS);
        }
        for (int k = 0; k < N; k++)
            ck_assert_uint_eq(all[k].failed, 1);
        pass(400 * MS);
        expect_decided(cases[i].left);
        for (int k = 0; k < N; k++)
            if (hvd__member_set_has(&left, k))
                hvd__survivors_start(&all[k]);
        pass(100 * MS);
        for (int k = 0; k < N; k++)
            ck_assert_int_eq(all[k].stage, hvd__member_set_has(&left, k)
                                               ? HVD__STAGE_WORKING
                                               : HVD__STAGE_OUT);
    }
}

/* Member 2 misses 1 before 3 has missed anybody. */
TEST(hosts_that_are_silent_when_a_start_fails_are_missed_too)
{
    static const int16_t hosts[N] = {0, 1, 2, 3, 2};
    const struct hvd__member_set silent = set_of("12");

    begin();
    part_hosts(hosts, "12 13 23");
    for (int i = 0; i < N; i++)
        enter(i);
    pass(700 * MS);
    expect_decided("01234");
    hvd__survivors_suspect(&all[2], 1);
    enter(2);
    pass(20 * MS);
    ck_assert_int_eq(hvd__member_set_count(&all[3].suspected), 0);
    enter(0);
    pass(20 * MS);
    ck_assert(all[3].is_broken);
    ck_assert(hvd__member_set_equal(&all[3].suspected, &silent));
    for (int i = 1; i < N; i++)
        if (all[i].is_broken)
            enter(i);
    pass(400 * MS);
    expect_decided("024");
}

TEST(one_that_is_missed_for_a_moment_is_not_left_out)
{
    begin();
    hvd__survivors_suspect(&all[2], 3);
    is_parted[2][3] = is_parted[3][2] = true;
    for (int i = 0; i < N; i++)
        enter(i);
    pass(200 * MS);
    ck_assert_int_eq(all[0].stage, HVD__STAGE_AGREEING);
    is_parted[2][3] = is_parted[3][2] = false;
    pass(100 * MS);
    expect_decided("01234");
}

/* Two members lead for a moment, and both propose their first round. */
TEST(a_confirmation_of_another_list_with_the_same_number_does_not_count)
{
    struct hvd__letter letter;

    begin();
    for (int i = 0; i < N; i++)
        is_dead[i] = i != 1; /* their letters are written here */
    hvd__survivors_suspect(&all[1], 0);
    enter(1);
    for (int i = 2; i < N; i++) {
        enter(i);
        hvd__survivors_next(&all[i], &letter);
        hvd__survivors_hear(&all[1], &letter);
    }
    pass(300 * MS);
    ck_assert_int_eq(all[1].stage, HVD__STAGE_PROPOSED);
    for (int i = 2; i < N; i++) {
        all[i].stage = HVD__STAGE_CONFIRMED;
        all[i].round = all[1].round;
        all[i].list = set_of("01234");
        hvd__survivors_repeat(&all[i]);
        hvd__survivors_next(&all[i], &letter);
        hvd__survivors_hear(&all[1], &letter);
    }
    ck_assert_int_ne(all[1].stage, HVD__STAGE_DECIDED);
}

TEST(a_silent_half_without_the_lowest_ends_and_says_how_few_it_is)
{
    begin();
    is_dead[0] = is_dead[1] = is_dead[2] = true; /* as seen from the others */
    enter(3);
    enter(4);
    pass(3500 * MS);
    for (int i = 3; i < N; i++) {
        ck_assert_int_eq(all[i].stage, HVD__STAGE_TOO_FEW);
        ck_assert_int_eq(all[i].few, 2);
        ck_assert_int_eq(all[i].of, N);
    }
}

TEST(a_leader_asks_those_who_seem_cut_off_before_it_ends)
{
    begin();
    for (int i = 1; i < N; i++) { /* its world's watch has said so */
        hvd__survivors_suspect(&all[0], i);
        hvd__survivors_suspect(&all[i], 0);
        is_dead[i] = true; /* for a moment more */
    }
    enter(0);
    pass(200 * MS);
    ck_assert_int_eq(all[0].stage, HVD__STAGE_AGREEING);
    for (int i = 1; i < N; i++) {
        is_dead[i] = false;
        enter(i);
    }
    pass(200 * MS);
    expect_decided("01234");
}

TEST(nobody_waits_long_for_those_who_do_not_answer)
{
    begin();
    for (int i = 1; i < N; i++) {
        hvd__survivors_suspect(&all[0], i);
        is_dead[i] = true;
    }
    enter(0);
    pass(400 * MS);
    ck_assert_int_eq(all[0].stage, HVD__STAGE_TOO_FEW);
}

/* The base has five members, of which some are proven to have ended. */
TEST(more_than_half_or_half_with_the_lowest_suffices)
{
    static const struct {
        const char *ended, *list;
        bool suffices;
    } cases[] = {{"", "012", true},  {"", "01", false},   {"", "34", false},
                 {"", "234", true},  {"0", "12", true},   {"0", "34", false},
                 {"0", "234", true}, {"01", "2", false},  {"01", "34", true},
                 {"034", "1", true}, {"034", "2", false}, {"0123", "4", true}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct hvd__member_set list = set_of(cases[i].list);

        begin();
        for (const char *at = cases[i].ended; *at; at++)
            hvd__survivors_lose(&all[4], *at - '0', 1);
        ck_assert_int_eq(hvd__survivors_suffice(&all[4], &list),
                         cases[i].suffices);
    }
    begin(); /* a frozen one is not proven to have ended */
    hvd__survivors_lose(&all[4], 0, 2);
    ck_assert(!hvd__survivors_suffice(&all[4], &(struct hvd__member_set){{6}}));
}

TEST(a_start_that_fails_is_followed_by_a_higher_round)
{
    begin();
    for (int i = 0; i < N; i++)
        enter(i);
    pass(100 * MS);
    expect_decided("01234");
    ck_assert_uint_eq(all[2].round, 1);
    enter(2); /* it has failed; the leader hears that first */
    pass(100 * MS);
    ck_assert(all[0].is_broken);
    enter(0);
    pass(100 * MS);
    for (int i = 0; i < N; i++)
        if (i != 2 && i != 0) {
            ck_assert(all[i].is_broken);
            enter(i);
        }
    pass(100 * MS);
    expect_decided("01234");
    ck_assert_uint_ge(all[2].round, 2);
}

TEST(a_start_ends_when_one_has_left_the_world_that_it_had_started)
{
    begin();
    for (int i = 0; i < N; i++)
        enter(i);
    pass(100 * MS);
    expect_decided("01234");
    hvd__survivors_start(&all[0]);
    enter(0);
    pass(100 * MS);
    for (int i = 1; i < N; i++) {
        ck_assert(all[i].is_broken);
        enter(i);
    }
    pass(100 * MS);
    expect_decided("01234");
    ck_assert_uint_eq(all[N - 1].base, 1);
}

TEST(those_who_join_count_when_all_have_started)
{
    for (int knows = 0; knows < 2; knows++) {
        begin();
        for (int i = 0; i < N; i++) {
            hvd__survivors_join(&all[i], 2);
            if (knows)
                hvd__survivors_complete(&all[i]);
        }
        is_dead[0] = is_dead[1] = true;
        for (int i = 2; i < N; i++)
            enter(i);
        pass(4000 * MS);
        ck_assert_int_eq(all[2].stage,
                         knows ? HVD__STAGE_DECIDED : HVD__STAGE_TOO_FEW);
    }
}

TEST(one_whose_start_has_failed_hears_that_the_others_have_started)
{
    begin();
    for (int i = 0; i < N; i++)
        enter(i);
    pass(100 * MS);
    for (int i = 0; i < N - 1; i++)
        hvd__survivors_start(&all[i]);
    enter(N - 1);
    ck_assert_uint_eq(all[N - 1].base, 0);
    ck_assert_int_eq(hvd__survivors_settle(&all[N - 1], 1), 0);
    pass(100 * MS);
    ck_assert_uint_eq(all[N - 1].base, all[0].base);
    ck_assert_int_eq(hvd__survivors_settle(&all[N - 1], 1), 1);
    ck_assert_int_eq(all[N - 1].stage, HVD__STAGE_WORKING);
}

TEST(or_finds_that_it_never_will_when_the_next_one_is_decided)
{
    begin();
    for (int i = 0; i < N; i++)
        enter(i);
    pass(100 * MS);
    for (int i = 0; i < N; i++)
        enter(i);
    ck_assert_int_eq(hvd__survivors_settle(&all[1], 1), 0);
    pass(100 * MS);
    expect_decided("01234");
    ck_assert_int_eq(hvd__survivors_settle(&all[1], 1), -1);
}

/* Guests of a world of two, and of three, cannot start, and another one is
 * silent. Those of the world before would be too few of all. */
TEST(who_withdraws_does_not_count_unless_it_has_another_world)
{
    for (int nelders = 2; nelders <= 3; nelders++) {
        begin();
        for (int i = 0; i < N; i++)
            hvd__survivors_join(&all[i], nelders);
        is_dead[nelders] = true;
        for (int i = nelders + 1; i < N; i++)
            hvd__survivors_withdraw(&all[i]);
        for (int i = 0; i < nelders; i++)
            enter(i);
        pass(1500 * MS);
        expect_decided(nelders == 2 ? "01" : "012");
    }
    begin();
    for (int i = 0; i < N; i++)
        hvd__survivors_join(&all[i], 3);
    is_dead[3] = is_dead[4] = true;
    hvd__survivors_withdraw(&all[1]); /* these two may go on by themselves */
    hvd__survivors_withdraw(&all[2]);
    enter(0);
    pass(3000 * MS);
    ck_assert_int_eq(all[0].stage, HVD__STAGE_TOO_FEW);
}

/* ------------------------------------------------------------------ spares */

/* Members from size on are spares. */
static void begin_with_spares(int size)
{
    begin();
    for (int i = 0; i < N; i++)
        hvd__survivors_reserve(&all[i], size);
}

static void start(const char *members)
{
    for (; *members; members++)
        hvd__survivors_start(&all[*members - '0']);
}

/* All of a world start it, and know that. */
static void start_all(const char *members)
{
    start(members);
    for (; *members; members++)
        hvd__survivors_complete(&all[*members - '0']);
}

/* A member dies, which its host proves to one of the others. */
static void die(int victim, int prover)
{
    is_dead[victim] = true;
    hvd__survivors_lose(&all[prover], victim, 1);
}

TEST(the_lowest_spares_take_the_places_of_the_lost)
{
    begin_with_spares(3);
    pass(200 * MS);
    die(0, 1);
    enter(1);
    enter(2);
    pass(200 * MS);
    expect_decided("123");
    start_all("123");
    ck_assert_uint_eq(all[3].founded, all[1].base);
    ck_assert_int_eq(all[4].stage, HVD__STAGE_STANDBY);
    pass(200 * MS); /* the spare hears of the new world */
    ck_assert_uint_eq(all[4].base, all[1].base);
    ck_assert_uint_eq(all[4].founded, all[1].founded);
    die(1, 3); /* one that has replaced another goes on with the next */
    die(2, 3);
    enter(3);
    pass(200 * MS);
    expect_decided("34");
}

TEST(a_spare_that_doubts_its_leader_for_a_moment_starts_with_the_others)
{
    begin_with_spares(3);
    pass(200 * MS);
    die(0, 1);
    enter(1);
    enter(2);
    for (int i = 0; i < 100 && all[1].stage != HVD__STAGE_DECIDED; i++)
        pass(5 * MS);
    ck_assert_int_eq(all[3].stage, HVD__STAGE_CONFIRMED);
    hvd__survivors_suspect(&all[3], 1);
    hvd__survivors_pass(&all[3], 5 * MS);
    ck_assert_int_eq(all[3].stage, HVD__STAGE_STANDBY);
    pass(100 * MS);
    expect_decided("123");
}

/* A world with a spare has started with some, and the others, whose start has
 * failed, are behind another switch. */
TEST(a_spare_counts_only_when_all_have_started)
{
    for (int knows = 0; knows < 2; knows++) {
        begin_with_spares(4);
        pass(200 * MS);
        die(3, 2);
        enter(0);
        enter(1);
        enter(2);
        pass(200 * MS);
        expect_decided("0124");
        start("04");
        if (knows) {
            start("12");
            hvd__survivors_complete(&all[0]);
        }
        is_dead[1] = is_dead[2] = true;
        enter(0);
        enter(4);
        pass(3000 * MS);
        ck_assert_int_eq(all[0].stage,
                         knows ? HVD__STAGE_DECIDED : HVD__STAGE_TOO_FEW);
        ck_assert(!knows || all[4].stage == HVD__STAGE_DECIDED);
        is_dead[0] = is_dead[4] = true;
        is_dead[1] = is_dead[2] = false;
        enter(1);
        enter(2);
        pass(3000 * MS);
        if (!knows)
            expect_decided("12");
        else
            ck_assert_int_eq(all[1].stage, HVD__STAGE_TOO_FEW);
    }
}

TEST(spares_do_not_make_up_for_those_who_are_too_few)
{
    begin_with_spares(3);
    is_dead[0] = is_dead[1] = true; /* silent: nobody can prove it */
    enter(2);
    pass(4000 * MS);
    ck_assert_int_eq(all[2].stage, HVD__STAGE_TOO_FEW);
    ck_assert_int_eq(all[2].few, 1);
    ck_assert_int_eq(all[2].of, 3);
    pass(4000 * MS);
    ck_assert_int_eq(all[3].stage, HVD__STAGE_FORSAKEN);
}

TEST(a_spare_that_is_passed_over_is_given_up_for_ever)
{
    begin_with_spares(3);
    pass(200 * MS);
    is_dead[3] = true; /* it is stopped */
    pass(1100 * MS);
    ck_assert(!hvd__survivors_is_live(&all[0], 3));
    die(1, 0);
    enter(0);
    enter(2);
    pass(200 * MS);
    expect_decided("024");
    start("024");
    is_dead[3] = false;
    pass(200 * MS);
    ck_assert_int_eq(all[3].stage, HVD__STAGE_OUT);
}

TEST(a_spare_that_was_silent_and_is_heard_again_counts_again)
{
    begin_with_spares(4);
    is_dead[4] = true;
    pass(1500 * MS);
    ck_assert(!hvd__survivors_is_live(&all[0], 4));
    is_dead[4] = false;
    pass(200 * MS);
    ck_assert(hvd__survivors_is_live(&all[0], 4));
}

TEST(a_spare_whose_start_fails_is_called_again_or_waits)
{
    begin_with_spares(4);
    pass(200 * MS);
    die(3, 2);
    for (int i = 0; i < 3; i++)
        enter(i);
    pass(200 * MS);
    expect_decided("0124");
    enter(4); /* it could not start */
    ck_assert_int_eq(all[4].stage, HVD__STAGE_STANDBY);
    pass(200 *
         MS); /* the leader hears that, and the others hear it of that one */
    ck_assert(all[0].is_broken);
    hvd__survivors_dismiss(&all[0]);
    enter(0);
    pass(200 * MS);
    for (int i = 1; i < 3; i++) {
        ck_assert(all[i].is_broken);
        enter(i);
    }
    pass(200 * MS);
    expect_decided("012");
    start("012");
    pass(200 * MS);
    ck_assert_int_eq(all[4].stage, HVD__STAGE_STANDBY);
    ck_assert(all[4].is_dismissed);
    ck_assert_uint_eq(all[4].base, all[0].base);
}

TEST(spares_end_with_the_job_and_its_leader_knows_that_they_know)
{
    begin_with_spares(3);
    pass(200 * MS);
    hvd__survivors_leave(&all[1]);
    pass(20 * MS);
    ck_assert_int_eq(all[3].stage, HVD__STAGE_STANDBY);
    hvd__survivors_leave(&all[0]);
    ck_assert(!hvd__survivors_has_told(&all[0]));
    hvd__survivors_leave(&all[2]);
    pass(20 * MS);
    ck_assert(hvd__survivors_has_told(&all[0]));
    ck_assert_int_eq(all[3].stage, HVD__STAGE_OVER);
    ck_assert_int_eq(all[4].stage, HVD__STAGE_OVER);
}

static void fill(struct hvd__letter *letter, int n)
{
    unsigned char *bytes = (unsigned char *)letter;

    /* Sets of members only, and fields of their types. */
    for (size_t i = 0; i < sizeof *letter; i++)
        bytes[i] = (unsigned char)(i * 37 + 11);
    letter->from = n - 1;
    letter->is_answer = letter->is_dismissed = true;
    letter->stage = HVD__STAGE_DECIDED;
    for (struct hvd__member_set *set = &letter->base_list;
         set <= &letter->lost[HVD__NREASONS - 1]; set++)
        for (int i = n; i < HVD__SURVIVORS_MOST; i++)
            hvd__member_set_drop(set, i);
}

TEST(a_letter_arrives_as_it_was_written_and_no_other_does)
{
    static const int sizes[] = {2, 63, 64, 65, HVD__SURVIVORS_MOST};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int n = sizes[i];
        unsigned char bytes[HVD__LETTER_BYTES];
        struct hvd__letter letter, back;
        size_t size;

        fill(&letter, n);
        size = hvd__letter_write(&letter, n, 77, key, bytes);
        ck_assert(hvd__letter_read(&back, n, 77, key, bytes, size));
        ck_assert_int_eq(back.from, letter.from);
        ck_assert_int_eq(back.stage, letter.stage);
        ck_assert_uint_eq(back.base, letter.base);
        ck_assert_uint_eq(back.round, letter.round);
        ck_assert_uint_eq(back.failed, letter.failed);
        ck_assert_uint_eq(back.seen, letter.seen);
        ck_assert_uint_eq(back.founded, letter.founded);
        ck_assert_int_eq(back.is_dismissed, letter.is_dismissed);
        ck_assert_int_eq(back.few, letter.few);
        ck_assert_int_eq(back.of, letter.of);
        ck_assert(memcmp(&back.base_list, &letter.base_list,
                         (7 + HVD__NREASONS) * sizeof back.list) == 0);
        for (size_t at = 0; at < size; at++) {
            bytes[at] ^= 1;
            ck_assert(!hvd__letter_read(&back, n, 77, key, bytes, size));
            bytes[at] ^= 1;
        }
        for (size_t short_by = 1; short_by <= size; short_by++)
            ck_assert(
                !hvd__letter_read(&back, n, 77, key, bytes, size - short_by));
        ck_assert(!hvd__letter_read(&back, n + 1, 77, key, bytes, size));
        letter.from = n;
        size = hvd__letter_write(&letter, n, 77, key, bytes);
        ck_assert(!hvd__letter_read(&back, n, 77, key, bytes, size));
    }
}

TEST_MAIN("watch_survivors", .seconds = 30)
