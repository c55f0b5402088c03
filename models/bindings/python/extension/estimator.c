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

struct estimator {
    PyObject base;
    hvd_estimator *estimator; /* owned; NULL: closed */
    hvd_estimator_options options;
    hvd_model model;
    hvd_hook hook, *hooks[1];
    PyObject *build, *loss; /* owned: callables; loss may be None */
    PyObject *kept;         /* owned: the options, which have the texts */
    PyObject *type, *value, *traceback; /* owned: an exception, or NULL */
    bool busy;
};

/* ------------------------------------------------------------------- callbacks
 */

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

/* --------------------------------------------------------------------- options
 */

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

/* ----------------------------------------------------------------------- calls
 */

static bool begin_call(struct estimator *e)
{
    if (is_busy(e->busy, "model"))
        return false;
    if (!e->estimator) {
        PyErr_SetString(PyExc_RuntimeError, "the model is closed");
        return false;
    }
    e->busy = true;
    return true;
}

/* Ends a call: raises what a function of Python has raised, or the library's
 * failure. Returns whether there is neither. */
static bool end_call(struct estimator *e, int status)
{
    e->busy = false;
    if (e->type) {
        PyErr_Restore(e->type, e->value, e->traceback);
        e->type = e->value = e->traceback = NULL;
        return false;
    }
    if (status < 0)
        raise_hvd(status);
    return status >= 0;
}

static const struct field result_fields[] = {
    {"global_step", offsetof(hvd_results, global_step), 'q'},
    {"loss", offsetof(hvd_results, loss), 'd'},
    {"accuracy", offsetof(hvd_results, accuracy), 'd'},
    {"rows", offsetof(hvd_results, rows), 'q'},
    {"seconds", offsetof(hvd_results, seconds), 'd'},
    {"skipped", offsetof(hvd_results, skipped), 'q'},
    {"stopped", offsetof(hvd_results, stopped), 'i'},
    {NULL, 0, 0}};

/* train(arrays, batch, seed, epochs, max_steps): epochs and steps since the
 * very first; 0: not given */
static PyObject *train(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    struct estimator *e = (struct estimator *)self;
    hvd_results results = {.size = sizeof results};
    hvd_train_spec spec;
    PyThreadState *state;
    struct data data;
    int status;

    hvd_train_spec_init(&spec, sizeof spec);
    if (!has_arguments("train", nargs, 5) ||
        !get_int(args[3], "epochs", 0, INT64_MAX, &spec.epochs) ||
        !get_int(args[4], "max_steps", 0, INT64_MAX, &spec.max_steps) ||
        !data_get(args[0], args[1], args[2], &data))
        return NULL;
    if (!begin_call(e)) {
        data_drop(&data);
        return NULL;
    }
    state = PyEval_SaveThread();
    status = hvd_estimator_train(e->estimator, data_set(&data, true), &spec,
                                 &results);
    PyEval_RestoreThread(state);
    return end_call(e, status) ? dict_of(&results, result_fields) : NULL;
}

enum { MOST_METRICS = HVD_EVAL_MOST_METRICS };

struct metrics {
    int n;
    hvd_metric *metrics[MOST_METRICS]; /* owned */
    hvd_eval_metric of[MOST_METRICS];
};

/* Makes the metric of a tuple (kind, k). */
static bool add_metric(struct metrics *all, PyObject *tuple)
{
    hvd_metric_options options;
    int kind, k, status;

    if (!PyArg_ParseTuple(tuple, "ii:metric", &kind, &k))
        return false;
    hvd_metric_options_init(&options, sizeof options, kind);
    if (k > 0)
        options.k = k;
    status = hvd_metric_new(&options, &all->metrics[all->n]);
    if (status < 0) {
        raise_hvd(status);
        return false;
    }
    all->of[all->n] = (hvd_eval_metric){.metric = all->metrics[all->n]};
    all->n++;
    return true;
}

static bool get_metrics(PyObject *list, struct metrics *all)
{
    Py_ssize_t n = PySequence_Size(list);
    bool good = n >= 0 && n <= MOST_METRICS;

    if (n > MOST_METRICS)
        PyErr_Format(PyExc_ValueError, "%zd metrics are more than %d", n,
                     MOST_METRICS);
    for (Py_ssize_t i = 0; good && i < n; i++) {
        PyObject *tuple = PySequence_GetItem(list, i);

        good = tuple && add_metric(all, tuple);
        Py_XDECREF(tuple);
    }
    return good;
}

/* Returns (results, [values of the metrics]), and frees the metrics. */
static PyObject *end_evaluation(struct metrics *all, const hvd_results *results)
{
    PyObject *values = results ? PyList_New(0) : NULL;

    for (int i = 0; i < all->n; i++) {
        PyObject *value =
            values ? PyFloat_FromDouble(hvd_metric_result(all->metrics[i]))
                   : NULL;

        if (values && (!value || PyList_Append(values, value) < 0))
            Py_CLEAR(values);
        Py_XDECREF(value);
        hvd_metric_free(all->metrics[i]);
    }
    return values ? Py_BuildValue("NN", dict_of(results, result_fields), values)
                  : NULL;
}

/* evaluate(arrays, batch, metrics): (results, values) */
static PyObject *evaluate(PyObject *self, PyObject *const *args,
                          Py_ssize_t nargs)
{
    struct estimator *e = (struct estimator *)self;
    hvd_results results = {.size = sizeof results};
    PyObject *unordered = PyLong_FromLong(-1);
    struct metrics metrics = {.n = 0};
    PyThreadState *state;
    hvd_eval_spec spec;
    struct data data;
    bool good;
    int status;

    good = unordered && has_arguments("evaluate", nargs, 3) &&
           get_metrics(args[2], &metrics) &&
           data_get(args[0], args[1], unordered, &data);
    Py_XDECREF(unordered);
    if (good && !begin_call(e)) {
        data_drop(&data);
        good = false;
    }
    if (!good)
        return end_evaluation(&metrics, NULL);
    hvd_eval_spec_init(&spec, sizeof spec);
    spec.metrics = metrics.of;
    spec.nmetrics = metrics.n;
    state = PyEval_SaveThread();
    status = hvd_estimator_evaluate(e->estimator, data_set(&data, false), &spec,
                                    &results);
    PyEval_RestoreThread(state);
    return end_evaluation(&metrics, end_call(e, status) ? &results : NULL);
}

/* -------------------------------------------------------------------- predict
 */

/* Rows of the result, and their numbers, as batches give them. */
struct rows {
    const hvd_estimator *estimator;
    size_t bytes; /* of a row of the result */
    char *result;
    int32_t *numbers;
    int64_t n, capacity;
};

static bool grow(struct rows *rows, int64_t by)
{
    const int64_t capacity = 2 * rows->capacity + by;
    char *result;
    int32_t *numbers;

    if (rows->n + by <= rows->capacity)
        return true;
    result = realloc(rows->result, (size_t)capacity * rows->bytes + 1);
    if (result)
        rows->result = result;
    numbers = realloc(rows->numbers, (size_t)capacity * sizeof *numbers);
    if (numbers)
        rows->numbers = numbers;
    if (result && numbers)
        rows->capacity = capacity;
    return result && numbers;
}

static int keep_rows(void *context, int64_t n, const void *const *outputs,
                     const float *losses)
{
    struct rows *rows = context;
    const int place = hvd_estimator_output(rows->estimator, "ipu/row");

    (void)losses;
    if (place < 0)
        return place;
    if (!grow(rows, n))
        return HVD_ERR_MEMORY;
    memcpy(rows->result + (size_t)rows->n * rows->bytes, outputs[0],
           (size_t)n * rows->bytes);
    memcpy(rows->numbers + rows->n, outputs[place],
           (size_t)n * sizeof *rows->numbers);
    rows->n += n;
    return 0;
}

/* predict(arrays, batch, bytes): (the rows of this rank, their numbers), two
 * texts of bytes; bytes are those of a row of the result */
static PyObject *predict(PyObject *self, PyObject *const *args,
                         Py_ssize_t nargs)
{
    struct estimator *e = (struct estimator *)self;
    struct rows rows = {.estimator = e->estimator};
    PyObject *unordered = PyLong_FromLong(-1), *made = NULL;
    PyThreadState *state;
    hvd_eval_spec spec;
    struct data data;
    int64_t bytes;
    bool good;
    int status;

    good = unordered && has_arguments("predict", nargs, 3) &&
           get_int(args[2], "the bytes", 1, INT64_MAX, &bytes) &&
           data_get(args[0], args[1], unordered, &data);
    Py_XDECREF(unordered);
    if (!good)
        return NULL;
    if (!begin_call(e)) {
        data_drop(&data);
        return NULL;
    }
    rows.bytes = (size_t)bytes;
    hvd_eval_spec_init(&spec, sizeof spec);
    spec.visit = keep_rows;
    spec.visit_context = &rows;
    state = PyEval_SaveThread();
    status = hvd_estimator_predict(e->estimator, data_set(&data, false), &spec);
    PyEval_RestoreThread(state);
    if (end_call(e, status))
        made =
            Py_BuildValue("y#y#", rows.result ? rows.result : "",
                          (Py_ssize_t)((size_t)rows.n * rows.bytes),
                          rows.numbers ? (const char *)rows.numbers : "",
                          (Py_ssize_t)((size_t)rows.n * sizeof *rows.numbers));
    free(rows.result);
    free(rows.numbers);
    return made;
}

/* variable(name, buffer of float32): reads it */
static PyObject *variable(PyObject *self, PyObject *const *args,
                          Py_ssize_t nargs)
{
    struct estimator *e = (struct estimator *)self;
    struct memory *memory;
    const char *name;
    int status;

    if (!has_arguments("variable", nargs, 2) ||
        !get_text(args[0], "the name", &name) ||
        !(memory = memory_new(args[1], true)))
        return NULL;
    if (!begin_call(e)) {
        Py_DECREF(memory);
        return NULL;
    }
    status = hvd_estimator_variable(e->estimator, name, memory->buffer.buf,
                                    memory->buffer.len / 4);
    Py_DECREF(memory);
    return end_call(e, status) ? Py_NewRef(Py_None) : NULL;
}

PyObject *estimator_type_new(void)
{
    static PyMethodDef methods[] = {
        {"train", FAST(train), METH_FASTCALL,
         "train(arrays, batch, seed, epochs, max_steps): a dict"},
        {"evaluate", FAST(evaluate), METH_FASTCALL,
         "evaluate(arrays, batch, metrics): (a dict, values)"},
        {"predict", FAST(predict), METH_FASTCALL,
         "predict(arrays, batch, bytes): (rows, numbers)"},
        {"variable", FAST(variable), METH_FASTCALL, "variable(name, buffer)"},
        {"close", close_estimator, METH_NOARGS, "close()"},
        {NULL, NULL, 0, NULL}};
    PyType_Slot slots[] = {{Py_tp_new, make_estimator},
                           {Py_tp_dealloc, free_estimator},
                           {Py_tp_methods, methods},
                           {0, NULL}};

    return type_new("ipu._ipu.Estimator", "Estimator(build, loss, options)",
                    sizeof(struct estimator), slots);
}
