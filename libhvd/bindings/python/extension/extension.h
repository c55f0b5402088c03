/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extension.h - what the files of the module hvd._hvd share.
 *
 * The module is an accelerator: it does what hvd/_ctypes_engine.py does, with
 * the same names, results and errors, in a tenth of the time. It is written
 * against the stable ABI of Python 3.11, so one file serves all later versions.
 * It is not linked with libhvd: hvd/_library.py opens the library and passes
 * what dlopen has returned to bind().
 */
#ifndef HVD_PYTHON_EXTENSION_H
#define HVD_PYTHON_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <stdbool.h>

#include "hvd.h"

/* The functions of the library that the module calls. */
#define HVD__PYTHON_FUNCTIONS(X)                                               \
    X(request_init)                                                            \
    X(submit)                                                                  \
    X(run)                                                                     \
    X(submit_group)                                                            \
    X(poll)                                                                    \
    X(wait)                                                                    \
    X(wait_for)                                                                \
    X(wait_output)                                                             \
    X(last_error)                                                              \
    X(malloc)                                                                  \
    X(free)

/* The functions of libhvd that bind() has found. The struct is written once,
 * before any other function of the module is called, and read under the
 * interpreter's lock. */
struct binding {
#define X(name) __typeof__(hvd_##name) *name;
    HVD__PYTHON_FUNCTIONS(X)
#undef X
    PyObject *error;     /* owned: the class hvd.Error */
    PyObject *abandoned; /* owned: a list of what requests use whose wait was
                            interrupted, which must never be freed */
};

extern struct binding binding;

/* Memory with a dtype and a shape: what requests read and write. It belongs to
 * an object that exports a buffer, to another object, or to the view. */
struct view {
    PyObject base;
    Py_buffer buffer; /* of the object that exports it; obj is NULL: none */
    PyObject *owner;  /* owned: keeps the memory alive; may be NULL */
    void *memory;     /* owned: to be given to hvd_free; may be NULL */
    void *address;
    hvd_dtype dtype;
    int32_t ndim;
    int64_t shape[HVD_MAX_DIMS];
    int64_t strides[HVD_MAX_DIMS]; /* in bytes, for those who ask for a buffer
                                      of the view */
};

/* The type of views; owned. NULL, with an exception, on failure. */
PyObject *view_type_new(void);
/* The type that view_type_new has made. */
extern PyTypeObject *view_type;
/* Returns a new view of memory of the library, which the view then owns. On
 * failure the memory is freed. */
PyObject *view_of_memory(void *memory, hvd_dtype dtype, int32_t ndim,
                         const int64_t *shape);

/* The functions of the module that take and make views (view.c). */
PyObject *view_of_object(PyObject *module, PyObject *const *args,
                         Py_ssize_t nargs);
PyObject *view_allocate(PyObject *module, PyObject *const *args,
                        Py_ssize_t nargs);

/* The functions of the module hvd._hvd that submit requests, or wait for them
 * (request.c). Each takes the arguments of its Python call, and returns a new
 * reference, or NULL with an exception. */
PyObject *request_submit(PyObject *module, PyObject *const *args,
                         Py_ssize_t nargs);
PyObject *request_run(PyObject *module, PyObject *const *args,
                      Py_ssize_t nargs);
PyObject *request_submit_group(PyObject *module, PyObject *const *args,
                               Py_ssize_t nargs);
PyObject *request_wait(PyObject *module, PyObject *const *args,
                       Py_ssize_t nargs);
PyObject *request_poll(PyObject *module, PyObject *handle);

/* The type of requests that are made again in each step (repeated.c); owned.
 * NULL, with an exception, on failure. And the wait for several of them. */
PyObject *repeated_type_new(void);
PyObject *repeated_wait(PyObject *module, PyObject *begun);

/* A wait lasts so long before the thread looks for signals. */
#define REQUEST_SLICE_NS INT64_C(50000000)

/* Fills a request from a tuple of the fields, from which it borrows. Returns
 * false with an exception. */
bool request_fill(PyObject *fields, hvd_request *request);
/* Waits until a request is done. Returns false, with an exception, if a handler
 * of a signal has raised one, or there is no such request. */
bool request_wait_until_done(hvd_handle handle);

/* Sets hvd.Error with a status and the text of the last failure. */
void raise_last_error(int status);
/* Writes the value of an integer of so many bits. Returns false, with an
 * exception that names it, if it is none. */
bool get_integer(PyObject *object, const char *what, int bits, int64_t *value);
/* Fails with TypeError unless a function was given n arguments. */
bool has_arguments(const char *function, Py_ssize_t given, Py_ssize_t n);

#endif
