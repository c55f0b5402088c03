/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers, alltoalls and reducescatters run in place, with too little room,
 * with mistakes of one rank, and with requests that differ between ranks.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

enum { MOST = 8 };

static hvd_request request_of(hvd_kind kind, const char *name)
{
    hvd_request request;

    hvd_request_init(&request, sizeof request);
    request.op = HVD_SUM;
    request.kind = kind;
    request.name = name;
    request.dtype = HVD_INT32;
    return request;
}

/* ----------------------------------------------------------------- in place */

/* The root of a gather may leave the output to the library, without a capacity
 * too, and gets other memory each time. */
TEST(a_gather_makes_its_output)
{
    const int n = ranks_size(), root = n - 1;
    const bool is_root = ranks_rank() == root;
    int64_t rows[] = {1, 9000};
    int32_t *in = calloc(9000, sizeof *in);

    ck_assert(in != NULL);
    in[0] = ranks_rank();
    for (int i = 0; i < 6; i++) {
        hvd_request request = request_of(HVD_GATHER, "of its own");
        hvd_tensor got = {.size = sizeof got};
        hvd_handle handle;

        request.name = i < 3 ? request.name : NULL;
        request.shape = &rows[i % 2];
        request.ndim = 1;
        request.input = in;
        request.root = root;
        if (i < 3)
            ck_hvd(hvd_submit(&request, &handle));
        else
            ck_hvd(hvd_run(&request, &handle));
        ck_hvd(hvd_wait_output(handle, &got));
        for (int rank = 0; is_root && rank < n; rank++)
            ck_assert_int_eq(((int32_t *)got.data)[rank * rows[i % 2]], rank);
        ck_assert(is_root || !got.data);
        hvd_free(got.data);
    }
    free(in);
}

/* All ranks learn how many rows each gives, also those that get none. */
TEST(gathers_count_on_all_ranks)
{
    int64_t counts[16], count = 2;
    int32_t given[2] = {7, 8}, all[32];
    int n = ranks_size();

    for (int32_t kind = HVD_ALLGATHER;; kind = HVD_GATHER) {
        hvd_handle handle;
        hvd_request request = ranks_sum(HVD_INT32, given, all, &count);

        request.kind = kind;
        request.counts = counts;
        request.root = ranks_rooted(kind, n - 1);
        memset(counts, 0, sizeof counts);
        ck_hvd(hvd_submit(&request, &handle));
        ck_hvd(hvd_wait(handle));
        for (int rank = 0; rank < n; rank++)
            ck_assert_int_eq(counts[rank], 2);
        if (kind == HVD_GATHER)
            break;
    }
}

TEST(gathers_in_place)
{
    int32_t all[3 * MOST];
    int n = ranks_size(), rank = ranks_rank();

    for (int i = 0; i < 3; i++)
        all[3 * rank + i] = 10 * rank + i;
    ck_hvd(hvd_allgather(all + 3 * rank, all, 3, HVD_INT32));
    for (int i = 0; i < 3 * n; i++)
        ck_assert_int_eq(all[i], 10 * (i / 3) + i % 3);
    all[rank] = rank;
    ck_hvd(hvd_gather(all + rank, all, 1, HVD_INT32, 0));
    for (int i = 0; i < n && rank == 0; i++)
        ck_assert_int_eq(all[i], i);
}

TEST(exchanges_and_shares_in_place)
{
    int32_t data[2 * MOST + 1];
    int n = ranks_size(), rank = ranks_rank();
    int first = rank * 2 + (rank < 1 ? rank : 1), count = 2 + (rank < 1);

    for (int i = 0; i < 2 * n; i++)
        data[i] = 100 * rank + i;
    ck_hvd(hvd_alltoall(data, data, 2 * n, HVD_INT32));
    for (int i = 0; i < 2 * n; i++)
        ck_assert_int_eq(data[i], 100 * (i / 2) + 2 * rank + i % 2);
    for (int i = 0; i < 2 * n + 1; i++)
        data[i] = i * (rank + 1);
    ck_hvd(hvd_reducescatter(data, data, 2 * n + 1, HVD_INT32, HVD_SUM));
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(data[i], (first + i) * n * (n + 1) / 2);
    for (int i = 0; i < 5; i++)
        data[i] = rank + i;
    ck_hvd(hvd_reduce(data, data, 5, HVD_INT32, HVD_MAX, n - 1));
    for (int i = 0; i < 5 && rank == n - 1; i++)
        ck_assert_int_eq(data[i], n - 1 + i);
}

/* The third rank and those behind it get no share of two rows. */
TEST(shares_of_fewer_rows_than_ranks)
{
    enum { WIDTH = 10000 };
    static int32_t in[2 * WIDTH], out[2 * WIDTH];
    int64_t shape[2] = {2, WIDTH};
    int n = ranks_size(), rank = ranks_rank();
    int64_t count = WIDTH * (2 / n + (rank < 2 % n));
    hvd_request request = request_of(HVD_REDUCESCATTER, "few rows");

    for (int i = 0; i < 2 * WIDTH; i++)
        in[i] = i + rank;
    memset(out, -1, sizeof out);
    request.ndim = 2;
    request.shape = shape;
    request.input = in;
    request.output = out;
    ck_hvd(ranks_run(&request));
    for (int64_t i = 0; i < count; i++)
        ck_assert_int_eq(out[i], n * (WIDTH * rank + i) + n * (n - 1) / 2);
    for (int64_t i = count; i < 2 * WIDTH; i++)
        ck_assert_int_eq(out[i], -1);
}

/* The byte at i of what a rank sends to another. */
static uint8_t sent_byte(int from, int to, int64_t i)
{
    return (uint8_t)(i * 7 + i / 251 + 31 * from + 101 * to);
}

static void free_any(void *memory, bool heap)
{
    if (heap)
        hvd_free(memory);
    else
        free(memory);
}

/* Exchanges each bytes with every rank, in place or not, in the library's
 * memory or not. */
static void check_exchange(int64_t each, bool in_place, bool heap)
{
    int n = ranks_size(), rank = ranks_rank();
    int64_t all = each * n;
    size_t bytes = (size_t)all;
    uint8_t *in = heap ? hvd_malloc(bytes) : malloc(bytes);
    uint8_t *out = in_place ? in : heap ? hvd_malloc(bytes) : malloc(bytes);
    int64_t nwrong = 0;

    ck_assert(in && out);
    for (int64_t i = 0; i < all; i++)
        in[i] = sent_byte(rank, (int)(i / each), i % each);
    ck_hvd(hvd_alltoall(in, out, all, HVD_UINT8));
    for (int64_t i = 0; i < all; i++)
        nwrong += out[i] != sent_byte((int)(i / each), rank, i % each);
    for (int64_t i = 0; i < all && !in_place; i++)
        nwrong += in[i] != sent_byte(rank, (int)(i / each), i % each);
    ck_assert_int_eq(nwrong, 0);
    if (!in_place)
        free_any(out, heap);
    free_any(in, heap);
}

/* Each rank chooses by itself whether it is in place, and its memory. */
TEST(exchanges_mix_places)
{
    static const int64_t sizes[] = {1, 129, 4099, 70001, 700003};

    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int round = 0; round < 8; round++) {
            int choice = round < 4 ? round : round * (ranks_rank() + 1);

            check_exchange(sizes[s], choice & 1, choice / 2 & 1);
        }
}

TEST(overlaps_are_refused)
{
    int32_t data[4 * MOST] = {0};

    ck_hvd_fails(hvd_allreduce(data, data + 1, 4, HVD_INT32, HVD_SUM),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_alltoall(data, data + 1, ranks_size() * 2, HVD_INT32),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_allgather(data + ranks_rank() * 3 + 1, data, 3, HVD_INT32),
                 HVD_ERR_ARGUMENT);
    ck_error_says("put it at element");
    ck_hvd_fails(
        hvd_reducescatter(data + 1, data, ranks_size() * 2, HVD_INT32, HVD_SUM),
        HVD_ERR_ARGUMENT);
    ranks_check_usable();
}

/* ----------------------------------------------------------- nothing, oddly */

TEST(nothing_is_legal)
{
    int64_t zeros[MOST] = {0}, counts[MOST];
    hvd_tensor out = {.size = sizeof out};
    hvd_handle handle;

    ck_hvd(hvd_allgather(NULL, NULL, 0, HVD_FLOAT32));
    ck_hvd(hvd_gather(NULL, NULL, 0, HVD_FLOAT32, 0));
    ck_hvd(hvd_alltoall(NULL, NULL, 0, HVD_FLOAT32));
    ck_hvd(hvd_reducescatter(NULL, NULL, 0, HVD_FLOAT32, HVD_MAX));
    ck_hvd(hvd_reduce(NULL, NULL, 0, HVD_FLOAT32, HVD_SUM, 0));
    ck_hvd(hvd_allgatherv(NULL, 0, NULL, 0, counts, HVD_FLOAT64));
    ck_hvd(hvd_alltoallv(NULL, zeros, NULL, 0, counts, HVD_FLOAT64));
    ck_hvd(hvd_allgather_async("none", NULL, 0, HVD_INT8, &handle));
    ck_hvd(hvd_wait_output(handle, &out));
    ck_assert_int_eq(out.shape[0], 0);
    ck_assert(out.data != NULL);
    hvd_free(out.data);
}

TEST(misaligned_ones_are_right)
{
    char memory[8 * (MOST + 2)], gathered[8 * (MOST + 2) * MOST];
    double value;

    for (int offset = 1; offset < 8; offset += 2) {
        value = ranks_rank() + 0.5;
        memcpy(memory + offset, &value, sizeof value);
        ck_hvd(
            hvd_allgather(memory + offset, gathered + offset, 1, HVD_FLOAT64));
        for (int rank = 0; rank < ranks_size(); rank++) {
            memcpy(&value, gathered + offset + 8 * rank, sizeof value);
            ck_assert(value == rank + 0.5);
        }
    }
}

/* ---------------------------------------------------------------- too small */

TEST(too_small_an_output_is_ones_own_mistake)
{
    int32_t in[2] = {ranks_rank(), 7}, out[2 * MOST];
    int64_t counts[MOST] = {0}, splits[MOST];
    int n = ranks_size(), last = ranks_rank() == n - 1;
    int status;

    status =
        hvd_allgatherv(in, 2, out, last ? 2 * n - 1 : 2 * n, counts, HVD_INT32);
    if (last) {
        ck_assert_int_eq(status, HVD_ERR_ARGUMENT);
        ck_error_says("elements, and");
    } else {
        ck_hvd(status);
        ck_assert_int_eq(out[2 * n - 2], n - 1);
    }
    for (int rank = 0; rank < n; rank++)
        ck_assert_int_eq(counts[rank], 2);
    for (int rank = 0; rank < n; rank++)
        splits[rank] = 1;
    status =
        hvd_alltoallv(out, splits, out + n, last ? 0 : n, counts, HVD_INT32);
    ck_assert_int_eq(status, last ? HVD_ERR_ARGUMENT : HVD_OK);
    ranks_check_usable();
}

/* ----------------------------------------------------------------- mistakes */

TEST(splits_must_make_sense)
{
    int64_t shape[1] = {4}, splits[MOST] = {0};
    int32_t data[4] = {0};
    hvd_request request = request_of(HVD_ALLTOALL, "a");

    request.ndim = 1;
    request.shape = shape;
    request.input = data;
    request.splits = splits;
    splits[0] = 5;
    ck_hvd_fails(ranks_run(&request), HVD_ERR_ARGUMENT);
    ck_error_says("splits up to number 0 are more than the 4 rows");
    splits[0] = -1;
    ck_hvd_fails(ranks_run(&request), HVD_ERR_ARGUMENT);
    ck_error_says("split 0 is -1");
    splits[0] = INT64_MAX;
    ck_hvd_fails(ranks_run(&request), HVD_ERR_ARGUMENT);
    request.splits = NULL;
    shape[0] = ranks_size() + 1;
    if (ranks_size() > 1) {
        ck_hvd_fails(ranks_run(&request), HVD_ERR_ARGUMENT);
        ck_error_says("no multiple of");
    }
    ck_hvd_fails(hvd_alltoallv(data, NULL, data, 4, NULL, HVD_INT32),
                 HVD_ERR_ARGUMENT);
    ranks_check_usable();
}

TEST(scalars_have_no_rows)
{
    static const hvd_kind kinds[] = {HVD_ALLGATHER, HVD_GATHER, HVD_ALLTOALL,
                                     HVD_REDUCESCATTER};
    int32_t value = 1;

    for (int i = 0; i < 4; i++) {
        hvd_request request = request_of(kinds[i], "s");

        request.input = &value;
        ck_hvd_fails(ranks_run(&request), HVD_ERR_ARGUMENT);
        ck_error_says("a scalar has no rows");
    }
    ranks_check_usable();
}

TEST(outputs_and_capacities)
{
    int32_t value = 1;
    int64_t one = 1;
    hvd_request request = request_of(HVD_ALLGATHER, "c");

    request.ndim = 1;
    request.shape = &one;
    request.input = request.output = &value;
    request.capacity = -5;
    ck_hvd_fails(ranks_run(&request), HVD_ERR_ARGUMENT);
    ck_error_says("capacity -5");
    ck_hvd_fails(hvd_allgather(&value, NULL, 1, HVD_INT32), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_alltoall(&value, NULL, 1, HVD_INT32), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_reduce(&value, &value, 1, HVD_INT32, HVD_SUM, 99),
                 HVD_ERR_ARGUMENT);
    ck_error_says("root 99");
    ck_hvd_fails(hvd_gather(&value, &value, 1, HVD_INT32, -1),
                 HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_sparse_allreduce_async("s", NULL, NULL, 0, 1, HVD_FLOAT32,
                                            HVD_MAX, NULL),
                 HVD_ERR_UNSUPPORTED);
    ranks_check_usable();
}

/* --------------------------------------------------------------- capacities */

enum { ROWS = 5000 };

/* Returns how many elements of the result a rank gets. */
static int64_t result_of(hvd_kind kind, int64_t count)
{
    int n = ranks_size(), rank = ranks_rank();

    return kind == HVD_REDUCESCATTER ? count / n + (rank < count % n) : count;
}

static void expect_untouched(const int32_t *out, int64_t from)
{
    for (int64_t i = from; i < ROWS; i++)
        ck_assert_int_eq(out[i], -1);
}

/* Runs a request of count elements with this capacity on rank who (-1: on all
 * ranks), and no capacity on the others. Returns its status. */
static int run_within(hvd_kind kind, int64_t count, int64_t capacity, int who,
                      const int32_t *in, int32_t *out)
{
    hvd_request request = request_of(kind, "capacity");

    memset(out, -1, ROWS * sizeof *out);
    request.ndim = 1;
    request.shape = &count;
    request.input = in;
    request.output = out;
    if (who < 0 || who == ranks_rank())
        request.capacity = capacity;
    return ranks_run(&request);
}

/* Small tensors, large ones and those in shared memory go different ways, so
 * all three are tried. */
TEST(no_more_is_written_than_fits)
{
    static const hvd_kind kinds[] = {HVD_ALLREDUCE, HVD_REDUCE, HVD_BROADCAST,
                                     HVD_REDUCESCATTER};
    static const int64_t counts[] = {20, ROWS};
    int32_t *in = hvd_malloc(ROWS * sizeof *in);
    int32_t *out = hvd_malloc(ROWS * sizeof *out);

    for (int i = 0; i < 4 * 2; i++) {
        hvd_kind kind = kinds[i % 4];
        int64_t count = counts[i / 4], fits = result_of(kind, count);
        /* Only rank 0 gets the result of a reduction to it. */
        bool gets = kind != HVD_REDUCE || ranks_rank() == 0;

        ck_hvd_fails(run_within(kind, count, 1, -1, in, out),
                     gets ? HVD_ERR_ARGUMENT : HVD_ERR_PEER);
        ck_error_says("capacity 1 is too small: the output needs");
        expect_untouched(out, 0);
        ck_hvd_fails(run_within(kind, count, fits - 1, 0, in, out),
                     ranks_rank() == 0 ? HVD_ERR_ARGUMENT : HVD_ERR_PEER);
        ck_error_says("is too small");
        expect_untouched(out, 0);
        /* A result that fits is written, also where a request recurs. */
        for (int again = 0; again < 3; again++) {
            ck_hvd(run_within(kind, count, fits, -1, in, out));
            expect_untouched(out, gets ? fits : 0);
        }
        ck_hvd_fails(run_within(kind, count, 1, -1, in, out),
                     gets ? HVD_ERR_ARGUMENT : HVD_ERR_PEER);
        expect_untouched(out, 0);
    }
    ranks_check_usable();
    hvd_free(in);
    hvd_free(out);
}

TEST(a_group_with_a_member_that_does_not_fit)
{
    int32_t in[4] = {1, 2, 3, 4}, out[2][4];
    int64_t count = 4;
    hvd_request both[2];
    const hvd_request *const pointers[2] = {&both[0], &both[1]};

    memset(out, -1, sizeof out);
    for (int i = 0; i < 2; i++) {
        both[i] = request_of(HVD_ALLREDUCE, i ? "b" : "a");
        both[i].ndim = 1;
        both[i].shape = &count;
        both[i].input = in;
        both[i].output = out[i];
        both[i].capacity = i ? 3 : 4;
    }
    ck_hvd_fails(hvd_submit_group("g", pointers, 2, NULL), HVD_ERR_ARGUMENT);
    ck_error_says("capacity 3 is too small: the output needs 4");
    for (int i = 0; i < 4; i++)
        ck_assert(out[0][i] == -1 && out[1][i] == -1);
    ranks_check_usable();
}

/* --------------------------------------------------------------- mismatches */

/* The last rank submits other, the rest request. */
static void differ(const hvd_request *request, const hvd_request *other,
                   const char *ours, const char *theirs)
{
    int last = ranks_size() - 1;

    if (last == 0)
        return;
    ck_hvd_fails(ranks_run(ranks_rank() == last ? other : request),
                 HVD_ERR_MISMATCH);
    ck_error_says(ours);
    ck_error_says(theirs);
    ck_error_says("'m' differs: rank");
    ranks_check_usable();
}

TEST(what_ranks_may_not_differ_in)
{
    static const hvd_kind kinds[] = {HVD_ALLGATHER, HVD_ALLTOALL, HVD_GATHER};
    int32_t in[9 * MOST] = {0}, out[9 * MOST * MOST];
    int64_t shape[2] = {2 * ranks_size(), 3}, wide[2] = {2 * ranks_size(), 2};
    int64_t taller[2] = {3 * ranks_size(), 3};
    hvd_request request, other;

    for (int i = 0; i < 3; i++) {
        request = request_of(kinds[i], "m");
        request.ndim = 2;
        request.shape = shape;
        request.input = in;
        request.capacity = kinds[i] == HVD_GATHER ? INT64_MAX : 0;
        other = request;
        other.shape = wide;
        differ(&request, &other, "[*,3]", "[*,2]");
        other = request;
        other.dtype = HVD_FLOAT32;
        differ(&request, &other, "int32", "float32");
        other = request;
        other.ndim = 1;
        differ(&request, &other, "[*,3]", "[*]");
    }
    /* The same holds for a request with an output and no capacity. */
    request = request_of(HVD_ALLGATHER, "m");
    request.ndim = 2;
    request.shape = shape;
    request.input = in;
    request.output = out;
    other = request;
    other.shape = taller;
    differ(&request, &other, "allgather int32 [", ",3]");
    request = request_of(HVD_REDUCESCATTER, "m");
    request.ndim = 2;
    request.shape = shape;
    request.input = in;
    other = request;
    other.op = HVD_AVERAGE;
    differ(&request, &other, "reducescatter sum", "reducescatter average");
    other = request;
    other.kind = HVD_ALLREDUCE;
    other.output = out;
    differ(&request, &other, "reducescatter sum", "allreduce sum");
    request = request_of(HVD_REDUCE, "m");
    request.ndim = 2;
    request.shape = shape;
    request.input = in;
    request.output = out;
    other = request;
    other.root = ranks_size() - 1;
    differ(&request, &other, "to root 0", "to root ");
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_rows")
