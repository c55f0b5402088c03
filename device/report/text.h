/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - text that grows, and numbers in a form that people read.
 */
#ifndef IPU_REPORT_TEXT_H
#define IPU_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ipu__text {
    char *data; /* owned */
    size_t used, capacity;
    bool lacks_memory; /* text added after this is lost */
};

__attribute__((format(printf, 2, 3))) void ipu__text_put(struct ipu__text *text,
                                                         const char *format,
                                                         ...);
void ipu__text_put_raw(struct ipu__text *text, const char *data, size_t bytes);

/* Adds a word, and spaces up to that width in columns. */
void ipu__text_put_padded(struct ipu__text *text, const char *word, int width);

/* Adds a line "first: second", and a line of as many =. */
void ipu__text_put_title(struct ipu__text *text, const char *first,
                         const char *second);

/* Adds a paragraph that begins with head. Its lines are no longer than 80
 * columns, and all but the first are indented. */
void ipu__text_put_wrapped(struct ipu__text *text, const char *head, int indent,
                           const char *paragraph);

/* Adds two spaces and a bar of part in width signs; no bar if part is 0. */
void ipu__text_put_bar(struct ipu__text *text, double part, int width);

/* Hands the text over to the caller. Returns IPU_ERR_MEMORY or 0. */
int ipu__text_take(struct ipu__text *text, char **taken);
void ipu__text_free(struct ipu__text *text);

/* A number as people read it. A call's result may be used within the same full
 * expression: ipu__bytes_text(n).text. */
struct ipu__number {
    char text[32];
};

/* Write "12.3 KiB", "1.25 ms", "12,345", "3.4 GFLOP". */
struct ipu__number ipu__bytes_text(double bytes);
struct ipu__number ipu__seconds_text(double seconds);
struct ipu__number ipu__count_text(int64_t count);
struct ipu__number ipu__scaled_text(double value, const char *unit);

/* Writes a ratio: "0.85", "25.2", "1,512". */
struct ipu__number ipu__ratio_text(double ratio);

/* Writes a count in at most width columns, 10 or more: "3.74 T" if it has more
 * digits. */
struct ipu__number ipu__count_within(int64_t count, int width);

/* Returns part in percent of all; 0 if all is 0. */
double ipu__percent(double part, double all);

/* A name, cut to a width. */
struct ipu__name {
    char text[256];
};

/* Returns the text if it takes at most width columns (UTF-8), 60 or less; else
 * its start, "a_very_lo..". */
struct ipu__name ipu__shorten(const char *text, int width);

/* Adds a name, shortened to the width or padded to it. */
void ipu__text_put_name(struct ipu__text *text, const char *name, int width);

/* Replaces control characters and bytes that are not UTF-8 by '?', in place. */
void ipu__make_printable(char *text);

#endif
