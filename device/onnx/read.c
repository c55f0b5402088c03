/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read.c - reads the messages of an ONNX file into the structs of model.h.
 *
 * A table for each message says which fields are wanted, of what kind, and in
 * which member they go; fields that are not in it are skipped. Each message is
 * read twice: the first time counts what arrays will hold. Messages in messages
 * are followed to a fixed depth.
 */
#include <string.h>

#include "base/error.h"
#include "onnx/model.h"

/* A graph in a graph is three messages deeper, so this is 33 graphs. */
enum { MOST_DEPTH = 100 };

/* ------------------------------------------------------------------- tables */

/* Kinds from INTS on are repeated. */
enum kind {
    END,
    INT,
    FLOAT,
    TEXT,
    BYTES,
    MESSAGE,
    INTS,
    FLOATS,
    TEXTS,
    MESSAGES
};

struct message;

struct row {
    uint32_t number;
    enum kind kind;
    size_t member;                /* its offset */
    const struct message *inside; /* of messages */
};

struct message {
    const char *name;      /* for people */
    size_t size;           /* of the struct */
    void (*begin)(void *); /* sets what is not zero at first; NULL: nothing */
    struct row rows[12];   /* END ends them */
};

enum { MOST_ROWS = 12 };

static const struct message graph_message;

#define AT(tag, member) offsetof(struct ipu__onnx_##tag, member)

static void begin_entry(void *object)
{
    *(struct ipu__onnx_entry *)object = (struct ipu__onnx_entry){"", ""};
}

static const struct message entry_message = {
    "entry",
    sizeof(struct ipu__onnx_entry),
    begin_entry,
    {{1, TEXT, AT(entry, key), NULL}, {2, TEXT, AT(entry, value), NULL}}};

static void begin_tensor(void *object)
{
    ((struct ipu__onnx_tensor *)object)->name = "";
}

static const struct message tensor_message = {
    "tensor",
    sizeof(struct ipu__onnx_tensor),
    begin_tensor,
    {{1, INTS, AT(tensor, dims), NULL},
     {2, INT, AT(tensor, type), NULL},
     {3, BYTES, AT(tensor, segment), NULL},
     {8, TEXT, AT(tensor, name), NULL},
     {9, BYTES, AT(tensor, raw), NULL},
     {13, MESSAGES, AT(tensor, external), &entry_message},
     {14, INT, AT(tensor, location), NULL}}};

static void begin_dim(void *object)
{
    ((struct ipu__onnx_dim *)object)->extent = -1;
}

static const struct message dim_message = {
    "dimension",
    sizeof(struct ipu__onnx_dim),
    begin_dim,
    {{1, INT, AT(dim, extent), NULL}, {2, TEXT, AT(dim, symbol), NULL}}};

static const struct message shape_message = {
    "shape",
    sizeof(struct ipu__onnx_shape),
    NULL,
    {{1, MESSAGES, AT(shape, dims), &dim_message}}};

static const struct message tensor_type_message = {
    "tensor type",
    sizeof(struct ipu__onnx_tensor_type),
    NULL,
    {{1, INT, AT(tensor_type, type), NULL},
     {2, MESSAGE, AT(tensor_type, shape), &shape_message}}};

static const struct message type_message = {
    "type",
    sizeof(struct ipu__onnx_type),
    NULL,
    {{1, MESSAGE, AT(type, tensor), &tensor_type_message}}};

static void begin_value_info(void *object)
{
    ((struct ipu__onnx_value_info *)object)->name = "";
}

static const struct message value_info_message = {
    "value",
    sizeof(struct ipu__onnx_value_info),
    begin_value_info,
    {{1, TEXT, AT(value_info, name), NULL},
     {2, MESSAGE, AT(value_info, type), &type_message}}};

static void begin_attribute(void *object)
{
    ((struct ipu__onnx_attribute *)object)->name = "";
}

static const struct message attribute_message = {
    "attribute",
    sizeof(struct ipu__onnx_attribute),
    begin_attribute,
    {{1, TEXT, AT(attribute, name), NULL},
     {2, FLOAT, AT(attribute, f), NULL},
     {3, INT, AT(attribute, i), NULL},
     {4, BYTES, AT(attribute, s), NULL},
     {5, MESSAGE, AT(attribute, t), &tensor_message},
     {6, MESSAGE, AT(attribute, g), &graph_message},
     {7, FLOATS, AT(attribute, floats), NULL},
     {8, INTS, AT(attribute, ints), NULL},
     {9, TEXTS, AT(attribute, texts), NULL},
     {20, INT, AT(attribute, type), NULL},
     {21, TEXT, AT(attribute, referenced), NULL}}};

static void begin_node(void *object)
{
    struct ipu__onnx_node *node = object;

    node->name = node->op = node->domain = "";
}

static const struct message node_message = {
    "node",
    sizeof(struct ipu__onnx_node),
    begin_node,
    {{1, TEXTS, AT(node, inputs), NULL},
     {2, TEXTS, AT(node, outputs), NULL},
     {3, TEXT, AT(node, name), NULL},
     {4, TEXT, AT(node, op), NULL},
     {5, MESSAGES, AT(node, attributes), &attribute_message},
     {7, TEXT, AT(node, domain), NULL}}};

static void begin_graph(void *object)
{
    ((struct ipu__onnx_graph *)object)->name = "";
}

static const struct message graph_message = {
    "graph",
    sizeof(struct ipu__onnx_graph),
    begin_graph,
    {{1, MESSAGES, AT(graph, nodes), &node_message},
     {2, TEXT, AT(graph, name), NULL},
     {5, MESSAGES, AT(graph, initializers), &tensor_message},
     {11, MESSAGES, AT(graph, inputs), &value_info_message},
     {12, MESSAGES, AT(graph, outputs), &value_info_message},
     {15, BYTES, AT(graph, sparse), NULL}}};

static void begin_opset(void *object)
{
    ((struct ipu__onnx_opset *)object)->domain = "";
}

static const struct message opset_message = {
    "set of operators",
    sizeof(struct ipu__onnx_opset),
    begin_opset,
    {{1, TEXT, AT(opset, domain), NULL}, {2, INT, AT(opset, version), NULL}}};

static void begin_model(void *object)
{
    ((struct ipu__onnx_model *)object)->producer = "";
}

static const struct message model_message = {
    "model",
    sizeof(struct ipu__onnx_model),
    begin_model,
    {{1, INT, AT(model, ir_version), NULL},
     {2, TEXT, AT(model, producer), NULL},
     {7, MESSAGE, AT(model, graph), &graph_message},
     {8, MESSAGES, AT(model, opsets), &opset_message},
     {25, BYTES, AT(model, functions), NULL}}};

/* ------------------------------------------------------------------ reading */

struct reader {
    struct ipu__onnx_file *file;
    int depth;
};

/* The representation of all arrays of model.h. */
struct array {
    void *at;
    size_t count;
};

static int read_message(struct reader *r, const struct message *m,
                        struct ipu__wire w, void *object);

static int damaged(const struct reader *r, const struct message *m,
                   const unsigned char *at, const char *why)
{
    return ipu__fail(IPU_ERR_DATA,
                     "%s: this is no ONNX file, or it is damaged: at byte %td, "
                     "in a %s, %s",
                     r->file->path, at - r->file->bytes, m->name, why);
}

static int find_row(const struct message *m, uint32_t number)
{
    for (int i = 0; i < MOST_ROWS && m->rows[i].kind != END; i++)
        if (m->rows[i].number == number)
            return i;
    return -1;
}

static size_t size_of_element(const struct row *row)
{
    switch (row->kind) {
    case INTS: return sizeof(int64_t);
    case FLOATS: return sizeof(float);
    case TEXTS: return sizeof(const char *);
    default: return row->inside->size;
    }
}

/* Returns whether a field is of the type that its row says; numbers may be
 * packed. */
static bool fits(const struct row *row, enum ipu__wire_type type)
{
    switch (row->kind) {
    case INT: return type == IPU__WIRE_VARINT;
    case FLOAT: return type == IPU__WIRE_FIXED32;
    case INTS: return type == IPU__WIRE_VARINT || type == IPU__WIRE_BYTES;
    case FLOATS: return type == IPU__WIRE_FIXED32 || type == IPU__WIRE_BYTES;
    default: return type == IPU__WIRE_BYTES;
    }
}

static size_t count_elements(const struct row *row,
                             const struct ipu__wire_field *f)
{
    size_t n = 0;

    if (f->type != IPU__WIRE_BYTES || row->kind == TEXTS ||
        row->kind == MESSAGES)
        return 1;
    if (row->kind == FLOATS)
        return ipu__wire_left(&f->bytes) / 4;
    for (const unsigned char *c = f->bytes.at; c < f->bytes.end; c++)
        n += !(*c & 0x80);
    return n;
}

/* Makes the arrays of a message, with counts of 0. */
static int make_arrays(struct reader *r, const struct message *m,
                       struct ipu__wire w, char *object)
{
    size_t counts[MOST_ROWS] = {0};
    struct ipu__wire_field field;
    int status;

    while (status = ipu__wire_next(&w, &field), status > 0) {
        int i = find_row(m, field.number);

        if (i >= 0 && !fits(&m->rows[i], field.type))
            return damaged(r, m, w.at, "a field has another type");
        if (i >= 0 && m->rows[i].kind >= INTS)
            counts[i] += count_elements(&m->rows[i], &field);
    }
    if (status < 0)
        return damaged(r, m, w.at, "a field is not complete");
    for (int i = 0; i < MOST_ROWS; i++) {
        struct array array = {NULL, 0};

        if (counts[i] == 0)
            continue;
        array.at =
            ipu__onnx_keep(r->file, counts[i] * size_of_element(&m->rows[i]));
        if (!array.at)
            return IPU_ERR_DATA;
        memcpy(object + m->rows[i].member, &array, sizeof array);
    }
    return IPU_OK;
}

static int read_text(struct reader *r, const struct message *m,
                     const struct ipu__wire *bytes, void *to)
{
    size_t n = ipu__wire_left(bytes);
    char *text;

    if (memchr(bytes->at, 0, n))
        return damaged(r, m, bytes->at, "a text contains a NUL");
    text = ipu__onnx_keep(r->file, n + 1);
    if (!text)
        return IPU_ERR_DATA;
    memcpy(text, bytes->at, n);
    memcpy(to, &text, sizeof text);
    return IPU_OK;
}

static float float_of(uint64_t bits)
{
    uint32_t half = (uint32_t)bits;
    float value;

    memcpy(&value, &half, sizeof value);
    return value;
}

static int read_inside(struct reader *r, const struct message *outer,
                       const struct row *row, struct ipu__wire bytes,
                       void *object)
{
    int status;

    if (r->depth == MOST_DEPTH)
        return damaged(r, outer, bytes.at, "messages are nested too deeply");
    r->depth++;
    status = read_message(r, row->inside, bytes, object);
    r->depth--;
    return status;
}

static int read_single(struct reader *r, const struct message *m,
                       const struct row *row, const struct ipu__wire_field *f,
                       char *member)
{
    void *inside;

    switch (row->kind) {
    case INT: memcpy(member, &f->value, sizeof f->value); return IPU_OK;
    case FLOAT: *(float *)(void *)member = float_of(f->value); return IPU_OK;
    case TEXT: return read_text(r, m, &f->bytes, member);
    case BYTES: memcpy(member, &f->bytes, sizeof f->bytes); return IPU_OK;
    default:
        memcpy(&inside, member, sizeof inside);
        if (inside)
            return damaged(r, m, f->bytes.at, "a message occurs twice");
        inside = ipu__onnx_keep(r->file, row->inside->size);
        if (!inside)
            return IPU_ERR_DATA;
        memcpy(member, &inside, sizeof inside);
        return read_inside(r, m, row, f->bytes, inside);
    }
}

static bool read_number(const struct row *row, struct ipu__wire *packed,
                        struct array *array)
{
    uint64_t value;

    if (row->kind == INTS) {
        if (!ipu__wire_varint(packed, &value))
            return false;
        ((int64_t *)array->at)[array->count++] = (int64_t)value;
    } else {
        if (!ipu__wire_fixed(packed, 4, &value))
            return false;
        ((float *)array->at)[array->count++] = float_of(value);
    }
    return true;
}

/* Reads a number, or packed ones. */
static int read_numbers(struct reader *r, const struct message *m,
                        const struct row *row, const struct ipu__wire_field *f,
                        struct array *array)
{
    struct ipu__wire packed = f->bytes;

    if (f->type == IPU__WIRE_VARINT)
        ((int64_t *)array->at)[array->count++] = (int64_t)f->value;
    else if (f->type == IPU__WIRE_FIXED32)
        ((float *)array->at)[array->count++] = float_of(f->value);
    else
        while (packed.at < packed.end)
            if (!read_number(row, &packed, array))
                return damaged(r, m, packed.at, "a number is not complete");
    return IPU_OK;
}

static int read_repeated(struct reader *r, const struct message *m,
                         const struct row *row, const struct ipu__wire_field *f,
                         char *member)
{
    struct array array;
    char *element;
    int status;

    memcpy(&array, member, sizeof array);
    if (row->kind == INTS || row->kind == FLOATS) {
        status = read_numbers(r, m, row, f, &array);
    } else {
        element = (char *)array.at + array.count++ * size_of_element(row);
        status = row->kind == TEXTS ? read_text(r, m, &f->bytes, element)
                                    : read_inside(r, m, row, f->bytes, element);
    }
    memcpy(member, &array, sizeof array);
    return status;
}

static int read_message(struct reader *r, const struct message *m,
                        struct ipu__wire w, void *object)
{
    struct ipu__wire_field field;

    if (m->begin)
        m->begin(object);
    if (m == &tensor_message)
        ((struct ipu__onnx_tensor *)object)->self = w;
    IPU_TRY(make_arrays(r, m, w, object));
    while (ipu__wire_next(&w, &field) > 0) {
        int i = find_row(m, field.number);
        char *member;

        if (i < 0)
            continue;
        member = (char *)object + m->rows[i].member;
        IPU_TRY(m->rows[i].kind >= INTS
                    ? read_repeated(r, m, &m->rows[i], &field, member)
                    : read_single(r, m, &m->rows[i], &field, member));
    }
    return IPU_OK;
}

static int read_file(struct ipu__onnx_file *file, const struct message *m,
                     void *object)
{
    struct reader r = {file, 0};
    struct ipu__wire all = {file->bytes, file->bytes + file->size};

    memset(object, 0, m->size);
    return read_message(&r, m, all, object);
}

int ipu__onnx_read_model(struct ipu__onnx_file *file,
                         struct ipu__onnx_model *model)
{
    return read_file(file, &model_message, model);
}

int ipu__onnx_read_tensor(struct ipu__onnx_file *file,
                          struct ipu__onnx_tensor *tensor)
{
    return read_file(file, &tensor_message, tensor);
}
