/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests convolutions of all kinds with each set of instructions: what they
 * give, what ops fused to them make of it, and both derivatives, against plain
 * sums in double. Sizes are such that
 * strips, panels, blocks and pieces of the depth end within them: no extent of
 * these is a multiple of another's. HVD_TEST_FULL=1 adds more random ones.
 */
#include "suite.h"

#include "device.h"
#include "ops/wide.h"

#include <cblas.h>
#include <math.h>
#include <stdbool.h>

struct conv {
    int64_t n, h, w, ci, kh, kw, co;
    int32_t stride[2], dilation[2], groups;
    int32_t padding[4]; /* above, below, left, right */
};

static const struct conv given[] = {
    /* one by one; panels of 32 and of 16 columns, whole and in part */
    {2, 9, 7, 19, 1, 1, 70, {1, 1}, {1, 1}, 1, {0}},
    {1, 5, 5, 300, 1, 1, 33, {1, 1}, {1, 1}, 1, {0}},
    {1, 1, 1, 3, 1, 1, 1, {1, 1}, {1, 1}, 1, {0}},
    {1, 8, 9, 6, 1, 1, 48, {2, 3}, {1, 1}, 1, {1, 0, 0, 2}},
    /* more pixels than a block */
    {3, 21, 23, 5, 3, 3, 17, {1, 1}, {1, 1}, 1, {1, 1, 1, 1}},
    /* pieces of the depth: several rows of a kernel, parts of one */
    {1, 9, 8, 30, 5, 3, 40, {1, 1}, {1, 1}, 1, {2, 2, 1, 1}},
    {1, 6, 7, 101, 3, 3, 9, {1, 1}, {1, 1}, 1, {1, 1, 1, 1}},
    {1, 7, 6, 130, 2, 4, 20, {1, 1}, {1, 1}, 1, {0, 1, 2, 1}},
    /* pieces of the depth, and more columns than elements of it */
    {1, 5, 7, 300, 1, 1, 345, {1, 1}, {1, 1}, 1, {0}},
    /* strides, dilations, paddings wider than the kernel */
    {2, 15, 14, 3, 7, 7, 24, {2, 2}, {1, 1}, 1, {3, 3, 3, 3}},
    {1, 12, 13, 8, 3, 3, 16, {2, 1}, {2, 3}, 1, {2, 1, 4, 2}},
    {1, 5, 4, 4, 2, 2, 8, {1, 1}, {1, 1}, 1, {3, 0, 4, 2}},
    {1, 4, 5, 7, 1, 3, 8, {1, 2}, {1, 1}, 1, {2, 2, 0, 3}},
    {1, 11, 3, 12, 3, 1, 10, {1, 1}, {3, 1}, 1, {1, 2, 0, 0}},
    /* groups */
    {1, 8, 7, 12, 3, 3, 27, {1, 1}, {1, 1}, 3, {1, 1, 1, 1}},
    {2, 7, 9, 10, 3, 2, 40, {2, 2}, {1, 2}, 2, {1, 0, 1, 1}},
    {1, 6, 6, 24, 1, 1, 16, {1, 1}, {1, 1}, 4, {0}},
    {1, 5, 9, 6, 3, 3, 18, {1, 1}, {1, 1}, 6, {1, 1, 1, 1}},
    /* depthwise: vectors of 16 and of 4 channels, and what is left */
    {2, 9, 11, 39, 3, 3, 39, {1, 1}, {1, 1}, 39, {1, 1, 1, 1}},
    {1, 12, 15, 23, 3, 3, 23, {2, 2}, {1, 1}, 23, {1, 1, 1, 1}},
    {1, 11, 10, 18, 5, 5, 18, {2, 3}, {1, 1}, 18, {2, 1, 3, 2}},
    {1, 13, 12, 7, 3, 4, 7, {3, 2}, {2, 3}, 7, {2, 2, 5, 1}},
    {1, 3, 4, 5, 3, 3, 5, {1, 1}, {1, 1}, 5, {4, 5, 6, 4}},
    {2, 2, 1, 2, 1, 1, 2, {1, 1}, {1, 1}, 2, {0}},
    {1, 17, 1, 3, 4, 1, 3, {4, 1}, {6, 1}, 3, {5, 7, 0, 0}},
};
enum { GIVEN = sizeof given / sizeof *given };

static struct device d;

static void set_up(void)
{
    d = device_new();
}

static void tear_down(void)
{
    device_free(&d);
    openblas_set_num_threads(1);
}

/* --------------------------------------------------------- the plain sums */

struct tensors {
    int64_t ho, wo;
    int64_t columns;    /* channels of y */
    int64_t nx, nk, ny; /* elements */
    float *x, *k, *g, *got;
    double *y, *dx, *dk, *z;
};

static int64_t side(int64_t extent, int64_t kernel, int i, const struct conv *c)
{
    int64_t room = extent + c->padding[2 * i] + c->padding[2 * i + 1] -
                   (kernel - 1) * c->dilation[i] - 1;

    return room < 0 ? 0 : room / c->stride[i] + 1;
}

/* Adds one product to y and to both derivatives. */
static void add_products(const struct conv *c, const struct tensors *t,
                         int64_t at_x, int64_t at_k, int64_t at_y)
{
    (void)c;
    t->y[at_y] += (double)t->x[at_x] * (double)t->k[at_k];
    t->dx[at_x] += (double)t->g[at_y] * (double)t->k[at_k];
    t->dk[at_k] += (double)t->x[at_x] * (double)t->g[at_y];
}

/* All products of one pixel of y, of channel o. */
static void convolve_pixel(const struct conv *c, const struct tensors *t,
                           int64_t image, int64_t row, int64_t column,
                           int64_t o)
{
    int64_t per = c->ci / c->groups, group = o / (c->co / c->groups);
    int64_t at_y = ((image * t->ho + row) * t->wo + column) * c->co + o;

    for (int64_t ky = 0; ky < c->kh; ky++)
        for (int64_t kx = 0; kx < c->kw; kx++) {
            int64_t h =
                row * c->stride[0] + ky * c->dilation[0] - c->padding[0];
            int64_t w =
                column * c->stride[1] + kx * c->dilation[1] - c->padding[2];

            if (h < 0 || h >= c->h || w < 0 || w >= c->w)
                continue;
            for (int64_t i = 0; i < per; i++)
                add_products(c, t,
                             ((image * c->h + h) * c->w + w) * c->ci +
                                 group * per + i,
                             ((ky * c->kw + kx) * per + i) * c->co + o, at_y);
        }
}

static struct tensors plain(const struct conv *c)
{
    struct tensors t = {.ho = side(c->h, c->kh, 0, c),
                        .wo = side(c->w, c->kw, 1, c)};

    t.columns = c->co;
    t.nx = c->n * c->h * c->w * c->ci;
    t.nk = c->kh * c->kw * c->ci / c->groups * c->co;
    t.ny = c->n * t.ho * t.wo * c->co;
    t.x = calloc((size_t)(t.nx + t.nk + 2 * t.ny) + 1, sizeof *t.x);
    t.y = calloc((size_t)(t.nx + t.nk + 2 * t.ny) + 1, sizeof *t.y);
    t.got = malloc((size_t)(t.nx + t.nk + 2 * t.ny + 1) * sizeof *t.got);
    ck_assert(t.x && t.y && t.got);
    t.k = t.x + t.nx;
    t.g = t.k + t.nk;
    t.dx = t.y + t.ny;
    t.dk = t.dx + t.nx;
    t.z = t.dk + t.nk;
    device_fill(t.x, (int)t.nx, 1);
    device_fill(t.k, (int)t.nk, 2);
    device_fill(t.g, (int)t.ny, 3);
    for (int64_t i = 0; i < c->n * t.ho * t.wo * c->co; i++)
        convolve_pixel(c, &t, i / c->co / t.wo / t.ho, i / c->co / t.wo % t.ho,
                       i / c->co % t.wo, i % c->co);
    return t;
}

static void free_tensors(struct tensors *t)
{
    free(t->x);
    free(t->y);
    free(t->got);
}

/* ------------------------------------------------------------- comparing */

/* Returns the largest of the wanted numbers. */
static double largest(const double *wanted, int64_t count)
{
    double most = 1e-30;

    for (int64_t i = 0; i < count; i++)
        most = fabs(wanted[i]) > most ? fabs(wanted[i]) : most;
    return most;
}

static void compare(const char *set, const char *what, int number,
                    const double *wanted, const float *got, int64_t count)
{
    double most = largest(wanted, count);

    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs((double)got[i] - wanted[i]) <= 2e-5 * most,
                      "%s of convolution %d, %s: element %d of %d is %.9g, not "
                      "%.9g",
                      what, number, set, (int)i, (int)count, (double)got[i],
                      wanted[i]);
}

static ipu_tensor build(const struct conv *c, ipu_tensor x, ipu_tensor k)
{
    ipu_conv_options o = {.size = sizeof o, .groups = c->groups};

    memcpy(o.stride, c->stride, sizeof o.stride);
    memcpy(o.dilation, c->dilation, sizeof o.dilation);
    memcpy(o.padding, c->padding, sizeof o.padding);
    return ipu_conv2d(d.graph, x, k, &o);
}

static void run_set(const char *set, int number, struct tensors *t)
{
    float *y = t->got, *dx = y + t->ny, *dk = dx + t->nx, *z = dk + t->nk;

    for (int64_t i = 0; i < t->nx + t->nk + 2 * t->ny; i++)
        t->got[i] = NAN;
    MUST(ipu__kernels_choose(set));
    MUST(ipu_engine_new(d.executable, &d.engine));
    device_connect(&d, "x", t->x, t->nx);
    device_connect(&d, "k", t->k, t->nk);
    device_connect(&d, "g", t->g, t->ny);
    device_connect(&d, "b", t->g, t->columns);
    device_connect(&d, "y", y, t->ny);
    device_connect(&d, "z", z, t->ny);
    device_connect(&d, "dx", dx, t->nx);
    device_connect(&d, "dk", dk, t->nk);
    MUST(ipu_engine_run(d.engine));
    ipu_engine_free(d.engine);
    d.engine = NULL;
    compare(set, "y", number, t->y, y, t->ny);
    compare(set, "dx", number, t->dx, dx, t->nx);
    compare(set, "dk", number, t->dk, dk, t->nk);
    for (int64_t i = 0; i < t->ny; i++) {
        double biased = (double)y[i] + (double)t->g[i % t->columns];

        t->z[i] = biased > 0 ? biased : 0;
    }
    compare(set, "relu", number, t->z, z, t->ny);
}

/* Tests one convolution with all sets. */
static void check_conv(const struct conv *c, int number)
{
    struct tensors t = plain(c);
    ipu_tensor in[2], dx[2], y, g, b;

    in[0] = device_floats(&d, "x", 4, SHAPE(c->n, c->h, c->w, c->ci));
    in[1] = device_floats(&d, "k", 4,
                          SHAPE(c->kh, c->kw, c->ci / c->groups, c->co));
    g = device_floats(&d, "g", 4, SHAPE(c->n, t.ho, t.wo, c->co));
    y = build(c, in[0], in[1]);
    MUST(ipu_output(d.graph, "y", y));
    b = device_floats(&d, "b", 1, SHAPE(c->co));
    MUST(ipu_output(d.graph, "z",
                    ipu_relu(d.graph, ipu_bias_add(d.graph, y, b))));
    y = ipu_reduce_sum(d.graph, ipu_multiply(d.graph, y, g), 1);
    MUST(ipu_gradients(d.graph, y, 2, in, dx));
    MUST(ipu_output(d.graph, "dx", dx[0]));
    MUST(ipu_output(d.graph, "dk", dx[1]));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    for (int k = IPU__KERNELS_GENERIC; k < IPU__KERNELS_END; k++)
        if (ipu__kernels_run_here((enum ipu__kernels)k))
            run_set(ipu__kernels_name((enum ipu__kernels)k), number, &t);
    free_tensors(&t);
}

LOOP_TEST(convolutions_are_their_plain_sums, 0, GIVEN)
{
    check_conv(&given[_i], _i);
}

/* With two threads it is OpenBLAS that multiplies. */
LOOP_TEST(the_same_on_two_threads, 0, GIVEN)
{
    MUST(ipu_set_threads(2));
    check_conv(&given[_i], _i);
    MUST(ipu_set_threads(1));
}

/* A number from least to most. */
static int32_t draw(uint64_t *state, int32_t least, int32_t most)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return least + (int32_t)((*state >> 33) % (uint64_t)(most - least + 1));
}

static struct conv draw_conv(uint64_t seed)
{
    uint64_t s = seed * 977 + 5;
    struct conv c = {.n = draw(&s, 1, 2),
                     .h = draw(&s, 1, 14),
                     .w = draw(&s, 1, 14),
                     .kh = draw(&s, 1, 4),
                     .kw = draw(&s, 1, 4),
                     .groups = draw(&s, 0, 2) ? 1 : draw(&s, 2, 19)};
    bool depthwise = c.groups > 1 && draw(&s, 0, 1);

    c.ci = c.groups * (depthwise ? 1 : draw(&s, 1, c.groups > 1 ? 5 : 70));
    c.co = c.groups * (depthwise ? 1 : draw(&s, 1, c.groups > 1 ? 5 : 70));
    for (int i = 0; i < 2; i++) {
        c.stride[i] = draw(&s, 1, 3);
        c.dilation[i] = draw(&s, 1, 3);
    }
    for (int i = 0; i < 4; i++)
        c.padding[i] = draw(&s, 0, 5);
    return c;
}

LOOP_TEST(random_convolutions_are_their_plain_sums, 0,
          getenv("HVD_TEST_FULL") ? 3000 : 150)
{
    struct conv c = draw_conv((uint64_t)_i);

    if (side(c.h, c.kh, 0, &c) > 0 && side(c.w, c.kw, 1, &c) > 0)
        check_conv(&c, GIVEN + _i);
}

TEST_MAIN("device_convolutions_sets", .set_up = set_up, .tear_down = tear_down)
