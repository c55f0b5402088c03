/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks make mistakes, alone or together. Then every rank gets an error with
 * the same text, which names the ranks and the tensor, and the next request
 * works.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ranks.h"

static float data[64], result[64];

static int last(void)
{
    return ranks_size() - 1;
}

/* A good request, which each test then spoils on the last rank. */
static hvd_request good(const char *name)
{
    static int64_t shape[2];
    hvd_request request;

    shape[0] = 4;
    shape[1] = 3;
    request = ranks_sum(HVD_FLOAT32, data, result, shape);
    request.name = name;
    request.ndim = 2;
    return request;
}

/* -------------------------------------------------------------- mismatches */

/* Submits a request on the last rank that differs from the others'. texts: what
 * both sides' errors say. */
static void check_mismatch(const hvd_request *request, const char *mine,
                           const char *theirs)
{
    char others[32], odd[32];

    if (ranks_size() == 1)
        return;
    ck_hvd_fails(ranks_run(request), HVD_ERR_MISMATCH);
    ck_error_says("'tensor'");
    ck_error_says(mine);
    ck_error_says(theirs);
    if (ranks_size() > 3)
        sprintf(others, "ranks 0-%d: ", last() - 1);
    else
        sprintf(others, ranks_size() == 3 ? "ranks 0,1: " : "rank 0: ");
    sprintf(odd, "rank %d: ", last());
    ck_error_says(others);
    ck_error_says(odd);
    ranks_check_usable();
}

TEST(dtype_differs)
{
    hvd_request request = good("tensor");

    if (ranks_rank() == last())
        request.dtype = HVD_INT32;
    check_mismatch(&request, "sum float32 [4,3]", "sum int32 [4,3]");
}

TEST(shape_differs)
{
    static const int64_t other[] = {3, 4}, flat[] = {12}, longer[] = {4, 4};
    hvd_request request = good("tensor");

    if (ranks_rank() == last())
        request.shape = other;
    check_mismatch(&request, "sum float32 [4,3]", "sum float32 [3,4]");
    request = good("tensor");
    if (ranks_rank() == last()) {
        request.ndim = 1;
        request.shape = flat;
    }
    check_mismatch(&request, "sum float32 [4,3]", "sum float32 [12]");
    request = good("tensor");
    if (ranks_rank() == last())
        request.shape = longer;
    check_mismatch(&request, "sum float32 [4,3]", "sum float32 [4,4]");
}

TEST(op_differs)
{
    hvd_request request = good("tensor");

    if (ranks_rank() == last())
        request.op = HVD_MAX;
    check_mismatch(&request, "sum float32", "max float32");
}

TEST(scale_differs)
{
    hvd_request request = good("tensor");

    if (ranks_rank() == last())
        request.prescale = 0.5;
    check_mismatch(&request, "sum float32", "prescale 0.5");
}

TEST(kind_differs)
{
    hvd_request request = good("tensor");

    if (ranks_rank() == last())
        request.kind = HVD_BROADCAST;
    check_mismatch(&request, "allreduce sum", "broadcast float32");
}

TEST(root_differs)
{
    hvd_request request = good("tensor");

    request.kind = HVD_BROADCAST;
    request.root = ranks_rank() == last() ? last() : 0;
    if (ranks_size() > 1) {
        char odd[32];
        sprintf(odd, "root %d", last());
        check_mismatch(&request, "root 0", odd);
    }
}

/* Unnamed requests are matched by order, so they can differ, too. */
TEST(unnamed_differ)
{
    if (ranks_size() == 1)
        return;
    for (int i = 0; i < 3; i++) {
        int status = ranks_rank() == last()
                         ? hvd_barrier()
                         : hvd_allreduce(data, result, 5, HVD_FLOAT32, HVD_SUM);
        ck_assert_int_eq(status, HVD_ERR_MISMATCH);
        ck_error_says("unnamed operation");
        ck_error_says("barrier");
        ck_error_says("allreduce sum float32 [5]");
        ranks_check_usable();
    }
}

/* Every rank submits something else. */
TEST(everyone_differs)
{
    hvd_request request = good("tensor");
    int64_t shape[] = {100 + ranks_rank()};
    char text[32];

    if (ranks_size() == 1)
        return;
    request.ndim = 1;
    request.shape = shape;
    request.input = request.output = NULL;
    shape[0] = 0;
    request.op = ranks_rank() % 2 ? HVD_SUM : HVD_MIN;
    request.dtype = ranks_rank() % 8;
    ck_hvd_fails(ranks_run(&request), HVD_ERR_MISMATCH);
    for (int rank = 0; rank < ranks_size(); rank++) {
        sprintf(text, "rank %d: ", rank);
        ck_error_says(text);
    }
    ranks_check_usable();
}

/* The failure of a request does not touch other requests in flight. */
TEST(neighbours_survive)
{
    enum { N = 20 };
    float values[N];
    hvd_handle handles[N];
    char name[32];

    for (int k = 0; k < N; k++) {
        hvd_dtype dtype =
            k == 7 && ranks_rank() == last() ? HVD_INT32 : HVD_FLOAT32;

        values[k] = 1;
        sprintf(name, "n%d", k);
        ck_hvd(hvd_allreduce_async(name, &values[k], &values[k], 1, dtype,
                                   HVD_SUM, &handles[k]));
    }
    for (int k = 0; k < N; k++) {
        int status = hvd_wait(handles[k]);

        if (k == 7 && ranks_size() > 1) {
            ck_assert_int_eq(status, HVD_ERR_MISMATCH);
            ck_assert(values[k] == 1);
        } else if (ranks_size() > 1) {
            ck_assert_int_eq(status, HVD_OK);
            ck_assert(values[k] == (float)ranks_size());
        }
    }
    ranks_check_usable();
}

/* ---------------------------------------------------------------- refusals */

/* The last rank's request is refused with a status and a text. The other ranks,
 * whose requests are right, get an error that names the rank and the reason. */
static void check_refused(const hvd_request *request, int status,
                          const char *text)
{
    char who[32];

    if (ranks_rank() == last()) {
        ck_hvd_fails(ranks_run(request), status);
    } else {
        ck_hvd_fails(ranks_run(request), HVD_ERR_PEER);
        sprintf(who, "rank %d", last());
        ck_error_says(who);
    }
    ck_error_says("'tensor'");
    ck_error_says(text);
    ranks_check_usable();
}

/* Spoil a good request on the last rank only. */
#define REFUSED(change, status, text)                                          \
    do {                                                                       \
        hvd_request request = good("tensor");                                  \
        if (ranks_rank() == last())                                            \
            change;                                                            \
        check_refused(&request, status, text);                                 \
    } while (0)

TEST(arguments_out_of_range)
{
    static const int64_t negative[] = {4, -3};
    static const int64_t huge[] = {INT64_MAX / 2, 8};

    REFUSED(request.input = NULL, HVD_ERR_ARGUMENT, "input");
    REFUSED(request.output = NULL, HVD_ERR_ARGUMENT, "output");
    REFUSED(request.input = data + 1;
            request.output = data, HVD_ERR_ARGUMENT, "overlap");
    REFUSED(request.dtype = 99, HVD_ERR_ARGUMENT, "dtype 99");
    REFUSED(request.dtype = -1, HVD_ERR_ARGUMENT, "dtype -1");
    REFUSED(request.op = 17, HVD_ERR_ARGUMENT, "op 17");
    REFUSED(request.ndim = -1, HVD_ERR_ARGUMENT, "-1 dimensions");
    REFUSED(request.ndim = 17, HVD_ERR_ARGUMENT, "17 dimensions");
    REFUSED(request.shape = NULL, HVD_ERR_ARGUMENT, "shape");
    REFUSED(request.shape = negative, HVD_ERR_ARGUMENT, "-3");
    REFUSED(request.shape = huge, HVD_ERR_ARGUMENT, "more bytes");
    REFUSED(request.prescale = NAN, HVD_ERR_ARGUMENT, "finite");
    REFUSED(request.postscale = -INFINITY, HVD_ERR_ARGUMENT, "finite");
    REFUSED(request.dtype = HVD_BOOL;
            request.op = HVD_AVERAGE, HVD_ERR_ARGUMENT, "bool");
}

TEST(root_out_of_range)
{
    hvd_request request = good("tensor");

    request.kind = HVD_BROADCAST;
    if (ranks_rank() == last())
        request.root = ranks_size();
    check_refused(&request, HVD_ERR_ARGUMENT, "root");
    if (ranks_rank() == last())
        request.root = -1;
    check_refused(&request, HVD_ERR_ARGUMENT, "root -1");
}

TEST(what_this_version_lacks)
{
    REFUSED(request.kind = 4, HVD_ERR_UNSUPPORTED, "kind 4");
    REFUSED(request.kind = -7, HVD_ERR_UNSUPPORTED, "kind -7");
    REFUSED(request.flags = 8, HVD_ERR_UNSUPPORTED, "0x8");
}

/* The blocking calls, which have no name, refuse the same mistakes. */
TEST(blocking_calls_are_refused_everywhere)
{
    int mine = ranks_rank() == last();
    int refused = mine ? HVD_ERR_ARGUMENT : HVD_ERR_PEER;

    ck_hvd_fails(
        hvd_allreduce(mine ? NULL : data, result, 8, HVD_FLOAT32, HVD_SUM),
        refused);
    ranks_check_usable();
    ck_hvd_fails(
        hvd_allreduce(data, result, mine ? -1 : 8, HVD_FLOAT32, HVD_SUM),
        refused);
    ck_error_says("-1");
    ranks_check_usable();
    ck_hvd_fails(hvd_broadcast(data, 8, HVD_FLOAT32, mine ? 99 : 0), refused);
    ck_error_says("99");
    ranks_check_usable();
}

/* If every rank makes the same mistake, no rank waits for another. */
TEST(everyone_is_refused)
{
    hvd_request request = good("tensor");

    request.input = NULL;
    for (int i = 0; i < 3; i++) {
        ck_hvd_fails(ranks_run(&request), HVD_ERR_ARGUMENT);
        ck_hvd_fails(hvd_allreduce(NULL, NULL, 3, HVD_FLOAT32, HVD_SUM),
                     HVD_ERR_ARGUMENT);
    }
    ranks_check_usable();
    request.input = data;
    ck_hvd(ranks_run(&request));
}

/* A name that no other rank can have submitted is an error of this rank alone.
 */
TEST(names_that_cannot_be)
{
    static char name[HVD_MAX_NAME + 2];
    hvd_request request = good(name);

    memset(name, 'x', HVD_MAX_NAME + 1);
    ck_hvd_fails(ranks_run(&request), HVD_ERR_ARGUMENT);
    ck_error_says("longer than 255");
    name[HVD_MAX_NAME] = '\0';
    ck_hvd(ranks_run(&request));
    strcpy(name, "two\nlines");
    ck_hvd_fails(ranks_run(&request), HVD_ERR_ARGUMENT);
    ck_error_says("control character");
    ck_assert(strchr(hvd_last_error(), '\n') == NULL);
    strcpy(name, "%n%s%d \xff\xfe");
    ck_hvd(ranks_run(&request));
    request.name = "";
    ck_hvd(ranks_run(&request));
    ranks_check_usable();
}

TEST(requests_that_are_none)
{
    struct {
        hvd_request request;
        char newer[16];
    } grown = {0};
    hvd_handle handle;

    ck_hvd_fails(hvd_submit(NULL, &handle), HVD_ERR_ARGUMENT);
    memset(&grown, 0, sizeof grown);
    ck_hvd_fails(hvd_submit(&grown.request, &handle), HVD_ERR_ARGUMENT);
    ck_error_says("hvd_request_init");
    /* The request of a newer program is accepted unless it uses a new field. */
    hvd_request_init(&grown.request, sizeof grown);
    grown.request.op = HVD_SUM;
    grown.request.dtype = HVD_FLOAT32;
    grown.request.input = data;
    grown.request.output = result;
    ck_hvd(ranks_run(&grown.request));
    grown.newer[3] = 1;
    ck_hvd_fails(ranks_run(&grown.request), HVD_ERR_UNSUPPORTED);
    ranks_check_usable();
}

/* Every kind refuses unknown flags, the library's own flags, and flags, scales
 * and roots that mean nothing to it, alone and in groups. If one rank makes the
 * mistake, the others get an error that names it. */
TEST(what_means_nothing)
{
    static const struct {
        hvd_kind kind;
        int32_t flags, root;
        double prescale;
        int status;
        const char *words;
    } cases[] = {
        {HVD_ALLGATHER, 1 << 16, 0, 1, HVD_ERR_UNSUPPORTED, "flags 0x10000"},
        {HVD_ALLGATHER, 1 << 17, 0, 1, HVD_ERR_UNSUPPORTED, "flags 0x20000"},
        {HVD_ALLREDUCE, 1 << 18, 0, 1, HVD_ERR_UNSUPPORTED, "flags 0x40000"},
        {HVD_BROADCAST, 64, 0, 1, HVD_ERR_UNSUPPORTED, "flags 0x40"},
        {HVD_BARRIER, 2, 0, 1, HVD_ERR_UNSUPPORTED, "flags 0x2"},
        {HVD_BROADCAST, 1, 0, 1, HVD_ERR_ARGUMENT, "for averages"},
        {HVD_BROADCAST, 0, 0, 0.5, HVD_ERR_ARGUMENT, "prescale 0.5"},
        {HVD_ALLGATHER, 0, 7, 1, HVD_ERR_ARGUMENT, "root is 7"},
        {HVD_ALLREDUCE, 0, -1, 1, HVD_ERR_ARGUMENT, "root is -1"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hvd_request request = good("meaning");
        const hvd_request *member = &request;
        bool culprit = ranks_rank() == last();
        int status = culprit ? cases[i].status : HVD_ERR_PEER;

        request.kind = cases[i].kind;
        if (request.kind == HVD_ALLGATHER)
            request.output = NULL;
        if (culprit) {
            request.flags = cases[i].flags;
            request.root = cases[i].root;
            request.prescale = cases[i].prescale;
        }
        ck_hvd_fails(ranks_run(&request), status);
        ck_error_says(cases[i].words);
        if (culprit)
            ck_hvd_fails(hvd_submit_group("group", &member, 1, NULL), status);
        else {
            hvd_handle handle;

            ck_hvd(hvd_submit_group("group", &member, 1, &handle));
            ck_hvd_fails(hvd_wait(handle), status);
        }
        ck_error_says(cases[i].words);
    }
    ranks_check_usable();
}

/* -------------------------------------------------------------- duplicates */

/* Every rank submits a name twice: the first request completes, the second is
 * refused. */
TEST(duplicates_on_every_rank)
{
    hvd_request request = good("tensor");
    hvd_handle first, second;
    int status, gate = ranks_size() > 1 && ranks_rank() == last();

    ck_hvd(hvd_barrier());
    /* The last rank holds the first one back until the others have tried
     * their second: with fewer than two ranks it completes at once. */
    if (gate)
        ck_hvd(hvd_barrier());
    ck_hvd(hvd_submit(&request, &first));
    status = hvd_submit(&request, &second);
    if (ranks_size() == 1) {
        ck_hvd(status);
        ck_hvd(hvd_wait(second));
    } else if (!gate) {
        ck_assert_int_eq(status, HVD_ERR_DUPLICATE);
        ck_error_says("'tensor'");
        ck_hvd(hvd_barrier());
    } else {
        /* The first request may have completed meanwhile, or not. Either way no
         * rank waits for ever: the others' refusals answer this one. */
        if (status >= 0)
            status = hvd_wait(second);
        ck_assert(status == HVD_ERR_DUPLICATE || status == HVD_ERR_PEER);
    }
    ck_hvd(hvd_wait(first));
    ck_hvd(ranks_run(&request));
    ranks_check_usable();
}

/* One rank submits a name twice: the others' second request fails, and the
 * third works. */
TEST(a_duplicate_on_one_rank)
{
    hvd_request request = good("tensor");
    hvd_handle first, second;
    char who[32];

    if (ranks_size() == 1)
        return;
    if (ranks_rank() == last()) {
        ck_hvd(hvd_submit(&request, &first));
        ck_hvd_fails(hvd_submit(&request, &second), HVD_ERR_DUPLICATE);
        ck_hvd(hvd_barrier());
        ck_hvd(hvd_wait(first));
    } else {
        ck_hvd(hvd_barrier());
        ck_hvd(ranks_run(&request));
        ck_hvd_fails(ranks_run(&request), HVD_ERR_PEER);
        sprintf(who, "rank %d", last());
        ck_error_says(who);
        ck_error_says("in flight");
    }
    ck_hvd(hvd_barrier());
    ck_hvd(ranks_run(&request));
    ranks_check_usable();
}

/* ------------------------------------------------------------------ handles */

TEST(handles_are_for_once)
{
    hvd_request request = good("tensor");
    hvd_handle handle;

    ck_hvd(hvd_submit(&request, &handle));
    ck_assert(handle != 0);
    ck_hvd(hvd_wait(handle));
    ck_hvd_fails(hvd_wait(handle), HVD_ERR_HANDLE);
    ck_hvd_fails(hvd_poll(handle), HVD_ERR_HANDLE);
    ck_hvd_fails(hvd_wait(0), HVD_ERR_HANDLE);
    ck_hvd_fails(hvd_wait(-1), HVD_ERR_HANDLE);
    ck_hvd_fails(hvd_wait(INT64_MAX), HVD_ERR_HANDLE);
    ck_hvd_fails(hvd_poll(99), HVD_ERR_HANDLE);
    ck_hvd(ranks_run(&request));
    ck_hvd_fails(hvd_wait(handle), HVD_ERR_HANDLE);
    ranks_check_usable();
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_errors")
