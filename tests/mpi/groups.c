/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group runs as a whole or fails as a whole.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

enum { N = 5 };

static float data[N][64];
static int64_t counts[N];
static hvd_request requests[N];
static const hvd_request *pointers[N];
static hvd_handle handles[N];

/* Sums of different sizes; the last is an average of int32. */
static void prepare(void)
{
    for (int i = 0; i < N; i++) {
        counts[i] = 3 + 11 * i;
        for (int k = 0; k < counts[i]; k++)
            data[i][k] = (float)(ranks_rank() + i + k);
        requests[i] = ranks_sum(HVD_FLOAT32, data[i], data[i], &counts[i]);
        pointers[i] = &requests[i];
        handles[i] = -1;
    }
}

static void check_sums(void)
{
    int n = ranks_size();

    for (int i = 0; i < N; i++) {
        ck_hvd(hvd_wait(handles[i]));
        for (int k = 0; k < counts[i]; k++)
            ck_assert(data[i][k] == (float)(n * (n - 1) / 2 + n * (i + k)));
    }
}

static void check_usable(void)
{
    prepare();
    ck_hvd(hvd_submit_group("again", pointers, N, handles));
    check_sums();
}

TEST(all_members_arrive)
{
    const void *in[N];
    void *out[N];

    check_usable();
    prepare();
    ck_hvd(hvd_submit_group(NULL, pointers, N, handles));
    check_sums();
    prepare();
    for (int i = 0; i < N; i++)
        in[i] = out[i] = data[i];
    ck_hvd(hvd_grouped_allreduce_async("g", N, in, out, counts, HVD_FLOAT32,
                                       HVD_SUM, handles));
    check_sums();
}

/* A group may mix kinds and dtypes that cannot share a batch. */
TEST(members_may_be_of_any_kind)
{
    int32_t whole = ranks_rank(), root = ranks_rank() == 0 ? 42 : 0;
    hvd_tensor out = {.size = sizeof out};
    int64_t rows = ranks_rank() + 1;
    int n = ranks_size();

    prepare();
    requests[1].dtype = HVD_INT32;
    requests[1].ndim = 0;
    requests[1].op = HVD_MAX;
    requests[1].input = requests[1].output = &whole;
    requests[2].kind = HVD_BROADCAST;
    requests[2].dtype = HVD_INT32;
    requests[2].ndim = 0;
    requests[2].output = &root;
    requests[3].kind = HVD_ALLGATHER;
    requests[3].output = NULL;
    requests[3].shape = &rows;
    requests[4].kind = HVD_BARRIER;
    ck_hvd(hvd_submit_group("mixed", pointers, N, handles));
    ck_hvd(hvd_wait(handles[4]));
    ck_hvd(hvd_wait_output(handles[3], &out));
    ck_assert_int_eq(out.shape[0], n * (n + 1) / 2);
    hvd_free(out.data);
    for (int i = 0; i < 3; i++)
        ck_hvd(hvd_wait(handles[i]));
    ck_assert_int_eq(whole, n - 1);
    ck_assert_int_eq(root, 42);
}

/* Some tensors have no elements and no buffers; the others lie side by side in
 * memory, or with a gap between them. */
static void move_with_empty_ones(hvd_kind kind, hvd_dtype dtype,
                                 const int64_t *extents, int gap)
{
    static float floats[N * 64];
    static double doubles[N * 64];
    int n = ranks_size(), at = 0;

    for (int i = 0; i < N; i++, at += gap) {
        hvd_request_init(&requests[i], sizeof requests[i]);
        requests[i].op = HVD_SUM;
        requests[i].kind = kind;
        requests[i].dtype = dtype;
        requests[i].root = ranks_rooted(kind, n - 1);
        requests[i].ndim = 1;
        requests[i].shape = &extents[i];
        if (dtype == HVD_FLOAT64)
            requests[i].compression = HVD_COMPRESSION_FP16;
        pointers[i] = &requests[i];
        if (extents[i] == 0)
            continue;
        requests[i].output = dtype == HVD_FLOAT64 ? (void *)(doubles + at)
                                                  : (void *)(floats + at);
        requests[i].input = requests[i].output;
        for (int k = 0; k < extents[i]; k++, at++)
            doubles[at] = floats[at] = (float)(ranks_rank() + k + i);
    }
    ck_hvd(hvd_submit_group("some are empty", pointers, N, handles));
    at = 0;
    for (int i = 0; i < N; i++, at += gap) {
        ck_hvd(hvd_wait(handles[i]));
        for (int k = 0; k < extents[i]; k++, at++) {
            double found = dtype == HVD_FLOAT64 ? doubles[at] : floats[at];
            double sum = n * (n - 1) / 2 + n * (k + i);

            if (kind == HVD_REDUCE && ranks_rank() != n - 1)
                continue;
            ck_assert_double_eq(found,
                                kind == HVD_BROADCAST ? n - 1 + k + i : sum);
        }
    }
}

TEST(members_may_be_empty)
{
    static const hvd_kind kinds[] = {HVD_ALLREDUCE, HVD_REDUCE, HVD_BROADCAST};

    static const int64_t extents[][N] = {
        {0, 5, 40, 7, 1}, {0, 5, 0, 40, 0}, {7, 0, 0, 5, 3}, {0}};

    for (int i = 0; i < 4; i++)
        for (int gap = 0; gap < 2; gap++) {
            for (int k = 0; k < 3; k++)
                move_with_empty_ones(kinds[k], HVD_FLOAT32, extents[i], gap);
            move_with_empty_ones(HVD_ALLREDUCE, HVD_FLOAT64, extents[i], gap);
        }
}

TEST(a_member_that_differs_fails_all)
{
    int last = ranks_size() - 1;

    if (last == 0)
        return;
    prepare();
    if (ranks_rank() == last)
        counts[3] = 7;
    ck_hvd(hvd_submit_group("g", pointers, N, handles));
    for (int i = 0; i < N; i++) {
        ck_hvd_fails(hvd_wait(handles[i]), HVD_ERR_MISMATCH);
        ck_error_says("'g' differs: rank");
        ck_error_says("a group of 5, whose number 3 is allreduce sum float32 "
                      "[36]");
        ck_error_says("float32 [7]");
    }
    /* The data must be unchanged. */
    for (int k = 0; k < 3; k++)
        ck_assert(data[0][k] == (float)(ranks_rank() + k));
    check_usable();
    /* One rank's group has another length. */
    prepare();
    ck_hvd(
        hvd_submit_group("g", pointers, ranks_rank() == last ? 2 : 3, handles));
    ck_hvd_fails(hvd_wait(handles[1]), HVD_ERR_MISMATCH);
    ck_error_says("a group of 2");
    ck_error_says("a group of 3");
    ck_hvd_fails(hvd_wait(handles[0]), HVD_ERR_MISMATCH);
    if (ranks_rank() != last)
        ck_hvd_fails(hvd_wait(handles[2]), HVD_ERR_MISMATCH);
    check_usable();
}

TEST(a_member_that_is_refused_fails_all)
{
    int last = ranks_size() - 1;

    prepare();
    requests[2].name = "the bad one";
    if (ranks_rank() == last) {
        requests[2].input = NULL;
        ck_hvd_fails(hvd_submit_group("g", pointers, N, handles),
                     HVD_ERR_ARGUMENT);
        ck_error_says("the bad one");
        for (int i = 0; i < N; i++)
            ck_assert(handles[i] == -1);
    } else {
        ck_hvd(hvd_submit_group("g", pointers, N, handles));
        for (int i = 0; i < N; i++) {
            ck_hvd_fails(hvd_wait(handles[i]), HVD_ERR_PEER);
            ck_error_says("the bad one");
        }
    }
    check_usable();
}

TEST(duplicates_are_refused)
{
    hvd_handle other[N];

    prepare();
    requests[0].name = requests[4].name = "twin";
    ck_hvd_fails(hvd_submit_group("g", pointers, N, handles),
                 HVD_ERR_DUPLICATE);
    ck_error_says("twin");
    check_usable();
    /* A group whose name is in flight is refused, and the group under way is
     * unharmed. */
    prepare();
    if (ranks_rank() == 0) {
        ck_hvd(hvd_submit_group("g", pointers, N, handles));
        if (ranks_size() > 1)
            ck_hvd_fails(hvd_submit_group("g", pointers, 1, other),
                         HVD_ERR_DUPLICATE);
        else
            for (int i = 0; i < N; i++)
                ck_hvd(hvd_wait(handles[i]));
    }
    ck_hvd(hvd_barrier());
    if (ranks_size() == 1)
        return;
    if (ranks_rank() != 0) {
        ck_hvd(hvd_submit_group("g", pointers, N, handles));
        check_sums();
        /* The second request of this rank meets the one that rank 0 was
         * refused. */
        prepare();
        ck_hvd(hvd_submit_group("g", pointers, 1, other));
        ck_hvd_fails(hvd_wait(other[0]), HVD_ERR_PEER);
    } else {
        check_sums();
    }
    check_usable();
}

/* The names differ as little as they can, and the two equal ones are as far
 * from each other as they can be. */
TEST(many_members_have_names_of_their_own)
{
    enum { MANY = 3000 };
    static float values[MANY];
    static char names[MANY][16];
    static hvd_request many[MANY];
    static const hvd_request *all[MANY];
    static hvd_handle waited[MANY];

    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "weight %d", i);
        values[i] = (float)i;
        many[i] = ranks_sum(HVD_FLOAT32, &values[i], &values[i], NULL);
        many[i].name = names[i];
        all[i] = &many[i];
    }
    ck_hvd(hvd_submit_group("many", all, MANY, waited));
    for (int i = 0; i < MANY; i++) {
        ck_hvd(hvd_wait(waited[i]));
        ck_assert(values[i] == (float)(i * ranks_size()));
    }
    many[MANY - 1].name = names[0];
    ck_hvd_fails(hvd_submit_group("many", all, MANY, waited),
                 HVD_ERR_DUPLICATE);
    ck_error_says("group 'many', member 'weight 0': another member has that "
                  "name");
    check_usable();
    /* Requests without names, or with empty ones, are not duplicates. */
    for (int i = 0; i < MANY; i++)
        many[i].name = i % 2 ? "" : NULL;
    ck_hvd(hvd_submit_group("many", all, MANY, waited));
    for (int i = 0; i < MANY; i++)
        ck_hvd(hvd_wait(waited[i]));
}

TEST(groups_that_cannot_be)
{
    const hvd_request *hole[2] = {pointers[0], NULL};

    prepare();
    ck_hvd_fails(hvd_submit_group("g", pointers, 0, handles), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_submit_group("g", pointers, -4, handles),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_submit_group("g", NULL, 1, handles), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_submit_group("g", hole, 2, handles), HVD_ERR_ARGUMENT);
    requests[1].kind = HVD_JOIN;
    ck_hvd_fails(hvd_submit_group("g", pointers, N, handles),
                 HVD_ERR_UNSUPPORTED);
    check_usable();
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_groups")
