/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a training is committed, restored and synchronised, by ranks of
 * which none is lost (tests/faults/commit.c has losses).
 */
#include <stdlib.h>
#include <string.h>

#include "hvd_elastic.h"
#include "ranks.h"

enum { COUNT = 300007 };

static float *weights; /* the same on all ranks, [COUNT] */
static int64_t step, own;

static void set(int64_t to)
{
    for (int i = 0; i < COUNT; i++)
        weights[i] = (float)(to * 1000 + i % 997);
    step = to;
    own = to * 100 + ranks_rank();
}

static void check(int64_t to)
{
    ck_assert_int_eq(step, to);
    ck_assert_int_eq(own, to * 100 + ranks_rank());
    for (int i = 0; i < COUNT; i++)
        ck_assert_msg(weights[i] == (float)(to * 1000 + i % 997),
                      "element %d is %g", i, (double)weights[i]);
}

static void open_state(void)
{
    weights = malloc(COUNT * sizeof *weights);
    ck_hvd(hvd_state_register("weights", weights, COUNT * sizeof *weights, 0));
    ck_hvd(hvd_state_register("step", &step, sizeof step, 0));
    ck_hvd(hvd_state_register("nothing", NULL, 0, 0));
    ck_hvd(hvd_state_register("own", &own, sizeof own, HVD_STATE_PER_RANK));
}

static void close_state(void)
{
    ck_hvd(hvd_state_unregister("step"));
    ck_hvd(hvd_state_unregister("weights"));
    ck_hvd(hvd_state_unregister("own"));
    ck_hvd(hvd_state_unregister("nothing"));
    free(weights);
}

static hvd_state_info info(void)
{
    hvd_state_info found = {.size = sizeof found};

    ck_hvd(hvd_state_get_info(&found));
    return found;
}

/* The first test, in which nothing has been committed. */
TEST(without_a_commit_there_is_nothing_to_restore)
{
    open_state();
    set(3);
    ck_assert_int_eq(hvd_restore(), 0);
    check(3);
    ck_assert_int_eq(info().commit, 0);
    close_state();
}

TEST(a_restore_goes_back_to_the_newest_commit)
{
    int64_t before;

    open_state();
    before = info().commit;
    for (int64_t i = 1; i <= 5; i++) {
        set(i);
        ck_hvd(hvd_commit());
        ck_assert_int_eq(info().commit, before + i);
        set(77);
        if (i % 2)
            continue;
        ck_assert_int_eq(hvd_restore(), 1);
        check(i);
    }
    ck_assert_int_eq(hvd_restore(), 1);
    check(5);
    /* A commit can be restored twice. */
    set(78);
    ck_assert_int_eq(hvd_restore(), 1);
    check(5);
    ck_assert_int_eq(info().pieces, 4);
    ck_assert_int_eq(info().bytes, COUNT * 4 + 16);
    close_state();
}

TEST(a_commit_may_be_copied_meanwhile)
{
    open_state();
    ck_hvd(hvd_commit_wait()); /* nothing was begun */
    set(11);
    ck_hvd(hvd_commit_start());
    ck_hvd_fails(hvd_commit_start(), HVD_ERR_ARGUMENT);
    ck_error_says("hvd_commit_wait");
    ck_hvd_fails(hvd_commit(), HVD_ERR_ARGUMENT);
    ck_hvd(hvd_commit_wait());
    set(12);
    ck_assert_int_eq(hvd_restore(), 1);
    check(11);
    /* One that was begun, and that all ranks have copied, is restored, too. */
    set(13);
    ck_hvd(hvd_commit_start());
    ck_assert_int_eq(hvd_restore(), 1);
    check(13);
    ck_hvd(hvd_commit());
    close_state();
}

TEST(a_piece_that_differs_is_named_and_the_last_commit_stays)
{
    open_state();
    set(21);
    ck_hvd(hvd_commit());
    set(22);
    if (ranks_rank() == ranks_size() - 1)
        weights[COUNT - 1] = -1;
    if (ranks_size() > 1) {
        ck_hvd_fails(hvd_commit(), HVD_ERR_INCONSISTENT);
        ck_error_says("piece 'weights' of the state has other bits on rank");
        ck_hvd(hvd_restore());
        check(21);
        ck_hvd(hvd_commit_start());
        ck_hvd(hvd_commit_wait());
    }
    ranks_check_usable();
    close_state();
}

TEST(so_is_one_that_not_all_ranks_have)
{
    char more[8] = "";

    open_state();
    set(31);
    ck_hvd(hvd_commit());
    if (ranks_rank() == ranks_size() - 1)
        ck_hvd(hvd_state_register("more", more, sizeof more, 0));
    if (ranks_size() > 1) {
        ck_hvd_fails(hvd_commit(), HVD_ERR_MISMATCH);
        ck_error_says("number 4 is nothing on rank 0, and 'more' of 8 bytes");
        ck_hvd_fails(hvd_restore(), HVD_ERR_MISMATCH);
        ck_hvd_fails(hvd_state_sync(0), HVD_ERR_MISMATCH);
    }
    if (ranks_rank() == ranks_size() - 1)
        ck_hvd(hvd_state_unregister("more"));
    set(32);
    ck_hvd(hvd_restore());
    check(31);
    close_state();
}

TEST(a_piece_that_is_younger_than_the_commit_stays)
{
    int64_t young = 5;

    open_state();
    set(41);
    ck_hvd(hvd_commit());
    ck_hvd(hvd_state_register("young", &young, sizeof young, 0));
    set(42);
    young = 6;
    ck_hvd(hvd_restore());
    check(41);
    ck_assert_int_eq(young, 6);
    ck_hvd(hvd_commit());
    young = 7;
    ck_hvd(hvd_restore());
    ck_assert_int_eq(young, 6);
    ck_hvd(hvd_state_unregister("young"));
    close_state();
}

TEST(all_ranks_get_what_one_has)
{
    const int root = ranks_size() - 1;

    open_state();
    set(51 + (ranks_rank() == root));
    ck_hvd(hvd_state_sync(root));
    ck_assert_int_eq(step, 52);
    ck_assert(weights[COUNT - 1] == (float)(52000 + (COUNT - 1) % 997));
    /* Each keeps what is its own. */
    ck_assert_int_eq(own, (51 + (ranks_rank() == root)) * 100 + ranks_rank());
    ck_hvd_fails(hvd_state_sync(ranks_size()), HVD_ERR_ARGUMENT);
    close_state();
}

TEST(pieces_are_checked)
{
    char name[300], memory[4];

    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_hvd_fails(hvd_state_register("", memory, 4, 0), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_state_register(NULL, memory, 4, 0), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_state_register(name, memory, 4, 0), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_state_register("a\n", memory, 4, 0), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_state_register("a", NULL, 4, 0), HVD_ERR_ARGUMENT);
    ck_error_says("'a'");
    ck_hvd_fails(hvd_state_register("a", memory, 4, 2), HVD_ERR_ARGUMENT);
    ck_hvd(hvd_state_register("a", memory, 4, 0));
    ck_hvd_fails(hvd_state_register("a", memory, 4, 0), HVD_ERR_ARGUMENT);
    ck_error_says("registered before");
    ck_hvd(hvd_state_unregister("a"));
    ck_hvd_fails(hvd_state_unregister("a"), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_state_unregister(NULL), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_state_get_info(NULL), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_on_reset(NULL, NULL), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_off_reset(NULL, NULL), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_elastic_run(NULL, NULL), HVD_ERR_ARGUMENT);
}

static int nresets;

static int count_resets(void *context, const hvd_reset *reset)
{
    (void)context;
    (void)reset;
    nresets++;
    return HVD_OK;
}

static int train(void *context)
{
    int *calls = context;

    ++*calls;
    if (step < 0) /* only its first call finds this */
        return HVD_ERR_ARGUMENT;
    check(61);
    set(62);
    return 7;
}

TEST(a_loop_without_losses_trains_once)
{
    int calls = 0;

    open_state();
    ck_hvd(hvd_on_reset(count_resets, &calls));
    set(61);
    ck_hvd(hvd_commit());
    ck_assert_int_eq(hvd_elastic_run(train, &calls), 7);
    ck_assert_int_eq(calls, 1);
    /* The loop has committed the state that training left. */
    set(63);
    ck_hvd(hvd_restore());
    check(62);
    /* Other failures than losses end the loop. */
    step = -1;
    ck_hvd(hvd_commit());
    ck_assert_int_eq(hvd_elastic_run(train, &calls), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(nresets, 0);
    ck_hvd(hvd_off_reset(count_resets, &calls));
    close_state();
}

/* Another world than that of the commit needs a restore first. */
TEST(a_world_that_was_started_again_is_a_new_one)
{
    open_state();
    ck_hvd(hvd_on_reset(count_resets, NULL));
    set(71);
    ck_hvd(hvd_commit());
    set(72);
    nresets = 0;
    ck_hvd(hvd_shutdown());
    ck_hvd_fails(hvd_commit(), HVD_ERR_NOT_INITIALIZED);
    ck_hvd_fails(hvd_restore(), HVD_ERR_NOT_INITIALIZED);
    ck_hvd_fails(hvd_state_sync(0), HVD_ERR_NOT_INITIALIZED);
    ck_hvd(hvd_init());
    ck_hvd_fails(hvd_commit(), HVD_ERR_ARGUMENT);
    ck_error_says("hvd_restore");
    ck_assert_int_eq(hvd_restore(), 1);
    check(71);
    ck_assert_int_eq(nresets, 1);
    ck_hvd(hvd_commit());
    ck_hvd(hvd_off_reset(count_resets, NULL));
    close_state();
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_state")
