/* SPDX-License-Identifier: Apache-2.0 */
/* data.c - data sets of arrays that objects of Python lend, until the trainer
 * library needs them no more. */
#include <hvd.h>
#include <stdlib.h>
#include <string.h>

#include "estimator.h"

/* Arrays of a data set, which their objects lend. */
struct arrays {
    int n;
    PyObject *owners[HVD_MAX_COMPONENTS]; /* owned: struct memory */
    hvd_component components[HVD_MAX_COMPONENTS];
    const void *at[HVD_MAX_COMPONENTS];
    int64_t rows;
};

static void release_arrays(void *context)
{
    struct arrays *arrays = context;
    PyGILState_STATE state = PyGILState_Ensure();

    for (int i = 0; i < arrays->n; i++)
        Py_XDECREF(arrays->owners[i]);
    PyGILState_Release(state);
    free(arrays);
}

/* Adds (name, dtype, shape with the rows first, buffer). */
static bool add_array(struct arrays *arrays, PyObject *tuple)
{
    const int i = arrays->n;
    hvd_component *c = &arrays->components[i];
    int64_t shape[HVD_MAX_COMPONENT_DIMS + 1];
    PyObject *name, *extents, *object;
    struct memory *memory;
    int32_t ndim;
    size_t bytes;

    if (!PyArg_ParseTuple(tuple, "OiOO:array", &name, &c->dtype, &extents,
                          &object) ||
        !get_text(name, "the name", &c->name) ||
        !get_list(extents, "the shape", HVD_MAX_COMPONENT_DIMS + 1, shape,
                  &ndim) ||
        !(memory = memory_new(object, false)))
        return false;
    arrays->owners[i] = (PyObject *)memory;
    arrays->at[i] = memory->buffer.buf;
    arrays->n++;
    bytes = (size_t)hvd_dtype_size(c->dtype);
    for (int32_t d = 0; d < ndim; d++)
        bytes *= (size_t)shape[d];
    if (ndim < 1 || (Py_ssize_t)bytes != memory->buffer.len) {
        PyErr_Format(PyExc_ValueError, "'%s' has %zd bytes, not %zu", c->name,
                     memory->buffer.len, bytes);
        return false;
    }
    arrays->rows = shape[0];
    c->ndim = ndim - 1;
    memcpy(c->shape, shape + 1, (size_t)c->ndim * sizeof *shape);
    return true;
}

bool data_get(PyObject *list, PyObject *batch, PyObject *seed,
              struct data *data)
{
    Py_ssize_t n = PySequence_Size(list);

    data->arrays = NULL;
    if (n < 0 || !get_int(batch, "batch_size", 1, INT32_MAX, &data->batch) ||
        !get_int(seed, "the seed", -1, INT32_MAX, &data->seed))
        return false;
    if (n > HVD_MAX_COMPONENTS) {
        PyErr_Format(PyExc_ValueError, "%zd arrays are more than %d", n,
                     HVD_MAX_COMPONENTS);
        return false;
    }
    data->arrays = calloc(1, sizeof *data->arrays);
    if (!data->arrays) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *tuple = PySequence_GetItem(list, i);
        bool added = tuple && add_array(data->arrays, tuple);

        Py_XDECREF(tuple); /* the caller's list has it */
        if (!added) {
            release_arrays(data->arrays);
            return false;
        }
    }
    return true;
}

void data_drop(struct data *data)
{
    release_arrays(data->arrays);
}

hvd_dataset *data_set(struct data *data, bool trains)
{
    struct arrays *a = data->arrays;
    hvd_dataset *set = hvd_dataset_memory(a->n, a->components, a->at, a->rows,
                                          release_arrays, a);

    if (data->seed >= 0)
        set = hvd_dataset_shuffle(set, (uint64_t)data->seed, 0);
    return hvd_dataset_batch_global(set, data->batch, trains);
}
