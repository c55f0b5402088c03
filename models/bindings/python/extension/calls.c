/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls.c - the calls of an estimator: train, evaluate, predict, variable.
 *
 * They run without the interpreter's lock, and one at a time. A prediction
 * returns the rows of this rank with their numbers, of which the package makes
 * the rows of all ranks in their order.
 */
#include <hvd.h>
#include <stdlib.h>
#include <string.h>

#include "estimator.h"

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
PyObject *estimator_train(PyObject *self, PyObject *const *args,
                          Py_ssize_t nargs)
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
PyObject *estimator_evaluate(PyObject *self, PyObject *const *args,
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

/* ------------------------------------------------------------------ predict */

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
PyObject *estimator_predict(PyObject *self, PyObject *const *args,
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
PyObject *estimator_variable(PyObject *self, PyObject *const *args,
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
