/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests products of many matrices, and ops that only move elements: transpose,
 * slice, pad, concat.
 */
#include "suite.h"

#include <stdbool.h>

#include "differences.h"

static float a[MOST], b[MOST], y[MOST];
static double wanted[MOST];

static void check_values(int64_t count, double tolerance)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)y[i] - wanted[i]) <= tolerance))
            ck_abort_msg("element %d is %.9g, not %.9g", (int)i, (double)y[i],
                         wanted[i]);
}

/* Runs the graph with a and b as inputs, if they are used; writes the result to
 * y. */
static void compute(ipu_tensor result, int64_t counta, int64_t countb)
{
    MUST(ipu_output(d.graph, "y", result));
    device_load(&d);
    device_connect(&d, "a", a, counta);
    if (countb >= 0)
        device_connect(&d, "b", b, countb);
    device_connect(&d, "y", y, device_count(&d, result));
    MUST(ipu_engine_run(d.engine));
}

/* ----------------------------------------------------------------- products */

static const struct {
    int64_t batch, m, k, n;
    int shared; /* 0: neither, 1: a, 2: b is one matrix */
} products[] = {
    {1, 3, 4, 5, 0}, {6, 3, 4, 5, 0},  {6, 7, 1, 2, 1}, {6, 3, 5, 4, 2},
    {4, 1, 1, 1, 0}, {2, 17, 9, 6, 2}, {0, 2, 3, 4, 0}, {3, 2, 0, 4, 0},
    {3, 0, 2, 4, 2}, {1, 5, 6, 7, 2},
};
enum { PRODUCTS = sizeof products / sizeof *products };

/* The shape is [2, batch / 2, ...] if there are pairs, else [batch, ...]. */
static int32_t shape_of(int p, bool single, int64_t rows, int64_t columns,
                        int64_t *shape)
{
    int32_t ndim = 0;
    bool pairs = products[p].batch % 2 == 0;

    if (!single && pairs)
        shape[ndim++] = 2;
    if (!single)
        shape[ndim++] = products[p].batch / (pairs ? 2 : 1);
    shape[ndim++] = rows;
    shape[ndim++] = columns;
    return ndim;
}

static ipu_tensor product(int i, ipu_tensor (*make)(const char *, int32_t,
                                                    const int64_t *))
{
    int p = i / 4, ta = i % 2, tb = i / 2 % 2;
    int64_t sa[4], sb[4], m = products[p].m, k = products[p].k;
    int64_t n = products[p].n;
    int32_t na =
        shape_of(p, products[p].shared == 1, ta ? k : m, ta ? m : k, sa);
    int32_t nb =
        shape_of(p, products[p].shared == 2, tb ? n : k, tb ? k : n, sb);
    ipu_tensor first = make("a", na, sa);

    return ipu_batch_matmul(d.graph, first, make("b", nb, sb), ta, tb);
}

static ipu_tensor make_input(const char *name, int32_t ndim,
                             const int64_t *shape)
{
    return device_floats(&d, name, ndim, shape);
}

static ipu_tensor make_variable(const char *name, int32_t ndim,
                                const int64_t *shape)
{
    (void)name;
    return variable(ndim, shape);
}

LOOP_TEST(products_follow_their_definition, 0, 4 * PRODUCTS)
{
    int p = _i / 4, ta = _i % 2, tb = _i / 2 % 2;
    int64_t m = products[p].m, k = products[p].k, n = products[p].n;
    int64_t batch = products[p].batch;

    device_fill(a, MOST, 1);
    device_fill(b, MOST, 2);
    for (int64_t i = 0; i < batch * m * n; i++) {
        int64_t which = i / n / m, row = i / n % m, column = i % n;
        const float *u = a + (products[p].shared == 1 ? 0 : which * m * k);
        const float *v = b + (products[p].shared == 2 ? 0 : which * k * n);

        wanted[i] = 0;
        for (int64_t l = 0; l < k; l++)
            wanted[i] += (double)u[ta ? l * m + row : row * k + l] *
                         (double)v[tb ? column * k + l : l * n + column];
    }
    compute(product(_i, make_input),
            (products[p].shared == 1 ? 1 : batch) * m * k,
            (products[p].shared == 2 ? 1 : batch) * k * n);
    check_values(batch * m * n, 1e-5);
}

LOOP_TEST(derivatives_of_products, 0, 4 * PRODUCTS)
{
    check_gradients(product(_i, make_variable));
}

/* A NaN reaches its row and its column, and nothing else. */
TEST(nan_stays_in_its_product)
{
    ipu_tensor u = device_floats(&d, "a", 3, SHAPE(2, 2, 2));
    ipu_tensor v = device_floats(&d, "b", 3, SHAPE(2, 2, 2));

    device_fill(a, 8, 1);
    device_fill(b, 8, 2);
    a[0] = NAN;
    b[7] = INFINITY;
    compute(ipu_matmul(d.graph, u, v), 8, 8);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(isfinite(y[i]) != 0,
                         i == 2 || i == 3 || i == 4 || i == 6);
}

static ipu_tensor product_leading(void)
{
    return ipu_matmul(d.graph, device_floats(&d, "u", 3, SHAPE(2, 3, 4)),
                      device_floats(&d, "v", 3, SHAPE(3, 4, 5)));
}

static ipu_tensor product_ndim(void)
{
    return ipu_matmul(d.graph, device_floats(&d, "u", 3, SHAPE(2, 3, 4)),
                      device_floats(&d, "v", 4, SHAPE(1, 2, 4, 5)));
}

static ipu_tensor product_inner(void)
{
    return ipu_batch_matmul(d.graph, device_floats(&d, "u", 2, SHAPE(3, 4)),
                            device_floats(&d, "v", 2, SHAPE(4, 5)), 1, 0);
}

static ipu_tensor product_of_vectors(void)
{
    return ipu_matmul(d.graph, device_floats(&d, "u", 1, SHAPE(3)),
                      device_floats(&d, "v", 2, SHAPE(3, 5)));
}

/* -------------------------------------------------------------------- moves */

static const struct {
    int32_t ndim;
    int64_t shape[4];
    int32_t axes[4];
} orders[] = {
    {2, {5, 7}, {1, 0}},
    {2, {5, 7}, {0, 1}},
    {3, {3, 4, 5}, {1, 0, 2}},
    {3, {3, 4, 5}, {2, 0, 1}},
    {3, {3, 4, 5}, {0, -1, 1}},
    {4, {2, 3, 4, 5}, {0, 2, 1, 3}},
    {4, {2, 3, 4, 5}, {3, 2, 1, 0}},
    {4, {2, 1, 4, 5}, {2, 3, 1, 0}},
    {1, {9}, {0}},
    {2, {0, 3}, {1, 0}},
};
enum { ORDERS = sizeof orders / sizeof *orders };

LOOP_TEST(transpose_reorders_dimensions, 0, ORDERS)
{
    int32_t ndim = orders[_i].ndim;
    int64_t count = 1, got[IPU_MAX_DIMS];
    ipu_tensor x = device_floats(&d, "a", ndim, orders[_i].shape);
    ipu_tensor t = ipu_transpose(d.graph, x, orders[_i].axes);

    MUST(ipu_tensor_info(d.graph, t, NULL, got, NULL));
    for (int k = 0; k < ndim; k++)
        count *= orders[_i].shape[k];
    device_fill(a, count, 1);
    for (int64_t i = 0; i < count; i++) { /* i: of the result */
        int64_t index[4] = {0}, rest = i, at = 0;

        for (int k = ndim - 1; k >= 0; k--) {
            index[(orders[_i].axes[k] + ndim) % ndim] = rest % got[k];
            rest /= got[k];
        }
        for (int k = 0; k < ndim; k++)
            at = at * orders[_i].shape[k] + index[k];
        wanted[i] = (double)a[at];
    }
    compute(t, count, -1);
    check_values(count, 0);
}

LOOP_TEST(derivatives_of_transpose, 0, ORDERS)
{
    check_gradients(ipu_transpose(
        d.graph, variable(orders[_i].ndim, orders[_i].shape), orders[_i].axes));
}

TEST(transpose_without_axes_reverses)
{
    int64_t got[IPU_MAX_DIMS];
    ipu_tensor x = ipu_input(d.graph, "i", IPU_INT32, 3, SHAPE(2, 3, 4));

    MUST(ipu_tensor_info(d.graph, ipu_transpose(d.graph, x, NULL), NULL, got,
                         NULL));
    ck_assert_int_eq(got[0], 4);
    ck_assert_int_eq(got[1], 3);
    ck_assert_int_eq(got[2], 2);
}

TEST(slice_takes_a_part)
{
    ipu_tensor x = device_floats(&d, "a", 3, SHAPE(4, 5, 6));
    ipu_tensor part = ipu_slice(d.graph, x, SHAPE(1, 0, 2), SHAPE(2, -1, 3));

    device_fill(a, 120, 1);
    for (int i = 0; i < 30; i++)
        wanted[i] = (double)a[(1 + i / 15) * 30 + i / 3 % 5 * 6 + 2 + i % 3];
    compute(part, 120, -1);
    check_values(30, 0);
}

TEST(pad_surrounds)
{
    ipu_tensor x = device_floats(&d, "a", 2, SHAPE(2, 3));
    ipu_tensor wide = ipu_pad(d.graph, x, SHAPE(1, 0), SHAPE(0, 2), -7);

    device_fill(a, 6, 1);
    for (int i = 0; i < 15; i++)
        wanted[i] =
            i / 5 >= 1 && i % 5 < 3 ? (double)a[(i / 5 - 1) * 3 + i % 5] : -7;
    compute(wide, 6, -1);
    check_values(15, 0);
}

LOOP_TEST(concat_joins, 0, 3)
{
    const int64_t shape[] = {2, 3, 4};
    int64_t wide[] = {2, 3, 4};
    ipu_tensor u = device_floats(&d, "a", 3, shape), v, result;
    int64_t inner = _i == 0 ? 12 : _i == 1 ? 4 : 1, from = 0;

    wide[_i] = 5;
    v = device_floats(&d, "b", 3, wide);
    device_fill(a, 24, 1);
    device_fill(b, 60, 2);
    /* u, v, u */
    result = ipu_concat(d.graph, 3, (const ipu_tensor[]){u, v, u}, _i - 3);
    for (int64_t i = 0, row = 0; i < device_count(&d, result); row++) {
        int64_t na = shape[_i] * inner, nb = 5 * inner;

        for (int64_t k = 0; k < 2 * na + nb; k++, i++)
            wanted[i] = (double)(k < na        ? a[row * na + k]
                                 : k < na + nb ? b[row * nb + k - na]
                                               : a[row * na + k - na - nb]);
        from = i;
    }
    compute(result, 24, device_count(&d, v));
    check_values(from, 0);
}

static ipu_tensor slice_of(void)
{
    return ipu_slice(d.graph, variable(3, SHAPE(3, 4, 5)), SHAPE(1, 2, 0),
                     SHAPE(2, 1, -1));
}

static ipu_tensor slice_of_nothing(void)
{
    return ipu_slice(d.graph, variable(2, SHAPE(3, 4)), SHAPE(3, 0),
                     SHAPE(0, 4));
}

static ipu_tensor pad_of(void)
{
    return ipu_pad(d.graph, variable(2, SHAPE(3, 4)), SHAPE(2, 0), SHAPE(1, 3),
                   5);
}

static ipu_tensor concat_of(void)
{
    ipu_tensor u = variable(2, SHAPE(3, 4));
    ipu_tensor v = variable(2, SHAPE(3, 1)), w = variable(2, SHAPE(3, 2));

    return ipu_concat(d.graph, 4, (const ipu_tensor[]){u, v, u, w}, 1);
}

static ipu_tensor concat_of_one(void)
{
    ipu_tensor u = variable(2, SHAPE(3, 4));

    return ipu_concat(d.graph, 1, &u, 0);
}

static ipu_tensor (*const moves[])(void) = {slice_of, slice_of_nothing, pad_of,
                                            concat_of, concat_of_one};
enum { MOVES = sizeof moves / sizeof *moves };

LOOP_TEST(derivatives_of_moves, 0, MOVES)
{
    check_gradients(moves[_i]());
}

static ipu_tensor matrix(void)
{
    return device_floats(&d, "x", 2, SHAPE(3, 4));
}

static ipu_tensor transpose_axis(void)
{
    return ipu_transpose(d.graph, matrix(), (const int32_t[]){0, 2});
}

static ipu_tensor transpose_twice(void)
{
    return ipu_transpose(d.graph, matrix(), (const int32_t[]){0, -2});
}

static ipu_tensor slice_outside(void)
{
    return ipu_slice(d.graph, matrix(), SHAPE(0, 2), SHAPE(3, 3));
}

static ipu_tensor slice_before(void)
{
    return ipu_slice(d.graph, matrix(), SHAPE(-1, 0), SHAPE(1, 1));
}

static ipu_tensor slice_start(void)
{
    return ipu_slice(d.graph, matrix(), SHAPE(4, 0), SHAPE(-1, 1));
}

static ipu_tensor slice_far(void)
{
    return ipu_slice(d.graph, matrix(), SHAPE(INT64_MIN, 0), SHAPE(-1, 1));
}

static ipu_tensor slice_null(void)
{
    return ipu_slice(d.graph, matrix(), NULL, SHAPE(1, 1));
}

static ipu_tensor pad_negative(void)
{
    return ipu_pad(d.graph, matrix(), SHAPE(0, 0), SHAPE(0, -1), 0);
}

static ipu_tensor pad_huge(void)
{
    return ipu_pad(d.graph, matrix(), SHAPE(0, INT64_MAX), SHAPE(0, 0), 0);
}

static ipu_tensor pad_null(void)
{
    return ipu_pad(d.graph, matrix(), SHAPE(0, 0), NULL, 0);
}

static ipu_tensor concat_none(void)
{
    return ipu_concat(d.graph, 0, NULL, 0);
}

static ipu_tensor concat_axis(void)
{
    ipu_tensor x = matrix();

    return ipu_concat(d.graph, 1, &x, 2);
}

static ipu_tensor concat_scalars(void)
{
    ipu_tensor x = device_floats(&d, "x", 0, NULL);

    return ipu_concat(d.graph, 2, (const ipu_tensor[]){x, x}, 0);
}

static ipu_tensor concat_misfit(void)
{
    ipu_tensor x = matrix(), z = device_floats(&d, "z", 2, SHAPE(3, 5));

    return ipu_concat(d.graph, 2, (const ipu_tensor[]){x, z}, 0);
}

static ipu_tensor concat_ndim(void)
{
    ipu_tensor x = matrix(), z = device_floats(&d, "z", 1, SHAPE(3));

    return ipu_concat(d.graph, 2, (const ipu_tensor[]){x, z}, 1);
}

static ipu_tensor concat_dtypes(void)
{
    ipu_tensor x = matrix();
    ipu_tensor z = ipu_input(d.graph, "z", IPU_INT32, 2, SHAPE(3, 4));

    return ipu_concat(d.graph, 2, (const ipu_tensor[]){x, z}, 0);
}

static ipu_tensor concat_invalid(void)
{
    ipu_tensor x = matrix();

    return ipu_concat(d.graph, 2, (const ipu_tensor[]){x, {-1}}, 0);
}

static const struct {
    ipu_tensor (*make)(void);
    int status;
    const char *words;
} bad[] = {
    {product_leading, IPU_ERR_SHAPE,
     "matmul: u is float32 [2,3,4] and v is float32 [3,4,5]: the dimensions "
     "before the last two must be equal"},
    {product_ndim, IPU_ERR_SHAPE, "the dimensions before the last two"},
    {product_inner, IPU_ERR_SHAPE, "the inner dimensions must be equal"},
    {product_of_vectors, IPU_ERR_SHAPE,
     "u is float32 [3], it must be float32 [m, k] or"},
    {transpose_axis, IPU_ERR_SHAPE, "transpose: there is no axis 2 in 2"},
    {transpose_twice, IPU_ERR_ARGUMENT, "transpose: axis 0 is given twice"},
    {slice_outside, IPU_ERR_SHAPE,
     "slice: x is float32 [3,4]: 3 elements from number 2 on are not within "
     "axis 1"},
    {slice_before, IPU_ERR_SHAPE, "from number -1 on"},
    {slice_start, IPU_ERR_SHAPE, "from number 4 on"},
    {slice_far, IPU_ERR_SHAPE, "from number -9223372036854775808 on"},
    {slice_null, IPU_ERR_ARGUMENT, "slice: an array is NULL"},
    {pad_negative, IPU_ERR_ARGUMENT, "pad: 0 before and -1 after axis 1"},
    {pad_huge, IPU_ERR_ARGUMENT, "pad: 9223372036854775807 before"},
    {pad_null, IPU_ERR_ARGUMENT, "pad: an array is NULL"},
    {concat_none, IPU_ERR_ARGUMENT, "concat: 0 tensors: give 1 or more"},
    {concat_axis, IPU_ERR_SHAPE, "concat: there is no axis 2 in 2"},
    {concat_scalars, IPU_ERR_SHAPE, "concat: there is no axis 0 in 0"},
    {concat_misfit, IPU_ERR_SHAPE,
     "concat: x is float32 [3,4] and z is float32 [3,5]: they must be the same "
     "but for the axis"},
    {concat_ndim, IPU_ERR_SHAPE, "z is float32 [3]: they must be the same"},
    {concat_dtypes, IPU_ERR_SHAPE, "z is int32 [3,4]: they must be the same"},
    {concat_invalid, IPU_ERR_ARGUMENT, "the tensor is invalid"},
};
enum { BAD = sizeof bad / sizeof *bad };

LOOP_TEST(what_does_not_fit_is_refused, 0, BAD)
{
    device_refused(&d, bad[_i].make(), bad[_i].status, bad[_i].words);
}

TEST_MAIN("device_moves", .set_up = set_up, .tear_down = tear_down)
