/* SPDX-License-Identifier: Apache-2.0 */
/* page.h - what a page shows of a log, and how it draws. */
#ifndef MODELS_LOG_PAGE_H
#define MODELS_LOG_PAGE_H

#include "files/bytes.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* All points of a tag, in the order in which they were logged. */
struct page_series {
    char *tag; /* owned, as the next */
    int64_t *steps;
    double *values; /* NaN: no number */
    int count, room;
};

struct page_data {
    struct page_series *series; /* [nseries], owned */
    int nseries;
    char *settings;  /* the text "configuration", owned; NULL: there is none */
    json_t *slowest; /* owned array: the texts "slowest step", as objects */
    double begin, end; /* seconds since 1970 */
    int64_t steps;     /* the last */
};

/* Reads a log.jsonl. A session that began at a step has removed what was logged
 * of later ones before. HVD_ERR_FILE, HVD_ERR_MEMORY. */
int page_read(struct page_data *data, const char *path);
void page_fini(struct page_data *data); /* zeroed is accepted */

/* Returns what stands behind the last slash of a tag. */
const char *page_last_word(const char *tag);

/* Returns whether a tag begins with that of a group: "time/". */
bool page_begins(const char *tag, const char *group);

/* Adds a text so that it means nothing to HTML or XML. */
void page_text(struct bytes *out, const char *text);

/* Writes a number for people: "12.3k". */
void page_number(double value, char text[32]);

/* Adds the words of a name: "images per second" of "images_per_second". */
void page_words(struct bytes *out, const char *name);

/* Adds a time for people: "2 min 3 s". */
void page_seconds(struct bytes *out, double seconds);

enum { PAGE_MOST_LINES = 8, PAGE_COLOURS = 8 };

/* Adds a figure: the curves of up to PAGE_MOST_LINES series over the steps. */
void page_curves(struct bytes *out, const char *title, int count,
                 const struct page_series *const *series);

/* A part of a bar; colour: 0 to PAGE_COLOURS - 1. */
struct page_part {
    const char *name;
    double value;
    int colour;
};

/* Adds a bar of parts whose widths are their shares of whole. */
void page_bar(struct bytes *out, const char *label, double whole, int count,
              const struct page_part *parts);

/* Add the sections of page_time.c, if the log has what they are about. */
void page_times(struct bytes *out, const struct page_data *data);
void page_ranks(struct bytes *out, const struct page_data *data);
void page_slow(struct bytes *out, const struct page_data *data);

#endif
