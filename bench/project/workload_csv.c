/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workload_csv.c - reads the table of a workload (workload.h), line by line.
 * The first thing that is wrong ends the reading, with its line.
 */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "project/workload.h"

enum { TENSOR, BYTES, READY, COLUMNS, MOST_FIELDS = 16 };

static const char *const column_names[COLUMNS] = {"tensor", "bytes",
                                                  "ready_ms"};

struct field {
    const char *text;
    size_t length;
};

struct reader {
    struct workload *workload;
    const char *name;
    int line;
    bool has_backward;
    bool has_head;
    int columns[COLUMNS]; /* places of the columns; -1: missing */
    int nfields;          /* of the head */
    char *error;
    size_t size;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct reader *r,
                                                        const char *format, ...)
{
    int n = snprintf(r->error, r->size, "%s:%d: ", r->name, r->line);
    va_list arguments;

    va_start(arguments, format);
    if (n >= 0 && (size_t)n < r->size)
        vsnprintf(r->error + n, r->size - (size_t)n, format, arguments);
    va_end(arguments);
    return -1;
}

static struct field trimmed(const char *text, const char *end)
{
    while (text < end && (*text == ' ' || *text == '\t'))
        text++;
    while (end > text && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    return (struct field){text, (size_t)(end - text)};
}

/* Cuts a line at its commas. A field in double quotes may contain some. Returns
 * the number of fields, or -1. */
static int cut(struct reader *r, const char *line, const char *end,
               struct field *fields)
{
    int n = 0;

    for (;;) {
        const char *from = line;
        struct field *field = &fields[n++];

        while (line < end && (*line == ' ' || *line == '\t'))
            line++;
        if (line < end && *line == '"') {
            const char *close = memchr(line + 1, '"', (size_t)(end - line - 1));

            if (!close)
                return refuse(r, "a quote is not closed");
            line = close + 1;
        }
        line = line < end ? memchr(line, ',', (size_t)(end - line)) : NULL;
        *field = trimmed(from, line ? line : end);
        if (field->length >= 2 && field->text[0] == '"' &&
            field->text[field->length - 1] == '"')
            *field = (struct field){field->text + 1, field->length - 2};
        if (!line)
            return n;
        line++;
        if (n == MOST_FIELDS)
            return refuse(r, "more than %d fields", MOST_FIELDS);
    }
}

static bool is(struct field field, const char *word)
{
    return field.length == strlen(word) &&
           strncmp(field.text, word, field.length) == 0;
}

/* Reads a number of 0 or more. */
static int read_number(struct reader *r, struct field field, const char *what,
                       double *number)
{
    char copy[64], *end;

    if (field.length == 0)
        return refuse(r, "%s is missing", what);
    if (field.length >= sizeof copy)
        return refuse(r, "%s is not a number", what);
    memcpy(copy, field.text, field.length);
    copy[field.length] = '\0';
    *number = strtod(copy, &end);
    if (end == copy || *end || !isfinite(*number))
        return refuse(r, "%s: '%s' is not a number", what, copy);
    if (*number < 0)
        return refuse(r, "%s: '%s' is negative", what, copy);
    return 0;
}

/* Reads a time in front of the head. */
static int read_time(struct reader *r, const struct field *fields, int n)
{
    static const char *const names[] = {"forward_ms", "backward_ms",
                                        "update_ms"};
    double *times[] = {&r->workload->forward, &r->workload->backward,
                       &r->workload->update};

    for (int i = 0; i < 3; i++) {
        if (!is(fields[0], names[i]))
            continue;
        if (n != 2)
            return refuse(r, "%s takes one value", names[i]);
        if (read_number(r, fields[1], names[i], times[i]) < 0)
            return -1;
        *times[i] /= 1000;
        r->has_backward |= i == 1;
        return 0;
    }
    return refuse(r,
                  "'%.*s' is neither forward_ms, backward_ms nor update_ms, "
                  "nor a head with the columns tensor, bytes and ready_ms",
                  (int)fields[0].length, fields[0].text);
}

static bool find_columns(struct reader *r, const struct field *fields, int n)
{
    bool any = false;

    for (int c = 0; c < COLUMNS; c++) {
        r->columns[c] = -1;
        for (int i = 0; i < n; i++)
            if (is(fields[i], column_names[c]))
                r->columns[c] = i;
        any |= r->columns[c] >= 0;
    }
    return any;
}

static int read_head(struct reader *r, int n)
{
    for (int c = 0; c < COLUMNS; c++)
        if (r->columns[c] < 0)
            return refuse(r, "the column %s is missing", column_names[c]);
    if (!r->has_backward)
        return refuse(r, "backward_ms is missing before the head");
    r->has_head = true;
    r->nfields = n;
    return 0;
}

static int read_tensor(struct reader *r, const struct field *fields, int n)
{
    struct field name;
    double bytes = 0, ready = 0;

    if (n != r->nfields)
        return refuse(r, "%d fields, where the head has %d", n, r->nfields);
    name = fields[r->columns[TENSOR]];
    if (name.length == 0)
        return refuse(r, "the tensor has no name");
    if (read_number(r, fields[r->columns[BYTES]], "bytes", &bytes) < 0 ||
        read_number(r, fields[r->columns[READY]], "ready_ms", &ready) < 0)
        return -1;
    if (bytes != floor(bytes) || bytes < 1 || bytes > 1e15)
        return refuse(r, "bytes: %.17g is not a whole number from 1 to 1e15",
                      bytes);
    if (ready / 1000 > r->workload->backward * (1 + 1e-9))
        return refuse(r, "ready_ms: %g is after the backward pass of %g ms",
                      ready, 1000 * r->workload->backward);
    return workload_add(r->workload, name.text, name.length, (int64_t)bytes,
                        ready / 1000) < 0
               ? refuse(r, "out of memory")
               : 0;
}

static int read_line(struct reader *r, const char *line, const char *end)
{
    struct field fields[MOST_FIELDS] = {{0}}, all = trimmed(line, end);
    int n;

    if (all.length == 0 || all.text[0] == '#')
        return 0;
    if (memchr(line, '\0', (size_t)(end - line)))
        return refuse(r, "not a text");
    n = cut(r, line, end, fields);
    if (n < 0)
        return -1;
    if (r->has_head)
        return read_tensor(r, fields, n);
    if (find_columns(r, fields, n))
        return read_head(r, n);
    return read_time(r, fields, n);
}

int workload_read_csv(struct workload *workload, const char *name,
                      const char *text, size_t length, char *error, size_t size)
{
    struct reader r = {
        .workload = workload, .name = name, .error = error, .size = size};
    const char *last = text + length;
    int status = 0;

    *workload = (struct workload){.nranks = 1};
    while (text < last && status == 0) {
        const char *end = memchr(text, '\n', (size_t)(last - text));

        r.line++;
        if (!end)
            end = last;
        status = read_line(&r, text, end);
        text = end + 1;
    }
    if (status == 0 && !r.has_head)
        status = refuse(&r, "no head with the columns tensor, bytes and "
                            "ready_ms up to the end of the file");
    if (status == 0 && workload->n == 0)
        status = refuse(&r, "no tensor after the head");
    if (status < 0)
        workload_fini(workload);
    else
        workload_sort(workload);
    return status;
}
