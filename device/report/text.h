/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - text that grows, and numbers as people read them.
 */
#ifndef IPU_REPORT_TEXT_H
#define IPU_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ipu__text {
    char *data; /* owned */
    size_t used, capacity;
    bool lacks_memory; /* what is added then is lost */
};

__attribute__((format(printf, 2, 3))) void ipu__text_put(struct ipu__text *text,
                                                         const char *format,
                                                         ...);
void ipu__text_put_raw(struct ipu__text *text, const char *data, size_t bytes);

/* A text and spaces up to so many columns. */
void ipu__text_put_padded(struct ipu__text *text, const char *word, int width);

/* A paragraph, its lines no longer than 80 columns, all but the first indented;
 * head begins the first. */
void ipu__text_put_wrapped(struct ipu__text *text, const char *head, int indent,
                           const char *paragraph);

/* Two spaces and so many signs of a bar, of part in all; nothing of nothing. */
void ipu__text_put_bar(struct ipu__text *text, double part, int width);

/* IPU_ERR_MEMORY, or 0 and the text, which is the caller's. */
int ipu__text_take(struct ipu__text *text, char **taken);
void ipu__text_free(struct ipu__text *text);

/* "12.3 KiB", "1.25 ms", "12,345", "3.4 GFLOP" into a buffer of
 * IPU__NUMBER_TEXT, which they return. */
enum { IPU__NUMBER_TEXT = 32 };
const char *ipu__bytes_text(double bytes, char *buffer);
const char *ipu__seconds_text(double seconds, char *buffer);
const char *ipu__count_text(int64_t count, char *buffer);
const char *ipu__scaled_text(double value, const char *unit, char *buffer);

/* "0.85", "25.2", "1,512": how many times. */
const char *ipu__ratio_text(double ratio, char *buffer);

/* A count in at most so many columns, 10 or more: "3.74 T" if it has more
 * digits. */
const char *ipu__count_within(int64_t count, int width, char *buffer);

/* part in percent of all; 0 of nothing. */
double ipu__percent(double part, double all);

/* How many columns a text takes (UTF-8), and its start if it is too long:
 * "a_very_lo..", into buffer of size, for at most width columns. */
const char *ipu__shorten(const char *text, int width, char *buffer,
                         size_t size);

/* Control characters and bytes that are no UTF-8 become '?', in place. */
void ipu__make_printable(char *text);

#endif
