/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.c - the source of columns of a CSV file (RFC 4180), which is read as a
 * whole. The file is split line by line into fields; what a quoted field holds
 * is copied without its quotes. Lines are numbered as an editor does, so that a
 * record with a line break in quotes has several.
 */
#include "dataset/stage.h"

#include "files/gz.h"
#include "output/problem.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 1 << 20 };

/* A file that is being read. */
struct csv {
    const char *path;
    char delimiter;
    char *at, *end;
    int64_t line;  /* of at, from 1 */
    int64_t begun; /* line on which the record began */
    char **fields; /* [nfields], owned; texts in the file's memory */
    int32_t nfields, room;
    locale_t locale; /* with a point in numbers */
};

/* A target says where a component gets its numbers from and puts them. */
struct target {
    const hvd_csv_field *field;
    int32_t first, count; /* columns */
    char *values;         /* owned: [rows, count] */
};

static int fail_at(const struct csv *csv, int32_t column, const char *why,
                   const char *text)
{
    return problem_fail(HVD_ERR_FILE, "%s:%lld:%d: %s%s%.60s%s", csv->path,
                        (long long)csv->begun, (int)column + 1, why,
                        text ? " \"" : "", text ? text : "", text ? "\"" : "");
}

static int add_field(struct csv *csv, char *text)
{
    if (csv->nfields == csv->room) {
        int32_t room = csv->room ? 2 * csv->room : 64;
        char **grown = realloc(csv->fields, (size_t)room * sizeof *grown);

        if (!grown || room > MOST_COLUMNS)
            return grown ? (csv->fields = grown,
                            fail_at(csv, room, "too many fields", NULL))
                         : problem_fail(HVD_ERR_MEMORY, "%s: no memory",
                                        csv->path);
        csv->fields = grown;
        csv->room = room;
    }
    csv->fields[csv->nfields++] = text;
    return 0;
}

/* Reads a quoted field, whose first quote is at csv->at, in place. */
static int read_quoted(struct csv *csv)
{
    char *text = csv->at + 1, *to = text, *from = text;

    for (; from < csv->end; from++) {
        if (*from == '"' && from + 1 < csv->end && from[1] == '"')
            from++;
        else if (*from == '"')
            break;
        csv->line += *from == '\n';
        *to++ = *from;
    }
    if (from == csv->end)
        return fail_at(csv, csv->nfields, "a quote is not closed", NULL);
    csv->at = from + 1;
    if (csv->at < csv->end && *csv->at != csv->delimiter && *csv->at != '\n' &&
        *csv->at != '\r')
        return fail_at(csv, csv->nfields,
                       "something stands behind a closing quote", NULL);
    *to = '\0';
    return add_field(csv, text);
}

static int read_plain(struct csv *csv)
{
    char *text = csv->at;

    while (csv->at < csv->end && *csv->at != csv->delimiter &&
           *csv->at != '\n') {
        if (*csv->at == '"')
            return fail_at(csv, csv->nfields,
                           "a quote within a field that does not begin with "
                           "one",
                           NULL);
        csv->at++;
    }
    return add_field(csv, text);
}

/* Reads the next record that is not empty: HVD_END_OF_DATA if there is none. */
static int read_record(struct csv *csv)
{
    while (csv->at < csv->end && (*csv->at == '\n' || *csv->at == '\r'))
        csv->line += *csv->at++ == '\n';
    if (csv->at == csv->end)
        return HVD_END_OF_DATA;
    csv->nfields = 0;
    csv->begun = csv->line;
    for (;;) {
        int status = csv->at < csv->end && *csv->at == '"' ? read_quoted(csv)
                                                           : read_plain(csv);
        if (status < 0)
            return status;
        char *end = csv->at;
        bool more = end < csv->end && *end == csv->delimiter;
        if (!more && end > csv->fields[csv->nfields - 1] && end[-1] == '\r')
            end[-1] = '\0';
        while (!more && csv->at < csv->end && *csv->at != '\n')
            csv->at++; /* the carriage return behind a quote */
        if (csv->at < csv->end) {
            csv->line += *csv->at == '\n';
            csv->at++;
        }
        *end = '\0';
        if (!more)
            return 0;
    }
}

/* ------------------------------------------------------------------ columns */

/* Finds the first column of a field in the first record. */
static int find_column(const struct csv *csv, const hvd_csv_field *field,
                       bool header, int32_t behind, int32_t *column)
{
    char *end;

    *column = behind;
    if (!field->column)
        return 0;
    for (int32_t i = 0; header && i < csv->nfields; i++)
        if (strcmp(csv->fields[i], field->column) == 0) {
            *column = i;
            return 0;
        }
    long number = strtol(field->column, &end, 10);
    if (end == field->column || *end || number < 0 || number > MOST_COLUMNS)
        return problem_fail(HVD_ERR_FILE,
                            "%s: no column is called \"%s\"%s; the first is "
                            "\"%.60s\"",
                            csv->path, field->column,
                            header ? "" : ", for there is no header",
                            csv->fields[0]);
    *column = (int32_t)number;
    return 0;
}

static int find_columns(const struct csv *csv, int32_t n,
                        const hvd_csv_field *fields, bool header,
                        struct target *targets)
{
    int32_t behind = 0;

    for (int32_t i = 0; i < n; i++) {
        const hvd_csv_field *f = &fields[i];
        struct target *t = &targets[i];
        int64_t count = component_count(&f->component);

        t->field = f;
        int status = find_column(csv, f, header, behind, &t->first);
        if (status < 0)
            return status;
        if (f->component.dtype == HVD_FLOAT16 ||
            f->component.dtype == HVD_BFLOAT16)
            return problem_fail(HVD_ERR_UNSUPPORTED,
                                "%s: \"%s\" cannot be read as %s: read it as "
                                "float32, and cast it",
                                csv->path, f->component.name,
                                hvd_dtype_name(f->component.dtype));
        if (count > csv->nfields - t->first)
            return problem_fail(
                HVD_ERR_FILE,
                "%s: \"%s\" needs columns %d to %lld, but there "
                "are %d",
                csv->path, f->component.name, (int)t->first,
                (long long)t->first + count - 1, (int)csv->nfields);
        t->count = (int32_t)count;
        behind = t->first + t->count;
    }
    return 0;
}

/* ------------------------------------------------------------------ numbers */

static int put_integer(const struct csv *csv, int32_t column, hvd_dtype dtype,
                       long long x, char *to)
{
    static const struct {
        long long least, most;
    } ranges[] = {[HVD_UINT8] = {0, 255},
                  [HVD_INT8] = {-128, 127},
                  [HVD_UINT16] = {0, 65535},
                  [HVD_INT16] = {-32768, 32767},
                  [HVD_INT32] = {INT32_MIN, INT32_MAX},
                  [HVD_INT64] = {INT64_MIN, INT64_MAX},
                  [HVD_BOOL] = {0, 1}};
    char digits[32];

    if (x < ranges[dtype].least || x > ranges[dtype].most) {
        snprintf(digits, sizeof digits, "%lld", x);
        return fail_at(csv, column,
                       "this is beyond the range of its dtype:", digits);
    }
    /* Little-endian: the low bytes come first. */
    memcpy(to, &x, (size_t)hvd_dtype_size(dtype));
    return 0;
}

static bool is_float(hvd_dtype dtype)
{
    return dtype == HVD_FLOAT32 || dtype == HVD_FLOAT64;
}

static void put_float(hvd_dtype dtype, double x, char *to)
{
    float single = (float)x;

    memcpy(to, dtype == HVD_FLOAT32 ? (void *)&single : (void *)&x,
           (size_t)hvd_dtype_size(dtype));
}

static int put_word(const struct csv *csv, int32_t column,
                    const hvd_csv_field *f, const char *text, char *to)
{
    for (int32_t i = 0; i < f->nwords; i++)
        if (strcmp(f->words[i], text) == 0) {
            if (!is_float(f->component.dtype))
                return put_integer(csv, column, f->component.dtype, i, to);
            put_float(f->component.dtype, i, to);
            return 0;
        }
    return fail_at(csv, column, "none of the words is", text);
}

static int put_field(const struct csv *csv, int32_t column,
                     const hvd_csv_field *f, const char *text, char *to)
{
    hvd_dtype dtype = f->component.dtype;
    bool missing = !*text || strcmp(text, "NA") == 0;
    char *end;

    if (missing && !f->has_default)
        return fail_at(csv, column, "a value is missing, with no default for",
                       f->component.name);
    if (f->words && !missing)
        return put_word(csv, column, f, text, to);
    errno = 0;
    if (is_float(dtype)) {
        double x =
            missing ? f->default_value : strtod_l(text, &end, csv->locale);
        if (!missing && (end == text || end[strspn(end, " ")]))
            return fail_at(csv, column, "this is no number:", text);
        put_float(dtype, x, to);
        return 0;
    }
    long long x =
        missing ? (long long)f->default_value : strtoll(text, &end, 10);
    if (!missing && (end == text || end[strspn(end, " ")]))
        return fail_at(csv, column, "this is no whole number:", text);
    if (errno == ERANGE)
        return fail_at(csv, column,
                       "this is beyond the range of its dtype:", text);
    return put_integer(csv, column, dtype, x, to);
}

static int put_record(const struct csv *csv, int32_t n, struct target *targets,
                      int64_t row)
{
    for (int32_t i = 0; i < n; i++) {
        struct target *t = &targets[i];
        size_t size = (size_t)hvd_dtype_size(t->field->component.dtype);

        for (int32_t k = 0; k < t->count; k++) {
            char *to =
                t->values + ((size_t)row * (size_t)t->count + (size_t)k) * size;
            int status = put_field(csv, t->first + k, t->field,
                                   csv->fields[t->first + k], to);
            if (status < 0)
                return status;
        }
    }
    return 0;
}

static int grow_values(const struct csv *csv, int32_t n, struct target *targets,
                       int64_t room)
{
    for (int32_t i = 0; i < n; i++) {
        size_t bytes = component_bytes(&targets[i].field->component);
        char *grown = realloc(targets[i].values, (size_t)room * bytes);

        if (!grown)
            return problem_fail(HVD_ERR_MEMORY, "%s: no memory for %lld rows",
                                csv->path, (long long)room);
        targets[i].values = grown;
    }
    return 0;
}

/* Reads all records. */
static int read_records(struct csv *csv, int32_t n, const hvd_csv_field *fields,
                        bool header, struct target *targets, int64_t *rows)
{
    int status = read_record(csv);
    int64_t room = 0;

    if (status == HVD_END_OF_DATA)
        return problem_fail(HVD_ERR_FILE, "%s: is empty", csv->path);
    if (status == 0)
        status = find_columns(csv, n, fields, header, targets);
    int32_t columns = csv->nfields;
    if (status == 0 && header)
        status = read_record(csv);
    for (; status == 0; status = read_record(csv)) {
        if (csv->nfields != columns) {
            char why[80];

            snprintf(why, sizeof why, "%d fields, but the first line has %d",
                     (int)csv->nfields, (int)columns);
            return fail_at(csv, csv->nfields - 1, why, NULL);
        }
        if (*rows == room) {
            room = room ? 2 * room : 256;
            status = grow_values(csv, n, targets, room);
        }
        if (status == 0)
            status = put_record(csv, n, targets, (*rows)++);
        if (status < 0)
            return status;
    }
    return status < 0 ? status : 0;
}

/* What the source keeps: the values of all components. */
static void release_values(void *context)
{
    void **values = context;

    for (int i = 0; i < HVD_MAX_COMPONENTS; i++)
        free(values[i]);
    free(values);
}

static hvd_dataset *read_file(struct csv *csv, int32_t n,
                              const hvd_csv_field *fields, bool header)
{
    struct target targets[HVD_MAX_COMPONENTS] = {0};
    hvd_component components[HVD_MAX_COMPONENTS];
    void **values = calloc(HVD_MAX_COMPONENTS, sizeof *values);
    int64_t rows = 0;
    int status = values
                     ? read_records(csv, n, fields, header, targets, &rows)
                     : problem_fail(HVD_ERR_MEMORY, "%s: no memory", csv->path);

    for (int32_t i = 0; i < n; i++) {
        components[i] = fields[i].component;
        if (values)
            values[i] = targets[i].values;
    }
    if (status < 0) {
        if (values)
            release_values(values);
        return NULL;
    }
    return hvd_dataset_memory(n, components, (const void *const *)values, rows,
                              release_values, values);
}

hvd_dataset *hvd_dataset_csv(const char *path, int32_t nfields,
                             const hvd_csv_field *fields, char delimiter,
                             int32_t header)
{
    struct csv csv = {.path = path,
                      .delimiter = delimiter ? delimiter : ',',
                      .line = 1,
                      .begun = 1};
    hvd_component components[HVD_MAX_COMPONENTS];
    char *bytes;
    size_t length;

    if (nfields < 1 || nfields > HVD_MAX_COMPONENTS || !fields ||
        strchr("\"\r\n", csv.delimiter))
        return node_fail(NULL, HVD_ERR_ARGUMENT,
                         "data set: %d fields of a CSV file, expected 1 to %d, "
                         "and a delimiter that is no quote and no line break",
                         (int)nfields, HVD_MAX_COMPONENTS);
    for (int32_t i = 0; i < nfields; i++)
        components[i] = fields[i].component;
    if (check_components(nfields, components) < 0 ||
        gz_read_file(path, &bytes, &length) < 0)
        return NULL;
    csv.at = bytes;
    csv.end = bytes + length;
    if (length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
        csv.at += 3; /* the mark of UTF-8 that some programs write */
    if (memchr(bytes, 0, length)) {
        free(bytes);
        return node_fail(NULL, HVD_ERR_FILE,
                         "%s: a zero byte: this is no CSV file", path);
    }
    csv.locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    hvd_dataset *set =
        csv.locale ? read_file(&csv, nfields, fields, header)
                   : node_fail(NULL, HVD_ERR_MEMORY, "%s: no memory", path);
    if (csv.locale)
        freelocale(csv.locale);
    free(csv.fields);
    free(bytes);
    return set;
}
