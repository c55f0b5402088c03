/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the request table of a rank: names, handles and the queue, from one
 * thread and from several. core_recycled.c tests recurring requests. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "request_table.h"
#include "suite.h"

TEST(from_submission_to_the_end)
{
    struct hvd__submission *submission;
    hvd_handle handle = 0;

    ck_assert_int_eq(submit("a", &handle, &submission), HVD_OK);
    ck_assert(handle != 0);
    ck_assert_int_eq(hvd__table_busy(&table), 1);
    ck_assert(hvd__table_take(&table) == submission);
    ck_assert(hvd__table_take(&table) == NULL);
    ck_assert(hvd__table_look(&table, &set, submission->key) == submission);
    ck_assert(hvd__table_any(&table, &set) == submission);
    ck_assert_int_eq(hvd__table_poll(&table, handle), 0);
    complete(submission);
    ck_assert_int_eq(hvd__table_busy(&table), 0);
    ck_assert(hvd__table_any(&table, &set) == NULL);
    ck_assert_int_eq(hvd__table_poll(&table, handle), 1);
    ck_assert_int_eq(consume(handle), 1);
    ck_assert_int_eq(consume(handle), HVD_ERR_HANDLE);
    ck_assert_int_eq(hvd__table_poll(&table, handle), HVD_ERR_HANDLE);
    ck_assert(strstr(hvd_last_error(), "already waited for"));
}

/* While a thread waits for a request, no other thread may wait for it. */
TEST(only_one_thread_may_wait)
{
    struct hvd__submission *submission;
    struct hvd__request *request;
    hvd_handle handle;

    ck_assert_int_eq(submit("a", &handle, &submission), HVD_OK);
    ck_assert_int_eq(hvd__table_claim(&table, handle, true, &request), 0);
    ck_assert(request == &submission->requests[0]);
    ck_assert_int_eq(consume(handle), HVD_ERR_HANDLE);
    hvd__table_take(&table);
    complete(submission);
    ck_assert_int_eq(consume(handle), HVD_ERR_HANDLE);
    hvd__table_release(&table, request);
    ck_assert_int_eq(hvd__table_poll(&table, handle), HVD_ERR_HANDLE);
    hvd__request_free(request);
    ck_assert_int_eq(table.nfree, table.nslots);
}

/* A blocking call may go past an empty request table, or be entered when it
 * turns out that it cannot. */
TEST(past_the_table)
{
    struct hvd__submission *submission = submission_of(1, ""), *other;
    hvd_handle handle;
    uint64_t number, key;

    ck_assert(hvd__table_number(&table, submission, &number));
    ck_assert_uint_eq(number, 0);
    ck_assert(hvd__table_any(&table, &set) == NULL);
    ck_assert_int_eq(hvd__table_adopt(&table, submission, number, &handle),
                     HVD_OK);
    ck_assert_str_eq(submission->name, "\1"
                                       "0");
    ck_assert(hvd__table_look(&table, &set, submission->key) == submission);
    ck_assert(hvd__table_take(&table) == NULL); /* nor is it announced */
    other = submission_of(1, "");
    /* One is in flight. */
    ck_assert(!hvd__table_number(&table, other, &number));
    complete(submission);
    ck_assert_int_eq(consume(handle), 1);
    ck_assert(hvd__table_number(&table, other, &number));
    ck_assert_uint_eq(number, 1);
    /* The third has the second's key, as on other ranks, although it goes
     * another way. */
    key = other->key;
    set.requests.nunnamed = 1;
    ck_assert_int_eq(submit("", NULL, &submission), HVD_OK);
    ck_assert_uint_eq(submission->key, key);
    hvd__table_take(&table);
    complete(submission);
    hvd__submission_reset(other);
    other->set = &set;
    hvd__table_close(&table, &set, HVD_ERR_SHUTDOWN, "over");
    ck_assert(!hvd__table_number(&table, other, &number));
    hvd__submission_free(other);
}

TEST(names_in_flight_are_taken)
{
    struct hvd__submission *first, *second;
    hvd_handle handle;

    ck_assert_int_eq(submit("w", NULL, &first), HVD_OK);
    ck_assert_int_eq(submit("w", &handle, &second), HVD_ERR_DUPLICATE);
    ck_assert(strstr(hvd_last_error(), "'w' was submitted again"));
    ck_assert_int_eq(submit("v", NULL, &second), HVD_OK);
    hvd__table_take(&table);
    complete(first);
    complete(second);
    ck_assert_int_eq(submit("w", NULL, &first), HVD_OK);
    hvd__table_take(&table);
    complete(first);
}

/* Unnamed submissions are numbered on, whether they are refused or not. A join
 * begins anew. */
TEST(unnamed_submissions_are_numbered)
{
    struct hvd__submission *submissions[3], *refused = submission_of(1, ""),
                                            *join, *other;
    char name[HVD__NAME_SIZE];

    ck_assert_int_eq(submit("", NULL, &submissions[0]), HVD_OK);
    refused->state.status = HVD_ERR_ARGUMENT;
    hvd__table_refuse(&table, refused);
    ck_assert_int_eq(submit("", NULL, &submissions[1]), HVD_OK);
    ck_assert_str_eq(submissions[0]->name, "\1"
                                           "0");
    ck_assert_str_eq(refused->name, "\1"
                                    "1");
    ck_assert_str_eq(submissions[1]->name, "\1"
                                           "2");
    ck_assert(submissions[0]->key != submissions[1]->key);

    join = submission_of(1, HVD__JOIN_NAME);
    join->requests[0].signature.kind = HVD_JOIN;
    ck_assert_int_eq(enter(join, NULL), HVD_OK);
    ck_assert_int_eq(submit("x", NULL, &other), HVD_ERR_JOINED);
    ck_assert_int_eq(enter(join, NULL), HVD_ERR_JOINED);
    /* Submissions are taken in their order. */
    ck_assert(hvd__table_take(&table) == submissions[0]);
    ck_assert(submissions[0]->state.next == refused &&
              refused->state.next == submissions[1]);
    ck_assert(submissions[1]->state.next == join && join->state.next == NULL);
    hvd__submission_free(refused);
    complete(join);
    ck_assert_int_eq(submit("", NULL, &submissions[2]), HVD_OK);
    snprintf(name, sizeof name, "%c0 after join 1", HVD__UNNAMED);
    ck_assert_str_eq(submissions[2]->name, name);
    hvd__table_take(&table);
    for (int i = 0; i < 3; i++)
        complete(submissions[i]);
    ck_assert_int_eq(hvd__table_busy(&table), 0);
}

TEST(a_closed_table_refuses)
{
    struct hvd__submission *submission, *refused = submission_of(1, "late");

    hvd__table_close(&table, &set, HVD_ERR_SHUTDOWN, "rank 1 has left");
    hvd__table_close(&table, &set, HVD_ERR_MPI, "something later");
    ck_assert_int_eq(submit("a", NULL, &submission), HVD_ERR_SHUTDOWN);
    ck_assert_str_eq(hvd_last_error(), "rank 1 has left");
    refused->state.status = HVD_ERR_ARGUMENT;
    hvd__table_refuse(&table, refused); /* is freed: nobody listens */
    ck_assert(hvd__table_take(&table) == NULL);
}

/* A group is one name and several handles, which are over one by one. */
TEST(groups)
{
    struct hvd__submission *group = submission_of(5, "g");
    hvd_handle handles[5];

    ck_assert_int_eq(enter(group, handles), HVD_OK);
    ck_assert_int_eq(hvd__table_busy(&table), 5);
    hvd__table_take(&table);
    for (int i = 0; i < 4; i++)
        group->requests[i].state.next = &group->requests[i + 1];
    hvd__table_remove(&table, group->requests);
    for (int i = 4; i >= 0; i--) {
        ck_assert_int_eq(hvd__table_poll(&table, handles[i]), 0);
        hvd__table_finish(&table, &group->requests[i]);
        ck_assert_int_eq(hvd__table_poll(&table, handles[i]), 1);
        ck_assert_int_eq(consume(handles[i]), 1);
    }
    ck_assert_int_eq(hvd__table_busy(&table), 0);
}

TEST(handles_that_never_were)
{
    static const hvd_handle wrong[] = {
        0, -1, 1, 64, INT64_MAX, INT64_MIN, INT64_C(1) << 32};
    struct hvd__submission *submission;
    hvd_handle handle;
    int bad = 0;

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            bad += hvd__table_poll(&table, wrong[i]) != HVD_ERR_HANDLE;
            bad += consume(wrong[i]) != HVD_ERR_HANDLE;
        }
        ck_assert_int_eq(bad, 0);
        if (round == 0)
            ck_assert_int_eq(submit("a", &handle, &submission), HVD_OK);
    }
    hvd__table_take(&table);
    complete(submission);
}

/* Slots are used again, handles are not. */
TEST(stale_handles_stay_stale)
{
    hvd_handle first = 0;

    for (int i = 0; i < 1000; i++) {
        struct hvd__submission *submission;
        hvd_handle handle;

        ck_assert_int_eq(submit("a", &handle, &submission), HVD_OK);
        ck_assert(handle != first);
        if (i == 0)
            first = handle;
        else
            ck_assert_int_eq(hvd__table_poll(&table, first), HVD_ERR_HANDLE);
        hvd__table_take(&table);
        complete(submission);
        ck_assert_int_eq(consume(handle), 1);
    }
    ck_assert_int_le(table.nslots, 64);
}

/* Requests that were never waited for, or never completed, are freed with the
 * request table; a sanitizer would find a leak. */
TEST(the_end_frees_everything)
{
    struct hvd__submission *submission, *refused = submission_of(1, "r");
    hvd_handle handles[3];

    ck_assert_int_eq(submit("done", &handles[0], &submission), HVD_OK);
    complete(submission);
    ck_assert_int_eq(submit("waited for", &handles[0], &submission), HVD_OK);
    ck_assert_int_eq(submit("by nobody", NULL, &submission), HVD_OK);
    ck_assert_int_eq(enter(submission_of(3, "group"), handles), HVD_OK);
    ck_assert_int_eq(enter(submission_of(3, "callbacks"), NULL), HVD_OK);
    hvd__table_take(&table);
    refused->state.status = HVD_ERR_ARGUMENT;
    hvd__table_refuse(&table, refused);
    hvd__set_table_fini(&set.requests);
    hvd__table_fini(&table);
    open_table();
}

enum { THREADS = 4, EACH = 5000 };

static hvd_handle taken[THREADS][EACH];

static void *submit_many(void *which)
{
    int thread = *(const int *)which;

    for (int i = 0; i < EACH; i++) {
        char name[32];
        struct hvd__submission *submission;

        snprintf(name, sizeof name, "%d/%d", thread, i);
        if (submit(name, &taken[thread][i], &submission) < 0)
            taken[thread][i] = 0;
    }
    return NULL;
}

TEST(many_from_several_threads)
{
    pthread_t threads[THREADS];
    int which[THREADS], announced = 0, consumed = 0;

    for (int i = 0; i < THREADS; i++) {
        which[i] = i;
        pthread_create(&threads[i], NULL, submit_many, &which[i]);
    }
    while (announced < THREADS * EACH) {
        struct hvd__submission *submission = hvd__table_take(&table), *next;

        for (; submission; submission = next, announced++) {
            next = submission->state.next;
            complete(submission);
        }
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(hvd__table_busy(&table), 0);
    for (int i = 0; i < THREADS * EACH; i++)
        consumed += consume(taken[i % THREADS][i / THREADS]) == 1;
    ck_assert_int_eq(consumed, THREADS * EACH);
    ck_assert_int_eq(table.nfree, table.nslots);
}

/* A submission that is posted at once is not queued, and in flight like those
 * that are. */
TEST(past_the_queue)
{
    struct hvd__submission *first = submission_of(1, "a"),
                           *second = submission_of(1, "b");
    struct hvd__submission *third = submission_of(1, "c"), *queue;

    ck_assert_int_eq(hvd__table_enter(&table, first, NULL), HVD_OK);
    ck_assert(hvd__table_take(&table) == NULL);
    ck_assert_int_eq(enter(second, NULL), HVD_OK);
    ck_assert_int_eq(enter(third, NULL), HVD_OK);
    queue = hvd__table_take(&table);
    ck_assert(queue == second && second->state.next == third &&
              !third->state.next);
    ck_assert_int_eq(hvd__table_busy(&table), 3);
    complete(first);
    complete(second);
    complete(third);
}

/* A list of requests is removed at once. A name is free when the last request
 * of its submission is. */
TEST(a_list_of_what_is_over)
{
    struct hvd__submission *pair = submission_of(2, "pair"),
                           *one = submission_of(1, "one");

    ck_assert_int_eq(enter(pair, NULL), HVD_OK);
    ck_assert_int_eq(enter(one, NULL), HVD_OK);
    ck_assert(hvd__table_take(&table) != NULL);
    pair->requests[0].state.next = &one->requests[0];
    hvd__table_remove(&table, &pair->requests[0]);
    ck_assert(hvd__table_look(&table, &set, one->key) == NULL);
    ck_assert(hvd__table_look(&table, &set, pair->key) == pair);
    pair->requests[1].state.next = NULL;
    hvd__table_remove(&table, &pair->requests[1]);
    ck_assert(hvd__table_any(&table, &set) == NULL);
    hvd__table_finish(&table, &one->requests[0]);
    hvd__table_finish(&table, &pair->requests[0]);
    hvd__table_finish(&table, &pair->requests[1]);
}

TEST_MAIN("core_table", .set_up = open_table, .tear_down = close_table,
          .seconds = 120)
