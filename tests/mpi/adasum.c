/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of Adasum equal those of the same tree, computed in double from
 * all ranks' vectors.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

static double given(int rank, int64_t i)
{
    return (double)((rank * 31 + i * 17 + i % 5 * rank) % 23 - 11) / 8;
}

/* vectors: n of count, the result in the first. */
static void tree(double **v, int n, int64_t count)
{
    for (int step = 1; step < n; step *= 2)
        for (int a = 0; a + step < n; a += 2 * step) {
            double *x = v[a], *y = v[a + step], xx = 0, xy = 0, yy = 0;
            double cx, cy;

            for (int64_t i = 0; i < count; i++) {
                xx += x[i] * x[i];
                xy += x[i] * y[i];
                yy += y[i] * y[i];
            }
            cx = xx < sqrt(DBL_MIN) ? 1 : 1 - xy / (2 * xx);
            cy = yy < sqrt(DBL_MIN) ? 1 : 1 - xy / (2 * yy);
            for (int64_t i = 0; i < count; i++)
                x[i] = cx * x[i] + cy * y[i];
        }
}

static double *expected(int64_t count, double prescale)
{
    int n = ranks_size();
    double **v = calloc((size_t)n, sizeof *v), *result;

    for (int rank = 0; rank < n; rank++) {
        v[rank] = malloc((size_t)count * sizeof **v + 1);
        for (int64_t i = 0; i < count; i++)
            v[rank][i] = given(rank, i) * prescale;
    }
    tree(v, n, count);
    result = v[0];
    for (int rank = 1; rank < n; rank++)
        free(v[rank]);
    free(v);
    return result;
}

static double tolerance(hvd_dtype dtype)
{
    switch (dtype) {
    case HVD_FLOAT16: return 0x1p-10;
    case HVD_BFLOAT16: return 0x1p-7;
    case HVD_FLOAT32: return 0x1p-19;
    default: return 1e-11;
    }
}

static void check(hvd_dtype dtype, int64_t count, double prescale,
                  double postscale)
{
    size_t bytes = (size_t)(count * hvd_dtype_size(dtype));
    void *data = malloc(bytes + 1), *first = malloc(bytes + 1);
    double *want = expected(count, prescale), largest = 1;
    hvd_request request;

    for (int64_t i = 0; i < count; i++)
        element_put(dtype, data, i, given(ranks_rank(), i));
    request = ranks_sum(dtype, data, data, &count);
    request.op = HVD_ADASUM;
    request.prescale = prescale;
    request.postscale = postscale;
    ck_hvd(ranks_run(&request));
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(want[i] * postscale));
    for (int64_t i = 0; i < count; i++) {
        double got = element_get(dtype, data, i);

        if (fabs(got - want[i] * postscale) > tolerance(dtype) * largest)
            ck_abort_msg("%s [%lld] element %lld: %.9g, not %.9g",
                         hvd_dtype_name(dtype), (long long)count, (long long)i,
                         got, want[i] * postscale);
    }
    /* All ranks have the same bits. */
    memcpy(first, data, bytes);
    ck_hvd(hvd_broadcast(first, (int64_t)bytes, HVD_UINT8, 0));
    ck_assert(memcmp(first, data, bytes) == 0);
    free(data);
    free(first);
    free(want);
}

TEST(it_is_the_tree)
{
    static const hvd_dtype dtypes[] = {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32,
                                       HVD_FLOAT64};
    static const int64_t counts[] = {0, 1, 2, 7, 17, 1001, 70001};

    for (int d = 0; d < 4; d++)
        for (int c = 0; c < 7; c++)
            check(dtypes[d], counts[c], 1, 1);
    check(HVD_FLOAT32, 333, 0.5, 3);
    check(HVD_FLOAT64, 333, -2, 0.25);
}

TEST(orthogonal_ones_are_added_parallel_ones_averaged)
{
    float data[16] = {0};
    int n = ranks_size();

    data[ranks_rank()] = 3;
    ck_hvd(hvd_allreduce(data, data, 16, HVD_FLOAT32, HVD_ADASUM));
    for (int i = 0; i < 16; i++)
        ck_assert(data[i] == (i < n ? 3.0f : 0.0f));
    for (int i = 0; i < 16; i++)
        data[i] = (float)i;
    ck_hvd(hvd_allreduce(data, data, 16, HVD_FLOAT32, HVD_ADASUM));
    for (int i = 0; i < 16; i++)
        ck_assert(fabsf(data[i] - (float)i) < 1e-5f);
    /* The sum of vectors of zeros is zeros, not NaN. */
    memset(data, 0, sizeof data);
    ck_hvd(hvd_allreduce(data, data, 16, HVD_FLOAT32, HVD_ADASUM));
    for (int i = 0; i < 16; i++)
        ck_assert(data[i] == 0);
}

TEST(only_floating_allreduces)
{
    int32_t whole = 1;
    float value = 1;
    hvd_request request;

    ck_hvd_fails(hvd_allreduce(&whole, &whole, 1, HVD_INT32, HVD_ADASUM),
                 HVD_ERR_ARGUMENT);
    ck_error_says("int32");
    request = ranks_sum(HVD_FLOAT32, &value, &value, NULL);
    request.kind = HVD_REDUCE;
    request.op = HVD_ADASUM;
    ck_hvd_fails(hvd_submit(&request, NULL), HVD_ERR_UNSUPPORTED);
    ck_hvd(hvd_barrier());
}

TEST(several_tensors_keep_their_own_coefficients)
{
    float a[2] = {ranks_rank() == 0 ? 1.0f : 0.0f, ranks_rank() == 1};
    float b[2] = {1, 1};
    hvd_handle handles[2];

    ck_hvd(hvd_allreduce_async("a", a, a, 2, HVD_FLOAT32, HVD_ADASUM,
                               &handles[0]));
    ck_hvd(hvd_allreduce_async("b", b, b, 2, HVD_FLOAT32, HVD_ADASUM,
                               &handles[1]));
    ck_hvd(hvd_wait(handles[0]));
    ck_hvd(hvd_wait(handles[1]));
    ck_assert(a[0] == 1 && a[1] == (ranks_size() > 1 ? 1.0f : 0.0f));
    ck_assert(b[0] == 1 && b[1] == 1);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_adasum")
