/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - the module hvd._hvd: its functions, and bind(). */
#include <dlfcn.h>
#include <string.h>

#include "extension.h"

struct binding binding;

/* ISO C does not convert what dlsym returns into a pointer to a function. */
static bool find_function(void *library, const char *name, void *function,
                          size_t size)
{
    void *address = dlsym(library, name);

    if (!address) {
        PyErr_Format(PyExc_ImportError,
                     "libhvd has no %s: it is older than "
                     "this module",
                     name);
        return false;
    }
    memcpy(function, &address, size);
    return true;
}

/* bind(library, error, abandoned): library is what dlopen has returned */
static PyObject *bind(PyObject *module, PyObject *args)
{
    PyObject *number, *error, *abandoned;
    void *library;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOO:bind", &number, &error, &abandoned))
        return NULL;
    library = PyLong_AsVoidPtr(number);
    if (!library && PyErr_Occurred())
        return NULL;
#define X(name)                                                                \
    if (!find_function(library, "hvd_" #name, &binding.name,                   \
                       sizeof binding.name))                                   \
        return NULL;
    HVD__PYTHON_FUNCTIONS(X)
#undef X
    binding.error = Py_NewRef(error);
    binding.abandoned = Py_NewRef(abandoned);
    Py_RETURN_NONE;
}

/* The table holds functions of several types. */
#define FAST(function) ((PyCFunction)(void (*)(void))(function))

static PyMethodDef functions[] = {
    {"bind", bind, METH_VARARGS, "bind(library, error, abandoned)"},
    {"view", FAST(view_of_object), METH_FASTCALL,
     "view(object, written): a View of a buffer, or None"},
    {"allocate", FAST(view_allocate), METH_FASTCALL,
     "allocate(dtype, shape): a View of memory of hvd_malloc"},
    {"submit", FAST(request_submit), METH_FASTCALL,
     "submit(*fields): the handle of a request"},
    {"run", FAST(request_run), METH_FASTCALL,
     "run(*fields): submits a request and waits for it"},
    {"submit_group", FAST(request_submit_group), METH_FASTCALL,
     "submit_group(name, members): a list of handles"},
    {"wait", FAST(request_wait), METH_FASTCALL,
     "wait(handle, wanted): the output, if the library has made it"},
    {"poll", request_poll, METH_O, "poll(handle): whether it is done"},
    {"wait_repeated", repeated_wait, METH_O,
     "wait_repeated(begun): waits for those at the beginning of the list"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "hvd._hvd",
    .m_doc = "The part of hvd that is in C; see hvd._engine.",
    .m_size = -1,
    .m_methods = functions};

PyMODINIT_FUNC PyInit__hvd(void);
PyMODINIT_FUNC PyInit__hvd(void)
{
    PyObject *module = PyModule_Create(&definition);
    PyObject *view = view_type_new(), *repeated = repeated_type_new();

    if (!module || !view || !repeated ||
        PyModule_AddObjectRef(module, "View", view) < 0 ||
        PyModule_AddObjectRef(module, "Repeated", repeated) < 0)
        Py_CLEAR(module);
    return module;
}
