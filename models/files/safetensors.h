/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors.h - reads and writes files of named tensors in the safetensors
 * format: eight bytes give the length of a JSON object, which maps the name of
 * each tensor to its dtype, shape, and first and last byte after the object;
 * then the bytes. All numbers are little endian. The object's "__metadata__"
 * maps texts to texts.
 *
 * Functions return 0 or a negative HVD_ERR_* status, with the text kept
 * (problem.h), which begins with the path.
 */
#ifndef MODELS_SAFETENSORS_H
#define MODELS_SAFETENSORS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* The dtypes of the format: name in the file, bits of an element. */
#define SAFETENSORS_DTYPES(X)                                                  \
    X(BOOL, 8)                                                                 \
    X(F4, 4)                                                                   \
    X(F6_E2M3, 6)                                                              \
    X(F6_E3M2, 6)                                                              \
    X(U8, 8)                                                                   \
    X(I8, 8)                                                                   \
    X(F8_E5M2, 8)                                                              \
    X(F8_E4M3, 8)                                                              \
    X(F8_E8M0, 8)                                                              \
    X(I16, 16)                                                                 \
    X(U16, 16)                                                                 \
    X(F16, 16)                                                                 \
    X(BF16, 16)                                                                \
    X(I32, 32)                                                                 \
    X(U32, 32)                                                                 \
    X(F32, 32)                                                                 \
    X(C64, 64)                                                                 \
    X(F64, 64)                                                                 \
    X(I64, 64)                                                                 \
    X(U64, 64)

enum safetensors_dtype {
#define SAFETENSORS_ENUM(name, bits) SAFETENSORS_##name,
    SAFETENSORS_DTYPES(SAFETENSORS_ENUM)
#undef SAFETENSORS_ENUM
        SAFETENSORS_NUM_DTYPES
};

/* Returns the dtype's name in a file: "F32". */
const char *safetensors_name(enum safetensors_dtype dtype);

/* Returns the bits of an element. */
unsigned safetensors_bits(enum safetensors_dtype dtype);

/* Returns the dtype of hvd.h that has the same elements, and the other way
 * round; -1: there is none. */
int safetensors_to_hvd(enum safetensors_dtype dtype);
int safetensors_from_hvd(int dtype);

struct safetensors_tensor {
    const char *name;
    enum safetensors_dtype dtype;
    int32_t ndim;
    const int64_t *shape; /* [ndim] */
    int64_t count;        /* elements */
    size_t bytes;
    const void *data; /* of a file that is read: perhaps not aligned; NULL if
                         bytes is 0 */
};

/* ------------------------------------------------------------------ reading */

/* A file that is open. Everything here is owned by it. Any number of threads
 * may read it at once. */
struct safetensors {
    char *path;
    int count;
    struct safetensors_tensor *tensors; /* [count], as they lie in the file */
    json_t *metadata;                   /* texts by name; NULL: none */
    /* The rest is for safetensors.c. */
    json_t *header, *numbers; /* numbers: of the tensors, by name */
    unsigned char *map;
    int64_t *shapes;
    size_t length; /* of the file */
};

/*
 * Opens a file, and maps it into memory: the data is read from the disk when it
 * is looked at. Another file may take its place meanwhile (rename); but no
 * program may cut this one short, for then reading it ends the process
 * (SIGBUS).
 *
 * Nothing in the file is trusted. A file is refused as HVD_ERR_FILE if its
 * header is no JSON, has a name twice, a dtype that is not of the format, or a
 * shape that is none, or if its tensors do not cover the bytes behind the
 * header exactly, one after the other, as the format demands.
 */
int safetensors_open(const char *path, struct safetensors **file);
void safetensors_close(struct safetensors *file); /* NULL is accepted */

/* Returns a tensor, valid until the file is closed; NULL: there is none. */
const struct safetensors_tensor *safetensors_find(
    const struct safetensors *file, const char *name);

/* ------------------------------------------------------------------ writing */

/* Sets count and bytes of a tensor by its dtype and shape. HVD_ERR_ARGUMENT if
 * that is no tensor, or larger than any file. */
int safetensors_measure(struct safetensors_tensor *tensor);

/* Puts tensors with larger elements first, else in their order, so that the
 * data of each lies at a multiple of its element's size. */
int safetensors_order(struct safetensors_tensor *tensors, int count);

/*
 * Returns what a file of these tensors, in this order, begins with: length and
 * header, padded so that the data begins at a multiple of eight bytes. The data
 * of the tensors follows, without gaps. metadata may be NULL.
 * The caller frees it; NULL: no memory, or a name is not UTF-8 or stands twice,
 * and the text is kept.
 */
char *safetensors_header(const struct safetensors_tensor *tensors, int count,
                         const json_t *metadata, size_t *bytes);

/* Writes a file of bytes of a header and of the tensors' data, which appears
 * whole or not at all. flags: of disk.h. HVD_ERR_FILE with the text kept. */
int safetensors_write_file(const char *path, const char *header, size_t bytes,
                           const struct safetensors_tensor *tensors, int count,
                           int flags);

/* Does the same with the header that safetensors_header makes. */
int safetensors_save(const char *path, const struct safetensors_tensor *tensors,
                     int count, const json_t *metadata, int flags);

#endif
