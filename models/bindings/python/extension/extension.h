/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extension.h - what the files of the module ipu._ipu share.
 *
 * The module gives Python the objects of ipu.h, and of the trainer library the
 * layers and the estimator. It is written against the stable ABI of Python
 * 3.11. The package (ipu/_library.py) opens the libraries before it imports the
 * module, which is linked with them by their sonames.
 *
 * Functions return new references, or NULL with an exception set. The
 * interpreter's lock is released where a call compiles, runs or reads a file.
 * An object that is used by such a call refuses other threads meanwhile.
 */
#ifndef IPU_PYTHON_EXTENSION_H
#define IPU_PYTHON_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <stdbool.h>

/* Source lines are those of Python: Graph.at. */
#define IPU_NO_SOURCES
#include <hvd_model.h>

/* A graph of ipu.h. Graphs of an estimator are valid while the network's
 * function runs; then they are closed. */
struct graph {
    PyObject base;
    ipu_graph *graph; /* owned unless borrowed; NULL: of net, or closed */
    hvd_net *net;     /* NULL: there are no layers; owned unless borrowed */
    bool borrowed;
    bool busy;       /* a thread uses the graph without the lock */
    PyObject *files; /* owned: a dict of the names that ipu_at has borrowed */
};

struct executable {
    PyObject base;
    ipu_executable *executable; /* owned */
};

struct engine {
    PyObject base;
    ipu_engine *engine;   /* owned; NULL: closed */
    PyObject *executable; /* owned: outlives the engine */
    PyObject *buffers;    /* owned: a dict of connected streams to buffers */
    bool busy;
};

/* Types, made by the function below; owned. */
extern PyTypeObject *graph_type, *executable_type, *engine_type;
extern PyTypeObject *onnx_type, *estimator_type, *memory_type;

/* Make the types: NULL, with an exception, on failure. */
PyObject *graph_type_new(void);
PyObject *executable_type_new(void);
PyObject *engine_type_new(void);
PyObject *onnx_type_new(void);
PyObject *estimator_type_new(void);
PyObject *memory_type_new(void);

/* ----------------------------------------------------------------- failures */

/* Set ipu.Error with the text of the thread's last failure of libipu; hvd.Error
 * with that of libhvd or the trainer library. They return NULL. */
PyObject *raise_ipu(int status);
PyObject *raise_hvd(int status);
/* Returns None, or what raise_ipu does if the status is a failure. */
PyObject *none_or_ipu(int status);
/* Fails with RuntimeError, and returns true, if a thread uses an object. */
bool is_busy(bool busy, const char *what);
/* The classes that raise_ipu and raise_hvd raise; owned. */
extern PyObject *ipu_error, *hvd_error;

/* ---------------------------------------------------------------- arguments */

/* Gets a whole number in a range. Returns false with an exception. */
bool get_int(PyObject *object, const char *what, int64_t least, int64_t most,
             int64_t *value);
bool get_int32(PyObject *object, const char *what, int32_t *value);
bool get_double(PyObject *object, const char *what, double *value);
/* Gets a text that the object keeps, without a NUL. */
bool get_text(PyObject *object, const char *what, const char **text);
/* Gets the elements of a sequence of at most `most` whole numbers. */
bool get_list(PyObject *object, const char *what, int most, int64_t *values,
              int32_t *count);
/* Fails with TypeError unless a function was given n arguments. */
bool has_arguments(const char *function, Py_ssize_t given, Py_ssize_t n);

/* A function of the form METH_FASTCALL in a table of methods. */
#define FAST(function) ((PyCFunction)(void (*)(void))(function))

/* A type whose objects the module makes, or whose tp_new is given. */
PyObject *type_new(const char *name, const char *doc, int size,
                   PyType_Slot *slots);

/* ------------------------------------------------------------------ structs */

/* A field of a struct of ipu.h: 'i' int32, 'q' int64, 'd' double, 's' text. */
struct field {
    const char *name;
    size_t offset;
    char kind;
};

/* Returns a dict of the fields of a struct; the list ends with a NULL name. */
PyObject *dict_of(const void *object, const struct field *fields);
/* Returns a tuple of integers. */
PyObject *tuple_of(const int64_t *values, int32_t count);

/* ------------------------------------------------------------------ buffers */

/* Memory that an object exports, held until buffer_free. */
struct memory {
    PyObject base;
    Py_buffer buffer;
};

/* Returns the memory of an object that exports C-contiguous bytes. */
struct memory *memory_new(PyObject *object, bool written);

/* ------------------------------------------------------------ between files */

/* Returns the graph that ops are added to; NULL with an exception if it is
 * closed or used by another thread. */
ipu_graph *graph_get(struct graph *graph);
/* Returns a graph for a network that an estimator builds. */
struct graph *graph_of_net(hvd_net *net);
/* Ends the use of such a graph. */
void graph_close(struct graph *graph);

/* Methods of graphs (ops.c, layers.c). */
PyObject *graph_op(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
PyObject *graph_layer(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
/* Returns a list of (name, parameters, text) of all ops. */
PyObject *list_ops(PyObject *module, PyObject *unused);

/* compile(graph, target, out_of_memory, proportion), fit(...): program.c. */
PyObject *program_compile(PyObject *module, PyObject *const *args,
                          Py_ssize_t nargs);
PyObject *program_remedy(PyObject *module, PyObject *const *args,
                         Py_ssize_t nargs);
PyObject *program_target(PyObject *module, PyObject *name);
/* Finds a target by its name or the path of its file. */
int target_of(const char *name, ipu_target *target);

#endif
