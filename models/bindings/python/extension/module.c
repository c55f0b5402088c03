/* SPDX-License-Identifier: Apache-2.0 */
/* module.c - the module ipu._ipu: its types, its functions, and bind(). */
#include "extension.h"

/* bind(ipu_error, hvd_error): the classes of failures */
static PyObject *bind(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    (void)module;
    if (!has_arguments("bind", nargs, 2))
        return NULL;
    ipu_error = Py_NewRef(args[0]);
    hvd_error = Py_NewRef(args[1]);
    return Py_NewRef(Py_None);
}

static PyObject *set_threads(PyObject *module, PyObject *count)
{
    int32_t threads;

    (void)module;
    if (!get_int32(count, "threads", &threads))
        return NULL;
    return none_or_ipu(ipu_set_threads(threads));
}

static PyMethodDef functions[] = {
    {"bind", FAST(bind), METH_FASTCALL, "bind(ipu_error, hvd_error)"},
    {"ops", list_ops, METH_NOARGS, "ops(): [(name, parameters, text)]"},
    {"compile", FAST(program_compile), METH_FASTCALL,
     "compile(graph, target, out_of_memory, proportion, brief, ipus): an "
     "Executable"},
    {"try_remedy", FAST(program_remedy), METH_FASTCALL,
     "try_remedy(graph, target, proportion, number, parts): a dict, or why it "
     "cannot be taken"},
    {"find_target", program_target, METH_O, "find_target(name): a dict"},
    {"set_threads", set_threads, METH_O,
     "set_threads(count): as many threads as a product may use in this "
     "process, "
     "at first 1"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "ipu._ipu",
    .m_doc = "The part of the package ipu that is in C.",
    .m_size = -1,
    .m_methods = functions};

/* Adds a type to the module. Returns false with an exception. */
static bool add_type(PyObject *module, const char *name, PyObject *type,
                     PyTypeObject **place)
{
    *place = (PyTypeObject *)type;
    return type && PyModule_AddObjectRef(module, name, type) == 0;
}

PyMODINIT_FUNC PyInit__ipu(void);
PyMODINIT_FUNC PyInit__ipu(void)
{
    PyObject *module = PyModule_Create(&definition);

    if (!module || !add_type(module, "Graph", graph_type_new(), &graph_type) ||
        !add_type(module, "Executable", executable_type_new(),
                  &executable_type) ||
        !add_type(module, "Engine", engine_type_new(), &engine_type) ||
        !add_type(module, "Onnx", onnx_type_new(), &onnx_type) ||
        !add_type(module, "Estimator", estimator_type_new(), &estimator_type) ||
        !add_type(module, "Memory", memory_type_new(), &memory_type))
        Py_CLEAR(module);
    return module;
}
