/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - a table that is printed cell by cell.
 *
 * Text and CSV are printed as the cells come, row by row, so that a run that
 * ends early leaves the rows that it measured. JSON is collected in a document,
 * which table_end prints whole. Every cell function calls end_cell, which ends
 * a row after its last column. Only rank 0 of a program has a table.
 */
#include "tables/table.h"

#include <string.h>

const char *const table_formats[] = {"text", "csv", "json", NULL};

static void begin_text(struct table *t, const char *title)
{
    fprintf(t->out, "# %s\n#\n#", title);
    for (int i = 0; i < t->ncolumns; i++)
        fprintf(t->out, " %*s", t->columns[i].width, t->columns[i].name);
    fputc('\n', t->out);
}

static void begin_csv(struct table *t)
{
    for (int i = 0; i < t->ncolumns; i++)
        fprintf(t->out, "%s%s", i > 0 ? "," : "", t->columns[i].name);
    fputc('\n', t->out);
}

void table_begin(struct table *t, FILE *out, enum table_format format,
                 const char *title, const struct table_column *columns,
                 int ncolumns)
{
    *t = (struct table){
        .out = out, .format = format, .columns = columns, .ncolumns = ncolumns};
    switch (format) {
    case TABLE_TEXT: begin_text(t, title); break;
    case TABLE_CSV: begin_csv(t); break;
    default:
        t->document =
            json_pack("{s:s, s:[], s:[]}", "title", title, "rows", "notes");
    }
    fflush(out);
}

/* Moves on to the next cell, and ends the row after the last one. */
static void end_cell(struct table *t)
{
    if (++t->at < t->ncolumns)
        return;
    t->at = 0;
    if (t->format == TABLE_JSON)
        json_array_append_new(json_object_get(t->document, "rows"), t->row);
    else
        fputc('\n', t->out);
    t->row = NULL;
    fflush(t->out);
}

static void add_json(struct table *t, json_t *value)
{
    if (t->at == 0)
        t->row = json_object();
    json_object_set_new(t->row, t->columns[t->at].name, value);
}

/* Prints a cell. The texts come from this program and may contain commas, but
 * no quotes and no line ends. */
static void add_csv(struct table *t, const char *text)
{
    const char *quote = strchr(text, ',') ? "\"" : "";

    fprintf(t->out, "%s%s%s%s", t->at > 0 ? "," : "", quote, text, quote);
}

static void add_text(struct table *t, const char *text)
{
    fprintf(t->out, "%s%*s", t->at > 0 ? " " : "  ", t->columns[t->at].width,
            text);
}

static void add_cell(struct table *t, const char *text)
{
    if (t->format == TABLE_CSV)
        add_csv(t, text);
    else
        add_text(t, text);
}

void table_text(struct table *t, const char *text)
{
    if (t->format == TABLE_JSON)
        add_json(t, json_string(text));
    else
        add_cell(t, text);
    end_cell(t);
}

void table_number(struct table *t, double value)
{
    char text[64];

    if (t->format == TABLE_JSON) {
        add_json(t, json_real(value));
    } else if (t->format == TABLE_CSV) {
        snprintf(text, sizeof text, "%.10g", value);
        add_cell(t, text);
    } else {
        snprintf(text, sizeof text, "%.*f", t->columns[t->at].decimals, value);
        add_cell(t, text);
    }
    end_cell(t);
}

void table_nothing(struct table *t)
{
    if (t->format == TABLE_JSON)
        add_json(t, json_null());
    else
        add_cell(t, t->format == TABLE_CSV ? "" : "-");
    end_cell(t);
}

void table_number_if(struct table *t, bool known, double value)
{
    if (known)
        table_number(t, value);
    else
        table_nothing(t);
}

void table_note(struct table *t, const char *note)
{
    if (t->format == TABLE_TEXT)
        fprintf(t->out, "# %s\n", note);
    else if (t->format == TABLE_JSON)
        json_array_append_new(json_object_get(t->document, "notes"),
                              json_string(note));
}

void table_end(struct table *t)
{
    if (t->format == TABLE_JSON) {
        json_dumpf(t->document, t->out, JSON_INDENT(2));
        fputc('\n', t->out);
        json_decref(t->document);
    }
    fflush(t->out);
}
