/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimator.c - the type Estimator: trains, evaluates and predicts with a
 * network that a function of Python builds (hvd_estimator.h).
 *
 * All calls run without the interpreter's lock. The functions of Python take it
 * again: the network's and the loss's, which are called when a program is made,
 * and the hook behind each step, which looks for signals. An exception that one
 * of them raises is kept until the call has ended, and is raised then in place
 * of the library's failure.
 */
#include <hvd.h>
#include <hvd_estimator.h>
#include <stdlib.h>
#include <string.h>

#include "estimator.h"

/* ---------------------------------------------------------------- callbacks */

/* Keeps the exception that a function has raised, unless there is one. */
static void keep_exception(struct estimator *e)
{
    if (e->type)
        PyErr_Clear();
    else
        PyErr_Fetch(&e->type, &e->value, &e->traceback);
}

/* Calls function(graph, x, mode), which returns the number of a tensor. */
static ipu_tensor call_function(struct estimator *e, PyObject *function,
                                hvd_net *net, ipu_tensor x)
{
    PyGILState_STATE state = PyGILState_Ensure();
    struct graph *graph = e->type ? NULL : graph_of_net(net);
    PyObject *made = NULL;
    ipu_tensor tensor = {-1};

    if (graph) {
        made = PyObject_CallFunction(function, "Oii", (PyObject *)graph,
                                     (int)x.id, (int)hvd_net_mode(net));
        graph_close(graph);
        Py_DECREF(graph);
    }
    if (made && !get_int32(made, "the result", &tensor.id))
        tensor.id = -1;
    Py_XDECREF(made);
    if (PyErr_Occurred())
        keep_exception(e);
    PyGILState_Release(state);
    return tensor;
}

static ipu_tensor build(hvd_net *net, ipu_tensor x, void *context)
{
    struct estimator *e = context;

    return call_function(e, e->build, net, x);
}

static ipu_tensor loss_of(hvd_net *net, ipu_tensor y, void *context)
{
    struct estimator *e = context;

    return call_function(e, e->loss, net, y);
}

/* Lets handlers of signals run behind each step. */
static int look_for_signals(void *context, hvd_estimator *estimator,
                            hvd_event *event)
{
    struct estimator *e = context;
    PyGILState_STATE state = PyGILState_Ensure();
    int status = 0;

    (void)estimator;
    (void)event;
    if (PyErr_CheckSignals() < 0) {
        keep_exception(e);
        status = HVD_ERR_SHUTDOWN;
    }
    PyGILState_Release(state);
    return status < 0
               ? hvd_set_last_error(
                     status, "a handler of a signal has raised an exception")
               : 0;
}

/* ------------------------------------------------------------------ options */

static bool set_options(struct estimator *e, PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;

    hvd_estimator_options_init(&e->options, sizeof e->options);
    hvd_schedule_init(&e->options.rate, sizeof e->options.rate);
    while (PyDict_Next(dict, &at, &key, &value))
        if (value != Py_None && !option_set(&e->options, key, value))
            return false;
    hvd_model_init(&e->model, sizeof e->model);
    e->model.build = build;
    e->model.loss = e->loss == Py_None ? NULL : loss_of;
    e->model.context = e;
    e->hook = (hvd_hook){
        .size = sizeof e->hook, .context = e, .after_step = look_for_signals};
    e->hooks[0] = &e->hook;
    e->options.model = &e->model;
    e->options.hooks = e->hooks;
    e->options.nhooks = 1;
    return true;
}

/* Estimator(build, loss, options): options is a dict that is not changed later
 */
static PyObject *make_estimator(PyTypeObject *type, PyObject *args,
                                PyObject *named)
{
    PyObject *function, *loss, *options;
    struct estimator *e;
    int status;

    (void)type;
    (void)named;
    if (!PyArg_ParseTuple(args, "OOO!:Estimator", &function, &loss,
                          &PyDict_Type, &options))
        return NULL;
    e = PyObject_New(struct estimator, estimator_type);
    if (!e)
        return NULL;
    memset((char *)e + offsetof(struct estimator, estimator), 0,
           sizeof *e - offsetof(struct estimator, estimator));
    e->build = Py_NewRef(function);
    e->loss = Py_NewRef(loss);
    e->kept = Py_NewRef(options);
    if (set_options(e, options)) {
        status = hvd_estimator_new(&e->options, &e->estimator);
        if (status >= 0)
            return (PyObject *)e;
        e->estimator = NULL;
        raise_hvd(status);
    }
    Py_DECREF(e);
    return NULL;
}

/* Freeing is collective if the estimator has trained on several ranks. */
static void free_inner(struct estimator *e)
{
    hvd_estimator *inner = e->estimator;
    PyThreadState *state;

    e->estimator = NULL;
    if (!inner)
        return;
    state = PyEval_SaveThread();
    hvd_estimator_free(inner);
    PyEval_RestoreThread(state);
}

static PyObject *close_estimator(PyObject *self, PyObject *unused)
{
    struct estimator *e = (struct estimator *)self;

    (void)unused;
    if (is_busy(e->busy, "model"))
        return NULL;
    free_inner(e);
    Py_RETURN_NONE;
}

static void free_estimator(PyObject *self)
{
    struct estimator *e = (struct estimator *)self;
    PyTypeObject *type = Py_TYPE(self);

    free_inner(e);
    Py_XDECREF(e->build);
    Py_XDECREF(e->loss);
    Py_XDECREF(e->kept);
    Py_XDECREF(e->type);
    Py_XDECREF(e->value);
    Py_XDECREF(e->traceback);
    PyObject_Free(self);
    Py_DECREF(type);
}

PyObject *estimator_type_new(void)
{
    static PyMethodDef methods[] = {
        {"train", FAST(estimator_train), METH_FASTCALL,
         "train(arrays, batch, seed, epochs, max_steps): a dict"},
        {"evaluate", FAST(estimator_evaluate), METH_FASTCALL,
         "evaluate(arrays, batch, metrics): (a dict, values)"},
        {"predict", FAST(estimator_predict), METH_FASTCALL,
         "predict(arrays, batch, bytes): (rows, numbers)"},
        {"variable", FAST(estimator_variable), METH_FASTCALL,
         "variable(name, buffer)"},
        {"close", close_estimator, METH_NOARGS, "close()"},
        {NULL, NULL, 0, NULL}};
    PyType_Slot slots[] = {{Py_tp_new, make_estimator},
                           {Py_tp_dealloc, free_estimator},
                           {Py_tp_methods, methods},
                           {0, NULL}};

    return type_new("ipu._ipu.Estimator", "Estimator(build, loss, options)",
                    sizeof(struct estimator), slots);
}
