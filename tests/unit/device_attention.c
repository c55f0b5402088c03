/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention against its definition in double and differences, for shapes that
 * are and are not multiples of its blocks.
 */
#include "suite.h"

#include "differences.h"

static const struct {
    int64_t batch, t, heads, d;
} cases[] = {{2, 5, 2, 3},   {1, 1, 1, 1},  {1, 64, 2, 4}, {2, 65, 1, 8},
             {1, 131, 3, 5}, {3, 7, 4, 16}, {0, 4, 1, 2},  {2, 0, 1, 2}};
enum { CASES = sizeof cases / sizeof *cases, LARGE = 1 << 14 };

static float x[LARGE], y[LARGE];

static int64_t channels(int i)
{
    return cases[i].heads * cases[i].d;
}

/* Row r of the queries (part 0), keys (1) or values (2) of a head. */
static const float *row_of(int i, int64_t b, int64_t r, int part, int64_t head)
{
    int64_t c = channels(i);

    return x + (b * cases[i].t + r) * 3 * c + part * c + head * cases[i].d;
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Returns the result of row r, channel k of the head. */
static double expected(int i, int64_t b, int64_t head, int64_t r, int64_t k,
                       int causal)
{
    double sum = 0, weighted = 0, most = -1e300;
    int64_t seen = causal ? r + 1 : cases[i].t;
    static double scores[256];

    for (int64_t s = 0; s < seen; s++) {
        scores[s] = dot(row_of(i, b, r, 0, head), row_of(i, b, s, 1, head),
                        cases[i].d) /
                    sqrt((double)cases[i].d);
        most = scores[s] > most ? scores[s] : most;
    }
    for (int64_t s = 0; s < seen; s++) {
        double weight = exp(scores[s] - most);

        sum += weight;
        weighted += weight * (double)row_of(i, b, s, 2, head)[k];
    }
    return weighted / sum;
}

LOOP_TEST(attention_is_its_definition, 0, 2 * CASES)
{
    int i = _i / 2, causal = _i % 2;
    int64_t c = channels(i), at = 0;
    int64_t in = cases[i].batch * cases[i].t * 3 * c;
    ipu_tensor qkv =
        device_floats(&d, "x", 3, SHAPE(cases[i].batch, cases[i].t, 3 * c));

    device_fill(x, in, 7);
    for (int64_t k = 0; k < in; k++)
        x[k] *= 3;
    MUST(ipu_output(
        d.graph, "y",
        ipu_attention(d.graph, qkv, (int32_t)cases[i].heads, causal)));
    device_load(&d);
    device_connect(&d, "x", x, in);
    device_connect(&d, "y", y, in / 3);
    MUST(ipu_engine_run(d.engine));
    for (int64_t b = 0; b < cases[i].batch; b++)
        for (int64_t r = 0; r < cases[i].t; r++)
            for (int64_t k = 0; k < c; k++, at++) {
                double wanted =
                    expected(i, b, k / cases[i].d, r, k % cases[i].d, causal);

                ck_assert_double_eq_tol((double)y[at], wanted, 3e-6);
            }
}

LOOP_TEST(its_derivative_is_that_of_differences, 0, 6)
{
    const int64_t shapes[][4] = {{2, 5, 2, 2}, {1, 70, 1, 2}, {1, 9, 3, 1}};
    const int64_t *s = shapes[_i / 2];

    spread = 1.5f;
    check_gradients(
        ipu_attention(d.graph, variable(3, SHAPE(s[0], s[1], 3 * s[2] * s[3])),
                      (int32_t)s[2], _i % 2));
}

/* Later rows do not matter to earlier ones, also if they are NaN. */
TEST(causal_rows_do_not_look_ahead)
{
    ipu_tensor qkv = device_floats(&d, "x", 3, SHAPE(1, 66, 6));

    device_fill(x, 66 * 6, 3);
    for (int64_t k = 40 * 6; k < 66 * 6; k++)
        x[k] = NAN;
    MUST(ipu_output(d.graph, "y", ipu_attention(d.graph, qkv, 2, 1)));
    device_load(&d);
    device_connect(&d, "x", x, 66 * 6);
    device_connect(&d, "y", y, 66 * 2);
    MUST(ipu_engine_run(d.engine));
    for (int i = 40 * 2; i < 66 * 2; i++)
        ck_assert(isnan(y[i]));
}

static const struct {
    int64_t shape[3];
    int32_t ndim, heads;
    const char *words;
} refusals[] = {
    {{2, 3, 6}, 3, 0, "0 heads, there must be at least 1"},
    {{2, 3, 6}, 3, -1, "-1 heads"},
    {{2, 3, 6}, 3, 4, "x has 6 columns"},
    {{2, 3, 7}, 3, 1, "it must be a multiple of 3"},
    {{2, 3, 0}, 3, 1, "x has 0 columns"},
    {{2, 3}, 2, 1, "it must be float32 [batch, t, 3 c]"},
};

LOOP_TEST(attention_refuses, 0, sizeof refusals / sizeof *refusals)
{
    ipu_tensor in =
        device_floats(&d, "x", refusals[_i].ndim, refusals[_i].shape);

    ck_assert_int_lt(ipu_attention(d.graph, in, refusals[_i].heads, 1).id, 0);
    device_says(&d, refusals[_i].words);
}

TEST_MAIN("device_attention", .set_up = set_up, .tear_down = tear_down)
