/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests matrix products of many and of few rows, with each set of instructions:
 * what they give, what ops fused to them make of it, and both derivatives,
 * against plain sums in double. Sizes end within strips, panels and blocks.
 *
 * Fused ops are a program of their own, whose product is no output, and one of
 * them has an operand that differs from element to element: so they are right
 * only if the product says which elements it hands over.
 */
#include "suite.h"

#include "device.h"
#include "ops/wide.h"

#include <math.h>
#include <stdbool.h>

/* a: [batch, m, k], or transposed; b: [batch, k, n], or [k, n], or either
 * transposed. */
static const struct product {
    int64_t batch, m, k, n;
    int ta, tb, shared;
} products[] = {
    {1, 96, 16, 16, 0, 0, 1},   {1, 95, 16, 16, 0, 0, 1},
    {1, 101, 300, 33, 0, 0, 1}, {1, 101, 300, 33, 0, 1, 1},
    {3, 97, 70, 50, 0, 0, 0},   {3, 97, 70, 50, 0, 1, 0},
    {3, 97, 20, 17, 1, 0, 0},   {2, 130, 19, 40, 1, 1, 0},
    {5, 33, 40, 24, 0, 0, 1},   {5, 33, 40, 24, 0, 1, 1},
    {2, 50, 17, 129, 1, 0, 1},  {1, 500, 3, 2, 0, 0, 1},
    {1, 7, 5, 3, 0, 0, 1},      {1, 200, 600, 64, 0, 1, 1},
};
enum { PRODUCTS = sizeof products / sizeof *products, MOST = 1 << 19 };

static struct device d;
static float a[MOST], b[MOST], g[MOST], bias[MOST], got[4][MOST];
static double wanted[4][MOST];
enum { Y, Z, DA, DB };

static void set_up(void)
{
    d = device_new();
}

static void tear_down(void)
{
    device_free(&d);
}

/* The places of element (i, k) of a, and (k, j) of b. */
static int64_t at_a(const struct product *p, int64_t batch, int64_t i,
                    int64_t k)
{
    return batch * p->m * p->k + (p->ta ? k * p->m + i : i * p->k + k);
}

static int64_t at_b(const struct product *p, int64_t batch, int64_t k,
                    int64_t j)
{
    return (p->shared ? 0 : batch * p->k * p->n) +
           (p->tb ? j * p->k + k : k * p->n + j);
}

static void compute_plain(const struct product *p)
{
    memset(wanted, 0, sizeof wanted);
    for (int64_t y = 0; y < p->batch * p->m * p->n; y++) {
        int64_t batch = y / p->n / p->m, i = y / p->n % p->m, j = y % p->n;

        for (int64_t k = 0; k < p->k; k++) {
            int64_t of_a = at_a(p, batch, i, k), of_b = at_b(p, batch, k, j);

            wanted[Y][y] += (double)a[of_a] * (double)b[of_b];
            wanted[DA][of_a] += (double)g[y] * (double)b[of_b];
            wanted[DB][of_b] += (double)g[y] * (double)a[of_a];
        }
        wanted[Z][y] = fmax(0, wanted[Y][y] + (double)bias[j]) * (double)g[y];
    }
}

static void compare(const char *set, const char *what, int which, int64_t count)
{
    double most = 1e-30;

    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs(wanted[which][i]));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs((double)got[which][i] - wanted[which][i]) <=
                          2e-5 * most,
                      "%s, %s: element %d is %.9g, not %.9g", what, set, (int)i,
                      (double)got[which][i], wanted[which][i]);
}

static void run_engine(const struct product *p, bool fused)
{
    int64_t ny = p->batch * p->m * p->n, na = p->batch * p->m * p->k;
    int64_t nb = (p->shared ? 1 : p->batch) * p->k * p->n;

    MUST(ipu_engine_new(d.executable, &d.engine));
    device_connect(&d, "a", a, na);
    device_connect(&d, "b", b, nb);
    device_connect(&d, "g", g, ny);
    if (fused) {
        device_connect(&d, "bias", bias, p->n);
        device_connect(&d, "z", got[Z], ny);
    } else {
        device_connect(&d, "y", got[Y], ny);
        device_connect(&d, "da", got[DA], na);
        device_connect(&d, "db", got[DB], nb);
    }
    MUST(ipu_engine_run(d.engine));
    ipu_engine_free(d.engine);
    d.engine = NULL;
}

static void run_set(const char *set, const struct product *p, bool fused)
{
    int64_t ny = p->batch * p->m * p->n, na = p->batch * p->m * p->k;
    int64_t nb = (p->shared ? 1 : p->batch) * p->k * p->n;

    for (int i = 0; i < 4; i++)
        for (int k = 0; k < MOST; k++)
            got[i][k] = NAN;
    MUST(ipu__kernels_choose(set));
    run_engine(p, fused);
    if (fused) {
        compare(set, "fused", Z, ny);
    } else {
        compare(set, "y", Y, ny);
        compare(set, "da", DA, na);
        compare(set, "db", DB, nb);
    }
}

/* A graph of the product: with ops fused to it and the output z, or with
 * outputs y, da and db. */
static void build(const struct product *p, bool fused)
{
    const int64_t of_a[] = {p->batch, p->ta ? p->k : p->m, p->ta ? p->m : p->k};
    const int64_t of_b[] = {p->batch, p->tb ? p->n : p->k, p->tb ? p->k : p->n};
    ipu_tensor in[2], dx[2], y, each;

    in[0] = device_floats(&d, "a", 3, of_a);
    in[1] = device_floats(&d, "b", p->shared ? 2 : 3, of_b + p->shared);
    each = device_floats(&d, "g", 3, SHAPE(p->batch, p->m, p->n));
    y = ipu_batch_matmul(d.graph, in[0], in[1], p->ta, p->tb);
    if (fused) {
        y = ipu_bias_add(d.graph, y, device_floats(&d, "bias", 1, &p->n));
        y = ipu_multiply(d.graph, ipu_relu(d.graph, y), each);
        MUST(ipu_output(d.graph, "z", y));
    } else {
        MUST(ipu_output(d.graph, "y", y));
        y = ipu_reduce_sum(d.graph, ipu_multiply(d.graph, y, each), 1);
        MUST(ipu_gradients(d.graph, y, 2, in, dx));
        MUST(ipu_output(d.graph, "da", dx[0]));
        MUST(ipu_output(d.graph, "db", dx[1]));
    }
    MUST(ipu_compile(d.graph, NULL, &d.executable));
}

static void check(const struct product *p, bool fused)
{
    device_fill(a, MOST, 1);
    device_fill(b, MOST, 2);
    device_fill(g, MOST, 3);
    device_fill(bias, MOST, 4);
    compute_plain(p);
    build(p, fused);
    for (int k = IPU__KERNELS_GENERIC; k < IPU__KERNELS_END; k++)
        if (ipu__kernels_run_here((enum ipu__kernels)k))
            run_set(ipu__kernels_name((enum ipu__kernels)k), p, fused);
}

LOOP_TEST(products_are_their_plain_sums, 0, PRODUCTS)
{
    check(&products[_i], false);
}

LOOP_TEST(fused_ops_get_the_elements_of_products, 0, PRODUCTS)
{
    check(&products[_i], true);
    /* One step: the ops are fused, or this tests nothing. */
    ck_assert_int_eq(device_memory(&d).steps, 1);
}

TEST_MAIN("device_products", .set_up = set_up, .tear_down = tear_down)
