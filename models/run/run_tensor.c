/* SPDX-License-Identifier: Apache-2.0 */
#include "run/run_tensor.h"

#include "disk/disk.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t run_count(int32_t ndim, const int64_t *extents)
{
    int64_t n = 1;

    for (int32_t i = 0; i < ndim; i++)
        n *= extents[i];
    return n;
}

struct run_shape_text run_shape(int32_t type, int32_t ndim,
                                const int64_t *extents)
{
    const char *name = ipu_onnx_type_name(type);
    struct run_shape_text made;
    int at =
        snprintf(made.text, sizeof made.text, "%s [", name ? name : "unknown");

    for (int32_t i = 0; i < ndim; i++)
        at += snprintf(made.text + at, sizeof made.text - (size_t)at,
                       "%s%" PRId64, i > 0 ? "," : "", extents[i]);
    snprintf(made.text + at, sizeof made.text - (size_t)at, "]");
    return made;
}

/* ---------------------------------------------------------------------- npy */

/* The types of numpy that ONNX has, too. bfloat16 has none. */
static const struct {
    const char *descr;
    int32_t type;
} numpy_types[] = {
    {"<f4", IPU_ONNX_FLOAT},   {"|u1", IPU_ONNX_UINT8},
    {"|i1", IPU_ONNX_INT8},    {"<u2", IPU_ONNX_UINT16},
    {"<i2", IPU_ONNX_INT16},   {"<i4", IPU_ONNX_INT32},
    {"<i8", IPU_ONNX_INT64},   {"|b1", IPU_ONNX_BOOL},
    {"<f2", IPU_ONNX_FLOAT16}, {"<f8", IPU_ONNX_DOUBLE},
    {"<u4", IPU_ONNX_UINT32},  {"<u8", IPU_ONNX_UINT64},
};

enum { TYPES = sizeof numpy_types / sizeof *numpy_types, MOST_HEADER = 65536 };

static const char npy_magic[6] = "\x93NUMPY";

/* Finds the value of a key in the header: a Python dictionary. */
static const char *find_key(const char *header, const char *key)
{
    const char *at = strstr(header, key);

    if (!at)
        return NULL;
    at = strchr(at, ':');
    while (at && (*at == ':' || *at == ' '))
        at++;
    return at;
}

static int parse_type(const char *header)
{
    const char *descr = find_key(header, "'descr'");

    for (int i = 0; descr && i < TYPES; i++)
        if (!strncmp(descr + 1, numpy_types[i].descr, 3))
            return numpy_types[i].type;
    return -1;
}

static int parse_extents(const char *header, ipu_onnx_tensor *tensor)
{
    const char *at = find_key(header, "'shape'");
    char *end;

    if (!at || *at++ != '(')
        return -1;
    for (;;) {
        at += strspn(at, " ,");
        if (*at == ')')
            return 0;
        if (!isdigit((unsigned char)*at) || tensor->ndim == IPU_MAX_DIMS)
            return -1;
        tensor->extents[tensor->ndim] = strtoll(at, &end, 10);
        if (tensor->extents[tensor->ndim++] == INT64_MAX)
            return -1;
        at = end;
    }
}

/* Reads the head of the file. Returns what is wrong with it; NULL: nothing. */
static const char *read_header(FILE *file, ipu_onnx_tensor *tensor)
{
    static char header[MOST_HEADER + 1];
    unsigned char start[12];
    const char *order;
    size_t length;

    if (fread(start, 1, 10, file) != 10 || memcmp(start, npy_magic, 6) != 0)
        return "it is no .npy file";
    length = start[8] | (size_t)start[9] << 8;
    if (start[6] > 1) {
        if (fread(start + 10, 1, 2, file) != 2)
            return "it is cut off";
        length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
    }
    if (length > MOST_HEADER || fread(header, 1, length, file) != length)
        return "its header is cut off, or too long";
    header[length] = '\0';
    order = find_key(header, "'fortran_order'");
    if (!order || strncmp(order, "False", 5) != 0)
        return "its elements are not in the order of C";
    tensor->type = parse_type(header);
    if (tensor->type < 0)
        return "its type is none that ONNX has, in the order of this machine";
    return parse_extents(header, tensor) < 0 ? "its shape cannot be read"
                                             : NULL;
}

/* Reads exactly the elements that the shape asks for. */
static const char *read_elements(FILE *file, ipu_onnx_tensor *tensor)
{
    size_t bytes = ipu_onnx_type_bytes(tensor->type), have;
    long at = ftell(file), end;

    for (int32_t i = 0; i < tensor->ndim; i++)
        if (__builtin_mul_overflow(bytes, (size_t)tensor->extents[i], &bytes))
            return "its shape is too large";
    if (at < 0 || fseek(file, 0, SEEK_END) != 0 || (end = ftell(file)) < at ||
        fseek(file, at, SEEK_SET) != 0)
        return "it cannot be read";
    have = (size_t)(end - at);
    if (have != bytes)
        return "its length is not that of its shape";
    tensor->data = malloc(bytes ? bytes : 1);
    if (!tensor->data)
        return "there is too little memory for it";
    return fread(tensor->data, 1, bytes, file) == bytes ? NULL
                                                        : "it cannot be read";
}

static int read_npy(const char *path, ipu_onnx_tensor *tensor)
{
    int status;
    FILE *file = disk__read_stream(path, &status);
    const char *wrong;

    if (!file)
        return run_complain("%s: cannot be read: %s", path, disk__text(status));
    *tensor = (ipu_onnx_tensor){.size = sizeof *tensor};
    wrong = read_header(file, tensor);
    if (!wrong)
        wrong = read_elements(file, tensor);
    fclose(file);
    if (!wrong)
        return 0;
    free(tensor->data);
    tensor->data = NULL;
    return run_complain("%s: %s", path, wrong);
}

int run_read_tensor(const char *path, ipu_onnx_tensor *tensor)
{
    size_t n = strlen(path);

    if (n < 3 || strcmp(path + n - 3, ".pb") != 0)
        return read_npy(path, tensor);
    *tensor = (ipu_onnx_tensor){.size = sizeof *tensor};
    return ipu_onnx_read_tensor(path, tensor) < 0
               ? run_complain("%s", ipu_last_error())
               : 0;
}

/* The header ends where 64 bytes are full, as numpy writes it. */
static int write_header(struct disk__output *out, const char *descr,
                        const ipu_onnx_tensor *tensor)
{
    char text[384];
    unsigned char start[10] = {0, 0, 0, 0, 0, 0, 1, 0};
    int n =
        snprintf(text, sizeof text,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);

    memcpy(start, npy_magic, sizeof npy_magic);
    for (int32_t i = 0; i < tensor->ndim; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%" PRId64 ",%s",
                      tensor->extents[i], i + 1 < tensor->ndim ? " " : "");
    n += snprintf(text + n, sizeof text - (size_t)n, "), }");
    while ((n + 11) % 64 != 0)
        text[n++] = ' ';
    text[n++] = '\n';
    start[8] = (unsigned char)(n & 255);
    start[9] = (unsigned char)(n >> 8);
    disk__output_write(out, start, sizeof start);
    return disk__output_write(out, text, (size_t)n);
}

int run_write_npy(const char *path, const ipu_onnx_tensor *tensor)
{
    size_t bytes = (size_t)run_count(tensor->ndim, tensor->extents) *
                   ipu_onnx_type_bytes(tensor->type);
    struct disk__output out = {.is_open = false};
    const char *descr = NULL;
    int status;

    for (int i = 0; i < TYPES; i++)
        if (numpy_types[i].type == tensor->type)
            descr = numpy_types[i].descr;
    if (!descr)
        return run_complain("%s: numpy has no elements of %s", path,
                            ipu_onnx_type_name(tensor->type));
    status = disk__output_open(&out, path, DISK__DIRECT);
    if (status >= 0)
        status = write_header(&out, descr, tensor);
    if (status >= 0)
        status = disk__output_write(&out, tensor->data, bytes);
    if (status >= 0)
        status = disk__output_commit(&out);
    disk__output_close(&out);
    return status < 0 ? run_complain("%s: cannot be written: %s", path,
                                     disk__text(status))
                      : 0;
}

/* ------------------------------------------------------------------- random */

/* SplitMix64. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* Elements of the device, which are then converted. */
static void fill_random(ipu_dtype dtype, int64_t count, uint64_t *state,
                        void *to)
{
    for (int64_t i = 0; i < count; i++) {
        uint64_t number = next_random(state);

        if (dtype == IPU_INT32)
            ((int32_t *)to)[i] = (int32_t)(number & 1);
        else
            ((float *)to)[i] = (float)(int64_t)(number >> 40) * 0x1p-23f - 1;
    }
}

/* Converts floats of the device to halves, which have no conversion of their
 * own here: the first 16 bits of a float are a bfloat16, and float16 gets
 * multiples of 1 / 16. */
static void halve(int32_t type, int64_t count, const float *from, uint16_t *to)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, &from[i], sizeof bits);
        if (type == IPU_ONNX_BFLOAT16)
            to[i] = (uint16_t)(bits >> 16);
        else
            to[i] = (uint16_t)((bits >> 16 & 0x8000) | 0x3000 |
                               (bits >> 13 & 0x3ff));
    }
}

int run_random_tensor(const ipu_onnx_value *like, uint64_t *state,
                      ipu_onnx_tensor *tensor)
{
    int64_t count = run_count(like->ndim, like->extents);
    ipu_dtype dtype = ipu_onnx_type_dtype(like->type);
    void *numbers = malloc((size_t)(count > 0 ? count : 1) * 4);

    *tensor = (ipu_onnx_tensor){
        .size = sizeof *tensor, .type = like->type, .ndim = like->ndim};
    memcpy(tensor->extents, like->extents, sizeof tensor->extents);
    tensor->data = calloc((size_t)(count > 0 ? count : 1),
                          ipu_onnx_type_bytes(like->type));
    if (!numbers || !tensor->data) {
        free(numbers);
        free(tensor->data);
        tensor->data = NULL;
        return run_complain("there is too little memory for input '%s'",
                            like->name);
    }
    fill_random(dtype, count, state, numbers);
    if (dtype == IPU_FLOAT16 || dtype == IPU_BFLOAT16)
        halve(like->type, count, numbers, tensor->data);
    else
        ipu_onnx_from_device(like->type, count, numbers, tensor->data);
    free(numbers);
    return 0;
}
