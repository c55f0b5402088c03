/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - text that grows, and numbers in a form that people read.
 *
 * A failure to grow is remembered and reported once, at the end, so callers
 * that add lines need not check. Names may hold any UTF-8; widths are counted
 * in characters, and texts are cut between characters.
 */
#include "report/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { COLUMNS = 80 };

static bool make_room(struct ipu__text *text, size_t bytes)
{
    size_t capacity = text->capacity ? text->capacity : 4096;
    char *data;

    if (text->lacks_memory)
        return false;
    while (capacity - text->used <= bytes)
        capacity *= 2;
    if (text->data && capacity == text->capacity)
        return true;
    data = realloc(text->data, capacity);
    if (!data) {
        text->lacks_memory = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void ipu__text_put_raw(struct ipu__text *text, const char *data, size_t bytes)
{
    if (!make_room(text, bytes + 1))
        return;
    memcpy(text->data + text->used, data, bytes);
    text->used += bytes;
    text->data[text->used] = '\0';
}

void ipu__text_put(struct ipu__text *text, const char *format, ...)
{
    va_list arguments, again;
    int n;

    va_start(arguments, format);
    va_copy(again, arguments);
    n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n > 0 && make_room(text, (size_t)n + 1)) {
        vsnprintf(text->data + text->used, (size_t)n + 1, format, again);
        text->used += (size_t)n;
    }
    va_end(again);
}

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

static int columns(const char *text, size_t bytes)
{
    int n = 0;

    for (size_t i = 0; i < bytes; i++)
        n += begins_character(text[i]);
    return n;
}

void ipu__text_put_padded(struct ipu__text *text, const char *word, int width)
{
    int n = columns(word, strlen(word));

    ipu__text_put(text, "%s%*s", word, n < width ? width - n : 0, "");
}

void ipu__text_put_title(struct ipu__text *text, const char *first,
                         const char *second)
{
    int n = columns(first, strlen(first)) + 2 + columns(second, strlen(second));

    ipu__text_put(text, "%s: %s\n", first, second);
    for (int i = 0; i < n; i++)
        ipu__text_put(text, "=");
    ipu__text_put(text, "\n");
}

void ipu__text_put_wrapped(struct ipu__text *text, const char *head, int indent,
                           const char *paragraph)
{
    int at = columns(head, strlen(head));
    bool first = true;

    ipu__text_put(text, "%s", head);
    while (*paragraph) {
        size_t length = strcspn(paragraph, " ");
        int width = columns(paragraph, length);

        if (!first && at + 1 + width > COLUMNS) {
            ipu__text_put(text, "\n%*s", indent, "");
            at = indent;
        } else if (!first) {
            ipu__text_put(text, " ");
            at++;
        }
        /* A word that no line can hold is cut into lines. */
        while (at + width > COLUMNS && at < COLUMNS) {
            size_t part = 0;

            for (int n = 0; n < COLUMNS - at; n++)
                do
                    part++;
                while (!begins_character(paragraph[part]));
            ipu__text_put(text, "%.*s\n%*s", (int)part, paragraph, indent, "");
            paragraph += part;
            length -= part;
            width = columns(paragraph, length);
            at = indent;
        }
        ipu__text_put(text, "%.*s", (int)length, paragraph);
        at += width;
        paragraph += length;
        paragraph += strspn(paragraph, " ");
        first = false;
    }
    ipu__text_put(text, "\n");
}

void ipu__text_put_bar(struct ipu__text *text, double part, int width)
{
    int n = isfinite(part) ? (int)lround(part * width) : 0;

    if (n == 0 && part > 0)
        n = 1;
    for (int i = 0; i < n && i < width; i++)
        ipu__text_put(text, "%s#", i ? "" : "  ");
}

int ipu__text_take(struct ipu__text *text, char **taken)
{
    if (!text->data && !text->lacks_memory)
        ipu__text_put_raw(text, "", 0);
    if (text->lacks_memory) {
        ipu__text_free(text);
        return ipu__fail_memory(text->capacity);
    }
    *taken = text->data;
    *text = (struct ipu__text){0};
    return IPU_OK;
}

void ipu__text_free(struct ipu__text *text)
{
    free(text->data);
    text->data = NULL;
}

/* ------------------------------------------------------------------ numbers */

struct ipu__number ipu__bytes_text(double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    struct ipu__number number;
    size_t i = 0;

    while (fabs(bytes) >= 1024 && i + 1 < sizeof units / sizeof *units) {
        bytes /= 1024;
        i++;
    }
    snprintf(number.text, sizeof number.text, "%.*f %s", i ? 1 : 0, bytes,
             units[i]);
    return number;
}

struct ipu__number ipu__seconds_text(double seconds)
{
    static const char *const units[] = {"s", "ms", "us", "ns"};
    struct ipu__number number;
    size_t i = 0;

    while (fabs(seconds) < 1 && i + 1 < sizeof units / sizeof *units) {
        seconds *= 1000;
        i++;
    }
    snprintf(number.text, sizeof number.text,
             fabs(seconds) >= 999.5 ? "%.0f %s" : "%.3g %s", seconds, units[i]);
    return number;
}

struct ipu__number ipu__count_text(int64_t count)
{
    struct ipu__number digits, number;
    int n = snprintf(digits.text, sizeof digits.text, "%" PRId64, count);
    size_t used = 0;

    for (int i = 0; i < n && used + 2 < sizeof number.text; i++) {
        if (i > 0 && (n - i) % 3 == 0 && digits.text[i - 1] != '-')
            number.text[used++] = ',';
        number.text[used++] = digits.text[i];
    }
    number.text[used] = '\0';
    return number;
}

struct ipu__number ipu__scaled_text(double value, const char *unit)
{
    static const char *const scales[] = {"", "k", "M", "G", "T", "P"};
    struct ipu__number number;
    size_t i = 0;

    while (fabs(value) >= 1000 && i + 1 < sizeof scales / sizeof *scales) {
        value /= 1000;
        i++;
    }
    snprintf(number.text, sizeof number.text, "%.4g %s%s", value, scales[i],
             unit);
    return number;
}

struct ipu__number ipu__ratio_text(double ratio)
{
    struct ipu__number number;

    if (ratio >= 1000 && ratio < 1e15)
        return ipu__count_text(llround(ratio));
    snprintf(number.text, sizeof number.text, "%.3g", ratio);
    return number;
}

struct ipu__number ipu__count_within(int64_t count, int width)
{
    struct ipu__number number = ipu__count_text(count);

    return strlen(number.text) > (size_t)width
               ? ipu__scaled_text((double)count, "")
               : number;
}

double ipu__percent(double part, double all)
{
    return all > 0 ? 100 * part / all : 0;
}

struct ipu__name ipu__shorten(const char *text, int width)
{
    struct ipu__name name;
    size_t length = strlen(text), cut = 0, size = sizeof name.text;

    if (columns(text, length) <= width && length < size) {
        memcpy(name.text, text, length + 1);
        return name;
    }
    for (int n = 0; n < width - 2 && text[cut]; n++) {
        size_t next = cut + 1;

        while (text[next] && !begins_character(text[next]))
            next++;
        if (next + 3 > size)
            break;
        cut = next;
    }
    memcpy(name.text, text, cut);
    memcpy(name.text + cut, "..", 3);
    return name;
}

void ipu__text_put_name(struct ipu__text *text, const char *name, int width)
{
    ipu__text_put_padded(text, ipu__shorten(name, width).text, width);
}

/* Returns the bytes of the character that begins there; 0 if there is no valid
 * one. */
static int character_bytes(const unsigned char *c)
{
    int n = c[0] < 0x80                   ? 1
            : c[0] >= 0xc2 && c[0] < 0xe0 ? 2
            : c[0] >= 0xe0 && c[0] < 0xf0 ? 3
            : c[0] >= 0xf0 && c[0] < 0xf5 ? 4
                                          : 0;

    for (int i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates, and numbers beyond the last character are
     * invalid. */
    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
        (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
        return 0;
    return n;
}

void ipu__make_printable(char *text)
{
    while (*text) {
        int n = character_bytes((const unsigned char *)text);

        if (n == 0 || (unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
        text += n ? n : 1;
    }
}
