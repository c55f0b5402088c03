/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - the type Engine: a chip with a program loaded.
 *
 * Streams are connected to memory of Python's objects, which the engine keeps
 * until another object is connected. A run releases the interpreter's lock.
 */
#include <string.h>

#include "extension.h"

/* Returns the engine; NULL with an exception if it is closed, or in use. */
static ipu_engine *get(PyObject *self)
{
    struct engine *engine = (struct engine *)self;

    if (is_busy(engine->busy, "engine"))
        return NULL;
    if (!engine->engine)
        PyErr_SetString(PyExc_RuntimeError, "the engine is closed");
    return engine->engine;
}

/* Engine(executable) */
static PyObject *make_engine(PyTypeObject *type, PyObject *args,
                             PyObject *named)
{
    PyObject *executable;
    struct engine *engine;
    int status;

    (void)type;
    (void)named;
    if (!PyArg_ParseTuple(args, "O:Engine", &executable))
        return NULL;
    if (!PyObject_TypeCheck(executable, executable_type)) {
        PyErr_Format(PyExc_TypeError, "%R is no executable", executable);
        return NULL;
    }
    engine = PyObject_New(struct engine, engine_type);
    if (!engine)
        return NULL;
    engine->engine = NULL;
    engine->busy = false;
    engine->executable = Py_NewRef(executable);
    engine->buffers = PyDict_New();
    status = ipu_engine_new(((struct executable *)executable)->executable,
                            &engine->engine);
    if (engine->buffers && status >= 0)
        return (PyObject *)engine;
    if (status < 0) {
        engine->engine = NULL;
        raise_ipu(status);
    }
    Py_DECREF(engine);
    return NULL;
}

/* The buffers outlive the engine, which is connected to them. */
static void free_engine(PyObject *self)
{
    struct engine *engine = (struct engine *)self;
    PyTypeObject *type = Py_TYPE(self);

    ipu_engine_free(engine->engine);
    Py_XDECREF(engine->buffers);
    Py_XDECREF(engine->executable);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Frees the device's memory now. Closing twice is allowed. */
static PyObject *close_engine(PyObject *self, PyObject *unused)
{
    struct engine *engine = (struct engine *)self;

    (void)unused;
    if (is_busy(engine->busy, "engine"))
        return NULL;
    ipu_engine_free(engine->engine);
    engine->engine = NULL;
    PyDict_Clear(engine->buffers);
    Py_RETURN_NONE;
}

/* connect(name, buffer, written): the stream works on the buffer */
static PyObject *connect_stream(PyObject *self, PyObject *const *args,
                                Py_ssize_t nargs)
{
    ipu_engine *engine = get(self);
    struct memory *memory;
    const char *name;
    int status;

    if (!engine || !has_arguments("connect", nargs, 3) ||
        !get_text(args[0], "the name", &name) ||
        !(memory = memory_new(args[1], args[2] == Py_True)))
        return NULL;
    status = ipu_engine_connect(engine, name, memory->buffer.buf,
                                (size_t)memory->buffer.len);
    if (status < 0)
        raise_ipu(status);
    else if (PyDict_SetItem(((struct engine *)self)->buffers, args[0],
                            (PyObject *)memory) < 0) {
        ipu_engine_connect(engine, name, NULL, 0);
        status = -1;
    }
    Py_DECREF(memory);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

/* place(name, buffer): the variable lives in the buffer from now on, and takes
 * its elements */
static PyObject *place_variable(PyObject *self, PyObject *const *args,
                                Py_ssize_t nargs)
{
    ipu_engine *engine = get(self);
    struct memory *memory;
    const char *name;
    int status;

    if (!engine || !has_arguments("place", nargs, 2) ||
        !get_text(args[0], "the name", &name) ||
        !(memory = memory_new(args[1], true)))
        return NULL;
    /* Kept before it is used; the engine is freed before its buffers. */
    if (PyDict_SetItem(((struct engine *)self)->buffers, args[0],
                       (PyObject *)memory) < 0) {
        Py_DECREF(memory);
        return NULL;
    }
    status = ipu_engine_place(engine, name, memory->buffer.buf,
                              (size_t)memory->buffer.len);
    Py_DECREF(memory);
    return none_or_ipu(status);
}

/* write(name, buffer), read(name, buffer): a whole variable */
static PyObject *copy(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                      bool reads)
{
    ipu_engine *engine = get(self);
    struct memory *memory;
    const char *name;
    size_t bytes;
    int status;

    if (!engine || !has_arguments(reads ? "read" : "write", nargs, 2) ||
        !get_text(args[0], "the name", &name) ||
        !(memory = memory_new(args[1], reads)))
        return NULL;
    bytes = (size_t)memory->buffer.len;
    status = reads ? ipu_engine_read(engine, name, memory->buffer.buf, bytes)
                   : ipu_engine_write(engine, name, memory->buffer.buf, bytes);
    Py_DECREF(memory);
    return none_or_ipu(status);
}

static PyObject *write_variable(PyObject *self, PyObject *const *args,
                                Py_ssize_t nargs)
{
    return copy(self, args, nargs, false);
}

static PyObject *read_variable(PyObject *self, PyObject *const *args,
                               Py_ssize_t nargs)
{
    return copy(self, args, nargs, true);
}

static PyObject *run_engine(PyObject *self, PyObject *unused)
{
    struct engine *engine = (struct engine *)self;
    PyThreadState *state;
    int status;

    (void)unused;
    if (!get(self))
        return NULL;
    engine->busy = true;
    state = PyEval_SaveThread();
    status = ipu_engine_run(engine->engine);
    PyEval_RestoreThread(state);
    engine->busy = false;
    return none_or_ipu(status);
}

/* measure(on): begins or ends to measure times */
static PyObject *measure(PyObject *self, PyObject *on)
{
    ipu_engine *engine = get(self);

    return engine ? none_or_ipu(ipu_engine_profile(engine, on == Py_True))
                  : NULL;
}

/* times(): a dict, or None if nothing was measured */
static PyObject *times(PyObject *self, PyObject *unused)
{
    static const struct field fields[] = {
        {"runs", offsetof(ipu_engine_times, runs), 'q'},
        {"run_ns", offsetof(ipu_engine_times, run_ns), 'q'},
        {"fastest_ns", offsetof(ipu_engine_times, fastest_ns), 'q'},
        {NULL, 0, 0}};
    ipu_engine *engine = get(self);
    ipu_engine_times info = {.size = sizeof info};
    int status;

    (void)unused;
    if (!engine)
        return NULL;
    status = ipu_engine_get_times(engine, &info);
    if (status == IPU_ERR_STATE)
        Py_RETURN_NONE;
    return status < 0 ? raise_ipu(status) : dict_of(&info, fields);
}

PyObject *engine_type_new(void)
{
    static PyMethodDef methods[] = {
        {"connect", FAST(connect_stream), METH_FASTCALL,
         "connect(name, buffer, written)"},
        {"place", FAST(place_variable), METH_FASTCALL, "place(name, buffer)"},
        {"write", FAST(write_variable), METH_FASTCALL, "write(name, buffer)"},
        {"read", FAST(read_variable), METH_FASTCALL, "read(name, buffer)"},
        {"run", run_engine, METH_NOARGS, "run(): the program, once"},
        {"measure", measure, METH_O, "measure(on)"},
        {"times", times, METH_NOARGS, "times(): a dict, or None"},
        {"close", close_engine, METH_NOARGS, "close(): frees its memory"},
        {NULL, NULL, 0, NULL}};
    PyType_Slot slots[] = {{Py_tp_new, make_engine},
                           {Py_tp_dealloc, free_engine},
                           {Py_tp_methods, methods},
                           {0, NULL}};

    return type_new("ipu._ipu.Engine", "Engine(executable)",
                    sizeof(struct engine), slots);
}
