/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits.c - draws digits as a pen would write them.
 *
 * digits_shapes.h holds, for each class, a few ways to write it: strokes as
 * rows of points. An image takes one of them and
 *
 *   1. moves every point a little (an unsteady hand),
 *   2. joins the points by Catmull-Rom curves, as short straight pieces,
 *   3. scales, slants, turns and shifts the whole,
 *   4. draws each piece with a round pen: ink falls off over one pixel at the
 *      edge, which is the anti-aliasing,
 *   5. adds noise, and now and then a stain.
 *
 * Everything random comes from one generator seeded with (seed, set, index),
 * and everything computed is +, -, *, / and sqrt, which IEEE 754 rounds alike
 * everywhere; so ranks on different machines draw the same bits.
 */
#include "data/digits.h"

#include "data/digits_shapes.h"
#include "data/random.h"
#include "output/problem.h"

#include <math.h>

enum { PIECES = 10, MAX_POINTS = 24 };

struct point {
    double x, y;
};

/* The pen and the sheet of one image. The matrix maps centred shape units to
 * pixels. */
struct hand {
    double xx, xy, yx, yy;
    double cx, cy;   /* pixel of the centre of the shape */
    double unsteady; /* standard deviation of a point, shape units */
    double radius;   /* radius of the pen, pixels */
    double ink;      /* 0 to 255 */
};

static void hand_choose(struct hand *hand, struct random *r)
{
    double height = random_range(r, 15, 22) / 100;
    double width = height * random_range(r, 0.55, 1.0);
    double slant = 0.12 + 0.2 * random_bell(r);
    double turn = 0.11 * random_bell(r);
    /* Taylor series: the angle is small, and libm's sine may differ from
     * machine to machine. */
    double sine = turn - turn * turn * turn / 6;
    double cosine = 1 - turn * turn / 2 + turn * turn * turn * turn / 24;

    hand->xx = cosine * width;
    hand->xy = -cosine * slant * height - sine * height;
    hand->yx = sine * width;
    hand->yy = -sine * slant * height + cosine * height;
    hand->cx = IMAGE_SIDE / 2.0 + 1.1 * random_bell(r);
    hand->cy = IMAGE_SIDE / 2.0 + 1.1 * random_bell(r);
    hand->unsteady = random_range(r, 2.0, 6.0);
    hand->radius = random_range(r, 0.55, 1.7);
    hand->ink = random_range(r, 190, 255);
}

/* Draws a straight piece from a to b: every pixel keeps the most ink it
 * gets. */
static void draw_piece(double *paper, const struct hand *hand, struct point a,
                       struct point b)
{
    double reach = hand->radius + 1;
    double dx = b.x - a.x, dy = b.y - a.y;
    double square = dx * dx + dy * dy;
    int x0 = (int)fmax(fmin(a.x, b.x) - reach, 0);
    int y0 = (int)fmax(fmin(a.y, b.y) - reach, 0);
    int x1 = (int)fmin(fmax(a.x, b.x) + reach, IMAGE_SIDE - 1);
    int y1 = (int)fmin(fmax(a.y, b.y) + reach, IMAGE_SIDE - 1);

    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            double px = x + 0.5 - a.x, py = y + 0.5 - a.y;
            double t = square > 0 ? (px * dx + py * dy) / square : 0;
            t = t < 0 ? 0 : t > 1 ? 1 : t;
            double ex = px - t * dx, ey = py - t * dy;
            double cover = hand->radius + 0.5 - sqrt(ex * ex + ey * ey);
            cover = cover < 0 ? 0 : cover > 1 ? 1 : cover;
            double *pixel = &paper[y * IMAGE_SIDE + x];
            *pixel = fmax(*pixel, cover * hand->ink);
        }
}

/* Returns the point at t of the way from p1 to p2 on the curve with the
 * neighbours p0 and p3. */
static struct point curve_at(const struct point *p, double t)
{
    double a = ((2 - t) * t - 1) * t / 2;
    double b = ((3 * t - 5) * t * t + 2) / 2;
    double c = ((4 - 3 * t) * t + 1) * t / 2;
    double d = (t - 1) * t * t / 2;
    struct point at = {a * p[0].x + b * p[1].x + c * p[2].x + d * p[3].x,
                       a * p[0].y + b * p[1].y + c * p[2].y + d * p[3].y};
    return at;
}

/* Maps a stroke of the shape to the paper, with jitter. Returns the number of
 * points, of which both ends are doubled for the curve. */
static int place_stroke(const struct hand *hand, struct random *r,
                        const struct shape_point *stroke, int count,
                        struct point *placed)
{
    for (int i = 0; i < count; i++) {
        /* A point given twice is a corner, and stays one. */
        if (i > 0 && stroke[i].x == stroke[i - 1].x &&
            stroke[i].y == stroke[i - 1].y) {
            placed[i + 1] = placed[i];
            continue;
        }
        double x = stroke[i].x - 50 + hand->unsteady * random_bell(r);
        double y = stroke[i].y - 50 + hand->unsteady * random_bell(r);
        placed[i + 1].x = hand->cx + hand->xx * x + hand->xy * y;
        placed[i + 1].y = hand->cy + hand->yx * x + hand->yy * y;
    }
    placed[0] = placed[1];
    placed[count + 1] = placed[count];
    return count + 2;
}

static void draw_stroke(double *paper, const struct hand *hand,
                        struct random *r, const struct shape_point *stroke,
                        int count)
{
    struct point placed[MAX_POINTS + 2] = {{0, 0}};
    int points = place_stroke(hand, r, stroke, count, placed);

    for (int i = 0; i + 3 < points; i++) {
        struct point from = placed[i + 1];
        for (int k = 1; k <= PIECES; k++) {
            struct point to = curve_at(placed + i, (double)k / PIECES);
            draw_piece(paper, hand, from, to);
            from = to;
        }
    }
}

/* Draws a dot somewhere, on one image of eight. */
static void add_stain(double *paper, struct random *r)
{
    struct hand pen = {.radius = random_range(r, 0.3, 1.2),
                       .ink = random_range(r, 60, 200)};
    struct point at = {random_range(r, 1, IMAGE_SIDE - 1),
                       random_range(r, 1, IMAGE_SIDE - 1)};

    if (random_below(r, 8) == 0)
        draw_piece(paper, &pen, at, at);
}

static void draw_digit(struct random *r, int digit, uint8_t *pixels)
{
    double paper[IMAGE_PIXELS] = {0};
    const struct shape_class *class = &shape_classes[digit];
    const struct shape_point *at =
        class->variants[random_below(r, class->count)];
    struct hand hand;

    hand_choose(&hand, r);
    while (at->x != SHAPE_END) {
        int count = 0;
        while (at[count].x >= 0)
            count++;
        draw_stroke(paper, &hand, r, at, count);
        at += count + (at[count].x == SHAPE_LIFT);
    }
    add_stain(paper, r);
    double noise = random_range(r, 0, 12);
    for (int i = 0; i < IMAGE_PIXELS; i++) {
        double value = paper[i] + noise * random_bell(r) + 0.5;
        pixels[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

/* Images between two reports of progress. */
enum { TOLD_EVERY = 256 };

int digits_draw(uint64_t seed, int set, int64_t count, hvd_progress *progress,
                struct images *images)
{
    struct images drawn = {.count = count,
                           .pixels = malloc((size_t)count * IMAGE_PIXELS),
                           .labels = malloc((size_t)count)};

    if (!drawn.pixels || !drawn.labels) {
        images_fini(&drawn);
        return problem_set("no memory for %lld drawn digits", (long long)count);
    }
    hvd_progress_phase(progress,
                       set == DIGITS_TRAIN ? "drawing digits"
                                           : "drawing test digits",
                       0, count, "digits");
    for (int64_t i = 0; i < count; i++) {
        struct random r;

        if (i % TOLD_EVERY == 0) {
            int status = hvd_progress_update(progress, i, NULL);

            if (status < 0) {
                images_fini(&drawn);
                return status;
            }
        }
        random_seed(&r, seed, (uint64_t)i * 2 + (uint64_t)set);
        drawn.labels[i] = (uint8_t)random_below(&r, CLASSES);
        draw_digit(&r, drawn.labels[i], drawn.pixels + i * IMAGE_PIXELS);
    }
    hvd_progress_end(progress);
    *images = drawn;
    return 0;
}
