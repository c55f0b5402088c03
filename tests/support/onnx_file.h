/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onnx_file.h - writes ONNX models for tests, field by field, so that they can
 * be wrong in any way.
 *
 *     struct message node = onnx_node("Relu", "x", "y");
 *     message_put(&graph, ONNX_GRAPH_NODE, &node);
 *
 * Numbers of fields are those of onnx.proto.
 */
#ifndef HVD_TESTS_ONNX_FILE_H
#define HVD_TESTS_ONNX_FILE_H

#include <stdint.h>
#include <string.h>

#include "checks.h"
#include "folder.h"

enum { MESSAGE_ROOM = 4096 };

struct message {
    unsigned char data[MESSAGE_ROOM];
    size_t count;
};

static inline void message_byte(struct message *m, unsigned byte)
{
    ck_assert_uint_lt(m->count, sizeof m->data);
    m->data[m->count++] = (unsigned char)byte;
}

static inline void message_varint(struct message *m, uint64_t value)
{
    for (; value > 127; value >>= 7)
        message_byte(m, (unsigned)(value & 127) | 128);
    message_byte(m, (unsigned)value);
}

static inline void message_int(struct message *m, unsigned field, int64_t value)
{
    message_varint(m, field << 3);
    message_varint(m, (uint64_t)value);
}

static inline void message_bytes(struct message *m, unsigned field,
                                 const void *data, size_t count)
{
    message_varint(m, field << 3 | 2);
    message_varint(m, count);
    for (size_t i = 0; i < count; i++)
        message_byte(m, ((const unsigned char *)data)[i]);
}

static inline void message_text(struct message *m, unsigned field,
                                const char *text)
{
    message_bytes(m, field, text, strlen(text));
}

static inline void message_float(struct message *m, unsigned field, float value)
{
    unsigned char bytes[4];

    memcpy(bytes, &value, 4);
    message_varint(m, field << 3 | 5);
    for (int i = 0; i < 4; i++)
        message_byte(m, bytes[i]);
}

static inline void message_put(struct message *m, unsigned field,
                               const struct message *inside)
{
    message_bytes(m, field, inside->data, inside->count);
}

/* ---------------------------------------------------------------- of ONNX */

/* Words are separated by spaces; "-" stands for an empty name. */
static inline void onnx_words(struct message *m, unsigned field,
                              const char *words)
{
    while (*words) {
        size_t n = strcspn(words, " ");

        if (n == 1 && *words == '-')
            message_bytes(m, field, "", 0);
        else
            message_bytes(m, field, words, n);
        words += n + (words[n] == ' ');
    }
}

static inline struct message onnx_node(const char *op, const char *inputs,
                                       const char *outputs)
{
    struct message m = {.count = 0};

    onnx_words(&m, 1, inputs);
    onnx_words(&m, 2, outputs);
    message_text(&m, 3, outputs);
    message_text(&m, 4, op);
    return m;
}

static inline void onnx_int_attribute(struct message *node, const char *name,
                                      int64_t value)
{
    struct message m = {.count = 0};

    message_text(&m, 1, name);
    message_int(&m, 3, value);
    message_int(&m, 20, 2);
    message_put(node, 5, &m);
}

/* A tensor with its shape alone; type is that of ONNX. */
static inline struct message onnx_tensor(const char *name, int64_t type,
                                         int ndim, const int64_t *dims)
{
    struct message m = {.count = 0};

    for (int i = 0; i < ndim; i++)
        message_int(&m, 1, dims[i]);
    message_int(&m, 2, type);
    message_text(&m, 8, name);
    return m;
}

/* An input or output; an extent of -1 has the name "batch". */
static inline struct message onnx_value(const char *name, int64_t type,
                                        int ndim, const int64_t *dims)
{
    struct message shape = {.count = 0}, tensor = {.count = 0};
    struct message kind = {.count = 0}, m = {.count = 0};

    for (int i = 0; i < ndim; i++) {
        struct message dim = {.count = 0};

        if (dims[i] < 0)
            message_text(&dim, 2, "batch");
        else
            message_int(&dim, 1, dims[i]);
        message_put(&shape, 1, &dim);
    }
    message_int(&tensor, 1, type);
    message_put(&tensor, 2, &shape);
    message_put(&kind, 1, &tensor);
    message_text(&m, 1, name);
    message_put(&m, 2, &kind);
    return m;
}

/* A model of a graph and a version of the operators, which comes last: what is
 * cut off is no model. */
static inline struct message onnx_model(const struct message *graph,
                                        int64_t version)
{
    struct message m = {.count = 0}, set = {.count = 0};

    message_int(&m, 1, 8);
    message_put(&m, 7, graph);
    message_int(&set, 2, version);
    message_put(&m, 8, &set);
    return m;
}

/* Fields of a graph. */
enum {
    ONNX_GRAPH_NODE = 1,
    ONNX_GRAPH_INITIALIZER = 5,
    ONNX_GRAPH_INPUT = 11,
    ONNX_GRAPH_OUTPUT = 12
};

/*
 * Returns a graph with one of most things: y = relu(x w + b), reshaped to
 * [-1, 2] by way of Constant, and sums of it. x is [batch, 3], w is raw, b is
 * typed.
 */
static inline struct message onnx_good_graph(void)
{
    static const float w[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const int64_t two[] = {2}, three_four[] = {3, 4}, four[] = {4};
    const int64_t open[] = {-1, 3}, pairs[] = {-1, 2}, rows[] = {-1, 1};
    struct message g = {.count = 0}, m, constant, shape;

    m = onnx_node("MatMul", "x w", "p");
    message_put(&g, ONNX_GRAPH_NODE, &m);
    m = onnx_node("Add", "p b", "q");
    message_put(&g, ONNX_GRAPH_NODE, &m);
    m = onnx_node("Relu", "q", "r");
    message_put(&g, ONNX_GRAPH_NODE, &m);
    shape = onnx_tensor("shape", 7, 1, two);
    message_int(&shape, 7, -1);
    message_int(&shape, 7, 2);
    constant = onnx_node("Constant", "", "s");
    m.count = 0;
    message_text(&m, 1, "value");
    message_put(&m, 5, &shape);
    message_int(&m, 20, 4);
    message_put(&constant, 5, &m);
    message_put(&g, ONNX_GRAPH_NODE, &constant);
    m = onnx_node("Reshape", "r s", "y");
    message_put(&g, ONNX_GRAPH_NODE, &m);
    m = onnx_node("ReduceSum", "y -", "z");
    onnx_int_attribute(&m, "keepdims", 1);
    message_put(&g, ONNX_GRAPH_NODE, &m);
    m = onnx_tensor("w", 1, 2, three_four);
    message_bytes(&m, 9, w, sizeof w);
    message_put(&g, ONNX_GRAPH_INITIALIZER, &m);
    m = onnx_tensor("b", 1, 1, four);
    message_bytes(&m, 4, w, 3 * sizeof *w);
    message_float(&m, 4, -1000);
    message_put(&g, ONNX_GRAPH_INITIALIZER, &m);
    m = onnx_value("x", 1, 2, open);
    message_put(&g, ONNX_GRAPH_INPUT, &m);
    m = onnx_value("y", 1, 2, pairs);
    message_put(&g, ONNX_GRAPH_OUTPUT, &m);
    m = onnx_value("z", 1, 2, rows);
    message_put(&g, ONNX_GRAPH_OUTPUT, &m);
    return g;
}

/* Writes a model into the test's folder, and returns its path. */
static inline const char *onnx_write(const char *name, const struct message *m)
{
    const char *path = in_folder(name);

    file_write(path, m->data, m->count);
    return path;
}

#endif
