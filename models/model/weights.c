/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights.c - a safetensors file: eight bytes give the length of a JSON object,
 * which maps the name of each tensor to its dtype, shape, and first and last
 * byte after the object; then the bytes. All numbers are little endian.
 *
 * Loading trusts nothing: the header must be JSON of a sensible length, offsets
 * must fit the shape and be within the file.
 */
#include "model/weights.h"

#include "data/fnv1a.h"
#include "disk/disk.h"
#include "output/outfile.h"
#include "output/problem.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A larger header belongs to no file of weights. */
enum { MOST_HEADER = 1 << 24 };

uint64_t weights_hash(const struct model *model, float *const *values)
{
    uint64_t hash = FNV1A_START;

    for (int i = 0; i < model->nvariables; i++)
        hash = fnv1a(hash, values[i],
                     (size_t)model->variables[i].count * sizeof(float));
    return hash;
}

/* ------------------------------------------------------------------ writing */

/* Writes the JSON header, padded with spaces to a multiple of eight. The names
 * need no escaping: the models have none that do. */
static void write_header(FILE *out, const struct model *model)
{
    int64_t offset = 0;

    fputc('{', out);
    for (int i = 0; i < model->nvariables; i++) {
        const struct model_variable *v = &model->variables[i];
        int64_t end = offset + v->count * (int64_t)sizeof(float);
        fprintf(out, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[",
                i > 0 ? "," : "", v->name);
        for (int k = 0; k < v->ndim; k++)
            fprintf(out, "%s%" PRId64, k > 0 ? "," : "", v->shape[k]);
        fprintf(out, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", offset,
                end);
        offset = end;
    }
    fputc('}', out);
    while (ftell(out) % 8 != 0)
        fputc(' ', out);
}

/* Writes floats in little-endian order on any machine. */
static void write_floats(FILE *out, const float *values, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        uint32_t bits;
        memcpy(&bits, &values[k], sizeof bits);
        const unsigned char bytes[4] = {
            (unsigned char)bits, (unsigned char)(bits >> 8),
            (unsigned char)(bits >> 16), (unsigned char)(bits >> 24)};
        fwrite(bytes, 1, sizeof bytes, out);
    }
}

int weights_save(const char *path, const struct model *model,
                 float *const *values)
{
    struct outfile out;
    char *header = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&header, &length);

    if (memory)
        write_header(memory, model);
    if (!memory || fclose(memory) != 0) {
        free(header);
        return problem_set("--save-weights: out of memory");
    }
    if (outfile_open(&out, "--save-weights", path) < 0) {
        free(header);
        return PROBLEM;
    }
    for (int i = 0; i < 8; i++)
        fputc((int)((uint64_t)length >> (8 * i) & 255), out.file);
    fwrite(header, 1, length, out.file);
    free(header);
    for (int i = 0; i < model->nvariables; i++)
        write_floats(out.file, values[i], model->variables[i].count);
    return outfile_commit(&out);
}

/* ------------------------------------------------------------------ reading */

struct reading {
    const char *path;
    FILE *file;
    int64_t first; /* first byte of the data */
    int64_t bytes; /* bytes of the data */
    json_t *header;
};

/* Sets the problem of a file that is not as it should be. Returns PROBLEM. */
static int set_wrong(const struct reading *r, const char *what)
{
    return problem_set("--load-weights: %s: %s", r->path, what);
}

static int read_header(struct reading *r)
{
    unsigned char length_bytes[8];
    uint64_t length = 0;
    struct stat st;
    json_error_t error;

    if (fstat(fileno(r->file), &st) != 0)
        return set_wrong(r, strerror(errno));
    if (fread(length_bytes, 1, 8, r->file) != 8)
        return set_wrong(r, "this is no safetensors file: it is too short");
    for (int i = 7; i >= 0; i--)
        length = length << 8 | length_bytes[i];
    if (length > MOST_HEADER || (int64_t)length > (int64_t)st.st_size - 8)
        return set_wrong(r, "this is no safetensors file: its header would be "
                            "longer than it");
    char *text = malloc(length + 1);
    if (!text)
        return set_wrong(r, "no memory for its header");
    bool whole = fread(text, 1, length, r->file) == length;
    r->header = whole ? json_loadb(text, length, 0, &error) : NULL;
    free(text);
    if (!json_is_object(r->header))
        return set_wrong(r,
                         "this is no safetensors file: its header is not JSON");
    r->first = 8 + (int64_t)length;
    r->bytes = (int64_t)st.st_size - r->first;
    return 0;
}

static bool has_shape(const json_t *shape, const struct model_variable *v)
{
    if (!json_is_array(shape) || json_array_size(shape) != (size_t)v->ndim)
        return false;
    for (int32_t i = 0; i < v->ndim; i++)
        if (json_integer_value(json_array_get(shape, (size_t)i)) != v->shape[i])
            return false;
    return true;
}

/* Sets the problem of a variable that the file has in another shape. */
static int wrong_shape(const struct reading *r, const struct model_variable *v,
                       const json_t *shape)
{
    char *there = json_dumps(shape, JSON_COMPACT | JSON_ENCODE_ANY);
    char here[128] = "";

    for (int32_t i = 0, n = 0; i < v->ndim; i++)
        n += snprintf(here + n, sizeof here - (size_t)n, "%s%lld", i ? "," : "",
                      (long long)v->shape[i]);
    problem_set("--load-weights: %s: '%s' is of the shape %.80s there, and "
                "[%s] in this network",
                r->path, v->name, there ? there : "null", here);
    free(there);
    return PROBLEM;
}

/* Finds the variable's floats, counted from the first byte of the data. */
static int find_floats(const struct reading *r, const struct model_variable *v,
                       int64_t *offset)
{
    const json_t *entry = json_object_get(r->header, v->name);
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));

    if (!entry)
        return problem_set("--load-weights: %s: there is no '%s' in it; was it "
                           "written for another network?",
                           r->path, v->name);
    if (!dtype || strcmp(dtype, "F32") != 0)
        return problem_set(
            "--load-weights: %s: '%s' is of dtype %.20s, not F32", r->path,
            v->name, dtype ? dtype : "null");
    if (!has_shape(json_object_get(entry, "shape"), v))
        return wrong_shape(r, v, json_object_get(entry, "shape"));
    *offset = json_integer_value(json_array_get(offsets, 0));
    int64_t end = json_integer_value(json_array_get(offsets, 1));
    if (*offset < 0 || end > r->bytes || *offset > end ||
        end - *offset != v->count * (int64_t)sizeof(float))
        return problem_set("--load-weights: %s: '%s' does not lie where its "
                           "header says; is the file truncated?",
                           r->path, v->name);
    return 0;
}

static int read_floats(const struct reading *r, const struct model_variable *v,
                       float *values)
{
    int64_t offset = 0;

    if (find_floats(r, v, &offset) < 0)
        return PROBLEM;
    if (fseeko(r->file, (off_t)(r->first + offset), SEEK_SET) != 0)
        return set_wrong(r, strerror(errno));
    for (int64_t k = 0; k < v->count; k++) {
        unsigned char bytes[4];
        if (fread(bytes, 1, 4, r->file) != 4)
            return set_wrong(r, "it ends too early");
        uint32_t bits = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 |
                        (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
        memcpy(&values[k], &bits, sizeof bits);
    }
    return 0;
}

int weights_load(const char *path, const struct model *model,
                 float *const *values)
{
    int status;
    struct reading r = {.path = path, .file = disk__read_stream(path, &status)};

    if (!r.file)
        return set_wrong(&r, disk__text(status));
    status = read_header(&r);
    for (int i = 0; i < model->nvariables && status == 0; i++)
        status = read_floats(&r, &model->variables[i], values[i]);
    json_decref(r.header);
    fclose(r.file);
    return status;
}
