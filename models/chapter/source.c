/* SPDX-License-Identifier: Apache-2.0 */
#include "chapter/source.h"

#include "mnist/dataset.h"
#include "output/problem.h"

#include <stdlib.h>
#include <string.h>

enum { SEED = 1, DRAWN = 4096, WINDOW = 128, MOST_TEXT = 1024 };

hvd_dataset *source_digits(const char *directory, int64_t batch)
{
    const struct digits_source source = {.directory = directory,
                                         .seed = SEED,
                                         .count = directory       ? 0
                                                  : batch > DRAWN ? batch
                                                                  : DRAWN};

    return hvd_dataset_batch(digits_dataset(&source, DIGITS_TRAIN, NULL), batch,
                             1);
}

/* -------------------------------------------------------------------- files */

enum { IDX, CSV, NPY, NPZ, SAFETENSORS, TFRECORD, TEXT, FORMATS };

const char *const source_formats[] = {"idx",         "csv",      "npy",  "npz",
                                      "safetensors", "tfrecord", "text", NULL};

/* Finds the format by the end of a name, such as "x.npy" or "x.csv.gz". */
static int format_of(const char *path)
{
    static const char *const ends[] = {
        "ubyte", ".csv", ".npy", ".npz", ".safetensors", ".tfrecord", ".txt"};
    size_t length = strlen(path);

    if (length > 3 && strcmp(path + length - 3, ".gz") == 0)
        length -= 3;
    for (int i = 0; i < FORMATS; i++) {
        size_t n = strlen(ends[i]);

        if (length > n && strncmp(path + length - n, ends[i], n) == 0)
            return i;
    }
    return problem_set("%s: its name does not tell its format: give --format",
                       path);
}

/* Reads "name:dtype:4x5" in place. */
static int read_field(char *text, hvd_component *c)
{
    char *dtype, *shape;

    *c = (hvd_component){.name = strtok_r(text, ":", &shape)};
    dtype = strtok_r(NULL, ":", &shape);
    for (int i = 0; dtype && i < HVD_NUM_DTYPES; i++)
        if (strcmp(dtype, hvd_dtype_name(i)) == 0)
            c->dtype = i;
    if (!dtype || strcmp(dtype, hvd_dtype_name(c->dtype)) != 0)
        return problem_set("--fields: '%s' needs a dtype, as in %s:float32",
                           c->name ? c->name : "", c->name ? c->name : "x");
    while (*shape && c->ndim < HVD_MAX_COMPONENT_DIMS) {
        c->shape[c->ndim] = strtoll(shape, &shape, 10);
        if (c->shape[c->ndim++] < 1 || (*shape && *shape++ != 'x'))
            return problem_set("--fields: the shape of '%s' is not like 28x28",
                               c->name);
    }
    return 0;
}

/* Reads all fields, in a copy of their text. Returns how many there are. */
static int read_fields(char *text, hvd_component *components)
{
    char *rest = text;
    int n = 0;

    while ((text = strtok_r(rest, ",", &rest))) {
        if (n == HVD_MAX_COMPONENTS)
            return problem_set("--fields: there may be %d", n);
        if (read_field(text, &components[n++]) < 0)
            return PROBLEM;
    }
    return n ? n
             : problem_set("--fields: CSV files and TFRecords need them, like "
                           "x:float32:28x28,y:int32");
}

static hvd_dataset *open_csv(const char *path, int n,
                             const hvd_component *components)
{
    hvd_csv_field fields[HVD_MAX_COMPONENTS];

    for (int i = 0; i < n; i++)
        fields[i] = (hvd_csv_field){.component = components[i],
                                    .column = components[i].name};
    return hvd_dataset_csv(path, n, fields, 0, 1);
}

hvd_dataset *source_file(const char *path, int format, const char *fields)
{
    static const char *const data = "data";
    hvd_component components[HVD_MAX_COMPONENTS];
    char text[MOST_TEXT] = "";
    int n = 0;

    if (format < 0)
        format = format_of(path);
    if (fields && strlen(fields) < sizeof text)
        strcpy(text, fields);
    if (format == CSV || format == TFRECORD)
        n = read_fields(text, components);
    if (format < 0 || n < 0)
        return NULL;
    switch (format) {
    case IDX: return hvd_dataset_idx(1, &data, &path);
    case CSV: return open_csv(path, n, components);
    case NPY: return hvd_dataset_npy(path, data);
    case NPZ: return hvd_dataset_npz(path, 0, NULL);
    case SAFETENSORS: return hvd_dataset_safetensors(path, 0, NULL);
    case TFRECORD: return hvd_dataset_tfrecord(path, n, components);
    default:
        return hvd_dataset_text(path, HVD_TEXT_BYTES, WINDOW, WINDOW, NULL);
    }
}
