/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file.c - names, writes, checks and removes the files of checkpoints.
 *
 * The file of tensors is the checkpoint. Its metadata is
 *
 *     {"crc32":"89abcdef","checkpoint":"1","step":"1200","final":"false",
 *      "time":"1700000000.123456","metric":"0.25","state":"{...}"}
 *
 * It gets its name by a rename, after its bytes are on the disk. The JSON
 * follows in the same way. A kill between the two leaves a whole checkpoint
 * without JSON, or beside the JSON of the one that it replaced, which is seen
 * from the checksum in it and not used.
 */
#include "checkpoint/file.h"

#include "disk/disk.h"
#include "output/problem.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <hvd.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { PREFIX = 8, DIGITS = 8 };

static const char beginning[] = "{\"__metadata__\":{\"crc32\":\"";
static const char zeros[] = "00000000";
static const char stem[] = "ckpt-";
static const size_t digits_at = PREFIX + sizeof beginning - 1;

void checkpoint_record_fini(struct checkpoint_record *r)
{
    json_decref(r->state);
    *r = (struct checkpoint_record){.metric = NAN};
}

/* -------------------------------------------------------------------- names */

int checkpoint_path(char path[PATH_MAX], const char *folder, int64_t step,
                    const char *ending)
{
    if (snprintf(path, PATH_MAX, "%s/%s%" PRId64 ".%s", folder, stem, step,
                 ending) >= PATH_MAX)
        return problem_fail(HVD_ERR_ARGUMENT, "%.80s...: the path is too long",
                            folder);
    return 0;
}

/* Returns the step of a file of tensors by its name; -1: it is none. */
static int64_t step_of(const char *name)
{
    const char *digits = name + sizeof stem - 1;
    char *end;
    int64_t step;

    if (strncmp(name, stem, sizeof stem - 1) != 0 ||
        !isdigit((unsigned char)digits[0]) ||
        (digits[0] == '0' && digits[1] != '.'))
        return -1;
    errno = 0;
    step = strtoll(digits, &end, 10);
    return errno == 0 && strcmp(end, "." CHECKPOINT_TENSORS) == 0 ? step : -1;
}

static int compare_steps(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

int64_t *checkpoint_steps(const char *folder, int *count)
{
    DIR *names = opendir(folder);
    const struct dirent *entry;
    int64_t *steps = NULL, *more;
    size_t n = 0, room = 0;

    if (!names && errno != ENOENT) {
        problem_fail(HVD_ERR_FILE, "%s: cannot be listed: %s", folder,
                     strerror(errno));
        return NULL;
    }
    do {
        entry = names ? readdir(names) : NULL;
        if (entry && step_of(entry->d_name) < 0)
            continue;
        if (n == room) {
            room = 2 * room + 16;
            more = realloc(steps, room * sizeof *steps);
            if (!more) {
                problem_fail(HVD_ERR_MEMORY, "%s: out of memory", folder);
                free(steps);
                steps = NULL;
                break;
            }
            steps = more;
        }
        if (entry)
            steps[n++] = step_of(entry->d_name);
    } while (entry);
    if (names)
        closedir(names);
    if (steps)
        qsort(steps, n, sizeof *steps, compare_steps);
    *count = (int)n;
    return steps;
}

void checkpoint_sweep(const char *folder)
{
    static const char ending[] = ".tmp";
    DIR *names = opendir(folder);
    const struct dirent *entry;
    char path[PATH_MAX];

    while (names && (entry = readdir(names))) {
        const size_t length = strlen(entry->d_name);
        const char *dot;
        int n;

        if (strncmp(entry->d_name, stem, sizeof stem - 1) != 0 ||
            length < sizeof ending ||
            strcmp(entry->d_name + length + 1 - sizeof ending, ending) != 0)
            continue;
        /* "ckpt-7.json.0123.tmp": what disk.h finds by "ckpt-7.json". */
        n = snprintf(path, sizeof path, "%s/%.*s", folder,
                     (int)(length + 1 - sizeof ending), entry->d_name);
        dot = strrchr(path, '.');
        if (n >= PATH_MAX || !dot)
            continue;
        path[dot - path] = '\0';
        disk__output_check(path, DISK__SWEEP);
    }
    if (names)
        closedir(names);
}

/* ------------------------------------------------------------------ writing */

/* Returns the CRC-32 of the bytes, after those of crc. */
static uint32_t add_crc(uint32_t crc, const void *data, size_t bytes)
{
    return (uint32_t)crc32_z(crc, data, bytes);
}

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Returns the metadata, with zeros in place of the checksum. */
static json_t *make_metadata(const struct checkpoint_record *r)
{
    char *state = json_dumps(r->state, JSON_COMPACT);
    json_t *metadata =
        state ? json_pack("{s:s,s:s,s:o,s:s,s:o}", "crc32", zeros, "checkpoint",
                          "1", "step", json_sprintf("%" PRId64, r->step),
                          "final", r->final ? "true" : "false", "time",
                          json_sprintf("%.6f", r->time))
              : NULL;

    if (metadata && isfinite(r->metric))
        json_object_set_new(metadata, "metric",
                            json_sprintf("%.17g", r->metric));
    if (metadata)
        json_object_set_new(metadata, "state", json_string(state));
    free(state);
    return metadata;
}

/* Makes the beginning of the file of tensors, with the checksum of all of
 * it. */
static char *make_header(struct checkpoint_record *r,
                         const struct safetensors_tensor *tensors, int count,
                         size_t *bytes)
{
    json_t *metadata = make_metadata(r);
    char *header = NULL, digits[DIGITS + 1];

    if (metadata)
        header = safetensors_header(tensors, count, metadata, bytes);
    else
        problem_fail(HVD_ERR_MEMORY, "out of memory for a checkpoint");
    json_decref(metadata);
    if (!header)
        return NULL;
    r->crc = add_crc(0, header, *bytes);
    r->bytes = (int64_t)*bytes;
    for (int i = 0; i < count; i++) {
        if (tensors[i].bytes > 0)
            r->crc = add_crc(r->crc, tensors[i].data, tensors[i].bytes);
        r->bytes += (int64_t)tensors[i].bytes;
    }
    snprintf(digits, sizeof digits, "%08" PRIx32, r->crc);
    memcpy(header + digits_at, digits, DIGITS);
    return header;
}

int checkpoint_write(const char *folder, struct checkpoint_record *r,
                     const struct safetensors_tensor *tensors, int count)
{
    char path[PATH_MAX], *header;
    size_t bytes = 0;
    int status = checkpoint_path(path, folder, r->step, CHECKPOINT_TENSORS);

    if (status < 0)
        return status;
    header = make_header(r, tensors, count, &bytes);
    if (!header)
        return HVD_ERR_ARGUMENT;
    status =
        safetensors_write_file(path, header, bytes, tensors, count, DISK__SYNC);
    free(header);
    return status < 0 ? status
                      : checkpoint_write_json(folder, r, tensors, count);
}

static json_t *list_tensors(const struct safetensors_tensor *tensors, int count)
{
    json_t *list = json_array();

    for (int i = 0; i < count; i++) {
        json_t *shape = json_array();

        for (int32_t k = 0; k < tensors[i].ndim; k++)
            json_array_append_new(shape, json_integer(tensors[i].shape[k]));
        json_array_append_new(
            list,
            json_pack("{s:s,s:s,s:o}", "name", tensors[i].name, "dtype",
                      safetensors_name(tensors[i].dtype), "shape", shape));
    }
    return list;
}

int checkpoint_write_json(const char *folder, const struct checkpoint_record *r,
                          const struct safetensors_tensor *tensors, int count)
{
    char path[PATH_MAX], name[NAME_MAX], *text;
    json_t *whole;
    int status = checkpoint_path(path, folder, r->step, CHECKPOINT_JSON);

    snprintf(name, sizeof name, "%s%" PRId64 "." CHECKPOINT_TENSORS, stem,
             r->step);
    whole = json_pack(
        "{s:i,s:I,s:b,s:f,s:o,s:{s:s,s:I,s:o},s:O,s:o}", "checkpoint", 1,
        "step", (json_int_t)r->step, "final", r->final, "time", r->time,
        "metric", number_or_null(r->metric), "file", "name", name, "bytes",
        (json_int_t)r->bytes, "crc32", json_sprintf("%08" PRIx32, r->crc),
        "state", r->state, "tensors", list_tensors(tensors, count));
    text = whole ? json_dumps(whole, JSON_INDENT(1)) : NULL;
    json_decref(whole);
    if (!text)
        return problem_fail(HVD_ERR_MEMORY, "out of memory for a checkpoint");
    if (status == 0) {
        status = disk__replace(path, text, strlen(text), DISK__SYNC);
        if (status < 0)
            status = problem_fail(HVD_ERR_FILE, "%s: cannot be written: %s",
                                  path, disk__text(status));
    }
    free(text);
    return status;
}

int checkpoint_remove(const char *folder, int64_t step)
{
    static const char *const endings[] = {CHECKPOINT_JSON, CHECKPOINT_TENSORS};
    char path[PATH_MAX];
    int status = 0;

    for (int i = 0; i < 2 && status == 0; i++) {
        status = checkpoint_path(path, folder, step, endings[i]);
        if (status == 0 && unlink(path) < 0 && errno != ENOENT)
            status = problem_fail(HVD_ERR_FILE, "%s: cannot be removed: %s",
                                  path, strerror(errno));
    }
    return status;
}

/* ------------------------------------------------------------------ reading */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* Reads a finite number that is the whole text. */
static bool read_real(const char *text, double *value)
{
    char *end;

    *value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*value);
}

static bool read_metadata(const json_t *m, struct checkpoint_record *r)
{
    const char *step = text_of(m, "step"), *digits = text_of(m, "crc32");
    const char *metric = text_of(m, "metric");
    char *end;

    r->step = strtoll(step, &end, 10);
    if (end == step || *end || r->step < 0 || strlen(digits) != DIGITS ||
        strspn(digits, "0123456789abcdef") != DIGITS)
        return false;
    r->crc = (uint32_t)strtoul(digits, NULL, 16);
    if (!read_real(text_of(m, "time"), &r->time) ||
        (*metric && !read_real(metric, &r->metric)))
        return false;
    r->final = strcmp(text_of(m, "final"), "true") == 0;
    r->state = json_loads(text_of(m, "state"), 0, NULL);
    return json_is_object(r->state);
}

/* Takes the metric from the JSON beside the file, if that is of this file. */
static void read_later(const struct safetensors *f, struct checkpoint_record *r)
{
    const size_t stem_bytes = strlen(f->path) - strlen(CHECKPOINT_TENSORS);
    char path[PATH_MAX], digits[DIGITS + 1];
    json_t *whole, *metric;

    if (snprintf(path, sizeof path, "%.*s%s", (int)stem_bytes, f->path,
                 CHECKPOINT_JSON) >= PATH_MAX)
        return;
    snprintf(digits, sizeof digits, "%08" PRIx32, r->crc);
    whole = json_load_file(path, 0, NULL);
    metric = json_object_get(whole, "metric");
    if (json_is_number(metric) &&
        strcmp(text_of(json_object_get(whole, "file"), "crc32"), digits) == 0)
        r->metric = json_number_value(metric);
    json_decref(whole);
}

int checkpoint_open_file(const char *path, struct safetensors **file,
                         struct checkpoint_record *r, bool *is_checkpoint)
{
    struct safetensors *f;
    int status = safetensors_open(path, &f);
    const size_t length = strlen(path), ending = strlen(CHECKPOINT_TENSORS);

    *r = (struct checkpoint_record){.metric = NAN};
    if (status < 0)
        return status;
    r->bytes = (int64_t)f->length;
    *is_checkpoint = json_object_get(f->metadata, "checkpoint") != NULL;
    if (*is_checkpoint &&
        (strcmp(text_of(f->metadata, "checkpoint"), "1") != 0 ||
         !read_metadata(f->metadata, r))) {
        checkpoint_record_fini(r);
        safetensors_close(f);
        return problem_fail(HVD_ERR_FILE,
                            "%s: its metadata is not that of a checkpoint of "
                            "this version",
                            path);
    }
    if (*is_checkpoint && length > ending &&
        strcmp(path + length - ending, CHECKPOINT_TENSORS) == 0)
        read_later(f, r);
    *file = f;
    return 0;
}

int checkpoint_verify(const struct safetensors *f,
                      const struct checkpoint_record *r)
{
    const size_t behind = digits_at + DIGITS;
    uint32_t crc;

    if (f->length < behind ||
        memcmp(f->map + PREFIX, beginning, sizeof beginning - 1) != 0)
        return problem_fail(HVD_ERR_FILE,
                            "%s: another program has written it anew: its "
                            "metadata does not begin with a checksum",
                            f->path);
    crc = add_crc(0, f->map, digits_at);
    crc = add_crc(crc, zeros, DIGITS);
    crc = add_crc(crc, f->map + behind, f->length - behind);
    if (crc != r->crc)
        return problem_fail(HVD_ERR_FILE,
                            "%s: it is damaged: its checksum is %08" PRIx32
                            ", and that of what was written %08" PRIx32,
                            f->path, crc, r->crc);
    return 0;
}
