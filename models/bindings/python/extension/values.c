/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - failures, arguments, structs and buffers: what all types of the
 * module need. */
#include <hvd.h>
#include <string.h>

#include "extension.h"

/* The module sets them, when it is imported. */
PyTypeObject *graph_type, *executable_type, *engine_type;
PyTypeObject *onnx_type, *estimator_type, *memory_type;
PyObject *ipu_error, *hvd_error;

/* ----------------------------------------------------------------- failures */

static PyObject *raise_text(PyObject *class, int status, const char *text)
{
    PyObject *words =
        PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyObject *error =
        words ? PyObject_CallFunction(class, "iO", status, words) : NULL;

    Py_XDECREF(words);
    if (error)
        PyErr_SetObject(class, error);
    Py_XDECREF(error);
    return NULL;
}

PyObject *raise_ipu(int status)
{
    return raise_text(ipu_error, status, ipu_last_error());
}

PyObject *raise_hvd(int status)
{
    return raise_text(hvd_error, status, hvd_last_error());
}

PyObject *none_or_ipu(int status)
{
    return status < 0 ? raise_ipu(status) : Py_NewRef(Py_None);
}

bool is_busy(bool busy, const char *what)
{
    if (busy)
        PyErr_Format(PyExc_RuntimeError, "the %s is in use by another thread",
                     what);
    return busy;
}

/* ---------------------------------------------------------------- arguments */

bool has_arguments(const char *function, Py_ssize_t given, Py_ssize_t n)
{
    if (given == n)
        return true;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", function,
                 n, given);
    return false;
}

bool get_int(PyObject *object, const char *what, int64_t least, int64_t most,
             int64_t *value)
{
    int overflow = 0;
    PyObject *number = PyNumber_Index(object);

    if (!number) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s is %R, not an integer", what,
                         object);
        return false;
    }
    *value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow != 0 || *value < least || *value > most)
        PyErr_Format(PyExc_ValueError, "%s is %R, not from %lld to %lld", what,
                     number, (long long)least, (long long)most);
    Py_DECREF(number);
    return !PyErr_Occurred();
}

bool get_int32(PyObject *object, const char *what, int32_t *value)
{
    int64_t whole;

    if (!get_int(object, what, INT32_MIN, INT32_MAX, &whole))
        return false;
    *value = (int32_t)whole;
    return true;
}

bool get_double(PyObject *object, const char *what, double *value)
{
    *value = PyFloat_AsDouble(object);
    if (*value != -1.0 || !PyErr_Occurred())
        return true;
    if (PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "%s is %R, not a number", what, object);
    return false;
}

bool get_text(PyObject *object, const char *what, const char **text)
{
    Py_ssize_t bytes;

    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s is %R, not a string", what, object);
        return false;
    }
    *text = PyUnicode_AsUTF8AndSize(object, &bytes);
    if (!*text)
        return false;
    if (strlen(*text) == (size_t)bytes)
        return true;
    PyErr_Format(PyExc_ValueError, "%s %R holds a NUL", what, object);
    return false;
}

bool get_list(PyObject *object, const char *what, int most, int64_t *values,
              int32_t *count)
{
    Py_ssize_t n = PySequence_Size(object);

    if (n < 0) {
        PyErr_Format(PyExc_TypeError, "%s is %R, not a list of integers", what,
                     object);
        return false;
    }
    if (n > most) {
        PyErr_Format(PyExc_ValueError, "%s has %zd integers, more than %d",
                     what, n, most);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(object, i);
        bool got =
            item && get_int(item, what, INT64_MIN, INT64_MAX, &values[i]);

        Py_XDECREF(item);
        if (!got)
            return false;
    }
    *count = (int32_t)n;
    return true;
}

PyObject *type_new(const char *name, const char *doc, int size,
                   PyType_Slot *slots)
{
    PyType_Slot all[12] = {{Py_tp_doc, NULL}};
    PyType_Spec spec = {.name = name,
                        .basicsize = size,
                        .flags = Py_TPFLAGS_DEFAULT,
                        .slots = all};
    int n = 1;

    memcpy(&all[0].pfunc, &doc, sizeof doc); /* the table has no const */
    while (slots[n - 1].slot != 0) {
        all[n] = slots[n - 1];
        n++;
    }
    return PyType_FromSpec(&spec);
}

/* ------------------------------------------------------------------ structs */

static PyObject *value_of(const void *at, char kind)
{
    switch (kind) {
    case 'i': return PyLong_FromLong(*(const int32_t *)at);
    case 'q': return PyLong_FromLongLong(*(const int64_t *)at);
    case 'd': return PyFloat_FromDouble(*(const double *)at);
    default: break;
    }
    const char *text = *(const char *const *)at;

    return text
               ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace")
               : Py_NewRef(Py_None);
}

PyObject *dict_of(const void *object, const struct field *fields)
{
    PyObject *dict = PyDict_New();

    for (; dict && fields->name; fields++) {
        PyObject *value =
            value_of((const char *)object + fields->offset, fields->kind);

        if (!value || PyDict_SetItemString(dict, fields->name, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

PyObject *tuple_of(const int64_t *values, int32_t count)
{
    PyObject *tuple = PyTuple_New(count);

    for (int32_t i = 0; tuple && i < count; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);

        if (!value || PyTuple_SetItem(tuple, i, value) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* ------------------------------------------------------------------ buffers */

struct memory *memory_new(PyObject *object, bool written)
{
    struct memory *memory = PyObject_New(struct memory, memory_type);

    if (!memory)
        return NULL;
    memset(&memory->buffer, 0, sizeof memory->buffer);
    if (PyObject_GetBuffer(object, &memory->buffer,
                           PyBUF_C_CONTIGUOUS |
                               (written ? PyBUF_WRITABLE : 0)) == 0)
        return memory;
    memory->buffer.obj = NULL;
    Py_DECREF(memory);
    return NULL;
}

static void free_memory(PyObject *self)
{
    struct memory *memory = (struct memory *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (memory->buffer.obj)
        PyBuffer_Release(&memory->buffer);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *memory_type_new(void)
{
    PyType_Slot slots[] = {{Py_tp_dealloc, free_memory}, {0, NULL}};

    return type_new("ipu._ipu.Memory", "Memory of an object, while it is used.",
                    sizeof(struct memory), slots);
}
