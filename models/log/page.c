/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.c - log.html, a page about a training that needs nothing but itself:
 * no script, no font, no other file. It is made from log.jsonl, so it can be
 * made again at any time, also of a training that was killed.
 *
 * Tags say where a figure belongs. Those that end alike ("train/loss",
 * "test/loss") share a figure. "time/..." are seconds since the training began,
 * of which the last point counts. "ranks/R/..." are of rank R. The text
 * "configuration" is a table in Markdown, and the texts "slowest step" are
 * objects with step, rank, seconds, mean, and what the seconds went to.
 */
#include "log/page.h"

#include "disk/disk.h"
#include "log/sink.h"
#include "output/problem.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAME_BYTES = 256 };

static const char style[] =
    ":root{color-scheme:light dark;--back:#fff;--card:#f6f7f9;--text:#1c2126;"
    "--soft:#5a6570;--rule:#d9dee3;--c0:#1f6fb4;--c1:#d1651a;--c2:#2a8a4a;"
    "--c3:#8a4fbf;--c4:#b8860b;--c5:#c23b5a;--c6:#2f8f9d;--c7:#8b949e}\n"
    "@media(prefers-color-scheme:dark){:root{--back:#14181c;--card:#1e2429;"
    "--text:#e3e8ec;--soft:#9aa6b1;--rule:#38424b;--c0:#5aa7e8;--c1:#f09a56;"
    "--c2:#5cc27e;--c3:#b98be6;--c4:#dcb44a;--c5:#ee7a95;--c6:#62c3d1;"
    "--c7:#7d8893}}\n"
    "body{font:16px/1.5 system-ui,sans-serif;background:var(--back);"
    "color:var(--text);margin:2rem auto;max-width:1160px;padding:0 1rem}\n"
    "h1{margin:0}h2{margin:2.2rem 0 .7rem}p{margin:.3rem 0}"
    ".soft{color:var(--soft)}\n"
    ".cards{display:grid;gap:1rem;"
    "grid-template-columns:repeat(auto-fill,minmax(min(100%,34rem),1fr))}\n"
    ".facts{display:grid;gap:.8rem;margin:1.2rem 0;"
    "grid-template-columns:repeat(auto-fit,minmax(10rem,1fr))}\n"
    ".facts div,figure{background:var(--card);border-radius:8px;"
    "padding:.7rem .9rem;margin:0}\n"
    ".facts b{display:block;font-size:1.35rem;font-variant-numeric:"
    "tabular-nums}.facts span{color:var(--soft);font-size:.9rem;"
    "overflow-wrap:anywhere}\n"
    "figcaption{display:flex;flex-wrap:wrap;gap:.2rem .5rem;"
    "align-items:center;margin-bottom:.4rem}figcaption "
    "span{font-size:.9rem;white-space:nowrap}\n"
    ".key{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;"
    "margin-left:.5rem;background:var(--c)}\n"
    "svg{display:block;width:100%;height:auto}"
    "svg text{font:13px system-ui,sans-serif;fill:var(--soft)}"
    "svg .left{text-anchor:end}svg .below{text-anchor:middle}\n"
    ".grid{stroke:var(--rule)}.axis{stroke:var(--soft)}"
    ".line{fill:none;stroke:var(--c);stroke-width:1.8;"
    "stroke-linejoin:round}circle,rect{fill:var(--c)}"
    "rect.empty{fill:var(--rule)}\n"
    "svg.bar{height:1.5rem;border-radius:4px}td svg.bar{height:.9rem;"
    "min-width:5rem}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}"
    "th,td{padding:.25rem .7rem;border-bottom:1px solid var(--rule);"
    "text-align:left;vertical-align:middle}"
    "th{color:var(--soft);font-weight:600}"
    ".n{text-align:right;font-variant-numeric:tabular-nums;"
    "white-space:nowrap}td.wide{width:30%}\n"
    "pre{background:var(--card);padding:.8rem;overflow-x:auto}\n"
    ".c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}"
    ".c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}"
    ".c6{--c:var(--c6)}.c7{--c:var(--c7)}\n";

/* ------------------------------------------------------------- the overview */

/* Times and ranks have sections of their own. */
static bool is_curve(const struct page_series *s)
{
    return s->count > 0 && !page_begins(s->tag, "time/") &&
           !page_begins(s->tag, "ranks/");
}

static void add_fact(struct bytes *out, const char *name, double value)
{
    char text[32];

    page_number(value, text);
    bytes_print(out, "<div><b>%s</b><span>", text);
    page_words(out, name);
    bytes_print(out, "</span></div>\n");
}

/* Adds the last value of each curve. */
static void add_overview(struct bytes *out, const struct page_data *data)
{
    bytes_print(out, "<div class=\"facts\">\n");
    add_fact(out, "steps", (double)data->steps);
    bytes_print(out, "<div><b>");
    page_seconds(out, data->end - data->begin);
    bytes_print(out, "</b><span>from the first line to the last</span></div>");
    for (int i = 0, facts = 0; i < data->nseries && facts < 8; i++) {
        const struct page_series *s = &data->series[i];

        if (!is_curve(s))
            continue;
        add_fact(out, s->tag, s->values[s->count - 1]);
        facts++;
    }
    bytes_print(out, "</div>\n");
}

/* ------------------------------------------------------------- the sections */

/* Adds a figure for each last word of the tags of curves. */
static void add_curves(struct bytes *out, const struct page_data *data)
{
    bool any = false;

    for (int i = 0; i < data->nseries; i++) {
        const struct page_series *together[PAGE_MOST_LINES];
        const char *word = page_last_word(data->series[i].tag);
        char title[NAME_BYTES];
        int count = 0;
        bool is_first = is_curve(&data->series[i]);

        for (int k = 0; k < i && is_first; k++)
            is_first = !is_curve(&data->series[k]) ||
                       strcmp(page_last_word(data->series[k].tag), word) != 0;
        if (!is_first)
            continue;
        for (int k = i; k < data->nseries && count < PAGE_MOST_LINES; k++)
            if (is_curve(&data->series[k]) &&
                strcmp(page_last_word(data->series[k].tag), word) == 0)
                together[count++] = &data->series[k];
        snprintf(title, sizeof title, "%s", word);
        for (char *c = title; *c; c++)
            *c = *c == '_' ? ' ' : *c;
        if (!any)
            bytes_print(out, "<h2>Curves</h2>\n<div class=\"cards\">\n");
        any = true;
        page_curves(out, title, count, together);
    }
    if (any)
        bytes_print(out, "</div>\n");
}

/* -------------------------------------------------------- the configuration */

/* Adds a row of a table in Markdown: "| a | b |". */
static void add_row(struct bytes *out, const char *line, size_t length,
                    const char *tag)
{
    char cell[NAME_BYTES];
    const char *at = line + 1, *end = line + length;

    bytes_print(out, "<tr>");
    while (at < end) {
        const char *bar = memchr(at, '|', (size_t)(end - at));
        size_t size = (size_t)((bar ? bar : end) - at);

        while (size > 0 && *at == ' ')
            at++, size--;
        while (size > 0 && at[size - 1] == ' ')
            size--;
        snprintf(cell, sizeof cell, "%.*s", (int)size, at);
        bytes_print(out, "<%s>", tag);
        page_text(out, cell);
        bytes_print(out, "</%s>", tag);
        at = bar ? bar + 1 : end;
    }
    bytes_print(out, "</tr>\n");
}

static void add_settings(struct bytes *out, const char *text)
{
    bool head = true;

    if (!text)
        return;
    bytes_print(out, "<h2>Configuration</h2>\n");
    if (*text != '|') {
        bytes_print(out, "<pre>");
        page_text(out, text);
        bytes_print(out, "</pre>\n");
        return;
    }
    bytes_print(out, "<figure><div class=\"scroll\"><table>\n");
    while (*text == '|') {
        size_t length = strcspn(text, "\n");

        if (strspn(text, "|-: ") < length)
            add_row(out, text, length, head ? "th" : "td");
        head = false;
        text += length + (text[length] == '\n');
    }
    bytes_print(out, "</table></div></figure>\n");
}

/* ----------------------------------------------------------------- the page */

static void add_date(struct bytes *out, double seconds)
{
    const time_t when = (time_t)fmin(fmax(seconds, 0), 1e11);
    char text[64];
    struct tm time;

    if (!localtime_r(&when, &time))
        return;
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &time);
    bytes_print(out, "%s", text);
}

static void add_page(struct bytes *out, const struct page_data *data,
                     const char *folder)
{
    bytes_print(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
                     "charset=\"utf-8\"/><meta name=\"viewport\" "
                     "content=\"width=device-width\"/><title>");
    page_text(out, folder);
    bytes_print(out, "</title><style>\n%s</style></head><body>\n<h1>", style);
    page_text(out, folder);
    bytes_print(out, "</h1><p class=\"soft\">");
    add_date(out, data->begin);
    bytes_print(out, " to ");
    add_date(out, data->end);
    bytes_print(out, "</p>\n");
    add_overview(out, data);
    add_curves(out, data);
    page_times(out, data);
    page_ranks(out, data);
    page_slow(out, data);
    add_settings(out, data->settings);
    bytes_print(out, "</body></html>\n");
}

static int write_page(struct bytes *page, const char *folder)
{
    char *path = NULL;
    int status = page->failed ? log_no_memory() : 0;

    if (!status && asprintf(&path, "%s/log.html", folder) < 0)
        return log_no_memory();
    if (!status) {
        status = disk__replace(path, page->data, page->count, DISK__SWEEP);
        if (status < 0)
            status = problem_fail(HVD_ERR_FILE, "%s: cannot be written: %s",
                                  path, disk__text(status));
    }
    free(path);
    return status;
}

int hvd_log_page(const char *folder)
{
    struct page_data data = {0};
    struct bytes page = {0};
    locale_t plain, before;
    char *path = NULL;
    int status;

    if (!folder || *folder == '\0')
        return problem_fail(HVD_ERR_ARGUMENT,
                            "a page of a log: no folder was given");
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain || asprintf(&path, "%s/log.jsonl", folder) < 0) {
        if (plain)
            freelocale(plain);
        return log_no_memory();
    }
    before = uselocale(plain);
    status = page_read(&data, path);
    if (!status) {
        add_page(&page, &data, folder);
        status = write_page(&page, folder);
    }
    uselocale(before);
    freelocale(plain);
    page_fini(&data);
    bytes_fini(&page);
    free(path);
    return status;
}
