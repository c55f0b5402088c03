/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.c - scalars as a table: "step,time", and a column for each tag. A line
 * holds what was logged of a step in succession, the last value of each tag,
 * and the time of the first.
 *
 * A tag that comes later adds a column: then the file is written anew, with the
 * older lines filled up. So every line has as many fields as the first. The
 * line of the present step is the file's tail: a flush writes what there is of
 * it, and the next one writes over it.
 */
#include "log/sink.h"

#include "disk/disk.h"
#include "files/gz.h"
#include "output/problem.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "scalars.csv"
static const char begin[] = "step,time";

struct column {
    char *name; /* owned */
    double value;
    bool has_value; /* in the present line */
};

struct csv {
    struct log_file file;
    char *folder;           /* owned */
    struct column *columns; /* [count], owned */
    int count, written;     /* written: columns that the file has */
    int *of_tag;            /* [ntags], owned: column of each tag, or -1 */
    int ntags;
    bool has_line;
    int64_t step;
    double time;
};

/* Returns the column of a name, which is added if it is not there; -1: no
 * memory. */
static int find_column(struct csv *csv, const char *name, size_t length)
{
    struct column *columns;

    for (int i = 0; i < csv->count; i++)
        if (strlen(csv->columns[i].name) == length &&
            memcmp(csv->columns[i].name, name, length) == 0)
            return i;
    columns =
        realloc(csv->columns, ((size_t)csv->count + 1) * sizeof *csv->columns);
    if (!columns)
        return -1;
    csv->columns = columns;
    columns[csv->count] = (struct column){.name = strndup(name, length)};
    return columns[csv->count].name ? csv->count++ : -1;
}

/* Returns the column of a tag; -1: no memory. */
static int column_of(struct csv *csv, const struct log_tag *tag)
{
    if (tag->column >= csv->ntags) {
        int ntags = 2 * tag->column + 16;
        int *of_tag = realloc(csv->of_tag, (size_t)ntags * sizeof *of_tag);

        if (!of_tag)
            return -1;
        for (int i = csv->ntags; i < ntags; i++)
            of_tag[i] = -1;
        csv->of_tag = of_tag;
        csv->ntags = ntags;
    }
    if (csv->of_tag[tag->column] < 0)
        csv->of_tag[tag->column] =
            find_column(csv, tag->name, strlen(tag->name));
    return csv->of_tag[tag->column];
}

static void print_line(const struct csv *csv, struct bytes *out)
{
    bytes_print(out, "%lld,%.6f", (long long)csv->step, csv->time);
    for (int i = 0; i < csv->count; i++) {
        bytes_print(out, ",");
        if (csv->columns[i].has_value)
            bytes_print(out, "%.17g", csv->columns[i].value);
    }
    bytes_print(out, "\n");
}

/* Ends the present line. */
static void end_line(struct csv *csv)
{
    if (csv->has_line)
        print_line(csv, &csv->file.pending);
    csv->has_line = false;
    for (int i = 0; i < csv->count; i++)
        csv->columns[i].has_value = false;
}

static void put(void *state, const struct log_entry *entry)
{
    struct csv *csv = state;
    int column;

    if (entry->kind != LOG_SCALAR)
        return;
    if (csv->has_line && entry->step != csv->step)
        end_line(csv);
    column = column_of(csv, entry->tag);
    if (column < 0) {
        csv->file.pending.failed = true;
        return;
    }
    if (!csv->has_line) {
        csv->has_line = true;
        csv->step = entry->step;
        csv->time = entry->time;
    }
    csv->columns[column].value = entry->value;
    csv->columns[column].has_value = true;
}

static void print_name(struct bytes *out, const char *name)
{
    if (!strpbrk(name, ",\"")) {
        bytes_print(out, "%s", name);
        return;
    }
    bytes_print(out, "\"");
    for (; *name; name++)
        bytes_print(out, *name == '"' ? "\"\"" : "%c", *name);
    bytes_print(out, "\"");
}

static void print_head(const struct csv *csv, struct bytes *out)
{
    bytes_print(out, "%s", begin);
    for (int i = 0; i < csv->count; i++) {
        bytes_print(out, ",");
        print_name(out, csv->columns[i].name);
    }
    bytes_print(out, "\n");
}

/* Adds the whole lines of those between at and end that have fewer steps than
 * limit, filled up to all columns. */
static void add_lines(const struct csv *csv, struct bytes *out, const char *at,
                      const char *end, int64_t limit)
{
    const char *newline;

    for (; at < end && (newline = memchr(at, '\n', (size_t)(end - at)));
         at = newline + 1) {
        int commas = 0;

        if (strtoll(at, NULL, 10) >= limit)
            continue;
        for (const char *c = at; c < newline; c++)
            commas += *c == ',';
        bytes_add(out, at, (size_t)(newline - at));
        for (; commas < csv->count + 1; commas++)
            bytes_print(out, ",");
        bytes_print(out, "\n");
    }
}

/* Puts a file in the place of the old one, and opens it. */
static int replace(struct csv *csv, struct bytes *text)
{
    struct log_file file = {.fd = -1};
    char *path = NULL;
    int status = text->failed ? log_no_memory() : 0;

    if (!status && asprintf(&path, "%s/" NAME, csv->folder) < 0)
        status = log_no_memory();
    if (!status) {
        status = disk__replace(path, text->data, text->count, DISK__SWEEP);
        if (status < 0)
            status = problem_fail(HVD_ERR_FILE, "%s: cannot be written: %s",
                                  path, disk__text(status));
        free(path);
    }
    if (!status)
        status = log_file_open(&file, csv->folder, NAME, 0);
    if (status < 0) {
        log_file_close(&file);
        return status;
    }
    file.tail = csv->file.tail;
    csv->file.tail = (struct bytes){0};
    log_file_close(&csv->file);
    csv->file = file;
    csv->written = csv->count;
    return 0;
}

/* Writes the file anew, with all columns and all lines. */
static int widen(struct csv *csv)
{
    struct bytes text = {0};
    size_t length = 0;
    char *old = NULL;
    const char *newline;
    int status = gz_read_file(csv->file.path, &old, &length);

    if (status < 0)
        return status;
    if (length > (size_t)csv->file.end)
        length = (size_t)csv->file.end;
    newline = memchr(old, '\n', length);
    print_head(csv, &text);
    if (newline)
        add_lines(csv, &text, newline + 1, old + length, INT64_MAX);
    if (csv->file.pending.count > 0)
        add_lines(csv, &text, csv->file.pending.data,
                  csv->file.pending.data + csv->file.pending.count, INT64_MAX);
    status = replace(csv, &text);
    bytes_fini(&text);
    free(old);
    return status;
}

static int csv_flush(void *state)
{
    struct csv *csv = state;

    csv->file.tail.count = 0;
    if (csv->has_line)
        print_line(csv, &csv->file.tail);
    if (csv->written < csv->count && !csv->file.pending.failed) {
        int status = widen(csv);

        if (status < 0)
            return status;
    }
    return log_file_flush(&csv->file);
}

/* Reads the columns of an old file; returns where its lines begin, NULL if it
 * is none of ours. */
static const char *read_head(struct csv *csv, const char *at)
{
    if (strncmp(at, begin, sizeof begin - 1) != 0)
        return NULL;
    at += sizeof begin - 1;
    while (*at == ',') {
        struct bytes name = {0};
        bool quoted = *++at == '"';
        int column = -1;

        for (at += quoted; *at && *at != '\n'; at++) {
            if (quoted ? *at == '"' && *++at != '"' : *at == ',')
                break;
            bytes_add(&name, at, 1);
        }
        if (name.count > 0 && !name.failed)
            column = find_column(csv, name.data, name.count);
        bytes_fini(&name);
        if (column < 0)
            return NULL;
    }
    return *at == '\n' ? at + 1 : NULL;
}

/* Keeps of an old file what lies before the first step. */
static int take_over(struct csv *csv, int64_t step)
{
    struct bytes text = {0};
    size_t length = 0;
    char *old = NULL, *path;
    const char *lines = NULL;
    int status = 0;

    if (asprintf(&path, "%s/" NAME, csv->folder) < 0)
        return log_no_memory();
    if (access(path, F_OK) == 0) {
        status = gz_read_file(path, &old, &length);
        lines = status || length == 0 ? NULL : read_head(csv, old);
        if (!status && length > 0 && !lines)
            status = problem_fail(
                HVD_ERR_FILE,
                "%s: is not written over: its first line is none that begins "
                "with \"%s\"; move it away",
                path, begin);
    }
    if (!status) {
        print_head(csv, &text);
        if (lines)
            add_lines(csv, &text, lines, old + length, step);
        status = replace(csv, &text);
    }
    bytes_fini(&text);
    free(old);
    free(path);
    return status;
}

static void csv_close(void *state)
{
    struct csv *csv = state;

    if (!csv)
        return;
    log_file_close(&csv->file);
    for (int i = 0; i < csv->count; i++)
        free(csv->columns[i].name);
    free(csv->columns);
    free(csv->of_tag);
    free(csv->folder);
    free(csv);
}

static int csv_open(const char *folder, const hvd_log_options *options,
                    void **state)
{
    struct csv *csv = calloc(1, sizeof *csv);
    int status;

    if (!csv)
        return log_no_memory();
    csv->file.fd = -1;
    csv->folder = strdup(folder);
    status = csv->folder ? take_over(csv, options->step) : log_no_memory();
    if (status < 0)
        csv_close(csv);
    else
        *state = csv;
    return status;
}

const struct log_sink log_csv = {.name = "csv",
                                 .format = HVD_LOG_CSV,
                                 .open = csv_open,
                                 .put = put,
                                 .flush = csv_flush,
                                 .close = csv_close};
