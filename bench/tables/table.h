/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - a table that grows by cells, as text, CSV or JSON.
 *
 * Text has aligned columns under a title. CSV has one line of names, then one
 * line per row. JSON has one object with the title, a list of objects, and
 * notes.
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

enum table_format { TABLE_TEXT, TABLE_CSV, TABLE_JSON };

/* The names for command_choice, in the order of table_format; ends with
 * NULL. */
extern const char *const table_formats[];

struct table_column {
    const char *name; /* "bytes", "p50_us": unique, no blanks */
    int width;        /* width in text; negative: aligned left */
    int decimals;     /* decimals of numbers in text */
};

struct table {
    FILE *out;
    enum table_format format;
    const struct table_column *columns; /* borrowed until table_end */
    int ncolumns;
    int at; /* column of the next cell */
    json_t *document;
    json_t *row;
};

/* Begins a table. Only text and JSON print the title. */
void table_begin(struct table *table, FILE *out, enum table_format format,
                 const char *title, const struct table_column *columns,
                 int ncolumns);

/* Write the next cell; the last cell of a row ends the row. */
void table_text(struct table *table, const char *text);
void table_number(struct table *table, double value);
/* Writes a cell for a value that was not measured. */
void table_nothing(struct table *table);
/* Writes one of both. */
void table_number_if(struct table *table, bool known, double value);

/* Adds a line below the table; CSV has none. */
void table_note(struct table *table, const char *note);

void table_end(struct table *table);

#endif
