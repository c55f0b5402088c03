/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - a table that grows by cells, for people or for programs.
 *
 * Text has aligned columns under a title; CSV one line of names and then one
 * line a row; JSON an object with the title, a list of objects, and notes.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <jansson.h>
#include <stdio.h>

enum table_format { TABLE_TEXT, TABLE_CSV, TABLE_JSON };

/* Names for command_choice, in that order; ended by NULL. */
extern const char *const table_formats[];

struct table_column {
    const char *name; /* "bytes", "p50_us": unique, no blanks */
    int width;        /* in text; negative: aligned left */
    int decimals;     /* of numbers, in text */
};

struct table {
    FILE *out;
    enum table_format format;
    const struct table_column *columns; /* borrowed until table_end */
    int ncolumns;
    int at; /* the column of the next cell */
    json_t *document;
    json_t *row;
};

/* The title is for text and JSON. */
void table_begin(struct table *table, FILE *out, enum table_format format,
                 const char *title, const struct table_column *columns,
                 int ncolumns);

/* The next cell; the last one of a row ends it. */
void table_text(struct table *table, const char *text);
void table_number(struct table *table, double value);
/* What was not measured. */
void table_nothing(struct table *table);

/* A line below the table; "" in CSV. */
void table_note(struct table *table, const char *note);

void table_end(struct table *table);

#endif
