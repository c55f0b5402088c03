/* SPDX-License-Identifier: Apache-2.0 */
#include "output/progress_text.h"

#include <stdio.h>
#include <string.h>

/* The bar is as wide as there is room, within these limits. */
enum { LEAST_BAR = 8, MOST_BAR = 30 };

/* A terminal writes "^C" behind the bar when it is typed. */
enum { ECHO_COLUMNS = 2 };

/* These parts stand behind the bar, in this order. */
enum { PERCENT, COUNTS, RATE, LEFT, NOTE, PARTS, PART_BYTES = 320 };

/* Bytes that continue a UTF-8 character take no column. */
static bool goes_on(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

static int columns_of(const char *text)
{
    int columns = 0;

    for (; *text; text++)
        columns += !goes_on(*text);
    return columns;
}

/* Cuts a text off behind so many columns. */
static void cut_text(char *text, int columns)
{
    while (*text && (columns > 0 || goes_on(*text)))
        columns -= !goes_on(*text++);
    *text = '\0';
}

static void print_rate(double rate, char *text)
{
    snprintf(text, PART_BYTES, "%.*f/s",
             rate >= 100  ? 0
             : rate >= 10 ? 1
                          : 2,
             rate);
}

static void print_left(double left, char *text)
{
    const long long s = (long long)(left + 0.5), minute = 60, hour = 3600,
                    day = 86400;

    if (s < minute)
        snprintf(text, PART_BYTES, "ETA %lld s", s);
    else if (s < hour)
        snprintf(text, PART_BYTES, "ETA %lld:%02lld", s / minute, s % minute);
    else if (s < day)
        snprintf(text, PART_BYTES, "ETA %lld:%02lld:%02lld", s / hour,
                 s % hour / minute, s % minute);
    else
        snprintf(text, PART_BYTES, "ETA %lld d %lld h", s / day,
                 s % day / hour);
}

static double share_of(const struct progress_view *v)
{
    double share = v->total > 0 ? (double)v->done / (double)v->total : 0;

    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* Writes the parts; those that are not known are empty. */
static void print_parts(const struct progress_view *v,
                        char parts[PARTS][PART_BYTES])
{
    memset(parts, 0, (size_t)PARTS * PART_BYTES);
    if (v->total > 0)
        snprintf(parts[PERCENT], PART_BYTES, "%3d %%",
                 (int)(share_of(v) * 100));
    if (v->unit && v->total > 0)
        snprintf(parts[COUNTS], PART_BYTES, "%lld/%lld %s", (long long)v->done,
                 (long long)v->total, v->unit);
    else if (v->unit)
        snprintf(parts[COUNTS], PART_BYTES, "%lld %s", (long long)v->done,
                 v->unit);
    if (v->unit && v->rate > 0)
        print_rate(v->rate, parts[RATE]);
    if (v->unit && v->total > 0 && v->left >= 0)
        print_left(v->left, parts[LEFT]);
    snprintf(parts[NOTE], PART_BYTES, "%s", v->note);
}

/* Adds the parts that are not empty, each behind a gap. */
static void add_parts(char parts[PARTS][PART_BYTES], const char *first_gap,
                      char *text)
{
    const char *gap = first_gap;

    for (int i = 0; i < PARTS; i++)
        if (parts[i][0] != '\0') {
            strcat(strcat(text, gap), parts[i]);
            gap = "  ";
        }
}

static int columns_of_parts(char parts[PARTS][PART_BYTES])
{
    char text[PROGRESS_TEXT_BYTES] = "";

    add_parts(parts, " ", text);
    return columns_of(text);
}

static void add_bar(double share, int bar, bool colour, char *text)
{
    int filled = (int)(share * bar + 0.5);
    char *at = text + strlen(text);

    at += sprintf(at, " %s[", colour ? "\033[32m" : "");
    for (int i = 0; i < bar; i++)
        *at++ = i < filled ? '=' : i == filled ? '>' : ' ';
    sprintf(at, "]%s", colour ? "\033[0m" : "");
}

void progress_bar(const struct progress_view *view, int width, bool colour,
                  char text[PROGRESS_TEXT_BYTES])
{
    static const int dropped[] = {RATE, COUNTS, NOTE, LEFT, PERCENT};
    char parts[PARTS][PART_BYTES];
    const char brackets = 3; /* with the space before them */
    const int usable = width - ECHO_COLUMNS - 1;
    int least = view->total > 0 ? LEAST_BAR + brackets : 0, room;

    print_parts(view, parts);
    snprintf(text, PART_BYTES, "%s", view->name);
    cut_text(text, usable);
    room = usable - columns_of(text);
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped &&
                       room < least + columns_of_parts(parts);
         i++)
        parts[dropped[i]][0] = '\0';
    room -= columns_of_parts(parts);
    if (least > 0 && room >= least)
        add_bar(share_of(view),
                room - brackets < MOST_BAR ? room - brackets : MOST_BAR, colour,
                text);
    add_parts(parts, " ", text);
}

void progress_plain(const struct progress_view *view,
                    char text[PROGRESS_TEXT_BYTES])
{
    char parts[PARTS][PART_BYTES];

    print_parts(view, parts);
    snprintf(text, PART_BYTES, "%s", view->name);
    add_parts(parts, " ", text);
}
