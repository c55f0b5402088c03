/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - the type Graph: a graph of ipu.h, to which tensors are added. A
 * tensor is its number here; ipu/_graph.py makes an object of it.
 *
 * There are three sorts: graphs by themselves, graphs with layers (a network of
 * the program's own), and graphs that an estimator builds, which are borrowed.
 */
#include <hvd.h>
#include <string.h>

#include "extension.h"

static struct graph *new_graph(void)
{
    struct graph *graph = PyObject_New(struct graph, graph_type);

    if (!graph)
        return NULL;
    memset((char *)graph + offsetof(struct graph, graph), 0,
           sizeof *graph - offsetof(struct graph, graph));
    graph->files = PyDict_New();
    if (!graph->files)
        Py_CLEAR(graph);
    return graph;
}

static void free_graph(PyObject *self)
{
    struct graph *graph = (struct graph *)self;
    PyTypeObject *type = Py_TYPE(self);

    if (!graph->borrowed) {
        hvd_net_free(graph->net);
        ipu_graph_free(graph->graph);
    }
    Py_XDECREF(graph->files);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Graph(mode, seed): mode None: a graph without layers */
static PyObject *make_graph(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *mode;
    unsigned long long seed;
    struct graph *graph;
    int32_t number = 0;
    int status;

    (void)type;
    (void)named;
    if (!PyArg_ParseTuple(args, "OK:Graph", &mode, &seed) ||
        (mode != Py_None && !get_int32(mode, "mode", &number)))
        return NULL;
    graph = new_graph();
    if (!graph)
        return NULL;
    status = ipu_graph_new(&graph->graph);
    if (status < 0) {
        raise_ipu(status);
    } else if (mode != Py_None) {
        status = hvd_net_new(seed, &graph->net);
        if (status >= 0)
            status = hvd_net_begin(graph->net, graph->graph, number);
        if (status < 0)
            raise_hvd(status);
    }
    if (status >= 0)
        return (PyObject *)graph;
    Py_DECREF(graph);
    return NULL;
}

struct graph *graph_of_net(hvd_net *net)
{
    struct graph *graph = new_graph();

    if (graph) {
        graph->net = net;
        graph->borrowed = true;
    }
    return graph;
}

void graph_close(struct graph *graph)
{
    graph->net = NULL;
    graph->graph = NULL;
}

ipu_graph *graph_get(struct graph *graph)
{
    if (is_busy(graph->busy, "graph"))
        return NULL;
    /* The graph of an estimator changes where a piece ends. */
    if (graph->borrowed && graph->net)
        return hvd_net_graph(graph->net);
    if (!graph->graph)
        PyErr_SetString(PyExc_RuntimeError,
                        "the graph is closed: tensors of a network are valid "
                        "while its function runs");
    return graph->graph;
}

/* Returns the number of a tensor, or an exception. */
static PyObject *number_of(ipu_tensor tensor)
{
    return tensor.id < 0 ? raise_ipu(IPU_ERR_ARGUMENT)
                         : PyLong_FromLong(tensor.id);
}

/* ------------------------------------------------------------------ sources */

struct described {
    const char *name;
    ipu_dtype dtype;
    int32_t ndim;
    int64_t shape[IPU_MAX_DIMS];
};

static bool describe_tensor(PyObject *const *args, struct described *d)
{
    return get_text(args[0], "the name", &d->name) &&
           get_int32(args[1], "dtype", &d->dtype) &&
           get_list(args[2], "the shape", IPU_MAX_DIMS, d->shape, &d->ndim);
}

static PyObject *add_input(PyObject *self, PyObject *const *args,
                           Py_ssize_t nargs)
{
    ipu_graph *graph = graph_get((struct graph *)self);
    struct described d;

    if (!graph || !has_arguments("input", nargs, 3) ||
        !describe_tensor(args, &d))
        return NULL;
    return number_of(ipu_input(graph, d.name, d.dtype, d.ndim, d.shape));
}

static PyObject *add_variable(PyObject *self, PyObject *const *args,
                              Py_ssize_t nargs)
{
    ipu_graph *graph = graph_get((struct graph *)self);
    struct described d;

    if (!graph || !has_arguments("variable", nargs, 3) ||
        !describe_tensor(args, &d))
        return NULL;
    return number_of(ipu_variable(graph, d.name, d.dtype, d.ndim, d.shape));
}

/* constant(dtype, shape, buffer) */
static PyObject *add_constant(PyObject *self, PyObject *const *args,
                              Py_ssize_t nargs)
{
    static const size_t sizes[IPU_NUM_DTYPES] = {4, 4, 2, 2};
    ipu_graph *graph = graph_get((struct graph *)self);
    int64_t shape[IPU_MAX_DIMS];
    int32_t dtype, ndim;
    struct memory *memory;
    PyObject *number = NULL;
    size_t bytes;

    if (!graph || !has_arguments("constant", nargs, 3) ||
        !get_int32(args[0], "dtype", &dtype) ||
        !get_list(args[1], "the shape", IPU_MAX_DIMS, shape, &ndim))
        return NULL;
    memory = memory_new(args[2], false);
    if (!memory)
        return NULL;
    bytes = dtype >= 0 && dtype < IPU_NUM_DTYPES ? sizes[dtype] : 0;
    for (int32_t i = 0; i < ndim; i++)
        bytes *= (size_t)shape[i];
    if ((Py_ssize_t)bytes != memory->buffer.len)
        PyErr_Format(PyExc_ValueError, "the constant has %zd bytes, not %zu",
                     memory->buffer.len, bytes);
    else
        number = number_of(
            ipu_constant(graph, dtype, ndim, shape, memory->buffer.buf));
    Py_DECREF(memory);
    return number;
}

/* ------------------------------------------------------------------ results */

/* A tensor's number and a name. */
static bool get_named(PyObject *const *args, const char **name,
                      ipu_tensor *tensor)
{
    return get_text(args[0], "the name", name) &&
           get_int32(args[1], "the tensor", &tensor->id);
}

/* output(name, tensor): of a network in an estimator, a further result */
static PyObject *add_output(PyObject *self, PyObject *const *args,
                            Py_ssize_t nargs)
{
    struct graph *of = (struct graph *)self;
    ipu_graph *graph = graph_get(of);
    const char *name;
    ipu_tensor tensor;

    if (!graph || !has_arguments("output", nargs, 2) ||
        !get_named(args, &name, &tensor))
        return NULL;
    if (!of->borrowed)
        return none_or_ipu(ipu_output(graph, name, tensor));
    hvd_net_output(of->net, name, tensor);
    Py_RETURN_NONE;
}

static PyObject *assign(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    ipu_graph *graph = graph_get((struct graph *)self);
    ipu_tensor variable, value;

    if (!graph || !has_arguments("assign", nargs, 2) ||
        !get_int32(args[0], "the variable", &variable.id) ||
        !get_int32(args[1], "the value", &value.id))
        return NULL;
    return none_or_ipu(ipu_assign(graph, variable, value));
}

static PyObject *find(PyObject *self, PyObject *text)
{
    ipu_graph *graph = graph_get((struct graph *)self);
    ipu_tensor tensor;
    const char *name;
    int status;

    if (!graph || !get_text(text, "the name", &name))
        return NULL;
    status = ipu_graph_find(graph, name, &tensor);
    return status < 0 ? raise_ipu(status) : PyLong_FromLong(tensor.id);
}

/* info(tensor): (dtype, shape, name) */
static PyObject *info(PyObject *self, PyObject *number)
{
    ipu_graph *graph = graph_get((struct graph *)self);
    int64_t shape[IPU_MAX_DIMS];
    ipu_tensor tensor;
    ipu_dtype dtype;
    const char *name;
    PyObject *extents;
    int ndim;

    if (!graph || !get_int32(number, "the tensor", &tensor.id))
        return NULL;
    ndim = ipu_tensor_info(graph, tensor, &dtype, shape, &name);
    if (ndim < 0)
        return raise_ipu(ndim);
    extents = tuple_of(shape, ndim);
    return extents ? Py_BuildValue("iNz", (int)dtype, extents, name) : NULL;
}

/* -------------------------------------------------------------- derivatives */

enum { MOST_TENSORS = 4096 };

/* Gets the numbers of tensors, as an array that PyMem_Free frees. */
static ipu_tensor *get_tensors(PyObject *list, int32_t *count)
{
    int64_t *numbers = PyMem_Calloc(MOST_TENSORS, sizeof *numbers);
    ipu_tensor *tensors = PyMem_Calloc(MOST_TENSORS, sizeof *tensors);

    if (!numbers || !tensors)
        PyErr_NoMemory();
    else if (get_list(list, "the tensors", MOST_TENSORS, numbers, count))
        for (int32_t i = 0; i < *count; i++)
            tensors[i].id = (int32_t)numbers[i];
    PyMem_Free(numbers);
    if (!PyErr_Occurred())
        return tensors;
    PyMem_Free(tensors);
    return NULL;
}

static PyObject *numbers_of(const ipu_tensor *tensors, int32_t count)
{
    PyObject *list = PyList_New(0);

    for (int32_t i = 0; list && i < count; i++) {
        PyObject *number = PyLong_FromLong(tensors[i].id);

        if (!number || PyList_Append(list, number) < 0)
            Py_CLEAR(list);
        Py_XDECREF(number);
    }
    return list;
}

/* gradients(loss, tensors): [their derivatives] */
static PyObject *gradients(PyObject *self, PyObject *const *args,
                           Py_ssize_t nargs)
{
    ipu_graph *graph = graph_get((struct graph *)self);
    ipu_tensor loss, *of;
    PyObject *made = NULL;
    int32_t count;

    if (!graph || !has_arguments("gradients", nargs, 2) ||
        !get_int32(args[0], "the loss", &loss.id) ||
        !(of = get_tensors(args[1], &count)))
        return NULL;
    ipu_tensor *wanted = PyMem_Calloc((size_t)count + 1, sizeof *wanted);
    int status =
        wanted ? ipu_gradients(graph, loss, count, of, wanted) : IPU_ERR_MEMORY;

    made = status < 0 ? raise_ipu(status) : numbers_of(wanted, count);
    PyMem_Free(wanted);
    PyMem_Free(of);
    return made;
}

/* optimize(kind, rate, variables, gradients): kind is an ipu_optimizer_kind,
 * momentum is that of sgd */
static PyObject *optimize(PyObject *self, PyObject *const *args,
                          Py_ssize_t nargs)
{
    ipu_graph *graph = graph_get((struct graph *)self);
    ipu_sgd_options sgd = {.size = sizeof sgd};
    ipu_optimizer optimizer = {.size = sizeof optimizer, .sgd = &sgd};
    ipu_tensor *of[2] = {NULL, NULL};
    int32_t count = 0, others = -1;
    PyObject *done = NULL;

    if (!graph || !has_arguments("optimize", nargs, 5) ||
        !get_int32(args[0], "the optimizer", &optimizer.kind) ||
        !get_int32(args[1], "the rate", &optimizer.rate.id) ||
        !get_double(args[2], "the momentum", &sgd.momentum))
        return NULL;
    of[0] = get_tensors(args[3], &count);
    of[1] = of[0] ? get_tensors(args[4], &others) : NULL;
    if (of[1] && count != others)
        PyErr_Format(PyExc_ValueError, "%d gradients for %d variables", others,
                     count);
    else if (of[1])
        done =
            none_or_ipu(ipu_optimize(graph, &optimizer, count, of[0], of[1]));
    PyMem_Free(of[0]);
    PyMem_Free(of[1]);
    return done;
}

/* variables(): [(name, shape, tensor, trained)] of a graph with layers */
static PyObject *list_variables(PyObject *self, PyObject *unused)
{
    struct graph *graph = (struct graph *)self;
    const hvd_variable *variables;
    PyObject *list;
    int32_t count;

    (void)unused;
    if (!graph_get(graph))
        return NULL;
    if (!graph->net || graph->borrowed) {
        PyErr_SetString(PyExc_RuntimeError, "the graph has no layers");
        return NULL;
    }
    count = hvd_net_end(graph->net, &variables);
    if (count < 0)
        return raise_hvd(count);
    list = PyList_New(0);
    for (int32_t i = 0; list && i < count; i++) {
        const hvd_variable *v = &variables[i];
        PyObject *shape = tuple_of(v->shape, v->ndim);
        PyObject *row = shape
                            ? Py_BuildValue("sNii", v->name, shape,
                                            (int)v->tensor.id, (int)v->trained)
                            : NULL;

        if (!row || PyList_Append(list, row) < 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* at(file, line): where the ops that follow come from */
static PyObject *at(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    struct graph *graph = (struct graph *)self;
    ipu_graph *of = graph_get(graph);
    const char *file;
    PyObject *kept;
    int32_t line;

    if (!of || !has_arguments("at", nargs, 2) ||
        !get_text(args[0], "the file", &file) ||
        !get_int32(args[1], "the line", &line))
        return NULL;
    /* The graph of an estimator outlives this object, so it gets no names. */
    if (graph->borrowed)
        Py_RETURN_NONE;
    kept = PyDict_GetItemWithError(graph->files, args[0]);
    if (!kept && (PyErr_Occurred() ||
                  PyDict_SetItem(graph->files, args[0], args[0]) < 0))
        return NULL;
    if (kept && !get_text(kept, "the file", &file))
        return NULL;
    ipu_at(of, file, line);
    Py_RETURN_NONE;
}

/* restart(mode): begins an empty graph for the network of this one, whose
 * variables it has. Prediction may use those only that a training has made. */
static PyObject *restart(PyObject *self, PyObject *mode)
{
    struct graph *graph = (struct graph *)self;
    ipu_graph *fresh = NULL;
    int32_t number;
    int status;

    if (!graph_get(graph) || !get_int32(mode, "mode", &number))
        return NULL;
    if (!graph->net || graph->borrowed) {
        PyErr_SetString(PyExc_RuntimeError, "the graph has no layers");
        return NULL;
    }
    status = ipu_graph_new(&fresh);
    if (status < 0)
        return raise_ipu(status);
    status = hvd_net_begin(graph->net, fresh, number);
    if (status < 0) {
        ipu_graph_free(fresh);
        return raise_hvd(status);
    }
    ipu_graph_free(graph->graph);
    graph->graph = fresh;
    Py_RETURN_NONE;
}

static PyObject *get_has_layers(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((struct graph *)self)->net != NULL);
}

PyObject *graph_type_new(void)
{
    static PyMethodDef methods[] = {
        {"input", FAST(add_input), METH_FASTCALL, "input(name, dtype, shape)"},
        {"variable", FAST(add_variable), METH_FASTCALL,
         "variable(name, dtype, shape)"},
        {"constant", FAST(add_constant), METH_FASTCALL,
         "constant(dtype, shape, buffer)"},
        {"op", FAST(graph_op), METH_FASTCALL, "op(number, *arguments)"},
        {"layer", FAST(graph_layer), METH_FASTCALL, "layer(kind, *arguments)"},
        {"output", FAST(add_output), METH_FASTCALL, "output(name, tensor)"},
        {"assign", FAST(assign), METH_FASTCALL, "assign(variable, value)"},
        {"find", find, METH_O, "find(name): a tensor"},
        {"info", info, METH_O, "info(tensor): (dtype, shape, name)"},
        {"gradients", FAST(gradients), METH_FASTCALL,
         "gradients(loss, tensors): a list"},
        {"optimize", FAST(optimize), METH_FASTCALL,
         "optimize(kind, rate, momentum, variables, gradients)"},
        {"variables", list_variables, METH_NOARGS,
         "variables(): [(name, shape, tensor, trained)] of the layers"},
        {"at", FAST(at), METH_FASTCALL, "at(file, line): of what follows"},
        {"restart", restart, METH_O, "restart(mode): an empty graph"},
        {NULL, NULL, 0, NULL}};
    static PyGetSetDef attributes[] = {
        {"has_layers", get_has_layers, NULL, "whether layer() works", NULL},
        {NULL, NULL, NULL, NULL, NULL}};
    PyType_Slot slots[] = {{Py_tp_new, make_graph},
                           {Py_tp_dealloc, free_graph},
                           {Py_tp_methods, methods},
                           {Py_tp_getset, attributes},
                           {0, NULL}};

    return type_new("ipu._ipu.Graph", "Graph(mode, seed)", sizeof(struct graph),
                    slots);
}
