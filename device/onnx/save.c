/* SPDX-License-Identifier: Apache-2.0 */
/*
 * save.c - writes a model again: the file's bytes, with other elements of the
 * initialisers that were trained.
 *
 * All fields are copied as they are, those too that the reader does not know,
 * but for three: an initialiser that is a variable gets the engine's elements;
 * one whose elements lie in another file gets them inside; and an Identity that
 * became a variable is replaced by an initialiser of its name.
 */
#include <stdlib.h>
#include <string.h>

#include "disk/disk.h"
#include "onnx/builder.h"

/* Numbers of fields (onnx.proto). */
enum { MODEL_GRAPH = 7 };
enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };

/* Before it, every initialiser is an input, too. */
enum { FREE_INITIALIZERS = 4 };

/* Protocol buffers have no more. */
static const size_t MOST_BYTES = ((size_t)1 << 31) - 1;

/* ------------------------------------------------------------------- output */

/* Bytes that are being written. */
struct output {
    unsigned char *data; /* owned */
    size_t count, room;
    bool failed; /* memory was short */
};

static void put(struct output *o, const void *data, size_t bytes)
{
    size_t room = 2 * o->room + bytes;
    unsigned char *more;

    if (!o->failed && bytes > o->room - o->count) {
        more = realloc(o->data, room);
        o->failed = !more;
        o->data = more ? more : o->data;
        o->room = more ? room : o->room;
    }
    if (o->failed || bytes == 0)
        return;
    memcpy(o->data + o->count, data, bytes);
    o->count += bytes;
}

static void put_varint(struct output *o, uint64_t value)
{
    unsigned char byte;

    for (; value > 127; value >>= 7) {
        byte = (unsigned char)(value & 127) | 128;
        put(o, &byte, 1);
    }
    byte = (unsigned char)value;
    put(o, &byte, 1);
}

static void put_int(struct output *o, uint32_t field, int64_t value)
{
    put_varint(o, field << 3 | IPU__WIRE_VARINT);
    put_varint(o, (uint64_t)value);
}

static void put_bytes(struct output *o, uint32_t field, const void *data,
                      size_t bytes)
{
    put_varint(o, field << 3 | IPU__WIRE_BYTES);
    put_varint(o, bytes);
    put(o, data, bytes);
}

/* Writes a message and frees it. */
static void put_message(struct output *o, uint32_t field,
                        struct output *message)
{
    o->failed |= message->failed;
    put_bytes(o, field, message->data, message->count);
    free(message->data);
    *message = (struct output){.count = 0};
}

/* ------------------------------------------------------------------ tensors */

/* A model while it is written. */
struct writer {
    ipu_onnx *model;
    ipu_engine *engine; /* NULL: as the file has it */
    struct output graph;
    struct output inputs; /* of the graph, that follow those of the file */
    size_t nodes, initializers; /* seen so far */
};

static void put_tensor(struct writer *w, const char *name,
                       const struct ipu__onnx_tensor *t, const void *data,
                       size_t bytes)
{
    struct output m = {.count = 0};

    for (size_t i = 0; i < t->dims.count; i++)
        put_int(&m, TENSOR_DIMS, t->dims.at[i]);
    put_int(&m, TENSOR_TYPE, t->type);
    put_bytes(&m, TENSOR_NAME, name, strlen(name));
    put_bytes(&m, TENSOR_RAW, data, bytes);
    put_message(&w->graph, GRAPH_INITIALIZER, &m);
}

/* Reads the elements of a variable from the engine, or those that the file has,
 * and writes them. */
static int put_variable(struct writer *w, const struct ipu__onnx_value *v)
{
    int64_t n = onnx__size(v);
    size_t each = ipu_onnx_type_bytes(v->type);
    size_t here = v->type == IPU_ONNX_DOUBLE ? sizeof(float) : each;
    struct ipu__onnx_elements e;
    void *data, *from = NULL;
    int status = ipu__new_array(&data, (size_t)n, each);

    if (status >= 0 && w->engine)
        status = ipu__new_array(&from, (size_t)n, here);
    if (status >= 0 && w->engine)
        status = ipu_engine_read(w->engine, v->name, from, (size_t)n * here);
    if (status >= 0 && w->engine)
        status = ipu_onnx_from_device(v->type, n, from, data);
    if (status >= 0 && !w->engine)
        status = ipu__onnx_decode(&w->model->file, v->initializer, &e);
    if (status >= 0 && !w->engine)
        ipu__onnx_pack(v->type, n, e.floats, NULL, data);
    if (status >= 0)
        put_tensor(w, v->name, v->initializer, data, (size_t)n * each);
    free(from);
    free(data);
    return status;
}

/* Writes a tensor whose elements lie in another file. */
static int put_external(struct writer *w, const struct ipu__onnx_tensor *t)
{
    size_t each = ipu_onnx_type_bytes((int32_t)t->type);
    struct ipu__onnx_elements shape;
    struct ipu__wire raw;
    size_t bytes;

    if (each == 0)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: tensor '%s' has elements in another file, of a "
                         "type that cannot be read",
                         w->model->file.path, t->name);
    IPU_TRY(ipu__onnx_set_shape(t->name, t->dims.count, t->dims.at, &shape));
    bytes = each * (size_t)ipu__onnx_count(shape.ndim, shape.extents);
    IPU_TRY(ipu__onnx_external(&w->model->file, t, bytes, &raw));
    put_tensor(w, t->name, t, raw.at, bytes);
    return IPU_OK;
}

/* -------------------------------------------------------------------- graph */

/* Returns the variable that an Identity became; NULL: the node is none. */
static const struct ipu__onnx_value *variable_of(
    const ipu_onnx *model, const struct ipu__onnx_node *node)
{
    return node->outputs.count == 1 && !strcmp(node->op, "Identity")
               ? ipu__onnx_variable(model, node->outputs.at[0])
               : NULL;
}

/* Writes an initialiser that took the place of an Identity. */
static int replace_node(struct writer *w, const struct ipu__onnx_value *v)
{
    struct output info = {.count = 0}, type = {.count = 0},
                  tensor = {.count = 0}, shape = {.count = 0};

    IPU_TRY(put_variable(w, v));
    if (w->model->model.ir_version >= FREE_INITIALIZERS)
        return IPU_OK;
    for (int32_t d = 0; d < v->ndim; d++) {
        struct output dim = {.count = 0};

        put_int(&dim, 1, v->extents[d]);
        put_message(&shape, 1, &dim);
    }
    put_int(&tensor, 1, v->type);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_bytes(&info, 1, v->name, strlen(v->name));
    put_message(&info, 2, &type);
    put_message(&w->inputs, GRAPH_INPUT, &info);
    return IPU_OK;
}

/* Writes a field of the graph in another form. Returns 1 if it did, and 0 if
 * the field is to be copied. */
static int change_field(struct writer *w, uint32_t number)
{
    const struct ipu__onnx_graph *graph = w->model->model.graph;
    const struct ipu__onnx_tensor *t;
    const struct ipu__onnx_value *v;

    if (number == GRAPH_NODE) {
        v = variable_of(w->model, &graph->nodes.at[w->nodes++]);
        if (v)
            IPU_TRY(replace_node(w, v));
        return v != NULL;
    }
    if (number != GRAPH_INITIALIZER)
        return 0;
    t = &graph->initializers.at[w->initializers++];
    v = ipu__onnx_variable(w->model, t->name);
    if (v)
        IPU_TRY(put_variable(w, v));
    else if (t->location == 1)
        IPU_TRY(put_external(w, t));
    return v || t->location == 1;
}

static int put_graph(struct writer *w, struct ipu__wire from)
{
    struct ipu__wire_field field;
    const unsigned char *begin = from.at;

    for (; ipu__wire_next(&from, &field) > 0; begin = from.at) {
        int changed = change_field(w, field.number);

        IPU_TRY(changed);
        if (!changed)
            put(&w->graph, begin, (size_t)(from.at - begin));
    }
    /* Whoever gives inputs by their places finds the file's own first. */
    put(&w->graph, w->inputs.data, w->inputs.count);
    w->graph.failed |= w->inputs.failed;
    w->inputs.count = 0;
    return IPU_OK;
}

/* Elements in other files are found for initialisers of the model alone. */
static bool has_external(const struct ipu__onnx_graph *graph, int depth)
{
    for (size_t i = 0; depth > 0 && i < graph->initializers.count; i++)
        if (graph->initializers.at[i].location == 1)
            return true;
    for (size_t i = 0; i < graph->nodes.count; i++)
        for (size_t j = 0; j < graph->nodes.at[i].attributes.count; j++) {
            const struct ipu__onnx_attribute *a =
                &graph->nodes.at[i].attributes.at[j];

            if ((a->t && a->t->location == 1) ||
                (a->g && has_external(a->g, depth + 1)))
                return true;
        }
    return false;
}

/* -------------------------------------------------------------------- model */

static int put_model(struct writer *w, struct output *o)
{
    struct ipu__wire from = {w->model->file.bytes,
                             w->model->file.bytes + w->model->file.size};
    struct ipu__wire_field field;
    const unsigned char *begin = from.at;

    for (; ipu__wire_next(&from, &field) > 0; begin = from.at)
        if (field.number == MODEL_GRAPH) {
            IPU_TRY(put_graph(w, field.bytes));
            put_message(o, MODEL_GRAPH, &w->graph);
        } else {
            put(o, begin, (size_t)(from.at - begin));
        }
    if (o->failed)
        return ipu__fail_memory(o->count);
    if (o->count > MOST_BYTES)
        return ipu__fail(IPU_ERR_DATA,
                         "%s: it would have more than 2 GiB, and no file of "
                         "ONNX has",
                         w->model->file.path);
    return IPU_OK;
}

static int write_file(const char *path, const struct output *o)
{
    int status = disk__replace(path, o->data, o->count,
                               DISK__DIRECT | DISK__SYNC | DISK__SWEEP);

    return status < 0 ? ipu__fail(IPU_ERR_DATA, "%s: cannot be written: %s",
                                  path, disk__text(status))
                      : IPU_OK;
}

int ipu_onnx_save(ipu_onnx *model, ipu_engine *engine, const char *path)
{
    struct writer w = {.model = model, .engine = engine};
    struct output o = {.count = 0};
    int status;

    if (!model || !path)
        return ipu__fail(IPU_ERR_ARGUMENT, "onnx: the model or path is NULL");
    if (has_external(model->model.graph, 0))
        return ipu__fail(IPU_ERR_DATA,
                         "%s: attributes of nodes have elements in other "
                         "files, which are not written",
                         model->file.path);
    status = put_model(&w, &o);
    if (status >= 0)
        status = write_file(path, &o);
    free(w.graph.data);
    free(w.inputs.data);
    free(o.data);
    return status;
}
