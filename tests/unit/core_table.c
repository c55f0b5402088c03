/* SPDX-License-Identifier: Apache-2.0 */
/* The request table of a rank: names, handles, the queue; from one thread and
 * from several. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "check_main.h"
#include "core/api/check.h"
#include "core/table/set.h"
#include "core/table/table.h"

static struct hvd__table table;
static struct hvd__set set;

static void open_books(void)
{
    hvd__table_init(&table);
    memset(&set, 0, sizeof set);
}

static void close_books(void)
{
    while (hvd__table_take(&table))
        ;
    hvd__set_table_fini(&set.requests);
    hvd__table_fini(&table);
}

static struct hvd__submission *unit_of(int n, const char *name)
{
    struct hvd__submission *submission = hvd__submission_new(n);

    ck_assert(submission != NULL);
    submission->set = &set;
    snprintf(submission->name, sizeof submission->name, "%s", name);
    return submission;
}

/* Submit; on failure the submission is freed. */
static int submit(const char *name, hvd_handle *handle,
                  struct hvd__submission **submission)
{
    int status;

    *submission = unit_of(1, name);
    status = hvd__table_submit(&table, *submission, handle, NULL);
    if (status < 0)
        hvd__submission_free(*submission);
    return status;
}

/* Does what the engine does with a submission that is complete. */
static void complete(struct hvd__submission *submission)
{
    int n = submission->state.nrequests;

    hvd__table_remove(&table, submission);
    for (int i = 0; i < n; i++)
        hvd__table_finish(&table, &submission->requests[i]);
}

/* Does what hvd_wait does with a complete handle: returns 1, or an error. */
static int consume(hvd_handle handle)
{
    struct hvd__request *request;
    int status = hvd__table_claim(&table, handle, true, &request);

    if (status == 1)
        hvd__request_free(request);
    return status;
}

START_TEST(from_submission_to_the_end)
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
END_TEST

/* A thread that waits before the request is complete keeps others from it. */
START_TEST(only_one_thread_may_wait)
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
END_TEST

/* A blocking call may go past the request table if they are empty, or be
 * entered when it turns out that it cannot. */
START_TEST(past_the_books)
{
    struct hvd__submission *submission = unit_of(1, ""), *other;
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
    other = unit_of(1, "");
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
END_TEST

START_TEST(names_in_flight_are_taken)
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
END_TEST

/* Unnamed ones count on, whether refused or not; a join begins anew. */
START_TEST(unnamed_units_are_numbered)
{
    struct hvd__submission *submissions[3], *refused = unit_of(1, ""), *join,
                                            *other;
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

    join = unit_of(1, HVD__JOIN_NAME);
    join->requests[0].signature.kind = HVD_JOIN;
    ck_assert_int_eq(hvd__table_submit(&table, join, NULL, NULL), HVD_OK);
    ck_assert_int_eq(submit("x", NULL, &other), HVD_ERR_JOINED);
    ck_assert_int_eq(hvd__table_submit(&table, join, NULL, NULL),
                     HVD_ERR_JOINED);
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
END_TEST

START_TEST(a_closed_book_refuses)
{
    struct hvd__submission *submission, *refused = unit_of(1, "late");

    hvd__table_close(&table, &set, HVD_ERR_SHUTDOWN, "rank 1 has left");
    hvd__table_close(&table, &set, HVD_ERR_MPI, "something later");
    ck_assert_int_eq(submit("a", NULL, &submission), HVD_ERR_SHUTDOWN);
    ck_assert_str_eq(hvd_last_error(), "rank 1 has left");
    refused->state.status = HVD_ERR_ARGUMENT;
    hvd__table_refuse(&table, refused); /* is freed: nobody listens */
    ck_assert(hvd__table_take(&table) == NULL);
}
END_TEST

/* A group is one name and several handles, which are over one by one. */
START_TEST(groups)
{
    struct hvd__submission *group = unit_of(5, "g");
    hvd_handle handles[5];

    ck_assert_int_eq(hvd__table_submit(&table, group, handles, NULL), HVD_OK);
    ck_assert_int_eq(hvd__table_busy(&table), 5);
    hvd__table_take(&table);
    hvd__table_remove(&table, group);
    for (int i = 4; i >= 0; i--) {
        ck_assert_int_eq(hvd__table_poll(&table, handles[i]), 0);
        hvd__table_finish(&table, &group->requests[i]);
        ck_assert_int_eq(hvd__table_poll(&table, handles[i]), 1);
        ck_assert_int_eq(consume(handles[i]), 1);
    }
    ck_assert_int_eq(hvd__table_busy(&table), 0);
}
END_TEST

START_TEST(handles_that_never_were)
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
END_TEST

/* Slots are used again, handles are not. */
START_TEST(stale_handles_stay_stale)
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
END_TEST

/* Requests that were never waited for, or never completed, are freed with the
 * request table; a sanitizer would find a leak. */
START_TEST(the_end_frees_everything)
{
    struct hvd__submission *submission, *refused = unit_of(1, "r");
    hvd_handle handles[3];

    ck_assert_int_eq(submit("done", &handles[0], &submission), HVD_OK);
    complete(submission);
    ck_assert_int_eq(submit("waited for", &handles[0], &submission), HVD_OK);
    ck_assert_int_eq(submit("by nobody", NULL, &submission), HVD_OK);
    ck_assert_int_eq(
        hvd__table_submit(&table, unit_of(3, "group"), handles, NULL), HVD_OK);
    ck_assert_int_eq(
        hvd__table_submit(&table, unit_of(3, "callbacks"), NULL, NULL), HVD_OK);
    hvd__table_take(&table);
    refused->state.status = HVD_ERR_ARGUMENT;
    hvd__table_refuse(&table, refused);
    hvd__set_table_fini(&set.requests);
    hvd__table_fini(&table);
    open_books();
}
END_TEST

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

START_TEST(many_from_several_threads)
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
END_TEST

/* A request that is posted at once is not queued, unless one before it is. */
START_TEST(past_the_queue)
{
    struct hvd__submission *first = unit_of(1, "a"), *second = unit_of(1, "b");
    struct hvd__submission *third = unit_of(1, "c"), *queue;
    bool direct = true;

    ck_assert_int_eq(hvd__table_submit(&table, first, NULL, &direct), HVD_OK);
    ck_assert(direct);
    ck_assert(hvd__table_take(&table) == NULL);
    direct = false;
    ck_assert_int_eq(hvd__table_submit(&table, second, NULL, &direct), HVD_OK);
    ck_assert(!direct);
    direct = true;
    ck_assert_int_eq(hvd__table_submit(&table, third, NULL, &direct), HVD_OK);
    ck_assert(!direct);
    queue = hvd__table_take(&table);
    ck_assert(queue == second && second->state.next == third &&
              !third->state.next);
    ck_assert_int_eq(hvd__table_busy(&table), 3);
    complete(first);
    complete(second);
    complete(third);
}
END_TEST

/* A list of requests is struck at once; names whose last it is are free. */
START_TEST(a_list_of_what_is_over)
{
    struct hvd__submission *pair = unit_of(2, "pair"), *one = unit_of(1, "one");

    ck_assert_int_eq(hvd__table_submit(&table, pair, NULL, NULL), HVD_OK);
    ck_assert_int_eq(hvd__table_submit(&table, one, NULL, NULL), HVD_OK);
    ck_assert(hvd__table_take(&table) != NULL);
    pair->requests[0].state.next = &one->requests[0];
    hvd__table_remove_all(&table, &pair->requests[0]);
    ck_assert(hvd__table_look(&table, &set, one->key) == NULL);
    ck_assert(hvd__table_look(&table, &set, pair->key) == pair);
    pair->requests[1].state.next = NULL;
    hvd__table_remove_all(&table, &pair->requests[1]);
    ck_assert(hvd__table_any(&table, &set) == NULL);
    hvd__table_finish(&table, &one->requests[0]);
    hvd__table_finish(&table, &pair->requests[0]);
    hvd__table_finish(&table, &pair->requests[1]);
}
END_TEST

/* A submission that is over comes back as if it were new; groups do not, nor
 * more than there is room for. */
START_TEST(spare_units)
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
END_TEST

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

/* The first time of a request: checked, and entered. */
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
    ck_assert_int_eq(hvd__table_submit(&table, *submission, &handle, NULL),
                     HVD_OK);
    hvd__table_take(&table);
    return handle;
}

static struct hvd__submission *resubmit(const hvd_request *request,
                                        const char *name, hvd_handle *handle)
{
    struct hvd__resubmission resubmission = {
        .given = request, .name = name, .handle = handle};

    ck_assert_int_eq(hvd__table_resubmit(&table, &resubmission, NULL), HVD_OK);
    hvd__table_take(&table);
    return resubmission.submission;
}

/* Completes a submission and takes its result, as hvd_wait does. */
static void end(struct hvd__submission *submission, hvd_handle handle)
{
    struct hvd__request *request;

    complete(submission);
    ck_assert_int_eq(hvd__table_claim(&table, handle, false, &request), 1);
    ck_assert(request == NULL);
}

/* The same submission with the same key, a handle of its own, and nothing left
 * of its last use; with another callback all the same. */
START_TEST(a_request_that_recurs)
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
END_TEST

/* Whatever is changed, one thing at a time, it is another request. */
START_TEST(a_request_that_is_another)
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
END_TEST

/* One that had no name has another number each time, and its number is no
 * name that would find it. */
START_TEST(an_unnamed_request_that_recurs)
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
END_TEST

/* Many at once, by way of memory that comes to them again, in any order. */
START_TEST(many_requests_that_recur)
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
END_TEST

static int count_tries(void)
{
    int n = 0;

    for (int64_t number = 0; number < 1000; number++)
        n += hvd__recycled_may_recall(&table.recycled, number);
    return n;
}

/* If no request recurs, the table is searched seldom, but not never. */
START_TEST(requests_that_do_not_recur)
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
END_TEST

/* A request that recurs is still refused for any reason that would refuse it
 * the first time. */
START_TEST(a_request_that_recurs_and_is_refused)
{
    hvd_request request = request_of(0);
    struct hvd__submission *submission, *other;
    hvd_handle handle = submit_request(&request, "a", &submission);
    struct hvd__resubmission resubmission = {
        .given = &request, .name = "a", .handle = &handle};

    end(submission, handle);
    /* Another request of its name is in flight. */
    ck_assert_int_eq(submit("a", NULL, &other), HVD_OK);
    ck_assert_int_eq(hvd__table_resubmit(&table, &resubmission, NULL),
                     HVD_ERR_DUPLICATE);
    ck_assert(resubmission.submission == submission);
    hvd__submission_free(submission);
    hvd__table_take(&table);
    complete(other);
    handle = submit_request(&request, "a", &submission);
    end(submission, handle);
    hvd__table_close(&table, &set, HVD_ERR_SHUTDOWN, "the end");
    ck_assert_int_eq(hvd__table_resubmit(&table, &resubmission, NULL),
                     HVD_ERR_SHUTDOWN);
    ck_assert_str_eq(hvd_last_error(), "the end");
    hvd__submission_free(resubmission.submission);
    ck_assert_int_eq(hvd__table_resubmit(&table, &resubmission, NULL), HVD_OK);
    ck_assert(resubmission.submission == NULL); /* it is gone */
}
END_TEST

static TCase *tcase_table(void)
{
    TCase *tcase = tcase_create("table");

    tcase_add_checked_fixture(tcase, open_books, close_books);
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, from_submission_to_the_end);
    tcase_add_test(tcase, only_one_thread_may_wait);
    tcase_add_test(tcase, past_the_books);
    tcase_add_test(tcase, past_the_queue);
    tcase_add_test(tcase, a_list_of_what_is_over);
    tcase_add_test(tcase, spare_units);
    tcase_add_test(tcase, a_request_that_recurs);
    tcase_add_test(tcase, a_request_that_is_another);
    tcase_add_test(tcase, an_unnamed_request_that_recurs);
    tcase_add_test(tcase, many_requests_that_recur);
    tcase_add_test(tcase, requests_that_do_not_recur);
    tcase_add_test(tcase, a_request_that_recurs_and_is_refused);
    tcase_add_test(tcase, names_in_flight_are_taken);
    tcase_add_test(tcase, unnamed_units_are_numbered);
    tcase_add_test(tcase, a_closed_book_refuses);
    tcase_add_test(tcase, groups);
    tcase_add_test(tcase, handles_that_never_were);
    tcase_add_test(tcase, stale_handles_stay_stale);
    tcase_add_test(tcase, the_end_frees_everything);
    tcase_add_test(tcase, many_from_several_threads);
    return tcase;
}

HVD_TEST_MAIN("core_ledger", tcase_table)
