/* SPDX-License-Identifier: Apache-2.0 */
#include "files/idx.h"

#include "files/gz.h"
#include "output/problem.h"

#include <hvd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20, MOST_ITEMS = 10000000 };

static int dtype_of(int type)
{
    switch (type) {
    case IDX_UINT8: return HVD_UINT8;
    case 0x09: return HVD_INT8;
    case 0x0b: return HVD_INT16;
    case 0x0c: return HVD_INT32;
    case 0x0d: return HVD_FLOAT32;
    case 0x0e: return HVD_FLOAT64;
    default: return -1;
    }
}

/* Checks type and number of dimensions. */
static int check_kind(const struct gz *gz, const uint8_t *head,
                      const struct idx_demand *demand)
{
    bool zeros = head[0] == 0 && head[1] == 0;

    if (demand->type) {
        if (zeros && head[2] == demand->type && head[3] == demand->ndim)
            return 0;
        return problem_fail(HVD_ERR_FILE,
                            "%s: starts with %02x%02x%02x%02x, expected "
                            "0000%02x%02x (%s)",
                            gz->path, head[0], head[1], head[2], head[3],
                            demand->type, demand->ndim, demand->what);
    }
    if (zeros && dtype_of(head[2]) >= 0 && head[3] >= 1 &&
        head[3] <= IDX_MOST_DIMS)
        return 0;
    return problem_fail(HVD_ERR_FILE,
                        "%s: starts with %02x%02x%02x%02x, expected two zero "
                        "bytes, a type of 08, 09, 0b to 0e, and 1 to %d "
                        "dimensions: this is no IDX file",
                        gz->path, head[0], head[1], head[2], head[3],
                        IDX_MOST_DIMS);
}

static int check_shape(const struct gz *gz, const struct idx_demand *demand,
                       const struct idx_array *array)
{
    const int64_t *shape = array->shape;
    int64_t bytes = hvd_dtype_size(array->dtype);

    for (int i = 1; i < array->ndim; i++)
        if (demand->rows[i - 1] && shape[i] != demand->rows[i - 1])
            return problem_fail(HVD_ERR_FILE,
                                "%s: images of %lldx%lld pixels, expected "
                                "%lldx%lld",
                                gz->path, (long long)shape[1],
                                (long long)shape[2], (long long)demand->rows[0],
                                (long long)demand->rows[1]);
    if (shape[0] < 1 || (demand->type && shape[0] > MOST_ITEMS))
        return problem_fail(HVD_ERR_FILE,
                            "%s: announces %lld items, expected 1 to %d",
                            gz->path, (long long)shape[0], MOST_ITEMS);
    for (int i = 0; i < array->ndim; i++)
        if (shape[i] < 1 || __builtin_mul_overflow(bytes, shape[i], &bytes))
            return problem_fail(HVD_ERR_FILE,
                                "%s: dimension %d is %lld: no such array is in "
                                "a file",
                                gz->path, i, (long long)shape[i]);
    return 0;
}

static int read_header(struct gz *gz, const struct idx_demand *demand,
                       struct idx_array *array)
{
    uint8_t head[4 + 4 * IDX_MOST_DIMS] = {0};
    int64_t dims = demand->ndim, got = gz_read(gz, head, 4);

    if (got == 4) {
        int status = check_kind(gz, head, demand);
        if (status < 0)
            return status;
        dims = head[3];
        int64_t more = gz_read(gz, head + 4, 4 * (size_t)dims);
        got = more < 0 ? more : got + more;
    }
    if (got < 0 || got < 4 + 4 * dims)
        return got < 0 ? (int)got : gz_truncated(gz, 4 + 4 * dims, got);
    array->type = head[2];
    array->dtype = dtype_of(head[2]);
    array->ndim = head[3];
    for (int i = 0; i < array->ndim; i++) {
        const uint8_t *b = head + 4 + 4 * i;
        array->shape[i] = (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
    }
    return check_shape(gz, demand, array);
}

/* Reads all elements into memory that grows as they arrive. */
static int read_elements(struct gz *gz, int64_t bytes, struct idx_array *array)
{
    int64_t room = 0, got = 0;

    while (got < bytes) {
        room = room ? 2 * room : CHUNK;
        room = room < bytes ? room : bytes;
        void *grown = realloc(array->elements, (size_t)room);
        if (!grown)
            return problem_fail(HVD_ERR_MEMORY, "%s: no memory for %lld bytes",
                                gz->path, (long long)bytes);
        array->elements = grown;
        int64_t n =
            gz_read(gz, (char *)array->elements + got, (size_t)(room - got));
        if (n < 0)
            return (int)n;
        got += n;
        if (got < room)
            return gz_truncated(gz, bytes, got);
    }
    return 0;
}

/* Checks that nothing follows the elements. */
static int check_end(struct gz *gz, int64_t bytes, int64_t items)
{
    char byte;
    int64_t n = gz_read(gz, &byte, 1);
    int code = Z_OK;

    if (n > 0)
        return problem_fail(HVD_ERR_FILE,
                            "%s: goes on after the %lld items it announces",
                            gz->path, (long long)items);
    gzerror(gz->file, &code);
    /* A .gz may end in the middle of its checksum. */
    return n < 0                 ? (int)n
           : code == Z_BUF_ERROR ? gz_truncated(gz, bytes, bytes)
                                 : 0;
}

/* Turns the bytes of each element round. */
static void swap_elements(char *at, int64_t bytes, int size)
{
    for (int64_t i = 0; size > 1 && i < bytes; i += size)
        for (int k = 0; k < size / 2; k++) {
            char byte = at[i + k];
            at[i + k] = at[i + size - 1 - k];
            at[i + size - 1 - k] = byte;
        }
}

int idx_read(const char *path, const struct idx_demand *demand,
             struct idx_array *array)
{
    static const struct idx_demand none = {0};
    struct idx_array read = {0};
    struct gz gz;
    int status = gz_open(&gz, path);

    if (status < 0)
        return status;
    status = read_header(&gz, demand ? demand : &none, &read);
    int64_t bytes = status < 0 ? 0 : hvd_dtype_size(read.dtype);
    for (int i = 0; i < read.ndim && status == 0; i++)
        bytes *= read.shape[i];
    if (status == 0)
        status = read_elements(&gz, bytes, &read);
    if (status == 0)
        status = check_end(&gz, bytes, read.shape[0]);
    gz_close(&gz);
    if (status < 0) {
        free(read.elements);
        return status;
    }
    swap_elements(read.elements, bytes, hvd_dtype_size(read.dtype));
    *array = read;
    return 0;
}
