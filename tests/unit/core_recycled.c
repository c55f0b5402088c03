/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that recurs gets the submission of its last time, with nothing left
 * of that, if it is the same in all that matters.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/api/check.h"
#include "request_table.h"
#include "suite.h"

/* A submission that is over comes back as if it were new. Groups do not come
 * back, nor do more submissions than there is room for. */
TEST(recycled_submissions)
{
    enum { SOME = HVD__RECYCLED_MOST + 3 };
    static struct hvd__submission *submissions[SOME];
    struct hvd__submission *group = hvd__submission_new(2), *resubmission;

    for (int i = 0; i < SOME; i++) {
        submissions[i] = hvd__table_reuse(&table);
        ck_assert(submissions[i] != NULL);
        strcpy(submissions[i]->name, "used");
        submissions[i]->priority = 7;
        submissions[i]->requests[0].own_input = malloc(8);
    }
    for (int i = 0; i < SOME; i++)
        hvd__table_recycle(&table, &submissions[i]->requests[0]);
    ck_assert_int_eq(table.recycled.n, HVD__RECYCLED_MOST);
    hvd__table_recycle(&table, &group->requests[0]);
    hvd__table_recycle(&table, &group->requests[1]);
    ck_assert_int_eq(table.recycled.n, HVD__RECYCLED_MOST);
    resubmission = hvd__table_reuse(&table);
    ck_assert(resubmission == submissions[HVD__RECYCLED_MOST - 1]);
    ck_assert_str_eq(resubmission->name, "");
    ck_assert_int_eq(resubmission->priority, 0);
    ck_assert(resubmission->requests[0].own_input == NULL);
    ck_assert(resubmission->requests[0].submission == resubmission &&
              resubmission->state.nleft == 1);
    hvd__table_recycle(&table, &resubmission->requests[0]);
}

/* The tests of recurring requests submit these. */
static float buffers[HVD__RECYCLED_PLACES][4];

static hvd_request request_of(int i)
{
    static const int64_t shape[] = {2, 2};
    hvd_request request;

    hvd_request_init(&request, sizeof request);
    request.dtype = HVD_FLOAT32;
    request.ndim = 2;
    request.shape = shape;
    request.input = request.output = buffers[i];
    return request;
}

/* Submits a request for the first time: it is checked and entered. */
static hvd_handle submit_request(const hvd_request *request, const char *name,
                                 struct hvd__submission **submission)
{
    hvd_handle handle = 0;

    *submission = hvd__table_reuse(&table);
    (*submission)->set = &set;
    strcpy((*submission)->name, name);
    ck_assert_int_eq(
        hvd__request_check(request, &set, &(*submission)->requests[0]), HVD_OK);
    hvd__submission_remember(*submission, request, strlen(name));
    ck_assert_int_eq(enter(*submission, &handle), HVD_OK);
    hvd__table_take(&table);
    return handle;
}

static struct hvd__submission *resubmit(const hvd_request *request,
                                        const char *name, hvd_handle *handle)
{
    struct hvd__submission *submission;

    hvd__mutex_lock(&table.lock);
    submission = hvd__table_reenter(&table, request, name, false, handle);
    hvd__mutex_unlock(&table.lock);
    return submission;
}

/* Completes a submission and takes its result, as hvd_wait does. */
static void end(struct hvd__submission *submission, hvd_handle handle)
{
    struct hvd__request *request;

    complete(submission);
    ck_assert_int_eq(hvd__table_claim(&table, handle, false, &request), 1);
    ck_assert(request == NULL);
}

/* The request gets the same submission, with the same key, a handle of its own,
 * and nothing left of its last use. Its callback may be another. */
TEST(a_request_that_recurs)
{
    hvd_request request = request_of(0);
    struct hvd__submission *submission, *resubmission;
    hvd_handle handle, next = 0;
    uint64_t key;

    handle = submit_request(&request, "a", &submission);
    key = submission->key;
    ck_assert(resubmit(&request, "a", &next) == NULL); /* it is in flight */
    submission->state.nposted = 1;
    submission->state.decided_ns = submission->requests[0].state.done_ns = 4711;
    end(submission, handle);
    request.callback_context = &request;
    resubmission = resubmit(&request, "a", &next);
    ck_assert(resubmission == submission && resubmission->key == key);
    ck_assert(next != handle &&
              hvd__table_look(&table, &set, key) == submission);
    ck_assert_int_eq(submission->state.nposted, 0);
    ck_assert_int_eq(submission->state.decided_ns +
                         submission->requests[0].state.done_ns,
                     0);
    ck_assert(submission->requests[0].callback_context == &request);
    ck_assert_int_eq(hvd__table_poll(&table, handle), HVD_ERR_HANDLE);
    ck_assert_int_eq(hvd__table_poll(&table, next), 0);
    end(submission, next);
}

/* A request that differs in any one thing is another request. */
TEST(a_request_that_is_another)
{
    static const int64_t shape[] = {2, 1}, splits[] = {1};
    static int64_t counts[1];
    struct hvd__submission *submission;
    hvd_request first = request_of(0), others[16];
    hvd_handle handle = submit_request(&first, "a", &submission);
    int n = 0;

    end(submission, handle);
    for (int i = 0; i < 16; i++)
        others[i] = first;
    others[n++].kind = HVD_REDUCE;
    others[n++].dtype = HVD_INT32;
    others[n++].op = HVD_MIN;
    others[n++].root = 1;
    others[n++].ndim = 1;
    others[n++].shape = shape;
    others[n++].input = buffers[1];
    others[n++].prescale = 0.5;
    others[n++].postscale = 0.5;
    others[n++].process_set = 1;
    others[n++].priority = 1;
    others[n++].flags = HVD_AVERAGE_CONTRIBUTORS;
    others[n++].compression = HVD_COMPRESSION_FP16;
    others[n++].capacity = 4;
    others[n++].splits = splits;
    others[n++].counts = counts;
    ck_assert_int_eq(n, 16);
    for (int i = 0; i < n; i++)
        if (resubmit(&others[i], "a", &handle))
            ck_abort_msg("number %d is taken to be the same", i);
    ck_assert(resubmit(&first, "b", &handle) == NULL);
    ck_assert(resubmit(&first, "", &handle) == NULL);
    ck_assert(resubmit(&first, "a", &handle) == submission);
    end(submission, handle);
}

/* An unnamed request gets another number each time, and nothing finds it under
 * its last number. */
TEST(an_unnamed_request_that_recurs)
{
    hvd_request request = request_of(0);
    struct hvd__submission *submission;
    hvd_handle handle = submit_request(&request, "", &submission);
    char name[sizeof submission->name];
    uint64_t key = submission->key;

    strcpy(name, submission->name);
    end(submission, handle);
    ck_assert(resubmit(&request, name, &handle) == NULL);
    ck_assert(resubmit(&request, "", &handle) == submission);
    ck_assert(submission->key != key);
    ck_assert_str_ne(submission->name, name);
    end(submission, handle);
}

/* Many requests recur at once, in any order, and their submissions come back to
 * them. */
TEST(many_requests_that_recur)
{
    enum { MANY = HVD__RECYCLED_MOST, ROUNDS = 4 };
    static struct hvd__submission *submissions[MANY];
    static hvd_handle handles[MANY];
    int nfound = 0;

    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < MANY; k++) {
            int i = round % 2 ? MANY - 1 - k : k;
            hvd_request request = request_of(i);
            char name[16];

            snprintf(name, sizeof name, "tensor %d", i);
            submissions[i] = resubmit(&request, name, &handles[i]);
            nfound += submissions[i] != NULL;
            if (!submissions[i])
                handles[i] = submit_request(&request, name, &submissions[i]);
            ck_assert(submissions[i]->requests[0].output == buffers[i]);
            ck_assert_str_eq(submissions[i]->name, name);
        }
        for (int i = 0; i < MANY; i++)
            end(submissions[i], handles[i]);
    }
    /* A few may have no place of their own. */
    ck_assert_int_ge(nfound, (ROUNDS - 1) * MANY * 9 / 10);
}

static int count_tries(void)
{
    int n = 0;

    for (int64_t number = 0; number < 1000; number++)
        n += hvd__recycled_may_recall(&table.recycled, number);
    return n;
}

/* If no request recurs, the table is searched seldom, but not never. */
TEST(requests_that_do_not_recur)
{
    hvd_request request = request_of(0);
    struct hvd__submission *submission;
    hvd_handle handle = submit_request(&request, "a", &submission);

    end(submission, handle);
    for (int i = 0; i < HVD__RECYCLED_PATIENCE; i++) {
        ck_assert_int_eq(count_tries(), 1000);
        ck_assert(resubmit(&request, "b", &handle) == NULL);
    }
    ck_assert_int_gt(count_tries(), 0);
    ck_assert_int_lt(count_tries(), 200);
    ck_assert(resubmit(&request, "a", &handle) == submission);
    ck_assert_int_eq(count_tries(), 1000);
    end(submission, handle);
}

/* A request that recurs is not entered for any reason that would refuse it the
 * first time. Its submission stays as it was. */
TEST(a_request_that_recurs_and_is_refused)
{
    hvd_request request = request_of(0);
    struct hvd__submission *submission, *other;
    hvd_handle handle = submit_request(&request, "a", &submission);

    end(submission, handle);
    /* Another request of its name is in flight. */
    ck_assert_int_eq(submit("a", NULL, &other), HVD_OK);
    ck_assert(resubmit(&request, "a", &handle) == NULL);
    ck_assert_int_eq(hvd__table_busy(&table), 1);
    hvd__table_take(&table);
    complete(other);
    ck_assert(resubmit(&request, "a", &handle) == submission);
    end(submission, handle);
    hvd__table_close(&table, &set, HVD_ERR_SHUTDOWN, "the end");
    ck_assert(resubmit(&request, "a", &handle) == NULL);
    ck_assert_str_eq(hvd_last_error(), "the end");
}

/* An unnamed request that is not entered takes no number from those that are:
 * ranks match by number. */
TEST(an_unnamed_request_that_is_not_entered)
{
    hvd_request request = request_of(0);
    struct hvd__submission *submission, *join = submission_of(1, "");
    hvd_handle handle = submit_request(&request, "", &submission);

    end(submission, handle);
    ck_assert_uint_eq(set.requests.nunnamed, 1);
    strcpy(join->name, HVD__JOIN_NAME);
    join->requests[0].signature.kind = HVD_JOIN;
    ck_assert_int_eq(enter(join, NULL), HVD_OK);
    ck_assert(resubmit(&request, "", &handle) == NULL);
    ck_assert_uint_eq(set.requests.nunnamed, 1);
    hvd__table_take(&table);
    complete(join);
    ck_assert(resubmit(&request, "", &handle) == submission);
    end(submission, handle);
}

TEST_MAIN("core_recycled", .set_up = open_table, .tear_down = close_table,
          .seconds = 120)
