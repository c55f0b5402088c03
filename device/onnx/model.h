/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - an ONNX model as its file has it: nodes, tensors, types. Nothing is
 * computed yet, and elements stay in the bytes of the file.
 *
 * Everything belongs to the struct ipu__onnx_file, and lives as long.
 */
#ifndef IPU_ONNX_MODEL_H
#define IPU_ONNX_MODEL_H

#include "base/shape.h"
#include "onnx/wire.h"

/* A file in memory, and what was read from it. */
struct ipu__onnx_file {
    char *path;                   /* owned */
    unsigned char *bytes;         /* owned */
    size_t size;                  /* bytes of the file */
    struct ipu__onnx_piece *kept; /* owned memory of ipu__onnx_keep */
    size_t kept_bytes;
    size_t outside_bytes; /* read from other files */
};

/* Arrays in a file's memory. */
struct ipu__onnx_ints {
    int64_t *at;
    size_t count;
};
struct ipu__onnx_floats {
    float *at;
    size_t count;
};
struct ipu__onnx_texts {
    const char **at;
    size_t count;
};

/* A name and a text: where external data lie. */
struct ipu__onnx_entry {
    const char *key, *value;
};
struct ipu__onnx_entries {
    struct ipu__onnx_entry *at;
    size_t count;
};

struct ipu__onnx_tensor {
    const char *name; /* never NULL */
    struct ipu__onnx_ints dims;
    int64_t type;          /* IPU_ONNX_* */
    struct ipu__wire raw;  /* elements as bytes; at NULL: none */
    struct ipu__wire self; /* the message, in which typed elements are */
    int64_t location;      /* 1: the elements are in another file */
    struct ipu__onnx_entries external;
    struct ipu__wire segment; /* at not NULL: a part of a tensor only */
};
struct ipu__onnx_tensors {
    struct ipu__onnx_tensor *at;
    size_t count;
};

/* A dimension of a value: an extent, or -1 and perhaps a name. */
struct ipu__onnx_dim {
    int64_t extent;
    const char *symbol; /* NULL: none */
};
struct ipu__onnx_dims {
    struct ipu__onnx_dim *at;
    size_t count;
};
struct ipu__onnx_shape {
    struct ipu__onnx_dims dims;
};
struct ipu__onnx_tensor_type {
    int64_t type;
    struct ipu__onnx_shape *shape; /* NULL: not even the rank is known */
};
struct ipu__onnx_type {
    struct ipu__onnx_tensor_type *tensor; /* NULL: a sequence, a map, ... */
};
struct ipu__onnx_value_info {
    const char *name; /* never NULL */
    struct ipu__onnx_type *type;
};
struct ipu__onnx_value_infos {
    struct ipu__onnx_value_info *at;
    size_t count;
};

struct ipu__onnx_attribute {
    const char *name;
    float f;
    int64_t i;
    struct ipu__wire s;
    struct ipu__onnx_tensor *t;
    struct ipu__onnx_graph *g;
    struct ipu__onnx_floats floats;
    struct ipu__onnx_ints ints;
    struct ipu__onnx_texts texts;
    int64_t type;           /* IPU__ONNX_AN_INT, ... */
    const char *referenced; /* not NULL: an attribute of a function */
};
struct ipu__onnx_attributes {
    struct ipu__onnx_attribute *at;
    size_t count;
};

/* The types of attributes, by their numbers in files. */
enum {
    IPU__ONNX_A_FLOAT = 1,
    IPU__ONNX_AN_INT = 2,
    IPU__ONNX_A_STRING = 3,
    IPU__ONNX_A_TENSOR = 4,
    IPU__ONNX_A_GRAPH = 5,
    IPU__ONNX_FLOATS = 6,
    IPU__ONNX_INTS = 7,
    IPU__ONNX_STRINGS = 8
};

struct ipu__onnx_node {
    struct ipu__onnx_texts inputs, outputs; /* "": left out */
    const char *name;                       /* may be "" */
    const char *op, *domain;                /* never NULL */
    struct ipu__onnx_attributes attributes;
};
struct ipu__onnx_nodes {
    struct ipu__onnx_node *at;
    size_t count;
};

struct ipu__onnx_graph {
    const char *name;
    struct ipu__onnx_nodes nodes;
    struct ipu__onnx_tensors initializers;
    struct ipu__onnx_value_infos inputs, outputs;
    struct ipu__wire sparse; /* at not NULL: there are sparse initializers */
};

/* An imported set of operators. */
struct ipu__onnx_opset {
    const char *domain;
    int64_t version;
};
struct ipu__onnx_opsets {
    struct ipu__onnx_opset *at;
    size_t count;
};

struct ipu__onnx_model {
    int64_t ir_version;
    const char *producer;
    struct ipu__onnx_graph *graph; /* NULL: the file has none */
    struct ipu__onnx_opsets opsets;
    struct ipu__wire functions; /* at not NULL: there are functions */
};

/* ------------------------------------------------------------------ reading */

/* Reads a file into memory. Returns IPU_ERR_DATA, naming it, if that fails.
 * Close it in either case. */
int ipu__onnx_file_open(struct ipu__onnx_file *file, const char *path);
void ipu__onnx_file_close(struct ipu__onnx_file *file);

/* Returns zeroed memory that lives as long as the file; NULL, with the error
 * set, if there is too little or the file asks for too much. */
void *ipu__onnx_keep(struct ipu__onnx_file *file, size_t bytes);

/* The same, without that limit: for what another file is known to hold. */
void *ipu__onnx_keep_outside(struct ipu__onnx_file *file, size_t bytes);

/* Read a file's contents: a model, or one tensor. Return IPU_ERR_DATA, naming
 * the file, if it is damaged. */
int ipu__onnx_read_model(struct ipu__onnx_file *file,
                         struct ipu__onnx_model *model);
int ipu__onnx_read_tensor(struct ipu__onnx_file *file,
                          struct ipu__onnx_tensor *tensor);

#endif
