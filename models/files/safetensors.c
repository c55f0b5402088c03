/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors.c - the header is parsed into a tensor each; those are sorted by
 * where they lie, and must then follow each other from the first byte behind
 * the header to the last of the file. All products and sums of sizes are
 * checked for overflow.
 */
#include "files/safetensors.h"

#include "disk/disk.h"
#include "output/problem.h"

#include <errno.h>
#include <fcntl.h>
#include <hvd.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the bytes of tensors are not swapped");

/* The format allows no longer header. */
enum { PREFIX = 8, MOST_HEADER = 100000000 };

/* ------------------------------------------------------------------- dtypes */

static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {
#define SAFETENSORS_ROW(name, bits) {#name, bits},
    SAFETENSORS_DTYPES(SAFETENSORS_ROW)
#undef SAFETENSORS_ROW
};

static const signed char of_hvd[HVD_NUM_DTYPES] = {
    [HVD_UINT8] = SAFETENSORS_U8,     [HVD_INT8] = SAFETENSORS_I8,
    [HVD_UINT16] = SAFETENSORS_U16,   [HVD_INT16] = SAFETENSORS_I16,
    [HVD_INT32] = SAFETENSORS_I32,    [HVD_INT64] = SAFETENSORS_I64,
    [HVD_FLOAT16] = SAFETENSORS_F16,  [HVD_FLOAT32] = SAFETENSORS_F32,
    [HVD_FLOAT64] = SAFETENSORS_F64,  [HVD_BOOL] = SAFETENSORS_BOOL,
    [HVD_BFLOAT16] = SAFETENSORS_BF16};

const char *safetensors_name(enum safetensors_dtype dtype)
{
    return dtypes[dtype].name;
}

unsigned safetensors_bits(enum safetensors_dtype dtype)
{
    return dtypes[dtype].bits;
}

int safetensors_from_hvd(int dtype)
{
    return dtype < 0 || dtype >= HVD_NUM_DTYPES ? -1 : of_hvd[dtype];
}

int safetensors_to_hvd(enum safetensors_dtype dtype)
{
    for (int i = 0; i < HVD_NUM_DTYPES; i++)
        if (of_hvd[i] == (int)dtype)
            return i;
    return -1;
}

int safetensors_measure(struct safetensors_tensor *t)
{
    int64_t count = 1, bits;
    bool fits = t->ndim >= 0 && (unsigned)t->dtype < SAFETENSORS_NUM_DTYPES;
    bool empty = false;

    for (int32_t i = 0; fits && i < t->ndim; i++) {
        fits = t->shape[i] >= 0;
        empty |= t->shape[i] == 0;
        /* An empty tensor may have other lengths whose product is too much. */
        if (fits && t->shape[i] > 0)
            fits = !__builtin_mul_overflow(count, t->shape[i], &count);
    }
    fits = fits && !__builtin_mul_overflow(
                       count, (int64_t)dtypes[t->dtype].bits, &bits);
    if (!fits)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "tensor '%.80s': its shape is none, or larger than "
                            "any file",
                            t->name);
    if (empty)
        count = bits = 0;
    if (bits % 8 != 0)
        return problem_fail(HVD_ERR_ARGUMENT,
                            "tensor '%.80s': its elements of %s do not fill "
                            "whole bytes",
                            t->name, dtypes[t->dtype].name);
    t->count = count;
    t->bytes = (size_t)bits / 8;
    return 0;
}

/* ------------------------------------------------------------------ reading */

/* Keeps the text of a file that is not as it should be. Returns the status. */
static int refuse(const struct safetensors *f, const char *what)
{
    return problem_fail(HVD_ERR_FILE, "%s: %s", f->path, what);
}

static int refuse_tensor(const struct safetensors *f, const char *name,
                         const char *what)
{
    return problem_fail(HVD_ERR_FILE, "%s: '%.80s' %s", f->path, name, what);
}

static int map_file(struct safetensors *f)
{
    struct stat info;
    const int fd = disk__open_regular(f->path, O_RDONLY);
    void *map = MAP_FAILED;

    if (fd < 0)
        return refuse(f, disk__text(fd));
    if (fstat(fd, &info) == 0 && info.st_size >= PREFIX) {
        f->length = (size_t)info.st_size;
        map = mmap(NULL, f->length, PROT_READ, MAP_SHARED, fd, 0);
    } else {
        errno = 0;
    }
    close(fd);
    if (map == MAP_FAILED)
        return refuse(f, errno ? strerror(errno)
                               : "this is no safetensors file: it is too "
                                 "short");
    f->map = map;
    return 0;
}

/* Parses the header. Returns its length in *length. */
static int read_header(struct safetensors *f, size_t *length)
{
    uint64_t bytes;
    json_error_t error;

    memcpy(&bytes, f->map, sizeof bytes);
    if (bytes > MOST_HEADER || bytes > f->length - PREFIX)
        return refuse(f, "this is no safetensors file: its header would be "
                         "longer than it");
    f->header = json_loadb((const char *)f->map + PREFIX, bytes,
                           JSON_REJECT_DUPLICATES, &error);
    if (!f->header && json_error_code(&error) == json_error_duplicate_key)
        return problem_fail(HVD_ERR_FILE,
                            "%s: a name stands twice in its "
                            "header (%s)",
                            f->path, error.text);
    if (!json_is_object(f->header))
        return refuse(f, "this is no safetensors file: its header is not JSON");
    *length = bytes;
    return 0;
}

static int read_metadata(struct safetensors *f)
{
    const char *key;
    json_t *value, *metadata = json_object_get(f->header, "__metadata__");

    if (!metadata)
        return 0;
    if (!json_is_object(metadata))
        return refuse(f, "its metadata is no object");
    json_object_foreach(metadata, key, value) if (
        !json_is_string(
            value)) return problem_fail(HVD_ERR_FILE,
                                        "%s: '%.80s' of its metadata is no "
                                        "text",
                                        f->path, key);
    f->metadata = metadata;
    return 0;
}

/* Reads a shape into its place in shapes. */
static int read_shape(const struct safetensors *f, const json_t *lengths,
                      int64_t *shape, struct safetensors_tensor *t)
{
    t->shape = shape;
    t->ndim = (int32_t)json_array_size(lengths);
    for (int32_t i = 0; i < t->ndim; i++) {
        const json_t *length = json_array_get(lengths, (size_t)i);

        shape[i] = json_is_integer(length) ? json_integer_value(length) : -1;
    }
    if (!json_is_array(lengths) || safetensors_measure(t) < 0)
        return refuse_tensor(f, t->name, "has a shape that is none");
    return 0;
}

static int read_tensor(const struct safetensors *f, const json_t *entry,
                       size_t length, int64_t *shape,
                       struct safetensors_tensor *t)
{
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    const json_t *offsets = json_object_get(entry, "data_offsets");
    const json_t *first = json_array_get(offsets, 0);
    const json_t *end = json_array_get(offsets, 1);
    const json_int_t from = json_integer_value(first);
    int k = 0, status;

    while (k < SAFETENSORS_NUM_DTYPES && dtype &&
           strcmp(dtypes[k].name, dtype) != 0)
        k++;
    if (!dtype || k == SAFETENSORS_NUM_DTYPES)
        return problem_fail(HVD_ERR_FILE,
                            "%s: '%.80s' is of dtype %.20s, which is none of "
                            "the format",
                            f->path, t->name, dtype ? dtype : "null");
    t->dtype = (enum safetensors_dtype)k;
    status = read_shape(f, json_object_get(entry, "shape"), shape, t);
    if (status < 0)
        return status;
    if (json_array_size(offsets) != 2 || !json_is_integer(first) ||
        !json_is_integer(end) || from < 0 || json_integer_value(end) < from ||
        (uint64_t)json_integer_value(end) > f->length - PREFIX - length ||
        (uint64_t)(json_integer_value(end) - from) != t->bytes)
        return refuse_tensor(f, t->name,
                             "does not lie where its header says; is the file "
                             "truncated?");
    t->data = f->map + PREFIX + length + from;
    return 0;
}

/* Compares where tensors lie; empty ones come before the one behind them. */
static int compare_places(const void *left, const void *right)
{
    const struct safetensors_tensor *a = left, *b = right;
    const uintptr_t i = (uintptr_t)a->data, k = (uintptr_t)b->data;

    if (i != k)
        return i < k ? -1 : 1;
    return (a->bytes > 0) - (b->bytes > 0);
}

/* Checks that the tensors cover the data, and numbers them. */
static int check_places(struct safetensors *f, size_t length)
{
    const unsigned char *at = f->map + PREFIX + length;

    qsort(f->tensors, (size_t)f->count, sizeof *f->tensors, compare_places);
    for (int i = 0; i < f->count; i++) {
        struct safetensors_tensor *t = &f->tensors[i];

        if (t->data != at)
            return refuse_tensor(f, t->name,
                                 "does not begin where the tensor before it "
                                 "ends");
        at += t->bytes;
        if (t->bytes == 0)
            t->data = NULL;
        if (json_object_set_new_nocheck(f->numbers, t->name, json_integer(i)))
            return problem_fail(HVD_ERR_MEMORY, "%s: out of memory", f->path);
    }
    if (at != f->map + f->length)
        return refuse(f, "it has more bytes than its header says");
    return 0;
}

static int read_tensors(struct safetensors *f, size_t length)
{
    const char *name;
    json_t *entry;
    size_t lengths = 1;
    int64_t *shape;
    int status = 0;

    json_object_foreach(f->header, name, entry) lengths +=
        json_array_size(json_object_get(entry, "shape"));
    f->shapes = shape = calloc(lengths, sizeof *shape);
    f->numbers = json_object();
    f->tensors = calloc(json_object_size(f->header) + 1, sizeof *f->tensors);
    if (!f->shapes || !f->numbers || !f->tensors)
        return problem_fail(HVD_ERR_MEMORY, "%s: out of memory", f->path);
    json_object_foreach(f->header, name, entry)
    {
        struct safetensors_tensor *t = &f->tensors[f->count];

        if (strcmp(name, "__metadata__") == 0)
            continue;
        t->name = name;
        f->count++;
        status = read_tensor(f, entry, length, shape, t);
        shape += t->ndim;
        if (status < 0)
            return status;
    }
    return check_places(f, length);
}

int safetensors_open(const char *path, struct safetensors **file)
{
    struct safetensors *f = calloc(1, sizeof *f);
    size_t length = 0;
    int status;

    if (!f || !(f->path = strdup(path))) {
        free(f);
        return problem_fail(HVD_ERR_MEMORY, "%s: out of memory", path);
    }
    status = map_file(f);
    if (status == 0 && f->map)
        status = read_header(f, &length);
    if (status == 0)
        status = read_metadata(f);
    if (status == 0)
        status = read_tensors(f, length);
    if (status == 0)
        *file = f;
    else
        safetensors_close(f);
    return status;
}

void safetensors_close(struct safetensors *f)
{
    if (!f)
        return;
    free(f->tensors);
    free(f->shapes);
    json_decref(f->numbers);
    json_decref(f->header);
    if (f->map)
        munmap(f->map, f->length);
    free(f->path);
    free(f);
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *f,
                                                  const char *name)
{
    const json_t *number = json_object_get(f->numbers, name);

    return number ? &f->tensors[json_integer_value(number)] : NULL;
}

/* ------------------------------------------------------------------ writing */

int safetensors_order(struct safetensors_tensor *tensors, int count)
{
    struct safetensors_tensor *ordered =
        calloc((size_t)count + 1, sizeof *ordered);
    int n = 0;

    if (!ordered)
        return problem_fail(HVD_ERR_MEMORY, "out of memory for a header");
    for (unsigned bits = 64; bits > 0; bits--)
        for (int i = 0; i < count && n < count; i++)
            if (dtypes[tensors[i].dtype].bits == bits)
                ordered[n++] = tensors[i];
    if (count > 0)
        memcpy(tensors, ordered, (size_t)count * sizeof *tensors);
    free(ordered);
    return 0;
}

/* Returns the header as an object; NULL: no memory, or a name that cannot be
 * one. */
static json_t *describe(const struct safetensors_tensor *tensors, int count,
                        const json_t *metadata)
{
    json_t *header = json_object();
    int64_t from = 0;
    bool fits = header != NULL;

    if (metadata && json_object_size(metadata) > 0)
        fits = fits && json_object_set_new(header, "__metadata__",
                                           json_deep_copy(metadata)) == 0;
    for (int i = 0; i < count && fits; i++) {
        const struct safetensors_tensor *t = &tensors[i];
        const int64_t end = from + (int64_t)t->bytes;
        json_t *shape = json_array(), *entry;

        for (int32_t k = 0; k < t->ndim; k++)
            json_array_append_new(shape, json_integer(t->shape[k]));
        entry = json_pack("{s:s,s:o,s:[I,I]}", "dtype", dtypes[t->dtype].name,
                          "shape", shape, "data_offsets", (json_int_t)from,
                          (json_int_t)end);
        fits = !json_object_get(header, t->name) &&
               strcmp(t->name, "__metadata__") != 0 &&
               json_object_set(header, t->name, entry) == 0;
        json_decref(entry);
        from = end;
        if (!fits)
            problem_fail(HVD_ERR_ARGUMENT,
                         "tensor '%.80s' cannot be written to a file: its name "
                         "is not UTF-8, or stands twice, or there is no memory",
                         t->name);
    }
    if (fits)
        return header;
    json_decref(header);
    return NULL;
}

char *safetensors_header(const struct safetensors_tensor *tensors, int count,
                         const json_t *metadata, size_t *bytes)
{
    json_t *header = describe(tensors, count, metadata);
    char *text = header ? json_dumps(header, JSON_COMPACT) : NULL, *whole;
    const size_t length = text ? strlen(text) : 0;
    const uint64_t padded = (length + 7) / 8 * 8;

    json_decref(header);
    if (text && padded > MOST_HEADER) {
        problem_fail(HVD_ERR_ARGUMENT,
                     "the names of %d tensors make a header of %" PRIu64
                     " bytes; the format allows %d",
                     count, padded, (int)MOST_HEADER);
        free(text);
        return NULL;
    }
    whole = text ? malloc(PREFIX + padded) : NULL;
    if (whole) {
        memcpy(whole, &padded, PREFIX);
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): no string */
        memcpy(whole + PREFIX, text, length);
        memset(whole + PREFIX + length, ' ', padded - length);
        *bytes = PREFIX + padded;
    } else if (header) {
        problem_fail(HVD_ERR_MEMORY, "out of memory for a header");
    }
    free(text);
    return whole;
}

int safetensors_write_file(const char *path, const char *header, size_t bytes,
                           const struct safetensors_tensor *tensors, int count,
                           int flags)
{
    struct disk__output output;
    int status = disk__output_open(&output, path, flags);

    if (status == 0) {
        disk__output_write(&output, header, bytes);
        for (int i = 0; i < count; i++)
            if (tensors[i].bytes > 0)
                disk__output_write(&output, tensors[i].data, tensors[i].bytes);
        status = disk__output_commit(&output);
    }
    return status < 0 ? problem_fail(HVD_ERR_FILE, "%s: cannot be written: %s",
                                     path, disk__text(status))
                      : 0;
}

int safetensors_save(const char *path, const struct safetensors_tensor *tensors,
                     int count, const json_t *metadata, int flags)
{
    size_t bytes;
    char *header = safetensors_header(tensors, count, metadata, &bytes);
    int status = HVD_ERR_ARGUMENT;

    if (header)
        status =
            safetensors_write_file(path, header, bytes, tensors, count, flags);
    free(header);
    return status;
}
