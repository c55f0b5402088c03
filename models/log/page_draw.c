/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_draw.c - curves and bars as SVG. Colours are classes (c0, c1, ...),
 * whose values the page's style gives for light and dark.
 *
 * A curve of more points than it has columns is drawn by the lowest and the
 * highest value of each column, so that no peak is lost. Values that are no
 * numbers are gaps.
 */
#include "log/page.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 560,
    HEIGHT = 250,
    LEFT = 58,
    RIGHT = 22,
    TOP = 10,
    BOTTOM = 38,
    COLUMNS = WIDTH - LEFT - RIGHT,
    ROWS = HEIGHT - TOP - BOTTOM,
    FEW_POINTS = 40,
    NAME_BYTES = 256
};

void page_text(struct bytes *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&': bytes_print(out, "&amp;"); break;
        case '<': bytes_print(out, "&lt;"); break;
        case '>': bytes_print(out, "&gt;"); break;
        case '"': bytes_print(out, "&quot;"); break;
        case '\'': bytes_print(out, "&#39;"); break;
        case '\n':
        case '\t': bytes_add(out, text, 1); break;
        default:
            bytes_add(out,
                      (unsigned char)*text < ' ' || *text == 0x7f ? "?" : text,
                      1);
        }
}

void page_words(struct bytes *out, const char *name)
{
    char words[NAME_BYTES];

    snprintf(words, sizeof words, "%s", name);
    for (char *c = words; *c; c++)
        *c = *c == '_' ? ' ' : *c;
    page_text(out, words);
}

void page_seconds(struct bytes *out, double seconds)
{
    const long long s = (long long)fmin(fmax(seconds, 0) + 0.5, 1e15);

    if (seconds < 0.0995)
        bytes_print(out, "%.3g ms", 1000 * seconds);
    else if (s < 100)
        bytes_print(out, "%.3g s", seconds);
    else if (s < 3600)
        bytes_print(out, "%lld min %lld s", s / 60, s % 60);
    else
        bytes_print(out, "%lld h %lld min", s / 3600, s % 3600 / 60);
}

void page_number(double value, char text[32])
{
    double size = fabs(value);

    if (!isfinite(value))
        snprintf(text, 32, "none");
    else if (size >= 1e9)
        snprintf(text, 32, "%.4gG", value / 1e9);
    else if (size >= 1e6)
        snprintf(text, 32, "%.4gM", value / 1e6);
    else if (size >= 1e4)
        snprintf(text, 32, "%.4gk", value / 1e3);
    else
        snprintf(text, 32, "%.4g", value);
}

/* ----------------------------------------------------------------- the axes */

/* Larger ones would overflow on the way. */
static bool can_draw(double value)
{
    return fabs(value) <= 1e300; /* NaN is not */
}

struct axis {
    double low, high; /* logarithms, if it is logarithmic */
    double step;      /* between two ticks */
    bool logarithmic;
};

static double on_axis(const struct axis *axis, double value)
{
    double at = axis->logarithmic ? log10(value) : value;

    return (at - axis->low) / (axis->high - axis->low);
}

/* Sets ends and ticks: about five, at round numbers. */
static void round_axis(struct axis *axis, double low, double high, bool widens)
{
    double size, unit;

    if (high - low < 1e-12 * fmax(fabs(low), fabs(high)) || high == low) {
        double around = low == 0 ? 1 : 0.1 * fabs(low);

        low -= around;
        high += around;
    }
    size = (high - low) / 4;
    unit = pow(10, floor(log10(size)));
    axis->step = size / unit > 5   ? 10 * unit
                 : size / unit > 2 ? 5 * unit
                 : size / unit > 1 ? 2 * unit
                                   : unit;
    if (axis->logarithmic && axis->step < 1)
        axis->step = 1;
    axis->low = widens ? floor(low / axis->step + 1e-9) * axis->step : low;
    axis->high = widens ? ceil(high / axis->step - 1e-9) * axis->step : high;
}

/* Only what falls by orders of magnitude is seen better on such an axis. */
static bool may_be_logarithmic(const char *title)
{
    return strstr(title, "loss") || strstr(title, "perplexity");
}

static void find_ends(const char *title, int count,
                      const struct page_series *const *series, struct axis *x,
                      struct axis *y)
{
    double low = INFINITY, high = -INFINITY, first = INFINITY, last = -INFINITY;

    for (int i = 0; i < count; i++)
        for (int p = 0; p < series[i]->count; p++) {
            double value = series[i]->values[p];

            first = fmin(first, (double)series[i]->steps[p]);
            last = fmax(last, (double)series[i]->steps[p]);
            if (!can_draw(value))
                continue;
            low = fmin(low, value);
            high = fmax(high, value);
        }
    if (low > high)
        low = high = 0;
    y->logarithmic = may_be_logarithmic(title) && low > 0 && high / low > 100;
    if (y->logarithmic)
        round_axis(y, log10(low), log10(high), true);
    else
        round_axis(y, low, high, true);
    round_axis(x, first, last, false);
}

static void draw_axes(struct bytes *out, const struct axis *x,
                      const struct axis *y)
{
    char text[32];

    for (double at = y->low; at <= y->high + y->step / 2; at += y->step) {
        double value = y->logarithmic ? pow(10, at) : at;
        double row = TOP + ROWS * (1 - (at - y->low) / (y->high - y->low));

        if (fabs(value) < 1e-9 * fabs(y->high - y->low) && !y->logarithmic)
            value = 0;
        page_number(value, text);
        bytes_print(out,
                    "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" "
                    "y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\" class=\"left\">%s"
                    "</text>\n",
                    LEFT, row, LEFT + COLUMNS, row, LEFT - 7, row + 4, text);
    }
    for (double at = ceil(x->low / x->step - 1e-9) * x->step;
         at <= x->high * (1 + 1e-9); at += x->step) {
        page_number(at, text);
        bytes_print(out,
                    "<text x=\"%.1f\" y=\"%d\" class=\"below\">%s</text>\n",
                    LEFT + COLUMNS * on_axis(x, at), TOP + ROWS + 17, text);
    }
    bytes_print(out,
                "<line class=\"axis\" x1=\"%d\" y1=\"%d\" x2=\"%d\" "
                "y2=\"%d\"/><text x=\"%d\" y=\"%d\" class=\"below\">step"
                "</text>\n",
                LEFT, TOP + ROWS, LEFT + COLUMNS, TOP + ROWS,
                LEFT + COLUMNS / 2, HEIGHT - 4);
}

/* --------------------------------------------------------------- the curves */

struct pen {
    struct bytes *out;
    const struct axis *x, *y;
    bool down;
};

static void draw_to(struct pen *pen, int64_t step, double value)
{
    bytes_print(pen->out, "%c%.1f %.1f", pen->down ? 'L' : 'M',
                LEFT + COLUMNS * on_axis(pen->x, (double)step),
                TOP + ROWS * (1 - on_axis(pen->y, value)));
    pen->down = true;
}

/* Draws the points from first to end, which share a column. */
static void draw_column(struct pen *pen, const struct page_series *s, int first,
                        int end)
{
    int low = -1, high = -1;

    for (int p = first; p < end; p++) {
        if (!can_draw(s->values[p]))
            continue;
        low = low < 0 || s->values[p] < s->values[low] ? p : low;
        high = high < 0 || s->values[p] > s->values[high] ? p : high;
    }
    if (low < 0) {
        pen->down = false;
        return;
    }
    draw_to(pen, s->steps[low < high ? low : high],
            s->values[low < high ? low : high]);
    if (low != high)
        draw_to(pen, s->steps[low < high ? high : low],
                s->values[low < high ? high : low]);
}

static void draw_curve(struct bytes *out, const struct page_series *s,
                       const struct axis *x, const struct axis *y, int colour)
{
    int width = (s->count + COLUMNS - 1) / COLUMNS;
    struct pen pen = {out, x, y, false};

    bytes_print(out, "<path class=\"line c%d\" d=\"", colour);
    for (int p = 0; p < s->count; p += width)
        draw_column(&pen, s, p, p + width < s->count ? p + width : s->count);
    bytes_print(out, "\"/>\n");
    for (int p = 0; p < s->count && s->count <= FEW_POINTS; p++)
        if (can_draw(s->values[p]))
            bytes_print(out,
                        "<circle class=\"c%d\" cx=\"%.1f\" cy=\"%.1f\" "
                        "r=\"2.5\"/>",
                        colour,
                        LEFT + COLUMNS * on_axis(x, (double)s->steps[p]),
                        TOP + ROWS * (1 - on_axis(y, s->values[p])));
}

void page_curves(struct bytes *out, const char *title, int count,
                 const struct page_series *const *series)
{
    struct axis x = {0}, y = {0};
    char text[32];

    if (count > PAGE_MOST_LINES)
        count = PAGE_MOST_LINES;
    find_ends(title, count, series, &x, &y);
    bytes_print(out, "<figure><figcaption><b>");
    page_text(out, title);
    bytes_print(out, "</b>%s", y.logarithmic ? " (logarithmic)" : "");
    for (int i = 0; i < count; i++) {
        page_number(series[i]->values[series[i]->count - 1], text);
        bytes_print(out, "<span><i class=\"key c%d\"></i> ", i);
        page_text(out, series[i]->tag);
        bytes_print(out, " %s</span>", text);
    }
    bytes_print(out,
                "</figcaption>\n<svg viewBox=\"0 0 %d %d\" role=\"img\" "
                "aria-label=\"",
                WIDTH, HEIGHT);
    page_text(out, title);
    bytes_print(out, " over the steps\">\n");
    draw_axes(out, &x, &y);
    for (int i = 0; i < count; i++)
        draw_curve(out, series[i], &x, &y, i);
    bytes_print(out, "</svg></figure>\n");
}

void page_bar(struct bytes *out, const char *label, double whole, int count,
              const struct page_part *parts)
{
    double at = 0;

    bytes_print(out, "<svg class=\"bar\" viewBox=\"0 0 1000 28\" "
                     "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"");
    page_text(out, label);
    bytes_print(out, "\"><rect class=\"empty\" width=\"1000\" height=\"28\"/>");
    for (int i = 0; i < count && whole > 0; i++) {
        double width = 1000 * fmin(fmax(parts[i].value / whole, 0), 1);

        bytes_print(out,
                    "<rect class=\"c%d\" x=\"%.2f\" width=\"%.2f\" "
                    "height=\"28\"/>",
                    parts[i].colour, at, width);
        at += width;
    }
    bytes_print(out, "</svg>");
}
