/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_time.c - the sections of a page about time: what it went to, which ranks
 * are slow, and which steps.
 */
#include "log/page.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of the table of slow steps, and of ranks. */
enum { MOST_SLOW = 10, MOST_RANKS = 64, MOST_NUMBER = 99999999 };

static double last_value(const struct page_series *s)
{
    return s && s->count > 0 ? s->values[s->count - 1] : 0;
}

/* Collects what the time went to; returns how many parts there are. */
static int find_times(const struct page_data *data, struct page_part *parts,
                      double *whole)
{
    int count = 0;

    *whole = 0;
    for (int i = 0; i < data->nseries && count < PAGE_COLOURS; i++)
        if (page_begins(data->series[i].tag, "time/")) {
            double value = fmin(fmax(last_value(&data->series[i]), 0), 1e300);

            parts[count] = (struct page_part){
                page_last_word(data->series[i].tag), value, count};
            if (strcmp(parts[count].name, "other") == 0)
                parts[count].colour = PAGE_COLOURS - 1;
            *whole += value;
            count++;
        }
    return count;
}

void page_times(struct bytes *out, const struct page_data *data)
{
    struct page_part parts[PAGE_COLOURS];
    double whole;
    int count = find_times(data, parts, &whole);

    if (count == 0 || whole <= 0)
        return;
    bytes_print(out, "<h2>Where the time went</h2>\n<figure>");
    page_bar(out, "where the time went", whole, count, parts);
    bytes_print(out, "<div class=\"scroll\"><table><tr><th>part</th>"
                     "<th class=\"n\">time</th><th class=\"n\">share</th>"
                     "</tr>\n");
    for (int i = 0; i < count; i++) {
        bytes_print(out, "<tr><td><span class=\"key c%d\"></span> ",
                    parts[i].colour);
        page_text(out, parts[i].name);
        bytes_print(out, "</td><td class=\"n\">");
        page_seconds(out, parts[i].value);
        bytes_print(out, "</td><td class=\"n\">%.1f %%</td></tr>\n",
                    100 * parts[i].value / whole);
    }
    bytes_print(out, "</table></div><p class=\"soft\">Means over all ranks. "
                     "<i>communication</i> is time in which a rank only waits "
                     "for others; <i>data</i> fills mini-batches.</p>"
                     "</figure>\n");
}

struct rank {
    int number;
    double speed, waiting; /* means over the points; NaN: none */
    const char *unit;      /* "images_per_second" */
};

static double mean_of(const struct page_series *s)
{
    double sum = 0;
    int count = 0;

    for (int p = 0; p < s->count; p++)
        if (isfinite(s->values[p])) {
            sum += s->values[p];
            count++;
        }
    return count > 0 ? sum / count : NAN;
}

/* Finds the ranks in their order; returns how many there are. */
static int find_ranks(const struct page_data *data, struct rank *ranks)
{
    int count = 0;

    for (int i = 0; i < data->nseries; i++) {
        const struct page_series *s = &data->series[i];
        char *end;
        long number;
        int at = 0;

        if (!page_begins(s->tag, "ranks/") || s->count == 0)
            continue;
        number = strtol(s->tag + strlen("ranks/"), &end, 10);
        while (at < count && ranks[at].number != number)
            at++;
        if (*end != '/' || number < 0 || number > MOST_NUMBER ||
            at == MOST_RANKS)
            continue;
        if (at == count)
            ranks[count++] = (struct rank){(int)number, NAN, NAN, ""};
        if (strcmp(end, "/waiting") == 0) {
            ranks[at].waiting = mean_of(s);
        } else {
            ranks[at].speed = mean_of(s);
            ranks[at].unit = end + 1;
        }
    }
    return count;
}

/* Adds the speeds over the steps, of as many ranks as have lines. */
static void add_rank_curves(struct bytes *out, const struct page_data *data)
{
    const struct page_series *speeds[PAGE_MOST_LINES];
    int count = 0;

    for (int i = 0; i < data->nseries && count < PAGE_MOST_LINES; i++) {
        const struct page_series *s = &data->series[i];

        if (page_begins(s->tag, "ranks/") && s->count > 1 &&
            strcmp(page_last_word(s->tag), "waiting") != 0)
            speeds[count++] = s;
    }
    if (count > 1)
        page_curves(out, "speed of each rank while it does not wait", count,
                    speeds);
}

void page_ranks(struct bytes *out, const struct page_data *data)
{
    struct rank ranks[MOST_RANKS];
    int count = find_ranks(data, ranks);
    double most = 0;
    char text[32];

    if (count == 0)
        return;
    for (int i = 0; i < count; i++)
        most = fmax(most, ranks[i].speed);
    bytes_print(out, "<h2>Ranks</h2>\n<div class=\"cards\">"
                     "<figure><div class=\"scroll\"><table>"
                     "<tr><th class=\"n\">rank</th><th class=\"n\">");
    page_words(out, ranks[0].unit);
    bytes_print(out, "</th><th></th><th class=\"n\">waits</th>"
                     "</tr>\n");
    for (int i = 0; i < count; i++) {
        const struct page_part part = {"", ranks[i].speed, 0};

        page_number(ranks[i].speed, text);
        bytes_print(out,
                    "<tr><td class=\"n\">%d</td><td class=\"n\">%s</td>"
                    "<td class=\"wide\">",
                    ranks[i].number, text);
        page_bar(out, "speed of the rank", most, 1, &part);
        bytes_print(out, "</td><td class=\"n\">");
        if (isfinite(ranks[i].waiting))
            bytes_print(out, "%.1f %%", 100 * ranks[i].waiting);
        bytes_print(out, "</td></tr>\n");
    }
    bytes_print(out,
                "</table></div><p class=\"soft\">What each rank could do "
                "if it never waited for others, and the share of its time "
                "for which it waits; means over the training.</p></figure>\n");
    add_rank_curves(out, data);
    bytes_print(out, "</div>\n");
}

/* ----------------------------------------------------------- what was slow */

static double number_of(const json_t *step, const char *name)
{
    return json_number_value(json_object_get(step, name));
}

/* Returns the part that the step spent most on, beyond the least that any of
 * the steps here spent on it. */
static const char *cause_of(const json_t *step, const json_t *all)
{
    static const char *const parts[] = {"device", "update", "data",
                                        "checkpoint", "evaluation"};
    const char *cause = "other";
    double rest = number_of(step, "seconds") - number_of(step, "mean");
    double most;

    most = 0.2 * rest;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double usual = INFINITY, more;

        for (size_t k = 0; k < json_array_size(all); k++)
            usual = fmin(usual, number_of(json_array_get(all, k), parts[i]));
        more = number_of(step, parts[i]) - usual;
        if (more > most) {
            most = more;
            cause = parts[i];
        }
    }
    return cause;
}

static int compare_steps(const void *a, const void *b)
{
    double x = number_of(*(json_t *const *)a, "seconds");
    double y = number_of(*(json_t *const *)b, "seconds");

    return (x < y) - (x > y);
}

static void add_slow_steps(struct bytes *out, const struct page_data *data)
{
    size_t count = json_array_size(data->slowest);
    json_t **steps = calloc(count + 1, sizeof(json_t *));

    if (!steps) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < count; i++)
        steps[i] = json_array_get(data->slowest, i);
    qsort(steps, count, sizeof(json_t *), compare_steps);
    bytes_print(out, "<div class=\"scroll\"><table><tr><th class=\"n\">step"
                     "</th><th class=\"n\">rank</th><th class=\"n\">time</th>"
                     "<th class=\"n\">of the mean</th><th>mostly</th></tr>\n");
    for (size_t i = 0; i < count && i < MOST_SLOW; i++) {
        double mean = number_of(steps[i], "mean");

        bytes_print(out,
                    "<tr><td class=\"n\">%.0f</td><td class=\"n\">%.0f"
                    "</td><td class=\"n\">",
                    number_of(steps[i], "step"), number_of(steps[i], "rank"));
        page_seconds(out, number_of(steps[i], "seconds"));
        bytes_print(
            out, "</td><td class=\"n\">%.1f times</td><td>%s</td></tr>\n",
            mean > 0 ? fmin(number_of(steps[i], "seconds") / mean, 9999) : 0,
            cause_of(steps[i], data->slowest));
    }
    bytes_print(out, "</table></div><p class=\"soft\">The slowest step of each "
                     "point of the log, without the time in which its rank "
                     "only waited for others.</p>");
    free(steps);
}

/* Says which rank the others wait for. */
static void add_slow_rank(struct bytes *out, const struct page_data *data)
{
    struct rank ranks[MOST_RANKS];
    int count = find_ranks(data, ranks), slow = 0, fast = 0;

    for (int i = 1; i < count; i++) {
        slow = ranks[i].speed < ranks[slow].speed ? i : slow;
        fast = ranks[i].speed > ranks[fast].speed ? i : fast;
    }
    if (count < 2 || !(ranks[slow].speed > 0) || !isfinite(ranks[fast].speed))
        return;
    bytes_print(out, "<p>");
    if (ranks[slow].speed < 0.9 * ranks[fast].speed)
        bytes_print(out,
                    "Rank %d is the slowest: it reaches %.0f %% of the speed "
                    "of rank %d, and the others wait for it.",
                    ranks[slow].number,
                    100 * ranks[slow].speed / ranks[fast].speed,
                    ranks[fast].number);
    else
        bytes_print(out, "All ranks are about as fast (within %.0f %%).",
                    ceil(100 * (1 - ranks[slow].speed / ranks[fast].speed)));
    bytes_print(out, "</p>\n");
}

/* Says what takes most of the time beside the device. */
static void add_slow_part(struct bytes *out, const struct page_data *data)
{
    struct page_part parts[PAGE_COLOURS];
    const struct page_part *worst = NULL;
    double whole;
    int count = find_times(data, parts, &whole);

    for (int i = 0; i < count; i++)
        if (strcmp(parts[i].name, "device") != 0 &&
            (!worst || parts[i].value > worst->value))
            worst = &parts[i];
    if (!worst || whole <= 0)
        return;
    bytes_print(out, "<p>Beside the device, most of the time went to <b>");
    page_text(out, worst->name);
    bytes_print(out, "</b>: %.1f %%.</p>\n", 100 * worst->value / whole);
}

void page_slow(struct bytes *out, const struct page_data *data)
{
    if (json_array_size(data->slowest) == 0)
        return;
    bytes_print(out, "<h2>What was slow</h2>\n<figure>");
    add_slow_part(out, data);
    add_slow_rank(out, data);
    add_slow_steps(out, data);
    bytes_print(out, "</figure>\n");
}
