/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of libhvd where Horovod 0.28 is known to be wrong, or undefined.
 * docs/HOROVOD.md has the whole list; this file has the cases that no other
 * test covers.
 */
#include <stdio.h>
#include <string.h>

#include "ranks.h"

enum { MOST = 64 };

static hvd_request request_of(hvd_kind kind, const char *name, const void *in,
                              void *out, const int64_t *count)
{
    hvd_request request = ranks_sum(HVD_FLOAT32, in, out, count);

    request.kind = kind;
    request.name = name;
    return request;
}

/* Horovod compares a name once and then remembers that all have agreed on it.
 * Here a name is compared each time. */
TEST(a_name_agreed_on_is_compared_again)
{
    float in[8] = {0}, out[8 * MOST];
    int64_t count = 4;
    int last = ranks_size() - 1;
    hvd_request request = request_of(HVD_ALLREDUCE, "w", in, out, &count);

    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 20; i++)
            ck_hvd(ranks_run(&request));
        if (last == 0)
            return;
        if (ranks_rank() == last) {
            count = round == 0 ? 5 : 4;
            request.op = round == 1 ? HVD_AVERAGE : HVD_SUM;
            request.dtype = round == 2 ? HVD_INT32 : HVD_FLOAT32;
            request.postscale = round == 3 ? 2 : 1;
        }
        ck_hvd_fails(ranks_run(&request), HVD_ERR_MISMATCH);
        ck_error_says("'w' differs: rank");
        count = 4;
        request = request_of(HVD_ALLREDUCE, "w", in, out, &count);
    }
}

/* A name that was an allreduce may be anything else next. */
TEST(a_name_may_change_its_kind)
{
    static const hvd_kind kinds[] = {
        HVD_ALLREDUCE, HVD_REDUCESCATTER, HVD_ALLGATHER, HVD_BROADCAST,
        HVD_REDUCE,    HVD_ALLTOALL,      HVD_GATHER};
    float in[MOST], out[MOST * MOST];
    int64_t count = ranks_size();

    for (int i = 0; i < MOST; i++)
        in[i] = 1;
    for (int round = 0; round < 5; round++)
        for (int k = 0; k < 7; k++) {
            hvd_request request = request_of(kinds[k], "w", in, out, &count);

            ck_hvd(ranks_run(&request));
            if (kinds[k] == HVD_ALLREDUCE || kinds[k] == HVD_REDUCESCATTER)
                ck_assert(out[0] == (float)ranks_size());
        }
}

/* Horovod does not compare the operation of a reducescatter, or reports it as a
 * difference in factors. */
TEST(operations_of_shares_are_compared)
{
    float in[MOST] = {0}, out[MOST];
    int64_t count = MOST;
    hvd_request request = request_of(HVD_REDUCESCATTER, "w", in, out, &count);

    if (ranks_size() == 1)
        return;
    request.op = ranks_rank() ? HVD_SUM : HVD_AVERAGE;
    ck_hvd_fails(ranks_run(&request), HVD_ERR_MISMATCH);
    ck_error_says("reducescatter average float32 [64]");
    ck_error_says("reducescatter sum float32 [64]");
    ck_assert(strstr(hvd_last_error(), "postscale") == NULL);
}

/* In Horovod, a barrier has one fixed name, and so has a join. */
TEST(barriers_at_the_same_time)
{
    enum { N = 10 };
    hvd_request request = request_of(HVD_BARRIER, NULL, NULL, NULL, NULL);
    hvd_handle handles[N];

    for (int i = 0; i < N; i++)
        ck_hvd(hvd_submit(&request, &handles[i]));
    for (int i = N - 1; i >= 0; i--)
        ck_hvd(hvd_wait(handles[i]));
}

/* In Horovod, a rank that has joined takes part in an allgather that was agreed
 * on before, and crashes; or its coordinator writes past an array. */
TEST(names_from_before_a_join)
{
    static const hvd_kind kinds[] = {HVD_ALLGATHER, HVD_ALLTOALL,
                                     HVD_REDUCESCATTER};
    float in[MOST], out[MOST * MOST], one, sum;
    int64_t count = ranks_size(), single = 1;
    hvd_request gate = request_of(HVD_ALLREDUCE, "gate", &one, &sum, &single);

    for (int i = 0; i < MOST; i++)
        in[i] = one = 1;
    for (int i = 0; i < 30; i++) {
        hvd_request request =
            request_of(kinds[i % 3], i % 3 ? "b" : "a", in, out, &count);
        ck_hvd(ranks_run(&request));
    }
    if (ranks_size() > 1 && ranks_rank() > 0) {
        do
            ck_hvd(ranks_run(&gate));
        while (sum > (float)ranks_size() - 1);
        for (int k = 0; k < 2; k++) {
            hvd_request request =
                request_of(kinds[k], k ? "b" : "a", in, out, &count);
            ck_hvd_fails(ranks_run(&request), HVD_ERR_JOINED);
            ck_error_says("rank 0 joined");
        }
        gate = request_of(HVD_REDUCESCATTER, "b", in, out, &count);
        ck_hvd(ranks_run(&gate));
        ck_assert(out[0] == (float)ranks_size() - 1);
    }
    ck_hvd(hvd_join(NULL));
}

/* In Horovod, only all ranks together can join: on a set it uses the wrong
 * communicator. */
TEST(joining_a_process_set)
{
    int32_t ranks[MOST], last = -1;
    int set, members = ranks_size() - 1;
    float value = (float)ranks_rank(), least;
    int64_t one = 1;
    hvd_request join, request;

    if (members < 2)
        return;
    for (int i = 0; i < members; i++)
        ranks[i] = i + 1;
    ck_hvd(set = hvd_add_process_set(ranks, members));
    if (ranks_rank() > 0) {
        join = request_of(HVD_JOIN, NULL, NULL, &last, NULL);
        join.process_set = set;
        request = request_of(HVD_ALLREDUCE, NULL, &value, &least, &one);
        request.process_set = set;
        request.op = HVD_MIN;
        if (ranks_rank() >
            1) { /* the loop ends when rank 1, the least, has joined */
            do
                ck_hvd(ranks_run(&request));
            while (least < 2);
            ck_assert(least == 2);
        }
        ck_hvd(ranks_run(&join));
        ck_assert_int_ge(last, 1);
    }
    ck_hvd(hvd_remove_process_set(set));
    ck_hvd(hvd_barrier());
}

/* In Horovod, members of a group that come before a duplicate stay in its
 * table. */
TEST(nothing_of_a_group_stays_behind)
{
    float in[2] = {1, 1}, out[2], other = 1, result;
    int64_t one = 1;
    hvd_request a = request_of(HVD_ALLREDUCE, "a", &in[0], &out[0], &one),
                b = request_of(HVD_ALLREDUCE, "b", NULL, &out[1], &one),
                again = request_of(HVD_ALLREDUCE, "a", &other, &result, &one);
    const hvd_request *const group[] = {&a, &b};
    hvd_handle handles[2] = {7, 7};

    ck_hvd_fails(hvd_submit_group("g", group, 2, handles), HVD_ERR_ARGUMENT);
    ck_hvd(ranks_run(&again)); /* 'a' is free */
    ck_assert(result == (float)ranks_size());
    b.input = &in[1];
    ck_hvd(hvd_submit_group("g", group, 2, handles));
    /* Each request has its own status and handle. */
    ck_assert(handles[0] != handles[1]);
    for (int i = 0; i < 2; i++) {
        ck_hvd(hvd_wait(handles[i]));
        ck_assert(out[i] == (float)ranks_size());
    }
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_known_faults")
