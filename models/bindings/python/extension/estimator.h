/* SPDX-License-Identifier: Apache-2.0 */
/* estimator.h - what the files of the type Estimator share. */
#ifndef IPU_PYTHON_ESTIMATOR_H
#define IPU_PYTHON_ESTIMATOR_H

#include "extension.h"

#include <hvd_estimator.h>

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

/* Calls of an estimator (calls.c). */
PyObject *estimator_train(PyObject *self, PyObject *const *args,
                          Py_ssize_t nargs);
PyObject *estimator_evaluate(PyObject *self, PyObject *const *args,
                             Py_ssize_t nargs);
PyObject *estimator_predict(PyObject *self, PyObject *const *args,
                            Py_ssize_t nargs);
PyObject *estimator_variable(PyObject *self, PyObject *const *args,
                             Py_ssize_t nargs);

/* Sets an option by its name. Returns false with an exception. */
bool option_set(hvd_estimator_options *options, PyObject *key, PyObject *value);

struct arrays;

/* The data that a call from Python gives to the estimator: the arrays, the
 * number of rows in a batch, and the seed by which rows are shuffled; with the
 * seed -1 they keep the order of the arrays. */
struct data {
    struct arrays *arrays; /* owned, until data_set takes them over */
    int64_t batch, seed;
};

/* Gets them from a list of tuples (name, hvd_dtype, shape with the rows first,
 * buffer). Returns false with an exception, and then keeps nothing. */
bool data_get(PyObject *list, PyObject *batch, PyObject *seed,
              struct data *data);
void data_drop(struct data *data);

/* Makes the data set, without the interpreter's lock. A failure is told by the
 * call that takes it. */
hvd_dataset *data_set(struct data *data, bool trains);

#endif
