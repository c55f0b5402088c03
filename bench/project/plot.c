/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.c - draws steps as SVG (report.h): at the top, if there are several
 * worlds, the efficiency over their ranks; below, the last world's step:
 *
 *     computing   | forward |        backward          |        | update |
 *     ready       |           | |  || |  |      |  |   |
 *     network     |            [====][=====]   [=====][=====]   the part after
 *                                                      the backward pass is red
 */
#include <math.h>
#include <string.h>

#include "project/report.h"

enum { WIDTH = 900, LEFT = 90, RIGHT = 30, CHART = 240, STEP = 300 };

static const char text_color[] = "#333333";

static void draw_text(FILE *out, double x, double y, const char *anchor,
                      const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y,
            anchor);
    for (; *text; text++)
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '>')
            fputs("&gt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else if ((unsigned char)*text >= ' ')
            fputc(*text, out);
    fputs("</text>\n", out);
}

static void draw_line(FILE *out, double x1, double y1, double x2, double y2,
                      const char *color)
{
    fprintf(out,
            "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
            "stroke=\"%s\"/>\n",
            x1, y1, x2, y2, color);
}

static void draw_bar(FILE *out, double x1, double x2, double y, double height,
                     const char *color)
{
    if (x2 > x1)
        fprintf(out,
                "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
                "fill=\"%s\" stroke=\"white\" stroke-width=\"0.3\"/>\n",
                x1, y, x2 - x1, height, color);
}

/* Returns a round distance of ticks, of which about n fit in a range. */
static double tick_of(double range, int n)
{
    double raw = range / n, power = pow(10, floor(log10(raw)));
    double factor = raw / power;

    return power * (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10);
}

/* --------------------------------------------------------------- efficiency */

static double rank_x(const struct projected *rows, int n, int i)
{
    double first = log2((double)rows[0].task->shape.nhosts);
    double range = log2((double)rows[n - 1].task->shape.nhosts) - first;
    double at = log2((double)rows[i].task->shape.nhosts) - first;

    return LEFT + (WIDTH - LEFT - RIGHT) * (range > 0 ? at / range : 0.5);
}

static void draw_efficiency(FILE *out, const struct projected *rows, int n,
                            double top)
{
    double height = CHART - 80, bottom = top + 20 + height;
    char text[64];

    draw_text(out, LEFT, top + 8, "start",
              "share of the step that computes, over hosts");
    for (int percent = 0; percent <= 100; percent += 25) {
        double y = bottom - height * percent / 100;

        draw_line(out, LEFT, y, WIDTH - RIGHT, y, "#dddddd");
        snprintf(text, sizeof text, "%d %%", percent);
        draw_text(out, LEFT - 6, y + 4, "end", text);
    }
    fprintf(out, "<polyline fill=\"none\" stroke=\"#1f6fb4\" "
                 "stroke-width=\"2\" points=\"");
    for (int i = 0; i < n; i++)
        fprintf(out, "%.2f,%.2f ", rank_x(rows, n, i),
                bottom - height * step_efficiency(rows[i].result));
    fputs("\"/>\n", out);
    for (int i = 0; i < n; i++) {
        double x = rank_x(rows, n, i);
        double share = step_efficiency(rows[i].result);

        fprintf(out,
                "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3\" fill=\"#1f6fb4\"/>\n",
                x, bottom - height * share);
        snprintf(text, sizeof text, "%.0f %%", 100 * share);
        draw_text(out, x, bottom - height * share - 8, "middle", text);
        snprintf(text, sizeof text, "%d", rows[i].task->shape.nhosts);
        draw_text(out, x, bottom + 16, "middle", text);
    }
}

/* ------------------------------------------------------------------- a step */

struct axis {
    double start, scale; /* x = LEFT + (seconds - start) * scale */
};

static double x_of(const struct axis *axis, double seconds)
{
    return LEFT + (seconds - axis->start) * axis->scale;
}

static void draw_axis(FILE *out, const struct axis *axis, double end,
                      double top, double bottom)
{
    double tick = tick_of(1e3 * (end - axis->start), 9);
    char text[32];

    for (int i = 0; i * tick <= 1e3 * (end - axis->start) * (1 + 1e-9); i++) {
        double ms = i * tick, x = x_of(axis, axis->start + ms / 1e3);

        draw_line(out, x, top, x, bottom, "#eeeeee");
        snprintf(text, sizeof text, "%g ms", ms);
        draw_text(out, x, bottom + 16, "middle", text);
    }
}

static void draw_computing(FILE *out, const struct projected *row,
                           const struct axis *axis, double y)
{
    const struct step_result *r = row->result;
    double end = axis->start + r->total, update = end - r->update;

    draw_bar(out, x_of(axis, axis->start), x_of(axis, 0), y, 24, "#9dbad5");
    draw_bar(out, x_of(axis, 0), x_of(axis, r->computed), y, 24, "#1f6fb4");
    draw_bar(out, x_of(axis, fmax(update, r->computed)), x_of(axis, end), y, 24,
             "#9dbad5");
    draw_text(out, LEFT - 6, y + 16, "end", "computing");
}

static void draw_batches(FILE *out, const struct projected *row,
                         const struct axis *axis, double y)
{
    const struct step_result *r = row->result;
    double until[2] = {-INFINITY, -INFINITY};

    for (int i = 0; i < r->n; i++) {
        const struct step_batch *b = &r->batches[i];
        int lane = b->start < until[0] - 1e-9;
        double at = y + 26 * lane;

        until[lane] = b->end;
        draw_bar(out, x_of(axis, b->start),
                 x_of(axis, fmin(b->end, r->computed)), at, 22, "#3a9a5b");
        draw_bar(out, x_of(axis, fmax(b->start, r->computed)),
                 x_of(axis, b->end), at, 22, "#c0392b");
    }
    draw_text(out, LEFT - 6, y + 16, "end", "network");
}

static void draw_step(FILE *out, const struct projected *row, double top)
{
    const struct step_result *r = row->result;
    double end = r->total - r->forward;
    struct axis axis = {-r->forward, (WIDTH - LEFT - RIGHT) / r->total};
    char text[160];

    snprintf(text, sizeof text,
             "a step on %d host%s of %d rank%s: %.3f ms, of which %.3f ms are "
             "exposed",
             row->task->shape.nhosts, row->task->shape.nhosts == 1 ? "" : "s",
             row->task->shape.nranks, row->task->shape.nranks == 1 ? "" : "s",
             1e3 * r->total, 1e3 * step_exposed(r));
    draw_text(out, LEFT, top + 8, "start", text);
    draw_axis(out, &axis, end, top + 20, top + 200);
    draw_computing(out, row, &axis, top + 30);
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->batches[i].n; k++) {
            const struct workload *w = row->task->workload;
            double ready = w->tensors[r->batches[i].tensors[k]].ready *
                           (w->backward > 0 ? r->computed / w->backward : 1);

            draw_line(out, x_of(&axis, ready), top + 70, x_of(&axis, ready),
                      top + 90, text_color);
        }
    draw_text(out, LEFT - 6, top + 84, "end", "ready");
    draw_batches(out, row, &axis, top + 104);
    draw_text(out, LEFT, top + 240, "start",
              "light blue: forward pass, update; blue: backward pass; green: "
              "hidden; red: not hidden");
}

void plot_steps(FILE *out, const char *title, const struct projected *rows,
                int n)
{
    int chart = n > 1 ? CHART : 0, height = 40 + chart + STEP;

    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"12\" fill=\"%s\">\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
            WIDTH, height, WIDTH, height, text_color, WIDTH, height);
    draw_text(out, LEFT, 24, "start", title);
    if (n > 1)
        draw_efficiency(out, rows, n, 44);
    draw_step(out, &rows[n - 1], 50 + chart);
    fputs("</svg>\n", out);
}
