/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coordinator, without ranks: what it decides when it is told this and
 * that, in any order, for up to five ranks.
 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "check_main.h"
#include "core/coordinator.h"
#include "core/fuse.h"

enum { MOST_RANKS = 5, MOST_RECORDS = 64 };

/* A decision, read back with the reader that ranks use. */
struct decision {
    enum hvd__record_type type;
    int n; /* of a batch */
    char keys[16][HVD__KEY_SIZE];
    int status;
    char text[HVD__MESSAGE_MAX];
    bool ranks[MOST_RANKS];
};

static struct decision decisions[MOST_RECORDS];

static int read_all(struct hvd__writer *writer, int nranks)
{
    struct hvd__reader in = {.data = writer->data, .bytes = writer->bytes};
    int n = 0;

    ck_assert(!writer->failed);
    while (hvd__reader_more(&in)) {
        struct decision *d = &decisions[n++];

        memset(d, 0, sizeof *d);
        d->type = hvd__read_type(&in);
        if (d->type == HVD__BATCH) {
            d->n = hvd__read_int(&in);
            for (int i = 0; i < d->n; i++)
                hvd__read_text(&in, d->keys[i], HVD__KEY_SIZE);
        }
        if (d->type == HVD__FAIL || d->type == HVD__BREAK) {
            d->status = hvd__read_int(&in);
            hvd__read_text(&in, d->text, sizeof d->text);
        }
        if (d->type == HVD__FAIL) {
            size_t at;

            hvd__read_text(&in, d->keys[0], HVD__KEY_SIZE);
            at = in.at;
            for (int rank = 0; rank < nranks; rank++) {
                in.at = at;
                d->ranks[rank] = hvd__read_ranks(&in, nranks, rank);
            }
        }
    }
    ck_assert(!in.failed);
    hvd__writer_fini(writer);
    return n;
}

static int decide(struct hvd__coordinator *c, int nranks, int room)
{
    return read_all(hvd__coordinator_decide(c, room), nranks);
}

static struct hvd__signature sum_of(int64_t count)
{
    return (struct hvd__signature){.kind = HVD_ALLREDUCE,
                                   .dtype = HVD_FLOAT32,
                                   .op = HVD_SUM,
                                   .ndim = 1,
                                   .prescale = 1,
                                   .postscale = 1,
                                   .shape = {count}};
}

static void announce(struct hvd__coordinator *c, int rank, const char *key,
                     int64_t count)
{
    struct hvd__signature s = sum_of(count);

    ck_assert_int_eq(hvd__coordinator_announce(c, rank, key, &s), HVD_OK);
}

START_TEST(ready_when_all_have_announced)
{
    for (int n = 1; n <= MOST_RANKS; n++) {
        struct hvd__coordinator *c = hvd__coordinator_new(n, 1 << 20);

        for (int rank = n - 1; rank > 0; rank--)
            announce(c, rank, "a", 10);
        if (n > 1)
            ck_assert_int_eq(decide(c, n, 2), 0);
        announce(c, 0, "a", 10);
        ck_assert_int_eq(decide(c, n, 0), 0); /* no room */
        ck_assert_int_eq(decide(c, n, 2), 1);
        ck_assert_int_eq(decisions[0].type, HVD__BATCH);
        ck_assert_int_eq(decisions[0].n, 1);
        ck_assert_str_eq(decisions[0].keys[0], "a");
        ck_assert_int_eq(decide(c, n, 2), 0);
        hvd__coordinator_free(c);
    }
}
END_TEST

/* Every order of three ranks' announcements of three names. */
START_TEST(every_order_of_announcing)
{
    static const char *const names[] = {"x", "y", "z"};
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

    for (int k = 0; k < 6 * 6 * 6; k++) {
        const int *of[3] = {orders[k % 6], orders[k / 6 % 6], orders[k / 36]};
        struct hvd__coordinator *c = hvd__coordinator_new(3, 0);
        int seen[3] = {0};

        for (int i = 0; i < 3; i++)
            for (int rank = 0; rank < 3; rank++)
                announce(c, rank, names[of[rank][i]], 5);
        ck_assert_int_eq(decide(c, 3, 99), 3); /* nothing is fused */
        for (int i = 0; i < 3; i++)
            seen[decisions[i].keys[0][0] - 'x']++;
        ck_assert(seen[0] == 1 && seen[1] == 1 && seen[2] == 1);
        hvd__coordinator_free(c);
    }
}
END_TEST

START_TEST(neighbours_are_fused_up_to_the_threshold)
{
    struct hvd__coordinator *c = hvd__coordinator_new(1, 100 * 4);

    announce(c, 0, "a", 60);
    announce(c, 0, "b", 50); /* does not fit with a */
    announce(c, 0, "c", 40);
    announce(c, 0, "d", 500); /* alone */
    ck_assert_int_eq(decide(c, 1, 1), 1);
    ck_assert_int_eq(decisions[0].n, 2);
    ck_assert_str_eq(decisions[0].keys[0], "a");
    ck_assert_str_eq(decisions[0].keys[1], "c");
    ck_assert_int_eq(decide(c, 1, 2), 2);
    ck_assert_str_eq(decisions[0].keys[0], "b");
    ck_assert_str_eq(decisions[1].keys[0], "d");
    hvd__coordinator_free(c);
}
END_TEST

START_TEST(differences_name_both_sides)
{
    struct hvd__coordinator *c = hvd__coordinator_new(4, 1 << 20);

    announce(c, 0, "w", 10);
    announce(c, 1, "w", 10);
    announce(c, 3, "w", 10);
    announce(c, 2, "w", 11);
    ck_assert_int_eq(decide(c, 4, 2), 1);
    ck_assert_int_eq(decisions[0].type, HVD__FAIL);
    ck_assert_int_eq(decisions[0].status, HVD_ERR_MISMATCH);
    ck_assert(strstr(decisions[0].text,
                     "'w' differs: ranks 0,1,3: allreduce sum float32 [10]; "
                     "rank 2: allreduce sum float32 [11]"));
    for (int rank = 0; rank < 4; rank++)
        ck_assert(decisions[0].ranks[rank]);
    /* It is forgotten: the name works again. */
    for (int rank = 0; rank < 4; rank++)
        announce(c, rank, "w", 12);
    ck_assert_int_eq(decide(c, 4, 2), 1);
    ck_assert_int_eq(decisions[0].type, HVD__BATCH);
    hvd__coordinator_free(c);
}
END_TEST

START_TEST(a_refusal_fails_those_who_wait)
{
    struct hvd__coordinator *c = hvd__coordinator_new(3, 1 << 20);

    announce(c, 0, "w", 10);
    ck_assert_int_eq(
        hvd__coordinator_refuse(c, 1, "w", HVD_ERR_ARGUMENT, "no buffer"), 0);
    ck_assert_int_eq(decide(c, 3, 2), 0);
    announce(c, 2, "w", 10);
    ck_assert_int_eq(decide(c, 3, 2), 1);
    ck_assert_int_eq(decisions[0].status, HVD_ERR_PEER);
    ck_assert(strstr(decisions[0].text, "rank 1: no buffer"));
    ck_assert(decisions[0].ranks[0] && !decisions[0].ranks[1] &&
              decisions[0].ranks[2]);
    /* Refused everywhere: nobody waits. */
    for (int rank = 0; rank < 3; rank++)
        hvd__coordinator_refuse(c, rank, "w", HVD_ERR_ARGUMENT, "no buffer");
    ck_assert_int_eq(decide(c, 3, 2), 0);
    hvd__coordinator_free(c);
}
END_TEST

/* The k-th of one rank meets the k-th of the others, in any timing. */
START_TEST(submissions_pair_by_their_number)
{
    struct hvd__coordinator *c = hvd__coordinator_new(2, 1 << 20);

    for (int i = 0; i < 3; i++)
        hvd__coordinator_refuse(c, 0, "w", HVD_ERR_DUPLICATE, "again");
    announce(c, 0, "w", 10);
    for (int i = 0; i < 3; i++)
        hvd__coordinator_refuse(c, 1, "w", HVD_ERR_DUPLICATE, "again");
    ck_assert_int_eq(decide(c, 2, 2), 0);
    announce(c, 1, "w", 10);
    ck_assert_int_eq(decide(c, 2, 2), 1);
    ck_assert_int_eq(decisions[0].type, HVD__BATCH);
    hvd__coordinator_free(c);
}
END_TEST

START_TEST(a_rank_that_left_fails_what_it_lacks)
{
    struct hvd__coordinator *c = hvd__coordinator_new(3, 1 << 20);
    char words[HVD__MESSAGE_MAX];

    announce(c, 0, "w", 10);
    ck_assert_int_eq(hvd__coordinator_leave(c, 2), HVD_OK);
    ck_assert_int_eq(decide(c, 3, 2), 1);
    ck_assert_int_eq(decisions[0].status, HVD_ERR_SHUTDOWN);
    ck_assert(strstr(decisions[0].text, "rank 2"));
    ck_assert(decisions[0].ranks[0] && !decisions[0].ranks[1]);
    strcpy(words, decisions[0].text);
    /* The other comes later, and hears the same. */
    announce(c, 1, "w", 10);
    ck_assert_int_eq(decide(c, 3, 2), 1);
    ck_assert_str_eq(decisions[0].text, words);
    ck_assert(!decisions[0].ranks[0] && decisions[0].ranks[1]);
    ck_assert_int_eq(hvd__coordinator_leave(c, 2), HVD_ERR_INTERNAL);
    hvd__coordinator_leave(c, 0);
    ck_assert_int_eq(decide(c, 3, 2), 0);
    hvd__coordinator_leave(c, 1);
    ck_assert_int_eq(decide(c, 3, 2), 1);
    ck_assert_int_eq(decisions[0].type, HVD__CLOSE);
    ck_assert_int_eq(decide(c, 3, 2), 0);
    hvd__coordinator_free(c);
}
END_TEST

START_TEST(ready_ones_go_before_the_close)
{
    struct hvd__coordinator *c = hvd__coordinator_new(1, 0);

    announce(c, 0, "a", 1);
    announce(c, 0, "b", 1);
    hvd__coordinator_leave(c, 0);
    ck_assert_int_eq(decide(c, 1, 1), 1);
    ck_assert_int_eq(decisions[0].type, HVD__BATCH);
    ck_assert_int_eq(decide(c, 1, 1), 2);
    ck_assert_int_eq(decisions[0].type, HVD__BATCH);
    ck_assert_int_eq(decisions[1].type, HVD__CLOSE);
    hvd__coordinator_free(c);
}
END_TEST

START_TEST(a_break_is_told_once)
{
    struct hvd__coordinator *c = hvd__coordinator_new(2, 0);

    hvd__coordinator_break(c, 1, HVD_ERR_MPI, "the wire burns");
    hvd__coordinator_break(c, 0, HVD_ERR_MPI, "here too");
    announce(c, 0, "a", 1);
    announce(c, 1, "a", 1);
    ck_assert_int_eq(decide(c, 2, 2), 1);
    ck_assert_int_eq(decisions[0].type, HVD__BREAK);
    ck_assert_int_eq(decisions[0].status, HVD_ERR_MPI);
    ck_assert_str_eq(decisions[0].text, "rank 1 failed: the wire burns");
    hvd__coordinator_free(c);
    hvd__coordinator_free(NULL);
}
END_TEST

/* A barrier needs no room. */
START_TEST(barriers_need_no_room)
{
    struct hvd__coordinator *c = hvd__coordinator_new(1, 0);
    struct hvd__signature barrier = {.kind = HVD_BARRIER};

    hvd__coordinator_announce(c, 0,
                              "\1"
                              "0",
                              &barrier);
    ck_assert_int_eq(decide(c, 1, 0), 1);
    ck_assert_str_eq(decisions[0].keys[0], "\1"
                                           "0");
    hvd__coordinator_free(c);
}
END_TEST

static TCase *tcase_coordinator(void)
{
    TCase *tcase = tcase_create("coordinator");

    tcase_add_test(tcase, ready_when_all_have_announced);
    tcase_add_test(tcase, every_order_of_announcing);
    tcase_add_test(tcase, neighbours_are_fused_up_to_the_threshold);
    tcase_add_test(tcase, differences_name_both_sides);
    tcase_add_test(tcase, a_refusal_fails_those_who_wait);
    tcase_add_test(tcase, submissions_pair_by_their_number);
    tcase_add_test(tcase, a_rank_that_left_fails_what_it_lacks);
    tcase_add_test(tcase, ready_ones_go_before_the_close);
    tcase_add_test(tcase, a_break_is_told_once);
    tcase_add_test(tcase, barriers_need_no_room);
    return tcase;
}

HVD_TEST_MAIN("core_coordinator", tcase_coordinator)
