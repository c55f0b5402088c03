/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every operation runs with every dtype, reduction and several counts: alone,
 * many at once (which are fused) and as a group. Its result is compared with a
 * computation that knows all ranks' data. HVD_TEST_FULL=1 adds counts, and
 * large tensors in every combination.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expected.h"
#include "ranks.h"

enum { MOST = 8, TENSORS = 4 };
enum how { ALONE, TOGETHER, GROUPED, HOWS };

struct job {
    hvd_request request;
    int64_t shape[2];
    int64_t splits[MOST];
    int64_t counts[MOST];
    char name[64];
    void *in, *out;
    int64_t nin, nout; /* elements of the buffers that the test gives */
    int64_t rows;
    int variant;
    hvd_handle handle;
};

static int has_op(hvd_kind kind)
{
    return kind == HVD_ALLREDUCE || kind == HVD_REDUCE ||
           kind == HVD_REDUCESCATTER;
}

static int gathers(hvd_kind kind)
{
    return kind == HVD_ALLGATHER || kind == HVD_GATHER;
}

static int root_of(const struct job *job)
{
    return (job->variant + 1) % ranks_size();
}

static int64_t width_of(const struct job *job)
{
    return job->variant % 2 ? 3 : 1;
}

/* Returns the rows that a rank gives to a gather, which is its own number. */
static int64_t gathered_rows(const struct job *job, int rank)
{
    return job->rows == 0 ? rank % 2 : job->rows + (rank + job->variant) % 3;
}

/* Returns the rows that go from one rank to another in an alltoall. */
static int64_t split_rows(const struct job *job, int from, int to)
{
    return job->rows == 0
               ? 0
               : (from + 2 * to + job->variant) % 4 + job->rows / ranks_size();
}

static int64_t input_rows(struct job *job)
{
    int64_t rows = 0;

    if (gathers(job->request.kind))
        return gathered_rows(job, ranks_rank());
    if (job->request.kind != HVD_ALLTOALL)
        return job->rows;
    for (int to = 0; to < ranks_size(); to++)
        rows += job->splits[to] = split_rows(job, ranks_rank(), to);
    return rows + 2; /* there are more rows than the splits take */
}

static void *room(int64_t count, hvd_dtype dtype)
{
    return ranks_memory((size_t)(count * hvd_dtype_size(dtype)));
}

static void prepare(struct job *job, hvd_kind kind, hvd_dtype dtype, hvd_op op,
                    int64_t rows, int variant)
{
    hvd_request *r = &job->request;
    struct expected given;

    *job = (struct job){.rows = rows, .variant = variant};
    hvd_request_init(r, sizeof *r);
    r->kind = kind;
    r->dtype = dtype;
    r->op = op;
    r->root = ranks_rooted(kind, root_of(job));
    r->shape = job->shape;
    r->ndim = 2;
    r->counts = job->counts;
    r->splits = kind == HVD_ALLTOALL ? job->splits : NULL;
    r->capacity = kind == HVD_GATHER ? INT64_MAX : 0;
    job->shape[0] = input_rows(job);
    job->shape[1] = width_of(job);
    job->nin = job->shape[0] * job->shape[1];
    job->in = room(job->nin, dtype);
    given = expected_tensor(dtype, op, ranks_rank());
    expected_fill(&given, 0, job->nin, job->in);
    r->input = job->in;
    if (kind == HVD_BROADCAST || kind == HVD_ALLREDUCE || kind == HVD_REDUCE) {
        job->nout = job->nin;
        r->output = job->out = room(job->nout, dtype);
        memset(job->out, 0, (size_t)(job->nout * hvd_dtype_size(dtype)));
        if (kind == HVD_BROADCAST)
            expected_fill(&given, 0, job->nout, job->out);
    }
}

/* ------------------------------------------------------------ what is right */

/* Checks that the count elements at out, from element `at` on, are the tensor's
 * from first on. */
static void compare(const struct job *job, const struct expected *tensor,
                    const void *out, int64_t at, int64_t first, int64_t count)
{
    const hvd_request *r = &job->request;
    const char *data = (const char *)out + at * hvd_dtype_size(r->dtype);
    double want;
    int64_t i = expected_difference(tensor, first, count, data, &want);

    if (i < 0)
        return;
    ck_abort_msg("rank %d: %s %s %s [%lld,%lld] element %lld: %.9g, not %.9g",
                 ranks_rank(), hvd_kind_name(r->kind), hvd_dtype_name(r->dtype),
                 hvd_op_name(r->op), (long long)job->shape[0],
                 (long long)job->shape[1], (long long)(at + i),
                 element_get(r->dtype, data, i), want);
}

static void check_reduced(const struct job *job, const void *out, int64_t first,
                          int64_t count)
{
    const hvd_request *r = &job->request;
    struct expected result = expected_result(r->dtype, r->op, ranks_size());

    compare(job, &result, out, 0, first, count);
}

/* Checks count elements of out, from number `at` on: they are those of rank's
 * tensor from first on. Returns the number of the element after them. */
static int64_t check_run(const struct job *job, const void *out, int64_t at,
                         int rank, int64_t first, int64_t count)
{
    const hvd_request *r = &job->request;
    struct expected given = expected_tensor(r->dtype, r->op, rank);

    compare(job, &given, out, at, first, count);
    return at + count;
}

static void check_gathered(const struct job *job, const hvd_tensor *out)
{
    int64_t at = 0, rows = 0;

    for (int rank = 0; rank < ranks_size(); rank++) {
        int64_t n = gathered_rows(job, rank);

        ck_assert_int_eq(job->counts[rank], n);
        at = check_run(job, out->data, at, rank, 0, n * job->shape[1]);
        rows += n;
    }
    ck_assert_int_eq(out->shape[0], rows);
    ck_assert_int_eq(out->shape[1], job->shape[1]);
}

static void check_exchanged(const struct job *job, const hvd_tensor *out)
{
    int64_t at = 0, rows = 0;

    for (int from = 0; from < ranks_size(); from++) {
        int64_t n = split_rows(job, from, ranks_rank()), before = 0;

        for (int to = 0; to < ranks_rank(); to++)
            before += split_rows(job, from, to);
        ck_assert_int_eq(job->counts[from], n);
        at = check_run(job, out->data, at, from, before * job->shape[1],
                       n * job->shape[1]);
        rows += n;
    }
    ck_assert_int_eq(out->shape[0], rows);
}

static void check_share(const struct job *job, const hvd_tensor *out)
{
    int64_t n = ranks_size(), rank = ranks_rank();
    int64_t each = job->rows / n, rest = job->rows % n;
    int64_t first = rank * each + (rank < rest ? rank : rest);
    int64_t rows = each + (rank < rest);

    ck_assert_int_eq(out->shape[0], rows);
    check_reduced(job, out->data, first * job->shape[1], rows * job->shape[1]);
}

static void finish(struct job *job)
{
    hvd_tensor out = {.size = sizeof out};
    int is_root = ranks_rank() == root_of(job);

    ck_hvd(hvd_wait_output(job->handle, &out));
    switch (job->request.kind) {
    case HVD_ALLREDUCE: check_reduced(job, job->out, 0, job->nout); break;
    case HVD_REDUCE:
        if (is_root)
            check_reduced(job, job->out, 0, job->nout);
        break;
    case HVD_BROADCAST:
        check_run(job, job->out, 0, root_of(job), 0, job->nout);
        break;
    case HVD_GATHER:
        if (is_root)
            check_gathered(job, &out);
        break;
    case HVD_ALLGATHER: check_gathered(job, &out); break;
    case HVD_ALLTOALL: check_exchanged(job, &out); break;
    case HVD_REDUCESCATTER: check_share(job, &out); break;
    default: break;
    }
    check_run(job, job->in, 0, ranks_rank(), 0, job->nin); /* unchanged */
    if (out.data != job->out)
        hvd_free(out.data);
    hvd_free(job->in);
    hvd_free(job->out);
}

/* -------------------------------------------------------------- the matrix */

static void submit(struct job *jobs, int n, enum how how)
{
    const hvd_request *requests[TENSORS];
    hvd_handle handles[TENSORS];

    for (int i = 0; i < n; i++) {
        snprintf(jobs[i].name, sizeof jobs[i].name, "tensor/%d", i);
        jobs[i].request.name = how == ALONE ? NULL : jobs[i].name;
        requests[i] = &jobs[i].request;
    }
    if (how == GROUPED) {
        ck_hvd(hvd_submit_group("group", requests, n, handles));
        for (int i = 0; i < n; i++)
            jobs[i].handle = handles[i];
        return;
    }
    for (int i = 0; i < n; i++) {
        /* Every rank submits in another order. */
        int k = how == TOGETHER ? (i + ranks_rank()) % n : i;
        ck_hvd(hvd_submit(&jobs[k].request, &jobs[k].handle));
    }
}

static void run(hvd_kind kind, hvd_dtype dtype, hvd_op op, int64_t rows,
                enum how how)
{
    struct job jobs[TENSORS];
    int n = how == ALONE ? 1 : TENSORS;

    if (dtype == HVD_BOOL && op == HVD_AVERAGE)
        return;
    for (int i = 0; i < n; i++)
        prepare(&jobs[i], kind, dtype, op, rows + (rows > 0 ? i : 0), i);
    submit(jobs, n, how);
    for (int i = n - 1; i >= 0; i--)
        finish(&jobs[i]);
}

static void run_counts(hvd_kind kind, hvd_dtype dtype, hvd_op op, enum how how)
{
    int64_t counts[] = {0, 1, 17, 4 * ranks_size() + 1, 3001};
    int64_t more[] = {2, 63, 64, 1023, 40009, 300007};

    for (int i = 0; i < 5; i++)
        run(kind, dtype, op, counts[i], how);
    for (int i = 0; getenv("HVD_TEST_FULL") && i < 6; i++)
        run(kind, dtype, op, more[i], how);
}

static void run_kind(hvd_kind kind)
{
    static const hvd_op ops[] = {HVD_SUM, HVD_AVERAGE, HVD_MIN, HVD_MAX,
                                 HVD_PRODUCT};
    int nops = has_op(kind) ? 5 : 1;

    for (hvd_dtype dtype = 0; dtype < HVD_NUM_DTYPES; dtype++)
        for (int o = 0; o < nops; o++)
            for (enum how how = ALONE; how < HOWS; how++)
                run_counts(kind, dtype, ops[o], how);
}

static const hvd_kind kinds[] = {
    HVD_ALLREDUCE, HVD_REDUCE, HVD_REDUCESCATTER, HVD_BROADCAST,
    HVD_ALLGATHER, HVD_GATHER, HVD_ALLTOALL};

LOOP_TEST(every_dtype_op_and_count, 0, 7)
{
    run_kind(kinds[_i]);
}

/* One way for each dtype, another for each kind and number of ranks; all ways
 * if HVD_TEST_FULL is set. */
LOOP_TEST(large_ones, 0, 7)
{
    for (enum how how = ALONE; how < HOWS; how++) {
        int turn = (_i + ranks_size() + (int)how) % HOWS;

        if (turn == 0 || getenv("HVD_TEST_FULL"))
            run(kinds[_i], HVD_FLOAT32, HVD_SUM, 700001, how);
        if (turn == 1 || getenv("HVD_TEST_FULL"))
            run(kinds[_i], HVD_INT8, HVD_MAX, 1500007, how);
    }
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_operations")
