/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - submits requests, and waits for them.
 *
 * The arguments of submit and run are the fields of a request, in the order of
 * the enum below: fifteen of them, by position, which costs less than names.
 * hvd/_requests.py gives them their names.
 *
 * The interpreter's lock is released inside the library. A wait is made of
 * slices: between two of them the thread looks for signals, whose handlers may
 * raise an exception, which ends the wait. The request then goes on.
 */
#include <string.h>

#include "extension.h"

enum field {
    KIND,
    OP,
    ROOT,
    INPUT,  /* a View, or None */
    OUTPUT, /* a View, or None: the library allocates it, if there is one */
    NAME,
    PRESCALE,
    POSTSCALE,
    PROCESS_SET,
    PRIORITY,
    FLAGS,
    COMPRESSION,
    CAPACITY,
    SPLITS, /* a View of int64, or None */
    COUNTS, /* the same */
    NFIELDS
};

/* ---------------------------------------------------------------- arguments */

bool has_arguments(const char *function, Py_ssize_t given, Py_ssize_t n)
{
    if (given == n)
        return true;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", function,
                 n, given);
    return false;
}

bool get_integer(PyObject *object, const char *what, int bits, int64_t *value)
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
    if (overflow != 0 || (bits == 32 && *value != (int32_t)*value)) {
        PyErr_Format(PyExc_ValueError, "%s %R has more than %d bits", what,
                     number, bits);
        Py_DECREF(number);
        return false;
    }
    Py_DECREF(number);
    return true;
}

static bool get_int32(PyObject *object, const char *what, int32_t *value)
{
    int64_t whole;

    if (!get_integer(object, what, 32, &whole))
        return false;
    *value = (int32_t)whole;
    return true;
}

static bool get_double(PyObject *object, const char *what, double *value)
{
    *value = PyFloat_AsDouble(object);
    if (*value != -1.0 || !PyErr_Occurred())
        return true;
    if (PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "%s is %R, not a number", what, object);
    return false;
}

/* Gets a name, which the object keeps. */
static bool get_name(PyObject *object, const char **name)
{
    Py_ssize_t bytes;

    *name = NULL;
    if (object == Py_None)
        return true;
    if (PyBytes_Check(object)) {
        *name = PyBytes_AsString(object);
        bytes = PyBytes_Size(object);
    } else if (PyUnicode_Check(object)) {
        *name = PyUnicode_AsUTF8AndSize(object, &bytes);
    } else {
        PyErr_Format(PyExc_TypeError, "the name is %R, not a string", object);
        return false;
    }
    if (!*name)
        return false;
    if (strlen(*name) == (size_t)bytes)
        return true;
    PyErr_Format(PyExc_ValueError, "the name %R holds a NUL", object);
    return false;
}

static bool get_view(PyObject *object, const struct view **view)
{
    *view = NULL;
    if (object == Py_None)
        return true;
    if (!PyObject_TypeCheck(object, view_type)) {
        PyErr_Format(PyExc_TypeError, "%R is not a View", object);
        return false;
    }
    *view = (const struct view *)object;
    return true;
}

static bool get_views(PyObject *const *args, hvd_request *request)
{
    const struct view *input, *output, *splits, *counts, *like;

    if (!get_view(args[INPUT], &input) || !get_view(args[OUTPUT], &output) ||
        !get_view(args[SPLITS], &splits) || !get_view(args[COUNTS], &counts))
        return false;
    request->input = input ? input->address : NULL;
    request->output = output ? output->address : NULL;
    request->splits = splits ? splits->address : NULL;
    request->counts = counts ? counts->address : NULL;
    like = request->kind == HVD_BROADCAST ? output : input;
    if (like) {
        request->dtype = like->dtype;
        request->ndim = like->ndim;
        request->shape = like->shape;
    }
    return true;
}

/* Fills a request, which borrows from the arguments. */
static bool fill_request(PyObject *const *args, hvd_request *request)
{
    binding.request_init(request, sizeof *request);
    return get_int32(args[KIND], "kind", &request->kind) &&
           get_int32(args[OP], "op", &request->op) &&
           get_int32(args[ROOT], "root", &request->root) &&
           get_views(args, request) && get_name(args[NAME], &request->name) &&
           get_double(args[PRESCALE], "prescale", &request->prescale) &&
           get_double(args[POSTSCALE], "postscale", &request->postscale) &&
           get_int32(args[PROCESS_SET], "process_set", &request->process_set) &&
           get_int32(args[PRIORITY], "priority", &request->priority) &&
           get_int32(args[FLAGS], "flags", &request->flags) &&
           get_int32(args[COMPRESSION], "compression", &request->compression) &&
           get_integer(args[CAPACITY], "capacity", 64, &request->capacity);
}

/* ------------------------------------------------------------------- errors */

void raise_last_error(int status)
{
    const char *text = binding.last_error();
    PyObject *words =
        PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyObject *error =
        words ? PyObject_CallFunction(binding.error, "iO", status, words)
              : NULL;

    Py_XDECREF(words);
    if (error)
        PyErr_SetObject(binding.error, error);
    Py_XDECREF(error);
}

/* ------------------------------------------------------------------ waiting */

bool request_wait_until_done(hvd_handle handle)
{
    for (;;) {
        PyThreadState *state = PyEval_SaveThread();
        int done = binding.wait_for(handle, REQUEST_SLICE_NS);

        PyEval_RestoreThread(state);
        if (done > 0)
            return true;
        if (done < 0) {
            raise_last_error(done);
            return false;
        }
        if (PyErr_CheckSignals() < 0)
            return false;
    }
}

/* Ends a request that is done. Returns None, or, if the request had no output
 * of its own (wanted), a view of the one that the library has allocated. */
static PyObject *end_request(hvd_handle handle, bool wanted)
{
    hvd_tensor tensor = {.size = sizeof tensor};
    int status =
        wanted ? binding.wait_output(handle, &tensor) : binding.wait(handle);

    if (status < 0) {
        raise_last_error(status);
        return NULL;
    }
    if (!tensor.data)
        Py_RETURN_NONE;
    return view_of_memory(tensor.data, tensor.dtype, tensor.ndim, tensor.shape);
}

/* wait(handle, wanted): wanted says that the request had no output */
PyObject *request_wait(PyObject *module, PyObject *const *args,
                       Py_ssize_t nargs)
{
    int64_t handle;

    (void)module;
    if (!has_arguments("wait", nargs, 2) ||
        !get_integer(args[0], "the handle", 64, &handle) ||
        !request_wait_until_done(handle))
        return NULL;
    return end_request(handle, args[1] == Py_True);
}

PyObject *request_poll(PyObject *module, PyObject *handle)
{
    PyThreadState *state;
    int64_t number;
    int done;

    (void)module;
    if (!get_integer(handle, "the handle", 64, &number))
        return NULL;
    state = PyEval_SaveThread();
    done = binding.poll(number);
    PyEval_RestoreThread(state);
    if (done >= 0)
        return PyBool_FromLong(done);
    raise_last_error(done);
    return NULL;
}

/* --------------------------------------------------------------- submitting */

/* Fills a request and passes it to hvd_submit or to hvd_run. */
static bool submit(PyObject *const *args, Py_ssize_t nargs,
                   int (*pass)(const hvd_request *, hvd_handle *),
                   hvd_request *request, hvd_handle *handle)
{
    PyThreadState *state;
    int status;

    if (!has_arguments("submit", nargs, NFIELDS) ||
        !fill_request(args, request))
        return false;
    state = PyEval_SaveThread();
    status = pass(request, handle);
    PyEval_RestoreThread(state);
    if (status >= 0)
        return true;
    raise_last_error(status);
    return false;
}

PyObject *request_submit(PyObject *module, PyObject *const *args,
                         Py_ssize_t nargs)
{
    hvd_request request;
    hvd_handle handle;

    (void)module;
    if (!submit(args, nargs, binding.submit, &request, &handle))
        return NULL;
    return PyLong_FromLongLong(handle);
}

/* Keeps what a request uses that nobody will wait for. */
static void abandon(PyObject *const *args)
{
    static const enum field used[] = {INPUT, OUTPUT, COUNTS};
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        if (PyList_Append(binding.abandoned, args[used[i]]) < 0)
            Py_INCREF(args[used[i]]); /* never freed, then */
    PyErr_Restore(type, value, traceback);
}

PyObject *request_run(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    hvd_request request;
    hvd_handle handle;

    (void)module;
    if (!submit(args, nargs, binding.run, &request, &handle))
        return NULL;
    if (handle == 0)
        Py_RETURN_NONE;
    if (!request_wait_until_done(handle)) {
        abandon(args);
        return NULL;
    }
    return end_request(handle, !request.output);
}

/* A group of requests, and what it borrows. */
struct group {
    Py_ssize_t n;
    hvd_request *requests;
    const hvd_request **pointers;
    hvd_handle *handles;
};

bool request_fill(PyObject *fields, hvd_request *request)
{
    PyObject *args[NFIELDS];

    if (!PyTuple_Check(fields) || PyTuple_Size(fields) != NFIELDS) {
        PyErr_SetString(PyExc_TypeError, "a request is a tuple of its fields");
        return false;
    }
    for (int i = 0; i < NFIELDS; i++)
        args[i] = PyTuple_GetItem(fields, i);
    return fill_request(args, request);
}

static PyObject *submit_members(const char *name, struct group *group)
{
    PyThreadState *state;
    PyObject *handles;
    int status;

    for (Py_ssize_t i = 0; i < group->n; i++)
        group->pointers[i] = &group->requests[i];
    state = PyEval_SaveThread();
    status = binding.submit_group(name, group->pointers, (int32_t)group->n,
                                  group->handles);
    PyEval_RestoreThread(state);
    if (status < 0) {
        raise_last_error(status);
        return NULL;
    }
    handles = PyList_New(group->n);
    for (Py_ssize_t i = 0; handles && i < group->n; i++) {
        PyObject *handle = PyLong_FromLongLong(group->handles[i]);

        if (!handle || PyList_SetItem(handles, i, handle) < 0)
            Py_CLEAR(handles);
    }
    return handles;
}

static PyObject *submit_group(const char *name, PyObject *members,
                              struct group *group)
{
    size_t n = group->n > 0 ? (size_t)group->n : 1;

    group->requests = PyMem_Calloc(n, sizeof *group->requests);
    group->pointers = PyMem_Calloc(n, sizeof *group->pointers);
    group->handles = PyMem_Calloc(n, sizeof *group->handles);
    if (!group->requests || !group->pointers || !group->handles)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < group->n; i++)
        if (!request_fill(PyList_GetItem(members, i), &group->requests[i]))
            return NULL;
    return submit_members(name, group);
}

/* submit_group(name, members): members is a list of tuples of the fields */
PyObject *request_submit_group(PyObject *module, PyObject *const *args,
                               Py_ssize_t nargs)
{
    struct group group = {0};
    PyObject *handles;
    const char *name;

    (void)module;
    if (!has_arguments("submit_group", nargs, 2) || !get_name(args[0], &name))
        return NULL;
    if (!PyList_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "the members of a group are a list");
        return NULL;
    }
    group.n = PyList_Size(args[1]);
    handles = submit_group(name, args[1], &group);
    PyMem_Free(group.requests);
    PyMem_Free(group.pointers);
    PyMem_Free(group.handles);
    return handles;
}
