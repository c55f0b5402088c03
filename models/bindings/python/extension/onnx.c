/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.c - the type Onnx: a model of an ONNX file. */
#include <string.h>

#include "extension.h"

struct onnx {
    PyObject base;
    ipu_onnx *model; /* owned */
    bool busy;
};

static ipu_onnx *get(PyObject *self)
{
    struct onnx *onnx = (struct onnx *)self;

    return is_busy(onnx->busy, "model") ? NULL : onnx->model;
}

/* Onnx(path) */
static PyObject *make_onnx(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *path;
    PyThreadState *state;
    struct onnx *onnx;
    const char *name;
    int status;

    (void)type;
    (void)named;
    if (!PyArg_ParseTuple(args, "O:Onnx", &path) ||
        !get_text(path, "the path", &name))
        return NULL;
    onnx = PyObject_New(struct onnx, onnx_type);
    if (!onnx)
        return NULL;
    onnx->model = NULL;
    onnx->busy = false;
    state = PyEval_SaveThread();
    status = ipu_onnx_load(name, &onnx->model);
    PyEval_RestoreThread(state);
    if (status >= 0)
        return (PyObject *)onnx;
    onnx->model = NULL;
    raise_ipu(status);
    Py_DECREF(onnx);
    return NULL;
}

static void free_onnx(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);

    ipu_onnx_free(((struct onnx *)self)->model);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* ------------------------------------------------------- what the model has */

/* Returns (name, type, extents, symbols, bound, assigned); extents is None if
 * the rank is not known, and an open extent is -1. */
static PyObject *describe_value(const ipu_onnx_value *value)
{
    PyObject *symbols, *extents = NULL;

    if (value->ndim < 0)
        return Py_BuildValue("siOOii", value->name, (int)value->type, Py_None,
                             Py_None, (int)value->bound, (int)value->assigned);
    symbols = PyTuple_New(value->ndim);
    for (int32_t i = 0; symbols && i < value->ndim; i++) {
        PyObject *symbol = Py_BuildValue("z", value->symbols[i]);

        if (!symbol || PyTuple_SetItem(symbols, i, symbol) < 0)
            Py_CLEAR(symbols);
    }
    if (symbols)
        extents = tuple_of(value->extents, value->ndim);
    if (extents)
        return Py_BuildValue("siNNii", value->name, (int)value->type, extents,
                             symbols, (int)value->bound, (int)value->assigned);
    Py_XDECREF(symbols);
    return NULL;
}

typedef int describe_fn(const ipu_onnx *model, int32_t i,
                        ipu_onnx_value *value);

/* Lists all values of a kind. */
static PyObject *list(PyObject *self, describe_fn *next)
{
    ipu_onnx *model = get(self);
    ipu_onnx_value value = {.size = sizeof value};
    PyObject *all = model ? PyList_New(0) : NULL;

    for (int32_t i = 0; all && next(model, i, &value) > 0; i++) {
        PyObject *one = describe_value(&value);

        if (!one || PyList_Append(all, one) < 0)
            Py_CLEAR(all);
        Py_XDECREF(one);
    }
    return all;
}

static PyObject *inputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return list(self, ipu_onnx_input);
}

static PyObject *outputs(PyObject *self, PyObject *unused)
{
    (void)unused;
    return list(self, ipu_onnx_output);
}

static PyObject *variables(PyObject *self, PyObject *unused)
{
    (void)unused;
    return list(self, ipu_onnx_variable);
}

static PyObject *refusals(PyObject *self, PyObject *unused)
{
    ipu_onnx *model = get(self);
    PyObject *all = model ? PyList_New(0) : NULL;
    const char *text;

    (void)unused;
    for (int32_t i = 0; all && (text = ipu_onnx_refusal(model, i)); i++) {
        PyObject *one =
            PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");

        if (!one || PyList_Append(all, one) < 0)
            Py_CLEAR(all);
        Py_XDECREF(one);
    }
    return all;
}

/* ----------------------------------------------------------------- building */

/* set_dim(name or None, extent) */
static PyObject *set_dim(PyObject *self, PyObject *const *args,
                         Py_ssize_t nargs)
{
    ipu_onnx *model = get(self);
    const char *name = NULL;
    int64_t extent;

    if (!model || !has_arguments("set_dim", nargs, 2) ||
        (args[0] != Py_None && !get_text(args[0], "the dimension", &name)) ||
        !get_int(args[1], "the extent", 0, INT64_MAX, &extent))
        return NULL;
    return none_or_ipu(ipu_onnx_set_dim(model, name, extent));
}

/* offer(name, type, shape, buffer) */
static PyObject *offer(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    ipu_onnx *model = get(self);
    int64_t extents[IPU_MAX_DIMS];
    struct memory *memory;
    int32_t type, ndim;
    const char *name;
    size_t bytes;
    int status = 0;

    if (!model || !has_arguments("offer", nargs, 4) ||
        !get_text(args[0], "the name", &name) ||
        !get_int32(args[1], "the type", &type) ||
        !get_list(args[2], "the shape", IPU_MAX_DIMS, extents, &ndim) ||
        !(memory = memory_new(args[3], false)))
        return NULL;
    bytes = ipu_onnx_type_bytes(type);
    for (int32_t i = 0; i < ndim; i++)
        bytes *= (size_t)extents[i];
    if ((Py_ssize_t)bytes == memory->buffer.len)
        status = ipu_onnx_offer(model, name, type, ndim, extents,
                                memory->buffer.buf);
    else
        PyErr_Format(PyExc_ValueError, "input '%s' has %zd bytes, not %zu",
                     name, memory->buffer.len, bytes);
    Py_DECREF(memory);
    return PyErr_Occurred() ? NULL : none_or_ipu(status);
}

static PyObject *no_gradients(PyObject *self, PyObject *unused)
{
    ipu_onnx *model = get(self);

    (void)unused;
    return model ? none_or_ipu(ipu_onnx_no_gradients(model)) : NULL;
}

/* train(name or None): initialisers become variables */
static PyObject *train(PyObject *self, PyObject *name)
{
    ipu_onnx *model = get(self);
    const char *text = NULL;

    if (!model || (name != Py_None && !get_text(name, "the name", &text)))
        return NULL;
    return none_or_ipu(ipu_onnx_train(model, text));
}

/* freeze(pattern): initialisers stay constant */
static PyObject *freeze(PyObject *self, PyObject *pattern)
{
    ipu_onnx *model = get(self);
    const char *text;
    int status;

    if (!model || !get_text(pattern, "the pattern", &text))
        return NULL;
    status = ipu_onnx_freeze(model, text);
    return none_or_ipu(status < 0 ? status : 0);
}

static PyObject *build(PyObject *self, PyObject *graph)
{
    struct onnx *onnx = (struct onnx *)self;
    struct graph *of = (struct graph *)graph;
    PyThreadState *state;
    int status;

    if (!get(self))
        return NULL;
    if (!PyObject_TypeCheck(graph, graph_type)) {
        PyErr_Format(PyExc_TypeError, "%R is no graph", graph);
        return NULL;
    }
    if (!graph_get(of))
        return NULL;
    onnx->busy = of->busy = true;
    state = PyEval_SaveThread();
    status = ipu_onnx_build(onnx->model, of->graph);
    PyEval_RestoreThread(state);
    onnx->busy = of->busy = false;
    return none_or_ipu(status);
}

/* Writes the variables of the file to an engine, whose next run gets a number,
 * or saves those of the engine to a path. */
static PyObject *with_engine(PyObject *self, PyObject *engine, const char *path,
                             int32_t run)
{
    struct onnx *onnx = (struct onnx *)self;
    struct engine *of = (struct engine *)engine;
    PyThreadState *state;
    int status;

    if (!get(self))
        return NULL;
    if (!PyObject_TypeCheck(engine, engine_type)) {
        PyErr_Format(PyExc_TypeError, "%R is no engine", engine);
        return NULL;
    }
    if (is_busy(of->busy, "engine"))
        return NULL;
    if (!of->engine) {
        PyErr_SetString(PyExc_RuntimeError, "the engine is closed");
        return NULL;
    }
    onnx->busy = of->busy = true;
    state = PyEval_SaveThread();
    status = path ? ipu_onnx_save(onnx->model, of->engine, path)
                  : ipu_onnx_write_variables(onnx->model, of->engine);
    if (status >= 0 && !path)
        status = ipu_onnx_set_run(onnx->model, of->engine, run);
    PyEval_RestoreThread(state);
    onnx->busy = of->busy = false;
    return none_or_ipu(status);
}

static PyObject *write_variables(PyObject *self, PyObject *const *args,
                                 Py_ssize_t nargs)
{
    int32_t run;

    if (!has_arguments("write_variables", nargs, 2) ||
        !get_int32(args[1], "the run", &run))
        return NULL;
    return with_engine(self, args[0], NULL, run);
}

static PyObject *save(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    const char *path;

    if (!has_arguments("save", nargs, 2) ||
        !get_text(args[1], "the path", &path))
        return NULL;
    return with_engine(self, args[0], path, 0);
}

/* --------------------------------------------------------------- conversion */

/* Checks that both buffers of a conversion have so many elements. */
static bool have_elements(int32_t type, int64_t count,
                          const struct memory *host,
                          const struct memory *device)
{
    static const size_t sizes[IPU_NUM_DTYPES] = {4, 4, 2, 2};
    const ipu_dtype dtype = ipu_onnx_type_dtype(type);

    if (dtype >= 0 &&
        (size_t)host->buffer.len == (size_t)count * ipu_onnx_type_bytes(type) &&
        (size_t)device->buffer.len == (size_t)count * sizes[dtype])
        return true;
    PyErr_Format(PyExc_ValueError,
                 "buffers of %zd and %zd bytes have not %lld elements of type "
                 "%d",
                 host->buffer.len, device->buffer.len, (long long)count,
                 (int)type);
    return false;
}

typedef int convert_fn(int32_t type, int64_t count, const void *from, void *to);

/* (type, count, from, to): from and to are buffers of that many elements */
static PyObject *convert(PyObject *const *args, Py_ssize_t nargs,
                         convert_fn *function)
{
    struct memory *from = NULL, *to = NULL;
    PyObject *done = NULL;
    int64_t count;
    int32_t type;

    if (has_arguments("convert", nargs, 4) &&
        get_int32(args[0], "the type", &type) &&
        get_int(args[1], "the count", 0, INT64_MAX, &count) &&
        (from = memory_new(args[2], false)) &&
        (to = memory_new(args[3], true)) &&
        (function == ipu_onnx_to_device ? have_elements(type, count, from, to)
                                        : have_elements(type, count, to, from)))
        done = none_or_ipu(
            function(type, count, from->buffer.buf, to->buffer.buf));
    Py_XDECREF((PyObject *)from);
    Py_XDECREF((PyObject *)to);
    return done;
}

static PyObject *to_device(PyObject *self, PyObject *const *args,
                           Py_ssize_t nargs)
{
    (void)self;
    return convert(args, nargs, ipu_onnx_to_device);
}

static PyObject *from_device(PyObject *self, PyObject *const *args,
                             Py_ssize_t nargs)
{
    (void)self;
    return convert(args, nargs, ipu_onnx_from_device);
}

PyObject *onnx_type_new(void)
{
    static PyMethodDef methods[] = {
        {"inputs", inputs, METH_NOARGS,
         "inputs(): [(name, type, extents, symbols, bound, assigned)]"},
        {"outputs", outputs, METH_NOARGS, "outputs(): like inputs()"},
        {"variables", variables, METH_NOARGS, "variables(): like inputs()"},
        {"refusals", refusals, METH_NOARGS, "refusals(): [text]"},
        {"set_dim", FAST(set_dim), METH_FASTCALL, "set_dim(name, extent)"},
        {"offer", FAST(offer), METH_FASTCALL,
         "offer(name, type, shape, buffer)"},
        {"no_gradients", no_gradients, METH_NOARGS, "no_gradients()"},
        {"train", train, METH_O, "train(name or None)"},
        {"freeze", freeze, METH_O, "freeze(pattern)"},
        {"build", build, METH_O, "build(graph)"},
        {"write_variables", FAST(write_variables), METH_FASTCALL,
         "write_variables(engine, run)"},
        {"save", FAST(save), METH_FASTCALL, "save(engine, path)"},
        {"to_device", FAST(to_device), METH_FASTCALL | METH_STATIC,
         "to_device(type, count, from, to)"},
        {"from_device", FAST(from_device), METH_FASTCALL | METH_STATIC,
         "from_device(type, count, from, to)"},
        {NULL, NULL, 0, NULL}};
    PyType_Slot slots[] = {{Py_tp_new, make_onnx},
                           {Py_tp_dealloc, free_onnx},
                           {Py_tp_methods, methods},
                           {0, NULL}};

    return type_new("ipu._ipu.Onnx", "Onnx(path)", sizeof(struct onnx), slots);
}
